"""The same tools on the first releases: what they have is used, and they lose nothing either."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fakes.sudocode_cli import OCT_20, OCT_22
from fakes.sudocode_project import Program, Project, codes, fake_program, git, real_program

pytestmark = pytest.mark.anyio


# 0.1.5 and 0.1.6, which no fake stands in for: states of feedback are gone, the rest is as it was before.
EARLY = "0.1.5"


def generation_of(program: Path) -> str | None:
    """Which of the three an installed program is."""
    version, feedback, ready = (
        subprocess.run([str(program), *words], check=True, capture_output=True, text=True).stdout
        for words in (["--version"], ["feedback", "--help"], ["ready", "--help"])
    )
    if "acknowledge" not in feedback:
        return EARLY if version.strip() in ("0.1.5", "0.1.6") else None
    return OCT_20 if "--specs" in ready else OCT_22


@pytest.fixture(params=[OCT_22, OCT_20, pytest.param("real", marks=pytest.mark.needs_tool("sudocode"))])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Project]:
    """A generation and a project of it; the real program only where SUDOCODE_PATH names one of these."""
    if request.param == "real":
        program = real_program()
        found = generation_of(Path(os.environ["SUDOCODE_PATH"]))
        if found is None:
            pytest.skip("needs sudocode: SUDOCODE_PATH names a newer release, which has tests of its own")
        generation = found
    else:
        generation = request.param
        program = fake_program(tmp_path, generation=generation)
    return generation, made(tmp_path / "project", program)


def made(root: Path, program: Program) -> Project:
    root.mkdir()
    git(root, "init", "-q")
    project = Project(root=root, program=program)
    project.by_hand("init")
    return project


async def test_the_direction_of_blocks_is_that_of_the_release(old: tuple[str, Project]) -> None:
    """From 0.1.6 on the second waits for the first."""
    _, project = old
    first, second = await project.issue("First"), await project.issue("Second")

    linked = await project.done("link", from_id=first, to_id=second, type="blocks")
    blocked = await project.done("blocked_issues")

    waiting, blocker = (first, second) if project.release < (0, 1, 6) else (second, first)
    assert linked["waiting"] == {"id": waiting, "waits_for": blocker, "confirmed": True}
    assert [(row["id"], [b["id"] for b in row["blocked_by"]]) for row in blocked["issues"]] == [(waiting, [blocker])]


async def test_parent_child_is_a_link(old: tuple[str, Project]) -> None:
    _, project = old
    first, second = await project.issue("First"), await project.issue("Second")

    linked = await project.done("link", from_id=first, to_id=second, type="parent-child")

    assert (linked["success"], linked["parent"]) == (True, first)


async def test_feedback_has_the_states_of_its_release(old: tuple[str, Project]) -> None:
    generation, project = old
    issue, spec = await project.issue(), await project.spec(description="# Head\n\nline three\n")
    kind = "suggestion"
    made_feedback = await project.done(
        "add_feedback", issue_id=issue, spec_id=spec, content="x", text="three", type=kind
    )
    entry = made_feedback["feedback"]["id"]
    assert (made_feedback["feedback"]["issue_id"], made_feedback["feedback"]["spec_id"]) == (issue, spec)
    if generation == EARLY:
        refused = await project.call("acknowledge_feedback", feedback_id=entry)
        settled = await project.done("resolve_feedback", feedback_id=entry, comment="fixed")
        listed = await project.done("list_feedback", status="open", issue_id=issue)
        assert refused["code"] == "unsupported_by_cli"
        assert (settled["asked_status"], settled["stored_status"], codes(settled)) == (
            "resolved",
            "dismissed",
            ["not_stored"],
        )
        assert listed["feedback"] == []
        return

    states = [
        (await project.done(tool, feedback_id=entry, **more))["feedback"]
        for tool, more in (
            ("acknowledge_feedback", {}),
            ("resolve_feedback", {"comment": "fixed"}),
            ("wontfix_feedback", {"reason": "no"}),
        )
    ]
    found = await project.done("list_feedback", status="wont_fix", issue_id=issue, spec_id=spec)
    shown = await project.done("show_feedback", feedback_id=entry)

    assert [state["status"] for state in states] == ["acknowledged", "resolved", "wont_fix"]
    assert [state.get("resolution") for state in states] == [None, "fixed", "no"]
    assert [row["id"] for row in found["feedback"]] == [entry]
    assert shown["feedback"]["anchor_check"]["matches"] is True


async def test_the_default_type_is_said_to_be_another_where_it_is(old: tuple[str, Project]) -> None:
    generation, project = old
    issue, spec = await project.issue(), await project.spec(description="# Head\n")

    stored = await project.done("add_feedback", issue_id=issue, spec_id=spec, content="x", line=1)

    if generation == OCT_20:
        assert stored["feedback"]["type"] == "ambiguity"
        assert [(w["code"], w["argument"]) for w in stored["warnings"]] == [("not_stored", "type")]
    else:
        assert (stored["feedback"]["type"], codes(stored)) == ("comment", [])


async def test_types_and_estimates_are_passed_on_where_they_are_kept(old: tuple[str, Project]) -> None:
    generation, project = old
    arguments: dict[str, Any] = {"title": "Typed", "type": "bug", "estimate": 30}

    answer = await project.call("create_issue", **arguments)

    if generation != OCT_20:
        assert (answer["code"], answer["details"]["argument"]) == ("unsupported_by_cli", "type")
        return
    assert (answer["issue"]["type"], answer["issue"]["estimated_minutes"]) == ("bug", 30)
    listed = await project.done("list_issues", type="bug")
    changed = await project.done("update_issue", issue_id=answer["issue"]["id"], type="chore")
    spec = await project.done("create_spec", title="Spec", type="api", design="How")
    specs = await project.done("list_specs", status="draft", type="api")
    assert [row["title"] for row in listed["issues"]] == ["Typed"]
    assert changed["issue"]["type"] == "chore"
    assert spec["spec"]["content"] == "## Design\n\nHow"
    assert [row["title"] for row in specs["specs"]] == ["Spec"]
    assert "unavailable" not in await project.done("stats")


async def test_texts_come_back_under_one_name(old: tuple[str, Project]) -> None:
    _, project = old

    issue = await project.issue(description="The text")

    assert (await project.done("show_issue", issue_id=issue))["issue"]["content"] == "The text"
    changed = await project.done("update_issue", issue_id=issue, description="Another text")
    assert (changed["issue"]["content"], codes(changed)) == ("Another text", [])


async def test_a_fresh_clone_and_a_pull_keep_every_row(old: tuple[str, Project], tmp_path: Path) -> None:
    generation, project = old
    (project.root / ".gitignore").write_text(".sudocode/*.db*\n", encoding="utf-8")
    first = await project.issue("First")
    project.commit()
    clone = project.clone(tmp_path / "clone")

    refused = await clone.call("create_issue", title="Too early")
    initialised = await clone.done("init")
    project_row = {"title": "First, renamed", "updated_at": "2099-01-01 00:00:00"}
    clone.rewrite(lambda rows: [{**row, **project_row} if row["id"] == first else row for row in rows])
    written = await clone.done("create_issue", title="Second")

    assert refused["code"] == "not_initialized"
    assert ("restored" in codes(initialised)) is (generation != EARLY)
    assert "imported" in codes(written)
    assert sorted(clone.titles()) == ["First, renamed", "Second"]


async def test_a_second_init_empties_nothing(old: tuple[str, Project]) -> None:
    _, project = old
    await project.issue("Kept")
    before = project.files()

    again = await project.done("init")

    assert again["already_initialized"] is True
    assert project.files() == before


async def test_an_older_time_in_a_pulled_row_is_no_proof(old: tuple[str, Project], tmp_path: Path) -> None:
    """The import of a clone gives its rows a new time, so a pull can bring a later change with an earlier one."""
    generation, project = old
    (project.root / ".gitignore").write_text(".sudocode/*.db*\n", encoding="utf-8")
    await project.issue("First")
    project.commit()
    clone = project.clone(tmp_path / "clone")
    await clone.done("init")
    clone.rewrite(lambda rows: [{**rows[0], "title": "Changed", "updated_at": "2020-01-01 00:00:00"}])
    before = clone.files()

    answer = await clone.call("create_issue", title="Second")

    if generation == EARLY:  # it keeps the times of a file
        assert codes(answer) == ["files_behind"]
        assert sorted(clone.titles()) == ["First", "Second"]
        return
    assert answer["code"] == "database_stale"
    assert clone.files() == before
