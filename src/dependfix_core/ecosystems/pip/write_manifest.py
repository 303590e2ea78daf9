"""Writes the edits of a plan into manifests: the announced texts, and no byte around them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.splice import Replacement, splice
from dependfix_core.ecosystems.pip.toml_insert import add_item, add_key, quoted
from dependfix_core.ecosystems.pip.toml_text import KeyPath, TomlTextError, read_toml
from dependfix_core.model.lock import LockUnit, Span
from dependfix_core.model.plan import Edit

UV_OVERRIDES: Final = "tool.uv.override-dependencies"
PDM_OVERRIDES: Final = "tool.pdm.resolution.overrides"


def write_edits(unit: LockUnit, files: Mapping[str, bytes], edits: Sequence[Edit]) -> dict[str, bytes] | WriteRefusal:
    """The manifests that change, by path."""
    replacements = edit_replacements(unit, files, [edit for edit in edits if edit.from_text is not None])
    if isinstance(replacements, WriteRefusal):
        return replacements
    written: dict[str, bytes] = {}
    for path, found in replacements.items():
        try:
            written[path] = splice(files[path], found)
        except ValueError:
            return WriteRefusal(reason="constraint-conflict", detail=f"{path} would get two texts at one place")
    for edit in edits:
        if edit.from_text is None:
            content = written.get(edit.path, files.get(edit.path))
            grown = _add(content, edit) if content is not None else None
            if grown is None:
                return _refused(edit, "there is no place for a new entry")
            written[edit.path] = grown
    return written


def edit_replacements(
    unit: LockUnit, files: Mapping[str, bytes], edits: Iterable[Edit]
) -> dict[str, list[Replacement]] | WriteRefusal:
    """Where the edits of texts that are there go, by path."""
    spans = _spans(unit)
    found: dict[str, list[Replacement]] = {}
    for edit in edits:
        content, span = files.get(edit.path), spans.get((edit.path, edit.at))
        if content is None:
            return _refused(edit, "its file is not there")
        if edit.from_text is None or span is None:
            return _refused(edit, "the entry is not written out")
        if content[span.start : span.end] != edit.from_text.encode():
            return _refused(edit, "the entry reads differently")
        found.setdefault(edit.path, []).append((span, edit.to_text.encode()))
    return found


def _spans(unit: LockUnit) -> dict[tuple[str, str], Span]:
    found = {(one.path, one.at): one.span for one in unit.constraints if one.span is not None}
    found.update({(one.path, one.at): one.span for one in unit.overrides if one.span is not None})
    return found


def _refused(edit: Edit, why: str) -> WriteRefusal:
    return WriteRefusal(reason="dynamic-version", detail=f"{edit.path} {edit.at}: {why}")


def _add(content: bytes, edit: Edit) -> bytes | None:
    try:
        text = read_toml(content)
    except TomlTextError:
        return None
    replacement: Replacement | None = None
    if edit.at == UV_OVERRIDES:
        replacement = add_item(text, ("tool", "uv", "override-dependencies"), edit.to_text)
    elif edit.at.startswith(f"{PDM_OVERRIDES}."):
        path: KeyPath = ("tool", "pdm", "resolution", "overrides", edit.at.removeprefix(f"{PDM_OVERRIDES}."))
        replacement = add_key(text, path, quoted(edit.to_text))
    return splice(content, [replacement]) if replacement is not None else None
