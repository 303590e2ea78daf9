"""Sets of versions as unions of intervals, on the keys of one scheme."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from dependfix_core.versions.base import Answer, Key, Unparsable, Version, VersionScheme


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval.

    The key may lie between versions (below all pre-releases of 2.0.0, above
    all post-releases of 1.0), so it need not be the key of a version.
    """

    key: Key
    inclusive: bool
    version: Version | None = field(default=None, compare=False)
    """The version at the bound, where the order needs more than keys."""


ALL_PRERELEASES: Final = None
"""As `Interval.prereleases`: pre-releases are members by plain order."""

NO_PRERELEASES: Final[frozenset[Key]] = frozenset()


@dataclass(frozen=True, slots=True)
class Interval:
    """The versions between two bounds; None is no bound."""

    lower: Bound | None = None
    upper: Bound | None = None
    prereleases: frozenset[Key] | None = ALL_PRERELEASES
    """The releases (the leading part of a key) whose pre-releases are members; None: those of all."""

    def spans(self, key: Key) -> bool:
        """Whether `key` lies between the bounds, pre-release or not."""
        lower, upper = self.lower, self.upper
        if lower is not None and (key < lower.key or (key == lower.key and not lower.inclusive)):
            return False
        return upper is None or key < upper.key or (key == upper.key and upper.inclusive)

    @property
    def is_empty(self) -> bool:
        """Whether no key can lie between the bounds."""
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            return False
        return lower.key > upper.key or (lower.key == upper.key and not (lower.inclusive and upper.inclusive))

    def intersect(self, other: "Interval") -> "Interval":
        """What lies in both; possibly empty."""
        if self.prereleases is None or other.prereleases is None:
            prereleases = other.prereleases if self.prereleases is None else self.prereleases
        else:
            prereleases = self.prereleases & other.prereleases
        return Interval(_higher(self.lower, other.lower), _nearer(self.upper, other.upper), prereleases)


def _higher(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None:
        return right if left is None else left
    if left.key == right.key:
        return right if left.inclusive else left
    return left if left.key > right.key else right


def _nearer(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None:
        return right if left is None else left
    if left.key == right.key:
        return right if left.inclusive else left
    return left if left.key < right.key else right


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionSet:
    """A union of intervals, none of them empty; they may overlap and keep the order of their text."""

    scheme: VersionScheme
    intervals: tuple[Interval, ...]
    texts: frozenset[str] | None = None
    """When not None, only versions written exactly so are members (Python's `===`)."""

    @property
    def is_empty(self) -> bool:
        """Whether no version can be a member."""
        return not self.intervals

    def admits(self, version: Version | str, *, include_prereleases: bool = False) -> Answer:
        """Whether `version` is a member.

        Args:
            version: Unknown when it is no version of the scheme.
            include_prereleases: Judge pre-releases by plain order, whatever the grammar's own rule is.
        """
        if isinstance(version, str):
            parsed = self.scheme.try_parse(version)
            if isinstance(parsed, Unparsable):
                return Answer.UNKNOWN
            version = parsed
        if self.texts is not None and version.text.strip().lower() not in self.texts:
            return Answer.NO
        hidden = not include_prereleases and self.scheme.is_prerelease(version)
        unknown = False
        for interval in self.intervals:
            if hidden and interval.prereleases is not None and not _named(version.key, interval.prereleases):
                continue
            if self.scheme.is_total:
                if interval.spans(version.key):
                    return Answer.YES
            elif (member := self._judge(interval, version)).is_yes:
                return Answer.YES
            else:
                unknown = unknown or member is Answer.UNKNOWN
        return Answer.UNKNOWN if unknown else Answer.NO

    def intersect(self, other: "VersionSet") -> "VersionSet":
        """The versions that are members of both; the schemes must be the same."""
        if self.scheme.name != other.scheme.name:
            raise ValueError(f"{self.scheme.name} and {other.scheme.name} versions have nothing in common")
        both = (mine.intersect(theirs) for mine, theirs in product(self.intervals, other.intervals))
        if self.texts is None or other.texts is None:
            texts = other.texts if self.texts is None else self.texts
        else:
            texts = self.texts & other.texts
        return VersionSet(
            scheme=self.scheme, intervals=tuple(dict.fromkeys(i for i in both if not i.is_empty)), texts=texts
        )

    def _judge(self, interval: Interval, version: Version) -> Answer:
        """Membership where pairs can be incomparable: a bound that is no verdict makes it unknown."""
        answer = Answer.YES
        for bound, outward in ((interval.lower, -1), (interval.upper, 1)):
            if bound is None:
                continue
            sign = self.scheme.compare(version, bound.version or Version("", bound.key, version.scheme))
            if sign is None:
                answer = Answer.UNKNOWN
            elif sign == outward or (sign == 0 and not bound.inclusive):
                return Answer.NO
        return answer


def _named(key: Key, releases: frozenset[Any]) -> bool:
    return any(key[: len(release)] == release for release in releases)
