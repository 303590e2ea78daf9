"""What the server costs over the SDK it is built on, in alternating rounds of one run.

usage: python benchmarks/server.py [ALERTS]

- start: from spawning the process to its answer to `initialize`, against a
  minimal server on the same SDK;
- call: one round trip of a trivial tool, against the same;
- whole: CPU of a process that scans a repository report-only, beyond its own start.

Times of the start are CPU times of the child, which the machine's other work does not change.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

START_BUDGET = 1.25
CALL_BUDGET = 3.0
WHOLE_BUDGET_S = 1.5
ROUNDS = 9
CALLS = 300
MINIMAL = """
from mcp.server.mcpserver import MCPServer
server = MCPServer(name="minimal", version="1")
@server.tool()
async def trivial() -> dict[str, bool]:
    "Answer with a constant."
    return {"ok": True}
server.run()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}},
}


class Child:
    """A server over its pipes."""

    def __init__(self, command: list[str], folder: str, **variables: str) -> None:
        home = {"PATH": os.environ["PATH"], "HOME": folder}
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env={**home, **variables}
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()
        while True:
            answer: dict[str, Any] = json.loads(self._out.readline())
            if answer.get("id") == message["id"]:
                return answer

    def initialize(self) -> float:
        """Seconds from spawning to the answer."""
        self.ask(INITIALIZE)
        taken = time.perf_counter() - self.begun
        self._in.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self._in.flush()
        return taken

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        message = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        answer: dict[str, Any] = self.ask(message)["result"]["structuredContent"]
        return answer

    def end(self) -> float:
        """CPU seconds of the whole process."""
        self._in.close()
        _, _, used = os.wait4(self._process.pid, 0)
        self._process.returncode = 0
        self._out.close()
        return used.ru_utime + used.ru_stime


def ours(*flags: str) -> list[str]:
    return [sys.executable, "-m", "dependfix_mcp", *flags]


def start(folder: str) -> float:
    """Quotient of the CPU that both take to start, answer and end."""
    quotients, wall = [], []
    for _ in range(ROUNDS):
        minimal, mine = Child([sys.executable, "-c", MINIMAL], folder), None
        base_wall = minimal.initialize()
        base = minimal.end()
        mine = Child(ours(), folder)
        mine_wall = mine.initialize()
        quotients.append(mine.end() / base)
        wall.append(mine_wall / base_wall)
    print(f"start, wall clock         {statistics.median(wall):6.2f}")
    return statistics.median(quotients)


def call(folder: str) -> float:
    """Quotient of the median round trips."""
    minimal = Child([sys.executable, "-c", MINIMAL], folder)
    mine = Child(ours(), folder)
    minimal.initialize()
    mine.initialize()
    base, taken = [], []
    for _ in range(CALLS):
        base.append(timed(lambda: minimal.call("trivial")))
        taken.append(timed(lambda: mine.call("get_last_report", runId="20260101-000000-aaaaaa")))
    minimal.end()
    mine.end()
    print(f"call                      {1000 * statistics.median(taken):6.2f} ms")
    return statistics.median(taken) / statistics.median(base)


def timed(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@contextmanager
def service(alerts: int) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name("fetch.py")), "--serve", str(alerts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().split()[0]
            with socket.create_connection(("127.0.0.1", int(port))):
                yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def whole(folder: str, alerts: int) -> float:
    """CPU seconds of a report-only scan beyond the process's own start."""
    with service(alerts) as address:
        more = []
        for _ in range(3):
            idle = Child(ours("--toolsets", "dependfix"), folder)
            idle.initialize()
            base = idle.end()
            flags = ("--toolsets", "dependfix", "--github-api-url", address, "--offline")
            busy = Child(ours(*flags), folder, GITHUB_TOKEN="ghp_benchmark")
            busy.initialize()
            answer = busy.call("run_scan", repo="octo-org/octo-shop", severity="all")
            assert answer["summary"]["alertsFound"] == alerts, answer
            assert answer["reportFiles"]
            more.append(busy.end() - base)
        return min(more)


def main(alerts: int) -> int:
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for name, found, budget, unit in (
            ("start", start(folder), START_BUDGET, ""),
            ("call", call(folder), CALL_BUDGET, ""),
            (f"scan of {alerts} alerts", whole(folder, alerts), WHOLE_BUDGET_S, " s CPU beyond the start"),
        ):
            print(f"{name:25} {found:6.2f}{unit} (budget {budget:g})")
            fine = fine and found <= budget
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
