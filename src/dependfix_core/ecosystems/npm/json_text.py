"""Changes of JSON text that leave everything else as it is: style, key order, spaces, line ends."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import BOM, JsonSyntaxError

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_BRACKET: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_BLANK: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN: Final = re.compile(rb"[^\s,}\]]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonStyle:
    """How a text is laid out."""

    indent: str | None
    """One level; `None` when it stands on one line."""
    newline: str
    colon: str = ": "

    @classmethod
    def of(cls, content: bytes) -> "JsonStyle":
        """Read off the first member; two spaces where there is none."""
        match = re.match(rb'\s*[{\[](\s*)("(?:[^"\\]|\\.)*"(\s*:\s*))?', content.removeprefix(BOM))
        lead = match[1].decode() if match else "\n  "
        colon = match[3].decode() if match and match[3] else ": "
        newline = "\r\n" if b"\r\n" in content else "\n"
        if "\n" not in lead:
            first = match is not None and match[2] is not None
            return cls(indent=None if first else "  ", newline=newline, colon=colon if first else ": ")
        return cls(indent=lead.rpartition("\n")[2], newline=newline, colon=colon)

    def render(self, value: Any, depth: int) -> bytes:
        """`value` as it stands at a nesting depth (the document's own members have depth 1)."""
        if self.indent is None:
            separators = ("," if self.colon == ":" else ", ", self.colon)
            return json.dumps(value, ensure_ascii=False, separators=separators).encode()
        text = json.dumps(value, ensure_ascii=False, indent=self.indent, separators=(",", self.colon))
        return text.replace("\n", self.newline + self.indent * depth).encode()

    def lead(self, depth: int) -> bytes:
        """What stands before a member at that depth."""
        return b"" if self.indent is None else (self.newline + self.indent * depth).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A member of an object's text, by offsets."""

    key: str
    key_start: int
    value_start: int
    value_end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectText:
    """An object's text, by offsets."""

    start: int
    end: int
    members: tuple[Member, ...]


def members_at(content: bytes, start: int) -> ObjectText:
    """The object that begins at `start`. Values are stepped over, not read.

    Raises:
        JsonSyntaxError: No object begins there, or it does not end.
    """
    return nested_at(content, start)[0]


def nested_at(
    content: bytes, start: int, open_values: frozenset[str] = frozenset(), *, closing: bytes = b""
) -> tuple[ObjectText, dict[str, ObjectText]]:
    """As `members_at`, with the objects under `open_values` by key.

    `closing` is what ends a value of this object in a laid out text: a line
    end, the indentation, and the bracket. Stepping over values takes it as a
    shortcut where what it leads to is balanced.
    """
    inner: dict[str, ObjectText] = {}
    if content[start : start + 1] != b"{":
        raise JsonSyntaxError("an object was expected", start)
    found: list[Member] = []
    position = _blank(content, start + 1)
    while content[position : position + 1] != b"}":
        key = _STRING.match(content, position)
        if key is None:
            raise JsonSyntaxError("a key was expected", position)
        colon = _blank(content, key.end())
        if content[colon : colon + 1] != b":":
            raise JsonSyntaxError("a colon was expected", colon)
        value_start = _blank(content, colon + 1)
        raw = key.group()
        text = str(json.loads(raw)) if b"\\" in raw else raw[1:-1].decode()
        if text in open_values and content[value_start : value_start + 1] == b"{":
            deeper = JsonStyle.of(content)
            inner[text] = nested_at(content, value_start, closing=deeper.lead(2) + b"}" if deeper.indent else b"")[0]
            value_end = inner[text].end
        else:
            value_end = _shortcut(content, value_start, closing) or _after_value(content, value_start)
        found.append(Member(key=text, key_start=position, value_start=value_start, value_end=value_end))
        position = _blank(content, value_end)
        if content[position : position + 1] == b",":
            position = _blank(content, position + 1)
        elif content[position : position + 1] != b"}":
            raise JsonSyntaxError("a comma or the end was expected", position)
    return ObjectText(start=start, end=position + 1, members=tuple(found)), inner


def _shortcut(content: bytes, start: int, closing: bytes) -> int:
    """Behind the first `closing` if the object that begins at `start` is balanced there, else 0."""
    if not closing or content[start : start + 1] != b"{":
        return 0
    end = content.find(closing, start)
    if end < 0:
        return 0
    end += len(closing)
    return end if content.count(b"{", start, end) == content.count(b"}", start, end) else 0


def root_at(content: bytes) -> int:
    """Where the document's value begins."""
    return _blank(content, len(BOM) if content.startswith(BOM) else 0)


def _blank(content: bytes, position: int) -> int:
    match = _BLANK.match(content, position)
    return match.end() if match else position


def _after_value(content: bytes, start: int) -> int:
    first = content[start : start + 1]
    if first == b'"':
        match = _STRING.match(content, start)
    elif first in (b"{", b"["):
        depth = 0
        for token in _STRING_OR_BRACKET.finditer(content, start):
            sign = token.group()
            if sign in (b"{", b"["):
                depth += 1
            elif sign in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    return token.end()
        raise JsonSyntaxError("a value does not end", start)
    else:
        match = _PLAIN.match(content, start)
    if match is None:
        raise JsonSyntaxError("a value was expected", start)
    return match.end()


def rebuilt_object(
    content: bytes,
    object_text: ObjectText,
    *,
    style: JsonStyle,
    depth: int,
    values: Mapping[str, bytes],
    removed: frozenset[str] = frozenset(),
    order: Sequence[str] = (),
) -> tuple[int, bytes]:
    """An object with some values replaced, some members gone and some added; its end before, and its new text.

    Args:
        content: The document.
        object_text: The object.
        style: For what is added.
        depth: Nesting depth of the object's members.
        values: Key → new text of its value. Keys that are not there are added.
        removed: Keys to leave out.
        order: All keys of the result; where it is empty, added ones go to the end.
    """
    members, end = object_text.members, object_text.end
    texts: dict[str, bytes] = {}
    previous = object_text.start + 1
    for member in members:
        if member.key not in removed:
            lead = content[previous : member.key_start].replace(b",", b"", 1)
            middle = content[member.key_start : member.value_start]
            value = values.get(member.key, content[member.value_start : member.value_end])
            texts[member.key] = lead + middle + value
        previous = member.value_end
    tail = content[previous : end - 1].replace(b",", b"", 1) if members else b""
    for key, value in values.items():
        if key not in texts:
            name = json.dumps(key, ensure_ascii=False).encode()
            texts[key] = style.lead(depth) + name + style.colon.encode() + value
    if texts and not members:
        tail = style.lead(depth - 1)
    if not texts:
        return end, b"{}"
    keys = [key for key in order if key in texts] if order else list(texts)
    separator = b"," if style.indent is not None or style.colon == ":" else b", "
    pieces = [texts[key] for key in keys]
    if style.indent is None:
        pieces = [piece.strip() for piece in pieces]
    return end, b"{" + separator.join(pieces) + tail + b"}"


def spliced(content: bytes, splices: Iterable[tuple[int, int, bytes]]) -> bytes:
    """`content` with some ranges replaced; they must not overlap."""
    pieces: list[bytes] = []
    position = 0
    for start, end, text in sorted(splices):
        pieces += [content[position:start], text]
        position = end
    return b"".join([*pieces, content[position:]])


# How npm orders the keys of its lockfile: what is no object first, then some names, then as people sort.
_PREFERRED: Final = (
    "name",
    "version",
    "lockfileVersion",
    "resolved",
    "integrity",
    "requires",
    "packages",
    "dependencies",
)
_PREFERRED_AT: Final = {name: index for index, name in enumerate(_PREFERRED)}
_COLLATION: Final = {sign: index for index, sign in enumerate("_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789")}
_LETTERS_FROM: Final = len(_COLLATION)


def people_order(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Sort key of JavaScript's `localeCompare` for what stands in names and paths: signs, digits, letters, case last."""
    return (
        tuple(_COLLATION.get(sign, _LETTERS_FROM + ord(sign.lower())) for sign in text),
        tuple(sign.isupper() for sign in text),
    )


def npm_ordered(value: Any) -> Any:
    """`value` with the keys of every object in npm's order."""
    if not isinstance(value, dict):
        return value
    return {key: npm_ordered(inner) for key, inner in sorted(value.items(), key=npm_order)}


def npm_order(item: tuple[str, Any]) -> tuple[bool, int, Any]:
    """Sort key of a member in npm's order."""
    key, value = item
    preferred = _PREFERRED_AT.get(key)
    return (
        isinstance(value, dict),
        preferred if preferred is not None else len(_PREFERRED),
        () if preferred is not None else people_order(key),
    )
