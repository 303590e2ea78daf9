"""Which runs there were: a SQLite index over the report files, rebuilt from them whenever it does not fit.

The files stay the truth. Each look-up first compares the folder with the
index, so that reports that others wrote or deleted are seen; an index that is
broken or cannot be written is replaced by one in memory.
"""

import contextlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from dependfix_core.errors import UnsupportedFormatError
from dependfix_core.model.alert import parse_time
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.store import (
    MAX_REPORT_BYTES,
    StoredReport,
    prepare_folder,
    read_stored,
)
from dependfix_core.report.wire import HistoryRun, RunResult

log = logging.getLogger(__name__)

INDEX_NAME: Final = "dependfix-history.sqlite3"
_ORIGINAL_INDEX: Final = "index.json"
"""History of the original dependfix; names runs whose files may be gone."""
_VERSION: Final = 1
_SCHEMA: Final = """
create table if not exists files (name text primary key, mtime_ns integer not null, size integer not null);
create table if not exists runs (
    run_id text not null, file text not null, started_ms integer not null, entry text not null,
    primary key (run_id, file)
);
create table if not exists run_repositories (
    run_id text not null, file text not null, repository text not null, name text not null
);
create index if not exists runs_by_time on runs (started_ms desc, run_id desc);
create index if not exists repositories_by_name on run_repositories (repository);
create index if not exists repositories_by_run on run_repositories (run_id, file);
"""
# A run of the original stands in its report and in its index; the report knows more.
_ONCE: Final = """(file != 'index.json' or not exists (
    select 1 from runs other where other.run_id = runs.run_id and other.file != 'index.json'))"""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class HistoryPosition:
    """Where a page of the history ended."""

    started_ms: int
    run_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryPage:
    """Runs, newest first; `next` is there when older ones follow."""

    runs: tuple[HistoryRun, ...]
    next: HistoryPosition | None


class History:
    """The runs in some report folders. Every call opens, asks and closes, so threads and processes may share it."""

    def __init__(self, folders: ReportFolders) -> None:
        self._folders = folders

    def page(self, *, repository: str = "", limit: int = 20, after: HistoryPosition | None = None) -> HistoryPage:
        """Runs that began before `after`, newest first; only those over `repository` when it is given."""
        found: dict[str, tuple[HistoryPosition, HistoryRun]] = {}
        for index in self._indexes():
            for row in _select(index, repository, limit + 1, after):
                position = HistoryPosition(started_ms=row["started_ms"], run_id=row["run_id"])
                found.setdefault(row["run_id"], (position, HistoryRun.model_validate_json(row["entry"])))
        ordered = sorted(found.values(), key=lambda pair: pair[0], reverse=True)
        more = len(ordered) > limit
        return HistoryPage(
            runs=tuple(run for _, run in ordered[:limit]), next=ordered[limit - 1][0] if more and limit else None
        )

    def latest(self, repository: str = "") -> StoredReport | None:
        """The report of the newest run, over `repository` when it is given."""
        rows: list[tuple[int, str, str, Path]] = []
        for folder in self._folders.candidates:
            with _open(folder) as index:
                rows += [
                    (row["started_ms"], row["run_id"], row["file"], folder)
                    for row in _select(index, repository, 20, None)
                    if row["file"] != _ORIGINAL_INDEX
                ]
        for _, _, name, folder in sorted(rows, reverse=True):
            with contextlib.suppress(OSError, UnsupportedFormatError):
                return read_stored(folder / name)
        return None

    def run_ids(self, prefix: str, limit: int = 100) -> tuple[str, ...]:
        """Names of runs that begin with `prefix`, newest first."""
        found: dict[str, int] = {}
        for index in self._indexes():
            rows = index.execute(
                "select run_id, started_ms from runs where substr(run_id, 1, ?) = ? and file != ? "
                "order by started_ms desc, run_id desc limit ?",
                (len(prefix), prefix, _ORIGINAL_INDEX, limit),
            )
            found |= {row["run_id"]: row["started_ms"] for row in rows}
        return tuple(sorted(found, key=lambda name: (found[name], name), reverse=True)[:limit])

    def repositories(self, prefix: str, limit: int = 100) -> tuple[str, ...]:
        """Repositories that runs were over and whose name begins with `prefix`, sorted."""
        found: dict[str, str] = {}
        for index in self._indexes():
            rows = index.execute(
                "select distinct repository, name from run_repositories where substr(repository, 1, ?) = ? limit ?",
                (len(prefix), prefix.lower(), limit),
            )
            for row in rows:
                found.setdefault(row["repository"], row["name"])
        return tuple(found[key] for key in sorted(found))[:limit]

    def _indexes(self) -> Iterator[sqlite3.Connection]:
        for folder in self._folders.candidates:
            with _open(folder) as index:
                yield index


def _select(index: sqlite3.Connection, repository: str, limit: int, after: HistoryPosition | None) -> list[sqlite3.Row]:
    conditions = [_ONCE]
    values = list[Any]()
    if repository:
        conditions.append(
            "exists (select 1 from run_repositories r where r.run_id = runs.run_id and r.file = runs.file "
            "and r.repository = ?)"
        )
        values.append(repository.lower())
    if after is not None:
        conditions.append("(started_ms, run_id) < (?, ?)")
        values += [after.started_ms, after.run_id]
    # Only fixed texts are put together here; what callers give is bound.
    query = f"select * from runs where {' and '.join(conditions)} order by started_ms desc, run_id desc limit ?"  # noqa: S608  # see above
    return index.execute(query, (*values, limit)).fetchall()


@contextlib.contextmanager
def _open(folder: Path) -> Iterator[sqlite3.Connection]:
    """The index of `folder`, in step with its files."""
    index = None
    if folder.is_dir():
        with contextlib.suppress(OSError):
            prepare_folder(folder)
        index = _opened(folder / INDEX_NAME, folder)
    if index is None:
        index = _connect(":memory:")
        _bring_up_to_date(index, folder)
    with closing(index):
        yield index


def _opened(path: Path, folder: Path) -> sqlite3.Connection | None:
    """The index on disk; `None` when it cannot be used. A broken one is thrown away, to be made anew next time."""
    index: sqlite3.Connection | None = None
    try:
        index = _connect(str(path))
        _bring_up_to_date(index, folder)
    except sqlite3.DatabaseError as error:
        log.warning("the history index cannot be used", extra={"error_kind": type(error).__name__})
        if index is not None:
            index.close()
        if not isinstance(error, sqlite3.OperationalError):
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    path.with_name(path.name + ending).unlink()
        return None
    return index


def _connect(name: str) -> sqlite3.Connection:
    index = sqlite3.connect(name, timeout=5, isolation_level=None)
    index.row_factory = sqlite3.Row
    try:
        index.execute("pragma journal_mode = wal")
        index.execute("pragma synchronous = normal")
        if index.execute("pragma user_version").fetchone()[0] != _VERSION:
            index.execute("begin immediate")
            for table in ("files", "runs", "run_repositories"):
                index.execute(f"drop table if exists {table}")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                index.execute(statement)
            index.execute(f"pragma user_version = {_VERSION}")
            index.execute("commit")
    except sqlite3.Error:
        index.close()
        raise
    return index


def _bring_up_to_date(index: sqlite3.Connection, folder: Path) -> None:
    there = _listing(folder)
    known = {row["name"]: (row["mtime_ns"], row["size"]) for row in index.execute("select * from files")}
    if there == known:
        return
    changed = [name for name, stamp in there.items() if known.get(name) != stamp]
    entries = {name: _entries(folder / name) for name in changed}
    index.execute("begin immediate")
    try:
        for name in (*known.keys() - there.keys(), *changed):
            index.execute("delete from runs where file = ?", (name,))
            index.execute("delete from run_repositories where file = ?", (name,))
            index.execute("delete from files where name = ?", (name,))
        for name in changed:
            index.execute("insert into files values (?, ?, ?)", (name, *there[name]))
            for run in entries[name]:
                _insert(index, name, run)
        index.execute("commit")
    except BaseException:
        index.execute("rollback")
        raise


def _insert(index: sqlite3.Connection, name: str, run: HistoryRun) -> None:
    started = parse_time(run.started_at)
    started_ms = int(started.timestamp() * 1000) if started else 0
    entry = run.model_dump_json(by_alias=True, exclude_none=True)
    index.execute("insert or replace into runs values (?, ?, ?, ?)", (run.run_id, name, started_ms, entry))
    index.executemany(
        "insert into run_repositories values (?, ?, ?, ?)",
        [(run.run_id, name, repository.lower(), repository) for repository in dict.fromkeys(run.repositories)],
    )


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_report = entry.name.startswith("dependfix-report-") and entry.name.endswith(".json")
            if is_report or entry.name == _ORIGINAL_INDEX:
                with contextlib.suppress(OSError):
                    state = entry.stat()
                    found[entry.name] = (state.st_mtime_ns, state.st_size)
    return found


def _entries(path: Path) -> list[HistoryRun]:
    """The runs that a file tells of; none when it is no report."""
    try:
        if path.name == _ORIGINAL_INDEX:
            return _original_runs(path)
        return [history_run(read_stored(path).result)]
    except (OSError, UnsupportedFormatError, ValueError):
        return []


def _original_runs(path: Path) -> list[HistoryRun]:
    if path.stat().st_size > MAX_REPORT_BYTES:
        return []
    document = json.loads(path.read_bytes())
    listed = document.get("runs") if isinstance(document, dict) else None
    runs = []
    for entry in listed if isinstance(listed, list) else []:
        with contextlib.suppress(ValidationError):
            runs.append(HistoryRun.model_validate(entry))
    return runs


def history_run(result: RunResult) -> HistoryRun:
    """The entry of one run."""
    begin, end = parse_time(result.started_at), parse_time(result.finished_at)
    return HistoryRun(
        run_id=result.run_id,
        started_at=result.started_at,
        duration_ms=_milliseconds(begin, end),
        repositories=tuple(stats.repository for stats in result.repositories) or result.config.repositories,
        summary=result.summary,
        repo_stats=result.repositories,
    )


def _milliseconds(begin: datetime | None, end: datetime | None) -> int:
    if begin is None or end is None:
        return 0
    return max(0, round((end - begin).total_seconds() * 1000))
