"""How an answer is shown: concise or detailed, in JSON values, and small enough to be read."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from adapters.suspec.answers import Contract, Diagnostic, Refusal, Refused, Report
from adapters.suspec.cli import CheckAnswer
from dependfix_core.errors import OutputTooLargeError
from dependfix_core.process import clean_text

ResponseFormat: TypeAlias = Literal["concise", "detailed"]
View: TypeAlias = dict[str, Any]

# Diagnostics of one report, and characters of one message: the first pair that
# makes the answer small is taken. Whatever is left out is counted.
_CONCISE_STEPS: Final = ((100, 1_000), (50, 500), (20, 300), (10, 200))
_LAST_STEPS: Final = ((5, 200), (2, 200), (1, 200), (0, 0))
_REFUSAL_STEPS: Final = (4_000, 1_000, 400, 200, 120)

_LONG_COMMAND_CHARS: Final = 8_000
_SHORT_COMMAND_CHARS: Final = 1_000
_KEY_CHARS: Final = 80

# What this product adds to entries; an unknown key of the same name would be taken for it.
_OWN_KEYS: Final = frozenset({"omitted", "omittedCount"})


def check_view(
    answer: CheckAnswer, response_format: ResponseFormat, *, target_chars: int, max_chars: int
) -> tuple[list[View], str]:
    """The entries of a check's `data`, and the note that belongs to them (may be empty).

    Concise leaves diagnostics out where the entries exceed `target_chars` of
    compact JSON, never a report, a level or a refusal. Detailed is whole.

    Raises:
        OutputTooLargeError: More than `max_chars` all the same.
    """
    if isinstance(answer.outcome, Refused):
        return _refusals(answer, answer.outcome, response_format, max_chars)
    reports = answer.outcome.items
    notes = _report_notes(answer, reports)
    if response_format == "detailed":
        views = [_report(report, detailed=True) for report in reports]
        _limit(views, max_chars, "Ask for responseFormat=concise, or check fewer files at a time.")
        return views, " ".join(notes)
    views = _concise(reports, target_chars, max_chars)
    left_out = sum(view.get("omittedCount", 0) for view in views)
    if left_out:
        notes.append(
            f"{left_out} diagnostics are left out; `omitted` counts them by code. "
            "For all of them check fewer files with responseFormat=detailed."
        )
    return views, " ".join(notes)


def contract_view(contract: Contract, response_format: ResponseFormat) -> View:
    """The `data` of the contract."""
    if response_format == "concise":
        rows = [{"id": row.id, "severity": row.severity} for row in contract.checks]
        return {"version": contract.version, "checks": rows}
    return {
        "version": contract.version,
        "checks": [
            {"id": row.id, "name": row.name, "severity": row.severity, **_clean_extra(row.extra)}
            for row in contract.checks
        ],
        **_clean_extra(contract.extra),
    }


def refusal_view(refusal: Refusal, response_format: ResponseFormat) -> View:
    """One refusal, whole in both formats."""
    extra = _clean_extra(refusal.extra) if response_format == "detailed" else {}
    return {"error": refusal.error, "message": refusal.message, **extra}


def command_view(command: str, response_format: ResponseFormat) -> str:
    """The command; in concise the middle of a long one, which only repeats the paths, is left out."""
    if response_format == "detailed" or len(command) <= _LONG_COMMAND_CHARS:
        return command
    half = _SHORT_COMMAND_CHARS // 2
    return f"{command[:half]} … {command[-half:]}"


def _concise(reports: Sequence[Report], target_chars: int, max_chars: int) -> list[View]:
    # The second half is for reports and paths that are that much by themselves.
    bounds = [(step, target_chars) for step in _CONCISE_STEPS]
    bounds += [(step, max_chars) for step in (*_CONCISE_STEPS, *_LAST_STEPS)]
    size = 0
    for (limit, message_chars), bound in bounds:
        views = [_report(report, detailed=False, limit=limit, message_chars=message_chars) for report in reports]
        size = _size(views)
        if size <= bound:
            return views
    raise _too_large(size, max_chars, "Check fewer files at a time.")


def _report(report: Report, *, detailed: bool, limit: int | None = None, message_chars: int | None = None) -> View:
    view: View = {"type": report.type} if report.type is not None else {}
    view |= {"level": report.level, "path": report.path}
    if not report.checked:
        view["checked"] = False
    else:
        shown = report.diagnostics[:limit]
        view["diagnostics"] = [_diagnostic(each, detailed=detailed, message_chars=message_chars) for each in shown]
        left_out = report.diagnostics[len(shown) :]
        if left_out:
            counts = Counter(each.code for each in left_out)
            view["omittedCount"] = len(left_out)
            view["omitted"] = [{"code": code, "count": count} for code, count in sorted(counts.items())]
    if detailed:
        view |= _clean_extra(report.extra)
    return view


def _diagnostic(diagnostic: Diagnostic, *, detailed: bool, message_chars: int | None) -> View:
    view: View = {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": clean_text(diagnostic.message, max_chars=message_chars),
    }
    if diagnostic.line is not None:
        view["line"] = diagnostic.line
    if detailed:
        view |= _clean_extra(diagnostic.extra)
    return view


def _clean_extra(extra: Mapping[str, Any]) -> View:
    """Keys that the contract does not know, unless they are ours or hide something."""
    return {
        key: _clean(value)
        for key, value in extra.items()
        if key not in _OWN_KEYS and key == clean_text(key, max_chars=_KEY_CHARS, one_line=True)
    }


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(child) for child in value]
    if isinstance(value, dict):
        return {clean_text(key, max_chars=_KEY_CHARS, one_line=True): _clean(child) for key, child in value.items()}
    return value


def _report_notes(answer: CheckAnswer, reports: Sequence[Report]) -> list[str]:
    notes = []
    unchecked = Counter(report.type for report in reports if not report.checked)
    if unchecked:
        kinds = ", ".join(sorted(filter(None, unchecked)))
        notes.append(
            f"{unchecked.total()} of {len(answer.distinct)} artifacts are of a type without checks ({kinds}): "
            "nothing about them was validated."
        )
    aliases = len(answer.request.paths) - len(answer.distinct)
    if aliases:
        notes.append(
            f"{aliases} of the paths name a file that the list has already; "
            "each file is reported once, under its first spelling."
        )
    return notes


def _refusals(
    answer: CheckAnswer, refused: Refused, response_format: ResponseFormat, max_chars: int
) -> tuple[list[View], str]:
    notes = ["The CLI refused the run: no artifact was judged."]
    count, files = len(refused.items), len(answer.distinct)
    if files > 1 and count == files:
        notes.append("The refusals stand in the order of the files.")
    elif files > 1 and not all(_names_a_path(refusal, answer) for refusal in refused.items):
        notes.append("A refusal that names no file may be about any of them: check the files one by one to find it.")
    views = [refusal_view(refusal, response_format) for refusal in refused.items]
    if _size(views) <= max_chars:
        return views, " ".join(notes)
    notes.append("Long messages are cut.")
    for message_chars in _REFUSAL_STEPS:
        views = [
            {
                "error": clean_text(each.error, max_chars=60),
                "message": clean_text(each.message, max_chars=message_chars),
            }
            for each in refused.items
        ]
        if _size(views) <= max_chars:
            return views, " ".join(notes)
    raise _too_large(_size(views), max_chars, "Check fewer files at a time.")


def _names_a_path(refusal: Refusal, answer: CheckAnswer) -> bool:
    return any(path in refusal.message for _, path in answer.request.named_paths())


def _limit(views: Sequence[View], max_chars: int, hint: str) -> None:
    size = _size(views)
    if size > max_chars:
        raise _too_large(size, max_chars, hint)


def _too_large(size: int, max_chars: int, hint: str) -> OutputTooLargeError:
    return OutputTooLargeError(f"the reports have {size} characters, more than {max_chars}", hint=hint)


def _size(views: Sequence[View]) -> int:
    return len(json.dumps(views, ensure_ascii=False, separators=(",", ":")))
