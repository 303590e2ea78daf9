"""The npm ecosystem as one value: what GitHub calls `npm` is npm, pnpm, yarn and bun."""

import posixpath
from collections.abc import Sequence

from dependfix_core.ecosystems.base import Finding, Graph, ToolRelock, WriteRefusal
from dependfix_core.ecosystems.npm.graph import NpmGraph
from dependfix_core.ecosystems.npm.inspect import inspect
from dependfix_core.ecosystems.npm.lone import LoneGraph
from dependfix_core.ecosystems.npm.read import LOCKFILES, read_units
from dependfix_core.ecosystems.npm.relock import relock
from dependfix_core.ecosystems.npm.workspaces import MANIFEST
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.model.files import ChangeSet, Listing
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Remediation
from dependfix_core.model.steps import Step


class NpmEcosystem:
    """Reader, graph, writer, inspection and relock of JavaScript projects."""

    @property
    def ids(self) -> tuple[str, ...]:
        """GitHub's name."""
        return ("npm",)

    def recognises(self, path: str) -> bool:
        """See `PlannableEcosystem.recognises`."""
        return posixpath.basename(path) in (MANIFEST, *LOCKFILES) and "node_modules" not in path.split("/")

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        """See `PlannableEcosystem.read_units`."""
        return read_units(listing, manifest_paths)

    def graph(self, unit: LockUnit) -> Graph:
        """See `PlannableEcosystem.graph`."""
        return LoneGraph(unit) if unit.format == "manifest" else NpmGraph(unit)

    def write(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
        """See `Ecosystem.write`."""
        return write(unit, remediations)

    def inspect(self, unit: LockUnit) -> Step[tuple[Finding, ...]]:
        """See `Ecosystem.inspect`."""
        return inspect(unit, self.graph(unit))

    def relock(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
        """See `Ecosystem.relock`."""
        return relock(unit, remediations)
