"""A server of one's own: private CA, base path, proxy in front or in between."""

from pathlib import Path

import pytest

from dependfix_core.connection import normalise_api_url
from dependfix_core.errors import NetworkError
from dependfix_core.github import AlertQuery, GitHubReader, StaticToken
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from fakes.certificates import private_ca
from fakes.connect_proxy import ConnectProxy
from fakes.github_server import NAMES, TOKEN, corpus, corpus_github, generated_alerts, reader

pytestmark = pytest.mark.anyio

SHOP = "octo-org/octo-shop"


async def test_whole_read_side_works_behind_tls_with_a_private_ca_and_a_base_path(tmp_path: Path) -> None:
    ca = private_ca(tmp_path)
    with corpus_github(tls=ca.server, base_path="/api/v3") as service:
        repository = service.repositories[SHOP]
        repository.files = {"package.json": b"{}", ".github/dependabot.yml": b"version: 2"}
        repository.old_names = ("octo-org/old",)
        repository.alerts = generated_alerts(130)
        config = HttpConfig(trust_env=False, ca_bundle=str(ca.ca_file))
        async with reader(service, config=config) as github:
            listing = await github.list_alerts("octo-org/old")
            page = await github.alert_page(SHOP, AlertQuery(sort="created"), limit=100)
            rest = await github.alert_page(SHOP, AlertQuery(sort="created"), limit=100, cursor=page.next_cursor)
            owner = await github.owner_alerts("octo-org")
            commit = await github.head(SHOP, "main")
            tree = await github.listing(SHOP, commit)
            file = await github.read_file(SHOP, tree.entries["package.json"])
            pulls = await github.pull_requests(SHOP)
            has_config = await github.has_dependabot_config(SHOP)

    assert normalise_api_url(service.url) == service.url
    assert (len(listing.alerts), listing.complete, listing.renamed_to) == (130, True, SHOP)
    assert (len(page.alerts), len(rest.alerts), rest.next_cursor) == (100, 30, None)
    others = sum(a["state"] == "open" for name in NAMES if name != "octo-shop" for a in corpus(name))
    assert (len(owner.alerts), owner.complete) == (130 + others, True)
    assert getattr(file, "content", None) == b"{}"
    assert (pulls, has_config) == ((), True)
    assert all(not request.path.startswith("/api/v3") for request in service.received)


async def test_server_with_an_unknown_ca_is_a_tls_error(tmp_path: Path) -> None:
    ca = private_ca(tmp_path)
    with corpus_github(tls=ca.server) as service:
        async with reader(service) as github:
            with pytest.raises(NetworkError) as caught:
                await github.list_alerts(SHOP)

    assert caught.value.details == {"host": "127.0.0.1", "kind": "tls"}


async def test_company_proxy_tunnels_and_never_hears_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca = private_ca(tmp_path, "ghes.example")
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    repository = HostedRepository(full_name=SHOP, alerts=generated_alerts(120))
    base = "https://ghes.example/api/v3"
    with (
        LoopbackGitHub([repository], tls=ca.server, base_path="/api/v3", public_url=base) as service,
        ConnectProxy(service.port) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        http = HttpClient(HttpConfig(ca_bundle=str(ca.ca_file)))
        async with GitHubReader(
            http, tokens=StaticToken.of(TOKEN), api_url=normalise_api_url("ghes.example")
        ) as github:
            listing = await github.list_alerts(SHOP)

    assert (len(listing.alerts), listing.complete) == (120, True)
    assert set(proxy.tunnels) == {"ghes.example:443"}
    assert TOKEN not in proxy.heard


async def test_links_of_a_server_behind_another_name_are_not_followed() -> None:
    repository = HostedRepository(full_name=SHOP, alerts=generated_alerts(120))
    with LoopbackGitHub([repository], public_url="https://inner.example/api/v3") as service:
        async with reader(service) as github:
            listing = await github.list_alerts(SHOP)

    assert (len(listing.alerts), listing.complete) == (100, False)
    assert listing.error is not None
    assert listing.error.details == {"host": "inner.example", "kind": "foreign-link"}
