"""The library's front door over the loopback GitHub."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import dependfix_core
from dependfix_core import (
    AsyncDependfix,
    Connection,
    Dependfix,
    EnvironmentToken,
    ImportedToken,
    Places,
    ScanPolicy,
    errors,
)
from dependfix_core.errors import ArgumentError, AuthenticationError, ConfigurationError, DependfixError
from dependfix_core.facade import ScanTask
from dependfix_core.model.records import RecordKey
from dependfix_core.pipeline.run import FetchedAlerts
from dependfix_core.report.folders import ReportFolders
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Reply
from fakes.github_server import NAMES, TOKEN, corpus, corpus_github, hosted
from fakes.reports import alert, fix, plan, remediation, result

SHOP = "octo-org/octo-shop"


@pytest.fixture
def github() -> Iterator[LoopbackGitHub]:
    with corpus_github(token=TOKEN, account="somebody") as service:
        yield service


def places(folder: Path) -> Places:
    return Places(reports=ReportFolders(candidates=(folder,)))


def door(github: LoopbackGitHub, folder: Path, **options: Any) -> Dependfix:
    return Dependfix(token=TOKEN, api_url=github.url, max_wait_s=0, places=places(folder), **options)


def opened(name: str) -> set[int]:
    return {entry["number"] for entry in corpus(name) if entry["state"] == "open"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, dependfix_core; dependfix_core.ScanPolicy; dependfix_core.DependfixError; "
        "print(sorted({'httpx', 'pydantic', 'github', 'mcp', 'rich', 'yaml', 'anyio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"


def test_no_mcp_code_is_loaded_by_the_library(github: LoopbackGitHub, tmp_path: Path) -> None:
    code = (
        "import sys; from dependfix_core import Dependfix\n"
        f"with Dependfix(token={TOKEN!r}, api_url={github.url!r}) as door: door.run_scan({SHOP!r}, write_reports=False)\n"
        "print(sorted(name for name in sys.modules if name == 'mcp' or name.startswith(('mcp.', 'mcp_types', 'dependfix_mcp'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)

    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in dependfix_core.__all__:
        assert getattr(dependfix_core, name) is not None
    with pytest.raises(AttributeError):
        dependfix_core.nothing_of_this_name  # noqa: B018  # the look-up is the test


def test_alerts_plan_and_scan_by_one_door(github: LoopbackGitHub, tmp_path: Path) -> None:
    with door(github, tmp_path) as dependfix:
        listing = dependfix.fetch_alerts(SHOP, severity="high")
        planned = dependfix.plan(f"http://127.0.0.1:{github.port}/{SHOP}", policy=ScanPolicy(severity="all"))
        scanned = dependfix.run_scan(SHOP, policy=ScanPolicy(severity="all"))

    assert listing.complete
    assert {item.severity.value for item in listing.alerts} == {"critical", "high"}
    assert {outcome.alert for outcome in planned.outcomes} == opened("octo-shop")
    assert scanned.plan is not None
    assert scanned.plan.plan_id == planned.plan_id
    assert {item.id for item in scanned.alerts} == opened("octo-shop")
    assert len(list(tmp_path.glob("dependfix-report-*"))) == 4
    assert (tmp_path / "plans" / f"{planned.plan_id}.json").exists()


def test_no_token_is_an_error_not_an_empty_listing(github: LoopbackGitHub) -> None:
    with Dependfix(api_url=github.url) as dependfix, pytest.raises(AuthenticationError) as caught:
        dependfix.fetch_alerts(SHOP)

    assert (caught.value.code, caught.value.message) == ("auth_missing", "GITHUB_TOKEN not set")


def test_environment_means_the_same_as_for_the_server(github: LoopbackGitHub, tmp_path: Path) -> None:
    environ = {"GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN, "DEPENDFIX_REPORT_DIR": str(tmp_path / "r")}

    with Dependfix.from_env(environ) as dependfix:
        scanned = dependfix.run_scan(SHOP)
    with Dependfix.from_env({**environ, "GITHUB_TOKEN": "${GITHUB_TOKEN}"}) as bare, pytest.raises(AuthenticationError):
        bare.fetch_alerts(SHOP)

    assert scanned.report_files is not None
    assert {Path(file.path).parent for file in scanned.report_files} == {tmp_path / "r"}


def test_modes_that_write_are_refused_before_anything_is_asked(github: LoopbackGitHub, tmp_path: Path) -> None:
    with door(github, tmp_path) as dependfix, pytest.raises(DependfixError) as caught:
        dependfix.run_scan(SHOP, mode="fix-and-pr")

    assert caught.value.code == "unsupported"
    assert github.received == []


@pytest.mark.anyio
async def test_the_asynchronous_twin_gives_the_same(github: LoopbackGitHub, tmp_path: Path) -> None:
    with door(github, tmp_path) as dependfix:
        expected = dependfix.plan(SHOP)
    async with AsyncDependfix(token=TOKEN, api_url=github.url) as twin:
        found = await twin.plan(SHOP)

    assert found == expected


class Recording(ThreadPoolExecutor):
    """An executor of the caller's own."""

    def __init__(self) -> None:
        super().__init__(2)
        self.tasks: list[Any] = []

    def submit(self, fn: Any, /, *arguments: Any, **named: Any) -> "Future[Any]":
        self.tasks += arguments
        return super().submit(fn, *arguments, **named)


def test_many_repositories_are_one_report_and_one_for_each(github: LoopbackGitHub, tmp_path: Path) -> None:
    names = [f"octo-org/{name}" for name in NAMES]
    with door(github, tmp_path) as dependfix, Recording() as executor:
        combined = dependfix.scan_many([*names, names[0]], executor, policy=ScanPolicy(severity="all"))
        single = dependfix.scan_many(names, policy=ScanPolicy(severity="all"), write_reports=False)

    assert combined.summary.repositories_scanned == len(names)
    assert combined.summary.alerts_found == sum(len(opened(name)) for name in NAMES)
    assert combined.summary == single.summary
    assert [task.fetched.repository for task in executor.tasks] == names
    assert all(task.max_requests and task.max_requests > 0 for task in executor.tasks)
    (stem,) = (path.stem for path in tmp_path.glob("dependfix-report-*.json"))
    assert len(list((tmp_path / stem).glob("*.json"))) == len(names)
    part = json.loads((tmp_path / stem / "octo-org-octo-shop.json").read_text(encoding="utf-8"))
    assert {entry["id"] for entry in part["alerts"]} == opened("octo-shop")


def test_one_repository_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    repositories = [hosted("octo-shop"), HostedRepository(full_name="octo-org/off", alerts_enabled=False)]
    with LoopbackGitHub(repositories, token=TOKEN) as github, door(github, tmp_path) as dependfix:
        combined = dependfix.scan_many([SHOP, "octo-org/off", "octo-org/gone"])

    assert combined.summary.repositories_scanned == 1
    assert {(error.repository, error.category) for error in combined.errors if error.category} == {
        ("octo-org/off", "alerts_disabled"),
        ("octo-org/gone", "not_found"),
    }


def test_tasks_go_to_other_processes_with_a_source_that_can(github: LoopbackGitHub, tmp_path: Path) -> None:
    names = [SHOP, "octo-org/octo-api"]
    connection = Connection(api_url=github.url, tokens=ImportedToken("fakes.importable_tokens:corpus_token"))
    with (
        Dependfix(connection=connection, places=places(tmp_path)) as dependfix,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor,
    ):
        combined = dependfix.scan_many(names, executor, policy=ScanPolicy(severity="all"))

    assert combined.summary.alerts_found == len(opened("octo-shop")) + len(opened("octo-api"))


def test_a_token_itself_never_goes_to_another_process(github: LoopbackGitHub, tmp_path: Path) -> None:
    with (
        door(github, tmp_path) as dependfix,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        pytest.raises(ConfigurationError),
    ):
        dependfix.scan_many([SHOP, "octo-org/octo-api"], executor)


def test_wrong_name_is_refused_before_anything_is_asked(github: LoopbackGitHub, tmp_path: Path) -> None:
    with door(github, tmp_path) as dependfix, pytest.raises(ArgumentError):
        dependfix.scan_many([SHOP, "no"])

    assert github.received == []


def test_whole_owner_is_reported_from_its_alerts(github: LoopbackGitHub, tmp_path: Path) -> None:
    with door(github, tmp_path) as dependfix:
        combined = dependfix.report_owners(["octo-org"], policy=ScanPolicy(severity="all"))

    assert combined.summary.alerts_found == sum(len(opened(name)) for name in NAMES)
    assert not any("/git/" in path for path in github.paths()), "no file was read"


def test_files_that_may_not_be_read_narrow_the_plan_and_say_so(github: LoopbackGitHub, tmp_path: Path) -> None:
    github.script(
        r"/repos/octo-org/octo-shop/(git|commits)/.*", Reply(status=403, body={"message": "Resource not accessible"})
    )
    with door(github, tmp_path) as dependfix:
        planned = dependfix.plan(SHOP, policy=ScanPolicy(severity="all"))

    assert not planned.complete
    assert planned.problems
    assert {outcome.alert for outcome in planned.outcomes} == opened("octo-shop")
    assert all(item.unconfirmed for item in planned.remediations)


def every_error() -> Iterator[DependfixError]:
    """One of each public error, with details."""
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, DependfixError):
            made = value.__new__(value)
            DependfixError.__init__(made, "words", hint="do", retryable=True, retry_after_s=3, details={"a": 1})
            made.__dict__["argv"] = ("git",)
            yield made


def test_every_public_value_and_error_pickles() -> None:
    values = [
        alert(1),
        plan(fix(1, "7.5.2"), remediations=(remediation(1),)),
        ScanPolicy(packages=("a",)),
        result(),
        Connection(api_url="https://ghe.example/api/v3", tokens=EnvironmentToken()),
        RecordKey(ecosystem="npm", name="a"),
        places(Path("/r")),
        ScanTask(
            fetched=FetchedAlerts(repository=SHOP, names=(SHOP,), alerts=(alert(1),)),
            policy=ScanPolicy(),
            connection=Connection(tokens=ImportedToken("a:b")).portable(),
            max_requests=3,
            started=datetime(2026, 1, 1, tzinfo=UTC),
        ),
    ]

    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301  # our own bytes
    for error in every_error():
        again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
        assert type(again) is type(error)
        assert again.to_dict() == error.to_dict()


def test_a_portable_connection_holds_no_variables_of_this_process() -> None:
    connection = Connection(tokens=EnvironmentToken(), environment={"NPM_TOKEN": "planted"})

    assert b"planted" not in pickle.dumps(connection.portable())
    assert "planted" not in repr(connection)
