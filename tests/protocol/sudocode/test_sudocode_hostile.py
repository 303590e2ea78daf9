"""A checkout, an environment or an installation that means harm: nothing outside the project is touched, nothing hangs."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.sudocode.lock import writer_lock
from dependfix_core.errors import CommandKilledError, CommandOutputTooLargeError
from dependfix_core.process import CommandResult, SubprocessRunner
from fakes.sudocode_project import Program, Project, codes, fake_program, printed

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="links and devices as POSIX has them"),
]

WRITES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("create_issue", {"title": "New"}),
    ("create_spec", {"title": "New"}),
    ("update_issue", {"issue_id": "{issue}", "priority": 0}),
    ("close_issue", {"issue_ids": ["{issue}"]}),
    ("link", {"from_id": "{issue}", "to_id": "{spec}"}),
    ("add_feedback", {"issue_id": "{issue}", "spec_id": "{spec}", "content": "x", "line": 1}),
)


def filled(arguments: dict[str, Any], **ids: str) -> dict[str, Any]:
    text = json.dumps(arguments)
    for name, value in ids.items():
        text = text.replace(f"{{{name}}}", value)
    result: dict[str, Any] = json.loads(text)
    return result


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.mark.parametrize(
    "place", ["issues/*.md", "specs/*.md", "issues.jsonl", "issues.jsonl.tmp", "issues", "dangling"]
)
async def test_no_write_follows_a_link_out_of_the_project(project: Project, tmp_path: Path, place: str) -> None:
    issue, spec = await project.issue("First", description="mine"), await project.spec("Spec", description="mine")
    outside = tmp_path / "outside"
    folder = project.folder
    if place == "dangling":
        link = folder / "specs" / "new.md"
    else:
        link = only(folder, place) if "*" in place else folder / place
        if link.exists():
            link.rename(outside)
        else:
            outside.write_text("precious", encoding="utf-8")
    link.symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else None

    answers = [await project.call(tool, **filled(arguments, issue=issue, spec=spec)) for tool, arguments in WRITES]

    assert [answer["code"] for answer in answers] == ["conflict"] * len(WRITES)
    assert answers[0]["details"]["file"] == str(link.relative_to(project.root))
    assert (outside.read_bytes() if outside.is_file() else None) == before
    assert (await project.done("list_issues"))["meta"]["total"] == 1


async def test_no_write_follows_a_link_into_gits_own_files(project: Project) -> None:
    issue = await project.issue("First")
    file = only(project.folder, "issues/*.md")
    file.unlink()
    file.symlink_to("../../.git/config")
    before = (project.root / ".git" / "config").read_bytes()

    assert (await project.call("update_issue", issue_id=issue, priority=0))["code"] == "conflict"
    assert (project.root / ".git" / "config").read_bytes() == before


async def test_a_link_within_the_project_is_the_projects_own_business(project: Project, tmp_path: Path) -> None:
    issue = await project.issue("First")
    file = only(project.folder, "issues/*.md")
    file.rename(project.root / "kept.md")
    file.symlink_to("../../kept.md")
    (project.folder / "notes").symlink_to(tmp_path)  # nothing that the program writes

    assert (await project.done("update_issue", issue_id=issue, priority=0))["issue"]["priority"] == 0


async def test_a_linked_project_folder_is_one_project_with_one_lock(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".sudocode").symlink_to(project.folder)
    linked = Project(root=other, program=project.program)

    await linked.issue("By the link")
    async with writer_lock(project.folder, wait_s=1):
        held = await linked.done("status", verbose=True)

    assert project.titles() == ["By the link"]
    assert held["diagnostics"]["writer"]["held"] is True


async def test_a_project_folder_that_leads_nowhere_is_not_passed_over(project: Project) -> None:
    below = project.root / "below"
    below.mkdir()
    (below / ".sudocode").symlink_to(project.root / "nowhere")
    project.working_dir = below

    answers = [await project.call("ready"), await project.call("init"), await project.call("create_issue", title="T")]

    assert [answer["code"] for answer in answers] == ["database_invalid"] * 3
    assert not (project.root / "nowhere").exists()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "pipe", "folder"])
@pytest.mark.parametrize("name", ["issues.jsonl", "specs.jsonl"])
async def test_a_committed_file_that_is_none_is_never_read(
    project: Project, tmp_path: Path, device: str, name: str
) -> None:
    await project.issue("Kept")
    path = project.folder / name
    path.unlink(missing_ok=True)
    if device == "pipe":
        os.mkfifo(path)
    elif device == "folder":
        path.mkdir()
    else:
        path.symlink_to(device)

    with anyio.fail_after(60):
        read = await project.done("list_issues")
        refused = await project.call("create_issue", title="New")
        again = await project.call("init")

    assert [issue["title"] for issue in read["issues"]] == ["Kept"]
    assert codes(read) == ["database_behind"]
    assert refused["code"] in ("conflict", "database_stale")
    assert again["ok"]


async def test_a_file_that_is_too_large_to_be_one_is_not_read(faked: Project) -> None:
    await faked.issue("Kept")
    os.truncate(faked.folder / "issues.jsonl", 2**40)

    read, refused = await faked.done("list_issues"), await faked.call("create_issue", title="New")

    assert codes(read) == ["database_behind"]
    assert refused["details"]["faults"] == [{"file": "issues.jsonl", "line": 0, "reason": "too large"}]


async def test_init_reads_no_device(folder: Path, program: Program) -> None:
    project = Project(root=folder, program=program)
    project.folder.mkdir()
    (project.folder / ".gitignore").symlink_to("/dev/zero")

    with anyio.fail_after(60):
        refused = await project.call("init")

    assert refused["code"] == "conflict"
    assert not (project.folder / "cache.db").exists()


@pytest.mark.parametrize(
    "file_path", ["../../outside.md", "/tmp/outside.md", "specs/../../../outside.md", "C:\\outside.md"]
)
async def test_a_spec_whose_file_leads_out_of_the_project_is_not_taken_over(project: Project, file_path: str) -> None:
    spec = await project.spec("Spec")
    (project.root.parent / "outside.md").write_text("precious", encoding="utf-8")
    project.rewrite(
        lambda rows: [{**row, "file_path": file_path, "updated_at": "2099-01-01 00:00:00"} for row in rows], "spec"
    )

    shown = await project.done("show_spec", spec_id=spec)
    status = await project.done("status", verbose=True)
    refused = await project.call("create_issue", title="New")

    assert shown["spec"]["file_path"] != file_path
    assert status["diagnostics"]["files"]["faults"][0]["reason"] == "file_path leads out of the project"
    assert refused["code"] == "database_stale"
    assert (project.root.parent / "outside.md").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"id":' * 100_000, '"' + "\\ud800" * 1_000 + '"', "1" * 10_000, "\x00" * 10_000]
)
async def test_a_hostile_line_is_a_fault_like_any_other(project: Project, line: str) -> None:
    await project.issue("Kept")
    with (project.folder / "issues.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")

    read, refused = await project.done("list_issues"), await project.call("create_issue", title="New")

    assert codes(read) == ["database_behind"]
    assert (refused["code"], refused["details"]["faults"][0]["line"]) == ("database_stale", 2)


async def test_half_a_character_in_a_row_breaks_no_answer(project: Project) -> None:
    await project.issue("First")
    path = project.folder / "issues.jsonl"
    row = {**json.loads(path.read_text(encoding="utf-8")), "content": "a\ud83d b", "updated_at": "2099-01-01 00:00:00"}
    path.write_text(f"{json.dumps(row)}\n", encoding="ascii")

    read = await project.call("list_issues")
    written = await project.call("create_issue", title="New")

    assert codes(read) == ["database_behind"]
    # The database cannot hold it, so a write would change the text that was committed.
    assert (written["code"], written["details"]["contradictory"]) == ("database_stale", [row["id"]])


HOSTILE = [
    "--", "--json", "-h", "-V", "--db=/tmp/x", "--help", "-- --db", "a\nb", "a\r\n--json", "$(id)", "`id`", "; id", "%s%n",
    "'\"\\", "*", "~", "\u202e\u2066x", "e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ufeffx", "a\u2028b", "-" * 400,
]  # fmt: skip


async def test_no_text_is_read_as_an_option_or_a_command(project: Project) -> None:
    """What is stored is what was given, and nothing else has happened in the project."""
    before = sorted(path.name for path in project.root.iterdir())

    for text in HOSTILE:
        issue = await project.issue(text, description=text, assignee=text)
        changed = await project.done("update_issue", issue_id=issue, title=f"{text}.", description=f"{text}!")
        assert "not_stored" not in codes(changed)

    rows = [json.loads(line) for line in (project.folder / "issues.jsonl").read_bytes().decode().split("\n") if line]
    assert sorted((row["title"], row["content"], row["assignee"]) for row in rows) == sorted(
        (f"{text}.", f"{text}!", text) for text in HOSTILE
    )
    assert sorted(path.name for path in project.root.iterdir()) == before


@pytest.mark.parametrize(
    "hostile", ["-h", "--version", "--help", "--json", "--", "i-1\n", "", " ", "\x00", "i-1\x1b[2J", "x" * 201]
)
async def test_no_id_is_read_as_an_option(project: Project, hostile: str) -> None:
    issue = await project.issue("Kept")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("show_issue", {"issue_id": hostile}),
        ("update_issue", {"issue_id": hostile, "priority": 0}),
        ("show_spec", {"spec_id": hostile}),
        ("link", {"from_id": hostile, "to_id": issue}),
        ("link", {"from_id": issue, "to_id": hostile}),
        ("show_feedback", {"feedback_id": hostile}),
        ("resolve_feedback", {"feedback_id": hostile}),
        ("relocate_feedback", {"feedback_id": hostile, "line": 1}),
    ]
    before = project.files()

    for tool, arguments in calls:
        assert (await project.call(tool, **arguments))["code"] in ("not_found", "invalid_arguments")
    closed = await project.call("close_issue", issue_ids=[hostile])

    assert closed.get("code") == "invalid_arguments" or [row["success"] for row in closed["results"]] == [False]
    assert project.files() == before


async def test_a_text_that_no_argument_holds_is_refused_before_anything_runs(project: Project) -> None:
    issue = await project.issue("Kept")
    before = project.files()

    answers = [
        await project.call("create_issue", title="T", description="x" * 131_100),
        await project.call("create_issue", title="T", description="ü" * 70_000),
        await project.call("create_issue", title="T", description="a\x00b"),
        await project.call("create_issue", title="x" * 501),
        await project.call("create_issue", title="T", tags=["a"] * 10 + ["b" * 131_100]),
        await project.call("update_issue", issue_id=issue, description="x" * 10_000_000),
    ]

    assert [answer["code"] for answer in answers] == ["invalid_arguments"] * 6
    assert project.files() == before


async def test_the_longest_text_that_fits_comes_back_whole(project: Project) -> None:
    text = "ü" * 65_000

    issue = await project.issue("Long", description=text)

    (row,) = [
        json.loads(line) for line in (project.folder / "issues.jsonl").read_text(encoding="utf-8").split("\n") if line
    ]
    assert (row["id"], row["content"]) == (issue, text)


def spying(folder: Path) -> Program:
    """The fake as a process that writes its environment beside itself."""
    program = fake_program(folder, as_process=True)
    kept = program.path.with_name("kept")
    program.path.rename(kept)
    program.path.write_text(f'#!/bin/sh\nenv >> "{folder}/environment"\nexec "{kept}" "$@"\n', encoding="utf-8")
    program.path.chmod(0o755)
    return program


async def test_the_child_sees_nothing_of_the_servers_secrets(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "NPM_TOKEN",
        "AI_API_KEY",
        "NODE_OPTIONS",
        "DEPENDFIX_HTTP_TOKEN",
        "HTTPS_PROXY",
    )
    for name in (*names, "SUDOCODE_SESSION_ID", "XDG_CONFIG_HOME", "NODE_DEBUG"):
        monkeypatch.setenv(name, "planted-secret")
    project = Project(root=folder, program=spying(tmp_path))

    await project.done("init")
    await project.issue("First")

    seen = (tmp_path / "environment").read_text(encoding="utf-8")
    assert "SUDOCODE_DISABLE_UPDATE_CHECK=true" in seen
    assert "planted-secret" not in seen
    assert not [name for name in names if f"{name}=" in seen]


async def test_a_program_in_the_project_is_not_found_by_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sudocode", "sdc", "node"):
        path = folder / name
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", ".::")
    project = Project(root=folder, program=Program(path=Path("sudocode"), runner=SubprocessRunner(), real=False))

    assert (await project.call("ready"))["code"] == "cli_missing"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "path", ["~no-such-user/bin/sudocode", "bin/\udcff", "/", "/dev/null", "/etc/passwd/x", "x" * 5_000]
)
async def test_a_path_that_names_no_program_is_a_missing_one(folder: Path, path: str) -> None:
    project = Project(root=folder, program=Program(path=Path(path), runner=SubprocessRunner(), real=False))

    assert (await project.call("ready"))["code"] == "cli_missing"


async def test_a_deleted_working_directory_is_said(
    faked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = tmp_path / "going"
    going.mkdir()
    monkeypatch.chdir(going)
    going.rmdir()
    faked.working_dir = Path("somewhere")

    refused = await faked.call("ready")

    assert (refused["code"], refused["details"]["setting"]) == ("config_error", "SUDOCODE_WORKING_DIR")


@pytest.mark.parametrize("printed", ["hello", "", "0.2", "v0.2.0-beta.1 extra words", "1.2.3\nand more"])
async def test_a_program_that_is_something_else_is_not_asked_any_further(
    folder: Path, tmp_path: Path, printed: str
) -> None:
    path = tmp_path / "sudocode"
    path.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\nprintf '%s' '{printed}'\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    project = Project(root=folder, program=Program(path=path, runner=SubprocessRunner(), real=False))

    answers = [await project.call("init"), await project.call("create_issue", title="T")]

    assert [answer["code"] for answer in answers] == ["cli_broken"] * 2
    assert set((tmp_path / "asked").read_text(encoding="utf-8").splitlines()) == {"--version"}


async def test_a_release_that_replaces_another_is_asked_anew(folder: Path, tmp_path: Path) -> None:
    """Also where the entry keeps its size and time, as packages are unpacked."""
    program = fake_program(tmp_path, as_process=True)
    package = program.path.with_name("package.json")
    package.write_text('{"version": "0.2.0"}', encoding="utf-8")
    project = Project(root=folder, program=program)
    await project.done("init")
    before = await project.done("status", verbose=True)
    entry = program.path.stat()
    text = program.path.read_text(encoding="utf-8")
    newer = program.path.with_name("newer")
    newer.write_text(text.replace("exec", "echo").replace(sys.executable, " " * len(sys.executable)), encoding="utf-8")
    newer.chmod(0o755)
    os.utime(newer, ns=(entry.st_atime_ns, entry.st_mtime_ns))
    newer.replace(program.path)

    after = await project.call("status")

    assert before["diagnostics"]["cli_version"] == "0.2.0"
    assert (program.path.stat().st_size, program.path.stat().st_mtime_ns) == (entry.st_size, entry.st_mtime_ns)
    assert after["code"] == "cli_broken"


def lost(error: Exception) -> Callable[[Project], Callable[[list[str]], CommandResult | None]]:
    """The program writes its row, and then its answer is lost in this way."""

    def on(project: Project) -> Callable[[list[str]], CommandResult | None]:
        def answer(arguments: list[str]) -> CommandResult | None:
            if "create" not in arguments and "update" not in arguments:
                return None
            project.program.fake.fake.run(arguments, project.root)
            raise error

        return answer

    return on


@pytest.mark.parametrize(
    "error",
    [CommandKilledError("sudocode was ended by SIGKILL", argv=()), CommandOutputTooLargeError("much", argv=())],
)
async def test_a_write_that_was_killed_or_flooded_may_have_happened(faked: Project, error: Exception) -> None:
    issue = await faked.issue("Kept")
    faked.program.fake.before.append(lost(error)(faked))

    made = await faked.done("create_issue", title="Only once")
    changed = await faked.call("update_issue", issue_id=issue, priority=0)

    assert codes(made) == ["recovered"]
    assert faked.program.fake.made("issue", "create") == 2
    assert (changed["code"], changed["retryable"]) == ("outcome_unknown", False)


async def test_many_calls_at_once_start_only_some_processes(faked: Project) -> None:
    await faked.issue("First")
    running, most = 0, 0
    run = faked.program.fake.run

    async def counted(command: Any) -> CommandResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await anyio.sleep(0.01)
            return await run(command)
        finally:
            running -= 1

    faked.program.fake.run = counted  # type: ignore[method-assign]  # counts on the way
    answers = []
    async with faked.client() as client, anyio.create_task_group() as group:

        async def one() -> None:
            answers.append((await client.call_tool("list_issues", {})).structured_content)

        for _ in range(40):
            group.start_soon(one)

    assert [answer and answer["ok"] for answer in answers] == [True] * 40
    assert most == 8


async def test_ids_without_end_in_a_committed_file_make_no_answer_long(project: Project) -> None:
    issue = await project.issue("Kept")
    project.rewrite(
        lambda rows: [*rows, *({**rows[0], "id": f"i-{n}{'x' * 100_000}", "uuid": f"u{n}"} for n in range(30))]
    )

    read = await project.done("show_issue", issue_id=issue)
    refused = await project.call("create_issue", title="New")

    assert codes(read) == ["database_behind"]
    assert max(len(json.dumps(read)), len(json.dumps(refused))) < 10_000


async def test_a_write_that_has_happened_is_never_answered_as_too_large(faked: Project) -> None:
    """However much the program says beside it."""
    noise = "".join(f"warning {number} {'x' * 280}\n" for number in range(5))
    fake = faked.program.fake

    def noisy(arguments: list[str]) -> CommandResult | None:
        if "create" not in arguments:
            return None
        code, out, _ = fake.fake.run(arguments, faked.root)
        return printed(code, out, noise)

    fake.before.append(noisy)

    made = await faked.done(
        "create_issues", issues=[{"title": f"{n} {'t' * 490}", "description": "d" * 3_000} for n in range(50)]
    )

    assert (made["succeeded"], len(made["results"])) == (50, 50)
    assert made["warnings"][-1]["code"] == "warnings_cut"
    assert len(faked.titles()) == 50


async def test_closing_two_hundred_that_are_not_there_is_one_answer(faked: Project) -> None:
    ids = [f"i-{number:038d}" for number in range(200)]

    closed = await faked.done("close_issue", issue_ids=ids)
    refused = await faked.call("close_issue", issue_ids=[f"{name}{'x' * 100}" for name in ids])

    assert [row["success"] for row in closed["results"]] == [False] * 200
    assert refused["code"] == "invalid_arguments"
