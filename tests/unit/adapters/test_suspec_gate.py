import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.suspec import CheckAnswer, Contract, GateResult, Refused, Reports, SuspecCli, check_request
from dependfix_core.errors import CommandBrokenError, CommandError, CommandNotFoundError, CommandTimeoutError
from dependfix_core.process import Command, CommandResult
from recording.record_suspec import load_recorded

pytestmark = pytest.mark.anyio

CONTRACT = load_recorded()["contract"]["stdout"].encode()
OLD_CONTRACT = CONTRACT.replace(b"0.26.0", b"0.23.0")
REFUSAL = b'{"error":"Usage","message":"no\\u202e"}\n'

Answer = tuple[bytes, int] | CommandError


class ScriptedRunner:
    """Answers contract and check commands from two slots, and keeps what was run."""

    def __init__(self, contract: Answer = (CONTRACT, 0)) -> None:
        self.contract: Answer = contract
        self.check: Answer | Callable[[Command], Answer] = clean_reports
        self.seen: list[Command] = []
        self.hold: anyio.Event | None = None
        self.running = self.most_running = 0

    async def run(self, command: Command) -> CommandResult:
        self.seen.append(command)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            if self.hold is not None:
                await self.hold.wait()
        finally:
            self.running -= 1
        answer = self.contract if "--contract" in command.argv else self.check
        if callable(answer):
            answer = answer(command)
        if isinstance(answer, CommandError):
            raise answer
        stdout, exit_code = answer
        return CommandResult(argv=command.argv, exit_code=exit_code, stdout=stdout, stderr=b"words", duration_s=0.1)

    @property
    def verbs(self) -> str:
        """`g` for each request of the contract, `c` for each check, in order."""
        return "".join("g" if "--contract" in command.argv else "c" for command in self.seen)


def clean_reports(command: Command) -> Answer:
    paths = [argument for argument in command.argv[2:] if argument.startswith("/")]
    reports = [{"level": "clean", "path": path, "type": "audit", "checked": False} for path in paths]
    return "".join(json.dumps(report) + "\n" for report in reports).encode(), 0


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    path = tmp_path / "suspec"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def cli_on(runner: ScriptedRunner, executable: Path, **more: Any) -> SuspecCli:
    return SuspecCli(runner=runner, executable=str(executable), **more)


def replace(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.write_text(text)


async def check(cli: SuspecCli, *paths: str) -> CheckAnswer:
    return await cli.check(check_request(paths or ("/a.md",)))


async def code_of_check(cli: SuspecCli) -> str:
    with pytest.raises(CommandError) as caught:
        await check(cli)
    return caught.value.code


async def test_the_gate_is_asked_once_before_the_first_check(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)

    assert cli.last_gate is None
    for _ in range(3):
        assert isinstance((await check(cli)).outcome, Reports)

    assert runner.verbs == "gccc"
    assert cli.last_gate == GateResult(needed="0.26.0", found="0.26.0", executable=str(executable), error=None)


@pytest.mark.parametrize(
    ("answer", "code", "details"),
    [
        ((OLD_CONTRACT, 0), "contract_mismatch", {"found": "0.23.0", "needed": "0.26.0"}),
        ((CONTRACT, 1), "contract_mismatch", {"reason": "exit-code", "exitCode": 1, "stderr": "words", "needed": "0.26.0"}),
        ((CONTRACT, 7), "contract_mismatch", {"reason": "cli_failed", "exitCode": 7, "stderr": "words", "needed": "0.26.0"}),
        ((b"", 2), "contract_mismatch", {"reason": "cli_failed", "exitCode": 2, "stderr": "words", "needed": "0.26.0"}),
        ((b"", 0), "contract_mismatch", {"reason": "empty", "exitCode": 0, "stderr": "words", "needed": "0.26.0"}),
        ((CONTRACT[:-9], 0), "contract_mismatch", {"reason": "json", "exitCode": 0, "stderr": "words", "needed": "0.26.0"}),
        ((REFUSAL, 2), "contract_mismatch", {"reason": "cli_refused", "refusal": "no", "exitCode": 2, "needed": "0.26.0"}),
        ((b"", 127), "cli_broken", {"exitCode": 127, "stderr": "words", "needed": "0.26.0"}),
        (CommandTimeoutError("slow", argv=()), "timeout", {"needed": "0.26.0"}),
        (CommandBrokenError("signal", argv=()), "cli_broken", {"needed": "0.26.0"}),
        (CommandNotFoundError("gone", argv=()), "cli_missing", {"needed": "0.26.0"}),
    ],
)  # fmt: skip
async def test_no_check_runs_before_the_gate_has_passed(
    executable: Path, answer: Answer, code: str, details: dict[str, Any]
) -> None:
    runner = ScriptedRunner(answer)
    cli = cli_on(runner, executable)

    gate = await cli.gate()

    assert not gate.passed
    assert gate.error is not None
    assert (gate.error.code, gate.error.details) == (code, {**details, "executable": str(executable)})
    assert gate.found == details.get("found")
    assert await code_of_check(cli) == code
    assert set(runner.verbs) == {"g"}


async def test_a_later_success_of_the_gate_is_the_way_back(executable: Path) -> None:
    runner = ScriptedRunner((OLD_CONTRACT, 0))
    cli = cli_on(runner, executable)

    assert await code_of_check(cli) == "contract_mismatch"
    runner.contract = (CONTRACT, 0)
    await check(cli)
    await check(cli)

    assert runner.verbs == "ggcc"


async def test_reading_the_contract_asks_anew_and_is_the_gate(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)

    assert isinstance((await cli.contract()).outcome, Contract)
    await check(cli)
    runner.contract = (REFUSAL, 2)
    assert isinstance((await cli.contract()).outcome, Refused)
    assert await code_of_check(cli) == "contract_mismatch"
    runner.contract = (OLD_CONTRACT, 0)
    with pytest.raises(CommandError) as caught:
        await cli.contract()

    assert caught.value.code == "contract_mismatch"
    assert runner.verbs == "gcggg"


async def test_another_executable_is_asked_for_its_contract_first(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)
    await check(cli)

    os.utime(executable, ns=(1, 1))
    await check(cli)
    runner.contract = (OLD_CONTRACT, 0)
    replace(executable, "#!/bin/sh\n# another\n")

    assert await code_of_check(cli) == "contract_mismatch"
    assert runner.verbs == "gcgcg"


async def test_a_program_that_appears_later_is_found(executable: Path) -> None:
    runner = ScriptedRunner()
    found: list[str | None] = [None]
    cli = SuspecCli(runner=runner, locate=lambda _name: found[0])

    gate = await cli.gate()
    assert gate.executable is None
    assert await code_of_check(cli) == "cli_missing"
    found[0] = str(executable)
    await check(cli)
    replace(executable, None)

    assert await code_of_check(cli) == "cli_missing"
    assert runner.verbs == "gc"


async def test_an_answer_that_cannot_be_believed_asks_for_the_contract_again(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)
    runner.check = (b"{}\n", 0)

    assert await code_of_check(cli) == "bad_output"
    runner.check = clean_reports
    await check(cli)

    assert runner.verbs == "gcgc"


async def test_callers_who_wait_for_a_failing_gate_share_its_answer(executable: Path) -> None:
    runner = ScriptedRunner((OLD_CONTRACT, 0))
    runner.hold = anyio.Event()
    cli = cli_on(runner, executable)
    codes = []

    async def one() -> None:
        codes.append(await code_of_check(cli))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        runner.hold.set()

    assert codes == ["contract_mismatch"] * 5
    assert runner.verbs == "g"


async def test_a_cancelled_gate_is_no_answer(executable: Path) -> None:
    runner = ScriptedRunner()
    runner.hold = anyio.Event()
    cli = cli_on(runner, executable)

    with anyio.move_on_after(0.05):
        await check(cli)
    runner.hold = None
    await check(cli)

    assert runner.verbs == "ggc"


async def test_a_few_checks_run_at_once_and_no_more(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)
    await cli.gate()
    runner.hold = anyio.Event()

    async def one() -> None:
        await check(cli)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(one)
        while runner.running < 4:  # noqa: ASYNC110  # threads look at the paths first
            await anyio.sleep(0.005)
        runner.hold.set()

    assert runner.most_running == 4
    assert runner.verbs == "g" + "c" * 10


async def test_the_child_gets_a_root_folder_a_short_environment_and_limits(executable: Path) -> None:
    runner = ScriptedRunner()
    await check(cli_on(runner, executable, check_timeout_s=7, contract_timeout_s=3, max_output_bytes=99), "/a b.md")

    gate, command = runner.seen
    assert command.argv == (str(executable), "check", "/a b.md", "--json")
    assert gate.argv == (str(executable), "check", "--contract", "--json")
    assert (gate.timeout_s, command.timeout_s) == (3, 7)
    for each in runner.seen:
        assert each.cwd == Path(executable.anchor)
        assert each.max_output_bytes == 99
        assert each.sweep
        assert not each.env
        assert not [name for name in each.inherit if any(part in name for part in ("TOKEN", "SECRET", "NODE_OPTIONS"))]


async def test_a_cli_replaced_while_it_ran_shows_its_contract_and_checks_again(executable: Path) -> None:
    runner = ScriptedRunner()
    texts = iter(["#!/bin/sh\n# another\n"])

    def replaced(command: Command) -> Answer:
        for text in texts:
            executable.write_text(text)
            return b"of a CLI that nobody asked for its contract", 0
        return clean_reports(command)

    runner.check = replaced

    assert isinstance((await check(cli_on(runner, executable))).outcome, Reports)
    assert runner.verbs == "gcgc"


async def test_a_cli_that_is_replaced_again_and_again_is_not_believed(executable: Path) -> None:
    runner = ScriptedRunner()

    def replaced(command: Command) -> Answer:
        executable.write_text(f"#!/bin/sh\n# {'x' * len(runner.seen)}\n")
        return clean_reports(command)

    runner.check = replaced

    with pytest.raises(CommandError) as caught:
        await check(cli_on(runner, executable))

    assert (caught.value.code, caught.value.details) == ("bad_output", {"reason": "replaced"})
    assert runner.verbs == "gcgc"


async def test_a_cli_replaced_while_checks_wait_for_their_turn_shows_its_contract_first(executable: Path) -> None:
    runner = ScriptedRunner()
    cli = cli_on(runner, executable)
    await cli.gate()
    runner.hold = anyio.Event()
    codes = []

    async def one() -> None:
        codes.append(await code_of_check(cli))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one)
        while runner.running < 4:  # noqa: ASYNC110  # threads look at the paths first
            await anyio.sleep(0.005)
        replace(executable, "#!/bin/sh\n# another\n")
        runner.contract = (OLD_CONTRACT, 0)
        runner.hold.set()

    assert codes == ["contract_mismatch"] * 6
    assert runner.verbs.rstrip("g") == "gcccc"


async def test_a_file_replaced_during_the_run_is_no_contradiction(executable: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text("1")
    two.hardlink_to(one)

    def replaced(command: Command) -> Answer:
        two.unlink()
        two.write_text("2")
        return clean_reports(command)

    runner = ScriptedRunner()
    runner.check = replaced
    answer = await check(cli_on(runner, executable), str(one), str(two))

    assert answer.distinct == (str(one), str(two))
    assert isinstance(answer.outcome, Reports)


async def test_the_command_is_quoted_for_reading(executable: Path) -> None:
    answer = await check(cli_on(ScriptedRunner(), executable), "/it's a.md", "/b.md")

    assert answer.source.command == f"""{executable} check '/it'"'"'s a.md' /b.md --json"""
    assert answer.source.exit_code == 0


async def test_a_large_answer_is_read_too(executable: Path) -> None:
    diagnostic = {"code": "C008", "severity": "warning", "message": "m" * 100, "line": None}
    report = {"type": "spec", "level": "warning", "path": "/a.md", "diagnostics": [diagnostic] * 5_000}
    runner = ScriptedRunner()
    runner.check = (json.dumps(report).encode(), 1)

    answer = await check(cli_on(runner, executable))

    assert isinstance(answer.outcome, Reports)
    assert len(answer.outcome.items[0].diagnostics) == 5_000
