"""How did a locked copy come in? Chains of names from a manifest down to it."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from dependfix_core.model.lock import LockUnit

MAX_CHAINS: Final = 3
_MAX_LENGTH: Final = 24
_MAX_VISITS: Final = 5_000


class Origins:
    """The dependents of every copy of one unit, as far as its files tell them."""

    def __init__(self, unit: LockUnit) -> None:
        self._unit = unit
        self._parents: dict[str, list[str]] = {}
        self._roots: dict[str, list[str]] = {}
        for constraint in unit.constraints:
            if constraint.target is not None:
                self._roots.setdefault(constraint.target, []).append(constraint.declared_in or constraint.path)
        for instance in unit.instances.values():
            for edge in instance.edges:
                if edge.target is not None:
                    self._parents.setdefault(edge.target, []).append(instance.where)

    def chains(self, where: str) -> tuple[tuple[str, ...], ...]:
        """Up to three chains from a manifest to the copy, the shortest first; empty when the files do not tell."""
        instances: Mapping[str, object] = self._unit.instances
        found: list[tuple[str, ...]] = []
        visits: dict[str, int] = {}
        waiting: deque[tuple[str, ...]] = deque([(where,)])
        steps = 0
        while waiting and len(found) < MAX_CHAINS and steps < _MAX_VISITS:
            steps += 1
            path = waiting.popleft()
            for root in sorted(set(self._roots.get(path[0], ()))):
                if len(found) < MAX_CHAINS:
                    found.append((root, *(self._unit.instances[one].name for one in path)))
            if len(path) >= _MAX_LENGTH:
                continue
            for parent in sorted(set(self._parents.get(path[0], ()))):
                # A few visits of each copy are enough for a few chains, and end every cycle.
                if parent not in path and parent in instances and visits.get(parent, 0) < MAX_CHAINS:
                    visits[parent] = visits.get(parent, 0) + 1
                    waiting.append((parent, *path))
        return tuple(dict.fromkeys(found))
