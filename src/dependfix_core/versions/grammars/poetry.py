"""Poetry's constraints: a bare version is exact; caret, tilde and wildcards over PEP 440.

Source: https://python-poetry.org/docs/dependency-specification/
"""

import re
from collections.abc import Sequence
from typing import Final

from packaging.version import InvalidVersion
from packaging.version import Version as PackagingVersion

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import Draft, assemble, comparator, stripped
from dependfix_core.versions.grammars.pep440 import lowest, specifier_intervals
from dependfix_core.versions.intervals import ALL_PRERELEASES, NO_PRERELEASES, Bound, Interval
from dependfix_core.versions.pep440 import key_of
from dependfix_core.versions.requirement import Comparator, Requirement, Span

_OR: Final = re.compile(r"\s*\|\|?\s*")
_COMPARATOR: Final = re.compile(
    r"(?P<operator>===|~=|==|!=|<>|<=|>=|[<>=^~])?\s*v?(?P<version>[0-9*][^\s,|<>=!~^;()]*)(?=[\s,|]|\Z)"
)
_BETWEEN: Final = re.compile(r"\s*,\s*|\s+")
_WILDCARD: Final = re.compile(r"(?P<head>[0-9]+(?:\.[0-9]+)*)(?:\.\*)+")


def parse_poetry(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A constraint of `tool.poetry.dependencies` or of `poetry.lock`."""
    drafts: list[Draft] = []
    at, stop = stripped(text, 0, len(text))
    while True:
        separator = _OR.search(text, at, stop)
        arm = stripped(text, at, separator.start() if separator else stop)
        parts = _parts(text, arm)
        if parts is None:
            return Unparsable(text=text, scheme="poetry", reason="not a constraint")
        drafts.append((arm, parts))
        if separator is None:
            return assemble("poetry", text, scheme, drafts, prereleases=_prereleases)
        at = separator.end()


def _parts(text: str, arm: Span) -> tuple[Comparator, ...] | None:
    start, end = arm
    parts: list[Comparator] = []
    while start < end:
        match = _COMPARATOR.match(text, start, end)
        if match is None:
            return None
        try:
            intervals = _intervals(match["operator"] or "", match["version"])
        except InvalidVersion:
            return None
        parts.append(comparator(match, intervals))
        between = _BETWEEN.match(text, match.end(), end)
        start = between.end() if between else match.end()
        if between is None and start < end:
            return None
    return tuple(parts)


def _prereleases(parts: Sequence[Comparator]) -> frozenset[Key] | None:
    for part in parts:
        if part.operator not in ("!=", "<>") and "*" not in part.version:
            wildcard = _WILDCARD.fullmatch(part.version)
            if wildcard is None and PackagingVersion(part.version).is_prerelease:
                return ALL_PRERELEASES
    return NO_PRERELEASES


def _intervals(operator: str, version: str) -> tuple[Interval, ...]:
    if version == "*":
        return (Interval(),)
    wildcard = _WILDCARD.fullmatch(version)
    if wildcard:
        return specifier_intervals("!=" if operator in ("!=", "<>") else "==", f"{wildcard['head']}.*")
    parsed = PackagingVersion(version)
    key = key_of(parsed)
    release = parsed.release
    match operator:
        case "^":
            return (_until(parsed, key, _breaking(release)),)
        case "~":
            return (_until(parsed, key, release[:2]),)
        case "~=" if len(release) > 1:
            return specifier_intervals("~=", version)
        case "~=":
            return (_until(parsed, key, release[:1]),)
        case "" | "=" | "==" | "===":
            return specifier_intervals("==", version)
        case "<>":
            return specifier_intervals("!=", version)
        case _:
            return specifier_intervals(operator, version)


def _breaking(release: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers up to the first that is not zero, at most three of them."""
    for at, number in enumerate(release[:3]):
        if number:
            return release[: at + 1]
    return release[:3]


def _until(version: PackagingVersion, key: Key, kept: tuple[int, ...]) -> Interval:
    """From the version to where the last of the kept numbers would go up."""
    upper = lowest(version.epoch, (*kept[:-1], kept[-1] + 1))
    return Interval(Bound(key, inclusive=True), Bound(upper, inclusive=False))
