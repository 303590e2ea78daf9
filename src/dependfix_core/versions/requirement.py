"""A requirement as written in a manifest or lockfile, and the set of versions it admits."""

from dataclasses import dataclass

from dependfix_core.versions.base import Answer, Version
from dependfix_core.versions.intervals import Interval, VersionSet

Span = tuple[int, int]
"""Start and end in the requirement's text, end exclusive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparator:
    """One bound of a requirement and where it stands."""

    operator: str
    """As written, without spaces (`^`, `>=`, `~=`, `[`); empty when the version stands alone."""
    version: str
    """As written, with its wildcards, without operator and quotes."""
    span: Span
    """Operator and version."""
    version_span: Span
    intervals: tuple[Interval, ...]
    """What it alone admits, pre-releases by plain order; empty for a text match (`===`)."""
    arm: int = 0
    """Index of the alternative it belongs to; all comparators of one arm must hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One alternative of a requirement."""

    span: Span
    """Its text, without the spaces around it."""
    intervals: tuple[Interval, ...]
    """What it alone admits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """What a dependent asks of a package.

    Every span counts in `text`, which may hold more than versions
    (`npm:lodash@^4.17.15`); that part is left as it is.
    """

    grammar: str
    """The grammar it was read by: an ecosystem's name, or `poetry`, `gradle`, `pep440`, …"""
    text: str
    allowed: VersionSet
    comparators: tuple[Comparator, ...]
    """In the order of the text."""
    arms: tuple[Arm, ...]
    """At least one, in the order of the text."""
    is_soft: bool = False
    """Whether it only proposes its version: another one may win without breaking it (Maven, Gradle)."""
    alias: str | None = None
    """The package that is really meant, where the text renames it (`npm:lodash@^4.17.15`)."""

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The union that is admitted."""
        return self.allowed.intervals

    def admits(self, version: Version | str, *, include_prereleases: bool = False) -> Answer:
        """Whether the grammar's own rule admits `version`; see `VersionSet.admits`."""
        return self.allowed.admits(version, include_prereleases=include_prereleases)

    def intersect(self, other: "Requirement | VersionSet") -> VersionSet:
        """The versions that both admit."""
        return self.allowed.intersect(other.allowed if isinstance(other, Requirement) else other)
