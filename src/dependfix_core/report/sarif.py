"""The report as SARIF 2.1.0, for code scanning and viewers; one run for each repository.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from dependfix_core._version import __version__
from dependfix_core.model.alert import parse_time
from dependfix_core.process import clean_text
from dependfix_core.report.text import advisory_link, outcome_words, safe_link
from dependfix_core.report.wire import NormalizedSecurityAlert, RunResult, compact

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
_SCORES: Final = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
"""`security-severity` where the advisory has no CVSS score: the middle of GitHub's band."""


def render_sarif(result: RunResult) -> str:
    """The report as SARIF text."""
    names = [stats.repository for stats in result.repositories] or sorted({alert.repository for alert in result.alerts})
    runs = [_run(result, name) for name in names] or [_run(result, "")]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}
    return compact(_cleaned(log))


def _cleaned(log: dict[str, Any]) -> dict[str, Any]:
    """Every text as one line without characters that are not shown, and not longer than a viewer bears; in place."""
    known: dict[str, str] = {}
    waiting: list[dict[str, Any] | list[Any]] = [log]
    while waiting:
        holder: Any = waiting.pop()
        for key, child in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(child, str):
                clean = known.get(child)
                if clean is None:
                    clean = known[child] = clean_text(child, max_chars=2000, one_line=True)
                if clean != child:
                    holder[key] = clean
            elif isinstance(child, dict | list):
                waiting.append(child)
    return log


def _run(result: RunResult, repository: str) -> dict[str, Any]:
    alerts = [alert for alert in result.alerts if alert.repository.lower() == repository.lower()]
    rule_ids = [_rule_id(alert) for alert in alerts]
    rules: dict[str, dict[str, Any]] = {}
    for rule_id, alert in zip(rule_ids, alerts, strict=True):
        if rule_id not in rules:
            rules[rule_id] = _rule(rule_id, alert)
    index = {rule: position for position, rule in enumerate(rules)}
    return {
        "tool": {
            "driver": {
                "name": "dependfix-mcp",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": list(rules.values()),
            }
        },
        "automationDetails": {"id": f"dependfix/{repository or 'none'}/{result.run_id}"},
        "invocations": [_invocation(result, repository)],
        "columnKind": "utf16CodeUnits",
        "results": [
            _result(alert, result, rule_id, index[rule_id]) for rule_id, alert in zip(rule_ids, alerts, strict=True)
        ],
    }


def _rule_id(alert: NormalizedSecurityAlert) -> str:
    return clean_text(alert.rule_id, max_chars=100, one_line=True).strip() or "unknown-advisory"


def _rule(rule_id: str, alert: NormalizedSecurityAlert) -> dict[str, Any]:
    summary = alert.summary.strip() or rule_id
    score = f"{alert.cvss_score:.1f}" if alert.cvss_score else _SCORES.get(alert.severity)
    rule: dict[str, Any] = {
        "id": rule_id,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "defaultConfiguration": {"level": _level(alert)},
        "properties": {"tags": ["security", "dependency", *([alert.cve_id] if alert.cve_id else [])]},
    }
    if score is not None:
        rule["properties"]["security-severity"] = score
    page = advisory_link(alert.rule_id)
    if page:
        rule["helpUri"] = page
    return rule


def _level(alert: NormalizedSecurityAlert) -> str:
    return _LEVELS.get(alert.severity, "warning")


def _result(alert: NormalizedSecurityAlert, result: RunResult, rule_id: str, rule_index: int) -> dict[str, Any]:
    words, why = outcome_words(alert, result)
    name = alert.package_name or "a package"
    text = f"{name} ({alert.package_ecosystem}): {clean_text(alert.summary, max_chars=1000)}"
    if alert.recommended_version:
        text += f" Go to {clean_text(alert.recommended_version, max_chars=100)}."
    text += f" Outcome: {words}{f' ({why})' if why else ''}."
    found: dict[str, Any] = {
        "ruleId": rule_id,
        "ruleIndex": rule_index,
        "level": _level(alert),
        "message": {"text": text},
        "partialFingerprints": {"dependfixAlert/v1": f"{alert.repository.lower()}#{alert.id}"},
        "properties": {
            "alert": alert.id,
            "packageName": name,
            "packageEcosystem": alert.package_ecosystem,
            "disposition": alert.disposition or "",
            "reason": alert.reason or "",
        },
    }
    uri = _artifact_uri(alert.manifest_path)
    if uri:
        location = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}
        found["locations"] = [{"physicalLocation": location}]
    page = safe_link(alert.html_url)
    if page:
        found["hostedViewerUri"] = page
    if alert.state in ("dismissed", "auto_dismissed"):
        found["suppressions"] = [{"kind": "external", "status": "accepted"}]
    return found


@lru_cache(maxsize=1_024)
def _artifact_uri(path: str) -> str:
    """A relative reference for a path of the repository; empty for one that leaves it."""
    parts = clean_text(path, one_line=True).replace("\\", "/").split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        return ""
    return "/".join(quote(part) for part in parts)


def _invocation(result: RunResult, repository: str) -> dict[str, Any]:
    errors = [error for error in result.errors if error.repository.lower() in ("", repository.lower())]
    invocation: dict[str, Any] = {"executionSuccessful": result.status == "done" and not errors}
    if parse_time(result.started_at):
        invocation["startTimeUtc"] = result.started_at
    if parse_time(result.finished_at):
        invocation["endTimeUtc"] = result.finished_at
    if errors:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "descriptor": {"id": error.stage},
                "message": {"text": error.message},
            }
            for error in errors
        ]
    return invocation
