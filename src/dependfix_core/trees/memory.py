"""Trees that hold their files themselves, and trees with changes laid over another one."""

from collections.abc import Collection, Mapping

from dependfix_core.model.files import REGULAR_MODE, Absence, ChangeSet, FileContent, Listing, TreeEntry, blob_sha
from dependfix_core.trees.base import TreeSource, content_or_absence


class MemoryTree:
    """A tree of given files; for fixtures and for tests of everything that sees trees."""

    def __init__(self, files: Mapping[str, bytes], *, modes: Mapping[str, str] | None = None) -> None:
        self._files = dict(files)
        self._modes = dict(modes or {})

    async def listing(self) -> Listing:
        """See `TreeSource.listing`."""
        entries = {
            path: TreeEntry(
                path=path,
                mode=self._modes.get(path, REGULAR_MODE),
                size=len(content),
                sha=blob_sha(content),
            )
            for path, content in sorted(self._files.items())
        }
        return Listing(entries=entries)

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        """See `TreeSource.read`."""
        return {
            path: content_or_absence(path, self._files[path], self._modes.get(path, REGULAR_MODE))
            if path in self._files
            else Absence.MISSING
            for path in paths
        }


class ChangedTree:
    """`base` as it is after `changes`."""

    def __init__(self, base: TreeSource, changes: ChangeSet) -> None:
        self._base = base
        self._changes = {change.path: change for change in changes.changes}

    async def listing(self) -> Listing:
        """See `TreeSource.listing`."""
        below = await self._base.listing()
        entries = {path: entry for path, entry in below.entries.items() if path not in self._changes}
        for path, change in self._changes.items():
            if change.after is not None:
                known = below.entries.get(path)
                mode = known.mode if known is not None else change.mode
                entries[path] = TreeEntry(path=path, mode=mode, size=len(change.after), sha=blob_sha(change.after))
        return Listing(entries=dict(sorted(entries.items())), complete=below.complete)

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        """See `TreeSource.read`."""
        found: dict[str, FileContent | Absence] = {}
        below = [path for path in paths if path not in self._changes]
        if below:
            found.update(await self._base.read(below))
        for path in paths:
            change = self._changes.get(path)
            if change is not None:
                found[path] = (
                    Absence.MISSING if change.after is None else content_or_absence(path, change.after, change.mode)
                )
        return found
