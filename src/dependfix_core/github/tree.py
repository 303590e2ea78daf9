"""One commit of a repository on GitHub as a tree: a listing, and blobs on demand."""

from collections.abc import Collection, Mapping

import anyio

from dependfix_core.github.client import GitHubReader
from dependfix_core.http import CallBudget
from dependfix_core.model.files import Absence, FileContent, Listing


class GitHubTree:
    """The files of `repository` at `commit`. Symlinks, submodules and LFS pointers are named, not followed."""

    def __init__(self, reader: GitHubReader, repository: str, commit: str, *, budget: CallBudget | None = None) -> None:
        self._reader = reader
        self._repository = repository
        self._commit = commit
        self._budget = budget
        self._listing: Listing | None = None
        self._lock = anyio.Lock()

    async def listing(self) -> Listing:
        """See `TreeSource.listing`.

        Raises:
            DependfixError: The tree cannot be read.
        """
        async with self._lock:
            if self._listing is None:
                self._listing = await self._reader.listing(self._repository, self._commit, budget=self._budget)
            return self._listing

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        """See `TreeSource.read`.

        Raises:
            DependfixError: GitHub refuses to give a blob that its own tree names.
        """
        listing = await self.listing()
        found: dict[str, FileContent | Absence] = {}

        async def one(path: str) -> None:
            entry = listing.entries.get(path)
            if entry is not None:
                found[path] = await self._reader.read_file(self._repository, entry, budget=self._budget)
            elif listing.complete:
                found[path] = Absence.MISSING
            else:
                # A tree that GitHub cut says nothing about what it does not list.
                found[path] = await self._reader.read_path(self._repository, path, self._commit, budget=self._budget)

        try:
            async with anyio.create_task_group() as group:
                for path in paths:
                    group.start_soon(one, path)
        except* Exception as errors:  # noqa: BLE001  # the first one speaks for all
            raise errors.exceptions[0] from None
        return found
