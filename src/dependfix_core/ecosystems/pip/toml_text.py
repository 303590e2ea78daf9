"""Where does each value of a TOML file stand in its bytes?

The standard library reads the values and rejects what is not TOML; this module
adds the byte span of every value and table, so that writers replace exactly
those bytes and nothing else.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dependfix_core.model.lock import Span

KeyPath = tuple[str | int, ...]

UTF8_BOM: Final = b"\xef\xbb\xbf"
_POSITION: Final = re.compile(r"\(at line (\d+), column (\d+)\)$")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SPACE: Final = re.compile(r"[ \t]*")
_FILLER: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SCALAR: Final = re.compile(r"[^,\]}#\r\n]*[^,\]}#\r\n \t]")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]++|\\.|"{1,2}(?!"))*"{3,5}|'
    r"'''(?:[^']++|'{1,2}(?!'))*'{3,5}|"
    r'"(?:[^"\\\r\n]++|\\.)*"|'
    r"'[^'\r\n]*'",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)


class TomlTextError(ValueError):
    """The bytes are no TOML. `position` is `line:column`, from 1."""

    def __init__(self, position: str, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


@dataclass(frozen=True, kw_only=True, slots=True)
class TomlTable:
    """A `[header]` or `[[header]]` and what follows it."""

    path: KeyPath
    header: Span
    """From the first bracket to the last one."""
    end: int
    """Offset after the last entry's line (after the header's line when there is none);
    comments and blank lines before the next header come after it."""


class NotSpelledOutError(LookupError):
    """A value is there and stands nowhere as one stretch of bytes: an array of tables, a table with a header."""


class Spans(dict[KeyPath, Span]):
    """Spans by path; one that is missing is no fault of the code, but of how the file is laid out."""

    def __missing__(self, path: KeyPath) -> Span:
        raise NotSpelledOutError(".".join(str(part) for part in path))


@dataclass(frozen=True, kw_only=True, slots=True)
class TomlText:
    """A TOML file: its values, and the spans of what is written out in it."""

    content: bytes
    data: Mapping[str, Any]
    spans: Mapping[KeyPath, Span]
    """Of each value, quotes and brackets included."""
    tables: Sequence[TomlTable]
    """In file order, without the root table."""

    def value(self, path: KeyPath) -> Any:
        """The value at `path`, or `None` when there is none."""
        here: Any = self.data
        for part in path:
            if isinstance(part, int) and isinstance(here, list):
                here = here[part] if part < len(here) else None
            elif isinstance(here, dict):
                here = here.get(part)
            else:
                return None
        return here

    def inner_span(self, path: KeyPath, start: int, end: int) -> Span | None:
        """Byte span of the characters `start` to `end` of the string at `path`.

        `None` when the string is not written so that one stretch of bytes holds them.
        """
        span = self.spans.get(path)
        text = self.value(path)
        if span is None or not isinstance(text, str):
            return None
        literal = self.content[span.start : span.end].decode("utf-8")
        offsets = _offsets(literal)
        if len(offsets) != len(text) + 1:
            return None
        return Span(start=span.start + offsets[start], end=span.start + offsets[end])

    def table(self, path: KeyPath) -> TomlTable | None:
        """The table with a header of its own at `path`."""
        return next((table for table in self.tables if table.path == path), None)


def read_toml(content: bytes) -> TomlText:
    """Values and spans of a TOML file; a byte order mark is left out of the values.

    Raises:
        TomlTextError: Not UTF-8 or not TOML; `position` says where.
    """
    data = parse_toml(content)
    start = len(UTF8_BOM) if content.startswith(UTF8_BOM) else 0
    scanner = _Scanner(content.decode("latin-1"), start)
    try:
        scanner.document()
    except RecursionError:
        raise TomlTextError("1:1", "nested too deeply") from None
    return TomlText(content=content, data=data, spans=scanner.spans, tables=tuple(scanner.closed_tables()))


def parse_toml(content: bytes) -> dict[str, Any]:
    """The values alone, for files that are only read.

    Raises:
        TomlTextError: Not UTF-8 or not TOML; `position` says where.
    """
    body = content.removeprefix(UTF8_BOM)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TomlTextError(line_and_column(content, error.start), "not UTF-8") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _POSITION.search(message)
        position = f"{found[1]}:{found[2]}" if found else line_and_column(content, len(content))
        raise TomlTextError(position, _POSITION.sub("", message).strip()) from None
    except RecursionError:
        raise TomlTextError("1:1", "nested too deeply") from None


def line_and_column(content: bytes, offset: int) -> str:
    """`line:column` of a byte offset, both from 1."""
    line = content.count(b"\n", 0, offset) + 1
    column = offset - (content.rfind(b"\n", 0, offset) + 1) + 1
    return f"{line}:{column}"


def spell_path(path: KeyPath) -> str:
    """A key path for people: `tool.uv.sources.requests`, `project.dependencies[2]`."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
            spelled += f".{key}" if spelled else key
    return spelled


def strings_of(value: object) -> tuple[str, ...]:
    """The texts of a list; what is no list has none, and other entries are left out."""
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def table_of(value: object) -> Mapping[str, Any]:
    """The value if it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def tables_of(value: object) -> list[Mapping[str, Any]]:
    """The tables of a list; what is no list has none, and other entries are left out."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _offsets(literal: str) -> list[int]:
    """Byte offset in the literal of each character of its value, and of the end.

    A line-ending backslash in a multi-line string has no character of its own,
    so that the result's length tells the caller that the text is not one stretch.
    """
    quote = next(q for q in ('"""', "'''", '"', "'") if literal.startswith(q))
    escaped = quote[0] == '"'
    body = literal[len(quote) : -len(quote)]
    position = len(quote)
    if len(quote) == 3:  # a line break right after the opening quotes is not part of the value
        for newline in ("\r\n", "\n"):
            if body.startswith(newline):
                body = body[len(newline) :]
                position += len(newline)
                break
    offsets: list[int] = []
    index = 0
    while index < len(body):
        offsets.append(position)
        found = _ESCAPE.match(body, index) if escaped and body[index] == "\\" else None
        taken = found[0] if found else body[index : index + 2] if body.startswith("\r\n", index) else body[index]
        position += len(taken.encode("utf-8"))
        index += len(taken)
    offsets.append(position)
    return offsets


def _unquote(literal: str) -> str:
    """The value of a quoted key, given as bytes read as latin-1."""
    text = literal.encode("latin-1").decode("utf-8")
    return next(iter(tomllib.loads(f"{text} = 0")))


class _Scanner:
    """Walks over text that is known to be TOML; one character is one byte."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.pos = start
        self.spans = Spans()
        self.array_counts: dict[KeyPath, int] = {}
        self.headers: list[tuple[KeyPath, Span]] = []
        self.entry_ends: list[int] = []

    def document(self) -> None:
        prefix: KeyPath = ()
        text = self.text
        while True:
            self._skip(_FILLER)
            if self.pos >= len(text):
                return
            start = self.pos
            if text.startswith("[[", start):
                self.pos += 2
                keys = self._keys()
                self.pos += 2  # the closing brackets
                parent = self._resolve(keys[:-1])
                array = (*parent, keys[-1])
                index = self.array_counts.get(array, 0)
                self.array_counts[array] = index + 1
                prefix = (*array, index)
                self.headers.append((prefix, Span(start=start, end=self.pos)))
            elif text[start] == "[":
                self.pos += 1
                prefix = self._resolve(self._keys())
                self.pos += 1
                self.headers.append((prefix, Span(start=start, end=self.pos)))
            else:
                self._entry(prefix)
            self.entry_ends.append(self.pos)

    def closed_tables(self) -> list[TomlTable]:
        tables = []
        for index, (path, header) in enumerate(self.headers):
            limit = self.headers[index + 1][1].start if index + 1 < len(self.headers) else len(self.text)
            last = self.entry_ends[bisect_right(self.entry_ends, limit) - 1]
            newline = self.text.find("\n", last)
            tables.append(TomlTable(path=path, header=header, end=len(self.text) if newline < 0 else newline + 1))
        return tables

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.pos)
        if found:
            self.pos = found.end()

    def _resolve(self, keys: Sequence[str]) -> KeyPath:
        """A header's path, with the current index wherever it passes through an array of tables."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            count = self.array_counts.get(path)
            if count:
                path = (*path, count - 1)
        return path

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_SPACE)
            quoted = _STRING.match(self.text, self.pos)
            if quoted:
                keys.append(_unquote(quoted[0]))
                self.pos = quoted.end()
            else:
                bare = _BARE_KEY.match(self.text, self.pos)
                assert bare is not None, "text was accepted by the parser"
                keys.append(bare[0])
                self.pos = bare.end()
            self._skip(_SPACE)
            if self.text[self.pos : self.pos + 1] != ".":
                return keys
            self.pos += 1

    def _entry(self, prefix: KeyPath) -> None:
        keys = self._keys()
        self.pos += 1  # the equals sign
        self._skip(_SPACE)
        self._value((*prefix, *keys))

    def _value(self, path: KeyPath) -> None:
        start = self.pos
        text = self.text
        first = text[start]
        if first == "[":
            self.pos += 1
            index = 0
            while True:
                self._skip(_FILLER)
                if text[self.pos] == "]":
                    break
                if text[self.pos] == ",":
                    self.pos += 1
                    continue
                self._value((*path, index))
                index += 1
            self.pos += 1
        elif first == "{":
            self.pos += 1
            while True:
                self._skip(_FILLER)
                if text[self.pos] == "}":
                    break
                if text[self.pos] == ",":
                    self.pos += 1
                    continue
                self._entry(path)
            self.pos += 1
        else:
            found = _STRING.match(text, start) if first in "\"'" else _SCALAR.match(text, start)
            assert found is not None, "text was accepted by the parser"
            self.pos = found.end()
        self.spans[path] = Span(start=start, end=self.pos)
