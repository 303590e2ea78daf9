"""Requirements that are a version: Go's minimum versions, and the refs of GitHub Actions.

Sources: https://go.dev/ref/mod#minimal-version-selection,
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax
"""

import re
from typing import Final

from dependfix_core.versions.base import Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import assemble, stripped
from dependfix_core.versions.grammars.partial import Partial, after, at_least
from dependfix_core.versions.intervals import ALL_PRERELEASES, NO_PRERELEASES, Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement

_TAG: Final = re.compile(r"[vV]?(?P<version>(?P<major>[0-9]+)(?:\.(?P<minor>[0-9]+))?)")


def parse_go(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """The version of a `require` line: the least that will be used."""
    start, end = stripped(text, 0, len(text))
    version = scheme.try_parse(text[start:end])
    if isinstance(version, Unparsable):
        return Unparsable(text=text, scheme="go", reason="not a version")
    least = Interval(Bound(version.key, inclusive=True), None)
    return assemble("go", text, scheme, [((start, end), (_alone(text, start, end, least),))])


def parse_actions(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A tag: `v4` and `v4.1` float within their numbers, `v4.1.2` is exact; branches and commits are Unparsable."""
    start, end = stripped(text, 0, len(text))
    floating = _TAG.fullmatch(text, start, end)
    if floating:
        minor = floating["minor"]
        partial = Partial(int(floating["major"]), None if minor is None else int(minor), None)
        interval = Interval(at_least(partial), after(partial))
    else:
        version = scheme.try_parse(text[start:end])
        if isinstance(version, Unparsable):
            return Unparsable(text=text, scheme="actions", reason="dynamic")
        bound = Bound(version.key, inclusive=True)
        interval = Interval(bound, bound)
    policy = NO_PRERELEASES if floating else ALL_PRERELEASES
    parts = (_alone(text, start, end, interval),)
    return assemble("actions", text, scheme, [((start, end), parts)], prereleases=lambda _: policy)


def _alone(text: str, start: int, end: int, interval: Interval) -> Comparator:
    lead = 1 if text[start : start + 1] in ("v", "V") else 0
    return Comparator(
        operator="",
        version=text[start + lead : end],
        span=(start, end),
        version_span=(start + lead, end),
        intervals=(interval,),
    )
