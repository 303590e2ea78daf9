"""Sets one key of an entry of a machine-written TOML file, wherever the entry has it."""

from collections.abc import Sequence

from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, with_newlines
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlText
from dependfix_core.model.lock import Span


def set_key(
    text: TomlText, table: KeyPath, key: str, value: str | None, *, before: Sequence[str] = ()
) -> list[Replacement]:
    """`key = value` replaced, taken out (`None`), or put in before the first of other keys that is there.

    Without one of those it comes at the end of the table.
    """
    span = text.spans.get((*table, key))
    newline = newline_of(text.content)
    if span is not None:
        return (
            [(span, with_newlines(value, newline))] if value is not None else [(whole_lines(text.content, span), b"")]
        )
    if value is None:
        return []
    found = text.table(table)
    assert found is not None, "an entry begins with its header"
    others = (text.spans[*table, name] for name in before if (*table, name) in text.spans)
    other = next(others, None)
    at = whole_lines(text.content, other).start if other is not None else found.end
    return [(Span(start=at, end=at), with_newlines(f"{key} = {value}\n", newline))]


def whole_lines(content: bytes, span: Span) -> Span:
    """The lines that a span touches, with their ends."""
    start = content.rfind(b"\n", 0, span.start) + 1
    end = content.find(b"\n", span.end)
    return Span(start=start, end=len(content) if end < 0 else end + 1)
