"""bun.lock after a plan's moves: the bytes that bun itself would leave alone.

Every package stands on one line, what lies below others behind what lies at
the top. Lines that do not change keep their text.
"""

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dependfix_core.ecosystems.npm.bun_lock import BunLock, Package, place_above, read_bun_lock
from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError, JsonValue, find_key_paths, scan_json
from dependfix_core.ecosystems.npm.json_text import spliced
from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.pnpm_lock import texts
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.ecosystems.npm.write_base import (
    CannotWriteError,
    Releases,
    Wanted,
    admits,
    bundles,
    integrity_of,
    optional_peers,
    peer_ranges,
    requirements,
)
from dependfix_core.model.lock import LockUnit, Problem
from dependfix_core.model.plan import Edit
from dependfix_core.model.records import Release

_SYSTEMS: Final = frozenset({"aix", "android", "darwin", "freebsd", "linux", "openbsd", "sunos", "win32"})
_PROCESSORS: Final = frozenset(
    {"arm", "arm64", "ia32", "mips", "mipsel", "ppc", "ppc64", "s390", "s390x", "x32", "x64"}
)
_ASKED: Final = ("dependencies", "optionalDependencies", "peerDependencies")


def written_bun_lock(content: bytes, unit: LockUnit, wanted: Wanted, releases: Releases) -> bytes:
    """The lockfile after the moves and edits.

    Raises:
        CannotWriteError: It cannot be written so that bun would keep it.
    """
    lock = read_bun_lock(unit.unit, content)
    if isinstance(lock, Problem):
        raise CannotWriteError(lock.message)
    try:
        root = scan_json(content, comments=True).root
    except JsonSyntaxError as error:
        raise CannotWriteError(str(error)) from error
    scripts = b'"hasInstallScript"' in content
    new: dict[str, Package] = {}
    for where, package in lock.packages.items():
        if where in wanted.moved:
            move = wanted.moved[where]
            new[where] = _package(
                where, releases.need(move.package_name, move.to_version or ""), package, stores_scripts=scripts
            )
        elif where not in wanted.removed:
            new[where] = package
    for where, move in wanted.added.items():
        above = place_above(where)
        if where in new or (above and above not in new):
            raise CannotWriteError(f"there is no room at {where}")
        new[where] = _package(
            where, releases.need(move.package_name, move.to_version or ""), None, stores_scripts=scripts
        )
    edited = _edited_mirrors(root, unit, wanted)
    after = BunLock(
        path=lock.path,
        version=lock.version,
        packages=new,
        workspaces=_workspaces(lock, unit, wanted),
        overrides=lock.overrides,
    )
    _check(after, {*wanted.moved, *wanted.added}, wanted.forced | set(lock.overrides))
    _drop_unreached(lock, after, new)
    return spliced(content, [*edited, _packages_text(content, root, new, lock)])


def _package(where: str, release: Release, old: Package | None, *, stores_scripts: bool) -> Package:
    if bundles(release):
        raise CannotWriteError(f"{release.name} {release.version} brings packages inside its own file")
    values = old.values if old is not None else ("", "", {}, "")
    if len(values) != 4 or values[1] != "":
        raise CannotWriteError(f"{where} comes from a registry that the lock names by itself", "integrity-unavailable")
    info: dict[str, Any] = {}
    asked = {
        "dependencies": requirements(release, "prod"),
        "optionalDependencies": requirements(release, "optional"),
        "peerDependencies": peer_ranges(release),
    }
    info |= {section: dict(sorted(found.items())) for section, found in asked.items() if found}
    if optional := sorted(optional_peers(release)):
        info["optionalPeers"] = optional
    for key, known in (("os", _SYSTEMS), ("cpu", _PROCESSORS)):
        if stated := release.platform.get(key, ()):
            if any(name.startswith("!") for name in stated):
                raise CannotWriteError(f"{release.name} {release.version} excludes platforms")
            names = [name for name in stated if name in known]
            info[key] = names[0] if len(names) == 1 else names or "none"
    if libc := release.platform.get("libc", ()):
        info["libc"] = libc[0] if len(libc) == 1 else list(libc)
    if stores_scripts and release.has_install_script:
        info["hasInstallScript"] = True
    if stated_bin := release.extra.get("bin"):
        info["bin"] = stated_bin
    old_hash = values[3] if isinstance(values[3], str) else ""
    return Package(
        where=where,
        name=release.name,
        reference=release.version,
        info=info,
        values=(f"{release.name}@{release.version}", "", info, integrity_of(release, old_hash)),
    )


def _relative_folder(unit: LockUnit, path: str) -> str:
    folder = posixpath.relpath(posixpath.dirname(path) or ".", posixpath.dirname(unit.unit) or ".")
    return "" if folder == "." else folder


def _declaration(edit: Edit) -> tuple[str, str] | None:
    section, _, name = edit.at.partition(".")
    return (section, name) if edit.kind == "constraint" and section in SECTIONS else None


def _edited_mirrors(root: JsonValue, unit: LockUnit, wanted: Wanted) -> Iterator[tuple[int, int, bytes]]:
    """What the lock repeats of manifests, overrides and catalogs."""
    for edit in wanted.edits:
        declared = _declaration(edit)
        if declared is not None:
            value = root.get("workspaces", _relative_folder(unit, edit.path), *declared)
        elif edit.kind == "override":
            table, _, key = edit.at.partition(".")
            value = root.get(table, key) if table == "overrides" else None
        elif edit.kind == "catalog":
            at = edit.at.removeprefix("workspaces.")
            value = next((found for path in find_key_paths(root, at) if (found := root.get(*path)) is not None), None)
        else:
            continue
        stored = value.value if value is not None else None
        if value is None or not isinstance(stored, str) or not edit.from_text or not stored.endswith(edit.from_text):
            raise CannotWriteError(f"the lock does not repeat {edit.at}")
        text = stored.removesuffix(edit.from_text) + edit.to_text
        yield value.span.start, value.span.end, json.dumps(text, ensure_ascii=False).encode()


def _workspaces(lock: BunLock, unit: LockUnit, wanted: Wanted) -> Mapping[str, Mapping[str, Any]]:
    found = {folder: dict(about.items()) for folder, about in lock.workspaces.items()}
    for edit in wanted.edits:
        declared = _declaration(edit)
        folder = _relative_folder(unit, edit.path)
        if declared is not None and folder in found and edit.from_text is not None:
            section, name = declared
            stored = str(texts(found[folder].get(section)).get(name, ""))
            found[folder][section] = {
                **texts(found[folder].get(section)),
                name: stored.removesuffix(edit.from_text) + edit.to_text,
            }
    return found


def _check(lock: BunLock, touched: set[str], forced: set[str]) -> None:
    """Every requirement of and on what changed is met; overridden ones are the planner's."""
    for place, asked, kind in _all_asks(lock):
        for name, text in asked.items():
            target = lock.resolve(place, name)
            if target is None:
                if place in touched and kind == "dependencies":
                    raise CannotWriteError(f"{place} would lack {name}")
                continue
            if target not in touched and place not in touched:
                continue
            specifier, found = read_specifier(name, text), lock.packages[target]
            if specifier.package in forced or ":" in found.reference:
                continue
            if not admits(specifier.requirement, found.reference):
                raise CannotWriteError(f"{place or 'the project'} asks {name}@{text} and would get {found.reference}")


def _all_asks(lock: BunLock) -> Iterator[tuple[str, Mapping[str, str], str]]:
    for folder, about in lock.workspaces.items():
        place = str(about.get("name", "")) if folder else ""
        for section in SECTIONS:
            yield place, texts(about.get(section)), section
    for where, package in lock.packages.items():
        optional = set(package.info.get("optionalPeers") or ())
        for section in _ASKED:
            asked = texts(package.info.get(section))
            yield where, {name: text for name, text in asked.items() if name not in optional}, section


def _drop_unreached(before: BunLock, after: BunLock, new: dict[str, Package]) -> None:
    """What nothing leads to any more goes."""
    reached_before, reached = _reached(before), _reached(after)
    for where in [where for where in new if where not in reached and where in reached_before]:
        del new[where]


def _reached(lock: BunLock) -> set[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for folder, about in lock.workspaces.items():
        place = str(about.get("name", "")) if folder else ""
        if place:
            waiting.append(place)
        for section in SECTIONS:
            waiting += [found for name in texts(about.get(section)) if (found := lock.resolve(place, name)) is not None]
    while waiting:
        where = waiting.pop()
        package = lock.packages.get(where)
        if where in seen or package is None:
            continue
        seen.add(where)
        for section in _ASKED:
            for name in texts(package.info.get(section)):
                found = lock.resolve(where, name)
                if found is not None:
                    waiting.append(found)
    return seen


def _packages_text(
    content: bytes, root: JsonValue, new: Mapping[str, Package], lock: BunLock
) -> tuple[int, int, bytes]:
    """The whole `packages` object."""
    packages = root.get("packages")
    if packages is None or packages.members is None:
        raise CannotWriteError("the lock has no packages")
    newline = b"\r\n" if b"\r\n" in content else b"\n"
    kept = {where: content[member.key.start : member.value.span.end] for where, member in packages.members.items()}
    start, end = packages.span.start, packages.span.end
    if _joined(list(kept.values()), newline) != content[start:end]:
        raise CannotWriteError("the lock is not laid out as bun does")
    lines = {
        where: kept[where] if lock.packages.get(where) is package else _line(where, package)
        for where, package in new.items()
    }
    order = [where for where in kept if where in lines]
    for where in sorted((where for where in lines if where not in kept), key=_order):
        index = next((i for i in range(len(order), 0, -1) if _order(order[i - 1]) < _order(where)), 0)
        order.insert(index, where)
    return start, end, _joined([lines[where] for where in order], newline)


def _order(where: str) -> tuple[int, str]:
    depth = 0
    here = where
    while here:
        here = place_above(here)
        depth += 1
    return depth, where


def _joined(lines: list[bytes], newline: bytes) -> bytes:
    if not lines:
        return b"{}"
    return b"{" + newline + (newline + newline).join(b"    " + line + b"," for line in lines) + newline + b"  }"


def _line(where: str, package: Package) -> bytes:
    values = ", ".join(_text(value) for value in package.values)
    return f"{json.dumps(where, ensure_ascii=False)}: [{values}]".encode()


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_text(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_text(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)
