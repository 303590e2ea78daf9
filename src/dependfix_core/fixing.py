"""Plans carried out, from the library's front door: a scan's plan, a kept plan, one dependency.

Joins the pure pipeline to a checkout, the package managers and the operator's
commands. What a fix may do beyond that is in `FixSettings`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.base import MetadataSource, RecordedMetadata
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey
from dependfix_core.model.run import Applied
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, RelockPolicy, Replan
from dependfix_core.pipeline.dependency import PSEUDO_ALERT, DependencyPlan, DependencyRequest, plan_dependency
from dependfix_core.pipeline.fix import FixOptions, VerifyCommands, fix_checkout, unified_diff
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.pipeline.run import FetchedAlerts, OpenedFiles, ScanRequest
from dependfix_core.process import Runner
from dependfix_core.relock import Relocker, ToolLocator
from dependfix_core.report.build import view_step
from dependfix_core.report.wire import DependencyFixResult, FileDiff
from dependfix_core.trees import TreeSource, drive
from dependfix_core.workspace.git import GitCheckout

MAX_PREVIEW_CHARS: Final = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FixSettings:
    """What the operator allows a fix to do; never a tool argument, never the repository's word."""

    relock: RelockPolicy = "auto"
    verify: VerifyCommands = field(default_factory=VerifyCommands)
    verify_with_tool: bool = False
    tools: ToolLocator | None = None
    """Where package managers are found; on PATH by default."""


class Fixer:
    """Carries plans out; one object serves many."""

    def __init__(
        self,
        *,
        ecosystems: Ecosystems[Ecosystem],
        addresses: Callable[[], RegistryAddresses],
        runner: Runner,
        settings: FixSettings,
    ) -> None:
        self._ecosystems = ecosystems
        self._addresses = addresses
        self._runner = runner
        self._settings = settings

    async def fix(
        self,
        plan: Plan,
        alerts: Sequence[Alert],
        checkout: GitCheckout,
        *,
        now: datetime,
        allow_dirty: bool = False,
        dry_run: bool = False,
    ) -> Applied:
        """Apply exactly `plan`, with its own records: registries are not asked again.

        Raises:
            StalePlanError: The files are not those that the plan was made on.
            DirtyCheckoutError: Files to be written have uncommitted changes.
            CheckoutBusyError: Another process works on the checkout.
        """
        return await fix_checkout(
            plan,
            alerts,
            checkout,
            builder=self._builder(plan.records),
            replan=self._replan(plan, alerts, now),
            runner=self._runner,
            options=FixOptions(allow_dirty=allow_dirty, dry_run=dry_run, verify=self._settings.verify),
        )

    async def preview(self, plan: Plan, alerts: Sequence[Alert], tree: TreeSource, *, now: datetime) -> Plan:
        """`plan` with the diff that applying it makes; parts that a package manager has to write are not in it."""
        if not plan.remediations or not plan.files:
            return plan
        builder = self._builder(plan.records, with_tool=False)
        built = await builder.build(plan, alerts, tree, self._replan(plan, alerts, now))
        diff = "\n".join(unified_diff(change.path, change.before, change.after) for change in built.changes.changes)
        cut = diff[:MAX_PREVIEW_CHARS]
        return replace(plan, diff=cut, diff_truncated=len(cut) < len(diff) or bool(built.rejected))

    async def plan_dependency(
        self,
        request: DependencyRequest,
        alerts: Sequence[Alert],
        tree: TreeSource,
        metadata: MetadataSource,
        *,
        policy: ScanPolicy,
        repository: str,
        now: datetime,
    ) -> DependencyPlan:
        """How a package gets to a version, or why not.

        Raises:
            ArgumentError: No unit holds it, several do, or the target is no version.
        """
        listing = await tree.listing()
        step = plan_dependency(request, alerts, listing, policy, self._ecosystems, repository=repository, now=now)
        return await drive(step, tree, metadata)

    def _replan(self, plan: Plan, alerts: Sequence[Alert], now: datetime) -> Replan:
        def again(listing: Listing) -> Step[Plan]:
            return plan_repository(alerts, listing, plan.policy, self._ecosystems, repository=plan.repository, now=now)

        return again

    def _builder(self, records: Mapping[RecordKey, Record], *, with_tool: bool = True) -> Builder:
        settings = self._settings
        allowed = with_tool and settings.relock != "in-process"
        relocker = Relocker(self._runner, self._addresses(), tools=settings.tools) if allowed else None
        return Builder(
            ecosystems=self._ecosystems,
            metadata=RecordedMetadata(records),
            relocker=relocker,
            relock=settings.relock,
            verify_with_tool=settings.verify_with_tool and with_tool,
        )


async def fix_dependency(
    fixer: Fixer,
    wanted: DependencyRequest,
    request: ScanRequest,
    fetched: FetchedAlerts,
    files: OpenedFiles,
    metadata: MetadataSource,
    *,
    now: datetime,
    warning: str | None = None,
) -> DependencyFixResult:
    """Move one package to one version in the opened checkout, and tell what came of it.

    Raises:
        ArgumentError: No unit holds the package, several do, or the target is no version.
        DirtyCheckoutError: Files to be written have uncommitted changes.
    """
    tree, checkout = files.tree, files.checkout
    assert tree is not None, "mode fix opens a checkout"
    assert checkout is not None, "mode fix opens a checkout"
    way = await fixer.plan_dependency(
        wanted,
        fetched.alerts,
        tree,
        metadata,
        policy=request.policy,
        repository=fetched.repository,
        now=now,
    )
    told = DependencyFixResult(
        package_name=way.package,
        from_version=", ".join(way.from_versions),
        to_version=wanted.target,
        success=False,
        warning=warning,
        manifest_path=way.unit,
        resolved_alerts=(),
    )
    if way.plan is None:
        return told.model_copy(
            update={
                "error": way.detail or way.blocked_by or f"{way.package} cannot go to {wanted.target}",
                "reason": way.reason,
                "blocked_by": way.blocked_by,
                "next_safe_version": way.next_safe,
            }
        )
    applied = await fixer.fix(
        way.plan, way.alerts, checkout.git, now=now, allow_dirty=request.allow_dirty, dry_run=request.dry_run
    )
    return told.model_copy(update=_told(way, way.plan, applied, wanted, warning))


def _told(
    way: DependencyPlan, plan: Plan, applied: Applied, wanted: DependencyRequest, warning: str | None
) -> dict[str, object]:
    remediation = next(one for one in plan.remediations if PSEUDO_ALERT in one.alerts)
    declared = [edit for edit in remediation.edits if edit.kind != "override" and edit.at.endswith(way.package)]
    failures = applied.errors
    moved = not failures
    warnings = [text for text in (warning, *remediation.warnings) if text]
    return {
        "success": moved,
        "from_version": (declared[0].from_text if declared else None) or ", ".join(way.from_versions),
        "to_version": declared[0].to_text if declared else wanted.target,
        "is_major": remediation.is_major,
        "error": "; ".join(error.message for error in failures) or None,
        "reason": failures[0].category if failures else None,
        "warning": "; ".join(warnings) or None,
        "strategy": remediation.strategy,
        "changes": tuple(FileDiff(path=path, diff=diff) for path, diff in sorted(applied.changed.items())),
        "resolved_alerts": way.resolved if moved else (),
        "verification": "passed" if moved else "failed",
        "next_steps": tuple(view_step(step) for step in applied.next_steps),
    }
