"""Turns decisions into bytes: every manifest and lock of a unit after a set of remediations.

Pure. The records that it asks for are those that the plan was made from.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.floors import is_floor
from dependfix_core.ecosystems.pip.needs import Need
from dependfix_core.ecosystems.pip.resolution import Facts, Resolution, State
from dependfix_core.ecosystems.pip.simulation import release_in
from dependfix_core.ecosystems.pip.toml_text import NotSpelledOutError
from dependfix_core.ecosystems.pip.write_manifest import write_edits
from dependfix_core.ecosystems.pip.write_pdm import write_pdm
from dependfix_core.ecosystems.pip.write_pipenv import write_pipenv
from dependfix_core.ecosystems.pip.write_poetry import write_poetry
from dependfix_core.ecosystems.pip.write_pylock import write_pylock
from dependfix_core.ecosystems.pip.write_requirements import write_requirements
from dependfix_core.ecosystems.pip.write_task import LockTask, MovedCopy
from dependfix_core.ecosystems.pip.write_uv import write_uv
from dependfix_core.model.files import ChangeSet, FileChange, FileContent
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.model.records import PackageRecord, Unavailable
from dependfix_core.model.steps import Step, file_contents

LockWriter = Callable[[LockTask], dict[str, bytes] | WriteRefusal]

_WRITERS: Final[Mapping[str, LockWriter]] = {
    "requirements": write_requirements,
    "uv-lock": write_uv,
    "poetry-lock": write_poetry,
    "pipfile-lock": write_pipenv,
    "pdm-lock": write_pdm,
    "pylock": write_pylock,
}
_NEEDS_DETAILS: Final = frozenset({"uv-lock", "poetry-lock", "pdm-lock", "pylock"})
"""Formats whose entries say what the copy needs."""


def write_unit(unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
    """The files of `unit` after all `remediations` together, or why they cannot be written here."""
    for index, remediation in enumerate(remediations):
        if remediation.needs_tool:
            why = "; ".join(remediation.warnings)
            detail = f"{remediation.package_name}: {unit.tool or 'the package manager'} has to resolve this"
            detail += f", since {why}" if why else ""
            return WriteRefusal(reason="tool-required", detail=detail, remediation=index)
    moves = _moves(remediations)
    if isinstance(moves, WriteRefusal):
        return moves
    found = yield from file_contents(unit.files)
    files = {path: file for path, file in found.items() if isinstance(file, FileContent)}
    if len(files) < len(unit.files):
        missing = sorted(set(unit.files) - files.keys())
        return WriteRefusal(reason="manifest-missing", detail=f"{missing[0]} cannot be read")
    task = yield from _task(unit, {path: file.content for path, file in files.items()}, moves, _edits(remediations))
    written = task if isinstance(task, WriteRefusal) else _written(task)
    if isinstance(written, WriteRefusal):
        return written
    return ChangeSet(
        changes=tuple(
            FileChange(path=path, before=files[path].content, after=after, mode=files[path].mode)
            for path, after in sorted(written.items())
            if after != files[path].content
        )
    )


def _written(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    writer = _WRITERS.get(task.unit.format)
    changed = {path: content for path, content in task.files.items() if content != task.originals[path]}
    if writer is None:
        if task.moved:
            return WriteRefusal(reason="tool-required", detail=f"{task.unit.format} files are not written here")
        return changed
    try:
        locked = writer(task)
    except NotSpelledOutError as error:
        detail = f"{task.unit.unit} is not laid out as its tool lays it out: {error} is spread over tables"
        return WriteRefusal(reason="tool-required", detail=detail)
    return locked if isinstance(locked, WriteRefusal) else {**changed, **locked}


def _moves(remediations: Sequence[Remediation]) -> dict[str, Move] | WriteRefusal:
    """One move for each place; two that disagree cannot be written together."""
    found: dict[str, Move] = {}
    for index, remediation in enumerate(remediations):
        for move in remediation.moves:
            known = found.setdefault(move.where, move)
            if known.to_version != move.to_version:
                detail = f"{move.where} would go to {known.to_version} and to {move.to_version}"
                return WriteRefusal(reason="constraint-conflict", detail=detail, remediation=index)
            if move.added:
                return WriteRefusal(
                    reason="tool-required", detail=f"{move.package_name} has to come in", remediation=index
                )
    return found


def _edits(remediations: Sequence[Remediation]) -> tuple[Edit, ...]:
    found = {edit: None for remediation in remediations for edit in remediation.edits}
    return tuple(sorted(found, key=lambda edit: (edit.path, edit.at, edit.to_text)))


def _task(
    unit: LockUnit, originals: Mapping[str, bytes], moves: Mapping[str, Move], edits: tuple[Edit, ...]
) -> Step[LockTask | WriteRefusal]:
    state = State(versions={where: move.to_version for where, move in moves.items() if move.to_version is not None})
    before, after = Resolution(Facts(unit), State()), Resolution(Facts(unit), state)
    moved: list[MovedCopy] = []
    for where, move in sorted(moves.items()):
        instance = unit.instances.get(where)
        if instance is None or instance.version != move.from_version:
            return WriteRefusal(reason="tool-required", detail=f"{where} is not locked at {move.from_version}")
        if is_floor(instance):
            continue  # the edit of its declaration is all of it
        if move.to_version is None:
            needs = yield from before.needs(where)
            moved.append(
                MovedCopy(before=instance, version=None, needs_before=None if isinstance(needs, Unavailable) else needs)
            )
            continue
        copy = yield from _moved(unit, before, after, where, move.to_version)
        if isinstance(copy, WriteRefusal):
            return copy
        moved.append(copy)
    files = dict(originals)
    if unit.format != "requirements":
        written = write_edits(unit, originals, edits)
        if isinstance(written, WriteRefusal):
            return written
        files.update(written)
    return LockTask(
        unit=unit,
        files=files,
        originals=originals,
        moved=moved,
        edits=edits,
        environments=before.facts.environments,
        masks=reached_masks(before),
    )


def _moved(
    unit: LockUnit, before: Resolution, after: Resolution, where: str, version: str
) -> Step[MovedCopy | WriteRefusal]:
    instance = unit.instances[where]
    package = yield from after.package(instance.name)
    listed = release_in(package, version) if isinstance(package, PackageRecord) else None
    if before.facts.has_hashes and (listed is None or not listed.files):
        detail = f"the files of {instance.name} {version} are not known"
        return WriteRefusal(reason="integrity-unavailable", detail=detail)
    details = yield from after.release(instance.name, version)
    if isinstance(details, Unavailable) and unit.format in _NEEDS_DETAILS:
        return WriteRefusal(reason="metadata-unavailable", detail=f"what {instance.name} {version} needs is not known")
    needs_after = None if isinstance(details, Unavailable) else after.needs_of(where, details)
    needs_before: tuple[Need, ...] | Unavailable = yield from before.needs(where)
    old_details = yield from before.release(instance.name, instance.version)
    old = None if isinstance(old_details, Unavailable) else old_details
    if isinstance(package, PackageRecord) and (old is None or not old.files):
        old = release_in(package, instance.version) or old
    return MovedCopy(
        before=instance,
        version=version,
        package=package if isinstance(package, PackageRecord) else None,
        old=old,
        new=None if isinstance(details, Unavailable) else details,
        files=listed.files if listed is not None else (),
        needs_before=None if isinstance(needs_before, Unavailable) else needs_before,
        needs_after=needs_after,
    )


def reached_masks(resolution: Resolution) -> dict[str, int]:
    """Where each copy is installed, by the markers of all ways that lead to it."""
    facts = resolution.facts
    environments = facts.environments
    reached: dict[str, int] = {}
    waiting = [
        (where, environments.mask(constraint.marker, None))
        for where, declared in facts.declared.items()
        for constraint in declared
    ]
    while waiting:
        where, mask = waiting.pop()
        instance = facts.unit.instances.get(where)
        if instance is None:
            continue
        mask &= resolution.mask(instance)
        known = reached.get(where, 0)
        if not mask & ~known:
            continue
        reached[where] = known | mask
        waiting.extend(
            (edge.target, mask & environments.mask(edge.marker, None))
            for edge in instance.edges
            if edge.target is not None
        )
    return reached
