"""How an answer is shown: concise or detailed, in JSON values, and small enough to be read."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from adapters.suspec.answers import Contract, Diagnostic, Refusal, Refused, Report
from adapters.suspec.cli import CheckAnswer
from dependfix_core.errors import OutputTooLargeError
from dependfix_core.process import clean_text

ResponseFormat: TypeAlias = Literal["concise", "detailed"]
View: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """How much of each report is shown; the first step that makes the answer small is taken."""

    diagnostics: int
    message_chars: int
    by_check: bool = True
    """Whether what is left out is counted by check, or only in all."""


_STEPS: Final = (_Step(100, 1_000), _Step(50, 500), _Step(20, 300), _Step(10, 200))
_TIGHT_STEPS: Final = (*_STEPS, _Step(5, 200), _Step(2, 200), _Step(1, 200), _Step(0, 0), _Step(0, 0, by_check=False))
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
        return _detailed(reports, max_chars), " ".join(notes)
    views = _concise(reports, target_chars, max_chars)
    left_out = sum(view.get("omittedCount", 0) for view in views)
    if left_out:
        notes.append(
            f"{left_out} diagnostics are left out; `omittedCount` and `omitted` say where. "
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
    short = [_shortened(report) for report in reports]
    # The tight steps are for reports and paths that are much by themselves.
    bounds = [(step, target_chars) for step in _STEPS] + [(step, max_chars) for step in _TIGHT_STEPS]
    size = 0
    for step, bound in bounds:
        views = [_concise_report(report, step) for report in short]
        size = _size(views)
        if size <= bound:
            return views
    raise _too_large(size, max_chars, "Check fewer files at a time.")


def _shortened(report: Report) -> Report:
    """Cleaned and cut once, as the widest step would: a hostile message costs no more than its beginning."""
    widest = _STEPS[0]
    shown = [
        dataclasses.replace(each, message=_beginning(each.message, widest.message_chars))
        for each in report.diagnostics[: widest.diagnostics]
    ]
    return dataclasses.replace(report, diagnostics=(*shown, *report.diagnostics[len(shown) :]))


def _beginning(message: str, max_chars: int) -> str:
    # Room for characters that cleaning takes out.
    return clean_text(message[: 4 * max_chars], max_chars=max_chars)


def _concise_report(report: Report, step: _Step) -> View:
    shown, left_out = report.diagnostics[: step.diagnostics], report.diagnostics[step.diagnostics :]
    view = _report(report, [_diagnostic(each, _cut(each.message, step.message_chars)) for each in shown])
    if left_out:
        view["omittedCount"] = len(left_out)
        if step.by_check:
            counts = Counter(each.code for each in left_out)
            view["omitted"] = [{"code": code, "count": count} for code, count in sorted(counts.items())]
    return view


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def _detailed(reports: Sequence[Report], max_chars: int) -> list[View]:
    hint = "Ask for responseFormat=concise, or check fewer files at a time."
    raw_chars = sum(len(each.message) for report in reports for each in report.diagnostics)
    if raw_chars > 10 * max_chars:  # not worth the cleaning
        raise _too_large(raw_chars, max_chars, hint)
    views = []
    for report in reports:
        diagnostics = [
            {**_diagnostic(each, clean_text(each.message)), **_clean_extra(each.extra)} for each in report.diagnostics
        ]
        views.append({**_report(report, diagnostics), **_clean_extra(report.extra)})
    if _size(views) > max_chars:
        raise _too_large(_size(views), max_chars, hint)
    return views


def _report(report: Report, diagnostics: list[View]) -> View:
    view: View = {"type": report.type} if report.type is not None else {}
    view |= {"level": report.level, "path": report.path}
    return view | ({"diagnostics": diagnostics} if report.checked else {"checked": False})


def _diagnostic(diagnostic: Diagnostic, message: str) -> View:
    view: View = {"code": diagnostic.code, "severity": diagnostic.severity, "message": message}
    return view if diagnostic.line is None else {**view, "line": diagnostic.line}


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


def _too_large(size: int, max_chars: int, hint: str) -> OutputTooLargeError:
    return OutputTooLargeError(f"the reports have {size} characters, more than {max_chars}", hint=hint)


def _size(views: Sequence[View]) -> int:
    return len(json.dumps(views, ensure_ascii=False, separators=(",", ":")))
