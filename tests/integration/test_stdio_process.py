"""The server as hosts run it: a child process that is spoken to over its pipes, without any SDK."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dependfix_mcp.demo.loopback_github import LoopbackGitHub, Received, Reply
from fakes.github_server import TOKEN, hosted
from fakes.suspec_cli import install
from recording.record_suspec import DATA, load_recorded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups of POSIX")

COMMAND = [sys.executable, "-m", "dependfix_mcp"]
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PATIENCE_S = 30


class Served:
    """One server process and what it says."""

    def __init__(self, *flags: str, cwd: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.other: list[dict[str, Any]] = []
        self.seen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Let nothing of it stay."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen += line
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, raw: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None, identifier: int | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if identifier is not None:
            message["id"] = identifier
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self, identifier: int) -> dict[str, Any]:
        """The response with this id; other messages are kept aside."""
        for index, message in enumerate(self.other):
            if message.get("id") == identifier and "method" not in message:
                return self.other.pop(index)
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line, "the server has ended"
            message = json.loads(line)
            if message.get("id") == identifier and "method" not in message:
                return dict(message)
            self.other.append(message)

    def initialize(self, version: str = VERSIONS[-1]) -> dict[str, Any]:
        client = {"name": "test", "version": "1"}
        self.send("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}, 1)
        answer = self.answer(1)
        self.send("notifications/initialized")
        return answer

    def call(self, identifier: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, identifier)

    def end(self) -> tuple[int, bytes]:
        """Exit code and stderr after its stdin was closed."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE_S)
        return code, self.process.stderr.read()


class Stalling(LoopbackGitHub):
    """Answers nothing about alerts until it is let go."""

    def __init__(self) -> None:
        super().__init__([hosted("octo-shop")], token=TOKEN)
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.responders.append(self._stall)

    def _stall(self, request: Received) -> Reply | None:
        if request.path.endswith("/alerts"):
            self.asked.set()
            self.go_on.wait(PATIENCE_S)
        return None

    def stop(self) -> None:
        self.go_on.set()
        super().stop()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    begun: list[Served] = []

    def start(*flags: str, cwd: Path, env: Mapping[str, str]) -> Served:
        begun.append(Served(*flags, cwd=cwd, env=env))
        return begun[-1]

    yield start
    for served in begun:
        served.close()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GITHUB_TOKEN": TOKEN}


@pytest.fixture
def stalling() -> Iterator[Stalling]:
    with Stalling() as github:
        yield github


def test_nothing_is_said_before_it_is_asked_and_nothing_written(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    served = serve(cwd=work, env=environment)

    assert served.end() == (0, b"")
    assert bytes(served.seen) == b""
    assert list(work.iterdir()) == []
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_protocol_version_is_spoken(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str], version: str
) -> None:
    served = serve("--toolsets", "dependfix", cwd=tmp_path, env=environment)

    assert served.initialize(version)["result"]["protocolVersion"] == version
    served.send("tools/list", {}, 2)
    assert served.answer(2)["result"]["tools"][0]["name"] == "fetch_alerts"
    assert served.end() == (0, b"")


def test_broken_input_is_passed_over(serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]) -> None:
    served = serve("--toolsets", "dependfix", cwd=tmp_path, env=environment)
    served.initialize()

    for raw in (
        b"not json\n",
        b"[1,2]\n",
        b"\n",
        b'{"jsonrpc":"2.0"}\n',
        b"\xff\xfe\n",
        b'{"jsonrpc":"2.0","id":99,"result":{}}\n',
    ):
        served.write(raw)
    served.send("notifications/unknown", {})
    served.send("no/such/method", {}, 2)
    served.call(3, "no_such_tool")
    served.call(4, "history")

    assert served.answer(2)["error"]["code"] == -32601
    assert served.answer(3)["result"]["isError"] is True
    assert served.answer(4)["result"]["structuredContent"] == {"ok": True, "runs": []}
    assert served.end()[0] == 0


def test_fifty_calls_at_a_time_are_all_answered(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]
) -> None:
    served = serve("--toolsets", "dependfix", cwd=tmp_path, env=environment)
    served.initialize()

    for identifier in range(100, 150):
        served.call(identifier, "history", limit=5)
    answers = [served.answer(identifier) for identifier in range(100, 150)]

    assert all(answer["result"]["structuredContent"]["ok"] for answer in answers)
    assert served.end()[0] == 0


def test_cancelled_call_stops_its_work_and_the_server_goes_on(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str], stalling: Stalling
) -> None:
    served = serve("--toolsets", "dependfix", "--github-api-url", stalling.url, cwd=tmp_path, env=environment)
    served.initialize()
    served.call(2, "run_scan", repo="octo-org/octo-shop")
    assert stalling.asked.wait(PATIENCE_S)

    served.send("notifications/cancelled", {"requestId": 2})
    served.call(3, "history")
    assert served.answer(3)["result"]["structuredContent"]["ok"]
    served.call(4, "get_last_report")
    assert served.answer(4)["result"]["structuredContent"] == {"ok": True, "found": False}

    assert not any(message.get("id") == 2 for message in served.other)
    assert served.end()[0] == 0
    assert not (tmp_path / "dependfix-reports").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_ends_it_in_the_middle_of_a_call(
    serve: Callable[..., Served],
    tmp_path: Path,
    environment: dict[str, str],
    stalling: Stalling,
    number: signal.Signals,
    code: int,
) -> None:
    served = serve("--toolsets", "dependfix", "--github-api-url", stalling.url, cwd=tmp_path, env=environment)
    served.initialize()
    served.call(2, "run_scan", repo="octo-org/octo-shop")
    assert stalling.asked.wait(PATIENCE_S)

    begun = time.monotonic()
    served.process.send_signal(number)

    assert served.process.wait(timeout=PATIENCE_S) == code
    assert time.monotonic() - begun < 4
    assert not (tmp_path / "dependfix-reports").exists()


@pytest.fixture
def heeded_interrupt() -> Iterator[None]:
    """A child inherits an ignored interrupt, as shells give it to what runs in the background; one with a handler not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupt")
def test_interrupted_scan_leaves_no_half_report(
    tmp_path: Path, environment: dict[str, str], stalling: Stalling
) -> None:
    done = subprocess.Popen(
        [*COMMAND, "scan", "octo-org/octo-shop", "--github-api-url", stalling.url],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert stalling.asked.wait(PATIENCE_S)

    done.send_signal(signal.SIGINT)
    printed, said = done.communicate(timeout=PATIENCE_S)

    assert (done.returncode, printed) == (130, b"")
    assert b"Traceback" not in said
    assert not (tmp_path / "dependfix-reports").exists()


def test_children_end_with_the_server(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]
) -> None:
    marker = tmp_path / "child.pid"
    tool = tmp_path / "gh"
    tool.write_text(f"#!/bin/sh\necho $$ > '{marker}.new'\nmv '{marker}.new' '{marker}'\nsleep 60\n", encoding="utf-8")
    tool.chmod(0o755)
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    served = serve("--toolsets", "dependfix", "--gh-auth", cwd=tmp_path, env=environment)
    served.initialize()
    served.call(2, "fetch_alerts", repo="octo-org/octo-shop")
    wait_until(marker.exists)
    child = int(marker.read_text(encoding="utf-8"))

    served.process.send_signal(signal.SIGTERM)

    assert served.process.wait(timeout=PATIENCE_S) == 143
    wait_until(lambda: not is_alive(child))


def test_dead_parent_ends_it_while_the_pipe_stays_open(tmp_path: Path, environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    note = tmp_path / "server.pid"
    script = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen({[*COMMAND, '--toolsets', 'dependfix']!r}, stdin={reading}, stdout=subprocess.PIPE)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "child.stdout.readline()\n"
        "os._exit(0)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=environment, pass_fds=(reading,))
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    os.write(writing, json.dumps(message).encode() + b"\n")

    assert parent.wait(timeout=PATIENCE_S) == 0
    server = int(note.read_text(encoding="utf-8"))
    wait_until(lambda: not is_alive(server))
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "poor",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"PYTHONWARNINGS": "error"},
        {"HOME": "/nonexistent"},
    ],
)
def test_poor_environments_are_enough(serve: Callable[..., Served], tmp_path: Path, poor: dict[str, str]) -> None:
    served = serve("--toolsets", "dependfix", cwd=tmp_path, env={"PATH": os.environ["PATH"], **poor})
    served.initialize()
    served.call(2, "fetch_alerts", repo="octo-org/größe\u202e")
    served.call(3, "fetch_alerts", repo="octo-org/octo-shop")

    assert served.answer(2)["result"]["structuredContent"]["code"] == "invalid_arguments"
    answer = served.answer(3)["result"]["structuredContent"]
    assert (answer["error"], answer["code"]) == ("GITHUB_TOKEN not set", "auth_missing")
    assert served.end() == (0, b"")


def test_root_directory_is_never_written_to(
    serve: Callable[..., Served], environment: dict[str, str], tmp_path: Path
) -> None:
    with LoopbackGitHub([hosted("octo-shop")], token=TOKEN) as github:
        served = serve("--toolsets", "dependfix", "--github-api-url", github.url, cwd=Path("/"), env=environment)
        served.initialize()
        served.call(2, "run_scan", repo="octo-org/octo-shop")
        answer = served.answer(2)["result"]["structuredContent"]
        served.end()

    assert not Path("/dependfix-reports").exists()
    assert {Path(file["path"]).parent for file in answer["reportFiles"]} == {
        tmp_path / "home" / ".local" / "state" / "dependfix-mcp" / "reports"
    }


def test_planted_token_is_nowhere(serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]) -> None:
    """GitHub echoes the token into everything it says; nothing of ours repeats it."""
    shop = hosted("octo-shop")
    for alert in shop.alerts:
        alert["security_advisory"]["summary"] = f"leak {TOKEN} Bearer {TOKEN}"
        alert["dependency"]["manifest_path"] = f"{TOKEN}/package-lock.json"
    with LoopbackGitHub([shop], token=TOKEN) as github:
        github.script(r"/repos/octo-org/refused/.*", *[Reply(status=403, body={"message": f"no, {TOKEN}"})] * 5)
        served = serve("--toolsets", "dependfix", "--github-api-url", github.url, cwd=tmp_path, env=environment)
        served.initialize()
        served.call(2, "fetch_alerts", repo="octo-org/octo-shop")
        served.call(3, "run_scan", repo="octo-org/octo-shop", severity="all")
        served.call(4, "fetch_alerts", repo="octo-org/refused")
        answers = [served.answer(identifier) for identifier in (2, 3, 4)]
        served.send("resources/read", {"uri": "dependfix://reports/latest"}, 5)
        answers.append(served.answer(5))
        _, said = served.end()

    assert answers[0]["result"]["structuredContent"]["ok"]
    assert TOKEN.encode() not in served.seen + said
    reports = list((tmp_path / "dependfix-reports").glob("dependfix-report-*"))
    assert len(reports) == 4
    for report in reports:
        assert TOKEN.encode() not in report.read_bytes(), report.suffix


@pytest.mark.parametrize(
    "flags",
    [("--toolsets", "nope"), ("--tools", "nope"), ("--exclude-tools", "nope"), ("--nope",), ("nope",), ("--port", "x")],
)
def test_wrong_switches_end_with_exit_code_two(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str], flags: tuple[str, ...]
) -> None:
    served = serve(*flags, cwd=tmp_path, env=environment)

    code, said = served.end()
    assert code == 2
    assert b"nope" in said or b"--port" in said
    assert bytes(served.seen) == b""


def test_suspec_alone_without_its_cli_ends_with_exit_code_three(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str]
) -> None:
    served = serve("--toolsets", "suspec", cwd=tmp_path, env={**environment, "PATH": str(tmp_path)})
    served.write(b"")

    assert served.process.wait(timeout=PATIENCE_S) == 3
    assert served.process.stderr is not None
    assert b"suspec" in served.process.stderr.read()


@pytest.fixture
def older_suspec(tmp_path: Path) -> Path:
    """A suspec CLI whose contract is not the one that is understood."""
    contract = load_recorded()["contract"]["stdout"].replace("0.26.0", "0.23.0").encode()
    fake = install(tmp_path / "cli", DATA / "recorded.json", tmp_path)
    fake.answer("contract", contract, 0)
    return fake.launcher


def test_suspec_alone_of_another_contract_ends_with_exit_code_three(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str], older_suspec: Path
) -> None:
    served = serve("--toolsets", "suspec", "--suspec-bin", str(older_suspec), cwd=tmp_path, env=environment)
    served.write(b"")

    assert served.process.wait(timeout=PATIENCE_S) == 3
    assert served.process.stderr is not None
    assert served.process.stderr.read().decode().splitlines() == [
        "dependfix-mcp: the suspec CLI speaks contract 0.23.0, needed is 0.26.0",
        "Use a suspec CLI with checks contract 0.26.0; --suspec-bin or SUSPEC_BIN names it.",
    ]


def test_suspec_of_another_contract_beside_others_leaves_them_working(
    serve: Callable[..., Served], tmp_path: Path, environment: dict[str, str], older_suspec: Path
) -> None:
    served = serve("--toolsets", "suspec,dependfix", "--suspec-bin", str(older_suspec), cwd=tmp_path, env=environment)
    served.initialize()
    served.send("tools/call", {"name": "suspec_check", "arguments": {"paths": ["/a.md"]}}, 2)
    check = served.answer(2)["result"]["structuredContent"]
    served.send("tools/call", {"name": "get_last_report", "arguments": {}}, 3)
    report = served.answer(3)["result"]["structuredContent"]

    assert (check["code"], check["details"]["found"], check["details"]["needed"]) == (
        "contract_mismatch",
        "0.23.0",
        "0.26.0",
    )
    assert report["ok"] is True
    assert served.process.poll() is None


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z"
