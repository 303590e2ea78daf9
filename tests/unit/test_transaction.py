import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dependfix_core.errors import CheckoutBusyError, DependfixError, RollbackError, StalePlanError, WorkspaceError
from dependfix_core.model.files import ChangeSet, FileChange
from dependfix_core.workspace.transaction import is_interrupted, recover, transaction


def checkout(top: Path, **files: bytes) -> tuple[Path, Path]:
    git_dir = top / ".git"
    git_dir.mkdir(parents=True)
    for name, content in files.items():
        (top / name).write_bytes(content)
    return top, git_dir


def change(path: str, before: bytes | None, after: bytes | None) -> ChangeSet:
    return ChangeSet(changes=(FileChange(path=path, before=before, after=after),))


def files(top: Path) -> dict[str, tuple[bytes, int]]:
    found = [path for path in top.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(top)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in found}


def test_kept_changes_stay_with_mode_and_leave_nothing_behind(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")
    (top / "lock").chmod(0o640)

    with transaction(top, git_dir) as running:
        running.apply(change("lock", b"old", b"new"))
        running.keep()

    assert files(top) == {"lock": (b"new", 0o640)}
    assert sorted(path.name for path in (git_dir / "dependfix").iterdir()) == ["lock"]


def test_what_is_not_kept_is_undone_when_the_block_ends(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old", gone=b"was here")
    before = files(top)

    def interrupted() -> None:
        with transaction(top, git_dir) as running:
            running.apply(
                ChangeSet(
                    changes=(
                        FileChange(path="added", before=None, after=b"x"),
                        FileChange(path="gone", before=b"was here", after=None),
                        FileChange(path="lock", before=b"old", after=b"new"),
                    )
                )
            )
            assert set(files(top)) == {"added", "lock"}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert files(top) == before
    assert not is_interrupted(git_dir)


contents = st.binary(max_size=40)
trees = st.dictionaries(st.sampled_from("abcd"), contents, max_size=4)


@given(before=trees, after=trees)
def test_apply_then_undo_is_identity(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    top, git_dir = checkout(tmp_path_factory.mktemp("t"), **before)
    start = files(top)
    changed = sorted(before.keys() | after.keys())
    changes = ChangeSet(
        changes=tuple(
            FileChange(path=path, before=before.get(path), after=after.get(path))
            for path in changed
            if path in before or path in after
        )
    )

    with transaction(top, git_dir) as running:
        running.apply(changes)
        middle = {path: content for path, (content, _) in files(top).items()}
        running.undo()

    assert middle == after
    assert files(top) == start


def test_a_file_that_is_not_as_planned_is_stale_and_nothing_is_written(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, a=b"1", b=b"edited")
    before = files(top)

    with transaction(top, git_dir) as running, pytest.raises(StalePlanError):
        running.apply(
            ChangeSet(
                changes=(FileChange(path="a", before=b"1", after=b"2"), FileChange(path="b", before=b"1", after=b"2"))
            )
        )

    assert files(top) == before


@pytest.mark.parametrize(
    "path", ["../out", "/etc/passwd", "a/../../out", ".git/config", "sub/.GIT/hooks", "", "a\\b", "c:x"]
)
def test_a_path_that_leaves_the_checkout_is_refused(tmp_path: Path, path: str) -> None:
    top, git_dir = checkout(tmp_path / "top")

    with transaction(top, git_dir) as running, pytest.raises(WorkspaceError):
        running.apply(change(path, None, b"x"))

    assert files(tmp_path) == {}


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_are_not_written_through(tmp_path: Path, kind: str) -> None:
    top, git_dir = checkout(tmp_path / "top")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "lock").write_bytes(b"old")
    link, target = ("lock", tmp_path / "outside" / "lock") if kind == "file" else ("sub", tmp_path / "outside")
    (top / link).symlink_to(target)

    with transaction(top, git_dir) as running, pytest.raises(WorkspaceError):
        running.apply(change("lock" if kind == "file" else "sub/lock", b"old", b"new"))

    assert (tmp_path / "outside" / "lock").read_bytes() == b"old"


def test_a_failing_write_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, git_dir = checkout(tmp_path, a=b"1", b=b"1")
    before = files(top)
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "b" and self.read_bytes() == b"2":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with transaction(top, git_dir) as running, pytest.raises(OSError, match="space"):
        running.apply(
            ChangeSet(
                changes=(FileChange(path="a", before=b"1", after=b"2"), FileChange(path="b", before=b"1", after=b"2"))
            )
        )

    assert files(top) == before


def test_a_second_process_is_told_to_wait(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")

    with transaction(top, git_dir), pytest.raises(CheckoutBusyError) as error, transaction(top, git_dir):
        pass

    assert (error.value.code, error.value.retryable) == ("conflict", True)


def interrupt(top: Path, git_dir: Path, changes: ChangeSet) -> None:
    """As a process that dies right after it wrote everything."""
    child = os.fork()
    if child == 0:
        with transaction(top, git_dir) as running:
            running.apply(changes)
            os._exit(0)
    os.waitpid(child, 0)


def test_the_next_transaction_first_undoes_an_interrupted_one(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")
    interrupt(top, git_dir, change("lock", b"old", b"half"))
    assert is_interrupted(git_dir)

    with transaction(top, git_dir) as running:
        running.apply(change("lock", b"old", b"new"))
        running.keep()

    assert files(top)["lock"][0] == b"new"


def test_recovery_does_not_overwrite_what_somebody_edited_since(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")
    interrupt(top, git_dir, change("lock", b"old", b"half"))
    (top / "lock").write_bytes(b"mine")

    with pytest.raises(RollbackError) as error:
        recover(top, git_dir)

    assert error.value.details == {"files": ["lock"]}
    assert (top / "lock").read_bytes() == b"mine"
    assert is_interrupted(git_dir)


def test_a_damaged_journal_is_an_error_and_not_a_guess(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")
    (git_dir / "dependfix").mkdir()
    (git_dir / "dependfix" / "journal.json").write_text("{", encoding="utf-8")

    with pytest.raises(DependfixError) as error:
        recover(top, git_dir)

    assert isinstance(error.value, RollbackError)


def test_nothing_is_recovered_where_nothing_was_interrupted(tmp_path: Path) -> None:
    top, git_dir = checkout(tmp_path, lock=b"old")

    assert recover(top, git_dir) == ()
    assert list(git_dir.iterdir()) == []
