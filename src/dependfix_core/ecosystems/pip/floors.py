"""What counts as installed where nothing is pinned: the least version that a declared requirement names.

A requirement without a lock or a pin is answered by a version that nobody
knows; its lower bound is what a project says that it works with, what GitHub
compares, and what a fix can raise.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from dependfix_core.ecosystems.pip.needs import grammar_of, read_range
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, SourceKind
from dependfix_core.versions import Requirement, Version
from dependfix_core.versions.intervals import Interval

_KEY: Final = "floor"


def floor_of(grammar: str, text: str) -> str | None:
    """The least version that a requirement names; `None` when it has no bound from below (`*`, `<5`)."""
    requirement = read_range(grammar, text)
    if requirement is None or not requirement.intervals:
        return None
    scheme = requirement.allowed.scheme
    floors = []
    for index, arm in enumerate(requirement.arms):
        lows = [one.lower for one in arm.intervals]
        if not lows or None in lows:
            return None
        least = min(low.key for low in lows if low is not None)
        named = [
            one.version.removesuffix(".*")
            for one in requirement.comparators
            if one.arm == index and any(part.lower is not None and part.lower.key == least for part in one.intervals)
        ]
        if not named:
            return None
        floors.append(named[0])
    parsed = [version for text in floors if isinstance(version := scheme.try_parse(text), Version)]
    return scheme.sort(parsed)[0].text if parsed else None


def is_floor(instance: Instance) -> bool:
    """Whether nothing pins the copy, so that it moves with its declaration and only with it."""
    return instance.raw.get(_KEY) is True


def with_floors(
    constraints: Iterable[Constraint], *, by_text: bool, without: Collection[str] = ()
) -> tuple[dict[str, Instance], tuple[Constraint, ...]]:
    """A copy for each requirement that leads to none, and the requirements with where they lead.

    `by_text` names a copy by what is asked (`leaf>=1.0`), so that equal lines of
    several files are one; else by the place of the declaration. The files
    `without` are left out.
    """
    found: dict[str, Instance] = {}
    led: list[Constraint] = []
    for one in constraints:
        if one.target is not None or one.kind is DependencyKind.CONSTRAINT or one.path in without:
            led.append(one)
            continue
        where = f"{one.package}{one.requirement.replace(' ', '')}" if by_text else one.at
        is_registry = one.source.kind is SourceKind.REGISTRY
        floor = floor_of(grammar_of(one), one.requirement) if is_registry else None
        known = found.get(where)
        markers = one.marker if known is None or known.markers == one.marker else ""
        found[where] = Instance(
            where=where,
            name=one.package,
            version=floor or "",
            source=one.source,
            markers=markers,
            path=one.path,
            raw={_KEY: True},
        )
        led.append(replace(one, target=where))
    return found, tuple(led)


def from_above(requirement: Requirement | None) -> Requirement | None:
    """What a dependent asks of a version that is only a floor: newer ones will do, so only its upper bound counts."""
    if requirement is None or not requirement.intervals:
        return requirement
    uppers = [one.upper for one in requirement.intervals]
    bounded = [one for one in uppers if one is not None]
    upper = max(bounded, key=lambda one: (one.key, one.inclusive)) if len(bounded) == len(uppers) else None
    return replace(requirement, allowed=replace(requirement.allowed, intervals=(Interval(None, upper),), texts=None))
