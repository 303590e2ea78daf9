"""The result of a run in its wire format; also reads reports of the original TypeScript dependfix.

Keys are camelCase and in a fixed order; keys that are not known are kept.
Texts that GitHub or a tool may extend are open strings.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from dependfix_core.errors import UnsupportedFormatError


class Wire(BaseModel):
    """Base of all parts: frozen, camelCase outside, snake_case inside, unknown keys kept."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="allow",
        protected_namespaces=(),
        defer_build=True,  # most are used long after the start, if at all
    )


def _counted(value: object) -> object:
    return 0 if value is None else value


Count = Annotated[int, BeforeValidator(_counted)]


class NormalizedSecurityAlert(Wire):
    """One alert, the same for every ecosystem."""

    id: int = Field(description="Alert number, unique within its repository")
    source: str = Field("dependabot", description="Where the alert comes from")
    repository: str = Field(description="owner/name")
    default_branch: str = Field("", description="Default branch of the repository")
    severity: str = Field("unknown", description="critical, high, medium, low or unknown")
    package_ecosystem: str = Field("", description="GitHub's name of the ecosystem")
    package_name: str = Field("", description="Package, as the advisory names it")
    manifest_path: str = Field("", description="File that the alert is about")
    rule_id: str = Field("", description="GHSA id of the advisory")
    summary: str = Field("", description="Untrusted text from the advisory")
    html_url: str = Field("", description="Page of the alert")
    fixable: bool = Field(False, description="Whether a fix is known, after planning whether it is planned")
    fix_strategy: str | None = Field(None, description="upgrade, lock, override, wait-upstream or manual")
    recommended_version: str = Field("", description="Version to go to; empty when there is none")
    dependency_type: str | None = Field(None, description="direct or transitive")
    cve_id: str | None = Field(None, description="CVE id of the advisory")
    classification: str | None = Field(None, description="general or malware")
    vulnerable_version_range: str | None = Field(None, description="Versions that the advisory calls vulnerable")
    first_patched_version: str | None = Field(None, description="First version that the advisory calls patched")
    scope: str | None = Field(None, description="runtime or development")
    cvss_score: float | None = Field(None, description="CVSS base score, 0 to 10")
    epss: float | None = Field(None, description="Probability of exploitation, 0 to 1")
    state: str | None = Field(None, description="open, fixed, dismissed or auto_dismissed")
    created_at: str | None = Field(None, description="When GitHub opened it")
    updated_at: str | None = Field(None, description="When it changed last")
    fixed_at: str | None = Field(None, description="When GitHub saw it fixed")
    dismissed_at: str | None = Field(None, description="When it was dismissed")
    dismissed_by: str | None = Field(None, description="Who dismissed it")
    dismissed_reason: str | None = Field(None, description="Why it was dismissed")
    dismissed_comment: str | None = Field(None, description="Untrusted text of who dismissed it")
    assignees: tuple[str, ...] | None = Field(None, description="Users it is assigned to")
    age_days: int | None = Field(None, description="Whole days since it was opened")
    disposition: str | None = Field(
        None, description="After a run: fixed, partial, failed, skipped, converged, truncated or planned"
    )
    reason: str | None = Field(None, description="After a run: why it was not fixed")


class RunConfig(Wire):
    """What was asked for."""

    mode: str = Field("report-only", description="report-only, fix or fix-and-pr")
    severity_threshold: str = Field("high", description="This level and above")
    repositories: tuple[str, ...] = Field((), description="Repositories, owner/name")
    dry_run: bool = Field(False, description="Whether nothing was to be changed")
    create_pull_request: bool = Field(False, description="Whether pull requests were to be opened")
    max_alerts_per_repository: Count = Field(0, description="Limit of alerts; 0 for none")
    alert_source: str = Field("github-dependabot", description="Where alerts came from")


class RunSummary(Wire):
    """Counters. Each alert that was fetched is in exactly one of the alert counters except alertsFixable."""

    repositories_scanned: Count = Field(0, description="Repositories whose alerts were read")
    alerts_found: Count = Field(0, description="Sum of the dispositions below")
    alerts_fixable: Count = Field(0, description="Alerts for which a fix was planned, fully or partly")
    alerts_fixed: Count = Field(0, description="Fixed")
    alerts_partial: Count = Field(0, description="Fixed in some of the places")
    alerts_failed: Count = Field(0, description="The fix failed and was rolled back")
    alerts_skipped: Count = Field(0, description="Refused or left out, with a reason")
    alerts_converged: Count = Field(0, description="Nothing vulnerable is there any more")
    alerts_truncated: Count = Field(0, description="Beyond the limit of alerts")
    alerts_planned: Count = Field(0, description="Would be fixed")
    lockfile_repairs: Count = Field(0, description="Lockfiles that were written")
    verifications_passed: Count = Field(0, description="Checks that passed")
    verifications_failed: Count = Field(0, description="Checks that failed")


class RepositoryStats(Wire):
    """One repository of a run."""

    repository: str = Field(description="owner/name")
    default_branch: str = Field("", description="Its default branch")
    alerts_count: Count = Field(0, description="Alerts that were fetched")
    fixable: Count = Field(0, description="Alerts for which a fix was planned")
    fixed: Count = Field(0, description="Alerts that were fixed")
    failed: Count = Field(0, description="Alerts whose fix failed")
    lockfile_repaired: bool = Field(False, description="Whether a lockfile was written")
    verification_passed: bool | None = Field(None, description="Whether the checks passed; absent when none ran")
    duration_ms: Count = Field(0, description="Milliseconds")


class RunAction(Wire):
    """One thing that was done or tried."""

    type: str = Field(description="dependency-upgrade, lockfile-repair, verification, branch-cleanup or pull-request")
    repository: str = Field("", description="owner/name")
    target: str = Field("", description="Package, file, command, branch or pull request")
    from_version: str | None = Field(None, description="Before")
    to_version: str | None = Field(None, description="After")
    is_major: bool | None = Field(None, description="Whether it crosses a major version")
    strategy: str | None = Field(None, description="How")
    success: bool = Field(False, description="Whether it worked")
    error: str | None = Field(None, description="Why not")
    duration_ms: int | None = Field(None, description="Milliseconds")
    diff: str | None = Field(None, description="Unified diff")
    no_op: bool | None = Field(None, description="Whether nothing had to be done")
    file_path: str | None = Field(None, description="File that changed")


class RunProblem(Wire):
    """A step that failed; the rest of the run went on."""

    repository: str = Field("", description="owner/name")
    target: str | None = Field(None, description="What it is about")
    stage: str = Field(description="fetch, filter, plan, fix, repair, verify, report or deliver")
    category: str | None = Field(None, description="Error code or reason")
    message: str = Field(description="One line")


class PlanMove(Wire):
    """One locked copy and where it goes."""

    where: str = Field(description="Its place in the lockfile")
    package_name: str = Field(description="Package")
    from_version: str | None = Field(None, description="Locked version; absent when the copy is added")
    to_version: str | None = Field(None, description="Target; absent when the copy goes")
    strategy: str = Field(description="How this copy moves")
    added: bool | None = Field(None, description="Whether the copy is new")
    removed: bool | None = Field(None, description="Whether the copy goes")


class PlanEdit(Wire):
    """One text of a manifest that changes."""

    path: str = Field(description="File")
    at: str = Field(description="Place in the file")
    from_: str | None = Field(None, alias="from", description="Text now; absent when it is added")
    to: str = Field(description="Text afterwards")


class PlanRemediation(Wire):
    """What is done, verified and kept or undone together."""

    unit: str = Field(description="Lockfile, or manifest without one")
    ecosystem: str = Field(description="GitHub's name")
    package_name: str = Field(description="Package")
    strategy: str = Field(description="Leading strategy, mixed where none leads")
    moves: tuple[PlanMove, ...] = Field((), description="Locked copies that move")
    edits: tuple[PlanEdit, ...] = Field((), description="Manifest texts that change")
    alerts: tuple[int, ...] = Field((), description="Alerts that it answers")
    is_major: bool = Field(False, description="Whether a major version is crossed")
    needs_tool: bool = Field(False, description="Whether the package manager has to write")
    unconfirmed: bool = Field(False, description="Planned from the alert alone")
    warnings: tuple[str, ...] = Field((), description="What to know before applying it")


class PlanInstance(Wire):
    """A vulnerable copy."""

    where: str = Field(description="Its place in the lockfile")
    version: str = Field(description="Locked version")
    to_version: str | None = Field(None, description="Target")
    via: tuple[tuple[str, ...], ...] | None = Field(None, description="How it came in, up to three chains")
    reason: str | None = Field(None, description="Why this copy stays")


class PlanOutcome(Wire):
    """What becomes of one alert."""

    alert: int = Field(description="Alert number")
    outcome: str = Field(description="fix, partial, refuse, converged, not-present or skip")
    reason: str | None = Field(None, description="Why not")
    blocked_by: str | None = Field(None, description="The requirement that blocks")
    instances: tuple[PlanInstance, ...] | None = Field(None, description="Vulnerable copies")
    next_safe_version: str | None = Field(None, description="Least safe version, also when it is not taken")
    detail: str | None = Field(None, description="One line more")


class PlanView(Wire):
    """Everything that was decided for one repository on one state of its files."""

    plan_id: str = Field(description="Names exactly this plan")
    base: str = Field("", description="Digest of the files it was made on")
    complete: bool = Field(True, description="False when something could not be read; errors say what")
    remediations: tuple[PlanRemediation, ...] = Field((), description="What would be done")
    outcomes: tuple[PlanOutcome, ...] = Field((), description="One for each alert that was fetched")
    diff: str = Field("", description="Unified diff, capped")
    diff_truncated: bool = Field(False, description="Whether the diff was cut")


class PullRequest(Wire):
    """A pull request that a run opened or found."""

    repository: str = Field(description="owner/name")
    number: int = Field(description="Its number")
    url: str = Field("", description="Its page")
    branch: str = Field("", description="Its head branch")
    base: str = Field("", description="Its base branch")
    head: str = Field("", description="Commit at its head")
    state: str = Field(description="opened, updated, unchanged or declined")


class ReportFile(Wire):
    """A file of the report."""

    format: str = Field(description="json, md, html or sarif")
    path: str = Field(description="Absolute path")


class WireNextStep(Wire):
    """A command that makes the working copy true again; it is for the user to run."""

    command: str = Field(description="Command line")
    folder: str = Field(".", description="Folder, relative to the top level")
    why: str = Field("", description="Why")


class WireCheckout(Wire):
    """The working copy that was used."""

    path: str = Field(description="Top level")
    remote: str = Field("", description="Address of its remote")
    branch: str | None = Field(None, description="Branch")
    head: str | None = Field(None, description="Commit")


class RunResult(Wire):
    """What a run came to; every alert that was fetched is accounted for exactly once."""

    run_id: str = Field(description="Names the run")
    status: str = Field("done", description="running, done or failed")
    started_at: str = Field("", description="ISO 8601, UTC")
    finished_at: str | None = Field(None, description="ISO 8601, UTC; absent while it runs")
    config: RunConfig = Field(default_factory=RunConfig, description="What was asked for")
    summary: RunSummary = Field(default_factory=RunSummary, description="Counters over everything")
    repositories: tuple[RepositoryStats, ...] = Field((), description="One for each repository")
    alerts: tuple[NormalizedSecurityAlert, ...] = Field((), description="Most severe first")
    actions: tuple[RunAction, ...] = Field((), description="What was done or tried")
    errors: tuple[RunProblem, ...] = Field((), description="Steps that failed")
    plan: PlanView | None = Field(None, description="What was decided")
    pull_requests: tuple[PullRequest, ...] | None = Field(None, description="Pull requests")
    report_files: tuple[ReportFile, ...] | None = Field(None, description="Files that were written")
    report_uri: str | None = Field(None, description="Resource that holds the whole report")
    next_steps: tuple[WireNextStep, ...] | None = Field(None, description="What the user should run")
    checkout: WireCheckout | None = Field(None, description="Working copy that was used")

    def with_report(self, files: tuple[ReportFile, ...], uri: str) -> "RunResult":
        """The same result, naming its files and its resource."""
        return self.model_copy(update={"report_files": files, "report_uri": uri})


class FileDiff(Wire):
    """What changed in one file."""

    path: str = Field(description="Relative to the top level")
    diff: str = Field(description="Unified, cut when long")


class DependencyFixResult(Wire):
    """What moving one package to one version came to; a refusal has `success` false and a reason."""

    package_name: str = Field(description="As the manifest or lockfile spells it")
    from_version: str = Field("", description="Declared text before, or locked versions")
    to_version: str = Field("", description="Declared text after, or the locked version")
    is_major: bool = Field(False, description="Whether it crosses a major version")
    success: bool = Field(description="Whether the version is there now, or would be in a dry run")
    error: str | None = Field(None, description="Why not")
    warning: str | None = Field(None, description="What could not be checked, or should be looked at")
    reason: str | None = Field(None, description="Reason of a refusal, from a closed list")
    blocked_by: str | None = Field(None, description="The requirement that is in the way")
    next_safe_version: str | None = Field(None, description="Least version outside all ranges")
    manifest_path: str = Field("", description="Lockfile or manifest that decides")
    strategy: str | None = Field(None, description="How the version gets there")
    changes: tuple[FileDiff, ...] = Field((), description="Changed files")
    resolved_alerts: tuple[int, ...] = Field((), description="Open alerts that this answers")
    verification: str = Field("not-run", description="passed, failed or not-run")
    next_steps: tuple[WireNextStep, ...] = Field((), description="What the user should run")


def wire_time(time: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`, as the original writes it."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


_NULL_IN_REPORTS: Final = "fixStrategy"


def to_wire(result: RunResult) -> dict[str, Any]:
    """`result` as JSON values in the order of a report; absent values are left out, `fixStrategy` stays as null."""
    wire: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    wire["alerts"] = [_with_null_strategy(alert) for alert in wire["alerts"]]
    return wire


def _with_null_strategy(alert: dict[str, Any]) -> dict[str, Any]:
    if _NULL_IN_REPORTS in alert:
        return alert
    out: dict[str, Any] = {}
    for key, value in alert.items():
        out[key] = value
        if key == "fixable":
            out[_NULL_IN_REPORTS] = None
    return out


def render_json(result: RunResult) -> str:
    """The report as JSON for a file."""
    return indented(to_wire(result))


_ANYTHING: Final = TypeAdapter[Any](Any)


def indented(value: Any) -> str:
    """JSON values as text for a file; like `json.dumps(indent=2)`, many times as fast."""
    return _ANYTHING.dump_json(value, indent=2).decode() + "\n"


def compact(value: Any) -> str:
    """JSON values as text for a program: no blanks."""
    return _ANYTHING.dump_json(value).decode() + "\n"


def read_report(text: str | bytes, *, path: str) -> RunResult:
    """A report of ours or of the original dependfix.

    Raises:
        UnsupportedFormatError: It is neither; `path` names the file.
    """
    try:
        return RunResult.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise UnsupportedFormatError(
            "not a report of dependfix", path=path, position=".".join(map(str, fault["loc"]))
        ) from error


class HistoryRun(Wire):
    """One run as the history lists it."""

    run_id: str = Field(description="Names the run")
    started_at: str = Field("", description="ISO 8601, UTC")
    duration_ms: Count = Field(0, description="Milliseconds")
    repositories: tuple[str, ...] = Field((), description="owner/name of each")
    summary: RunSummary = Field(default_factory=RunSummary, description="Counters over everything")
    repo_stats: tuple[RepositoryStats, ...] = Field((), description="Counters of each repository")
