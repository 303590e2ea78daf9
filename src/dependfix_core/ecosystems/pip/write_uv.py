"""Writes moves into a `uv.lock`, in uv's own form.

Source: uv's writer of lock version 1; which wheels it keeps is its rule on
`requires-python` and on the platforms that a package is reached on.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from packaging.specifiers import InvalidSpecifier, Specifier
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.block_text import Block, split_blocks
from dependfix_core.ecosystems.pip.environments import Environments, Mask
from dependfix_core.ecosystems.pip.file_address import AddressBook
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice, with_newlines
from dependfix_core.ecosystems.pip.toml_entry import set_key, whole_lines
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlText, read_toml, strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.write_manifest import UV_OVERRIDES
from dependfix_core.ecosystems.pip.write_task import LockTask, MovedCopy
from dependfix_core.model.lock import Constraint, DependencyKind, Span
from dependfix_core.model.plan import Edit
from dependfix_core.model.records import ReleaseFile

_PACKAGE: Final[KeyPath] = ("package", 0)
_MANIFEST_ORDER: Final = (
    "members",
    "requirements",
    "constraints",
    "overrides",
    "excludes",
    "build-constraints",
    "dependency-groups",
    "dependency-metadata",
)
_WINDOWS: Final = re.compile(r"win32|win_")
_LINUX: Final = re.compile(r"linux|manylinux|musllinux")
_MACOS: Final = re.compile(r"macosx")


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, refusal: WriteRefusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def write_uv(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The lock after the moves and the edits of its manifests."""
    try:
        return {task.unit.unit: _Writer(task).written()}
    except _Refused as refused:
        return refused.refusal


def _tool(detail: str) -> _Refused:
    return _Refused(WriteRefusal(reason="tool-required", detail=detail))


class _Writer:
    def __init__(self, task: LockTask) -> None:
        self.task = task
        self.content = task.originals[task.unit.unit]
        self.newline = newline_of(self.content)
        self.blocks = split_blocks(self.content, "package")
        if len(self.blocks) != len(task.unit.instances):
            raise _tool("the lock is not laid out as uv writes it")
        self.places = {where: index for index, where in enumerate(task.unit.instances)}
        self.changed: dict[int, Block | None] = {}

    def written(self) -> bytes:
        for copy in self.task.moved:
            self._move(copy)
        for edit in self.task.edits:
            self._mirror(edit)
        self._keep_order()
        for copy in self.task.moved:
            self._rename_references(copy)
        replacements = [
            (self.blocks[index].span, block.content if block is not None else b"")
            for index, block in self.changed.items()
        ]
        replacements += self._manifest()
        return splice(self.content, replacements)

    # One entry.

    def _block(self, where: str) -> Block:
        index = self.places[where]
        return self.changed.get(index) or self.blocks[index]

    def _move(self, copy: MovedCopy) -> None:
        index = self.places[copy.before.where]
        if copy.version is None:
            self.changed[index] = None
            return
        block = self._block(copy.before.where)
        text = block.text
        entry = text.value(_PACKAGE)
        if entry.get("name") != copy.before.raw.get("name") or entry.get("version") != copy.before.version:
            raise _tool("the lock is not laid out as uv writes it")
        replacements: list[Replacement] = [
            (text.spans[*_PACKAGE, "version"], f'"{copy.version}"'.encode()),
            *self._files(copy, text),
            *self._needs(copy, text),
        ]
        self.changed[index] = block.moved(replacements)

    def _files(self, copy: MovedCopy, text: TomlText) -> list[Replacement]:
        entry = text.value(_PACKAGE)
        listed = [*([entry["sdist"]] if "sdist" in entry else []), *tables_of(entry.get("wheels"))]
        locked = {
            str(one["url"]).rpartition("/")[2].partition("#")[0]: str(one["url"]) for one in listed if "url" in one
        }
        if not locked or len(locked) != len(listed):
            raise _tool(f"{copy.name} is not locked by addresses")
        book = AddressBook(locked, copy.old_files)
        keys = {key for one in listed for key in one}
        sdist = _sdist(copy.files)
        reached = self.task.masks.get(copy.before.where, self.task.environments.everywhere)
        wheels = [
            file
            for file in copy.files
            if file.filename.endswith(".whl") and keeps_wheel(file.filename, self.task.environments, reached)
        ]
        found: list[Replacement] = []
        found += set_key(text, _PACKAGE, "sdist", self._file(sdist, book, keys) if sdist else None, before=["wheels"])
        lines = "".join(f"    {self._file(file, book, keys)},\n" for file in sorted(wheels, key=_wheel_order))
        found += set_key(text, _PACKAGE, "wheels", f"[\n{lines}]" if wheels else None)
        if not sdist and not wheels:
            detail = f"the index lists no file of {copy.name} {copy.version}"
            raise _Refused(WriteRefusal(reason="integrity-unavailable", detail=detail))
        return found

    def _file(self, file: ReleaseFile, book: AddressBook, keys: set[str]) -> str:
        address, digest = book.address(file), file.hashes.get("sha256")
        if address is None or not digest:
            detail = f"address or hash of {file.filename} is not known on the lock's own host"
            raise _Refused(WriteRefusal(reason="integrity-unavailable", detail=detail))
        parts = [f'url = "{address}"', f'hash = "sha256:{digest}"']
        if "size" in keys and file.size is not None:
            parts.append(f"size = {file.size}")
        if "upload-time" in keys and file.upload_time is not None:
            parts.append(f'upload-time = "{upload_time_text(file)}"')
        return "{ " + ", ".join(parts) + " }"

    def _needs(self, copy: MovedCopy, text: TomlText) -> list[Replacement]:
        """Names that the new version does not ask for any more go, unconditional new ones come in."""
        old, new = copy.names_before, copy.names_after
        if old is None or new is None:
            raise _tool(f"what {copy.name} asks for is not known")
        found: list[Replacement] = []
        entry = text.value(_PACKAGE)
        listed = {str(one.get("name")) for one in tables_of(entry.get("dependencies"))}
        for extra in table_of(entry.get("optional-dependencies")):
            path: KeyPath = (*_PACKAGE, "optional-dependencies", extra)
            kept, all_items = self._kept(text, path, lost=old - new)
            listed |= {str(one.get("name")) for one in tables_of(text.value(path))}
            if len(kept) < all_items:
                found += self._array(text, path, kept)
        added = [name for name in sorted(new - old) if name not in listed]
        path = (*_PACKAGE, "dependencies")
        kept, all_items = self._kept(text, path, lost=old - new)
        if len(kept) < all_items or added:
            items = sorted([*kept, *(f'{{ name = "{name}" }}' for name in added)], key=_item_order)
            if path in text.spans:
                found += self._array(text, path, items)
            else:
                block = "[\n" + "".join(f"    {item},\n" for item in items) + "]"
                found += set_key(text, _PACKAGE, "dependencies", block, before=["sdist", "wheels"])
        return found

    def _kept(self, text: TomlText, path: KeyPath, *, lost: set[str]) -> tuple[list[str], int]:
        items = tables_of(text.value(path))
        kept = []
        for index, item in enumerate(items):
            if canonicalize_name(str(item.get("name", ""))) not in lost:
                span = text.spans[*path, index]
                kept.append(text.content[span.start : span.end].decode())
        return kept, len(items)

    def _array(self, text: TomlText, path: KeyPath, items: Sequence[str]) -> list[Replacement]:
        span = text.spans[path]
        if not items:
            return [(whole_lines(text.content, span), b"")]
        return [(span, with_newlines("[\n" + "".join(f"    {item},\n" for item in items) + "]", self.newline))]

    # The whole lock.

    def _keep_order(self) -> None:
        """Entries of one name stand in the order of their versions."""
        by_name: dict[str, list[int]] = {}
        for where, index in self.places.items():
            by_name.setdefault(self.task.unit.instances[where].name, []).append(index)
        versions = {self.places[copy.before.where]: copy.version for copy in self.task.moved}
        wheres = list(self.places)
        for name, indices in by_name.items():
            if len(indices) < 2 or not versions.keys() & set(indices):
                continue
            left = [index for index in indices if not (index in versions and versions[index] is None)]
            texts = [versions.get(index) or self.task.unit.instances[wheres[index]].version for index in left]
            if len(set(texts)) < len(texts):
                raise _tool(f"two copies of {name} become one")
            try:
                ordered = sorted(texts, key=Version)
            except InvalidVersion:
                continue
            if ordered != texts:
                raise _tool(f"the copies of {name} change their order")

    def _rename_references(self, copy: MovedCopy) -> None:
        """Where a name is locked more than once, who needs it says which version; that text moves too."""
        if copy.version is None:
            return
        name = str(copy.before.raw["name"])
        old = f'name = "{name}", version = "{copy.before.version}"'.encode()
        new = f'name = "{name}", version = "{copy.version}"'.encode()
        for index, block in enumerate(self.blocks):
            current = self.changed.get(index, block)
            if current is not None and old in current.content:
                self.changed[index] = Block(span=block.span, content=current.content.replace(old, new))

    # The mirror of what the manifests declare.

    def _mirror(self, edit: Edit) -> None:
        unit = self.task.unit
        constraint = next((one for one in unit.constraints if (one.path, one.at) == (edit.path, edit.at)), None)
        if constraint is None or constraint.kind is DependencyKind.CONSTRAINT or edit.from_text is None:
            return  # overrides and constraints are mirrored at the head
        where = unit.settings["members"].get(edit.path)
        if where is None or constraint.kind is DependencyKind.BUILD:
            return
        block = self._block(where)
        self.changed[self.places[where]] = block.moved(self._requires(block.text, constraint, edit))

    def _requires(self, text: TomlText, constraint: Constraint, edit: Edit) -> list[Replacement]:
        old, new = canonical_specifier(edit.from_text or ""), canonical_specifier(edit.to_text)
        if old is None or new is None:
            raise _tool(f"{edit.at} cannot be spelled as uv spells it")
        found: list[Replacement] = []
        for path in _mirror_lists(text, constraint):
            for index, one in enumerate(tables_of(text.value(path))):
                is_it = canonicalize_name(str(one.get("name", ""))) == constraint.package
                if is_it and str(one.get("specifier", "")) == old and _is_for(one, constraint):
                    found.append(_with_specifier(text, (*path, index), new))
        if not found:
            raise _tool(f"the lock does not mirror {edit.at}: the two are out of step")
        return found

    def _manifest(self) -> list[Replacement]:
        """The constraints and overrides of the workspace, as the head of the lock lists them."""
        head = self.content[: self.blocks[0].span.start] if self.blocks else self.content
        text = read_toml(head)
        found: list[Replacement] = []
        for edit in self.task.edits:
            override = next(
                (one for one in self.task.unit.overrides if (one.path, one.at) == (edit.path, edit.at)), None
            )
            if edit.from_text is None and edit.at == UV_OVERRIDES:
                found.append(self._added_override(text, edit))
            elif override is not None and edit.from_text is not None:
                found.append(self._changed_override(text, override.kind, override.package, edit))
        return found

    def _changed_override(self, text: TomlText, kind: str, package: str, edit: Edit) -> Replacement:
        path: KeyPath = ("manifest", "constraints" if kind == "constraint" else "overrides")
        old, new = canonical_specifier(edit.from_text or ""), canonical_specifier(edit.to_text)
        for index, one in enumerate(tables_of(text.value(path))):
            if canonicalize_name(str(one.get("name", ""))) == package and one.get("specifier", "") == old:
                assert new is not None, "an old text that is mirrored can be spelled, and so can a raised one"
                return _with_specifier(text, (*path, index), new)
        raise _tool(f"the lock does not mirror {edit.at}: the two are out of step")

    def _added_override(self, text: TomlText, edit: Edit) -> Replacement:
        requirement, _, marker = edit.to_text.partition(" ; ")
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        specifier = canonical_specifier(requirement[found.end() :]) if found else None
        if found is None or specifier is None or " or " in marker:
            raise _tool(f"{edit.to_text} cannot be spelled as uv spells it")
        name = canonicalize_name(found[0])
        item = f'{{ name = "{name}", ' + (f'marker = "{marker}", ' if marker else "") + f'specifier = "{specifier}" }}'
        path: KeyPath = ("manifest", "overrides")
        span = text.spans.get(path)
        if span is not None:
            kept, _ = self._kept(text, path, lost=set())
            return span, with_newlines(_list(sorted([*kept, item], key=_item_order)), self.newline)
        statement = f"overrides = {_list([item])}\n"
        table = text.table(("manifest",))
        if table is None:
            at = len(text.content)
            return Span(start=at, end=at), with_newlines(f"[manifest]\n{statement}\n", self.newline)
        after = _MANIFEST_ORDER[: _MANIFEST_ORDER.index("overrides")]
        ends = [text.spans[place].end for key in after if (place := ("manifest", key)) in text.spans]
        at = whole_lines(
            text.content, Span(start=max(ends, default=table.header.end), end=max(ends, default=table.header.end))
        ).end
        return Span(start=at, end=at), with_newlines(statement, self.newline)


def canonical_specifier(text: str) -> str | None:
    """A specifier list as uv writes it: ascending by version, without spaces; `None` for what it would not take."""
    try:
        parts = [Specifier(part.strip()) for part in text.split(",") if part.strip()]
        parts.sort(key=lambda one: Version(one.version.removesuffix(".*")))
    except (InvalidSpecifier, InvalidVersion):
        return None
    return ",".join(f"{one.operator}{one.version}" for one in parts)


def keeps_wheel(filename: str, environments: Environments, reached: Mask) -> bool:
    """Whether uv lists a wheel for a project of these pythons and a package that is reached there."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return False
    lower, upper = _minor_bounds(environments)
    if not any(_python_fits(tag.interpreter, tag.abi, lower, upper) for tag in tags):
        return False
    platforms = {tag.platform for tag in tags}
    for pattern, marker in (
        (_LINUX, "sys_platform == 'linux'"),
        (_WINDOWS, "sys_platform == 'win32'"),
        (_MACOS, "sys_platform == 'darwin'"),
    ):
        if all(pattern.match(platform) for platform in platforms) and not environments.mask(marker) & reached:
            return False
    return True


def _minor_bounds(environments: Environments) -> tuple[int, int | None]:
    """The lowest minor of python 3 that the project allows, and the highest where it names one."""
    lower, upper = 0, None
    for one in environments.requires_python:
        try:
            version = Version(one.version.removesuffix(".*"))
        except InvalidVersion:
            continue
        if version.major != 3:
            continue
        if one.operator in {">=", ">", "~=", "=="}:
            lower = max(lower, version.minor)
        if one.operator == "==" or (one.operator == "<=" and len(version.release) > 1):
            upper = version.minor
        if one.operator == "<" and len(version.release) > 1:
            upper = version.minor - 1 if version.micro == 0 else version.minor
    return lower, upper


def _python_fits(interpreter: str, abi: str, lower: int, upper: int | None) -> bool:
    if abi == "abi3":
        return True
    if abi == "none":
        found = re.fullmatch(r"(py|cp|pp|graalpy|pyston)(\d)(\d*)", interpreter)
        if found is None:
            return True
        if found[2] == "2":
            return False
        if not found[3]:
            return True
        minor = int(found[3])
        return (found[1] == "py" or minor >= lower) and (upper is None or minor <= upper)
    found = re.match(r"(?:cp|pypy|graalpy)(\d)(\d+)", abi)
    if found is None:
        return True
    if found[1] == "2":
        return False
    minor = int(found[2]) if not abi.startswith("graalpy") else int(re.sub(r"^graalpy(\d)(\d\d?).*", r"\2", abi) or 0)
    if abi.startswith("graalpy"):
        return True
    return minor >= lower and (upper is None or minor <= upper)


def _wheel_order(file: ReleaseFile) -> str:
    return file.filename


def _sdist(files: Iterable[ReleaseFile]) -> ReleaseFile | None:
    sources = [file for file in files if not file.filename.endswith((".whl", ".egg", ".exe", ".msi", ".rpm"))]
    return next(
        (file for ending in (".tar.gz", ".zip", "") for file in sources if file.filename.endswith(ending)), None
    )


def upload_time_text(file: ReleaseFile) -> str:
    """When a file came to the index, as uv writes it."""
    moment = file.upload_time
    assert moment is not None, "asked only where the index gives one"
    fraction = f".{moment.microsecond // 1000:03d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _mirror_lists(text: TomlText, constraint: Constraint) -> list[KeyPath]:
    metadata: KeyPath = (*_PACKAGE, "metadata")
    if constraint.kind is not DependencyKind.DEV:
        return [(*metadata, "requires-dist")]
    # A group that includes another one lists that one's requirements as its own.
    return [(*metadata, "requires-dev", group) for group in table_of(text.value((*metadata, "requires-dev")))]


def _is_for(one: Mapping[str, Any], constraint: Constraint) -> bool:
    if sorted(canonicalize_name(extra) for extra in strings_of(one.get("extras"))) != list(constraint.extras):
        return False
    extra = re.search(r"extra == '([^']*)'", str(one.get("marker", "")))
    if constraint.kind is DependencyKind.OPTIONAL:
        return extra is not None and canonicalize_name(extra[1]) == canonicalize_name(constraint.group)
    return extra is None


def _with_specifier(text: TomlText, path: KeyPath, specifier: str) -> Replacement:
    span = text.spans.get((*path, "specifier"))
    if span is not None:
        return span, f'"{specifier}"'.encode()
    whole = text.spans[path]
    keys = [place for place in text.spans if place[:-1] == path]
    last = max(text.spans[place].end for place in keys)
    if any(place[-1] in {"index", "git", "url", "path"} for place in keys):
        raise _tool("a requirement without versions gets one")
    return Span(start=last, end=last), f', specifier = "{specifier}"'.encode() if last < whole.end else b""


def _list(items: Sequence[str]) -> str:
    return f"[{items[0]}]" if len(items) == 1 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _item_order(item: str) -> str:
    found = re.search(r'name = "([^"]*)"', item)
    return found[1] if found else item
