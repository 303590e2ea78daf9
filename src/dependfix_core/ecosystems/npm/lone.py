"""A package.json without a lock: the floor of what is declared is what counts as installed."""

from collections.abc import Sequence
from dataclasses import replace

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Candidates,
    Change,
    Dependent,
    Legal,
    Moved,
    NoOverride,
    SetConstraint,
    SetVersion,
    Verdict,
)
from dependfix_core.ecosystems.npm.asks import GRAMMAR
from dependfix_core.model.lock import Constraint, Instance, LockUnit, Override, ReleaseAgeGate, SourceKind
from dependfix_core.model.plan import Edit, Strategy
from dependfix_core.model.records import RecordKey, Unavailability, Unavailable
from dependfix_core.model.steps import Step
from dependfix_core.versions import Requirement, Unparsable, parse_requirement
from dependfix_core.versions.rewrite import Raised, raise_requirement


class LoneGraph:
    """See `Graph`. One copy for each declaration, at the least version that it names; no others are known."""

    def __init__(self, unit: LockUnit, copies: dict[str, Instance] | None = None) -> None:
        self._unit = unit
        self._declared = {
            one.at: one for one in unit.constraints if (one.path == unit.unit or one.via) and one.kind.value != "peer"
        }
        self._copies = copies if copies is not None else _floors(self._declared)

    @property
    def unit(self) -> LockUnit:
        """The unit as it was read."""
        return self._unit

    @property
    def direct_strategy(self) -> Strategy:
        """What raising a declared requirement is called here."""
        return "manifest-bump"

    def record_key(self, package: str, version: str = "") -> RecordKey:
        """See `Graph.record_key`."""
        scope = package.partition("/")[0] if package.startswith("@") else ""
        registries = self._unit.registries
        registry = registries.get(scope, registries.get("", ""))
        return RecordKey(ecosystem=self._unit.ecosystem, name=package, version=version, registry=registry)

    def gate_exclusion(self, gate: ReleaseAgeGate, package: str, version: str) -> Edit | None:
        """Nothing is resolved here, so no gate is in the way of anything."""
        del gate, package, version
        return None

    def instances(self, package: str) -> tuple[Instance, ...]:
        """See `Graph.instances`."""
        return tuple(one for one in self._copies.values() if one.name == package)

    def instance(self, where: str) -> Instance | None:
        """See `Graph.instance`."""
        return self._copies.get(where)

    def dependents(self, where: str) -> Step[tuple[Dependent, ...]]:
        """The declaration itself, which asks for exactly its floor."""
        yield from ()
        copy, declared = self._copies[where], self._declared[where]
        exact = parse_requirement(GRAMMAR, copy.version)
        return (
            Dependent(
                where=None,
                name=declared.path,
                version="",
                text=declared.requirement,
                requirement=exact if isinstance(exact, Requirement) else None,
                kind=declared.kind,
                constraint=declared,
            ),
        )

    def asks(self, where: str, version: str, package: str) -> Step[Requirement | Unavailable | None]:
        """What other packages ask for plays no part without a lock."""
        yield from ()
        del package
        return Unavailable(
            key=self.record_key(self._copies[where].name, version), why=Unavailability.NOT_ALLOWED, detail="no lock"
        )

    def raised(self, constraint: Constraint, version: str) -> str | None:
        """See `Graph.raised`."""
        if constraint.span is None or constraint.source.kind is not SourceKind.REGISTRY:
            return None
        parsed = parse_requirement(GRAMMAR, constraint.requirement)
        if isinstance(parsed, Unparsable):
            return None
        raised = raise_requirement(parsed, version)
        return raised.text if isinstance(raised, Raised) and raised.changed else None

    def overrides(self, where: str, version: str) -> Step[tuple[tuple[AddOverride, ...], ...] | NoOverride]:
        """A declared package is raised where it is declared."""
        yield from ()
        del where, version
        return NoOverride(reason="override-unsupported", detail="there is no lockfile")

    def override_value(self, override: Override, version: str) -> str | None:
        """See `Graph.override_value`."""
        del override, version
        return None

    def simulate(self, changes: Sequence[Change], candidates: Candidates) -> Step[Verdict]:
        """Declarations move with their texts, and only with them."""
        yield from ()
        del candidates
        raised = {change.constraint.at: change for change in changes if isinstance(change, SetConstraint)}
        copies, moved, edits = dict(self._copies), [], []
        for change in changes:
            if not isinstance(change, SetVersion) or change.where not in copies:
                continue
            copy = copies[change.where]
            text = raised.get(change.where)
            floor = _floor(text.requirement) if text is not None else None
            if floor is None or floor != change.version:
                (dependent,) = yield from self.dependents(change.where)
                return Blocked(reason="constraint-conflict", dependent=dependent, where=change.where)
            copies[change.where] = replace(copy, version=change.version)
            moved.append(
                Moved(where=change.where, package=copy.name, from_version=copy.version, to_version=change.version)
            )
        for at, change in sorted(raised.items()):
            declared = change.constraint
            kind = "catalog" if declared.via else "constraint"
            edits.append(
                Edit(path=declared.path, at=at, from_text=declared.requirement, to_text=change.requirement, kind=kind)
            )
        return Legal(graph=LoneGraph(self._unit, copies), moved=tuple(moved), edits=tuple(edits))


def _floors(declared: dict[str, Constraint]) -> dict[str, Instance]:
    found = {}
    for at, one in declared.items():
        if one.source.kind is not SourceKind.REGISTRY:
            found[at] = Instance(where=at, name=one.package, version="", source=one.source, path=one.path)
            continue
        floor = _floor(one.requirement)
        # Without a lower bound nothing is written down that could be raised.
        found[at] = Instance(where=at, name=one.package, version=floor or "", path=one.path)
    return found


def _floor(text: str) -> str | None:
    """The least version that a text names; None when it names none (`*`, `<5`, a tag)."""
    parsed = parse_requirement(GRAMMAR, text)
    if isinstance(parsed, Unparsable):
        return None
    bounds = [interval.lower for interval in parsed.intervals]
    if not bounds:
        return None
    least: tuple[int, int, int] | None = None
    named = ""
    for bound in bounds:
        if bound is None:
            return None
        key = bound.key[:3]
        if least is None or key < least:
            least = key
            tail = bound.key[4] if len(bound.key) > 4 else ()
            named = ".".join(str(number) for number in key)
            if tail:
                named += "-" + ".".join(str(part[1]) for part in tail)
    return named
