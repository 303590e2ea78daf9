"""One writer for each project, among the calls of this process and among processes."""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from adapters.sudocode.failures import SudocodeError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.asynccontextmanager
async def writer_lock(folder: Path, *, wait_s: float) -> AsyncIterator[None]:
    """Hold the project of a `.sudocode` folder for writing.

    Where the system can lock a folder, the lock is on the folder itself:
    nothing is left behind, and every process that sees the folder sees the
    lock, whatever its home or temporary folder is. Elsewhere (Windows, some
    network file systems) it is on a file named after the folder.

    Raises:
        SudocodeError: `database_busy`, when another writer does not finish in time.
    """
    descriptor, locked = _open(folder)
    try:
        pause_s = 0.02
        with anyio.move_on_after(wait_s):
            while not locked:
                await anyio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, 0.1)
                locked = _try_lock(descriptor)
        if not locked:
            raise SudocodeError(
                f"another writer has held the project for more than {wait_s:g} s",
                code="database_busy",
                hint="Wait a moment and call again.",
            )
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a writer holds the project at this moment; looking keeps nobody waiting."""
    descriptor, locked = _open(folder)
    os.close(descriptor)
    return not locked


def _open(folder: Path) -> tuple[int, bool]:
    """A descriptor to lock, and whether the first try got the lock."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            return descriptor, _try_lock(descriptor)
        except OSError:  # this file system cannot lock folders
            os.close(descriptor)
    name = hashlib.sha256(os.path.normcase(folder).encode()).hexdigest()[:32]
    descriptor = os.open(Path(tempfile.gettempdir()) / f"sudocode-{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    return descriptor, _try_lock(descriptor)
