"""The planner against answers for harder projects, by people who had not seen it."""

import json

import pytest

from dependfix_core.report.build import view_plan
from fakes import harder
from fakes.planning import judge


@pytest.mark.parametrize("project", harder.NAMES)
def test_every_alert_of_a_harder_project_gets_the_judged_answer(project: str) -> None:
    compare = judge()
    view = view_plan(harder.plan(project)).model_dump(mode="json", by_alias=True, exclude_none=True)

    result = compare.compare(compare.load(harder.folder(project)), view)

    argued = harder.argued(project)
    print(f"{project}: {result['good']}/{result['total']}, {len(argued)} argued")
    missed = {row["alert"]: row for row in result["alerts"] if not row["ok"]}
    assert [row for number, row in missed.items() if number not in argued] == []
    assert set(argued) <= set(missed), "an argument is left for an answer that is met"


@pytest.mark.parametrize("project", harder.NAMES)
def test_every_alert_of_a_harder_project_is_judged(project: str) -> None:
    numbers = {str(one["number"]) for one in json.loads((harder.folder(project) / "alerts.json").read_bytes())}

    assert numbers == set(harder.expected(project)["alerts"])


@pytest.mark.parametrize("project", harder.NAMES)
def test_packages_of_a_harder_project_come_from_no_real_host(project: str) -> None:
    hosts = {host for content in harder.files(project).values() for host in harder.package_addresses(content)}

    assert {host for host in hosts if not host.endswith(".example")} == set()


def test_recorded_answers_name_no_real_host() -> None:
    hosts = {
        host
        for path in sorted((harder.HARDER / "metadata").rglob("*.json"))
        for host in harder.package_addresses(path.read_bytes())
    }

    assert {host for host in hosts if not host.endswith(".example")} == set()
