"""Interval notation of NuGet, Maven and Gradle (`[1.0,2.0)`), and their bare versions.

Sources: https://learn.microsoft.com/en-us/nuget/concepts/package-versioning#version-ranges,
https://maven.apache.org/pom.html#dependency-version-requirement-specification,
https://docs.gradle.org/current/userguide/dependency_versions.html
"""

import re
from typing import Final

from dependfix_core.versions.base import Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import Draft, assemble, stripped
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement, Span
from dependfix_core.versions.semver import identifiers_key

_INTERVAL: Final = re.compile(
    r"(?P<open>[\[(])\s*(?:(?P<only>[^\[\](),\s]+)\s*\]|(?P<low>[^\[\](),\s]*)\s*,\s*(?P<high>[^\[\](),\s]*)\s*(?P<close>[\])]))"
)
_GRADLE_INTERVAL: Final = re.compile(
    r"(?P<open>[\[(\]])\s*(?:(?P<only>[^\[\](),\s]+)\s*\]|(?P<low>[^\[\](),\s]*)\s*,\s*(?P<high>[^\[\](),\s]*)\s*(?P<close>[\])\[]))"
)
_DYNAMIC: Final = re.compile(r".*[$%].*|\s*(?:latest|release|latest\.\w+)\s*", re.IGNORECASE | re.DOTALL)
_FLOATING: Final = re.compile(
    r"(?P<head>[0-9]+(?:\.[0-9]+){0,3})?(?P<dot>\.)?\*(?:-\*)?|(?P<base>[0-9.]+)-(?P<pre>[0-9A-Za-z.-]*)\*"
)
_PREFIX: Final = re.compile(r"(?P<head>[0-9]+(?:\.[0-9]+)*)?\.?\+")


def parse_nuget(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A version of a `PackageReference` or of a dependency: bare is the least version."""
    if _DYNAMIC.fullmatch(text):
        return Unparsable(text=text, scheme="nuget", reason="dynamic")
    start, end = stripped(text, 0, len(text))
    draft = _interval(text, (start, end), scheme, _INTERVAL)
    if draft is not None:
        return assemble("nuget", text, scheme, [draft])
    floating = _FLOATING.fullmatch(text, start, end)
    if floating:
        interval = _floating(floating)
        return assemble("nuget", text, scheme, [((start, end), (_alone(text, start, end, interval),))])
    version = scheme.try_parse(text[start:end])
    if isinstance(version, Unparsable):
        return Unparsable(text=text, scheme="nuget", reason="not a version")
    least = Interval(Bound(version.key, inclusive=True), None)
    return assemble("nuget", text, scheme, [((start, end), (_alone(text, start, end, least),))])


def parse_maven(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A version of a dependency in a pom: bare is a wish, ranges are hard and may be several."""
    if _DYNAMIC.fullmatch(text):
        return Unparsable(text=text, scheme="maven", reason="dynamic")
    start, end = stripped(text, 0, len(text))
    if text[start : start + 1] not in ("[", "("):
        return _bare("maven", text, (start, end), scheme)
    drafts: list[Draft] = []
    at = start
    while at < end:
        match = _INTERVAL.match(text, at, end)
        draft = _interval(text, match.span(), scheme, _INTERVAL) if match else None
        if match is None or draft is None:
            return Unparsable(text=text, scheme="maven", reason="not a range")
        drafts.append(draft)
        at = stripped(text, match.end(), end)[0]
        if at < end:
            if text[at] != ",":
                return Unparsable(text=text, scheme="maven", reason="not a range")
            at = stripped(text, at + 1, end)[0]
    return assemble("maven", text, scheme, drafts)


def parse_gradle(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """The version of a coordinate or catalog, or one value of a rich version (`strictly`, `require`, `prefer`, `reject`).

    `1.2!!` is exact; a preferred version behind `!!` is not looked at.
    """
    start, end = stripped(text, 0, len(text))
    strict = text.find("!!", start, end)
    if strict >= 0:
        end = strict
    prefix = _PREFIX.fullmatch(text, start, end)
    if prefix:
        interval = _prefixed(prefix["head"], scheme)
        return assemble("gradle", text, scheme, [((start, end), (_alone(text, start, end, interval),))])
    if _DYNAMIC.fullmatch(text, start, end):
        return Unparsable(text=text, scheme="gradle", reason="dynamic")
    draft = _interval(text, (start, end), scheme, _GRADLE_INTERVAL)
    if draft is not None:
        return assemble("gradle", text, scheme, [draft])
    return _bare("gradle", text, (start, end), scheme, is_soft=strict < 0)


def _bare(
    grammar: str, text: str, span: Span, scheme: VersionScheme, *, is_soft: bool = True
) -> Requirement | Unparsable:
    version = scheme.try_parse(text[slice(*span)])
    if isinstance(version, Unparsable):
        return Unparsable(text=text, scheme=grammar, reason="not a version")
    bound = Bound(version.key, inclusive=True, version=version)
    parts = (_alone(text, *span, Interval(bound, bound)),)
    return assemble(grammar, text, scheme, [(span, parts)], is_soft=is_soft)


def _alone(text: str, start: int, end: int, interval: Interval) -> Comparator:
    return Comparator(
        operator="", version=text[start:end], span=(start, end), version_span=(start, end), intervals=(interval,)
    )


def _interval(text: str, span: Span, scheme: VersionScheme, pattern: re.Pattern[str]) -> Draft | None:
    match = pattern.fullmatch(text, *span)
    if match is None:
        return None
    if match["only"] is not None:
        version = scheme.try_parse(match["only"])
        if match["open"] != "[" or isinstance(version, Unparsable):
            return None
        bound = Bound(version.key, inclusive=True, version=version)
        exact = Comparator(
            operator="[]",
            version=match["only"],
            span=span,
            version_span=match.span("only"),
            intervals=(Interval(bound, bound),),
        )
        return span, (exact,)
    parts: list[Comparator] = []
    for group, bracket in (("low", "open"), ("high", "close")):
        if not match[group]:
            continue
        floating = _FLOATING.fullmatch(match[group]) if scheme.name == "nuget" and group == "low" else None
        version = scheme.try_parse((floating["head"] or "0") if floating else match[group])
        if isinstance(version, Unparsable):
            return None
        bound = Bound(version.key, inclusive=match[bracket] == ("[" if group == "low" else "]"), version=version)
        interval = Interval(bound, None) if group == "low" else Interval(None, bound)
        edge = match.span(bracket)
        whole = (edge[0], match.end(group)) if group == "low" else (match.start(group), edge[1])
        parts.append(
            Comparator(
                operator=match[bracket],
                version=match[group],
                span=whole,
                version_span=match.span(group),
                intervals=(interval,),
            )
        )
    return span, tuple(parts)


def _floating(match: re.Match[str]) -> Interval:
    if match["base"] is not None:
        numbers = tuple(map(int, match["base"].strip(".").split(".")))
        padded = (*numbers, 0, 0, 0)[:4]
        pre = match["pre"].rstrip(".-").lower()
        lowest = identifiers_key(pre) if pre else ()
        return Interval(Bound((*padded, 0, lowest), inclusive=True), Bound((*padded, 1, ()), inclusive=True))
    if match["head"] is None:
        return Interval()
    numbers = tuple(map(int, match["head"].split(".")))
    low, high = (*numbers, 0, 0, 0)[:4], (*numbers[:-1], numbers[-1] + 1, 0, 0, 0)[:4]
    return Interval(Bound((*low, 1, ()), inclusive=True), Bound((*high, 0, ()), inclusive=False))


def _prefixed(head: str | None, scheme: VersionScheme) -> Interval:
    if head is None:
        return Interval()
    numbers = list(map(int, head.split(".")))
    low = scheme.parse(head)
    numbers[-1] += 1
    high = scheme.parse(".".join(map(str, numbers)))
    return Interval(Bound(low.key, inclusive=True, version=low), Bound(high.key, inclusive=False, version=high))
