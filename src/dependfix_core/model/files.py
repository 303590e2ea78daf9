"""Files of a repository as values: what is there, what a file holds, what shall change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1
from typing import Final

REGULAR_MODE: Final = "100644"
EXECUTABLE_MODE: Final = "100755"
SYMLINK_MODE: Final = "120000"
SUBMODULE_MODE: Final = "160000"


def blob_sha(content: bytes) -> str:
    """The git object id of `content`, the same for a checkout and for GitHub."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """One path of a listing, before its content is read."""

    path: str
    """Relative to the top level, `/` separated, without `..`."""
    mode: str = REGULAR_MODE
    """Git's mode; a submodule or symlink is listed, never followed."""
    size: int | None = None
    """Bytes, when the listing knows."""
    sha: str | None = None
    """Git blob id, when the listing knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """All paths of a tree. `complete` is false when the source had to cut it."""

    entries: Mapping[str, TreeEntry]
    complete: bool = True

    def __contains__(self, path: object) -> bool:
        return path in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)


class Absence(StrEnum):
    """Why a wanted file has no content."""

    MISSING = "missing"
    TOO_LARGE = "too-large"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"
    LFS_POINTER = "lfs-pointer"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileContent:
    """A file as it was read."""

    path: str
    content: bytes
    mode: str = REGULAR_MODE

    @property
    def sha(self) -> str:
        """Git blob id of the content."""
        return blob_sha(self.content)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """One file of a change set. `before` or `after` is `None` for a file that appears or goes."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: str = REGULAR_MODE


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeSet:
    """Changes over several files that are kept or undone together, sorted by path."""

    changes: tuple[FileChange, ...] = field(default_factory=tuple)

    def __bool__(self) -> bool:
        return bool(self.changes)
