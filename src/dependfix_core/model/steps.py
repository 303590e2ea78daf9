"""Sans-I/O: work that says what it needs, in rounds, and receives values.

A step is a generator. It yields `Needs` and is sent `Supplies`; its return
value is the result. Readers and the planner are written so, and one driver
each serves a local checkout, the repository on GitHub, and fixtures:

    text = yield from file_content("package.json")
    record = yield from record_for(key)

`together` runs several steps in lockstep, so that one round asks for all that
they need.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dependfix_core.model.files import Absence, FileContent
from dependfix_core.model.records import Record, RecordKey

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a step waits for. Everything it has asked for before may be asked for again."""

    files: frozenset[str] = frozenset()
    records: frozenset[RecordKey] = frozenset()

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(files=self.files | other.files, records=self.records | other.records)

    def __bool__(self) -> bool:
        return bool(self.files or self.records)


@dataclass(frozen=True, kw_only=True, slots=True)
class Supplies:
    """Answers, at least to everything that was asked for in this round."""

    files: Mapping[str, FileContent | Absence] = field(default_factory=dict)
    records: Mapping[RecordKey, Record] = field(default_factory=dict)


Step = Generator[Needs, Supplies, T]


def file_contents(paths: Iterable[str]) -> Step[Mapping[str, FileContent | Absence]]:
    """The wanted files, each as content or as the reason why there is none."""
    wanted = frozenset(paths)
    if not wanted:
        return {}
    supplies = yield Needs(files=wanted)
    return {path: supplies.files[path] for path in wanted}


def file_content(path: str) -> Step[FileContent | Absence]:
    """One file, as content or as the reason why there is none."""
    found = yield from file_contents([path])
    return found[path]


def records_for(keys: Iterable[RecordKey]) -> Step[Mapping[RecordKey, Record]]:
    """The wanted records, each as a record or as the reason why there is none."""
    wanted = frozenset(keys)
    if not wanted:
        return {}
    supplies = yield Needs(records=wanted)
    return {key: supplies.records[key] for key in wanted}


def together(steps: Sequence[Step[T]]) -> Step[list[T]]:
    """Results of all `steps`, in their order; each round asks for what all of them need."""
    results: dict[int, T] = {}
    waiting: dict[int, Needs] = {}
    for index, step in enumerate(steps):
        try:
            waiting[index] = next(step)
        except StopIteration as stop:
            results[index] = stop.value
    while waiting:
        files: set[str] = set()
        records: set[RecordKey] = set()
        for need in waiting.values():
            files |= need.files
            records |= need.records
        supplies = yield Needs(files=frozenset(files), records=frozenset(records))
        for index in list(waiting):
            try:
                waiting[index] = steps[index].send(supplies)
            except StopIteration as stop:
                results[index] = stop.value
                del waiting[index]
    return [results[index] for index in range(len(steps))]
