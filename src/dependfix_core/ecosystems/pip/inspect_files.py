"""Are the files that a Python lock lists those of its releases: names, hashes, sizes, hosts?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import basename
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.base import Finding
from dependfix_core.ecosystems.pip.needs import normal_version
from dependfix_core.ecosystems.pip.resolution import Resolution
from dependfix_core.ecosystems.pip.simulation import release_in
from dependfix_core.ecosystems.pip.toml_text import TomlTextError, parse_toml, strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.wheels import is_installable
from dependfix_core.ecosystems.pip.write_pdm import listed_files
from dependfix_core.metadata.pip import version_of_file
from dependfix_core.model.files import FileContent
from dependfix_core.model.lock import Instance, LockUnit, SourceKind
from dependfix_core.model.records import PackageRecord, Release, ReleaseFile
from dependfix_core.model.steps import Step, file_content, together

_LISTS_ALL: Final = frozenset({"poetry-lock", "pdm-lock", "pipfile-lock"})
"""Formats whose entries list every file of the release."""
_FEW_HOSTS: Final = 3
"""So many entries on one host, and none but this one on another, make the other one foreign."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stored:
    """One file as the lock lists it."""

    name: str = ""
    """Empty where only hashes are listed."""
    algorithm: str = ""
    digest: str = ""
    url: str = ""
    size: int | None = None


def wrong_files(resolution: Resolution) -> Step[list[Finding]]:
    """V6: names, hashes and sizes that are not the registry's, and hosts that are nobody else's."""
    unit = resolution.unit
    stored = yield from _stored(unit)
    copies = [unit.instances[where] for where in stored]
    packages = yield from together([resolution.package(one.name) for one in copies])
    found: list[Finding] = []
    for copy, package in zip(copies, packages, strict=True):
        files = stored[copy.where]
        found += _misnamed(copy, files)
        release = release_in(package, copy.version) if isinstance(package, PackageRecord) else None
        if release is not None and release.files:
            found += _wrong_hashes(copy, files, release)
            if unit.format in _LISTS_ALL or _is_compiled(unit, copy):
                found += _incomplete(copy, files, _wanted(resolution, release))
            elif unit.format == "uv-lock":
                found += _left_out(copy, files, release)
    found += _foreign_hosts(unit, stored)
    return found


def _is_compiled(unit: LockUnit, copy: Instance) -> bool:
    compiled = unit.settings.get("compiled", {})
    return any(pin.path in compiled for pin in copy.raw.get("pins", ()))


# What the formats store.


def _stored(unit: LockUnit) -> Step[dict[str, list[_Stored]]]:
    """Place → its files, for copies from a registry that list any."""
    shared: Mapping[str, Any] = {}
    if unit.format in ("poetry-lock", "pdm-lock"):
        content = yield from file_content(unit.unit)
        shared = _shared_files(content.content) if isinstance(content, FileContent) else {}
    found: dict[str, list[_Stored]] = {}
    for where, one in unit.instances.items():
        if one.source.kind is SourceKind.REGISTRY and one.version:
            files = list(_files_of(unit.format, one, shared))
            if files:
                found[where] = files
    return found


def _shared_files(content: bytes) -> dict[str, Any]:
    """Lists of all packages at the end of the lock, as older locks have them: `name` or `name version` → files."""
    try:
        files = table_of(table_of(parse_toml(content).get("metadata")).get("files"))
    except TomlTextError:
        return {}
    found = {}
    for key, listed in files.items():
        name, _, version = key.partition(" ")
        found[f"{canonicalize_name(name)} {version}".strip()] = listed
    return found


def _files_of(lock_format: str, one: Instance, shared: Mapping[str, Any]) -> Iterator[_Stored]:
    raw = one.raw
    match lock_format:
        case "uv-lock":
            for table in (table_of(raw.get("sdist")), *tables_of(raw.get("wheels"))):
                if table:
                    yield _file(table, str(table.get("hash", "")))
        case "poetry-lock":
            for table in tables_of(raw.get("files") or shared.get(one.name)):
                yield _file(table, str(table.get("hash", "")))
        case "pdm-lock":
            entries = [table for entry in raw.get("entries", ()) for table in tables_of(entry.get("files"))]
            for table in entries or tables_of(shared.get(f"{one.name} {one.version}")):
                yield _file(table, str(table.get("hash", "")))
        case "pylock":
            for table in (table_of(raw.get("sdist")), *tables_of(raw.get("wheels"))):
                for algorithm, digest in table_of(table.get("hashes")).items():
                    yield _file(table, f"{algorithm}:{digest}")
        case "pipfile-lock":
            yield from (_file({}, text) for text in strings_of(raw.get("hashes")))
        case _:
            hashes = [text for pin in raw.get("pins", ()) for text in pin.line.hashes]
            yield from (_file({}, text) for text in dict.fromkeys(hashes))


def _file(table: Mapping[str, Any], hashed: str) -> _Stored:
    address = str(table.get("url") or table.get("path") or "")
    name = str(table.get("file") or table.get("name") or "") or basename(
        unquote(address.partition("#")[0].partition("?")[0])
    )
    algorithm, _, digest = hashed.partition(":")
    size = table.get("size")
    return _Stored(
        name=name,
        algorithm=algorithm.lower(),
        digest=digest.lower(),
        url=str(table.get("url") or ""),
        size=size if isinstance(size, int) else None,
    )


# What they should be.


def _misnamed(copy: Instance, files: Iterable[_Stored]) -> Iterator[Finding]:
    for file in files:
        version = version_of_file(file.name) if file.name else None
        if version is not None and version != normal_version(copy.version):
            yield Finding(check="V6", where=copy.where, detail=f"{file.name} is a file of version {version}")


def _wrong_hashes(copy: Instance, files: Iterable[_Stored], release: Release) -> Iterator[Finding]:
    by_name = {file.filename: file for file in release.files}
    for file in files:
        known = by_name.get(file.name)
        if file.name and known is None:
            yield Finding(check="V6", where=copy.where, detail=f"{file.name} is no file of {copy.name}")
            continue
        candidates = [known] if known is not None else list(release.files)
        digests = {one.hashes.get(file.algorithm, "").lower() for one in candidates}
        if file.digest and "" not in digests and file.digest not in digests:
            what = file.name or f"a hash of {copy.name}"
            yield Finding(check="V6", where=copy.where, detail=f"{what} is not what the registry has")
        if known is not None and file.size is not None and known.size is not None and file.size != known.size:
            yield Finding(check="V6", where=copy.where, detail=f"{file.name} has another size in the registry")


def _wanted(resolution: Resolution, release: Release) -> list[ReleaseFile]:
    """The files that an entry has to list."""
    files = [file for file in release.files if not file.yanked]
    match resolution.unit.format:
        case "pdm-lock":
            return listed_files(files, resolution.facts.environments)
        case "poetry-lock":
            return [file for file in files if is_installable(file.filename)]
        case _:
            return files


def _incomplete(copy: Instance, files: Iterable[_Stored], wanted: Iterable[ReleaseFile]) -> Iterator[Finding]:
    """A file that is not listed cannot be installed, whatever machine would need it."""
    listed = {(file.algorithm, file.digest) for file in files}
    algorithms = {algorithm for algorithm, _ in listed if algorithm}
    missing = [
        file.filename
        for file in wanted
        if all(file.hashes.get(algorithm) for algorithm in algorithms)
        and not any((algorithm, file.hashes[algorithm].lower()) in listed for algorithm in algorithms)
    ]
    if missing and algorithms:
        yield Finding(check="V6", where=copy.where, detail=f"files of {copy.name} are not listed")


def _left_out(copy: Instance, files: Iterable[_Stored], release: Release) -> Iterator[Finding]:
    """Uv leaves out wheels that fit none of the project's pythons and platforms; pure ones always fit."""
    listed = {file.name for file in files}
    pure = [file.filename for file in release.files if file.filename.endswith("-py3-none-any.whl") and not file.yanked]
    if any(name not in listed for name in pure):
        yield Finding(check="V6", where=copy.where, detail=f"files of {copy.name} are not listed")


def _foreign_hosts(unit: LockUnit, stored: Mapping[str, Iterable[_Stored]]) -> Iterator[Finding]:
    """Copies whose files lie on a host where no other copy of the same registry has any."""
    hosts: dict[str, set[str]] = {}
    for where, files in stored.items():
        hosts[where] = {_host(file.url) for file in files if file.url}
    users: dict[str, Counter[str]] = {}
    for where, found in hosts.items():
        users.setdefault(unit.instances[where].source.base, Counter()).update(found)
    for where, found in hosts.items():
        base = unit.instances[where].source.base
        counted = users[base]
        is_alone = {host for host in found if counted[host] == 1 and host != _host(base)}
        if is_alone and counted.most_common(1)[0][1] >= _FEW_HOSTS:
            detail = f"the files of {unit.instances[where].name} lie on another host than all others"
            yield Finding(check="V6", where=where, detail=detail)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""
