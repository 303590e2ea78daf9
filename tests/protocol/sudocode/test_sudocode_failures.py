"""What the program does in its bad moments, and that no write is ever repeated blindly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from dependfix_core.errors import (
    CommandBrokenError,
    CommandNotFoundError,
    CommandOutputTooLargeError,
    CommandTimeoutError,
)
from dependfix_core.process import CommandResult
from fakes.sudocode_cli import OCT_22
from fakes.sudocode_project import Project, call, codes, fake_program, git, printed

pytestmark = pytest.mark.anyio
RENAME = "✗ Failed to create issue\nENOENT: no such file or directory, rename '/p/.sudocode/issues.jsonl.tmp' -> '/p/.sudocode/issues.jsonl'\n"
LOCKED = "✗ Failed to update issue\ndatabase is locked\n"
Answerer = Callable[[list[str]], CommandResult | None]


def on(words: str, answer: Callable[[], CommandResult], *, times: int = 1_000) -> Answerer:
    """Answer the first runs of a command in another way."""
    left = [times]

    def look(arguments: list[str]) -> CommandResult | None:
        if [word for word in arguments if not word.startswith("-")][: len(words.split())] != words.split() or not left[
            0
        ]:
            return None
        left[0] -= 1
        return answer()

    return look


def after(project: Project, words: str, answer: Callable[[], CommandResult], *, times: int = 1_000) -> Answerer:
    """Let the fake do it, and then answer in another way: the row is there, the answer is not."""

    def both() -> CommandResult:
        project.program.fake.fake.run(project.program.fake.runs[-1], project.root)
        return answer()

    return on(words, both, times=times)


def failing(error: Exception) -> Callable[[], CommandResult]:
    def answer() -> CommandResult:
        raise error

    return answer


async def test_progress_lines_and_warnings_do_not_spoil_an_answer(faked: Project) -> None:
    issue = await faked.issue()
    faked.program.fake.before.append(
        on(
            "issue list",
            lambda: printed(
                0,
                'Running 1 migration...\n  [step] {half\n[{"id": "i-1", "title": "T", "priority": 2, "status": "open"}]\n',
                "Warning: Could not rename /p/x.md\n",
            ),
        )
    )

    answer = await faked.done("list_issues")

    assert [row["id"] for row in answer["issues"]] == ["i-1"]
    assert codes(answer) == ["cli_message"]
    assert issue


@pytest.mark.parametrize(
    ("stdout", "code"),
    [
        ("", "bad_output"),
        ('[{"id": "i-1"', "bad_output"),
        ("Usage: sudocode issue list\n", "bad_output"),
        ("{}", "bad_output"),
    ],
)
async def test_an_answer_that_is_none_is_not_taken_for_an_empty_list(faked: Project, stdout: str, code: str) -> None:
    faked.program.fake.before.append(on("issue list", lambda: printed(0, stdout)))

    assert (await faked.call("list_issues"))["code"] == code


@pytest.mark.parametrize(
    ("stderr", "exit_code", "code"),
    [
        ("Error: Failed to open database\nfile is not a database\n", 1, "database_invalid"),
        ("Error: Failed to open database\nunable to open database file\n", 1, "database_invalid"),
        ("Error: Failed to open database\nattempt to write a readonly database\n", 1, "permission_denied"),
        ("EACCES: permission denied, open '/p/.sudocode/cache.db'\n", 1, "permission_denied"),
        (
            "Error: Failed to open database\nThe module '/usr/lib/node_modules/a/b.node'\nuses NODE_MODULE_VERSION 93\n",
            1,
            "cli_broken",
        ),
        (
            "  ✗ Migration 5 failed: SqliteError: no such column: x\n    at Database.exec (/a/b.js:1:2)\n",
            1,
            "database_incompatible",
        ),
        ("/usr/bin/env: ‘node’: No such file or directory\n", 127, "cli_broken"),
        ("node: --bogus is not allowed in NODE_OPTIONS\n", 9, "cli_broken"),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n", 1, "cli_broken"),
        ("error: missing required argument 'id'\n", 1, "internal_error"),
        ("Usage: sudocode issue [options]\n", 1, "internal_error"),
        ("✗ Failed to list issues\nsomething new\n", 1, "cli_failed"),
        ("", 1, "cli_failed"),
        ("\x1b[31m✗ Issue not found: i-9\x1b[39m\n", 1, "not_found"),
    ],
)
async def test_every_known_message_has_its_code(faked: Project, stderr: str, exit_code: int, code: str) -> None:
    faked.program.fake.before.append(on("issue list", lambda: printed(exit_code, "", stderr)))

    failed = await faked.call("list_issues")

    assert failed["code"] == code
    assert failed["details"]["cli"]["exit_code"] == exit_code
    shown = failed["details"]["cli"].get("stderr", "")
    assert not any(word in shown for word in ("/usr/lib", "\x1b", "    at "))


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (CommandNotFoundError("gone", argv=("sudocode",)), "cli_missing", False),
        (CommandBrokenError("killed", argv=("sudocode",)), "cli_broken", False),
        (CommandTimeoutError("slow", argv=("sudocode",)), "timeout", True),
        (CommandOutputTooLargeError("much", argv=("sudocode",)), "output_too_large", False),
    ],
)
async def test_a_program_that_cannot_do_its_job_is_told_apart(
    faked: Project, error: Exception, code: str, retryable: bool
) -> None:
    faked.program.fake.before.append(on("issue list", failing(error)))

    failed = await faked.call("list_issues")

    assert (failed["code"], failed["retryable"]) == (code, retryable)


@pytest.mark.parametrize(
    ("answer", "warned"),
    [
        (lambda: printed(1, "", RENAME), "export_repeated"),
        (failing(CommandTimeoutError("slow", argv=("sudocode",))), "recovered"),
        (lambda: printed(0, "half a docu"), "recovered"),
    ],
)
@pytest.mark.parametrize("noun", ["issue", "spec"])
async def test_a_create_whose_answer_is_lost_is_found_and_not_repeated(
    faked: Project, noun: str, answer: Callable[[], CommandResult], warned: str
) -> None:
    faked.program.fake.before.append(after(faked, f"{noun} create", answer))

    made = await faked.done(f"create_{noun}", title="Only once")

    assert made[noun]["title"] == "Only once"
    assert warned in codes(made)
    assert faked.program.fake.made(noun, "create") == 1
    assert faked.titles(noun) == ["Only once"]


@pytest.mark.parametrize("title", ["Twin", "Nowhere"])
async def test_a_create_that_cannot_be_found_for_sure_is_unknown(faked: Project, title: str) -> None:
    await faked.issue("Twin")
    lost = failing(CommandTimeoutError("slow", argv=("sudocode",)))
    faked.program.fake.before.append(
        after(faked, "issue create", lost) if title == "Twin" else on("issue create", lost)
    )

    unknown = await faked.call("create_issue", title=title)

    assert (unknown["code"], unknown["retryable"]) == ("outcome_unknown", False)
    assert "list_issues" in unknown["hint"]


async def test_a_create_on_a_locked_database_is_not_repeated(faked: Project) -> None:
    faked.program.fake.before.append(on("issue create", lambda: printed(1, "", LOCKED)))

    busy = await faked.call("create_issue", title="T")

    assert (busy["code"], busy["retryable"]) == ("database_busy", True)
    assert faked.program.fake.made("issue", "create") == 1


@pytest.mark.parametrize("stderr", [LOCKED, RENAME])
async def test_an_update_is_tried_once_more(faked: Project, stderr: str) -> None:
    issue = await faked.issue()
    faked.program.fake.before.append(on("issue update", lambda: printed(1, "", stderr), times=1))

    changed = await faked.done("update_issue", issue_id=issue, priority=0)

    assert changed["issue"]["priority"] == 0
    assert faked.program.fake.made("issue", "update") == 2


async def test_a_lock_that_stays_is_busy(faked: Project) -> None:
    issue = await faked.issue()
    faked.program.fake.before.append(on("issue update", lambda: printed(1, "", LOCKED)))

    busy = await faked.call("update_issue", issue_id=issue, priority=0)

    assert (busy["code"], busy["retryable"]) == ("database_busy", True)


async def test_feedback_whose_export_failed_is_found_and_not_repeated(faked: Project) -> None:
    issue, spec = await faked.issue(), await faked.spec(description="Text")
    faked.program.fake.before.append(after(faked, "feedback add", lambda: printed(1, "", RENAME)))

    made = await faked.done("add_feedback", issue_id=issue, spec_id=spec, content="Once", line=1)

    assert made["feedback"]["content"] == "Once"
    assert codes(made) == ["export_incomplete"]
    assert faked.program.fake.made("feedback", "add") == 1


async def test_a_change_that_cannot_be_read_again_is_still_a_success(faked: Project) -> None:
    faked.program.fake.before.append(on("issue show", lambda: printed(1, "", "✗ Failed to show issue\nboom\n")))

    made = await faked.done("create_issue", title="There")

    assert made["issue"]["title"] == "There"
    assert codes(made) == ["not_shown"]


async def test_a_value_that_was_not_kept_is_named(faked: Project) -> None:
    issue = await faked.issue("Old")
    faked.program.fake.before.append(
        on(
            "issue update",
            lambda: printed(0, f'{{"id": "{issue}", "title": "Other", "status": "open", "priority": 2}}'),
        )
    )

    changed = await faked.done("update_issue", issue_id=issue, title="New")

    assert [(w["code"], w["argument"]) for w in changed["warnings"]] == [("not_stored", "title")]


async def test_an_import_that_fails_stops_the_write(faked: Project) -> None:
    await faked.issue("First")
    new = {"id": "i-new1", "uuid": "11111111-1111-4111-8111-111111111111", "title": "Pulled"}
    faked.rewrite(lambda rows: [*rows, {**rows[0], **new}])
    before = faked.files()
    faked.program.fake.before.append(
        on("import", lambda: printed(1, "", "✗ Failed to import\nParent issue not found: i-0\n"))
    )

    refused = await faked.call("create_issue", title="New")

    assert refused["code"] == "database_stale"
    assert faked.program.fake.made("issue", "create") == 1
    assert faked.files() == before


async def test_an_import_that_says_yes_and_does_nothing_stops_the_write(faked: Project) -> None:
    await faked.issue("First")
    new = {"id": "i-new1", "uuid": "11111111-1111-4111-8111-111111111111", "title": "Pulled"}
    faked.rewrite(lambda rows: [*rows, {**rows[0], **new}])
    faked.program.fake.before.append(on("import", lambda: printed(0, '{"success": true}')))

    refused = await faked.call("create_issue", title="New")

    assert (refused["code"], refused["details"]["only_in_files"]) == ("database_stale", ["i-new1"])
    assert faked.program.fake.made("issue", "create") == 1


async def test_a_clone_whose_rows_cannot_be_read_gets_no_database(faked: Project, tmp_path: Path) -> None:
    await faked.issue("First")
    faked.commit()
    clone = faked.clone(tmp_path / "clone")
    faked.program.fake.before += [
        on("import", lambda: printed(0, '{"success": true}')),
        on("export", lambda: printed(0, '{"success": true}')),
    ]

    refused = await clone.call("init")

    assert refused["code"] == "database_stale"
    assert not (clone.folder / "cache.db").exists()
    assert clone.titles() == ["First"]


async def test_an_export_that_fails_leaves_a_read_with_a_warning(faked: Project) -> None:
    issue = await faked.issue()
    async with faked.client() as client:
        faked.program.fake.before.append(on("export", lambda: printed(1, "", "✗ Failed to export\nboom\n")))
        (faked.folder / "issues.jsonl").touch()

        read = await call(client, "show_issue", issue_id=issue)

    assert read["ok"]
    assert codes(read) == ["not_compared"]


async def test_after_outcome_unknown_a_batch_stops(faked: Project) -> None:
    faked.program.fake.before.append(on("issue create", failing(CommandTimeoutError("slow", argv=("sudocode",)))))

    batch = await faked.done("create_issues", issues=[{"title": "One"}, {"title": "Two"}])

    assert [result["code"] for result in batch["results"]] == ["outcome_unknown", "outcome_unknown"]
    assert faked.program.fake.made("issue", "create") == 1


async def test_a_cancelled_write_is_finished(faked: Project) -> None:
    started, go_on = anyio.Event(), anyio.Event()
    fake = faked.program.fake
    run = fake.run

    async def slow(command: Any) -> CommandResult:
        if "create" in command.argv:
            started.set()
            await go_on.wait()
        return await run(command)

    fake.run = slow  # type: ignore[method-assign]  # the one run of interest waits

    async with faked.client() as client, anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def create() -> None:
            with scope:
                await client.call_tool("create_issue", {"title": "Begun"})

        group.start_soon(create)
        await started.wait()
        scope.cancel()
        go_on.set()

    assert faked.titles() == ["Begun"]


async def test_a_missing_program_is_said_with_each_call(faked: Project) -> None:
    faked.program = fake_program(faked.root / "x")
    faked.program.path.unlink()

    missing = [await faked.call("ready"), await faked.call("init")]

    assert [answer["code"] for answer in missing] == ["cli_missing"] * 2
    assert "npm install" in missing[0]["hint"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("sudocode_path", "${HOME}/bin/sudocode"), ("sudocode_db", "${PWD}/.sudocode/cache.db")],
)
async def test_a_variable_that_was_not_expanded_is_named(faked: Project, setting: str, value: str) -> None:
    faked.more = {"sudocode_db": None, setting: value}
    path = faked.more.pop("sudocode_path", None)
    if path is not None:
        faked.program = type(faked.program)(path=Path(path), runner=faked.program.runner, real=False)

    refused = await faked.call("ready")

    assert (refused["code"], refused["details"]["setting"]) == ("config_error", setting.upper())


async def test_a_working_directory_that_is_gone_is_a_setting(faked: Project) -> None:
    faked.working_dir = faked.root / "gone"

    refused = await faked.call("ready")

    assert (refused["code"], refused["details"]["setting"]) == ("config_error", "SUDOCODE_WORKING_DIR")


async def test_a_database_of_another_release_is_incompatible(faked: Project, tmp_path: Path) -> None:
    older = Project(root=tmp_path / "older", program=fake_program(tmp_path, generation=OCT_22))
    older.root.mkdir()
    git(older.root, "init", "-q")
    older.by_hand("init")
    newer = Project(root=older.root, program=faked.program)
    oldest = Project(root=tmp_path / "oldest", program=faked.program)
    oldest.folder.mkdir(parents=True)
    (oldest.folder / "sudograph.db").touch()

    answers = [
        await newer.call("ready"),
        await newer.call("init"),
        await oldest.call("ready"),
        await oldest.call("init"),
    ]

    assert [answer["code"] for answer in answers] == ["database_incompatible"] * 4
    assert not (oldest.folder / "cache.db").exists()


async def test_a_row_that_is_just_being_written_is_not_taken_for_a_pulled_one(faked: Project) -> None:
    """An import then would delete rows that the other program has not exported yet."""
    await faked.issue("First")
    fake = faked.program.fake.fake

    def foreign() -> CommandResult:
        answer = fake.run(faked.program.fake.runs[-1], faked.root)
        fake.run(["--json", "issue", "create", "--", "Foreign"], faked.root)
        return printed(*answer)

    (faked.folder / "issues.jsonl").touch()
    faked.program.fake.before.append(on("export", foreign, times=1))

    await faked.issue("Second")

    assert faked.program.fake.made("import") == 0
    assert sorted(faked.titles()) == ["First", "Foreign", "Second"]
