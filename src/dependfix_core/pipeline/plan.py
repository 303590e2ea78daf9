"""The story of a plan: select, read, group, decide, and account for every alert.

Sans-I/O: files and records are asked for in rounds, so one code plans for a
checkout, for the repository on GitHub and for fixtures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dependfix_core.ecosystems.base import Ecosystems, Graph, PlannableEcosystem
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import FileContent, Listing
from dependfix_core.model.lock import Instance, LockUnit, SourceKind
from dependfix_core.model.plan import (
    REFUSAL_REASONS,
    AlertOutcome,
    Edit,
    InstanceVerdict,
    Move,
    OutcomeKind,
    Plan,
    PlanProblem,
    RefusalReason,
    Remediation,
    Strategy,
)
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey, Unavailability, Unavailable
from dependfix_core.model.steps import Needs, Step, Supplies, T, together
from dependfix_core.pipeline.alerts_only import malware_outcome, plan_from_alerts
from dependfix_core.pipeline.cover import Bundle, Decision, decide
from dependfix_core.pipeline.dependabot import Dependabot, read_dependabot
from dependfix_core.pipeline.gates import Gates
from dependfix_core.pipeline.group import Group, clean_manifest_path, group_alerts
from dependfix_core.pipeline.identity import base_digest, plan_digest
from dependfix_core.pipeline.ladder import Dead
from dependfix_core.pipeline.select import LeftOut, select_alerts, unique_alerts
from dependfix_core.pipeline.targets import Advisories, Chooser
from dependfix_core.pipeline.via import Origins
from dependfix_core.versions import Unparsable, VulnerableRange, scheme_for

Planners = Ecosystems[PlannableEcosystem]


def plan_repository(
    alerts: Iterable[Alert],
    listing: Listing | None,
    policy: ScanPolicy,
    ecosystems: Planners,
    *,
    repository: str,
    now: datetime,
    problems: Sequence[PlanProblem] = (),
) -> Step[Plan]:
    """What to do about all alerts of one repository.

    Args:
        alerts: Everything that was fetched, of any state; the order does not matter.
        listing: The paths of the tree; None when no files can be read, and then the
            plan is made from the alerts alone and marked unconfirmed.
        policy: What is answered and what is allowed.
        ecosystems: Readers and graphs.
        repository: `owner/name`.
        now: The time by which releases are young; aware.
        problems: What could not be read before planning began.
    """
    known = unique_alerts(alerts)
    selection = select_alerts(known, policy)
    memory = _Memory()
    work = _plan(selection.chosen, listing, policy, ecosystems, advisories=Advisories(known), now=now)
    parts = yield from memory.watching(work)
    outcomes = [*parts.outcomes, *(_left_out(one) for one in selection.left_out)]
    unanswered = _unanswered(memory.records.values())
    all_problems = (*problems, *sorted((*parts.problems, *unanswered), key=lambda one: (one.target, one.message)))
    plan = Plan(
        plan_id="",
        base=base_digest(memory.files),
        repository=repository,
        policy=policy,
        complete=not all_problems and not any(one.reason == "unreadable" for one in selection.left_out),
        remediations=tuple(sorted(parts.remediations, key=_remediation_order)),
        outcomes=tuple(sorted(outcomes, key=lambda one: one.alert)),
        problems=all_problems,
        files=memory.files,
        records=memory.records,
    )
    return replace(plan, plan_id=plan_digest(plan))


def _unanswered(records: Iterable[Record]) -> tuple[PlanProblem, ...]:
    """Registries that did not answer; what they do not know is an answer."""
    missing: dict[Unavailability, list[Unavailable]] = {}
    for record in records:
        if isinstance(record, Unavailable) and record.why is not Unavailability.NOT_FOUND:
            missing.setdefault(record.why, []).append(record)
    found = []
    for why, those in missing.items():
        first = min(those, key=lambda one: one.key)
        said = f": {first.detail}" if first.detail else ""
        count = f" and of {len(those) - 1} others" if len(those) > 1 else ""
        message = f"registry records of {first.key.name}{count} could not be had ({why.value}){said}"
        found.append(PlanProblem(stage="plan", message=message, target=first.key.name))
    return tuple(found)


class _Memory:
    """Answers again what was answered before, and keeps what the plan was made from."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.records: dict[RecordKey, Record] = {}

    def watching(self, step: Step[T]) -> Step[T]:
        """`step`, asking outside only for what is not known yet."""
        try:
            needs = next(step)
            while True:
                missing = frozenset(key for key in needs.records if key not in self.records)
                files = {}
                if missing or needs.files:
                    supplies = yield Needs(files=needs.files, records=missing)
                    self.records.update((key, supplies.records[key]) for key in missing)
                    files = {path: supplies.files[path] for path in needs.files}
                    self.files.update(
                        (path, found.sha) for path, found in files.items() if isinstance(found, FileContent)
                    )
                needs = step.send(Supplies(files=files, records=self.records))
        except StopIteration as stop:
            result: T = stop.value
            return result


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    remediations: tuple[Remediation, ...] = ()
    outcomes: tuple[AlertOutcome, ...] = ()
    problems: tuple[PlanProblem, ...] = ()


def _joined(parts: Iterable[_Parts]) -> _Parts:
    found = tuple(parts)
    return _Parts(
        remediations=tuple(one for part in found for one in part.remediations),
        outcomes=tuple(one for part in found for one in part.outcomes),
        problems=tuple(dict.fromkeys(one for part in found for one in part.problems)),
    )


def _plan(
    chosen: Sequence[Alert],
    listing: Listing | None,
    policy: ScanPolicy,
    ecosystems: Planners,
    *,
    advisories: Advisories,
    now: datetime,
) -> Step[_Parts]:
    if listing is None:
        return _without_files(
            chosen, advisories, PlanProblem(stage="plan", message="the project's files were not read")
        )
    serving = {alert.ecosystem.lower(): ecosystems.serving(alert.ecosystem) for alert in chosen}
    unserved = [alert for alert in chosen if serving[alert.ecosystem.lower()] is None]
    parts = [
        _without_files(
            [alert for alert in unserved if alert.ecosystem.lower() == name],
            advisories,
            PlanProblem(stage="plan", message=f"files of {name} are not read", target=name),
        )
        for name in sorted({alert.ecosystem.lower() for alert in unserved})
    ]
    members = sorted({member.ids: member for member in serving.values() if member is not None}.items())
    served = [
        [alert for alert in chosen if alert.ecosystem.lower() in ids and alert not in unserved] for ids, _ in members
    ]
    dependabot = yield from read_dependabot(listing)
    parts.append(_Parts(problems=dependabot.problems))
    units = yield from together(
        [member.read_units(listing, _paths(found)) for (_, member), found in zip(members, served, strict=True)]
    )
    steps: list[Step[_Parts]] = []
    for (_, member), found, read in zip(members, served, units, strict=True):
        grouping = group_alerts(found, read)
        parts.append(_homeless(grouping.homeless, listing, advisories))
        by_unit: dict[tuple[str, str], list[Group]] = {}
        for group in grouping.groups:
            by_unit.setdefault((group.unit.unit, group.unit.ecosystem), []).append(group)
        steps += [
            _plan_unit(member, groups, advisories=advisories, policy=policy, dependabot=dependabot, now=now)
            for groups in by_unit.values()
        ]
    parts += yield from together(steps)
    return _joined(parts)


def _paths(alerts: Iterable[Alert]) -> tuple[str, ...]:
    paths = (clean_manifest_path(alert.manifest_path) for alert in alerts)
    return tuple(sorted({path for path in paths if path is not None}))


def _without_files(alerts: Sequence[Alert], advisories: Advisories, problem: PlanProblem) -> _Parts:
    if not alerts:
        return _Parts()
    found = plan_from_alerts(alerts, advisories)
    return _Parts(remediations=found.remediations, outcomes=found.outcomes, problems=(problem,))


def _homeless(alerts: Iterable[Alert], listing: Listing, advisories: Advisories) -> _Parts:
    """Alerts whose manifest no unit covers: gone, or of a kind or in a part of the tree that could not be read."""
    parts = []
    for alert in alerts:
        path = clean_manifest_path(alert.manifest_path)
        if path is not None and path in listing:
            detail = f"{path} is no file that is read for {alert.ecosystem}"
            outcome = AlertOutcome(
                alert=alert.number, outcome="refuse", reason="unsupported-lock-format", detail=detail
            )
            parts.append(_Parts(outcomes=(outcome,)))
        elif path is not None and not listing.complete:
            problem = PlanProblem(stage="plan", message="the listing of the tree is not complete", target=path)
            parts.append(_without_files([alert], advisories, problem))
        else:
            parts.append(_Parts(outcomes=(_missing(alert),)))
    return _joined(parts)


def _missing(alert: Alert) -> AlertOutcome:
    return AlertOutcome(
        alert=alert.number,
        outcome="not-present",
        reason="manifest-missing",
        detail=f"{alert.manifest_path[:200]} is not in the tree",
    )


def _left_out(one: LeftOut) -> AlertOutcome:
    return AlertOutcome(alert=one.alert.number, outcome="skip", reason=one.reason)


# One unit.


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sighting:
    """What one alert finds in its unit."""

    alert: Alert
    group: Group
    hits: tuple[Instance, ...]
    unparsable: tuple[Instance, ...] = ()
    present: tuple[Instance, ...] = ()


def _plan_unit(
    ecosystem: PlannableEcosystem,
    groups: Sequence[Group],
    *,
    advisories: Advisories,
    policy: ScanPolicy,
    dependabot: Dependabot,
    now: datetime,
) -> Step[_Parts]:
    unit = groups[0].unit
    problems = tuple(
        PlanProblem(stage="plan", message=_said(one.position, one.message), target=one.path) for one in unit.problems
    )
    unreadable = _unreadable(unit)
    if unreadable is not None:
        outcomes = tuple(replace(unreadable, alert=alert.number) for group in groups for alert in group.alerts)
        return _Parts(outcomes=outcomes, problems=problems)
    graph = ecosystem.graph(unit)
    chooser = Chooser(
        advisories=advisories,
        graph=graph,
        policy=policy,
        gates=Gates((*unit.gates, *dependabot.gates(unit)), policy),
        now=now,
    )
    sightings = [_look(alert, group, graph) for group in groups for alert in group.alerts]
    order = {where: index for index, where in enumerate(unit.instances)}
    vulnerable = sorted(
        {hit.where for sighting in sightings if not sighting.alert.is_malware for hit in sighting.hits},
        key=lambda where: (order.get(where, len(order)), where),
    )
    decision = yield from decide(graph, vulnerable, chooser)
    remediations = yield from together(
        [_remediation(bundle, unit, sightings, decision, chooser, graph) for bundle in decision.bundles]
    )
    origins = Origins(unit) if vulnerable else None
    accounts = yield from together([_outcome(sighting, decision, origins, chooser) for sighting in sightings])
    return _Parts(
        remediations=tuple(one for one in remediations if one.alerts), outcomes=tuple(accounts), problems=problems
    )


def _said(position: str, message: str) -> str:
    return f"{position}: {message}" if position else message


def _unreadable(unit: LockUnit) -> AlertOutcome | None:
    """The answer for all alerts of a unit whose lock, or only manifest, could not be read."""
    for problem in unit.problems:
        if problem.reason and (problem.path == unit.unit or not unit.instances):
            by = f"{problem.path} {_said(problem.position, problem.message)}"
            if problem.reason in REFUSAL_REASONS:
                reason: RefusalReason = problem.reason  # type: ignore[assignment] # membership was just tested
                return AlertOutcome(alert=0, outcome="refuse", reason=reason, blocked_by=by, detail=problem.message)
            return AlertOutcome(alert=0, outcome="skip", reason="unreadable", blocked_by=by, detail=problem.message)
    return None


def _look(alert: Alert, group: Group, graph: Graph) -> _Sighting:
    present = graph.instances(group.package)
    scheme = scheme_for(group.ecosystem)
    vulnerable = VulnerableRange.parse(group.ecosystem, alert.vulnerable_range)
    if scheme is None or isinstance(vulnerable, Unparsable):
        return _Sighting(alert=alert, group=group, hits=(), unparsable=present, present=present)
    hits: list[Instance] = []
    unparsable: list[Instance] = []
    for instance in present:
        version = scheme.try_parse(instance.version)
        if isinstance(version, Unparsable):
            # The project's own packages have any version or none; they are not what the advisory is about.
            if instance.source.kind not in (SourceKind.WORKSPACE, SourceKind.LINK):
                unparsable.append(instance)
            continue
        inside = vulnerable.contains(version)
        if inside.is_yes:
            hits.append(instance)
        elif inside.may_be:
            unparsable.append(instance)
    return _Sighting(alert=alert, group=group, hits=tuple(hits), unparsable=tuple(unparsable), present=present)


def _outcome(sighting: _Sighting, decision: Decision, origins: Origins | None, chooser: Chooser) -> Step[AlertOutcome]:
    alert = sighting.alert
    if alert.is_malware and (sighting.hits or sighting.unparsable):
        verdicts = tuple(
            InstanceVerdict(where=hit.where, version=hit.version, via=_via(origins, hit), reason="malware")
            for hit in sighting.hits
        )
        return replace(malware_outcome(alert), instances=verdicts)
    if not sighting.hits and not sighting.unparsable:
        return _nothing_to_do(sighting)
    moved = {planned.moved.where: planned.moved for bundle in decision.bundles for planned in bundle.moves}
    verdicts_: list[InstanceVerdict] = []
    refusals: list[Dead] = []
    for hit in sighting.hits:
        dead = decision.dead.get(hit.where)
        to_version = moved[hit.where].to_version if dead is None and hit.where in moved else None
        if dead is not None:
            refusals.append(dead)
        verdicts_.append(
            InstanceVerdict(
                where=hit.where,
                version=hit.version,
                to_version=to_version,
                via=_via(origins, hit),
                reason=dead.reason if dead is not None else None,
            )
        )
    for unknown in sighting.unparsable:
        dead = _unparsable(unknown, sighting)
        refusals.append(dead)
        verdicts_.append(
            InstanceVerdict(
                where=unknown.where, version=unknown.version, via=_via(origins, unknown), reason=dead.reason
            )
        )
    kind: OutcomeKind = "fix" if not refusals else "partial" if len(refusals) < len(verdicts_) else "refuse"
    next_safe = yield from _next_safe(sighting, verdicts_, refusals, chooser)
    first = refusals[0] if refusals else None
    return AlertOutcome(
        alert=alert.number,
        outcome=kind,
        reason=first.reason if first is not None else None,
        blocked_by=first.blocked_by if first is not None else None,
        instances=tuple(verdicts_),
        next_safe_version=next_safe,
        detail=first.detail if first is not None else "",
    )


def _nothing_to_do(sighting: _Sighting) -> AlertOutcome:
    alert = sighting.alert
    if not sighting.present:
        return AlertOutcome(
            alert=alert.number,
            outcome="not-present",
            detail=f"{sighting.group.package} is not in {sighting.group.unit.unit}",
        )
    versions = ", ".join(dict.fromkeys(instance.version for instance in sighting.present if instance.version))
    return AlertOutcome(
        alert=alert.number,
        outcome="converged",
        detail=f"{sighting.group.unit.unit} holds {sighting.group.package} {versions}".rstrip(),
    )


def _unparsable(instance: Instance, sighting: _Sighting) -> Dead:
    if instance.source.kind is not SourceKind.REGISTRY:
        kind = instance.source.kind.value
        return Dead(reason="non-registry-source", detail=f"{instance.where} comes from {kind}")
    if not instance.version:
        return Dead(reason="dynamic-version", detail=f"{instance.where} names no version that could be raised")
    return Dead(
        reason="unparsable-version",
        detail=f"{instance.version!r} cannot be compared with `{sighting.alert.vulnerable_range}`",
    )


def _next_safe(
    sighting: _Sighting, verdicts: Sequence[InstanceVerdict], refusals: Sequence[Dead], chooser: Chooser
) -> Step[str | None]:
    """The lowest target, else the least safe version that is known of."""
    scheme = chooser.scheme
    targets = [scheme.try_parse(one.to_version) for one in verdicts if one.to_version is not None]
    parsed = [one for one in targets if not isinstance(one, Unparsable)]
    if parsed:
        return scheme.sort(parsed)[0].text
    named = next((one.next_safe for one in refusals if one.next_safe is not None), None)
    if named is not None or not sighting.hits or refusals:
        return named
    least = yield from chooser.targets(sighting.group.package, sighting.hits[0].version)
    return least.next_safe


def _via(origins: Origins | None, instance: Instance) -> tuple[tuple[str, ...], ...]:
    return origins.chains(instance.where) if origins is not None else ()


def _remediation(
    bundle: Bundle,
    unit: LockUnit,
    sightings: Sequence[_Sighting],
    decision: Decision,
    chooser: Chooser,
    graph: Graph,
) -> Step[Remediation]:
    moved = {planned.moved.where: planned for planned in bundle.moves}
    answered = [
        sighting
        for sighting in sightings
        if not sighting.alert.is_malware
        and any(
            hit.where in moved and hit.where not in decision.dead and hit.where not in bundle.repeats
            for hit in sighting.hits
        )
    ]
    unconfirmed = False
    warnings = set(bundle.warnings)
    exclusions: dict[tuple[str, str, str], Edit] = {}
    for planned in bundle.moves:
        version = planned.moved.to_version
        if version is None:
            continue
        facts = yield from chooser.facts(planned.moved.package, version)
        if not facts.is_listed and planned.is_leading:
            unconfirmed = True
            warnings.add(f"unconfirmed: no registry record of {planned.moved.package} {version}")
        if facts.is_undated:
            warnings.add(f"age-unknown: {planned.moved.package} {version}")
        if facts.deprecated:
            warnings.add(f"deprecated: {planned.moved.package} {version}")
        for gate in facts.held_by:
            edit = graph.gate_exclusion(gate, planned.moved.package, version)
            if edit is None:
                warnings.add(f"young: {planned.moved.package} {version} is held back by {gate.path} {gate.at}")
            else:
                exclusions[edit.path, edit.at, edit.to_text] = edit
    is_major = any(
        planned.is_asked
        and planned.moved.from_version is not None
        and planned.moved.to_version is not None
        and chooser.crosses_line(planned.moved.from_version, planned.moved.to_version)
        for planned in bundle.moves
    )
    strategy: Strategy = bundle.strategies[0] if len(bundle.strategies) == 1 else "mixed"
    return Remediation(
        unit=unit.unit,
        ecosystem=unit.ecosystem,
        package_name=_leading_package(bundle, answered),
        strategy=strategy,
        moves=tuple(
            Move(
                where=planned.moved.where,
                package_name=planned.moved.package,
                from_version=planned.moved.from_version,
                to_version=planned.moved.to_version,
                strategy=planned.strategy,
                added=planned.moved.from_version is None,
                removed=planned.moved.to_version is None,
            )
            for planned in bundle.moves
        ),
        edits=(*bundle.edits, *(exclusions[key] for key in sorted(exclusions))),
        alerts=tuple(sorted(sighting.alert.number for sighting in answered)),
        is_major=is_major,
        needs_tool=bundle.needs_tool,
        unconfirmed=unconfirmed,
        warnings=tuple(sorted(warnings)),
    )


def _leading_package(bundle: Bundle, answered: Sequence[_Sighting]) -> str:
    """The package of the alert with the lowest number."""
    if answered:
        return min(answered, key=lambda one: one.alert.number).group.package
    return bundle.moves[0].moved.package if bundle.moves else ""


def _remediation_order(one: Remediation) -> tuple[object, ...]:
    return (one.unit, one.ecosystem, one.package_name, tuple(move.where for move in one.moves), one.alerts)
