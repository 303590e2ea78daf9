"""Corpus projects are fixed in a checkout, and the real package managers accept what was written."""

import json
from pathlib import Path

import pytest

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems
from dependfix_core.ecosystems.npm.ecosystem import NpmEcosystem
from dependfix_core.metadata import RecordedMetadata
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.run import Applied
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder
from dependfix_core.pipeline.fix import fix_checkout
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.relock import Relocker
from dependfix_core.trees import drive
from dependfix_core.workspace.git import GitCheckout
from dependfix_core.workspace.tree import CheckoutTree
from fakes.brought_tools import BroughtTools
from fakes.corpus_metadata import corpus_records
from fakes.planning import ALL, NOW, corpus_alerts
from integration.materialised import PROJECTS, materialise
from integration.strict_checks import CHECKS, run_check

pytestmark = [pytest.mark.anyio, pytest.mark.online, pytest.mark.timeout(300)]

ECOSYSTEMS: Ecosystems[Ecosystem] = Ecosystems(members=(NpmEcosystem(),))


async def fix(top: Path, project: Path, tools: dict[str, str]) -> tuple[Plan, Applied]:
    alerts = corpus_alerts(project.name)
    metadata = RecordedMetadata(corpus_records())
    runner = SubprocessRunner()
    tree = CheckoutTree(top, runner)

    def planned(listing: Listing) -> Step[Plan]:
        return plan_repository(alerts, listing, ALL, ECOSYSTEMS, repository="acme/corpus", now=NOW)

    plan = await drive(planned(await tree.listing()), tree, metadata)
    builder = Builder(
        ecosystems=ECOSYSTEMS,
        metadata=RecordedMetadata(plan.records),
        relocker=Relocker(runner, RegistryAddresses(), tools=BroughtTools(tools)),
    )
    checkout = GitCheckout(top=top, git_dir=top / ".git", branch="main", head=None, remotes=())
    applied = await fix_checkout(plan, alerts, checkout, builder=builder, replan=planned, runner=runner)
    return plan, applied


def marked(name: str) -> object:
    tools = sorted({check.tool for check in CHECKS[name]} | {"pip-tools"})
    return pytest.param(name, marks=pytest.mark.needs_tool(*tools))


@pytest.mark.parametrize("name", [marked(name) for name in CHECKS if name.startswith(("npm", "pnpm", "yarn"))])
async def test_a_fixed_project_passes_the_strict_checks_of_its_package_manager(name: str, tmp_path: Path) -> None:
    project = PROJECTS / name
    top = materialise(project, tmp_path / "top")
    tool = CHECKS[name][0].tool

    _, applied = await fix(top, project, {tool.partition("-")[0]: tool})

    expected = json.loads((project / "expected.json").read_text(encoding="utf-8"))["alerts"]
    assert {str(one.alert): one.disposition for one in applied.dispositions} == {
        number: {"fix": "fixed", "partial": "partial", "converged": "converged", "refuse": "skipped"}[answer["outcome"]]
        for number, answer in expected.items()
    }, [error.message for error in applied.errors]
    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")
