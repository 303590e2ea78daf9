"""The interface to registry metadata, and the sources that need no network."""

from collections.abc import Collection, Mapping
from typing import Protocol

from dependfix_core.model.records import (
    PackageRecord,
    Record,
    RecordKey,
    ReleaseRecord,
    Unavailability,
    Unavailable,
)


class MetadataSource(Protocol):
    """Answers every key that it is asked for; what cannot be had is `Unavailable`, never an exception."""

    async def fetch(self, keys: Collection[RecordKey]) -> Mapping[RecordKey, Record]:
        """One record for each key. Order does not matter, keys are unique."""
        ...


class NoMetadata:
    """The source that has nothing: the planner then decides from the files and alerts alone."""

    def __init__(self, why: Unavailability = Unavailability.OFFLINE) -> None:
        self._why = why

    async def fetch(self, keys: Collection[RecordKey]) -> Mapping[RecordKey, Record]:
        """See `MetadataSource.fetch`."""
        return {key: Unavailable(key=key, why=self._why) for key in keys}


class RecordedMetadata:
    """Answers from records that are at hand: a stored plan's, or a test's.

    Keys match with or without their registry hint, since a record is the same
    wherever the address came from.
    """

    def __init__(self, records: Mapping[RecordKey, Record]) -> None:
        self._records = {_without_registry(key): record for key, record in records.items()}

    async def fetch(self, keys: Collection[RecordKey]) -> Mapping[RecordKey, Record]:
        """See `MetadataSource.fetch`."""
        return {key: self._answer(key) for key in keys}

    def _answer(self, key: RecordKey) -> Record:
        found = self._records.get(_without_registry(key))
        if found is None and key.version:
            package = self._records.get(RecordKey(ecosystem=key.ecosystem, name=key.name))
            found = release_of(package, key) if isinstance(package, PackageRecord) else package
        return found if found is not None else Unavailable(key=key, why=Unavailability.NOT_FOUND)


def _without_registry(key: RecordKey) -> RecordKey:
    return RecordKey(ecosystem=key.ecosystem, name=key.name, version=key.version)


def release_of(package: PackageRecord, key: RecordKey) -> Record:
    """The record of one release, taken from the list that holds its details (npm); `Unavailable` when it has none."""
    release = package.releases.get(key.version)
    if release is None or release.dependencies is None:
        return Unavailable(key=key, why=Unavailability.NOT_FOUND, detail=f"{key.name} {key.version} is not listed")
    return ReleaseRecord(key=key, release=release, digest=package.digest)
