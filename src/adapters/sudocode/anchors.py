"""Does feedback still point at the text it was given for, and if not, where did that text go?"""

import re
from difflib import SequenceMatcher
from typing import Any, Final

from adapters.sudocode.rows import Row

_HEADING: Final = re.compile(r"^(#{1,6})\s+(.+?)\s*$")
_SIMILAR: Final = 0.7
_MAX_LINES_SHOWN: Final = 20


def check_anchor(anchor: Row, content: str) -> dict[str, Any]:
    """How an anchor stands against a text.

    Returns:
        `anchor_check` with `matches` and `found_at_lines` (from 1, at most
        20), and, when the text is not where the anchor says, `suggested_line`
        with `suggested_because` (`same text`, `similar text`, `same heading`),
        if there is a sensible one.
    """
    lines = content.split("\n")
    number = anchor.get("line_number")
    line = number if isinstance(number, int) else 0
    snippet = _bare(str(anchor.get("text_snippet") or ""))
    found = [at for at, text in enumerate(lines, 1) if snippet and snippet in text]
    inside = 1 <= line <= len(lines)
    # An anchor on a blank line has no text; it holds as long as the line is blank.
    matches = line in found if snippet else inside and not lines[line - 1].strip()
    out: dict[str, Any] = {"anchor_check": {"matches": matches, "found_at_lines": found[:_MAX_LINES_SHOWN]}}
    if matches:
        return out
    suggestion = _suggest(anchor, lines, line, snippet, found)
    if suggestion is not None:
        out["suggested_line"], out["suggested_because"] = suggestion
    return out


def _bare(snippet: str) -> str:
    """A snippet without the dots that mark where it was cut."""
    return snippet.removeprefix("...").removesuffix("...").strip()


def _suggest(anchor: Row, lines: list[str], line: int, snippet: str, found: list[int]) -> tuple[int, str] | None:
    headings = _headings(lines)
    wanted = anchor.get("section_heading")

    def rank(at: int) -> tuple[bool, float, int]:
        return (headings[at - 1] == wanted, _surroundings(anchor, lines, at), -abs(at - line))

    if found:
        return max(found, key=rank), "same text"
    if snippet:
        scored = [(_likeness(snippet, text), at) for at, text in enumerate(lines, 1) if text.strip()]
        best = max((score for score, _ in scored), default=0.0)
        if best >= _SIMILAR:
            return max((at for score, at in scored if score == best), key=rank), "similar text"
    if wanted:
        starts = [at for at, text in enumerate(lines, 1) if (m := _HEADING.match(text)) and m[2] == wanted]
        if len(starts) == 1:
            offset = anchor.get("line_offset")
            at = starts[0] + (offset if isinstance(offset, int) else 0)
            if at <= len(lines) and headings[at - 1] == wanted:
                return at, "same heading"
            return starts[0], "same heading"
    return None


def _headings(lines: list[str]) -> list[str | None]:
    """For each line the heading it stands under, its own if it is one."""
    current: str | None = None
    out: list[str | None] = []
    for line in lines:
        match = _HEADING.match(line)
        current = match[2] if match else current
        out.append(current)
    return out


def _surroundings(anchor: Row, lines: list[str], at: int) -> float:
    before = " ".join(lines[max(0, at - 4) : at - 1])[-60:]
    after = " ".join(lines[at : at + 3])[:60]
    return _likeness(str(anchor.get("context_before") or ""), before) + _likeness(
        str(anchor.get("context_after") or ""), after
    )


def _likeness(wanted: str, text: str) -> float:
    matcher = SequenceMatcher(None, wanted, text.strip()[: 4 * len(wanted) + 40], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= _SIMILAR / 2 else 0.0
