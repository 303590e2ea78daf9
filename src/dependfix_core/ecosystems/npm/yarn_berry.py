"""yarn.lock of yarn 2 and later as locked copies with their edges.

Keys are lists of descriptors (`name@npm:^1.0.0`), each entry has one
`resolution` (`name@npm:1.0.1`). Workspaces have entries too; which of their
requirements are for development only their manifests say. What a peer
resolves to is not stored: it is what the dependents of the copy provide.

Source: https://yarnpkg.com/features/caching, the lockfiles that yarn writes
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

from dependfix_core.ecosystems.npm.machine_yaml import read_documents
from dependfix_core.ecosystems.npm.parsed import Root, unreadable
from dependfix_core.ecosystems.npm.pnpm_lock import texts
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.ecosystems.npm.selectors import Selector, split_name, yarn_selector
from dependfix_core.ecosystems.npm.specifiers import kind_of, public_text, read_specifier, registry_base
from dependfix_core.ecosystems.npm.yaml_spans import YamlSyntaxError
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

FORMAT: Final = "yarn-berry"
_WORKSPACE: Final = "workspace:"
_PATCH: Final = "patch:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry of the lock."""

    descriptors: tuple[str, ...]
    name: str
    """Of the resolution: the real package."""
    reference: str
    """Of the resolution: `npm:1.0.1`, `workspace:packages/a`, `patch:…`."""
    data: Mapping[str, Any]

    @property
    def where(self) -> str:
        """The first descriptor, which names the copy."""
        return self.descriptors[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class YarnBerryLock:
    """A lockfile that could be read."""

    path: str
    entries: Mapping[str, Entry]
    """By `where`."""
    index: Mapping[str, str]
    """Descriptor → `where`."""
    format_version: str = ""
    """`__metadata.version`."""
    problems: tuple[Problem, ...] = ()
    resolutions: tuple[tuple[Selector, str], ...] = ()
    """The root's, once they are known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    overrides: None = None
    format: str = FORMAT

    @property
    def member_folders(self) -> tuple[str, ...]:
        """Folders of the workspaces but the root."""
        folders = {self._folder(entry) for entry in self.entries.values() if entry.reference.startswith(_WORKSPACE)}
        return tuple(sorted(folders - {""}))

    @property
    def declared(self) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """What the workspaces' entries hold, without knowing the sections."""
        return {
            self._folder(entry): {"dependencies": dict(texts(entry.data.get("dependencies")))}
            for entry in self.entries.values()
            if entry.reference.startswith(_WORKSPACE)
        }

    def with_resolutions(self, resolutions: Mapping[str, str]) -> "YarnBerryLock":
        """The same lock, read with the root's `resolutions` in mind."""
        return replace(self, resolutions=tuple((yarn_selector(key), value) for key, value in resolutions.items()))

    def resolve(self, parent: str, name: str, text: str) -> str | None:
        """The copy that `text` under `name` leads to when `parent` (a package name) asks for it."""
        for selector, value in self.resolutions:
            if selector.package != name or (selector.condition and selector.condition != text.removeprefix("npm:")):
                continue
            if not selector.parents or selector.parents[-1] == parent:
                return self._find(name, value)
        return self._find(name, text)

    def _find(self, name: str, text: str) -> str | None:
        found = self.index.get(f"{name}@{text}")
        return found if found is not None else self.index.get(f"{name}@npm:{text}")

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """The copy whose key holds the requirement's descriptor."""
        text = constraint.requirement
        if constraint.package != constraint.name:
            text = f"npm:{constraint.package}@{text}"
        asking = next((e.name for e in self.entries.values() if self._workspace_folder(e) == folder), "")
        found = self.resolve(asking, constraint.name, text)
        if found is None and constraint.kind in (DependencyKind.PEER, DependencyKind.PEER_OPTIONAL):
            return None
        if found is None and text.startswith(_WORKSPACE):
            return next(
                (
                    entry.where
                    for entry in self.entries.values()
                    if entry.name == constraint.name and entry.reference.startswith(_WORKSPACE)
                ),
                None,
            )
        return found

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by their first descriptor; a workspace is one without edges."""
        folders = frozenset(manifest_folders)
        dev, optional = dev_and_optional(roots, self._neighbours)
        peers = _Peers(self)
        patched = self._patched()
        found = {}
        for where, entry in self.entries.items():
            is_member = self._workspace_folder(entry) in folders
            instance = _instance(self, entry, dev, optional, peers, is_member=is_member)
            found[where] = replace(instance, patched=True) if where in patched else instance
        return found

    def _patched(self) -> frozenset[str]:
        """The copies below patches of the project: `patch:NAME@npm%3A1.0.0#…` is made from another entry."""
        found = set()
        for entry in self.entries.values():
            source = unquote(entry.reference.removeprefix(_PATCH).partition("#")[0])
            base = self._find(*split_name(source)) if entry.reference.startswith(_PATCH) else None
            while base is not None and base not in found:
                found.add(base)
                source = unquote(self.entries[base].reference.removeprefix(_PATCH).partition("#")[0])
                is_patch = self.entries[base].reference.startswith(_PATCH)
                base = self._find(*split_name(source)) if is_patch else None
        return frozenset(found)

    def _folder(self, entry: Entry) -> str:
        folder = posixpath.normpath(entry.reference.removeprefix(_WORKSPACE))
        return "" if folder == "." else folder

    def _workspace_folder(self, entry: Entry) -> str | None:
        return self._folder(entry) if entry.reference.startswith(_WORKSPACE) else None

    def _neighbours(self, where: str) -> Iterator[tuple[str, bool]]:
        entry = self.entries[where]
        meta = entry.data.get("dependenciesMeta")
        for name, text in texts(entry.data.get("dependencies")).items():
            target = self.resolve(entry.name, name, text)
            if target is not None:
                yield target, _is_optional(meta, name)


def read_yarn_berry(path: str, content: bytes) -> YarnBerryLock | Problem:
    """The lock, or why it cannot be read."""
    try:
        documents = read_documents(content)
    except YamlSyntaxError as error:
        return unreadable(path, error.position, str(error)[:200])
    data = documents[0] if len(documents) == 1 else ""
    if not isinstance(data, dict):
        return unreadable(path, "", "not a mapping")
    metadata = texts(data.get("__metadata"))
    if not metadata.get("version", "").isdigit():
        return Problem(
            path=path, position="__metadata", message="no lockfile version", reason="unsupported-lock-format"
        )
    entries: dict[str, Entry] = {}
    index: dict[str, str] = {}
    problems: list[Problem] = []
    for key, about in data.items():
        if key == "__metadata":
            continue
        resolution = about.get("resolution") if isinstance(about, dict) else None
        if not isinstance(resolution, str) or not isinstance(about.get("version"), str):
            problems.append(unreadable(path, key[:200], "an entry without a resolution or a version"))
            continue
        name, reference = split_name(resolution)
        entry = Entry(descriptors=tuple(key.split(", ")), name=name, reference=reference, data=about)
        entries[entry.where] = entry
        for descriptor in entry.descriptors:
            if descriptor in index:
                problems.append(unreadable(path, descriptor[:200], "a descriptor of two entries"))
            index[descriptor] = entry.where
    return YarnBerryLock(
        path=path,
        entries=entries,
        index=index,
        format_version=metadata["version"],
        problems=tuple(problems),
        settings={"cacheKey": metadata.get("cacheKey", "")},
    )


class _Peers:
    """Dependents of every copy, made when a peer is first looked up."""

    def __init__(self, lock: YarnBerryLock) -> None:
        self._lock = lock
        self._dependents: dict[str, list[Entry]] | None = None

    def targets(self, where: str, name: str) -> list[str]:
        """What the dependents of the copy at `where` provide under `name`, each once."""
        found: dict[str, None] = {}
        for dependent in self._of().get(where, []):
            if dependent.name == name:
                found[dependent.where] = None
            text = texts(dependent.data.get("dependencies")).get(name)
            target = self._lock.resolve(dependent.name, name, text) if text is not None else None
            if target is not None:
                found[target] = None
        return list(found)

    def _of(self) -> dict[str, list[Entry]]:
        if self._dependents is None:
            self._dependents = {}
            for entry in self._lock.entries.values():
                for name, text in texts(entry.data.get("dependencies")).items():
                    target = self._lock.resolve(entry.name, name, text)
                    if target is not None:
                        self._dependents.setdefault(target, []).append(entry)
        return self._dependents


def _is_optional(meta: Any, name: str) -> bool:
    return isinstance(meta, dict) and texts(meta.get(name)).get("optional") == "true"


def _instance(
    lock: YarnBerryLock,
    entry: Entry,
    dev: frozenset[str],
    optional: frozenset[str],
    peers: _Peers,
    *,
    is_member: bool,
) -> Instance:
    asked = split_name(entry.where)[0]
    return Instance(
        where=entry.where,
        name=entry.name,
        version=entry.data["version"],
        edges=() if is_member else LazyEdges(_edges, lock, entry, peers),
        source=_source(entry),
        dev=entry.where in dev,
        optional=entry.where in optional,
        aliases=entry.descriptors if asked == entry.name else (asked, *entry.descriptors),
        path=lock.path,
        raw=entry.data,
    )


def _source(entry: Entry) -> Source:
    reference = entry.reference
    if reference.startswith("npm:"):
        _, marker, address = reference.partition("::__archiveUrl=")
        address = unquote(address) if marker else ""
        at = address.find(f"/{entry.name}/-/")
        return Source(base=registry_base(address[:at]) if at > 0 else "", text=public_text(address or reference))
    kind = kind_of(reference)
    return Source(kind=SourceKind.URL if kind is SourceKind.REGISTRY else kind, text=public_text(reference))


def _edges(lock: YarnBerryLock, entry: Entry, peers: _Peers) -> tuple[Edge, ...]:
    meta = entry.data.get("dependenciesMeta")
    edges = [
        Edge(
            name=name,
            requirement=read_specifier(name, text).requirement,
            kind=DependencyKind.OPTIONAL if _is_optional(meta, name) else DependencyKind.PROD,
            target=lock.resolve(entry.name, name, text),
        )
        for name, text in texts(entry.data.get("dependencies")).items()
    ]
    peer_meta = entry.data.get("peerDependenciesMeta")
    for name, text in texts(entry.data.get("peerDependencies")).items():
        kind = DependencyKind.PEER_OPTIONAL if _is_optional(peer_meta, name) else DependencyKind.PEER
        edge = Edge(name=name, requirement=text.removeprefix("npm:"), kind=kind)
        edges += [replace(edge, target=target) for target in peers.targets(entry.where, name)] or [edge]
    return tuple(edges)
