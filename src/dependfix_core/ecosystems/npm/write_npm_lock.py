"""package-lock.json and npm-shrinkwrap.json after a plan's moves: the bytes that npm itself would leave alone.

Entries that change are rendered anew from registry records, in npm's key
order; all others keep their text. Flags are recomputed for the whole tree,
and an entry's flag changes where the computation says otherwise than for the
lock as it was: what another version of npm wrote differently stays.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dependfix_core.collector import collector_paused
from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError
from dependfix_core.ecosystems.npm.json_text import (
    JsonStyle,
    ObjectText,
    nested_at,
    npm_order,
    npm_ordered,
    rebuilt_object,
    root_at,
    spliced,
)
from dependfix_core.ecosystems.npm.npm_flags import FLAGS, Step, flags_of
from dependfix_core.ecosystems.npm.npm_lock import NpmTree, linked_folder_v1, name_at, read_npm_lock
from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.ecosystems.npm.write_base import (
    CannotWriteError,
    Releases,
    Wanted,
    admits,
    bins_of,
    bundles,
    engines_of,
    integrity_of,
    requirements,
    tarball_address,
)
from dependfix_core.model.lock import DependencyKind, LockUnit, Problem
from dependfix_core.model.records import Release

_FOLDER: Final = "node_modules/"
_KINDS: Final = {
    "dependencies": DependencyKind.PROD,
    "optionalDependencies": DependencyKind.OPTIONAL,
    "devDependencies": DependencyKind.DEV,
}
_FROM_RECORD: Final = (
    "dependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "optionalDependencies",
    "acceptDependencies",
    "funding",
    "engines",
    "os",
    "cpu",
    "libc",
    "license",
    "hasInstallScript",
    "bin",
    "deprecated",
    "bundleDependencies",
)
Entries = dict[str, dict[str, Any]]
Manifests = Mapping[str, Mapping[str, Any]]
"""Folder as the lock names it → package.json as it shall be."""


@collector_paused()
def written_npm_lock(content: bytes, unit: LockUnit, wanted: Wanted, releases: Releases, manifests: Manifests) -> bytes:
    """The lockfile after the moves.

    Raises:
        CannotWriteError: It cannot be written so that npm would keep it.
    """
    lock = read_npm_lock(unit.unit, content)
    if isinstance(lock, Problem) or lock.problems:
        problem = lock if isinstance(lock, Problem) else lock.problems[0]
        raise CannotWriteError(f"{problem.position}: {problem.message}")
    gone = [place for place in (*wanted.moved, *wanted.removed) if place not in lock.tree.entries]
    if gone:
        raise CannotWriteError(f"{gone[0]} is not in the lock")
    try:
        if lock.version == 1:
            return _written_v1(content, lock.data, wanted, releases, manifests)
        return _written_packages(content, lock.data, unit, wanted, releases, manifests)
    except JsonSyntaxError as error:
        raise CannotWriteError(f"the lock is not laid out as npm does: {error}") from error


# Versions 2 and 3


def _written_packages(
    content: bytes,
    data: Mapping[str, Any],
    unit: LockUnit,
    wanted: Wanted,
    releases: Releases,
    manifests: Manifests,
) -> bytes:
    old: Entries = data["packages"]
    new: Entries = {place: entry for place, entry in old.items() if place not in wanted.removed}
    facts = _Facts.of(old)
    for place, move in wanted.moved.items():
        assert move.to_version is not None
        new[place] = _entry(old[place], releases.need(move.package_name, move.to_version), releases, facts)
    for place, move in wanted.added.items():
        assert move.to_version is not None
        holder = _holder(place)
        if place in old or (holder and holder not in new):
            raise CannotWriteError(f"there is no room at {place}")
        entry = _entry(None, releases.need(move.package_name, move.to_version), releases, facts)
        new[place] = entry if name_at(place) == move.package_name else {"name": move.package_name, **entry}
    _mirror(new, manifests)
    touched = {*wanted.moved, *wanted.added}
    _check_edges(old, new, touched, wanted.forced | {override.package for override in unit.overrides})
    old_steps = _steps(old)
    old_flags, new_flags = flags_of(old_steps), flags_of(_steps(new, old, old_steps))
    for place in [place for place in new if place and place in old_flags and place not in new_flags]:
        del new[place]  # nothing leads there any more
    for place in list(new):
        if place in new_flags:
            new[place] = _flagged(new[place], old_flags.get(place), new_flags[place], is_new=place in wanted.added)
    style = JsonStyle.of(content)
    _, texts = nested_at(content, root_at(content), frozenset({"packages", "dependencies"}))
    splices = [_rebuilt(content, texts["packages"], old, new, style)]
    if "dependencies" in texts and isinstance(data.get("dependencies"), dict):
        legacy = _Legacy(data["dependencies"], old, new, unit, wanted)
        splices.append(_rebuilt(content, texts["dependencies"], data["dependencies"], legacy.written(), style))
    written = spliced(content, splices)
    if json.loads(written).get("packages") != new:
        raise CannotWriteError("the lock is not laid out as npm does")
    return written


class _Facts:
    """What the entries of this lock hold at all: older versions of npm write fewer fields."""

    def __init__(self, *, has_resolved: bool, has_integrity: bool, has_license: bool) -> None:
        self.has_resolved = has_resolved
        self.has_integrity = has_integrity
        self.has_license = has_license

    @classmethod
    def of(cls, entries: Mapping[str, Mapping[str, Any]]) -> "_Facts":
        copies = [entry for place, entry in entries.items() if _FOLDER in place and not entry.get("link")]
        return cls(
            has_resolved=any("resolved" in entry for entry in copies),
            has_integrity=any("integrity" in entry for entry in copies),
            has_license=any("license" in entry for entry in copies),
        )


def _holder(place: str) -> str:
    """The copy or folder in whose `node_modules` a place lies; empty for the root's."""
    return place[: max(place.rfind(_FOLDER) - 1, 0)]


def _entry(old: Mapping[str, Any] | None, release: Release, releases: Releases, facts: _Facts) -> dict[str, Any]:
    """An entry of a release. Fields that do not come from the registry (name, flags) are the old one's."""
    if bundles(release):
        raise CannotWriteError(f"{release.name} {release.version} brings packages inside its own file")
    entry = {key: value for key, value in (old or {}).items() if key not in _FROM_RECORD}
    entry["version"] = release.version
    stored = entry.get("resolved")
    if (old is None and facts.has_resolved) or stored is not None:
        entry["resolved"] = tarball_address(releases, release, stored if isinstance(stored, str) else "")
    hashed = entry.get("integrity")
    if hashed is not None or facts.has_integrity:
        entry["integrity"] = integrity_of(release, hashed if isinstance(hashed, str) else "")
    stated = {key: value for key, value in _fields(release).items() if value}
    if not facts.has_license:
        stated.pop("license", None)
    return {**entry, **stated}


def _fields(release: Release) -> dict[str, Any]:
    extra = release.extra
    license_, funding = extra.get("license"), extra.get("funding")
    return {
        "dependencies": requirements(release, "prod"),
        "optionalDependencies": requirements(release, "optional"),
        "peerDependencies": requirements(release, "peer", "peer-optional"),
        "peerDependenciesMeta": extra.get("peerDependenciesMeta"),
        "acceptDependencies": extra.get("acceptDependencies"),
        "license": license_.get("type") or license_ if isinstance(license_, dict) else license_,
        "funding": {"url": funding} if isinstance(funding, str) and funding else funding,
        "engines": engines_of(release),
        **{key: list(values) for key, values in release.platform.items()},
        "hasInstallScript": release.has_install_script,
        "bin": bins_of(release),
        "deprecated": release.deprecated,
    }


def _mirror(entries: Entries, manifests: Manifests) -> None:
    """What the lock repeats of its manifests."""
    for folder, manifest in manifests.items():
        entry = entries.get(folder)
        if entry is None:
            continue
        changed = dict(entry)
        for section in SECTIONS:
            declared, mirrored = manifest.get(section), entry.get(section)
            if isinstance(declared, dict) and isinstance(mirrored, dict):
                changed[section] = {name: declared.get(name, text) for name, text in mirrored.items()}
        entries[folder] = changed


def _steps(
    entries: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, Mapping[str, Any]] | None = None,
    steps_before: Mapping[str, list[Step]] | None = None,
) -> dict[str, list[Step]]:
    """What leads where. The root leads to the members of its workspace by itself.

    Given the state before, what neither changed nor asks for a name whose
    places changed is taken from there.
    """
    tree = NpmTree({place: entry for place, entry in entries.items() if place})
    before, steps_before = before or {}, steps_before or {}
    names = {name_at(place) for place in entries.keys() ^ before.keys()} if before else set()
    steps: dict[str, list[Step]] = {}
    members: list[str] = []
    resolve = tree.resolve
    for place, entry in entries.items():
        if entry.get("link"):
            folder = entry.get("resolved")
            if isinstance(folder, str) and folder in entries:
                steps[place] = [Step(folder)]
                members.append(place)
            continue
        asked = entry.get("dependencies")
        is_plain = (
            place and "peerDependencies" not in entry and "optionalDependencies" not in entry and _FOLDER in place
        )
        if place and before.get(place) is entry and (not is_plain or not isinstance(asked, dict)):
            is_same = not any(name in names for name, _, _ in _asks(entry, is_top=_FOLDER not in place))
        else:
            is_same = before.get(place) is entry and names.isdisjoint(asked or ()) and bool(place)
        if is_same:
            steps[place] = steps_before[place]
        elif is_plain:
            plain = asked if isinstance(asked, dict) else {}
            steps[place] = [Step(target) for name in plain if (target := resolve(place, name)) is not None]
        else:
            steps[place] = [
                Step(target, kind)
                for name, _, kind in _asks(entry, is_top=_FOLDER not in place)
                if (target := resolve(place, name)) is not None
            ]
    root = entries.get("", {})
    if root.get("workspaces"):
        led_to = {step.target for step in steps.get("", ())}
        steps[""] = [*steps.get("", ()), *(Step(member) for member in members if member not in led_to)]
    return steps


def _asks(entry: Mapping[str, Any], *, is_top: bool) -> Iterator[tuple[str, str, DependencyKind]]:
    """Name, text and kind of everything an entry asks for; of a name in several sections npm lets the last one count."""
    found: dict[str, tuple[str, DependencyKind]] = {}
    meta = entry.get("peerDependenciesMeta")
    for name, text in _table(entry.get("peerDependencies")).items():
        optional = isinstance(meta, dict) and _table(meta.get(name)).get("optional") is True
        found[name] = (text, DependencyKind.PEER_OPTIONAL if optional else DependencyKind.PEER)
    for section, kind in _KINDS.items():
        if kind is not DependencyKind.DEV or is_top:
            found.update({name: (text, kind) for name, text in _table(entry.get(section)).items()})
    for name, (text, kind) in found.items():
        if isinstance(text, str):
            yield name, text, kind


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_edges(
    before: Mapping[str, Mapping[str, Any]],
    entries: Mapping[str, Mapping[str, Any]],
    touched: set[str],
    forced: set[str],
) -> None:
    """Every requirement of and on what changed is met, as far as it was before; overridden ones are the planner's."""
    tree = NpmTree({place: entry for place, entry in entries.items() if place})
    names = {name_at(place) for place in touched}
    for place, entry in entries.items():
        if entry.get("link"):
            continue
        is_touched = place in touched
        if not is_touched and names.isdisjoint(_table(entry.get("dependencies"))) and not _asks_any(entry, names):
            continue
        for name, text, kind in _asks(entry, is_top=_FOLDER not in place):
            if not is_touched and name not in names:
                continue
            target = tree.resolve(place, name)
            if target is None:
                if is_touched and kind is DependencyKind.PROD and not entry.get("optional"):
                    raise CannotWriteError(f"{place} would lack {name}")
                continue
            if target not in touched and not is_touched:
                continue
            found = entries[target]
            specifier = read_specifier(name, text)
            version = found.get("version")
            if specifier.package in forced or found.get("link") or not isinstance(version, str):
                continue
            was = before.get(target, {}).get("version") if not is_touched else None
            was_broken = isinstance(was, str) and not admits(specifier.requirement, was)
            if (
                kind is not DependencyKind.PEER_OPTIONAL
                and not was_broken
                and not admits(specifier.requirement, version)
            ):
                raise CannotWriteError(f"{place or 'the project'} asks {name}@{text} and would get {version}")


def _asks_any(entry: Mapping[str, Any], names: set[str]) -> bool:
    return any(
        not names.isdisjoint(_table(entry.get(section)))
        for section in ("optionalDependencies", "peerDependencies", "devDependencies")
    )


def _flagged(entry: dict[str, Any], before: int | None, now: int, *, is_new: bool) -> dict[str, Any]:
    """The entry with those flags changed that what leads to it changes."""
    changed = dict(entry)
    for key, bit in FLAGS.items():
        if is_new or before is None or (before & bit) != (now & bit):
            if now & bit:
                changed[key] = True
            else:
                changed.pop(key, None)
    return changed if changed != entry else entry


def _rebuilt(
    content: bytes, object_text: ObjectText, old: Mapping[str, Any], new: Mapping[str, Any], style: JsonStyle
) -> tuple[int, int, bytes]:
    """The object with the members that changed rendered anew, new ones where npm sorts them."""
    values = {
        key: style.render(npm_ordered(value), 2)
        for key, value in new.items()
        if key not in old or (value is not old[key] and value != old[key])
    }
    kept = [key for key in old if key in new]
    for key in sorted((key for key in new if key not in old), key=lambda key: npm_order((key, new[key]))):
        kept.insert(_position(kept, key, new), key)
    end, text = rebuilt_object(
        content,
        object_text,
        style=style,
        depth=2,
        values=values,
        removed=frozenset(key for key in old if key not in new),
        order=kept,
    )
    return object_text.start, end, text


def _position(keys: list[str], key: str, values: Mapping[str, Any]) -> int:
    """Behind the last key that npm sorts before `key`; the keys that are there need not be sorted."""
    mine = npm_order((key, values[key]))
    for index in range(len(keys), 0, -1):
        if npm_order((keys[index - 1], values[keys[index - 1]])) < mine:
            return index
    return 0


# The nested tree of versions 1 and 2


class _Legacy:
    """`dependencies` of a version 2 lock, made to say what `packages` says."""

    def __init__(self, tree: Mapping[str, Any], old: Entries, new: Entries, unit: LockUnit, wanted: Wanted) -> None:
        self._tree = tree
        self._old = old
        self._new = new
        self._wanted = wanted
        self._forced = {override.package for override in unit.overrides}
        if any(edit.kind == "override" for edit in wanted.edits):
            raise CannotWriteError("overrides are repeated in the second tree of a version 2 lock")

    def written(self) -> dict[str, Any]:
        """The whole tree; subtrees without a change are the very same objects."""
        return self._children("", self._tree)

    def _children(self, holder: str, children: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, entry in children.items():
            place = f"{holder}/{_FOLDER}{name}" if holder else _FOLDER + name
            if place in self._new or place not in self._old:
                found[name] = self._entry(place, entry)
        prefix = f"{holder}/{_FOLDER}" if holder else _FOLDER
        for place in self._wanted.added:
            if place.startswith(prefix) and _holder(place) == holder and place in self._new:
                found[name_at(place)] = self._entry(place, {})
        return dict(sorted(found.items(), key=npm_order)) if any(name not in children for name in found) else found

    def _entry(self, place: str, old: Mapping[str, Any]) -> Mapping[str, Any]:
        now = self._new.get(place)
        if now is None:
            return old
        entry = dict(old)
        if now is not self._old.get(place):
            self._update(place, entry, now)
        folder = now.get("resolved") if now.get("link") else place
        nested = self._children(str(folder), _table(old.get("dependencies")))
        if nested:
            entry["dependencies"] = nested
        else:
            entry.pop("dependencies", None)
        if now.get("link") and isinstance(folder, str) and self._new.get(folder) is not self._old.get(folder):
            entry["requires"] = self._requires(entry, self._old.get(folder, {}), self._new[folder], is_top=True)
        return old if entry == old else entry

    def _update(self, place: str, entry: dict[str, Any], now: Mapping[str, Any]) -> None:
        before = self._old.get(place, {})
        real = now.get("name")
        if not now.get("link"):
            entry["version"] = f"npm:{real}@{now['version']}" if real else now["version"]
        for key in ("resolved", "integrity"):
            if key in now and (key in entry or not before):
                entry[key] = now[key]
        for key in FLAGS:
            if key in now and not now.get("link"):
                entry[key] = True
            else:
                entry.pop(key, None)
        if place in self._wanted.moved or not before:
            requires = self._requires(entry, before, now, is_top=False)
            if requires or _table(now.get("peerDependencies")):
                entry["requires"] = requires
            else:
                entry.pop("requires", None)

    def _requires(
        self, entry: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any], *, is_top: bool
    ) -> dict[str, str]:
        """Requirements without peers. What an override replaced keeps its text as long as the requirement does."""
        found: dict[str, str] = {}
        for section in _KINDS:
            if section == "devDependencies" and not is_top:
                continue
            for name, text in _table(now.get(section)).items():
                if name in self._forced and _table(before.get(section)).get(name) != text:
                    raise CannotWriteError(f"an override of {name} is repeated in the second tree of the lock")
                stored = _table(entry.get("requires")).get(name)
                unchanged = _table(before.get(section)).get(name) == text
                found[name] = stored if unchanged and isinstance(stored, str) else text
        return found


def _written_v1(
    content: bytes,
    data: Mapping[str, Any],
    wanted: Wanted,
    releases: Releases,
    manifests: Manifests,
) -> bytes:
    tree = data.get("dependencies")
    if not isinstance(tree, dict):
        raise CannotWriteError("the lock holds nothing")
    work = _VersionOne(tree, wanted, releases, manifests)
    style = JsonStyle.of(content)
    _, texts = nested_at(content, root_at(content), frozenset({"dependencies"}))
    new = work.written()
    written = spliced(content, [_rebuilt(content, texts["dependencies"], tree, new, style)])
    if json.loads(written).get("dependencies") != new:
        raise CannotWriteError("the lock is not laid out as npm does")
    return written


class _VersionOne:
    """The nested tree of a version 1 lock after the moves."""

    def __init__(self, tree: Mapping[str, Any], wanted: Wanted, releases: Releases, manifests: Manifests) -> None:
        self._wanted = wanted
        self._releases = releases
        self._manifests = manifests
        self._old = dict(_flat(tree))
        self._kinds: dict[str, dict[str, DependencyKind]] = {}
        """Place of a changed copy → kinds of its requirements, which its record tells."""
        copies = [entry for entry in self._old.values() if "version" in entry]
        self._has_resolved = any("resolved" in entry for entry in copies)

    def written(self) -> dict[str, Any]:
        """The whole tree."""
        new = {place: dict(entry) for place, entry in self._old.items() if place not in self._wanted.removed}
        for place, move in self._wanted.moved.items():
            self._fill(place, new[place], self._release(move.package_name, move.to_version), move.package_name)
        for place, move in self._wanted.added.items():
            holder = _holder(place)
            if place in new or (holder and holder not in new):
                raise CannotWriteError(f"there is no room at {place}")
            new[place] = {}
            self._fill(place, new[place], self._release(move.package_name, move.to_version), move.package_name)
        self._drop_missing(new)
        old_flags, new_flags = flags_of(self._steps(self._old)), flags_of(self._steps(new))
        for place in [place for place in new if place in old_flags and place not in new_flags]:
            del new[place]
        self._check(new)
        for place, entry in new.items():
            if place in new_flags:
                flagged = _flagged(entry, old_flags.get(place), new_flags[place], is_new=place in self._wanted.added)
                new[place] = {key: value for key, value in flagged.items() if key not in ("devOptional", "peer")}
        return _nested(new, "", self._old)

    def _release(self, name: str, version: str | None) -> Release:
        release = self._releases.need(name, version or "")
        if bundles(release):
            raise CannotWriteError(f"{name} {version} brings packages inside its own file")
        return release

    def _fill(self, place: str, entry: dict[str, Any], release: Release, name: str) -> None:
        asked = name_at(place)
        entry["version"] = release.version if asked == name else f"npm:{name}@{release.version}"
        stored = entry.get("resolved")
        if stored or (place in self._wanted.added and self._has_resolved):
            entry["resolved"] = tarball_address(self._releases, release, stored if isinstance(stored, str) else "")
        hashed = entry.get("integrity")
        entry["integrity"] = integrity_of(release, hashed if isinstance(hashed, str) else "")
        needed, optional = requirements(release, "prod"), requirements(release, "optional")
        self._kinds[place] = {
            **dict.fromkeys(needed, DependencyKind.PROD),
            **dict.fromkeys(optional, DependencyKind.OPTIONAL),
        }
        entry.pop("requires", None)
        if needed or optional:
            entry["requires"] = {**needed, **optional}

    def _drop_missing(self, new: Mapping[str, dict[str, Any]]) -> None:
        """Npm 6 lists an optional requirement only when it is there."""
        tree = NpmTree(new)
        for place, kinds in self._kinds.items():
            requires = new[place].get("requires", {})
            for name, kind in kinds.items():
                if kind is DependencyKind.OPTIONAL and tree.resolve(place, name) is None:
                    del requires[name]
            if not requires:
                new[place].pop("requires", None)

    def _steps(self, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Step]]:
        tree = NpmTree(entries)
        steps: dict[str, list[Step]] = {}
        for folder, manifest in self._manifests.items():
            asks = _asks(manifest, is_top=True)
            steps[folder] = [
                Step(target, kind) for name, _, kind in asks if (target := tree.resolve(folder, name)) is not None
            ]
        for place, entry in entries.items():
            linked = linked_folder_v1(entry)
            if linked is not None and _FOLDER in place:
                steps[place] = [Step(linked)]
            elif place not in steps:
                steps[place] = list(self._copy_steps(tree, entries, place, entry))
        return steps

    def _copy_steps(
        self, tree: NpmTree, entries: Mapping[str, Mapping[str, Any]], place: str, entry: Mapping[str, Any]
    ) -> Iterator[Step]:
        kinds = self._kinds.get(place, {}) if entry is not self._old.get(place) else {}
        for name in _table(entry.get("requires")):
            target = tree.resolve(place, name)
            if target is None:
                continue
            inferred = bool(entries[target].get("optional")) and not entry.get("optional")
            kind = kinds.get(name, DependencyKind.OPTIONAL if inferred else DependencyKind.PROD)
            yield Step(target, kind)

    def _check(self, new: Mapping[str, Mapping[str, Any]]) -> None:
        tree = NpmTree(new)
        touched = {*self._wanted.moved, *self._wanted.added}
        asking: Iterable[tuple[str, Mapping[str, Any]]] = (
            *((place, _table(entry.get("requires"))) for place, entry in new.items()),
            *(
                (folder, {name: text for name, text, kind in _asks(manifest, is_top=True)})
                for folder, manifest in self._manifests.items()
            ),
        )
        for place, requires in asking:
            for name, text in requires.items():
                target = tree.resolve(place, name)
                if target is None and place in touched:
                    raise CannotWriteError(f"{place} would lack {name}")
                if target is None or (target not in touched and place not in touched) or not isinstance(text, str):
                    continue
                version = str(new[target].get("version")).rpartition("@")[2]
                if not admits(read_specifier(name, text).requirement, version):
                    raise CannotWriteError(f"{place or 'the project'} asks {name}@{text} and would get {version}")


def _flat(tree: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and entry of the whole nested tree; what a link holds lies in its folder."""
    waiting: list[tuple[str, Mapping[str, Any]]] = [("", tree)]
    while waiting:
        holder, children = waiting.pop()
        for name, entry in children.items():
            place = f"{holder}/{_FOLDER}{name}" if holder else _FOLDER + name
            yield place, entry
            folder = linked_folder_v1(entry)
            if folder is not None:
                yield folder, entry
            waiting.append((place if folder is None else folder, _table(entry.get("dependencies"))))


def _nested(entries: Mapping[str, dict[str, Any]], holder: str, old: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The nested form of a flat map, npm's order within each level that changed."""
    by_holder: dict[str, list[str]] = {}
    for place in entries:
        if _FOLDER in place:
            by_holder.setdefault(_holder(place), []).append(place)
    return _level(by_holder, entries, holder, old)


def _level(
    by_holder: Mapping[str, list[str]],
    entries: Mapping[str, dict[str, Any]],
    holder: str,
    old: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place in by_holder.get(holder, ()):
        entry = dict(entries[place])
        folder = linked_folder_v1(entry)
        nested = _level(by_holder, entries, place if folder is None else folder, old)
        entry.pop("dependencies", None)
        if nested:
            entry["dependencies"] = nested
        found[name_at(place)] = old[place] if place in old and entry == old[place] else entry
    return dict(sorted(found.items(), key=npm_order))
