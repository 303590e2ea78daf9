"""Builds the changed files of a plan over a tree, and keeps only what is proven.

Nothing here touches a checkout: the result is a change set over the tree that
the plan was made on.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems, ToolRelock, WriteRefusal
from dependfix_core.errors import StalePlanError
from dependfix_core.metadata.base import MetadataSource
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import ChangeSet, FileChange, FileContent, Listing
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Plan, Remediation
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.pipeline.verify import CheckFailure, Claim, verify_unit
from dependfix_core.relock import Relocker, RelockFailure
from dependfix_core.trees import ChangedTree, TreeSource, drive

log = logging.getLogger(__name__)

RelockPolicy = Literal["auto", "in-process", "tool"]
Replan = Callable[[Listing], Step[Plan]]
"""Plans again on a changed tree, with the same alerts and policy."""

# Reasons of a writer for which the package manager is the way out.
_TOOL_CAN = frozenset({"tool-required", "integrity-unavailable", "metadata-unavailable"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """One remediation that is not part of the result."""

    reason: str
    """`tool-required` or another refusal reason; `verification-failed` with the checks in `detail`."""
    detail: str

    @property
    def is_failure(self) -> bool:
        """Whether it was written and did not hold; what was never written was refused."""
        return self.reason == "verification-failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """The proven part of a plan."""

    changes: ChangeSet
    applied: tuple[int, ...]
    """Indices into `plan.remediations`."""
    rejected: Mapping[int, Rejected] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    units: tuple[LockUnit, ...] = ()
    """The units that changed, as they were read before."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one set of remediations of one unit came to."""

    changes: ChangeSet = field(default_factory=ChangeSet)
    by_tool: bool = False
    rejected: Rejected | None = None
    culprit: int | None = None
    warnings: tuple[str, ...] = ()


class Builder:
    """Writes and proves plans; one object serves many."""

    def __init__(
        self,
        *,
        ecosystems: Ecosystems[Ecosystem],
        metadata: MetadataSource,
        relocker: Relocker | None = None,
        relock: RelockPolicy = "auto",
        verify_with_tool: bool = False,
    ) -> None:
        self._verify_with_tool = verify_with_tool
        self._ecosystems = ecosystems
        self._metadata = metadata
        self._relocker = relocker
        self._relock = relock

    async def build(
        self,
        plan: Plan,
        alerts: Sequence[Alert],
        tree: TreeSource,
        replan: Replan,
        *,
        only: Iterable[int] | None = None,
    ) -> Built:
        """The change set of all remediations of `plan` (or of `only`) that hold.

        Remediations of a unit are written and proven together; when that fails,
        one at a time, each on top of those that held, all from the same state.

        Raises:
            StalePlanError: The files are not those that the plan was made on.
        """
        await _require_base(plan, tree)
        wanted = sorted(only) if only is not None else range(len(plan.remediations))
        by_unit: dict[tuple[str, str], list[int]] = {}
        for index in wanted:
            remediation = plan.remediations[index]
            by_unit.setdefault((remediation.ecosystem, remediation.unit), []).append(index)
        total, applied, units = ChangeSet(), list[int](), list[LockUnit]()
        rejected: dict[int, Rejected] = {}
        warnings: list[str] = []
        for (ecosystem_id, unit_name), indices in sorted(by_unit.items()):
            work = _UnitWork(self, plan, alerts, ChangedTree(tree, total), replan)
            ecosystem = self._ecosystems.serving(ecosystem_id)
            unit = await work.read(ecosystem, unit_name) if ecosystem is not None else None
            if ecosystem is None or unit is None:
                why = Rejected(reason="tool-required", detail=f"{ecosystem_id} files are not written")
                rejected.update(dict.fromkeys(indices, why))
                continue
            changes, held, refused, said = await work.settle(ecosystem, unit, indices)
            rejected.update(refused)
            warnings += said
            if held:
                total = merged(total, changes)
                applied += held
                units.append(unit)
        return Built(
            changes=total,
            applied=tuple(sorted(applied)),
            rejected=rejected,
            warnings=tuple(dict.fromkeys(warnings)),
            units=tuple(units),
        )

    async def attempt(
        self, ecosystem: Ecosystem, unit: LockUnit, remediations: Sequence[Remediation], tree: TreeSource
    ) -> _Attempt:
        """The files of `unit` after `remediations`, by whichever way is allowed and works."""
        written: ChangeSet | WriteRefusal
        if self._relock == "tool":
            written = WriteRefusal(reason="tool-required", detail="the policy is to relock with the package manager")
        else:
            written = await drive(ecosystem.write(unit, remediations), tree, self._metadata)
        if isinstance(written, ChangeSet):
            return _Attempt(changes=written)
        if written.reason not in _TOOL_CAN:
            return _Attempt(
                rejected=Rejected(reason=written.reason, detail=written.detail), culprit=written.remediation
            )
        if self._relock == "in-process" or self._relocker is None:
            wanted = await drive(ecosystem.relock(unit, remediations), tree, self._metadata)
            by_hand = f"; by hand: {wanted.by_hand}" if isinstance(wanted, ToolRelock) and wanted.by_hand else ""
            rejected = Rejected(reason="tool-required", detail=f"{written.detail}{by_hand}")
            return _Attempt(rejected=rejected, culprit=written.remediation)
        return await self._by_tool(ecosystem, unit, remediations, tree)

    async def _by_tool(
        self, ecosystem: Ecosystem, unit: LockUnit, remediations: Sequence[Remediation], tree: TreeSource
    ) -> _Attempt:
        assert self._relocker is not None
        wanted = await drive(ecosystem.relock(unit, remediations), tree, self._metadata)
        if isinstance(wanted, WriteRefusal):
            return _Attempt(rejected=Rejected(reason=wanted.reason, detail=wanted.detail), culprit=wanted.remediation)
        before = {path: file.content for path, file in (await _contents(tree, wanted)).items()}
        done = await self._relocker.relock(wanted, before)
        if isinstance(done, RelockFailure):
            return _Attempt(
                rejected=Rejected(reason=done.reason, detail=done.detail),
                warnings=wanted.warnings,
            )
        # Manifest edits are part of what the tool was given, not of what it changed.
        return _Attempt(changes=done, by_tool=True, warnings=wanted.warnings)

    async def check_with_tool(self, ecosystem: Ecosystem, unit: LockUnit, tree: TreeSource) -> Rejected | None:
        """V10: the package manager, asked to lock what is there, leaves it as it is."""
        if not self._verify_with_tool:
            return None
        wanted = await drive(ecosystem.relock(unit, ()), tree, self._metadata)
        if isinstance(wanted, WriteRefusal):
            return Rejected(reason=wanted.reason, detail=f"V10 {wanted.detail}")
        if self._relocker is None:
            return Rejected(reason="tool-required", detail="V10 needs the package manager")
        before = {path: file.content for path, file in (await _contents(tree, wanted)).items()}
        done = await self._relocker.relock(wanted, before)
        if isinstance(done, RelockFailure):
            return Rejected(reason=done.reason, detail=f"V10 {done.detail}")
        if done:
            changed = ", ".join(change.path for change in done.changes)
            return Rejected(reason="verification-failed", detail=f"V10 {wanted.tool} would change {changed}")
        return None

    @property
    def metadata(self) -> MetadataSource:
        """What steps are driven with."""
        return self._metadata


class _UnitWork:
    """Settles which remediations of one unit hold."""

    def __init__(self, builder: Builder, plan: Plan, alerts: Sequence[Alert], tree: TreeSource, replan: Replan) -> None:
        self._builder = builder
        self._plan = plan
        self._alerts = alerts
        self._advisories = Advisories(alerts)
        self._tree = tree
        self._replan = replan

    async def read(self, ecosystem: Ecosystem, name: str) -> LockUnit | None:
        listing = await self._tree.listing()
        units = await drive(ecosystem.read_units(listing, [name]), self._tree, self._builder.metadata)
        return next((unit for unit in units if unit.unit == name), None)

    async def settle(
        self, ecosystem: Ecosystem, unit: LockUnit, indices: Sequence[int]
    ) -> tuple[ChangeSet, list[int], dict[int, Rejected], list[str]]:
        """(changes, indices that hold, rejected ones, warnings)."""
        together = await self._proven(ecosystem, unit, indices)
        if together.rejected is None:
            return together.changes, list(indices), {}, list(together.warnings)
        if len(indices) == 1:
            return ChangeSet(), [], {indices[0]: together.rejected}, list(together.warnings)
        log.info("a batch did not hold and is tried one by one", extra={"unit": unit.unit, "size": len(indices)})
        held: list[int] = []
        changes = ChangeSet()
        rejected: dict[int, Rejected] = {}
        warnings = list(together.warnings)
        # What only the package manager can write comes last, so that it is in nobody's way.
        for index in sorted(indices, key=lambda one: self._plan.remediations[one].needs_tool):
            attempt = await self._proven(ecosystem, unit, [*held, index])
            if attempt.rejected is not None and attempt.rejected.reason == "tool-required" and changes:
                attempt = await self._proven_on_top(ecosystem, unit, held, index, changes)
            warnings += attempt.warnings
            if attempt.rejected is None:
                held.append(index)
                changes = attempt.changes
            else:
                rejected[index] = attempt.rejected
        return changes, held, rejected, warnings

    async def _proven_on_top(
        self, ecosystem: Ecosystem, unit: LockUnit, held: Sequence[int], index: int, changes: ChangeSet
    ) -> _Attempt:
        """One more remediation by itself, written over what already holds: the way of one is not the way of all."""
        tree = ChangedTree(self._tree, changes)
        listing = await tree.listing()
        units = await drive(ecosystem.read_units(listing, [unit.unit]), tree, self._builder.metadata)
        now = next((one for one in units if one.unit == unit.unit), unit)
        attempt = await self._builder.attempt(ecosystem, now, [self._plan.remediations[index]], tree)
        if attempt.rejected is not None:
            return attempt
        attempt = replace(attempt, changes=merged(changes, attempt.changes))
        return await self._checked(ecosystem, unit, [*held, index], attempt)

    async def _proven(self, ecosystem: Ecosystem, unit: LockUnit, indices: Sequence[int]) -> _Attempt:
        remediations = [self._plan.remediations[index] for index in indices]
        attempt = await self._builder.attempt(ecosystem, unit, remediations, self._tree)
        if attempt.rejected is not None:
            return attempt
        return await self._checked(ecosystem, unit, indices, attempt)

    async def _checked(
        self, ecosystem: Ecosystem, unit: LockUnit, indices: Sequence[int], attempt: _Attempt
    ) -> _Attempt:
        remediations = [self._plan.remediations[index] for index in indices]
        failures = await self._failures(ecosystem, unit, remediations, attempt)
        if not failures:
            tree = ChangedTree(self._tree, attempt.changes)
            objection = await self._builder.check_with_tool(ecosystem, unit, tree)
            return attempt if objection is None else _Attempt(rejected=objection, warnings=attempt.warnings)
        detail = "; ".join(f"{failure.check} {failure.detail}" for failure in failures[:5])
        if len(failures) > 5:
            detail += f"; and {len(failures) - 5} more"
        return _Attempt(rejected=Rejected(reason="verification-failed", detail=detail), warnings=attempt.warnings)

    async def _failures(
        self, ecosystem: Ecosystem, unit: LockUnit, remediations: Sequence[Remediation], attempt: _Attempt
    ) -> tuple[CheckFailure, ...]:
        tree = ChangedTree(self._tree, attempt.changes)
        listing = await tree.listing()
        metadata = self._builder.metadata
        settled = _settled(self._plan, remediations)
        outcomes = {one.alert: one for one in self._plan.outcomes}
        claim = Claim(
            remediations=remediations,
            answered=[(one, outcomes[one.number]) for one in self._alerts if one.number in settled],
            advisories=self._advisories,
            by_tool=attempt.by_tool,
        )
        failures = await drive(verify_unit(unit, listing, ecosystem, claim), tree, metadata)
        if failures:
            return failures
        again = await drive(self._replan(listing), tree, metadata)
        return tuple(
            CheckFailure(check="V9", detail=f"{remediation.package_name} would move again for alert {alert}")
            for remediation in again.remediations
            for alert in remediation.alerts
            if alert in settled
        )[:5]


def _settled(plan: Plan, remediations: Sequence[Remediation]) -> set[int]:
    """The alerts all of whose remediations are among `remediations`."""
    left = {one for remediation in plan.remediations if remediation not in remediations for one in remediation.alerts}
    return {alert for remediation in remediations for alert in remediation.alerts} - left


async def _contents(tree: TreeSource, wanted: ToolRelock) -> dict[str, FileContent]:
    found = await tree.read(sorted({*wanted.files, *wanted.results}))
    return {path: file for path, file in found.items() if isinstance(file, FileContent)}


async def _require_base(plan: Plan, tree: TreeSource) -> None:
    found = await tree.read(sorted(plan.files))
    changed = [
        path
        for path, sha in sorted(plan.files.items())
        if (file.sha if isinstance(file := found[path], FileContent) else "") != sha
    ]
    if changed:
        raise StalePlanError(
            f"{len(changed)} of the files that the plan was made on changed since: {', '.join(changed[:5])}",
            hint="Plan again.",
            details={"files": changed[:50]},
        )


def merged(first: ChangeSet, second: ChangeSet) -> ChangeSet:
    """`second` after `first`, as one set against the state before `first`."""
    changes = {change.path: change for change in first.changes}
    for change in second.changes:
        earlier = changes.get(change.path)
        before = earlier.before if earlier is not None else change.before
        changes[change.path] = FileChange(path=change.path, before=before, after=change.after, mode=change.mode)
    kept = (change for _, change in sorted(changes.items()) if change.before != change.after)
    return ChangeSet(changes=tuple(kept))
