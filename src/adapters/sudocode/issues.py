"""Issues: list, show, create, update, close."""

from collections.abc import Sequence
from typing import Any, Final

from adapters.sudocode.cli import check_id
from adapters.sudocode.entities import (
    DEFAULT_PRIORITY,
    after,
    brief,
    check_title,
    create,
    creation_options,
    joined_tags,
    keep_hand_edit,
    read_detail,
    within,
)
from adapters.sudocode.failures import SudocodeError, invalid
from adapters.sudocode.fit import fit
from adapters.sudocode.graph import detail_of
from adapters.sudocode.rows import Row, by_urgency, detail, entity, listed, record, table
from adapters.sudocode.session import Payload, Sudocode, Work

STATUSES: Final = ("open", "in_progress", "blocked", "needs_review", "closed")
DEFAULT_TYPE: Final = "task"
MAX_CHILDREN: Final = 50
MAX_IDS_CHARS: Final = 8_000
"""Of the ids of one call; the results repeat them."""
# Of the errors of one call, together.
_ERROR_CHARS: Final = 12_000
# Up to so many the program is asked for each; above, one export has them all.
_SHOWN_ONE_BY_ONE: Final = 3
DEFAULT_REASON: Final = "Completed"
LIST_HINT: Final = "Filter by status, priority or assignee, use a smaller limit, or call show_issue for one text."
TYPES_ALTERNATIVE: Final = "This release keeps no issue types; call again without type and use tags instead."


async def list_issues(
    sudocode: Sudocode,
    *,
    status: str | None = None,
    kind: str | None = None,
    priority: int | None = None,
    assignee: str = "",
    limit: int = 50,
) -> Payload:
    """`issues` that match, without archived ones, and `meta`."""
    work = await sudocode.reading()
    options = {"limit": "-1"}
    if status is not None:
        options["status"] = status
    if kind is not None:
        await work.cli.require_option(("issue", "list"), "type", kind, alternative=TYPES_ALTERNATIVE)
        options["type"] = kind
    if priority is not None:
        options["priority"] = str(priority)
    if assignee:
        options["assignee"] = assignee
    rows = table(await work.read("issue", "list", options=options))
    fitted = fit(
        {"issues": by_urgency(map(listed, rows))},
        budget_chars=sudocode.config.budget_chars,
        limit=limit,
        hint=LIST_HINT,
    )
    return work.payload(**fitted.lists, meta=fitted.meta)


async def show_issue(sudocode: Sudocode, issue_id: str) -> Payload:
    """`issue` with relationships, tags, the feedback it gave, and its children."""
    check_id("issue_id", issue_id)
    work = await sudocode.reading()
    shown = await read_detail(work, "issue", issue_id)
    rows = table(await work.read("issue", "list", options={"limit": "-1"}))
    children = [brief(row) for row in by_urgency(rows) if row.get("parent_id") == issue_id]
    shown["children"] = children[:MAX_CHILDREN]
    if len(children) > MAX_CHILDREN:
        shown["children_total"] = len(children)
    return work.payload(issue=within(sudocode, work, "issue", shown))


async def create_issue(
    sudocode: Sudocode,
    *,
    title: str,
    description: str = "",
    kind: str = DEFAULT_TYPE,
    priority: int = DEFAULT_PRIORITY,
    assignee: str = "",
    parent: str = "",
    tags: Sequence[str] = (),
    estimate: int | None = None,
) -> Payload:
    """`issue` as it is after the creation."""
    options = await creation_options(sudocode, "issue", kind=kind, default_kind=DEFAULT_TYPE, priority=priority)
    check_title(title)
    if description:
        options["description"] = description
    if assignee:
        options["assignee"] = assignee
    if parent:
        options["parent"] = check_id("parent", parent)
    if tags:
        options["tags"] = joined_tags(tags)
    if estimate is not None:
        await sudocode.cli.require_option(
            ("issue", "create"),
            "estimate",
            estimate,
            alternative="This release keeps no estimates; call again without estimate and say it in the description.",
        )
        options["estimate"] = str(estimate)
    async with sudocode.writing() as work:
        created = await create(work, "issue", title, options)
    return work.payload(issue=await after(sudocode, work, "issue", created))


async def update_issue(
    sudocode: Sudocode,
    *,
    issue_id: str,
    status: str | None = None,
    priority: int | None = None,
    assignee: str | None = None,
    kind: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> Payload:
    """`issue` as it is after the change; a field that is `None` stays."""
    check_id("issue_id", issue_id)
    emptied = [
        name for name, value in (("assignee", assignee), ("title", title), ("description", description)) if value == ""
    ]
    wanted: dict[str, Any] = {
        "status": status,
        "priority": priority,
        "assignee": assignee or None,
        "type": kind,
        "title": title or None,
        "description": description or None,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if not wanted:
        if emptied:
            raise invalid(emptied[0], f"sudocode cannot empty {', '.join(emptied)}", hint="Give another text.")
        raise invalid("issue_id", "there is nothing to change", hint="Give at least one field beside issue_id.")
    if "title" in wanted:
        check_title(wanted["title"])
    if kind is not None:
        await sudocode.cli.require_option(("issue", "update"), "type", kind, alternative=TYPES_ALTERNATIVE)
    async with sudocode.writing() as work:
        keep_hand_edit(work, "issue", issue_id)
        options = {name: str(value) for name, value in wanted.items()}
        answer = await work.write("issue", "update", options=options, positionals=[issue_id], repeatable=True)
    row = entity(record(answer))
    for name, value in wanted.items():
        kept = row.get("content" if name == "description" else name)
        if kept != value:
            work.warn("not_stored", f"sudocode did not keep {name} as it was given", argument=name)
    for name in emptied:
        work.warn("not_stored", f"sudocode cannot empty {name}; it stays as it was", argument=name)
    return work.payload(issue=await after(sudocode, work, "issue", row))


async def close_issue(sudocode: Sudocode, *, issue_ids: Sequence[str], reason: str = DEFAULT_REASON) -> Payload:
    """`results`, one for each id in the order given: `{id, success, error?, issue?}`."""
    ids = list(dict.fromkeys(check_id("issue_ids", issue_id) for issue_id in issue_ids))
    if not ids:
        raise invalid("issue_ids", "there is no id to close")
    if sum(map(len, ids)) > MAX_IDS_CHARS:
        raise invalid("issue_ids", f"the ids have more than {MAX_IDS_CHARS} characters", hint="Close fewer at a time.")
    options = {} if reason == DEFAULT_REASON or not reason else {"reason": reason}
    async with sudocode.writing() as work:
        for issue_id in ids:
            keep_hand_edit(work, "issue", issue_id)
        answer = table(await work.write("issue", "close", options=options, positionals=ids, repeatable=True))
    if options:
        work.warn("not_stored", "sudocode takes a reason for closing but does not keep it", argument="reason")
    said = {row.get("id"): row for row in answer}
    closed = {
        row["id"]: row
        for row in await _rows_of(
            sudocode, work, [issue_id for issue_id in ids if said.get(issue_id, {}).get("success")]
        )
    }
    fitted = fit({"issues": list(closed.values())}, budget_chars=sudocode.config.budget_chars, hint=LIST_HINT)
    shaped = {row["id"]: row for row in fitted.lists["issues"]}
    results = []
    for issue_id in ids:
        row = said.get(issue_id, {"success": False, "error": "sudocode said nothing about it"})
        result: Row = {"id": issue_id, "success": bool(row.get("success"))}
        if row.get("error"):
            result["error"] = str(row["error"])[: max(_ERROR_CHARS // len(ids), 60)]
        if issue_id in shaped:
            result["issue"] = shaped[issue_id]
        results.append(result)
    reduced = fitted.meta["detail"] != "full" or fitted.meta["omitted"]
    return work.payload(results=results, meta=fitted.meta if reduced else None)


async def _rows_of(sudocode: Sudocode, work: Work, ids: list[str]) -> list[Row]:
    """Issues as they are now; those that cannot be had are left out with a warning."""
    try:
        if len(ids) <= _SHOWN_ONE_BY_ONE:
            return [await read_detail(work, "issue", issue_id) for issue_id in ids]
        snapshot = await sudocode.snapshot(work)
        there = snapshot.rows()
        return [detail(detail_of(snapshot, ("issue", issue_id))) for issue_id in ids if ("issue", issue_id) in there]
    except SudocodeError as error:
        work.warn("not_shown", f"the change is made, but the issues could not be read again: {error.message}")
        return []
