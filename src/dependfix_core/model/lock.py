"""What the files of one resolution scope say, before anything is decided.

Readers turn bytes into these values; the planner judges them; writers turn
decisions back into bytes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar, dataclass_transform, overload


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Byte offsets of a text in its file, end exclusive."""

    start: int
    end: int


class DependencyKind(StrEnum):
    """How a requirement is meant."""

    PROD = "prod"
    DEV = "dev"
    OPTIONAL = "optional"
    PEER = "peer"
    PEER_OPTIONAL = "peer-optional"
    BUILD = "build"
    CONSTRAINT = "constraint"


class SourceKind(StrEnum):
    """Where an installed copy comes from. Only `REGISTRY` can be moved."""

    REGISTRY = "registry"
    GIT = "git"
    URL = "url"
    FILE = "file"
    LINK = "link"
    WORKSPACE = "workspace"
    PATCH = "patch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Origin of a copy; `base` is the registry's base address as the lockfile spells it."""

    kind: SourceKind = SourceKind.REGISTRY
    base: str = ""
    text: str = ""
    """As written (`resolved`, `source`, …); may be empty where `base` says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constraint:
    """A declared requirement of a manifest, with the place of its text."""

    path: str
    """Manifest, relative to the top level."""
    at: str
    """Key path for people and edits: `dependencies.semver`, `tool.poetry.dependencies.requests`, `line 12`."""
    name: str
    """Name as declared (an alias keeps the alias)."""
    package: str
    """Real package name, canonical."""
    requirement: str
    """Requirement text as written, without name, extras and marker; empty when there is none.
    For an npm alias (`npm:real@^1.2`) this is the part after the real name, and so is `span`."""
    span: Span | None
    """Of the requirement text; `None` when it is computed (dynamic) or not there."""
    kind: DependencyKind = DependencyKind.PROD
    group: str = ""
    """Extra, dependency group or section name."""
    marker: str = ""
    extras: tuple[str, ...] = ()
    source: Source = Source()
    target: str | None = None
    """`where` of the locked copy that it resolves to, when there is a lock."""
    via: str = ""
    """What the manifest says when it only points to the text: `catalog:`, `catalog:NAME`, …
    Then `path`, `at`, `requirement` and `span` are those of the text it points to."""
    declared_in: str = ""
    """The manifest that declares it, when that is not `path`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A requirement of a locked copy on another one."""

    name: str
    """Name as asked for (an alias keeps the alias)."""
    requirement: str | None
    """Requirement text, of an npm alias the part after the real name; `None` when the
    lockfile does not store it (ask the parent's record)."""
    kind: DependencyKind = DependencyKind.PROD
    target: str | None = None
    """`where` of the copy it resolves to; `None` when it is not met."""
    marker: str = ""
    extras: tuple[str, ...] = ()


class LazyEdges(Sequence[Edge]):
    """Edges of one copy that are computed when somebody first looks; equal to the tuple of them."""

    __slots__ = ("_arguments", "_edges", "_make")

    def __init__(self, make: Callable[..., tuple[Edge, ...]], *arguments: object) -> None:
        self._make: Callable[..., tuple[Edge, ...]] | None = make
        self._arguments = arguments
        self._edges: tuple[Edge, ...] = ()

    def made(self) -> tuple[Edge, ...]:
        """The edges as a tuple."""
        if self._make is not None:
            self._edges = self._make(*self._arguments)
            self._make, self._arguments = None, ()
        return self._edges

    @overload
    def __getitem__(self, index: int) -> Edge: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Edge, ...]: ...
    def __getitem__(self, index: int | slice) -> Edge | tuple[Edge, ...]:
        return self.made()[index]

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.made())

    def __len__(self) -> int:
        return len(self.made())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyEdges):
            return self.made() == other.made()
        return self.made() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.made())

    def __repr__(self) -> str:
        return repr(self.made())

    def __reduce__(self) -> tuple[Any, ...]:
        return (tuple, (self.made(),))


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def _frozen_for_the_type_checker(cls: type[T]) -> type[T]:
    """A dataclass that nobody may assign to, which only the type checker enforces.

    Enforcing it at run time triples what making one costs, and that is most
    of what reading a large lockfile costs.
    """
    return dataclass(kw_only=True, slots=True)(cls)


@_frozen_for_the_type_checker
class Instance:
    """One locked copy. Immutable by type only."""

    where: str
    """Its place, spelled as in reports: npm tree path, pnpm snapshot key, yarn's first
    descriptor, `name==version`, `package[name version]`, `section.name`. Unique in the unit."""
    name: str
    """Real package name, canonical (an npm alias is resolved)."""
    version: str
    edges: Sequence[Edge] = ()
    """Readers of large locks give `LazyEdges` here."""
    source: Source = Source()
    dev: bool = False
    optional: bool = False
    peer: bool = False
    bundled: bool = False
    """Lies inside a parent's tarball."""
    patched: bool = False
    """A patch of the project is applied to it, so that another version would need another patch."""
    groups: tuple[str, ...] = ()
    markers: str = ""
    """Environment marker of this entry or fork."""
    aliases: tuple[str, ...] = ()
    """yarn: all descriptors; npm: the name in the tree when it is an alias."""
    path: str = ""
    """File that holds it (layered requirements have several)."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The parsed entry under the format's own keys, for the writer of the same format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """A forced version that is already there.

    npm `overrides`, pnpm overrides, yarn `resolutions`, uv
    `constraint-dependencies` and `override-dependencies`, lines of `-c` files.
    """

    path: str
    at: str
    selector: str
    """As written: `pkg`, `pkg@range`, `parent>pkg`, `parent/pkg`, …"""
    package: str
    """Canonical name of what is forced."""
    value: str
    """As written."""
    span: Span | None
    """Of the value."""
    kind: str
    """overrides, resolutions, constraint, override"""
    parents: tuple[str, ...] = ()
    """Names of parents that narrow it, outermost first."""
    condition: str = ""
    """Version range of the selector on the package itself, when it has one."""
    via: str = ""
    """What the entry says when it only points to the value: `catalog:`, `catalog:NAME`.
    Then `path`, `at`, `value` and `span` are those of the text it points to."""
    stands_at: tuple[str, str] | None = None
    """Path and key path of the entry itself, when those are not `path` and `at`."""

    @property
    def place(self) -> tuple[str, str]:
        """Path and key path of the entry itself."""
        return self.stands_at or (self.path, self.at)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseAgeGate:
    """The project's own rule that young releases are not taken."""

    path: str
    at: str
    minimum_age_minutes: int | None = None
    by_level: Mapping[str, int] = field(default_factory=dict)
    """Minutes for a `major`, `minor` or `patch` step, in place of `minimum_age_minutes`."""
    exclude_newer: str = ""
    """ISO time; releases after it are not taken (uv `exclude-newer`, npm `before`)."""
    excluded: tuple[str, ...] = ()
    """Package patterns that the gate does not hold back, as written."""
    applies_to: tuple[str, ...] = ()
    """Package patterns that it holds for; empty means all."""
    strict: bool = True
    kind: str = ""
    """minimumReleaseAge, min-release-age, npmMinimalAgeGate, exclude-newer, cooldown, trustPolicy"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A file, or a part of one, that cannot be read."""

    path: str
    position: str
    """`line:column`, a key path, or empty."""
    message: str
    reason: str = ""
    """A refusal reason for the alerts of this file, when one fits (`unsupported-lock-format`, …)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockUnit:
    """One resolution scope: a lockfile with all manifests it covers, or a lone manifest.

    `unit` names it: the lockfile's path, or the manifest's when there is no lock.
    """

    unit: str
    ecosystem: str
    format: str
    """`npm-lock`, `pnpm-lock`, `yarn-classic`, `yarn-berry`, `bun-lock`, `requirements`,
    `poetry-lock`, `uv-lock`, `pipfile-lock`, `pdm-lock`, `pylock`, `manifest`, …"""
    format_version: str = ""
    manifests: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Every file that belongs to the scope and was read, sorted; the plan's base covers them."""
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """`where` → instance, in file order."""
    constraints: tuple[Constraint, ...] = ()
    overrides: tuple[Override, ...] = ()
    gates: tuple[ReleaseAgeGate, ...] = ()
    runtime: Mapping[str, str] = field(default_factory=dict)
    """Declared floors: `node` (engines), `python` (requires-python), …"""
    tool: str = ""
    """Package manager that owns the lock: npm, pnpm, yarn, bun, uv, poetry, pipenv, pdm, pip-tools, pip."""
    tool_version: str = ""
    """As the project names it (`packageManager`, lock header, …)."""
    registries: Mapping[str, str] = field(default_factory=dict)
    """Base addresses from the project's own files: `""` for the default, `@scope` or index name otherwise."""
    problems: tuple[Problem, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only this format's code reads (workspace members, catalogs, patched packages,
    flags such as `lockfileIncludeTarballUrl`, resolution markers, code-bearing config, …)."""
