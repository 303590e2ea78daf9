"""Turns what happened into the one result: every alert once, counters that add up, a fixed order."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from dependfix_core.model.alert import Alert, Severity, by_severity
from dependfix_core.model.plan import (
    AlertOutcome,
    InstanceVerdict,
    Move,
    OutcomeKind,
    Plan,
    Remediation,
    Strategy,
)
from dependfix_core.model.run import (
    Action,
    AlertDisposition,
    Applied,
    Checkout,
    Disposition,
    NextStep,
    RunError,
    RunInfo,
    RunStatus,
)
from dependfix_core.report.wire import (
    NormalizedSecurityAlert,
    PlanEdit,
    PlanInstance,
    PlanMove,
    PlanOutcome,
    PlanRemediation,
    PlanView,
    PullRequest,
    RepositoryStats,
    RunAction,
    RunConfig,
    RunProblem,
    RunResult,
    RunSummary,
    WireCheckout,
    WireNextStep,
    wire_time,
)
from dependfix_core.versions import Version, scheme_for

_FIX_STRATEGY: Final[dict[Strategy, str]] = {
    "lock-in-range": "lock",
    "parent-refresh": "lock",
    "manifest-bump": "upgrade",
    "parent-bump": "upgrade",
    "pin-bump": "upgrade",
    "override-edit": "override",
    "override": "override",
}
_LADDER: Final[tuple[Strategy, ...]] = (
    "lock-in-range",
    "parent-refresh",
    "manifest-bump",
    "pin-bump",
    "parent-bump",
    "override-edit",
    "override",
)
"""Least intrusive first."""
_WAITS_FOR_UPSTREAM: Final = ("no-patch", "no-stable-patch")
_DISPOSITION_OF_PLANNED: Final[dict[OutcomeKind, Disposition]] = {
    "fix": "planned",
    "partial": "planned",
    "refuse": "skipped",
    "skip": "skipped",
    "converged": "converged",
    "not-present": "converged",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryRun:
    """What happened in one repository; `plan` is absent when its alerts could not be read or judged."""

    repository: str
    default_branch: str = ""
    alerts: tuple[Alert, ...] = ()
    plan: Plan | None = None
    applied: Applied | None = None
    """Absent in report-only and dry runs."""
    errors: tuple[RunError, ...] = ()
    pull_requests: tuple[PullRequest, ...] = ()
    checkout: Checkout | None = None
    duration_ms: int = 0
    measured: bool = True
    """Whether the alerts were read: not measured is never the same as none."""


def planned_dispositions(plan: Plan) -> tuple[AlertDisposition, ...]:
    """Where each alert is counted when nothing is applied."""
    return tuple(
        AlertDisposition(
            alert=outcome.alert,
            disposition="truncated" if outcome.reason == "truncated" else _DISPOSITION_OF_PLANNED[outcome.outcome],
            reason=outcome.reason,
        )
        for outcome in plan.outcomes
    )


def normalise_alert(alert: Alert, *, now: datetime) -> NormalizedSecurityAlert:
    """The wire form of `alert` before planning."""
    return _normalised(alert, now, alert.default_branch, None, (), None)


def _normalised(
    alert: Alert,
    now: datetime,
    default_branch: str,
    outcome: AlertOutcome | None,
    answers: Sequence[Remediation],
    disposition: AlertDisposition | None,
) -> NormalizedSecurityAlert:
    fixable, strategy, version = bool(alert.first_patched_version), None, alert.first_patched_version or ""
    if outcome is not None and outcome.outcome != "skip":
        fixable = outcome.outcome in ("fix", "partial")
        strategy = _fix_strategy(alert, outcome, answers)
        version = _lowest_target(alert.ecosystem, outcome.instances) or outcome.next_safe_version or ""
    return NormalizedSecurityAlert(
        id=alert.number,
        repository=alert.repository,
        default_branch=default_branch,
        severity=alert.severity.value,
        package_ecosystem=alert.ecosystem,
        package_name=alert.package_name,
        manifest_path=alert.manifest_path,
        rule_id=alert.ghsa_id,
        summary=alert.summary,
        html_url=alert.html_url,
        fixable=fixable,
        fix_strategy=strategy,
        recommended_version=version,
        dependency_type=alert.dependency_type,
        cve_id=alert.cve_id,
        classification=alert.classification,
        vulnerable_version_range=alert.vulnerable_range,
        first_patched_version=alert.first_patched_version,
        scope=alert.scope,
        cvss_score=alert.cvss_score,
        epss=alert.epss,
        state=alert.state,
        created_at=alert.created_at or None,
        updated_at=alert.updated_at or None,
        fixed_at=alert.fixed_at,
        dismissed_at=alert.dismissed_at,
        dismissed_by=alert.dismissed_by,
        dismissed_reason=alert.dismissed_reason,
        dismissed_comment=alert.dismissed_comment,
        assignees=alert.assignees or None,
        age_days=alert.age_days(now),
        disposition=disposition.disposition if disposition else None,
        reason=disposition.reason if disposition else None,
    )


def _fix_strategy(alert: Alert, outcome: AlertOutcome, answers: Sequence[Remediation]) -> str | None:
    if outcome.outcome in ("fix", "partial"):
        strategies = {strategy for answer in answers for strategy in _strategies(answer, alert.package_name)}
        least = next((strategy for strategy in _LADDER if strategy in strategies), None)
        return _FIX_STRATEGY[least] if least else None
    if outcome.outcome == "refuse":
        return "wait-upstream" if outcome.reason in _WAITS_FOR_UPSTREAM else "manual"
    return None


def _strategies(remediation: Remediation, package_name: str) -> Iterable[Strategy]:
    if remediation.strategy != "mixed":
        return (remediation.strategy,)
    of_package = [move.strategy for move in remediation.moves if move.package_name == package_name]
    return of_package or [move.strategy for move in remediation.moves]


def _lowest_target(ecosystem: str, instances: Sequence[InstanceVerdict]) -> str:
    targets = sorted({instance.to_version for instance in instances if instance.to_version})
    if len(targets) < 2:
        return targets[0] if targets else ""
    scheme = scheme_for(ecosystem)
    parsed = [scheme.try_parse(target) for target in targets] if scheme else []
    versions = [version for version in parsed if isinstance(version, Version)]
    if scheme is None or len(versions) < len(targets):
        return targets[0]
    return scheme.sort(versions)[0].text


def view_plan(plan: Plan) -> PlanView:
    """The wire form of `plan`; its records stay behind."""
    return PlanView(
        plan_id=plan.plan_id,
        base=plan.base,
        complete=plan.complete,
        remediations=tuple(
            PlanRemediation(
                unit=remediation.unit,
                ecosystem=remediation.ecosystem,
                package_name=remediation.package_name,
                strategy=remediation.strategy,
                moves=tuple(_view_move(move) for move in remediation.moves),
                edits=tuple(
                    PlanEdit(path=edit.path, at=edit.at, from_=edit.from_text, to=edit.to_text)
                    for edit in remediation.edits
                ),
                alerts=remediation.alerts,
                is_major=remediation.is_major,
                needs_tool=remediation.needs_tool,
                unconfirmed=remediation.unconfirmed,
                warnings=remediation.warnings,
            )
            for remediation in plan.remediations
        ),
        outcomes=tuple(
            PlanOutcome(
                alert=outcome.alert,
                outcome=outcome.outcome,
                reason=outcome.reason,
                blocked_by=outcome.blocked_by,
                instances=tuple(
                    PlanInstance(
                        where=instance.where,
                        version=instance.version,
                        to_version=instance.to_version,
                        via=instance.via or None,
                        reason=instance.reason,
                    )
                    for instance in outcome.instances
                )
                or None,
                next_safe_version=outcome.next_safe_version,
                detail=outcome.detail or None,
            )
            for outcome in plan.outcomes
        ),
        diff=plan.diff,
        diff_truncated=plan.diff_truncated,
    )


def _view_move(move: Move) -> PlanMove:
    return PlanMove(
        where=move.where,
        package_name=move.package_name,
        from_version=move.from_version,
        to_version=move.to_version,
        strategy=move.strategy,
        added=True if move.added else None,
        removed=True if move.removed else None,
    )


def build_result(
    info: RunInfo,
    config: RunConfig,
    runs: Sequence[RepositoryRun],
    *,
    status: RunStatus = "done",
    errors: Sequence[RunError] = (),
) -> RunResult:
    """The result of a run over one or several repositories, in the order of their names.

    `plan` and `checkout` are those of the repository when there is one; alert
    numbers are unique within a repository only.
    """
    now = info.finished_at or info.started_at
    ordered = sorted(runs, key=lambda run: run.repository.lower())
    single = ordered[0] if len(ordered) == 1 else None
    alerts: list[NormalizedSecurityAlert] = []
    for run in ordered:
        alerts += _alerts_of(run, now)
    alerts.sort(key=lambda alert: (Severity.of(alert.severity).rank, alert.repository.lower(), alert.id))
    pull_requests = tuple(request for run in ordered for request in run.pull_requests)
    next_steps = tuple(step for run in ordered for step in (run.applied.next_steps if run.applied else ()))
    return RunResult(
        run_id=info.run_id,
        status=status,
        started_at=wire_time(info.started_at),
        finished_at=wire_time(info.finished_at) if info.finished_at else None,
        config=config,
        summary=_summary(ordered),
        repositories=tuple(_stats(run) for run in ordered),
        alerts=tuple(alerts),
        actions=tuple(_view_action(action) for run in ordered if run.applied for action in run.applied.actions),
        errors=tuple(_view_error(error) for error in (*errors, *(error for run in ordered for error in _errors(run)))),
        plan=view_plan(single.plan) if single and single.plan else None,
        pull_requests=pull_requests or None,
        next_steps=tuple(view_step(step) for step in next_steps) or None,
        checkout=_view_checkout(single.checkout) if single and single.checkout else None,
    )


def _dispositions(run: RepositoryRun) -> tuple[AlertDisposition, ...]:
    if run.applied is not None:
        return run.applied.dispositions
    if run.plan is not None:
        return planned_dispositions(run.plan)
    return tuple(AlertDisposition(alert=alert.number, disposition="failed") for alert in run.alerts)


def _alerts_of(run: RepositoryRun, now: datetime) -> list[NormalizedSecurityAlert]:
    where = {disposition.alert: disposition for disposition in _dispositions(run)}
    outcomes = {outcome.alert: outcome for outcome in run.plan.outcomes} if run.plan else {}
    answers: dict[int, list[Remediation]] = {}
    for remediation in run.plan.remediations if run.plan else ():
        for number in remediation.alerts:
            answers.setdefault(number, []).append(remediation)
    return [
        _normalised(
            alert,
            now,
            alert.default_branch or run.default_branch,
            outcomes.get(alert.number),
            answers.get(alert.number, ()),
            where.get(alert.number),
        )
        for alert in sorted(run.alerts, key=by_severity)
    ]


def _summary(runs: Sequence[RepositoryRun]) -> RunSummary:
    counted: Counter[Disposition] = Counter()
    for run in runs:
        counted.update(disposition.disposition for disposition in _dispositions(run))
    actions = [action for run in runs if run.applied for action in run.applied.actions]
    checks = [action.success for action in actions if action.type == "verification"]
    return RunSummary(
        repositories_scanned=sum(run.measured for run in runs),
        alerts_found=sum(counted[disposition] for disposition in get_args(Disposition)),
        alerts_fixable=sum(_fixable(run) for run in runs),
        alerts_fixed=counted["fixed"],
        alerts_partial=counted["partial"],
        alerts_failed=counted["failed"],
        alerts_skipped=counted["skipped"],
        alerts_converged=counted["converged"],
        alerts_truncated=counted["truncated"],
        alerts_planned=counted["planned"],
        lockfile_repairs=sum(action.success for action in actions if action.type == "lockfile-repair"),
        verifications_passed=sum(checks),
        verifications_failed=len(checks) - sum(checks),
    )


def _fixable(run: RepositoryRun) -> int:
    return sum(outcome.outcome in ("fix", "partial") for outcome in run.plan.outcomes) if run.plan else 0


def _stats(run: RepositoryRun) -> RepositoryStats:
    counted = Counter(disposition.disposition for disposition in _dispositions(run))
    return RepositoryStats(
        repository=run.repository,
        default_branch=run.default_branch,
        alerts_count=len(run.alerts),
        fixable=_fixable(run),
        fixed=counted["fixed"],
        failed=counted["failed"],
        lockfile_repaired=run.applied.lockfile_repaired if run.applied else False,
        verification_passed=run.applied.verification_passed if run.applied else None,
        duration_ms=run.duration_ms,
    )


def _errors(run: RepositoryRun) -> tuple[RunError, ...]:
    planned = tuple(
        RunError(repository=run.repository, stage=problem.stage, target=problem.target or None, message=problem.message)
        for problem in (run.plan.problems if run.plan else ())
    )
    return (*run.errors, *planned, *(run.applied.errors if run.applied else ()))


def _view_action(action: Action) -> RunAction:
    return RunAction(
        type=action.type,
        repository=action.repository,
        target=action.target,
        from_version=action.from_version,
        to_version=action.to_version,
        is_major=action.is_major,
        strategy=action.strategy,
        success=action.success,
        error=action.error,
        duration_ms=action.duration_ms,
        diff=action.diff,
        no_op=action.no_op,
        file_path=action.file_path,
    )


def _view_error(error: RunError) -> RunProblem:
    return RunProblem(
        repository=error.repository,
        target=error.target,
        stage=error.stage,
        category=error.category,
        message=error.message,
    )


def view_step(step: NextStep) -> WireNextStep:
    """A next step as it goes out."""
    return WireNextStep(command=step.command, folder=step.folder, why=step.why)


def _view_checkout(checkout: Checkout) -> WireCheckout:
    return WireCheckout(path=checkout.path, remote=checkout.remote, branch=checkout.branch, head=checkout.head)
