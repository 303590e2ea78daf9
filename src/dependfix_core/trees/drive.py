"""Drives a step: gives it the files and records that it says it needs, round by round."""

from typing import TypeVar

import anyio

from dependfix_core.metadata.base import MetadataSource
from dependfix_core.model.files import Absence, FileContent
from dependfix_core.model.records import Record, RecordKey
from dependfix_core.model.steps import Needs, Step, Supplies
from dependfix_core.trees.base import TreeSource

T = TypeVar("T")


class Supplied:
    """Everything that was given so far, so that nothing is read or asked for twice.

    One object may drive several steps on the same tree.
    """

    def __init__(self) -> None:
        self.files: dict[str, FileContent | Absence] = {}
        self.records: dict[RecordKey, Record] = {}


async def drive(step: Step[T], tree: TreeSource, metadata: MetadataSource, *, supplied: Supplied | None = None) -> T:
    """The result of `step` on `tree`; files and records of a round are fetched side by side."""
    given = supplied if supplied is not None else Supplied()
    try:
        needs = next(step)
        while True:
            await _supply(needs, tree, metadata, given)
            needs = step.send(
                Supplies(
                    files={path: given.files[path] for path in needs.files},
                    records={key: given.records[key] for key in needs.records},
                )
            )
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        step.close()


async def _supply(needs: Needs, tree: TreeSource, metadata: MetadataSource, given: Supplied) -> None:
    files = needs.files - given.files.keys()
    records = needs.records - given.records.keys()

    async def read() -> None:
        given.files.update(await tree.read(sorted(files)))

    async def ask() -> None:
        given.records.update(await metadata.fetch(sorted(records)))

    async with anyio.create_task_group() as group:
        if files:
            group.start_soon(read)
        if records:
            group.start_soon(ask)
