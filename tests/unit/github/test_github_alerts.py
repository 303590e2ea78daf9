import json
import logging
import pickle
from collections import Counter
from typing import Any

import pytest

from dependfix_core.errors import (
    AlertsDisabledError,
    ArgumentError,
    AuthenticationError,
    DependfixError,
    GitHubError,
    NetworkError,
    NotFoundError,
    RateLimitedError,
)
from dependfix_core.github import AlertQuery, GitHubReader, StaticToken
from dependfix_core.http import CallBudget, HttpClient, HttpConfig, MemoryCache
from dependfix_core.model import THRESHOLDS, Severity, Threshold
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Received, Reply, refusal
from fakes.github_server import (
    NAMES,
    TOKEN,
    corpus,
    corpus_github,
    error,
    error_reply,
    errors,
    generated_alerts,
    hosted,
    numbers,
    reader,
)
from fakes.still_clock import StillClock

pytestmark = pytest.mark.anyio

SHOP = "octo-org/octo-shop"
ALERTS_PATH = r".*/dependabot/alerts"
EVERYTHING = AlertQuery(states=())
KEPT_AT = {
    "critical": {"critical"},
    "high": {"critical", "high"},
    "medium": {"critical", "high", "medium"},
    "low": {"critical", "high", "medium", "low"},
    "all": {"critical", "high", "medium", "low"},
}


def plain_count(threshold: str, state: str | None) -> Counter[tuple[str, str, str]]:
    """(repository, ecosystem, severity) → alerts, counted in the JSON without any of our code."""
    found: Counter[tuple[str, str, str]] = Counter()
    for name in NAMES:
        for alert in corpus(name):
            vulnerability = alert["security_vulnerability"]
            if (state is None or alert["state"] == state) and vulnerability["severity"] in KEPT_AT[threshold]:
                ecosystem = vulnerability["package"]["ecosystem"]
                found[(name, ecosystem, vulnerability["severity"])] += 1
    return found


@pytest.mark.parametrize("state", ["open", None])
@pytest.mark.parametrize("threshold", THRESHOLDS)
async def test_counts_equal_a_plain_count_of_the_json(threshold: Threshold, state: str | None) -> None:
    query = AlertQuery(severity=threshold, states=(state,) if state else ())
    counted: Counter[tuple[str, str, str]] = Counter()

    with corpus_github() as service:
        async with reader(service) as github:
            for name in NAMES:
                listing = await github.list_alerts(f"octo-org/{name}", query)
                counted += Counter((name, a.ecosystem, a.severity.value) for a in listing.alerts)
                assert listing.complete
                assert listing.problems == ()

    assert counted == plain_count(threshold, state)


@pytest.mark.parametrize("with_cvss", [True, False])
async def test_both_api_versions_give_the_same_alerts(with_cvss: bool) -> None:
    repository = hosted("octo-web")
    if not with_cvss:
        for alert in repository.alerts:
            del alert["security_advisory"]["cvss"]
    version = "2022-11-28" if with_cvss else "2026-03-10"

    with LoopbackGitHub([repository]) as service:
        async with reader(service, api_version=version) as github:
            listing = await github.list_alerts(repository.full_name, EVERYTHING)

    assert service.received[0].headers["x-github-api-version"] == version
    scores = {alert["number"]: next((s for s in (v4(alert), v3(alert)) if s), None) for alert in corpus("octo-web")}
    assert {alert.number: alert.cvss_score for alert in listing.alerts} == scores


def v3(alert: dict[str, Any]) -> float:
    return float(alert["security_advisory"]["cvss_severities"]["cvss_v3"]["score"])


def v4(alert: dict[str, Any]) -> float:
    return float(alert["security_advisory"]["cvss_severities"]["cvss_v4"]["score"])


@pytest.mark.parametrize(("count", "pages"), [(0, 1), (1, 1), (100, 1), (101, 2), (250, 3)])
async def test_every_page_is_read(count: int, pages: int) -> None:
    seen: list[tuple[int, int]] = []
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(count))]) as service:
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP, on_page=lambda page, found: seen.append((page, found)))

    assert numbers(listing.alerts) == list(range(1, count + 1))
    assert (listing.complete, listing.pages, listing.requests) == (True, pages, pages)
    assert seen == [(page, min(count, 100 * page)) for page in range(1, pages + 1)]
    assert all("page" not in request.query for request in service.received)
    assert all(request.query["per_page"] == "100" for request in service.received)
    assert all(request.query["state"] == "open" for request in service.received)


async def test_cursor_is_sent_back_exactly_as_it_came() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(101))]) as service:
        async with reader(service) as github:
            await github.list_alerts(SHOP)
        link = f"/repositories/{service.repositories[SHOP].number}/dependabot/alerts?"

    assert service.received[1].headers["x-target"].startswith(link)
    assert "after=Y3Vyc29yOnYyOjAwMDAwMTAw" in service.received[1].headers["x-target"]


async def test_list_that_leads_back_ends_and_is_incomplete() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(3))]) as service:
        again = f'<{service.url}/repos/{SHOP}/dependabot/alerts?per_page=100&after=x>; rel="next"'
        service.script(ALERTS_PATH, Reply(body=generated_alerts(3), headers={"link": again}))
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert numbers(listing.alerts) == [1, 2, 3]
    assert (listing.complete, len(service.received)) == (False, 2)
    assert isinstance(listing.error, NetworkError)
    assert listing.error.details["kind"] == "link-loop"


async def test_next_page_on_another_host_is_not_asked_for() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service, LoopbackGitHub() as other:
        link = f'<{other.url}/repos/{SHOP}/dependabot/alerts?after=x>; rel="next"'
        service.script(ALERTS_PATH, Reply(body=generated_alerts(2), headers={"link": link}))
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert numbers(listing.alerts) == [1, 2]
    assert listing.complete is False
    assert listing.error is not None
    assert listing.error.details["kind"] == "foreign-link"
    assert other.received == []


async def test_redirect_to_another_host_carries_no_token() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service, LoopbackGitHub() as other:
        service.script(ALERTS_PATH, Reply(status=302, headers={"location": f"{other.url}/elsewhere"}))
        async with reader(service) as github:
            with pytest.raises(DependfixError):
                await github.list_alerts(SHOP)

    assert [request.path for request in other.received] == ["/elsewhere"]
    assert "authorization" not in other.received[0].headers


async def test_alert_that_comes_twice_counts_once_and_the_newer_one_stays() -> None:
    first, second = generated_alerts(2), generated_alerts(3)[1:]
    second[0]["dependency"]["manifest_path"] = "moved/package-lock.json"
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service:
        link = f'<{service.url}/repos/{SHOP}/dependabot/alerts?after=x>; rel="next"'
        service.script(ALERTS_PATH, Reply(body=first, headers={"link": link}), Reply(body=second))
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert numbers(listing.alerts) == [1, 2, 3]
    assert listing.alerts[1].manifest_path == "moved/package-lock.json"
    assert listing.complete


@pytest.mark.parametrize("identifier", ["500", "secondary-long", "401", "404", "503", "disabled"])
async def test_failure_on_a_later_page_keeps_what_was_read(identifier: str) -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(150))]) as service:
        service.script(ALERTS_PATH, None, error_reply(identifier))
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert numbers(listing.alerts) == list(range(1, 101))
    assert (listing.complete, listing.pages) == (False, 1)
    assert listing.error is not None
    assert listing.error.details["status"] == error(identifier)["status"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<html>Sign in</html>", "not-github"), (b'{"message": "hello"}', "not-github"), (b"[{", "not-github")],
)
async def test_success_that_is_no_list_is_no_empty_list(body: bytes, kind: str) -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service:
        service.script(ALERTS_PATH, Reply(body=body, headers={"content-type": "text/html"}))
        async with reader(service) as github:
            with pytest.raises(NetworkError) as caught:
                await github.list_alerts(SHOP)

    assert caught.value.details["kind"] == kind


async def test_strange_items_are_kept_and_reported() -> None:
    alerts: list[Any] = generated_alerts(3)
    alerts[0]["dependency"] = 17
    alerts[0]["security_vulnerability"]["package"] = None
    alerts[1]["security_vulnerability"]["severity"] = "apocalyptic"
    alerts[2]["state"] = "snoozed"
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service:
        service.script(ALERTS_PATH, Reply(body=[*alerts, None, {"number": {}}]))
        async with reader(service) as github:
            everything = await github.list_alerts(SHOP, EVERYTHING)
            high = await github.list_alerts(SHOP, AlertQuery(states=(), severity="low"))

    assert numbers(everything.alerts) == [1, 2, 3]
    assert [alert.severity for alert in everything.alerts] == [Severity.HIGH, Severity.UNKNOWN, Severity.LOW]
    assert everything.alerts[0].is_readable is False
    assert everything.alerts[2].state == "snoozed"
    assert [problem.number for problem in everything.problems] == [None, None, 1]
    assert everything.complete is False
    assert numbers(high.alerts) == [1, 3]
    assert [problem.number for problem in high.problems] == [None, None, 1, 2]


async def test_hostile_text_is_data() -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/octo-weird", EVERYTHING)

    assert len(listing.alerts) == len(corpus("octo-weird"))
    for alert in listing.alerts:
        shown = json.dumps([alert.summary, alert.package_name, alert.manifest_path, alert.dismissed_comment])
        assert not any(f"\\u{code:04x}" in shown for code in (*range(32), 0x202E, 0x2066, 0x200B, 0x7F))
        assert len(alert.summary) <= 300
    assert {alert.manifest_path for alert in listing.alerts} >= {"../outside/package.json", "dép/要求.txt", ""}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (AlertQuery.of(ecosystem="pip", package="Django"), {5}),
        (AlertQuery.of(ecosystem="PyPI", package="django"), {5}),
        (AlertQuery.of(package="pyyaml"), {10}),
        (AlertQuery.of(manifest="services/mailer/poetry.lock"), {3, 6}),
        (AlertQuery.of(manifest="services/mailer/poetry.lock,uv.lock", severity="high"), {6, 9}),
        (AlertQuery.of(scope="development"), {14}),
        (AlertQuery.of(scope="development", state="all"), {8, 14}),
        (AlertQuery.of(state="dismissed,auto_dismissed"), {8, 16}),
        (AlertQuery.of(state="fixed"), set()),
        (AlertQuery.of(severity="critical"), {5, 10}),
        (AlertQuery(relationships=("transitive",), classifications=("general",)), {3, 6, 9, 11}),
        (AlertQuery(has_patch=True, severity="critical"), {5, 10}),
        (AlertQuery(has_patch=True, severity="high"), {5, 6, 9, 10, 14}),
    ],
    ids=str,
)
async def test_filters_narrow_the_list(query: AlertQuery, wanted: set[int]) -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/octo-api", query)

    assert set(numbers(listing.alerts)) == wanted
    assert listing.complete


async def test_filters_hold_on_a_server_that_ignores_them() -> None:
    query = AlertQuery(
        states=("open",),
        severity="high",
        ecosystems=("pip",),
        relationships=("transitive",),
        epss_at_least=0.0,
        since="2020-01-01T00:00:00Z",
    )
    with corpus_github() as service:
        service.script(ALERTS_PATH, Reply(body=corpus("octo-api")))
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/octo-api", query)

    assert numbers(listing.alerts) == [6, 9]
    assert service.received[0].query["epss_percentage"] == ">=0"
    assert "since" not in service.received[0].query


@pytest.mark.parametrize(("ecosystem", "count"), [("actions", 4), ("erlang", 1), ("swift", 1), ("future", 0)])
async def test_ecosystem_that_the_server_refuses_is_filtered_here(ecosystem: str, count: int) -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/octo-mobile", AlertQuery.of(ecosystem=ecosystem))

    assert {alert.ecosystem for alert in listing.alerts} <= {ecosystem}
    assert (len(listing.alerts), listing.complete, len(listing.warnings)) == (count, True, 1)
    assert [request.query.get("ecosystem") for request in service.received] == [ecosystem, None]


async def test_other_wrong_filter_is_the_callers_fault() -> None:
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply("422"))
        async with reader(service) as github:
            with pytest.raises(ArgumentError) as caught:
                await github.list_alerts(SHOP, AlertQuery(ecosystems=("npm",)))

    assert caught.value.code == "invalid_arguments"
    assert len(service.received) == 1


async def test_renamed_repository_keeps_the_filters_and_tells_its_new_name() -> None:
    repository = hosted("octo-shop", old_names=("octo-org/old-shop",))
    with LoopbackGitHub([repository]) as service:
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/old-shop", AlertQuery(severity="critical"))
            page = await github.alert_page("octo-org/old-shop", AlertQuery(sort="created"), limit=2)

    assert (listing.repository, listing.renamed_to) == (SHOP, SHOP)
    assert {alert.repository for alert in listing.alerts} == {SHOP}
    assert {alert.severity for alert in listing.alerts} == {Severity.CRITICAL}
    assert {alert.state for alert in listing.alerts} == {"open"}
    assert f"octo-org/old-shop is now {SHOP}" in listing.warnings
    assert (page.renamed_to, {alert.repository for alert in page.alerts}) == (SHOP, {SHOP})
    followed = [r for r in service.received if r.path.startswith("/repositories/") and r.path.endswith("alerts")]
    assert followed[0].query["state"] == "open"
    assert followed[0].query["severity"] == "critical"


async def test_one_alert_by_number() -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            alert = await github.alert(SHOP, 5)
            with pytest.raises(NotFoundError):
                await github.alert(SHOP, 99)

    assert (alert.number, alert.package_name, alert.vulnerable_range) == (5, "semver", ">= 7.0.0, < 7.5.2")
    assert len(alert.other_ranges) == 2


@pytest.mark.parametrize("body", [[], 7, None])
async def test_one_alert_that_is_none(body: object) -> None:
    with corpus_github() as service:
        service.script(ALERTS_PATH + "/5", Reply(body=json.dumps(body).encode()))
        async with reader(service) as github:
            with pytest.raises(NetworkError):
                await github.alert(SHOP, 5)


async def read_all_pages(
    github: GitHubReader, query: AlertQuery, limit: int, *, stop_at: int | None = None
) -> list[int]:
    found: list[int] = []
    cursor: str | None = None
    for _ in range(100):
        page = await github.alert_page(SHOP, query, limit=limit, cursor=cursor)
        assert len(page.alerts) <= limit
        assert len(page.cursors) == len(page.alerts)
        taken = page.alerts if stop_at is None else page.alerts[:stop_at]
        found += numbers(taken)
        cursor = page.cursors[len(taken) - 1] if taken else page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("the cursor never ends")


@pytest.mark.parametrize("limit", [1, 7, 30, 100])
@pytest.mark.parametrize("sort", ["severity", "created", "updated", "epss"])
async def test_pages_give_every_alert_once_in_order(sort: str, limit: int) -> None:
    query = AlertQuery.of(sort=sort, severity="medium")
    with corpus_github() as service:
        async with reader(service, cache=MemoryCache()) as github:
            found = await read_all_pages(github, query, limit)
            cut = await read_all_pages(github, query, limit, stop_at=max(1, limit // 2))
            everything = await github.list_alerts(SHOP, query)

    by_number = {alert.number: alert for alert in everything.alerts}
    expected = query.sorted(everything.alerts)
    assert sorted(found) == sorted(cut) == numbers(everything.alerts)
    if sort == "epss":  # the server orders those with the same score in its own way
        assert [by_number[number].epss for number in found] == [alert.epss for alert in expected]
    else:
        assert found == cut == numbers(expected)


async def test_total_is_given_only_when_everything_was_read() -> None:
    alerts = generated_alerts(40)
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=alerts)]) as service:
        async with reader(service) as github:
            worst = await github.alert_page(SHOP, limit=10)
            newest = await github.alert_page(SHOP, AlertQuery(sort="created"), limit=10)
            all_newest = await github.alert_page(SHOP, AlertQuery(sort="created"), limit=40)

    assert (worst.total, newest.total, all_newest.total) == (40, None, 40)
    assert (all_newest.next_cursor, all_newest.cursors[-1]) == (None, None)
    assert numbers(newest.alerts) == list(range(40, 30, -1))
    assert (newest.requests, len(service.received)) == (1, 3)


async def test_newest_alerts_since_a_time_do_not_read_older_pages() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(90))]) as service:
        query = AlertQuery.of(sort="created", since="2026-01-01T00:01:20Z")
        async with reader(service) as github:
            page = await github.alert_page(SHOP, query, limit=20)

    assert numbers(page.alerts) == list(range(90, 79, -1))
    assert (page.next_cursor, page.total, len(service.received)) == (None, 11, 1)


async def test_page_after_an_alert_that_is_gone_goes_on_at_its_place() -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            first = await github.alert_page(SHOP, limit=5)
            gone = first.alerts[-1].number
            service.repositories[SHOP].alerts = [a for a in corpus("octo-shop") if a["number"] != gone]
            second = await github.alert_page(SHOP, limit=5, cursor=first.next_cursor)

    assert len(second.alerts) == 5
    assert second.alerts[0].severity is Severity.HIGH


async def test_page_with_filters_of_ours_looks_further() -> None:
    alerts = generated_alerts(60)
    for alert in alerts[5:]:
        alert["dependency"]["scope"] = "development"
        alert["assignees"] = [{"login": "octocat"}]
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=alerts)]) as service:
        query = AlertQuery(sort="created", assignees=("none",))
        async with reader(service) as github:
            page = await github.alert_page(SHOP, query, limit=10)

    assert numbers(page.alerts) == [5, 4, 3, 2, 1]
    assert (page.next_cursor, len(service.received)) == (None, 6)


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "WzEsMiwzLDRd", "%%%", "x" * 10_000, "é"])
async def test_what_is_no_cursor_is_refused_before_anything_is_asked(cursor: str) -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            with pytest.raises(ArgumentError) as caught:
                await github.alert_page(SHOP, cursor=cursor)

    assert caught.value.details == {"argument": "cursor"}
    assert service.received == []


async def test_cursor_of_another_query_is_refused() -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            page = await github.alert_page(SHOP, limit=2)
            for repository, query in ((SHOP, AlertQuery(severity="high")), ("octo-org/octo-api", AlertQuery())):
                with pytest.raises(ArgumentError):
                    await github.alert_page(repository, query, cursor=page.next_cursor)


async def test_order_that_the_server_does_not_know_is_made_here() -> None:
    def old_server(request: Received) -> Reply | None:
        if request.query.get("sort") == "epss_percentage":
            return refusal(422, "Invalid request.\n\nInvalid input: 'epss_percentage' is not a valid sort.")
        return None

    with corpus_github() as service:
        service.responders.append(old_server)
        async with reader(service) as github:
            page = await github.alert_page(SHOP, AlertQuery(sort="epss"), limit=3)
            following = await github.alert_page(SHOP, AlertQuery(sort="epss"), limit=3, cursor=page.next_cursor)

    scores = [alert.epss or 0 for alert in (*page.alerts, *following.alerts)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(numbers((*page.alerts, *following.alerts)))) == 6


# --- refusals through the reader ------------------------------------------------

READS = [entry for entry in errors() if entry["request"].split()[1].split("?")[0].endswith("/dependabot/alerts")]
RETRIED = {"500": 3, "502": 3, "502-html": 3, "503": 3, "504": 3}
LIMITED = {
    # One pause is affordable within 60 s when it is no longer than that.
    "primary": (1, []),
    "primary-429": (1, []),
    "secondary": (2, [60.0]),
    "secondary-429": (2, [60.0]),
    "secondary-noretry": (2, [60.0]),
    "secondary-long": (1, []),
}
CODES = {
    "no_token": "auth_missing",
    "bad_token": "auth_denied",
    "alerts_disabled": "alerts_disabled",
    "archived": "archived",
    "not_found": "not_found",
    "rate_limited": "rate_limited",
    "rate_limited_secondary": "rate_limited",
    "server_error": "github_error",
    "client_bug": "github_error",
    "invalid_parameter": "invalid_arguments",
    "org_policy": "policy_blocked",
    "blocked": "policy_blocked",
}


@pytest.mark.parametrize(
    "entry", [e for e in READS if e["class"] not in ("redirect", "not_modified")], ids=lambda entry: entry["id"]
)
async def test_refusal_becomes_its_error_without_needless_requests_or_waits(entry: dict[str, Any]) -> None:
    clock = StillClock()
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply(entry["id"]))
        async with reader(service, clock=clock) as github:
            with pytest.raises(DependfixError) as caught:
                await github.list_alerts(SHOP)

    wanted, sleeps = LIMITED.get(entry["id"], (RETRIED.get(entry["id"], 1), None))
    assert caught.value.code == CODES.get(entry["class"], "permission_denied")
    assert caught.value.hint
    assert len(service.received) == wanted
    assert sum(clock.sleeps) <= 60
    if sleeps is not None:
        assert clock.sleeps == sleeps
        assert (caught.value.retry_after_s or 0) > 0
    if wanted == 1:
        assert clock.sleeps == []
    assert TOKEN not in json.dumps(caught.value.to_dict())
    assert pickle.loads(pickle.dumps(caught.value)).to_dict() == caught.value.to_dict()  # noqa: S301  # our own bytes


async def test_limit_is_waited_for_when_the_caller_allows_it() -> None:
    clock = StillClock()
    told: list[tuple[float, str]] = []
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply("primary"), None)
        budget = CallBudget(max_wait_s=7200, on_wait=lambda seconds, reason: told.append((seconds, reason)))
        async with reader(service, clock=clock) as github:
            listing = await github.list_alerts(SHOP, budget=budget)

    assert listing.complete
    assert clock.sleeps == [1801.0]
    assert told == [(1801.0, "rate limit")]


async def test_limit_that_never_ends_is_given_up_after_two_pauses() -> None:
    clock = StillClock()
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply("secondary-noretry"))
        async with reader(service, clock=clock) as github:
            with pytest.raises(RateLimitedError) as caught:
                await github.list_alerts(SHOP, budget=CallBudget(max_wait_s=86400))

    assert (clock.sleeps, len(service.received), caught.value.retry_after_s) == ([60.0, 120.0], 3, 240)


async def test_limit_pauses_all_requests_of_the_token() -> None:
    clock = StillClock()
    with corpus_github() as service:
        service.script(rf"/repos/{SHOP}/dependabot/alerts", error_reply("secondary-long"))
        async with reader(service, clock=clock) as github:
            with pytest.raises(RateLimitedError):
                await github.list_alerts(SHOP)
            clock.time_s += 600
            with pytest.raises(RateLimitedError) as caught:
                await github.repository("octo-org/octo-api")
            clock.time_s += 3000
            facts = await github.repository("octo-org/octo-api")

    assert caught.value.retry_after_s == 3000
    assert facts.full_name == "octo-org/octo-api"
    assert len(service.received) == 2


async def test_last_request_of_the_hour_stops_the_next_one() -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1796001800"}
    with corpus_github() as service:
        service.script(rf"/repos/{SHOP}", Reply(body=hosted("octo-shop").facts(), headers=headers))
        async with reader(service) as github:
            await github.repository(SHOP)
            with pytest.raises(RateLimitedError) as caught:
                await github.list_alerts(SHOP)

    assert (caught.value.retry_after_s, len(service.received)) == (1801, 1)


async def test_page_that_is_too_heavy_is_asked_for_in_halves() -> None:
    alerts = generated_alerts(120)
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=alerts)]) as service:
        service.script(ALERTS_PATH, None, error_reply("502"), error_reply("504"), None)
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert numbers(listing.alerts) == list(range(1, 121))
    assert listing.complete
    assert [request.query["per_page"] for request in service.received] == ["100", "100", "50", "25"]
    assert len({request.query["after"] for request in service.received[1:]}) == 1


async def test_unchanged_pages_cost_no_alerts_of_the_limit() -> None:
    statuses: list[str | None] = []
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(120))]) as service:
        async with reader(service, cache=MemoryCache()) as github:
            first = await github.list_alerts(SHOP)
            second = await github.list_alerts(SHOP)
            statuses = [request.headers.get("if-none-match") for request in service.received]
            service.repositories[SHOP].alerts[0]["html_url"] = "https://github.com/changed"
            third = await github.list_alerts(SHOP)

    assert first.alerts == second.alerts
    assert [status is not None for status in statuses] == [False, False, True, True]
    assert third.alerts[0].html_url == "https://github.com/changed"


async def test_missing_token_is_an_error_before_any_request() -> None:
    with corpus_github() as service:
        http = HttpClient(HttpConfig(trust_env=False))
        async with GitHubReader(http, tokens=StaticToken(), api_url=service.url) as github:
            with pytest.raises(AuthenticationError) as caught:
                await github.list_alerts(SHOP)

    assert (caught.value.message, caught.value.code) == ("GITHUB_TOKEN not set", "auth_missing")
    assert service.received == []


async def test_alerts_can_have_a_token_of_their_own() -> None:
    with corpus_github() as service:
        async with reader(service, alerts_tokens=StaticToken.of("ghs_alerts")) as github:
            await github.list_alerts(SHOP)
            await github.repository(SHOP)

    assert [request.headers["authorization"] for request in service.received] == [
        "Bearer ghs_alerts",
        f"Bearer {TOKEN}",
    ]


async def test_token_is_in_no_log_and_no_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply("502"), error_reply("secondary"), None)
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP, budget=CallBudget(max_wait_s=120))

    assert listing.complete
    assert TOKEN not in caplog.text
    assert not any(TOKEN in str(record.__dict__) for record in caplog.records)
    assert not any(TOKEN in request.headers["x-target"] for request in service.received)


async def test_token_that_expires_soon_is_a_warning() -> None:
    with corpus_github() as service:
        near = {"github-authentication-token-expiration": "2026-12-03 00:00:00 UTC"}
        far = {"github-authentication-token-expiration": "2027-12-03 00:00:00 +0100"}
        service.script(ALERTS_PATH, Reply(body=[], headers=far), Reply(body=[], headers=near))
        async with reader(service) as github:
            first = await github.list_alerts(SHOP)
            second = await github.list_alerts(SHOP)

    assert first.warnings == ()
    assert second.warnings == ("the token expires on 2026-12-03 00:00 UTC",)


async def test_api_version_that_goes_is_a_warning() -> None:
    with corpus_github() as service:
        service.script(ALERTS_PATH, Reply(body=[], headers={"sunset": "Fri, 10 Mar 2028 00:00:00 GMT"}))
        async with reader(service) as github:
            await github.list_alerts(SHOP)

            assert github.warnings == ("GitHub retires the API version 2022-11-28 (Fri, 10 Mar 2028 00:00:00 GMT)",)


async def test_server_without_limits_has_no_rate() -> None:
    bare = dict.fromkeys(("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"), "")
    with corpus_github() as service:
        service.script(ALERTS_PATH, Reply(body=[], headers=bare))
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert listing.rate is None
    assert listing.complete


async def test_measuring_takes_one_small_request() -> None:
    with corpus_github() as service:
        service.repositories["octo-org/octo-api"].alerts_enabled = False
        async with reader(service) as github:
            await github.measure(SHOP)
            with pytest.raises(AlertsDisabledError):
                await github.measure("octo-org/octo-api")

    assert [request.query["per_page"] for request in service.received] == ["1", "1"]


async def test_error_kinds_tell_a_broken_service() -> None:
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply("503"))
        async with reader(service) as github:
            with pytest.raises(GitHubError) as caught:
                await github.list_alerts(SHOP)

    assert (caught.value.retryable, caught.value.retry_after_s) == (True, 1)


async def test_listing_survives_a_process_boundary() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(150))]) as service:
        service.script(ALERTS_PATH, None, None, error_reply("500"))
        async with reader(service) as github:
            page = await github.alert_page(SHOP, AlertQuery(sort="created"), limit=3)
            listing = await github.list_alerts(SHOP)

    again = pickle.loads(pickle.dumps((listing, page)))  # noqa: S301  # our own bytes
    assert again[0].alerts == listing.alerts
    assert listing.error is not None
    assert again[0].error.to_dict() == listing.error.to_dict()
    assert again[1] == page


NEWEST = AlertQuery(sort="created")


async def test_page_with_a_foreign_link_is_kept_and_goes_nowhere() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service:
        link = '<https://elsewhere.example/alerts?after=x>; rel="next"'
        service.script(ALERTS_PATH, Reply(body=generated_alerts(2), headers={"link": link}))
        async with reader(service) as github:
            page = await github.alert_page(SHOP, NEWEST, limit=2)

    assert numbers(page.alerts) == [1, 2]
    assert (page.complete, page.next_cursor, page.total) == (False, None, None)
    assert page.error is not None
    assert page.error.details["kind"] == "foreign-link"


async def test_page_that_leads_back_to_itself_ends() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP)]) as service:
        link = f'<{service.url}/repos/{SHOP}/dependabot/alerts?after=x>; rel="next"'
        service.script(ALERTS_PATH, Reply(body=generated_alerts(1), headers={"link": link}))
        async with reader(service) as github:
            first = await github.alert_page(SHOP, NEWEST, limit=1)
            second = await github.alert_page(SHOP, NEWEST, limit=1, cursor=first.next_cursor)

    assert first.next_cursor is not None
    assert (second.next_cursor, second.complete, len(second.problems)) == (None, False, 1)


@pytest.mark.parametrize("identifier", ["404", "422", "500", "disabled"])
async def test_page_that_cannot_be_read_at_all_is_an_error(identifier: str) -> None:
    with corpus_github() as service:
        service.script(ALERTS_PATH, error_reply(identifier))
        async with reader(service) as github:
            with pytest.raises(DependfixError) as caught:
                await github.alert_page(SHOP, NEWEST)

    assert caught.value.details["status"] == error(identifier)["status"]


async def test_filter_that_breaks_while_looking_further_keeps_the_cause() -> None:
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(40))]) as service:
        service.script(ALERTS_PATH, None, error_reply("500"))
        async with reader(service) as github:
            page = await github.alert_page(SHOP, AlertQuery(sort="created", assignees=("octocat",)), limit=5)

    assert (page.alerts, page.complete, page.total) == ((), False, None)
    assert isinstance(page.error, GitHubError)


async def test_list_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dependfix_core.github.api.MAX_PAGES", 3)
    with LoopbackGitHub([HostedRepository(full_name=SHOP, alerts=generated_alerts(350))]) as service:
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert (len(listing.alerts), listing.complete, len(service.received)) == (300, False, 3)
    assert listing.error is not None
    assert listing.error.details["kind"] == "too-long"


async def test_new_name_that_cannot_be_read_costs_no_alerts() -> None:
    with LoopbackGitHub([hosted("octo-shop", old_names=("octo-org/old",))]) as service:
        service.script("/repos/octo-org/old", error_reply("500"))
        async with reader(service) as github:
            listing = await github.list_alerts("octo-org/old")

    assert (listing.repository, listing.renamed_to, listing.complete) == ("octo-org/old", None, True)
    assert listing.alerts


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"full_name": 7}', b'{"full_name": "no-slash"}'])
async def test_facts_in_another_shape_are_an_error(body: bytes) -> None:
    with corpus_github() as service:
        service.script(f"/repos/{SHOP}", Reply(body=body))
        async with reader(service) as github:
            with pytest.raises(DependfixError):
                await github.repository(SHOP)


@pytest.mark.parametrize("body", [b"<html>", b'{"repositories": 7}'])
async def test_list_of_repositories_in_another_shape_is_an_error(body: bytes) -> None:
    with corpus_github() as service:
        service.script("/orgs/octo-org/repos", Reply(body=body))
        async with reader(service) as github:
            with pytest.raises(NetworkError):
                await github.repositories_of("octo-org")
