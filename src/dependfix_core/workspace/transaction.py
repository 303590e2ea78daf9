"""Changes files of a checkout all together or not at all, through crashes too.

The journal lies in the checkout's git directory, never beside the user's
files. Its life:

1. Originals are copied into the journal folder and flushed to disk; then the
   journal file that names them appears (renamed into place). Before that
   moment nothing has changed; from it on, an interrupted change is undone by
   `recover`.
2. Each file is written to a temporary name in its own folder, flushed, and
   renamed over the old one. Mode and owner stay.
3. `keep` removes the journal file (the changes are now the truth) and then the
   originals; `undo` puts the originals back first and removes it after that.

So a process that is killed at any point leaves the old state, the new state,
or a journal from which `recover` makes the old state, byte for byte.
"""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from dependfix_core.errors import RollbackError, StalePlanError, WorkspaceError
from dependfix_core.model.files import EXECUTABLE_MODE, ChangeSet, FileChange
from dependfix_core.workspace.checkout_lock import checkout_lock

_FOLDER: Final = "dependfix"
_JOURNAL: Final = "journal.json"
_TEMPORARY: Final = ".dependfix-"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One file in the journal."""

    path: str
    original: str | None
    """File in the journal folder with the bytes before; `None` for a file that was not there."""
    mode: int
    temporary: str
    """Name beside the file that a half-written version has."""
    before: str
    """sha256 of the content before; empty for none."""
    after: str
    """sha256 of the content after; empty for none."""


class Transaction:
    """One set of changes to a checkout, under its lock; made by `transaction`."""

    def __init__(self, top: Path, git_dir: Path) -> None:
        self._top = top
        self._folder = git_dir / _FOLDER
        self._entries: tuple[_Entry, ...] = ()

    @property
    def open(self) -> bool:
        """Whether changes are made that are neither kept nor undone."""
        return bool(self._entries)

    def apply(self, changes: ChangeSet) -> None:
        """Write `changes`; on any failure everything is as before.

        Raises:
            StalePlanError: A file is not as `before` says.
            WorkspaceError: A path leaves the checkout, or is a link or a folder.
            OSError: The disk is full, or a file cannot be written.
        """
        if self._entries:
            raise WorkspaceError("the changes before are neither kept nor undone", code="internal_error")
        entries = [self._journalled(index, change) for index, change in enumerate(changes.changes)]
        if not entries:
            return
        self._entries = tuple(entries)
        try:
            _write(self._folder / _JOURNAL, _encode(self._entries), 0o600, _TEMPORARY + _JOURNAL)
            for entry, change in zip(entries, changes.changes, strict=True):
                self._put(entry, change.after, _new_mode(entry, change))
        except BaseException:
            self.undo()
            raise

    def keep(self) -> None:
        """The changes are the truth from now on."""
        (self._folder / _JOURNAL).unlink(missing_ok=True)
        _flush_folder(self._folder)
        self._discard()

    def undo(self) -> None:
        """Put everything back, byte for byte.

        Raises:
            RollbackError: A file could not be put back; the journal stays for another try.
        """
        failed = []
        for entry in reversed(self._entries):
            try:
                _restore(self._top, self._folder, entry)
            except (OSError, WorkspaceError) as error:
                failed.append(f"{entry.path}: {error}")
        if failed:
            raise RollbackError(
                "files could not be put back: " + "; ".join(failed),
                hint="Free the disk or mend the permissions, then run: dependfix-mcp doctor --recover PATH",
                details={"files": failed},
            )
        self.keep()

    def _journalled(self, index: int, change: FileChange) -> _Entry:
        target = _target(self._top, change.path)
        before = _content(target)
        if before != change.before:
            raise StalePlanError(
                f"{change.path} is not as it was when the plan was made", details={"path": change.path}
            )
        original = None
        mode = 0o644
        self._folder.mkdir(exist_ok=True)
        if before is not None:
            mode = stat.S_IMODE(target.stat().st_mode)
            original = f"{index}.original"
            _write(self._folder / original, before, 0o600, f"{original}.part")
        return _Entry(
            path=change.path,
            original=original,
            mode=mode,
            temporary=f"{_TEMPORARY}{secrets.token_hex(8)}",
            before=_digest(before),
            after=_digest(change.after),
        )

    def _put(self, entry: _Entry, content: bytes | None, mode: int) -> None:
        target = _target(self._top, entry.path)
        if content is None:
            target.unlink()
            _flush_folder(target.parent)
        else:
            _write(target, content, mode, entry.temporary)

    def _discard(self) -> None:
        for entry in self._entries:
            if entry.original is not None:
                with contextlib.suppress(OSError):
                    (self._folder / entry.original).unlink(missing_ok=True)
        self._entries = ()


@contextmanager
def transaction(top: Path, git_dir: Path) -> Iterator[Transaction]:
    """A transaction under the checkout's lock; whatever is not kept when the block ends is undone.

    An interrupted change of a process that died is undone first.

    Raises:
        CheckoutBusyError: Another process works on this checkout.
        RollbackError: Files could not be put back.
    """
    with checkout_lock(git_dir / _FOLDER):
        _recover(top, git_dir / _FOLDER)
        running = Transaction(top, git_dir)
        try:
            yield running
        finally:
            if running.open:
                running.undo()


def is_interrupted(git_dir: Path) -> bool:
    """Whether a process died while it changed this checkout."""
    return (git_dir / _FOLDER / _JOURNAL).exists()


def recover(top: Path, git_dir: Path) -> tuple[str, ...]:
    """Bring an interrupted checkout back to its old state; the paths that were put back.

    Raises:
        CheckoutBusyError: Another process works on it.
        RollbackError: The journal is damaged, or a file was changed by somebody else since.
    """
    if not (git_dir / _FOLDER).is_dir():
        return ()
    with checkout_lock(git_dir / _FOLDER):
        return _recover(top, git_dir / _FOLDER)


def _recover(top: Path, folder: Path) -> tuple[str, ...]:
    journal = folder / _JOURNAL
    try:
        entries = _decode(journal.read_bytes())
    except FileNotFoundError:
        _clear(folder)
        return ()
    except (ValueError, KeyError, TypeError) as error:
        raise RollbackError(
            "the journal of an interrupted change is damaged",
            hint=f"Compare the lockfiles with git, then remove the folder {folder.name} of the git directory.",
        ) from error
    foreign = [entry.path for entry in entries if not _is_ours(top, entry)]
    if foreign:
        raise RollbackError(
            f"files of an interrupted change were edited since: {', '.join(foreign)}",
            hint="Undo those edits (or keep them and remove the journal from the git directory), then try again.",
            details={"files": foreign},
        )
    running = Transaction(top, folder.parent)
    running._entries = entries  # noqa: SLF001  # the same module takes up what the dead process left
    running.undo()
    _clear(folder)
    return tuple(entry.path for entry in entries)


def _clear(folder: Path) -> None:
    """Remove originals that no journal names."""
    for left in (*folder.glob("*.original"), *folder.glob("*.part"), *folder.glob(f"{_TEMPORARY}*")):
        with contextlib.suppress(OSError):
            left.unlink()


def _is_ours(top: Path, entry: _Entry) -> bool:
    return _digest(_content(_target(top, entry.path))) in (entry.before, entry.after)


def _restore(top: Path, folder: Path, entry: _Entry) -> None:
    target = _target(top, entry.path)
    (target.parent / entry.temporary).unlink(missing_ok=True)
    current = _digest(_content(target))
    if entry.original is None:
        if current:
            target.unlink()
            _flush_folder(target.parent)
        return
    if current == entry.before and stat.S_IMODE(target.stat().st_mode) == entry.mode:
        return
    _write(target, (folder / entry.original).read_bytes(), entry.mode, entry.temporary)


def _target(top: Path, path: str) -> Path:
    """Absolute place of a path of the tree.

    Raises:
        WorkspaceError: It leaves the checkout, or something on the way is a link.
    """
    parts = PurePosixPath(path).parts
    odd = not parts or path.startswith("/") or "\\" in path or "\0" in path or ":" in parts[0]
    if odd or any(part in ("..", ".") or part.lower() == ".git" for part in parts):
        raise WorkspaceError(f"not a path of the checkout: {path!r}", code="invalid_arguments")
    place = top
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise WorkspaceError(f"{path} is a link or lies behind one; links are not written", code="unsupported")
    if place.exists() and not place.is_file():
        raise WorkspaceError(f"{path} is no file", code="unsupported")
    return place


def _content(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _new_mode(entry: _Entry, change: FileChange) -> int:
    if entry.original is not None:
        return entry.mode
    return 0o755 if change.mode == EXECUTABLE_MODE else 0o644


def _write(target: Path, content: bytes, mode: int, temporary: str) -> None:
    part = target.parent / temporary
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(mode)
        _keep_owner(target, part)
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def _keep_owner(target: Path, part: Path) -> None:
    chown = getattr(os, "chown", None)
    if chown is None:
        return
    with contextlib.suppress(OSError):
        before, now = target.stat(), part.stat()
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
            chown(part, before.st_uid, before.st_gid)
            part.chmod(stat.S_IMODE(before.st_mode))


def _flush_folder(folder: Path) -> None:
    # A rename is durable when its folder is; Windows has no handle for one.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(content: bytes | None) -> str:
    return "" if content is None else sha256(content).hexdigest()


def _encode(entries: Sequence[_Entry]) -> bytes:
    rows = [{name: getattr(entry, name) for name in _Entry.__slots__} for entry in entries]
    return json.dumps({"version": 1, "files": rows}).encode()


def _decode(data: bytes) -> tuple[_Entry, ...]:
    document: Any = json.loads(data)
    if document["version"] != 1:
        raise ValueError("another version of the journal")
    return tuple(_Entry(**row) for row in document["files"])
