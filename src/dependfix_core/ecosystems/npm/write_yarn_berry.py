"""yarn.lock of yarn 2 and later after a plan's moves, its checksums left for yarn to fill in.

yarn's checksums are those of the archives in its cache, which no registry
publishes: entries that change have none here, and the next install writes
them. That is why this way is only taken where a caller asks for it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.ecosystems.npm.pnpm_lock import texts
from dependfix_core.ecosystems.npm.selectors import split_name
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.ecosystems.npm.write_base import (
    CannotWriteError,
    Releases,
    Wanted,
    admits,
    bundles,
    requirements,
    table,
)
from dependfix_core.ecosystems.npm.yarn_berry import Entry, YarnBerryLock, read_yarn_berry
from dependfix_core.model.lock import LockUnit, Problem
from dependfix_core.model.records import Release
from dependfix_core.versions import Version, scheme_for

_FIRST: Final = (
    "version",
    "resolution",
    "dependencies",
    "peerDependencies",
    "dependenciesMeta",
    "peerDependenciesMeta",
)
_FIRST_AT: Final = {name: index for index, name in enumerate(_FIRST)}
_SIMPLE: Final = re.compile(r"(?![-?:,\][{}#&*!|>'\"%@` \t\r\n]).(?:[ \t]*(?![,\][{}:# \t\r\n]).)*", re.DOTALL)
_DECLARED: Final = ("dependencies", "devDependencies", "optionalDependencies")
Manifests = Mapping[str, Mapping[str, Any]]


@dataclass(eq=False, slots=True)
class _Copy:
    name: str
    data: dict[str, Any]
    source: Entry | None
    is_new: bool = False
    descriptors: list[str] = field(default_factory=list)


def written_yarn_berry(
    content: bytes, unit: LockUnit, wanted: Wanted, releases: Releases, before: Manifests, after: Manifests
) -> bytes:
    """The lockfile after the moves and edits, without the checksums of what changed.

    Raises:
        CannotWriteError: It cannot be written so that yarn would keep the rest.
    """
    lock = read_yarn_berry(unit.unit, content)
    if isinstance(lock, Problem):
        raise CannotWriteError(lock.message)
    if any(edit.kind == "override" for edit in wanted.edits):
        raise CannotWriteError("resolutions are for yarn to apply")
    work = _Work(lock, wanted, releases)
    work.settle(before, after)
    return _joined(content, lock, work.entries())


class _Work:
    def __init__(self, lock: YarnBerryLock, wanted: Wanted, releases: Releases) -> None:
        self._wanted = wanted
        self._releases = releases
        self._copies = {where: _Copy(entry.name, dict(entry.data), entry) for where, entry in lock.entries.items()}
        self._home = {descriptor: self._copies[where] for descriptor, where in lock.index.items()}
        self._known = frozenset(self._home)
        self._by_package: dict[str, list[_Copy]] = {}
        for copy in self._copies.values():
            if copy.source is not None and copy.source.reference.startswith("npm:"):
                self._by_package.setdefault(copy.name, []).append(copy)
        self._protocol = (
            "npm:"
            if any(text.startswith("npm:") for entry in lock.entries.values() for text in _asked(entry.data).values())
            else ""
        )
        self._patched = {entry.name for entry in lock.entries.values() if entry.reference.startswith("patch:")}

    def settle(self, before: Manifests, after: Manifests) -> None:
        """Brings every descriptor to its entry and drops what is not needed any more."""
        needed_before = self._needed(self._home, is_new=False)
        for where, move in self._wanted.added.items():
            self._home[where] = self._copy(move.package_name, move.to_version or "")
        for where, move in self._wanted.moved.items():
            old = self._copies[where]
            self._by_package[old.name].remove(old)
            fresh = self._copy(move.package_name, move.to_version or "")
            assert old.source is not None
            for descriptor in old.source.descriptors:
                name, text = split_name(descriptor)
                if descriptor in self._wanted.added:
                    continue
                requirement = read_specifier(name, text).requirement
                self._home[descriptor] = (
                    fresh if admits(requirement, str(fresh.data["version"])) else self._best(name, text) or old
                )
        for where in self._wanted.removed:
            self._by_package[self._copies[where].name].remove(self._copies[where])
        self._declare(before, after)
        needed = self._needed(self._home, is_new=True)
        for descriptor in list(self._home):
            if descriptor not in needed and (descriptor in needed_before or descriptor not in self._known):
                del self._home[descriptor]
        gone = {id(self._copies[where]) for where in (*self._wanted.moved, *self._wanted.removed)}
        for descriptor, copy in self._home.items():
            if id(copy) in gone:
                raise CannotWriteError(f"{descriptor} has no entry any more")

    def entries(self) -> list[_Copy]:
        """The entries with their descriptors; those of one resolution are one."""
        merged: dict[str, _Copy] = {}
        for descriptor, copy in sorted(self._home.items()):
            merged.setdefault(str(copy.data["resolution"]), copy).descriptors.append(descriptor)
        return sorted(merged.values(), key=lambda copy: ", ".join(copy.descriptors))

    def _copy(self, name: str, version: str) -> _Copy:
        for copy in self._by_package.get(name, ()):
            if copy.data["version"] == version:
                return copy
        release = self._releases.need(name, version)
        if bundles(release) or release.platform or name in self._patched:
            raise CannotWriteError(f"{name} {version} is for yarn to place")
        copy = _Copy(name, self._data(release), None, is_new=True)
        self._by_package.setdefault(name, []).append(copy)
        return copy

    def _data(self, release: Release) -> dict[str, Any]:
        extra, optional = release.extra, requirements(release, "optional")
        meta = {name: {"optional": True} for name in optional}
        stated = extra.get("bin")
        bins = {release.name.rpartition("/")[2]: stated} if isinstance(stated, str) else table(stated)
        asked = {**requirements(release, "prod"), **optional}
        data: dict[str, Any] = {
            "version": release.version,
            "resolution": f"{release.name}@npm:{release.version}",
            "dependencies": {name: self._bound(text) for name, text in asked.items()},
            "peerDependencies": requirements(release, "peer", "peer-optional"),
            "dependenciesMeta": meta,
            "peerDependenciesMeta": table(extra.get("peerDependenciesMeta")),
            "bin": bins,
            "languageName": "node",
            "linkType": "hard",
        }
        return {key: value for key, value in data.items() if value}

    def _bound(self, text: str) -> str:
        return text if ":" in text or not self._protocol else f"{self._protocol}{text}"

    def _declare(self, before: Manifests, after: Manifests) -> None:
        """Declarations that read otherwise, in the workspaces' entries and as descriptors."""
        for folder, manifest in after.items():
            member = next((one for one in self._copies.values() if _folder(one) == folder), None)
            for section in _DECLARED:
                for name, text in table(manifest.get(section)).items():
                    old = table(table(before.get(folder)).get(section)).get(name)
                    if old == text or not isinstance(text, str) or not isinstance(old, str):
                        continue
                    if member is None:
                        raise CannotWriteError(f"the lock has no workspace {folder}")
                    if text.startswith(("catalog:", "workspace:")):
                        raise CannotWriteError(f"{name}: {text} is for yarn to resolve")
                    now = self._bound(text)
                    asked = dict(texts(member.data.get("dependencies")))
                    asked[name] = now
                    member.data = {**member.data, "dependencies": asked}
                    member.is_new = True
                    home = self._home.get(f"{name}@{self._bound(old)}") or self._home.get(f"{name}@npm:{old}")
                    requirement = read_specifier(name, text).requirement
                    if home is None or not admits(requirement, str(home.data["version"])):
                        home = self._best(name, text)
                    if home is None:
                        raise CannotWriteError(f"nothing in the lock is {name}@{text}")
                    self._home.setdefault(f"{name}@{now if ':' in now else f'npm:{now}'}", home)

    def _needed(self, home: dict[str, _Copy], *, is_new: bool) -> set[str]:
        """Every descriptor that is asked for, found from the workspaces down; new ones get an entry."""
        waiting = [copy for copy in self._copies.values() if _folder(copy) is not None]
        needed = {descriptor for descriptor, copy in home.items() if _folder(copy) is not None}
        walked = {id(copy) for copy in waiting}
        while waiting:
            for name, text in _asked(waiting.pop().data).items():
                descriptor = f"{name}@{text}" if f"{name}@{text}" in home or ":" in text else f"{name}@npm:{text}"
                target = home.get(descriptor)
                if target is None:
                    target = self._best(name, text) if is_new else None
                    if target is None:
                        if is_new:
                            raise CannotWriteError(f"nothing in the lock is {descriptor}")
                        continue
                    home[descriptor] = target
                needed.add(descriptor)
                if id(target) not in walked:
                    walked.add(id(target))
                    waiting.append(target)
        return needed

    def _best(self, name: str, text: str) -> _Copy | None:
        """The newest entry that a requirement admits."""
        specifier = read_specifier(name, text)
        scheme = scheme_for("npm")
        assert scheme is not None
        fitting: list[tuple[Any, _Copy]] = []
        for copy in self._by_package.get(specifier.package, ()):
            version = scheme.try_parse(str(copy.data["version"]))
            if isinstance(version, Version) and admits(specifier.requirement, version.text):
                fitting.append((version.key, copy))
        return max(fitting, key=lambda one: one[0])[1] if fitting else None


def _folder(copy: _Copy) -> str | None:
    reference = split_name(str(copy.data["resolution"]))[1]
    if not reference.startswith("workspace:"):
        return None
    folder = reference.removeprefix("workspace:").rstrip("/")
    return "" if folder == "." else folder


def _asked(data: Mapping[str, Any]) -> Mapping[str, str]:
    return texts(data.get("dependencies"))


def _joined(content: bytes, lock: YarnBerryLock, entries: Iterable[_Copy]) -> bytes:
    text = content.decode("utf-8")
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    blocks: dict[str, list[str]] = {}
    head: list[str] = []
    current = head
    for line in lines:
        if line and not line.startswith((" ", "#")) and line != "__metadata:":
            key = line.removesuffix(":")
            current = blocks[str(json.loads(key)) if key.startswith('"') else key] = []
        current.append(line)
    if set(blocks) != {", ".join(entry.descriptors) for entry in lock.entries.values()}:
        raise CannotWriteError("the lock is not laid out as yarn does")
    found = list(head)
    for copy in entries:
        source = copy.source
        if source is not None and not copy.is_new and tuple(copy.descriptors) == source.descriptors:
            body = list(blocks[", ".join(source.descriptors)])
        else:
            body = rendered_berry_entry(copy.descriptors, copy.data)
        while not body[-1]:
            body.pop()
        found += [*body, ""]
    return newline.join(found).encode("utf-8")


def rendered_berry_entry(descriptors: Iterable[str], data: Mapping[str, Any]) -> list[str]:
    """An entry as yarn writes it."""
    return list(_rendered(", ".join(descriptors), data, ""))


def _rendered(key: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield f"{indent}{_quoted(key)}:"
        for name, inner in sorted(value.items(), key=lambda item: (_FIRST_AT.get(item[0], len(_FIRST)), item[0])):
            yield from _rendered(name, inner, f"{indent}  ")
    else:
        text = ("true" if value else "false") if isinstance(value, bool) else _quoted(str(value))
        yield f"{indent}{_quoted(key)}: {text}"


def _quoted(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
