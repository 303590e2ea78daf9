"""Whatever sudocode would lose by itself is still there: clones, pulls, subfolders, broken lines, worktrees, crowds."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from fakes.sudocode_project import Answer, Program, Project, call, codes, fake_program, git

pytestmark = pytest.mark.anyio


async def test_a_fresh_clone_keeps_its_rows(project: Project, tmp_path: Path) -> None:
    await project.issue("Committed")
    await project.spec("Committed spec", description="Text")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    before = clone.files()

    refused = [await clone.call("list_issues"), await clone.call("create_issue", title="New")]

    assert [answer["code"] for answer in refused] == ["not_initialized", "not_initialized"]
    assert clone.files() == before
    assert not (clone.folder / "cache.db").exists()

    made = await clone.done("init")
    await clone.issue("New")

    assert made["already_initialized"] is False
    assert sorted(clone.titles()) == ["Committed", "New"]
    assert clone.titles("spec") == ["Committed spec"]


async def test_an_empty_database_that_a_look_has_made_is_filled_before_a_write(
    project: Project, tmp_path: Path
) -> None:
    """The program itself makes one in a fresh clone, with any command."""
    await project.issue("Committed")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    clone.by_hand("--json", "ready")
    assert (clone.folder / "cache.db").exists()

    read = await clone.done("list_issues")
    written = await clone.done("create_issue", title="New")

    assert codes(read) == ["database_behind"]
    assert codes(written) == ["imported"]
    assert sorted(clone.titles()) == ["Committed", "New"]


async def test_pulled_rows_are_shown_as_missing_and_taken_over_by_the_next_write(
    project: Project, tmp_path: Path
) -> None:
    first = await project.issue("First")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    await clone.done("init")
    await project.issue("Second")
    later = {"title": "First, renamed", "updated_at": "2099-01-01 00:00:00"}
    project.rewrite(lambda rows: [{**row, **later} if row["id"] == first else row for row in rows])
    project.commit()
    git(clone.root, "pull", "-q")

    read = await clone.done("list_issues")
    written = await clone.done("create_issue", title="Third")

    assert "database_behind" in codes(read)
    assert "imported" in codes(written)
    assert sorted(clone.titles()) == ["First, renamed", "Second", "Third"]
    again = await clone.done("list_issues")
    assert sorted(issue["title"] for issue in again["issues"]) == ["First, renamed", "Second", "Third"]
    assert codes(again) == []


async def test_a_pulled_link_and_pulled_feedback_survive_although_no_row_is_newer(
    project: Project, tmp_path: Path
) -> None:
    one, two = await project.issue("One"), await project.issue("Two")
    spec = await project.spec(description="A line\nAnother line")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    await clone.done("init")
    await project.done("link", from_id=one, to_id=two, type="related")
    await project.done("add_feedback", issue_id=one, spec_id=spec, content="Unclear", line=2)
    project.commit()
    git(clone.root, "pull", "-q")

    written = await clone.done("create_issue", title="Three")

    assert "imported" in codes(written)
    shown = (await clone.done("show_issue", issue_id=one))["issue"]
    assert [link["to_id"] for link in shown["relationships"]["outgoing"]] == [two]
    assert [entry["content"] for entry in shown["feedback"]] == ["Unclear"]
    committed = {row["title"]: row for row in map(json.loads, (clone.folder / "issues.jsonl").read_text().splitlines())}
    assert [link["to"] for link in committed["One"]["relationships"]] == [two]
    assert [entry["content"] for entry in committed["One"]["feedback"]] == ["Unclear"]
    assert (
        committed["One"]["updated_at"]
        == json.loads((project.folder / "issues.jsonl").read_text().split("\n")[0])["updated_at"]
    )


async def test_nothing_is_written_when_both_sides_have_changes(project: Project) -> None:
    kept = await project.issue("Kept")
    lost = await project.issue("Only in the database")

    def pulled(rows: list[Answer]) -> list[Answer]:
        other = {**rows[0], "id": "i-new1", "uuid": "11111111-1111-4111-8111-111111111111", "title": "Pulled"}
        return [row for row in rows if row["id"] == kept] + [other]

    project.rewrite(pulled)
    before = project.files()

    refused = [
        await project.call("create_issue", title="New"),
        await project.call("close_issue", issue_ids=[kept]),
        await project.call("sync", direction="import"),
        await project.call("sync", direction="export"),
    ]

    assert [answer["code"] for answer in refused] == ["database_stale"] * 4
    assert refused[0]["details"]["only_in_files"] == ["i-new1"]
    assert refused[0]["details"]["only_in_database"] == [lost]
    assert project.files() == before


async def test_two_rows_with_one_time_and_different_values_are_for_a_person(project: Project) -> None:
    await project.issue("As it was")
    project.rewrite(lambda rows: [{**rows[0], "title": "By hand"}])
    before = project.files()

    refused = await project.call("create_issue", title="New")

    assert refused["code"] == "database_stale"
    assert refused["details"]["contradictory"] == [json.loads(before["issues.jsonl"])["id"]]
    assert project.files() == before


async def test_rows_that_a_pull_took_away_come_back_with_a_warning(project: Project) -> None:
    await project.issue("Stays")
    gone = await project.issue("Deleted upstream")
    project.rewrite(lambda rows: [row for row in rows if row["id"] != gone])

    written = await project.done("create_issue", title="New")

    assert codes(written) == ["files_behind"]
    assert sorted(project.titles()) == ["Deleted upstream", "New", "Stays"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "i-half", "uuid": "2', "no JSON"),
        ("<<<<<<< HEAD", "conflict marker"),
        ("[1, 2]", "no row"),
        ('{"title": "no id"}', "no row"),
    ],
)
async def test_a_broken_line_is_named_and_nothing_is_written(project: Project, line: str, reason: str) -> None:
    await project.issue("First")
    path = project.folder / "issues.jsonl"
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    before = project.files()

    read = await project.done("list_issues")
    refused = await project.call("create_issue", title="New")

    assert "database_behind" in codes(read)
    assert refused["code"] == "database_stale"
    assert refused["details"]["faults"] == [{"file": "issues.jsonl", "line": 2, "reason": reason}]
    assert project.files() == before


async def test_a_broken_line_in_a_fresh_clone_stops_init_before_it_makes_a_database(
    project: Project, tmp_path: Path
) -> None:
    await project.issue("First")
    path = project.folder / "issues.jsonl"
    path.write_text(f"{path.read_text(encoding='utf-8')}=======\n", encoding="utf-8")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    before = clone.files()

    refused = await clone.call("init")

    assert refused["code"] == "database_stale"
    assert clone.files() == before
    assert not (clone.folder / "cache.db").exists()


async def test_from_a_subfolder_the_project_above_is_used_and_imported_into(project: Project, tmp_path: Path) -> None:
    await project.issue("First")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    await clone.done("init")
    await project.issue("Second")
    project.commit()
    git(clone.root, "pull", "-q")
    below = clone.root / "src" / "deep"
    below.mkdir(parents=True)
    clone.working_dir = below

    written = await clone.done("create_issue", title="Third")
    refused = await clone.call("init")

    assert "imported" in codes(written)
    assert sorted(clone.titles()) == ["First", "Second", "Third"]
    assert not (below / ".sudocode").exists()
    assert refused["code"] == "conflict"
    assert refused["details"]["project_root"] == str(clone.root)


async def test_a_worktree_below_the_project_has_rows_of_its_own(project: Project) -> None:
    await project.issue("In the project")
    project.commit()
    git(project.root, "worktree", "add", "-q", str(project.root / "trees" / "other"))
    tree = Project(root=project.root / "trees" / "other", program=project.program)

    refused = await tree.call("list_issues")
    await tree.done("init")
    await tree.issue("In the worktree")

    assert refused["code"] == "not_initialized"
    assert sorted(tree.titles()) == ["In the project", "In the worktree"]
    assert project.titles() == ["In the project"]
    assert [issue["title"] for issue in (await project.done("list_issues"))["issues"]] == ["In the project"]


async def test_a_checkout_below_a_project_does_not_use_that_project(project: Project) -> None:
    inner = project.root / "vendor" / "library"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    project.working_dir = inner

    answers = [await project.call("ready"), await project.call("create_issue", title="Misplaced")]

    assert [answer["code"] for answer in answers] == ["not_initialized"] * 2
    assert project.titles() == []


async def test_twelve_creates_at_once_make_twelve_issues(project: Project) -> None:
    rows = [
        {
            "id": f"i-{number:04d}",
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "title": f"Old {number}",
            "content": "x" * 500,
            "status": "open",
            "priority": 2,
            "archived": 0,
            "created_at": "2026-01-01 00:00:00",
            "updated_at": "2026-01-01 00:00:00",
            "relationships": [],
            "tags": [],
        }
        for number in range(300)
    ]
    project.rewrite(lambda _: rows)
    program = project.program if project.program.real else fake_program(project.root.parent, as_process=True)
    crowd = [Project(root=project.root, program=program, own_server=True) for _ in range(3)]
    titles = [f"New {number}" for number in range(12)]
    answers: list[Answer] = []

    async def create(one: Project, title: str) -> None:
        answers.append(await one.call("create_issue", title=title))

    async with anyio.create_task_group() as group:
        for number, title in enumerate(titles):
            group.start_soon(create, crowd[number % 3], title)

    assert [answer.get("error") for answer in answers] == [None] * 12
    found = await project.done("list_issues", limit=1000)
    assert found["meta"]["total"] == 312
    assert sorted(title for title in project.titles() if title.startswith("New")) == sorted(titles)


async def test_a_foreign_writer_in_between_loses_nothing(project: Project) -> None:
    """A person uses the program beside the server."""
    async with project.client() as client:
        await call(client, "create_issue", title="From the server")
        project.by_hand("--json", "issue", "create", "--", "By hand")

        await call(client, "create_issue", title="From the server again")

    assert sorted(project.titles()) == ["By hand", "From the server", "From the server again"]


@pytest.mark.parametrize("tool", ["update_issue", "close_issue", "link"])
async def test_a_hand_edited_markdown_file_is_kept(project: Project, tool: str) -> None:
    issue, other = await project.issue("Edited", description="As stored"), await project.issue("Other")
    (file,) = (project.folder / "issues").glob(f"{issue}*.md")
    text = file.read_text(encoding="utf-8").replace("As stored", "Rewritten by a person")
    file.write_text(text, encoding="utf-8")
    moment = file.stat().st_mtime + 60

    os.utime(file, (moment, moment))
    arguments: dict[str, dict[str, Any]] = {
        "update_issue": {"issue_id": issue, "priority": 0},
        "close_issue": {"issue_ids": [issue]},
        "link": {"from_id": issue, "to_id": other},
    }

    status = await project.done("status", verbose=True)
    answer = await project.done(tool, **arguments[tool])

    assert status["diagnostics"]["unsynced_markdown"] == [str(file.relative_to(project.root))]
    (kept,) = [warning for warning in answer["warnings"] if warning["code"] == "markdown_kept"]
    assert (project.root / kept["copy"]).read_text(encoding="utf-8") == text
    # Releases before 0.1.16 leave the text of the file alone.
    assert file.read_text(encoding="utf-8") == text or project.release >= (0, 1, 16)
    assert "As stored" in file.read_text(encoding="utf-8") or project.release < (0, 1, 16)


async def test_init_keeps_lines_of_the_gitignore(folder: Path, program: Program) -> None:
    project = Project(root=folder, program=program)
    project.folder.mkdir()
    (project.folder / ".gitignore").write_text("my-notes/\n", encoding="utf-8")

    made = await project.done("init")

    lines = (project.folder / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert codes(made) == ["gitignore_merged"]
    assert lines[0] == "my-notes/"
    assert "cache.db*" in lines


async def test_a_second_init_runs_nothing(project: Project) -> None:
    await project.issue("Kept")
    before = project.files()

    made = await project.done("init")

    assert made == {"ok": True, "success": True, "path": str(project.folder), "already_initialized": True}
    assert project.files() == before


async def test_a_database_by_its_own_name_writes_beside_itself(project: Project, tmp_path: Path) -> None:
    await project.issue("First")
    (project.folder / "cache.db").rename(project.folder / "mine.db")
    for rest in project.folder.glob("cache.db-*"):
        rest.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project.working_dir = elsewhere
    project.more = {"sudocode_db": str(project.folder / "mine.db")}

    await project.issue("Second")

    assert sorted(project.titles()) == ["First", "Second"]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("database", ["{root}/none.db", "{root}/.sudocode/none.db", "{root}/plain/cache.db"])
async def test_a_database_that_is_not_in_a_project_is_a_mistake(project: Project, database: str) -> None:
    (project.root / "plain").mkdir()
    (project.root / "plain" / "cache.db").touch()
    project.more = {"sudocode_db": database.format(root=project.root)}

    answers = [await project.call("ready"), await project.call("create_issue", title="Lost")]

    assert [answer["code"] for answer in answers] == ["config_error"] * 2


async def test_sync_says_what_differs_and_brings_one_side_up(project: Project) -> None:
    await project.issue("First")
    same = await project.done("sync")
    new = {"id": "i-new1", "uuid": "11111111-1111-4111-8111-111111111111", "title": "Pulled"}
    project.rewrite(lambda rows: [*rows, {**rows[0], **new}])

    looked = await project.done("sync", direction="check")
    refused = await project.call("sync", direction="export")
    imported = await project.done("sync", direction="import")

    assert (same["in_step"], same["differences"]) == (True, {})
    assert (looked["in_step"], looked["done"], looked["differences"]) == (False, False, {"only_in_files": ["i-new1"]})
    assert refused["code"] == "database_stale"
    assert (imported["in_step"], imported["done"]) == (True, True)
    assert sorted(project.titles()) == ["First", "Pulled"]

    project.rewrite(lambda rows: rows[:1])
    refused = await project.call("sync", direction="import")
    exported = await project.done("sync", direction="export")

    assert refused["code"] == "database_stale"
    assert (exported["in_step"], exported["done"]) == (True, True)
    assert sorted(project.titles()) == ["First", "Pulled"]
