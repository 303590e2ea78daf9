"""Alerts of many repositories brought together: by repository, by package, by advisory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dependfix_core.model.alert import Alert, Severity
from dependfix_core.versions import normalise_name

GroupBy = Literal["repository", "package", "advisory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertGroup:
    """Alerts that have one thing in common."""

    key: str
    """Repository, package or GHSA id, as it is shown."""
    ecosystem: str
    """Of a package; empty otherwise."""
    summary: str
    """Of an advisory; untrusted text, empty otherwise."""
    counts: tuple[int, ...]
    """Alerts by severity, in the order of `Severity`."""
    repositories: tuple[str, ...]
    """Which have such alerts, sorted."""

    @property
    def alerts(self) -> int:
        """How many there are."""
        return sum(self.counts)


def count_severities(alerts: Iterable[Alert]) -> tuple[int, ...]:
    """Alerts by severity, in the order of `Severity`."""
    counted = Counter(alert.severity for alert in alerts)
    return tuple(counted[severity] for severity in Severity)


def group_by(alerts: Iterable[Alert], what: GroupBy) -> tuple[AlertGroup, ...]:
    """Groups, the one with the most severe alerts first, then by name."""
    gathered: dict[tuple[str, str], list[Alert]] = {}
    for alert in alerts:
        gathered.setdefault(_identity(alert, what), []).append(alert)
    groups = [
        AlertGroup(
            key=_shown(found[0], what),
            ecosystem=found[0].ecosystem if what == "package" else "",
            summary=found[0].summary if what == "advisory" else "",
            counts=count_severities(found),
            repositories=tuple(sorted({alert.repository for alert in found}, key=str.lower)),
        )
        for found in gathered.values()
    ]
    return tuple(
        sorted(groups, key=lambda group: (tuple(-count for count in group.counts), group.key.lower(), group.ecosystem))
    )


def _identity(alert: Alert, what: GroupBy) -> tuple[str, str]:
    match what:
        case "repository":
            return ("", alert.repository.lower())
        case "package":
            return (alert.ecosystem, normalise_name(alert.ecosystem, alert.package_name).lower())
        case "advisory":
            return ("", alert.ghsa_id)


def _shown(alert: Alert, what: GroupBy) -> str:
    match what:
        case "repository":
            return alert.repository
        case "package":
            return alert.package_name or "unknown"
        case "advisory":
            return alert.ghsa_id or "unknown"
