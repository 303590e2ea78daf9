"""Plans corpus projects, and small projects of a test's own, without a network."""

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from dependfix_core.ecosystems.registry import ECOSYSTEMS, FIXABLE
from dependfix_core.github.decode import read_alert
from dependfix_core.github.normalise import alert_of
from dependfix_core.metadata import RecordedMetadata
from dependfix_core.metadata.base import release_of
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Absence, FileContent, Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Unavailability, Unavailable
from dependfix_core.model.steps import Step, Supplies, T
from dependfix_core.pipeline.build import Builder, Built
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.trees.memory import MemoryTree
from fakes.corpus_metadata import corpus_records
from fakes.step_driver import PROJECTS, listing_of, project_files

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALL = ScanPolicy(severity="all")
JS_PROJECTS = (
    "npm-v1-legacy",
    "npm-v2-multi-line",
    "npm-v3-direct",
    "pnpm-v6-workspace",
    "pnpm-v9-override",
    "yarn-berry-lines",
    "yarn1-resolutions",
)
PYTHON_PROJECTS = ("pip-hashes", "pipenv", "poetry-groups", "uv-project")


def judge() -> ModuleType:
    """The corpus's own comparison of a plan with the judged answer."""
    spec = importlib.util.spec_from_file_location("corpus_compare", PROJECTS / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus_alerts(project: str) -> tuple[Alert, ...]:
    payload: list[dict[str, Any]] = json.loads((PROJECTS / project / "alerts.json").read_bytes())
    read = [read_alert(item) for item in payload]
    return tuple(alert_of(one, f"acme/{project}") for one in read if one is not None)


def plan_project(
    project: str, policy: ScanPolicy = ALL, *, alerts: Iterable[Alert] | None = None, records: bool = True
) -> Plan:
    """The plan for a corpus project, with the recorded registry answers or with none."""
    return plan_files(
        project_files(project),
        corpus_alerts(project) if alerts is None else alerts,
        corpus_records() if records else {},
        policy,
        repository=f"acme/{project}",
    )


def plan_files(
    files: Mapping[str, bytes],
    alerts: Iterable[Alert],
    records: Mapping[RecordKey, Record],
    policy: ScanPolicy = ALL,
    *,
    repository: str = "acme/made-up",
    listing: Listing | None = None,
    now: datetime = NOW,
) -> Plan:
    """The plan for files that are at hand."""
    step = plan_repository(alerts, listing or listing_of(files), policy, ECOSYSTEMS, repository=repository, now=now)
    return drive_plan(step, files, records)


def drive_plan(step: Step[T], files: Mapping[str, bytes], records: Mapping[RecordKey, Record]) -> T:
    """Like `RecordedMetadata`: a release's details may stand in the list of releases."""
    try:
        needs = next(step)
        while True:
            needs = step.send(
                Supplies(
                    files={path: _file(path, files) for path in needs.files},
                    records={key: _record(key, records) for key in needs.records},
                )
            )
    except StopIteration as stop:
        result: T = stop.value
        return result


def _file(path: str, files: Mapping[str, bytes]) -> FileContent | Absence:
    return FileContent(path=path, content=files[path]) if path in files else Absence.MISSING


def _record(key: RecordKey, records: Mapping[RecordKey, Record]) -> Record:
    plain = RecordKey(ecosystem=key.ecosystem, name=key.name, version=key.version)
    found = records.get(plain)
    if found is None and key.version:
        package = records.get(RecordKey(ecosystem=key.ecosystem, name=key.name))
        found = release_of(package, key) if isinstance(package, PackageRecord) else None
    return found if found is not None else Unavailable(key=key, why=Unavailability.NOT_FOUND)


async def build_files(
    files: Mapping[str, bytes], alerts: Sequence[Alert], plan: Plan, *, repository: str = "acme/made-up"
) -> Built:
    """What a plan writes in-process over files that are at hand, with the records that it brings."""

    def replanned(listing: Listing) -> Step[Plan]:
        return plan_repository(alerts, listing, ALL, FIXABLE, repository=repository, now=NOW)

    builder = Builder(ecosystems=FIXABLE, metadata=RecordedMetadata(plan.records), relock="in-process")
    return await builder.build(plan, alerts, MemoryTree(files), replanned)
