"""Feedback of issues on specs: add, list, show, change its state, and find texts that moved."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.sudocode.anchors import check_anchor
from adapters.sudocode.cli import check_id
from adapters.sudocode.entities import read_detail
from adapters.sudocode.failures import ExportIncompleteError, SudocodeError, invalid, unsupported
from adapters.sudocode.fit import fit, fit_detail
from adapters.sudocode.rows import Row, feedback, record, table
from adapters.sudocode.session import Payload, Sudocode, Work

TYPES: Final = ("comment", "suggestion", "request")
STATUSES: Final = ("open", "acknowledged", "resolved", "wont_fix")
DEFAULT_TYPE: Final = "comment"
LIST_HINT: Final = "Filter by issue, spec, type or status, use a smaller limit, or call show_feedback for one entry."


async def add_feedback(
    sudocode: Sudocode,
    *,
    issue_id: str,
    spec_id: str,
    content: str,
    kind: str = DEFAULT_TYPE,
    line: int | None = None,
    text: str = "",
    agent: str = "",
) -> Payload:
    """`feedback` as it is stored."""
    check_id("issue_id", issue_id)
    check_id("spec_id", spec_id)
    if not content.strip():
        raise invalid("content", "the feedback needs a content")
    if (line is None) == (not text):
        raise invalid("line", "give exactly one of line and text", hint="It is what the feedback is anchored to.")
    if "\n" in text or "\r" in text:
        raise invalid("text", "the text to anchor to lies within one line")
    options = {"content": content}
    if kind != DEFAULT_TYPE:
        options["type"] = kind
    options |= {"line": str(line)} if line is not None else {"text": text}
    author = agent or sudocode.config.actor
    if author:
        options["agent"] = author
    async with sudocode.writing() as work:
        # The program would take an issue as target, and in the oldest releases not notice a wrong order.
        spec = await read_detail(work, "spec", spec_id)
        _check_place(str(spec["content"]), line, text)
        ids = [spec_id, issue_id] if work.capabilities.target_first else [issue_id, spec_id]
        try:
            answer = record(await work.write("feedback", "add", options=options, positionals=ids, repeatable=False))
        except ExportIncompleteError as error:
            answer = await _added(work, issue_id, content, error)
    stored = feedback(answer)
    if stored["type"] != kind:
        work.warn("not_stored", f"this release stored the type {stored['type']}", argument="type")
    return work.payload(feedback=_within(sudocode, stored))


def _check_place(content: str, line: int | None, text: str) -> None:
    lines = content.split("\n")
    if line is not None and not 1 <= line <= len(lines):
        raise invalid("line", f"line {line} is outside the spec, which has lines 1 to {len(lines)}")
    if text and not any(text in one for one in lines):
        raise invalid(
            "text", "the text is in no line of the spec", hint="Take it from show_spec, or pass a line number."
        )


async def _added(work: Work, issue_id: str, content: str, error: ExportIncompleteError) -> Row:
    """The entry that was stored although the export after it failed; it is looked for, not added again."""
    rows = [row for row in await _all(work) if row.get("content") == content and row.get("issue_id") == issue_id]
    if not rows:
        raise error
    work.warn(
        "export_incomplete", "the feedback is in the database, not yet in the JSONL files; the next write adds it"
    )
    return max(rows, key=lambda row: str(row.get("created_at", "")))


async def list_feedback(
    sudocode: Sudocode,
    *,
    issue_id: str = "",
    spec_id: str = "",
    kind: str | None = None,
    status: str | None = None,
    limit: int = 50,
) -> Payload:
    """`feedback` that matches, newest first, and `meta`. The filters are ours: releases ignore some of theirs."""
    work = await sudocode.reading()
    if status not in (None, "open") and not work.capabilities.feedback_states:
        raise unsupported(
            "status",
            status,
            work.capabilities.version,
            alternative="Call again with status=open, or without status and look at dismissed.",
            why="it only keeps whether feedback is dismissed",
        )
    rows = [
        row
        for row in await _all(work)
        if (not issue_id or row.get("issue_id") == issue_id)
        and (not spec_id or row.get("spec_id") == spec_id)
        and (kind is None or row["type"] == kind)
        and (status is None or row["status"] == status)
    ]
    fitted = fit({"feedback": rows}, budget_chars=sudocode.config.budget_chars, limit=limit, hint=LIST_HINT)
    return work.payload(**fitted.lists, meta=fitted.meta)


async def _all(work: Work) -> list[Row]:
    rows = map(feedback, table(await work.read("feedback", "list", options={"limit": "-1"})))
    return sorted(rows, key=lambda row: (str(row.get("created_at", "")), str(row["id"])), reverse=True)


async def show_feedback(sudocode: Sudocode, feedback_id: str) -> Payload:
    """`feedback` with its anchor, and how that stands against the spec's present text."""
    check_id("feedback_id", feedback_id)
    work = await sudocode.reading()
    shown = await _show(work, feedback_id)
    if "anchor" in shown:
        texts = await _texts(sudocode, work)
        shown |= _checked(shown, texts)
    return work.payload(feedback=_within(sudocode, shown))


async def _show(work: Work, feedback_id: str) -> Row:
    return feedback(record(await work.read("feedback", "show", positionals=[feedback_id])))


def _within(sudocode: Sudocode, row: Row) -> Row:
    return fit_detail(row, max_chars=sudocode.config.detail_chars)


async def _texts(sudocode: Sudocode, work: Work) -> dict[str, str]:
    """Id → text of everything that feedback can be about; specs win where an issue has the same id."""
    snapshot = await sudocode.snapshot(work)
    return {
        str(row.get("id")): str(row.get("content") or row.get("description") or "")
        for row in (*snapshot.issues, *snapshot.specs)
    }


def _checked(row: Row, texts: Mapping[str, str]) -> Row:
    """`anchor_check` and `suggested_line` of an entry; nothing when its target or anchor is gone."""
    text = texts.get(str(row.get("spec_id")))
    return check_anchor(row["anchor"], text) if text is not None and "anchor" in row else {}


async def acknowledge_feedback(sudocode: Sudocode, feedback_id: str) -> Payload:
    """`feedback` with the status acknowledged, in releases that have it."""
    check_id("feedback_id", feedback_id)
    work = await sudocode.open()
    if not work.capabilities.feedback_states:
        await _show(work, feedback_id)  # a wrong id is a better answer than an unsupported command
        raise unsupported(
            "acknowledge_feedback",
            None,
            work.capabilities.version,
            why="feedback is open or dismissed there, nothing between",
            alternative="Leave it open while you work on it; resolve_feedback or wontfix_feedback dismiss it.",
        )
    return await _change(sudocode, "acknowledge", feedback_id, asked="acknowledged")


async def resolve_feedback(sudocode: Sudocode, feedback_id: str, *, comment: str = "") -> Payload:
    """`feedback` resolved, or dismissed where a release keeps nothing finer."""
    return await _finish(sudocode, feedback_id, "resolve", "resolved", ("comment", comment))


async def wontfix_feedback(sudocode: Sudocode, feedback_id: str, *, reason: str = "") -> Payload:
    """`feedback` declined, or dismissed where a release keeps nothing finer."""
    return await _finish(sudocode, feedback_id, "wont-fix", "wont_fix", ("reason", reason))


async def _finish(sudocode: Sudocode, feedback_id: str, command: str, asked: str, remark: tuple[str, str]) -> Payload:
    check_id("feedback_id", feedback_id)
    capabilities = await sudocode.cli.capabilities()
    argument, text = remark
    if capabilities.feedback_states:
        options = {argument: text} if text else {}
        return await _change(sudocode, command, feedback_id, asked=asked, options=options)
    if not capabilities.dismiss:
        raise unsupported(f"{asked} feedback", None, capabilities.version, alternative="Leave the feedback open.")
    options = {"comment": text} if text else {}
    payload = await _change(sudocode, "dismiss", feedback_id, asked=asked, options=options)
    if text:
        payload.setdefault("warnings", []).append(
            {
                "code": "not_stored",
                "message": f"sudocode takes a {argument} for dismissing feedback but does not keep it",
                "argument": argument,
            }
        )
    return payload


async def _change(
    sudocode: Sudocode,
    command: str,
    feedback_id: str,
    *,
    asked: str,
    options: Mapping[str, str] | None = None,
) -> Payload:
    async with sudocode.writing() as work:
        answer = await work.write("feedback", command, options=options, positionals=[feedback_id], repeatable=True)
    changed = feedback(record(answer))
    return work.payload(feedback=_within(sudocode, changed), stored_status=changed["status"], asked_status=asked)


async def stale_feedback(sudocode: Sudocode) -> Payload:
    """`feedback` whose anchor is marked stale, and `drifted`: not marked, but the text is elsewhere now."""
    work = await sudocode.reading()
    rows = [row for row in await _all(work) if "anchor" in row]
    texts = await _texts(sudocode, work) if rows else {}
    marked: list[Row] = []
    drifted: list[Row] = []
    for row in rows:
        checked = {**row, **_checked(row, texts)}
        if row["anchor"].get("anchor_status") == "stale":
            marked.append(checked)
        elif "anchor_check" in checked and not checked["anchor_check"]["matches"]:
            drifted.append(checked)
    fitted = fit({"feedback": marked, "drifted": drifted}, budget_chars=sudocode.config.budget_chars, hint=LIST_HINT)
    return work.payload(feedback=fitted.lists["feedback"], drifted=fitted.lists["drifted"] or None, meta=fitted.meta)


async def relocate_feedback(sudocode: Sudocode, feedback_id: str, *, line: int) -> Payload:
    """`feedback` with its anchor on another line."""
    check_id("feedback_id", feedback_id)
    async with sudocode.writing() as work:
        shown = await _show(work, feedback_id)
        if "anchor" not in shown:
            raise invalid(
                "feedback_id",
                "this feedback has no anchor, so there is nothing to move",
                hint="Add new feedback with a line instead.",
            )
        answer = await work.write(
            "feedback", "relocate", options={"line": str(line)}, positionals=[feedback_id], repeatable=True
        )
    moved = feedback(record(answer))
    checked: dict[str, Any] = {}
    try:
        checked = _checked(moved, await _texts(sudocode, work))
    except SudocodeError as error:
        work.warn("not_shown", f"the anchor is moved, but could not be checked: {error.message}")
    return work.payload(feedback=_within(sudocode, {**moved, **checked}))
