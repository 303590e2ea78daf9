"""The planner against the judged answers of the corpus."""

import pytest

from dependfix_core.report.build import view_plan
from fakes.planning import JS_PROJECTS, PYTHON_PROJECTS, judge, plan_project
from fakes.step_driver import PROJECTS


@pytest.mark.parametrize("project", [*JS_PROJECTS, *PYTHON_PROJECTS])
def test_every_alert_gets_the_judged_answer(project: str) -> None:
    compare = judge()
    view = view_plan(plan_project(project)).model_dump(mode="json", by_alias=True, exclude_none=True)

    result = compare.compare(compare.load(PROJECTS / project), view)

    print(f"{project}: {result['good']}/{result['total']}")
    assert [row for row in result["alerts"] if not row["ok"]] == []
