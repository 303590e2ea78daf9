import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.suspec import Refused, Reports, check_request, check_view
from adapters.suspec.answers import read_check, read_contract
from adapters.suspec.cli import CheckAnswer, Source
from adapters.suspec.contract import CHECKS, FILE_SET, LEVELS, UNCHECKED_TYPES
from adapters.suspec.request import distinct_paths
from dependfix_core.errors import ArgumentError, CommandError
from dependfix_core.process import CommandResult

TYPES = ("spec", "task", "change-plan", "campaign", *UNCHECKED_TYPES)


def ended(stdout: bytes, exit_code: int) -> CommandResult:
    return CommandResult(argv=("suspec",), exit_code=exit_code, stdout=stdout, stderr=b"", duration_s=0.1)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]], int]:
    """Valid answers: paths, reports, exit code."""
    paths = draw(st.lists(st.from_regex(r"/[a-z ]{1,6}", fullmatch=True), min_size=1, max_size=4, unique=True))
    reports: list[dict[str, Any]] = []
    for path in paths:
        type_ = draw(st.sampled_from([kind for kind in TYPES if kind != "task"]))
        if type_ in UNCHECKED_TYPES:
            reports.append({"level": "clean", "path": path, "type": type_, "checked": False})
        else:
            reports.append({"type": type_, "path": path, **draw(findings(type_))})
    if len(paths) > 1 and draw(st.booleans()):
        reports.append({"path": FILE_SET, **draw(findings(FILE_SET, most=len(paths) - 1, least=1))})
    return paths, reports, max(LEVELS.index(report["level"]) for report in reports)


@st.composite
def findings(draw: st.DrawFn, reported_for: str, *, least: int = 0, most: int = 4) -> dict[str, Any]:
    """Diagnostics of one kind of report, and the level that follows."""
    own = [check for check in CHECKS.values() if check.reported_for == reported_for]
    lines = st.none() if reported_for == FILE_SET else st.none() | st.integers(1, 10**6)
    diagnostics = [
        {"code": check.id, "severity": check.severity, "message": draw(st.text(max_size=20)), "line": draw(lines)}
        for check in draw(st.lists(st.sampled_from(own), min_size=least, max_size=most))
    ]
    severities = {diagnostic["severity"] for diagnostic in diagnostics}
    level = "blocking" if "hard-error" in severities else "warning" if severities else "clean"
    return {"level": level, "diagnostics": diagnostics}


@given(streams(), st.booleans())
def test_a_valid_answer_is_read_whole_however_it_is_escaped(
    stream: tuple[list[str], list[dict[str, Any]], int], escaped: bool
) -> None:
    paths, reports, exit_code = stream
    stdout = "".join(json.dumps(report, ensure_ascii=escaped) + "\n" for report in reports).encode()
    request = check_request(paths)

    outcome = read_check(ended(stdout, exit_code), request, paths)
    views, _ = check_view(
        CheckAnswer(source=Source(command="", exit_code=0), request=request, distinct=tuple(paths), outcome=outcome),
        "concise",
        target_chars=24_000,
        max_chars=60_000,
    )

    assert [(view["path"], view["level"]) for view in views] == [(each["path"], each["level"]) for each in reports]
    assert [[each["code"] for each in view.get("diagnostics", [])] for view in views] == [
        [each["code"] for each in report.get("diagnostics", [])] for report in reports
    ]


@given(streams(), st.data())
def test_a_cut_answer_is_never_believed(
    stream: tuple[list[str], list[dict[str, Any]], int], data: st.DataObject
) -> None:
    paths, reports, exit_code = stream
    stdout = "\n".join(json.dumps(report) for report in reports).encode()
    cut = data.draw(st.integers(0, len(stdout) - 1))

    with pytest.raises(CommandError):
        read_check(ended(stdout[:cut], exit_code), check_request(paths), paths)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "level", "path", "diagnostics", "checked", "error", "message", "version", "checks"]
            ),
            children,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()), st.integers(-1, 300))
def test_whatever_is_printed_is_an_answer_or_an_error_with_a_code(stdout: bytes, exit_code: int) -> None:
    request = check_request(["/a", "/b"])
    for read in (
        lambda: read_check(ended(stdout, exit_code), request, request.paths),
        lambda: read_contract(ended(stdout, exit_code)),
    ):
        try:
            outcome = read()
        except CommandError as error:
            assert error.code in ("bad_output", "cli_failed", "cli_broken", "contract_mismatch")  # noqa: PT017  # a refusal is an answer
        else:
            assert isinstance(outcome, Refused)
            assert exit_code == 2


@given(st.text(max_size=12))
def test_a_path_is_taken_as_it_is_or_refused(text: str) -> None:
    try:
        request = check_request([text])
    except ArgumentError as error:
        assert error.details["argument"] == "paths"  # noqa: PT017  # both ends are fine
    else:
        assert text.startswith("/")
        assert request.arguments == ("check", text, "--json")
        assert not any(char in text for char in "\0\n\r\t\u2028\u2029\u202e\u200b")


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "soft", "hard", "gone"]), st.sampled_from(["", "./", "/", "x/../"])))
)
def test_each_file_stands_once_under_its_first_spelling(
    tmp_path_factory: pytest.TempPathFactory, names: list[tuple[str, str]]
) -> None:
    root = tmp_path_factory.getbasetemp() / "suspec-laws"
    if not root.exists():
        make_files(root)
    same = {"soft": "a", "hard": "a"}

    found = distinct_paths([f"{root}/{spelling}{name}" for name, spelling in names])

    wanted = dict.fromkeys(same.get(name, name) for name, _ in names)
    assert [same.get(os.path.basename(path), os.path.basename(path)) for path in found] == list(wanted)  # noqa: PTH119  # `Path` would tidy


def make_files(root: Path) -> None:
    (root / "x").mkdir(parents=True)
    for name in ("a", "b"):
        (root / name).write_text(name)
    (root / "soft").symlink_to("a")
    (root / "hard").hardlink_to(root / "a")


def test_reports_is_the_other_outcome() -> None:
    outcome = read_check(
        ended(b'{"level":"clean","path":"/a","type":"audit","checked":false}', 0), check_request(["/a"]), ["/a"]
    )

    assert isinstance(outcome, Reports)
