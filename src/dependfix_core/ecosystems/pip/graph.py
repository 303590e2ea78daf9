"""The Python ecosystem's answers to the planner."""

from collections.abc import Sequence
from typing import Final

from packaging.version import InvalidVersion, Version

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
from dependfix_core.ecosystems.pip.needs import PEP440, grammar_of, read_range
from dependfix_core.ecosystems.pip.raising import raised_text
from dependfix_core.ecosystems.pip.resolution import Facts, Resolution, State
from dependfix_core.ecosystems.pip.simulation import Simulation
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Instance,
    LockUnit,
    Override,
    ReleaseAgeGate,
    SourceKind,
)
from dependfix_core.model.plan import Edit, Strategy
from dependfix_core.model.records import RecordKey, Unavailable
from dependfix_core.model.steps import Step
from dependfix_core.versions import Requirement

_OVERRIDES_OF: Final = {
    "uv-lock": "tool.uv.override-dependencies",
    "pdm-lock": "tool.pdm.resolution.overrides",
}
"""Where the tools that can force a version have their entries."""

_FIRST_CALENDAR_YEAR: Final = 1990


class PythonGraph:
    """The resolution of one Python unit; see `Graph` for the contract."""

    def __init__(self, unit: LockUnit, resolution: Resolution | None = None) -> None:
        self._resolution = resolution or Resolution(Facts(unit), State())

    @property
    def unit(self) -> LockUnit:
        """The unit as it was read."""
        return self._resolution.unit

    @property
    def direct_strategy(self) -> Strategy:
        """A declared requirement is raised where it stands."""
        return "manifest-bump"

    def record_key(self, package: str, version: str = "") -> RecordKey:
        """The key with the index that the unit takes the package from."""
        return self._resolution.record_key(package, version)

    def gate_exclusion(self, gate: ReleaseAgeGate, package: str, version: str) -> Edit | None:
        """None: Python's gates name dates and packages, none of them a single version."""
        del gate, package, version
        return None

    def instances(self, package: str) -> tuple[Instance, ...]:
        """The copies of `package` in this state."""
        return self._resolution.instances(package)

    def instance(self, where: str) -> Instance | None:
        """The copy at `where` in this state."""
        return self._resolution.instance(where)

    def dependents(self, where: str) -> Step[tuple[Dependent, ...]]:
        """All requirements that land on the copy, those of manifests first."""
        return (yield from self._resolution.dependents(where))

    def asks(self, where: str, version: str, package: str) -> Step[Requirement | Unavailable | None]:
        """What the copy at `where` would ask of `package` at `version` of itself."""
        instance = self.instance(where)
        if instance is None:
            return None
        release = yield from self._resolution.release(instance.name, version)
        if isinstance(release, Unavailable):
            return release
        needs = [need for need in self._resolution.needs_of(where, release) if need.name == package]
        if not needs:
            return None
        return read_range(PEP440, ",".join(dict.fromkeys(need.text for need in needs if need.text)))

    def raised(self, constraint: Constraint, version: str) -> str | None:
        """The declared text that asks for `version` at least; a line that only narrows others is not raised."""
        is_text = constraint.span is not None and constraint.source.kind is SourceKind.REGISTRY
        if not is_text or constraint.kind is DependencyKind.CONSTRAINT:
            return None
        text = self._resolution.state.texts.get((constraint.path, constraint.at), constraint.requirement)
        return raised_text(grammar_of(constraint), text, version)

    def overrides(self, where: str, version: str) -> Step[tuple[tuple[AddOverride, ...], ...] | NoOverride]:
        """An entry that replaces what everybody asks of the package, inside the line of `version`."""
        instance = self.instance(where)
        unit = self.unit
        table = _OVERRIDES_OF.get(unit.format)
        root = next((path for path in unit.manifests if path.rpartition("/")[0] == unit.unit.rpartition("/")[0]), None)
        for one in (yield from self.dependents(where)):
            if one.kind is DependencyKind.CONSTRAINT and one.admits(version).is_no:
                # Somebody decided so; nothing that is forced would hold against it.
                return NoOverride(reason="constraint-conflict", detail=str(one))
        if instance is None or table is None or root is None:
            return NoOverride(reason="override-unsupported", detail=f"{unit.tool or 'pip'} cannot force a version")
        forks = [one for one in self.instances(instance.name) if one.where != where]
        if forks and (unit.format != "uv-lock" or not instance.markers):
            detail = f"an override of {instance.name} would hit its other copies too"
            return NoOverride(reason="override-unsupported", detail=detail)
        override = Override(
            path=root,
            at=table if unit.format == "uv-lock" else f"{table}.{instance.name}",
            selector=instance.name,
            package=instance.name,
            value=inside_line(version),
            span=None,
            kind="override",
            condition=instance.markers if forks else "",
        )
        return ((AddOverride(override=override),),)

    def override_value(self, override: Override, version: str) -> str | None:
        """The entry's value raised to `version`, in its own style."""
        if override.span is None:
            return None
        text = self._resolution.state.values.get((override.path, override.at), override.value)
        if text[:1].isdigit():
            return version  # pdm writes a bare version for an exact one
        return raised_text(PEP440, text, version)

    def simulate(self, changes: Sequence[Change], candidates: Candidates) -> Step[Verdict]:
        """What `changes`, all together, come to."""
        simulation = Simulation(self._resolution, candidates)
        blocked: Blocked | None = yield from simulation.run(changes)
        if blocked is not None:
            return blocked
        return Legal(
            graph=PythonGraph(self.unit, simulation.after),
            moved=simulation.moved(),
            edits=tuple(sorted(simulation.edits, key=lambda edit: (edit.path, edit.at))),
            needs_tool=simulation.needs_tool,
            warnings=tuple(sorted(simulation.warnings)),
        )


def inside_line(version: str) -> str:
    """`>=version` with the end of its release line; calendar versions have none."""
    try:
        numbers = Version(version).release
    except InvalidVersion:
        return f"=={version}"
    if numbers[0] >= _FIRST_CALENDAR_YEAR:
        return f">={version}"
    if numbers[0]:
        return f">={version},<{numbers[0] + 1}"
    minor = numbers[1] if len(numbers) > 1 else 0
    return f">={version},<0.{minor + 1}"
