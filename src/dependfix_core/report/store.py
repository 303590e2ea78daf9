"""Where reports lie: the folder, its files, and how they are written and found again.

A report is written whole or not at all: each file appears under its name by a
rename, and the JSON file, which makes the report exist, comes last.
"""

import contextlib
import errno
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dependfix_core.errors import DependfixError, UnsupportedFormatError
from dependfix_core.model.alert import parse_time
from dependfix_core.process import redact
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.html import render_html
from dependfix_core.report.markdown import render_markdown
from dependfix_core.report.run_id import file_stem, is_run_id
from dependfix_core.report.sarif import render_sarif
from dependfix_core.report.wire import ReportFile, RunResult, read_report, render_json, to_wire

log = logging.getLogger(__name__)

FILE_PATTERN: Final = "dependfix-report-*.json"
MAX_REPORT_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not read as a report."""
_STALE_S: Final = 3600
_OURS: Final = re.compile(r"\.?dependfix-.*|index\.json|plans|\d{4}-\d{2}")
"""What stands in a folder that is for reports alone; the last two are the original's."""
_RENDERERS: Final = {"md": render_markdown, "html": render_html, "sarif": render_sarif, "json": render_json}
"""Endings in the order of writing."""


class ReportNotWrittenError(DependfixError):
    """No folder takes the report; the run itself is not affected."""

    default_code = "internal_error"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredReport:
    """A report that was found, and the file it was read from."""

    result: RunResult
    path: Path


def write_report(
    folders: ReportFolders,
    result: RunResult,
    parts: Mapping[str, RunResult] | None = None,
    *,
    secrets: Sequence[str] = (),
) -> RunResult:
    """Write `result` in all forms; the same result comes back, redacted, naming its files and its resource.

    `parts` are the results of single repositories of a run over several; they
    lie in a folder of the run's name.

    Raises:
        ReportNotWrittenError: No folder takes it; nothing of it was left behind.
    """
    result = without_secrets(result, secrets)
    clean_parts = {name: without_secrets(part, secrets) for name, part in (parts or {}).items()}
    reasons = []
    for folder in folders.candidates:
        try:
            prepare_folder(folder)
            return _write_all(folder, result, clean_parts)
        except OSError as error:
            log.warning("a report folder cannot be written", extra={"error_kind": type(error).__name__})
            reasons.append(f"{folder}: {error.strerror or type(error).__name__}")
    raise ReportNotWrittenError(
        "the report could not be written: " + ("; ".join(reasons) or "there is no folder for it"),
        hint="Name a folder that can be written with --report-dir.",
    )


def without_secrets(result: RunResult, secrets: Sequence[str] = ()) -> RunResult:
    """`result` with credentials taken out of every text, whatever brought them there."""
    if all(redact(text, *secrets) == text for text in _texts(result)):
        return result

    def walk(node: Any) -> Any:
        if isinstance(node, str):
            return redact(node, *secrets)
        if isinstance(node, dict):
            return {key: walk(child) for key, child in node.items()}
        return [walk(child) for child in node] if isinstance(node, list) else node

    return RunResult.model_validate(walk(to_wire(result)))


_HOLDS_NO_TEXT: Final = frozenset({type(None), bool, int, float})


def _texts(result: RunResult) -> set[str]:
    """Each different text once; of a large report few are different."""
    found: set[str] = set()
    waiting: list[Any] = [result]
    while waiting:
        node = waiting.pop()
        kind = type(node)  # asking pydantic's classes whether they have an instance takes many times as long
        if kind is str:
            found.add(node)
        elif kind in _HOLDS_NO_TEXT:
            continue
        elif kind is tuple or kind is list:
            waiting.extend(node)
        elif kind is dict:
            waiting.extend(node.values())
        elif isinstance(node, str):
            found.add(str(node))
        else:
            waiting.extend(vars(node).values())
            waiting.append(node.model_extra)
    return found


def prepare_folder(folder: Path) -> None:
    """Make sure that `folder` is there and does not dirty a checkout, and clear away what a crash left.

    `.gitignore` is written only into a folder that holds nothing but reports.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = os.listdir(folder)  # noqa: PTH208  # names alone, quickly
    for name in names:
        if name.startswith(".dependfix-") and name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - (folder / name).stat().st_mtime > _STALE_S:
                    (folder / name).unlink()
    if all(_OURS.fullmatch(name) for name in names):
        with contextlib.suppress(FileExistsError):
            write_new(folder / ".gitignore", b"*\n")


def _write_all(folder: Path, result: RunResult, parts: Mapping[str, RunResult]) -> RunResult:
    started = parse_time(result.started_at)
    assert started is not None
    stem = file_stem(result.run_id, started)
    written: list[Path] = []
    try:
        for repository, part in parts.items():
            place = folder / stem / "".join(char if char.isalnum() or char in "_.-" else "-" for char in repository)
            place.parent.mkdir(exist_ok=True)
            _write_forms(place.parent, place.name, part, written)
        return _write_forms(folder, stem, result, written)
    except BaseException:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise


def _write_forms(folder: Path, stem: str, result: RunResult, written: list[Path]) -> RunResult:
    paths = {ending: (folder / f"{stem}.{ending}").absolute() for ending in _RENDERERS}
    files = tuple(ReportFile(format=ending, path=str(paths[ending])) for ending in ("json", "md", "html", "sarif"))
    named = result.with_report(files, f"dependfix://reports/{result.run_id}")
    for ending, render in _RENDERERS.items():
        write_new(paths[ending], render(named).encode("utf-8", "replace"))
        written.append(paths[ending])
    return named


def write_new(path: Path, content: bytes) -> None:
    """Let `path` appear with all of `content`.

    Raises:
        FileExistsError: It is there already; it is left as it is.
        OSError: It cannot be written; nothing is left behind.
    """
    passing = path.with_name(f".dependfix-{secrets.token_hex(8)}.tmp")
    try:
        with passing.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _publish(passing, path)
    finally:
        with contextlib.suppress(OSError):
            passing.unlink()


def _publish(passing: Path, path: Path) -> None:
    if sys.platform != "win32":
        try:
            os.link(passing, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
        else:
            return
    # No hard links here: run ids are random, so the check and the rename need not be one step.
    if path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    passing.replace(path)


def report_files(folders: ReportFolders) -> Iterator[Path]:
    """JSON files that may be reports, in no particular order."""
    for folder in folders.candidates:
        with contextlib.suppress(OSError):
            yield from folder.glob(FILE_PATTERN)


def read_stored(path: Path) -> StoredReport:
    """The report in one file.

    Raises:
        UnsupportedFormatError: It is no report, or too large to be one.
        OSError: It cannot be read.
    """
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise UnsupportedFormatError("too large for a report", path=path.name)
    return StoredReport(result=read_report(path.read_bytes(), path=path.name), path=path)


def find_by_run_id(folders: ReportFolders, run_id: str) -> StoredReport | None:
    """The report of one run, of ours or of the original dependfix."""
    if not is_run_id(run_id):
        return None
    # Our names hold the whole id, those of the original only its end.
    endings = {f"-{run_id}.json", f"-{run_id.rpartition('-')[2][:8]}.json"}
    for path in report_files(folders):
        if path.name.endswith(tuple(endings)):
            with contextlib.suppress(OSError, UnsupportedFormatError):
                found = read_stored(path)
                if found.result.run_id == run_id:
                    return found
    return None
