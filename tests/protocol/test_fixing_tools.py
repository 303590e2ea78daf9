"""Writing tools through the MCP door: fixes land in the checkout, and what does not hold leaves it as it was."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client
from mcp.types import ElicitResult

from dependfix_mcp.server import build_server
from fakes.served import call, connected
from fakes.storefront import REPO, Storefront, files, git, storefront

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Storefront]:
    with storefront(tmp_path) as found:
        yield found


def locked(shop: Storefront) -> dict[str, str]:
    lock = json.loads((shop.top / "package-lock.json").read_bytes())
    return {place: entry["version"] for place, entry in lock["packages"].items() if place}


def is_untouched(shop: Storefront) -> bool:
    return git(shop.top, "status", "--porcelain") == ""


NPM_DIRECT = {"alerts": [1, 2, 3, 4, 5, 6, 7, 8]}


async def test_a_fix_lands_in_the_checkout_and_every_alert_is_counted_once(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", **NPM_DIRECT)

    assert answer["ok"], answer
    summary = answer["summary"]
    parts = ("Fixed", "Partial", "Failed", "Skipped", "Converged", "Truncated", "Planned")
    assert summary["alertsFound"] == sum(summary[f"alerts{part}"] for part in parts) == 18
    assert summary["alertsFixed"] == 8
    versions = locked(shop)
    assert versions["node_modules/lodash"] == "4.17.21"
    assert versions["node_modules/axios"] == "0.21.2"
    assert versions["node_modules/minimist"] == "1.2.6"
    assert b'"minimist": "1.2.6"' in (shop.top / "package.json").read_bytes()
    assert git(shop.top, "status", "--porcelain").splitlines() == [" M package-lock.json", " M package.json"]
    assert answer["nextSteps"] == [
        {"command": "npm ci", "folder": ".", "why": "installs what package-lock.json says now"}
    ]
    assert {file["format"] for file in answer["reportFiles"]} == {"json", "md", "html", "sarif"}


async def test_planning_after_a_fix_has_nothing_left_to_do(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        await call(client, "run_scan", repo=REPO, mode="fix", severity="all", **NPM_DIRECT)
        git(shop.top, "commit", "-qam", "fixed")
        again = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", **NPM_DIRECT)

    assert again["summary"]["alertsConverged"] == 8
    assert again["plan"].get("remediations", []) == []
    assert is_untouched(shop)


async def test_a_dry_run_shows_the_diff_and_writes_nothing(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", dryRun=True, alerts=[8])

    assert answer["summary"]["alertsPlanned"] == 1
    diffs = [action.get("diff", "") for action in answer["actions"]]
    assert any('+    "minimist": "1.2.6"' in diff for diff in diffs)
    assert is_untouched(shop)


async def test_exactly_the_plan_that_was_looked_at_is_applied(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        planned = await call(client, "plan_fixes", repo=REPO, severity="all", alerts=[1, 2, 3])
        seen = len(shop.registry.seen)
        applied = await call(client, "run_scan", repo=REPO, mode="fix", planId=planned["planId"])

    assert '+      "version": "4.17.21",' in planned["plan"]["diff"]
    assert applied["summary"]["alertsFixed"] == 3
    assert applied["plan"]["planId"] == planned["planId"]
    assert len(shop.registry.seen) == seen, "the plan's own records are enough"
    diff = git(shop.top, "diff", "--no-color", "--no-ext-diff")
    changed = {line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")}
    shown = planned["plan"]["diff"].splitlines()
    assert changed == {line for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")}


async def test_a_plan_for_other_files_or_alerts_is_stale(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        planned = await call(client, "plan_fixes", repo=REPO, severity="all", alerts=[1])
        lock = shop.top / "package-lock.json"
        lock.write_bytes(lock.read_bytes() + b"\n")
        edited = await call(client, "run_scan", repo=REPO, mode="fix", planId=planned["planId"])
        git(shop.top, "checkout", "-q", ".")
        shop.hosted.alerts.pop()
        fewer = await call(client, "run_scan", repo=REPO, mode="fix", planId=planned["planId"])
        unknown = await call(client, "run_scan", repo=REPO, mode="fix", planId="nothing-like-it")

    assert (edited["code"], fewer["code"]) == ("stale_plan", "stale_plan")
    assert (unknown["code"], unknown["details"]["argument"]) == ("invalid_arguments", "planId")
    assert is_untouched(shop)


async def test_uncommitted_changes_stop_a_fix_unless_allowed(shop: Storefront) -> None:
    manifest = shop.top / "package.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"storefront-api", b"storefront-two"))
    lock = shop.top / "package-lock.json"
    lock.write_bytes(lock.read_bytes().replace(b"storefront-api", b"storefront-two"))
    before = manifest.read_bytes()
    async with connected(shop.settings) as client:
        refused = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[8])
        unchanged = manifest.read_bytes()
        allowed = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[8], allowDirty=True)

    assert refused["code"] == "dirty_checkout"
    assert refused["details"]["files"] == ["package-lock.json", "package.json"]
    assert unchanged == before
    assert allowed["summary"]["alertsFixed"] == 1


async def test_the_operators_command_decides_and_a_refused_fix_leaves_no_trace(tmp_path: Path) -> None:
    with storefront(tmp_path, verify=("false",)) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[1, 2, 3])

        assert answer["summary"]["alertsFailed"] == 3
        assert answer["errors"][-1]["category"] == "verification-failed"
        assert is_untouched(shop)


async def test_a_fix_needs_a_checkout_of_the_asked_repository(shop: Storefront, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with connected(shop.settings) as client:
        answer = await call(client, "run_scan", repo=REPO, mode="fix", workDir=str(other))

    assert answer["code"] == "workspace_mismatch"


async def test_read_only_servers_have_no_way_to_write(tmp_path: Path) -> None:
    with storefront(tmp_path, read_only=True) as shop:
        async with connected(shop.settings) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            answer = await call(client, "run_scan", repo=REPO, mode="fix")

        assert "fix_dependency" not in tools
        assert tools["run_scan"].input_schema["properties"]["mode"]["enum"] == ["report-only"]
        assert answer["code"] == "invalid_arguments"
        assert is_untouched(shop)


# --- one dependency -------------------------------------------------------------------


async def test_a_direct_dependency_goes_to_the_given_version(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "fix_dependency", repo=REPO, packageName="minimist", targetVersion="1.2.8")

    assert answer["success"], answer
    assert (answer["fromVersion"], answer["toVersion"], answer["strategy"]) == ("1.2.5", "1.2.8", "manifest-bump")
    assert answer["resolvedAlerts"] == [8]
    assert answer["verification"] == "passed"
    assert locked(shop)["node_modules/minimist"] == "1.2.8"
    assert [change["path"] for change in answer["changes"]] == ["package-lock.json", "package.json"]


async def test_a_transitive_dependency_goes_to_the_given_version(shop: Storefront) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "fix_dependency", repo=REPO, packageName="follow-redirects", targetVersion="1.14.8")

    assert answer["success"], answer
    assert (answer["strategy"], answer["isMajor"]) == ("lock-in-range", False)
    assert locked(shop)["node_modules/follow-redirects"] == "1.14.8"


@pytest.mark.parametrize(
    ("package", "target", "reason"),
    [
        ("lodash", "4.17.15", "already-at-target"),
        ("lodash", "4.17.4", "downgrade"),
        ("lodash", "4.99.0", "version-not-found"),
        ("lodash", "4.17.19", "still-vulnerable"),
    ],
)
async def test_a_refused_target_has_its_reason_and_writes_nothing(
    shop: Storefront, package: str, target: str, reason: str
) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "fix_dependency", repo=REPO, packageName=package, targetVersion=target)

    assert (answer["ok"], answer["success"], answer["reason"]) == (True, False, reason)
    assert is_untouched(shop)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"packageName": "not-in-there", "targetVersion": "1.0.0"}, "packageName"),
        ({"packageName": "lodash", "targetVersion": "latest"}, "targetVersion"),
        ({"packageName": "lodash", "targetVersion": "4.17.21", "manifestPath": "nowhere/package.json"}, "manifestPath"),
        ({"packageName": "lodash", "targetVersion": "4.17.21", "ecosystem": "fortran"}, "ecosystem"),
    ],
)
async def test_bad_arguments_of_fix_dependency_are_named(
    shop: Storefront, arguments: dict[str, Any], argument: str
) -> None:
    async with connected(shop.settings) as client:
        answer = await call(client, "fix_dependency", repo=REPO, **arguments)

    assert (answer["code"], answer["details"]["argument"]) == ("invalid_arguments", argument)
    assert answer["hint"]


async def test_a_name_in_several_places_lists_the_candidates(shop: Storefront) -> None:
    (shop.top / "web").mkdir()
    for path, content in files().items():
        if "/" not in path:
            (shop.top / "web" / path).write_bytes(content)
    async with connected(shop.settings) as client:
        answer = await call(client, "fix_dependency", repo=REPO, packageName="lodash", targetVersion="4.17.21")

    assert answer["details"]["candidates"] == [
        {"manifestPath": "package-lock.json", "ecosystem": "npm"},
        {"manifestPath": "web/package-lock.json", "ecosystem": "npm"},
    ]


async def test_without_a_token_one_dependency_is_fixed_with_a_warning(tmp_path: Path) -> None:
    with storefront(tmp_path, github_token=None) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "fix_dependency", repo=REPO, packageName="lodash", targetVersion="4.17.21")

        assert answer["success"], answer
        assert answer["warning"].startswith("GITHUB_TOKEN not set")
        assert locked(shop)["node_modules/lodash"] == "4.17.21"


# --- confirmation ---------------------------------------------------------------------


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("action", "proceed", "writes"), [("accept", True, True), ("accept", False, False), ("decline", None, False)]
)
async def test_with_confirm_the_user_decides(
    tmp_path: Path, era: str, action: str, proceed: bool | None, *, writes: bool
) -> None:
    asked: list[str] = []

    async def ask(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        content = {"proceed": proceed} if proceed is not None else None
        return ElicitResult(action=action, content=content)

    with storefront(tmp_path, confirm=True) as shop:
        async with Client(build_server(shop.settings), mode=era, elicitation_callback=cast("Any", ask)) as client:
            answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[1])
            await call(client, "run_scan", repo=REPO)

        assert asked == [f"Fix the open alerts of {REPO} in its checkout?"]
        assert answer["ok"] is writes
        assert is_untouched(shop) is not writes
        if not writes:
            assert answer["code"] == "confirmation_required"


async def test_with_confirm_a_client_that_cannot_ask_is_refused(tmp_path: Path) -> None:
    with storefront(tmp_path, confirm=True) as shop:
        async with connected(shop.settings) as client:
            scan = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[1])
            one = await call(client, "fix_dependency", repo=REPO, packageName="lodash", targetVersion="4.17.21")
            dry = await call(client, "run_scan", repo=REPO, mode="fix", severity="all", alerts=[1], dryRun=True)

        assert (scan["code"], one["code"], dry["ok"]) == ("confirmation_required", "confirmation_required", True)
        assert is_untouched(shop)
