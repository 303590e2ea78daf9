"""yarn.lock of yarn 1 after a plan's moves: the bytes that yarn itself would leave alone.

A descriptor (`name@^1.0.0`) belongs to exactly one entry. Moving a copy takes
those descriptors along that admit the new version; the others go to an entry
that the plan brings in, or to the newest that is there. What nobody asks for
any more goes, and entries of the same version become one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import BOM
from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.selectors import split_name
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.ecosystems.npm.write_base import (
    CannotWriteError,
    Releases,
    Wanted,
    admits,
    bundles,
    integrity_of,
    requirements,
    tarball_address,
)
from dependfix_core.ecosystems.npm.yarn_classic import Block, Resolution, package_of, read_yarn_classic
from dependfix_core.model.lock import LockUnit, Problem, SourceKind
from dependfix_core.model.records import Release
from dependfix_core.versions import Version, scheme_for

_ASKED: Final = ("dependencies", "devDependencies", "optionalDependencies")
_FIELD_ORDER: Final = {
    "name": 1,
    "version": 2,
    "uid": 3,
    "resolved": 4,
    "integrity": 5,
    "registry": 6,
    "dependencies": 7,
}
_BARE: Final = re.compile(r"[a-zA-Z][^:\s\\\",\[\]]*")
Manifests = Mapping[str, Mapping[str, Any]]


@dataclass(eq=False, slots=True)
class _Copy:
    """One entry on its way."""

    package: str
    fields: dict[str, Any]
    source: Block | None
    """The entry it comes from."""
    is_new: bool = False
    """Its fields come from a record."""
    descriptors: list[str] = field(default_factory=list)

    @property
    def version(self) -> str:
        return str(self.fields["version"])

    def asks(self) -> Iterator[tuple[str, str]]:
        """Name and text of its requirements."""
        for section in ("dependencies", "optionalDependencies"):
            yield from self.fields.get(section, {}).items()


def written_yarn_classic(
    content: bytes,
    unit: LockUnit,
    wanted: Wanted,
    releases: Releases,
    manifests: Manifests,
    manifests_before: Manifests,
) -> bytes:
    """The lockfile after the moves and edits.

    Raises:
        CannotWriteError: It cannot be written so that yarn would keep it.
    """
    lock = read_yarn_classic(unit.unit, content)
    if isinstance(lock, Problem):
        raise CannotWriteError(lock.message)
    work = _Work(lock.blocks, unit, wanted, releases)
    work.settle(manifests_before, manifests)
    return _Text(content, lock.blocks).joined(work.entries())


class _Work:
    """All entries, and which descriptor belongs to which."""

    def __init__(self, blocks: Iterable[Block], unit: LockUnit, wanted: Wanted, releases: Releases) -> None:
        self._unit = unit
        self._wanted = wanted
        self._releases = releases
        self._blocks = tuple(blocks)
        self._has_integrity = any("integrity" in block.fields for block in self._blocks)
        self._before = {block.where: _Copy(package_of(block), dict(block.fields), block) for block in self._blocks}
        self._home_before = {
            descriptor: self._before[block.where] for block in self._blocks for descriptor in block.descriptors
        }
        self._home = dict(self._home_before)
        self._by_package: dict[str, list[_Copy]] = {}
        for copy in self._before.values():
            self._by_package.setdefault(copy.package, []).append(copy)
        self._touched: set[int] = set()

    def settle(self, manifests_before: Manifests, manifests: Manifests) -> None:
        """Brings every descriptor to its entry and drops what is not needed any more."""
        old, new = self._resolutions(manifests_before), self._resolutions(manifests)
        needed_before = self._needed(manifests_before, old, self._home_before, is_new=False)
        self._add()
        self._move(new, old)
        self._declare(manifests_before, manifests)
        needed = self._needed(manifests, new, self._home, is_new=True)
        for descriptor in list(self._home):
            if descriptor not in needed and (descriptor in needed_before or descriptor not in self._home_before):
                del self._home[descriptor]
        self._check()

    def entries(self) -> list[_Copy]:
        """The entries with their descriptors; those of one version and place are one."""
        merged: dict[tuple[str, str, str], _Copy] = {}
        for descriptor, copy in sorted(self._home.items()):
            key = (copy.package, copy.version, str(copy.fields.get("resolved", id(copy))))
            merged.setdefault(key, copy).descriptors.append(descriptor)
        return sorted(merged.values(), key=lambda copy: copy.descriptors[0])

    # Steps.

    def _resolutions(self, manifests: Manifests) -> list[Resolution]:
        direct = frozenset(
            name for manifest in manifests.values() for section in SECTIONS for name in _table(manifest.get(section))
        )
        root = _table(manifests.get("", {}).get("resolutions"))
        return [Resolution.of(key, value, direct) for key, value in root.items() if isinstance(value, str)]

    def _add(self) -> None:
        for where, move in self._wanted.added.items():
            there = [one for one in self._by_package.get(move.package_name, ()) if one.version == move.to_version]
            copy = there[0] if there else self._fresh(move.package_name, move.to_version or "", None)
            if not there:
                self._by_package.setdefault(move.package_name, []).append(copy)
            self._home[where] = copy
            self._touched.add(id(copy))

    def _fresh(self, package: str, version: str, source: Block | None) -> _Copy:
        release = self._releases.need(package, version)
        if bundles(release):
            raise CannotWriteError(f"{package} {version} brings packages inside its own file")
        fields: dict[str, Any] = {}
        old = source.fields if source is not None else {}
        if "name" in old:
            fields["name"] = old["name"]
        fields["version"] = version
        if source is None or "resolved" in old:
            address, marker, _ = str(old.get("resolved", "#")).partition("#")
            fields["resolved"] = tarball_address(self._releases, release, address) + (
                f"#{self._shasum(release)}" if marker else ""
            )
        if "integrity" in old or self._has_integrity:
            fields["integrity"] = integrity_of(release, str(old.get("integrity", "")))
        for section, kind in (("dependencies", "prod"), ("optionalDependencies", "optional")):
            if found := requirements(release, kind):
                fields[section] = found
        return _Copy(package, fields, source, is_new=True)

    def _shasum(self, release: Release) -> str:
        if not re.fullmatch(r"[0-9a-f]{40}", release.shasum):
            raise CannotWriteError(f"no sha1 of {release.name} {release.version}", "integrity-unavailable")
        return release.shasum

    def _move(self, resolutions: list[Resolution], before: list[Resolution]) -> None:
        moves: list[tuple[Block, _Copy]] = []
        for block in self._blocks:
            move = self._wanted.moved.get(block.where)
            if move is None:
                continue
            instance = self._unit.instances[block.where]
            if instance.source.kind is not SourceKind.REGISTRY:
                raise CannotWriteError(f"{block.where} does not come from a registry", "non-registry-source")
            there = [one for one in self._by_package[move.package_name] if one.version == move.to_version]
            fresh = there[0] if there else self._fresh(move.package_name, move.to_version or "", block)
            if not there:
                self._by_package[move.package_name].append(fresh)
            self._by_package[move.package_name].remove(self._before[block.where])
            self._touched.add(id(fresh))
            moves.append((block, fresh))
        for copy in [self._before[where] for where in self._wanted.removed]:
            self._by_package[copy.package].remove(copy)
            # Who still asks with one of its descriptors finds another home.
            for descriptor in [one for one, home in self._home.items() if home is copy]:
                del self._home[descriptor]
        for block, fresh in moves:
            for descriptor in block.descriptors:
                if descriptor in self._wanted.added:
                    continue
                name, text = split_name(descriptor)
                if self._is_forced(name, descriptor, resolutions) or self._admits(name, text, fresh.version):
                    self._home[descriptor] = fresh
                else:
                    other = self._best(name, text)
                    if other is None:
                        # The old text of a declaration or resolution that changes needs no entry.
                        del self._home[descriptor]
                    else:
                        self._home[descriptor] = other
        for resolution in resolutions:
            if resolution not in before:
                self._force(resolution)

    def _is_forced(self, name: str, descriptor: str, resolutions: list[Resolution]) -> bool:
        """Whether a resolution decides for everybody who asks with this descriptor."""
        covering = [one for one in resolutions if one.is_effective and one.selector.package == name]
        if any(not one.selector.parents for one in covering):
            return True
        askers = {
            copy.package
            for copies in self._by_package.values()
            for copy in copies
            for asked, text in copy.asks()
            if f"{asked}@{text}" == descriptor
        }
        parents = {one.selector.parents[-1] for one in covering}
        return bool(askers) and askers <= parents

    def _force(self, resolution: Resolution) -> None:
        """A new text of a resolution stands in the header of what it leads to."""
        name = resolution.selector.package
        target = self._best(name, resolution.value)
        if target is None:
            raise CannotWriteError(f"nothing in the lock is {name}@{resolution.value}")
        self._home[f"{name}@{resolution.value}"] = target

    def _declare(self, before: Manifests, now: Manifests) -> None:
        """Declarations that read otherwise than before."""
        for folder, manifest in now.items():
            for section in _ASKED:
                for name, text in _table(manifest.get(section)).items():
                    old = _table(before.get(folder, {}).get(section)).get(name)
                    if not isinstance(text, str) or old == text or f"{name}@{text}" in self._home:
                        continue
                    home = self._home.get(f"{name}@{old}")
                    if home is None or not self._admits(name, text, home.version):
                        home = self._best(name, text)
                    if home is None:
                        raise CannotWriteError(f"nothing in the lock is {name}@{text}")
                    self._home[f"{name}@{text}"] = home
                    self._touched.add(id(home))

    def _needed(
        self, manifests: Manifests, resolutions: list[Resolution], home: dict[str, _Copy], *, is_new: bool
    ) -> set[str]:
        """Every descriptor that is asked for, found from the manifests down; new ones get an entry."""
        members = {str(manifest.get("name", "")) for manifest in manifests.values()}
        needed = {f"{one.selector.package}@{one.value}" for one in resolutions}
        waiting: list[tuple[str, str, str]] = [
            ("", name, text)
            for manifest in manifests.values()
            for section in _ASKED
            for name, text in _table(manifest.get(section)).items()
            if isinstance(text, str)
        ]
        for one in list(needed):
            if one in home:
                copy = home[one]
                waiting += [(copy.package, name, text) for name, text in copy.asks()]
        walked: set[int] = set()
        while waiting:
            asker, name, text = waiting.pop()
            descriptor = f"{name}@{text}"
            forced = next((one for one in resolutions if one.covers(asker, name)), None)
            target = home.get(descriptor)
            if target is None and is_new and name not in members:
                target = home.get(f"{name}@{forced.value}") if forced is not None else self._best(name, text)
                if target is None:
                    raise CannotWriteError(
                        f"{asker or 'the project'} asks {descriptor}, which the plan does not bring in"
                    )
                home[descriptor] = target
                self._touched.add(id(target))
            needed.add(descriptor)
            if forced is not None:
                target = home.get(f"{name}@{forced.value}", target)
            if target is not None and id(target) not in walked:
                walked.add(id(target))
                waiting += [(target.package, asked, wanted) for asked, wanted in target.asks()]
        return needed

    def _check(self) -> None:
        """Everything that the plan moves or brings in is in use."""
        used = {(copy.package, copy.version) for copy in self._home.values()}
        for move in (*self._wanted.moved.values(), *self._wanted.added.values()):
            if (move.package_name, move.to_version) not in used:
                raise CannotWriteError(f"nothing asks for {move.package_name} {move.to_version}")

    def _admits(self, name: str, text: str, version: str) -> bool:
        return admits(read_specifier(name, text).requirement, version)

    def _best(self, name: str, text: str) -> _Copy | None:
        """The newest entry that a requirement admits."""
        specifier = read_specifier(name, text)
        if specifier.source.kind is not SourceKind.REGISTRY:
            return None
        scheme = scheme_for("npm")
        assert scheme is not None
        fitting: list[tuple[Any, int, _Copy]] = []
        for index, copy in enumerate(self._by_package.get(specifier.package, ())):
            version = scheme.try_parse(copy.version)
            if isinstance(version, Version) and admits(specifier.requirement, copy.version):
                fitting.append((version.key, -index, copy))
        return max(fitting, key=lambda one: one[:2])[2] if fitting else None


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _Text:
    """The lines of a lock; entries that do not change keep theirs."""

    def __init__(self, content: bytes, blocks: tuple[Block, ...]) -> None:
        text = content.removeprefix(BOM).decode("utf-8")
        self._mark = BOM if content.startswith(BOM) else b""
        self._newline = "\r\n" if "\r\n" in text else "\n"
        plain = text.replace("\r\n", "\n")
        if plain.replace("\n", self._newline) != text:
            raise CannotWriteError("the lock mixes line ends")
        lines = plain.split("\n")
        starts = [block.line - 1 for block in blocks]
        self._head = lines[: starts[0]] if starts else lines
        self._of_block: dict[int, list[str]] = {}
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            body = lines[start:end]
            while body and not body[-1]:
                body.pop()
            self._of_block[start + 1] = body
        self._sorted = [block.where for block in blocks] == sorted(block.where for block in blocks)
        self._ends_with_newline = plain.endswith("\n")

    def joined(self, entries: list[_Copy]) -> bytes:
        """The whole text."""
        if not self._sorted:
            raise CannotWriteError("the entries of the lock are not in yarn's order")
        lines = list(self._head)
        for index, copy in enumerate(entries):
            source = copy.source
            if source is not None and not copy.is_new and tuple(copy.descriptors) == source.descriptors:
                body = self._of_block[source.line]
            else:
                body = rendered_block(copy.descriptors, copy.fields)
            lines += [*([""] if index else []), *body]
        if self._ends_with_newline:
            lines.append("")
        return self._mark + self._newline.join(lines).encode("utf-8")


def rendered_block(descriptors: Iterable[str], fields: Mapping[str, Any]) -> list[str]:
    """An entry as yarn writes it."""
    lines = [f"{', '.join(_wrapped(descriptor) for descriptor in sorted(descriptors))}:"]
    for key, value in sorted(fields.items(), key=_field_order):
        if isinstance(value, Mapping):
            lines.append(f"  {_wrapped(key)}:")
            lines += [f"    {_wrapped(n)} {_wrapped(t)}" for n, t in sorted(value.items(), key=_field_order)]
        else:
            lines.append(f"  {_wrapped(key)} {_wrapped(value)}")
    return lines


def _field_order(item: tuple[str, Any]) -> tuple[int, str]:
    return _FIELD_ORDER.get(item[0], 100), item[0]


def _wrapped(text: str) -> str:
    if _BARE.fullmatch(text) and not text.startswith(("true", "false")):
        return text
    return json.dumps(text, ensure_ascii=False)
