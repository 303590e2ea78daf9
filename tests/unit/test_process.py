import contextlib
import gc
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from dependfix_core.errors import (
    CommandBrokenError,
    CommandKilledError,
    CommandNotFoundError,
    CommandOutputTooLargeError,
    CommandTimeoutError,
)
from dependfix_core.process import Command, SubprocessRunner, clean_text, locate, redact, runner

pytestmark = pytest.mark.anyio
RUNNER = SubprocessRunner()


def python(code: str, **more: object) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=Path.cwd(), **more)  # type: ignore[arg-type]  # keyword pass-through


def is_alive(pid: str) -> bool:
    """A killed child without a parent that reaps it stays as a zombie; that is not alive."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


def is_gone(pid: str) -> bool:
    """A killed process takes a moment to go."""
    for _ in range(200):
        if not is_alive(pid):
            return True
        time.sleep(0.01)
    return False


async def test_any_exit_code_is_a_result() -> None:
    result = await RUNNER.run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))

    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")


async def test_stdin_is_empty() -> None:
    result = await RUNNER.run(python("import sys; print(repr(sys.stdin.read()))"))

    assert result.stdout == b"''\n"


async def test_only_the_allowlist_and_the_given_variables_reach_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_planted0000000000000000000000000000")

    result = await RUNNER.run(python("import os; print(sorted(os.environ))", env={"MINE": "1"}))

    assert b"GITHUB_TOKEN" not in result.stdout
    assert b"'MINE'" in result.stdout


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command(argv=("no-such-program-here",), cwd=Path.cwd()), CommandNotFoundError),
        (python("import time; time.sleep(60)", timeout_s=0.3), CommandTimeoutError),
        (python("while True: print('x' * 1000)", max_output_bytes=100_000), CommandOutputTooLargeError),
        (python("import os; os.kill(os.getpid(), 9)"), CommandKilledError),
        (Command(argv=(sys.executable, "x" * 200_000), cwd=Path.cwd()), CommandBrokenError),
    ],
)
async def test_an_unusable_run_has_its_own_error(command: Command, error: type[Exception]) -> None:
    with pytest.raises(error):
        await RUNNER.run(command)


@pytest.mark.skipif(sys.platform == "win32", reason="scripts name their interpreter on POSIX only")
@pytest.mark.parametrize("path", [".:{bin}", ":{bin}", "hostile:{bin}:", "", ".", "{bin}"])
async def test_the_interpreter_of_a_script_is_never_looked_up_where_the_child_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for folder, word in (("there", "hostile"), ("there/hostile", "hostile"), ("bin", "right")):
        (tmp_path / folder).mkdir(exist_ok=True)
        interpreter = tmp_path / folder / "interpreter"
        interpreter.write_text(f"#!/bin/sh\necho {word}\n", encoding="utf-8")
        interpreter.chmod(0o755)
    script = tmp_path / "bin" / "tool"
    script.write_text("#!/usr/bin/env interpreter\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", path.format(bin=tmp_path / "bin"))

    result = await RUNNER.run(Command(argv=(str(script),), cwd=tmp_path / "there"))

    assert result.stdout == (b"right\n" if "{bin}" in path else b"")


async def test_no_child_of_the_group_survives(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time, pathlib\npid = os.fork()\nif pid == 0: time.sleep(60)\nelse: pathlib.Path({str(pid_file)!r}).write_text(str(pid))"

    await RUNNER.run(python(code))

    assert is_gone(pid_file.read_text())


@pytest.mark.skipif(sys.platform == "win32", reason="groups are killed otherwise there")
@pytest.mark.parametrize("ending", ["exit", "timeout"])
async def test_the_group_is_ended_without_any_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(runner, "_kill_marked", lambda _mark: None)
    pid_file = tmp_path / "pid"
    code = f"import os, time\npid = os.fork()\nif pid: open({str(pid_file)!r}, 'w').write(str(pid))\nif not pid or {ending == 'timeout'}: time.sleep(60)"

    if ending == "exit":
        await RUNNER.run(python(code))
    else:
        with pytest.raises(CommandTimeoutError):
            await RUNNER.run(python(code, timeout_s=1))

    assert is_gone(pid_file.read_text())


LEAVES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    open({pid_file!r}, "w").write(str(os.getpid()))
    if {daemon}:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in 0, 1, 2: os.dup2(null, fd)
    time.sleep(60)
while not os.path.exists({pid_file!r}): time.sleep(0.01)
print("done")
time.sleep({stays})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="found through /proc")
@pytest.mark.parametrize(
    ("daemon", "stays", "more", "error"),
    [
        (False, 0, {}, None),
        (True, 0, {"sweep": True}, None),
        (False, 60, {"timeout_s": 0.5}, CommandTimeoutError),
        (True, 60, {"timeout_s": 0.5}, CommandTimeoutError),
    ],
    ids=["holds-the-pipes", "daemon", "holds-the-pipes-at-timeout", "daemon-at-timeout"],
)
async def test_a_process_that_left_the_group_is_ended_too(
    tmp_path: Path, daemon: bool, stays: int, more: dict[str, Any], error: type[Exception] | None
) -> None:
    pid_file = tmp_path / "pid"
    command = python(LEAVES.format(pid_file=str(pid_file), daemon=daemon, stays=stays), **more)

    if error is None:
        assert (await RUNNER.run(command)).stdout == b"done\n"
    else:
        with pytest.raises(error):
            await RUNNER.run(command)

    assert is_gone(pid_file.read_text())


async def test_a_cancelled_call_leaves_nothing(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    async def cancel_when_started() -> None:
        while not (pid_file.exists() and pid_file.read_text()):  # noqa: ASYNC110  # another process writes it
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel_when_started)
        await RUNNER.run(python(LEAVES.format(pid_file=str(pid_file), daemon=True, stays=60)))

    assert is_gone(pid_file.read_text())


def test_a_call_that_is_cancelled_while_the_child_starts_leaves_nothing() -> None:
    token = secrets.token_hex(8)

    async def cancelled(after_s: float) -> None:
        with anyio.move_on_after(after_s):
            await RUNNER.run(python(f"import time; time.sleep(60)  # {token}"))

    for step in range(20):
        anyio.run(cancelled, step / 4_000)
        gc.collect()  # a child that is forgotten when the loop ends is warned about

    assert not any(is_alive(pid) for pid in pids_of(token))


def pids_of(token: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if token.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


async def test_an_executable_is_located_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))

    missing = locate("tool")
    program.chmod(0o755)

    assert missing is None
    assert locate("tool") == locate(str(program)) == str(program)


def test_credentials_are_taken_out_of_text() -> None:
    text = "token ghp_abcdefghijklmnopqrstuv https://user:pass@host/x Authorization: Bearer abc.def.ghi-jkl own-secret"

    assert redact(text, "own-secret") == (
        "token [redacted] https://[redacted]@host/x Authorization: [redacted] [redacted]"
    )


@pytest.mark.parametrize(
    "prose",
    [
        "Action Controller HTTP token authentication ReDoS",
        "Bearer authentication is skipped; a Basic Cross-Site check, token verification.",
        "Improper Authorization: missing checks in user-management",
        "risk-based-authentication-flow needs disk-encryption-at-rest-by-default",
        "pypi-attestation-models-for-everybody",
    ],
)
def test_prose_is_no_credential(prose: str) -> None:
    assert redact(prose) == prose


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("bearer eyJhbGciOi", "bearer [redacted]"),
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [redacted]"),
        ("token 0123456789abcdef", "token [redacted]"),
        ("authorization=a1b2c3d4", "authorization=[redacted]"),
        ("//npm.registry.example/:_authToken=plainword", "//npm.registry.example/:_authToken=[redacted]"),
        ('{"_auth": "abcd1234"}', '{"_auth": "[redacted]"}'),
        ("key sk-proj-AbCdEfGhIjKlMnOpQrStUv", "key [redacted]"),
        ("pypi-AgEIcHlwaS5vcmcCJDAw", "[redacted]"),
        (r"as escaped:\nghp_0123456789abcdefghij", r"as escaped:\n[redacted]"),
        (r"as escaped:\nsk-proj-AbCdEfGhIjKlMnOpQrStUv", r"as escaped:\n[redacted]"),
    ],
)
def test_credentials_of_every_shape_are_taken_out(text: str, left: str) -> None:
    assert redact(text) == left


def test_untrusted_text_loses_escapes_and_invisible_characters() -> None:
    text = "a\x1b[31mb\u202ec\u200bd\x00e\U000e0041f 👩\u200d💻 ok\nnext"

    assert clean_text(text) == "abcdef 👩\u200d💻 ok\nnext"
    assert clean_text(text, one_line=True, max_chars=5) == "abcd…"
