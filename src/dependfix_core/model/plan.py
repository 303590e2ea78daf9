"""Decisions as values: what to move, to where, and why not. Nothing here has been done yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey

Strategy = Literal[
    "lock-in-range",
    "parent-refresh",
    "manifest-bump",
    "parent-bump",
    "override",
    "override-edit",
    "pin-bump",
    "mixed",
]
OutcomeKind = Literal["fix", "partial", "refuse", "converged", "not-present", "skip"]
RefusalReason = Literal[
    "no-patch",
    "no-stable-patch",
    "major-required",
    "peer-conflict",
    "runtime-floor",
    "constraint-conflict",
    "bundled",
    "override-unsupported",
    "non-registry-source",
    "patched-dependency",
    "dynamic-version",
    "parent-bump-required",
    "no-wheel-for-runtime",
    "unparsable-version",
    "unsupported-lock-format",
    "metadata-unavailable",
    "tool-required",
    "integrity-unavailable",
    "manifest-missing",
    "cooldown",
    "malware",
]
SkipReason = Literal[
    "below-threshold",
    "unknown-severity",
    "dismissed",
    "auto-dismissed",
    "fixed",
    "withdrawn",
    "truncated",
    "filtered",
    "unreadable",
]
Reason = RefusalReason | SkipReason
REFUSAL_REASONS: Final[frozenset[str]] = frozenset(get_args(RefusalReason))
SKIP_REASONS: Final[frozenset[str]] = frozenset(get_args(SkipReason))


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One locked copy goes to another version, appears (`added`) or goes (`removed`)."""

    where: str
    package_name: str
    from_version: str | None
    to_version: str | None
    strategy: Strategy
    added: bool = False
    removed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One text of a manifest reads `from_text` and shall read `to_text`.

    An entry that is added has `from_text` `None`; `to_text` is never `None`.
    """

    path: str
    at: str
    from_text: str | None
    to_text: str
    kind: str = "constraint"
    """constraint, override, catalog, pin, property, gate-exclusion"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remediation:
    """A set of moves and edits that is applied, verified and kept or undone together."""

    unit: str
    ecosystem: str
    package_name: str
    strategy: Strategy
    moves: tuple[Move, ...]
    edits: tuple[Edit, ...] = ()
    alerts: tuple[int, ...] = ()
    is_major: bool = False
    needs_tool: bool = False
    unconfirmed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceVerdict:
    """A vulnerable copy, where it shall go, and how it came in."""

    where: str
    version: str
    to_version: str | None = None
    via: tuple[tuple[str, ...], ...] = ()
    """Up to three chains from a root to the instance."""
    reason: RefusalReason | None = None
    """Why this copy stays, in a partial outcome."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertOutcome:
    """What becomes of one alert; a plan has exactly one for each alert that was fetched."""

    alert: int
    outcome: OutcomeKind
    reason: Reason | None = None
    blocked_by: str | None = None
    """The edge that blocks, for a person: "parent X 1.2 asks `~2.3`"."""
    instances: tuple[InstanceVerdict, ...] = ()
    next_safe_version: str | None = None
    detail: str = ""
    """One line more: which version converged, when a cooldown opens, what to do about malware."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanProblem:
    """Something that could not be read while planning."""

    stage: Literal["fetch", "filter", "plan"]
    message: str
    target: str = ""
    """File, package or alert that it is about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything that was decided for one repository, on one state of its files.

    `remediations` are sorted by unit, package and moves, `outcomes` by alert.
    `files` (path → blob id of everything that was read) gives `base`; with
    `records`, applying the plan needs no second opinion from the network.
    """

    plan_id: str
    base: str
    repository: str
    policy: ScanPolicy
    complete: bool
    remediations: tuple[Remediation, ...]
    outcomes: tuple[AlertOutcome, ...]
    problems: tuple[PlanProblem, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[RecordKey, Record] = field(default_factory=dict)
    diff: str = ""
    diff_truncated: bool = False
