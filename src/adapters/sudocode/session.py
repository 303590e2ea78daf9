"""One project as the operations see it: located, asked for its release, and safe to write to."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread

from adapters.sudocode.behind import Comparison, JsonlFile, compare, read_jsonl, with_other_times
from adapters.sudocode.cli import Answer, Capabilities, Cli
from adapters.sudocode.config import SudocodeConfig
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.graph import Snapshot
from adapters.sudocode.locate import Project, find_project
from adapters.sudocode.lock import writer_lock
from adapters.sudocode.markdown import refuse_links
from dependfix_core.process import Runner

Payload: TypeAlias = dict[str, Any]
Signature: TypeAlias = tuple[tuple[int, ...], ...]

BY_HAND: Final = (
    "Decide which side is right, in the project's root: `sudocode --json import --input=.sudocode` makes the database "
    "like the files (rows that only the database has are deleted), `sudocode --json export --output=.sudocode` makes "
    "the files like the database. Repair broken lines first; git has the earlier versions of the files."
)


def warning(code: str, message: str, **facts: Any) -> Payload:
    """Something to know about a call that did its job."""
    return {"code": code, "message": message, **facts}


@dataclass(kw_only=True, slots=True)
class Work:
    """One call's project, what its release can do, and what there is to tell beside the result."""

    cli: Cli
    project: Project
    capabilities: Capabilities
    warnings: list[Payload] = field(default_factory=list)

    async def read(
        self, *words: str, options: Mapping[str, str] | None = None, positionals: Sequence[str] = ()
    ) -> object:
        """The document of a command that changes nothing."""
        return self._noted(await self.cli.read(self.project, *words, options=options, positionals=positionals))

    async def write(
        self,
        *words: str,
        options: Mapping[str, str] | None = None,
        positionals: Sequence[str] = (),
        repeatable: bool,
    ) -> object:
        """The document of a command that changes the project; only inside `Sudocode.writing`."""
        answer = await self.cli.write(
            self.project, *words, options=options, positionals=positionals, repeatable=repeatable
        )
        return self._noted(answer)

    def warn(self, code: str, message: str, **facts: Any) -> None:
        """Add a warning to the call's result."""
        self.warnings.append(warning(code, message, **facts))

    def payload(self, **content: Any) -> Payload:
        """The result: what is set, and the warnings if there are any."""
        out = {key: value for key, value in content.items() if value is not None}
        if self.warnings:
            out["warnings"] = self.warnings
        return out

    def _noted(self, answer: Answer) -> object:
        for note in answer.notes[:5]:
            self.warn("cli_message", note[:300])
        return answer.document


class Sudocode:
    """Opens projects for reading and writing; remembers which states of their files were compared."""

    def __init__(self, config: SudocodeConfig, runner: Runner) -> None:
        self.config = config
        self.cli = Cli(config, runner)
        self._compared: dict[Path, tuple[Signature, Comparison]] = {}
        self._queues: dict[Path, anyio.Lock] = {}

    async def open(self) -> Work:
        """The project that calls work on.

        Raises:
            SudocodeError: `cli_missing`, `cli_broken`, `config_error`,
                `not_initialized`, `database_incompatible`, `database_invalid`.
        """
        capabilities = await self.cli.capabilities()
        project = find_project(self.config, database_name=capabilities.database_name)
        return Work(cli=self.cli, project=project, capabilities=capabilities)

    async def reading(self) -> Work:
        """`open`, with a warning when the database is behind the files, since reads do not look at those."""
        work = await self.open()
        try:
            comparison = await self.comparison(work)
        except SudocodeError as error:
            if error.code not in ("cli_failed", "unsupported_by_cli", "timeout", "bad_output"):
                raise
            work.warn("not_compared", "the database could not be compared with the committed files")
            return work
        if comparison.files_ahead or comparison.faults or comparison.contradictory:
            work.warn(
                "database_behind",
                "the committed JSONL files hold changes that the database does not show; the next write takes them "
                "over, or is refused when that is not safe",
                **comparison.facts(),
            )
        return work

    @contextlib.asynccontextmanager
    async def writing(self, *, bring_up: bool = True) -> AsyncIterator[Work]:
        """The project, locked, and unless told otherwise with its database brought up to its files.

        Raises:
            SudocodeError: Those of `open`, `database_busy`, `database_stale`,
                `conflict` when a link leads out of the project.
        """
        work = await self.open()
        # Calls of this process wait in order; only the first of them tries for the lock among processes.
        queue = self._queues.setdefault(work.project.folder, anyio.Lock())
        async with queue, writer_lock(work.project.folder, wait_s=self.config.lock_wait_s):
            refuse_links(work.project.folder)
            if bring_up:
                await self.bring_up(work)
            before = _signature(work.project)
            try:
                yield work
            finally:
                # What the program wrote just now came from its database: in step, without another look.
                if _signature(work.project) != before:
                    self._compared[work.project.root] = (_signature(work.project), Comparison())

    async def bring_up(self, work: Work) -> None:
        """Import what only the files have; refuse when either way something would be lost."""
        comparison = await self.comparison(work)
        if comparison.faults:
            first = comparison.faults[0]
            raise _stale(
                f"{first['file']} line {first['line']} cannot be read ({first['reason']}); "
                "sudocode would take its row for deleted",
                comparison,
            )
        if comparison.contradictory:
            raise _stale("rows have the same time of change in the files and in the database, but differ", comparison)
        if comparison.newer_in_database and not work.capabilities.keeps_times_on_import:
            raise _stale(
                "rows differ, and this release's times do not tell whether the database or a pull is newer", comparison
            )
        if comparison.files_ahead and comparison.database_ahead:
            raise _stale("the files and the database both have changes that the other lacks", comparison)
        if comparison.files_ahead:
            await self._import(work, comparison)
        elif comparison.database_ahead:
            work.warn(
                "files_behind",
                "the database has rows that the JSONL files lacked; this write adds them",
                **comparison.facts(),
            )

    async def _import(self, work: Work, comparison: Comparison) -> None:
        folder = work.project.folder
        with anyio.CancelScope(shield=True):
            try:
                if comparison.more_in_files:
                    await self._import_rewritten(work, set(comparison.more_in_files))
                await work.cli.write(work.project, "import", options={"input": str(folder)}, repeatable=True)
            except SudocodeError as error:
                raise _stale(f"the files could not be imported: {error.message}", comparison) from error
        self._compared.pop(work.project.root, None)
        after = await self.comparison(work)
        if not after.in_step:
            raise _stale("after an import the database still differs from the files", after)
        work.warn(
            "imported",
            "changes that had arrived in the JSONL files were imported before this write",
            **comparison.facts(),
        )

    async def _import_rewritten(self, work: Work, names: set[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="sudocode-import-") as scratch:
            for path in work.project.jsonl:
                if path.exists():
                    text = with_other_times(path, names)
                    (Path(scratch) / path.name).write_text(text, encoding="utf-8")
            await work.cli.write(work.project, "import", options={"input": scratch}, repeatable=True)

    async def comparison(self, work: Work) -> Comparison:
        """How files and database differ; from memory while neither has changed."""
        signature = _signature(work.project)
        known = self._compared.get(work.project.root)
        if known is not None and known[0] == signature:
            return known[1]
        # The files first: a person's program writes its row to the database before
        # it exports, so what is missing in the later look was not just being written.
        committed = await anyio.to_thread.run_sync(_read_all, work.project.jsonl)
        async with _exported(work) as folder:
            exported = await anyio.to_thread.run_sync(_read_all, [folder / path.name for path in work.project.jsonl])
        comparison = compare(zip(committed, exported, strict=True))
        self._compared[work.project.root] = (signature, comparison)
        return comparison

    async def snapshot(self, work: Work) -> Snapshot:
        """Everything the database holds, in one consistent export."""
        async with _exported(work) as folder:
            issues, specs = await anyio.to_thread.run_sync(
                _read_all, [folder / path.name for path in work.project.jsonl]
            )
        return Snapshot(issues=tuple(issues.rows.values()), specs=tuple(specs.rows.values()))


@contextlib.asynccontextmanager
async def _exported(work: Work) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sudocode-export-") as scratch:
        await work.cli.read(work.project, "export", options={"output": scratch})
        yield Path(scratch)


def _read_all(paths: Sequence[Path]) -> list[JsonlFile]:
    return [read_jsonl(path) for path in paths]


def _signature(project: Project) -> Signature:
    """Changes whenever a file or the database does; times alone are no proof, the program sets them itself."""
    write_ahead = project.database.with_name(f"{project.database.name}-wal")
    return tuple(_stat(path) for path in (*project.jsonl, project.database, write_ahead))


def _stat(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    if path.suffix != ".jsonl" and stat.st_size == 0:
        return ()  # an empty write-ahead log comes and goes with every reader
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def _stale(message: str, comparison: Comparison) -> SudocodeError:
    return SudocodeError(
        f"nothing was written: {message}", code="database_stale", hint=BY_HAND, details=comparison.facts()
    )
