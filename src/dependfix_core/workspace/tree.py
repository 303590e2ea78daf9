"""A checkout's working files as a tree. Nothing outside the checkout is read."""

import stat
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread

from dependfix_core.errors import CommandError, CommandFailedError, WorkspaceError
from dependfix_core.model.files import (
    EXECUTABLE_MODE,
    REGULAR_MODE,
    Absence,
    FileContent,
    Listing,
    TreeEntry,
)
from dependfix_core.process import Runner
from dependfix_core.trees.base import MAX_FILE_BYTES, content_or_absence
from dependfix_core.workspace.git import run_git


class CheckoutTree:
    """The working copy below `top`: tracked files, and new ones that are not ignored."""

    def __init__(self, top: Path, runner: Runner) -> None:
        self._top = top
        self._runner = runner

    async def listing(self) -> Listing:
        """See `TreeSource.listing`.

        Raises:
            CommandError: git cannot be run, or refuses.
        """
        outputs: dict[str, bytes] = {}

        async def ask(name: str, *arguments: str) -> None:
            result = await run_git(self._runner, self._top, "ls-files", "-z", *arguments)
            if result.exit_code != 0:
                raise CommandFailedError(
                    "git cannot list the files of this checkout", argv=result.argv, exit_code=result.exit_code
                )
            outputs[name] = result.stdout

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "tracked", "--stage")
                group.start_soon(ask, "deleted", "--deleted")
                group.start_soon(ask, "new", "--others", "--exclude-standard")
        except* CommandError as errors:
            raise errors.exceptions[0] from None
        entries: dict[str, TreeEntry] = {}
        for row in _rows(outputs["tracked"]):
            facts, _, path = row.partition("\t")
            mode, sha = facts.split(" ")[:2]
            entries[path] = TreeEntry(path=path, mode=mode, sha=sha)
        for path in _rows(outputs["deleted"]):
            entries.pop(path, None)
        for path in _rows(outputs["new"]):
            # A folder (a nested repository) ends in a slash and is no file.
            if not path.endswith("/"):
                entries[path] = TreeEntry(path=path)
        return Listing(entries=dict(sorted(entries.items())))

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        """See `TreeSource.read`."""
        return await anyio.to_thread.run_sync(lambda: {path: _read(self._top, path) for path in paths})


def _rows(output: bytes) -> list[str]:
    # Names that are not UTF-8 are none that a manifest can have; they are listed, never read.
    return [row.decode("utf-8", errors="surrogateescape") for row in output.split(b"\0") if row]


def _read(top: Path, path: str) -> FileContent | Absence:
    try:
        place = _inside(top, path)
        facts = place.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return Absence.SYMLINK
        if stat.S_ISDIR(facts.st_mode):
            return Absence.SUBMODULE if (place / ".git").exists() else Absence.MISSING
        if not stat.S_ISREG(facts.st_mode):
            return Absence.UNREADABLE
        if facts.st_size > MAX_FILE_BYTES:
            return Absence.TOO_LARGE
        mode = EXECUTABLE_MODE if facts.st_mode & stat.S_IXUSR else REGULAR_MODE
        return content_or_absence(path, place.read_bytes(), mode)
    except (FileNotFoundError, NotADirectoryError):
        return Absence.MISSING
    except WorkspaceError:
        return Absence.SYMLINK
    except (OSError, ValueError):
        return Absence.UNREADABLE


def _inside(top: Path, path: str) -> Path:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise FileNotFoundError(path)
    place = top
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink():
            raise WorkspaceError("a folder on the way is a link", code="unsupported")
    return place / parts[-1]
