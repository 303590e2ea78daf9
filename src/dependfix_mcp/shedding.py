"""Makes a run's result fit: parts go in a fixed order, least severe first, and the result says so."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from dependfix_core.report.wire import RunResult, to_wire
from dependfix_mcp.tooling import TARGET_RESULT_CHARS, compact

_SEVERITIES: Final = ("critical", "high", "medium", "low", "unknown")

Wire = dict[str, Any]
T = TypeVar("T")

_SMALLEST_ITEM: Final = 30
"""Characters; no item of any list has fewer."""


def shed_result(result: RunResult, *, limit: int = TARGET_RESULT_CHARS) -> Wire:
    """The same as `shed` of the result's wire form, without writing out first what cannot stay."""
    most = limit // _SMALLEST_ITEM
    severities = {alert.id: alert.severity for alert in result.alerts}
    rank = {number: _severity(text) for number, text in severities.items()}
    gone: dict[str, int] = {}

    def urgent(name: str, items: tuple[T, ...], urgency: Callable[[T], Any]) -> tuple[T, ...]:
        if len(items) <= most:
            return items
        gone[name] = len(items) - most
        return tuple(items[position] for position in _most_urgent(items, most, urgency))

    alerts = urgent("alerts", result.alerts, lambda alert: (_severity(alert.severity), alert.id))
    plan = result.plan
    if plan is not None:
        outcomes = urgent("outcomes", plan.outcomes, lambda one: (rank.get(one.alert, 4), one.alert))
        remediations = urgent("remediations", plan.remediations, lambda one: _rank_of(one.alerts, rank))
        plan = plan.model_copy(update={"outcomes": outcomes, "remediations": remediations})
    lean = result.model_copy(update={"alerts": alerts, "plan": plan})
    return shed(to_wire(lean), severities=severities, limit=limit, gone=gone)


def shed(
    wire: Wire,
    *,
    severities: Mapping[int, str] | None = None,
    limit: int = TARGET_RESULT_CHARS,
    gone: Mapping[str, int] | None = None,
) -> Wire:
    """`wire` (a run's result, or an object with a `plan`) with at most `limit` characters, as far as lists allow.

    Gone in this order: diffs, actions, alerts, outcomes, remediations; then,
    when even that is not enough, errors and repositories. `truncated` says how
    many of each; `summary` goes on counting everything. `severities` are those
    of the alerts where `wire` does not hold them, `gone` what it lacks already.
    """
    out = {**wire, "plan": {**wire["plan"]}} if isinstance(wire.get("plan"), Mapping) else dict(wire)
    plan = out.get("plan") or {}
    rank = {number: _severity(text) for number, text in (severities or {}).items()} or _ranks(wire)
    steps: list[tuple[str, Wire, Callable[[Wire], Any]]] = [
        ("actions", out, lambda _action: 0),
        ("alerts", out, lambda alert: (_severity(alert.get("severity")), alert.get("id", 0))),
        ("outcomes", plan, lambda outcome: (rank.get(outcome["alert"], 4), outcome["alert"])),
        ("remediations", plan, lambda remediation: _rank_of(remediation["alerts"], rank)),
        ("errors", out, lambda _error: 0),
        ("repositories", out, lambda _repository: 0),
    ]
    truncated = dict(gone or {})
    for name, holder, urgency in steps:
        _keep_possible(holder, name, limit // _SMALLEST_ITEM, urgency, truncated)
    excess = len(compact(out)) - limit
    if excess > 0:
        excess -= _shed_diffs(out, truncated)
    for name, holder, urgency in steps:
        if excess <= 0:
            break
        excess -= _shed_items(holder, name, excess, urgency, truncated)
    if truncated:
        out["truncated"] = truncated
    return out


def _shed_diffs(out: Wire, truncated: dict[str, int]) -> int:
    saved = count = 0
    plan = out.get("plan") or {}
    if plan.get("diff"):
        saved += len(compact(plan["diff"]))
        plan["diff"], plan["diffTruncated"] = "", True
        count += 1
    actions = []
    for action in out.get("actions") or ():
        if action.get("diff"):
            saved += len(compact(action["diff"])) + len('"diff":,')
            count += 1
        actions.append({key: value for key, value in action.items() if key != "diff"})
    if count:
        truncated["diffs"] = count
        if "actions" in out:
            out["actions"] = actions
    return saved


def _keep_possible(
    holder: Wire, name: str, most: int, urgency: Callable[[Wire], Any], truncated: dict[str, int]
) -> None:
    """Drop what cannot stay however small it is, so that only the rest has to be measured."""
    items = holder.get(name)
    if items and len(items) > most:
        holder[name] = [items[position] for position in _most_urgent(items, most, urgency)]
        truncated[name] = len(items) - most


def _most_urgent(items: Sequence[T], most: int, urgency: Callable[[T], Any]) -> list[int]:
    """Positions of the `most` most urgent ones, in their order."""
    order = sorted(range(len(items)), key=lambda position: (urgency(items[position]), position))
    return sorted(order[:most])


def _rank_of(alerts: Iterable[int], rank: Mapping[int, int]) -> int:
    return min((rank.get(number, 4) for number in alerts), default=4)


def _shed_items(holder: Wire, name: str, excess: int, urgency: Callable[[Wire], Any], truncated: dict[str, int]) -> int:
    items = holder.get(name)
    if not items:
        return 0
    order = sorted(range(len(items)), key=lambda position: (urgency(items[position]), position))
    saved, kept = 0, len(order)
    # The note itself takes some room.
    wanted = excess + len(f',"{name}":{len(items)}') + len(',"truncated":{}')
    while kept and saved < wanted:
        kept -= 1
        saved += len(compact(items[order[kept]])) + 1
    staying = set(order[:kept])
    holder[name] = [item for position, item in enumerate(items) if position in staying]
    truncated[name] = truncated.get(name, 0) + len(items) - kept
    return saved


def _ranks(wire: Wire) -> dict[int, int]:
    """Alert number → rank of its severity."""
    return {alert["id"]: _severity(alert.get("severity")) for alert in wire.get("alerts") or ()}


def _severity(text: object) -> int:
    return _SEVERITIES.index(text) if text in _SEVERITIES else len(_SEVERITIES)


def fitting(items: list[Wire], *, room: int) -> int:
    """How many of `items`, from the first on, fit into `room` characters; one always does."""
    used = 0
    for position, item in enumerate(items):
        used += len(compact(item)) + 1
        if used > room:
            return max(1, position)
    return len(items)


def cut_to(item: Wire, limit: int) -> Wire:
    """One item that alone is too large, with its longest text cut until it fits."""
    out = dict(item)
    while len(compact(out)) > limit:
        texts = {key: value for key, value in out.items() if isinstance(value, str) and len(value) > 40}
        if not texts:
            return out
        longest = max(texts, key=lambda key: len(texts[key]))
        keep = max(20, len(texts[longest]) - math.ceil(1.2 * (len(compact(out)) - limit)) - 1)
        out[longest] = f"{texts[longest][:keep]}…"
    return out
