from typing import Any

import pytest

from adapters.sudocode.anchors import check_anchor

TEXT = (
    "# Login\n\nUsers sign in with a code.\n\n## Codes\n\nA code is valid for ten minutes.\n\n## Later\n\nNothing yet."
)
ANCHOR = {
    "section_heading": "Codes",
    "line_number": 7,
    "line_offset": 2,
    "text_snippet": "A code is valid for ten minutes.",
    "context_before": "## Codes",
    "context_after": "## Later",
}


@pytest.mark.parametrize(
    ("anchor", "text", "matches", "found", "suggestion"),
    [
        ({}, TEXT, True, [7], None),
        ({}, f"New first line.\n{TEXT}", False, [8], (8, "same text")),
        ({"text_snippet": "...valid for ten..."}, TEXT, True, [7], None),
        # Of two places, the one under the same heading.
        ({}, f"# Old\n\nA code is valid for ten minutes.\n\n{TEXT}", False, [3, 11], (11, "same text")),
        # Of two places under the same heading, the one with the same surroundings.
        (
            {"section_heading": "Other"},
            f"# X\n\nA code is valid for ten minutes.\n\nMore.\n\n{TEXT}",
            False,
            [3, 13],
            (13, "same text"),
        ),
        ({}, TEXT.replace("valid for ten minutes", "valid for 10 minutes"), False, [], (7, "similar text")),
        (
            {},
            "# Other\n\n## Codes\n\nQuite another sentence stands here now, and nothing else.",
            False,
            [],
            (5, "same heading"),
        ),
        ({"line_offset": 9}, "# Other\n\n## Codes\n\nSomething else altogether.", False, [], (3, "same heading")),
        ({}, "# Nothing\n\nof it is left.", False, [], None),
        ({"line_number": 99}, TEXT, False, [7], (7, "same text")),
        ({"line_number": None}, TEXT, False, [7], (7, "same text")),
        # A blank line has no text to look for.
        ({"text_snippet": "", "line_number": 2}, TEXT, True, [], None),
        ({"text_snippet": "", "line_number": 3, "section_heading": None}, TEXT, False, [], None),
    ],
)
def test_an_anchor_is_checked_against_the_present_text(
    anchor: dict[str, Any], text: str, matches: bool, found: list[int], suggestion: tuple[int, str] | None
) -> None:
    checked = check_anchor({**ANCHOR, **anchor}, text)

    expected: dict[str, Any] = {"anchor_check": {"matches": matches, "found_at_lines": found}}
    if suggestion:
        expected |= {"suggested_line": suggestion[0], "suggested_because": suggestion[1]}
    assert checked == expected
