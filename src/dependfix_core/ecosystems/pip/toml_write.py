"""TOML text as tools write it into locks."""

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def basic_string(text: str) -> str:
    """A double-quoted string with everything escaped that has to be."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), escaped) + '"'


def string_list(items: list[str]) -> str:
    """An array of strings on one line."""
    return "[" + ", ".join(basic_string(item) for item in items) + "]"


def lines_list(items: list[str]) -> str:
    """An array with each item, given as TOML, on a line of its own."""
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
