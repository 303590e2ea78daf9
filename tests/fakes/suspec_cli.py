"""Stands in for the suspec CLI: answers with what was recorded, or misbehaves as told.

Started through a launcher that `install` writes; no environment variable
reaches it, as none would reach the real one. It logs each start in
`calls.jsonl` beside the launcher and, when an argument arrives that the
adapter must never send, leaves the marker `forbidden` and fails.
"""

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ALLOWED_OPTIONS = {"--json", "--contract", "--spec"}
FORBIDDEN_EXIT = 64


@dataclass(frozen=True, kw_only=True)
class FakeCli:
    """A launcher and what it wrote down."""

    folder: Path

    @property
    def launcher(self) -> Path:
        return self.folder / "suspec"

    def plan(self, **plan: Any) -> None:
        """What it answers from now on.

        `contract` and `check` each are `{"replay": true}`, `{"stdout": base64, "exit": n}`
        or `{"act": name}` with a name of `ACTS`.
        """
        before = json.loads((self.folder / "plan.json").read_text()) if (self.folder / "plan.json").exists() else {}
        (self.folder / "plan.json").write_text(json.dumps({**before, **plan}))

    def answer(self, verb: str, stdout: bytes, exit_code: int, stderr: bytes = b"") -> None:
        """Print exactly this."""
        encoded = {"stdout": base64.b64encode(stdout).decode(), "stderr": base64.b64encode(stderr).decode()}
        self.plan(**{verb: {**encoded, "exit": exit_code}})

    def calls(self) -> list[dict[str, Any]]:
        """Each start: `argv`, `pid`, `cwd`, `environ`, `stdin`."""
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def checks(self) -> list[list[str]]:
        """The arguments of each start that was no request for the contract."""
        return [call["argv"] for call in self.calls() if "--contract" not in call["argv"]]

    def left_pids(self) -> list[int]:
        """Everything it started, itself included."""
        log = self.folder / "pids"
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    @property
    def saw_forbidden(self) -> bool:
        return (self.folder / "forbidden").exists()


def install(folder: Path, recorded: Path, root: Path, case: str = "spec-clean") -> FakeCli:
    """Write the launcher; `root` is the folder that the placeholder of the recordings stands for."""
    folder.mkdir(parents=True, exist_ok=True)
    fake = FakeCli(folder=folder)
    fake.launcher.write_text(
        f"#!{sys.executable} -IS\n"
        "import sys\n"
        f"sys.path.append({str(Path(__file__).parent)!r})\n"
        "import suspec_cli\n"
        f"suspec_cli.main({str(folder)!r}, sys.argv[1:])\n"
    )
    fake.launcher.chmod(0o755)
    replay = {"replay": True}
    fake.plan(contract=replay, check=replay, recorded=str(recorded), root=str(root), case=case)
    return fake


def main(folder: str, argv: list[str]) -> NoReturn:
    """Answer one start."""
    home = Path(folder)
    plan = json.loads((home / "plan.json").read_text())
    _log(home, argv)
    allowed = argv[:1] == ["check"] and all(arg.startswith("/") or arg in ALLOWED_OPTIONS for arg in argv[1:])
    if not allowed:
        (home / "forbidden").write_text(json.dumps(argv))
        sys.exit(FORBIDDEN_EXIT)
    behaviour = plan["contract" if "--contract" in argv else "check"]
    if "act" in behaviour:
        ACTS[behaviour["act"]](home)
    elif "stdout" in behaviour:
        _print(base64.b64decode(behaviour["stdout"]), base64.b64decode(behaviour["stderr"]), behaviour["exit"])
    _replay(plan, argv)


def _log(home: Path, argv: list[str]) -> None:
    entry = {
        "argv": argv,
        "pid": os.getpid(),
        "cwd": os.getcwd(),  # noqa: PTH109  # the text, whatever it leads to
        "environ": sorted(os.environ),
        "stdin": sys.stdin.read(),
    }
    with (home / "calls.jsonl").open("a") as log:
        log.write(json.dumps(entry) + "\n")
    _note_pid(home)


def _note_pid(home: Path) -> None:
    with (home / "pids").open("a") as log:
        log.write(f"{os.getpid()}\n")


def _replay(plan: dict[str, Any], argv: list[str]) -> NoReturn:
    recorded = json.loads(Path(plan["recorded"]).read_text())
    root = plan["root"]
    case = recorded["contract" if "--contract" in argv else plan["case"]]
    if [argument.replace("{{ROOT}}", root) for argument in case["argv"]] != argv:
        sys.exit(f"not what is recorded: {argv}")
    _print(
        case["stdout"].replace("{{ROOT}}", root).encode(),
        case["stderr"].replace("{{ROOT}}", root).encode(),
        case["exit"],
    )


def _print(stdout: bytes, stderr: bytes, exit_code: int) -> NoReturn:
    sys.stdout.buffer.write(stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(stderr)
    sys.stderr.flush()
    os._exit(exit_code)


def _hang(_home: Path) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def _fork(home: Path, *, session: bool = False, daemon: bool = False) -> None:
    ready, told = os.pipe()
    if os.fork() == 0:
        if session:
            os.setsid()
        _note_pid(home)
        if daemon:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
        os.write(told, b".")
        _hang(home)
    os.read(ready, 1)


def _fork_and_hang(home: Path) -> NoReturn:
    _fork(home)
    _hang(home)


def _leave_in_session(home: Path) -> None:
    _fork(home, session=True)


def _leave_daemon(home: Path) -> None:
    _fork(home, session=True, daemon=True)


def _flood(home: Path) -> NoReturn:
    line = b'{"level":"clean","path":"/x","type":"audit","checked":false}\n' * 1_000
    for _ in range(100_000_000 // len(line) + 1):
        sys.stdout.buffer.write(line)
    sys.stdout.flush()
    (home / "flooded").touch()
    os._exit(0)


def _die(_home: Path) -> NoReturn:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


# Those that return go on with the recorded answer.
ACTS: dict[str, Callable[[Path], None]] = {
    "hang": _hang,
    "fork": _fork,
    "fork-and-hang": _fork_and_hang,
    "leave-in-session": _leave_in_session,
    "leave-daemon": _leave_daemon,
    "flood": _flood,
    "die": _die,
}
