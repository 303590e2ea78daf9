"""Adds an entry to a TOML file at the least conspicuous place."""

from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, with_newlines
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlText, spell_path
from dependfix_core.model.lock import Span


def quoted(text: str) -> str:
    """A TOML string; a literal one where the text has double quotes."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def add_item(text: TomlText, path: KeyPath, item: str) -> Replacement | None:
    """A string at the end of the array at `path`, which is made when it is not there; `None` where that cannot be."""
    value = text.value(path)
    if value is None:
        return add_key(text, path, f"[{quoted(item)}]")
    span = text.spans.get(path)
    if not isinstance(value, list) or span is None:
        return None
    newline = newline_of(text.content)
    close = Span(start=span.end - 1, end=span.end - 1)
    if not value:
        return Span(start=span.start, end=span.end), f"[{quoted(item)}]".encode()
    last = text.spans[*path, len(value) - 1]
    tail = text.content[last.end : close.start]
    if b"\n" not in text.content[span.start : span.end]:
        trailing = b"," in tail
        at = Span(start=last.end, end=close.start) if trailing else Span(start=last.end, end=last.end)
        return at, f", {quoted(item)}".encode()
    line = text.content.rfind(b"\n", 0, last.start) + 1
    indent = text.content[line : last.start]
    if indent.strip():
        indent = b"    "
    # A comment after the last item stays with it: the comma goes before, the new line after the comment.
    own_line_end = text.content.find(b"\n", last.end, close.start)
    end = own_line_end if own_line_end >= 0 else close.start
    rest = text.content[last.end : end].rstrip(b"\r")
    comma = b"" if rest.lstrip().startswith(b",") else b","
    after = b"" if comma else b","
    added = comma + rest + newline + indent + quoted(item).encode() + after
    return Span(start=last.end, end=last.end + len(rest)), added


def add_key(text: TomlText, path: KeyPath, value: str) -> Replacement | None:
    """`key = value` at the end of its table, which is made when it is not there; `None` where that cannot be."""
    parent, key = path[:-1], path[-1]
    content = text.content
    newline = newline_of(content)
    entry = with_newlines(f"{spell_path((key,))} = {value}", newline)
    table = text.table(parent)
    if table is not None:
        lead = b"" if content[: table.end].endswith(b"\n") else newline
        return Span(start=table.end, end=table.end), lead + entry + newline
    if text.value(parent) is not None and not _only_tables(text, parent):
        return None  # an inline table, or one spelled with dots
    lead = b"" if not content or content.endswith(b"\n") else newline
    gap = newline if content.strip() else b""
    header = f"[{spell_path(parent)}]".encode()
    return Span(start=len(content), end=len(content)), lead + gap + header + newline + entry + newline


def _only_tables(text: TomlText, parent: KeyPath) -> bool:
    """Whether `parent` is there only through headers of tables below it."""
    if parent in text.spans:
        return False
    return all(path[: len(parent)] != parent or _under_header(text, path, parent) for path in text.spans)


def _under_header(text: TomlText, path: KeyPath, parent: KeyPath) -> bool:
    return any(
        len(table.path) > len(parent) and table.path[: len(parent)] == parent and path[: len(table.path)] == table.path
        for table in text.tables
    )
