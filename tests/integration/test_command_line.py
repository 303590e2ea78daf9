"""The commands for people: what they print, what they write, and their exit codes."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dependfix_mcp.__main__ import main
from dependfix_mcp.cli.arguments import COMMANDS
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Received, Reply
from fakes.github_server import NAMES, TOKEN, corpus, corpus_github
from fakes.storefront import REPO, git, storefront

SHOP = "octo-org/octo-shop"


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackGitHub]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("DEPENDFIX_OFFLINE", "1")
    monkeypatch.setenv("DEPENDFIX_MAX_WAIT", "0")
    for name in ("DEPENDFIX_GITHUB_TOKEN", "GH_TOKEN", "CLAUDE_PROJECT_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with corpus_github(token=TOKEN) as service:
        service.repositories["octo-org/empty"] = HostedRepository(full_name="octo-org/empty")
        service.repositories["octo-org/off"] = HostedRepository(full_name="octo-org/off", alerts_enabled=False)
        monkeypatch.setenv("GITHUB_API_URL", service.url)
        yield service


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["scan", "octo-org/empty"], 0),
        (["scan", SHOP, "--package", "no-such-package"], 0),
        (["scan", SHOP], 1),
        (["scan", "octo-org/off"], 3),
        (["scan", "octo-org/off", SHOP], 3),
        (["scan", "octo-org/unknown"], 3),
        (["report", "--owner", "octo-org", "--severity", "all"], 3),
        (["scan"], 2),
        (["report"], 2),
        (["scan", "no-name"], 2),
        (["scan", SHOP, "--severity", "severe"], 2),
        (["scan", SHOP, "--alert", "x", "--max-alerts", "0"], 2),
        (["scan", SHOP, "--no-such-flag"], 2),
        (["nonsense"], 2),
        (["scan", SHOP, "--mode", "repair"], 2),
        (["scan", SHOP, "--dry-run"], 2),
        (["scan", SHOP, "--mode", "fix", "--read-only"], 2),
        (["scan", SHOP, "octo-org/octo-api", "--mode", "fix"], 2),
        (["scan", "--owner", "octo-org", "--mode", "fix"], 2),
        (["scan", SHOP, "--mode", "fix"], 3),
    ],
)
def test_exit_code_says_how_it_stands(github: LoopbackGitHub, arguments: list[str], code: int) -> None:
    assert main(arguments) == code


def test_scan_prints_for_people_and_names_its_report(
    github: LoopbackGitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["scan", SHOP, "--severity", "all"])

    printed = capsys.readouterr()
    (page,) = (tmp_path / "dependfix-reports").glob("*.html")
    assert str(page) in printed.out
    assert "minimist" in printed.out
    assert TOKEN not in printed.out
    assert printed.err == ""


@pytest.mark.parametrize(
    ("next_page", "words"),
    [
        (None, "No alerts."),
        ("https://elsewhere.example/more?after=1", "No alerts in what could be read: the rest says nothing yet."),
    ],
)
def test_a_list_that_breaks_off_is_never_said_to_be_empty(
    github: LoopbackGitHub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    next_page: str | None,
    words: str,
) -> None:
    headers = {"Link": f'<{next_page}>; rel="next"'} if next_page else {}
    github.script(r"/repos/.*/dependabot/alerts", Reply(body=[], headers=headers))

    code = main(["scan", "octo-org/empty"])

    assert code == (3 if next_page else 0)
    assert f"octo-org/empty: n{words[1:].removesuffix('.')}\n" in capsys.readouterr().out
    reports = tmp_path / "dependfix-reports"
    for ending in ("md", "html"):
        (page,) = reports.glob(f"*.{ending}")
        assert words in page.read_text(encoding="utf-8")


def test_an_answer_that_is_no_json_is_called_so(github: LoopbackGitHub, capsys: pytest.CaptureFixture[str]) -> None:
    github.script(
        r"/repos/.*/dependabot/alerts", Reply(body=b'[{"number": ', headers={"Content-Type": "application/json"})
    )

    assert main(["scan", "octo-org/empty"]) == 3
    assert "the answer is no list of alerts, or no JSON at all\n" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.usefixtures("github")
def test_a_disk_that_takes_no_more_costs_the_report_and_says_so(tmp_path: Path) -> None:
    import resource  # not on Windows

    command = [sys.executable, "-m", "dependfix_mcp", "scan", SHOP, "--json"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    full = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60, preexec_fn=limit)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    fine = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)

    answer = json.loads(full.stdout)
    assert full.returncode == 3
    assert [error["stage"] for error in answer["errors"]][-1] == "report"
    assert answer["summary"] == json.loads(fine.stdout)["summary"]
    assert "reportFiles" not in answer
    assert b"Traceback" not in full.stderr
    assert set(left) == {".gitignore"}
    assert len(list((tmp_path / "dependfix-reports").glob("dependfix-report-*"))) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")
def test_progress_is_shown_in_a_terminal_only_and_never_on_stdout(github: LoopbackGitHub, tmp_path: Path) -> None:
    import pty  # not on Windows

    def linger(request: Received) -> None:
        if request.path == f"/repos/{SHOP}":
            time.sleep(0.5)  # the bar is drawn ten times a second

    github.responders.append(linger)
    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the end of a terminal whose last user has left
            while piece := os.read(ours, 65_536):
                shown.append(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    command = [sys.executable, "-m", "dependfix_mcp", "scan", SHOP, "--json"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    try:
        seen = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=theirs, check=False, timeout=60
        )
    finally:
        os.close(theirs)
    reader.join(timeout=20)
    os.close(ours)
    unseen = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60)

    bar = b"".join(shown).decode()
    assert f"read 20 alerts of {SHOP}" in bar
    assert "Traceback" not in bar
    assert json.loads(seen.stdout)["summary"] == json.loads(unseen.stdout)["summary"]
    assert unseen.stderr == b""


def test_scan_fixes_the_checkout_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with storefront(tmp_path) as shop:
        monkeypatch.chdir(shop.top)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", shop.github.url)
        monkeypatch.setenv("DEPENDFIX_CACHE_DIR", str(tmp_path / "cache"))
        for ecosystem, address in shop.registry.registries.items():
            monkeypatch.setenv(f"DEPENDFIX_REGISTRY_{ecosystem.upper()}", address)
        asked = ["scan", REPO, "--mode", "fix", "--package", "lodash", "--report-dir", str(tmp_path / "reports")]

        planned = main([*asked, "--dry-run"])
        untouched = git(shop.top, "status", "--porcelain")
        fixed = main(asked)
        refused = main(
            ["scan", REPO, "--mode", "fix", "--package", "qs", "--relock", "in-process", "--severity", "all"]
        )

    assert (planned, untouched, fixed, refused) == (1, "", 0, 1)
    assert git(shop.top, "diff", "--name-only") == "package-lock.json\n"
    assert "next: npm ci" in capsys.readouterr().out


def test_scan_prints_the_result_as_json(github: LoopbackGitHub, capsys: pytest.CaptureFixture[str]) -> None:
    main(["scan", SHOP, "octo-org/octo-api", "--severity", "all", "--json"])

    result = json.loads(capsys.readouterr().out)
    plain = sum(alert["state"] == "open" for name in ("octo-shop", "octo-api") for alert in corpus(name))
    assert result["summary"]["alertsFound"] == plain
    assert result["config"]["repositories"] == [SHOP, "octo-org/octo-api"]


def test_owner_is_scanned_within_the_allowlist(
    github: LoopbackGitHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEPENDFIX_REPOS", "octo-org/octo-w*")

    main(["report", "--owner", "octo-org", "--json"])

    result = json.loads(capsys.readouterr().out)
    assert [entry["repository"] for entry in result["repositories"]] == [
        f"octo-org/{name}" for name in sorted(NAMES) if name.startswith("octo-w")
    ]


def test_scan_brings_an_interrupted_checkout_back_first(
    github: LoopbackGitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = tmp_path / "shop"
    checkout.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    subprocess.run(["git", "remote", "add", "origin", f"git@github.com:{SHOP}.git"], cwd=checkout, check=True)

    assert main(["doctor", "--recover", str(checkout)]) == 0
    assert main(["doctor", "--recover", str(tmp_path)]) == 3
    assert "nothing was interrupted" in capsys.readouterr().out


def test_doctor_says_what_holds_and_hides_secrets(
    github: LoopbackGitHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEPENDFIX_HTTP_TOKEN", "planted-secret")
    monkeypatch.setenv("DEPENDFIX_REGISTRY_NPM", "https://npm.registry.example")
    monkeypatch.setenv("https_proxy", "http://me:planted-secret@proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "me:planted-secret@other.example:3128")
    monkeypatch.setenv("SSL_CERT_FILE", "/pki/ca.pem")

    code = main(["doctor", "--read-only", "--toolsets", "dependfix"])

    printed = capsys.readouterr().out
    assert code == 0
    assert "planted-secret" not in printed
    assert TOKEN not in printed
    for expected in (
        f"API {github.url}",
        "classic, from GITHUB_TOKEN",
        "read_only: True (from --read-only)",
        "registries: {'npm': 'https://npm.registry.example'} (from DEPENDFIX_REGISTRY_NPM)",
        "npm: https://npm.registry.example (setting",
        "certificates: /pki/ca.pem",
        "HTTPS_PROXY: proxy.example:3128",
        "ALL_PROXY: other.example:3128",
        "git: ",
        "dependfix: 7 tools",
    ):
        assert expected in printed


def test_doctor_warns_of_a_foreign_package_in_the_way(
    github: LoopbackGitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign" / "adapters"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("", encoding="utf-8")
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "dependfix_mcp", "doctor", "--toolsets", "dependfix"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(foreign.parent), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 3
    assert "another package called 'adapters'" in done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_names_every_setting(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*([command] if command else []), "--help"]) == 0

    printed = capsys.readouterr().out
    assert "--toolsets" in printed
    assert "Exit codes" in printed


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dependfix-mcp ")
