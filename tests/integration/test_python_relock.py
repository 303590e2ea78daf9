"""The real package managers of Python against an index of made-up packages: exact, private, and never building."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems, ToolRelock
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Move, Plan, Remediation
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.relock import Relocker, RelockFailure
from dependfix_core.trees import MemoryTree, drive
from fakes.brought_tools import BroughtTools
from fakes.planning import ALL, NOW, drive_plan
from fakes.python_index import Published, PythonIndex
from fakes.python_projects import MAKERS
from fakes.python_tools import addresses_of
from fakes.step_driver import listing_of
from fakes.universe import alert

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ECOSYSTEM = PythonEcosystem()
ECOSYSTEMS: Ecosystems[Ecosystem] = Ecosystems(members=(ECOSYSTEM,))
LOGIN = 'us:p w"\\#'
TOOLS = {
    "uv": {"uv": "uv"},
    "poetry": {"poetry": "poetry"},
    "poetry-1": {"poetry": "poetry-1"},
    "pdm": {"pdm": "pdm"},
    "pipenv": {"pipenv": "pipenv"},
    "pip-tools": {"pip-tools": "pip-tools"},
    "uv-compile": {"uv": "uv"},
}
LOCKS = {
    "uv": "uv.lock",
    "poetry": "poetry.lock",
    "poetry-1": "poetry.lock",
    "pdm": "pdm.lock",
    "pipenv": "Pipfile.lock",
    "pip-tools": "requirements.txt",
    "uv-compile": "requirements.txt",
}


def published(canary: Path) -> list[Published]:
    code = f"open({str(canary)!r}, 'a').write('built')\n"
    return [
        Published(name="leaf", version="1.0", requires_python=">=3.8"),
        Published(name="leaf", version="1.1", requires_python=">=3.8", backend=code),
        Published(name="leaf", version="1.2", requires_python=">=3.8"),
        Published(name="leaf", version="1.3", wheel=False, backend=code),
        Published(name="tree", version="1.0", requires=("leaf>=1.0,<2",)),
        Published(name="tree", version="1.1", requires=("leaf>=1.1,<2", "extra-one")),
        Published(name="tree", version="1.2", requires=("leaf>=1.2,<2", "extra-one")),
        Published(name="extra-one", version="0.5", backend=code),
        Published(name="bystander", version="3.0"),
        Published(name="bystander", version="3.1"),
    ]


def project(tool: str, index: PythonIndex, canary: Path) -> dict[str, bytes]:
    """tree 1.0, leaf 1.0 and bystander 3.0, as the tool would have locked them; code of the project would betray itself."""
    code = f"open({str(canary)!r}, 'a').write('run')\n".encode()
    files = {"setup.py": code, "sitecustomize.py": code, "poetry.toml": b"[installer]\nparallel = true\n"}
    return {**files, **MAKERS[tool](index)}


def marked(tool: str) -> object:
    return pytest.param(tool, marks=pytest.mark.needs_tool(*TOOLS[tool].values()))


@pytest.mark.parametrize("tool", [marked(tool) for tool in TOOLS])
async def test_a_plan_with_something_new_in_it_is_locked_by_the_tool_and_proven(tool: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    lock = LOCKS[tool]
    alerts = (
        alert(1, "leaf", "< 1.1", "1.1", manifest=lock, ecosystem="pip"),
        alert(2, "tree", "< 1.1", "1.1", manifest=lock, ecosystem="pip"),
    )
    with PythonIndex(published(canary), login=LOGIN) as index:
        addresses = addresses_of(index, tmp_path / "home")
        files = project(tool, index, canary)
        tree = MemoryTree(files)

        def planned(listing: Listing) -> Step[Plan]:
            return plan_repository(alerts, listing, ALL, ECOSYSTEMS, repository="acme/made-up", now=NOW)

        async with HttpClient(HttpConfig(trust_env=False, tries=1)) as http:
            metadata = RegistryMetadata(http, addresses)
            plan = await drive(planned(await tree.listing()), tree, metadata)
            builder = Builder(
                ecosystems=ECOSYSTEMS,
                metadata=metadata,
                relocker=Relocker(SubprocessRunner(), addresses, tools=BroughtTools(TOOLS[tool])),
            )
            built = await builder.build(plan, alerts, tree, planned)

    assert {rejected.detail for rejected in built.rejected.values()} == set()
    assert {(move.package_name, move.to_version) for one in plan.remediations for move in one.moves} == {
        ("leaf", "1.1"),
        ("tree", "1.1"),
        ("extra-one", "0.5"),
    }
    assert [change.path for change in built.changes.changes] == [lock]
    assert locked({**files, **{change.path: change.after or b"" for change in built.changes.changes}}, lock) == {
        ("bystander", "3.0"),
        ("extra-one", "0.5"),
        ("leaf", "1.1"),
        ("tree", "1.1"),
    }
    assert not canary.exists()
    assert {request.credential for request in index.requests} <= {"", LOGIN}
    assert sum(request.credential == LOGIN for request in index.requests) > len(index.requests) / 3


def locked(files: Mapping[str, bytes], lock: str) -> set[tuple[str, str]]:
    (unit,) = drive_plan(ECOSYSTEM.read_units(listing_of(files), [lock]), files, {})
    return {(one.name, one.version) for one in unit.instances.values() if one.name != "app"}


@pytest.mark.parametrize("tool", [marked(tool) for tool in TOOLS])
async def test_a_version_that_would_have_to_be_built_is_not_locked(tool: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    lock = LOCKS[tool]
    where = {"Pipfile.lock": "default.leaf", "requirements.txt": "leaf==1.0"}.get(lock, "package[leaf 1.0]")
    move = Move(where=where, package_name="leaf", from_version="1.0", to_version="1.3", strategy="lock-in-range")
    remediation = Remediation(
        unit=lock, ecosystem="pip", package_name="leaf", strategy="lock-in-range", moves=(move,), needs_tool=True
    )
    with PythonIndex(published(canary), login=LOGIN) as index:
        files = project(tool, index, canary)
        tree = MemoryTree(files)
        addresses = addresses_of(index, tmp_path / "home")
        async with HttpClient(HttpConfig(trust_env=False, tries=1)) as http:
            metadata = RegistryMetadata(http, addresses)
            (unit,) = await drive(ECOSYSTEM.read_units(await tree.listing(), [lock]), tree, metadata)
            wanted = await drive(ECOSYSTEM.relock(unit, [remediation]), tree, metadata)
        assert isinstance(wanted, ToolRelock)
        relocker = Relocker(SubprocessRunner(), addresses, tools=BroughtTools(TOOLS[tool]))
        failure = await relocker.relock(wanted, files)

    assert isinstance(failure, RelockFailure)
    assert failure.reason == "tool-required"
    assert not canary.exists()
    assert LOGIN.partition(":")[2] not in failure.detail
