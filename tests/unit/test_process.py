import sys
from pathlib import Path

import anyio
import pytest

from dependfix_core.errors import (
    CommandBrokenError,
    CommandNotFoundError,
    CommandOutputTooLargeError,
    CommandTimeoutError,
)
from dependfix_core.process import Command, SubprocessRunner, clean_text, redact

pytestmark = pytest.mark.anyio
RUNNER = SubprocessRunner()


def python(code: str, **more: object) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=Path.cwd(), **more)  # type: ignore[arg-type]  # keyword pass-through


def is_alive(pid: str) -> bool:
    """A killed child without a parent that reaps it stays as a zombie; that is not alive."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


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
        (python("import os; os.kill(os.getpid(), 9)"), CommandBrokenError),
    ],
)
async def test_an_unusable_run_has_its_own_error(command: Command, error: type[Exception]) -> None:
    with pytest.raises(error):
        await RUNNER.run(command)


async def test_no_child_of_the_group_survives(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time, pathlib\npid = os.fork()\nif pid == 0: time.sleep(60)\nelse: pathlib.Path({str(pid_file)!r}).write_text(str(pid))"

    await RUNNER.run(python(code))

    await anyio.sleep(0.1)
    assert not is_alive(pid_file.read_text())


def test_credentials_are_taken_out_of_text() -> None:
    text = "token ghp_abcdefghijklmnopqrstuv https://user:pass@host/x Authorization: Bearer abc.def.ghi-jkl own-secret"

    assert redact(text, "own-secret") == (
        "token [redacted] https://[redacted]@host/x Authorization: [redacted] [redacted]"
    )


def test_untrusted_text_loses_escapes_and_invisible_characters() -> None:
    text = "a\x1b[31mb\u202ec\u200bd\x00e\U000e0041f 👩\u200d💻 ok\nnext"

    assert clean_text(text) == "abcdef 👩\u200d💻 ok\nnext"
    assert clean_text(text, one_line=True, max_chars=5) == "abcd…"
