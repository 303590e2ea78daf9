"""Questions about sets of Python versions: does a release run on all of a project's, does a marker hold on them.

Only final Python releases count. Platforms are never known, so a marker that
depends on one is neither always nor never true.

Sources: https://packaging.python.org/en/latest/specifications/dependency-specifiers/,
https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.utils import canonicalize_name

from dependfix_core.versions.base import Answer, Unparsable
from dependfix_core.versions.grammars import parse_requirement
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Requirement


@lru_cache(4096)
def python_covers(project: str | None, release: str | None, *, upper_bounds: bool = True) -> Answer:
    """Whether every Python that `project` allows is allowed by `release` too; both are `requires-python` texts.

    Args:
        project: None or empty allows every version.
        release: As `project`.
        upper_bounds: Without them a final `<4` of `release` is ignored, as uv does; Poetry takes it seriously.
    """
    wanted, offered = _releases(project, upper_bounds=True), _releases(release, upper_bounds=upper_bounds)
    if wanted is None or offered is None:
        return Answer.UNKNOWN
    return Answer.of(all(any(_within(part, whole) for whole in offered) for part in wanted))


@lru_cache(1 << 14)
def judge_marker(
    marker: str | None, *, requires_python: str | None = None, extras: frozenset[str] = frozenset()
) -> Answer:
    """Whether an environment marker holds: on every Python of the range and platform, on none, or it depends.

    Args:
        marker: The text after the semicolon; None or empty always holds.
        requires_python: The project's range; None allows every version.
        extras: Those that are asked for.

    Returns:
        UNKNOWN also for a marker or a range that cannot be read.
    """
    if not marker or not marker.strip():
        return Answer.YES
    if len(marker) > _MAX_MARKER_CHARS:
        return Answer.UNKNOWN
    try:
        parsed = Marker(marker)
        # `packaging` writes the variables' present names for the old ones (`os.name`).
        environments = _environments(str(parsed), requires_python)
        verdicts = {_holds(parsed, environment, extras) for environment in environments}
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, ValueError, RecursionError):
        return Answer.UNKNOWN
    if len(verdicts) == 1:
        return Answer.of(verdicts.pop())
    return Answer.UNKNOWN


def marker_always_true(marker: str | None, *, requires_python: str | None = None, extras: Collection[str] = ()) -> bool:
    """Whether the requirement it guards counts in every environment of the project."""
    return judge_marker(marker, requires_python=requires_python, extras=frozenset(extras)).is_yes


def marker_possibly_true(
    marker: str | None, *, requires_python: str | None = None, extras: Collection[str] = ()
) -> bool:
    """Whether the requirement it guards may count in some environment of the project; so too if it cannot be read."""
    return judge_marker(marker, requires_python=requires_python, extras=frozenset(extras)).may_be


_Edge = tuple[tuple[int, ...], bool] | None
"""Release numbers and whether they belong to the range."""
_Range = tuple[_Edge, _Edge]
_FINAL: Final = 3


def _releases(text: str | None, *, upper_bounds: bool) -> tuple[_Range, ...] | None:
    """Disjoint ranges of final releases, ascending; None when the text cannot be read."""
    requirement = parse_requirement("pip", text or "")
    if isinstance(requirement, Unparsable) or requirement.allowed.texts is not None:
        return None
    intervals = _without_upper_bounds(requirement) if not upper_bounds else requirement.intervals
    ranges = sorted((_range(entry) for entry in intervals), key=lambda part: part[0] or ((), True))
    merged: list[_Range] = []
    for part in ranges:
        if merged and _touches(merged[-1][1], part[0]):
            merged[-1] = (merged[-1][0], _later(merged[-1][1], part[1]))
        else:
            merged.append(part)
    return tuple(merged)


def _without_upper_bounds(requirement: Requirement) -> tuple[Interval, ...]:
    """The intervals with the last one open, if anything in the text opens them downwards."""
    if not requirement.intervals:
        return ()
    last = requirement.intervals[-1]
    return (*requirement.intervals[:-1], Interval(last.lower, None))


def _range(interval: Interval) -> _Range:
    return _edge(interval.lower, is_lower=True), _edge(interval.upper, is_lower=False)


def _edge(bound: Bound | None, *, is_lower: bool) -> _Edge:
    if bound is None:
        return None
    _, release, suffix = bound.key[:3]
    if suffix[0] < _FINAL or suffix[4] == 0:
        # Before the final release: from there on, or up to there.
        return release, is_lower
    if suffix[2]:
        # After it: without it, or with it.
        return release, not is_lower
    if len(bound.key) > 3 and bound.key[3]:
        return release, not is_lower
    return release, bound.inclusive


def _touches(end: _Edge, begin: _Edge) -> bool:
    if end is None or begin is None:
        return True
    return begin[0] < end[0] or (begin[0] == end[0] and (begin[1] or end[1]))


def _later(left: _Edge, right: _Edge) -> _Edge:
    return None if left is None or right is None else max(left, right)


def _within(part: _Range, whole: _Range) -> bool:
    (low, high), (least, most) = part, whole
    begins = least is None or (low is not None and (low[0], not low[1]) >= (least[0], not least[1]))
    return begins and (most is None or (high is not None and high <= most))


_COMPARISON: Final = re.compile(
    r"""(?P<variable>[a-z_.]+)\s*(?:===|~=|==|!=|<=|>=|<|>|not\s+in|in)\s*(?P<quote>["'])(?P<value>.*?)(?P=quote)
      | (?P<quote2>["'])(?P<value2>.*?)(?P=quote2)\s*(?:===|~=|==|!=|<=|>=|<|>|not\s+in|in)\s*(?P<variable2>[a-z_.]+)""",
    re.VERBOSE,
)
_FULL: Final = ("python_full_version", "implementation_version")
_DEFAULTS: Final = {
    "os_name": "",
    "sys_platform": "",
    "platform_machine": "",
    "platform_python_implementation": "",
    "platform_release": "0",
    "platform_system": "",
    "platform_version": "0",
    "implementation_name": "",
}
_OTHER: Final = "something else"
_MAX_MARKER_CHARS: Final = 2000
_MAX_ENVIRONMENTS: Final = 4000
_LAST_PYTHON_2: Final = (2, 7)
_MINORS_AHEAD: Final = 30
_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")


def _environments(marker: str, requires_python: str | None) -> Iterator[dict[str, str]]:
    """An environment for each combination that the marker can tell apart; ValueError when there are too many."""
    values: dict[str, set[str]] = {}
    patches: set[tuple[int, ...]] = set()
    is_full = False
    for match in _COMPARISON.finditer(marker):
        variable = match["variable"] or match["variable2"]
        value = match["value"] if match["variable"] else match["value2"]
        if variable in ("python_version", *_FULL):
            patches.update(tuple(map(int, number.split("."))) for number in _NUMBERS.findall(value))
            is_full = is_full or variable in _FULL
        elif variable in _DEFAULTS:
            values.setdefault(variable, {_OTHER}).update((value, *re.split(r"[\s,|]+", value)))
            if variable in ("platform_release", "platform_version"):
                values[variable].update(("0", "999999"))
    pythons = _pythons(requires_python, patches, is_full=is_full)
    if len(pythons) * prod(len(entry) for entry in values.values()) > _MAX_ENVIRONMENTS:
        raise ValueError("too many environments")
    for full, *chosen in product(pythons, *(sorted(entry) for entry in values.values())):
        yield {
            **_DEFAULTS,
            "python_version": ".".join(full.split(".")[:2]),
            "python_full_version": full,
            "implementation_version": full,
            **dict(zip(values, chosen, strict=True)),
        }


def _pythons(requires_python: str | None, named: set[tuple[int, ...]], *, is_full: bool) -> list[str]:
    """Python releases of the range, enough to tell the named versions from those around them."""
    requirement = parse_requirement("pip", requires_python or "")
    if isinstance(requirement, Unparsable):
        raise ValueError("not a requires-python")
    bounds = [bound for entry in requirement.intervals for bound in (entry.lower, entry.upper) if bound is not None]
    points: set[tuple[int, ...]] = {*named, *(bound.key[1] for bound in bounds)}
    minors = {_LAST_PYTHON_2, *((3, minor) for minor in range(_MINORS_AHEAD))}
    minors.update((point[0], point[1] if len(point) > 1 else 0) for point in points if point)
    releases = {(major, minor, patch) for major, minor in minors for patch in (0, 99)}
    for point in points if is_full or bounds else ():
        major, minor, patch, *_ = (*point, 0, 0, 0)
        releases.update((major, minor, max(0, patch + step)) for step in (-1, 0, 1))
    texts = (".".join(map(str, entry)) for entry in sorted(releases))
    allowed = [text for text in texts if requirement.admits(text).is_yes]
    if not allowed:
        raise ValueError("no known Python is in the range")
    return allowed


def _holds(marker: Marker, environment: dict[str, str], extras: frozenset[str]) -> bool:
    """Whether it holds without an extra or for any that is asked for."""
    names = ("", *(canonicalize_name(extra) for extra in sorted(extras)))
    return any(marker.evaluate({**environment, "extra": extra}) for extra in names)
