"""A plan's edits in the texts of package.json, pnpm-workspace.yaml, .yarnrc.yml, .npmrc and bunfig.toml.

An edit names a key path joined by dots; names of packages and selectors hold
dots too, so the path is matched against the keys that are there. Only the
announced text changes.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dependfix_core.ecosystems.npm.json_spans import (
    JsonSyntaxError,
    JsonValue,
    find_key_paths,
    scan_json,
)
from dependfix_core.ecosystems.npm.json_text import JsonStyle, members_at, rebuilt_object, spliced
from dependfix_core.ecosystems.npm.selectors import pnpm_steps
from dependfix_core.ecosystems.npm.yaml_spans import YamlSyntaxError, YamlValue, scan_yaml
from dependfix_core.ecosystems.npm.yaml_text import yaml_scalar
from dependfix_core.model.plan import Edit

_TABLES: Final = ("pnpm.overrides", "overrides", "resolutions")


class EditError(ValueError):
    """An edit that cannot be made: the text is not what the plan saw, or its place is not there."""


def edited_file(path: str, content: bytes | None, edits: Iterable[Edit]) -> bytes:
    """The file after all `edits`; `content` is `None` for one that is not there yet.

    Raises:
        EditError: One of them cannot be made.
    """
    name = posixpath.basename(path)
    write = _WRITERS.get(name)
    if write is None:
        raise EditError(f"{path} is no file that is edited here")
    text = content if content is not None else b""
    try:
        for edit in edits:
            text = write(text, edit)
    except (JsonSyntaxError, YamlSyntaxError) as error:
        raise EditError(f"{path} cannot be read: {error}") from error
    return text


# package.json


def _edit_json(content: bytes, edit: Edit) -> bytes:
    root = scan_json(content).root
    if edit.from_text is not None:
        return _replace_json(content, root, edit)
    table, keys = _new_place(edit.at)
    return _add_json(content, root, (*table.split("."), *keys), edit.to_text)


def _replace_json(content: bytes, root: JsonValue, edit: Edit) -> bytes:
    paths = list(find_key_paths(root, edit.at))
    if edit.at.startswith("overrides.") and not paths:
        paths = [("overrides", *pnpm_steps(edit.at[len("overrides.") :]))]
    for path in paths:
        value = root.get(*path)
        if value is None or not isinstance(value.value, str):
            continue
        text = _replaced(value.value, edit)
        if text is not None:
            raw = json.dumps(text, ensure_ascii=not content[value.span.start : value.span.end].isascii())
            if content[value.span.start : value.span.end].isascii():
                raw = json.dumps(text)
            return spliced(content, [(value.span.start, value.span.end, raw.encode())])
    raise EditError(f"{edit.at} does not read `{edit.from_text}`")


def _replaced(old: str, edit: Edit) -> str | None:
    """The whole new text: what stands before the requirement (an alias, a protocol) is kept."""
    if edit.from_text is None:
        return None
    if old == edit.from_text:
        return edit.to_text
    if (
        edit.from_text
        and old.startswith(("npm:", "workspace:"))
        and old.endswith((f"@{edit.from_text}", f":{edit.from_text}"))
    ):
        return old[: -len(edit.from_text)] + edit.to_text
    return None


def _new_place(at: str) -> tuple[str, tuple[str, ...]]:
    """Table and keys of an entry that is added; npm nests what is narrowed by a parent."""
    for table in _TABLES:
        if at.startswith(f"{table}."):
            selector = at[len(table) + 1 :]
            return table, tuple(pnpm_steps(selector)) if table == "overrides" else (selector,)
    raise EditError(f"nothing is added at {at}")


def _add_json(content: bytes, root: JsonValue, path: tuple[str, ...], text: str) -> bytes:
    style = JsonStyle.of(content)
    here = root
    depth = 0
    while depth < len(path) - 1:
        member = (here.members or {}).get(path[depth])
        if member is None or member.value.members is None:
            break
        here = member.value
        depth += 1
    key, rest = path[depth], path[depth + 1 :]
    there = (here.members or {}).get(key)
    if there is not None:
        if not rest or not isinstance(there.value.value, str):
            raise EditError(f"{'.'.join(path)} is there already")
        # npm: a version for the parent itself moves to its `.` key.
        nested: object = {".": there.value.value}
    else:
        nested = None
    value: object = text
    for step in reversed(rest):
        value = {step: value}
    if isinstance(nested, dict) and isinstance(value, dict):
        value = {**nested, **value}
    rendered = style.render(value, depth + 1)
    there_text = members_at(content, here.span.start)
    end, rebuilt = rebuilt_object(content, there_text, style=style, depth=depth + 1, values={key: rendered})
    return spliced(content, [(here.span.start, end, rebuilt)])


# pnpm-workspace.yaml and .yarnrc.yml


def _edit_yaml(content: bytes, edit: Edit) -> bytes:
    document = scan_yaml(content)
    root = document.root
    if edit.from_text is None and edit.kind == "gate-exclusion":
        return _append_yaml(content, root, edit.at, edit.to_text)
    if edit.from_text is None:
        return _add_yaml(content, root, edit.at, edit.to_text)
    for path in _yaml_paths(root, edit.at, ()):
        value = root.get(*path) if root is not None else None
        if value is None or value.span is None or not isinstance(value.value, str):
            continue
        text = _replaced(value.value, edit)
        if text is not None:
            raw = content[value.span.start : value.span.end]
            return spliced(content, [(value.span.start, value.span.end, _as_quoted(text, raw[:1]).encode())])
    raise EditError(f"{edit.at} does not read `{edit.from_text}`")


def _as_quoted(text: str, quote: bytes) -> str:
    if quote == b'"':
        return json.dumps(text, ensure_ascii=False)
    if quote == b"'":
        return "'" + text.replace("'", "''") + "'"
    return yaml_scalar(text)


def _yaml_paths(here: YamlValue | None, at: str, above: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    for key, member in ((here.members if here is not None else None) or {}).items():
        if key == at:
            yield (*above, key)
        elif at.startswith(f"{key}."):
            yield from _yaml_paths(member.value, at[len(key) + 1 :], (*above, key))


def _newline(content: bytes) -> str:
    return "\r\n" if b"\r\n" in content else "\n"


def _add_yaml(content: bytes, root: YamlValue | None, at: str, text: str) -> bytes:
    table, _, key = at.partition(".")
    if table != "overrides" or not key:
        raise EditError(f"nothing is added at {at}")
    line = f"{yaml_scalar(key, is_key=True)}: {yaml_scalar(text)}"
    holder = root.get(table) if root is not None else None
    if holder is None:
        return _append_block(content, [f"{table}:", f"  {line}"])
    if holder.members is None or not holder.members or holder.flow or holder.span is None:
        raise EditError(f"{table} is not written as a block")
    if key in holder.members:
        raise EditError(f"{at} is there already")
    last = max(holder.members.values(), key=lambda member: member.key.start)
    first = min(holder.members.values(), key=lambda member: member.key.start)
    return _insert_line(content, last.value, _indent_of(content, first.key.start), line)


def _append_yaml(content: bytes, root: YamlValue | None, at: str, text: str) -> bytes:
    """One more item of a list."""
    holder = root.get(at) if root is not None else None
    item = yaml_scalar(text)
    if holder is None:
        return _append_block(content, [f"{at}:", f"  - {item}"])
    if holder.items is None or holder.span is None:
        raise EditError(f"{at} is no list")
    if text in holder.value:
        return content
    if holder.flow:
        end = holder.span.end - 1
        while content[end - 1 : end] in (b" ", b"\n", b"\r"):
            end -= 1
        piece = f", {item}" if holder.items else item
        return spliced(content, [(end, end, piece.encode())])
    last = holder.items[-1]
    if last.span is None:
        raise EditError(f"{at} ends in an alias")
    start = content.rfind(b"-", 0, last.span.start)
    return _insert_line(content, last, _indent_of(content, start), f"- {item}")


def _indent_of(content: bytes, offset: int) -> str:
    start = content.rfind(b"\n", 0, offset) + 1
    return content[start:offset].decode()


def _insert_line(content: bytes, last: YamlValue, indent: str, line: str) -> bytes:
    """A line below the one on which `last` ends, comments behind it included."""
    if last.span is None or not isinstance(last.value, str) or indent.strip(" "):
        raise EditError("the place for a new entry is not a plain block")
    end = content.find(b"\n", last.span.end)
    newline = _newline(content)
    if end < 0:
        return content + f"{newline}{indent}{line}".encode()
    return content[: end + 1] + f"{indent}{line}{newline}".encode() + content[end + 1 :]


def _append_block(content: bytes, lines: list[str]) -> bytes:
    newline = _newline(content)
    text = "".join(f"{line}{newline}" for line in lines)
    if content and not content.endswith(b"\n"):
        text = newline + text
    return content + text.encode()


# .npmrc and bunfig.toml: only release-age exclusions are added there.


def _edit_npmrc(content: bytes, edit: Edit) -> bytes:
    if edit.kind != "gate-exclusion":
        raise EditError(f"nothing is edited at {edit.at}")
    key = f"{edit.at}[]"
    newline = _newline(content)
    lines = list(re.finditer(rb"(?m)^[ \t]*" + re.escape(key.encode()) + rb"[ \t]*=[^\r\n]*\r?\n?", content))
    line = f"{key}={edit.to_text}"
    if re.search(rb"(?m)^[ \t]*" + re.escape(edit.at.encode()) + rb"[ \t]*=", content):
        raise EditError(f"{edit.at} is not written as a list")
    at = lines[-1].end() if lines else len(content)
    before = content[:at]
    start = newline if before and not before.endswith(b"\n") else ""
    return before + f"{start}{line}{newline}".encode() + content[at:]


def _edit_bunfig(content: bytes, edit: Edit) -> bytes:
    del content
    raise EditError(f"{edit.at} in bunfig.toml is left to people")


_WRITERS: Final[Mapping[str, Callable[[bytes, Edit], bytes]]] = {
    "package.json": _edit_json,
    "pnpm-workspace.yaml": _edit_yaml,
    ".yarnrc.yml": _edit_yaml,
    ".npmrc": _edit_npmrc,
    "bunfig.toml": _edit_bunfig,
}
