"""Writes moves into a `poetry.lock`, in the form of the poetry that made it, with its content hash."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.block_text import Block, split_blocks
from dependfix_core.ecosystems.pip.needs import Need
from dependfix_core.ecosystems.pip.poetry_text import dependency_value, extras_table, raw_name
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice, with_newlines
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlText, parse_toml, spell_path, table_of
from dependfix_core.ecosystems.pip.toml_write import basic_string, lines_list, string_list
from dependfix_core.ecosystems.pip.wheels import is_installable
from dependfix_core.ecosystems.pip.write_task import LockTask, MovedCopy
from dependfix_core.model.lock import Span
from dependfix_core.model.records import Release, ReleaseDependency, ReleaseFile

_PACKAGE: Final[KeyPath] = ("package", 0)
_LEGACY_KEYS: Final = ("dependencies", "source", "extras", "dev-dependencies")
_PROJECT_KEYS: Final = ("requires-python", "dependencies", "optional-dependencies")


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, refusal: WriteRefusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def _tool(detail: str) -> _Refused:
    return _Refused(WriteRefusal(reason="tool-required", detail=detail))


def write_poetry(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The lock after the moves, with the content hash of the manifest after the edits."""
    try:
        return {task.unit.unit: _Writer(task).written()}
    except _Refused as refused:
        return refused.refusal


def content_hashes(pyproject: bytes) -> tuple[str, ...]:
    """The digests that poetry's versions compute of a manifest, the newest first, one for each rule there was.

    Source: `_get_content_hash` of poetry's locker, 1.x and 2.x.
    """
    data = parse_toml(pyproject)
    project, groups = table_of(data.get("project")), table_of(data.get("dependency-groups"))
    poetry = table_of(table_of(data.get("tool")).get("poetry"))
    return (
        _digest(_relevant(project, groups, poetry)),
        _digest(_relevant(project, {}, poetry)),
        _digest({key: poetry.get(key) for key in (*_LEGACY_KEYS, "group") if key in _LEGACY_KEYS or key in poetry}),
        # Before 1.2 there were no groups.
        _digest({key: poetry.get(key) for key in _LEGACY_KEYS}),
    )


def _relevant(project: Mapping[str, Any], groups: Mapping[str, Any], poetry: Mapping[str, Any]) -> dict[str, Any]:
    from_project = {key: project[key] for key in _PROJECT_KEYS if project.get(key) is not None}
    from_poetry = {
        key: poetry.get(key)
        for key in (*_LEGACY_KEYS, "group")
        if poetry.get(key) is not None or (key in _LEGACY_KEYS and not from_project and not groups)
    }
    relevant: dict[str, Any] = {}
    if from_project:
        relevant["project"] = from_project
    if groups:
        relevant["dependency-groups"] = dict(groups)
    if not relevant:
        return from_poetry
    return {**relevant, "tool": {"poetry": from_poetry}}


def _digest(relevant: Mapping[str, Any]) -> str:
    return sha256(json.dumps(relevant, sort_keys=True, default=str).encode()).hexdigest()


class _Writer:
    def __init__(self, task: LockTask) -> None:
        self.task = task
        self.content = task.originals[task.unit.unit]
        self.newline = newline_of(self.content)
        self.blocks = split_blocks(self.content, "package")
        if len(self.blocks) != len(task.unit.instances):
            raise _tool("the lock is not laid out as poetry writes it")
        self.places = {where: index for index, where in enumerate(task.unit.instances)}
        end = self.blocks[-1].span.end if self.blocks else 0
        self.tail = Block(span=Span(start=end, end=len(self.content)), content=self.content[end:])
        major = task.unit.tool_version.partition(".")[0]
        self.is_new = task.unit.format_version == "2.1" or major == "2"

    def written(self) -> bytes:
        tail = self.tail.text
        replacements: list[Replacement] = []
        tail_replacements: list[Replacement] = []
        self._require_order()
        for copy in self.task.moved:
            block = self.blocks[self.places[copy.before.where]]
            tail_replacements += self._tail_files(copy, tail)
            if copy.version is None:
                replacements.append((block.span, b""))
            else:
                replacements.append((block.span, self._moved(copy, block).content))
        tail_replacements += self._content_hash(tail)
        replacements.append((self.tail.span, splice(self.tail.content, tail_replacements)))
        return splice(self.content, replacements)

    def _require_order(self) -> None:
        """Entries of one name stand in the order of their versions."""
        versions = {copy.before.where: copy.version for copy in self.task.moved}
        for copy in self.task.moved:
            copies = [one for one in self.task.unit.instances.values() if one.name == copy.name]
            texts = [versions.get(one.where, one.version) for one in copies]
            kept = [text for text in texts if text is not None]
            try:
                if len(kept) > 1 and (len(set(kept)) < len(kept) or sorted(kept, key=Version) != kept):
                    raise _tool(f"the copies of {copy.name} change their order or become one")
            except InvalidVersion:
                continue

    # One entry.

    def _moved(self, copy: MovedCopy, block: Block) -> Block:
        text = block.text
        entry = text.value(_PACKAGE)
        if entry.get("name") != copy.before.raw.get("name") or entry.get("version") != copy.before.version:
            raise _tool("the lock is not laid out as poetry writes it")
        new = copy.new
        assert new is not None, "asked for before the writer starts"
        replacements = [self._value(text, "version", basic_string(copy.version or ""))]
        summary = new.extra.get("summary")
        if isinstance(summary, str) and "description" in entry:
            replacements.append(self._value(text, "description", basic_string(summary)))
        if "python-versions" in entry:
            # From an index of the project's own poetry takes it out of the package, else from the index's list.
            packaged = new.extra.get("requires-python") if "source" in entry else None
            wanted = packaged or new.requires_runtime.get("python") or "*"
            replacements.append(self._value(text, "python-versions", basic_string(wanted)))
        if "files" in entry:
            replacements.append(self._value(text, "files", self._files(copy, table=entry)))
        replacements += self._dependencies(copy, text, new)
        replacements += self._extras(copy, text, new)
        return block.moved(replacements)

    def _value(self, text: TomlText, key: str, value: str) -> Replacement:
        return text.spans[*_PACKAGE, key], with_newlines(value, self.newline)

    def _files(self, copy: MovedCopy, table: Mapping[str, Any]) -> str:
        keys = {key for one in table.get("files", []) if isinstance(one, dict) for key in one}
        if keys - {"file", "hash"}:
            raise _tool(f"the entry of {copy.name} lists its files in a way that is not known")
        return _file_list(copy)

    def _dependencies(self, copy: MovedCopy, text: TomlText, new: Release) -> list[Replacement]:
        before, after = copy.needs_before, copy.needs_after
        if before is None or after is None:
            raise _tool(f"what {copy.name} asks for is not known")
        path: KeyPath = (*_PACKAGE, "dependencies")
        locked: dict[str, str] = {canonicalize_name(name): name for name in table_of(text.value(path))}
        known = copy.old.dependencies if copy.old is not None else None
        old = _by_name(known or (), before)
        wanted = _by_name(new.dependencies or (), after)
        entries: dict[str, str] = {}
        for name, dependencies in wanted.items():
            if name in locked and _meaning(old.get(name, ())) == _meaning(dependencies):
                span = text.spans.get((*path, locked[name]))
                if span is None:
                    raise _tool(f"the entry of {copy.name} is not laid out as poetry writes it")
                entries[_key(locked[name], dependencies)] = text.content[span.start : span.end].decode()
                continue
            value = dependency_value(dependencies, is_new=self.is_new)
            if value is None:
                raise _tool(f"{copy.name} asks for {name} in words that poetry may spell differently")
            if not self.is_new and "!=" in value:
                raise _tool(f"{copy.name} asks for {name} in words that this poetry spells differently")
            entries[_key(locked.get(name), dependencies)] = value
        # What the lock lists beyond what the record of the old version asks for stays.
        for name in locked.keys() - old.keys() - wanted.keys() if known is not None else ():
            span = text.spans[*path, locked[name]]
            entries[locked[name]] = text.content[span.start : span.end].decode()
        return self._table(text, path, dict(sorted(entries.items(), key=lambda one: canonicalize_name(one[0]))))

    def _extras(self, copy: MovedCopy, text: TomlText, new: Release) -> list[Replacement]:
        known = copy.old.dependencies if copy.old is not None else None
        old = extras_table(known, is_new=self.is_new) if known is not None else None
        wanted = extras_table(new.dependencies or (), is_new=self.is_new)
        path: KeyPath = (*_PACKAGE, "extras")
        if old == wanted and old is not None:
            return []
        if wanted is None:
            if copy.old is not None and _extras_meaning(copy.old) == _extras_meaning(new):
                return []
            raise _tool(f"the extras of {copy.name} changed in words that poetry may spell differently")
        return self._table(text, path, {name: string_list(texts) for name, texts in wanted.items()})

    def _table(self, text: TomlText, path: KeyPath, entries: Mapping[str, str]) -> list[Replacement]:
        """The sub-table with exactly these entries; made, changed or taken out."""
        body = "".join(f"{spell_path((name,))} = {value}\n" for name, value in entries.items())
        table = text.table(path)
        if table is None:
            if not entries:
                return []
            main = text.table(_PACKAGE)
            dependencies = text.table((*_PACKAGE, "dependencies")) if path[-1] == "extras" else None
            after = dependencies or main
            assert after is not None, "a block begins with its header"
            header = f"\n[{'.'.join(str(part) for part in path if isinstance(part, str))}]\n"
            return [(Span(start=after.end, end=after.end), with_newlines(header + body, self.newline))]
        start = text.content.find(b"\n", table.header.end) + 1
        if not entries:
            # The blank line before the header goes with it.
            blank = text.content.rfind(b"\n", 0, max(table.header.start - 1, 0)) + 1
            return [(Span(start=blank, end=table.end), b"")]
        return [(Span(start=start, end=table.end), with_newlines(body, self.newline))]

    # The end of the lock.

    def _tail_files(self, copy: MovedCopy, tail: TomlText) -> list[Replacement]:
        """Lock versions up to 1.1 list the files of all packages in one table."""
        files = table_of(tail.value(("metadata", "files")))
        name = next((key for key in files if canonicalize_name(key) == copy.name), None)
        if name is None:
            return []
        if len([one for one in self.task.unit.instances.values() if one.name == copy.name]) > 1:
            raise _tool(f"the files of all copies of {copy.name} are in one list")
        span = tail.spans["metadata", "files", name]
        if copy.version is None:
            line = tail.content.rfind(b"\n", 0, span.start) + 1
            return [(Span(start=line, end=tail.content.find(b"\n", span.end) + 1), b"")]
        return [(span, with_newlines(_file_list(copy), self.newline))]

    def _content_hash(self, tail: TomlText) -> list[Replacement]:
        """Recomputed by the rule that gave the digest that is there; the manifest alone counts."""
        manifest = next(iter(self.task.unit.manifests), None)
        if manifest is None or self.task.files[manifest] == self.task.originals[manifest]:
            return []
        written = tail.value(("metadata", "content-hash"))
        before = content_hashes(self.task.originals[manifest])
        after = content_hashes(self.task.files[manifest])
        if written not in before:
            raise _tool("the content hash of the lock is not that of the manifest: the two are out of step")
        return [(tail.spans["metadata", "content-hash"], basic_string(after[before.index(written)]).encode())]


def _file_list(copy: MovedCopy) -> str:
    items = []
    for file in sorted(copy.files, key=lambda one: one.filename):
        if not is_installable(file.filename):
            continue
        if not file.hashes.get("sha256"):
            detail = f"the hash of {file.filename} is not known"
            raise _Refused(WriteRefusal(reason="integrity-unavailable", detail=detail))
        items.append(f"{{file = {basic_string(file.filename)}, hash = {basic_string(_digest_of(file))}}}")
    return lines_list(items)


def _key(locked: str | None, dependencies: Sequence[ReleaseDependency]) -> str:
    """The name as the new release spells it, where the record has that."""
    return raw_name(dependencies[0]) if dependencies[0].text or locked is None else locked


def _digest_of(file: ReleaseFile) -> str:
    return f"sha256:{file.hashes['sha256']}"


def _by_name(dependencies: Iterable[ReleaseDependency], needs: Sequence[Need]) -> dict[str, list[ReleaseDependency]]:
    """The published requirements that count in the project, by canonical name."""
    counting = {(need.name, need.text, need.marker) for need in needs}
    found: dict[str, list[ReleaseDependency]] = {}
    for one in dependencies:
        name = canonicalize_name(one.name)
        if (name, one.requirement, one.marker) in counting:
            found.setdefault(name, []).append(one)
    return found


def _meaning(dependencies: Iterable[ReleaseDependency]) -> list[tuple[object, ...]]:
    return sorted(
        (tuple(sorted(one.requirement.replace(" ", "").split(","))), one.marker, one.extras) for one in dependencies
    )


def _extras_meaning(release: Release) -> list[tuple[object, ...]]:
    return [(one[0], one[1], one[2]) for one in _meaning(d for d in release.dependencies or () if "extra" in d.marker)]
