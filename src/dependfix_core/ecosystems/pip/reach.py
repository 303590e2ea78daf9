"""Does what a lock says of where a copy is installed still hold when one of those who asked for it does not any more?"""

from collections.abc import Sequence
from typing import Final

from dependfix_core.ecosystems.base import Dependent
from dependfix_core.ecosystems.pip.lock_graph import MAIN_GROUP
from dependfix_core.ecosystems.pip.resolution import Resolution
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, LockUnit
from dependfix_core.model.records import Unavailable
from dependfix_core.model.steps import Step

_SAYS_WHERE: Final = frozenset({"poetry-lock", "pdm-lock", "pylock"})
"""Formats whose entries say where they are installed: by markers, and most of them by groups."""
_MAIN_GROUPS: Final = {"pdm-lock": "default"}


def keeps_reach(after: Resolution, copy: Instance, dependents: Sequence[Dependent]) -> Step[bool]:
    """Whether `dependents`, all who still ask, lead to the copy in every environment and group that its entry names."""
    if after.unit.format not in _SAYS_WHERE:
        return True
    environments = after.facts.environments
    reached, groups = 0, set[str]()
    for one in dependents:
        parent = after.instance(one.where) if one.where is not None else None
        if parent is not None:
            needs = yield from after.needs(parent.where)
            for need in () if isinstance(needs, Unavailable) else needs:
                reached |= need.mask if need.name == copy.name else 0
            groups.update(parent.groups)
        elif one.constraint is not None and one.kind is not DependencyKind.CONSTRAINT:
            reached |= environments.mask(one.constraint.marker, None)
            groups.add(_group(after.unit, one.constraint))
    says_groups = "groups" in copy.raw or any("groups" in entry for entry in copy.raw.get("entries", ()))
    return not after.mask(copy) & ~reached and (not says_groups or set(copy.groups) <= groups)


def _group(unit: LockUnit, constraint: Constraint) -> str:
    """As the lock names it; poetry's extras belong to its main group."""
    is_extra = constraint.kind is DependencyKind.OPTIONAL
    is_main = constraint.kind is DependencyKind.PROD or (is_extra and unit.format == "poetry-lock")
    return _MAIN_GROUPS.get(unit.format, MAIN_GROUP) if is_main else constraint.group
