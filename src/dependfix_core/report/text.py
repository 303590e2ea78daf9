"""What the report's forms share: words, order, times, and links that may be followed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dependfix_core.model.alert import parse_time
from dependfix_core.report.wire import NormalizedSecurityAlert, RunResult

SEVERITIES: Final = ("critical", "high", "medium", "low", "unknown")
_LINK: Final = re.compile(r"https?://[A-Za-z0-9.\-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~!$&*+,;=:@%/?#\-]*)?")

DISPOSITION_WORDS: Final[dict[str, str]] = {
    "fixed": "fixed",
    "planned": "fix planned",
    "partial": "partly fixed",
    "failed": "fix failed",
    "skipped": "not fixed",
    "converged": "nothing left to fix",
    "truncated": "beyond the limit",
}
"""Disposition → words for people, in the order of reports."""

PENDING_MERGE: Final = "fixed on the branch, pending merge"

REASON_WORDS: Final[dict[str, str]] = {
    "no-patch": "no patched version exists",
    "no-stable-patch": "only a pre-release is patched",
    "major-required": "needs a major version",
    "peer-conflict": "a peer dependency stands against it",
    "runtime-floor": "needs a newer runtime",
    "constraint-conflict": "another requirement stands against it",
    "bundled": "bundled inside another package",
    "override-unsupported": "the package manager has no overrides here",
    "non-registry-source": "not from a registry",
    "patched-dependency": "patched by the project",
    "dynamic-version": "the version is computed",
    "parent-bump-required": "a parent has to move first",
    "no-wheel-for-runtime": "no wheel for this runtime",
    "unparsable-version": "a version cannot be read",
    "unsupported-lock-format": "the lockfile's format is not read",
    "metadata-unavailable": "the registry gave no answer",
    "tool-required": "the package manager has to write it",
    "integrity-unavailable": "the registry gives no checksum",
    "manifest-missing": "the file is not there",
    "cooldown": "younger than the project's release-age rule",
    "malware": "malware: remove it and rotate secrets",
    "below-threshold": "below the threshold",
    "unknown-severity": "severity unknown",
    "dismissed": "dismissed",
    "auto-dismissed": "dismissed by a rule",
    "fixed": "already fixed",
    "withdrawn": "the advisory was withdrawn",
    "truncated": "beyond the limit of alerts",
    "filtered": "not asked for",
    "unreadable": "the alert could not be read",
}
"""Reason → words for people; the code itself stays beside it in the files for programs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """One part of a chart."""

    key: str
    label: str
    count: int


def severity_slices(result: RunResult) -> tuple[Slice, ...]:
    """Alerts by severity, most severe first; severities without alerts are left out."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for alert in result.alerts:
        counts[alert.severity if alert.severity in counts else "unknown"] += 1
    return tuple(Slice(key=key, label=key, count=count) for key, count in counts.items() if count)


def outcome_slices(result: RunResult) -> tuple[Slice, ...]:
    """Alerts by what became of them, from the counters, so that reports of the original have them too."""
    summary = result.summary
    counts = {
        "fixed": summary.alerts_fixed,
        "planned": summary.alerts_planned,
        "partial": summary.alerts_partial,
        "failed": summary.alerts_failed,
        "skipped": summary.alerts_skipped,
        "converged": summary.alerts_converged,
        "truncated": summary.alerts_truncated,
    }
    slices = [
        Slice(key=key, label=disposition_words(key, result), count=count) for key, count in counts.items() if count
    ]
    # The original counts fixed packages, not alerts: what no counter explains is shown as such.
    rest = len(result.alerts) - sum(part.count for part in slices)
    if rest > 0:
        slices.append(Slice(key="open", label="open", count=rest))
    return tuple(slices)


def disposition_words(disposition: str, result: RunResult) -> str:
    """What became of an alert, in words."""
    if disposition == "fixed" and result.config.mode == "fix-and-pr":
        return PENDING_MERGE
    return DISPOSITION_WORDS.get(disposition, disposition)


def outcome_words(alert: NormalizedSecurityAlert, result: RunResult) -> tuple[str, str]:
    """(what became of `alert`, why) in words; the reason may be empty."""
    if not alert.disposition:
        return ("fix known" if alert.fixable else "no fix known"), ""
    return disposition_words(alert.disposition, result), REASON_WORDS.get(alert.reason or "", alert.reason or "")


def safe_link(address: str | None) -> str:
    """`address` if it is a plain web address, else nothing."""
    return address if address and len(address) < 2000 and _LINK.fullmatch(address) else ""


def advisory_link(rule_id: str) -> str:
    """The advisory's public page, for a GHSA id."""
    return f"https://github.com/advisories/{rule_id}" if re.fullmatch(r"GHSA(-[0-9a-z]{4}){3}", rule_id) else ""


def repositories_title(result: RunResult) -> str:
    """The repository, or how many there are."""
    names = [stats.repository for stats in result.repositories] or list(result.config.repositories)
    if len(names) == 1:
        return names[0]
    return f"{len(names)} repositories" if names else "no repository"


def readable_time(text: str | None) -> str:
    """A wire time for people, in UTC."""
    time = parse_time(text)
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else (text or "")


def readable_duration(result: RunResult) -> str:
    """How long the run took; empty when it is not known."""
    begin, end = parse_time(result.started_at), parse_time(result.finished_at)
    if begin is None or end is None:
        return ""
    seconds = max(0.0, (end - begin).total_seconds())
    return f"{seconds:.1f} s" if seconds < 90 else f"{round(seconds / 60)} min"


def version_change(before: str | None, after: str | None) -> str:
    """`1.0 → 2.0`, or the one that is known."""
    return " → ".join(part for part in (before, after) if part)


def joined(items: Sequence[str], *, at_most: int) -> str:
    """A list for people, cut with a count of the rest."""
    if len(items) <= at_most:
        return ", ".join(items)
    return f"{', '.join(items[:at_most])} and {len(items) - at_most} more"


def empty_words(result: RunResult) -> str:
    """What a report without alerts says: none is claimed only where all of them were read."""
    if not result.summary.repositories_scanned:
        return "The alerts could not be read: this says nothing about them."
    if any(error.stage == "fetch" for error in result.errors):
        return "No alerts in what could be read: the rest says nothing yet."
    return "No alerts."
