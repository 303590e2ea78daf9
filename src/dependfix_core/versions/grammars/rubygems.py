"""RubyGems' requirements: a comma list, all of which must hold.

Source: https://docs.ruby-lang.org/en/3.3/Gem/Requirement.html
"""

import re
from typing import Final

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import assemble, comparator, pieces
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement
from dependfix_core.versions.rubygems import LOWEST_PRERELEASE, gem_key

_COMPARATOR: Final = re.compile(
    r"(?P<operator>~>|>=|<=|!=|[<>=])?\s*(?P<version>[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)"
)
_COMMA: Final = re.compile(",")
_SEGMENT: Final = re.compile(r"[0-9]+|[A-Za-z]+")


def parse_rubygems(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A comma list as in `Gemfile.lock`, without quotes."""
    parts: list[Comparator] = []
    spans = list(pieces(text, _COMMA))
    for start, end in spans:
        match = _COMPARATOR.fullmatch(text, start, end)
        key = gem_key(match["version"]) if match else None
        if match is None or key is None:
            return Unparsable(text=text, scheme="rubygems", reason="not a requirement")
        parts.append(comparator(match, _intervals(match["operator"] or "=", key, match["version"])))
    return assemble("rubygems", text, scheme, [((spans[0][0], spans[-1][1]), tuple(parts))])


def _intervals(operator: str, key: Key, version: str) -> tuple[Interval, ...]:
    bound, outside = Bound(key, inclusive=True), Bound(key, inclusive=False)
    match operator:
        case "=":
            return (Interval(bound, bound),)
        case "!=":
            return (Interval(None, outside), Interval(outside, None))
        case ">":
            return (Interval(outside, None),)
        case ">=":
            return (Interval(bound, None),)
        case "<":
            return (Interval(None, outside),)
        case "<=":
            return (Interval(None, bound),)
        case _:
            return (Interval(bound, Bound(_before(_bumped(version)), inclusive=False)),)


def _bumped(version: str) -> str:
    """The version that `~>` does not reach: the last number but one goes up, all after it goes."""
    numbers: list[int] = []
    for segment in _SEGMENT.findall(version.replace("-", ".pre.")):
        if not segment.isdigit():
            break
        numbers.append(int(segment))
    if len(numbers) > 1:
        numbers.pop()
    numbers[-1] += 1
    return ".".join(map(str, numbers))


def _before(version: str) -> Key:
    """Below all pre-releases of `version`."""
    key = gem_key(version)
    assert key is not None
    return (*key[:-1], LOWEST_PRERELEASE)
