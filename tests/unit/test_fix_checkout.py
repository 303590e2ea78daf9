import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems
from dependfix_core.errors import DirtyCheckoutError, StalePlanError
from dependfix_core.metadata import NoMetadata
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.model.files import ChangeSet, FileChange, Listing
from dependfix_core.model.plan import Move, Plan
from dependfix_core.model.run import AlertDisposition, Applied, NextStep
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, Rejected, RelockPolicy, merged
from dependfix_core.pipeline.fix import FixOptions, VerifyCommands, fix_checkout
from dependfix_core.process import Command, CommandResult, SubprocessRunner
from dependfix_core.relock import Relocker
from dependfix_core.trees import MemoryTree
from dependfix_core.workspace.git import GitCheckout
from fakes.toy_ecosystem import LOCK, ToyEcosystem, alert, lock, nothing_left, plan

pytestmark = pytest.mark.anyio

ECOSYSTEMS: Ecosystems[Ecosystem] = Ecosystems(members=(ToyEcosystem(),))


@dataclass
class FakeNpm:
    """An installed npm that leaves the scratch copy as it was laid."""

    ran: int = 0
    writes: bytes | None = None
    """What it leaves instead of the lock that was laid."""

    async def run(self, command: Command) -> CommandResult:
        self.ran += 1
        if self.writes is not None and command.argv[-1] == "install":
            (command.cwd / LOCK).write_bytes(self.writes)
        return CommandResult(argv=command.argv, exit_code=0, stdout=b"11.0.0\n", stderr=b"", duration_s=0)


def builder(relock: RelockPolicy = "auto", npm: FakeNpm | None = None) -> Builder:
    relocker = Relocker(npm, RegistryAddresses()) if npm is not None else None
    return Builder(ecosystems=ECOSYSTEMS, metadata=NoMetadata(), relocker=relocker, relock=relock)


def versions(*names: str) -> bytes:
    return lock(**dict.fromkeys(names, "1.0.0"))


async def built(
    *names: str, start: Sequence[str] = (), make: Builder | None = None
) -> tuple[dict[str, str], dict[int, Rejected]]:
    """(moved name → version, rejected) of a plan that moves `names`."""
    content = versions(*names, *start)
    alerts = [alert(number, name) for number, name in enumerate(names, start=1)]
    result = await (make or builder()).build(plan(content, *names), alerts, MemoryTree({LOCK: content}), nothing_left)
    after = dict.fromkeys(names, "1.0.0")
    for change in result.changes.changes:
        assert change.before == content
        after = {**after, **json.loads(change.after or b"{}")}
    return {name: version for name, version in after.items() if version != "1.0.0"}, dict(result.rejected)


async def test_a_batch_that_holds_is_one_change_set() -> None:
    assert await built("a", "b") == ({"a": "2.0.0", "b": "2.0.0"}, {})


@pytest.mark.parametrize(
    ("bad", "check"),
    [("liar", "V2"), ("leaky", "V8"), ("broken", "V4"), ("smashed", "V1")],
)
async def test_the_remediation_that_does_not_hold_is_left_out_and_the_rest_lands(bad: str, check: str) -> None:
    moved, rejected = await built("a", bad, "b", start=["bystander"])

    assert moved == {"a": "2.0.0", "b": "2.0.0"}
    assert list(rejected) == [1]
    assert (rejected[1].reason, rejected[1].detail[:2]) == ("verification-failed", check)


async def test_a_writer_that_refuses_a_batch_is_asked_one_by_one() -> None:
    moved, rejected = await built("a", "brittle")

    assert moved == {"a": "2.0.0"}
    assert rejected == {1: Rejected(reason="constraint-conflict", detail="brittle stands alone")}


async def test_a_target_that_is_itself_vulnerable_is_never_kept() -> None:
    content = versions("a")
    alerts = [alert(1, "a"), alert(2, "a", "= 2.0.0")]

    result = await builder().build(plan(content, "a"), alerts, MemoryTree({LOCK: content}), nothing_left)

    assert not result.changes
    assert result.rejected[0].detail.startswith("V3")


async def test_a_fix_that_planning_would_touch_again_is_not_kept() -> None:
    content = versions("a", "b")

    def a_again(_listing: Listing) -> Step[Plan]:
        yield from ()
        return plan(content, "a")

    alerts = [alert(1, "a"), alert(2, "b")]
    result = await builder().build(plan(content, "a", "b"), alerts, MemoryTree({LOCK: content}), a_again)

    assert result.applied == (1,)
    assert result.rejected[0].detail.startswith("V9")


async def test_what_cannot_be_written_here_is_written_by_the_package_manager() -> None:
    npm = FakeNpm()

    moved, rejected = await built("a", "stubborn", make=builder(npm=npm))

    assert (moved, rejected) == ({"a": "2.0.0", "stubborn": "2.0.0"}, {})
    assert npm.ran == 2


@pytest.mark.parametrize(
    ("came", "rejected"),
    [
        ({"stubborn": "2.1.0"}, []),
        ({"stubborn": "2.1.0", "helper": "1.0.0"}, []),
        ({"stubborn": "2.1.0", "stranger": "1.0.0"}, ["V8 stranger 1.0.0 came in and is not in the plan"]),
    ],
)
async def test_a_newer_release_that_the_tool_takes_need_not_bring_in_what_the_planned_one_asks_for(
    came: dict[str, str], rejected: list[str]
) -> None:
    content = versions("stubborn")
    planned = plan(content, "stubborn")
    (remediation,) = planned.remediations
    helper = Move(
        where="helper",
        package_name="helper",
        from_version=None,
        to_version="1.0.0",
        strategy="lock-in-range",
        added=True,
    )
    planned = replace(planned, remediations=(replace(remediation, moves=(*remediation.moves, helper)),))

    result = await builder(npm=FakeNpm(writes=lock(**came))).build(
        planned, [alert(1, "stubborn")], MemoryTree({LOCK: content}), nothing_left
    )

    assert [one.detail for one in result.rejected.values()] == rejected
    assert [change.after for change in result.changes.changes] == ([] if rejected else [lock(**came)])


@pytest.mark.parametrize(("relock", "has_npm"), [("in-process", True), ("auto", False), ("tool", False)])
async def test_a_missing_or_forbidden_tool_skips_what_needs_it(relock: RelockPolicy, *, has_npm: bool) -> None:
    npm = FakeNpm() if has_npm else None

    moved, rejected = await built("stubborn", make=builder(relock, npm))

    assert moved == {}
    assert (rejected[0].reason, rejected[0].is_failure) == ("tool-required", False)
    assert rejected[0].detail.endswith("by hand: npm install")


async def test_the_policy_tool_writes_everything_with_the_package_manager() -> None:
    npm = FakeNpm()

    assert (await built("a", make=builder("tool", npm)))[0] == {"a": "2.0.0"}
    assert npm.ran == 2


async def test_other_files_than_those_planned_on_are_stale() -> None:
    content = versions("a")

    with pytest.raises(StalePlanError):
        await builder().build(plan(content, "a"), [alert(1, "a")], MemoryTree({LOCK: content + b"\n"}), nothing_left)


def test_changes_of_two_units_are_one_set_against_the_start() -> None:
    first = ChangeSet(
        changes=(FileChange(path="a", before=b"1", after=b"2"), FileChange(path="b", before=b"1", after=b"2"))
    )
    second = ChangeSet(
        changes=(FileChange(path="b", before=b"2", after=b"1"), FileChange(path="c", before=None, after=b"3"))
    )

    assert merged(first, second) == ChangeSet(
        changes=(FileChange(path="a", before=b"1", after=b"2"), FileChange(path="c", before=None, after=b"3"))
    )


def git(top: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example", *arguments], cwd=top, check=True, capture_output=True
    )


def make_checkout(top: Path, content: bytes) -> GitCheckout:
    top.mkdir()
    (top / LOCK).write_bytes(content)
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "start")
    return GitCheckout(top=top, git_dir=top / ".git", branch="main", head=None, remotes=())


async def fix(checkout: GitCheckout, *names: str, options: FixOptions | None = None) -> Applied:
    content = (checkout.top / LOCK).read_bytes()
    return await fix_checkout(
        plan(content, *names),
        [alert(number, name) for number, name in enumerate(names, start=1)],
        checkout,
        builder=builder(),
        replan=nothing_left,
        runner=SubprocessRunner(),
        options=options,
    )


async def test_a_fix_lands_in_the_checkout_and_says_what_to_do_next(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a", "b"))

    applied = await fix(checkout, "a", "b")

    assert (checkout.top / LOCK).read_bytes() == lock(a="2.0.0", b="2.0.0")
    assert applied.dispositions == (
        AlertDisposition(alert=1, disposition="fixed"),
        AlertDisposition(alert=2, disposition="fixed"),
    )
    assert [(action.type, action.target, action.success) for action in applied.actions] == [
        ("dependency-upgrade", "a", True),
        ("dependency-upgrade", "b", True),
        ("verification", LOCK, True),
    ]
    assert applied.next_steps == (NextStep(command="npm ci", folder=".", why="installs what toy.lock says now"),)
    assert applied.changed[LOCK].splitlines()[:2] == ["--- a/toy.lock", "+++ b/toy.lock"]
    assert applied.verification_passed is True


async def test_a_dry_run_changes_nothing_and_shows_the_diff(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a"))

    applied = await fix(checkout, "a", options=FixOptions(dry_run=True))

    assert (checkout.top / LOCK).read_bytes() == versions("a")
    assert applied.dispositions == (AlertDisposition(alert=1, disposition="planned"),)
    assert '+ "a": "2.0.0"' in applied.changed[LOCK]
    assert applied.next_steps == ()


async def test_uncommitted_changes_stop_it_unless_allowed(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a"))
    edited = lock(a="1.0.0", mine="1.0.0")
    (checkout.top / LOCK).write_bytes(edited)

    with pytest.raises(DirtyCheckoutError) as error:
        await fix(checkout, "a")

    assert error.value.details == {"files": [LOCK]}
    assert (checkout.top / LOCK).read_bytes() == edited
    await fix(checkout, "a", options=FixOptions(allow_dirty=True))
    assert (checkout.top / LOCK).read_bytes() == lock(a="2.0.0", mine="1.0.0")


def accepts(condition: str) -> FixOptions:
    code = f"import json, sys; lock = json.load(open('toy.lock')); sys.exit(0 if ({condition}) else 3)"
    return FixOptions(verify=VerifyCommands(commands=((sys.executable, "-c", code),)))


async def test_what_the_operators_command_refuses_is_put_back_and_the_rest_stays(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a", "b", "c"))

    applied = await fix(checkout, "a", "b", "c", options=accepts("lock['b'] == '1.0.0'"))

    assert (checkout.top / LOCK).read_bytes() == lock(a="2.0.0", b="1.0.0", c="2.0.0")
    assert [item.disposition for item in applied.dispositions] == ["fixed", "failed", "fixed"]
    assert [(error.stage, error.category) for error in applied.errors] == [("verify", "verification-failed")]
    assert applied.errors[0].message.startswith("V11")
    assert applied.verification_passed is False


async def test_an_only_fix_that_the_operators_command_refuses_leaves_everything_as_it_was(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a"))

    applied = await fix(checkout, "a", options=accepts("False"))

    assert (checkout.top / LOCK).read_bytes() == versions("a")
    assert [item.disposition for item in applied.dispositions] == ["failed"]
    assert applied.changed == {}
    assert sorted(path.name for path in (checkout.git_dir / "dependfix").iterdir()) == ["lock"]


async def test_the_operators_command_sees_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_planted0000000000000000")
    monkeypatch.setenv("WANTED", "1")
    checkout = make_checkout(tmp_path / "top", versions("a"))
    code = "import os, sys; sys.exit('GITHUB_TOKEN' in os.environ or 'WANTED' not in os.environ)"
    verify = VerifyCommands(commands=((sys.executable, "-c", code),), variables=("WANTED",))

    applied = await fix(checkout, "a", options=FixOptions(verify=verify))

    assert [item.disposition for item in applied.dispositions] == ["fixed"]


async def test_a_cancelled_fix_rolls_back(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "top", versions("a"))
    mark = tmp_path / "started"
    code = f"import pathlib, time; pathlib.Path({os.fspath(mark)!r}).touch(); time.sleep(60)"
    options = FixOptions(verify=VerifyCommands(commands=((sys.executable, "-c", code),)))

    async with anyio.create_task_group() as group:

        async def cancel_when_written() -> None:
            while not await anyio.Path(mark).exists():  # noqa: ASYNC110  # another process makes it
                await anyio.sleep(0.02)
            assert (checkout.top / LOCK).read_bytes() == lock(a="2.0.0")
            group.cancel_scope.cancel()

        group.start_soon(cancel_when_written)
        await fix(checkout, "a", options=options)

    assert (checkout.top / LOCK).read_bytes() == versions("a")


def test_verify_lines_are_split_without_a_shell() -> None:
    verify = VerifyCommands.of(["npm test -- --only 'a b'", "  "], ["CI"])

    assert verify == VerifyCommands(commands=(("npm", "test", "--", "--only", "a b"),), variables=("CI",))
    with pytest.raises(ValueError, match="quotation"):
        VerifyCommands.of(["echo 'open"])
