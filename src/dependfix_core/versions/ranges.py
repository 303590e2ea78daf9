"""Which versions an advisory calls vulnerable.

GitHub's grammar is comparators joined by commas, all of which must hold.
Membership is by plain order: the pre-releases of 2.0.0 lie inside `< 2.0.0`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dependfix_core.versions.base import Answer, Unparsable, Version, VersionScheme
from dependfix_core.versions.intervals import Bound, Interval, VersionSet
from dependfix_core.versions.registry import scheme_for

_COMPARATOR: Final = re.compile(r"\s*(<=|>=|<|>|==?)\s*([^\s,<>=]+)\s*")
_ZERO: Final = re.compile(r"v?0")
_ACCEPTED_SIGNS: Final = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "=": (0,)}
MAX_RANGE_CHARS: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeComparator:
    """One bound, such as `< 2.0.0`."""

    operator: str
    """One of `<`, `<=`, `>`, `>=`, `=`."""
    version: Version

    @property
    def is_upper(self) -> bool:
        """Whether it ends the range towards newer versions."""
        return self.operator in ("<", "<=", "=")

    @property
    def is_lower(self) -> bool:
        """Whether it begins the range."""
        return self.operator in (">", ">=", "=")


@dataclass(frozen=True, kw_only=True, slots=True)
class VulnerableRange:
    """A `vulnerable_version_range`, all of whose comparators must hold."""

    ecosystem: str
    text: str
    comparators: tuple[RangeComparator, ...]
    """May be empty: then every version is inside (`>= 0`, `> 0`)."""

    @staticmethod
    def parse(ecosystem: str, text: str) -> "VulnerableRange | Unparsable":
        """The range that `text` says, in any spacing and order; Unparsable too for an unknown ecosystem."""
        scheme = scheme_for(ecosystem)
        if scheme is None:
            return Unparsable(text=text, scheme=ecosystem, reason="versions of this ecosystem cannot be compared")
        comparators: list[RangeComparator] = []
        if len(text) > MAX_RANGE_CHARS:
            return Unparsable(text=text[:MAX_RANGE_CHARS], scheme=scheme.name, reason="too long")
        for part in text.split(","):
            match = _COMPARATOR.fullmatch(part)
            if match is None:
                return Unparsable(text=text, scheme=scheme.name, reason="not a comparator with a version")
            operator, bound = match[1], match[2]
            if operator in (">", ">=") and _ZERO.fullmatch(bound):
                continue  # The advisory's way to say "all", pre-releases of 0.0.0 included.
            version = scheme.try_parse_bound(bound)
            if isinstance(version, Unparsable):
                return version
            comparators.append(
                RangeComparator(operator=operator[:1] if operator == "==" else operator, version=version)
            )
        return VulnerableRange(ecosystem=scheme.name, text=text, comparators=tuple(comparators))

    def contains(self, version: Version) -> Answer:
        """Whether `version` is vulnerable by this range; unknown where the order is."""
        scheme = self._scheme()
        unknown = False
        for comparator in self.comparators:
            sign = scheme.compare(version, comparator.version)
            if sign is None:
                unknown = True
            elif sign not in _ACCEPTED_SIGNS[comparator.operator]:
                return Answer.NO
        return Answer.UNKNOWN if unknown else Answer.YES

    def as_set(self) -> VersionSet:
        """The same versions as intervals."""
        interval = Interval()
        for comparator in self.comparators:
            inclusive = comparator.operator.endswith("=")
            bound = Bound(comparator.version.key, inclusive=inclusive)
            interval = interval.intersect(
                Interval(bound if comparator.is_lower else None, bound if comparator.is_upper else None)
            )
        return VersionSet(scheme=self._scheme(), intervals=() if interval.is_empty else (interval,))

    @property
    def has_end(self) -> bool:
        """Whether any version can be newer than the whole range."""
        return any(comparator.is_upper for comparator in self.comparators)

    def is_in_gap(self, version: Version, first_patched: Version | None) -> Answer:
        """Whether `version` left the range at its upper end, but not as far as the first patched version of its line.

        Such a version (yanked or broken, as a rule) is not safe although it is
        outside the range.
        """
        if first_patched is None or not self.has_end:
            return Answer.NO
        scheme = self._scheme()
        if not scheme.same_line(version, first_patched):
            return Answer.NO
        below = scheme.compare(version, first_patched)
        if below is None:
            return Answer.UNKNOWN
        if below >= 0:
            return Answer.NO
        unknown = False
        for comparator in self.comparators:
            if not comparator.is_upper:
                continue
            sign = scheme.compare(version, comparator.version)
            if sign is None:
                unknown = True
            elif sign > 0 or (sign == 0 and comparator.operator == "<"):
                return Answer.YES
        return Answer.UNKNOWN if unknown else Answer.NO

    def _scheme(self) -> VersionScheme:
        scheme = scheme_for(self.ecosystem)
        assert scheme is not None
        return scheme


def is_unsafe(version: Version, entries: Iterable[tuple[VulnerableRange | Unparsable, Version | None]]) -> Answer:
    """Whether any entry, a range with its first patched version, forbids `version`, by its range or by the gap.

    A range that could not be read makes it unknown, never safe.
    """
    unknown = False
    for vulnerable, first_patched in entries:
        if isinstance(vulnerable, Unparsable):
            unknown = True
            continue
        inside = vulnerable.contains(version)
        if inside.is_no:
            inside = vulnerable.is_in_gap(version, first_patched)
        if inside.is_yes:
            return Answer.YES
        unknown = unknown or not inside.is_no
    return Answer.UNKNOWN if unknown else Answer.NO
