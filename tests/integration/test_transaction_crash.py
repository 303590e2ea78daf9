"""Kills a real process at every step of a transaction; recovery leaves the old or the new state, never a mix."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dependfix_core.workspace.transaction import is_interrupted, recover

SRC = Path(__file__).parents[2] / "src"
OLD = {"package.json": b'{"a": 1}\n', "sub/lock.json": b"old\r\nlock\n"}
NEW = {"package.json": b'{"a": 2}\n', "sub/lock.json": b"new\r\nlock\n", "sub/added.txt": b"added"}

# Dies without clean-up at the nth call that touches the disk.
VICTIM = """
import os, pathlib, sys
top, deadly = pathlib.Path(sys.argv[1]), int(sys.argv[2])
from dependfix_core.model.files import ChangeSet, FileChange
from dependfix_core.workspace.transaction import transaction

seen = 0
def deadly_call(real):
    def call(*args, **kwargs):
        global seen
        seen += 1
        if seen == deadly:
            os._exit(9)
        return real(*args, **kwargs)
    return call

for owner, name in ((os, "fsync"), (os, "open"), (pathlib.Path, "replace"), (pathlib.Path, "unlink"), (pathlib.Path, "chmod")):
    setattr(owner, name, deadly_call(getattr(owner, name)))

old, new = eval(sys.argv[3]), eval(sys.argv[4])
changes = ChangeSet(changes=tuple(
    FileChange(path=path, before=old.get(path), after=new[path]) for path in sorted(new)
))
with transaction(top, top / ".git") as running:
    running.apply(changes)
    if sys.argv[5] == "keep":
        running.keep()
    else:
        running.undo()
print(seen)
"""


def checkout(top: Path) -> Path:
    (top / ".git").mkdir(parents=True)
    (top / "sub").mkdir()
    for path, content in OLD.items():
        (top / path).write_bytes(content)
    return top


def state(top: Path) -> dict[str, bytes]:
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(top).parts
    }


def run_victim(top: Path, deadly: int, end: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", VICTIM, str(top), str(deadly), repr(OLD), repr(NEW), end],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("end", ["keep", "undo"])
def test_a_process_that_is_killed_at_any_step_leaves_old_or_new(tmp_path: Path, end: str) -> None:
    steps = int(run_victim(checkout(tmp_path / "whole"), 0, end).stdout)
    assert steps > 20

    outcomes = set()
    for deadly in range(1, steps + 1):
        top = checkout(tmp_path / str(deadly))
        assert run_victim(top, deadly, end).returncode == 9

        recover(top, top / ".git")

        after = state(top)
        assert after in (OLD, NEW), f"a mix after step {deadly}"
        assert not is_interrupted(top / ".git")
        outcomes.add(after == NEW)
    assert outcomes == ({True, False} if end == "keep" else {False})
