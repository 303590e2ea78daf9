"""Writes moves into a `pylock.toml` (PEP 751), in the form of whichever tool made it.

The format leaves its layout and the choice of files to the tools: uv lists the
wheels of the project's pythons, pdm all, pip the one that it would install. So
each file is written in the form of one that is there, and those are chosen
that stand for the ones that are there.

Source: https://packaging.python.org/en/latest/specifications/pylock-toml/
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.block_text import Block, split_blocks
from dependfix_core.ecosystems.pip.file_address import AddressBook
from dependfix_core.ecosystems.pip.pdm_text import dependency_lines
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice, with_newlines
from dependfix_core.ecosystems.pip.toml_entry import set_key
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlText, read_toml, strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.toml_write import basic_string, lines_list
from dependfix_core.ecosystems.pip.wheels import is_installable
from dependfix_core.ecosystems.pip.write_pdm import pdm_content_hashes
from dependfix_core.ecosystems.pip.write_task import CannotWriteError, LockTask, MovedCopy
from dependfix_core.ecosystems.pip.write_uv import keeps_wheel, upload_time_text
from dependfix_core.model.lock import Span
from dependfix_core.model.records import ReleaseFile

_ARRAY: Final = "packages"
_PACKAGE: Final[KeyPath] = (_ARRAY, 0)
_KNOWN: Final = frozenset(
    {"name", "version", "marker", "requires-python", "dependencies", "index", "sdist", "wheels", "tool"}
)


def write_pylock(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The lock after the moves; the format has no digest of a manifest, but pdm adds one."""
    try:
        return {task.unit.unit: _Writer(task).written()}
    except CannotWriteError as error:
        return error.refusal


class _Writer:
    def __init__(self, task: LockTask) -> None:
        self.task = task
        self.content = task.originals[task.unit.unit]
        self.newline = newline_of(self.content)
        self.blocks = split_blocks(self.content, _ARRAY)
        if len(self.blocks) != len(task.unit.instances):
            raise CannotWriteError("the lock is not laid out entry by entry")
        self.places = {where: index for index, where in enumerate(task.unit.instances)}

    def written(self) -> bytes:
        self._require_free()
        replacements: list[Replacement] = []
        for copy in self.task.moved:
            block = self.blocks[self.places[copy.before.where]]
            content = b"" if copy.version is None else self._moved(copy, block).content
            replacements.append((block.span, content))
        return splice(self.content, [*replacements, *self._digest()])

    def _require_free(self) -> None:
        """Nothing else in the lock hangs on what changes."""
        moved = {copy.name: copy.before.version for copy in self.task.moved}
        for one in self.task.unit.instances.values():
            for dependency in tables_of(one.raw.get("dependencies")):
                name = canonicalize_name(str(dependency.get("name", "")))
                if "version" in dependency and dependency["version"] == moved.get(name):
                    raise CannotWriteError(f"the entry of {one.name} names {name} by its version")

    def _digest(self) -> list[Replacement]:
        """Pdm keeps a digest of the manifest in a table of its own."""
        manifest = next(iter(self.task.unit.manifests), None)
        if manifest is None or self.task.files[manifest] == self.task.originals[manifest]:
            return []
        start = self.blocks[-1].span.end if self.blocks else 0
        tail = read_toml(self.content[start:])
        path: KeyPath = ("tool", "pdm", "hashes", "sha256")
        tool = table_of(table_of(tail.data.get("tool")).get("pdm"))
        if "lock_inputs" in tool:
            raise CannotWriteError("the lock keeps the project's inputs, which pdm has to write")
        if "hashes" not in tool:
            return []
        if tail.value(path) != _digest_of(self.task.originals[manifest]):
            raise CannotWriteError("the digest in the lock is not that of the manifest: the two are out of step")
        span = tail.spans[path]
        at = Span(start=start + span.start, end=start + span.end)
        return [(at, basic_string(_digest_of(self.task.files[manifest])).encode())]

    def _moved(self, copy: MovedCopy, block: Block) -> Block:
        text = block.text
        entry = text.value(_PACKAGE)
        if entry.get("name") != copy.before.raw.get("name") or entry.get("version") != copy.before.version:
            raise CannotWriteError("the lock is not laid out entry by entry")
        if strange := sorted(entry.keys() - _KNOWN):
            raise CannotWriteError(f"the entry of {copy.name} says {strange[0]}, which is of its own version")
        replacements: list[Replacement] = [(text.spans[*_PACKAGE, "version"], basic_string(str(copy.version)).encode())]
        if "requires-python" in entry and copy.new is not None:
            wanted = copy.new.requires_runtime.get("python", "")
            replacements += set_key(text, _PACKAGE, "requires-python", basic_string(wanted) if wanted else None)
        replacements += self._dependencies(copy, text)
        replacements += self._tool(copy, text)
        replacements += _Files(self.task, copy, text, self.newline).replacements()
        return block.moved(replacements)

    def _dependencies(self, copy: MovedCopy, text: TomlText) -> list[Replacement]:
        path: KeyPath = (*_PACKAGE, "dependencies")
        listed = tables_of(text.value(path))
        if not listed:
            return []
        before, after = copy.names_before, copy.names_after
        if before is None or after is None or before != after:
            raise CannotWriteError(f"{copy.name} asks for other packages than its entry lists")
        return []

    def _tool(self, copy: MovedCopy, text: TomlText) -> list[Replacement]:
        """Pdm notes the requirements of each package in a table of its own."""
        tool = text.value((*_PACKAGE, "tool"))
        if tool is None:
            return []
        written = table_of(table_of(tool).get("pdm")).get("dependencies")
        if table_of(tool).keys() != {"pdm"} or table_of(tool["pdm"]).keys() != {"dependencies"}:
            raise CannotWriteError(f"the entry of {copy.name} has notes of a tool that are not known")
        old, new = copy.old, copy.new
        lines = None
        if old is not None and old.dependencies is not None and new is not None:
            lines = dependency_lines(strings_of(written), old, new)
        if lines is None:
            raise CannotWriteError(f"{copy.name} asks for something in words that pdm may spell differently")
        value = lines_list([basic_string(line) for line in lines]) if lines else "[]"
        return [(text.spans[*_PACKAGE, "tool", "pdm", "dependencies"], with_newlines(value, self.newline))]


@dataclass(frozen=True, slots=True)
class _Listed:
    """One file as the entry has it."""

    span: Span
    """Of the inline table, or of the table with its header and sub-tables."""
    path: KeyPath
    table: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.table.get("name") or str(self.table.get("url", "")).rpartition("/")[2].partition("#")[0])


class _Files:
    """The sdist and the wheels of one entry."""

    def __init__(self, task: LockTask, copy: MovedCopy, text: TomlText, newline: bytes) -> None:
        self.task = task
        self.copy = copy
        self.text = text
        self.newline = newline
        entry = text.value(_PACKAGE)
        self.sdist = self._listed((*_PACKAGE, "sdist"), entry.get("sdist"))
        self.wheels = [
            found
            for index, table in enumerate(tables_of(entry.get("wheels")))
            if (found := self._listed((*_PACKAGE, "wheels", index), table)) is not None
        ]
        self.all = [*([self.sdist] if self.sdist is not None else []), *self.wheels]
        if not self.all or any("url" not in one.table for one in self.all):
            raise CannotWriteError(f"{copy.name} is not locked by addresses")
        self.book = AddressBook({one.name: str(one.table["url"]) for one in self.all}, copy.old_files)

    def _listed(self, path: KeyPath, table: object) -> _Listed | None:
        if not isinstance(table, dict):
            return None
        span = self.text.spans.get(path)
        if span is not None:
            return _Listed(span, path, table)
        tables = [one for one in self.text.tables if one.path[: len(path)] == path]
        if not tables or tables[0].path != path:
            raise CannotWriteError(f"the files of {self.copy.name} are laid out in a way that is not known")
        return _Listed(Span(start=tables[0].header.start, end=tables[-1].end), path, table)

    def replacements(self) -> list[Replacement]:
        sdist, wheels = self._chosen()
        if sdist is None and not wheels:
            detail = f"no file of {self.copy.name} {self.copy.version} takes the place of one that is locked"
            raise CannotWriteError(detail, reason="integrity-unavailable")
        return [*self._sdist(sdist), *self._wheels(wheels)]

    # Which files.

    def _chosen(self) -> tuple[ReleaseFile | None, list[ReleaseFile]]:
        """Those that the same choice gives for the new release as it gave for the old one."""
        new = [file for file in self.copy.files if is_installable(file.filename) and not file.yanked]
        old = [file for file in self.copy.old_files if is_installable(file.filename) and not file.yanked]
        locked = {one.name for one in self.wheels}
        reached = self.task.masks.get(self.copy.before.where, self.task.environments.everywhere)
        choices: tuple[Callable[[str], bool], ...] = (
            lambda _: True,
            lambda name: keeps_wheel(name, self.task.environments, reached),
        )
        sources = [file for file in new if not file.filename.endswith(".whl")]
        had_source = any(not file.filename.endswith(".whl") for file in old)
        # Where the old release had no sources, nothing tells whether they would be listed.
        is_listed = self.sdist is not None or (not had_source and bool(old))
        sdist = sources[0] if sources and is_listed and (self.sdist is not None or self._is_inline()) else None
        for choice in choices:
            if old and {file.filename for file in old if file.filename.endswith(".whl") and choice(file.filename)} == (
                locked
            ):
                return sdist, [file for file in new if file.filename.endswith(".whl") and choice(file.filename)]
        return sdist if self.sdist is not None else None, self._counterparts(new)

    def _is_inline(self) -> bool:
        return all(one.path in self.text.spans for one in self.all)

    def _counterparts(self, new: Sequence[ReleaseFile]) -> list[ReleaseFile]:
        """For each locked wheel the one of the new release that is for the same machines."""
        found: dict[str, ReleaseFile] = {}
        for one in self.wheels:
            tags = _tags(one.name)
            fitting = [file for file in new if tags & _tags(file.filename)]
            fitting = fitting or [file for file in new if Tag("py3", "none", "any") in _tags(file.filename)]
            if len(fitting) != 1:
                detail = f"no file of {self.copy.name} {self.copy.version} takes the place of {one.name}"
                raise CannotWriteError(detail, reason="integrity-unavailable")
            found[fitting[0].filename] = fitting[0]
        return list(found.values())

    # How they are written.

    def _sdist(self, file: ReleaseFile | None) -> list[Replacement]:
        if self.sdist is None:
            if file is None:
                return []
            item = self._rendered(self.wheels[0], file)
            return set_key(self.text, _PACKAGE, "sdist", item.decode(), before=["wheels"])
        if file is not None:
            return [(self.sdist.span, self._rendered(self.sdist, file))]
        if self.sdist.path in self.text.spans:
            return set_key(self.text, _PACKAGE, "sdist", None)
        return [(self._with_gap(self.sdist.span), b"")]

    def _wheels(self, files: Sequence[ReleaseFile]) -> list[Replacement]:
        path: KeyPath = (*_PACKAGE, "wheels")
        order = [one.name for one in self.wheels]
        files = sorted(files, key=lambda file: file.filename, reverse=len(order) > 1 and order[0] > order[-1])
        if not self.wheels:
            if files and not self._is_inline():
                raise CannotWriteError(f"{self.copy.name} {self.copy.version} has wheels, which the old one had not")
            items = [self._rendered(self.all[0], file).decode() for file in files]
            value = f"[{items[0]}]" if len(items) == 1 else lines_list(items)
            return set_key(self.text, _PACKAGE, "wheels", value) if items else []
        template = self.wheels[0]
        rendered = [self._rendered(template, file) for file in files]
        span = self.text.spans.get(path)
        if span is None:
            whole = Span(start=self.wheels[0].span.start, end=self.wheels[-1].span.end)
            gap = b"" if len(self.wheels) == 1 else self._between()
            if not rendered:
                return [(self._with_gap(whole), b"")]
            return [(whole, (gap or self.newline).join(rendered))]
        if not rendered:
            return set_key(self.text, _PACKAGE, "wheels", None)
        old = self.text.content[span.start : span.end]
        one_line = b"\n" not in old or (len(rendered) == 1 and self.task.unit.tool == "uv")
        if one_line and len(rendered) == 1:
            return [(span, b"[" + rendered[0] + b"]")]
        lead = self.text.content[span.start + 1 : template.span.start] if b"\n" in old else self.newline + b"    "
        lines = b"".join(lead + item + b"," for item in rendered)
        return [(span, b"[" + lines + self.newline + b"]")]

    def _between(self) -> bytes:
        """What separates two tables of wheels beyond the first one's own end."""
        first, second = self.wheels[0].span, self.wheels[1].span
        return self.text.content[first.end : second.start]

    def _with_gap(self, span: Span) -> Span:
        """A table with the empty lines before it."""
        start = len(self.text.content[: span.start].rstrip(b"\r\n"))
        return Span(start=start + len(self.newline), end=span.end)

    def _rendered(self, template: _Listed, file: ReleaseFile) -> bytes:
        """`file` in the form of one that is there: the same keys in the same order and layout."""
        spans: list[Replacement] = []
        for key, value in template.table.items():
            if key != "hashes":
                span = self.text.spans[*template.path, key]
                new_value = self._value(key, file)
                if key == "upload-time" and b"." not in self.text.content[span.start : span.end]:
                    new_value = re.sub(r"\.\d+", "", new_value)  # uv writes whole seconds here
                spans.append((span, new_value.encode()))
                continue
            for algorithm in value:
                digest = file.hashes.get(algorithm)
                if not digest:
                    detail = f"the {algorithm} hash of {file.filename} is not known"
                    raise CannotWriteError(detail, reason="integrity-unavailable")
                spans.append((self.text.spans[*template.path, key, algorithm], basic_string(digest).encode()))
        start, end = template.span.start, template.span.end
        moved = [(Span(start=span.start - start, end=span.end - start), new) for span, new in spans]
        return splice(self.text.content[start:end], moved)

    def _value(self, key: str, file: ReleaseFile) -> str:
        if key == "name":
            return basic_string(file.filename)
        if key == "url" and (address := self.book.address(file)) is not None:
            return basic_string(address)
        if key == "size" and file.size is not None:
            return str(file.size)
        if key == "upload-time" and file.upload_time is not None:
            return upload_time_text(file)
        detail = f"the {key} of {file.filename} is not known on the lock's own host"
        raise CannotWriteError(detail, reason="integrity-unavailable")


def _digest_of(manifest: bytes) -> str:
    return pdm_content_hashes(manifest)[0].partition(":")[2]


def _tags(filename: str) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(filename)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return frozenset()
