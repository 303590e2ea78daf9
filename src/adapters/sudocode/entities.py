"""What issues and specs share: how they are created, read again after a change, and kept within bounds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.sudocode.failures import ExportIncompleteError, SudocodeError, invalid
from adapters.sudocode.fit import fit_detail, size
from adapters.sudocode.graph import Kind
from adapters.sudocode.markdown import keep_edit
from adapters.sudocode.rows import Row, detail, parse_time, record, table
from adapters.sudocode.session import Sudocode, Work

DEFAULT_PRIORITY: Final = 2
MAX_TITLE_CHARS: Final = 500


async def creation_options(
    sudocode: Sudocode, noun: Kind, *, kind: str, default_kind: str, priority: int
) -> dict[str, str]:
    """Options of a create for type and priority; a value equal to its default is not sent."""
    options: dict[str, str] = {}
    if kind != default_kind:
        await sudocode.cli.require_option(
            (noun, "create"),
            "type",
            kind,
            alternative=f"This release keeps no {noun} types; call again without type and use tags instead.",
        )
        options["type"] = kind
    if priority != DEFAULT_PRIORITY:
        options["priority"] = str(priority)
    return options


def check_title(title: str) -> None:
    """Refuse a title that the program would refuse, or take although nobody can mean it."""
    if not title.strip():
        raise invalid("title", "the title is empty")
    if len(title) > MAX_TITLE_CHARS:
        raise invalid("title", f"the title has {len(title)} characters; at most {MAX_TITLE_CHARS} are allowed")


def joined_tags(tags: Sequence[str]) -> str:
    """Tags in the form of the program, which splits at commas and trims.

    Raises:
        SudocodeError: `invalid_arguments`, for a tag that would not arrive as it is.
    """
    for tag in tags:
        if not tag.strip() or tag != tag.strip() or "," in tag:
            raise invalid("tags", "a tag is not empty, has no comma, and no blank at either end")
    return ",".join(dict.fromkeys(tags))


async def create(work: Work, noun: Kind, title: str, options: dict[str, str]) -> Row:
    """Create an entity, once; when its fate is unknown, look for it instead of repeating.

    Raises:
        SudocodeError: `outcome_unknown`, when it cannot be told whether the entity exists.
    """
    started = datetime.now(tz=UTC) - timedelta(seconds=2)
    try:
        return record(await work.write(noun, "create", options=options, positionals=[title], repeatable=False))
    except SudocodeError as error:
        if error.code not in ("outcome_unknown", "bad_output"):
            raise
        found = await _created_since(work, noun, title, started)
        if found is None:
            raise SudocodeError(
                f"it is not known whether the {noun} was created: {error.message}",
                code="outcome_unknown",
                hint=f"Look for the title with list_{noun}s before you create it again.",
                details=error.details,
            ) from error
        if isinstance(error, ExportIncompleteError):
            await complete_export(work)
        else:
            work.warn("recovered", f"sudocode did not answer properly, but the {noun} was created")
        return found


async def _created_since(work: Work, noun: Kind, title: str, started: datetime) -> Row | None:
    try:
        rows = table(await work.read(noun, "list", options={"limit": "-1"}))
    except SudocodeError:
        return None
    found = [row for row in rows if row.get("title") == title and _at_or_after(row.get("created_at"), started)]
    return found[0] if len(found) == 1 else None


def _at_or_after(text: object, moment: datetime) -> bool:
    parsed = parse_time(text)
    return parsed is not None and parsed >= moment


async def complete_export(work: Work) -> None:
    """Write the JSONL files again after another writer was in the way; the database was compared before."""
    try:
        await work.write("export", options={"output": str(work.project.folder)}, repeatable=True)
    except SudocodeError as error:
        work.warn("export_incomplete", f"the change is in the database, not yet in the JSONL files: {error.message}")
    else:
        work.warn("export_repeated", "another writer was in the way; the JSONL files were written again")


def keep_hand_edit(work: Work, noun: Kind, entity_id: str) -> None:
    """Keep a hand-edited markdown file that the coming write overwrites."""
    kept = keep_edit(work.project, noun, entity_id)
    if kept is not None:
        path, copy = kept
        work.warn(
            "markdown_kept",
            f"{path} had been edited by hand and was not synchronised; a write may replace it from the database, "
            f"so the edit is kept as {copy}",
            id=entity_id,
            file=path,
            copy=copy,
        )


async def read_detail(work: Work, noun: Kind, entity_id: str) -> Row:
    """One entity with relationships, tags and feedback."""
    return detail(record(await work.read(noun, "show", positionals=[entity_id])))


async def after(sudocode: Sudocode, work: Work, noun: Kind, row: Row) -> Row:
    """The whole entity after a change; what the change itself said when it cannot be read again."""
    try:
        shown = await read_detail(work, noun, str(row.get("id")))
    except SudocodeError as error:
        work.warn("not_shown", f"the change is made, but the {noun} could not be read again: {error.message}")
        return row
    return within(sudocode, work, noun, shown)


def within(sudocode: Sudocode, work: Work, noun: Kind, row: Row) -> Row:
    """A detail within the ceiling, naming the file that has all of it."""
    if size(row) <= sudocode.config.detail_chars:
        return row
    file = row.get("file_path", "") if noun == "spec" else f"issues/{row.get('id')}_*.md"
    return fit_detail(row, max_chars=sudocode.config.detail_chars, file=f"{work.project.folder.name}/{file}")


def brief(row: Row) -> Row:
    """What names an entity beside another one."""
    return {key: row[key] for key in ("id", "title", "status", "priority") if row.get(key) is not None}
