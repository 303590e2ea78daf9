"""Harder JavaScript projects are fixed in a checkout, and their real package managers accept what was written."""

import json
from pathlib import Path

import pytest

from fakes import harder
from integration.fixing import fixed
from integration.materialised import materialise
from integration.strict_checks import checks_of, run_check

pytestmark = [pytest.mark.anyio, pytest.mark.online, pytest.mark.timeout(600)]

JAVASCRIPT = tuple(name for name in harder.NAMES if checks_of(harder.folder(name)))
DISPOSITIONS = {
    "fix": "fixed",
    "partial": "partial",
    "converged": "converged",
    "not-present": "converged",
    "refuse": "skipped",
    "skip": "skipped",
}


def marked(name: str) -> object:
    tools = sorted({check.tool for check in checks_of(harder.folder(name))} | {"pip-tools"})
    return pytest.param(name, marks=pytest.mark.needs_tool(*tools))


@pytest.mark.parametrize("name", [marked(name) for name in JAVASCRIPT])
async def test_a_fixed_harder_project_passes_the_strict_checks_of_its_package_manager(
    name: str, tmp_path: Path
) -> None:
    project = harder.folder(name)
    top = materialise(project, tmp_path / "top")
    checks = checks_of(project)
    tools = {check.tool.partition("-")[0]: check.tool for check in checks}

    plan, applied = await fixed(
        top, harder.alerts(name), harder.records(), tools, policy=harder.policy(name), now=harder.now(name)
    )

    assert {one.alert: one.disposition for one in applied.dispositions} == {
        one.alert: DISPOSITIONS[one.outcome] for one in plan.outcomes
    }, [error.message for error in applied.errors]
    for check in checks:
        run_check(check, top, tmp_path / "home")


def test_every_lockfile_of_the_harder_projects_is_checked() -> None:
    names = {"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"}
    with_locks = {name for name in harder.NAMES if any(Path(path).name in names for path in harder.files(name))}

    assert set(JAVASCRIPT) == with_locks
    assert len(JAVASCRIPT) >= 6
    for name in JAVASCRIPT:
        assert json.loads((harder.folder(name) / "expected.json").read_bytes())["project"]["tools"]
