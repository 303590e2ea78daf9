"""Dart's version constraints.

An upper bound that is a release shuts out its pre-releases too, unless the
lower bound is one of them.

Source: https://dart.dev/tools/pub/dependencies#version-constraints
"""

import re
from typing import Final

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import assemble, comparator, stripped
from dependfix_core.versions.grammars.partial import below
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement
from dependfix_core.versions.semver import build_semver_key

_COMPARATOR: Final = re.compile(
    r"(?P<operator>>=|<=|[<>^])?\s*(?P<version>[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)"
)


def parse_pub(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A constraint of `pubspec.yaml`; nothing and `any` admit every version."""
    start, end = stripped(text, 0, len(text))
    parts: list[Comparator] = []
    at = start
    while at < end and text[start:end] != "any":
        match = _COMPARATOR.match(text, at, end)
        key = build_semver_key(match["version"]) if match else None
        if match is None or key is None:
            return Unparsable(text=text, scheme="pub", reason="not a constraint")
        parts.append(comparator(match, (_interval(match["operator"] or "", key),)))
        at = stripped(text, match.end(), end)[0]
    begins = (part.intervals[0].lower for part in parts)
    opened = frozenset(bound.key[:3] for bound in begins if bound is not None and bound.key[3] == 0)
    closed = tuple(_without_prereleases_of_end(part, opened) for part in parts)
    return assemble("pub", text, scheme, [((start, end), closed)])


def _interval(operator: str, key: Key) -> Interval:
    match operator:
        case "^":
            return Interval(Bound(key, inclusive=True), below(0, key[1] + 1) if key[0] == 0 else below(key[0] + 1))
        case "":
            return Interval(Bound(key, inclusive=True), Bound(key, inclusive=True))
        case ">" | ">=":
            return Interval(Bound(key, inclusive=operator == ">="), None)
        case _:
            return Interval(None, Bound(key, inclusive=operator == "<="))


def _without_prereleases_of_end(part: Comparator, opened: frozenset[Key]) -> Comparator:
    key = part.intervals[0].upper.key if part.intervals[0].upper else None
    if part.operator != "<" or key is None or key[3] == 0 or len(key) > 5 or key[:3] in opened:
        return part
    closed = Interval(None, below(*key[:3]))
    return Comparator(
        operator=part.operator,
        version=part.version,
        span=part.span,
        version_span=part.version_span,
        intervals=(closed,),
    )
