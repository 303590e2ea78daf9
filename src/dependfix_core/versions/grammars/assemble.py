"""From comparators with their spans to a requirement; shared by the grammars that are lists of comparators."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dependfix_core.versions.base import Key, VersionScheme
from dependfix_core.versions.intervals import ALL_PRERELEASES, Interval, VersionSet
from dependfix_core.versions.requirement import Arm, Comparator, Requirement, Span

MAX_REQUIREMENT_CHARS: Final = 4000

Draft = tuple[Span, tuple[Comparator, ...]]
"""An alternative: its span, and the comparators that must all hold in it."""


def intersect_all(left: Sequence[Interval], right: Sequence[Interval]) -> tuple[Interval, ...]:
    """The parts that two unions share."""
    both = (mine.intersect(other) for mine in left for other in right)
    return tuple(interval for interval in both if not interval.is_empty)


def assemble(
    grammar: str,
    text: str,
    scheme: VersionScheme,
    drafts: Sequence[Draft],
    *,
    prereleases: Callable[[Sequence[Comparator]], frozenset[Key] | None] = lambda _: ALL_PRERELEASES,
    is_soft: bool = False,
) -> Requirement:
    """The requirement of these alternatives.

    Args:
        grammar: Its name, for the rewriter.
        text: As written.
        scheme: Orders its versions.
        drafts: At least one; one without comparators admits everything.
        prereleases: Whose pre-releases an alternative with these comparators admits.
        is_soft: See `Requirement.is_soft`.
    """
    arms: list[Arm] = []
    for span, parts in drafts:
        intervals: tuple[Interval, ...] = (Interval(),)
        for part in parts:
            intervals = intersect_all(intervals, part.intervals)
        policy = prereleases(parts)
        arms.append(Arm(span=span, intervals=tuple(replace(entry, prereleases=policy) for entry in intervals)))
    return Requirement(
        grammar=grammar,
        text=text,
        allowed=VersionSet(scheme=scheme, intervals=tuple(entry for arm in arms for entry in arm.intervals)),
        comparators=tuple(replace(part, arm=index) for index, (_, parts) in enumerate(drafts) for part in parts),
        arms=tuple(arms),
        is_soft=is_soft,
    )


def pieces(text: str, separator: re.Pattern[str], start: int = 0, end: int | None = None) -> Iterator[Span]:
    """The spans between separators, without the spaces around them."""
    stop = len(text) if end is None else end
    at = start
    for match in separator.finditer(text, start, stop):
        yield stripped(text, at, match.start())
        at = match.end()
    yield stripped(text, at, stop)


def stripped(text: str, start: int, end: int) -> Span:
    """The span without spaces at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def comparator(match: re.Match[str], intervals: Sequence[Interval], operator: str | None = None) -> Comparator:
    """From a match with the groups `operator` and `version`."""
    return Comparator(
        operator=(match["operator"] or "") if operator is None else operator,
        version=match["version"],
        span=match.span(),
        version_span=match.span("version"),
        intervals=tuple(intervals),
    )
