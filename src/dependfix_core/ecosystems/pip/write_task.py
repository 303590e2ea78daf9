"""What a writer of one lock format gets: the copies that move, with everything that is known of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.environments import Environments, Mask
from dependfix_core.ecosystems.pip.needs import Need
from dependfix_core.model.lock import Instance, LockUnit
from dependfix_core.model.plan import Edit, RefusalReason
from dependfix_core.model.records import PackageRecord, Release, ReleaseFile


class CannotWriteError(Exception):
    """What a lock would have to say is not certain here; it never leaves the writers."""

    def __init__(self, detail: str, *, reason: RefusalReason = "tool-required") -> None:
        super().__init__(detail)
        self.refusal = WriteRefusal(reason=reason, detail=detail)


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedCopy:
    """One copy and what it becomes."""

    before: Instance
    version: str | None
    """The new one; `None` for a copy that goes."""
    package: PackageRecord | None = None
    old: Release | None = None
    """Details of the old version, where they are known."""
    new: Release | None = None
    """Details of the new one; there unless the copy goes or the format needs none."""
    files: tuple[ReleaseFile, ...] = ()
    """Of the new version, all of them."""
    needs_before: tuple[Need, ...] | None = None
    needs_after: tuple[Need, ...] | None = None

    @property
    def name(self) -> str:
        """Canonical name."""
        return self.before.name

    @property
    def names_before(self) -> set[str] | None:
        """What the old version asked for; `None` when that is not known."""
        return None if self.needs_before is None else {need.name for need in self.needs_before}

    @property
    def names_after(self) -> set[str] | None:
        """What the new version asks for; nothing for a copy that goes."""
        if self.version is None:
            return set()
        return None if self.needs_after is None else {need.name for need in self.needs_after}

    @property
    def old_files(self) -> tuple[ReleaseFile, ...]:
        """Of the old version, as the index lists them."""
        return self.old.files if self.old is not None else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LockTask:
    """All moves and edits of one unit that are written together."""

    unit: LockUnit
    files: Mapping[str, bytes]
    """Path → content, with the plan's edits of manifests made."""
    originals: Mapping[str, bytes]
    """Path → content as it was read."""
    moved: Sequence[MovedCopy]
    edits: Sequence[Edit]
    environments: Environments
    masks: Mapping[str, Mask]
    """Where each copy is installed, by what reaches it."""
