"""The story of a run over one repository; read it top to bottom.

1. All open alerts are fetched: a target has to be safe for every one of them.
2. The files are found: a checkout of the repository, else the repository at
   its default branch, else none.
3. A plan is made on them; it accounts for every alert.
4. In a mode that writes, the plan is carried out.

Where alerts, files and records come from is handed in.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from dependfix_core.ecosystems.base import Ecosystems, PlannableEcosystem
from dependfix_core.errors import SourceError, StalePlanError
from dependfix_core.metadata.base import MetadataSource
from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import Plan, PlanProblem
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.progress import OnProgress, Progress, silent
from dependfix_core.model.run import Applied, RunMode
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.pipeline.select import select_alerts
from dependfix_core.trees import MemoryTree, TreeSource, drive
from dependfix_core.workspace.locate import FoundCheckout


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanRequest:
    """What is asked for, for one repository."""

    repository: str
    policy: ScanPolicy = field(default_factory=ScanPolicy)
    mode: RunMode = "report-only"
    work_dir: Path | None = None
    """The checkout that the caller names; `None` leaves the choice to the settings."""
    dry_run: bool = False
    allow_dirty: bool = False
    given: Plan | None = None
    """Exactly this plan is carried out, instead of a new one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedAlerts:
    """The open alerts of a repository."""

    repository: str
    """Its name now, in GitHub's spelling."""
    names: tuple[str, ...]
    """The name now and the one that was asked for."""
    alerts: tuple[Alert, ...]
    default_branch: str = ""
    problems: tuple[PlanProblem, ...] = ()
    """What could not be read; then the alerts are not all there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedFiles:
    """Where the files of a repository are read from; without a tree the plan is made from the alerts alone."""

    tree: TreeSource | None = None
    checkout: FoundCheckout | None = None
    problems: tuple[PlanProblem, ...] = ()


Planners: TypeAlias = Ecosystems[PlannableEcosystem]


NO_ECOSYSTEMS: Final[Planners] = Ecosystems(members=())
"""Where no files are read no reader is needed, and none is loaded."""


class RunSources(Protocol):
    """What a run works with."""

    @property
    def metadata(self) -> MetadataSource:
        """Registry records."""

    @property
    def ecosystems(self) -> Planners:
        """Readers and graphs."""

    async def fetch(self, request: ScanRequest, on_progress: OnProgress) -> FetchedAlerts:
        """All open alerts.

        Raises:
            DependfixError: They could not be measured.
        """

    async def open_files(self, request: ScanRequest, fetched: FetchedAlerts) -> OpenedFiles:
        """The files to plan on.

        Raises:
            DependfixError: The checkout that is asked for or needed cannot be used.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """Everything up to the plan."""

    request: ScanRequest
    fetched: FetchedAlerts
    files: OpenedFiles
    plan: Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanned:
    """A run over one repository."""

    planned: Planned
    applied: Applied | None
    """`None` in report-only runs."""
    duration_ms: int


Apply = Callable[[Planned, OnProgress], Awaitable[Applied]]
"""Carries a plan out, or shows what would come of it."""


async def plan_scan(
    request: ScanRequest, sources: RunSources, *, now: datetime, on_progress: OnProgress = silent
) -> Planned:
    """Fetch, find the files, plan.

    Raises:
        StalePlanError: The alerts are not those that the given plan answers.
        DependfixError: The alerts could not be measured, or the checkout cannot be used.
    """
    on_progress(Progress(message=f"reading the alerts of {request.repository}"))
    fetched = await sources.fetch(request, on_progress)
    if request.given is not None:
        _require_same_alerts(request.given, fetched)
    chosen = select_alerts(fetched.alerts, request.policy).chosen
    # Nothing to decide, nothing to read; a checkout that was named is looked at all the same.
    wants_files = bool(chosen) or request.work_dir is not None or request.mode == "fix"
    files = await sources.open_files(request, fetched) if wants_files else OpenedFiles()
    if request.given is not None:
        return Planned(request=request, fetched=fetched, files=files, plan=request.given)
    on_progress(Progress(message=f"planning {len(chosen)} of {len(fetched.alerts)} alerts"))
    plan = await _plan(fetched, files, request.policy, sources, now)
    return Planned(request=request, fetched=fetched, files=files, plan=plan)


def _require_same_alerts(plan: Plan, fetched: FetchedAlerts) -> None:
    if plan.repository.lower() not in {name.lower() for name in fetched.names}:
        raise StalePlanError(f"the plan is for {plan.repository}", hint="Plan again for this repository.")
    if {one.alert for one in plan.outcomes} != {alert.number for alert in fetched.alerts}:
        raise StalePlanError("the open alerts are not those that the plan was made for", hint="Plan again.")


async def scan(
    request: ScanRequest,
    sources: RunSources,
    *,
    now: datetime,
    apply: Apply | None = None,
    on_progress: OnProgress = silent,
) -> Scanned:
    """The whole run; `apply` is there in every mode but `report-only`.

    Raises:
        DependfixError: The alerts could not be measured, or the checkout cannot be used.
    """
    started = time.monotonic()
    planned = await plan_scan(request, sources, now=now, on_progress=on_progress)
    applied = await apply(planned, on_progress) if apply is not None else None
    return Scanned(planned=planned, applied=applied, duration_ms=round(1000 * (time.monotonic() - started)))


async def _plan(
    fetched: FetchedAlerts, files: OpenedFiles, policy: ScanPolicy, sources: RunSources, now: datetime
) -> Plan:
    try:
        return await _plan_on(fetched, files, policy, sources, now)
    except SourceError as error:
        if files.tree is None or files.checkout is not None:
            raise
        # GitHub stopped giving files half way: the alerts alone still say what to go to.
        problem = PlanProblem(stage="plan", message=f"files: {error.message}")
        return await _plan_on(fetched, OpenedFiles(problems=(*files.problems, problem)), policy, sources, now)


async def _plan_on(
    fetched: FetchedAlerts, files: OpenedFiles, policy: ScanPolicy, sources: RunSources, now: datetime
) -> Plan:
    listing = await files.tree.listing() if files.tree is not None else None
    step = plan_repository(
        fetched.alerts,
        listing,
        policy,
        sources.ecosystems if listing is not None else NO_ECOSYSTEMS,
        repository=fetched.repository,
        now=now,
        problems=(*fetched.problems, *files.problems),
    )
    return await drive(step, files.tree if files.tree is not None else MemoryTree({}), sources.metadata)
