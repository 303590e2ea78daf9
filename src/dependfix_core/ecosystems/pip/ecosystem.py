"""The Python ecosystem as the planner sees it."""

from collections.abc import Sequence

from dependfix_core.ecosystems.base import Finding, Graph, ToolRelock, WriteRefusal
from dependfix_core.ecosystems.pip.graph import PythonGraph
from dependfix_core.ecosystems.pip.inspect import inspect
from dependfix_core.ecosystems.pip.read import is_python_path, read_units
from dependfix_core.ecosystems.pip.relock import relock
from dependfix_core.ecosystems.pip.write import write_unit
from dependfix_core.model.files import ChangeSet, Listing
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Remediation
from dependfix_core.model.steps import Step


class PythonEcosystem:
    """Reader, graph, writer, inspection and relock of Python projects."""

    @property
    def ids(self) -> tuple[str, ...]:
        """GitHub's name."""
        return ("pip",)

    def recognises(self, path: str) -> bool:
        """See `PlannableEcosystem.recognises`."""
        return is_python_path(path)

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        """The units that the paths belong to, each once, sorted by name."""
        return (yield from read_units(listing, manifest_paths))

    def graph(self, unit: LockUnit) -> Graph:
        """The resolution of `unit`."""
        return PythonGraph(unit)

    def write(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
        """See `Ecosystem.write`."""
        return (yield from write_unit(unit, remediations))

    def inspect(self, unit: LockUnit) -> Step[tuple[Finding, ...]]:
        """See `Ecosystem.inspect`."""
        return (yield from inspect(unit))

    def relock(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
        """See `Ecosystem.relock`."""
        return (yield from relock(unit, remediations))
