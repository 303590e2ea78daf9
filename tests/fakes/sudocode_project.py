"""A project for tests: a git checkout, the program (fake or real), and the tools on it."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.mcpserver import MCPServer

from dependfix_core.process import Command, CommandResult, Runner, SubprocessRunner
from dependfix_mcp.server import build_server
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings
from dependfix_mcp.tools.sudocode import SudocodeTools
from fakes.sudocode_cli import HEAD, FakeSudocode, install

Answer = dict[str, Any]
_NO_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
_AUTHOR = {f"GIT_{role}_{part}": "tester@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's own configuration."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **_NO_CONFIG, **_AUTHOR},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@dataclass
class InProcess:
    """Runs the fake without a process, and lets a test answer some runs itself."""

    fake: FakeSudocode
    before: list[Callable[[list[str]], CommandResult | None]] = field(default_factory=list)
    runs: list[list[str]] = field(default_factory=list)

    async def run(self, command: Command) -> CommandResult:
        """See `Runner.run`."""
        arguments = list(command.argv[1:])
        self.runs.append(arguments)
        for answer in self.before:
            result = answer(arguments)
            if result is not None:
                return result
        code, out, err = self.fake.run(arguments, command.cwd)
        return printed(code, out, err)

    def made(self, *words: str) -> int:
        """How often a command ran."""
        return sum([w for w in run if not w.startswith("-")][: len(words)] == list(words) for run in self.runs)


def printed(code: int, out: str | bytes, err: str | bytes = "") -> CommandResult:
    """A run that ended like this."""
    stdout, stderr = (text.encode() if isinstance(text, str) else text for text in (out, err))
    return CommandResult(argv=("sudocode",), exit_code=code, stdout=stdout, stderr=stderr, duration_s=0.0)


@dataclass(frozen=True)
class Program:
    """The program under the tests."""

    path: Path
    runner: Runner
    real: bool

    @property
    def fake(self) -> InProcess:
        """The runner of the fake, to look into."""
        assert isinstance(self.runner, InProcess)
        return self.runner


def fake_program(folder: Path, *, generation: str = HEAD, as_process: bool = False) -> Program:
    """The fake, in this process or as one of its own."""
    path = install(folder / f"program-{generation}", generation=generation)
    runner: Runner = SubprocessRunner() if as_process else InProcess(FakeSudocode(generation=generation))
    return Program(path=path, runner=runner, real=False)


def real_program() -> Program:
    """The one that SUDOCODE_PATH names."""
    return Program(path=Path(os.environ["SUDOCODE_PATH"]), runner=SubprocessRunner(), real=True)


def _server() -> tuple[MCPServer, SudocodeTools]:
    """A server, and the tools in it, whose settings a test can change."""
    server = build_server(Settings(toolsets=("sudocode",), sudocode_extras=True))
    method = server._tool_manager._tools["ready"].fn.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
    return server, method.__self__


# Building a server takes longer than most tests do with it.
_shared_server = cache(_server)


@dataclass
class Project:
    """A folder, and the tools of a server that was started in it."""

    root: Path
    program: Program
    working_dir: Path | None = None
    more: dict[str, Any] = field(default_factory=dict)
    own_server: bool = False
    """For tests in which several servers work at the same time."""
    _sessions: dict[str, Any] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of a server with this project's settings, which keeps what it knows from call to call."""
        settings = Settings(
            toolsets=("sudocode",),
            sudocode_path=str(self.program.path),
            sudocode_working_dir=self.working_dir or self.root,
            sudocode_extras=True,
            **self.more,
        )
        server, tools = _server() if self.own_server else _shared_server()
        key = repr(settings)
        tools._services = Services(settings=settings, runner=self.program.runner)
        tools._made = self._sessions.get(key)
        async with Client(server) as client:
            yield client
        self._sessions[key] = tools._made

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        """The answer of one tool."""
        async with self.client() as client:
            return await call(client, tool, **arguments)

    async def done(self, tool: str, /, **arguments: Any) -> Answer:
        """`call`, which has to work."""
        answer = await self.call(tool, **arguments)
        assert answer["ok"], answer
        return answer

    async def issue(self, title: str = "An issue", **more: Any) -> str:
        """Id of a new issue."""
        return str((await self.done("create_issue", title=title, **more))["issue"]["id"])

    async def spec(self, title: str = "A spec", **more: Any) -> str:
        """Id of a new spec."""
        return str((await self.done("create_spec", title=title, **more))["spec"]["id"])

    def by_hand(self, *arguments: str, folder: Path | None = None) -> Any:
        """Run the program itself, as a person would; the JSON document it prints, if it prints one."""
        where = folder or self.root
        if isinstance(self.program.runner, InProcess):
            code, out, err = self.program.runner.fake.run(list(arguments), where)
        else:
            environment = {**os.environ, "SUDOCODE_DISABLE_UPDATE_CHECK": "true"}
            done = subprocess.run(
                [str(self.program.path), *arguments],
                cwd=where,
                env=environment,
                check=False,
                capture_output=True,
                text=True,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        assert code == 0, (arguments, out, err)
        with contextlib.suppress(ValueError):
            return json.loads(out)
        return out

    @property
    def release(self) -> tuple[int, ...]:
        """Numbers of the program's version."""
        return tuple(map(int, re.findall(r"\d+", str(self.by_hand("--version")))[:3]))

    @property
    def folder(self) -> Path:
        """The `.sudocode` folder."""
        return self.root / ".sudocode"

    def titles(self, kind: str = "issue") -> list[str]:
        """What the committed file holds, in its order."""
        lines = (self.folder / f"{kind}s.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["title"] for line in lines if line.strip()]

    def files(self) -> dict[str, bytes]:
        """The committed files as they are."""
        return {name: (self.folder / name).read_bytes() for name in ("issues.jsonl", "specs.jsonl")}

    def rewrite(self, change: Callable[[list[Answer]], Sequence[Answer]], kind: str = "issue") -> None:
        """Change the rows of a committed file, as a pull would."""
        path = self.folder / f"{kind}s.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        text = "".join(f"{json.dumps(row, separators=(',', ':'), ensure_ascii=False)}\n" for row in change(rows))
        path.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        """Commit what git tracks of the project."""
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "state")

    def clone(self, root: Path) -> "Project":
        """A fresh clone: the committed files, no database."""
        git(self.root, "clone", "-q", str(self.root), str(root))
        return Project(root=root, program=self.program)


async def call(client: Client, tool: str, /, **arguments: Any) -> Answer:
    """The structured answer of one call."""
    result = await client.call_tool(tool, arguments)
    answer: Answer | None = result.structured_content
    assert answer is not None
    assert result.is_error is not answer["ok"]
    return answer


def codes(answer: Answer) -> list[str]:
    """The codes of an answer's warnings."""
    return [warning["code"] for warning in answer.get("warnings", [])]
