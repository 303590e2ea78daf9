"""The report as Markdown: tables that read well on GitHub and in a terminal."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from dependfix_core.process import clean_text
from dependfix_core.report.text import (
    advisory_link,
    empty_words,
    outcome_slices,
    outcome_words,
    readable_duration,
    readable_time,
    repositories_title,
    safe_link,
    severity_slices,
    version_change,
)
from dependfix_core.report.wire import NormalizedSecurityAlert, PlanRemediation, RunResult

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]()<>#+!|~&:]")
_MAX_CELL: Final = 300
MAX_ROWS: Final = 1000
"""Alerts in the table, the most severe ones."""


def render_markdown(result: RunResult) -> str:
    """The report as Markdown; texts of others cannot form links, mentions, markup or HTML."""
    lines = [f"# Dependency security: {escape(repositories_title(result))}", ""]
    lines += _facts(result)
    lines += _counts(result)
    lines += _repositories(result)
    lines += _alerts(result)
    lines += _plan(result)
    lines += _pull_requests(result)
    lines += _actions(result)
    lines += _errors(result)
    lines += _next_steps(result)
    return "\n".join(lines).rstrip("\n") + "\n"


def escape(text: str | None) -> str:
    """`text` as plain words of one line: nothing in it is markup, an address or a mention."""
    flat = clean_text(text or "", max_chars=_MAX_CELL, one_line=True)
    # A mention is found after entities are resolved, so it is split by a zero-width space.
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", flat).replace("@", "@\u200b").replace("www.", "www&#46;")


def code(text: str | None) -> str:
    """`text` as a code span."""
    flat = clean_text(text or "", max_chars=_MAX_CELL, one_line=True).strip()
    if not flat:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}".replace("|", "\\|")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body, ""] if body else []


def _facts(result: RunResult) -> list[str]:
    config = result.config
    facts = [
        f"Run {code(result.run_id)}",
        escape(config.mode),
        f"severity {escape(config.severity_threshold)} and above",
    ]
    if config.severity_threshold == "all":
        facts[-1] = "all severities"
    if config.dry_run and config.mode != "report-only":
        facts.append("dry run")
    when = readable_time(result.started_at)
    duration = readable_duration(result)
    if when:
        facts.append(escape(when) + (f", {duration}" if duration else ""))
    if result.status != "done":
        facts.append(f"**{escape(result.status)}**")
    return [" · ".join(facts), ""]


def _counts(result: RunResult) -> list[str]:
    found = len(result.alerts) or result.summary.alerts_found
    if not found:
        return [empty_words(result), ""]
    outcomes = ", ".join(f"{part.count} {escape(part.label)}" for part in outcome_slices(result))
    severities = ", ".join(f"{part.count} {part.label}" for part in severity_slices(result))
    return [f"**{found} alerts**: {outcomes}.", "", f"By severity: {severities}.", ""]


def _repositories(result: RunResult) -> list[str]:
    if len(result.repositories) < 2:
        return []
    rows = (
        (
            escape(stats.repository),
            str(stats.alerts_count),
            str(stats.fixable),
            str(stats.fixed),
            str(stats.failed),
        )
        for stats in result.repositories
    )
    return ["## Repositories", "", *_table(("Repository", "Alerts", "Fixable", "Fixed", "Failed"), rows)]


def _alerts(result: RunResult) -> list[str]:
    several = len(result.repositories) > 1
    head = ("Alert", "Severity", "Package", "File", "Target", "Outcome", "Advisory")

    def row(alert: NormalizedSecurityAlert) -> tuple[str, ...]:
        link = safe_link(alert.html_url)
        number = f"[{alert.id}](<{link}>)" if link else str(alert.id)
        words, why = outcome_words(alert, result)
        page = advisory_link(alert.rule_id)
        advisory = f"[{alert.rule_id}](<{page}>)" if page else escape(alert.rule_id)
        return (
            f"{escape(alert.repository)} {number}" if several else number,
            escape(alert.severity),
            f"{code(alert.package_name)} {escape(alert.package_ecosystem)}".strip(),
            code(alert.manifest_path),
            code(alert.recommended_version),
            escape(f"{words}: {why}" if why else words),
            f"{advisory} {escape(alert.summary)}".strip(),
        )

    table = _table(head, map(row, result.alerts[:MAX_ROWS]))
    left_out = len(result.alerts) - MAX_ROWS
    note = [f"The {left_out} least severe ones are in the JSON report only.", ""] if left_out > 0 else []
    return ["## Alerts", "", *table, *note] if table else []


def _plan(result: RunResult) -> list[str]:
    if result.plan is None or not result.plan.remediations:
        return []

    def row(remediation: PlanRemediation) -> tuple[str, ...]:
        moves = "; ".join(
            f"{escape(move.package_name)} {code(version_change(move.from_version, move.to_version))}"
            for move in remediation.moves[:5]
        )
        if len(remediation.moves) > 5:
            moves += f"; and {len(remediation.moves) - 5} more"
        edits = "; ".join(
            f"{code(edit.path)} {code(edit.at)} {code(version_change(edit.from_, edit.to))}"
            for edit in remediation.edits[:5]
        )
        notes = [*(["major version"] if remediation.is_major else []), *remediation.warnings]
        notes += ["from the alert alone, not confirmed in the files"] if remediation.unconfirmed else []
        return (
            code(remediation.unit),
            code(remediation.package_name),
            escape(remediation.strategy),
            moves,
            edits,
            ", ".join(map(str, remediation.alerts)),
            escape("; ".join(notes)),
        )

    head = ("File", "Package", "Strategy", "Moves", "Edits", "Alerts", "Notes")
    lines = ["## Plan", "", f"Plan {code(result.plan.plan_id)}", ""]
    return [*lines, *_table(head, map(row, result.plan.remediations))]


def _pull_requests(result: RunResult) -> list[str]:
    if not result.pull_requests:
        return []
    rows = []
    for request in result.pull_requests:
        link = safe_link(request.url)
        number = f"[{request.number}](<{link}>)" if link else str(request.number)
        rows.append((escape(request.repository), number, code(request.branch), escape(request.state)))
    return ["## Pull requests", "", *_table(("Repository", "Number", "Branch", "State"), rows)]


def _actions(result: RunResult) -> list[str]:
    rows = (
        (
            escape(action.type),
            code(action.target),
            code(version_change(action.from_version, action.to_version)),
            "done" if action.success else f"failed: {escape(action.error)}" if action.error else "failed",
        )
        for action in result.actions
    )
    table = _table(("Action", "Target", "Change", "Result"), rows)
    return ["## Actions", "", *table] if table else []


def _errors(result: RunResult) -> list[str]:
    rows = (
        (escape(error.repository), escape(error.stage), code(error.target), escape(error.message))
        for error in result.errors
    )
    table = _table(("Repository", "Stage", "Target", "What happened"), rows)
    return ["## What could not be done", "", *table] if table else []


def _next_steps(result: RunResult) -> list[str]:
    if not result.next_steps:
        return []
    steps = [f"- {code(step.command)} in {code(step.folder)}: {escape(step.why)}" for step in result.next_steps]
    return ["## Next steps", "", *steps, ""]
