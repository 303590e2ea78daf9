"""Runs a step to its end on files and records that are at hand, and remembers what it asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from dependfix_core.model.files import Absence, FileContent, Listing, TreeEntry
from dependfix_core.model.records import Record, RecordKey, Unavailability, Unavailable
from dependfix_core.model.steps import Needs, Step, Supplies

T = TypeVar("T")
PROJECTS = Path(__file__).parent.parent / "data" / "projects"
JUDGEMENT = frozenset({"alerts.json", "expected.json"})


def listing_of(files: Mapping[str, bytes]) -> Listing:
    return Listing(entries={path: TreeEntry(path=path) for path in files})


def project_files(name: str) -> dict[str, bytes]:
    """The files of a corpus project, without its alerts and their judgement."""
    root = PROJECTS / name
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in JUDGEMENT
    }


def drive(
    step: Step[T],
    files: Mapping[str, bytes] | None = None,
    records: Mapping[RecordKey, Record] | None = None,
    asked: list[Needs] | None = None,
) -> T:
    """The result of `step`; a file that is not there is missing, a record that is not there was not found."""
    try:
        needs = next(step)
        while True:
            if asked is not None:
                asked.append(needs)
            needs = step.send(
                Supplies(
                    files={path: _file(path, files or {}) for path in needs.files},
                    records={key: _record(key, records or {}) for key in needs.records},
                )
            )
    except StopIteration as stop:
        result: T = stop.value
        return result


def _file(path: str, files: Mapping[str, bytes]) -> FileContent | Absence:
    return FileContent(path=path, content=files[path]) if path in files else Absence.MISSING


def _record(key: RecordKey, records: Mapping[RecordKey, Record]) -> Record:
    plain = RecordKey(ecosystem=key.ecosystem, name=key.name, version=key.version)
    return records.get(key) or records.get(plain) or Unavailable(key=key, why=Unavailability.NOT_FOUND)
