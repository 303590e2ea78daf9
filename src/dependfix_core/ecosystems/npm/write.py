"""A plan's remediations as changed files of one JavaScript unit, where the result is what the package manager keeps."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError, scan_json
from dependfix_core.ecosystems.npm.manifest_edits import EditError, edited_file
from dependfix_core.ecosystems.npm.workspaces import MANIFEST
from dependfix_core.ecosystems.npm.write_base import CannotWriteError, Releases, Wanted, combined
from dependfix_core.ecosystems.npm.write_bun_lock import written_bun_lock
from dependfix_core.ecosystems.npm.write_npm_lock import written_npm_lock
from dependfix_core.ecosystems.npm.write_pnpm_lock import written_pnpm_lock
from dependfix_core.ecosystems.npm.write_yarn_berry import written_yarn_berry
from dependfix_core.ecosystems.npm.write_yarn_classic import written_yarn_classic
from dependfix_core.model.files import Absence, ChangeSet, FileChange, FileContent
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Remediation
from dependfix_core.model.steps import Step, file_contents


def write(
    unit: LockUnit, remediations: Sequence[Remediation], *, pending_checksums: bool = False
) -> Step[ChangeSet | WriteRefusal]:
    """The files of `unit` after all `remediations` together, everything else of them kept.

    A refusal says whether the package manager can do it instead. With
    `pending_checksums` a lock of yarn 2 or later is written too, without the
    checksums of what changed: the next install fills them in.
    """
    is_pending = pending_checksums and unit.format == "yarn-berry"
    try:
        wanted = combined(
            unit, [replace(one, needs_tool=False) for one in remediations] if is_pending else remediations
        )
        return (yield from _written(unit, wanted, pending_checksums=is_pending))
    except CannotWriteError as error:
        return WriteRefusal(reason=error.reason, detail=error.detail, remediation=error.remediation)
    except EditError as error:
        return WriteRefusal(reason="tool-required", detail=str(error))


def _written(unit: LockUnit, wanted: Wanted, *, pending_checksums: bool) -> Step[ChangeSet]:
    _refuse_unreadable(unit)
    edited = {edit.path for edit in wanted.edits}
    found = yield from file_contents({*unit.files, *edited})
    before = {path: file for path, file in found.items() if isinstance(file, FileContent)}
    missing = [path for path in unit.files if path not in before]
    unusable = [path for path in edited if path not in before and found[path] is not Absence.MISSING]
    if missing or unusable:
        raise CannotWriteError(f"{(missing or unusable)[0]} cannot be read any more")
    after = {
        path: edited_file(path, before[path].content if path in before else None, wanted.edits_of(path))
        for path in sorted(edited)
    }
    _refuse_unread_override(unit, wanted, before)
    if unit.format != "manifest":
        releases = Releases(unit)
        yield from releases.fetch(wanted.releases)
        texts = {path: file.content for path, file in before.items()}
        after[unit.unit] = yield from _written_lock(
            unit, wanted, releases, texts, texts | after, pending_checksums=pending_checksums
        )
    return ChangeSet(
        changes=tuple(
            FileChange(
                path=path,
                before=before[path].content if path in before else None,
                after=content,
                **({"mode": before[path].mode} if path in before else {}),
            )
            for path, content in sorted(after.items())
            if path not in before or before[path].content != content
        )
    )


def _refuse_unreadable(unit: LockUnit) -> None:
    for problem in unit.problems:
        if problem.path == unit.unit or problem.path in unit.manifests:
            raise CannotWriteError(f"{problem.path} {problem.position}: {problem.message}")


def _refuse_unread_override(unit: LockUnit, wanted: Wanted, before: Mapping[str, FileContent]) -> None:
    """A first `pnpm.overrides` in package.json counts up to pnpm 10; a project that does not say its pnpm shows it."""
    if unit.format != "pnpm-lock" or unit.tool_version or unit.format_version.startswith("6"):
        return
    for edit in wanted.edits:
        if edit.kind == "override" and edit.at.startswith("pnpm.overrides.") and edit.path in before:
            held = scan_json(before[edit.path].content).root.value
            if not isinstance(held, dict) or "pnpm" not in held:
                raise CannotWriteError(
                    f"{edit.path} does not name its pnpm (packageManager), and pnpm since 11 reads no overrides there"
                )


def _written_lock(
    unit: LockUnit,
    wanted: Wanted,
    releases: Releases,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    *,
    pending_checksums: bool,
) -> Step[bytes]:
    content, manifests = before[unit.unit], _manifests(unit, after)
    if unit.format == "npm-lock":
        return written_npm_lock(content, unit, wanted, releases, manifests)
    if unit.format == "pnpm-lock":
        return (yield from written_pnpm_lock(content, unit, wanted, releases, manifests))
    if unit.format == "yarn-classic":
        return written_yarn_classic(content, unit, wanted, releases, manifests, _manifests(unit, before))
    if unit.format == "bun-lock":
        return written_bun_lock(content, unit, wanted, releases)
    if unit.format == "yarn-berry" and pending_checksums:
        return written_yarn_berry(content, unit, wanted, releases, _manifests(unit, before), manifests)
    raise CannotWriteError(f"a {unit.format} is written by {unit.tool}")


def _manifests(unit: LockUnit, texts: Mapping[str, bytes]) -> dict[str, Mapping[str, Any]]:
    """Folder as the lock names it → package.json as it shall be."""
    found: dict[str, Mapping[str, Any]] = {}
    home = posixpath.dirname(unit.unit)
    for path in unit.manifests:
        if path in texts and posixpath.basename(path) == MANIFEST:
            folder = posixpath.relpath(posixpath.dirname(path) or ".", home or ".")
            try:
                value = scan_json(texts[path]).root.value
            except JsonSyntaxError as error:
                raise CannotWriteError(f"{path} cannot be read") from error
            found["" if folder == "." else folder] = value if isinstance(value, dict) else {}
    return found
