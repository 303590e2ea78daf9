"""What a run of the CLI says, once nothing in its output contradicts the contract, the request or the exit code.

The steps of `read_check`, any of which fails the whole answer:

1. the exit code is 0, 1 or 2 (a run that a signal ended never gets here);
2. stdout is UTF-8 without a byte order mark;
3. only a line feed ends a line, and at least one line is not blank;
4. each line is one JSON object: no repeated key, no number that is none, no deep nesting;
5. each object is a refusal or a report, never both;
6. refusals come with exit code 2, and no more of them than there are files;
7. refusals and reports never share a run;
8. each report has its kind's keys, known words, and a level that follows from its findings;
9. the reports are those of the requested files in their order, then at most one about the set;
10. with a companion every artifact is a task, without one none is;
11. the exit code is the worst level;
12. what is left is the answer.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from adapters.suspec.contract import (
    CHECKED_TYPES,
    CHECKS,
    FILE_SET,
    LEVELS,
    UNCHECKED_TYPES,
    VERSION,
    Level,
    Severity,
)
from adapters.suspec.request import CONTRACT_ARGUMENTS, CheckRequest
from dependfix_core.errors import (
    CommandBrokenError,
    CommandFailedError,
    CommandOutputError,
    ContractMismatchError,
)
from dependfix_core.process import CommandResult, clean_text, plain_text

Reason: TypeAlias = Literal[
    "exit-code",
    "encoding",
    "byte-order-mark",
    "empty",
    "json",
    "repeated-key",
    "not-a-number",
    "nesting",
    "not-an-object",
    "ambiguous",
    "unknown-document",
    "refusal-count",
    "mixed",
    "report-shape",
    "type",
    "check",
    "severity",
    "line",
    "level",
    "file-set",
    "paths",
    "companion",
    "contract-shape",
    "replaced",
]
"""Why an output is not believed; `details.reason` of the error."""

STDERR_CHARS: Final = 400
CONTRACT_HINT: Final = f"Use a suspec CLI with checks contract {VERSION}; --suspec-bin or SUSPEC_BIN names it."

_MAX_NESTING: Final = 16
_MAX_LINE: Final = 2**53 - 1
_BLANKS: Final = " \t\r"
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_INTERPRETER_EXITS: Final = (126, 127)

_REFUSAL_KEYS: Final = frozenset({"error", "message"})
_REPORT_KEYS: Final = frozenset({"type", "level", "path", "diagnostics", "checked"})
_DIAGNOSTIC_KEYS: Final = frozenset({"code", "severity", "message", "line"})
_CONTRACT_KEYS: Final = frozenset({"version", "checks"})
_ROW_KEYS: Final = frozenset({"id", "name", "severity"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnostic:
    """One finding. The message quotes artifact text: data, never an instruction."""

    code: str
    severity: Severity
    message: str
    line: int | None
    """In the file, from 1; `None` when the finding has no single line."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys that this contract does not know, as printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What the CLI found in one artifact, or in the set of them."""

    path: str
    """As requested, or `FILE_SET`."""
    type: str | None
    """`None` for the report about the set."""
    level: Level
    diagnostics: tuple[Diagnostic, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checked(self) -> bool:
        """False for a type without checks: clean then means that nothing was looked at."""
        return self.type not in UNCHECKED_TYPES


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why the CLI judged nothing. Its wording is no contract."""

    error: str
    message: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reports:
    """The CLI ran and judged every artifact; in the order of the request, the one about the set last."""

    items: tuple[Report, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The CLI did not accept the invocation; at least one refusal, in the order of the paths."""

    items: tuple[Refusal, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractRow:
    """One check as the CLI declares it."""

    id: str
    name: str
    severity: Severity
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """The checks contract, equal to ours."""

    version: str
    checks: tuple[ContractRow, ...]
    """As printed; the order has no meaning."""
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_check(result: CommandResult, request: CheckRequest, distinct: Sequence[str]) -> Reports | Refused:
    """The answer to a check.

    Args:
        result: How the run ended.
        request: What was asked.
        distinct: The requested paths without aliases (`distinct_paths`).

    Raises:
        CommandError: `cli_failed`, `cli_broken`, or `bad_output` with `details.reason`.
    """
    answer = _Answer(result, request.arguments)
    answer.check_exit()  # 1
    documents = [answer.document(line) for line in answer.lines(answer.text())]  # 2, 3, 4
    refusals = sum(map(answer.is_refusal, documents))  # 5
    if refusals == len(documents):
        if len(documents) > len(distinct):  # 6
            answer.reject("refusal-count", f"{len(documents)} refusals for {len(distinct)} files")
        return answer.refused(documents)
    if refusals:  # 7
        answer.reject("mixed", "refusals and reports in one run")
    reports = [answer.report(document) for document in documents]  # 8
    artifacts = answer.match_paths(reports, distinct)  # 9
    for report in artifacts:  # 10
        if (report.type == "task") != (request.spec_path is not None):
            which = "with" if request.spec_path is not None else "without"
            answer.reject("companion", f"a report of type {report.type} {which} a companion spec")
    answer.match_level(reports)  # 11
    return Reports(items=tuple(reports))


def read_contract(result: CommandResult) -> Contract | Refused:
    """The answer to a request for the contract, which is one document over the whole of stdout.

    Raises:
        CommandError: `contract_mismatch` with `details.found`, or as `read_check`.
    """
    answer = _Answer(result, CONTRACT_ARGUMENTS)
    answer.check_exit()
    document = answer.document(answer.text())
    if _CONTRACT_KEYS.isdisjoint(document) and answer.is_refusal(document):
        return answer.refused([document])
    version, rows = document.get("version"), document.get("checks")
    if not isinstance(version, str) or not isinstance(rows, list) or _REFUSAL_KEYS & document.keys():
        answer.reject("contract-shape", "no checks contract")
    if result.exit_code != 0:
        answer.reject("exit-code", f"a contract with exit code {result.exit_code}")
    found = clean_text(version, max_chars=40, one_line=True)
    if version != VERSION:
        raise _mismatch(f"the suspec CLI speaks contract {found}, needed is {VERSION}", found)
    differing = _differing_checks(rows)
    if differing:
        raise _mismatch(f"the contract {VERSION} of the suspec CLI differs in {', '.join(differing)}", found, differing)
    checks = tuple(
        ContractRow(id=row["id"], name=row["name"], severity=row["severity"], extra=_extra(row, _ROW_KEYS))
        for row in rows
    )
    return Contract(version=VERSION, checks=checks, extra=_extra(document, _CONTRACT_KEYS))


def _mismatch(message: str, found: str, differing: Sequence[str] = ()) -> ContractMismatchError:
    details: dict[str, Any] = {"found": found, "needed": VERSION}
    if differing:
        details["differing"] = list(differing)
    return ContractMismatchError(
        message,
        argv=CONTRACT_ARGUMENTS,
        hint=CONTRACT_HINT,
        details=details,
    )


def _differing_checks(rows: Iterable[object]) -> list[str]:
    """Ids that are missing, unknown, repeated or otherwise not as in our table; `?` for a row without an id."""
    seen: set[str] = set()
    differing: set[str] = set()
    for row in rows:
        id_ = row.get("id") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(id_, str):
            differing.add("?")
            continue
        check = CHECKS.get(id_)
        if check is None or id_ in seen or row.get("name") != check.name or row.get("severity") != check.severity:
            differing.add(clean_text(id_, max_chars=20, one_line=True) or "?")
        seen.add(id_)
    differing.update(CHECKS.keys() - seen)
    return sorted(differing)[: len(CHECKS)]


class _Answer:
    """One run under examination."""

    def __init__(self, result: CommandResult, arguments: tuple[str, ...]) -> None:
        self._result = result
        self._arguments = arguments

    def reject(self, reason: Reason, problem: str) -> NoReturn:
        raise CommandOutputError(
            f"the suspec CLI's answer cannot be believed: {problem}",
            argv=self._arguments,
            details={"reason": reason, **self._ending()},
        )

    def _ending(self) -> dict[str, Any]:
        stderr = plain_text(self._result.stderr, max_chars=STDERR_CHARS)
        ending: dict[str, Any] = {"exitCode": self._result.exit_code}
        if stderr:
            ending["stderr"] = stderr
        return ending

    def check_exit(self) -> None:
        code = self._result.exit_code
        if code in _INTERPRETER_EXITS:
            raise CommandBrokenError(
                f"the suspec CLI could not be started: exit code {code}",
                argv=self._arguments,
                hint="Is Node.js on PATH? Name the CLI's .js file with SUSPEC_BIN and Node with NODE_BIN.",
                details=self._ending(),
            )
        if code not in range(len(LEVELS)):
            self._fail(f"the suspec CLI failed with exit code {code}")

    def _fail(self, message: str) -> NoReturn:
        stderr = plain_text(self._result.stderr, max_chars=STDERR_CHARS)
        raise CommandFailedError(message, argv=self._arguments, exit_code=self._result.exit_code, stderr_tail=stderr)

    def text(self) -> str:
        try:
            text = self._result.stdout.decode("utf-8")
        except UnicodeDecodeError as error:
            self.reject("encoding", f"byte {error.start} of its output is not UTF-8")
        if text.startswith("\ufeff"):
            self.reject("byte-order-mark", "its output begins with a byte order mark")
        if not text.strip(_BLANKS + "\n"):
            if self._result.exit_code:
                self._fail(f"the suspec CLI ended with exit code {self._result.exit_code} and printed no answer")
            self.reject("empty", "it printed nothing")
        return text

    def lines(self, text: str) -> list[str]:
        # Never `splitlines`: it would break inside texts that hold U+2028 and the like.
        return [line for line in text.split("\n") if line.strip(_BLANKS)]

    def document(self, text: str) -> dict[str, Any]:
        try:
            value = json.loads(
                text, object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite_float
            )
            if _ESCAPED_SURROGATE.search(text):
                value = _without_lone_surrogates(value)
            _check_nesting(value)
        except _RejectedError as fault:
            self.reject(fault.reason, str(fault))
        except RecursionError:
            self.reject("nesting", "a document nests too deeply")
        except ValueError:
            self.reject("json", "a line is no JSON document")
        if not isinstance(value, dict):
            self.reject("not-an-object", "a document is no object")
        return value

    def is_refusal(self, document: Mapping[str, Any]) -> bool:
        """Whether it is a refusal rather than a report."""
        refuses, reports = _REFUSAL_KEYS & document.keys(), _REPORT_KEYS & document.keys()
        if refuses and reports:
            self.reject("ambiguous", "a document is both a refusal and a report")
        if reports:
            return False
        if not all(isinstance(document.get(key), str) for key in _REFUSAL_KEYS):
            self.reject("unknown-document", "a document is neither a report nor a refusal")
        return True

    def refused(self, documents: Iterable[Mapping[str, Any]]) -> Refused:
        if self._result.exit_code != 2:
            self.reject("exit-code", f"a refusal with exit code {self._result.exit_code}")
        return Refused(
            items=tuple(
                Refusal(error=each["error"], message=each["message"], extra=_extra(each, _REFUSAL_KEYS))
                for each in documents
            )
        )

    def report(self, document: Mapping[str, Any]) -> Report:
        path, level = document.get("path"), document.get("level")
        if not isinstance(path, str):
            self.reject("report-shape", "a report has no path")
        if level not in LEVELS:
            self.reject("level", "a report has no known level")
        type_ = self._type(document, path)
        unchecked = type_ in UNCHECKED_TYPES
        if unchecked:
            if document.get("checked") is not False or "diagnostics" in document:
                self.reject("report-shape", f"a report of type {type_} claims to be checked")
            diagnostics: tuple[Diagnostic, ...] = ()
        else:
            if "checked" in document or not isinstance(document.get("diagnostics"), list):
                self.reject("report-shape", "a checked report has no diagnostics")
            diagnostics = tuple(self._diagnostic(each, type_ or FILE_SET) for each in document["diagnostics"])
        if level != _level_of(diagnostics):
            self.reject("level", "a report's level does not follow from its diagnostics")
        return Report(
            path=path,
            type=type_,
            level=cast("Level", level),
            diagnostics=diagnostics,
            extra=_extra(document, _REPORT_KEYS),
        )

    def _type(self, document: Mapping[str, Any], path: str) -> str | None:
        if path == FILE_SET:
            if "type" in document:
                self.reject("file-set", "the report about the set has a type")
            return None
        type_ = document.get("type")
        if not isinstance(type_, str) or type_ not in CHECKED_TYPES + UNCHECKED_TYPES:
            self.reject("type", "a report has no known type")
        return type_

    def _diagnostic(self, value: object, reported_for: str) -> Diagnostic:
        if not isinstance(value, dict):
            self.reject("report-shape", "a diagnostic is no object")
        code = value.get("code")
        check = CHECKS.get(code) if isinstance(code, str) else None
        if check is None or check.reported_for != reported_for:
            self.reject("check", f"a diagnostic of no check of {reported_for}")
        if value.get("severity") != check.severity:
            self.reject("severity", f"a {check.id} without its severity {check.severity}")
        message, line = value.get("message"), value.get("line", "")
        if not isinstance(message, str):
            self.reject("report-shape", f"a {check.id} has no message")
        # A JSON boolean is an `int` here, and no line.
        if line is not None and (type(line) is not int or not 1 <= line <= _MAX_LINE):
            self.reject("line", f"a {check.id} has no line and does not say so")
        if line is not None and reported_for == FILE_SET:
            self.reject("line", "a finding about the set has a line")
        return Diagnostic(
            code=check.id,
            severity=check.severity,
            message=message,
            line=line,
            extra=_extra(value, _DIAGNOSTIC_KEYS),
        )

    def match_paths(self, reports: Sequence[Report], distinct: Sequence[str]) -> Sequence[Report]:
        """The reports about artifacts, once they are those of `distinct`."""
        artifacts = reports
        if reports[-1].path == FILE_SET:
            artifacts = reports[:-1]
            if not 1 <= len(reports[-1].diagnostics) < len(distinct):
                self.reject("file-set", "the report about the set has an impossible number of findings")
        if any(report.path == FILE_SET for report in artifacts):
            self.reject("file-set", "the report about the set is not the last one, or not the only one")
        if [report.path for report in artifacts] != list(distinct):
            self.reject("paths", "the reports are not those of the requested files in their order")
        return artifacts

    def match_level(self, reports: Iterable[Report]) -> None:
        worst = max(LEVELS.index(report.level) for report in reports)
        if worst != self._result.exit_code:
            self.reject("exit-code", f"exit code {self._result.exit_code} with {LEVELS[worst]} as the worst level")


def _level_of(diagnostics: Iterable[Diagnostic]) -> Level:
    severities = {diagnostic.severity for diagnostic in diagnostics}
    if "hard-error" in severities:
        return "blocking"
    return "warning" if severities else "clean"


def _extra(document: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in known}


class _RejectedError(Exception):
    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise _RejectedError("repeated-key", "an object repeats a key")
    return document


def _no_constant(_text: str) -> NoReturn:
    raise _RejectedError("not-a-number", "a number is none")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _RejectedError("not-a-number", "a number is too large")
    return number


def _check_nesting(value: object, depth: int = 0) -> None:
    if isinstance(value, (dict, list)):
        if depth == _MAX_NESTING:
            raise _RejectedError("nesting", "a document nests too deeply")
        for child in value.values() if isinstance(value, dict) else value:
            _check_nesting(child, depth + 1)


def _without_lone_surrogates(value: Any) -> Any:
    """Half a character that the CLI cut off cannot be encoded again."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_lone_surrogates(child) for child in value]
    if isinstance(value, dict):
        return {_without_lone_surrogates(key): _without_lone_surrogates(child) for key, child in value.items()}
    return value
