"""Who reaches a locked copy, and on what condition?

Lockfiles name the packages that a package needs; from that and the declared
requirements follow the flags that the file itself does not always say.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from dependfix_core.model.lock import Constraint, DependencyKind, Edge, Instance

MAIN_GROUP: Final = "main"
_Label = tuple[DependencyKind, str]
_EXTRA: Final = re.compile(r"""\bextra\s*==\s*(?:"([^"]*)"|'([^']*)')""")
_DEVELOPMENT: Final = frozenset({DependencyKind.DEV, DependencyKind.BUILD})


def extra_marker(extra: str) -> str:
    """The marker of an edge that only counts when its parent is asked for with `extra`."""
    return f'extra == "{extra}"'


def extras_of(edge: Edge) -> tuple[str, ...]:
    """The parent's extras that bring the edge in; empty for one that always counts."""
    if edge.kind is not DependencyKind.OPTIONAL:
        return ()
    return tuple(first or second for first, second in _EXTRA.findall(edge.marker))


def with_reach(instances: Mapping[str, Instance], constraints: Iterable[Constraint]) -> dict[str, Instance]:
    """The same instances with `groups`, `dev` and `optional` as the declared requirements reach them.

    A copy that nothing reaches keeps what it has. `groups` holds `main`, the
    names of extras and of dependency groups, sorted.
    """
    roots: dict[_Label, set[tuple[str, str]]] = {}
    for constraint in constraints:
        if constraint.target is None or constraint.kind is DependencyKind.CONSTRAINT:
            continue
        label: _Label = (constraint.kind, constraint.group or MAIN_GROUP)
        roots.setdefault(label, set()).update((constraint.target, extra) for extra in ("", *constraint.extras))
    reached: dict[str, set[_Label]] = {}
    for label, starts in roots.items():
        for where in _reachable(instances, starts):
            reached.setdefault(where, set()).add(label)
    return {where: _flagged(instance, reached.get(where, set())) for where, instance in instances.items()}


def _flagged(instance: Instance, labels: set[_Label]) -> Instance:
    if not labels:
        return instance
    kinds = {kind for kind, _ in labels}
    return replace(
        instance,
        groups=tuple(sorted(group for _, group in labels)),
        dev=kinds <= _DEVELOPMENT,
        optional=DependencyKind.PROD not in kinds and not kinds <= _DEVELOPMENT,
    )


def _reachable(instances: Mapping[str, Instance], starts: Iterable[tuple[str, str]]) -> set[str]:
    """Places reached from `starts`, which are pairs of a place and an extra (`""` for the package itself)."""
    seen: set[tuple[str, str]] = set()
    waiting = sorted(starts)
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] not in instances:
            continue
        seen.add(state)
        where, extra = state
        for edge in instances[where].edges:
            bringing = extras_of(edge)
            if edge.target is not None and (extra in bringing if extra else not bringing):
                waiting.extend((edge.target, asked) for asked in ("", *edge.extras))
    return {where for where, _ in seen}
