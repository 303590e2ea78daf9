"""The plan is the same wherever files and records come from, and meets the judged answers."""

import subprocess
from pathlib import Path

import pytest

from dependfix_core.ecosystems.registry import ECOSYSTEMS
from dependfix_core.github.tree import GitHubTree
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.base import RecordedMetadata
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.plan import Plan
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.report.build import view_plan
from dependfix_core.trees import MemoryTree, TreeSource, drive
from dependfix_core.workspace.tree import CheckoutTree
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from fakes.corpus_metadata import corpus_records
from fakes.github_server import reader
from fakes.planning import ALL, JS_PROJECTS, NOW, PYTHON_PROJECTS, corpus_alerts, judge
from fakes.registry_server import RegistryServer
from fakes.step_driver import PROJECTS, project_files

pytestmark = pytest.mark.anyio
METADATA = RecordedMetadata(corpus_records())


async def plan_of(project: str, tree: TreeSource, metadata: RecordedMetadata | RegistryMetadata = METADATA) -> Plan:
    listing = await tree.listing()
    step = plan_repository(corpus_alerts(project), listing, ALL, ECOSYSTEMS, repository=f"acme/{project}", now=NOW)
    return await drive(step, tree, metadata)


def checkout(project: str, folder: Path) -> Path:
    for path, content in project_files(project).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("project", [*JS_PROJECTS, *PYTHON_PROJECTS])
async def test_checkout_api_and_memory_give_the_same_plan(project: str, tmp_path: Path) -> None:
    files = project_files(project)
    from_memory = await plan_of(project, MemoryTree(files))

    from_checkout = await plan_of(project, CheckoutTree(checkout(project, tmp_path), SubprocessRunner()))
    hosted = HostedRepository(full_name=f"acme/{project}", files=files)
    with LoopbackGitHub([hosted]) as service:
        async with reader(service) as github:
            from_api = await plan_of(project, GitHubTree(github, hosted.full_name, hosted.commit()))

    assert from_checkout == from_memory
    assert from_api == from_memory


@pytest.mark.parametrize("project", [*JS_PROJECTS, *PYTHON_PROJECTS])
async def test_with_a_registry_over_http_every_alert_gets_the_judged_answer(project: str) -> None:
    compare = judge()

    with RegistryServer() as server:
        async with HttpClient(HttpConfig(trust_env=False)) as http:
            metadata = RegistryMetadata(http, RegistryAddresses(server.registries))
            plan = await plan_of(project, MemoryTree(project_files(project)), metadata)

    view = view_plan(plan).model_dump(mode="json", by_alias=True, exclude_none=True)
    result = compare.compare(compare.load(PROJECTS / project), view)
    print(f"{project}: {result['good']}/{result['total']}")
    assert [row for row in result["alerts"] if not row["ok"]] == []
