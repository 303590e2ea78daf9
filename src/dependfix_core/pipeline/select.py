"""Which alerts are answered, and why the others are not.

A filter is a predicate with a reason; a policy is a tuple of them, asked in
order, and the first that objects names the reason.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dependfix_core.model.alert import Alert, AlertState, Severity, by_severity
from dependfix_core.model.plan import SkipReason
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.versions import same_name

Predicate = Callable[[Alert], SkipReason | None]
"""Why an alert is left out; None lets it pass."""

_STATES: dict[str, SkipReason] = {
    AlertState.DISMISSED: "dismissed",
    AlertState.AUTO_DISMISSED: "auto-dismissed",
    AlertState.FIXED: "fixed",
    AlertState.WITHDRAWN: "withdrawn",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """An alert that is not answered."""

    alert: Alert
    reason: SkipReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Every alert in exactly one of the two, each by number."""

    chosen: tuple[Alert, ...]
    left_out: tuple[LeftOut, ...]


def select_alerts(alerts: Iterable[Alert], policy: ScanPolicy) -> Selection:
    """Splits the alerts of one repository by `policy`; a number that comes twice counts once.

    Of two with the same number the one that was updated last counts, so the
    order in which pages came does not matter.
    """
    predicates = predicates_of(policy)
    chosen: list[Alert] = []
    left_out: list[LeftOut] = []
    for alert in unique_alerts(alerts):
        reason = first_objection(alert, predicates)
        if reason is None:
            chosen.append(alert)
        else:
            left_out.append(LeftOut(alert=alert, reason=reason))
    if policy.max_alerts is not None and len(chosen) > policy.max_alerts:
        urgent = sorted(chosen, key=by_severity)
        left_out += (LeftOut(alert=alert, reason="truncated") for alert in urgent[policy.max_alerts :])
        chosen = sorted(urgent[: policy.max_alerts], key=lambda alert: alert.number)
    return Selection(chosen=tuple(chosen), left_out=tuple(sorted(left_out, key=lambda one: one.alert.number)))


def unique_alerts(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Each number once, sorted by it."""
    latest: dict[int, Alert] = {}
    for alert in alerts:
        known = latest.get(alert.number)
        if known is None or (known.updated_at, repr(known)) < (alert.updated_at, repr(alert)):
            latest[alert.number] = alert
    return tuple(latest[number] for number in sorted(latest))


def predicates_of(policy: ScanPolicy) -> tuple[Predicate, ...]:
    """The filters of `policy` in the order in which they are asked."""
    return (is_open, is_readable, has_number(policy.alerts), has_package(policy.packages), meets(policy))


def first_objection(alert: Alert, predicates: Iterable[Predicate]) -> SkipReason | None:
    """The reason of the first predicate that leaves `alert` out; with no predicates every alert passes."""
    return next((reason for predicate in predicates if (reason := predicate(alert)) is not None), None)


def is_open(alert: Alert) -> SkipReason | None:
    """Open, and its advisory not withdrawn; a state that nobody knows is not taken for open."""
    if alert.withdrawn_at is not None:
        return "withdrawn"
    if alert.state == AlertState.OPEN:
        return None
    return _STATES.get(alert.state, "unreadable")


def is_readable(alert: Alert) -> SkipReason | None:
    """Package and range are known."""
    return None if alert.is_readable else "unreadable"


def has_number(numbers: Iterable[int]) -> Predicate:
    """One of `numbers`; none given lets every alert pass."""
    wanted = frozenset(numbers)
    return lambda alert: None if not wanted or alert.number in wanted else "filtered"


def has_package(names: Iterable[str]) -> Predicate:
    """A package called so, by its ecosystem's own idea of equal names; none given lets every alert pass."""
    wanted = tuple(names)

    def judge(alert: Alert) -> SkipReason | None:
        if not wanted or any(same_name(alert.ecosystem, name, alert.package_name) for name in wanted):
            return None
        return "filtered"

    return judge


def meets(policy: ScanPolicy) -> Predicate:
    """At the policy's threshold or above; an unknown severity only passes `all`."""

    def judge(alert: Alert) -> SkipReason | None:
        if alert.severity.meets(policy.severity):
            return None
        return "unknown-severity" if alert.severity is Severity.UNKNOWN else "below-threshold"

    return judge
