"""A large result is cut before it is written out just as it would be afterwards."""

import pytest

from dependfix_core.model.alert import Severity
from dependfix_core.model.plan import AlertOutcome, Move, Remediation
from dependfix_core.report.build import RepositoryRun, build_result
from dependfix_core.report.wire import RunConfig, RunResult, to_wire
from dependfix_mcp.shedding import shed, shed_result
from fakes.reports import alert, info, plan

LEVELS = tuple(Severity)


def large(count: int) -> RunResult:
    """A run whose alerts, outcomes and remediations are in an order of their own each."""
    numbers = [1 + number * 7 % count for number in range(count)]
    alerts = tuple(alert(number, severity=LEVELS[number % len(LEVELS)]) for number in numbers)
    outcomes = [AlertOutcome(alert=number, outcome="fix", next_safe_version="7.5.2") for number in reversed(numbers)]
    remediations = tuple(
        Remediation(
            unit=f"folder-{number}/package-lock.json",
            ecosystem="npm",
            package_name="semver",
            strategy="lock-in-range",
            moves=(
                Move(
                    where="semver", package_name="semver", from_version=None, to_version="2", strategy="lock-in-range"
                ),
            ),
            alerts=(number,),
        )
        for number in numbers
    )
    run = RepositoryRun(repository="octo/shop", alerts=alerts, plan=plan(*outcomes, remediations=remediations))
    return build_result(info(), RunConfig(repositories=("octo/shop",)), [run])


@pytest.mark.parametrize("count", [1, 20, 300, 799, 2001])
def test_cutting_before_writing_out_is_the_same_as_after(count: int) -> None:
    run = large(count)

    before, after = shed_result(run), shed(to_wire(run))

    assert before == after
    assert before["summary"]["alertsFound"] == count
    cut = before.get("truncated", {})
    assert len(before["alerts"]) + cut.get("alerts", 0) == count
    assert len(before["plan"]["outcomes"]) + cut.get("outcomes", 0) == count
    assert len(before["plan"]["remediations"]) + cut.get("remediations", 0) == count


def test_a_run_without_a_plan_is_cut_too() -> None:
    run = large(2001).model_copy(update={"plan": None})

    assert shed_result(run) == shed(to_wire(run))
