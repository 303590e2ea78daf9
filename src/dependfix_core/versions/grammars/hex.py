"""Elixir's requirements: comparators joined by `and`, alternatives by `or`.

A lower bound that is no pre-release shuts out all pre-releases.

Source: https://hexdocs.pm/elixir/Version.html#module-requirements
"""

import re
from collections.abc import Sequence
from typing import Final

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import Draft, assemble, comparator, pieces
from dependfix_core.versions.grammars.partial import PARTIAL_TAIL, Partial, below, partial_of
from dependfix_core.versions.intervals import ALL_PRERELEASES, NO_PRERELEASES, Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_COMPARATOR: Final = re.compile(
    rf"(?P<operator>>=|<=|==|!=|!|~>|[<>])?\s*(?P<version>(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})"
    rf"(?:\.(?P<patch>{_NUMBER}))?{PARTIAL_TAIL})"
)
_OR: Final = re.compile(r"\s+or\s+")
_AND: Final = re.compile(r"\s+and\s+")


def parse_hex(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A requirement of `mix.exs` or of the Hex registry."""
    drafts: list[Draft] = []
    for arm in pieces(text, _OR):
        parts: list[Comparator] = []
        for start, end in pieces(text, _AND, *arm):
            match = _COMPARATOR.fullmatch(text, start, end)
            if match is None or (match["patch"] is None and match["operator"] != "~>"):
                return Unparsable(text=text, scheme="hex", reason="not a requirement")
            parts.append(comparator(match, _intervals(match["operator"] or "==", partial_of(match))))
        drafts.append((arm, tuple(parts)))
    return assemble("hex", text, scheme, drafts, prereleases=_prereleases)


def _prereleases(parts: Sequence[Comparator]) -> frozenset[Key] | None:
    begins = [part for part in parts if part.operator in (">", ">=", "~>")]
    named = all("-" in part.version.partition("+")[0] for part in begins)
    return ALL_PRERELEASES if named else NO_PRERELEASES


def _intervals(operator: str, partial: Partial) -> tuple[Interval, ...]:
    key = partial.full_key
    bound = Bound(key, inclusive=True)
    match operator:
        case "==":
            return (Interval(bound, bound),)
        case "!=" | "!":
            return (Interval(None, Bound(key, inclusive=False)), Interval(Bound(key, inclusive=False), None))
        case ">" | ">=":
            return (Interval(Bound(key, inclusive=operator == ">="), None),)
        case "<" | "<=":
            return (Interval(None, Bound(key, inclusive=operator == "<=")),)
        case _:
            upper = below(key[0] + 1) if partial.patch is None else below(key[0], key[1] + 1)
            return (Interval(bound, upper),)
