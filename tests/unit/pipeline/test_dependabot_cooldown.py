from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from dependfix_core.model.plan import AlertOutcome, Plan
from dependfix_core.pipeline.dependabot import parse_dependabot
from dependfix_core.pipeline.gates import step_of
from fakes.planning import plan_files
from fakes.universe import alert, npm_project, registry

PACKAGES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "vuln": {"1.0.0": {}, "1.0.1": {"!published": "2025-12-30T00:00:00+00:00"}}
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan(dependabot: str, folder: str = "") -> Plan:
    files = npm_project(PACKAGES, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})
    files = {f"{folder}{path}": content for path, content in files.items()}
    files[".github/dependabot.yml"] = dependabot.encode()
    one = alert(1, "vuln", "< 1.0.1", "1.0.1", manifest=f"{folder}package-lock.json")
    return plan_files(files, [one], registry(PACKAGES), now=NOW)


def answer(planned: Plan) -> AlertOutcome:
    (found,) = planned.outcomes
    return found


def entry(cooldown: str, ecosystem: str = "npm", directory: str = "directory: /") -> str:
    return f"version: 2\nupdates:\n  - package-ecosystem: {ecosystem}\n    {directory}\n    cooldown: {{{cooldown}}}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (entry("default-days: 5"), "cooldown"),
        (entry("default-days: 1"), None),
        (entry("semver-patch-days: 5"), "cooldown"),
        (entry("default-days: 5, semver-patch-days: 1"), None),
        (entry("semver-major-days: 30"), None),
        (entry("default-days: 5, exclude: [vuln]"), None),
        (entry("default-days: 5, exclude: ['v*']"), None),
        (entry("default-days: 5, include: [other]"), None),
        (entry("default-days: 5, include: [vuln]"), "cooldown"),
        (entry("default-days: 5", ecosystem="pip"), None),
        (entry("default-days: 5", directory="directory: /web"), None),
        (entry("default-days: 5", directory="directories: [/web, /]"), "cooldown"),
        (entry("default-days: soon"), None),
        ("updates: [1, {}]", None),
        ("[]", None),
    ],
)
def test_young_releases_wait_as_dependabot_yml_says(text: str, reason: str | None) -> None:
    assert answer(plan(text)).reason == reason


@pytest.mark.parametrize("directory", ["directory: /apps/web", "directories: ['/apps/*']", "directories: ['**/*']"])
def test_a_rule_for_a_folder_holds_there(directory: str) -> None:
    planned = plan(entry("default-days: 5", directory=directory), folder="apps/web/")

    assert answer(planned).reason == "cooldown"
    assert "2026-01-04T00:00:00+00:00" in answer(planned).detail


@pytest.mark.parametrize(
    "text", ["updates: [", "a: &a [x]\nupdates: *a\n", "x" * 1_100_000, "a: !!python/object:os.system x"]
)
def test_a_file_that_cannot_be_read_is_a_problem_and_no_rule(text: str) -> None:
    planned = plan(text)

    assert answer(planned).outcome == "fix"
    assert [problem.target for problem in planned.problems] == [".github/dependabot.yml"]
    assert parse_dependabot("x", text.encode()).cooldowns == ()


@pytest.mark.parametrize(
    ("current", "target", "step"),
    [("1.0.0", "2.0.0", "major"), ("1.0.0", "1.1", "minor"), ("1.0", "1.0.1", "patch"), ("", "1.0.0", "")],
)
def test_a_step_is_named_by_the_first_number_that_differs(current: str, target: str, step: str) -> None:
    assert step_of(current, target) == step
