"""yarn.lock of yarn 1 as locked copies with their edges.

The format is yarn's own: a header of quoted or bare descriptors, fields below
it, and lists of requirements. It stores neither manifests nor flags.

Source: https://classic.yarnpkg.com/lang/en/docs/yarn-lock/
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import BOM
from dependfix_core.ecosystems.npm.parsed import Root, unreadable
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.ecosystems.npm.selectors import Selector, split_name, yarn_selector
from dependfix_core.ecosystems.npm.specifiers import kind_of, public_text, read_specifier, registry_source
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Edge,
    Instance,
    LazyEdges,
    Problem,
    Source,
    SourceKind,
)

FORMAT: Final = "yarn-classic"
HEADER_LINE: Final = "# yarn lockfile v1"
_QUOTED: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_WORD: Final = rf"(?:{_QUOTED}|[^\s\",:]+)"
_HEADER: Final = re.compile(rf"{_WORD}(?:, {_WORD})*:")
_WORDS: Final = re.compile(_WORD)
_PAIR: Final = re.compile(rf"( +)({_QUOTED}|[^\s\":]+) ({_QUOTED}|[^\s\"]\S*)")
_LIST: Final = re.compile(rf"( +)({_QUOTED}|[^\s\":]+):")
_SECTIONS: Final = (("dependencies", DependencyKind.PROD), ("optionalDependencies", DependencyKind.OPTIONAL))


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One entry: its descriptors and its fields, lists as mappings."""

    descriptors: tuple[str, ...]
    fields: Mapping[str, Any]
    line: int
    """Of the header, from 1."""

    @property
    def where(self) -> str:
        """The first descriptor, which names the copy."""
        return self.descriptors[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """One entry of the root's `resolutions`.

    yarn 1 matches its key against the path from the root: `a/b` is the `b` of
    the root's own `a`; only `**/` reaches deeper.
    """

    selector: Selector
    value: str
    is_effective: bool
    """Whether its path can be met at all."""

    @classmethod
    def of(cls, key: str, value: str, direct: frozenset[str]) -> "Resolution":
        """As written; `direct` are the names that manifests ask for."""
        selector = yarn_selector(key)
        parents = selector.parents
        effective = not parents or "**" in key or (len(parents) == 1 and parents[0] in direct)
        return cls(selector=selector, value=value, is_effective=effective)

    def covers(self, parent: str, name: str) -> bool:
        """Whether it decides what `name` means when `parent` asks for it."""
        if not self.is_effective or self.selector.package != name:
            return False
        return not self.selector.parents or self.selector.parents[-1] == parent


@dataclass(frozen=True, kw_only=True, slots=True)
class YarnClassicLock:
    """A lockfile that could be read."""

    path: str
    blocks: tuple[Block, ...]
    index: Mapping[str, str]
    """Descriptor → `where`."""
    problems: tuple[Problem, ...] = ()
    member_folders: tuple[str, ...] = ()
    declared: None = None
    overrides: None = None
    resolutions: tuple["Resolution", ...] = ()
    """The root's, once they are known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    format: str = FORMAT
    format_version: str = "1"

    def with_resolutions(self, resolutions: Mapping[str, str], direct: Iterable[str]) -> "YarnClassicLock":
        """The same lock, read with the root's `resolutions` in mind; `direct` are the names that manifests ask for."""
        names = frozenset(direct)
        return replace(self, resolutions=tuple(Resolution.of(key, value, names) for key, value in resolutions.items()))

    def resolve(self, parent: str, name: str, text: str) -> str | None:
        """The copy that `text` under `name` leads to when `parent` (a package name, empty for a manifest) asks for it.

        A resolution's own text stands in a header too.
        """
        for resolution in self.resolutions:
            if resolution.covers(parent, name):
                forced = self.index.get(f"{name}@{resolution.value}")
                if forced is not None:
                    return forced
        return self.index.get(f"{name}@{text}")

    def target(self, folder: str, constraint: Constraint) -> str | None:
        """The copy whose header holds the requirement's descriptor."""
        del folder
        descriptor = descriptor_of(constraint.name, constraint.package, constraint.requirement)
        return self.resolve("", constraint.name, descriptor[len(constraint.name) + 1 :])

    def instances(self, roots: Iterable[Root], manifest_folders: Iterable[str]) -> dict[str, Instance]:
        """Locked copies by their first descriptor; flags follow from the roots."""
        del manifest_folders
        by_where = {block.where: block for block in self.blocks}

        def neighbours(where: str) -> Iterator[tuple[str, bool]]:
            block = by_where[where]
            for section, kind in _SECTIONS:
                for name, text in block.fields.get(section, {}).items():
                    target = self.resolve(package_of(block), name, text)
                    if target is not None:
                        yield target, kind is DependencyKind.OPTIONAL

        dev, optional = dev_and_optional(roots, neighbours)
        return {where: _instance(self, block, dev, optional) for where, block in by_where.items()}


def package_of(block: Block) -> str:
    """Real name of the package that an entry locks."""
    real = block.fields.get("name")
    return real if isinstance(real, str) else read_specifier(*split_name(block.where)).package


def descriptor_of(name: str, package: str, requirement: str) -> str:
    """The text by which yarn 1 finds a copy."""
    return f"{name}@npm:{package}@{requirement}" if package != name else f"{name}@{requirement}"


def read_yarn_classic(path: str, content: bytes) -> YarnClassicLock | Problem:
    """The lock, or why it cannot be read."""
    try:
        text = content.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError:
        return unreadable(path, "", "not UTF-8")
    blocks: list[Block] = []
    index: dict[str, str] = {}
    fields: dict[str, Any] = {}
    inner: dict[str, str] | None = None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] != " ":
            if _HEADER.fullmatch(line) is None:
                return unreadable(path, f"{number}:1", "not the header of an entry")
            descriptors = tuple(_text(word) for word in _WORDS.findall(line))
            fields, inner = {}, None
            block = Block(descriptors=descriptors, fields=fields, line=number)
            for descriptor in descriptors:
                if descriptor in index:
                    return unreadable(path, f"{number}:1", f"the key {descriptor:.80} is written twice")
                index[descriptor] = block.where
            blocks.append(block)
            continue
        pair, listed = _PAIR.fullmatch(line), None
        if pair is None:
            listed = _LIST.fullmatch(line)
        match = pair or listed
        if match is None or not blocks or len(match[1]) not in (2, 4):
            return unreadable(path, f"{number}:1", "not a field of an entry")
        key = _text(match[2])
        if len(match[1]) == 4:
            if inner is None or pair is None:
                return unreadable(path, f"{number}:1", "a requirement outside of a list")
            holder: dict[str, Any] = inner
        else:
            holder, inner = fields, None
        if key in holder:
            return unreadable(path, f"{number}:3", f"the key {key:.80} is written twice")
        if pair is not None:
            holder[key] = _text(pair[3])
        else:
            inner = holder[key] = {}
    for block in blocks:
        if not isinstance(block.fields.get("version"), str):
            return unreadable(path, f"{block.line}:1", "an entry without a version")
    return YarnClassicLock(path=path, blocks=tuple(blocks), index=index)


def _text(word: str) -> str:
    if not word.startswith('"'):
        return word
    if "\\" not in word:
        return word[1:-1]
    try:
        return str(json.loads(word))
    except ValueError:
        return word[1:-1]


def _instance(lock: YarnClassicLock, block: Block, dev: frozenset[str], optional: frozenset[str]) -> Instance:
    text, name = split_name(block.where)[1], package_of(block)
    version = block.fields["version"]
    resolved = block.fields.get("resolved")
    return Instance(
        where=block.where,
        name=name,
        version=version,
        edges=LazyEdges(_edges, lock, block),
        source=_source(name, text, resolved if isinstance(resolved, str) else ""),
        dev=block.where in dev,
        optional=block.where in optional,
        aliases=block.descriptors,
        path=lock.path,
        raw=block.fields,
    )


def _source(name: str, requirement: str, resolved: str) -> Source:
    asked = read_specifier(name, requirement).source
    if asked.kind is not SourceKind.REGISTRY:
        return Source(kind=asked.kind, text=public_text(resolved) or asked.text)
    if not resolved:
        return Source()
    at = resolved.find(f"/{name}/-/")
    if resolved.startswith("http"):
        return registry_source(resolved[:at]) if at > 0 else Source(text=public_text(resolved))
    kind = kind_of(resolved)
    # An offline mirror: the file lies beside the project, and so would the new one have to.
    return Source(kind=SourceKind.FILE if kind is SourceKind.REGISTRY else kind, text=public_text(resolved))


def _edges(lock: YarnClassicLock, block: Block) -> tuple[Edge, ...]:
    return tuple(
        Edge(
            name=name,
            requirement=read_specifier(name, text).requirement,
            kind=kind,
            target=lock.resolve(package_of(block), name, text),
        )
        for section, kind in _SECTIONS
        for name, text in block.fields.get(section, {}).items()
    )
