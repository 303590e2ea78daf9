"""Finds the entries of a machine-written TOML lock without parsing the whole file.

Locks hold one `[[package]]` block after the other. To move one of a thousand
copies only its own block is read closely.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dependfix_core.ecosystems.pip.splice import Replacement, splice
from dependfix_core.ecosystems.pip.toml_text import TomlText, read_toml
from dependfix_core.model.lock import Span


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One entry: from its header to the next array entry or top-level table."""

    span: Span
    content: bytes

    @property
    def text(self) -> TomlText:
        """The block's own values and spans; offsets count from its start."""
        return read_toml(self.content)

    def moved(self, replacements: Sequence[Replacement]) -> "Block":
        """The same place with another content."""
        return replace(self, content=splice(self.content, replacements))


def split_blocks(content: bytes, array: str) -> list[Block]:
    """The entries of `[[array]]` in file order; their sub-tables belong to them."""
    header = re.compile(rb"^\[\[" + re.escape(array.encode()) + rb"\]\]", re.MULTILINE)
    foreign = re.compile(rb"^\[(?!\[?" + re.escape(array.encode()) + rb"[\].])", re.MULTILINE)
    starts = [found.start() for found in header.finditer(content)]
    if not starts:
        return []
    end = foreign.search(content, starts[-1])
    limits = [*starts[1:], end.start() if end else len(content)]
    return [
        Block(span=Span(start=start, end=limit), content=content[start:limit])
        for start, limit in zip(starts, limits, strict=True)
    ]
