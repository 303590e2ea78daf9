"""Where every value of a small YAML file stands, so that one of them can be changed and nothing else.

For files that people write (`pnpm-workspace.yaml`, `.yarnrc.yml`). Every
scalar is read as text: a version `1.10` stays `1.10`.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from dependfix_core.ecosystems.npm.json_spans import BOM
from dependfix_core.model.lock import Span

MAX_DEPTH: Final = 100

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
Path = tuple[str | int, ...]


class YamlSyntaxError(ValueError):
    """Not the YAML that is read here. `position` is `line:column`, or empty."""

    def __init__(self, message: str, position: str) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlValue:
    """A value with the span of its text; `None` where the text stands elsewhere (an alias)."""

    value: Any
    """Text, `dict` or `list`."""
    span: Span | None
    flow: bool = False
    """Written in braces or brackets."""
    members: dict[str, "YamlMember"] | None = None
    items: tuple["YamlValue", ...] | None = None

    def get(self, *path: str) -> "YamlValue | None":
        """The value under these keys; `None` when there is none or a step is no mapping."""
        here: YamlValue = self
        for key in path:
            member = (here.members or {}).get(key)
            if member is None:
                return None
            here = member.value
        return here


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlMember:
    """A key and its value."""

    key: Span
    value: YamlValue


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlDocument:
    """A whole text; `root` is `None` when it holds nothing but comments."""

    content: bytes
    root: YamlValue | None
    duplicates: tuple[tuple[Path, str], ...] = ()
    """Key paths that are written more than once, with `line:column`."""


def scan_yaml(content: bytes) -> YamlDocument:
    """The values of a text that holds one document.

    Raises:
        YamlSyntaxError: Not YAML, several documents, not UTF-8, or nested deeper than `MAX_DEPTH`.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlSyntaxError("not UTF-8", "") from error
    shift = len(BOM) if content.startswith(BOM) else 0
    text = text.removeprefix("\ufeff")
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise YamlSyntaxError(error.problem or "not YAML", _position(mark) if mark else "") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlSyntaxError("not YAML", "") from error
    if node is None:
        return YamlDocument(content=content, root=None)
    reader = _Reader(text, shift)
    return YamlDocument(content=content, root=reader.value(node, ()), duplicates=tuple(reader.duplicates))


def _position(mark: Any) -> str:
    return f"{mark.line + 1}:{mark.column + 1}"


class _Reader:
    def __init__(self, text: str, shift: int) -> None:
        self._text = text
        self._shift = shift
        self._ascii = text.isascii()
        self._read: dict[int, YamlValue | None] = {}
        self.duplicates: list[tuple[Path, str]] = []

    def value(self, node: yaml.Node, path: Path) -> YamlValue:
        if len(path) > MAX_DEPTH:
            raise YamlSyntaxError("nested too deeply", _position(node.start_mark))
        if id(node) in self._read:
            return self._again(node)
        self._read[id(node)] = None
        value = self._new(node, path)
        self._read[id(node)] = value
        return value

    def _again(self, node: yaml.Node) -> YamlValue:
        """What an alias stands for. Its text is the anchor's, so a scalar has no span here."""
        value = self._read[id(node)]
        if value is None:
            raise YamlSyntaxError("an anchor that holds itself", _position(node.start_mark))
        return replace(value, span=None)

    def _new(self, node: yaml.Node, path: Path) -> YamlValue:
        span = self._span(node)
        if isinstance(node, yaml.MappingNode):
            members: dict[str, YamlMember] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise YamlSyntaxError("a key that is no text", _position(key.start_mark))
                if key.value in members:
                    self.duplicates.append(((*path, key.value), _position(key.start_mark)))
                members[key.value] = YamlMember(key=self._span(key), value=self.value(value, (*path, key.value)))
            plain = {key: member.value.value for key, member in members.items()}
            return YamlValue(value=plain, span=span, flow=bool(node.flow_style), members=members)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.value(item, (*path, at)) for at, item in enumerate(node.value))
            return YamlValue(value=[item.value for item in items], span=span, flow=bool(node.flow_style), items=items)
        return YamlValue(value=str(node.value), span=span)

    def _span(self, node: yaml.Node) -> Span:
        return Span(start=self._offset(node.start_mark.index), end=self._offset(node.end_mark.index))

    def _offset(self, index: int) -> int:
        if self._ascii:
            return index + self._shift
        return len(self._text[:index].encode("utf-8")) + self._shift
