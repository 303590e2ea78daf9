from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.sudocode.cli import MAX_ARGUMENT_BYTES, call_form
from adapters.sudocode.failures import SudocodeError
from fakes.sudocode_cli import FakeSudocode

TEXT = st.text(max_size=60) | st.sampled_from(["--json", "--db=x", "-h", "--", "=", "--title=x", "a=b", "-d"])


def test_the_form_of_a_call() -> None:
    assert call_form(("issue", "create"), {"priority": "0", "file-path": "a b"}, ["-h", "--json"]) == (
        "--json",
        "issue",
        "create",
        "--priority=0",
        "--file-path=a b",
        "--",
        "-h",
        "--json",
    )
    assert call_form(("ready",), {}, [], database_option="--db=/p/x.db") == ("--json", "--db=/p/x.db", "ready")


@pytest.mark.parametrize(
    "text", ["a\x00b", "\ud800", "x" * (MAX_ARGUMENT_BYTES + 1), "ü" * (MAX_ARGUMENT_BYTES // 2 + 1)]
)
def test_what_the_system_cannot_pass_is_refused(text: str) -> None:
    for arguments in (({"file-path": text}, ["x"]), ({}, [text])):
        with pytest.raises(SudocodeError) as caught:
            call_form(("spec", "create"), *arguments)
        assert caught.value.code == "invalid_arguments"
    assert call_form(("spec", "create"), {}, ["x" * MAX_ARGUMENT_BYTES])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(title=TEXT, description=TEXT, assignee=TEXT)
def test_any_text_arrives_as_it_is_or_is_refused(title: str, description: str, assignee: str, tmp_path: Path) -> None:
    fake = FakeSudocode()
    options = {"description": description, "assignee": assignee}
    try:
        arguments = call_form(("issue", "create"), options, [title])
    except SudocodeError:
        assert "\x00" in title + description + assignee
        return

    code, _, _ = fake.run(arguments, tmp_path)

    assert code == 0
    stored = fake.state["issues"][-1]
    assert (stored["title"], stored["content"], stored["assignee"] or "") == (title, description, assignee)
