"""Reads the Python index: project pages of the Simple API, the older JSON API, and core metadata files.

Sources: https://packaging.python.org/en/latest/specifications/simple-repository-api/
and https://packaging.python.org/en/latest/specifications/core-metadata/
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from dependfix_core.model.records import PackageRecord, RecordKey, Release, ReleaseDependency, ReleaseFile


def version_of_file(filename: str) -> str | None:
    """Normalised version that a wheel's or sdist's name states; `None` for other files and legacy versions."""
    try:
        if filename.endswith(".whl"):
            return str(parse_wheel_filename(filename)[1])
        return str(parse_sdist_filename(filename)[1])
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def read_simple_json(key: RecordKey, document: bytes, *, url: str) -> PackageRecord:
    """Releases of a project page in JSON; relative file addresses are resolved against `url`.

    Raises:
        ValueError: It is not a project page.
    """
    data = json.loads(document)
    if not isinstance(data, dict) or not isinstance(data.get("files"), list):
        raise ValueError("not a project page: it has no files")
    files = [_file_of_json(entry, url) for entry in data["files"] if isinstance(entry, dict)]
    listed = [version for version in data.get("versions") or () if isinstance(version, str)]
    return _package(key, files, listed, document)


def read_simple_html(key: RecordKey, document: bytes, *, url: str) -> PackageRecord:
    """Releases of a project page in HTML, for indexes that have no JSON.

    Raises:
        ValueError: It is not a project page.
    """
    page = _ProjectPage(url)
    page.feed(document.decode("utf-8", errors="replace"))
    if not page.files and "<a" not in document.decode("utf-8", errors="replace").lower():
        raise ValueError("not a project page: it has no links")
    return _package(key, page.files, (), document)


def read_project_json(key: RecordKey, document: bytes, *, url: str) -> PackageRecord:
    """Releases of the older JSON API, whose file addresses may be relative.

    Raises:
        ValueError: It is not such a document.
    """
    data = json.loads(document)
    releases = data.get("releases") if isinstance(data, dict) else None
    if not isinstance(releases, dict):
        raise ValueError("not a project document: it has no releases")
    files = []
    for entries in releases.values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                renamed = {
                    "filename": entry.get("filename"),
                    "url": entry.get("url"),
                    "hashes": entry.get("digests"),
                    "size": entry.get("size"),
                    "upload-time": entry.get("upload_time_iso_8601"),
                    "yanked": (entry.get("yanked_reason") or True) if entry.get("yanked") else False,
                    "requires-python": entry.get("requires_python"),
                }
                files.append(_file_of_json(renamed, url))
    return _package(key, files, [version for version in releases if isinstance(version, str)], document)


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreMetadata:
    """The fields of a core metadata file that decisions hang on."""

    dependencies: tuple[ReleaseDependency, ...]
    requires_python: str | None
    provides_extra: tuple[str, ...]
    summary: str


def read_core_metadata(document: bytes) -> CoreMetadata:
    """The fields of a `METADATA` or `PKG-INFO` file.

    Raises:
        ValueError: A requirement in it is malformed, so the list would be incomplete.
    """
    from packaging.metadata import parse_email  # noqa: PLC0415  # brings a table of all licences

    raw, _ = parse_email(document)
    return CoreMetadata(
        dependencies=read_requires_dist(raw.get("requires_dist") or ()),
        requires_python=raw.get("requires_python"),
        provides_extra=tuple(str(canonicalize_name(extra)) for extra in raw.get("provides_extra") or ()),
        summary=raw.get("summary") or "",
    )


def read_requires_dist(lines: Iterable[str]) -> tuple[ReleaseDependency, ...]:
    """`Requires-Dist` values as requirements, in their order.

    Raises:
        ValueError: One is malformed.
    """
    found = []
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise ValueError(f"malformed requirement {line[:100]!r}") from error
        found.append(
            ReleaseDependency(
                name=str(canonicalize_name(requirement.name)),
                requirement=f"@ {requirement.url}" if requirement.url else str(requirement.specifier),
                marker=str(requirement.marker) if requirement.marker else "",
                extras=tuple(sorted(str(canonicalize_name(extra)) for extra in requirement.extras)),
                text=line,
            )
        )
    return tuple(found)


def metadata_candidates(release: Release) -> tuple[ReleaseFile, ...]:
    """Files whose core metadata speaks for the release: pure wheels first, then other wheels, never sdists."""
    wheels = [file for file in release.files if file.filename.endswith(".whl")]
    return tuple(sorted(wheels, key=lambda file: ("-none-any." not in file.filename, file.filename)))


def _package(key: RecordKey, files: Iterable[ReleaseFile], listed: Iterable[str], document: bytes) -> PackageRecord:
    by_version: dict[str, list[ReleaseFile]] = defaultdict(list)
    for file in files:
        version = version_of_file(file.filename)
        if version is not None:
            by_version[version].append(file)
    for text in listed:
        try:
            by_version.setdefault(str(Version(text)), [])
        except InvalidVersion:
            continue
    return PackageRecord(
        key=key,
        releases={version: _release(key.name, version, found) for version, found in by_version.items() if found},
        digest=sha256(document).hexdigest(),
    )


def _release(name: str, version: str, files: list[ReleaseFile]) -> Release:
    times = [file.upload_time for file in files if file.upload_time is not None]
    floors = {file.requires_python for file in files if file.requires_python}
    return Release(
        name=name,
        version=version,
        dependencies=None,
        published_at=min(times, default=None),
        # A release is withdrawn when all its files are.
        yanked=all(file.yanked for file in files),
        files=tuple(sorted(files, key=lambda file: file.filename)),
        requires_runtime={"python": floors.pop()} if len(floors) == 1 else {},
    )


def _file_of_json(entry: Mapping[str, Any], url: str) -> ReleaseFile:
    yanked = entry.get("yanked") or False
    uploaded = entry.get("upload-time")
    size = entry.get("size")
    hashes = entry.get("hashes")
    floor = entry.get("requires-python")
    return ReleaseFile(
        filename=str(entry.get("filename") or ""),
        url=urljoin(url, str(entry.get("url") or "")),
        hashes={str(name): str(value) for name, value in hashes.items()} if isinstance(hashes, dict) else {},
        size=size if isinstance(size, int) else None,
        upload_time=_time(uploaded),
        raw_upload_time=uploaded if isinstance(uploaded, str) else "",
        yanked=bool(yanked),
        yanked_reason=yanked if isinstance(yanked, str) else "",
        requires_python=floor if isinstance(floor, str) and floor else None,
    )


class _ProjectPage(HTMLParser):
    """Collects the links of a project page with their `data-` attributes."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = url
        self.files: list[ReleaseFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "base" and found.get("href"):
            self._base = urljoin(self._base, found["href"] or "")
        if tag != "a" or not found.get("href"):
            return
        address, fragment = urldefrag(urljoin(self._base, found["href"] or ""))
        algorithm, _, digest = fragment.partition("=")
        self.files.append(
            ReleaseFile(
                filename=unquote(address.rsplit("/", 1)[-1]),
                url=address,
                hashes={algorithm: digest} if digest else {},
                yanked="data-yanked" in found,
                yanked_reason=found.get("data-yanked") or "",
                requires_python=found.get("data-requires-python") or None,
            )
        )


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
