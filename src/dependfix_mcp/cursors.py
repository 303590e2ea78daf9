"""Where a page went on, as a text that means something only to the call that it came from."""

import base64
import hashlib
import json
from typing import Any, Final

from dependfix_core.errors import ArgumentError

MAX_CURSOR_CHARS: Final = 2000


def digest_of(tool: str, *arguments: Any) -> str:
    """Tells calls apart: a cursor of one is no cursor of another."""
    text = json.dumps([tool, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write_cursor(digest: str, *position: str | int) -> str:
    """The opaque form of a position."""
    value = json.dumps([digest, *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(value.encode()).decode("ascii").rstrip("=")


def read_cursor(text: str, digest: str, *kinds: type) -> tuple[Any, ...] | None:
    """The position that `text` names, its parts being of `kinds`; `None` without a cursor.

    Raises:
        ArgumentError: It is no cursor, or one of another call.
    """
    written = text.strip()
    if not written:
        return None
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        value = json.loads(raw) if len(written) <= MAX_CURSOR_CHARS else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or len(value) != len(kinds) + 1:
        raise _refused("cursor: not one that an earlier answer gave")
    if any(type(part) is not kind for part, kind in zip(value[1:], kinds, strict=True)):
        raise _refused("cursor: not one that an earlier answer gave")
    if value[0] != digest:
        raise _refused("cursor: it belongs to a call with other arguments")
    return tuple(value[1:])


def _refused(message: str) -> ArgumentError:
    return ArgumentError(
        message,
        hint="Use nextCursor of the answer before, with the same other arguments; leave it out to start again.",
        details={"argument": "cursor"},
    )
