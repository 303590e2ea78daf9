"""What every lockfile reader of this ecosystem hands to `read_units`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dependfix_core.model.lock import Constraint, DependencyKind, Instance, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """A copy that a manifest asks for, and how."""

    where: str
    kind: DependencyKind


class ParsedLock(Protocol):
    """A lockfile that could be read, before its manifests are known."""

    @property
    def format(self) -> str:
        """As `LockUnit.format`."""

    @property
    def format_version(self) -> str:
        """As the file states it."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Parts of the file that could not be read."""

    @property
    def member_folders(self) -> tuple[str, ...]:
        """Folders whose manifests the lock covers besides its own, relative to the lock's folder, sorted."""

    @property
    def declared(self) -> Mapping[str, Mapping[str, Mapping[str, str]]] | None:
        """Folder → section → name → requirement text as the lock mirrors its manifests; `None` when it does not."""

    @property
    def overrides(self) -> Mapping[str, str] | None:
        """Selector → value as the lock mirrors them; `None` when it does not."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Facts for this format's writer and for `LockUnit.settings`."""

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """`where` of the copy that a requirement of the manifest in `folder` leads to."""

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by `where`. `manifest_folders` have manifests of their own and are no copies."""


def unreadable(path: str, position: str, message: str) -> Problem:
    """A problem that keeps a whole file or entry from being read."""
    return Problem(path=path, position=position, message=message, reason="unreadable")
