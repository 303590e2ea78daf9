"""A plan without files: what the alerts of one package and manifest together allow, all of it unconfirmed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from dependfix_core.collector import collector_paused
from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import AlertOutcome, Move, RefusalReason, Remediation, Strategy
from dependfix_core.pipeline.group import package_key
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.versions import Version, normalise_name, scheme_for

_UNCONFIRMED = "unconfirmed: the project's files were not read"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertsOnlyPlan:
    """Both parts of a plan."""

    remediations: tuple[Remediation, ...]
    outcomes: tuple[AlertOutcome, ...]


@collector_paused()
def plan_from_alerts(alerts: Iterable[Alert], advisories: Advisories) -> AlertsOnlyPlan:
    """The least patched version that is outside all ranges, for each line that the alerts of a manifest name.

    Which copies are locked is not known, so every alert is answered for its own
    line: the target is a patched version that the advisories name, at or above
    the alert's own. Packages whose alerts name none are refused.
    """
    remediations: list[Remediation] = []
    outcomes: list[AlertOutcome] = []
    for (manifest, ecosystem, _), found in groupby(sorted(alerts, key=_group), key=_group):
        group = sorted(found, key=lambda alert: alert.number)
        package = normalise_name(ecosystem, group[0].package_name)
        by_target: dict[str, list[Alert]] = {}
        for alert in group:
            answer = _target(alert, advisories)
            if isinstance(answer, str):
                by_target.setdefault(answer, []).append(alert)
                outcomes.append(
                    AlertOutcome(alert=alert.number, outcome="fix", next_safe_version=answer, detail=_UNCONFIRMED)
                )
            else:
                outcomes.append(answer)
        for target, answered in by_target.items():
            remediations.append(_remediation(manifest, ecosystem, package, target, answered))
    return AlertsOnlyPlan(remediations=tuple(remediations), outcomes=tuple(outcomes))


def _group(alert: Alert) -> tuple[str, str, str]:
    return (alert.manifest_path, alert.ecosystem.lower(), package_key(alert.ecosystem, alert.package_name))


def _target(alert: Alert, advisories: Advisories) -> str | AlertOutcome:
    if alert.is_malware:
        return malware_outcome(alert)
    scheme = scheme_for(alert.ecosystem)
    if scheme is None:
        return _refused(alert, "unparsable-version", f"versions of {alert.ecosystem} cannot be compared")
    if not alert.first_patched_version:
        return _refused(alert, "no-patch", "the advisory names no patched version")
    own = scheme.try_parse(alert.first_patched_version)
    if not isinstance(own, Version):
        return _refused(alert, "unparsable-version", f"{alert.first_patched_version[:80]!r} is no version")
    entries = advisories.entries(alert.ecosystem, alert.package_name)
    named = [entry.patched for entry in entries if entry.patched is not None]
    above = [version for version in scheme.sort({*named, own}) if scheme.compare(version, own) in (0, 1)]
    safe = [one for one in above if advisories.unsafe(alert.ecosystem, alert.package_name, one.text).is_no]
    if not safe:
        return _refused(alert, "no-patch", "every patched version that is named is inside another range")
    stable = [one for one in safe if not scheme.is_prerelease(one)]
    if not stable:
        return _refused(alert, "no-stable-patch", f"only the pre-release {safe[0].text} is safe", safe[0].text)
    own_line = [one for one in stable if scheme.same_line(one, own)]
    return (own_line or stable)[0].text


def _refused(alert: Alert, reason: RefusalReason, detail: str, next_safe: str | None = None) -> AlertOutcome:
    return AlertOutcome(alert=alert.number, outcome="refuse", reason=reason, detail=detail, next_safe_version=next_safe)


def malware_outcome(alert: Alert) -> AlertOutcome:
    """What every alert of a hostile package gets: no bump is an answer to it."""
    return AlertOutcome(
        alert=alert.number,
        outcome="refuse",
        reason="malware",
        detail=f"{alert.package_name} is malware: remove it and rotate every secret that it could have read",
    )


def _remediation(manifest: str, ecosystem: str, package: str, target: str, alerts: Sequence[Alert]) -> Remediation:
    # Whether a lock or a manifest has to change cannot be known; a declared dependency usually means the manifest.
    direct = any(alert.dependency_type == "direct" for alert in alerts)
    strategy: Strategy = "manifest-bump" if direct else "lock-in-range"
    move = Move(where=package, package_name=package, from_version=None, to_version=target, strategy=strategy)
    return Remediation(
        unit=manifest,
        ecosystem=ecosystem,
        package_name=package,
        strategy=strategy,
        moves=(move,),
        alerts=tuple(alert.number for alert in alerts),
        unconfirmed=True,
        warnings=(_UNCONFIRMED,),
    )
