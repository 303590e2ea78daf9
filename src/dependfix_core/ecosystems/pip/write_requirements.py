"""Writes moves into requirements files: versions, complete hash lists, and who asks for what."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.requirements import RequirementLine, read_requirements
from dependfix_core.ecosystems.pip.requirements_tree import Pin, entry_names
from dependfix_core.ecosystems.pip.splice import Replacement, newline_of, splice
from dependfix_core.ecosystems.pip.write_manifest import edit_replacements
from dependfix_core.ecosystems.pip.write_task import LockTask, MovedCopy
from dependfix_core.model.lock import Span
from dependfix_core.model.records import ReleaseFile

_PIN: Final = re.compile(rb"(?P<operator>===?)(?P<space>\s*)(?P<version>\S+)")
_HASH_OPTION: Final = re.compile(rb"--hash[= ]\s*")
_LEADING_SPACE: Final = re.compile(rb"[ \t]*")


def write_requirements(task: LockTask) -> dict[str, bytes] | WriteRefusal:
    """The requirements files that change, by path."""
    by_path = edit_replacements(task.unit, task.originals, task.edits)
    if isinstance(by_path, WriteRefusal):
        return by_path
    edited = {(edit.path, edit.at) for edit in task.edits}
    for copy in task.moved:
        for pin in _pins(copy):
            content = task.originals[pin.path]
            found = _line_replacements(content, pin, copy, is_edited=_is_edited(task, pin, edited))
            if isinstance(found, WriteRefusal):
                return found
            by_path.setdefault(pin.path, []).extend(found)
    for path, replacements in _annotations(task).items():
        by_path.setdefault(path, []).extend(replacements)
    try:
        return {path: splice(task.originals[path], replacements) for path, replacements in by_path.items()}
    except ValueError:
        return WriteRefusal(reason="tool-required", detail="two changes meet in one line")


def _pins(copy: MovedCopy) -> Sequence[Pin]:
    pins: Sequence[Pin] = copy.before.raw["pins"]
    return pins


def _is_edited(task: LockTask, pin: Pin, edited: set[tuple[str, str]]) -> bool:
    """Whether the line's own requirement is among the edits of the plan, which write it."""
    names = entry_names(read_requirements(pin.path, task.originals[pin.path]))
    return (pin.path, names[pin.line.number]) in edited


def _line_replacements(
    content: bytes, pin: Pin, copy: MovedCopy, *, is_edited: bool
) -> list[Replacement] | WriteRefusal:
    line = pin.line
    if copy.version is None:
        return [(_extent(line), b"")]
    replacements: list[Replacement] = []
    if not is_edited and line.specifier_span is not None:
        span = line.specifier_span
        found = _PIN.fullmatch(content[span.start : span.end])
        if found is None:
            return WriteRefusal(reason="dynamic-version", detail=f"{pin.path}: {line.name} is not pinned")
        start = span.start + found.start("version")
        replacements.append((Span(start=start, end=span.end), copy.version.encode()))
    if line.hashes:
        hashes = _hashes(line.hashes, copy.files)
        if not hashes:
            detail = f"the index does not give all hashes of {copy.name} {copy.version}"
            return WriteRefusal(reason="integrity-unavailable", detail=detail)
        first, last = line.hash_spans[0], line.hash_spans[-1]
        option = _HASH_OPTION.match(content[first.start : first.end])
        assert option is not None, "the reader found it by this pattern"
        between = _between(content, line)
        text = between.join(option[0] + one.encode() for one in hashes)
        replacements.append((Span(start=first.start, end=last.end), text))
    return replacements


def _between(content: bytes, line: RequirementLine) -> bytes:
    """What stands between two hashes: a continuation as the file writes it, or a space."""
    spans = line.hash_spans
    if len(spans) > 1:
        return content[spans[0].end : spans[1].start]
    head = content[line.span.start : spans[0].start]
    return head[len(head.rstrip(b" \t\r\n\\")) :] or b" "


def _hashes(old: Sequence[str], files: Sequence[ReleaseFile]) -> list[str]:
    """Of all files of the release, by the algorithms that the line has now; empty when one is not known."""
    algorithms = sorted({text.partition(":")[0] for text in old})
    wanted = [(algorithm, file.hashes.get(algorithm, "")) for file in files for algorithm in algorithms]
    if not all(digest for _, digest in wanted):
        return []
    return sorted({f"{algorithm}:{digest}" for algorithm, digest in wanted})


def _extent(line: RequirementLine) -> Span:
    """The entry with the comments that note who asks for it."""
    return Span(start=line.span.start, end=max([line.span.end, *(span.end for span in line.via_spans)]))


def _annotations(task: LockTask) -> dict[str, list[Replacement]]:
    """The notes of who asks for what, where a moved copy asks for something else than before."""
    changes: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for copy in task.moved:
        old, new = copy.names_before, copy.names_after
        if old is None or new is None:
            continue
        for pin in _pins(copy):
            for child in old - new:
                changes.setdefault((pin.path, child), (set(), set()))[0].add(copy.name)
            for child in new - old:
                changes.setdefault((pin.path, child), (set(), set()))[1].add(pin.line.name)
    gone = {copy.name for copy in task.moved if copy.version is None}
    found: dict[str, list[Replacement]] = {}
    for (path, child), (lost, gained) in sorted(changes.items()):
        for line in _lines_of(task, path, child):
            if child in gone or not line.via_spans:
                continue
            via = [text for text in line.via if _asker(text) not in lost]
            have = {_asker(text) for text in via}
            via = sorted({*via, *(name for name in gained if canonicalize_name(name) not in have)})
            if via and via != list(line.via):
                found.setdefault(path, []).extend(_rendered(task.originals[path], line, via))
    return found


def _lines_of(task: LockTask, path: str, package: str) -> Iterable[RequirementLine]:
    for instance in task.unit.instances.values():
        if instance.name == package:
            yield from (pin.line for pin in instance.raw.get("pins", ()) if pin.path == path)


def _asker(text: str) -> str:
    return text if text.startswith("-") else canonicalize_name(re.split(r"[\s\[(]", text, maxsplit=1)[0])


def _rendered(content: bytes, line: RequirementLine, via: Sequence[str]) -> list[Replacement]:
    """The note in the form that it has: on the line itself, on one line, or one name a line."""
    spans = line.via_spans
    whole = Span(start=spans[0].start, end=spans[-1].end)
    old = content[whole.start : whole.end]
    newline = newline_of(content)
    if spans[0].start < line.span.end:
        lead = old[: len(old) - len(old.lstrip())]
        return [(whole, lead + b"# via " + ", ".join(via).encode())]
    indent = _LEADING_SPACE.match(old)
    lead = indent[0] if indent else b""
    end = newline if old.endswith(b"\n") else b""
    if len(via) == 1 or (len(spans) == 1 and len(line.via) > 1):
        return [(whole, lead + b"# via " + ", ".join(via).encode() + end)]
    lines = [lead + b"# via", *(lead + b"#   " + name.encode() for name in via)]
    return [(whole, newline.join(lines) + end)]
