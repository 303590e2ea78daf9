"""Is the database behind the committed JSONL files? Asked before every write, since a write replaces them."""

import errno
import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapters.sudocode.rows import Row, parse_time

# Not stored in the database by every release, or derived from other fields.
_IGNORED: Final = frozenset({"external_links", "parent_uuid", "from_uuid", "to_uuid"})
_SETS: Final = frozenset({"relationships", "tags", "feedback"})
# Times follow from other fields; imports of the oldest releases make them anew.
_TIMES: Final = frozenset({"created_at", "updated_at", "closed_at", "archived_at"})
_MARKERS: Final = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
MAX_NAMED: Final = 20
_ID_CHARS: Final = 60
MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""Of a committed file; the program itself reads it whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonlFile:
    """The rows of one exported file, and the lines that are none."""

    rows: dict[str, Row]
    """By uuid, or by id in releases that have none."""
    faults: tuple[dict[str, Any], ...]
    """`{file, line, reason}`; a program that skips such lines takes their rows for deleted."""


@dataclass(kw_only=True, slots=True)
class Comparison:
    """How the committed files and the database differ, by id."""

    faults: list[dict[str, Any]] = field(default_factory=list)
    only_in_files: list[str] = field(default_factory=list)
    newer_in_files: list[str] = field(default_factory=list)
    more_in_files: list[str] = field(default_factory=list)
    """Same time of change, but links, tags or feedback that the database lacks: an import passes over these."""
    only_in_database: list[str] = field(default_factory=list)
    newer_in_database: list[str] = field(default_factory=list)
    more_in_database: list[str] = field(default_factory=list)
    contradictory: list[str] = field(default_factory=list)
    """Same time of change and other values: nobody can tell which is right."""

    @property
    def files_ahead(self) -> list[str]:
        """Ids that a write would take back or lose."""
        return [*self.only_in_files, *self.newer_in_files, *self.more_in_files]

    @property
    def database_ahead(self) -> list[str]:
        """Ids that an import would take back or lose."""
        return [*self.only_in_database, *self.newer_in_database, *self.more_in_database]

    @property
    def in_step(self) -> bool:
        """Whether neither side has anything that the other lacks."""
        return not (self.faults or self.files_ahead or self.database_ahead or self.contradictory)

    def facts(self) -> dict[str, Any]:
        """The rows at risk, at most 20 of each kind, for an error or a warning."""
        out: dict[str, Any] = {}
        for name in (
            "faults",
            "only_in_files",
            "newer_in_files",
            "more_in_files",
            "only_in_database",
            "newer_in_database",
            "more_in_database",
            "contradictory",
        ):
            found = getattr(self, name)
            if found:
                out[name] = [shown_id(entry) if isinstance(entry, str) else entry for entry in found[:MAX_NAMED]]
                if len(found) > MAX_NAMED:
                    out[f"{name}_total"] = len(found)
        return out


def read_jsonl(path: Path) -> JsonlFile:
    """The rows of a file that may be missing or empty."""
    rows: dict[str, Row] = {}
    faults: list[dict[str, Any]] = []
    try:
        content = regular_bytes(path)
    except FileNotFoundError:
        return JsonlFile(rows={}, faults=())
    except OSError as error:
        return JsonlFile(rows={}, faults=({"file": path.name, "line": 0, "reason": error.strerror or "unreadable"},))
    # Only newlines end a row: `splitlines` would also cut at U+2028 inside a text.
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        reason = ""
        try:
            row: object = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            reason = "not UTF-8"
        except RecursionError:
            reason = "nested too deeply"
        except ValueError:
            reason = "conflict marker" if line.startswith(_MARKERS) else "no JSON"
        else:
            key = _key(row)
            if not isinstance(row, dict) or not key:
                reason = "no row"
            elif _leads_out(row.get("file_path")):
                reason = "file_path leads out of the project"
            elif key in rows and rows[key] != row:
                reason = f"second row for {shown_id(str(rows[key].get('id', key)))}"
            else:
                rows[key] = row
        if reason:
            faults.append({"file": path.name, "line": number, "reason": reason})
    return JsonlFile(rows=rows, faults=tuple(faults))


def shown_id(name: str) -> str:
    """An id for a message: a file may hold one of any length."""
    return name if len(name) <= _ID_CHARS else f"{name[: _ID_CHARS - 1]}…"


def _leads_out(file_path: object) -> bool:
    """Whether the program would write or delete a spec's file somewhere else than in the project."""
    if not isinstance(file_path, str):
        return False
    parts = re.split(r"[/\\]", file_path)
    return ".." in parts or file_path.startswith(("/", "\\")) or ":" in parts[0]


def regular_bytes(path: Path) -> bytes:
    """What a file holds. A checkout can have a link of that name to a device, which would never end.

    Raises:
        OSError: It is no regular file, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large", str(path))
        return file.read()


def _key(row: object) -> str:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return ""
    return str(row.get("uuid") or row["id"])


def compare(files: Iterable[tuple[JsonlFile, JsonlFile]]) -> Comparison:
    """Compare (committed, exported) pairs of the same kind of rows."""
    pairs = list(files)
    out = Comparison(faults=[fault for committed, _ in pairs for fault in committed.faults])
    known = {row["id"] for committed, _ in pairs for row in committed.rows.values()}
    for committed, exported in pairs:
        for key, row in committed.rows.items():
            if key not in exported.rows:
                out.only_in_files.append(row["id"])
            else:
                _compare_rows(row, exported.rows[key], known, out)
        out.only_in_database += [row["id"] for key, row in exported.rows.items() if key not in committed.rows]
    return out


def _compare_rows(theirs: Row, ours: Row, known: set[str], out: Comparison) -> None:
    """Compare one row of the files with the database's."""
    name = theirs["id"]
    file_time, database_time = parse_time(theirs.get("updated_at")), parse_time(ours.get("updated_at"))
    known = known | {name}
    if file_time and database_time and file_time != database_time:
        # Tags are replaced as a whole, so the newer row is right about them;
        # links and feedback only ever come in addition.
        file_more = _surplus(theirs, ours, known, tags=False)
        database_more = _surplus(ours, theirs, known, tags=False)
        newer = file_time > database_time
        if not (file_more or database_more) and _same(theirs, ours):
            return
        (out.newer_in_files if newer else out.newer_in_database).append(name)
        # The older side may still hold links or feedback that the newer one lacks.
        if newer and database_more:
            out.more_in_database.append(name)
        elif not newer and file_more:
            out.more_in_files.append(name)
        return
    if _values(theirs) != _values(ours):
        out.contradictory.append(name)
    if _surplus(theirs, ours, known):
        out.more_in_files.append(name)
    if _surplus(ours, theirs, known):
        out.more_in_database.append(name)


def _same(one: Row, other: Row) -> bool:
    """Whether two rows differ in nothing but the time of change, which the oldest imports do not keep."""
    return _values(one) == _values(other) and set(one.get("tags") or ()) == set(other.get("tags") or ())


def _values(row: Row) -> dict[str, Any]:
    """The plain fields, with every form of "nothing" left equal."""
    left_out = _SETS | _IGNORED | _TIMES
    return {key: value for key, value in row.items() if key not in left_out and value not in (None, "", 0, [], {})}


def _surplus(one: Row, other: Row, known: set[str], *, tags: bool = True) -> bool:
    """Whether `one` has links, tags or feedback that `other` lacks, or newer feedback.

    What points at a row that is nowhere is left out: no database can hold it.
    """
    links = {_link(link) for link in one.get("relationships") or () if link.get("to") in known}
    if links - {_link(link) for link in other.get("relationships") or ()}:
        return True
    if tags and set(one.get("tags") or ()) - set(other.get("tags") or ()):
        return True
    theirs = {entry.get("id"): entry for entry in other.get("feedback") or ()}
    for entry in one.get("feedback") or ():
        if (entry.get("to_id") or entry.get("spec_id")) not in known:
            continue
        match = theirs.get(entry.get("id"))
        if match is None:
            return True
        mine_time, their_time = parse_time(entry.get("updated_at")), parse_time(match.get("updated_at"))
        if mine_time and their_time and mine_time > their_time:
            return True
    return False


def _link(link: Row) -> tuple[str, str, str]:
    return (str(link.get("from")), str(link.get("to")), str(link.get("type")))


def with_other_times(path: Path, names: set[str]) -> str:
    """The file's text, in which the rows `names` have the same time of change in another form.

    An import looks at a row only when the text of its time differs. Importing
    this text and then the file itself brings such rows in without a trace.
    """
    lines = []
    for line in regular_bytes(path).decode("utf-8").split("\n"):
        if not line.strip():
            continue
        row = json.loads(line)
        if row.get("id") in names:
            moment = parse_time(row.get("updated_at"))
            row["updated_at"] = (
                moment.isoformat(timespec="microseconds") if moment else "1970-01-01T00:00:00.000000+00:00"
            )
            line = json.dumps(row)  # noqa: PLW2901  # the row as it goes on
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)
