from typing import Any

import pytest

from dependfix_core.errors import (
    AlertsDisabledError,
    ArgumentError,
    AuthenticationError,
    DependfixError,
    GitHubError,
    NotFoundError,
    PermissionDeniedError,
    PolicyBlockedError,
    RateLimitedError,
)
from dependfix_core.github import AlertQuery, NameFilter, coverage_status
from dependfix_core.github.owners import MAX_PROBES
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Reply
from fakes.github_server import NAMES, corpus, corpus_github, error_reply, generated_alerts, hosted, reader

pytestmark = pytest.mark.anyio

ORG_ALERTS = "/orgs/octo-org/dependabot/alerts"


def open_keys() -> list[tuple[str, int]]:
    return sorted((f"octo-org/{name}", a["number"]) for name in NAMES for a in corpus(name) if a["state"] == "open")


def repository(name: str, **facts: Any) -> HostedRepository:
    return HostedRepository(full_name=name, alerts=generated_alerts(2), **facts)


async def test_organisation_is_read_through_its_own_list() -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert [alert.key for alert in listing.alerts] == open_keys()
    assert {(c.repository, c.status) for c in listing.coverage} == {(f"octo-org/{name}", "ok") for name in NAMES}
    assert (listing.via, listing.complete, listing.requests) == ("organization", True, 2)
    assert service.paths() == ["/orgs/octo-org/repos", ORG_ALERTS]
    assert {alert.default_branch for alert in listing.alerts} == {"main"}


@pytest.mark.parametrize("identifier", ["404", "not-authorized", "fgpat"])
async def test_without_the_right_to_that_list_every_repository_is_read(identifier: str) -> None:
    seen: list[tuple[int, int]] = []
    with corpus_github() as service:
        service.script(ORG_ALERTS, error_reply(identifier))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org", on_repository=lambda done, of: seen.append((done, of)))

    assert [alert.key for alert in listing.alerts] == open_keys()
    assert (listing.via, listing.complete, listing.requests) == ("repositories", True, 9)
    assert any("cannot be read" in warning for warning in listing.warnings)
    assert seen == [(done, 7) for done in range(1, 8)]


async def test_repository_that_was_not_measured_is_never_taken_for_clean() -> None:
    repositories = [
        repository("octo-org/alerts"),
        HostedRepository(full_name="octo-org/clean"),
        repository("octo-org/switched-off", alerts_enabled=False),
        repository("octo-org/old", archived=True),
        HostedRepository(full_name="octo-org/sso"),
        HostedRepository(full_name="octo-org/policy"),
        HostedRepository(full_name="octo-org/hidden"),
        HostedRepository(full_name="octo-org/broken"),
    ]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        for name, identifier in (("sso", "sso"), ("policy", "ip-allow-list"), ("hidden", "404"), ("broken", "500")):
            service.script(f"/repos/octo-org/{name}/dependabot/alerts", error_reply(identifier))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert [(c.repository.removeprefix("octo-org/"), c.status) for c in listing.coverage] == [
        ("alerts", "ok"),
        ("broken", "error"),
        ("clean", "ok"),
        ("hidden", "forbidden"),
        ("old", "archived"),
        ("policy", "forbidden"),
        ("sso", "sso"),
        ("switched-off", "disabled"),
    ]
    assert {alert.repository for alert in listing.alerts} == {"octo-org/alerts"}
    assert listing.complete is False
    assert "/repos/octo-org/old/dependabot/alerts" not in service.paths()


async def test_same_number_in_two_repositories_is_two_alerts() -> None:
    repositories = [repository("octo-org/a"), repository("octo-org/b")]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert [alert.key for alert in listing.alerts] == [
        ("octo-org/a", 1),
        ("octo-org/a", 2),
        ("octo-org/b", 1),
        ("octo-org/b", 2),
    ]


@pytest.mark.parametrize(("identifier", "kind"), [("primary", RateLimitedError), ("401", AuthenticationError)])
async def test_tokens_own_trouble_stops_the_rest_at_once(identifier: str, kind: type[Exception]) -> None:
    repositories = [repository(f"octo-org/r{number:02d}") for number in range(30)]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        service.script(ORG_ALERTS, error_reply("404"))
        service.script(r"/repos/.*/alerts", None, None, error_reply(identifier))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert len(listing.coverage) == 30
    failed = [c for c in listing.coverage if c.status == "error"]
    assert len(failed) >= 20
    assert all(isinstance(c.error, kind) for c in failed)
    assert listing.complete is False
    assert len(service.received) <= 2 + 2 + 6


async def test_used_up_limit_at_the_organisations_list_asks_nothing_more() -> None:
    with corpus_github() as service:
        service.script(ORG_ALERTS, error_reply("primary"))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert {c.status for c in listing.coverage} == {"error"}
    assert (listing.complete, listing.alerts, len(service.received)) == (False, (), 2)


async def test_list_that_breaks_off_is_read_again_repository_by_repository() -> None:
    repositories = [HostedRepository(full_name="octo-org/big", alerts=generated_alerts(150)), repository("octo-org/b")]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        service.script(ORG_ALERTS, None, error_reply("500"))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert (len(listing.alerts), listing.complete, listing.via) == (152, True, "repositories")


async def test_partial_results_of_single_sign_on_are_no_measurement() -> None:
    with corpus_github() as service:
        partial = {"x-github-sso": "partial-results; organizations=21955855,20582480"}
        payload = [{**alert, "repository": {"full_name": "octo-org/octo-api"}} for alert in corpus("octo-api")]
        service.script(ORG_ALERTS, Reply(body=payload, headers=partial))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert {c.repository: c.status for c in listing.coverage}["octo-org/octo-api"] == "partial"
    assert listing.complete is False


async def test_alert_of_an_unknown_repository_is_reported() -> None:
    payload = corpus("octo-api")[:2]
    payload[1]["html_url"] = "https://github.com/"
    with corpus_github() as service:
        service.script(ORG_ALERTS, Reply(body=payload))
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org", AlertQuery(states=()))

    assert [problem.number for problem in listing.problems] == [payload[1]["number"]]
    assert [alert.number for alert in listing.alerts] == [payload[0]["number"]]
    assert listing.complete is False


async def test_names_topics_and_the_operators_list_choose() -> None:
    repositories = [
        repository("octo-org/web-shop", topics=("web",)),
        repository("octo-org/web-admin", topics=("WEB", "internal")),
        repository("octo-org/api"),
    ]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        async with reader(service) as github:

            async def chosen(names: NameFilter | None, only: str = "") -> list[str]:
                listing = await github.owner_alerts("Octo-Org", names=names, allowed=lambda name: only in name)
                assert {alert.repository for alert in listing.alerts} == {c.repository for c in listing.coverage}
                return [c.repository.removeprefix("octo-org/") for c in listing.coverage]

            assert await chosen(None) == ["api", "web-admin", "web-shop"]
            assert await chosen(NameFilter(include=("WEB-*",))) == ["web-admin", "web-shop"]
            assert await chosen(NameFilter(include=("octo-org/*",), exclude=("*admin",))) == ["api", "web-shop"]
            assert await chosen(NameFilter(topics=("web",))) == ["web-admin", "web-shop"]
            assert await chosen(None, "api") == ["api"]


async def test_number_of_probes_is_bounded_and_the_rest_is_not_called_clean() -> None:
    repositories = [HostedRepository(full_name=f"octo-org/r{n:03d}") for n in range(MAX_PROBES + 2)]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        async with reader(service) as github:
            listing = await github.owner_alerts("octo-org")

    assert [c.status for c in listing.coverage].count("ok") == MAX_PROBES
    assert [c.status for c in listing.coverage].count("partial") == 2
    assert listing.complete is False


@pytest.mark.parametrize("owner", ["", "a/b", "../x", "octo org", "-x"])
async def test_what_is_no_owner_is_refused(owner: str) -> None:
    with corpus_github() as service:
        async with reader(service) as github:
            for call in (github.owner_alerts, github.repositories_of):
                with pytest.raises(ArgumentError) as caught:
                    await call(owner)
                assert caught.value.details == {"argument": "owner"}

    assert service.received == []


async def test_user_repositories_come_from_the_right_list() -> None:
    repositories = [
        repository("octocat/private"),
        repository("octocat/public", private=False),
        repository("hubot/public", private=False),
    ]

    async def names(account: str | None, owner: str) -> tuple[list[str], str]:
        with LoopbackGitHub(repositories, account=account) as service:
            async with reader(service) as github:
                listing = await github.repositories_of(owner)
            return [facts.full_name for facts in listing.repositories], service.paths()[-1]

    assert await names("OctoCat", "octocat") == (["octocat/private", "octocat/public"], "/user/repos")
    assert await names("hubot", "octocat") == (["octocat/public"], "/users/octocat/repos")
    assert await names(None, "octocat") == (["octocat/private", "octocat/public"], "/installation/repositories")


async def test_unknown_owner_is_not_found() -> None:
    with corpus_github(account="octocat") as service:
        async with reader(service) as github:
            with pytest.raises(NotFoundError):
                await github.repositories_of("nobody")


async def test_many_repositories_are_listed_to_the_last_page() -> None:
    repositories = [HostedRepository(full_name=f"octo-org/r{number:03d}") for number in range(230)]
    with LoopbackGitHub(repositories, organizations=["octo-org"]) as service:
        async with reader(service) as github:
            listing = await github.repositories_of("octo-org")
            service.script("/orgs/octo-org/repos", None, error_reply("500"))
            cut = await github.repositories_of("octo-org")

    assert [facts.full_name for facts in listing.repositories] == [r.full_name for r in repositories]
    assert (listing.complete, listing.requests) == (True, 3)
    assert (cut.complete, len(cut.repositories)) == (False, 100)


async def test_strange_entries_make_the_list_incomplete() -> None:
    good = HostedRepository(full_name="octo-org/good").facts()
    with corpus_github() as service:
        service.script(
            "/orgs/octo-org/repos", Reply(body=[good, None, {"full_name": "no-slash"}, {"full_name": "x/y"}])
        )
        async with reader(service) as github:
            listing = await github.repositories_of("octo-org")

    assert [facts.full_name for facts in listing.repositories] == ["octo-org/good"]
    assert listing.complete is False


async def test_facts_of_a_repository() -> None:
    with LoopbackGitHub([hosted("octo-shop", old_names=("octo-org/old",), topics=("a",), archived=True)]) as service:
        async with reader(service) as github:
            facts = await github.repository("OCTO-ORG/octo-shop")
            renamed = await github.repository("octo-org/old")
            with pytest.raises(NotFoundError):
                await github.repository("octo-org/none")

    assert (facts.full_name, facts.default_branch, facts.archived, facts.topics) == (
        "octo-org/octo-shop",
        "main",
        True,
        ("a",),
    )
    assert (facts.can_push, facts.can_administer, facts.renamed_from) == (True, False, None)
    assert (renamed.full_name, renamed.renamed_from) == ("octo-org/octo-shop", "octo-org/old")


@pytest.mark.parametrize(
    ("files", "has"),
    [
        ({}, False),
        ({"README.md": b""}, False),
        ({".github/workflows/dependabot.yml": b""}, False),
        ({".github/dependabot.yml": b"version: 2"}, True),
        ({".github/dependabot.yaml": b"version: 2"}, True),
    ],
)
async def test_dependabot_config_is_found_with_one_request(files: dict[str, bytes], has: bool) -> None:
    with LoopbackGitHub([HostedRepository(full_name="octo-org/r", files=files)]) as service:
        async with reader(service) as github:
            assert await github.has_dependabot_config("octo-org/r") is has

    assert len(service.received) == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AlertsDisabledError("x"), "disabled"),
        (PermissionDeniedError("x", details={"ssoUrl": "https://github.com/"}), "sso"),
        (PermissionDeniedError("x", details={"ssoUrl": ""}), "sso"),
        (PermissionDeniedError("x"), "forbidden"),
        (PolicyBlockedError("x"), "forbidden"),
        (NotFoundError("x"), "forbidden"),
        (GitHubError("x"), "error"),
        (RateLimitedError("x"), "error"),
    ],
)
def test_every_failure_has_a_coverage(error: DependfixError, status: str) -> None:
    assert coverage_status(error) == status
