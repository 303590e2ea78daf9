"""Keeps answers small: the order, the caller's limit, then as much of each row as the budget allows."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from adapters.sudocode.rows import Row

Detail = Literal["full", "excerpt", "summary"]

FRAME_CHARS: Final = 600
"""What an answer holds beside its rows: the envelope, `meta` and its hint."""
EXCERPT_CHARS: Final = 280
SUMMARY_TITLE_CHARS: Final = 160
SUMMARY_FEEDBACK_CHARS: Final = 120
_SUMMARY_KEYS: Final = (
    "id",
    "title",
    "status",
    "priority",
    "assignee",
    "parent_id",
    "type",
    "kind",
    "blocked_by",
    "waits_for",
    "updated_at",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """Lists as they go out, and what was left out of them."""

    lists: dict[str, list[Row]]
    meta: dict[str, Any]


def fit(lists: Mapping[str, list[Row]], *, budget_chars: int, limit: int | None = None, hint: str = "") -> Fitted:
    """The longest form of all rows that stays within the budget.

    Rows are in order already. All rows of one answer have the same form: full,
    then with long texts cut to 280 characters, then summaries, then as many
    summaries as fit.

    Args:
        lists: Key of the answer → all rows that match.
        budget_chars: For the whole answer as compact JSON.
        limit: What the caller asked for, for each list.
        hint: How to get at the rest; only used when something was reduced.
    """
    for_rows = max(budget_chars - FRAME_CHARS, 0)
    total = sum(map(len, lists.values()))
    asked = {key: rows[:limit] if limit is not None else list(rows) for key, rows in lists.items()}
    steps: tuple[tuple[Detail, Callable[[Row], Row]], ...] = (
        ("full", dict),
        ("excerpt", excerpt),
        ("summary", summary),
    )
    detail: Detail = "full"
    shaped = asked
    for detail, form in steps:  # noqa: B007  # the step that fits is reported
        shaped = {key: [form(row) for row in rows] for key, rows in asked.items()}
        if size(shaped) <= for_rows:
            break
    else:
        shaped = _first_ones(shaped, for_rows)
    returned = sum(map(len, shaped.values()))
    meta: dict[str, Any] = {"total": total, "returned": returned, "detail": detail, "omitted": total - returned}
    if returned < sum(map(len, asked.values())):
        meta["hint"] = f"Only the first {returned} fit. {hint}".strip()
    elif detail != "full":
        meta["hint"] = f"Texts are shortened. {hint}".strip()
    elif returned < total:
        meta["hint"] = "More rows match; raise limit or use a filter."
    return Fitted(lists=shaped, meta=meta)


def size(value: object) -> int:
    """Characters of a value as compact JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _first_ones(lists: dict[str, list[Row]], budget_chars: int) -> dict[str, list[Row]]:
    sizes = {key: [size(row) + 1 for row in rows] for key, rows in lists.items()}
    used = sum(map(sum, sizes.values())) + sum(len(key) + 6 for key in lists)
    while used > budget_chars and sum(map(len, sizes.values())) > 1:
        longest = max(sizes, key=lambda key: len(sizes[key]))
        used -= sizes[longest].pop()
    return {key: rows[: len(sizes[key])] for key, rows in lists.items()}


def excerpt(row: Row) -> Row:
    """A row with its long texts cut, each with the length it has."""
    out = _once(row)
    _cut(out, "content", EXCERPT_CHARS)
    if isinstance(out.get("anchor"), dict):
        out["anchor"] = {key: value for key, value in out["anchor"].items() if not key.startswith("context_")}
    return out


def _once(row: Row) -> Row:
    """A row that has its text under one name only."""
    return {key: value for key, value in row.items() if key != "description" or "content" not in row}


def summary(row: Row) -> Row:
    """What tells rows apart; `show_*` has the rest."""
    if "spec_id" in row or "issue_id" in row:
        return _feedback_summary(row)
    out = {key: _clipped(row[key]) for key in _SUMMARY_KEYS if row.get(key) not in (None, "", [])}
    if row.get("content"):
        out["content_length"] = row.get("content_length", len(row["content"]))
    for key in ("blocked_by", "waits_for"):
        if key in out:
            out[key] = [blocker.get("id", "") for blocker in out[key][:20]]
    return out


def _feedback_summary(row: Row) -> Row:
    anchor = row.get("anchor") or {}
    out: Row = {key: row[key] for key in ("id", "type", "status", "issue_id", "spec_id") if key in row}
    for name, key in (("line", "line_number"), ("heading", "section_heading"), ("anchor_status", "anchor_status")):
        if key in anchor:
            out[name] = _clipped(anchor[key])
    out["content"] = row.get("content", "")
    _cut(out, "content", SUMMARY_FEEDBACK_CHARS)
    if "suggested_line" in row:
        out["suggested_line"] = row["suggested_line"]
    return out


def _clipped(value: Any) -> Any:
    too_long = isinstance(value, str) and len(value) > SUMMARY_TITLE_CHARS
    return f"{value[: SUMMARY_TITLE_CHARS - 1]}…" if too_long else value


def _cut(row: Row, key: str, chars: int) -> None:
    text = row.get(key)
    if isinstance(text, str) and len(text) > chars:
        row[key] = f"{text[: chars - 1]}…"
        row.setdefault(f"{key}_length", len(text))


def fit_warnings(payload: dict[str, Any], *, max_chars: int) -> dict[str, Any]:
    """An answer within a ceiling: what was done is told whole, warnings lose their facts and then their number.

    Too large an answer would be refused, and a write that has happened must not look like a failure.
    """
    warnings = payload.get("warnings")
    if not warnings or size(payload) <= max_chars:
        return payload
    short = [{"code": warning["code"], "message": warning["message"][:EXCERPT_CHARS]} for warning in warnings]
    out = {**payload, "warnings": short}
    while short and size(out) > max_chars:
        del short[len(short) // 2 :]
    if len(short) < len(warnings):
        out["warnings"] = [*short, {"code": "warnings_cut", "message": f"{len(warnings) - len(short)} more warnings"}]
    return out


def fit_detail(entity: Row, *, max_chars: int, file: str = "") -> Row:
    """One entity within a ceiling: first less around anchors, then of feedback and links, then of the text.

    What was shortened says how long it is; `file` names where all of it is.
    """
    if size(entity) <= max_chars:
        return entity
    out = _once(entity)
    if size(out) <= max_chars:
        return out
    feedback = out.get("feedback", [])
    if feedback:
        out["feedback"] = [excerpt(entry) for entry in feedback]
    if feedback and size(out) > max_chars:
        out["feedback"] = [_feedback_summary(entry) for entry in feedback]
        shown, used = 0, 0
        while shown < len(feedback) and used < max_chars // 3:
            used += size(out["feedback"][shown]) + 1
            shown += 1
        if shown < len(feedback):
            out["feedback"] = out["feedback"][:shown]
            out["feedback_total"] = len(feedback)
    links = out.get("relationships", {})
    if size(links) > max_chars // 4:
        out["relationships_total"] = {side: len(rows) for side, rows in links.items()}
        out["relationships"] = {side: rows[:100] for side, rows in links.items()}
    text = out.get("content", "")
    over = size(out) - max_chars + 200
    if over > 0 and isinstance(text, str):
        # A character can take several in JSON; halving the kept part ends.
        keep = max(0, len(text) - over)
        while True:
            head, tail = text[: keep - keep // 3], text[len(text) - keep // 3 :] if keep // 3 else ""
            out["content"] = f"{head}\n[… {len(text) - keep} characters left out …]\n{tail}"
            if keep == 0 or size(out) <= max_chars:
                break
            keep //= 2
        out["content_length"] = len(text)
        if file:
            out["content_file"] = file
    return out
