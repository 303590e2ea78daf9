"""Corpus projects are fixed in a checkout, and the real package managers accept what was written."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import Plan
from dependfix_core.model.run import Applied
from dependfix_core.pipeline.build import RelockPolicy
from dependfix_core.report.build import view_plan
from fakes.corpus_metadata import corpus_records
from fakes.planning import corpus_alerts, judge
from integration.fixing import fixed
from integration.materialised import PROJECTS, materialise
from integration.strict_checks import CHECKS, run_check

pytestmark = [pytest.mark.anyio, pytest.mark.online, pytest.mark.timeout(300)]

PYTHON = ("pip-hashes", "pipenv", "poetry-groups", "uv-project")


async def fix(
    top: Path,
    project: Path,
    tools: dict[str, str],
    relock: RelockPolicy = "auto",
    *,
    alerts: Sequence[Alert] | None = None,
) -> tuple[Plan, Applied]:
    chosen = corpus_alerts(project.name) if alerts is None else alerts
    return await fixed(top, chosen, corpus_records(), tools, relock=relock)


def marked(name: str) -> object:
    tools = sorted({check.tool for check in CHECKS[name]} | {"pip-tools"})
    return pytest.param(name, marks=pytest.mark.needs_tool(*tools))


@pytest.mark.parametrize("name", [marked(name) for name in CHECKS if name.startswith(("npm", "pnpm", "yarn"))])
async def test_a_fixed_project_passes_the_strict_checks_of_its_package_manager(name: str, tmp_path: Path) -> None:
    project = PROJECTS / name
    top = materialise(project, tmp_path / "top")
    tool = CHECKS[name][0].tool

    plan, applied = await fix(top, project, {tool.partition("-")[0]: tool})

    assert_answered(project, plan, applied)
    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")


def assert_answered(project: Path, plan: Plan, applied: Applied) -> None:
    """Each alert got the judged answer, target and strategy included, and came to it."""
    compare = judge()
    view = view_plan(plan).model_dump(mode="json", by_alias=True, exclude_none=True)
    score = compare.compare(compare.load(project), view, online=True)
    assert [row for row in score["alerts"] if not row["ok"]] == []
    expected = json.loads((project / "expected.json").read_text(encoding="utf-8"))["alerts"]
    assert {str(one.alert): one.disposition for one in applied.dispositions} == {
        number: {"fix": "fixed", "partial": "partial", "converged": "converged", "refuse": "skipped"}[answer["outcome"]]
        for number, answer in expected.items()
    }, [error.message for error in applied.errors]


@pytest.mark.parametrize("name", [marked(name) for name in PYTHON])
async def test_a_python_project_is_fixed_without_a_tool_and_its_tool_accepts_it(name: str, tmp_path: Path) -> None:
    project = PROJECTS / name
    top = materialise(project, tmp_path / "top")

    plan, applied = await fix(top, project, {}, "in-process")

    assert_answered(project, plan, applied)
    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")


@pytest.mark.parametrize("name", [marked(name) for name in PYTHON if name != "pipenv"])
async def test_a_python_project_is_fixed_by_its_own_tool_in_the_same_way(name: str, tmp_path: Path) -> None:
    project = PROJECTS / name
    top = materialise(project, tmp_path / "top")
    tool = CHECKS[name][0].tool

    plan, applied = await fix(top, project, {tool: tool}, "tool")

    assert_answered(project, plan, applied)
    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")


@pytest.mark.needs_tool("pipenv", "pip-tools")
async def test_a_tool_that_would_have_to_build_what_is_locked_leaves_the_project_as_it_was(tmp_path: Path) -> None:
    project = PROJECTS / "pipenv"
    top = materialise(project, tmp_path / "top")
    before = {path.name: path.read_bytes() for path in top.iterdir() if path.is_file()}
    only_idna = [one for one in corpus_alerts("pipenv") if one.package_name == "idna"]

    _, applied = await fix(top, project, {"pipenv": "pipenv"}, "tool", alerts=only_idna)

    assert [one.disposition for one in applied.dispositions] == ["skipped"]
    assert {path.name: path.read_bytes() for path in top.iterdir() if path.is_file()} == before
