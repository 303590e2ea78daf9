"""The npm ecosystem as one value: what GitHub calls `npm` is npm, pnpm, yarn and bun."""

from collections.abc import Sequence

from dependfix_core.ecosystems.base import Graph, WriteRefusal
from dependfix_core.ecosystems.npm.graph import NpmGraph
from dependfix_core.ecosystems.npm.lone import LoneGraph
from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.model.files import ChangeSet, Listing
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Remediation
from dependfix_core.model.steps import Step


class NpmEcosystem:
    """Reader, graph and writer of JavaScript projects."""

    @property
    def ids(self) -> tuple[str, ...]:
        """GitHub's name."""
        return ("npm",)

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        """See `PlannableEcosystem.read_units`."""
        return read_units(listing, manifest_paths)

    def graph(self, unit: LockUnit) -> Graph:
        """See `PlannableEcosystem.graph`."""
        return LoneGraph(unit) if unit.format == "manifest" else NpmGraph(unit)

    def write(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
        """See `Ecosystem.write`."""
        return write(unit, remediations)
