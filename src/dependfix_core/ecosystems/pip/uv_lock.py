"""What does a `uv.lock` pin, for which environments, and who needs it?

Source: https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile (the
format itself is described by uv's own reader and writer, version 1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import join, normpath
from typing import Any, Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.lock_graph import extra_marker
from dependfix_core.ecosystems.pip.requirement_text import is_remote, without_credentials
from dependfix_core.ecosystems.pip.toml_text import parse_toml, strings_of, tables_of
from dependfix_core.model.lock import DependencyKind, Edge, Instance, Problem, ReleaseAgeGate, Source, SourceKind

SUPPORTED_VERSION: Final = 1
_LOCAL_KINDS: Final = ("virtual", "editable", "directory")


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalPackage:
    """A project of the checkout that the lock holds: the root, a workspace member, a path dependency."""

    where: str
    name: str
    folder: str
    """Relative to the top level; empty for the top level itself."""
    is_member: bool
    requires: Mapping[tuple[str, str], tuple[Edge, ...]]
    """(section, group) → edges; section is `dependencies`, `optional-dependencies` or `dev-dependencies`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UvLock:
    """A `uv.lock` as values."""

    path: str
    version: int
    revision: int
    requires_python: str
    instances: Mapping[str, Instance]
    locals: tuple[LocalPackage, ...]
    gates: tuple[ReleaseAgeGate, ...] = ()
    resolution_markers: tuple[str, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read_uv_lock(path: str, content: bytes) -> UvLock:
    """The copies, edges and local projects of a lock.

    Raises:
        TomlTextError: Not TOML at all.
    """
    data = parse_toml(content)
    folder = path.rpartition("/")[0]
    version = data.get("version")
    packages = [entry for entry in data.get("package") or [] if isinstance(entry, dict)]
    problems: list[Problem] = []
    if version != SUPPORTED_VERSION:
        problems.append(
            Problem(
                path=path,
                position="version",
                message=f"uv.lock version {version!r} is not known",
                reason="unsupported-lock-format",
            )
        )
        packages = []
    packages = [entry for entry in packages if _is_complete(path, entry, problems)]
    places = _places(packages)
    targets = _Targets(packages, places)
    members = data.get("manifest", {}).get("members")
    instances: dict[str, Instance] = {}
    local: list[LocalPackage] = []
    for entry, where in zip(packages, places, strict=True):
        source = _source(entry)
        own_folder = _local_folder(entry, folder)
        edges = tuple(_edges(entry, targets))
        if own_folder is not None:
            is_root = own_folder == folder
            is_member = is_root or (isinstance(members, list) and entry["name"] in members)
            local.append(
                LocalPackage(
                    where=where,
                    name=canonicalize_name(entry["name"]),
                    folder=own_folder,
                    is_member=is_member,
                    requires=_requires(entry, targets),
                )
            )
            # The members' own requirements are the manifests' constraints, with text and place.
            edges = () if is_member else tuple(_with_specifiers(entry, edges))
            source = Source(kind=SourceKind.WORKSPACE, text=source.text) if is_member else source
        instances[where] = Instance(
            where=where,
            name=canonicalize_name(entry["name"]),
            version=entry.get("version", ""),
            edges=edges,
            source=source,
            markers=" or ".join(strings_of(entry.get("resolution-markers"))),
            path=path,
            raw=entry,
        )
    options = data.get("options")
    return UvLock(
        path=path,
        version=version if isinstance(version, int) else 0,
        revision=data["revision"] if isinstance(data.get("revision"), int) else 0,
        requires_python=data["requires-python"] if isinstance(data.get("requires-python"), str) else "",
        instances=instances,
        locals=tuple(local),
        gates=tuple(_gates(path, options)) if isinstance(options, dict) else (),
        resolution_markers=strings_of(data.get("resolution-markers")),
        manifest=data["manifest"] if isinstance(data.get("manifest"), dict) else {},
        options=options if isinstance(options, dict) else {},
        problems=tuple(problems),
    )


def _is_complete(path: str, entry: Mapping[str, Any], problems: list[Problem]) -> bool:
    if isinstance(entry.get("name"), str) and isinstance(entry.get("version", ""), str):
        return True
    problems.append(Problem(path=path, position="package", message="an entry without a name or version"))
    return False


def _places(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """`package[name version]`, with the source or a number added where that alone is not unique."""
    places: list[str] = []
    seen: set[str] = set()
    for entry in packages:
        base = f"{canonicalize_name(entry['name'])} {entry.get('version', '')}".rstrip()
        place = f"package[{base}]"
        if place in seen:
            place = f"package[{base} {_source(entry).text}]"
        number = 2
        while place in seen:
            place, number = f"package[{base} #{number}]", number + 1
        seen.add(place)
        places.append(place)
    return places


class _Targets:
    """Finds the entry that a dependency of the lock means."""

    def __init__(self, packages: Sequence[Mapping[str, Any]], places: Sequence[str]) -> None:
        self._by_name: dict[str, list[tuple[Mapping[str, Any], str]]] = {}
        for entry, where in zip(packages, places, strict=True):
            self._by_name.setdefault(entry["name"], []).append((entry, where))

    def find(self, dependency: Mapping[str, Any]) -> str | None:
        found = self._by_name.get(dependency.get("name", ""), [])
        for key in ("version", "source"):
            if key in dependency and len(found) > 1:
                found = [one for one in found if one[0].get(key) == dependency[key]]
        return found[0][1] if len(found) == 1 else None


def _edges(entry: Mapping[str, Any], targets: _Targets) -> Iterator[Edge]:
    yield from (_edge(dependency, targets, "") for dependency in tables_of(entry.get("dependencies")))
    optional = entry.get("optional-dependencies")
    for extra, listed in optional.items() if isinstance(optional, dict) else ():
        yield from (_edge(dependency, targets, canonicalize_name(extra)) for dependency in tables_of(listed))


def _edge(dependency: Mapping[str, Any], targets: _Targets, extra: str) -> Edge:
    marker = dependency.get("marker", "")
    if extra:
        marker = f"({marker}) and {extra_marker(extra)}" if marker else extra_marker(extra)
    return Edge(
        name=canonicalize_name(str(dependency.get("name", ""))),
        requirement=None,
        kind=DependencyKind.OPTIONAL if extra else DependencyKind.PROD,
        target=targets.find(dependency),
        marker=marker,
        extras=tuple(canonicalize_name(name) for name in strings_of(dependency.get("extra"))),
    )


def _requires(entry: Mapping[str, Any], targets: _Targets) -> dict[tuple[str, str], tuple[Edge, ...]]:
    found = {
        ("dependencies", ""): tuple(
            _edge(dependency, targets, "") for dependency in tables_of(entry.get("dependencies"))
        )
    }
    for section in ("optional-dependencies", "dev-dependencies"):
        groups = entry.get(section)
        for group, listed in groups.items() if isinstance(groups, dict) else ():
            found[section, canonicalize_name(group)] = tuple(
                _edge(dependency, targets, "") for dependency in tables_of(listed)
            )
    return found


def _with_specifiers(entry: Mapping[str, Any], edges: Sequence[Edge]) -> Iterator[Edge]:
    """For a local package the lock mirrors its requirements, text included."""
    metadata = entry.get("metadata")
    texts: dict[str, list[str]] = {}
    for dependency in tables_of(metadata.get("requires-dist") if isinstance(metadata, dict) else None):
        name = canonicalize_name(str(dependency.get("name", "")))
        texts.setdefault(name, []).append(str(dependency.get("specifier", "")))
    for edge in edges:
        found = texts.get(edge.name, [])
        yield Edge(
            name=edge.name,
            requirement=found[0] if len(set(found)) == 1 else None,
            kind=edge.kind,
            target=edge.target,
            marker=edge.marker,
            extras=edge.extras,
        )


def _source(entry: Mapping[str, Any]) -> Source:
    source = entry.get("source")
    if not isinstance(source, dict) or not source:
        return Source(kind=SourceKind.UNKNOWN)
    kind, value = next(iter(source.items()))
    text = without_credentials(value) if isinstance(value, str) else ""
    if kind == "registry":
        if is_remote(text):
            return Source(base=text, text=text)
        return Source(kind=SourceKind.FILE, text=text)
    kinds = {
        "git": SourceKind.GIT,
        "url": SourceKind.URL,
        "path": SourceKind.FILE,
        "directory": SourceKind.FILE,
        "editable": SourceKind.LINK,
        "virtual": SourceKind.LINK,
    }
    return Source(kind=kinds.get(kind, SourceKind.UNKNOWN), text=text)


def _local_folder(entry: Mapping[str, Any], folder: str) -> str | None:
    source = entry.get("source")
    for kind in _LOCAL_KINDS:
        value = source.get(kind) if isinstance(source, dict) else None
        if isinstance(value, str):
            found = normpath(join(folder or ".", value.replace("\\", "/")))
            return None if found.startswith(("..", "/")) else "" if found == "." else found
    return None


def _gates(path: str, options: Mapping[str, Any]) -> Iterator[ReleaseAgeGate]:
    per_package = options.get("exclude-newer-package")
    names = sorted(per_package) if isinstance(per_package, dict) else []
    limit = options.get("exclude-newer")
    if limit is not None:
        yield ReleaseAgeGate(
            path=path,
            at="options.exclude-newer",
            exclude_newer=str(limit),
            excluded=tuple(names),
            kind="exclude-newer",
        )
