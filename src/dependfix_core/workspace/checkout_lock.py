"""One process at a time works on a checkout; the system lets go of the lock when it dies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from dependfix_core.errors import CheckoutBusyError

_NAME: Final = "lock"


@contextmanager
def checkout_lock(folder: Path) -> Iterator[None]:
    """Hold the lock in `folder`, which is made if need be.

    Raises:
        CheckoutBusyError: Another process, or another run of this one, holds it.
    """
    folder.mkdir(exist_ok=True)
    # The file stays: removing it would let two processes lock two files of one name.
    with (folder / _NAME).open("a+b") as file:
        try:
            _take(file)
        except OSError as error:
            raise CheckoutBusyError(
                "another process works on this checkout", hint="Wait until it is done, then try again."
            ) from error
        try:
            yield
        finally:
            _release(file)


if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _release(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
