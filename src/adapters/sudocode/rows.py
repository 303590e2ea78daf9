"""Rows of every release in one shape: one time format, parsed anchors, booleans, no nulls."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from adapters.sudocode.failures import SudocodeError

Row: TypeAlias = dict[str, Any]

_TIMES: Final = frozenset({"created_at", "updated_at", "closed_at", "archived_at", "last_verified_at"})
_INTERNAL: Final = frozenset({"parent_uuid", "from_uuid", "to_uuid"})


def table(document: object, key: str | None = None) -> list[Row]:
    """The rows of a list answer, which is an array or, with `key`, an object that holds one.

    Raises:
        SudocodeError: `bad_output`.
    """
    found = document.get(key, []) if key is not None and isinstance(document, dict) else document
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise SudocodeError("sudocode printed something else than a list of rows", code="bad_output")
    return found


def record(document: object) -> Row:
    """The one row of an answer.

    Raises:
        SudocodeError: `bad_output`.
    """
    if not isinstance(document, dict):
        raise SudocodeError("sudocode printed something else than one row", code="bad_output")
    return document


def entity(row: Row) -> Row:
    """An issue or a spec: the text is `content` in every release, times are UTC with milliseconds."""
    out = _plain(row)
    # Older releases keep an issue's text in `description` and leave `content` empty.
    description = out.pop("description", "")
    out["content"] = out.get("content") or description or ""
    if "issue_type" in out:
        out["type"] = out.pop("issue_type")
    if "archived" in out:
        out["archived"] = bool(out["archived"])
    return out


def listed(row: Row) -> Row:
    """`entity` without what only a detail needs."""
    return {key: value for key, value in entity(row).items() if key != "uuid"}


def detail(row: Row) -> Row:
    """The answer of a show command: the row with relationships, tags and feedback."""
    links = row.get("relationships") or {}
    out = entity({key: value for key, value in row.items() if key not in ("relationships", "tags", "feedback")})
    out["relationships"] = {
        side: [_plain(link) for link in links.get(side, ()) if isinstance(link, dict)]
        for side in ("outgoing", "incoming")
    }
    # What the tools take it by; in lists, where size counts, the text stands once.
    out["description"] = out["content"]
    out["tags"] = [tag for tag in row.get("tags") or () if isinstance(tag, str)]
    out["feedback"] = [feedback(entry) for entry in row.get("feedback") or () if isinstance(entry, dict)]
    return out


def feedback(row: Row) -> Row:
    """Feedback with an anchor as object, and one status word whatever the release keeps."""
    out = _plain(row)
    source, target = out.get("from_id") or out.get("issue_id"), out.get("to_id") or out.get("spec_id")
    kind = out.pop("feedback_type", "comment")
    anchor = out.pop("anchor", None)
    shaped: Row = {"id": out.pop("id", ""), "type": kind, "status": out.pop("status", None) or "open"}
    if out.get("dismissed"):
        shaped["status"] = "dismissed"
    if source:
        shaped["issue_id"] = source
    if target:
        shaped["spec_id"] = target
    for name in ("from_id", "to_id", "issue_id", "spec_id"):
        out.pop(name, None)
    shaped |= out
    parsed = parse_anchor(anchor)
    if parsed:
        shaped["anchor"] = parsed
    return shaped


def parse_anchor(anchor: object) -> Row | None:
    """The anchor of feedback, which most commands print as a JSON text inside the JSON."""
    if isinstance(anchor, str):
        try:
            anchor = json.loads(anchor)
        except ValueError:
            return None
    return _plain(anchor) if isinstance(anchor, dict) else None


def normal_time(text: str) -> str:
    """One of the two time forms of the database as `YYYY-MM-DDTHH:MM:SS.mmmZ`; other text as it is."""
    moment = parse_time(text)
    if moment is None:
        return text
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: object) -> datetime | None:
    """The instant that a row names; without a zone it is UTC."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def by_urgency(rows: Iterable[Row]) -> list[Row]:
    """Most urgent first (priority 0), then the newest change, then the id."""
    ordered = sorted(rows, key=lambda row: str(row.get("id", "")))
    ordered.sort(key=lambda row: str(row.get("updated_at", "")), reverse=True)
    ordered.sort(key=lambda row: row["priority"] if isinstance(row.get("priority"), int) else 5)
    return ordered


def _plain(row: Row) -> Row:
    return {
        key: normal_time(value) if key in _TIMES and isinstance(value, str) else value
        for key, value in row.items()
        if value is not None and key not in _INTERNAL
    }
