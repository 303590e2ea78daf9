"""Answers stay small however large a project is, and say what was left out."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.sudocode.fit import fit, fit_detail, size
from fakes.sudocode_project import Answer, Project

pytestmark = pytest.mark.anyio
BUDGET = 20_000
TEXT = "A paragraph about what is to be done and how it can be seen to be done. " * 42


def bulk(count: int, *, text: str = TEXT, title: str = "Issue") -> list[Answer]:
    """Rows of a large project; every tenth is more urgent than the others."""
    return [
        {
            "id": f"i-{number:05d}",
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "title": f"{title} {number}",
            "content": text,
            "status": "open",
            "priority": 0 if number % 10 == 0 else 1 + number % 4,
            "assignee": "ana" if number % 2 else "bob",
            "archived": 0,
            "archived_at": None,
            "created_at": "2026-01-01 00:00:00",
            "updated_at": f"2026-01-01 {number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}",
            "closed_at": None,
            "parent_id": None,
            "relationships": [],
            "tags": [],
        }
        for number in range(count)
    ]


def characters(answer: Answer) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


async def test_two_thousand_issues_of_three_kilobytes_stay_within_the_budget(project: Project) -> None:
    assert 3_000 < len(TEXT) < 3_100
    project.rewrite(lambda _: bulk(2_000))
    await project.done("sync", direction="import")

    ready = await project.done("ready")
    listed = await project.done("list_issues", limit=2_000)
    blocked = await project.done("blocked_issues")

    assert max(map(characters, (ready, listed, blocked))) <= BUDGET
    assert (ready["meta"]["total"], ready["meta"]["returned"], ready["meta"]["omitted"]) == (2_000, 10, 1_990)
    assert [issue["priority"] for issue in ready["issues"]] == [0] * 10
    assert ready["issues"][0]["id"] == "i-01990"
    assert ready["meta"]["detail"] == "excerpt"
    assert ready["issues"][0]["content_length"] == len(TEXT)
    assert len(ready["issues"][0]["content"]) == 280
    assert listed["meta"]["detail"] == "summary"
    assert (listed["meta"]["total"], listed["meta"]["returned"] + listed["meta"]["omitted"]) == (2_000, 2_000)
    assert listed["meta"]["returned"] > 100
    assert [issue["priority"] for issue in listed["issues"]] == sorted(issue["priority"] for issue in listed["issues"])
    assert "Only the first" in listed["meta"]["hint"]


async def test_long_titles_are_cut_in_summaries(faked: Project) -> None:
    faked.rewrite(lambda _: bulk(300, title="t" * 480))
    await faked.done("sync", direction="import")

    listed = await faked.done("list_issues", limit=300)

    assert {len(issue["title"]) for issue in listed["issues"]} == {160}


async def test_closing_many_long_issues_gives_every_id(faked: Project) -> None:
    faked.rewrite(lambda _: bulk(150))
    await faked.done("sync", direction="import")
    wanted = [f"i-{number:05d}" for number in range(150)]

    closed = await faked.done("close_issue", issue_ids=wanted)

    assert [(entry["id"], entry["success"]) for entry in closed["results"]] == [(name, True) for name in wanted]
    assert closed["meta"]["detail"] == "summary"
    assert characters(closed) < 2 * BUDGET


async def test_one_very_long_text_is_cut_in_its_middle_and_its_file_named(faked: Project) -> None:
    text = f"The beginning. {'ü' * 60_000} The end."
    spec = await faked.spec("Long", description=text)

    shown = (await faked.done("show_spec", spec_id=spec))["spec"]

    assert characters(shown) <= 56_000
    assert shown["content"].startswith("The beginning.")
    assert shown["content"].endswith("The end.")
    assert shown["content_length"] == len(text)
    assert (faked.root / shown["content_file"]).is_file()


async def test_a_text_that_fits_once_is_whole_and_stands_once(faked: Project) -> None:
    issue = await faked.issue("Long", description="x" * 40_000)

    shown = (await faked.done("show_issue", issue_id=issue))["issue"]

    assert shown["content"] == "x" * 40_000
    assert not {"description", "content_length"} & shown.keys()


TEXTS = st.text(max_size=600)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(min_size=1, max_size=8),
            "title": st.text(max_size=300),
            "content": TEXTS,
            "priority": st.integers(0, 4),
        }
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None)
@given(rows=ROWS, other=ROWS, budget=st.integers(2_000, 30_000), limit=st.none() | st.integers(1, 50))
def test_a_fitted_list_is_a_beginning_of_what_was_asked_for(
    rows: list[dict[str, Any]], other: list[dict[str, Any]], budget: int, limit: int | None
) -> None:
    fitted = fit({"issues": rows, "specs": other}, budget_chars=budget, limit=limit)

    returned = sum(map(len, fitted.lists.values()))
    for key, asked in (("issues", rows[:limit]), ("specs", other[:limit])):
        assert [row["id"] for row in fitted.lists[key]] == [row["id"] for row in asked][: len(fitted.lists[key])]
    assert size(fitted.lists) <= budget or returned == 1
    assert fitted.meta["total"] == len(rows) + len(other)
    assert fitted.meta["omitted"] == fitted.meta["total"] - returned
    if fitted.meta["detail"] == "full":
        assert fitted.lists == {"issues": rows[:limit], "specs": other[:limit]}


ANCHOR = st.fixed_dictionaries({"line_number": st.integers(1, 99), "context_before": TEXTS, "context_after": TEXTS})
ENTRY = st.fixed_dictionaries(
    {"id": st.text(max_size=8), "issue_id": st.just("i-1"), "content": TEXTS, "anchor": ANCHOR}
)


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(alphabet='aü"\\\n😀', max_size=9_000),
    feedback=st.lists(ENTRY, max_size=30),
    ceiling=st.integers(3_000, 9_000),
)
def test_a_detail_keeps_to_its_ceiling(text: str, feedback: list[dict[str, Any]], ceiling: int) -> None:
    entity = {
        "id": "s-1",
        "title": "T",
        "content": text,
        "relationships": {"outgoing": [], "incoming": []},
        "feedback": feedback,
    }

    fitted = fit_detail(entity, max_chars=ceiling, file="specs/x.md")

    assert size(fitted) <= ceiling
    assert fitted["id"] == "s-1"
    if fitted["content"] != text:
        assert (fitted["content_length"], fitted["content_file"]) == (len(text), "specs/x.md")
    if len(fitted["feedback"]) < len(feedback):
        assert fitted["feedback_total"] == len(feedback)
