"""bun.lock, versions 0 to 2, as locked copies with their edges.

JSON with trailing commas. `packages` maps a place (`name`, `parent/name`) to
a tuple: resolution, registry, requirements, integrity; of what does not come
from a registry the tuple is shorter. Names are looked up like node does it,
along the place.

Source: https://bun.sh/docs/install/lockfile
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import BOM, JsonSyntaxError, line_and_column, scan_json
from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.parsed import Root, unreadable
from dependfix_core.ecosystems.npm.pnpm_lock import texts
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.ecosystems.npm.selectors import split_name
from dependfix_core.ecosystems.npm.specifiers import kind_of, public_text, read_specifier, registry_base
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

FORMAT: Final = "bun-lock"
VERSIONS: Final = (0, 1, 2)
_TRAILING_COMMA: Final = re.compile(rb"(\"(?:[^\"\\]|\\.)*\")|,(?=\s*[}\]])", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """One tuple of `packages`."""

    where: str
    name: str
    reference: str
    """Behind the name: a version, `workspace:…`, `git+…`, …"""
    info: Mapping[str, Any]
    values: tuple[Any, ...]
    """The tuple as it stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BunLock:
    """A lockfile that could be read."""

    path: str
    version: int
    packages: Mapping[str, Package]
    """By place."""
    workspaces: Mapping[str, Mapping[str, Any]]
    """By folder, the root as empty text."""
    overrides: Mapping[str, str]
    problems: tuple[Problem, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: str = FORMAT

    @property
    def format_version(self) -> str:
        """`0`, `1` or `2`."""
        return str(self.version)

    @property
    def member_folders(self) -> tuple[str, ...]:
        """Folders of the workspaces but the root."""
        return tuple(sorted(folder for folder in self.workspaces if folder))

    @property
    def declared(self) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """What the workspaces' entries hold."""
        return {
            folder: {section: texts(about.get(section)) for section in SECTIONS}
            for folder, about in self.workspaces.items()
        }

    def resolve(self, place: str, name: str) -> str | None:
        """The place that `name` leads to when the package at `place` asks for it."""
        here = place
        while True:
            candidate = f"{here}/{name}" if here else name
            if candidate in self.packages:
                return candidate
            if not here:
                return None
            here = place_above(here)

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """Place of the copy that a manifest's requirement leads to."""
        asking = self.workspaces.get(folder, {}).get("name") if folder else ""
        return self.resolve(asking if isinstance(asking, str) else "", constraint.name)

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by place; a workspace is one without edges."""
        folders = frozenset(manifest_folders)
        dev, optional = dev_and_optional(roots, self._neighbours)
        return {where: _instance(self, package, dev, optional, folders) for where, package in self.packages.items()}

    def _neighbours(self, where: str) -> Iterator[tuple[str, bool]]:
        info = self.packages[where].info
        for section in ("dependencies", "optionalDependencies", "peerDependencies"):
            for name in texts(info.get(section)):
                target = self.resolve(where, name)
                if target is not None:
                    yield target, section == "optionalDependencies"


def place_above(place: str) -> str:
    """The place without its last name."""
    above, _, last = place.rpartition("/")
    scope = above.rpartition("/")[2]
    if scope.startswith("@") and last:
        return above.rpartition("/")[0]
    return above


def read_bun_lock(path: str, content: bytes) -> BunLock | Problem:
    """The lock, or why it cannot be read."""
    data = _load(path, content)
    if isinstance(data, Problem):
        return data
    version = data.get("lockfileVersion")
    if version not in VERSIONS or isinstance(version, bool):
        message = f"lockfileVersion {str(version)[:20]} is not read"
        return Problem(path=path, position="lockfileVersion", message=message, reason="unsupported-lock-format")
    packages: dict[str, Package] = {}
    problems: list[Problem] = []
    found = data.get("packages", {})
    for where, values in found.items() if isinstance(found, dict) else ():
        if not isinstance(values, list) or not values or not isinstance(values[0], str):
            problems.append(unreadable(path, f"packages.{where}", "not a tuple that begins with a resolution"))
            continue
        name, reference = split_name(values[0])
        info = next((value for value in values[1:] if isinstance(value, dict)), {})
        packages[where] = Package(where=where, name=name, reference=reference, info=info, values=tuple(values))
    workspaces = data.get("workspaces")
    return BunLock(
        path=path,
        version=int(version),
        packages=packages,
        workspaces={
            folder: about
            for folder, about in (workspaces.items() if isinstance(workspaces, dict) else ())
            if isinstance(about, dict)
        },
        overrides=texts(data.get("overrides")),
        problems=tuple(problems),
        settings={"patchedDependencies": tuple(texts(data.get("patchedDependencies")))},
    )


def _load(path: str, content: bytes) -> dict[str, Any] | Problem:
    """The values, by way of `json` where no comment stands in the way."""
    plain = _TRAILING_COMMA.sub(lambda match: match[1] or b"", content.removeprefix(BOM))
    try:
        data = json.loads(plain, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        try:
            document = scan_json(content, comments=True)
        except JsonSyntaxError as error:
            return unreadable(path, line_and_column(content, error.offset), str(error))
        if document.duplicates:
            keys, offset = document.duplicates[0]
            return unreadable(path, line_and_column(content, offset), f"the key {keys[-1]!s:.80} is written twice")
        data = document.root.value
    return data if isinstance(data, dict) else unreadable(path, "1:1", "not an object")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is written twice")
    return members


def _instance(
    lock: BunLock, package: Package, dev: frozenset[str], optional: frozenset[str], folders: frozenset[str]
) -> Instance:
    asked = package.where[len(place_above(package.where)) :].lstrip("/")
    source = _source(package)
    is_member = source.kind is SourceKind.WORKSPACE and package.reference.partition(":")[2] in folders
    return Instance(
        where=package.where,
        name=package.name,
        version=package.reference if source.kind is SourceKind.REGISTRY else _member_version(lock, package),
        edges=() if is_member else LazyEdges(_edges, lock, package),
        source=source,
        dev=package.where in dev,
        optional=package.where in optional,
        bundled=package.info.get("bundled") is True,
        aliases=(asked,) if asked != package.name else (),
        path=lock.path,
        raw=package.info,
    )


def _member_version(lock: BunLock, package: Package) -> str:
    version = lock.workspaces.get(package.reference.partition(":")[2], {}).get("version")
    return version if isinstance(version, str) else ""


def _source(package: Package) -> Source:
    kind = kind_of(package.reference)
    if kind is not SourceKind.REGISTRY:
        return Source(kind=kind, text=public_text(package.reference))
    address = package.values[1] if len(package.values) > 1 and isinstance(package.values[1], str) else ""
    at = address.find(f"/{package.name}/-/")
    base = registry_base(address[:at] if at > 0 else address if not address.endswith(".tgz") else "")
    return Source(base=base, text=public_text(address))


def _edges(lock: BunLock, package: Package) -> tuple[Edge, ...]:
    optional_peers = package.info.get("optionalPeers")
    edges = []
    for section, kind in (
        ("dependencies", DependencyKind.PROD),
        ("optionalDependencies", DependencyKind.OPTIONAL),
        ("peerDependencies", DependencyKind.PEER),
    ):
        for name, text in texts(package.info.get(section)).items():
            is_optional = kind is DependencyKind.PEER and isinstance(optional_peers, list) and name in optional_peers
            edges.append(
                Edge(
                    name=name,
                    requirement=read_specifier(name, text).requirement,
                    kind=DependencyKind.PEER_OPTIONAL if is_optional else kind,
                    target=lock.resolve(package.where, name),
                )
            )
    return tuple(edges)
