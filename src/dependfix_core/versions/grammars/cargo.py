"""Cargo's requirements: a comma list in which a bare version is a caret.

Source: https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

import re
from collections.abc import Sequence
from typing import Final

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import assemble, comparator, pieces
from dependfix_core.versions.grammars.partial import (
    PARTIAL_TAIL,
    Partial,
    caret,
    compared,
    named_prereleases,
    partial_of,
    tilde,
    wildcard,
)
from dependfix_core.versions.intervals import NO_PRERELEASES, Interval
from dependfix_core.versions.requirement import Comparator, Requirement

_NUMBER: Final = r"(?:0|[1-9][0-9]*|[xX*])"
_COMPARATOR: Final = re.compile(
    rf"(?P<operator>>=|<=|[<>=^~])?\s*(?P<version>(?P<major>{_NUMBER})(?:\.(?P<minor>{_NUMBER})"
    rf"(?:\.(?P<patch>{_NUMBER}){PARTIAL_TAIL})?)?)"
)
_COMMA: Final = re.compile(",")


def parse_cargo(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A requirement of `Cargo.toml` or of the index."""
    parts: list[Comparator] = []
    spans = list(pieces(text, _COMMA))
    for start, end in spans:
        match = _COMPARATOR.fullmatch(text, start, end)
        if match is None:
            return Unparsable(text=text, scheme="cargo", reason="not a comparator")
        partial = partial_of(match)
        if partial.major is None and len(spans) > 1:
            return Unparsable(text=text, scheme="cargo", reason="a wildcard among others")
        parts.append(comparator(match, (_interval(match["operator"] or "", partial),)))
    whole = (spans[0][0], spans[-1][1])
    return assemble("cargo", text, scheme, [(whole, tuple(parts))], prereleases=_prereleases)


def _prereleases(parts: Sequence[Comparator]) -> frozenset[Key] | None:
    """Those that a comparator names, unless a wildcard or a short `~` or `=` asks for releases."""
    for part in parts:
        short = part.version.count(".") < 2 or "*" in part.version or "x" in part.version.lower().partition("-")[0]
        if short and (part.operator in ("=", "~") or not part.version[-1:].isdigit()):
            return NO_PRERELEASES
    return named_prereleases(parts)


def _interval(operator: str, partial: Partial) -> Interval:
    if partial.has_wildcard:
        return wildcard(partial) if operator in ("", "=", "^", "~") else compared(operator, partial)
    match operator:
        case "" | "^":
            return caret(partial)
        case "~":
            return tilde(partial)
        case "=":
            return wildcard(partial)
        case _:
            return compared(operator, partial)
