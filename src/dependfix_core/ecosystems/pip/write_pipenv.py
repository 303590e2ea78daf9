"""Writes moves into a `Pipfile.lock`, and the hash of its Pipfile."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.json_text import JsonPath, json_spans
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice
from dependfix_core.ecosystems.pip.toml_text import UTF8_BOM, parse_toml, table_of
from dependfix_core.ecosystems.pip.write_task import LockTask, MovedCopy
from dependfix_core.model.lock import Span

_OWN_SECTIONS: Final = frozenset({"source", "packages", "dev-packages", "requires", "scripts", "pipfile", "pipenv"})


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, refusal: WriteRefusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def write_pipenv(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The lock after the moves, with the hash of the Pipfile after the edits."""
    try:
        return {task.unit.unit: _Writer(task).written()}
    except _Refused as refused:
        return refused.refusal


def pipfile_hash(pipfile: bytes) -> str:
    """The digest that pipenv keeps of a Pipfile in the lock, by its newest rule."""
    return pipfile_hashes(pipfile)[0]


def pipfile_hashes(pipfile: bytes) -> tuple[str, str]:
    """The digests that pipenv's versions compute of a Pipfile: with canonical names since 2026, else as written.

    Source: `calculate_hash` of pipenv's project file, and `get_hash` of plette before.
    """
    data = parse_toml(pipfile)
    sections = {"default": data.get("packages", {}), "develop": data.get("dev-packages", {})}
    sections |= {name: values for name, values in data.items() if name not in {*_OWN_SECTIONS, *sections}}
    meta: dict[str, Any] = {"sources": data.get("source", []), "requires": data.get("requires", {})}
    canonical = {
        name: {canonicalize_name(key): value for key, value in values.items()} if isinstance(values, dict) else values
        for name, values in sections.items()
    }
    return _digest({"_meta": meta, **canonical}), _digest({"_meta": meta, **sections})


def _digest(relevant: Mapping[str, Any]) -> str:
    return sha256(json.dumps(relevant, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


class _Writer:
    def __init__(self, task: LockTask) -> None:
        self.task = task
        self.content = task.originals[task.unit.unit]
        start = len(UTF8_BOM) if self.content.startswith(UTF8_BOM) else 0
        self.spans = json_spans(self.content, start)
        self.data: Mapping[str, Any] = json.loads(self.content[start:])
        self.newline = newline_of(self.content)

    def written(self) -> bytes:
        replacements: list[Replacement] = []
        for copy in self.task.moved:
            section, _, key = copy.before.where.partition(".")
            path: JsonPath = (section, key)
            if path not in self.spans:
                detail = f"{copy.before.where} is not in the lock"
                raise _Refused(WriteRefusal(reason="tool-required", detail=detail))
            replacements += self._without(path) if copy.version is None else self._entry(path, copy)
        replacements += self._hash()
        return splice(self.content, replacements)

    def _entry(self, path: JsonPath, copy: MovedCopy) -> list[Replacement]:
        found = [(self.spans[*path, "version"], json.dumps(f"=={copy.version}").encode())]
        hashes = sorted({f"sha256:{file.hashes.get('sha256', '')}" for file in copy.files})
        if not hashes or "sha256:" in hashes:
            detail = f"the index does not give all hashes of {copy.name} {copy.version}"
            raise _Refused(WriteRefusal(reason="integrity-unavailable", detail=detail))
        if (*path, "hashes") in self.spans:
            found.append((self.spans[*path, "hashes"], self._list((*path, "hashes"), hashes)))
        return [*found, *self._markers(path, copy)]

    def _list(self, path: JsonPath, items: list[str]) -> bytes:
        """The strings in the form of the list that is there: one a line, or all on one."""
        span = self.spans[path]
        old = self.content[span.start : span.end]
        first = self.spans.get((*path, 0))
        lead = self.content[span.start + 1 : first.start] if first else b""
        second = self.spans.get((*path, 1))
        if second and first:
            separator = self.content[first.end : second.start]
        else:
            separator = b"," + lead if b"\n" in lead else b", "
        last = self.spans.get((*path, len(table_or_list(self.data, path)) - 1))
        tail = self.content[last.end : span.end - 1] if last else b""
        assert old.startswith(b"["), "the reader found a list"
        return b"[" + lead + separator.join(json.dumps(item).encode() for item in items) + tail + b"]"

    def _markers(self, path: JsonPath, copy: MovedCopy) -> list[Replacement]:
        """The part of the marker that says on which pythons the release runs."""
        entry = table_of(copy.before.raw)
        old = copy.old.requires_runtime.get("python", "") if copy.old is not None else None
        new = copy.new.requires_runtime.get("python", "") if copy.new is not None else old
        written = str(entry.get("markers", ""))
        if old == new:
            return []
        if written and self._is_of_pipfile(copy, written):
            return []
        wanted = python_marker(new or "")
        before = python_marker(old) if old is not None else None
        if wanted is None:
            raise _Refused(
                WriteRefusal(reason="tool-required", detail=f"{copy.name} {copy.version} needs python {new}")
            )
        if not written:
            # Entries of requirements without a release's own marker stay without one.
            return self._added(path, "markers", wanted) if not before and wanted and before is not None else []
        if before is None and re.fullmatch(r"python_(?:full_)?version >= '[\d.]+'", written):
            before = written
        if not before or before not in written or not wanted:
            detail = f"the marker of {copy.name} says more than its python"
            raise _Refused(WriteRefusal(reason="tool-required", detail=detail))
        return [(self.spans[*path, "markers"], json.dumps(written.replace(before, wanted)).encode())]

    def _is_of_pipfile(self, copy: MovedCopy, written: str) -> bool:
        """Whether the marker is the one that the Pipfile gives, which takes the place of the release's own."""
        mask = self.task.environments.mask
        declared = (one for one in self.task.unit.constraints if one.target == copy.before.where and one.marker)
        return any(mask(one.marker, None) == mask(written, None) for one in declared)

    def _added(self, path: JsonPath, key: str, value: str) -> list[Replacement]:
        """A key at its place in the order of the entry's keys."""
        entry = table_or_list(self.data, path)
        after = [name for name in entry if name < key]
        if not after:
            return []
        span = self.spans[*path, after[-1]]
        line = self.content.rfind(b"\n", 0, self.spans[*path, next(iter(entry))].start) + 1
        start = self.content.find(b'"', line)
        indent = self.content[line:start] if line and not self.content[line:start].strip() else b""
        lead = self.newline + indent if indent else b" "
        text = b"," + lead + f"{json.dumps(key)}: {json.dumps(value)}".encode()
        return [(Span(start=span.end, end=span.end), text)]

    def _without(self, path: JsonPath) -> list[Replacement]:
        """The entry taken out with its key and one comma."""
        section = table_or_list(self.data, path[:-1])
        names = list(section)
        index = names.index(path[-1])
        span = self.spans[path]
        if len(names) == 1:
            whole = self.spans[path[:-1]]
            return [(whole, b"{}")]
        if index:
            previous = self.spans[*path[:-1], names[index - 1]]
            return [(Span(start=previous.end, end=span.end), b"")]
        start = self.spans[path[:-1]].start + 1
        following = self.spans[*path[:-1], names[1]]
        key = self.content.rfind(json.dumps(names[1]).encode(), span.end, following.start)
        first_key = self.content.find(b'"', start)
        return [(Span(start=first_key, end=key), b"")]

    def _hash(self) -> list[Replacement]:
        manifest = next(iter(self.task.unit.manifests), None)
        if manifest is None or self.task.files[manifest] == self.task.originals[manifest]:
            return []
        path: JsonPath = ("_meta", "hash", "sha256")
        known = self.task.unit.settings.get("content_hash")
        before = pipfile_hashes(self.task.originals[manifest])
        if path not in self.spans or known not in before:
            detail = "the hash in the lock is not that of the Pipfile: the two are out of step"
            raise _Refused(WriteRefusal(reason="tool-required", detail=detail))
        after = pipfile_hashes(self.task.files[manifest])[before.index(known)]
        return [(self.spans[path], json.dumps(after).encode())]


def table_or_list(data: Any, path: JsonPath) -> Any:
    """The value at a path that is there."""
    for part in path:
        data = data[part]
    return data


def python_marker(requires_python: str) -> str | None:
    """`Requires-Python` as pipenv writes it into a marker; `None` for what is not certain.

    Source: `marker_from_specifier` of pipenv's utils.
    """
    try:
        parts = sorted(
            SpecifierSet(requires_python),
            key=lambda one: (Version(one.version.removesuffix(".*")), one.operator),
        )
    except (InvalidSpecifier, InvalidVersion):
        return None
    texts = []
    for one in parts:
        version = one.version.removesuffix(".*")
        if one.operator not in {">=", "<", "!="}:
            return None
        variable = "python_full_version" if version.count(".") > 1 else "python_version"
        texts.append(f"{variable} {one.operator} '{version}'")
    return " and ".join(texts)
