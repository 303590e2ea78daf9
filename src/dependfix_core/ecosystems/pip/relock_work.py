"""What has to be brought to a plan's end state by a package manager."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Edit, Move


class NoWayError(Exception):
    """The package manager has no safe way to the wanted state; the text says why, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One unit with the copies that move and the manifests as they shall be."""

    unit: LockUnit
    originals: Mapping[str, bytes]
    edited: Mapping[str, bytes]
    """Path → content of the manifests that the plan changes."""
    moves: Mapping[str, Move]
    """Place → the move of a copy that stays."""
    edits: tuple[Edit, ...]

    @property
    def final(self) -> dict[str, bytes]:
        """Path → content with the plan's edits made."""
        return {**self.originals, **self.edited}

    @property
    def folder(self) -> str:
        """Of the lock; empty for the top level."""
        return posixpath.dirname(self.unit.unit)
