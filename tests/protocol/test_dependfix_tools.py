"""The dependfix toolset over the loopback GitHub: what each tool answers, and what bad input gets."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import jsonschema
import pytest
from mcp import Client

from dependfix_core.model.alert import THRESHOLDS, Severity, Threshold
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Received, Reply
from fakes.github_server import NAMES, TOKEN, corpus, corpus_github, error_reply, errors, hosted
from fakes.served import answer_of, call, connected, settings_for

pytestmark = pytest.mark.anyio

SHOP = "octo-org/octo-shop"


@pytest.fixture
def github() -> Iterator[LoopbackGitHub]:
    with corpus_github(token=TOKEN) as service:
        yield service


@pytest.fixture(params=["auto", "legacy"])
async def client(github: LoopbackGitHub, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with connected(settings_for(github, tmp_path), mode=request.param) as session:
        yield session


@pytest.fixture
async def modern(github: LoopbackGitHub, tmp_path: Path) -> AsyncIterator[Client]:
    async with connected(settings_for(github, tmp_path)) as session:
        yield session


async def all_pages(client: Client, tool: str, key: str, **arguments: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """The items of every page, and the pages."""
    items, pages, cursor = [], [], ""
    while True:
        answer = await call(client, tool, **arguments, cursor=cursor)
        assert answer["ok"], answer
        assert len(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) <= 24_000
        pages.append(answer)
        items += answer[key]
        cursor = answer.get("nextCursor", "")
        if not cursor:
            return items, pages


# --- alerts ---------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", THRESHOLDS)
async def test_every_alert_of_the_corpus_is_accounted_for(modern: Client, threshold: Threshold) -> None:
    for name in NAMES:
        plain = Counter(
            (alert["number"], Severity.of(alert["security_vulnerability"]["severity"]).value)
            for alert in corpus(name)
            if alert["state"] == "open" and Severity.of(alert["security_vulnerability"]["severity"]).meets(threshold)
        )

        items, pages = await all_pages(
            modern, "fetch_alerts", "alerts", repo=f"octo-org/{name}", severity=threshold, limit=9
        )

        assert Counter((alert["id"], alert["severity"]) for alert in items) == plain
        assert sum(page["returned"] for page in pages) == sum(plain.values())
        assert all(page["complete"] for page in pages)


async def test_all_states_and_ecosystems_equal_a_plain_count(modern: Client) -> None:
    found: Counter[str] = Counter()
    for name in NAMES:
        items, _ = await all_pages(
            modern, "fetch_alerts", "alerts", repo=f"octo-org/{name}", state="all", sort="created", limit=50
        )
        found.update(alert["packageEcosystem"] for alert in items)

    plain = Counter(
        (alert.get("dependency", {}).get("package") or alert["security_vulnerability"]["package"])["ecosystem"]
        for name in NAMES
        for alert in corpus(name)
    )
    assert found == plain


async def test_first_page_is_most_severe_first_and_says_that_more_follow(client: Client) -> None:
    answer = await call(client, "fetch_alerts", repo=SHOP, limit=3)

    assert answer["returned"] == 3
    assert [alert["severity"] for alert in answer["alerts"]] == ["critical"] * 3
    assert answer["alerts"][0] | {"ageDays": 0} == answer["alerts"][0] | {"ageDays": 0}
    assert answer["nextCursor"]
    assert answer["total"] == 20


async def test_page_of_large_alerts_ends_early_and_goes_on(github: LoopbackGitHub, tmp_path: Path) -> None:
    shop = hosted("octo-shop")
    for alert in shop.alerts:
        alert["security_advisory"]["summary"] = "long " * 400
        alert["dismissed_comment"] = "comment " * 400
    with LoopbackGitHub([shop], token=TOKEN) as service:
        async with connected(settings_for(service, tmp_path)) as session:
            items, pages = await all_pages(session, "fetch_alerts", "alerts", repo=SHOP, state="all", limit=100)

    assert sorted(alert["id"] for alert in items) == sorted(alert["number"] for alert in shop.alerts)
    assert len({alert["id"] for alert in items}) == len(items)
    assert len(pages) > 1


async def test_filters_are_those_of_the_contract(modern: Client) -> None:
    async def numbers(**arguments: Any) -> set[int]:
        answer = await call(modern, "fetch_alerts", repo=SHOP, state="all", limit=100, **arguments)
        return {alert["id"] for alert in answer["alerts"]}

    everything = await numbers()
    assert await numbers(package="lodash") < everything
    assert await numbers(manifest="package-lock.json") < everything
    assert await numbers(scope="development") < everything
    assert await numbers(ecosystem="pip") == set()
    assert await numbers(since="2100-01-01") == set()


@pytest.mark.parametrize(
    ("tool", "arguments", "argument"),
    [
        ("fetch_alerts", {"repo": "octo"}, "repo"),
        ("fetch_alerts", {}, "repo"),
        ("fetch_alerts", {"repo": "https://elsewhere.example/a/b"}, "repo"),
        ("fetch_alerts", {"repo": SHOP, "severity": "severe"}, "severity"),
        ("fetch_alerts", {"repo": SHOP, "severity": ""}, "severity"),
        ("fetch_alerts", {"repo": SHOP, "state": "closed"}, "state"),
        ("fetch_alerts", {"repo": SHOP, "scope": "prod"}, "scope"),
        ("fetch_alerts", {"repo": SHOP, "since": "yesterday"}, "since"),
        ("fetch_alerts", {"repo": SHOP, "sort": "age"}, "sort"),
        ("fetch_alerts", {"repo": SHOP, "limit": 0}, "limit"),
        ("fetch_alerts", {"repo": SHOP, "limit": 101}, "limit"),
        ("fetch_alerts", {"repo": SHOP, "limit": "many"}, "limit"),
        ("fetch_alerts", {"repo": SHOP, "cursor": "x"}, "cursor"),
        ("fetch_alerts", {"repo": SHOP, "ecosystem": "a;b"}, "ecosystem"),
        ("fetch_alerts", {"repo": SHOP, "limits": 3}, "limits"),
        ("alert_overview", {"owner": []}, "owner"),
        ("alert_overview", {"owner": "octo-org/x"}, "owner"),
        ("alert_overview", {"owner": ["octo org"]}, "owner"),
        ("alert_overview", {"owner": ["octo-org"], "groupBy": "file"}, "groupBy"),
        ("alert_overview", {"owner": ["octo-org"], "cursor": "bm8"}, "cursor"),
        ("run_scan", {"repo": SHOP, "mode": "destroy"}, "mode"),
        ("run_scan", {"repo": SHOP, "workDir": "relative"}, "workDir"),
        ("run_scan", {"repo": SHOP, "workDir": "/no/such/folder"}, "workDir"),
        ("run_scan", {"repo": SHOP, "alerts": ["one"]}, "alerts"),
        ("run_scan", {"repo": SHOP, "maxAlerts": -1}, "maxAlerts"),
        ("plan_fixes", {"repo": "no"}, "repo"),
        ("get_last_report", {"runId": "../../etc/passwd"}, "runId"),
        ("get_last_report", {"section": "everything"}, "section"),
        ("get_last_report", {"cursor": "WyJ4IiwiYSIsMV0"}, "cursor"),
        ("history", {"cursor": "%%%"}, "cursor"),
        ("history", {"repo": "no"}, "repo"),
        ("discover_repos", {"owner": ["octo-org"], "cursor": "WzFd"}, "cursor"),
    ],
)
async def test_bad_input_names_the_argument_and_a_right_example(
    modern: Client, github: LoopbackGitHub, tool: str, arguments: dict[str, Any], argument: str
) -> None:
    answer = await call(modern, tool, **arguments)

    assert (answer["ok"], answer["code"]) == (False, "invalid_arguments"), answer
    assert answer["details"]["argument"] == argument
    assert argument in answer["error"]
    assert answer["hint"]
    assert github.received == [] or tool == "run_scan"


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("fetch_alerts", {"repo": SHOP, "package": 1}, 'For example package="lodash".'),
        ("fetch_alerts", {"repo": SHOP, "manifest": 1}, 'For example manifest="package-lock.json".'),
        ("fetch_alerts", {"repo": SHOP, "ecosystem": 1}, 'For example ecosystem="npm".'),
        ("plan_fixes", {"repo": SHOP, "workDir": True}, 'For example workDir="/home/me/src/shop".'),
        ("plan_fixes", {"repo": SHOP, "alerts": ""}, "For example alerts=[7]."),
        ("run_scan", {"repo": SHOP, "packages": "x"}, 'For example packages=["lodash"].'),
        ("history", {"repo": 1}, 'For example repo="octo-org/octo-repo".'),
        ("discover_repos", {"owner": ["octo-org"], "include": "x"}, 'For example include=["api-*"].'),
    ],
)
async def test_wrong_type_is_answered_with_an_example_that_is_not_empty(
    modern: Client, tool: str, arguments: dict[str, Any], hint: str
) -> None:
    answer = await call(modern, tool, **arguments)

    assert (answer["code"], answer["hint"]) == ("invalid_arguments", hint)


async def test_cursor_of_another_call_is_refused(modern: Client) -> None:
    first = await call(modern, "fetch_alerts", repo=SHOP, limit=2)
    cursor = first["nextCursor"]

    for other in ({"repo": "octo-org/octo-api"}, {"repo": SHOP, "severity": "high"}):
        answer = await call(modern, "fetch_alerts", **other, cursor=cursor)
        assert (answer["code"], answer["details"]) == ("invalid_arguments", {"argument": "cursor"})


@pytest.mark.parametrize("missing", [{}, {"repo": "not a name"}])
async def test_checkout_names_the_repository_that_was_meant(
    github: LoopbackGitHub, tmp_path: Path, missing: dict[str, str]
) -> None:
    checkout_of(tmp_path, "https://github.com/octo-org/octo-shop.git")

    async with connected(settings_for(github, tmp_path)) as session:
        answer = await call(session, "fetch_alerts", **missing)

    assert answer["code"] == "invalid_arguments"
    assert answer["details"] == {"argument": "repo", "checkout": SHOP}
    assert f"repo='{SHOP}'" in answer["hint"]


async def test_repository_outside_of_the_allowlist_is_refused_before_any_request(
    github: LoopbackGitHub, tmp_path: Path
) -> None:
    async with connected(settings_for(github, tmp_path, repos=("octo-org/octo-w*",))) as session:
        answer = await call(session, "fetch_alerts", repo=SHOP)
        allowed = await call(session, "fetch_alerts", repo="octo-org/octo-web")
        overview = await call(session, "alert_overview", owner=["octo-org"])

    assert answer["code"] == "invalid_arguments"
    assert allowed["ok"]
    assert {entry["repository"] for entry in overview["coverage"]} == {"octo-org/octo-weird", "octo-org/octo-web"}


CODES = {
    "no_token": "auth_missing",
    "bad_token": "auth_denied",
    "sso_required": "permission_denied",
    "missing_permission": "permission_denied",
    "missing_scope": "permission_denied",
    "user_not_allowed": "permission_denied",
    "org_policy": "policy_blocked",
    "blocked": "policy_blocked",
    "alerts_disabled": "alerts_disabled",
    "archived": "archived",
    "not_found": "not_found",
    "rate_limited": "rate_limited",
    "rate_limited_secondary": "rate_limited",
    "server_error": "github_error",
    "client_bug": "github_error",
    "invalid_parameter": "invalid_arguments",
}
READ_PATH = [
    entry
    for entry in errors()
    if entry["request"].split()[1].split("?")[0].endswith("/dependabot/alerts") and entry["class"] in CODES
]


@pytest.mark.parametrize("entry", READ_PATH, ids=lambda entry: entry["id"])
async def test_each_refusal_of_github_has_its_documented_code(entry: dict[str, Any], tmp_path: Path) -> None:
    with corpus_github() as service:
        service.script(r"/repos/octo-org/octo-shop/dependabot/alerts", *[error_reply(entry["id"])] * 20)
        async with connected(settings_for(service, tmp_path)) as session:
            with anyio.fail_after(10):
                answer = await call(session, "fetch_alerts", repo=SHOP, sort="created")
                scanned = await call(session, "run_scan", repo=SHOP)

    assert (answer["code"], scanned["code"]) == (CODES[entry["class"]],) * 2
    assert answer["hint"]
    if answer["code"] != "auth_missing":
        assert answer["details"]["status"] == entry["status"]
    if entry["class"].startswith("rate_limited"):
        assert answer["retryable"]
        assert answer["retryAfterSeconds"] > 0
    # A refusal is asked once; what may pass is tried again, three times at most; a filter falls back to all alerts.
    assert len(service.received) <= 2 * (3 if entry["class"] == "server_error" else 2)


async def test_missing_token_has_the_specified_text(tmp_path: Path, github: LoopbackGitHub) -> None:
    for tool, arguments in (
        ("fetch_alerts", {"repo": SHOP}),
        ("run_scan", {"repo": SHOP}),
        ("plan_fixes", {"repo": SHOP}),
        ("alert_overview", {"owner": ["octo-org"]}),
        ("discover_repos", {"owner": ["octo-org"]}),
    ):
        settings = settings_for(github, tmp_path, github_token=None, token_problem="GITHUB_TOKEN still reads like X.")
        async with connected(settings) as session:
            answer = await call(session, tool, **arguments)
        assert (answer["error"], answer["code"], answer["retryable"]) == ("GITHUB_TOKEN not set", "auth_missing", False)
        assert "still reads like" in answer["hint"]
    assert github.received == []


async def test_http_callers_do_not_get_the_processs_token(tmp_path: Path, github: LoopbackGitHub) -> None:
    async with connected(settings_for(github, tmp_path, transport="http")) as session:
        refused = await call(session, "fetch_alerts", repo=SHOP)
    async with connected(settings_for(github, tmp_path, transport="http", share_token=True)) as session:
        shared = await call(session, "fetch_alerts", repo=SHOP)

    assert (refused["code"], shared["ok"]) == ("auth_missing", True)
    assert "--share-token" in refused["hint"]


# --- overview and discovery --------------------------------------------------------------


async def test_overview_counts_what_a_plain_count_counts(client: Client) -> None:
    plain: Counter[str] = Counter()
    by_repository: Counter[str] = Counter()
    for name in NAMES:
        for alert in corpus(name):
            if alert["state"] == "open":
                plain[Severity.of(alert["security_vulnerability"]["severity"]).value] += 1
                by_repository[f"octo-org/{name}"] += 1

    answer = await call(client, "alert_overview", owner=["octo-org"], limit=100)

    assert {key: count for key, count in answer["totals"].items() if key != "total" and count} == dict(plain)
    assert answer["totals"]["total"] == sum(plain.values())
    assert {group["key"]: group["alerts"] for group in answer["groups"]} == dict(by_repository)
    assert answer["measured"] == len(NAMES)
    assert answer["complete"] is True


@pytest.mark.parametrize("group_by", ["repository", "package", "advisory"])
async def test_groups_come_most_severe_first_and_page_by_page(modern: Client, group_by: str) -> None:
    whole = await call(modern, "alert_overview", owner=["octo-org"], groupBy=group_by, limit=100)
    groups, pages = await all_pages(modern, "alert_overview", "groups", owner=["octo-org"], groupBy=group_by, limit=4)

    ranks = [tuple(-group.get(s.value, 0) for s in Severity) for group in groups]
    assert ranks == sorted(ranks)
    assert groups[: len(whole["groups"])] == whole["groups"]
    assert len(pages) > 1
    assert sum(group["alerts"] for group in groups) == whole["totals"]["total"]


async def test_what_is_not_measured_is_not_free_of_alerts(tmp_path: Path) -> None:
    repositories = [
        hosted("octo-shop"),
        HostedRepository(full_name="octo-org/off", alerts_enabled=False),
        HostedRepository(full_name="octo-org/old", archived=True),
        HostedRepository(full_name="octo-org/fine"),
    ]
    with LoopbackGitHub(repositories, token=TOKEN, organizations=["octo-org"]) as service:
        async with connected(settings_for(service, tmp_path)) as session:
            answer = await call(session, "alert_overview", owner=["octo-org"])

    assert {entry["repository"]: entry["status"] for entry in answer["coverage"]} == {
        SHOP: "ok",
        "octo-org/fine": "ok",
        "octo-org/off": "disabled",
        "octo-org/old": "archived",
    }
    assert answer["measured"] == 2


async def test_one_unknown_owner_among_several_is_named(tmp_path: Path) -> None:
    with corpus_github(token=TOKEN, account="somebody") as service:
        async with connected(settings_for(service, tmp_path)) as session:
            answer = await call(session, "alert_overview", owner=["octo-org", "nobody-here"])
            alone = await call(session, "alert_overview", owner=["nobody-here"])

    assert answer["ok"]
    assert answer["complete"] is False
    assert [problem["repository"] for problem in answer["problems"]] == ["nobody-here"]
    assert alone["code"] == "not_found"


async def test_owner_of_whom_nothing_is_seen_is_not_free_of_alerts(modern: Client) -> None:
    answer = await call(modern, "alert_overview", owner=["nobody-here"])

    assert (answer["complete"], answer["totals"]["total"], answer["measured"]) == (False, 0, 0)
    assert [problem["repository"] for problem in answer["problems"]] == ["nobody-here"]


async def test_repositories_are_discovered_page_by_page_with_their_state(tmp_path: Path) -> None:
    repositories = [
        HostedRepository(full_name="octo-org/b", files={".github/dependabot.yml": b"version: 2\n"}, topics=("web",)),
        HostedRepository(full_name="octo-org/A", alerts_enabled=False),
        HostedRepository(full_name="octo-org/c", archived=True, fork=True),
    ]
    with LoopbackGitHub(repositories, token=TOKEN, organizations=["octo-org"]) as service:
        async with connected(settings_for(service, tmp_path)) as session:
            items, _ = await all_pages(session, "discover_repos", "repositories", owner=["octo-org"], limit=1)
            topical = await call(session, "discover_repos", owner=["octo-org"], topics=["web"], probeDependabot=False)
            excluded = await call(session, "discover_repos", owner=["octo-org"], exclude=["b", "c"])

    assert [(item["fullName"], item.get("hasDependabotConfig"), item.get("alertsEnabled")) for item in items] == [
        ("octo-org/A", False, False),
        ("octo-org/b", True, True),
        ("octo-org/c", False, False),
    ]
    assert items[2]["archived"]
    assert items[2]["fork"]
    assert (topical["count"], [item["fullName"] for item in topical["repositories"]]) == (1, ["octo-org/b"])
    assert "alertsEnabled" not in topical["repositories"][0]
    assert [item["fullName"] for item in excluded["repositories"]] == ["octo-org/A"]


# --- scans, reports, plans ---------------------------------------------------------------


async def test_scan_accounts_for_every_alert_and_writes_a_report(client: Client, tmp_path: Path) -> None:
    answer = await call(client, "run_scan", repo=SHOP, severity="all")

    opened = {alert["number"] for alert in corpus("octo-shop") if alert["state"] == "open"}
    summary = answer["summary"]
    assert answer["status"] == "done"
    assert summary["alertsFound"] == len(opened)
    assert summary["alertsFound"] == sum(
        summary[f"alerts{name}"]
        for name in ("Fixed", "Partial", "Failed", "Skipped", "Converged", "Truncated", "Planned")
    )
    (report,) = (tmp_path / "reports").glob("*.json")
    stored = json.loads(report.read_text(encoding="utf-8"))
    assert answer["reportFiles"][0] == {"format": "json", "path": str(report)}
    assert {alert["id"] for alert in stored["alerts"]} == opened
    assert {outcome["alert"] for outcome in stored["plan"]["outcomes"]} == opened
    assert sorted(path.suffix for path in (tmp_path / "reports").glob("dependfix-report-*")) == [
        ".html",
        ".json",
        ".md",
        ".sarif",
    ]


async def test_policy_is_accounted_for_in_the_outcomes(modern: Client) -> None:
    answer = await call(modern, "run_scan", repo=SHOP, severity="high", maxAlerts=2)
    reasons = Counter(alert.get("reason") for alert in answer["alerts"])
    chosen = await call(modern, "run_scan", repo=SHOP, severity="all", alerts=[3], packages=[])

    assert answer["summary"]["alertsTruncated"] > 0
    assert reasons["below-threshold"] > 0
    assert reasons["truncated"] == answer["summary"]["alertsTruncated"]
    assert Counter(alert.get("reason") == "filtered" for alert in chosen["alerts"])[False] == 1


async def test_report_is_found_again_whole_in_sections_and_as_resources(client: Client) -> None:
    scanned = await call(client, "run_scan", repo=SHOP, severity="all")
    run_id = scanned["runId"]

    newest = await call(client, "get_last_report", repo=SHOP)
    by_id = await call(client, "get_last_report", runId=run_id)
    listed = await call(client, "history", repo=SHOP)
    assert newest["report"]["runId"] == by_id["report"]["runId"] == run_id
    assert by_id["file"] == scanned["reportFiles"][0]["path"]
    assert [run["runId"] for run in listed["runs"]] == [run_id]
    assert listed["runs"][0]["summary"] == scanned["summary"]

    whole = json.loads((await client.read_resource(f"dependfix://reports/{run_id}")).contents[0].text)  # type: ignore[union-attr]  # all are texts
    for section in ("alerts", "outcomes", "remediations", "repositories", "actions", "errors"):
        found, cursor = [], ""
        while True:
            page = await call(client, "get_last_report", runId=run_id, section=section, cursor=cursor)
            part = page["report"]["plan"] if section in ("outcomes", "remediations") else page["report"]
            found += part[section]
            cursor = page.get("nextCursor", "")
            if not cursor:
                break
        expected = (whole["plan"] if section in ("outcomes", "remediations") else whole)[section]
        assert [drop_null(item) for item in found] == [drop_null(item) for item in expected]
    latest = json.loads((await client.read_resource("dependfix://reports/latest")).contents[0].text)  # type: ignore[union-attr]  # all are texts
    assert latest == whole
    kinds = [
        (await client.read_resource(f"dependfix://reports/{run_id}.{end}")).contents[0].mime_type
        for end in ("html", "md")
    ]
    assert kinds == ["text/html", "text/markdown"]


def drop_null(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value is not None}


async def test_no_report_yet_is_no_failure(client: Client) -> None:
    assert await call(client, "get_last_report") == {"ok": True, "found": False}
    assert await call(client, "history") == {"ok": True, "runs": []}


async def test_reports_of_the_original_are_read(modern: Client, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "data" / "dependfix-ts"
    (tmp_path / "reports").mkdir()
    for path in source.glob("*.json"):
        (tmp_path / "reports" / path.name).write_bytes(path.read_bytes())

    newest = await call(modern, "get_last_report")
    listed = await call(modern, "history", limit=1)

    assert newest["report"]["runId"] == "dependfix-mx3j26vz-on22e1"
    assert newest["report"]["config"]["codeScanningEnabled"] is False
    assert [run["runId"] for run in listed["runs"]] == ["dependfix-mx3j26vz-on22e1"]
    assert (await call(modern, "history", limit=1, cursor=listed["nextCursor"]))["runs"][0]["durationMs"] == 93


async def test_plan_is_kept_and_found_under_its_name(client: Client) -> None:
    answer = await call(client, "plan_fixes", repo=SHOP, severity="all")
    again = await call(client, "plan_fixes", repo=SHOP, severity="all")

    assert answer["planId"] == again["planId"]
    assert answer["planUri"] == f"dependfix://plans/{answer['planId']}"
    stored = json.loads((await client.read_resource(answer["planUri"])).contents[0].text)  # type: ignore[union-attr]  # all are texts
    assert stored["planId"] == answer["planId"]
    opened = [alert["number"] for alert in corpus("octo-shop") if alert["state"] == "open"]
    assert [outcome["alert"] for outcome in stored["outcomes"]] == sorted(opened)


async def test_completions_know_runs_plans_and_repositories(client: Client) -> None:
    from mcp.types import ResourceTemplateReference

    run_id = (await call(client, "run_scan", repo=SHOP))["runId"]
    plan_id = (await call(client, "plan_fixes", repo=SHOP))["planId"]

    async def complete(uri: str, name: str, value: str) -> list[str]:
        reference = ResourceTemplateReference(type="ref/resource", uri=uri)
        return (await client.complete(reference, {"name": name, "value": value})).completion.values

    assert await complete("dependfix://reports/{runId}", "runId", run_id[:4]) == [run_id]
    assert plan_id in await complete("dependfix://plans/{planId}", "planId", "")
    assert await complete("dependfix://reports/{runId}", "repo", "octo") == [SHOP]
    assert await complete("dependfix://reports/{runId}", "other", "") == []


def checkout_of(folder: Path, remote: str) -> Path:
    """A git checkout with a manifest."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    subprocess.run(["git", "remote", "add", "origin", remote], cwd=folder, check=True)
    (folder / "package.json").write_text('{"name": "shop"}', encoding="utf-8")
    return folder


async def ended(session: Client, run_id: str) -> dict[str, Any]:
    """The report of a run, once it has ended."""
    with anyio.fail_after(20):
        while True:
            answer = await call(session, "get_last_report", runId=run_id)
            if answer["status"] != "running":
                return answer
            await anyio.lowlevel.checkpoint()


class Slow(LoopbackGitHub):
    """Holds the alerts back until it is let go."""

    def __init__(self) -> None:
        super().__init__([hosted("octo-shop")], token=TOKEN)
        self.go_on = threading.Event()
        self.responders.append(self._hold)

    def _hold(self, request: Received) -> Reply | None:
        if request.path.endswith("/alerts"):
            self.go_on.wait(20)
        return None


async def test_long_scan_goes_on_in_the_background(tmp_path: Path) -> None:
    with Slow() as service:
        async with connected(settings_for(service, tmp_path, answer_within_s=0)) as session:
            begun = await call(session, "run_scan", repo=SHOP)
            running = await call(session, "get_last_report", runId=begun["runId"])
            service.go_on.set()
            done = await ended(session, begun["runId"])

    assert (begun["status"], running["status"], done["status"]) == ("running", "running", "done")
    assert begun["runId"] in begun["hint"]
    assert done["report"]["summary"]["alertsFound"] == 20


async def test_run_that_fails_in_the_background_says_why(tmp_path: Path) -> None:
    with Slow() as service:
        service.script(
            r"/repos/octo-org/octo-shop/dependabot/alerts", *[Reply(status=404, body={"message": "Not Found"})] * 9
        )
        service.responders.reverse()
        async with connected(settings_for(service, tmp_path, answer_within_s=0)) as session:
            begun = await call(session, "run_scan", repo=SHOP)
            service.go_on.set()
            done = await ended(session, begun["runId"])

    assert done["status"] == "failed"
    assert done["failure"]["code"] in ("not_found", "network")


async def test_progress_of_a_long_scan_is_told(tmp_path: Path) -> None:
    told: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        service.go_on.set()

    with Slow() as service:
        async with connected(settings_for(service, tmp_path)) as session:
            answer = answer_of(await session.call_tool("run_scan", {"repo": SHOP}, progress_callback=note))

    assert answer["status"] == "done"
    assert told
    assert SHOP in told[0]


async def test_run_beyond_its_time_limit_is_given_up(tmp_path: Path) -> None:
    with Slow() as service:
        async with connected(settings_for(service, tmp_path, run_timeout_s=1)) as session:
            answer = await call(session, "run_scan", repo=SHOP)
            service.go_on.set()

    assert (answer["code"], answer["retryable"]) == ("timeout", True)
    assert not (tmp_path / "reports").exists()


async def test_unwritable_folders_lose_the_report_not_the_run(github: LoopbackGitHub, tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("in the way", encoding="utf-8")
    async with connected(settings_for(github, tmp_path)) as session:
        answer = await call(session, "run_scan", repo=SHOP)
        planned = await call(session, "plan_fixes", repo=SHOP)
        kept = await call(session, "get_last_report", runId=answer["runId"])

    assert answer["ok"]
    assert "reportUri" not in answer
    assert [error["stage"] for error in answer["errors"] if error["stage"] == "report"] == ["report"]
    assert planned["ok"]
    assert "planUri" not in planned
    assert kept["report"]["runId"] == answer["runId"]


async def test_scan_of_a_checkout_reads_its_files(github: LoopbackGitHub, tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "shop", "git@github.com:octo-org/octo-shop.git")

    async with connected(settings_for(github, tmp_path, workdir=checkout)) as session:
        here = await call(session, "run_scan", repo=SHOP, severity="all")
        elsewhere = await call(session, "run_scan", repo="octo-org/octo-api", severity="all")
        refused = await call(session, "run_scan", repo="octo-org/octo-api", workDir=str(checkout))
    async with connected(settings_for(github, tmp_path, workdir=checkout, roots=(tmp_path / "other",))) as session:
        outside = await call(session, "run_scan", repo=SHOP, severity="all")
        named = await call(session, "run_scan", repo=SHOP, workDir=str(checkout))

    assert here["checkout"]["path"] == str(checkout)
    assert here["checkout"]["branch"] == "main"
    assert "checkout" not in elsewhere
    assert (refused["code"], refused["details"]["found"]) == ("workspace_mismatch", [SHOP])
    assert "checkout" not in outside
    assert (named["code"], named["details"]) == ("invalid_arguments", {"argument": "workDir"})


async def test_large_result_sheds_in_order_and_counts_everything(tmp_path: Path) -> None:
    shop = hosted("octo-shop")
    template = shop.alerts[0]
    shop.alerts = [json.loads(json.dumps(template)) | {"number": number, "state": "open"} for number in range(1, 401)]
    with LoopbackGitHub([shop], token=TOKEN) as service:
        async with connected(settings_for(service, tmp_path)) as session:
            answer = await call(session, "run_scan", repo=SHOP, severity="all")
            planned = await call(session, "plan_fixes", repo=SHOP, severity="all")

    assert answer["summary"]["alertsFound"] == 400
    assert answer["truncated"]["alerts"] == 400 - len(answer["alerts"])
    assert len(answer["plan"]["outcomes"]) + answer["truncated"].get("outcomes", 0) == 400
    assert len(json.dumps(answer, separators=(",", ":"))) <= 24_000
    assert planned["truncated"]["outcomes"] == 400 - len(planned["plan"]["outcomes"])
    assert len(json.dumps(planned, separators=(",", ":"))) <= 24_000


async def test_every_answer_fits_its_schema(modern: Client) -> None:
    tools = {tool.name: tool.output_schema for tool in (await modern.list_tools()).tools}
    answers: list[tuple[str, dict[str, Any]]] = [
        ("fetch_alerts", {"repo": SHOP}),
        ("fetch_alerts", {"repo": "octo-org/none"}),
        ("alert_overview", {"owner": ["octo-org"], "groupBy": "advisory"}),
        ("plan_fixes", {"repo": SHOP, "severity": "all"}),
        ("run_scan", {"repo": SHOP, "severity": "all"}),
        ("get_last_report", {}),
        ("get_last_report", {"section": "alerts"}),
        ("history", {}),
        ("discover_repos", {"owner": ["octo-org"]}),
    ]
    for tool, arguments in answers:
        schema = tools[tool]
        assert schema is not None
        jsonschema.Draft202012Validator(schema).validate(await call(modern, tool, **arguments))


async def test_read_only_tools_change_no_checkout(github: LoopbackGitHub, tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "shop", "git@github.com:octo-org/octo-shop.git")

    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in checkout.rglob("*") if path.is_file()}

    before = state()
    async with connected(settings_for(github, tmp_path, workdir=checkout, read_only=True)) as session:
        for tool in ("fetch_alerts", "plan_fixes", "run_scan"):
            assert (await call(session, tool, repo=SHOP))["ok"]

    assert state() == before


async def test_two_scans_at_once_are_two_reports(modern: Client, tmp_path: Path) -> None:
    found: list[str] = []

    async def one() -> None:
        found.append((await call(modern, "run_scan", repo=SHOP))["runId"])

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)

    assert len(set(found)) == 4
    assert len(list((tmp_path / "reports").glob("*.sarif"))) == 4
