"""The markdown files beside the database: found by entity, and kept when a write would overwrite an edit."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from adapters.sudocode.behind import regular_bytes
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.graph import Kind
from adapters.sudocode.locate import Project
from adapters.sudocode.rows import Row, parse_time

_FRONTMATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^(status|priority):[ \t]*['\"]?([\w-]+)['\"]?[ \t]*$", re.MULTILINE)
# How the names of the program's files begin, right in the project's folder.
_WRITTEN: Final = ("issues", "specs", "cache.db", "sudograph.db", "config", "meta.json", "telemetry", ".gitignore")
# The database's times are whole seconds, and a file is written a moment after its row.
_MARGIN: Final = timedelta(seconds=2)


def spec_file(project: Project, row: Row) -> Path | None:
    """The file of a spec, if there is one."""
    named = row.get("file_path")
    path = project.folder / named if isinstance(named, str) and named else None
    return path if path is not None and _of_the_project(project, path) else None


def issue_files(project: Project) -> dict[str, Path]:
    """Issue id → its file, whose name is the id alone or followed by the title."""
    found = sorted((project.folder / "issues").glob("*.md"))
    return {path.stem.split("_", 1)[0]: path for path in found if _of_the_project(project, path)}


def refuse_links(folder: Path) -> None:
    """Refuse a project in which a file that the program writes is a link to somewhere outside.

    Links are committed, so anybody can have made them; the program follows
    them, and would replace whatever they lead to.

    Raises:
        SudocodeError: `conflict`.
    """
    for path in _links(folder):
        if not _is_inside(folder, path):
            shown = path.relative_to(folder.parent)
            raise SudocodeError(
                f"nothing was written: {shown} is a link that leads out of the project, "
                "and sudocode would replace what is there",
                code="conflict",
                hint="Look at the link, then remove it or put a file in its place.",
                details={"file": str(shown)},
            )


def _links(folder: Path) -> Iterator[Path]:
    for part in (folder, folder / "issues", folder / "specs"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(part) as entries:
            for entry in entries:
                if entry.is_symlink() and (part != folder or entry.name.startswith(_WRITTEN)):
                    yield Path(entry.path)


def _is_inside(folder: Path, path: Path) -> bool:
    """Whether a path ends, behind every link, in the `.sudocode` folder or beside it, but not among git's own files."""
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(folder.parent))
    if real.is_relative_to(os.path.realpath(folder)):
        return True
    return real.is_relative_to(root) and not real.is_relative_to(root / ".git")


def _of_the_project(project: Project, path: Path) -> bool:
    # Rows and links are committed, so anybody can have written them.
    return path.is_file() and _is_inside(project.folder, path)


def edited_by_hand(path: Path, row: Row) -> bool:
    """Whether a file was changed after its row and says something else."""
    changed_at = parse_time(row.get("updated_at"))
    modified_at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    if changed_at is None or modified_at <= changed_at + _MARGIN:
        return False
    text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    match = _FRONTMATTER.match(text)
    body = text[match.end() :] if match else text
    content = str(row.get("content") or row.get("description") or "").replace("\r\n", "\n")
    if body.strip() != content.strip():
        return True
    fields = dict(_FIELD.findall(match[1])) if match else {}
    return any(str(row.get(name)) != value for name, value in fields.items() if row.get(name) is not None)


def keep_edit(project: Project, kind: Kind, entity_id: str) -> tuple[str, str] | None:
    """Copy an entity's file aside when the coming write would overwrite a hand edit.

    Returns:
        The file and its copy, relative to the project's root; `None` when
        there is nothing to keep.
    """
    row = _committed_row(project, kind, entity_id)
    if row is None:
        return None
    path = spec_file(project, row) if kind == "spec" else issue_files(project).get(entity_id)
    if path is None or not edited_by_hand(path, row):
        return None
    number = 1
    while (copy := path.with_name(f"{path.name}.edit-{number}")).exists():
        number += 1
    shutil.copy2(path, copy)
    return str(path.relative_to(project.root)), str(copy.relative_to(project.root))


def _committed_row(project: Project, kind: Kind, entity_id: str) -> Row | None:
    """The row as the JSONL file has it, which a write has just been checked against."""
    path = project.jsonl[0 if kind == "issue" else 1]
    needle = f'"id":{json.dumps(entity_id)}'
    try:
        text = regular_bytes(path).decode("utf-8", "replace")
    except OSError:
        return None
    for line in text.split("\n"):
        if needle in line:
            row = json.loads(line)
            if row.get("id") == entity_id:
                return dict(row)
    return None
