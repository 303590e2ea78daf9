"""The interface to a tree of files, and the rules that hold for every source of one."""

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from dependfix_core.model.files import REGULAR_MODE, Absence, FileContent, Listing

MAX_FILE_BYTES: Final = 50_000_000
"""A manifest or lockfile above it is not read."""
_LFS_START: Final = b"version https://git-lfs.github.com/spec/"
_MAX_LFS_POINTER_BYTES: Final = 1024


class TreeSource(Protocol):
    """One state of a repository's files. Reading the same path twice gives the same answer."""

    async def listing(self) -> Listing:
        """All paths. Asked for once."""
        ...

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        """Each path as content, or as the reason why there is none; never an exception for one path."""
        ...


def is_lfs_pointer(content: bytes) -> bool:
    """Whether a blob only says where Git LFS keeps the real content.

    Source: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
    """
    return len(content) < _MAX_LFS_POINTER_BYTES and content.startswith(_LFS_START)


def content_or_absence(path: str, content: bytes, mode: str = REGULAR_MODE) -> FileContent | Absence:
    """`content` as a file, unless it only stands for one (a Git LFS pointer) or is too large."""
    if len(content) > MAX_FILE_BYTES:
        return Absence.TOO_LARGE
    if is_lfs_pointer(content):
        return Absence.LFS_POINTER
    return FileContent(path=path, content=content, mode=mode)
