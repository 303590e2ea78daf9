"""Scalars as js-yaml writes them, which is how pnpm writes its lockfile.

Source: https://github.com/nodeca/js-yaml, `lib/dumper.js`
"""

import json
import re
from typing import Final

_BAD_FIRST: Final = frozenset("-?:,[]{}#&*!|=>'\"%@`")
_FLOW_SIGNS: Final = frozenset(",[]{}")
_AMBIGUOUS: Final = re.compile(
    r"""~|null|Null|NULL|true|True|TRUE|false|False|FALSE|<<|
    [-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|[0-9][0-9_]*)|
    [-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|
    \.[0-9_]+(?:[eE][-+]?[0-9]+)?|
    [-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|
    [0-9]{4}-[0-9]{2}-[0-9]{2}|
    [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?
    (?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?""",
    re.VERBOSE,
)


def yaml_scalar(text: str, *, flow: bool = False, is_key: bool = False) -> str:
    """`text` on one line: plain where that reads back as the same text, else in quotes.

    Raises:
        ValueError: It needs a block or escapes of its own.
    """
    if text == "":
        return "''"
    if not text.isprintable() or "\ufeff" in text:
        if is_key or flow:
            raise ValueError("a text with signs that cannot be written on one line")
        return json.dumps(text, ensure_ascii=False)
    return (
        text if _is_plain(text, flow=flow) and not _AMBIGUOUS.fullmatch(text) else "'" + text.replace("'", "''") + "'"
    )


def _is_plain(text: str, *, flow: bool) -> bool:
    if text[0] in _BAD_FIRST or text[0].isspace() or text[-1].isspace() or text[-1] == ":":
        return False
    previous = ""
    for sign in text:
        if flow and sign in _FLOW_SIGNS:
            return False
        if sign == "#" and (not previous or previous.isspace()):
            return False
        if previous == ":" and sign.isspace():
            return False
        previous = sign
    return True
