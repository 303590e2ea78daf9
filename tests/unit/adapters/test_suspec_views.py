import json
from typing import Any

import pytest

from adapters.suspec import (
    CheckAnswer,
    Contract,
    ContractRow,
    Diagnostic,
    Refusal,
    Refused,
    Report,
    Reports,
    Source,
    check_request,
    check_view,
    command_view,
    contract_view,
)
from dependfix_core.errors import OutputTooLargeError

SIZES: dict[str, Any] = {"target_chars": 20_000, "max_chars": 50_000}


def diagnostic(code: str = "C003", message: str = "m", **more: Any) -> Diagnostic:
    severity = "warning" if code in ("C008", "C011", "C015", "C019") else "hard-error"
    return Diagnostic(code=code, severity=severity, message=message, line=more.pop("line", 1), **more)  # type: ignore[arg-type]  # one of two words


def report(path: str, *diagnostics: Diagnostic, type_: str | None = "spec", **more: Any) -> Report:
    return Report(path=path, type=type_, level="blocking" if diagnostics else "clean", diagnostics=diagnostics, **more)


def answer(outcome: Reports | Refused, *paths: str, distinct: tuple[str, ...] | None = None) -> CheckAnswer:
    return CheckAnswer(
        source=Source(command="suspec", exit_code=2),
        request=check_request(paths),
        distinct=paths if distinct is None else distinct,
        outcome=outcome,
    )


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def test_both_formats_show_the_same_facts_and_only_detailed_shows_unknown_keys() -> None:
    items = (
        report("/a", diagnostic(extra={"rule": "R\u202e1", "x\u200b": 1}), extra={"since": [{"k\u202e": "v"}], "omitted": 5}),
        report("/b", type_="audit"),
        report("(file set)", diagnostic("C002", line=None), type_=None),
    )  # fmt: skip
    asked = answer(Reports(items=items), "/a", "/b")

    concise, note = check_view(asked, "concise", **SIZES)
    detailed, same_note = check_view(asked, "detailed", **SIZES)

    assert concise == [
        {
            "type": "spec",
            "level": "blocking",
            "path": "/a",
            "diagnostics": [{"code": "C003", "severity": "hard-error", "message": "m", "line": 1}],
        },
        {"type": "audit", "level": "clean", "path": "/b", "checked": False},
        {
            "level": "blocking",
            "path": "(file set)",
            "diagnostics": [{"code": "C002", "severity": "hard-error", "message": "m"}],
        },
    ]
    assert detailed[0] == {
        **concise[0],
        "diagnostics": [{**concise[0]["diagnostics"][0], "rule": "R1"}],
        "since": [{"k": "v"}],
    }
    assert detailed[1:] == concise[1:]
    assert note == same_note != ""


def test_concise_leaves_diagnostics_out_and_counts_them() -> None:
    findings = [diagnostic()] * 150 + [diagnostic("C008")] * 20
    asked = answer(Reports(items=(report("/a", *findings),)), "/a")

    (concise,), note = check_view(asked, "concise", **SIZES)
    (detailed,), no_note = check_view(asked, "detailed", **SIZES)

    assert len(concise["diagnostics"]) == 100
    assert concise["omittedCount"] == 70
    assert concise["omitted"] == [{"code": "C003", "count": 50}, {"code": "C008", "count": 20}]
    assert len(detailed["diagnostics"]) == 170
    assert not {"omitted", "omittedCount"} & detailed.keys()
    assert note != no_note == ""


@pytest.mark.parametrize("message", ["m", "m" * 3_000, "\u202e" * 3_000 + "m"])
@pytest.mark.parametrize(("files", "findings"), [(1, 18_000), (40, 200), (256, 3), (256, 0)])
def test_concise_fits_and_keeps_every_report_and_level(files: int, findings: int, message: str) -> None:
    paths = [f"/specs/{number:03d}/{'x' * 100}.md" for number in range(files)]
    found = (diagnostic(message=message),) * findings
    asked = answer(Reports(items=tuple(report(path, *found) for path in paths)), *paths)

    views, _ = check_view(asked, "concise", **SIZES)

    assert size(views) <= SIZES["max_chars"]
    assert [view["path"] for view in views] == paths
    assert {view["level"] for view in views} == {"blocking" if findings else "clean"}
    for view in views:
        assert len(view["diagnostics"]) + view.get("omittedCount", 0) == findings


def test_concise_stays_near_its_target_where_it_can() -> None:
    asked = answer(Reports(items=(report("/a", *[diagnostic(message="m" * 900)] * 90),)), "/a")

    views, _ = check_view(asked, "concise", **SIZES)

    assert size(views) <= SIZES["target_chars"]


def test_detailed_is_whole_or_says_that_it_is_too_much() -> None:
    asked = answer(Reports(items=(report("/a", *[diagnostic(message="m" * 900)] * 90),)), "/a")

    with pytest.raises(OutputTooLargeError):
        check_view(asked, "detailed", **SIZES)


@pytest.mark.parametrize("response_format", ["concise", "detailed"])
def test_every_refusal_is_kept(response_format: Any) -> None:
    paths = [f"/specs/{number:03d}.md" for number in range(256)]
    short = tuple(Refusal(error="Usage", message=f"file not found: {path}") for path in paths)
    long = tuple(Refusal(error="Usage", message=f"{path} {'m' * 3_000}") for path in paths)

    views, note = check_view(answer(Refused(items=short), *paths), response_format, **SIZES)
    cut, cut_note = check_view(answer(Refused(items=long), *paths), response_format, **SIZES)

    assert views == [{"error": each.error, "message": each.message} for each in short]
    assert [view["message"][:14] for view in cut] == [each.message[:14] for each in long]
    assert size(cut) <= SIZES["max_chars"]
    assert cut_note != note


def notes_of(refusals: int, paths: tuple[str, ...], message: str) -> str:
    outcome = Refused(items=(Refusal(error="ParseFailure", message=message),) * refusals)
    return check_view(answer(outcome, *paths), "concise", **SIZES)[1]


def test_a_refusal_that_names_no_file_is_pointed_out() -> None:
    one_file = notes_of(1, ("/a",), "broken")
    one_for_each = notes_of(2, ("/a", "/b"), "broken")
    of_some_file = notes_of(1, ("/a", "/b"), "broken")
    of_a_named_file = notes_of(1, ("/a", "/b"), "broken: /b")

    assert one_file == of_a_named_file
    assert len({one_file, one_for_each, of_some_file}) == 3


def test_aliases_and_unchecked_types_are_pointed_out() -> None:
    clean = Reports(items=(report("/a"),))
    unchecked = Reports(items=(report("/a", type_="panel"),))

    notes = {
        check_view(answer(clean, "/a"), "concise", **SIZES)[1],
        check_view(answer(clean, "/a", "/b", distinct=("/a",)), "concise", **SIZES)[1],
        check_view(answer(unchecked, "/a"), "concise", **SIZES)[1],
        check_view(answer(unchecked, "/a", "/b", distinct=("/a",)), "concise", **SIZES)[1],
    }

    assert "" in notes
    assert len(notes) == 4


def test_the_contract_has_names_only_in_detailed() -> None:
    row = ContractRow(id="C008", name="sources-named", severity="warning", extra={"since": 1})
    contract = Contract(version="0.26.0", checks=(row,), extra={"more": "x"})

    assert contract_view(contract, "concise") == {
        "version": "0.26.0",
        "checks": [{"id": "C008", "severity": "warning"}],
    }
    assert contract_view(contract, "detailed") == {
        "version": "0.26.0",
        "checks": [{"id": "C008", "name": "sources-named", "severity": "warning", "since": 1}],
        "more": "x",
    }


def test_a_long_command_is_shortened_in_concise_only() -> None:
    command = f"/bin/suspec check {'/x/spec.md ' * 2_000}--json"

    shown = command_view(command, "concise")

    assert shown.startswith("/bin/suspec check ")
    assert shown.endswith(" --json")
    assert len(shown) < 1_100
    assert command_view(command, "detailed") == command
    assert command_view(command[:8_000], "concise") == command[:8_000]
