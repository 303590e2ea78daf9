"""What an alert is, once it has been read: one frozen value for every ecosystem.

An alert is GitHub's statement that an advisory touches one manifest of one
repository. Everything here is data; texts from advisories are already cleaned
and cut. Ecosystems, states, relationships and classifications are open
strings, because GitHub adds new ones.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Final, Literal, TypeAlias, get_args

Threshold: TypeAlias = Literal["critical", "high", "medium", "low", "all"]
"""Keeps this level and above; `all` keeps the unknown ones too."""

THRESHOLDS: Final[tuple[Threshold, ...]] = get_args(Threshold)

AlertKey: TypeAlias = tuple[str, int]
"""(repository in lower case, number): numbers are unique within a repository only."""


class Severity(Enum):
    """How bad it is, most severe first. Deliberately without `<`: sort by `rank`."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """0 for critical up to 4 for unknown."""
        return _RANKS[self.value]

    def meets(self, threshold: Threshold) -> bool:
        """Whether it is at `threshold` or above; an unknown one only under `all`."""
        if threshold == "all":
            return True
        return self is not Severity.UNKNOWN and self.rank <= _RANKS[threshold]

    @classmethod
    def of(cls, text: str | None) -> "Severity":
        """The severity that GitHub (or npm, with `moderate`) calls so; `UNKNOWN` for any other text."""
        known = _BY_NAME.get(text or "")
        return known if known is not None else _BY_NAME.get((text or "").strip().lower(), cls.UNKNOWN)


_RANKS: Final[dict[str, int]] = {severity.value: rank for rank, severity in enumerate(Severity)}
_BY_NAME: Final[dict[str, Severity]] = {severity.value: severity for severity in Severity} | {
    "moderate": Severity.MEDIUM
}


class AlertState(StrEnum):
    """The states that are known; `Alert.state` may hold others."""

    OPEN = "open"
    FIXED = "fixed"
    DISMISSED = "dismissed"
    AUTO_DISMISSED = "auto_dismissed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, kw_only=True, slots=True)
class AffectedRange:
    """One line of versions that an advisory calls vulnerable."""

    vulnerable_range: str
    """As GitHub writes it: comparators joined by commas, all of which must hold."""
    first_patched_version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """One Dependabot alert. Times are ISO 8601 in UTC as GitHub sends them, empty or None when absent."""

    repository: str
    """`owner/name`."""
    number: int
    """Unique within `repository`."""
    state: str = AlertState.OPEN.value
    severity: Severity = Severity.UNKNOWN
    """That of the alert's own vulnerability entry, which can differ from the advisory's."""
    ecosystem: str = ""
    """GitHub's name (`npm`, `pip`, `rust`, …); empty when it could not be read."""
    package_name: str = ""
    """As displayed; empty when it could not be read."""
    manifest_path: str = ""
    """Relative to the top of the repository; hostile input until checked. Empty when not stated."""
    ghsa_id: str = ""
    cve_id: str | None = None
    summary: str = ""
    """Untrusted text: one line, cleaned, cut."""
    html_url: str = ""
    vulnerable_range: str = ""
    """Of the alert's own entry."""
    first_patched_version: str | None = None
    """Of the alert's own entry; a hint of the advisory's editors, not a target."""
    other_ranges: tuple[AffectedRange, ...] = ()
    """The advisory's other entries for the same package: other release lines."""
    relationship: str | None = None
    """`direct`, `transitive`, `unknown`, `inconclusive`, or what GitHub adds."""
    scope: str | None = None
    """`runtime` or `development`."""
    version_requirement: str | None = None
    """A lockfile's version or a manifest's constraint; empty means unconstrained. Not the installed version."""
    classification: str = "general"
    """`general` or `malware`."""
    cvss_score: float | None = None
    epss: float | None = None
    """Probability of exploitation, 0 to 1."""
    cwe_ids: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    fixed_at: str | None = None
    auto_dismissed_at: str | None = None
    dismissed_at: str | None = None
    dismissed_by: str | None = None
    dismissed_reason: str | None = None
    dismissed_comment: str | None = None
    """Untrusted text, cleaned."""
    dismissal_request: str | None = None
    """Status of a request to dismiss it, where dismissing needs approval."""
    withdrawn_at: str | None = None
    """When the advisory was withdrawn; such an alert is not fixed."""
    assignees: tuple[str, ...] = ()
    default_branch: str = ""
    """Of the repository; empty until known."""
    unreadable: tuple[str, ...] = ()
    """Names of the payload's fields that had a shape nobody knows."""

    @property
    def key(self) -> AlertKey:
        """What tells alerts of several repositories apart."""
        return (self.repository.lower(), self.number)

    @property
    def affected_ranges(self) -> tuple[AffectedRange, ...]:
        """All ranges of the advisory for this package, the alert's own first."""
        own = AffectedRange(vulnerable_range=self.vulnerable_range, first_patched_version=self.first_patched_version)
        return (own, *self.other_ranges)

    @property
    def dependency_type(self) -> Literal["direct", "transitive"] | None:
        """The relationship where it is one of the two, else None."""
        if self.relationship == "direct":
            return "direct"
        return "transitive" if self.relationship == "transitive" else None

    @property
    def is_malware(self) -> bool:
        """Whether the package itself is hostile: to be removed, not upgraded."""
        return self.classification == "malware"

    @property
    def is_readable(self) -> bool:
        """Whether package and range are known, so that a target can be looked for."""
        return bool(self.ecosystem and self.package_name and self.vulnerable_range)

    def age_days(self, now: datetime) -> int:
        """Whole days from creation to `now` (aware); 0 when the creation time is not known."""
        created = parse_time(self.created_at)
        return max(0, (now - created).days) if created is not None else 0


def parse_time(text: str | None) -> datetime | None:
    """An aware time from ISO 8601 text; None when it is empty, not a time, or has no zone."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def by_severity(alert: Alert) -> tuple[int, str, int]:
    """Sort key: most severe first, then repository, then number."""
    return (alert.severity.rank, alert.repository.lower(), alert.number)
