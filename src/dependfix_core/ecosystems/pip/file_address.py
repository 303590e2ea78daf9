"""Where does a file of a new release lie, on the hosts that the lock already uses?

The index that answered may not be the one that the lock was made with (a
mirror, a proxy). A lock keeps its own base: it is learnt from a file that both
know, and never taken from the answer alone.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from dependfix_core.model.records import ReleaseFile


class AddressBook:
    """Rewrites the addresses of an index's answer to those of one lock entry."""

    def __init__(self, locked: Mapping[str, str], listed: Iterable[ReleaseFile]) -> None:
        """`locked` are file name → address as the lock has them now, `listed` the same release in the answer."""
        self._hosts = {_host(url) for url in locked.values()}
        self._bases: list[tuple[str, str]] = []
        for file in listed:
            known = locked.get(file.filename)
            if known and file.url:
                base = _bases(file.url, known)
                if base not in self._bases:
                    self._bases.append(base)

    def address(self, file: ReleaseFile) -> str | None:
        """The address to write; `None` when it cannot be told."""
        for theirs, ours in self._bases:
            if file.url.startswith(theirs):
                return ours + file.url[len(theirs) :]
        if file.url and self._hosts == {_host(file.url)}:
            return file.url
        return None


def _bases(theirs: str, ours: str) -> tuple[str, str]:
    """The two addresses without what they share at the end, cut between path segments."""
    mine, other = theirs.split("/"), ours.split("/")
    shared = 0
    while shared < min(len(mine), len(other)) - 3 and mine[-1 - shared] == other[-1 - shared]:
        shared += 1
    return "/".join(mine[: len(mine) - shared]) + "/", "/".join(other[: len(other) - shared]) + "/"


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
