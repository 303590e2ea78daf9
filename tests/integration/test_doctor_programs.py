"""What `doctor` says about the two programs, and when one that does not fit ends the start."""

import os
import stat
from pathlib import Path

import pytest

from dependfix_mcp.__main__ import main
from fakes import sudocode_cli, suspec_cli
from recording.record_suspec import DATA, load_recorded

OLD_CONTRACT = load_recorded()["contract"]["stdout"].replace("0.26.0", "0.23.0").encode()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which neither program is, unless a test puts it there."""
    for name in list(os.environ):
        if name.startswith(("DEPENDFIX_", "SUSPEC_", "SUDOCODE_", "GITHUB_", "NODE_")) or name == "CLAUDE_PROJECT_DIR":
            monkeypatch.delenv(name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def suspec(tmp_path: Path) -> suspec_cli.FakeCli:
    return suspec_cli.install(tmp_path / "cli", DATA / "recorded.json", tmp_path)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def said(capsys: pytest.CaptureFixture[str], name: str, *flags: str) -> tuple[int, list[str], list[str]]:
    """Exit code, the lines about a toolset, and the problems."""
    code = main(["doctor", *flags])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    found = [line for line in lines if line.startswith(f"{name}: ")]
    problems = lines[lines.index("Problems") + 1 :] if "Problems" in lines else []
    return code, [line for line in found if line not in problems], problems


def test_a_cli_of_the_right_contract_is_named(suspec: suspec_cli.FakeCli, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "suspec", "--toolsets", "suspec", "--suspec-bin", str(suspec.launcher)) == (
        0,
        [
            "suspec: 2 tools",
            f"suspec: {suspec.launcher}; found contract 0.26.0, needed is contract 0.26.0",
        ],
        [],
    )


@pytest.mark.parametrize(("toolsets", "code"), [("suspec", 3), ("suspec,sudocode", 0)])
def test_a_cli_of_another_contract_is_named_with_what_was_found_and_is_needed(
    suspec: suspec_cli.FakeCli, capsys: pytest.CaptureFixture[str], toolsets: str, code: int
) -> None:
    suspec.answer("contract", OLD_CONTRACT, 0)
    message = "the suspec CLI speaks contract 0.23.0, needed is 0.26.0"

    assert said(capsys, "suspec", "--toolsets", toolsets, "--suspec-bin", str(suspec.launcher)) == (
        code,
        [
            "suspec: 2 tools",
            f"suspec: {suspec.launcher}; found contract 0.23.0, needed is contract 0.26.0",
            (
                f"suspec: its tools answer contract_mismatch: {message}. "
                "Use a suspec CLI with checks contract 0.26.0; --suspec-bin or SUSPEC_BIN names it."
            ),
        ],
        [f"suspec: {message}"] if code else [],
    )


@pytest.mark.parametrize(("toolsets", "code"), [("suspec", 3), ("suspec,sudocode", 0)])
def test_a_missing_suspec_is_named(capsys: pytest.CaptureFixture[str], toolsets: str, code: int) -> None:
    message = "the suspec CLI was not found: no suspec on PATH"

    assert said(capsys, "suspec", "--toolsets", toolsets) == (
        code,
        [
            "suspec: 2 tools",
            "suspec: no executable; found no contract, needed is contract 0.26.0",
            (
                f"suspec: its tools answer cli_missing: {message}. "
                "Install the suspec CLI, or name it with --suspec-bin or SUSPEC_BIN."
            ),
        ],
        [f"suspec: {message}"] if code else [],
    )


def test_what_is_served_alone_by_its_tools_is_a_problem_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, problems = said(capsys, "suspec", "--toolsets", "sudocode", "--tools", "suspec_check")
    alone, first, its_problems = said(capsys, "suspec", "--toolsets", "suspec", "--exclude-tools", "suspec_get_checks")

    assert (code, lines[0], problems) == (0, "suspec: 1 tool", [])
    assert (alone, first[0], its_problems) == (
        3,
        "suspec: 1 tool",
        ["suspec: the suspec CLI was not found: no suspec on PATH"],
    )


def test_sudocode_is_named_with_its_release_and_project(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = sudocode_cli.install(tmp_path / "program")
    sudocode_cli.FakeSudocode().run(["init"], Path.cwd())
    before = sorted(path.name for path in Path(".sudocode").iterdir())

    code, lines, problems = said(capsys, "sudocode", "--toolsets", "sudocode", "--sudocode-path", str(program))

    assert (code, problems) == (0, [])
    assert lines == [
        "sudocode: 22 tools",
        f"sudocode: {program}; found release 0.2.0, needed is a release of sudocode, any from 0.1.0 on",
        f"sudocode: project {Path.cwd()}",
    ]
    assert sorted(path.name for path in Path(".sudocode").iterdir()) == before


def test_a_folder_without_a_project_is_said_and_is_no_problem(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = sudocode_cli.install(tmp_path / "program")

    code, lines, problems = said(capsys, "sudocode", "--toolsets", "sudocode", "--sudocode-path", str(program))

    assert (code, problems) == (0, [])
    assert lines[2:] == [
        (
            "sudocode: its tools answer not_initialized: there is no sudocode project here. Call init to make one in the "
            "working directory, or set SUDOCODE_WORKING_DIR to the project."
        ),
    ]
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(("toolsets", "code"), [("sudocode", 3), ("sudocode,suspec", 0)])
def test_a_missing_sudocode_is_named(capsys: pytest.CaptureFixture[str], toolsets: str, code: int) -> None:
    message = "the sudocode command was not found"

    assert said(capsys, "sudocode", "--toolsets", toolsets) == (
        code,
        [
            "sudocode: 22 tools",
            "sudocode: no executable; found no release, needed is a release of sudocode, any from 0.1.0 on",
            (
                f"sudocode: its tools answer cli_missing: {message}. "
                "Install it with `npm install -g sudocode`, or set SUDOCODE_PATH to the program."
            ),
        ],
        [f"sudocode: {message}"] if code else [],
    )


def test_a_program_that_is_not_sudocode_is_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = script(tmp_path / "bin" / "sdc", "echo 'the sdc compiler'")

    code, lines, problems = said(capsys, "sudocode", "--toolsets", "sudocode")

    assert code == 3
    assert lines[1] == (f"sudocode: {program}; found no release, needed is a release of sudocode, any from 0.1.0 on")
    assert problems == ["sudocode: sdc is not sudocode: it was asked for its version and said 'the sdc compiler'"]
