"""Reads the files of a repository through the API: its tree first, then the blobs that are wanted."""

from collections.abc import Callable
from typing import Final

from dependfix_core.errors import NetworkError, NotFoundError, OutputTooLargeError
from dependfix_core.github.api import RAW, SHA, GitHubApi, path_of, read_model
from dependfix_core.github.decode import Asked
from dependfix_core.github.wire import TreeWire
from dependfix_core.http import CallBudget
from dependfix_core.model.files import (
    REGULAR_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    Absence,
    FileContent,
    Listing,
    TreeEntry,
    blob_sha,
)
from dependfix_core.trees.base import MAX_FILE_BYTES, content_or_absence

WantFolder = Callable[[str], bool]
"""Whether a folder is worth a request of its own in a tree that GitHub cut."""

MAX_TREE_REQUESTS: Final = 200
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", ".git", "vendor", ".yarn"})


def is_worth_walking(folder: str) -> bool:
    """Whether a folder can hold a project's own manifests."""
    return folder.rpartition("/")[2] not in _SKIPPED_FOLDERS


class FileReader:
    """The git end points of a repository."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    async def head(self, repository: str, branch: str, *, budget: CallBudget) -> str:
        """The commit id that a branch points to.

        Raises:
            DependfixError: It cannot be read; `ConflictError` for a repository without commits.
        """
        response = await self._api.get(
            path_of("repos", repository, "commits", branch),
            purpose="contents",
            budget=budget,
            repository=repository,
            accept=SHA,
        )
        sha = response.text(100).strip()
        if len(sha) not in (40, 64) or any(char not in "0123456789abcdef" for char in sha):
            raise NetworkError(
                "the answer is no commit id",
                retryable=False,
                details={"kind": "not-github", "repository": repository},
            )
        return sha

    async def listing(
        self, repository: str, commit: str, *, budget: CallBudget, want_folder: WantFolder = is_worth_walking
    ) -> Listing:
        """All paths of a commit: files, symlinks and submodules, no folders.

        A tree that GitHub cuts is walked folder by folder through those that
        `want_folder` allows; `complete` is false when even that was cut short.

        Raises:
            DependfixError: The tree cannot be read.
        """
        entries: dict[str, TreeEntry] = {}
        whole = await self._tree(repository, commit, budget, recursive=True)
        if not whole.truncated:
            _take(entries, whole, "")
            return Listing(entries=entries)
        complete = True
        todo: list[tuple[str, str]] = [(commit, "")]
        requests = 0
        while todo:
            sha, prefix = todo.pop()
            if requests >= MAX_TREE_REQUESTS:
                return Listing(entries=entries, complete=False)
            requests += 1
            tree = await self._tree(repository, sha, budget, recursive=False)
            complete = complete and not tree.truncated
            _take(entries, tree, prefix)
            for entry in tree.tree:
                folder = f"{prefix}{entry.path}"
                if entry.type == "tree" and entry.sha and want_folder(folder):
                    todo.append((entry.sha, f"{folder}/"))
        return Listing(entries=entries, complete=complete)

    async def read(
        self, repository: str, entry: TreeEntry, *, budget: CallBudget, max_bytes: int = MAX_FILE_BYTES
    ) -> FileContent | Absence:
        """The content behind an entry of a listing, or why there is none. Links are not followed.

        Raises:
            DependfixError: GitHub refuses, or what it sends is not the blob of that id.
        """
        if entry.mode == SYMLINK_MODE:
            return Absence.SYMLINK
        if entry.mode == SUBMODULE_MODE:
            return Absence.SUBMODULE
        if entry.sha is None:
            return Absence.UNREADABLE
        if entry.size is not None and entry.size > max_bytes:
            return Absence.TOO_LARGE
        try:
            response = await self._api.get(
                path_of("repos", repository, "git", "blobs", entry.sha),
                purpose="contents",
                budget=budget,
                repository=repository,
                accept=RAW,
                max_bytes=max_bytes,
            )
        except OutputTooLargeError:
            return Absence.TOO_LARGE
        if len(entry.sha) == 40 and blob_sha(response.content) != entry.sha:
            raise NetworkError(
                f"{repository}: the content of {entry.path} is not the blob that its tree names",
                hint="A proxy in between changes what GitHub sends.",
                retryable=False,
                details={"kind": "not-github", "repository": repository, "path": entry.path},
            )
        return content_or_absence(entry.path, response.content, entry.mode)

    async def read_path(
        self, repository: str, path: str, ref: str, *, budget: CallBudget, max_bytes: int = MAX_FILE_BYTES
    ) -> FileContent | Absence:
        """One file by its path, without its tree: one request, but a symlink is followed by GitHub.

        Raises:
            DependfixError: GitHub refuses; that there is no such file is `Absence.MISSING`.
            ArgumentError: The path leads out of the repository.
        """
        try:
            response = await self._api.get(
                path_of("repos", repository, "contents", path),
                purpose="contents",
                budget=budget,
                repository=repository,
                params={"ref": ref},
                accept=RAW,
                max_bytes=max_bytes,
            )
        except NotFoundError:
            return Absence.MISSING
        except OutputTooLargeError:
            return Absence.TOO_LARGE
        return content_or_absence(path, response.content)

    async def _tree(self, repository: str, sha: str, budget: CallBudget, *, recursive: bool) -> TreeWire:
        response = await self._api.get(
            path_of("repos", repository, "git", "trees", sha),
            purpose="contents",
            budget=budget,
            repository=repository,
            params={"recursive": "1"} if recursive else None,
        )
        return read_model(response, TreeWire, Asked(purpose="contents", repository=repository))


def _take(entries: dict[str, TreeEntry], tree: TreeWire, prefix: str) -> None:
    for entry in tree.tree:
        path = f"{prefix}{entry.path}"
        # Git itself refuses such names, so nothing honest is lost.
        if entry.type == "tree" or path.startswith("/") or ".." in path.split("/"):
            continue
        mode = SUBMODULE_MODE if entry.type == "commit" else entry.mode or REGULAR_MODE
        entries[path] = TreeEntry(path=path, mode=mode, size=entry.size, sha=entry.sha)
