"""Writes moves into a `pdm.lock`, with its content hash.

Source: `PDMLock.format_lockfile` of pdm 2 (lock versions 4.4 and 4.5).
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.block_text import Block, split_blocks
from dependfix_core.ecosystems.pip.environments import Environments
from dependfix_core.ecosystems.pip.file_address import AddressBook
from dependfix_core.ecosystems.pip.pdm_text import dependency_lines
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice, with_newlines
from dependfix_core.ecosystems.pip.toml_entry import set_key
from dependfix_core.ecosystems.pip.toml_text import (
    KeyPath,
    TomlText,
    parse_toml,
    read_toml,
    strings_of,
    table_of,
    tables_of,
)
from dependfix_core.ecosystems.pip.toml_write import basic_string, lines_list
from dependfix_core.ecosystems.pip.wheels import is_installable
from dependfix_core.ecosystems.pip.write_task import CannotWriteError, LockTask, MovedCopy
from dependfix_core.model.records import Release, ReleaseFile

_PACKAGE: Final[KeyPath] = ("package", 0)
_NAME: Final = re.compile(rb'^name = "([^"\r\n]*)"', re.MULTILINE)
_VERSION: Final = re.compile(rb'^version = "([^"\r\n]*)"', re.MULTILINE)


def write_pdm(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The lock after the moves, with the content hash of the manifest after the edits."""
    try:
        return {task.unit.unit: _Writer(task).written()}
    except CannotWriteError as error:
        return error.refusal


def pdm_content_hashes(pyproject: bytes) -> tuple[str, ...]:
    """The digests that pdm's versions keep of a manifest, the present one first.

    Source: `PyProject.content_hash` of pdm 2; locks before 4.5 counted the
    overrides alone of what decides a resolution, and groups as they are spelled.
    """
    data = parse_toml(pyproject)
    project, pdm = table_of(data.get("project")), table_of(table_of(data.get("tool")).get("pdm"))
    groups: dict[str, list[Any]] = {}
    for table in (data.get("dependency-groups"), pdm.get("dev-dependencies")):
        for name, listed in table_of(table).items():
            groups.setdefault(canonicalize_name(name), []).extend(listed)
    relevant = {
        "sources": pdm.get("source", []),
        "dependencies": project.get("dependencies", []),
        "optional-dependencies": project.get("optional-dependencies", {}),
        "requires-python": project.get("requires-python", ""),
    }
    resolution = table_of(pdm.get("resolution"))
    present = {"dev-dependencies": groups, "resolution": resolution}
    former = {"dev-dependencies": pdm.get("dev-dependencies", {}), "overrides": resolution.get("overrides", {})}
    return tuple(
        f"sha256:{sha256(json.dumps({**relevant, **more}, sort_keys=True).encode()).hexdigest()}"
        for more in (present, former)
    )


def listed_files(files: Sequence[ReleaseFile], environments: Environments) -> list[ReleaseFile]:
    """The files of a release that pdm lists for a project: wheels that fit none of its pythons are left out.

    Source: `EnvSpec` of dep-logic, which decides for pdm 2.
    """
    minors = {(python.major, python.minor) for python in environments.pythons}
    return [
        file
        for file in files
        if is_installable(file.filename) and (not file.filename.endswith(".whl") or _lists(file.filename, minors))
    ]


def _lists(wheel: str, minors: set[tuple[int, int]]) -> bool:
    try:
        tags = parse_wheel_filename(wheel)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return any(_fits(tag.interpreter, tag.abi, minors) for tag in tags)


def _fits(interpreter: str, abi: str, minors: set[tuple[int, int]]) -> bool:
    kind, major, minor = interpreter[:2], interpreter[2:3], interpreter[3:]
    if not major.isdigit() or not (minor.isdigit() or not minor):
        return False
    if abi == "abi3":
        return kind == "cp" and any(python >= (int(major), int(minor or 0)) for python in minors)
    if abi != "none" and not abi.partition("_")[0].replace("pypy", "pp").startswith(interpreter):
        return False
    return any(str(python[0]) == major and minor in ("", str(python[1])) for python in minors)


class _Writer:
    def __init__(self, task: LockTask) -> None:
        self.task = task
        self.content = task.originals[task.unit.unit]
        self.newline = newline_of(self.content)
        self.blocks = split_blocks(self.content, "package")
        self.end = self.blocks[0].span.start if self.blocks else len(self.content)
        self.head = read_toml(self.content[: self.end])
        self.by_entry: dict[tuple[str, str], list[Block]] = {}
        for block in self.blocks:
            name, version = _NAME.search(block.content), _VERSION.search(block.content)
            key = (canonicalize_name(name[1].decode()) if name else "", version[1].decode() if version else "")
            self.by_entry.setdefault(key, []).append(block)

    def written(self) -> bytes:
        targets = tables_of(self.head.value(("metadata", "targets")))
        if self.task.moved and any(target.keys() - {"requires_python"} for target in targets):
            raise CannotWriteError("the lock is for certain platforms only, whose files pdm has to pick")
        replacements: list[Replacement] = []
        for copy in self.task.moved:
            for block in self._blocks_of(copy):
                content = b"" if copy.version is None else self._moved(copy, block).content
                replacements.append((block.span, content))
        replacements += self._content_hash()
        written = splice(self.content, replacements)
        if all(copy.version is not None for copy in self.task.moved):
            return written
        # The last entry is followed by no empty line, whichever it is.
        return written.rstrip(b"\r\n") + (self.newline if self.content.endswith(b"\n") else b"")

    def _blocks_of(self, copy: MovedCopy) -> list[Block]:
        """The entry of the package and one for each set of extras that is asked for."""
        before = copy.before
        found = self.by_entry.get((before.name, before.version), [])
        if len(found) != len(before.raw["entries"]):
            raise CannotWriteError(f"{before.name} {before.version} is not laid out as pdm writes it")
        return found

    def _moved(self, copy: MovedCopy, block: Block) -> Block:
        text = block.text
        entry = text.value(_PACKAGE)
        new, old = copy.new, copy.old
        assert new is not None, "asked for before the writer starts"
        if old is None or old.dependencies is None:
            raise CannotWriteError(f"what {copy.name} {copy.before.version} asked for is not known")
        replacements: list[Replacement] = [(text.spans[*_PACKAGE, "version"], basic_string(str(copy.version)).encode())]
        wanted = new.requires_runtime.get("python", "")
        python = basic_string(wanted) if wanted else None
        replacements += set_key(text, _PACKAGE, "requires_python", python, before=["summary", "groups"])
        summary = new.extra.get("summary")
        if isinstance(summary, str) and "summary" in entry:
            replacements += set_key(text, _PACKAGE, "summary", basic_string(summary))
        replacements += self._dependencies(copy, text, old, new)
        replacements += self._files(copy, text)
        return block.moved(replacements)

    def _dependencies(self, copy: MovedCopy, text: TomlText, old: Release, new: Release) -> list[Replacement]:
        entry = text.value(_PACKAGE)
        lines = dependency_lines(
            strings_of(entry.get("dependencies")), old, new, extras=strings_of(entry.get("extras"))
        )
        if lines is None:
            raise CannotWriteError(f"{copy.name} asks for something in words that pdm may spell differently")
        value = lines_list([basic_string(line) for line in lines]) if lines else None
        return set_key(text, _PACKAGE, "dependencies", value, before=["files"])

    def _files(self, copy: MovedCopy, text: TomlText) -> list[Replacement]:
        rows = tables_of(text.value((*_PACKAGE, "files")))
        keys = {key for row in rows for key in row}
        if keys not in ({"file", "hash"}, {"url", "hash"}):
            raise CannotWriteError(f"the entry of {copy.name} lists its files in a way that is not known")
        addressed = "url" in keys
        locked = {_file_name(row): str(row.get("url", "")) for row in rows}
        usual = {file.filename for file in listed_files(copy.old_files, self.task.environments)}
        if not locked.keys() <= usual:
            raise CannotWriteError(f"the files of {copy.name} {copy.before.version} are not those that the index lists")
        book = AddressBook(locked, copy.old_files)
        items = []
        for file in listed_files(copy.files, self.task.environments):
            digest = file.hashes.get("sha256")
            place = book.address(file) if addressed else file.filename
            if not digest or place is None:
                detail = f"the hash or address of {file.filename} is not known"
                raise CannotWriteError(detail, reason="integrity-unavailable")
            items.append((place, digest))
        if not items:
            detail = f"the index lists no file of {copy.name} {copy.version} for the project's pythons"
            raise CannotWriteError(detail, reason="integrity-unavailable")
        key = "url" if addressed else "file"
        lines = [f'{{{key} = {basic_string(place)}, hash = "sha256:{digest}"}}' for place, digest in sorted(items)]
        return [(text.spans[*_PACKAGE, "files"], with_newlines(lines_list(lines), self.newline))]

    def _content_hash(self) -> list[Replacement]:
        manifest = next(iter(self.task.unit.manifests), None)
        if manifest is None or self.task.files[manifest] == self.task.originals[manifest]:
            return []
        path: KeyPath = ("metadata", "content_hash")
        if self.head.value(("metadata", "lock_inputs")) is not None:
            raise CannotWriteError("the lock keeps the project's inputs, which pdm has to write")
        written, before = self.head.value(path), pdm_content_hashes(self.task.originals[manifest])
        if written not in before:
            raise CannotWriteError("the content hash of the lock is not that of the manifest: the two are out of step")
        after = pdm_content_hashes(self.task.files[manifest])
        return [(self.head.spans[path], basic_string(after[before.index(written)]).encode())]


def _file_name(row: Mapping[str, Any]) -> str:
    return str(row.get("file") or str(row.get("url", "")).rpartition("/")[2].partition("#")[0])
