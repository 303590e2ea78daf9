"""Specs: list, show, create."""

from collections.abc import Sequence
from typing import Final

from adapters.sudocode.cli import check_id
from adapters.sudocode.entities import (
    DEFAULT_PRIORITY,
    after,
    check_title,
    create,
    creation_options,
    joined_tags,
    read_detail,
    within,
)
from adapters.sudocode.failures import SudocodeError, invalid
from adapters.sudocode.fit import fit
from adapters.sudocode.rows import by_urgency, listed, table
from adapters.sudocode.session import Payload, Sudocode, Work

DEFAULT_TYPE: Final = "feature"
LIST_HINT: Final = "Filter by priority, use a smaller limit, or call show_spec for one text."
_PREFIXES: Final = (".sudocode/specs/", "specs/")
DESIGN_HEADING: Final = "## Design"


async def list_specs(
    sudocode: Sudocode,
    *,
    status: str | None = None,
    kind: str | None = None,
    priority: int | None = None,
    limit: int = 50,
) -> Payload:
    """`specs` that match, without archived ones, and `meta`."""
    work = await sudocode.reading()
    options = {"limit": "-1"}
    for name, value in (("status", status), ("type", kind)):
        if value is not None:
            await work.cli.require_option(
                ("spec", "list"), name, value, alternative=f"This release keeps no spec {name}; call again without it."
            )
            options[name] = value
    if priority is not None:
        options["priority"] = str(priority)
    rows = table(await work.read("spec", "list", options=options))
    fitted = fit(
        {"specs": by_urgency(map(listed, rows))},
        budget_chars=sudocode.config.budget_chars,
        limit=limit,
        hint=LIST_HINT,
    )
    return work.payload(**fitted.lists, meta=fitted.meta)


async def show_spec(sudocode: Sudocode, spec_id: str) -> Payload:
    """`spec` with relationships, tags and the feedback it received."""
    check_id("spec_id", spec_id)
    work = await sudocode.reading()
    shown = await read_detail(work, "spec", spec_id)
    return work.payload(spec=within(sudocode, work, "spec", shown))


async def create_spec(
    sudocode: Sudocode,
    *,
    title: str,
    kind: str = DEFAULT_TYPE,
    priority: int = DEFAULT_PRIORITY,
    description: str = "",
    design: str = "",
    file_path: str = "",
    parent: str = "",
    tags: Sequence[str] = (),
) -> Payload:
    """`spec` as it is after the creation."""
    options = await creation_options(sudocode, "spec", kind=kind, default_kind=DEFAULT_TYPE, priority=priority)
    check_title(title)
    text = with_design(description, design)
    if text:
        options["description"] = text
    name = file_name(file_path)
    if name:
        options["file-path"] = name
    if parent:
        options["parent"] = check_id("parent", parent)
    if tags:
        options["tags"] = joined_tags(tags)
    async with sudocode.writing() as work:
        if name:
            await _refuse_taken(sudocode, work, name)
        created = await create(work, "spec", title, options)
    if design:
        work.warn(
            "design_appended",
            f"sudocode has no field for a design; it stands at the end of the text under {DESIGN_HEADING!r}",
            argument="design",
        )
    return work.payload(spec=await after(sudocode, work, "spec", created))


def with_design(description: str, design: str) -> str:
    """The text of a spec: the description, and the design under a heading of its own."""
    if not design:
        return description
    return f"{description.rstrip()}\n\n{DESIGN_HEADING}\n\n{design}".lstrip("\n")


def file_name(file_path: str) -> str:
    """The file's bare name, or empty when the program shall choose one.

    The program uses the last component only, below its own folder; a path with
    folders would end up somewhere else than it says.

    Raises:
        SudocodeError: `invalid_arguments`.
    """
    name = file_path
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    if not file_path:
        return ""
    if "/" in name or "\\" in name or not name.endswith(".md") or name.startswith(".") or not name.isprintable():
        raise invalid(
            "file_path",
            "file_path must be a file name ending in .md, with or without specs/ in front",
            hint="sudocode keeps every spec directly in .sudocode/specs.",
        )
    return name


async def _refuse_taken(sudocode: Sudocode, work: Work, name: str) -> None:
    """Refuse a file name that is in use: the program would overwrite the file without a word."""
    path = work.project.folder / "specs" / name
    snapshot = await sudocode.snapshot(work)
    owner = next((row for row in snapshot.specs if row.get("file_path") == f"specs/{name}"), None)
    if path.is_symlink() or path.exists() or owner is not None:
        raise SudocodeError(
            f"specs/{name} exists already",
            code="conflict",
            hint="Choose another file_path, or leave it out.",
            details={"argument": "file_path"} | ({"id": owner["id"]} if owner else {}),
        )
