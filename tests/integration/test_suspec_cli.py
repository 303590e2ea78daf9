"""What only the real suspec CLI can show; everything else runs over its recorded answers too."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from adapters.suspec import SuspecCli, check_request
from adapters.suspec.request import CheckRequest
from dependfix_core.errors import CommandTimeoutError
from dependfix_core.process import SubprocessRunner
from recording.record_suspec import find_cli, load_recorded, load_scenarios, materialise, record

pytestmark = [pytest.mark.anyio, pytest.mark.needs_tool("suspec")]

SPEC = next(case for case in load_scenarios() if case["id"] == "spec-warning-citation")


def real_cli(timeout_s: float) -> SuspecCli:
    return SuspecCli(
        runner=SubprocessRunner(),
        executable=os.environ["SUSPEC_BIN"],
        node=os.environ.get("NODE_BIN") or "node",
        check_timeout_s=timeout_s,
    )


def running_on(folder: Path) -> list[str]:
    """Processes that were started with a path in this folder, and have not ended."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def ends(condition: Callable[[], bool]) -> bool:
    for _ in range(300):
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.timeout(300)
def test_the_recordings_are_what_the_cli_answers_now() -> None:
    recorded, _ = record(find_cli(os.environ), os.environ)

    assert recorded == load_recorded()


@pytest.fixture
def blocked(tmp_path: Path) -> CheckRequest:
    """A spec whose named sources are a pipe that nobody writes: the CLI waits for ever."""
    materialise(SPEC, tmp_path)
    (tmp_path / "sources.md").unlink()
    os.mkfifo(tmp_path / "sources.md")
    return check_request([str(tmp_path / "spec.md")])


async def test_a_blocked_cli_ends_with_the_process_that_it_started(blocked: CheckRequest, tmp_path: Path) -> None:
    with pytest.raises(CommandTimeoutError):
        await real_cli(timeout_s=2).check(blocked)

    assert ends(lambda: running_on(tmp_path) == [])


async def test_a_cancelled_check_ends_with_the_process_that_it_started(blocked: CheckRequest, tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(real_cli(timeout_s=60).check, blocked)
        while len(running_on(tmp_path)) < 2:  # noqa: ASYNC110  # other processes start
            await anyio.sleep(0.02)
        group.cancel_scope.cancel()

    assert ends(lambda: running_on(tmp_path) == [])
