"""Makes a project, or the database of a fresh clone, without touching what is there."""

import contextlib
from pathlib import Path
from typing import Any, Final

from adapters.sudocode.behind import read_jsonl, regular_bytes
from adapters.sudocode.cli import Capabilities
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.locate import FOLDER, Project, nearest_folder
from adapters.sudocode.lock import writer_lock
from adapters.sudocode.markdown import refuse_links
from adapters.sudocode.session import Payload, Sudocode, Work, warning

_DATABASES: Final = ("cache.db", "sudograph.db")


async def init(sudocode: Sudocode) -> Payload:
    """`{success, path, already_initialized}`; `path` is the `.sudocode` folder."""
    capabilities = await sudocode.cli.capabilities()
    start = sudocode.config.working_dir.resolve()
    if sudocode.config.database:
        raise SudocodeError(
            "SUDOCODE_DB names a database, so there is nothing to initialise here",
            code="config_error",
            hint="Unset SUDOCODE_DB to work with the project of the working directory.",
            details={"setting": "SUDOCODE_DB"},
        )
    found = nearest_folder(start)
    if found is not None and found.parent != start:
        raise SudocodeError(
            "the working directory belongs to a sudocode project further up",
            code="conflict",
            hint="Use that project, or set SUDOCODE_WORKING_DIR to the folder that should get its own.",
            details={"project_root": str(found.parent)},
        )
    folder = start / FOLDER
    present = next((name for name in _DATABASES if (folder / name).exists()), None)
    if present is not None:
        if present != capabilities.database_name:
            raise SudocodeError(
                f"the project's database is {present}; the installed sudocode uses {capabilities.database_name}",
                code="database_incompatible",
                hint="Use the release of sudocode that made the database.",
            )
        await (await sudocode.open()).read("status")  # a database that cannot be opened is no project
        return {"success": True, "path": str(folder), "already_initialized": True}
    if not folder.exists():
        return await _run(sudocode, capabilities, folder, kept={})
    async with writer_lock(folder, wait_s=sudocode.config.lock_wait_s):
        refuse_links(folder)
        return await _run(sudocode, capabilities, folder, kept=_contents(folder))


def _contents(folder: Path) -> dict[Path, bytes]:
    """The files that a run could empty or replace."""
    out = {}
    for name in ("issues.jsonl", "specs.jsonl", ".gitignore", "config.json", "meta.json"):
        with contextlib.suppress(FileNotFoundError):
            out[folder / name] = _bytes(folder / name)
    return out


def _bytes(path: Path) -> bytes:
    try:
        return regular_bytes(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SudocodeError(
            f"nothing was done: {FOLDER}/{path.name} cannot be read ({error.strerror})",
            code="database_invalid",
            hint="Put the file back as it was committed.",
        ) from error


async def _run(sudocode: Sudocode, capabilities: Capabilities, folder: Path, *, kept: dict[Path, bytes]) -> Payload:
    database = folder / capabilities.database_name
    faults = [fault for name in ("issues.jsonl", "specs.jsonl") for fault in read_jsonl(folder / name).faults]
    if faults:
        raise SudocodeError(
            f"nothing was done: {faults[0]['file']} line {faults[0]['line']} cannot be read ({faults[0]['reason']})",
            code="database_stale",
            hint="Repair the line first; sudocode would leave its row out. git has the earlier versions of the file.",
            details={"faults": faults[:20]},
        )
    warnings: list[dict[str, Any]] = []
    await sudocode.cli.init(folder.parent)
    _put_back(kept, warnings)
    if not database.is_file():
        raise SudocodeError("sudocode init ended well but made no database", code="bad_output")
    work = Work(
        cli=sudocode.cli,
        project=Project(root=folder.parent, database=database),
        capabilities=capabilities,
    )
    if any(content.strip() for path, content in kept.items() if path.suffix == ".jsonl"):
        await _take_rows(sudocode, work, database)
    out: Payload = {"success": True, "path": str(folder), "already_initialized": False}
    all_warnings = [*warnings, *work.warnings]
    return {**out, "warnings": all_warnings} if all_warnings else out


def _put_back(kept: dict[Path, bytes], warnings: list[dict[str, Any]]) -> None:
    """Undo what a run did to files that were there.

    Old releases empty the JSONL files and start their numbers (`meta.json`)
    anew, all rewrite `.gitignore`.
    """
    for path, content in kept.items():
        now = _bytes(path) if path.exists() else b""
        if now == content:
            continue
        if path.name == ".gitignore":
            lines = content.decode("utf-8", "replace").splitlines()
            added = [line for line in now.decode("utf-8", "replace").splitlines() if line not in lines]
            path.write_text("".join(f"{line}\n" for line in [*lines, *added]), encoding="utf-8")
            warnings.append(warning("gitignore_merged", f"the lines of {FOLDER}/.gitignore were kept"))
        else:
            path.write_bytes(content)
            if path.suffix == ".jsonl":
                warnings.append(warning("restored", f"this release rewrote {path.name}; it was put back as it was"))


async def _take_rows(sudocode: Sudocode, work: Work, database: Path) -> None:
    """See to it that the new database holds every committed row; otherwise take the database away again."""
    try:
        comparison = await sudocode.comparison(work)
        if not comparison.in_step:
            await sudocode.bring_up(work)
    except SudocodeError as error:
        for path in (database, *(database.with_name(f"{database.name}{suffix}") for suffix in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)
        raise SudocodeError(
            f"the committed rows could not be read into a new database, which was removed again: {error.message}",
            code="database_stale",
            hint="Repair the JSONL files in .sudocode first; git has their earlier versions.",
            details={key: value for key, value in error.details.items() if key != "status"},
        ) from error
