"""package-lock.json and npm-shrinkwrap.json, versions 1 to 3, as locked copies with their edges.

Versions 2 and 3 are read from `packages`, version 1 from its nested
`dependencies`; both become one map of places (`node_modules/a/node_modules/b`)
to entries, over which names are looked up as node does it: from the own
folder's `node_modules` up to the root's.

Source: https://docs.npmjs.com/cli/configuring-npm/package-lock-json
"""

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError, line_and_column, scan_json
from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.parsed import Root, unreadable
from dependfix_core.ecosystems.npm.specifiers import kind_of, public_text, read_specifier, registry_source
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Edge,
    Instance,
    LazyEdges,
    Problem,
    Source,
    SourceKind,
)

FORMAT: Final = "npm-lock"
_FOLDER: Final = "node_modules/"
_ALIASED_V1: Final = re.compile(r"npm:((?:@[^/@]+/)?[^/@]+)@(.+)")
_ENTRY_SECTIONS: Final = (("dependencies", DependencyKind.PROD), ("optionalDependencies", DependencyKind.OPTIONAL))
_MIRRORED: Final = tuple(SECTIONS)
_REGISTRY_WITHOUT_BASE: Final = Source()


class NpmTree:
    """Places and their entries, with node's way of looking up a name."""

    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self.entries = entries

    def resolve(self, place: str, name: str) -> str | None:
        """The place that `name` leads to when the package at `place` asks for it."""
        entries = self.entries
        here = place
        while True:
            candidate = f"{here}/{_FOLDER}{name}" if here else _FOLDER + name
            if candidate in entries:
                return candidate
            if not here or here == "..":
                return None
            here = folder_above(here)


def folder_above(place: str) -> str:
    """The next place whose `node_modules` is looked into after that of `place`."""
    at = place.rfind(_FOLDER)
    if at >= 0 and place.count("/", at + len(_FOLDER)) == (1 if place.startswith("@", at + len(_FOLDER)) else 0):
        return place[: max(at - 1, 0)]
    return place.rpartition("/")[0]


def name_at(place: str) -> str:
    """The name under which a place is found; of a folder outside `node_modules` the whole path."""
    at = place.rfind(_FOLDER)
    return place if at < 0 else place[at + len(_FOLDER) :]


@dataclass(frozen=True, kw_only=True, slots=True)
class NpmLock:
    """A lockfile that could be read."""

    path: str
    version: int
    tree: NpmTree
    """Without the root's own entry."""
    data: Mapping[str, Any]
    """The whole file."""
    problems: tuple[Problem, ...] = ()
    member_folders: tuple[str, ...] = ()
    """Folders that the lock holds beside `node_modules`: workspace members and linked folders, sorted."""
    declared: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None
    """Folder → section → name → text as the lock mirrors its manifests; `None` in version 1."""
    overrides: Mapping[str, str] | None = None
    has_bundles: bool = True
    """Whether any copy may lie in a tarball of another one."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: str = FORMAT

    @property
    def format_version(self) -> str:
        """`1`, `2` or `3`."""
        return str(self.version)

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """Place of the copy that a manifest's requirement leads to."""
        return self.tree.resolve(folder, constraint.name)

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by place. Folders with a manifest of their own are no copies; links to them are."""
        del roots  # the lockfile stores the flags
        skipped = frozenset(manifest_folders)
        if self.version == 1:
            return {
                place: _instance_v1(self, place, entry, skipped)
                for place, entry in self.tree.entries.items()
                if place not in skipped
            }
        return _instances(self, skipped, _bundled(self))


def read_npm_lock(path: str, content: bytes) -> NpmLock | Problem:
    """The lock, or why it cannot be read."""
    try:
        data = json.loads(content, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        return unreadable(path, "", "nested too deeply")
    except ValueError as error:
        return _syntax_problem(path, content, error)
    if not isinstance(data, dict):
        return unreadable(path, "1:1", "not an object")
    version = data.get("lockfileVersion", 1)
    if version not in (1, 2, 3) or isinstance(version, bool):
        message = f"lockfileVersion {str(version)[:20]} is not read"
        return Problem(path=path, position="lockfileVersion", message=message, reason="unsupported-lock-format")
    version = int(version)
    packages, nested = data.get("packages"), data.get("dependencies")
    if version == 1 or (version == 2 and packages is None):
        if nested is not None and not isinstance(nested, dict):
            return unreadable(path, "dependencies", "not an object")
        return _read_v1(path, data, nested or {})
    if not isinstance(packages, dict):
        return unreadable(path, "packages", "not an object")
    has_bundles = b'"inBundle"' in content or b'"hasShrinkwrap"' in content or b"\\u" in content
    return _read_packages(path, version, data, packages, has_bundles=has_bundles)


class _RepeatedKeyError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RepeatedKeyError("a key is written twice")
    return members


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _syntax_problem(path: str, content: bytes, error: ValueError) -> Problem:
    """The same fault with its position, found by the scanner that knows offsets."""
    try:
        document = scan_json(content)
    except JsonSyntaxError as found:
        return unreadable(path, line_and_column(content, found.offset), str(found))
    if document.duplicates:
        keys, offset = document.duplicates[0]
        return unreadable(path, line_and_column(content, offset), f"the key {keys[-1]!s:.80} is written twice")
    return unreadable(path, "", str(error)[:200])


def _read_v1(path: str, data: Mapping[str, Any], nested: Mapping[str, Any]) -> NpmLock:
    entries: dict[str, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    folders: list[str] = []
    waiting: list[tuple[str, Mapping[str, Any]]] = [("", nested)]
    while waiting:
        above, children = waiting.pop()
        for name, entry in children.items():
            place = f"{above}/{_FOLDER}{name}" if above else _FOLDER + name
            if not isinstance(entry, dict) or not isinstance(entry.get("version"), str):
                problems.append(unreadable(path, place, "an entry without a version"))
                continue
            entries[place] = entry
            folder = linked_folder_v1(entry)
            if folder is not None:
                entries[folder] = entry
                folders.append(folder)
            if isinstance(entry.get("dependencies"), dict):
                waiting.append((place if folder is None else folder, entry["dependencies"]))
    return NpmLock(
        path=path,
        version=1,
        tree=NpmTree(dict(sorted(entries.items()))),
        data=data,
        problems=tuple(problems),
        member_folders=tuple(sorted(folders)),
    )


def linked_folder_v1(entry: Mapping[str, Any]) -> str | None:
    """The folder that a version 1 entry links to; `None` for a copy and for a packed file."""
    version = entry.get("version")
    if not isinstance(version, str) or not version.startswith("file:") or version.endswith((".tgz", ".tar.gz", ".tar")):
        return None
    folder = posixpath.normpath(version[5:])
    return None if folder in ("", ".") or posixpath.isabs(folder) else folder


def _read_packages(
    path: str, version: int, data: Mapping[str, Any], packages: Mapping[str, Any], *, has_bundles: bool
) -> NpmLock:
    entries: dict[str, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    folders: list[str] = []
    declared: dict[str, Mapping[str, Mapping[str, str]]] = {}
    for place, entry in packages.items():
        if not isinstance(entry, dict):
            problems.append(unreadable(path, f"packages.{place}", "an entry that is no object"))
            continue
        if _FOLDER not in place:
            declared[place] = {section: _requirements(entry, section) for section in _MIRRORED}
            if place:
                folders.append(place)
        if place:
            entries[place] = entry
    root = packages.get("")
    return NpmLock(
        path=path,
        version=version,
        tree=NpmTree(entries),
        data=data,
        problems=tuple(problems),
        member_folders=tuple(sorted(folders)),
        declared=declared,
        has_bundles=has_bundles,
        settings={
            "rootBundled": _names(root.get("bundleDependencies")) if isinstance(root, dict) else (),
            "omitsResolved": not any("resolved" in entry and not entry.get("link") for entry in entries.values()),
        },
    )


def _requirements(entry: Mapping[str, Any], section: str) -> Mapping[str, str]:
    found = entry.get(section)
    return {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


def _bundled(lock: NpmLock) -> frozenset[str]:
    """Places that lie in a parent's tarball, or below a parent that brings its own shrinkwrap.

    What the root bundles is installed like everything else and therefore not among them.
    """
    if not lock.has_bundles:
        return frozenset()
    inside: set[str] = set()
    holders: list[str] = []
    shrinkwrapped: list[str] = []
    entries = lock.tree.entries
    for place, entry in entries.items():
        if "inBundle" in entry:
            inside.add(place)
        if "bundleDependencies" in entry:
            holders.append(f"{place}/")
        if "hasShrinkwrap" in entry:
            shrinkwrapped.append(f"{place}/")
    if lock.settings["rootBundled"]:
        inside = {place for place in inside if place.startswith((*holders, *shrinkwrapped))}
    if shrinkwrapped:
        inside |= {place for place in entries if place.startswith(tuple(shrinkwrapped))}
    return frozenset(inside)


def _instances(lock: NpmLock, manifest_folders: frozenset[str], bundled: frozenset[str]) -> dict[str, Instance]:
    """One loop for all copies: what is done here is done thousands of times."""
    found: dict[str, Instance] = {}
    tree, path = lock.tree, lock.path
    for place, entry in tree.entries.items():
        if place in manifest_folders:
            continue
        get = entry.get
        at = place.rfind(_FOLDER)
        asked = place[at + len(_FOLDER) :] if at >= 0 else place
        real, version, resolved, both = get("name"), get("version"), get("resolved"), bool(get("devOptional"))
        edges: LazyEdges | tuple[Edge, ...] = ()
        if get("link"):
            source, version, real = _link(lock, resolved, manifest_folders)
        else:
            source = _source(lock, real or asked, version, resolved)
            if "dependencies" in entry or "peerDependencies" in entry or "optionalDependencies" in entry:
                edges = LazyEdges(_edges, tree, place, entry)
        name = real if isinstance(real, str) and real else asked
        found[place] = Instance(
            where=place,
            name=name,
            version=version if isinstance(version, str) else "",
            edges=edges,
            source=source,
            dev=both or bool(get("dev")),
            optional=both or bool(get("optional")),
            peer=bool(get("peer")),
            bundled=place in bundled,
            aliases=(asked,) if name != asked else (),
            path=path,
            raw=entry,
        )
    return found


def _link(lock: NpmLock, resolved: Any, manifest_folders: frozenset[str]) -> tuple[Source, Any, Any]:
    folder = resolved if isinstance(resolved, str) else ""
    target = lock.tree.entries.get(folder, {})
    kind = SourceKind.WORKSPACE if folder in manifest_folders else SourceKind.LINK
    return Source(kind=kind, text=folder), target.get("version", ""), target.get("name")


def _source(lock: NpmLock, name: str, version: Any, resolved: Any) -> Source:
    if not isinstance(resolved, str):
        return _REGISTRY_WITHOUT_BASE
    if resolved.startswith("http"):
        at = resolved.find(f"/{name}/-/")
        if at > 0:
            return registry_source(resolved[:at])
        if resolved in _asked_locations(lock):
            return Source(kind=kind_of(resolved), text=public_text(resolved))
        # A registry with a layout of its own: its base cannot be told from the address.
        kind = SourceKind.REGISTRY if isinstance(version, str) else SourceKind.URL
        return Source(kind=kind, text=public_text(resolved))
    kind = kind_of(resolved)
    return Source(kind=SourceKind.UNKNOWN if kind is SourceKind.REGISTRY else kind, text=public_text(resolved))


def _asked_locations(lock: NpmLock) -> frozenset[str]:
    """Every requirement text of the lock that is a location. Only asked for when an address is unusual."""
    found = lock.data.get("packages")
    texts: set[str] = set()
    for entry in found.values() if isinstance(found, dict) else ():
        for section in (*_MIRRORED,) if isinstance(entry, dict) else ():
            texts.update(text for text in _requirements(entry, section).values() if "/" in text)
    return frozenset(texts)


def _edges(tree: NpmTree, place: str, entry: Mapping[str, Any]) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    for section, kind in _ENTRY_SECTIONS:
        edges.extend(_edge(tree, place, name, text, kind) for name, text in _requirements(entry, section).items())
    peers = _requirements(entry, "peerDependencies")
    if peers:
        meta = entry.get("peerDependenciesMeta")
        meta = meta if isinstance(meta, dict) else {}
        for name, text in peers.items():
            about = meta.get(name)
            optional = isinstance(about, dict) and about.get("optional") is True
            kind = DependencyKind.PEER_OPTIONAL if optional else DependencyKind.PEER
            edges.append(_edge(tree, place, name, text, kind))
    return tuple(edges)


def _edge(tree: NpmTree, place: str, name: str, text: str, kind: DependencyKind) -> Edge:
    requirement = read_specifier(name, text).requirement if ":" in text else text
    return Edge(name=name, requirement=requirement, kind=kind, target=tree.resolve(place, name))


def _instance_v1(lock: NpmLock, place: str, entry: Mapping[str, Any], manifest_folders: frozenset[str]) -> Instance:
    asked, version = name_at(place), entry["version"]
    real, source = asked, _REGISTRY_WITHOUT_BASE
    folder = linked_folder_v1(entry)
    if folder is not None and _FOLDER in place:
        kind = SourceKind.WORKSPACE if folder in manifest_folders else SourceKind.LINK
        return Instance(
            where=place, name=asked, version="", source=Source(kind=kind, text=folder), path=lock.path, raw=entry
        )
    alias = _ALIASED_V1.fullmatch(version)
    if alias is not None:
        real, version = alias[1], alias[2]
    if ":" in version or "/" in version:
        source = Source(kind=kind_of(version), text=public_text(version))
    elif isinstance(entry.get("resolved"), str):
        source = _source(lock, real, version, entry["resolved"])
    return Instance(
        where=place,
        name=real,
        version=version,
        edges=LazyEdges(_edges_v1, lock.tree, place, entry),
        source=source,
        dev=bool(entry.get("dev")),
        optional=bool(entry.get("optional")),
        bundled=bool(entry.get("bundled")),
        aliases=(asked,) if real != asked else (),
        path=lock.path,
        raw=entry,
    )


def _edges_v1(tree: NpmTree, place: str, entry: Mapping[str, Any]) -> tuple[Edge, ...]:
    """Version 1 stores no kinds: a copy that is only optional is not needed by one that is not."""
    entries, edges = tree.entries, []
    for name, text in _requirements(entry, "requires").items():
        edge = _edge(tree, place, name, text, DependencyKind.PROD)
        target = entries.get(edge.target) if edge.target is not None else None
        optional = target is not None and bool(target.get("optional")) and not entry.get("optional")
        edges.append(replace(edge, kind=DependencyKind.OPTIONAL) if optional else edge)
    return tuple(edges)
