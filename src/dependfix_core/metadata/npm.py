"""Reads the npm registry's package documents.

Source: https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from dependfix_core.model.records import PackageRecord, RecordKey, Release, ReleaseDependency

_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")
_READ_ELSEWHERE: Final = frozenset(
    {
        "name",
        "version",
        "dependencies",
        "devDependencies",
        "optionalDependencies",
        "peerDependencies",
        "dist",
        "engines",
        "os",
        "cpu",
        "libc",
        "scripts",
        "deprecated",
        "readme",
        "description",
        "maintainers",
        "contributors",
        "keywords",
        "_id",
        "_npmUser",
        "_npmOperationalInternal",
        "_nodeVersion",
        "_npmVersion",
        "gitHead",
        "repository",
        "bugs",
        "homepage",
        "author",
    }
)


class _Releases(Mapping[str, Release]):
    """Releases of a document, each read when it is first looked at: most never are."""

    def __init__(self, versions: Mapping[str, Any], times: Mapping[str, Any]) -> None:
        self._versions = versions
        self._times = times
        self._read: dict[str, Release] = {}

    def __getitem__(self, version: str) -> Release:
        found = self._read.get(version)
        if found is None:
            found = self._read[version] = _release(self._versions[version], version, self._times.get(version))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def read_package_document(key: RecordKey, document: bytes) -> PackageRecord:
    """All releases of a package document, full or abbreviated.

    Raises:
        ValueError: It is not such a document.
    """
    data = json.loads(document)
    if not isinstance(data, dict) or not isinstance(data.get("versions"), dict):
        raise ValueError("not a package document: it has no versions")
    times = data.get("time")
    tags = data.get("dist-tags")
    return PackageRecord(
        key=key,
        releases=_Releases(
            {version: entry for version, entry in data["versions"].items() if isinstance(entry, dict)},
            times if isinstance(times, dict) else {},
        ),
        tags={str(name): str(version) for name, version in tags.items()} if isinstance(tags, dict) else {},
        digest=sha256(document).hexdigest(),
    )


def _release(entry: Mapping[str, Any], version: str, published: object) -> Release:
    dist = _table(entry.get("dist"))
    scripts = _table(entry.get("scripts"))
    deprecated = entry.get("deprecated")
    return Release(
        name=str(entry.get("name", "")),
        version=version,
        dependencies=tuple(_dependencies(entry)),
        published_at=_time(published),
        # `false` and the empty string are how a deprecation is taken back.
        deprecated=deprecated if isinstance(deprecated, str) else ("deprecated" if deprecated else ""),
        integrity=_text(dist.get("integrity")),
        shasum=_text(dist.get("shasum")),
        tarball=_text(dist.get("tarball")),
        requires_runtime=_engines(entry.get("engines")),
        platform={name: tuple(_texts(entry[name])) for name in ("os", "cpu", "libc") if _texts(entry.get(name))},
        has_install_script=bool(entry.get("hasInstallScript")) or any(scripts.get(name) for name in _INSTALL_SCRIPTS),
        extra={name: value for name, value in entry.items() if name not in _READ_ELSEWHERE} | _listed_engines(entry),
    )


def _dependencies(entry: Mapping[str, Any]) -> Iterator[ReleaseDependency]:
    optional = _table(entry.get("optionalDependencies"))
    for name, requirement in _table(entry.get("dependencies")).items():
        # The registry repeats optional dependencies under `dependencies`.
        if name not in optional:
            yield ReleaseDependency(name=name, requirement=_text(requirement))
    for name, requirement in optional.items():
        yield ReleaseDependency(name=name, requirement=_text(requirement), kind="optional")
    details = _table(entry.get("peerDependenciesMeta"))
    for name, requirement in _table(entry.get("peerDependencies")).items():
        kind = "peer-optional" if _table(details.get(name)).get("optional") is True else "peer"
        yield ReleaseDependency(name=name, requirement=_text(requirement), kind=kind)


def _engines(value: object) -> dict[str, str]:
    # Old packages write a list, which npm ignores.
    return {str(name): text for name, text in _table(value).items() if isinstance(text, str)}


def _listed_engines(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The list of old packages, which says nothing but is copied into lockfiles."""
    engines = entry.get("engines")
    return {"engines": engines} if isinstance(engines, list) else {}


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
