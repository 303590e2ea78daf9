"""Replaces stretches of bytes and nothing around them."""

from collections.abc import Iterable

from dependfix_core.model.lock import Span

Replacement = tuple[Span, bytes]


def splice(content: bytes, replacements: Iterable[Replacement]) -> bytes:
    """`content` with each span replaced; equal replacements count once.

    Raises:
        ValueError: Two different replacements overlap.
    """
    pieces: list[bytes] = []
    position = 0
    for span, text in sorted(set(replacements), key=lambda one: (one[0].start, one[0].end, one[1])):
        if span.start < position:
            raise ValueError("two replacements overlap")
        pieces += [content[position : span.start], text]
        position = span.end
    return b"".join([*pieces, content[position:]])


def newline_of(content: bytes) -> bytes:
    """The line end that a file uses, by its first line."""
    end = content.find(b"\n")
    return b"\r\n" if end > 0 and content[end - 1 : end] == b"\r" else b"\n"


def with_newlines(text: str, newline: bytes) -> bytes:
    r"""Text with `\\n` line ends as bytes with the file's own."""
    return text.encode().replace(b"\n", newline)
