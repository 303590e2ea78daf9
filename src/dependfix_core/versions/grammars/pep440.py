"""Python's version specifiers.

Pre-releases are admitted where a specifier names one, as installers choose;
an installed pre-release is judged with `include_prereleases`.

Source: https://packaging.python.org/en/latest/specifications/version-specifiers/
"""

import re
from math import inf
from typing import Final

from packaging.specifiers import InvalidSpecifier, Specifier
from packaging.version import Version as PackagingVersion

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import intersect_all
from dependfix_core.versions.intervals import ALL_PRERELEASES, NO_PRERELEASES, Bound, Interval, VersionSet
from dependfix_core.versions.pep440 import key_of
from dependfix_core.versions.requirement import Arm, Comparator, Requirement

_SPECIFIER: Final = re.compile(r"\s*(?P<all>(?P<operator>===|~=|==|!=|<=|>=|<|>)\s*(?P<version>[^\s,;)]+))\s*")
_AFTER_LOCALS: Final = ((inf, ""),)
_FINAL: Final = 3


def parse_pep440(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A comma list of specifiers, in parentheses or not; nothing at all, or `*`, admits every version."""
    start, end = _inner(text)
    comparators: list[Comparator] = []
    intervals: tuple[Interval, ...] = (Interval(),)
    texts: frozenset[str] | None = None
    names_prerelease = False
    at = start
    for piece in text[start:end].split(",") if text[start:end].strip() not in ("", "*") else ():
        match = _SPECIFIER.fullmatch(text, at, at + len(piece))
        if match is None:
            if piece.strip():
                return Unparsable(text=text, scheme="pep440", reason="not a specifier")
            at += len(piece) + 1
            continue
        try:
            specifier = Specifier(match["all"])
        except InvalidSpecifier:
            return Unparsable(text=text, scheme="pep440", reason="not a specifier")
        operator, version = match["operator"], match["version"]
        alone = () if operator == "===" else specifier_intervals(operator, version)
        comparators.append(
            Comparator(
                operator=operator,
                version=version,
                span=match.span("all"),
                version_span=match.span("version"),
                intervals=alone,
            )
        )
        names_prerelease = names_prerelease or bool(specifier.prereleases)
        if operator == "===":
            exact = frozenset({version.lower()})
            texts = exact if texts is None else texts & exact
        else:
            intervals = intersect_all(intervals, alone)
        at += len(piece) + 1
    policy = ALL_PRERELEASES if names_prerelease else NO_PRERELEASES
    intervals = tuple(Interval(interval.lower, interval.upper, policy) for interval in intervals)
    allowed = VersionSet(scheme=scheme, intervals=intervals, texts=texts)
    return Requirement(
        grammar="pep440",
        text=text,
        allowed=allowed,
        comparators=tuple(comparators),
        arms=(Arm(span=(start, end), intervals=intervals),),
    )


def specifier_intervals(operator: str, version: str) -> tuple[Interval, ...]:
    """What one specifier other than `===` admits, pre-releases by plain order.

    `>1.0` leaves out 1.0's post-releases and local versions, `<1.0` its
    pre-releases, and `==1.0` takes in its local versions.
    """
    if version.endswith(".*"):
        base = PackagingVersion(version[:-2])
        low, high = lowest(base.epoch, base.release), lowest(base.epoch, _next(base.release))
        if operator == "==":
            return (Interval(Bound(low, inclusive=True), Bound(high, inclusive=False)),)
        return (Interval(None, Bound(low, inclusive=False)), Interval(Bound(high, inclusive=True), None))
    parsed = PackagingVersion(version)
    key = key_of(parsed)
    match operator:
        case "==" | "!=":
            last = key if parsed.local is not None else _after_locals(key)
            if operator == "==":
                return (Interval(Bound(key, inclusive=True), Bound(last, inclusive=True)),)
            return (Interval(None, Bound(key, inclusive=False)), Interval(Bound(last, inclusive=False), None))
        case ">=":
            return (Interval(Bound(key, inclusive=True), None),)
        case "<=":
            return (Interval(None, Bound(_after_locals(key), inclusive=True)),)
        case ">":
            own = parsed.post is not None or parsed.dev is not None
            return (Interval(Bound(_after_locals(key) if own else _after_posts(key), inclusive=False), None),)
        case "<":
            bound = key if parsed.is_prerelease else _first_development(key)
            return (Interval(None, Bound(bound, inclusive=False)),)
        case _:
            high = lowest(parsed.epoch, _next(parsed.release[:-1]))
            return (Interval(Bound(key, inclusive=True), Bound(high, inclusive=False)),)


def lowest(epoch: int, release: tuple[int, ...]) -> Key:
    """The key of the first development release of `release`."""
    return key_of(PackagingVersion(f"{epoch}!{'.'.join(map(str, release))}.dev0"))


def _next(release: tuple[int, ...]) -> tuple[int, ...]:
    return (*release[:-1], release[-1] + 1)


def _after_locals(key: Key) -> Key:
    return (*key[:3], _AFTER_LOCALS)


def _after_posts(key: Key) -> Key:
    phase, number = key[2][:2]
    return (*key[:2], (phase, number, 1, inf, 1, 0), _AFTER_LOCALS)


def _first_development(key: Key) -> Key:
    """Before all that leads to this release or post-release."""
    suffix = key[2]
    if suffix[2]:
        return (*key[:2], (suffix[0], suffix[1], 1, suffix[3], 0, 0), ())
    return (*key[:2], (-1, 0, 0, 0, 0, 0), ())


def _inner(text: str) -> tuple[int, int]:
    start = len(text) - len(text.lstrip())
    end = max(start, len(text.rstrip()))
    if end - start >= 2 and text[start] == "(" and text[end - 1] == ")":
        return start + 1, end - 1
    return start, end
