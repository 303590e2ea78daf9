"""Plans and fixes are the same wherever files and records come from, and plans meet the judged answers."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from dependfix_core.ecosystems.registry import FIXABLE
from dependfix_core.github.tree import GitHubTree
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.base import MetadataSource, RecordedMetadata
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, Built
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.report.build import view_plan
from dependfix_core.trees import MemoryTree, TreeSource, drive
from dependfix_core.workspace.tree import CheckoutTree
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from fakes import harder
from fakes.corpus_metadata import corpus_records
from fakes.github_server import reader
from fakes.planning import ALL, JS_PROJECTS, NOW, PYTHON_PROJECTS, corpus_alerts, judge
from fakes.registry_server import RegistryServer
from fakes.step_driver import PROJECTS, project_files

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Project:
    """One project of either corpus."""

    name: str
    files: dict[str, bytes]
    alerts: tuple[Alert, ...]
    policy: ScanPolicy
    now: datetime
    metadata: RecordedMetadata
    folder: Path


def project_named(name: str) -> Project:
    if name in harder.NAMES:
        return Project(
            name=name,
            files=harder.files(name),
            alerts=harder.alerts(name),
            policy=harder.policy(name),
            now=harder.now(name),
            metadata=RecordedMetadata(harder.records()),
            folder=harder.folder(name),
        )
    return Project(
        name=name,
        files=project_files(name),
        alerts=corpus_alerts(name),
        policy=ALL,
        now=NOW,
        metadata=RecordedMetadata(corpus_records()),
        folder=PROJECTS / name,
    )


CORPUS = (*JS_PROJECTS, *PYTHON_PROJECTS)
EVERY = (*CORPUS, *harder.NAMES)


def planning(project: Project, listing: Listing) -> Step[Plan]:
    return plan_repository(
        project.alerts, listing, project.policy, FIXABLE, repository=f"acme/{project.name}", now=project.now
    )


async def plan_of(project: Project, tree: TreeSource, metadata: MetadataSource | None = None) -> Plan:
    return await drive(planning(project, await tree.listing()), tree, metadata or project.metadata)


async def built(project: Project, plan: Plan, tree: TreeSource) -> Built:
    builder = Builder(ecosystems=FIXABLE, metadata=RecordedMetadata(plan.records), relock="in-process")
    return await builder.build(plan, project.alerts, tree, lambda listing: planning(project, listing))


def checkout(project: Project, folder: Path) -> TreeSource:
    for path, content in project.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return CheckoutTree(folder, SubprocessRunner())


@asynccontextmanager
async def hosted(project: Project) -> AsyncIterator[TreeSource]:
    repository = HostedRepository(full_name=f"acme/{project.name}", files=project.files)
    with LoopbackGitHub([repository]) as service:
        async with reader(service) as github:
            yield GitHubTree(github, repository.full_name, repository.commit())


@pytest.mark.parametrize("name", EVERY)
async def test_checkout_api_and_memory_give_the_same_plan(name: str, tmp_path: Path) -> None:
    project = project_named(name)
    from_memory = await plan_of(project, MemoryTree(project.files))

    from_checkout = await plan_of(project, checkout(project, tmp_path))
    async with hosted(project) as tree:
        from_api = await plan_of(project, tree)

    assert from_checkout == from_memory
    assert from_api == from_memory


@pytest.mark.parametrize("name", EVERY)
async def test_checkout_api_and_memory_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    project = project_named(name)
    plan = await plan_of(project, MemoryTree(project.files))
    from_memory = await built(project, plan, MemoryTree(project.files))

    from_checkout = await built(project, plan, checkout(project, tmp_path))
    async with hosted(project) as tree:
        from_api = await built(project, plan, tree)

    assert from_checkout == from_memory
    assert from_api == from_memory
    written = {index for index, one in enumerate(plan.remediations) if not one.needs_tool}
    assert bool(from_memory.changes) == bool(written & set(from_memory.applied))


@pytest.mark.parametrize("name", CORPUS)
async def test_with_a_registry_over_http_every_alert_gets_the_judged_answer(name: str) -> None:
    compare = judge()
    project = project_named(name)

    with RegistryServer() as server:
        async with HttpClient(HttpConfig(trust_env=False)) as http:
            metadata = RegistryMetadata(http, RegistryAddresses(server.registries))
            plan = await plan_of(project, MemoryTree(project.files), metadata)

    view = view_plan(plan).model_dump(mode="json", by_alias=True, exclude_none=True)
    result = compare.compare(compare.load(project.folder), view)
    print(f"{name}: {result['good']}/{result['total']}")
    assert [row for row in result["alerts"] if not row["ok"]] == []
