"""The values of a YAML lockfile that a package manager wrote, fast.

pnpm and yarn write a small part of YAML, one key a line. That part is read
line by line here; whatever does not fit its grammar exactly sends the whole
text to the YAML parser, so both ways give the same values (a property test
compares them). Every scalar is read as text.
"""

import json
import re
from typing import Any, Final

import yaml

from dependfix_core.ecosystems.npm.json_spans import BOM
from dependfix_core.ecosystems.npm.yaml_spans import MAX_DEPTH, YamlSyntaxError

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

MAX_KEY: Final = 1000
"""YAML's own limit for a key on one line is 1024."""

# A plain scalar that YAML reads as exactly this text: no indicator in front, no `: `, no ` #`, no double space.
# Every piece starts with one of `:`, `#` and space, which the runs between exclude: matching is linear.
_PLAIN_BODY: Final = r"[A-Za-z0-9_./<=^~+$(;][^\s:#]*(?:(?::(?=\S)|(?<=\S)#| (?=[^\s#:]))[^\s:#]*)*"
_SINGLE: Final = r"'[^']*(?:''[^']*)*'"
_DOUBLE: Final = r'"[^"\\]*(?:\\["\\bfnrt][^"\\]*)*"'
_LINE: Final = re.compile(rf"( *)(?:({_SINGLE}|{_DOUBLE})|({_PLAIN_BODY})):(?: (.+))?")
_LONG_KEY: Final = re.compile(rf"( *)\? ({_SINGLE}|{_DOUBLE}|{_PLAIN_BODY})")
_ITEM: Final = re.compile(r"( *)- (.+)")
_SCALAR: Final = re.compile(rf"(?:({_PLAIN_BODY})|({_SINGLE})|({_DOUBLE}))")
# In braces and brackets fewer signs are safe.
_FLOW_RUN: Final = r"[A-Za-z0-9_./+=@~^<>*|;()-]*"
_FLOW_PLAIN: Final = rf"[A-Za-z0-9_./^~<=]{_FLOW_RUN}(?:(?::(?=[A-Za-z0-9_/])| (?=[A-Za-z0-9_./<=>|^~*])){_FLOW_RUN})*"
_FLOW_TEXT: Final = rf"(?:{_FLOW_PLAIN}|{_SINGLE})"
_FLOW_PAIR: Final = re.compile(rf"({_FLOW_TEXT}): ({_FLOW_TEXT})(?:, (?=[^\s])|$)")
_FLOW_ITEM: Final = re.compile(rf"({_FLOW_TEXT})(?:, (?=[^\s])|$)")
_UNSAFE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff\ufffe\uffff]|\r(?!\n)|\t")


class _OtherYamlError(Exception):
    """The text is no machine-written YAML of the kind that is read line by line."""


def read_documents(content: bytes) -> list[Any]:
    """The values of every document in `content`: text, `dict` or `list`; empty text for an empty one.

    Raises:
        YamlSyntaxError: Not YAML, a key that is written twice, or nested too deeply.
    """
    try:
        text = content.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlSyntaxError("not UTF-8", "") from error
    try:
        return _read_lines(text)
    except _OtherYamlError:
        return _read_yaml(text)


def _read_yaml(text: str) -> list[Any]:
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f"{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise YamlSyntaxError(error.problem or "not YAML", position) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlSyntaxError("not YAML", "") from error
    done: dict[int, Any] = {}
    return [_plain(node, 0, done) for node in nodes]


def _plain(node: yaml.Node, depth: int, done: dict[int, Any]) -> Any:
    position = f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"
    if depth > MAX_DEPTH:
        raise YamlSyntaxError("nested too deeply", position)
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if id(node) in done:
        return done[id(node)]
    if isinstance(node, yaml.SequenceNode):
        done[id(node)] = items = [_plain(item, depth + 1, done) for item in node.value]
        return items
    members: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise YamlSyntaxError("a key that is no text", position)
        if key.value in members:
            raise YamlSyntaxError("a key is written twice", f"{key.start_mark.line + 1}:{key.start_mark.column + 1}")
        members[key.value] = _plain(value, depth + 1, done)
    done[id(node)] = members
    return members


def _read_lines(text: str) -> list[Any]:
    if _UNSAFE.search(text):
        raise _OtherYamlError
    lines = text.replace("\r\n", "\n").split("\n")
    marks = [number for number, line in enumerate(lines) if line == "---"]
    documents: list[Any] = []
    start = 0
    for mark in [*marks, len(lines)]:
        has_text = any(line and not line.lstrip(" ").startswith("#") for line in lines[start:mark])
        if has_text or start:
            documents.append(_read_document(lines, start, mark))
        start = mark + 1
    return documents


def _read_document(lines: list[str], start: int, end: int) -> Any:
    root: dict[str, Any] = {}
    # The open mappings from the root down: indentation of their keys, and the mapping.
    open_at: list[tuple[int, dict[str, Any]]] = [(0, root)]
    indent, current = 0, root
    pending: str | None = None  # the last key, when its value has not been seen yet
    number = start
    match_line, match_scalar = _LINE.fullmatch, _SCALAR.fullmatch
    while number < end:
        line = lines[number]
        number += 1
        if not line or line.lstrip(" ").startswith("#"):
            continue
        match = match_line(line)
        if match is None:
            if (item := _ITEM.fullmatch(line)) is not None and pending is not None:
                number = _read_items(lines, number - 1, end, len(item[1]), indent, current, pending)
                pending = None
                continue
            if (long_key := _LONG_KEY.fullmatch(line)) is None or number >= end:
                raise _OtherYamlError
            here, key = len(long_key[1]), _scalar(long_key[2])
            following = lines[number]
            number += 1
            if following == f"{long_key[1]}:":
                value = None
            elif following.startswith(f"{long_key[1]}: "):
                value = following[here + 2 :]
            else:
                raise _OtherYamlError
        else:
            spaces, quoted, plain, value = match.groups()
            here = len(spaces)
            key = _scalar(quoted) if quoted else plain
        if here > indent:
            if pending is None:
                raise _OtherYamlError
            deeper: dict[str, Any] = {}
            current[pending] = deeper
            open_at.append((here, deeper))
            if len(open_at) > MAX_DEPTH:
                raise _OtherYamlError
            indent, current = here, deeper
        elif here < indent:
            while here < indent:
                open_at.pop()
                indent, current = open_at[-1]
            if here != indent:
                raise _OtherYamlError
        if key in current or not 0 < len(key) <= MAX_KEY:
            raise _OtherYamlError  # the YAML parser knows what that is, and where
        if value is None:
            current[key] = ""
            pending = key
            continue
        pending = None
        scalar = match_scalar(value)
        if scalar is not None:
            text = scalar[1]
            current[key] = text if text is not None else _scalar(value)
        elif value in ("|", "|-"):
            current[key], number = _read_block(lines, number, end, indent, chomp=value == "|-")
        else:
            current[key] = _flow(value)
    return root or ""


def _read_items(
    lines: list[str], number: int, end: int, here: int, indent: int, current: dict[str, Any], key: str
) -> int:
    """A list of scalars under `key`; returns the line after it."""
    if here <= indent:
        raise _OtherYamlError
    items: list[str] = []
    while number < end:
        line = lines[number]
        if line and not line.lstrip(" ").startswith("#"):
            match = _ITEM.fullmatch(line)
            if match is None or len(match[1]) != here:
                if len(line) - len(line.lstrip(" ")) > indent:
                    raise _OtherYamlError
                break
            items.append(_scalar(match[2]))
        number += 1
    current[key] = items
    return number


def _read_block(lines: list[str], number: int, end: int, indent: int, *, chomp: bool) -> tuple[str, int]:
    """A literal block scalar below a key at `indent`; its text, and the line after it."""
    body: list[str] = []
    width = 0
    while number < end:
        line = lines[number]
        spaces = len(line) - len(line.lstrip(" "))
        if line.strip(" ") == "":
            if spaces > indent:
                raise _OtherYamlError  # blank lines with spaces have rules of their own
            body.append("")
        elif spaces <= indent:
            break
        else:
            width = width or spaces
            if spaces < width or (not body and spaces != width):
                raise _OtherYamlError
            body.append(line[width:])
        number += 1
    if not width or body[0] == "":
        raise _OtherYamlError
    if number == len(lines) and lines[-1] != "":
        raise _OtherYamlError  # the text ends within the block
    while body[-1] == "":
        body.pop()
    return "\n".join(body) + ("" if chomp else "\n"), number


def _scalar(text: str) -> str:
    first = text[0]
    if first == "'":
        if re.fullmatch(_SINGLE, text) is None:
            raise _OtherYamlError
        return text[1:-1].replace("''", "'")
    if first == '"':
        if re.fullmatch(_DOUBLE, text) is None:
            raise _OtherYamlError
        return str(json.loads(text)) if "\\" in text else text[1:-1]
    if re.fullmatch(_PLAIN_BODY, text) is None:
        raise _OtherYamlError
    return text


def _flow(text: str) -> Any:
    """`{a: b}` and `[a, b]` of scalars on one line."""
    body = text[1:-1]
    if text == "{}":
        return {}
    if text == "[]":
        return []
    position = 0
    if text[0] == "{" and text[-1] == "}":
        members: dict[str, str] = {}
        while position < len(body):
            pair = _FLOW_PAIR.match(body, position)
            if pair is None or (key := _flow_text(pair[1])) in members:
                raise _OtherYamlError
            members[key] = _flow_text(pair[2])
            position = pair.end()
        return members
    if text[0] == "[" and text[-1] == "]":
        items: list[str] = []
        while position < len(body):
            item = _FLOW_ITEM.match(body, position)
            if item is None:
                raise _OtherYamlError
            items.append(_flow_text(item[1]))
            position = item.end()
        return items
    raise _OtherYamlError


def _flow_text(text: str) -> str:
    return text[1:-1].replace("''", "'") if text[0] == "'" else text
