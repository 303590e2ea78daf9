"""An Enterprise Server behind a company proxy: own host name, base path, a CA that nobody else trusts.

The whole read side works through it, by the tools of a server process and by
the library, with nothing set but what such a machine's environment has anyway.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from dependfix_core import Dependfix, ScanPolicy
from dependfix_core.errors import NetworkError
from dependfix_mcp.demo.loopback_github import LoopbackGitHub
from fakes.certificates import hashed_folder, private_ca
from fakes.connect_proxy import ConnectProxy
from fakes.github_server import NAMES, TOKEN, corpus, corpus_github
from fakes.served import answer_of

HOST = "ghes.example"
SHOP = "octo-org/octo-shop"
MANIFEST = b'{"name": "shop", "version": "1.0.0", "dependencies": {}}'
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CA_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@dataclass
class Company:
    """What stands in the company's network."""

    service: LoopbackGitHub
    proxy: ConnectProxy
    ca_file: Path

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """Of a machine in that network, and of nothing else."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GITHUB_API_URL": HOST,
            "GITHUB_TOKEN": TOKEN,
            "DEPENDFIX_OFFLINE": "1",
            "DEPENDFIX_MAX_WAIT": "0",
            "HTTPS_PROXY": self.proxy.url,
            **more,
        }


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    (tmp_path / "pki").mkdir()
    ca = private_ca(tmp_path / "pki", HOST)
    base = f"https://{HOST}/api/v3"
    with (
        corpus_github(token=TOKEN, tls=ca.server, base_path="/api/v3", public_url=base) as service,
        ConnectProxy(service.port) as proxy,
    ):
        shop = service.repositories[SHOP]
        shop.files = {"package.json": MANIFEST, ".github/dependabot.yml": b"version: 2\n"}
        shop.old_names = ("octo-org/old-shop",)
        yield Company(service, proxy, ca.ca_file)


def opened(*names: str) -> set[tuple[str, int]]:
    return {(name, alert["number"]) for name in names for alert in corpus(name) if alert["state"] == "open"}


@pytest.mark.anyio
async def test_every_reading_tool_works_through_proxy_private_ca_and_base_path(
    company: Company, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "dependfix_mcp", "--toolsets", "dependfix"],
        env=company.environment(tmp_path, SSL_CERT_FILE=str(company.ca_file)),
        cwd=work,
    )
    async with Client(stdio_client(server)) as client:

        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = answer_of(await client.call_tool(tool, arguments))
            assert answer["ok"], answer
            return answer

        alerts = await ask("fetch_alerts", repo=f"https://{HOST}/{SHOP}.git", limit=100)
        renamed = await ask("fetch_alerts", repo="octo-org/old-shop", limit=100)
        overview = await ask("alert_overview", owner=["octo-org"], limit=100)
        found = await ask("discover_repos", owner=["octo-org"], limit=100)
        plan = await ask("plan_fixes", repo=SHOP, severity="all")
        run = await ask("run_scan", repo=f"git@{HOST}:{SHOP}.git", severity="all")
        report = await ask("get_last_report", runId=run["runId"])
        runs = await ask("history")

    of_the_shop = {number for _, number in opened("octo-shop")}
    assert {alert["id"] for alert in alerts["alerts"]} == of_the_shop
    assert alerts["complete"]
    assert {alert["id"] for alert in renamed["alerts"]} == of_the_shop
    assert overview["totals"]["total"] == len(opened(*NAMES))
    assert {entry["status"] for entry in overview["coverage"]} <= {"ok", "partial"}
    assert {(entry["fullName"], entry["hasDependabotConfig"]) for entry in found["repositories"]} == {
        (f"octo-org/{name}", name == "octo-shop") for name in NAMES
    }
    assert {outcome["alert"] for outcome in plan["plan"]["outcomes"]} == of_the_shop
    assert run["summary"]["alertsFound"] == len(of_the_shop)
    assert report["report"]["summary"] == run["summary"]
    assert [entry["runId"] for entry in runs["runs"]] == [run["runId"]]
    assert set(company.proxy.tunnels) == {f"{HOST}:443"}
    assert TOKEN not in company.proxy.heard
    assert f"/repos/{SHOP}/git/trees/" in " ".join(company.service.paths())


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_each_variable_that_names_certificates_counts_for_server_and_library(
    company: Company, tmp_path: Path, variable: str
) -> None:
    named = hashed_folder(company.ca_file) if variable == "SSL_CERT_DIR" else company.ca_file
    environment = company.environment(tmp_path, **{variable: str(named)})
    code = (
        "from dependfix_core import Dependfix\n"
        f"with Dependfix.from_env() as door: print(len(door.fetch_alerts({SHOP!r}).alerts))"
    )

    by_server = subprocess.run(
        [sys.executable, "-m", "dependfix_mcp", "scan", SHOP, "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    by_library = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert json.loads(by_server.stdout)["summary"]["alertsFound"] == len(opened("octo-shop"))
    assert int(by_library.stdout) == len(opened("octo-shop"))


def test_the_library_reads_everything_with_an_address_and_a_ca_bundle(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*PROXY_VARIABLES, *CA_VARIABLES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", company.proxy.url)
    monkeypatch.chdir(tmp_path)

    with Dependfix(token=TOKEN, api_url=f"https://{HOST}/api/v3/", ca_bundle=company.ca_file, max_wait_s=0) as door:
        alerts = door.fetch_alerts(f"https://{HOST}/octo-org/old-shop", severity="high")
        owner = door.owner_alerts("octo-org")
        repositories = door.repositories_of("octo-org")
        plan = door.plan(SHOP, policy=ScanPolicy(severity="all"))
        run = door.run_scan(SHOP, policy=ScanPolicy(severity="all"), write_reports=False)
        many = door.scan_many([SHOP, "octo-org/octo-api"], write_reports=False)
        report = door.report_owners(["octo-org"], write_reports=False)

    assert (alerts.complete, alerts.renamed_to) == (True, SHOP)
    assert {alert.severity.value for alert in alerts.alerts} == {"critical", "high"}
    assert len(owner.alerts) == len(opened(*NAMES))
    assert {facts.full_name for facts in repositories.repositories} == {f"octo-org/{name}" for name in NAMES}
    assert run.plan is not None
    assert run.plan.plan_id == plan.plan_id
    assert many.summary.alerts_found == len(opened("octo-shop", "octo-api"))
    assert report.summary.alerts_found == len(opened(*NAMES))
    # Repositories that serve no files are planned from their alerts alone, and nothing else is amiss.
    assert {(error.stage, error.category) for error in (*many.errors, *report.errors)} == {("plan", None)}
    assert set(company.proxy.tunnels) == {f"{HOST}:443"}


def test_without_the_ca_the_failure_says_what_to_set(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXY_VARIABLES, *CA_VARIABLES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", company.proxy.url)

    with Dependfix(token=TOKEN, api_url=HOST, max_wait_s=0) as door, pytest.raises(NetworkError) as caught:
        door.fetch_alerts(SHOP)

    assert caught.value.details == {"host": HOST, "kind": "tls"}
    assert "SSL_CERT_FILE" in caught.value.hint
    assert company.service.received == []
