"""Reads what a child printed: text, or the one JSON document that a program leaves on stdout."""

import json
import re
from itertools import islice
from typing import Final

from dependfix_core.errors import CommandError
from dependfix_core.process.command import CommandResult
from dependfix_core.process.redact import clean_text, redact

_DECODER = json.JSONDecoder()
# Escape codes and invisible characters come on top of what is shown.
_RAW_PER_CHAR: Final = 16
_RAW_BESIDE: Final = 4_096
# A few progress lines may look like a beginning; a flood of them would be tried for hours.
_MAX_STARTS: Final = 100
_DOCUMENT_START = re.compile(r"^[\[{]", re.MULTILINE)


def plain_text(raw: bytes, *, max_chars: int | None = None) -> str:
    """Output as text: UTF-8 with replacement, without colours, control characters and credentials."""
    if max_chars is not None:
        # Cleaning all of a flood to show its beginning would hold up everybody else.
        raw = raw[: _RAW_PER_CHAR * max_chars + _RAW_BESIDE]
    return clean_text(redact(raw.decode("utf-8", "replace")), max_chars=max_chars).strip()


def json_document(result: CommandResult) -> object:
    """The JSON document on stdout, also when a program prints progress lines before it.

    A document after other text starts at column 0 and ends the output. The
    longest one wins, so that an inner line at column 0 is not taken for it.

    Raises:
        CommandError: `bad_output`, when there is no such document, or more
            text after it.
    """
    text = result.stdout.decode("utf-8", "replace")
    for start in islice(_DOCUMENT_START.finditer(text), _MAX_STARTS):
        try:
            document, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if not text[end : end + 64].strip() and not text[end:].strip():
            return document
    raise CommandError(
        f"{result.argv[0]} ended well but printed no JSON document",
        argv=result.argv,
        code="bad_output",
        details={"exitCode": result.exit_code, "stdout": plain_text(result.stdout, max_chars=400)},
    )
