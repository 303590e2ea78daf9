"""What the real sudocode printed, scenario by scenario, and a runner that answers with it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from dependfix_core.errors import CommandBrokenError
from dependfix_core.process import Command, CommandResult
from fakes.sudocode_cli import FakeSudocode

Step = dict[str, Any]
DATA = Path(__file__).parents[1] / "data/sudocode"


@dataclass(frozen=True)
class Scenario:
    """Runs that belong together: ids agree within one scenario."""

    name: str
    generation: str
    tools: tuple[str, ...]
    steps: tuple[Step, ...]


@cache
def scenarios() -> dict[str, Scenario]:
    """All of them, by name."""
    found = {}
    for line in (DATA / "recordings.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        found[case["id"]] = Scenario(case["id"], case["generation"], tuple(case["tools"]), tuple(case["steps"]))
    return found


# Not sent by the adapter, since they are what the program does without them.
DEFAULTS = {
    "--type=references",
    "--type=comment",
    "--type=task",
    "--type=feature",
    "--priority=2",
    "--description=",
    "--reason=Completed",
    "--file-path=",
    "--verbose",
    "--limit=-1",  # what lists are asked for, where the recordings leave the limit out
}


def placed(value: Any, root: Path) -> Any:
    """A recorded value with the scenario's folder and long arguments filled in."""
    if isinstance(value, str):
        text = value.replace("{{ROOT}}", str(root)).replace("{{HOME}}", str(root / "home"))
        text = text.replace("{{SUDOCODE_INSTALL}}", "/opt/lib/node_modules/sudocode")
        return re.sub(r"<(\d+) times x>", lambda match: "x" * int(match[1]), text)
    if isinstance(value, list):
        return [placed(item, root) for item in value]
    return value


def given_ids(step: Step) -> list[str]:
    """The id that a recorded run gave to what it made."""
    words = [word for word in step["argv"] if not word.startswith("-")]
    if step["exit_code"] == 0 and words[1:2] in (["create"], ["add"]):
        try:
            return [json.loads(step["stdout"])["id"]]
        except (ValueError, KeyError, TypeError):
            return []
    return []


def do_by_hand(step: Step, root: Path) -> None:
    """What happened between two runs: a shell command, or a file written by hand."""
    if "shell" in step:
        folder = Path(placed(step["cwd"], root))
        who = {f"GIT_{role}_{part}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        where = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["sh", "-c", step["shell"]], cwd=folder, check=False, env={**os.environ, **who, **where})
    if "write_file" in step:
        Path(placed(step["write_file"], root)).write_text(placed(step["text"], root), encoding="utf-8")


def make_root(root: Path, scenario: Scenario) -> None:
    """The empty git repositories that a scenario starts in."""
    folders = {Path(placed(step["cwd"], root)) for step in scenario.steps if "cwd" in step}
    for folder in sorted(folders):
        if not any("clone" in str(step.get("shell", "")) for step in scenario.steps) or folder.name != "clone":
            folder.mkdir(parents=True, exist_ok=True)
    top = root / "main" if root / "main" in folders else root
    if not any(folder.name in ("proj", "elsewhere") for folder in folders):
        subprocess.run(["git", "init", "-q", str(top)], check=True)


def step_clock() -> tuple[Iterator[datetime], datetime]:
    """Moments that rise by a second, from a fixed one."""
    start = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)

    def moments() -> Iterator[datetime]:
        now = start
        while True:
            now += timedelta(seconds=1)
            yield now

    return moments(), start


def canonical(
    arguments: list[str], exit_code: int | None = 0
) -> tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]:
    """A command as what it means: words, options other than defaults, positionals."""
    head, _, tail = "\0".join(arguments).partition("\0--\0")
    words: list[str] = []
    options: set[str] = set()
    for argument in head.split("\0"):
        if argument == "--json":
            continue
        if argument.startswith("-"):
            if argument not in DEFAULTS or (exit_code and argument != "--limit=-1"):
                options.add(argument)
        else:
            words.append(argument)
    two = words[0] in ("issue", "spec", "feedback") if words else False
    count = 2 if two else 1
    positionals = [*words[count:], *(tail.split("\0") if tail else [])]
    return tuple(words[:count]), frozenset(options), tuple(positionals)


@dataclass(kw_only=True)
class ReplayRunner:
    """Answers a run with its recording where there is one, and otherwise as the fake that follows along does.

    `expect` arms it with the step of the recording that comes next. A run that
    means the same is answered with exactly what was recorded; the fake does it
    too, so that runs which the adapter makes beside it find the same project.
    """

    fake: FakeSudocode
    root: Path
    expected: Step | None = None
    replayed: int = 0
    runs: list[list[str]] = field(default_factory=list)

    def expect(self, step: Step) -> None:
        """The step that the next call should lead to."""
        self.expected = step
        self.fake.new_ids = iter(given_ids(step))

    async def run(self, command: Command) -> CommandResult:
        """See `Runner.run`."""
        arguments = list(command.argv[1:])
        self.runs.append(arguments)
        step = self.expected
        if step is not None and canonical(arguments) == canonical(placed(step["argv"], self.root), step["exit_code"]):
            if "database is locked" not in step["stderr"]:  # a second try meets the same lock
                self.expected = None
            self.replayed += 1
            return self._recorded(command, step)
        return self._by_fake(command, arguments)

    def _recorded(self, command: Command, step: Step) -> CommandResult:
        if step["exit_code"] is None:
            raise CommandBrokenError("cannot start it", argv=command.argv)
        follow(self.fake, step, self.root)
        stdout, stderr = (placed(step[name], self.root).encode() for name in ("stdout", "stderr"))
        return CommandResult(
            argv=command.argv, exit_code=step["exit_code"], stdout=stdout, stderr=stderr, duration_s=0.0
        )

    def _by_fake(self, command: Command, arguments: list[str]) -> CommandResult:
        code, out, err = self.fake.run(arguments, command.cwd)
        return CommandResult(
            argv=command.argv, exit_code=code, stdout=out.encode(), stderr=err.encode(), duration_s=0.0
        )


def follow(fake: FakeSudocode, step: Step, root: Path) -> tuple[int, str, str]:
    """Let the fake do what was recorded, with the ids that the real program gave."""
    fake.new_ids = iter(given_ids(step))
    fake.user = step["env"].get("USER", "tester") or "cli"
    cwd = Path(placed(step["cwd"], root))
    answer = fake.run(placed(step["argv"], root), cwd)
    fake.new_ids = None
    return answer
