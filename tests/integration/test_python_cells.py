"""Every cell of the matrix of Python formats and strategies, on locks that the real tools make and check.

One project holds all cells: a declared package whose range admits the fix and
one whose range does not, the same in a group, under a marker and with an
extra; and packages below others, whose parents admit the fix, have a newer
release that does, or have none.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from dependfix_core.ecosystems.registry import FIXABLE
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, Built, RelockPolicy
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.relock import Relocker
from dependfix_core.trees import MemoryTree, drive
from fakes.brought_tools import BroughtTools
from fakes.planning import ALL, NOW
from fakes.python_index import Published, PythonIndex
from fakes.python_tools import DIALECTS, Declared, Dialect, addresses_of, check, locked_by_tool
from fakes.universe import alert

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

NAMES = (
    "direct-in",
    "direct-out",
    "direct-extra",
    "marked",
    "ranged",
    "below-in",
    "below-up",
    "below-stuck",
    "dev-in",
    "dev-out",
)
STRATEGIES = {
    "direct-in": "lock-in-range",
    "direct-out": "manifest-bump",
    "direct-extra": "lock-in-range",
    "marked": "lock-in-range",
    "ranged": "lock-in-range",
    "below-in": "lock-in-range",
    "below-up": "parent-refresh",
    "below-stuck": "override",
    "dev-in": "lock-in-range",
    "dev-out": "manifest-bump",
}
FORCING = {"uv", "pdm", "pdm-addresses"}
"""Dialects whose tool can force a version on a parent that does not admit it."""


def declared(dialect: Dialect) -> Declared:
    platform = "win32" if dialect.is_universal else "linux"
    return Declared(
        main=(
            "bystander",
            "direct-in>=1.0",
            "direct-out==1.0",
            "direct-extra[plus]>=1.0,<2",
            "ranged>=1.0",
            f"marked>=1.0 ; sys_platform == '{platform}'",
            "tree-in>=1.0",
            "tree-up>=1.0",
            "tree-stuck>=1.0",
        ),
        dev=("dev-in>=1.0", "dev-out==1.0"),
    )


def then() -> list[Published]:
    needs = {
        "tree-in": ("below-in>=1.0,<2",),
        "tree-up": ("below-up<1.1",),
        "tree-stuck": ("below-stuck<1.1",),
        "direct-extra": ('help_er>=1.0 ; extra == "plus"', "bystander"),
        "ranged": ('lowly>=0.5 ; python_version < "3.11"', 'lowly>=0.6 ; python_version >= "3.11"'),
    }
    names = ("bystander", "help-er", "lowly", *NAMES, "tree-in", "tree-up", "tree-stuck")
    return [
        Published(name=name, version="1.0", requires=needs.get(name, ()), requires_python=">=3.8", summary=f"{name}!")
        for name in names
    ]


def later() -> list[Published]:
    needs = {
        # Names and numbers are spelled in other ways than before.
        "direct-extra": ('Help.Er>=0.09.0 ; extra == "plus"', "Bystander>=0.05"),
        # Only one of the ranges makes the package below move along.
        "ranged": ('lowly>=0.5 ; python_version < "3.11"', 'lowly>=1.1 ; python_version >= "3.11"'),
    }
    more = [
        Published(
            name=name,
            version=version,
            requires_python=">=3.9",
            requires=needs.get(name, ()),
            summary=f"{name} {version}",
        )
        for name in NAMES
        for version in ("1.1", "1.2")
    ]
    more += [Published(name="tree-up", version="1.1", requires=("below-up>=1.1",), requires_python=">=3.8")]
    return [
        *more,
        Published(name="bystander", version="1.1"),
        *[Published(name=name, version="1.1", requires_python=">=3.8") for name in ("help-er", "lowly")],
    ]


async def fixed(
    dialect: Dialect,
    files: Mapping[str, bytes],
    alerts: tuple[Alert, ...],
    index: PythonIndex,
    home: Path,
    relock: RelockPolicy,
) -> tuple[Plan, Built]:
    tree = MemoryTree(files)

    def planned(listing: Listing) -> Step[Plan]:
        return plan_repository(alerts, listing, ALL, FIXABLE, repository="acme/made-up", now=NOW)

    addresses = addresses_of(index, home)
    async with HttpClient(HttpConfig(trust_env=False, tries=1)) as http:
        metadata = RegistryMetadata(http, addresses)
        plan = await drive(planned(await tree.listing()), tree, metadata)
        builder = Builder(
            ecosystems=FIXABLE,
            metadata=metadata,
            relocker=Relocker(SubprocessRunner(), addresses, tools=BroughtTools({_plain(dialect.tool): dialect.tool})),
            relock=relock,
        )
        return plan, await builder.build(plan, alerts, tree, planned)


def _plain(tool: str) -> str:
    return tool.removesuffix("-1")


def marked(name: str, relock: RelockPolicy) -> object:
    return pytest.param(name, relock, marks=pytest.mark.needs_tool(DIALECTS[name].tool))


BY_TOOL = [name for name in DIALECTS if not name.startswith("pylock") and name != "pdm-addresses"]


@pytest.mark.parametrize(
    ("name", "relock"),
    [marked(name, "in-process") for name in DIALECTS] + [marked(name, "tool") for name in BY_TOOL],
)
async def test_every_cell_is_fixed_and_the_tool_has_nothing_to_change(
    name: str, relock: RelockPolicy, tmp_path: Path
) -> None:
    dialect = DIALECTS[name]
    alerts = tuple(
        alert(number, package, "< 1.1", "1.1", manifest=dialect.lock, ecosystem="pip")
        for number, package in enumerate(NAMES, start=1)
    )
    with PythonIndex(then()) as index:
        files = locked_by_tool(dialect, declared(dialect), index, tmp_path)
        index.publish(later())
        plan, built = await fixed(dialect, files, alerts, index, tmp_path / "home", relock)
        after = {**files, **{change.path: change.after or b"" for change in built.changes.changes}}
        check(dialect, after, index, tmp_path)

    assert {why.detail for why in built.rejected.values()} == set()
    outcomes = {NAMES[one.alert - 1]: (one.outcome, one.reason) for one in plan.outcomes}
    stuck = ("fix", None) if name in FORCING else ("refuse", "override-unsupported")
    assert outcomes == {**dict.fromkeys(NAMES, ("fix", None)), "below-stuck": stuck}
    strategies = {NAMES[number - 1]: one.strategy for one in plan.remediations for number in one.alerts}
    assert strategies == {package: STRATEGIES[package] for package in NAMES if outcomes[package][0] == "fix"}
