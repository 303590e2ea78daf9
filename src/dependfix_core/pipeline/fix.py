"""Carries a plan out in a checkout: build, write, prove, keep or undo.

1. The plan's change set is built and proven over the checkout's tree (V1 to V9).
2. Files with uncommitted changes that it would touch stop it.
3. It is written inside a transaction and read back from the disk.
4. The operator's own commands run (V11). When they fail, everything is put
   back, and the remediations are tried one by one.
5. What held is kept.
"""

import difflib
import logging
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread

from dependfix_core.errors import CommandError, DirtyCheckoutError
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import ChangeSet, FileContent
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import AlertOutcome, Plan, Remediation
from dependfix_core.model.run import Action, AlertDisposition, Applied, Disposition, NextStep, RunError
from dependfix_core.pipeline.build import Builder, Built, Rejected, Replan
from dependfix_core.process import INHERITED_VARIABLES, Command, Runner, clean_text, redact
from dependfix_core.workspace.git import GitCheckout, dirty_paths
from dependfix_core.workspace.transaction import Transaction, transaction
from dependfix_core.workspace.tree import CheckoutTree

log = logging.getLogger(__name__)

MAX_DIFF_CHARS: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyCommands:
    """The operator's own commands (V11), never from a tool argument or the repository."""

    commands: tuple[tuple[str, ...], ...] = ()
    variables: tuple[str, ...] = ()
    """Names of variables that they get beside the cleaned environment."""
    timeout_s: float = 900.0

    @classmethod
    def of(cls, lines: Iterable[str], variables: Iterable[str] = ()) -> "VerifyCommands":
        """Split as a shell would, without one.

        Raises:
            ValueError: A quotation is not closed.
        """
        commands = tuple(tuple(shlex.split(line)) for line in lines)
        return cls(commands=tuple(command for command in commands if command), variables=tuple(variables))


@dataclass(frozen=True, kw_only=True, slots=True)
class FixOptions:
    """How a plan is carried out."""

    allow_dirty: bool = False
    dry_run: bool = False
    verify: VerifyCommands = field(default_factory=VerifyCommands)


async def fix_checkout(
    plan: Plan,
    alerts: Sequence[Alert],
    checkout: GitCheckout,
    *,
    builder: Builder,
    replan: Replan,
    runner: Runner,
    options: FixOptions | None = None,
) -> Applied:
    """Apply `plan` to the working files of `checkout`, or with `dry_run` only show what would come of it.

    Raises:
        StalePlanError: The files are not those that the plan was made on.
        DirtyCheckoutError: Files to be written have uncommitted changes.
        CheckoutBusyError: Another process works on the checkout.
        RollbackError: Files could not be put back.
    """
    options = options or FixOptions()
    started = time.monotonic()
    tree = CheckoutTree(checkout.top, runner)
    work = _Work(plan, alerts, checkout, tree, builder, replan, runner, options)
    with transaction(checkout.top, checkout.git_dir) as running:
        built = await builder.build(plan, alerts, tree, replan)
        if options.dry_run or not built.changes:
            return _result(plan, built, options, started, kept=False)
        await work.refuse_dirty(built.changes)
        held = await work.carry_out(running, built)
    return _result(plan, held, options, started, kept=True)


@dataclass(frozen=True, slots=True)
class _Work:
    plan: Plan
    alerts: Sequence[Alert]
    checkout: GitCheckout
    tree: CheckoutTree
    builder: Builder
    replan: Replan
    runner: Runner
    options: FixOptions

    async def refuse_dirty(self, changes: ChangeSet) -> None:
        if self.options.allow_dirty:
            return
        paths = tuple(change.path for change in changes.changes)
        dirty = await dirty_paths(self.runner, self.checkout.top, paths)
        if dirty:
            raise DirtyCheckoutError(
                f"uncommitted changes in {', '.join(dirty[:5])}",
                hint="Commit or stash them, or pass allowDirty.",
                details={"files": list(dirty[:50])},
            )

    async def carry_out(self, running: Transaction, built: Built) -> Built:
        """Write what was built and keep it, or as much of it as the operator's commands accept."""
        failure = await self._write_and_check(running, built.changes)
        if failure is None:
            running.keep()
            return built
        await _in_thread(running.undo)
        if len(built.applied) == 1:
            return _rejecting(built, built.applied, failure)
        log.info("the verify commands failed and the remediations are tried one by one")
        held = Built(changes=ChangeSet(), applied=(), rejected=dict(built.rejected), warnings=built.warnings)
        for index in built.applied:
            trial = await self.builder.build(
                self.plan, self.alerts, self.tree, self.replan, only=[*held.applied, index]
            )
            why = trial.rejected.get(index)
            failure = await self._write_and_check(running, trial.changes) if why is None else why.detail
            await _in_thread(running.undo)
            if failure is None:
                held = Built(
                    changes=trial.changes,
                    applied=trial.applied,
                    rejected=held.rejected,
                    warnings=held.warnings,
                    units=trial.units,
                )
            else:
                held = _rejecting(held, [index], failure)
        if held.changes:
            await _in_thread(running.apply, held.changes)
            running.keep()
        return held

    async def _write_and_check(self, running: Transaction, changes: ChangeSet) -> str | None:
        """Why the change cannot stay; `None` when it can. It is written in both cases."""
        await _in_thread(running.apply, changes)
        found = await self.tree.read([change.path for change in changes.changes])
        for change in changes.changes:
            file = found[change.path]
            content = file.content if isinstance(file, FileContent) else None
            if content != change.after:
                return f"V2 {change.path} does not read back as it was written"
        for command in self.options.verify.commands:
            failure = await self._run(command)
            if failure is not None:
                return failure
        return None

    async def _run(self, argv: tuple[str, ...]) -> str | None:
        verify = self.options.verify
        command = Command(
            argv=argv,
            cwd=self.checkout.top,
            inherit=(*INHERITED_VARIABLES, *verify.variables),
            timeout_s=verify.timeout_s,
        )
        try:
            result = await self.runner.run(command)
        except CommandError as error:
            return f"V11 {error.message}"
        if result.exit_code == 0:
            return None
        printed = (result.stderr or result.stdout).decode("utf-8", errors="replace")
        tail = redact(clean_text(printed[-600:], one_line=True))
        return f"V11 {argv[0]} ended with {result.exit_code}: {tail}"[:800]


def _rejecting(built: Built, indices: Iterable[int], failure: str) -> Built:
    gone = set(indices)
    why = Rejected(reason="verification-failed", detail=failure)
    applied = tuple(index for index in built.applied if index not in gone)
    return Built(
        changes=built.changes if applied else ChangeSet(),
        applied=applied,
        rejected={**built.rejected, **dict.fromkeys(gone, why)},
        warnings=built.warnings,
        units=built.units if applied else (),
    )


async def _in_thread(work: object, *arguments: object) -> None:
    # Disk work that is not cut in the middle: a cancelled caller is told after it.
    assert callable(work)
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(lambda: work(*arguments))


def _result(plan: Plan, built: Built, options: FixOptions, started: float, *, kept: bool) -> Applied:
    duration_ms = int((time.monotonic() - started) * 1000)
    diffs = {change.path: unified_diff(change.path, change.before, change.after) for change in built.changes.changes}
    tried = bool(plan.remediations)
    return Applied(
        plan=plan,
        dispositions=dispositions(plan, built, planned_only=options.dry_run),
        actions=_actions(plan, built, diffs, options, duration_ms),
        errors=_errors(plan, built),
        next_steps=next_steps(built.units) if kept else (),
        verification_passed=not any(why.is_failure for why in built.rejected.values()) if tried else None,
        changed=diffs,
    )


def dispositions(plan: Plan, built: Built | None, *, planned_only: bool) -> tuple[AlertDisposition, ...]:
    """Where each alert of the plan is counted; exactly one entry an alert, in the plan's order."""
    return tuple(_disposition(outcome, plan, built, planned_only=planned_only) for outcome in plan.outcomes)


def _disposition(outcome: AlertOutcome, plan: Plan, built: Built | None, *, planned_only: bool) -> AlertDisposition:
    def counted(kind: Disposition, reason: str | None = None) -> AlertDisposition:
        return AlertDisposition(alert=outcome.alert, disposition=kind, reason=reason)

    if outcome.outcome in ("converged", "not-present"):
        return counted("converged", outcome.reason)
    if outcome.outcome == "skip":
        return counted("truncated" if outcome.reason == "truncated" else "skipped", outcome.reason)
    if outcome.outcome == "refuse":
        return counted("skipped", outcome.reason)
    mine = [index for index, one in enumerate(plan.remediations) if outcome.alert in one.alerts]
    rejected = {index: built.rejected[index] for index in mine if index in built.rejected} if built is not None else {}
    if not rejected:
        if planned_only or built is None:
            return counted("planned")
        return counted("fixed" if outcome.outcome == "fix" else "partial", outcome.reason)
    reason = next(iter(rejected.values())).reason
    if len(rejected) < len(mine):
        return counted("planned" if planned_only else "partial", reason)
    return counted("failed" if any(why.is_failure for why in rejected.values()) else "skipped", reason)


def _actions(
    plan: Plan, built: Built, diffs: Mapping[str, str], options: FixOptions, duration_ms: int
) -> tuple[Action, ...]:
    actions = []
    for index, remediation in enumerate(plan.remediations):
        why = built.rejected.get(index)
        first = next((move for move in remediation.moves if move.package_name == remediation.package_name), None)
        actions.append(
            Action(
                type="dependency-upgrade",
                repository=plan.repository,
                target=remediation.package_name,
                from_version=first.from_version if first is not None else None,
                to_version=first.to_version if first is not None else None,
                is_major=remediation.is_major,
                success=why is None,
                error=f"{why.reason}: {why.detail}" if why is not None else None,
                strategy=remediation.strategy,
                diff=diffs.get(_main_file(remediation, diffs)) if why is None else None,
                no_op=True if options.dry_run else None,
                file_path=remediation.unit,
            )
        )
    actions += [
        Action(
            type="verification",
            repository=plan.repository,
            target=unit.unit,
            success=True,
            duration_ms=duration_ms,
            file_path=unit.unit,
        )
        for unit in built.units
    ]
    return tuple(actions)


def _main_file(remediation: Remediation, diffs: Mapping[str, str]) -> str:
    edited = [edit.path for edit in remediation.edits if edit.path in diffs]
    return edited[0] if edited else remediation.unit


def _errors(plan: Plan, built: Built) -> tuple[RunError, ...]:
    return tuple(
        RunError(
            repository=plan.repository,
            stage="verify" if why.is_failure else "fix",
            message=clean_text(why.detail, one_line=True, max_chars=800),
            target=f"{plan.remediations[index].package_name} in {plan.remediations[index].unit}",
            category=why.reason,
        )
        for index, why in sorted(built.rejected.items())
    )


def unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """What changed in one file, as people read it; cut at `MAX_DIFF_CHARS`."""
    old = (before or b"").decode("utf-8", errors="replace").splitlines()
    new = (after or b"").decode("utf-8", errors="replace").splitlines()
    source = f"a/{path}" if before is not None else "/dev/null"
    target = f"b/{path}" if after is not None else "/dev/null"
    text = "\n".join(difflib.unified_diff(old, new, source, target, lineterm=""))
    return text if len(text) <= MAX_DIFF_CHARS else text[:MAX_DIFF_CHARS].rsplit("\n", 1)[0] + "\n…"


_INSTALL: Final[Mapping[str, str]] = {
    "npm": "npm ci",
    "pnpm": "pnpm install --frozen-lockfile",
    "yarn-classic": "yarn install --frozen-lockfile",
    "yarn-berry": "yarn install --immutable",
    "bun": "bun install --frozen-lockfile",
    "uv": "uv sync --locked",
    "poetry": "poetry sync",
    "pipenv": "pipenv sync",
    "pdm": "pdm sync",
    "pip-tools": "pip-sync",
    "pip": "pip install -r",
}


def next_steps(units: Iterable[LockUnit]) -> tuple[NextStep, ...]:
    """What makes the installed packages match the changed lockfiles; never run here."""
    steps = {}
    for unit in units:
        tool = unit.format if unit.format in _INSTALL else unit.tool
        command = _INSTALL.get(tool)
        if command is None:
            continue
        folder, _, name = unit.unit.rpartition("/")
        if tool in ("pip", "pip-tools"):
            command = f"{command} {shlex.quote(name)}"
        steps[folder, command] = NextStep(
            command=command, folder=folder or ".", why=f"installs what {unit.unit} says now"
        )
    return tuple(step for _, step in sorted(steps.items()))
