"""Where every value of a JSON text stands, so that one of them can be changed and nothing else.

`json.loads` gives values; this scanner gives values with byte offsets, finds
duplicate keys, and reads the dialect with comments and trailing commas that
bun writes. It is meant for manifests; large lockfiles go through `json.loads`
and come here only when a position is wanted.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.model.lock import Span

BOM: Final = b"\xef\xbb\xbf"
MAX_DEPTH: Final = 200
"""Deeper nesting is no manifest and no lockfile; the limit keeps recursion out of every reader."""

_BLANK = re.compile(rb"[ \t\n\r]*")
_BLANK_OR_COMMENT = re.compile(rb"(?:[ \t\n\r]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = ((b"true", True), (b"false", False), (b"null", None))

Path = tuple[str | int, ...]


class JsonSyntaxError(ValueError):
    """Not JSON. `offset` is the byte where reading stopped."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonValue:
    """A value with the span of its text. Of a key that is written twice the last one counts."""

    value: Any
    """Python's value; an object is a `dict`, an array a `list`."""
    span: Span
    members: dict[str, "JsonMember"] | None = None
    """Of an object, in the order of the text."""
    items: tuple["JsonValue", ...] | None = None
    """Of an array."""

    def get(self, *path: str) -> "JsonValue | None":
        """The value under these keys; `None` when there is none or a step is no object."""
        here: JsonValue = self
        for key in path:
            member = (here.members or {}).get(key)
            if member is None:
                return None
            here = member.value
        return here


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonMember:
    """A key and its value."""

    key: Span
    value: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonDocument:
    """A whole text. `duplicates` are the key paths that are written more than once, with their offsets."""

    content: bytes
    root: JsonValue
    duplicates: tuple[tuple[Path, int], ...] = field(default=())


def scan_json(content: bytes, *, comments: bool = False) -> JsonDocument:
    """The values of `content` with their places; `comments` also allows trailing commas.

    Raises:
        JsonSyntaxError: Not JSON, nested deeper than `MAX_DEPTH`, or not UTF-8.
    """
    scanner = _Scanner(content, comments=comments)
    position = scanner.skip(len(BOM) if content.startswith(BOM) else 0)
    root, position = scanner.value(position, ())
    position = scanner.skip(position)
    if position != len(content):
        raise JsonSyntaxError("text after the end of the document", position)
    return JsonDocument(content=content, root=root, duplicates=tuple(scanner.duplicates))


def line_and_column(content: bytes, offset: int) -> str:
    """`line:column` of a byte offset, both from 1, columns in characters."""
    start = content.rfind(b"\n", 0, offset) + 1
    line = content.count(b"\n", 0, offset) + 1
    return f"{line}:{len(content[start:offset].decode('utf-8', 'replace')) + 1}"


def find_key_paths(root: JsonValue, at: str) -> Iterator[tuple[str, ...]]:
    """All ways to read `at` (keys joined by dots) as keys that are there; keys may hold dots themselves."""
    yield from _key_paths(root, at, ())


def _key_paths(here: JsonValue, at: str, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, member in (here.members or {}).items():
        if key == at:
            yield (*above, key)
        elif at.startswith(f"{key}."):
            yield from _key_paths(member.value, at[len(key) + 1 :], (*above, key))


class _Scanner:
    def __init__(self, content: bytes, *, comments: bool) -> None:
        self._content = content
        self._comments = comments
        self._blank = _BLANK_OR_COMMENT if comments else _BLANK
        self.duplicates: list[tuple[Path, int]] = []

    def skip(self, position: int) -> int:
        match = self._blank.match(self._content, position)
        return match.end() if match else position

    def value(self, position: int, path: Path) -> tuple[JsonValue, int]:
        if len(path) > MAX_DEPTH:
            raise JsonSyntaxError("nested too deeply", position)
        first = self._content[position : position + 1]
        if first == b"{":
            return self._object(position, path)
        if first == b"[":
            return self._array(position, path)
        if first == b'"':
            text, end = self._string(position)
            return JsonValue(value=text, span=Span(start=position, end=end)), end
        for word, meaning in _WORDS:
            if self._content.startswith(word, position):
                end = position + len(word)
                return JsonValue(value=meaning, span=Span(start=position, end=end)), end
        match = _NUMBER.match(self._content, position)
        if match is None:
            raise JsonSyntaxError("a value was expected", position)
        try:
            number = json.loads(match.group())
        except ValueError as error:
            raise JsonSyntaxError("a number with too many digits", position) from error
        return JsonValue(value=number, span=Span(start=position, end=match.end())), match.end()

    def _object(self, start: int, path: Path) -> tuple[JsonValue, int]:
        members: dict[str, JsonMember] = {}
        position, more = self._first(start + 1, b"}")
        while more:
            key_start = position
            key, position = self._string(position)
            key_span = Span(start=key_start, end=position)
            position = self.skip(position)
            if self._content[position : position + 1] != b":":
                raise JsonSyntaxError("a colon was expected", position)
            if key in members:
                self.duplicates.append(((*path, key), key_start))
            value, position = self.value(self.skip(position + 1), (*path, key))
            members[key] = JsonMember(key=key_span, value=value)
            position, more = self._next(position, b"}")
        end = position + 1
        plain = {key: member.value.value for key, member in members.items()}
        return JsonValue(value=plain, span=Span(start=start, end=end), members=members), end

    def _array(self, start: int, path: Path) -> tuple[JsonValue, int]:
        items: list[JsonValue] = []
        position, more = self._first(start + 1, b"]")
        while more:
            value, position = self.value(position, (*path, len(items)))
            items.append(value)
            position, more = self._next(position, b"]")
        end = position + 1
        return JsonValue(value=[item.value for item in items], span=Span(start=start, end=end), items=tuple(items)), end

    def _first(self, position: int, closing: bytes) -> tuple[int, bool]:
        """To the first element, or to the closing bracket of an empty container (then false)."""
        position = self.skip(position)
        return position, self._content[position : position + 1] != closing

    def _next(self, position: int, closing: bytes) -> tuple[int, bool]:
        """Over the comma to the next element, or to the closing bracket (then false)."""
        position = self.skip(position)
        sign = self._content[position : position + 1]
        if sign == closing:
            return position, False
        if sign != b",":
            raise JsonSyntaxError("a comma or the end was expected", position)
        position = self.skip(position + 1)
        if self._comments and self._content[position : position + 1] == closing:
            return position, False
        return position, True

    def _string(self, position: int) -> tuple[str, int]:
        match = _STRING.match(self._content, position)
        if match is None:
            raise JsonSyntaxError("a string was expected", position)
        raw = match.group()
        try:
            text = json.loads(raw) if b"\\" in raw else raw[1:-1].decode("utf-8")
        except ValueError as error:
            raise JsonSyntaxError("a string that is no JSON text", position) from error
        return str(text), match.end()
