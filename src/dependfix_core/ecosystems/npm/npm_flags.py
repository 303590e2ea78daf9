"""The flags that npm stores with a copy: dev, optional, devOptional, peer, by what leads to it.

Every flag is on until a way from the root without such a step is found.
Source: npm's arborist, `calc-dep-flags.js`
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dependfix_core.model.lock import DependencyKind

DEV: Final = 1
OPTIONAL: Final = 2
DEV_OPTIONAL: Final = 4
PEER: Final = 8
FLAGS: Final[Mapping[str, int]] = {"dev": DEV, "optional": OPTIONAL, "devOptional": DEV_OPTIONAL, "peer": PEER}
_ALL: Final = DEV | OPTIONAL | DEV_OPTIONAL | PEER
_EITHER: Final = DEV | OPTIONAL | DEV_OPTIONAL
_STEP: Final[Mapping[DependencyKind, int]] = {
    DependencyKind.DEV: DEV,
    DependencyKind.OPTIONAL: OPTIONAL,
    DependencyKind.PEER: PEER,
    DependencyKind.PEER_OPTIONAL: PEER | OPTIONAL,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One requirement that is met, or a link to its folder."""

    target: str
    kind: DependencyKind = DependencyKind.PROD


def flags_of(steps: Mapping[str, Iterable[Step]]) -> dict[str, int]:
    """Place → its flags, for every place that something leads to; the root is the empty place.

    A folder that a link leads to gets the link's flags.
    """
    found: dict[str, int] = {"": 0}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        here = found[place]
        for step in steps.get(place, ()):
            added = _STEP.get(step.kind, 0)
            before = found.get(step.target, _ALL)
            after = before & (here | added | DEV_OPTIONAL)
            if before & DEV_OPTIONAL and not here & _EITHER and not added & (DEV | OPTIONAL):
                after &= ~DEV_OPTIONAL
            if after != before or step.target not in found:
                found[step.target] = after
                waiting.append(step.target)
    return {place: flags & ~DEV_OPTIONAL if flags & (DEV | OPTIONAL) else flags for place, flags in found.items()}
