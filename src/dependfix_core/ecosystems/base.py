"""What an ecosystem does for the planner: read its files, and judge changes of what is locked.

Sans-I/O: every question that may need a file or a registry record is a `Step`.

The planner is the same for all ecosystems. It picks targets, climbs to
parents and composes changes; a `Graph` says what a set of changes comes to
under the rules of its package manager: `Legal`, with everything that has to
move along, or `Blocked`, with the requirement that is in the way. Graphs are
values: simulating gives another graph and leaves the first as it was.

The rules that every graph keeps (each is a reason to be blocked):

1. Every dependent whose requirement lands on a changed copy admits the new
   version, with overrides taken into account.
2. Every requirement of a new version is met from its place; what is not met is
   moved along (least safe version that all its dependents admit) or brought in
   (newest safe version that is old enough), else the change is blocked.
3. Peers of the new version are there, and who peers on it admits it (`peer-conflict`).
4. Its runtime floor is implied by the project's own (`runtime-floor`), with no
   declared floor a stricter one than before is a warning.
5. Its platforms are not fewer, unless the copy is optional; platform packages
   pinned to one version move together.
6. The copy came from a registry (`non-registry-source`), 7. is not bundled
   (`bundled`) and not patched (`patched-dependency`).
8. Hashes and tables of the new version can be written from its record; where
   they cannot, the change is legal but `needs_tool`.
9. A new install script is a warning.

What a version's age, safety or deprecation means is the planner's judgement;
graphs ask `Candidates` for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

from dependfix_core.model.files import ChangeSet, Listing
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, LockUnit, Override, ReleaseAgeGate
from dependfix_core.model.plan import Edit, RefusalReason, Remediation, Strategy
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import RecordKey, Unavailable
from dependfix_core.model.steps import Step
from dependfix_core.versions.base import Answer, Version
from dependfix_core.versions.requirement import Requirement


@dataclass(frozen=True, kw_only=True, slots=True)
class SetVersion:
    """The locked copy at `where` goes to `version`."""

    where: str
    version: str
    may_split: bool = False
    """Dependents that do not admit it may get a copy of their own, where the format has room for one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetConstraint:
    """A declared requirement reads `requirement` from now on."""

    constraint: Constraint
    requirement: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SetOverride:
    """A forced version that is already there gets another value."""

    override: Override
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AddOverride:
    """A forced version is added; `override.span` is None, `value` what shall be written."""

    override: Override


Change = SetVersion | SetConstraint | SetOverride | AddOverride


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependent:
    """One requirement that lands on a locked copy, as it counts (after overrides)."""

    where: str | None
    """The copy that asks; None when a manifest does."""
    name: str
    """Name of the package or project that asks."""
    version: str
    """Its version; empty for a manifest."""
    text: str
    """What it asks for, as written; empty when it is not known."""
    requirement: Requirement | None
    """None when it is not known (no record of the dependent) or no range of versions."""
    kind: DependencyKind = DependencyKind.PROD
    constraint: Constraint | None = None
    """The declaration, when a manifest asks."""
    override: Override | None = None
    """What replaced the dependent's own text, when something did."""
    any_version: bool = False
    """A requirement that every version meets (a tag, a path in the repository)."""

    def admits(self, version: Version | str) -> Answer:
        """Whether `version` meets it; unknown when the requirement is."""
        if self.any_version:
            return Answer.YES
        return self.requirement.admits(version) if self.requirement is not None else Answer.UNKNOWN

    def __str__(self) -> str:
        if self.override is not None:
            return f"{self.override.path} {self.override.at} forces `{self.override.value}`"
        if self.constraint is not None:
            declared = self.constraint
            return f"{declared.declared_in or declared.path} {declared.at} asks `{self.text}`"
        return f"{self.name} {self.version} asks `{self.text}`" if self.text else f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """What became of one locked copy. Without `from_version` it came in, without `to_version` it went."""

    where: str
    """Its place before; the new place of one that came in."""
    package: str
    from_version: str | None
    to_version: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Legal:
    """The changes lead to a lock that the package manager could have made."""

    graph: "Graph"
    """The state after them."""
    moved: tuple[Moved, ...]
    """All copies that are not as before, those that were asked for among them."""
    edits: tuple[Edit, ...] = ()
    """Texts of manifests that change."""
    needs_tool: bool = False
    """Something (a hash, the record of a package on the way) is not known here; the package manager completes it."""
    is_partial: bool = False
    """Not all that follows from the changes could be worked out, so that `graph` and `moved` are not complete."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocked:
    """The changes cannot be made; the first obstacle that was met."""

    reason: RefusalReason
    detail: str = ""
    """One line for a person; empty when `dependent` says it all."""
    dependent: Dependent | None = None
    """The requirement that is in the way, where it is one."""
    where: str = ""
    """The copy on which it lands."""

    def __str__(self) -> str:
        return self.detail or (str(self.dependent) if self.dependent is not None else "")


Verdict = Legal | Blocked


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCandidate:
    """No version fits."""

    reason: RefusalReason
    detail: str = ""


class Candidates(Protocol):
    """The planner's judgement of versions, for copies that have to move along or come in."""

    @property
    def policy(self) -> ScanPolicy:
        """What the caller allows."""

    def is_safe(self, package: str, version: str) -> bool:
        """Outside every range of every open alert, and not in a gap. Unknown versions are not safe."""

    def is_no_worse(self, package: str, version: str, than: str) -> bool:
        """Whether `version` is in no advisory that `than` is not in as well."""

    def crosses_line(self, left: str, right: str) -> bool:
        """Whether a move from `left` to `right` is a breaking one; not known counts as such."""

    def least(
        self, package: str, current: str, admits: Callable[[str], bool], named: Sequence[str] = ()
    ) -> Step[str | NoCandidate]:
        """The least safe version above `current` that `admits`, its own line first.

        Where there is none, the least one that is no worse than `current`.
        `named` are versions that the requirement itself spells out (an exact
        pin): one of them serves where the registry cannot be asked.
        """

    def newest(
        self, package: str, admits: Callable[[str], bool], named: Sequence[str] = (), replaces: str = ""
    ) -> Step[str | NoCandidate]:
        """The newest safe, stable version that is old enough and that `admits`: what a new install would take.

        Where there is none, the newest one that is no worse than `replaces`, the version that goes for it.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class NoOverride:
    """Why a version cannot be forced here."""

    reason: RefusalReason
    detail: str = ""


@runtime_checkable
class Graph(Protocol):
    """One unit's resolution. Immutable; cheap to derive."""

    @property
    def unit(self) -> LockUnit:
        """The unit as it was read."""

    @property
    def direct_strategy(self) -> Strategy:
        """What raising a declared requirement is called here: `manifest-bump`, `pin-bump`."""

    def record_key(self, package: str, version: str = "") -> RecordKey:
        """The key for the package's record, with the registry that the unit takes it from."""

    def gate_exclusion(self, gate: ReleaseAgeGate, package: str, version: str) -> Edit | None:
        """The edit that excludes exactly this version from the unit's own release-age gate; None where it cannot."""

    def instances(self, package: str) -> tuple[Instance, ...]:
        """The copies of `package` (canonical name) in this state, in file order."""

    def instance(self, where: str) -> Instance | None:
        """The copy at `where` in this state."""

    def dependents(self, where: str) -> Step[tuple[Dependent, ...]]:
        """All requirements that land on the copy, those of manifests first."""

    def asks(self, where: str, version: str, package: str) -> Step[Requirement | Unavailable | None]:
        """What the copy at `where` would ask of `package` at another `version` of itself.

        None when it would not ask for it; Unavailable when that is not known.
        """

    def raised(self, constraint: Constraint, version: str) -> str | None:
        """The declared text that asks for `version` at least, in its own style; None when it cannot."""

    def overrides(self, where: str, version: str) -> Step[tuple[tuple[AddOverride, ...], ...] | NoOverride]:
        """Ways to force the copy at `where` to `version` or newer on its line, the narrowest first.

        Each way is one or several entries that belong together.
        """

    def override_value(self, override: Override, version: str) -> str | None:
        """The value of an entry that is there, in its own style, that forces `version` or newer; None when it cannot."""

    def simulate(self, changes: Sequence[Change], candidates: Candidates) -> Step[Verdict]:
        """What `changes`, all together, come to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteRefusal:
    """A set of remediations that cannot be written in-process, and why."""

    reason: RefusalReason
    """`tool-required` and `integrity-unavailable` when the package manager can do it instead."""
    detail: str
    remediation: int | None = None
    """Index of the one that is in the way, when it is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that is not as the package manager wants it, in a unit as it lies there."""

    check: str
    """`V4` unmet or refused requirement, `V5` manifest and lock disagree, `V6` wrong or
    foreign hash or address, `V7` wrong flag, group or marker."""
    where: str
    """Instance, constraint or file; the same spelling before and after a fix."""
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One run of a package manager in the scratch copy."""

    argv: tuple[str, ...]
    """The tool's name first (`npm`, `pnpm`, `uv`, …); lock-only, scripts off."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What is written before this run: a temporary override, or the manifest without it again."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of this run alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRelock:
    """How the package manager itself brings a unit to the plan's end state."""

    tool: str
    version: str
    """As the project names it: `9.15.9`, `9`, or empty when it names none."""
    files: Mapping[str, bytes]
    """The scratch copy: everything that the tool has to see, edits made, code-bearing files left out."""
    results: tuple[str, ...]
    """Files that it may change; a change of any other one is a failure."""
    calls: tuple[ToolCall, ...]
    edited: tuple[str, ...] = ()
    """Files of the scratch copy that hold the plan's edits and belong to the result."""
    restored: Mapping[str, bytes] = field(default_factory=dict)
    """What the result holds of an edited file that was laid differently for the tool's sake."""
    registries: Mapping[str, str] = field(default_factory=dict)
    """What the unit uses: `""` for the default, `@scope` or index name otherwise, as the project's files spell it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the project that change what the tool writes (`omit-lockfile-registry-resolved`, …)."""
    folder: str = "."
    """Where the tool runs, relative to the top level."""
    by_hand: str = ""
    """The command for a person, where the tool is missing or forbidden."""
    warnings: tuple[str, ...] = ()
    """What was neutralised, and what this version of the tool does not do."""


class PlannableEcosystem(Protocol):
    """What the planner needs of a folder of `ecosystems/`: reader and graph."""

    @property
    def ids(self) -> tuple[str, ...]:
        """GitHub's names of the ecosystems that it serves."""

    def recognises(self, path: str) -> bool:
        """Whether a path is, by its name, a manifest or lockfile that `read_units` reads."""

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        """The units that the paths belong to, each once, sorted by name.

        A path that is no file of the listing belongs to none. A file that cannot
        be read gives a unit with `problems`.
        """

    def graph(self, unit: LockUnit) -> Graph:
        """The resolution of `unit`."""


class Ecosystem(PlannableEcosystem, Protocol):
    """One folder of `ecosystems/`: reader, graph, writer, inspection, and the tool as second way."""

    def write(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
        """The files of `unit` after all `remediations` together, style and everything else kept.

        Asks for the files and records that it needs. Pure: the same input gives the same bytes.
        """

    def inspect(self, unit: LockUnit) -> Step[tuple[Finding, ...]]:
        """All findings of `unit` as it lies there, by its own rules and never by what a plan says.

        A fix may not add one. What cannot be judged for want of a record is no finding.
        """

    def relock(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
        """How the package manager would write `remediations`; a refusal when it has no safe way."""


E_co = TypeVar("E_co", bound=PlannableEcosystem, covariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ecosystems(Generic[E_co]):
    """The ecosystems that a caller hands in, by GitHub's names."""

    members: tuple[E_co, ...]
    _by_id: dict[str, E_co] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for member in self.members:
            for name in member.ids:
                self._by_id[name] = member

    def serving(self, ecosystem: str) -> E_co | None:
        """The one that serves GitHub's `ecosystem`."""
        return self._by_id.get(ecosystem.lower())
