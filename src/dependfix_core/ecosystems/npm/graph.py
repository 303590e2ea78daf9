"""The resolution of a JavaScript lockfile, as the planner asks for it."""

from collections.abc import Sequence
from typing import Final

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Candidates,
    Change,
    Dependent,
    Legal,
    NoOverride,
    Verdict,
)
from dependfix_core.ecosystems.npm.asks import GRAMMAR, PEER_KINDS, asks_of_release, find_ask
from dependfix_core.ecosystems.npm.facts import Facts
from dependfix_core.ecosystems.npm.forced import OverrideWriter, raised_value
from dependfix_core.ecosystems.npm.layout import Layout, Link, State, layout_of
from dependfix_core.ecosystems.npm.simulate import Simulation
from dependfix_core.model.lock import Constraint, Instance, LockUnit, Override, ReleaseAgeGate, SourceKind
from dependfix_core.model.plan import Edit, Strategy
from dependfix_core.model.records import RecordKey, ReleaseRecord, Unavailability, Unavailable
from dependfix_core.model.steps import Step, records_for, together
from dependfix_core.versions import Requirement, Unparsable, parse_requirement
from dependfix_core.versions.rewrite import Raised, raise_requirement

ECOSYSTEM: Final = "npm"
_EXCLUSIONS: Final = {
    ("minimumReleaseAge", "minimumReleaseAge"): "minimumReleaseAgeExclude",
    ("minimumReleaseAge", "minimum-release-age"): "minimum-release-age-exclude",
    ("minimumReleaseAge", "install.minimumReleaseAge"): "install.minimumReleaseAgeExcludes",
    ("min-release-age", "min-release-age"): "min-release-age-exclude",
    ("npmMinimalAgeGate", "npmMinimalAgeGate"): "npmPreapprovedPackages",
}
"""(kind, key) of a gate → the key that lists what it does not hold back."""


class NpmGraph:
    """See `Graph`. All JavaScript lockfiles share it; their layouts differ."""

    def __init__(self, unit: LockUnit, layout: Layout | None = None, state: State | None = None) -> None:
        self._unit = unit
        self._layout = layout if layout is not None else layout_of(unit)
        self._state = state if state is not None else State()
        self._facts = Facts(self._layout, self.record_key)

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
        return RecordKey(ecosystem=ECOSYSTEM, name=package, version=version, registry=self._registry(package))

    def gate_exclusion(self, gate: ReleaseAgeGate, package: str, version: str) -> Edit | None:
        """See `Graph.gate_exclusion`."""
        at = _EXCLUSIONS.get((gate.kind, gate.at))
        if at is None:
            return None
        return Edit(path=gate.path, at=at, from_text=None, to_text=f"{package}@{version}", kind="gate-exclusion")

    def instances(self, package: str) -> tuple[Instance, ...]:
        """See `Graph.instances`."""
        return tuple(
            found
            for node in self._layout.copies(self._state, package)
            if (found := self.instance(node.where)) is not None
        )

    def instance(self, where: str) -> Instance | None:
        """See `Graph.instance`."""
        node = self._layout.node(self._state, where)
        if node is None:
            return None
        if node.instance is not None and node.instance.version == node.version:
            return node.instance
        base = node.instance
        return Instance(
            where=where,
            name=node.name,
            version=node.version,
            optional=node.is_optional,
            dev=base.dev if base is not None else False,
            aliases=base.aliases if base is not None else (),
            path=base.path if base is not None else "",
        )

    def dependents(self, where: str) -> Step[tuple[Dependent, ...]]:
        """See `Graph.dependents`."""
        links = self._layout.links_to(self._state, where)
        found = yield from together([self._dependent(link) for link in links])
        return tuple(found)

    def asks(self, where: str, version: str, package: str) -> Step[Requirement | Unavailable | None]:
        """See `Graph.asks`."""
        node = self._layout.node(self._state, where)
        assert node is not None, "only copies that are there are asked about"
        key = self.record_key(node.name, version)
        records = yield from records_for([key])
        record = records[key]
        if isinstance(record, Unavailable):
            return record
        asks = asks_of_release(record.release) if isinstance(record, ReleaseRecord) else None
        if asks is None:
            return Unavailable(key=key, why=Unavailability.NOT_FOUND, detail="its requirements are not listed")
        ask = find_ask(asks, package)
        if ask is None:
            return None
        want = self._layout.counting(self._state, Link(where, ask)).want
        if want.requirement is None:
            return Unavailable(key=key, why=Unavailability.NOT_FOUND, detail=f"it asks for `{want.text}`")
        return want.requirement

    def raised(self, constraint: Constraint, version: str) -> str | None:
        """See `Graph.raised`."""
        if constraint.span is None or constraint.source.kind is not SourceKind.REGISTRY:
            return None
        parsed = parse_requirement(GRAMMAR, constraint.requirement)
        if isinstance(parsed, Unparsable):
            return None
        raised = raise_requirement(parsed, version)
        return raised.text if isinstance(raised, Raised) else None

    def overrides(self, where: str, version: str) -> Step[tuple[tuple[AddOverride, ...], ...] | NoOverride]:
        """See `Graph.overrides`."""
        node = self._layout.node(self._state, where)
        assert node is not None, "only copies that are there are forced"
        writer = OverrideWriter(self._unit, self._layout.overrides(self._state))
        dependents = yield from self.dependents(where)
        refusing = [one for one in dependents if not one.admits(version).may_be]
        if any(one.kind in PEER_KINDS for one in refusing):
            return NoOverride(reason="peer-conflict", detail="forcing a peer would only hide that it does not fit")
        if any(one.constraint is not None for one in refusing):
            return NoOverride(
                reason="constraint-conflict", detail="a declared dependency has to be raised where it is declared"
            )
        if any(one.override is not None for one in refusing):
            return NoOverride(reason="constraint-conflict", detail="it is forced already")
        elsewhere: list[Dependent] = []
        locked: list[str] = []
        for other in self._layout.copies(self._state, node.name):
            if other.where != where:
                locked.append(other.version)
                elsewhere += yield from self.dependents(other.where)
        return writer.ways(node.name, version, refusing, elsewhere, locked)

    def override_value(self, override: Override, version: str) -> str | None:
        """See `Graph.override_value`."""
        return raised_value(override, version)

    def simulate(self, changes: Sequence[Change], candidates: Candidates) -> Step[Verdict]:
        """See `Graph.simulate`."""
        simulation = Simulation(self._layout, self._state, self._facts, candidates)
        blocked = yield from simulation.run(changes)
        if isinstance(blocked, Blocked):
            return blocked
        return Legal(
            graph=NpmGraph(self._unit, self._layout, simulation.state),
            moved=simulation.moved(),
            edits=tuple(simulation.edits),
            needs_tool=simulation.needs_tool,
            is_partial=simulation.is_partial,
            warnings=tuple(sorted(simulation.warnings)),
        )

    def _dependent(self, link: Link) -> Step[Dependent]:
        counting = yield from self._facts.counting(self._state, link)
        return self._facts.dependent(self._state, link, counting)

    def _registry(self, package: str) -> str:
        for node in self._layout.copies(self._state, package):
            if node.instance is not None and node.instance.source.base:
                return node.instance.source.base
        scope = package.partition("/")[0] if package.startswith("@") else ""
        registries = self._unit.registries
        return registries.get(scope, registries.get("", ""))
