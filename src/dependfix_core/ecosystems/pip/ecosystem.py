"""The Python ecosystem as the planner sees it."""

from collections.abc import Sequence

from dependfix_core.ecosystems.base import Graph
from dependfix_core.ecosystems.pip.graph import PythonGraph
from dependfix_core.ecosystems.pip.read import is_python_path, read_units
from dependfix_core.model.files import Listing
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.steps import Step


class PythonEcosystem:
    """Reader and graph of GitHub's ecosystem `pip`; see `Ecosystem` for the contract."""

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
