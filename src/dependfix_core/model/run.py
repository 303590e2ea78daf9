"""What a run did, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from dependfix_core.model.plan import Plan

RunMode = Literal["report-only", "fix", "fix-and-pr"]
RunStatus = Literal["running", "done", "failed"]
Stage = Literal["fetch", "filter", "plan", "fix", "repair", "verify", "report", "deliver"]
ActionType = Literal["dependency-upgrade", "lockfile-repair", "verification", "branch-cleanup", "pull-request"]
Disposition = Literal["fixed", "partial", "failed", "skipped", "converged", "truncated", "planned"]
"""Where an alert is counted at the end of a run; each is counted exactly once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """One thing that a run did or tried."""

    type: ActionType
    repository: str
    target: str
    from_version: str | None = None
    to_version: str | None = None
    is_major: bool | None = None
    success: bool
    error: str | None = None
    strategy: str | None = None
    duration_ms: int | None = None
    diff: str | None = None
    no_op: bool | None = None
    file_path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunError:
    """A step that failed; the rest of the run went on."""

    repository: str
    stage: Stage
    message: str
    target: str | None = None
    category: str | None = None
    """An error code or a reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """A command for the user that makes the working copy true again; never run by us."""

    command: str
    folder: str
    """Relative to the top level; `.` for it."""
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """The working copy that was used."""

    path: str
    remote: str
    branch: str | None
    head: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertDisposition:
    """Where one alert ended, with the reason when it was not fixed."""

    alert: int
    disposition: Disposition
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """What applying a plan came to, for one repository."""

    plan: Plan
    dispositions: tuple[AlertDisposition, ...]
    actions: tuple[Action, ...] = ()
    errors: tuple[RunError, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    verification_passed: bool | None = None
    """`None` when nothing was to be verified."""
    lockfile_repaired: bool = False
    changed: Mapping[str, str] = field(default_factory=dict)
    """Path → unified diff of what was kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """Identity and time of a run."""

    run_id: str
    started_at: datetime
    finished_at: datetime | None
    mode: RunMode
    dry_run: bool = False
