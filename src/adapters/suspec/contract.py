"""Which checks contract is understood: its version, its checks and the kinds of artifact."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["hard-error", "warning"]
Level: TypeAlias = Literal["clean", "warning", "blocking"]

VERSION: Final = "0.26.0"

CHECKED_TYPES: Final = ("spec", "task", "change-plan", "campaign")
UNCHECKED_TYPES: Final = ("inventory", "audit", "research", "panel")
"""Recognised, and nothing about them is validated."""

FILE_SET: Final = "(file set)"
"""Stands as the path of the one report that is about several files; never the path of an artifact."""

LEVELS: Final[tuple[Level, ...]] = ("clean", "warning", "blocking")
"""From best to worst; the position is the exit code of a run whose worst report has that level."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One row of the contract, and where its findings may stand."""

    id: str
    name: str
    severity: Severity
    reported_for: str
    """The artifact type, or `FILE_SET`."""


def _checks(reported_for: str, *rows: tuple[str, str, Severity]) -> dict[str, Check]:
    return {id_: Check(id=id_, name=name, severity=severity, reported_for=reported_for) for id_, name, severity in rows}


CHECKS: Final[dict[str, Check]] = {
    **_checks(
        "spec",
        ("C001", "unique-ids", "hard-error"),
        ("C003", "verify-with", "hard-error"),
        ("C004", "one-strength-word", "hard-error"),
        ("C007", "no-tbd-at-ready", "hard-error"),
        ("C008", "sources-named", "warning"),
        ("C009", "broken-source-link", "hard-error"),
        ("C015", "citation-resolves", "warning"),
        ("C019", "malformed-requirement-heading", "warning"),
        ("C021", "intent-present", "hard-error"),
        ("C025", "spec-shape", "hard-error"),
        ("C028", "requirement-shape", "hard-error"),
    ),
    **_checks(
        "task",
        ("C022", "task-shape", "hard-error"),
        ("C023", "task-evidence", "hard-error"),
        ("C024", "closed-task-resolved", "hard-error"),
    ),
    **_checks(
        "change-plan",
        ("C010", "preserves-refs-resolve", "hard-error"),
        ("C011", "waves-present", "warning"),
    ),
    **_checks(
        "campaign",
        ("C029", "campaign-shape", "hard-error"),
        ("C030", "campaign-authority", "hard-error"),
        ("C031", "campaign-ready", "hard-error"),
    ),
    **_checks(FILE_SET, ("C002", "duplicate-id", "hard-error")),
}
"""By id; exactly these, no more and no fewer."""
