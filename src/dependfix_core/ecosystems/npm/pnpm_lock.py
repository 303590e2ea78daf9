"""pnpm-lock.yaml, versions 6.0 and 9.0, as locked copies with their edges.

pnpm since version 11 may write two documents into the file: what it needs to
start itself, and the project's lock, which is the last one.

Source: https://github.com/pnpm/spec/tree/master/lockfile
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.ecosystems.npm.machine_yaml import read_documents
from dependfix_core.ecosystems.npm.parsed import Root, unreadable
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.ecosystems.npm.selectors import split_name
from dependfix_core.ecosystems.npm.specifiers import kind_of, public_text, registry_base
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

FORMAT: Final = "pnpm-lock"
VERSIONS: Final = ("6.0", "6.1", "9.0")
IMPORTER_SECTIONS: Final[Mapping[str, DependencyKind]] = {
    "dependencies": DependencyKind.PROD,
    "devDependencies": DependencyKind.DEV,
    "optionalDependencies": DependencyKind.OPTIONAL,
}
_GROUP: Final = re.compile(r"\(([^()]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class PnpmLock:
    """A lockfile that could be read."""

    path: str
    version: str
    data: Mapping[str, Any]
    """The project's document."""
    importers: Mapping[str, Mapping[str, Any]]
    """By folder, the root as empty text."""
    packages: Mapping[str, Mapping[str, Any]]
    """What the registry says of a version, by `name@version` (6.0: by the copy's whole key)."""
    snapshots: Mapping[str, Mapping[str, Any]]
    """Copies with what they resolve to, by key without a leading slash."""
    bare_keys: frozenset[str] = frozenset()
    """6.0: keys that have no leading slash in the file; they do not come from the default registry."""
    problems: tuple[Problem, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: str = FORMAT

    @property
    def format_version(self) -> str:
        """`6.0`, `6.1` or `9.0`."""
        return self.version

    @property
    def member_folders(self) -> tuple[str, ...]:
        """Folders of the importers but the root."""
        return tuple(sorted(folder for folder in self.importers if folder))

    @property
    def declared(self) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """Specifiers as the importers hold them."""
        return {
            folder: {
                section: {
                    name: about["specifier"] for name, about in _members(importer, section) if "specifier" in about
                }
                for section in IMPORTER_SECTIONS
            }
            for folder, importer in self.importers.items()
        }

    @property
    def overrides(self) -> Mapping[str, str]:
        """The lock's copy of the configuration."""
        return texts(self.data.get("overrides"))

    def key_of(self, name: str, reference: str) -> str | None:
        """Key of the copy that `reference` under `name` means; `None` for a link or when there is none."""
        key = f"{name}@{reference}"
        if key in self.snapshots:
            return key
        bare = reference.removeprefix("/") if self.version != "9.0" else reference
        return bare if bare in self.snapshots else None

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """Key of the copy that a manifest's requirement leads to."""
        importer = self.importers.get(folder, {})
        for section in (constraint.group, *IMPORTER_SECTIONS):
            about = importer.get(section)
            found = about.get(constraint.name) if isinstance(about, dict) else None
            if isinstance(found, dict) and isinstance(found.get("version"), str):
                return self.key_of(constraint.name, found["version"])
        return None

    def about(self, key: str) -> Mapping[str, Any]:
        """What the registry says of the version of a copy."""
        return self.packages.get(base_of(key) if self.version == "9.0" else key, {})

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by key; what is dev follows from the importers."""
        del roots, manifest_folders
        dev: frozenset[str] = frozenset()
        if self.version == "9.0":
            dev, _ = dev_and_optional(self._roots(), self._neighbours)
        return {key: _instance(self, key, snapshot, dev) for key, snapshot in self.snapshots.items()}

    def _roots(self) -> Iterator[Root]:
        for importer in self.importers.values():
            for section, kind in IMPORTER_SECTIONS.items():
                for name, about in _members(importer, section):
                    key = self.key_of(name, about.get("version", ""))
                    if key is not None:
                        yield Root(where=key, kind=kind)

    def _neighbours(self, key: str) -> Iterator[tuple[str, bool]]:
        snapshot = self.snapshots[key]
        for section in ("dependencies", "optionalDependencies"):
            for name, reference in texts(snapshot.get(section)).items():
                target = self.key_of(name, reference)
                if target is not None:
                    yield target, section == "optionalDependencies"


def base_of(key: str) -> str:
    """A key without its peers and patch: `name@version`."""
    return key.partition("(")[0]


def suffix_groups(key: str) -> list[str]:
    """Everything that stands directly behind an opening bracket of a key: peers, `patch_hash=…`, a hash."""
    return _GROUP.findall(key)


def texts(value: Any) -> Mapping[str, str]:
    """The text members of a mapping; of anything else none."""
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def read_pnpm_lock(path: str, content: bytes) -> PnpmLock | Problem:
    """The lock, or why it cannot be read."""
    try:
        documents = read_documents(content)
    except YamlSyntaxError as error:
        return unreadable(path, error.position, str(error)[:200])
    data = documents[-1] if documents else ""
    if not isinstance(data, dict):
        return unreadable(path, "", "not a mapping")
    version = data.get("lockfileVersion")
    if version not in VERSIONS:
        message = f"lockfileVersion {str(version)[:20]} is not read"
        return Problem(path=path, position="lockfileVersion", message=message, reason="unsupported-lock-format")
    problems: list[Problem] = []
    packages = dict(_objects(path, data, "packages", problems))
    bare_keys: frozenset[str] = frozenset()
    if version == "9.0":
        snapshots = dict(_objects(path, data, "snapshots", problems))
    else:
        bare_keys = frozenset(key for key in packages if not key.startswith("/"))
        packages = {key.removeprefix("/"): entry for key, entry in packages.items()}
        snapshots = packages
    importers = dict(_objects(path, data, "importers", problems))
    if "importers" not in data:
        importers = {".": {section: data.get(section, {}) for section in IMPORTER_SECTIONS}}
    return PnpmLock(
        path=path,
        version=str(version),
        data=data,
        importers={"" if folder == "." else folder: about for folder, about in importers.items()},
        packages=packages,
        snapshots=snapshots,
        bare_keys=bare_keys,
        problems=tuple(problems),
        settings={
            "lockSettings": texts(data.get("settings")),
            "documents": len(documents),
            "patchedDependencies": tuple(data["patchedDependencies"])
            if isinstance(data.get("patchedDependencies"), dict)
            else (),
            "checksums": tuple(key for key in ("pnpmfileChecksum", "packageExtensionsChecksum") if data.get(key)),
            "ignoredOptional": tuple(data["ignoredOptionalDependencies"])
            if isinstance(data.get("ignoredOptionalDependencies"), list)
            else (),
        },
    )


def _objects(
    path: str, data: Mapping[str, Any], section: str, problems: list[Problem]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = data.get(section)
    if found in (None, ""):
        return
    if not isinstance(found, dict):
        problems.append(unreadable(path, section, "not a mapping"))
        return
    for key, entry in found.items():
        if isinstance(entry, dict):
            yield key, entry
        elif entry == "":
            yield key, {}
        else:
            problems.append(unreadable(path, f"{section}.{key}", "an entry that is no mapping"))


def _members(importer: Mapping[str, Any], section: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    found = importer.get(section)
    for name, about in found.items() if isinstance(found, dict) else ():
        if isinstance(about, dict):
            yield name, texts(about)


def _instance(lock: PnpmLock, key: str, snapshot: Mapping[str, Any], dev: frozenset[str]) -> Instance:
    about = lock.about(key)
    name, reference = split_name(base_of(key))
    is_nine = lock.version == "9.0"
    stated = about.get("version")
    if not is_nine and isinstance(about.get("name"), str):
        name = about["name"]
    return Instance(
        where=key,
        name=name,
        version=stated if isinstance(stated, str) and stated else reference,
        edges=LazyEdges(_edges, lock, key),
        source=_source(name, reference, about, patched="(patch_hash=" in key),
        dev=key in dev if is_nine else snapshot.get("dev") == "true",
        optional=snapshot.get("optional") == "true",
        path=lock.path,
        raw=snapshot,
    )


def _source(name: str, reference: str, about: Mapping[str, Any], *, patched: bool) -> Source:
    resolution = about.get("resolution")
    resolution = texts(resolution)
    tarball = resolution.get("tarball", "")
    if patched:
        return Source(kind=SourceKind.PATCH, text=reference)
    if "directory" in resolution:
        return Source(kind=SourceKind.FILE, text=resolution["directory"])
    if resolution.get("type") == "git" or "commit" in resolution:
        return Source(kind=SourceKind.GIT, text=public_text(resolution.get("repo", "")))
    if reference[:1].isdigit() and ":" not in reference and "/" not in reference:
        at = tarball.find(f"/{name}/-/")
        return Source(base=registry_base(tarball[:at]) if at > 0 else "", text=public_text(tarball))
    location = tarball or reference
    kind = SourceKind.GIT if "codeload" in location else kind_of(location)
    return Source(kind=SourceKind.URL if kind is SourceKind.REGISTRY else kind, text=public_text(location))


def _edges(lock: PnpmLock, key: str) -> tuple[Edge, ...]:
    snapshot, about = lock.snapshots[key], lock.about(key)
    peers = texts(about.get("peerDependencies"))
    meta = about.get("peerDependenciesMeta")
    optional_peers = {
        name
        for name, entry in (meta.items() if isinstance(meta, dict) else ())
        if texts(entry).get("optional") == "true"
    }
    edges: list[Edge] = []
    met: set[str] = set()
    for section, kind in (("dependencies", DependencyKind.PROD), ("optionalDependencies", DependencyKind.OPTIONAL)):
        for name, reference in texts(snapshot.get(section)).items():
            target = lock.key_of(name, reference)
            if name in peers and name not in met:
                met.add(name)
                peer_kind = DependencyKind.PEER_OPTIONAL if name in optional_peers else DependencyKind.PEER
                edges.append(Edge(name=name, requirement=peers[name], kind=peer_kind, target=target))
            else:
                edges.append(Edge(name=name, requirement=None, kind=kind, target=target))
    for name, requirement in peers.items():
        if name not in met:
            kind = DependencyKind.PEER_OPTIONAL if name in optional_peers else DependencyKind.PEER
            edges.append(Edge(name=name, requirement=requirement, kind=kind))
    return tuple(edges)
