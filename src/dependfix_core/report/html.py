"""The report as one self-contained HTML page: no address is loaded, no text of others becomes markup.

Styles and the script stand in the page and are allowed by their digest alone;
without the script the page shows everything, unsorted and unfiltered.
"""

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from dependfix_core._version import __version__
from dependfix_core.model.alert import Severity
from dependfix_core.process import clean_text
from dependfix_core.report.text import (
    Slice,
    advisory_link,
    disposition_words,
    empty_words,
    joined,
    outcome_slices,
    outcome_words,
    readable_duration,
    readable_time,
    repositories_title,
    safe_link,
    severity_slices,
)
from dependfix_core.report.wire import NormalizedSecurityAlert, PlanRemediation, RunResult

MAX_ROWS: Final = 2000
"""Alerts on the page, the most severe ones; more is more than browsers and people bear."""
_MAX_TEXT: Final = 2000
_SEPARATOR: Final = re.compile(r"[/.:_](?=[^/.:_]{3})")
_RADIUS: Final = 56.0
_MOVES_SHOWN: Final = 8
_KNOWN_CLASSES: Final = frozenset(
    [
        "critical",
        "high",
        "medium",
        "low",
        "unknown",
        "fixed",
        "planned",
        "partial",
        "failed",
        "skipped",
        "converged",
        "truncated",
        "open",
    ]
)


def render_html(result: RunResult) -> str:
    """The report as a page."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"Dependency security: {_text(repositories_title(result))}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="robots" content="noindex">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *_header(result),
        "<main>",
        *_problems(result),
        *_charts(result),
        *_next_steps(result),
        *_pull_requests(result),
        *_alerts(result),
        *_plan(result),
        *_actions(result),
        *_repositories(result),
        "</main>",
        f"<footer>dependfix-mcp {escape(__version__)} · run <code>{_text(result.run_id)}</code></footer>",
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


@cache
def _asset(name: str) -> str:
    return files("dependfix_core.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text(text: str | None) -> str:
    """Text of others as one line of harmless HTML, fit for content and for quoted attributes."""
    return escape(clean_text(text or "", max_chars=_MAX_TEXT, one_line=True))


def _code(text: str | None) -> str:
    return f"<code>{_text(text).replace('/', '/<wbr>')}</code>" if text else ""


def _breakable(text: str | None) -> str:
    """A name that may be broken after its separators."""
    return _SEPARATOR.sub(r"\g<0><wbr>", _text(text))


def _class(name: str | None) -> str:
    return name if name in _KNOWN_CLASSES else "unknown"


def _badge(kind: str | None, words: str) -> str:
    return f'<span class="badge {_class(kind)}">{_text(words)}</span>'


def _linked(words: str, address: str) -> str:
    return f'<a href="{escape(address)}" rel="noopener noreferrer">{words}</a>' if address else words


def _header(result: RunResult) -> list[str]:
    config = result.config
    facts = [f"Mode <b>{_text(config.mode)}</b>{', dry run' if _is_dry(result) else ''}"]
    threshold = config.severity_threshold
    facts.append(f"Severity <b>{'all' if threshold == 'all' else f'{_text(threshold)} and above'}</b>")
    branches = {stats.default_branch for stats in result.repositories if stats.default_branch}
    if len(result.repositories) == 1 and branches:
        facts.append(f"Branch <b>{_text(branches.pop())}</b>")
    if result.started_at:
        duration = readable_duration(result)
        facts.append(f"<b>{_text(readable_time(result.started_at))}</b>{f', took {duration}' if duration else ''}")
    if result.status != "done":
        facts.append(_badge("failed" if result.status == "failed" else "open", result.status))
    return [
        "<header><div>",
        '<p class="kicker">Dependency security report</p>',
        f"<h1>{_text(repositories_title(result))}</h1>",
        f'<ul class="facts">{"".join(f"<li>{fact}</li>" for fact in facts)}</ul>',
        "</div></header>",
    ]


def _is_dry(result: RunResult) -> bool:
    # The original calls a report-only run dry as well; that goes without saying.
    return result.config.dry_run and result.config.mode != "report-only"


def _problems(result: RunResult) -> list[str]:
    if not result.errors:
        return []
    items = []
    for error in result.errors:
        about = " · ".join(part for part in (_text(error.repository), error.stage, _text(error.target)) if part)
        items.append(f'<li>{_text(error.message)}<br><span class="stage">{_text(about)}</span></li>')
    return [
        '<section class="card notice" aria-labelledby="problems">',
        f'<h2 id="problems">What could not be done</h2><ul>{"".join(items)}</ul>',
        "</section>",
    ]


def _charts(result: RunResult) -> list[str]:
    severities, outcomes = severity_slices(result), outcome_slices(result)
    if not severities:
        return [f'<section class="card none">{empty_words(result)}</section>']
    return ['<section class="charts">', *_bars(severities), *_donut(outcomes, len(result.alerts)), "</section>"]


def _bars(slices: Sequence[Slice]) -> list[str]:
    most = max(part.count for part in slices)
    rows = []
    for part in slices:
        width = max(1.5, 100 * part.count / most)
        bar = (
            '<svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
            '<rect class="track" width="100" height="14"/>'
            f'<rect class="{_class(part.key)}" width="{width:.2f}" height="14"/></svg>'
        )
        label = f'<span class="{_class(part.key)}">{_text(part.label.capitalize())}</span>'
        rows.append(f'<tr><th scope="row">{label}</th><td>{bar}</td><td>{part.count}</td></tr>')
    return [
        '<div class="card"><h2 id="by-severity">Alerts by severity</h2>',
        f'<table class="bars" aria-labelledby="by-severity"><tbody>{"".join(rows)}</tbody></table></div>',
    ]


def _donut(slices: Sequence[Slice], total: int) -> list[str]:
    around = 2 * math.pi * _RADIUS
    counted = sum(part.count for part in slices) or 1
    gap = 2.0 if len(slices) > 1 else 0.0
    arcs, offset = [], 0.0
    for part in slices:
        length = around * part.count / counted
        dash = f"{max(0.8, length - gap):.2f} {around:.2f}"
        arcs.append(
            f'<circle class="{_class(part.key)}" cx="82" cy="82" r="{_RADIUS:g}" fill="none" stroke-width="24" '
            f'stroke-dasharray="{dash}" stroke-dashoffset="{-offset:.2f}" transform="rotate(-90 82 82)"/>'
        )
        offset += length
    spoken = ", ".join(f"{part.count} {part.label}" for part in slices)
    legend = "".join(
        f'<li><span class="dot {_class(part.key)}"></span><span>{_text(part.label.capitalize())}</span>'
        f"<b>{part.count}</b></li>"
        for part in slices
    )
    return [
        '<div class="card"><h2 id="by-outcome">What became of them</h2><div class="donut">',
        f'<svg viewBox="0 0 164 164" role="img" aria-label="{_text(spoken)}">{"".join(arcs)}',
        f'<text class="hole" x="82" y="88">{total}</text>',
        f'<text class="under" x="82" y="107">alert{"" if total == 1 else "s"}</text></svg>',
        f'<ul class="legend">{legend}</ul></div></div>',
    ]


def _alerts(result: RunResult) -> list[str]:
    if not result.alerts:
        return []
    several = len({alert.repository for alert in result.alerts}) > 1
    heads = [
        ("rank", "Severity"),
        ("package", "Package"),
        *([("repository", "Repository")] if several else []),
        ("path", "File"),
        ("advisory", "Advisory"),
        ("target", "Target"),
        ("outcome", "Outcome"),
        ("age", "Age"),
    ]
    row_heads = "".join(
        f'<th scope="col"{" class=num" if key == "age" else ""}><button type="button" data-key="{key}">{name}</button></th>'
        for key, name in heads
    )
    rows = [_alert_row(alert, result, several=several) for alert in result.alerts[:MAX_ROWS]]
    left_out = len(result.alerts) - len(rows)
    note = f'<p class="stage">The {left_out} least severe ones are in the JSON report only.</p>' if left_out else ""
    return [
        '<section aria-labelledby="alerts-title"><h2 id="alerts-title">Alerts</h2>',
        note,
        *_tools(result, several=several),
        f'<div class="card wide"><table class="list" id="alerts"><thead><tr>{row_heads}</tr></thead><tbody>',
        *rows,
        '</tbody></table><p class="none" id="none" hidden>No alert fits the filter.</p></div></section>',
    ]


def _tools(result: RunResult, *, several: bool) -> list[str]:
    severities = [(part.key, part.label.capitalize()) for part in severity_slices(result)]
    outcomes = list(dict.fromkeys(_outcome_key(alert) for alert in result.alerts))
    choices = [_select("severity", "All severities", severities)]
    if len(outcomes) > 1:
        named = [(key, _outcome_label(key, result).capitalize()) for key in outcomes]
        choices.append(_select("outcome", "All outcomes", named))
    ecosystems = sorted({alert.package_ecosystem for alert in result.alerts})
    if len(ecosystems) > 1:
        choices.append(_select("ecosystem", "All ecosystems", [(name, name) for name in ecosystems]))
    if several:
        names = sorted({alert.repository for alert in result.alerts})
        choices.append(_select("repository", "All repositories", [(name, name) for name in names]))
    return [
        '<div class="tools" id="tools" role="search" hidden>',
        '<label class="sr" for="find">Find alerts</label>',
        '<input id="find" type="search" placeholder="Find a package, file or advisory" autocomplete="off">',
        *choices,
        '<button type="button" id="reset">Clear</button>',
        '<span class="shown" id="shown" role="status"></span></div>',
    ]


def _select(name: str, everything: str, choices: Iterable[tuple[str, str]]) -> str:
    options = "".join(f'<option value="{_text(value)}">{_text(label)}</option>' for value, label in choices)
    return f'<select name="{name}" aria-label="{name.capitalize()}"><option value="">{everything}</option>{options}</select>'


def _outcome_key(alert: NormalizedSecurityAlert) -> str:
    return alert.disposition or ("fixable" if alert.fixable else "unfixable")


def _outcome_label(key: str, result: RunResult) -> str:
    return {"fixable": "fix known", "unfixable": "no fix known"}.get(key) or disposition_words(key, result)


def _alert_row(alert: NormalizedSecurityAlert, result: RunResult, *, several: bool) -> str:
    words, why = outcome_words(alert, result)
    kind = alert.disposition or ("planned" if alert.fixable else "skipped")
    number = _linked(f"#{alert.id}", safe_link(alert.html_url))
    advisory = _linked(_text(alert.rule_id) or "advisory", advisory_link(alert.rule_id))
    scores = [f"CVSS\u00a0{alert.cvss_score:.1f}"] if alert.cvss_score else []
    scores += [f"EPSS\u00a0{100 * alert.epss:.1f}\u00a0%"] if alert.epss is not None else []
    subs = [number, _text(alert.package_ecosystem), _text(alert.dependency_type), _text(alert.scope)]
    references = " · ".join([advisory, *([_text(alert.cve_id)] if alert.cve_id else []), *scores])
    target = f"<b>{_text(alert.recommended_version)}</b>" if alert.recommended_version else ""
    strategy = _sub(_text(alert.fix_strategy)) if alert.fix_strategy else ""
    age = "" if alert.age_days is None else str(alert.age_days)
    name = f'<span class="name">{_breakable(alert.package_name) or "?"}</span>'
    reason = f'<span class="why">{_text(why)}</span>' if why else ""
    cells = [
        f'<td class="mark">{_badge(alert.severity, alert.severity)}</td>',
        f'<th scope="row" class="lead">{name}{_sub(" · ".join(filter(None, subs)))}</th>',
        *([_cell("path", "Repository", _breakable(alert.repository))] if several else []),
        _cell("path", "File", _code(alert.manifest_path)),
        _cell("text", "Advisory", _text(alert.summary) + _sub(references)),
        _cell("target", "Target", target + strategy),
        _cell("", "Outcome", _badge(kind, words) + reason),
        _cell("num", "Age", f"{age}\u00a0d" if age else ""),
    ]
    data = {
        "severity": alert.severity if alert.severity in _KNOWN_CLASSES else "unknown",
        "rank": str(Severity.of(alert.severity).rank),
        "package": alert.package_name,
        "ecosystem": alert.package_ecosystem,
        "repository": alert.repository,
        "path": alert.manifest_path,
        "advisory": alert.rule_id,
        "target": alert.recommended_version,
        "outcome": _outcome_key(alert),
        "age": age or "0",
    }
    attributes = "".join(f' data-{key}="{_text(value)}"' for key, value in data.items())
    return f"<tr{attributes}>{''.join(cells)}</tr>"


def _sub(content: str) -> str:
    return f'<span class="sub">{content}</span>'


def _cell(kind: str, label: str, content: str) -> str:
    if not content:
        return "<td></td>"
    return f'<td{f" class={kind}" if kind else ""} data-label="{label}">{content}</td>'


def _plan(result: RunResult) -> list[str]:
    if result.plan is None or not result.plan.remediations:
        return []
    diff = result.plan.diff
    shown = []
    if diff:
        note = " (cut)" if result.plan.diff_truncated else ""
        shown = [f'<div class="card"><details><summary>Diff{note}</summary>{_diff(diff)}</details></div>']
    return [
        '<section aria-labelledby="plan"><h2 id="plan">Plan</h2><div class="plan">',
        *[_remediation(remediation) for remediation in result.plan.remediations],
        *shown,
        "</div></section>",
    ]


def _remediation(remediation: PlanRemediation) -> str:
    numbers = joined([f"#{number}" for number in remediation.alerts], at_most=20)
    notes = [_text(warning) for warning in remediation.warnings]
    notes += ["crosses a major version"] if remediation.is_major else []
    notes += ["the package manager has to write the lockfile"] if remediation.needs_tool else []
    notes += ["from the alert alone, not confirmed in the files"] if remediation.unconfirmed else []
    lines = []
    for move in remediation.moves[:_MOVES_SHOWN]:
        before, after = _code(move.from_version) or "new", _code(move.to_version) or "removed"
        lines.append(f'<li>{_text(move.package_name)} {before}<span class="arrow">→</span>{after}</li>')
    if len(remediation.moves) > _MOVES_SHOWN:
        lines.append(f"<li>and {len(remediation.moves) - _MOVES_SHOWN} more</li>")
    for edit in remediation.edits:
        before = f'{_code(edit.from_)}<span class="arrow">→</span>' if edit.from_ else ""
        lines.append(f"<li>{_text(edit.path)} · {_text(edit.at)}: {before}{_code(edit.to)}</li>")
    return (
        f'<div class="card"><h3>{_text(remediation.package_name)}</h3>'
        f"<p>{_text(remediation.unit)} · {_text(remediation.strategy)} · answers {numbers or 'no alert'}</p>"
        f"<ul>{''.join(lines)}</ul>{''.join(f'<p class=warn>{note}</p>' for note in notes)}</div>"
    )


def _diff(diff: str) -> str:
    kinds = {"+": "add", "-": "del", "@": "at"}
    lines = []
    for line in clean_text(diff).split("\n"):
        kind = kinds.get(line[:1])
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return f"<pre>{chr(10).join(lines)}</pre>"


def _pull_requests(result: RunResult) -> list[str]:
    if not result.pull_requests:
        return []
    items = []
    for request in result.pull_requests:
        name = _linked(f"{_text(request.repository)}#{request.number}", safe_link(request.url))
        kind = {"opened": "planned", "updated": "planned", "declined": "skipped"}.get(request.state, "open")
        items.append(
            f"<li>{name} {_badge(kind, request.state)} {_code(request.branch)} into {_code(request.base)}</li>"
        )
    return [
        '<section class="card plan" aria-labelledby="pulls">',
        f'<h2 id="pulls">Pull requests</h2><ul>{"".join(items)}</ul></section>',
    ]


def _next_steps(result: RunResult) -> list[str]:
    if not result.next_steps:
        return []
    items = [
        f"<li>{_text(step.why)} <span class=stage>in {_text(step.folder) if step.folder != '.' else 'the top folder'}</span><pre>{_text(step.command)}</pre></li>"
        for step in result.next_steps
    ]
    return [
        '<section class="card" aria-labelledby="steps"><h2 id="steps">Next steps</h2>',
        f'<ul class="steps">{"".join(items)}</ul></section>',
    ]


def _actions(result: RunResult) -> list[str]:
    if not result.actions:
        return []
    rows = []
    for action in result.actions:
        change = "<span class=arrow>→</span>".join(filter(None, (_code(action.from_version), _code(action.to_version))))
        diff = f"<details><summary>Diff</summary>{_diff(action.diff)}</details>" if action.diff else ""
        error = f'<span class="why">{_text(action.error)}</span>' if action.error else ""
        outcome = _badge("fixed", "done") if action.success else _badge("failed", "failed")
        rows.append(
            f'<tr><th scope="row" class="lead"><span class="name">{_text(action.target)}</span>'
            f'<span class="sub">{_text(action.type)}</span></th><td class="mark">{outcome}{error}</td>'
            f"<td>{change}{diff}</td></tr>"
        )
    return [
        '<section aria-labelledby="actions"><h2 id="actions">Actions</h2><div class="card wide"><table class="list">',
        "<thead><tr><th scope=col>Action</th><th scope=col>Result</th><th scope=col>Change</th></tr></thead>",
        f"<tbody>{''.join(rows)}</tbody></table></div></section>",
    ]


def _repositories(result: RunResult) -> list[str]:
    if len(result.repositories) < 2:
        return []
    rows = [
        f'<tr><th scope="row" class="lead"><span class="name">{_text(stats.repository)}</span></th>'
        + "".join(
            f'<td class="num" data-label="{label}">{count}</td>'
            for label, count in (
                ("Alerts", stats.alerts_count),
                ("Fixable", stats.fixable),
                ("Fixed", stats.fixed),
                ("Failed", stats.failed),
            )
        )
        + "</tr>"
        for stats in result.repositories
    ]
    heads = "".join(f'<th scope="col" class="num">{name}</th>' for name in ("Alerts", "Fixable", "Fixed", "Failed"))
    return [
        '<section aria-labelledby="repositories"><h2 id="repositories">Repositories</h2>',
        f'<div class="card wide"><table class="list"><thead><tr><th scope="col">Repository</th>{heads}</tr></thead>',
        f"<tbody>{''.join(rows)}</tbody></table></div></section>",
    ]
