from dataclasses import replace
from pathlib import Path

import pytest

from dependfix_core.errors import NotFoundError, PlanError
from dependfix_core.model.plan import Plan
from dependfix_core.model.records import PackageRecord, ReleaseRecord
from dependfix_core.pipeline.build import Built
from dependfix_core.pipeline.plan_json import dump_plan, load_plan
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.plan_store import KEPT, PlanStore
from fakes.planning import ALL, JS_PROJECTS, PYTHON_PROJECTS, build_files, corpus_alerts, plan_project
from fakes.step_driver import project_files


def bare(plan: Plan) -> Plan:
    return replace(plan, records={})


def store_in(folder: Path) -> PlanStore:
    return PlanStore(ReportFolders(candidates=(folder,)))


@pytest.mark.parametrize("project", [*JS_PROJECTS, *PYTHON_PROJECTS])
def test_a_plan_comes_back_as_it_was_stored(project: str) -> None:
    plan = plan_project(project)

    again = load_plan(dump_plan(plan))

    assert bare(again) == bare(plan)
    assert again.records.keys() == plan.records.keys()
    assert dump_plan(again) == dump_plan(plan)


@pytest.mark.anyio
@pytest.mark.parametrize("project", [*JS_PROJECTS, *PYTHON_PROJECTS])
async def test_a_stored_plan_writes_the_same_bytes(project: str) -> None:
    plan = plan_project(project)

    again = await built(project, load_plan(dump_plan(plan)))

    assert again == await built(project, plan)
    assert bool(again.changes) or project == "yarn-berry-lines"  # whose checksums only yarn can tell


async def built(project: str, plan: Plan) -> Built:
    return await build_files(project_files(project), corpus_alerts(project), plan, repository=f"acme/{project}")


def test_releases_that_were_asked_for_are_stored_whole_and_lists_without_details() -> None:
    plan = plan_project("npm-v3-direct")

    again = load_plan(dump_plan(plan))

    for key, record in plan.records.items():
        stored = again.records[key]
        if isinstance(record, ReleaseRecord):
            assert stored == record
        elif isinstance(record, PackageRecord):
            assert isinstance(stored, PackageRecord)
            assert set(stored.releases) == set(record.releases)
            assert all(release.dependencies is None for release in stored.releases.values())


def test_a_stored_plan_that_was_changed_is_not_taken() -> None:
    plan = plan_project("npm-v2-multi-line")
    changed = dump_plan(plan).replace(b'"7.5.2"', b'"7.5.3"')

    with pytest.raises(PlanError):
        load_plan(changed)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format":2}', b'{"format":1,"plan":{},"records":[]}'])
def test_bytes_that_are_no_plan_are_refused(content: bytes) -> None:
    with pytest.raises(PlanError):
        load_plan(content)


def test_a_plan_is_found_by_its_identity(tmp_path: Path) -> None:
    plan, store = plan_project("npm-v2-multi-line"), store_in(tmp_path / "reports")

    path = store.save(plan)
    store.save(plan)

    assert path.parent.name == "plans"
    assert bare(store.load(plan.plan_id)) == bare(plan)
    assert store.ids() == (plan.plan_id,)
    assert (tmp_path / "reports" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("plan_id", ["", "../../etc/passwd", "0123456789abcdef", "x" * 200])
def test_a_plan_that_is_not_there_is_not_found(tmp_path: Path, plan_id: str) -> None:
    with pytest.raises(NotFoundError):
        store_in(tmp_path).load(plan_id)


def test_a_file_under_another_plan_s_name_is_not_taken(tmp_path: Path) -> None:
    plan, store = plan_project("npm-v2-multi-line"), store_in(tmp_path)
    path = store.save(plan)
    path.rename(path.with_name("0123456789abcdef.json"))

    with pytest.raises(PlanError):
        store.load("0123456789abcdef")


def test_only_the_newest_plans_are_kept(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    folder = tmp_path / "plans"
    folder.mkdir()
    for number in range(KEPT + 5):
        (folder / f"{number:032x}.json").write_bytes(b"{}")
    plan = plan_project("npm-v2-multi-line")

    store.save(plan)

    assert len(store.ids()) == KEPT
    assert plan.plan_id in store.ids()


def test_the_identity_is_that_of_the_decisions() -> None:
    alerts = corpus_alerts("npm-v2-multi-line")

    plans = [
        plan_project("npm-v2-multi-line"),
        plan_project("npm-v2-multi-line", alerts=reversed(alerts)),
        plan_project("npm-v2-multi-line", alerts=alerts[:2]),
        plan_project("npm-v2-multi-line", replace(ALL, allow_major=True)),
        plan_project("npm-v2-multi-line", records=False),
    ]

    assert plans[0] == plans[1]
    assert len({plan.plan_id for plan in plans}) == 4
    assert len({plan.base for plan in plans}) == 1
