"""npm's range grammar, and the other things that can stand in its place.

A pre-release is admitted only by an alternative that names a pre-release of
the same release.

Sources: https://github.com/npm/node-semver#range-grammar,
https://docs.npmjs.com/cli/using-npm/package-spec
"""

import re
from typing import Final, NamedTuple

from dependfix_core.versions.base import Unparsable, VersionScheme
from dependfix_core.versions.grammars.partial import PARTIAL_TAIL, Partial, caret, compared, tilde, wildcard
from dependfix_core.versions.intervals import Bound, Interval, VersionSet
from dependfix_core.versions.requirement import Arm, Comparator, Requirement, Span

_NUMBER: Final = r"(?:0|[1-9][0-9]*|[xX*])"
_NUMBERS: Final = (
    rf"(?P<version>(?P<major>{_NUMBER})(?:\.(?P<minor>{_NUMBER})(?:\.(?P<patch>{_NUMBER}){PARTIAL_TAIL})?)?)"
)
_COMPARATOR: Final = re.compile(
    rf"(?P<operator>[<>](?:\s*=)?|=|(?:~>?|\^)(?:\s*=)?)?\s*(?P<lead>[v=]*){_NUMBERS}(?=\s|\Z)"
)
_END: Final = rf"(?P<lead>[v=\s]*){_NUMBERS}"
_HYPHEN: Final = re.compile(_END + r"\s+-\s+" + _END.replace("(?P<", "(?P<to_"))
_SPACES: Final = re.compile(r"\s*")


class NpmSpecifier(NamedTuple):
    """What stands in the place of a range."""

    kind: str
    """`range`, `tag`, `workspace`, `catalog`, or how the package is fetched: `file link portal patch git url`."""
    alias: str | None
    """The package behind `npm:name@…`."""
    start: int
    """Where the range begins in the text."""


_PROTOCOLS: Final = {
    "workspace:": "workspace",
    "catalog:": "catalog",
    "file:": "file",
    "link:": "link",
    "portal:": "portal",
    "patch:": "patch",
    "exec:": "file",
    "jsr:": "url",
    "github:": "git",
    "gitlab:": "git",
    "bitbucket:": "git",
    "gist:": "git",
    "git:": "git",
}
_ADDRESS: Final = re.compile(r"(?P<git>git(?:\+[a-z]+)?://|git\+|git@|ssh://)|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PATH: Final = re.compile(r"\.{0,2}[/\\]|~[/\\]|[A-Za-z]:[/\\]")
_SHORTHAND: Final = re.compile(r"[^@\s:/]+/[^\s:/#]+(?:#\S*)?")
_ALIAS: Final = re.compile(r"npm:(?P<name>(?:@[^/@\s]+/)?[A-Za-z][^/@\s]*)(?:@|\Z)")
_TAG: Final = re.compile(r"[A-Za-z0-9_.!~*'()-]+")


def npm_specifier(text: str) -> NpmSpecifier:
    """What kind of specifier `text` is; a text that is nothing known counts as a `range` and will not parse."""
    stripped = text.strip()
    for protocol, kind in _PROTOCOLS.items():
        if stripped.startswith(protocol):
            return NpmSpecifier(kind, None, 0)
    alias, start = None, 0
    if stripped.startswith("npm:"):
        offset = len(text) - len(text.lstrip())
        named = _ALIAS.match(stripped)
        alias = named["name"] if named else None
        start = offset + (named.end() if named else len("npm:"))
        if named and _range_arms(text[start:]) is None and named["name"] == stripped[4:]:
            # Yarn writes a plain tag as `npm:latest`, where npm would read the name of a package.
            return NpmSpecifier("tag", None, offset + 4)
        if _range_arms(text[start:]) is not None:
            return NpmSpecifier("range", alias, start)
        return NpmSpecifier("tag" if _TAG.fullmatch(text[start:].strip()) else "range", alias, start)
    address = _ADDRESS.match(stripped)
    if address:
        return NpmSpecifier("git" if address["git"] or stripped.split("#")[0].endswith(".git") else "url", None, 0)
    if _range_arms(text) is not None:
        return NpmSpecifier("range", None, 0)
    if _PATH.match(stripped):
        return NpmSpecifier("file", None, 0)
    if _SHORTHAND.fullmatch(stripped):
        return NpmSpecifier("git", None, 0)
    return NpmSpecifier("tag" if _TAG.fullmatch(stripped) else "range", None, 0)


def parse_npm(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A range, with or without `npm:` and an alias before it.

    Tags, workspaces, catalogs and other sources are Unparsable; the reason
    says what they are, as `npm_specifier` does.
    """
    arms, alias, start = _range_arms(text), None, 0
    if arms is None:
        specifier = npm_specifier(text)
        if specifier.kind != "range":
            return Unparsable(text=text, scheme="npm", reason=specifier.kind)
        alias, start = specifier.alias, specifier.start
        arms = _range_arms(text[start:]) if start else None
        if arms is None:
            return Unparsable(text=text, scheme="npm", reason="no range")
    found: list[Arm] = []
    comparators: list[Comparator] = []
    for index, (span, admitted, parts) in enumerate(arms):
        found.append(Arm(span=_shift(span, start), intervals=() if admitted.is_empty else (admitted,)))
        comparators.extend(
            Comparator(
                operator=operator,
                version=version,
                span=_shift(whole, start),
                version_span=_shift(where, start),
                intervals=(interval,),
                arm=index,
            )
            for operator, version, whole, where, interval in parts
        )
    intervals = tuple(interval for arm in found for interval in arm.intervals)
    # An alternative that is just `*` is all that node keeps of a range, also where others name pre-releases.
    allowed = VersionSet(scheme=scheme, intervals=(_ANY,) if _ANY in intervals else intervals)
    return Requirement(
        grammar="npm", text=text, allowed=allowed, comparators=tuple(comparators), arms=tuple(found), alias=alias
    )


_Part = tuple[str, str, Span, Span, Interval]
_Arm = tuple[Span, Interval, list[_Part]]


def _shift(span: Span, by: int) -> Span:
    return (span[0] + by, span[1] + by)


def _range_arms(text: str) -> list[_Arm] | None:
    arms: list[_Arm] = []
    at = 0
    for piece in text.split("||"):
        arm = _range_arm(text, at, at + len(piece))
        if arm is None:
            return None
        arms.append(arm)
        at += len(piece) + 2
    return arms


_ANY: Final = Interval(prereleases=frozenset())
_FROM_ZERO: Final = Bound((0, 0, 0, 1, ()), inclusive=True)


def _range_arm(text: str, start: int, end: int) -> _Arm | None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if start >= end:
        return (start, start), Interval(prereleases=frozenset()), []
    hyphen = _HYPHEN.fullmatch(text, start, end)
    if hyphen:
        return _hyphen_arm(hyphen, (start, end))
    interval = Interval(prereleases=frozenset())
    named: frozenset[tuple[int, ...]] = frozenset()
    parts: list[_Part] = []
    at = start
    while at < end:
        match = _COMPARATOR.match(text, at, end)
        if match is None:
            return None
        partial = _partial(match, "")
        operator = "".join((match["operator"] or "").split())
        if operator[:1] in ("~", "^"):
            operator = operator.rstrip("=")
        if operator not in ("^", "~", "~>") and not _stands_alone(match, partial, ""):
            return None
        admitted = _interval(operator, partial)
        interval = interval.intersect(_open(admitted))
        named |= partial.named_prereleases
        parts.append((operator, match["version"], match.span(), match.span("version"), admitted))
        spaces = _SPACES.match(text, match.end(), end)
        assert spaces is not None
        at = spaces.end()
    return (start, end), Interval(interval.lower, interval.upper, named), parts


def _interval(operator: str, partial: Partial) -> Interval:
    match operator:
        case "" | "=":
            return wildcard(partial)
        case "^":
            return caret(partial)
        case "~" | "~>":
            return tilde(partial)
        case _:
            return compared(operator, partial)


def _open(interval: Interval) -> Interval:
    """Without a lower bound of 0.0.0, which node drops: it would keep out pre-releases that are named elsewhere."""
    if interval.lower == _FROM_ZERO and interval.upper != _FROM_ZERO:
        return Interval(None, interval.upper, interval.prereleases)
    return interval


def _hyphen_arm(match: re.Match[str], span: Span) -> _Arm | None:
    low, high = _partial(match, ""), _partial(match, "to_")
    if not (_leads_alone(match, low, "") and _leads_alone(match, high, "to_")):
        return None
    lower = compared(">=", low)
    upper = compared("<=", high)
    both = _open(lower).intersect(upper)
    parts: list[_Part] = [
        ("-", match[group], match.span(group), match.span(group), half)
        for group, half in (("version", lower), ("to_version", upper))
    ]
    return span, Interval(both.lower, both.upper, low.named_prereleases | high.named_prereleases), parts


def _partial(match: re.Match[str], prefix: str) -> Partial:
    major, minor, patch = (_number(match[prefix + name]) for name in ("major", "minor", "patch"))
    if major is None:
        minor = None
    if minor is None:
        patch = None
    return Partial(major, minor, patch, match[prefix + "pre"])


def _leads_alone(match: re.Match[str], partial: Partial, prefix: str) -> bool:
    """Whether a complete version has at most a `v` before it; node is lenient with partial ones only."""
    lenient = not partial.is_complete or (prefix and partial.prerelease is not None)
    return bool(lenient) or match[prefix + "lead"] in ("", "v")


def _stands_alone(match: re.Match[str], partial: Partial, prefix: str) -> bool:
    """As `_leads_alone`, and no number follows a wildcard."""
    ordered = (partial.major is not None or _number(match[prefix + "minor"]) is None) and (
        partial.minor is not None or _number(match[prefix + "patch"]) is None
    )
    return ordered and _leads_alone(match, partial, prefix)


def _number(written: str | None) -> int | None:
    return None if written is None or written in "xX*" else int(written)
