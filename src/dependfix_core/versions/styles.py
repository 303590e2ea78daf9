"""How each grammar's comparators are meant, and how each writes a raised one."""

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dependfix_core.versions.requirement import Comparator

Pairs = tuple[tuple[str, str], ...]
"""Operators with their versions, all of which must hold."""


class Role(enum.Enum):
    """What a comparator does in its requirement."""

    EXACT = "exact"
    FLOOR = "floor"
    ABOVE = "above"
    """A lower bound that is itself excluded."""
    COMPATIBLE = "compatible"
    """A lower bound that brings its own upper bound."""
    WILDCARD = "wildcard"
    CAP = "cap"
    EXCLUDE = "exclude"
    FIXED = "fixed"
    """A bound that only its author may move."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """One grammar's customs."""

    role: Callable[[Comparator], Role]
    compatible: Callable[[Comparator, str], Pairs]
    """A compatible comparator raised to the text of a target."""
    exact: Callable[[Comparator, str], str] = lambda _, target: target
    """How an exact version is written for the text of a target."""
    floor: str = ">="
    """The operator of an inclusive lower bound."""
    prefix: str = "vV="
    """Characters before a target's text that the grammar does not repeat."""
    separator: str = " "
    """Joins comparators that must hold together, where the text has no example."""
    separators: re.Pattern[str] | None = None
    """Finds the example."""


_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_WILDCARD: Final = re.compile(r"(?:[xX*]|any)(?:\.|\Z)|.*\.[xX*](?:\.|[+-]|\Z)")
_COMMA: Final = re.compile(r"\s*,\s*")


def numbers_in(version: str) -> tuple[int, ...]:
    """The leading release numbers of a version's text; empty for an epoch or none."""
    match = _NUMBERS.match(version)
    if match is None or version[match.end() : match.end() + 1] == "!":
        return ()
    return tuple(map(int, match[0].split(".")))


def style_of(grammar: str) -> Style:
    """The customs of one of `GRAMMARS`."""
    return _STYLES[grammar]


_ROLES: Final = {
    "=": Role.EXACT,
    "==": Role.EXACT,
    "===": Role.EXACT,
    ">=": Role.FLOOR,
    ">": Role.ABOVE,
    "<": Role.CAP,
    "<=": Role.CAP,
    "!=": Role.EXCLUDE,
    "<>": Role.EXCLUDE,
    "!": Role.EXCLUDE,
    "^": Role.COMPATIBLE,
    "~": Role.COMPATIBLE,
    "~>": Role.COMPATIBLE,
    "~=": Role.COMPATIBLE,
}


def _roles(alone: Role) -> Callable[[Comparator], Role]:
    """The usual meaning of operators; `alone` is that of a version without one."""

    def role(part: Comparator) -> Role:
        if part.operator == "-":
            return Role.CAP if part.intervals[0].lower is None else Role.FLOOR
        found = _ROLES.get(part.operator, alone)
        exact = found is Role.EXACT or part.operator == ""
        return Role.WILDCARD if exact and _WILDCARD.match(part.version) else found

    return role


def _npm_role(part: Comparator) -> Role:
    found = _roles(Role.EXACT)(part)
    if found is Role.EXACT and len(numbers_in(part.version)) < 3:
        return Role.WILDCARD
    if found is Role.COMPATIBLE and part.version[:1] in "xX*":
        return Role.WILDCARD
    return found


def _whole(part: Comparator, target: str) -> Pairs:
    return ((part.operator, target),)


def _pep440_compatible(part: Comparator, target: str) -> Pairs:
    """`~=` while the target begins with the numbers that are there, or has as many; else both bounds in full."""
    written, wanted = numbers_in(part.version), numbers_in(target)
    padded = wanted + (0,) * (len(written) - len(wanted))
    if written and (padded[: len(written)] == written or len(padded) == len(written)):
        return ((part.operator, target + ".0" * (len(written) - len(wanted))),)
    kept = padded[: max(1, len(written) - 1)] or (0,)
    return ((">=", target), ("<", dotted((*kept[:-1], kept[-1] + 1))))


def _poetry_compatible(part: Comparator, target: str) -> Pairs:
    return _pep440_compatible(part, target) if part.operator == "~=" else _whole(part, target)


def _composer_compatible(part: Comparator, target: str) -> Pairs:
    """`~1.4` reaches to 2.0: with more numbers it would not, so a caret or both bounds say the same."""
    if part.operator == "^":
        return _whole(part, target)
    written, wanted = numbers_in(part.version), numbers_in(target)
    if len(wanted) <= len(written):
        return (("~", target + ".0" * (len(written) - len(wanted))),)
    kept = wanted[: max(1, len(written) - 1)]
    if len(kept) == 1 and kept[0]:
        return (("^", target),)
    return ((">=", target), ("<", dotted((*kept[:-1], kept[-1] + 1))))


def _pessimistic(part: Comparator, target: str) -> Pairs:
    """`~>` with as many numbers as before, and the whole target beside it where that says less."""
    written, wanted = numbers_in(part.version), numbers_in(target)
    padded = wanted + (0,) * (len(written) - len(wanted))
    if len(written) == len(padded):
        return (("~>", target + ".0" * (len(written) - len(wanted))),)
    return (("~>", dotted(padded[: len(written)])), (">=", target))


def _interval_role(part: Comparator) -> Role:
    """NuGet: a bare version is the least one, a bracketed one exact, a star floats."""
    if part.operator == "[]":
        return Role.EXACT
    if "*" in part.version:
        return Role.FIXED if part.operator else Role.WILDCARD
    interval = part.intervals[0]
    if interval.lower is None:
        return Role.CAP
    return Role.FLOOR if interval.lower.inclusive else Role.ABOVE


def _hard_role(part: Comparator) -> Role:
    """Maven, Gradle: a bare version is replaced, the bounds of a range are its author's."""
    if "+" in part.version and part.version.rstrip("+").rstrip(".").replace(".", "").isdigit():
        return Role.WILDCARD
    if part.version == "+":
        return Role.WILDCARD
    return Role.EXACT if part.operator in ("", "[]") else Role.FIXED


def _cargo_role(part: Comparator) -> Role:
    return Role.WILDCARD if _WILDCARD.match(part.version) else _roles(Role.COMPATIBLE)(part)


def _go_exact(part: Comparator, target: str) -> str:
    """Advisories leave out the mark that a module without a module file carries."""
    mark = "+incompatible"
    return (
        target + mark
        if part.version.endswith(mark) and "+" not in target and target[:2] not in ("0.", "1.")
        else target
    )


def _action_role(part: Comparator) -> Role:
    return Role.WILDCARD if len(numbers_in(part.version)) < 3 else Role.EXACT


def dotted(numbers: tuple[int, ...]) -> str:
    """Numbers with dots between them."""
    return ".".join(map(str, numbers))


_STYLES: Final[Mapping[str, Style]] = {
    "npm": Style(role=_npm_role, compatible=_whole),
    "pep440": Style(role=_roles(Role.EXACT), compatible=_pep440_compatible, separator=",", separators=_COMMA),
    "poetry": Style(role=_roles(Role.EXACT), compatible=_poetry_compatible, separator=",", separators=_COMMA),
    "cargo": Style(role=_cargo_role, compatible=_whole, separator=", ", separators=_COMMA),
    "composer": Style(role=_roles(Role.EXACT), compatible=_composer_compatible, separators=_COMMA),
    "rubygems": Style(role=_roles(Role.EXACT), compatible=_pessimistic, separator=", ", separators=_COMMA),
    "hex": Style(role=_roles(Role.EXACT), compatible=_pessimistic, separator=" and "),
    "pub": Style(role=_roles(Role.EXACT), compatible=_whole),
    "nuget": Style(role=_interval_role, compatible=_whole, floor="[", prefix=""),
    "maven": Style(role=_hard_role, compatible=_whole, prefix=""),
    "gradle": Style(role=_hard_role, compatible=_whole, prefix=""),
    "go": Style(role=_roles(Role.EXACT), compatible=_whole, exact=_go_exact),
    "actions": Style(role=_action_role, compatible=_whole),
}
