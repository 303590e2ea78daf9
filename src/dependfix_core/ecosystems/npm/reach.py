"""Which copies only development or only optional requirements bring in, for locks that do not say so."""

from collections.abc import Callable, Iterable

from dependfix_core.ecosystems.npm.parsed import Root
from dependfix_core.model.lock import DependencyKind

Neighbours = Callable[[str], Iterable[tuple[str, bool]]]
"""`where` → the copies it leads to, each with whether that requirement is optional."""

_OPTIONAL = (DependencyKind.OPTIONAL, DependencyKind.PEER_OPTIONAL)


def dev_and_optional(roots: Iterable[Root], neighbours: Neighbours) -> tuple[frozenset[str], frozenset[str]]:
    """The copies that nothing but dev requirements reach, and those that no way without an optional step reaches."""
    roots = tuple(roots)
    everything = _reached([root.where for root in roots], neighbours, over_optional=True)
    production = [root.where for root in roots if root.kind is not DependencyKind.DEV]
    needed = [root.where for root in roots if root.kind not in _OPTIONAL]
    without_dev = _reached(production, neighbours, over_optional=True)
    without_optional = _reached(needed, neighbours, over_optional=False)
    return frozenset(everything - without_dev), frozenset(everything - without_optional)


def _reached(starts: Iterable[str], neighbours: Neighbours, *, over_optional: bool) -> set[str]:
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        for target, optional in neighbours(waiting.pop()):
            if target not in seen and (over_optional or not optional):
                seen.add(target)
                waiting.append(target)
    return seen
