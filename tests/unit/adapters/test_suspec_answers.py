"""Every way in which an answer of the suspec CLI can be forged or broken, by the numbers of `read_check`."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.suspec import Contract, Refused, Reports, check_request
from adapters.suspec.answers import read_check, read_contract
from adapters.suspec.contract import CHECKS, FILE_SET
from adapters.suspec.request import CheckRequest
from dependfix_core.errors import CommandError
from dependfix_core.process import CommandResult
from recording.record_suspec import in_folder, load_recorded, load_scenarios

ROOT = Path("/case")
SCENARIOS = {case["id"]: case for case in load_scenarios()}
RECORDED = load_recorded()
# The files that a case's paths tell apart, where those are fewer than the paths.
DISTINCT = {"alias-dedup": 1, "alias-hardlink": 1, "alias-linked-folder": 2}

Document = dict[str, Any]
Change = Callable[[list[Document]], object]


def ended(stdout: bytes, exit_code: int, stderr: bytes = b"") -> CommandResult:
    return CommandResult(argv=("suspec",), exit_code=exit_code, stdout=stdout, stderr=stderr, duration_s=0.1)


def asked(case_id: str) -> tuple[CheckRequest, tuple[str, ...]]:
    arguments = in_folder(SCENARIOS[case_id]["request"]["arguments"], ROOT)
    request = check_request(arguments["paths"], arguments.get("specPath"))
    return request, request.paths[: DISTINCT.get(case_id)]


def recorded_stdout(case_id: str) -> bytes:
    text = in_folder(RECORDED[case_id]["stdout"], ROOT)
    assert isinstance(text, str)
    return text.encode()


def documents_of(case_id: str) -> list[Document]:
    return [json.loads(line) for line in recorded_stdout(case_id).split(b"\n") if line]


def lines(documents: list[Document]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def fault(case_id: str, stdout: bytes, exit_code: int | None = None, **asking: Any) -> str:
    """Why the answer is rejected: the reason of a `bad_output`, else the code."""
    request, distinct = asked(case_id)
    exit_code = RECORDED[case_id]["exit"] if exit_code is None else exit_code
    with pytest.raises(CommandError) as caught:
        read_check(ended(stdout, exit_code, b"words"), asking.get("request", request), asking.get("distinct", distinct))
    error = caught.value
    assert error.details["exitCode"] == exit_code
    assert error.details["stderr"] == "words"
    return str(error.details["reason"]) if error.code == "bad_output" else error.code


def changed(case_id: str, change: Change, exit_code: int | None = None) -> str:
    """Why the recorded answer with one change is rejected."""
    documents = documents_of(case_id)
    change(documents)
    return fault(case_id, lines(documents), exit_code)


def setting(index: int, **values: Any) -> Change:
    return lambda documents: documents[index].update(values)


def without(index: int, key: str) -> Change:
    return lambda documents: documents[index].pop(key)


def finding(index: int, number: int, **values: Any) -> Change:
    return lambda documents: documents[index]["diagnostics"][number].update(values)


CHECK_CASES = [case_id for case_id, case in SCENARIOS.items() if case.get("request", {}).get("tool") == "suspec_check"]


@pytest.mark.parametrize("case_id", CHECK_CASES)
def test_every_recorded_answer_is_read_whole(case_id: str) -> None:
    request, distinct = asked(case_id)
    documents = documents_of(case_id)

    answer = read_check(ended(recorded_stdout(case_id), RECORDED[case_id]["exit"]), request, distinct)

    if "error" in documents[0]:
        assert isinstance(answer, Refused)
        assert [{"error": each.error, "message": each.message} for each in answer.items] == documents
        return
    assert isinstance(answer, Reports)
    for report, document in zip(answer.items, documents, strict=True):
        findings = [
            {"code": each.code, "severity": each.severity, "message": each.message, "line": each.line}
            for each in report.diagnostics
        ]
        shown: Document = {"level": report.level, "path": report.path}
        if report.type is not None:
            shown["type"] = report.type
        shown |= {"diagnostics": findings} if report.checked else {"checked": False}
        assert shown == document


def test_recordings_hold_every_check_and_both_kinds_of_refusal() -> None:
    documents = [document for case_id in CHECK_CASES for document in documents_of(case_id)]

    codes = {each["code"] for document in documents for each in document.get("diagnostics", [])}
    assert codes == set(CHECKS)
    assert {document["error"] for document in documents if "error" in document} == {"Usage", "ParseFailure"}


@pytest.mark.parametrize(
    ("exit_code", "code"),
    [(3, "cli_failed"), (9, "cli_failed"), (255, "cli_failed"), (126, "cli_broken"), (127, "cli_broken")],
)
@pytest.mark.parametrize("case_id", ["spec-clean", "error-missing-file"])
def test_class_01_an_exit_code_outside_the_contract(case_id: str, exit_code: int, code: str) -> None:
    assert fault(case_id, recorded_stdout(case_id), exit_code) == code


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda raw: raw.replace(b"clean", b"cl\xffean"), "encoding"),
        (lambda raw: raw.replace(b"clean", b"cl\xed\xa0\x80ean"), "encoding"),
        (lambda raw: raw[:-1] + b"\xc3", "encoding"),
        (lambda raw: raw.decode().encode("utf-16"), "encoding"),
        (lambda raw: raw.decode().encode("utf-16-le"), "json"),
        (lambda raw: b"\xef\xbb\xbf" + raw, "byte-order-mark"),
    ],
    ids=["invalid-byte", "encoded-surrogate", "cut-character", "utf-16", "utf-16-le", "byte-order-mark"],
)
def test_class_02_bytes_that_are_not_plain_utf8(damage: Callable[[bytes], bytes], reason: str) -> None:
    assert fault("spec-clean", damage(recorded_stdout("spec-clean"))) == reason


@pytest.mark.parametrize("blank", [b"", b"\n", b" \t\r\n\n", b"\r\n \r\n"])
@pytest.mark.parametrize(("exit_code", "expected"), [(0, "empty"), (1, "cli_failed"), (2, "cli_failed")])
def test_class_03_no_document_at_all(blank: bytes, exit_code: int, expected: str) -> None:
    assert fault("spec-clean", blank, exit_code) == expected


def test_class_03_only_a_line_feed_ends_a_line() -> None:
    documents = documents_of("spec-warning")
    documents[0]["diagnostics"][0]["message"] = "a\u0085b\u2028c\u2029d\u000be"
    raw = json.dumps(documents[0], ensure_ascii=False).encode() + b"\n"

    answer = read_check(ended(b"\r\n" + raw + b" \t\n", 1), *asked("spec-warning"))

    assert isinstance(answer, Reports)
    assert answer.items[0].diagnostics[0].message == "a\u0085b\u2028c\u2029d\u000be"
    joined = recorded_stdout("mixed-batch-warning").replace(b"\n", "\u2028".encode())
    assert fault("mixed-batch-warning", joined) == "json"


CLEAN = recorded_stdout("spec-clean").strip()


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        (CLEAN[:-1], "json"),
        (CLEAN[: len(CLEAN) // 2], "json"),
        (CLEAN + CLEAN, "json"),
        (CLEAN + b" // done", "json"),
        (b"Checked 1 file\n" + CLEAN, "json"),
        (json.dumps(json.loads(CLEAN), indent=1).encode(), "json"),
        (CLEAN.replace(b'"level":"clean"', b'"level":"clean","level":"clean"'), "repeated-key"),
        (CLEAN.replace(b"[]", b'[{"a":1,"a":1}]'), "repeated-key"),
        (CLEAN.replace(b"[]", b'[],"more":NaN'), "not-a-number"),
        (CLEAN.replace(b"[]", b'[],"more":-Infinity'), "not-a-number"),
        (CLEAN.replace(b"[]", b'[],"more":1e999'), "not-a-number"),
        (CLEAN.replace(b"[]", b'[],"more":' + b"9" * 5000), "json"),
        (CLEAN.replace(b"[]", b'[],"more":' + b"[" * 40 + b"]" * 40), "nesting"),
        (CLEAN.replace(b"[]", b'[],"more":' + b"[" * 100_000 + b"]" * 100_000), "nesting"),
        (CLEAN.replace(b"[]", b"[],\"more\":'single'"), "json"),
        (b"[" + CLEAN + b"]", "not-an-object"),
        (b"17", "not-an-object"),
        (b'"text"', "not-an-object"),
        (b"null", "not-an-object"),
        (CLEAN + b"\n0", "not-an-object"),
        (CLEAN + b"\n\xef\xbb\xbf" + CLEAN, "json"),
        (CLEAN + b"\n\x00", "json"),
    ],
)
def test_class_04_a_line_that_is_no_plain_json_object(stdout: bytes, reason: str) -> None:
    assert fault("spec-clean", stdout) == reason


@pytest.mark.parametrize(
    ("case_id", "extra"),
    [
        ("spec-clean", {"error": "Usage", "message": "m"}),
        ("spec-clean", {"error": "Usage"}),
        ("spec-clean", {"message": "m"}),
        ("unchecked-types", {"error": None}),
        ("error-missing-file", {"level": "clean"}),
        ("error-missing-file", {"path": "/case/nowhere.md"}),
        ("error-missing-file", {"checked": False}),
        ("error-missing-file", {"diagnostics": []}),
    ],
)
def test_class_05_a_document_that_is_refusal_and_report(case_id: str, extra: Document) -> None:
    assert changed(case_id, setting(0, **extra)) == "ambiguous"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"error": "Usage"},
        {"message": "m"},
        {"error": 1, "message": "m"},
        {"error": "Usage", "message": None},
        {"error": ["Usage"], "message": "m"},
        {"version": "0.26.0", "checks": []},
    ],
)
def test_class_05_a_document_that_is_neither(document: Document) -> None:
    assert fault("error-missing-file", lines([document])) == "unknown-document"


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize("case_id", ["error-missing-file", "error-two-missing"])
def test_class_06_a_refusal_without_its_exit_code(case_id: str, exit_code: int) -> None:
    assert fault(case_id, recorded_stdout(case_id), exit_code) == "exit-code"


@pytest.mark.parametrize("case_id", ["error-frontmatter", "error-three-kinds", "error-task-mixed"])
def test_class_06_more_refusals_than_files(case_id: str) -> None:
    one = documents_of(case_id)[:1]
    _, distinct = asked(case_id)

    assert fault(case_id, lines(one * (len(distinct) + 1))) == "refusal-count"
    answer = read_check(ended(lines(one * len(distinct)), 2), *asked(case_id))
    assert isinstance(answer, Refused)
    assert len(answer.items) == len(distinct)


@pytest.mark.parametrize("at", [0, 1, 4])
@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_class_07_refusals_among_reports(at: int, exit_code: int) -> None:
    def insert(documents: list[Document]) -> None:
        documents.insert(at, {"error": "Usage", "message": "m"})

    assert changed("mixed-batch-warning", insert, exit_code) == "mixed"


SPEC_FINDING = {"code": "C008", "severity": "warning", "message": "m", "line": None}


@pytest.mark.parametrize(
    ("case_id", "change", "reason"),
    [
        ("spec-clean", setting(0, type="review"), "type"),
        ("spec-clean", setting(0, type="Spec"), "type"),
        ("spec-clean", setting(0, type=None), "type"),
        ("spec-clean", setting(0, type=["spec"]), "type"),
        ("spec-clean", without(0, "type"), "type"),
        ("duplicate-id", setting(2, type="spec"), "file-set"),
        ("duplicate-id", setting(2, type=None), "file-set"),
        ("spec-clean", without(0, "path"), "report-shape"),
        ("spec-clean", setting(0, path=None), "report-shape"),
        ("spec-clean", setting(0, path=["/case/spec.md"]), "report-shape"),
        ("spec-clean", without(0, "level"), "level"),
        ("spec-clean", setting(0, level="ok"), "level"),
        ("spec-clean", setting(0, level="Clean"), "level"),
        ("spec-clean", setting(0, level=0), "level"),
        ("spec-clean", setting(0, level="warning"), "level"),
        ("spec-clean", setting(0, level="blocking"), "level"),
        ("spec-warning", setting(0, level="clean"), "level"),
        ("spec-warning", setting(0, level="blocking"), "level"),
        ("spec-blocking-many", setting(0, level="warning"), "level"),
        ("change-plan-blocking", setting(0, level="warning"), "level"),
        ("unchecked-types", setting(0, level="warning"), "level"),
        ("duplicate-id", setting(2, level="warning"), "level"),
        ("spec-clean", setting(0, checked=True), "report-shape"),
        ("spec-clean", setting(0, checked=False), "report-shape"),
        ("spec-clean", without(0, "diagnostics"), "report-shape"),
        ("spec-clean", setting(0, diagnostics=None), "report-shape"),
        ("spec-clean", setting(0, diagnostics={}), "report-shape"),
        ("spec-clean", setting(0, diagnostics=[None]), "report-shape"),
        ("spec-clean", setting(0, diagnostics=["C008"]), "report-shape"),
        ("unchecked-types", without(0, "checked"), "report-shape"),
        ("unchecked-types", setting(0, checked=True), "report-shape"),
        ("unchecked-types", setting(0, checked=None), "report-shape"),
        ("unchecked-types", setting(0, checked=0), "report-shape"),
        ("unchecked-types", setting(0, diagnostics=[]), "report-shape"),
        ("duplicate-id", setting(2, checked=False), "report-shape"),
        ("duplicate-id", without(2, "diagnostics"), "report-shape"),
        ("spec-clean", setting(0, type="audit"), "report-shape"),
        ("unchecked-types", setting(1, type="spec"), "report-shape"),
        ("spec-warning", finding(0, 0, code="C005"), "check"),
        ("spec-warning", finding(0, 0, code="C099"), "check"),
        ("spec-warning", finding(0, 0, code="c008"), "check"),
        ("spec-warning", finding(0, 0, code=8), "check"),
        ("spec-warning", finding(0, 0, code=["C008"]), "check"),
        ("spec-warning", finding(0, 0, code="C002"), "check"),
        ("spec-warning", finding(0, 0, code="C011"), "check"),
        ("spec-warning", setting(0, type="campaign"), "check"),
        ("task-closed", finding(1, 0, code="C021"), "check"),
        ("duplicate-id", finding(2, 0, code="C001"), "check"),
        ("duplicate-id", setting(0, level="blocking", diagnostics=[{**SPEC_FINDING, "code": "C002"}]), "check"),
        ("spec-warning", finding(0, 0, severity="hard-error"), "severity"),
        ("spec-ready-unresolved", finding(0, 0, severity="warning"), "severity"),
        ("spec-warning", finding(0, 0, severity="Warning"), "severity"),
        ("spec-warning", finding(0, 0, severity=None), "severity"),
        ("spec-warning", finding(0, 0, severity=1), "severity"),
        ("spec-warning", finding(0, 0, message=None), "report-shape"),
        ("spec-warning", finding(0, 0, message=["m"]), "report-shape"),
        ("spec-warning", finding(0, 0, line=0), "line"),
        ("spec-warning", finding(0, 0, line=-1), "line"),
        ("spec-warning", finding(0, 0, line=True), "line"),
        ("spec-warning", finding(0, 0, line=False), "line"),
        ("spec-warning", finding(0, 0, line=1.0), "line"),
        ("spec-warning", finding(0, 0, line="1"), "line"),
        ("spec-warning", finding(0, 0, line=2**53), "line"),
        ("spec-warning", lambda documents: documents[0]["diagnostics"][0].pop("line"), "line"),
        ("duplicate-id", finding(2, 0, line=3), "line"),
    ],
)  # fmt: skip
def test_class_08_a_report_that_breaks_the_rules_of_its_kind(case_id: str, change: Change, reason: str) -> None:
    assert changed(case_id, change) == reason


def swap(first: int, second: int) -> Change:
    def change(documents: list[Document]) -> None:
        documents[first], documents[second] = documents[second], documents[first]

    return change


FILE_SET_REPORT = {
    "path": FILE_SET,
    "level": "blocking",
    "diagnostics": [{"code": "C002", "severity": "hard-error", "message": "m", "line": None}],
}


@pytest.mark.parametrize(
    ("case_id", "change", "reason"),
    [
        ("mixed-batch-warning", swap(0, 1), "paths"),
        ("mixed-batch-warning", lambda documents: documents.pop(0), "paths"),
        ("mixed-batch-warning", lambda documents: documents.pop(), "paths"),
        ("mixed-batch-warning", lambda documents: documents.append(documents[-1]), "paths"),
        ("mixed-batch-warning", lambda documents: documents.insert(1, documents[0]), "paths"),
        ("alias-dedup", lambda documents: documents.append(documents[-1]), "paths"),
        ("alias-dedup", setting(0, path="/case/spec.md"), "paths"),
        ("paths-spellings", setting(0, path="/case/spec.md"), "paths"),
        ("paths-spellings", setting(2, path="/case/z.md"), "paths"),
        ("spec-clean", setting(0, path="spec.md"), "paths"),
        ("spec-clean", setting(0, path="/case/SPEC.md"), "paths"),
        ("spec-clean", setting(0, path="/case/spec.md "), "paths"),
        ("spec-clean", setting(0, path="/case/spec.md\u200b"), "paths"),
        ("spec-clean", setting(0, path=""), "paths"),
        ("paths-odd-characters", setting(0, path="/case/\u00e9t\u00e9.md"), "paths"),
        ("duplicate-id", swap(1, 2), "file-set"),
        ("duplicate-id", swap(0, 2), "file-set"),
        ("duplicate-id", lambda documents: documents.append(documents[-1]), "file-set"),
        ("duplicate-id", lambda documents: documents[-1]["diagnostics"].append(documents[-1]["diagnostics"][0]), "file-set"),
        ("duplicate-id", lambda documents: documents.__delitem__(slice(0, 2)), "paths"),
        ("duplicate-id", lambda documents: documents.pop(0), "paths"),
        ("duplicate-id", setting(2, path="/case/two.md"), "type"),
        ("paths-file-set-name", setting(0, path=FILE_SET), "file-set"),
        ("spec-clean", lambda documents: documents.append(FILE_SET_REPORT), "file-set"),
        ("alias-hardlink", lambda documents: documents.append(FILE_SET_REPORT), "file-set"),
    ],
)  # fmt: skip
def test_class_09_reports_that_are_not_those_of_the_request(case_id: str, change: Change, reason: str) -> None:
    assert changed(case_id, change) == reason


def test_class_09_a_report_about_the_set_without_findings() -> None:
    documents = documents_of("duplicate-id")
    documents[2].update(level="clean", diagnostics=[])

    assert fault("duplicate-id", lines(documents), 0) == "file-set"


def test_class_09_only_the_report_about_the_set() -> None:
    assert fault("duplicate-id", lines([FILE_SET_REPORT])) == "paths"


@pytest.mark.parametrize(
    ("case_id", "spec_path", "reason"),
    [
        ("task-clean", None, "companion"),
        ("task-batch-blocking", None, "companion"),
        ("spec-clean", "/case/other.md", "companion"),
        ("unchecked-types", "/case/spec.md", "companion"),
    ],
)
def test_class_10_a_companion_without_tasks_or_tasks_without_one(
    case_id: str, spec_path: str | None, reason: str
) -> None:
    request, _ = asked(case_id)
    other = check_request(request.paths, spec_path)

    assert fault(case_id, recorded_stdout(case_id), request=other) == reason


def test_class_10_a_report_of_another_type_beside_tasks() -> None:
    def change(documents: list[Document]) -> None:
        documents[1] = {"level": "clean", "path": documents[1]["path"], "type": "panel", "checked": False}

    assert changed("task-batch-blocking", change) == "companion"


@pytest.mark.parametrize(
    ("case_id", "exit_code"),
    [
        (case_id, exit_code)
        for case_id in ("spec-clean", "spec-warning", "spec-blocking-many", "unchecked-types", "mixed-batch-warning", "duplicate-id", "task-batch-blocking")
        for exit_code in (0, 1, 2)
        if exit_code != RECORDED[case_id]["exit"]
    ],
)  # fmt: skip
def test_class_11_an_exit_code_that_is_not_the_worst_level(case_id: str, exit_code: int) -> None:
    assert fault(case_id, recorded_stdout(case_id), exit_code) == "exit-code"


def test_class_11_a_lost_report_about_the_set_shows_in_the_exit_code() -> None:
    assert changed("duplicate-id", lambda documents: documents.pop()) == "exit-code"


def test_class_12_unknown_keys_are_kept_and_excuse_nothing() -> None:
    documents = documents_of("spec-warning")
    documents[0] |= {"since": {"tool": 3}}
    documents[0]["diagnostics"][0] |= {"rule": "R1"}

    answer = read_check(ended(lines(documents), 1), *asked("spec-warning"))

    assert isinstance(answer, Reports)
    assert answer.items[0].extra == {"since": {"tool": 3}}
    assert answer.items[0].diagnostics[0].extra == {"rule": "R1"}
    documents[0]["diagnostics"][0].pop("severity")
    assert fault("spec-warning", lines(documents)) == "severity"


def test_class_12_half_a_character_is_replaced() -> None:
    raw = recorded_stdout("spec-warning").replace(b"names no", rb"\ud83d names \ud83d\ude00")

    answer = read_check(ended(raw, 1), *asked("spec-warning"))

    assert isinstance(answer, Reports)
    assert answer.items[0].diagnostics[0].message == "frontmatter sources: \ufffd names \U0001f600 origin"


OTHER_VALUES: tuple[Any, ...] = (None, True, 3, 1.5, "other", [], {}, ["x"])


def mutations(documents: list[Document]) -> Iterator[tuple[str, list[Document]]]:
    """Each known key of each document and diagnostic dropped, and given values of every other type."""

    def spots() -> Iterator[tuple[Any, ...]]:
        for index, document in enumerate(documents):
            yield (index,)
            for number in range(len(document.get("diagnostics", []))):
                yield index, "diagnostics", number

    def reach(root: Any, spot: tuple[Any, ...]) -> Document:
        for step in spot:
            root = root[step]
        assert isinstance(root, dict)
        return root

    for spot in spots():
        for key, value in reach(documents, spot).items():
            dropped = copy.deepcopy(documents)
            del reach(dropped, spot)[key]
            yield f"{spot} without {key}", dropped
            for other in OTHER_VALUES:
                # Another text is another message, and a line may be absent, or another one.
                same = (type(other) is type(value) and key == "message") or (key == "line" and other in (None, 3))
                if other == value or same:
                    continue
                retyped = copy.deepcopy(documents)
                reach(retyped, spot)[key] = other
                yield f"{spot} {key}={other!r}", retyped


@pytest.mark.parametrize("case_id", [case_id for case_id in CHECK_CASES if case_id != "spec-many-diagnostics"])
def test_no_single_field_can_be_dropped_or_retyped(case_id: str) -> None:
    request, distinct = asked(case_id)
    believed = []

    for what, documents in mutations(documents_of(case_id)):
        try:
            read_check(ended(lines(documents), RECORDED[case_id]["exit"]), request, distinct)
        except CommandError:
            continue
        believed.append(what)

    # The kind of a refusal is a word that no rule is about.
    assert [what for what in believed if not what.endswith("error='other'")] == []


CONTRACT = json.loads(RECORDED["contract"]["stdout"])


def contract_fault(stdout: bytes, exit_code: int = 0) -> tuple[str, Any]:
    with pytest.raises(CommandError) as caught:
        read_contract(ended(stdout, exit_code))
    details = caught.value.details
    return caught.value.code, details.get("reason") or details.get("differing") or details.get("found")


def test_the_recorded_contract_is_ours() -> None:
    answer = read_contract(ended(RECORDED["contract"]["stdout"].encode(), 0))

    assert isinstance(answer, Contract)
    assert {row.id: (row.name, row.severity) for row in answer.checks} == {
        check.id: (check.name, check.severity) for check in CHECKS.values()
    }
    assert {row["id"] for row in CONTRACT["checks"]} == set(CHECKS)


def test_the_order_of_the_contract_and_unknown_keys_mean_nothing() -> None:
    rows = [{**row, "since": "0.9"} for row in reversed(CONTRACT["checks"])]

    answer = read_contract(ended(json.dumps({"checks": rows, "more": 1, "version": "0.26.0"}).encode(), 0))

    assert isinstance(answer, Contract)
    assert answer.extra == {"more": 1}
    assert answer.checks[0].extra == {"since": "0.9"}


def rows_changed(change: Callable[[list[Any]], object]) -> bytes:
    contract = copy.deepcopy(CONTRACT)
    change(contract["checks"])
    return json.dumps(contract).encode()


@pytest.mark.parametrize(
    ("stdout", "exit_code", "expected"),
    [
        (json.dumps({**CONTRACT, "version": "0.23.0"}).encode(), 0, ("contract_mismatch", "0.23.0")),
        (json.dumps({**CONTRACT, "version": "0.26.1"}).encode(), 0, ("contract_mismatch", "0.26.1")),
        (json.dumps({**CONTRACT, "version": "0.26.0 "}).encode(), 0, ("contract_mismatch", "0.26.0 ")),
        (json.dumps({**CONTRACT, "version": 0.26}).encode(), 0, ("bad_output", "contract-shape")),
        (json.dumps({**CONTRACT, "checks": {}}).encode(), 0, ("bad_output", "contract-shape")),
        (json.dumps({"checks": CONTRACT["checks"]}).encode(), 0, ("bad_output", "contract-shape")),
        (json.dumps({"version": "0.26.0"}).encode(), 0, ("bad_output", "contract-shape")),
        (json.dumps({**CONTRACT, "error": "Usage", "message": "m"}).encode(), 0, ("bad_output", "contract-shape")),
        (json.dumps(CONTRACT).encode(), 1, ("bad_output", "exit-code")),
        (json.dumps(CONTRACT).encode(), 2, ("bad_output", "exit-code")),
        (json.dumps(CONTRACT).encode(), 3, ("cli_failed", None)),
        (json.dumps(CONTRACT).encode() * 2, 0, ("bad_output", "json")),
        (b"\xef\xbb\xbf" + json.dumps(CONTRACT).encode(), 0, ("bad_output", "byte-order-mark")),
        (json.dumps(CONTRACT).encode("utf-16"), 0, ("bad_output", "encoding")),
        (b"suspec 1.0.0\n", 0, ("bad_output", "json")),
        (b"", 0, ("bad_output", "empty")),
        (b"{}", 0, ("bad_output", "unknown-document")),
        (b'{"error":"Usage","message":"m"}', 0, ("bad_output", "exit-code")),
        (rows_changed(lambda rows: rows.pop()), 0, ("contract_mismatch", ["C031"])),
        (rows_changed(lambda rows: rows.append(rows[0])), 0, ("contract_mismatch", ["C001"])),
        (rows_changed(lambda rows: rows.append({"id": "C032", "name": "n", "severity": "warning"})), 0, ("contract_mismatch", ["C032"])),
        (rows_changed(lambda rows: rows.append({"id": "C013", "name": "n", "severity": "warning"})), 0, ("contract_mismatch", ["C013"])),
        (rows_changed(lambda rows: rows[0].update(name="unique-id")), 0, ("contract_mismatch", ["C001"])),
        (rows_changed(lambda rows: rows[5].update(severity="hard-error")), 0, ("contract_mismatch", ["C008"])),
        (rows_changed(lambda rows: rows[5].pop("severity")), 0, ("contract_mismatch", ["C008"])),
        (rows_changed(lambda rows: rows[5].update(id=8)), 0, ("contract_mismatch", ["?", "C008"])),
        (rows_changed(lambda rows: rows.append(None)), 0, ("contract_mismatch", ["?"])),
        (rows_changed(lambda rows: rows.clear()), 0, ("contract_mismatch", sorted(CHECKS))),
    ],
)  # fmt: skip
def test_another_contract_is_not_negotiated(stdout: bytes, exit_code: int, expected: tuple[str, Any]) -> None:
    assert contract_fault(stdout, exit_code) == expected


def test_a_refusal_to_show_the_contract_is_a_refusal() -> None:
    answer = read_contract(ended(b'{"error":"Usage","message":"m"}\n', 2))

    assert isinstance(answer, Refused)
    assert answer.items[0].message == "m"
