"""One package to one version, because somebody says so: the same legality and proof as for an alert.

The request becomes a pseudo alert whose only safe version is the wanted one,
so that the planner decides about it by the same rules. An explicit target is
consent to a major.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from dependfix_core.ecosystems.base import Ecosystems, PlannableEcosystem
from dependfix_core.errors import ArgumentError
from dependfix_core.model.alert import AffectedRange, Alert, Severity
from dependfix_core.model.files import Listing
from dependfix_core.model.lock import Instance, LockUnit, SourceKind
from dependfix_core.model.plan import AlertOutcome, Plan, RefusalReason
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import PackageRecord
from dependfix_core.model.steps import Step, records_for, together
from dependfix_core.pipeline.group import UnitNames, clean_manifest_path
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.versions import Unparsable, Version, VersionScheme, scheme_for

PSEUDO_ALERT: Final = 0
"""Number of the alert that stands for the request; GitHub's begin at 1."""
_MAX_NAMED: Final = 20

DependencyReason = RefusalReason | Literal["downgrade", "version-not-found", "still-vulnerable", "already-at-target"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyRequest:
    """What somebody wants moved, and to where."""

    package: str
    target: str
    ecosystem: str = ""
    """GitHub's name; empty looks in all that are served."""
    manifest: str = ""
    """A manifest or lockfile; empty looks everywhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyPlan:
    """The way there, or why there is none."""

    unit: str
    ecosystem: str
    package: str
    """As the unit spells it."""
    is_direct: bool
    from_versions: tuple[str, ...]
    """Locked versions that would move; the declared requirement's text where there is no lock."""
    alerts: tuple[Alert, ...]
    """The open alerts and the pseudo alert, for applying and proving `plan`."""
    policy: ScanPolicy
    plan: Plan | None = None
    reason: DependencyReason | None = None
    detail: str = ""
    blocked_by: str | None = None
    next_safe: str | None = None
    resolved: tuple[int, ...] = ()
    """Open alerts that the move answers."""

    @property
    def outcome(self) -> AlertOutcome | None:
        """What the planner says of the request."""
        outcomes = self.plan.outcomes if self.plan is not None else ()
        return next((one for one in outcomes if one.alert == PSEUDO_ALERT), None)


def plan_dependency(
    request: DependencyRequest,
    alerts: Sequence[Alert],
    listing: Listing,
    policy: ScanPolicy,
    ecosystems: Ecosystems[PlannableEcosystem],
    *,
    repository: str,
    now: datetime,
) -> Step[DependencyPlan]:
    """How `request.package` gets to exactly `request.target` in the one unit that holds it.

    Raises:
        ArgumentError: No unit holds the package, several do, or the target is no version.
    """
    unit, package, member = yield from _home(request, listing, ecosystems)
    scheme = scheme_for(unit.ecosystem)
    assert scheme is not None, "units exist for ecosystems with an order of versions only"
    target = scheme.try_parse(request.target)
    if isinstance(target, Unparsable):
        raise ArgumentError(
            f"{request.target[:60]!r} is no version of {unit.ecosystem}",
            hint="For example targetVersion=4.17.21.",
            details={"argument": "targetVersion"},
        )
    copies = [one for one in unit.instances.values() if one.name == package]
    declared = [one for one in unit.constraints if one.package == package]
    advisories = Advisories(alerts)
    base = DependencyPlan(
        unit=unit.unit,
        ecosystem=unit.ecosystem,
        package=package,
        is_direct=bool(declared),
        from_versions=tuple(dict.fromkeys(one.version for one in copies))
        or tuple(dict.fromkeys(one.requirement for one in declared)),
        alerts=tuple(alerts),
        policy=policy,
    )
    refused = _refused_at_once(copies, scheme, target)
    if refused is not None:
        return replace(base, reason=refused[0], detail=refused[1])
    key = member.graph(unit).record_key(package)
    record = (yield from records_for([key]))[key]
    if isinstance(record, PackageRecord) and not _is_listed(record, scheme, target):
        return replace(base, reason="version-not-found", detail=f"the registry lists no {package} {target.text}")
    if not advisories.unsafe(unit.ecosystem, package, target.text).is_no:
        return replace(
            base, reason="still-vulnerable", detail=f"{package} {target.text} is in the range of an open alert"
        )
    moving = _moving(copies, scheme, target)
    pseudo = _pseudo_alert(request, repository, unit, package, moving, scheme, target)
    wide = replace(
        policy,
        severity="all",
        packages=(),
        alerts=(PSEUDO_ALERT,),
        max_alerts=None,
        allow_major=True,
        allow_major_override=True,
        raise_direct_floor=False,
    )
    known = (*alerts, pseudo)
    plan = yield from plan_repository(known, listing, wide, ecosystems, repository=repository, now=now)
    found = replace(
        base,
        alerts=known,
        policy=wide,
        from_versions=tuple(dict.fromkeys(one.version for one in moving)) or base.from_versions,
    )
    return _judged(found, plan, advisories, [one for one in copies if one not in moving])


def _home(
    request: DependencyRequest, listing: Listing, ecosystems: Ecosystems[PlannableEcosystem]
) -> Step[tuple[LockUnit, str, PlannableEcosystem]]:
    members = ecosystems.members
    if request.ecosystem:
        one = ecosystems.serving(request.ecosystem)
        if one is None:
            served = sorted(name for member in members for name in member.ids)
            raise ArgumentError(
                f"files of {request.ecosystem[:60]} are not fixed",
                hint=f"ecosystem is one of {', '.join(served)}.",
                details={"argument": "ecosystem"},
            )
        members = (one,)
    wanted = clean_manifest_path(request.manifest) if request.manifest else None
    if request.manifest and (wanted is None or wanted not in listing):
        raise ArgumentError(
            f"there is no file {request.manifest[:200]!r}",
            hint="manifestPath is relative to the top level of the repository.",
            details={"argument": "manifestPath"},
        )
    paths = [
        (wanted,) if wanted is not None else tuple(path for path in listing if member.recognises(path))
        for member in members
    ]
    units = yield from together(
        [member.read_units(listing, found) for member, found in zip(members, paths, strict=True)]
    )
    homes = []
    for member, read in zip(members, units, strict=True):
        for unit in read:
            names = UnitNames(unit)
            spelled = names.spelled(request.package)
            if names.has(spelled):
                homes.append((unit, spelled, member))
    if len(homes) == 1:
        return homes[0]
    if not homes:
        raise ArgumentError(
            f"no manifest or lockfile holds {request.package[:100]}",
            hint="Use the name as the lockfile spells it; manifestPath and ecosystem narrow the search.",
            details={"argument": "packageName"},
        )
    candidates = [{"manifestPath": unit.unit, "ecosystem": unit.ecosystem} for unit, _, _ in homes[:_MAX_NAMED]]
    named = ", ".join(f"{one['manifestPath']} ({one['ecosystem']})" for one in candidates)
    raise ArgumentError(
        f"{request.package[:100]} is in several places: {named}",
        hint="Say which one with manifestPath (and ecosystem).",
        details={"argument": "manifestPath", "candidates": candidates},
    )


def _refused_at_once(
    copies: Sequence[Instance], scheme: VersionScheme, target: Version
) -> tuple[DependencyReason, str] | None:
    parsed = [(copy, scheme.try_parse(copy.version)) for copy in copies]
    known = [version for _, version in parsed if isinstance(version, Version)]
    orders = [scheme.compare(version, target) for version in known]
    if known and len(known) == len(copies):
        if all(order == 0 for order in orders):
            return "already-at-target", f"every copy is at {target.text}"
        if all(order in (0, 1) for order in orders):
            newer = ", ".join(dict.fromkeys(version.text for version in known))
            return "downgrade", f"locked is {newer}, and nothing is moved to an older version"
    foreign = [copy for copy in copies if copy.source.kind is not SourceKind.REGISTRY]
    if copies and len(foreign) == len(copies):
        return "non-registry-source", f"{foreign[0].where} comes from {foreign[0].source.kind.value}"
    return None


def _is_listed(record: PackageRecord, scheme: VersionScheme, target: Version) -> bool:
    if target.text in record.releases:
        return True
    parsed = (scheme.try_parse(text) for text in record.releases)
    return any(isinstance(version, Version) and scheme.compare(version, target) == 0 for version in parsed)


def _moving(copies: Sequence[Instance], scheme: VersionScheme, target: Version) -> list[Instance]:
    """Older copies of the target's own line; where that has none, all older ones."""
    older = []
    for copy in copies:
        version = scheme.try_parse(copy.version)
        if isinstance(version, Version) and scheme.compare(version, target) == -1:
            older.append((copy, version))
    own = [copy for copy, version in older if scheme.same_line(version, target)]
    return own or [copy for copy, _ in older]


def _pseudo_alert(
    request: DependencyRequest,
    repository: str,
    unit: LockUnit,
    package: str,
    moving: Sequence[Instance],
    scheme: VersionScheme,
    target: Version,
) -> Alert:
    versions = [version for one in moving if isinstance(version := scheme.try_parse(one.version), Version)]
    floor = f">= {scheme.sort(versions)[0].text}, " if versions else ""
    return Alert(
        repository=repository,
        number=PSEUDO_ALERT,
        severity=Severity.CRITICAL,
        ecosystem=unit.ecosystem,
        package_name=package,
        manifest_path=unit.unit,
        ghsa_id="",
        summary=f"requested: {request.package} {request.target}",
        vulnerable_range=f"{floor}< {target.text}",
        first_patched_version=target.text,
        # Nothing but the wanted version answers the request.
        other_ranges=(AffectedRange(vulnerable_range=f"> {target.text}"),),
    )


def _judged(found: DependencyPlan, plan: Plan, advisories: Advisories, staying: Sequence[Instance]) -> DependencyPlan:
    outcome = next(one for one in plan.outcomes if one.alert == PSEUDO_ALERT)
    if outcome.outcome != "fix":
        reason = outcome.reason
        return replace(
            found,
            reason=reason if reason is not None else "metadata-unavailable",  # type: ignore[arg-type] # refusals only
            detail=outcome.detail,
            blocked_by=outcome.blocked_by,
            next_safe=outcome.next_safe_version,
        )
    return replace(found, plan=plan, resolved=_resolved(found, advisories, staying))


def _resolved(found: DependencyPlan, advisories: Advisories, staying: Sequence[Instance]) -> tuple[int, ...]:
    """Open alerts of the package in this unit, unless a copy that stays is still in a range."""
    if any(not advisories.unsafe(found.ecosystem, found.package, one.version).is_no for one in staying):
        return ()
    names = {found.package.lower()}
    return tuple(
        sorted(
            alert.number
            for alert in found.alerts
            if alert.number != PSEUDO_ALERT
            and alert.state == "open"
            and alert.ecosystem.lower() == found.ecosystem.lower()
            and alert.package_name.lower() in names
            and clean_manifest_path(alert.manifest_path) == found.unit
        )
    )
