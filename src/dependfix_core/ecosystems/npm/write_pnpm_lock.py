"""pnpm-lock.yaml 6.0 and 9.0 after a plan's moves: the bytes that pnpm itself would leave alone.

Keys change with versions, also inside other keys (peer suffixes), and with
them every reference. What a copy resolves to is decided edge by edge: the
copy it led to where that is still right, else the newest that fits. Where the
shape of a suffix would change, the package manager has to write.

The project's document is handled line by line; entries that do not change
keep their text.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dependfix_core.ecosystems.npm.package_json import SECTIONS
from dependfix_core.ecosystems.npm.parsed import Root
from dependfix_core.ecosystems.npm.pnpm_lock import (
    IMPORTER_SECTIONS,
    PnpmLock,
    base_of,
    read_pnpm_lock,
    texts,
)
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.ecosystems.npm.selectors import Selector, pnpm_selector, split_name, yarn_selector
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
    optional_peers,
    peer_ranges,
    requirements,
    tarball_address,
)
from dependfix_core.ecosystems.npm.yaml_text import yaml_scalar
from dependfix_core.model.lock import DependencyKind, LockUnit, Problem
from dependfix_core.model.plan import Edit
from dependfix_core.model.records import Release
from dependfix_core.model.steps import Step
from dependfix_core.versions import Unparsable, Version, parse_requirement, scheme_for

_ENTRY_ORDER: Final = (
    "resolution",
    "id",
    "name",
    "version",
    "engines",
    "cpu",
    "os",
    "libc",
    "deprecated",
    "hasBin",
    "prepare",
    "requiresBuild",
    "bundleDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "dependencies",
    "optionalDependencies",
    "transitivePeerDependencies",
    "dev",
    "optional",
)
_ENTRY_AT: Final = {name: index for index, name in enumerate(_ENTRY_ORDER)}
_ON_ONE_LINE: Final = frozenset({"resolution", "engines", "cpu", "os", "libc"})
_RESOLVED: Final = ("dependencies", "optionalDependencies")
_OF_COPY: Final = frozenset({*_RESOLVED, "transitivePeerDependencies", "dev", "optional"})
Manifests = Mapping[str, Mapping[str, Any]]
Entry = dict[str, Any]


def written_pnpm_lock(
    content: bytes, unit: LockUnit, wanted: Wanted, releases: Releases, manifests: Manifests
) -> Step[bytes]:
    """The lockfile after the moves and edits; asks for the records of those who ask for what moves.

    Raises:
        CannotWriteError: It cannot be written so that pnpm would keep it.
    """
    lock = read_pnpm_lock(unit.unit, content)
    if isinstance(lock, Problem):
        raise CannotWriteError(lock.message)
    if lock.data.get("time"):
        raise CannotWriteError("the lock stores times of releases")
    yield from releases.fetch(_askers(lock, wanted))
    work = _Work(lock, unit, wanted, releases, manifests)
    text = _Text(content, lock.settings["documents"])
    work.write(text)
    return text.joined()


def _askers(lock: PnpmLock, wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Copies whose requirements have to be known: they lead to something that moves or goes."""
    changed = {*wanted.moved, *wanted.removed}
    for key, snapshot in lock.snapshots.items():
        for section in _RESOLVED:
            for name, reference in texts(snapshot.get(section)).items():
                if lock.key_of(name, reference) in changed:
                    yield split_name(base_of(key))


@dataclass(frozen=True, slots=True)
class _Force:
    """An override as it counts."""

    selector: Selector
    value: str


class _Work:
    """One lock on its way to the state after the moves."""

    def __init__(
        self, lock: PnpmLock, unit: LockUnit, wanted: Wanted, releases: Releases, manifests: Manifests
    ) -> None:
        self._lock = lock
        self._unit = unit
        self._wanted = wanted
        self._releases = releases
        self._manifests = manifests
        self._is_nine = lock.version == "9.0"
        self._forces, self._forces_before = _forces(unit, wanted), _forces(unit, Wanted())
        self._edited = _edited(unit, wanted)
        self._new_bases = self._bases()
        self._renamed = {
            key: new for key in lock.snapshots if key not in wanted.removed and (new := self._rename(key)) != key
        }
        """Old key → new key, where it is another one."""
        self._keys: dict[str, str] = {}
        """New key → the old key that it comes from; itself for one that comes in."""
        for key in lock.snapshots:
            if key not in wanted.removed:
                new = self._renamed.get(key, key)
                if new not in self._keys or new == key:
                    self._keys[new] = key
        for move in wanted.added.values():
            self._keys.setdefault(f"{move.package_name}@{move.to_version}", "")
        self._by_package: dict[str, list[str]] = {}
        for new in self._keys:
            self._by_package.setdefault(split_name(base_of(new))[0], []).append(new)
        self._lost: set[str] = set()

    # Keys.

    def _bases(self) -> dict[str, str]:
        """`name@old` → `name@new`, for the packages whose copies all go to the same version."""
        targets: dict[str, set[str | None]] = {}
        for key in self._lock.snapshots:
            move = self._wanted.moved.get(key)
            targets.setdefault(base_of(key), set()).add(move.to_version if move is not None else None)
        found = {}
        for base, versions in targets.items():
            (version, *others) = versions
            if others:
                if any(one is not None for one in versions) and self._stands_in_suffixes(base):
                    raise CannotWriteError(f"copies of {base} go different ways")
                continue
            if version is not None:
                found[base] = f"{split_name(base)[0]}@{version}"
        return found

    def _stands_in_suffixes(self, base: str) -> bool:
        return any(f"({base}" in key for key in self._lock.snapshots)

    def _rename(self, key: str) -> str:
        move = self._wanted.moved.get(key)
        base = base_of(key)
        if move is not None:
            base = f"{split_name(base)[0]}@{move.to_version}"
        return base + "".join(f"({self._rename_group(group)})" for group in groups_of(key))

    def _rename_group(self, group: str) -> str:
        base = base_of(group)
        return self._new_bases.get(base, base) + "".join(f"({self._rename_group(inner)})" for inner in groups_of(group))

    def _refuse_hashed(self, key: str, targets: Iterable[str | None]) -> None:
        hashed = [group for group in groups_of(key) if "@" not in group[1:]]
        if hashed and any(target in self._renamed or target in self._wanted.removed for target in targets):
            raise CannotWriteError(f"the key of {base_of(key)} holds a hash")

    # Edges.

    def _follow(self, asker: str, name: str, old: str, *, text: str | None) -> str | None:
        """The new key for an edge of a copy (or an importer, empty) that led to `old`; `text` is what it asks."""
        kept = self._renamed.get(old, old) if old not in self._wanted.removed else None
        moves = old in self._wanted.moved
        if kept is not None and (not moves or text is None or self._is_met(text, kept)):
            return kept
        if text is None:
            raise CannotWriteError(f"what {asker or 'the project'} asks of {name} is not known", "metadata-unavailable")
        return self._best(name, text)

    def _best(self, name: str, text: str) -> str | None:
        """The newest copy that a requirement admits, one without peers before others of the same version."""
        specifier = read_specifier(name, text)
        scheme = scheme_for("npm")
        assert scheme is not None
        fitting: list[tuple[Any, bool, str]] = []
        for key in self._by_package.get(specifier.package, ()):
            version = scheme.try_parse(split_name(base_of(key))[1])
            if isinstance(version, Version) and admits(specifier.requirement, version.text):
                fitting.append((version.key, "(" not in key, key))
        return max(fitting, default=(None, False, None))[2]

    def _is_met(self, text: str, key: str) -> bool:
        return admits(read_specifier("", text).requirement, split_name(base_of(key))[1])

    def _asks(self, name: str, version: str) -> Mapping[str, str] | None:
        """Requirements of a release, overridden; `None` when its record could not be had."""
        release = self._releases.get(name, version)
        if release is None or release.dependencies is None:
            return None
        return {
            asked: _forced(self._forces, name, asked, text)
            for asked, text in requirements(release, "prod", "optional", "peer", "peer-optional").items()
        }

    # Entries.

    def write(self, text: "_Text") -> None:
        """All sections."""
        snapshots = {new: self._snapshot(new, old) for new, old in self._keys.items()}
        importers = self._importers(text)
        stored = {
            folder: {section: _versions(importer, section) for section in IMPORTER_SECTIONS}
            for folder, importer in self._lock.importers.items()
        }
        before = _Net(stored, self._lock.snapshots, self._lock.key_of)
        after = _Net(importers, snapshots, self._reference_key)
        reached = after.below(root.where for root in after.roots)
        self._drop_unreached(snapshots, before, reached)
        bases = {base_of(key) for key in reached}
        for move in (*self._wanted.moved.values(), *self._wanted.added.values()):
            if f"{move.package_name}@{move.to_version}" not in bases:
                raise CannotWriteError(f"nothing leads to {move.package_name} {move.to_version}")
        self._set_transitive_peers(snapshots, before, after)
        self._set_flags(snapshots, before, after)
        self._write_overrides(text)
        self._write_catalogs(text, importers)
        self._write_entries(text, snapshots)

    def _snapshot(self, new: str, old: str) -> Entry:
        """What a copy resolves to, under its new key."""
        name, version = split_name(base_of(new))
        stored = dict(self._lock.snapshots.get(old, {}))
        if old and old not in self._wanted.moved:
            return self._followed(new, old, stored)
        release = self._releases.need(name, version)
        if bundles(release):
            raise CannotWriteError(f"{name} {version} brings packages inside its own file")
        peers = self._peers(old, release)
        before: dict[str, str] = {}
        stood_in: dict[str, str] = {}
        for section in _RESOLVED:
            for asked, reference in texts(stored.get(section)).items():
                key = self._lock.key_of(asked, reference)
                if key is not None:
                    before[asked] = key
                    stood_in[asked] = section
        found: dict[str, dict[str, str]] = {section: {} for section in _RESOLVED}
        optional = requirements(release, "optional")
        for asked, text in {**requirements(release, "prod"), **optional}.items():
            want = _forced(self._forces, name, asked, text)
            target = self._settled(new, asked, want, before.get(asked))
            if target is not None:
                section = "optionalDependencies" if asked in optional else "dependencies"
                found[section][asked] = self._reference(asked, target)
            elif asked not in optional:
                raise CannotWriteError(f"{name} {version} would lack {asked}")
        for asked in peers:
            if asked in before:
                target = self._renamed.get(before[asked], before[asked])
                found[stood_in[asked]][asked] = self._reference(asked, target)
        if not self._is_nine:
            stored = {key: value for key, value in stored.items() if key in _OF_COPY}
            stored |= self._about(release, self._lock.packages.get(old, {}))
        for section, references in found.items():
            stored.pop(section, None)
            if references:
                stored[section] = references
        return stored

    def _settled(self, new: str, asked: str, want: str, before: str | None) -> str | None:
        """The copy for a requirement of a copy that moved or came in."""
        if want == "-":
            return None
        target: str | None = None
        if before is not None and before not in self._wanted.removed:
            kept = self._renamed.get(before, before)
            package = read_specifier(asked, want).package
            if split_name(base_of(kept))[0] == package and self._is_met(want, kept):
                target = kept
        if target is None:
            target = self._best(asked, want)
        if target is not None and target != (self._renamed.get(before, before) if before else None):
            mine = {split_name(group)[0] for group in groups_of(new)}
            if not {split_name(group)[0] for group in groups_of(target)} <= mine:
                raise CannotWriteError(
                    f"the peers that {base_of(target)} gets below {base_of(new)} are for pnpm to find"
                )
        return target

    def _peers(self, old: str, release: Release) -> Mapping[str, str]:
        """Peers of the release; those that the copy before did not have must be nowhere, or pnpm has to place them."""
        peers = peer_ranges(release)
        known = texts(self._lock.about(old).get("peerDependencies")) if old else {}
        optional = optional_peers(release)
        for name in peers:
            is_new = name not in known
            if is_new and (name not in optional or name in self._by_package or self._is_linked(name)):
                raise CannotWriteError(f"{release.name} {release.version} has another peer, {name}")
        in_suffix = {split_name(group)[0] for group in groups_of(old)}
        gone = [name for name in known if name not in peers and name in in_suffix]
        if gone:
            raise CannotWriteError(f"{release.name} {release.version} has no peer {gone[0]} any more")
        for name, text in peers.items():
            reference = texts(self._lock.snapshots.get(old, {}).get("dependencies")).get(name) if old else None
            key = self._lock.key_of(name, reference) if reference is not None else None
            if key is not None and not self._is_met(text, self._renamed.get(key, key)):
                raise CannotWriteError(
                    f"{release.name} {release.version} wants {name} {text} beside it", "peer-conflict"
                )
        return peers

    def _is_linked(self, name: str) -> bool:
        return any(manifest.get("name") == name for manifest in self._manifests.values())

    def _followed(self, new: str, old: str, stored: Entry) -> Entry:
        """A copy that does not move, its references brought up to date."""
        name, version = split_name(base_of(old))
        asks: Mapping[str, str] | None = None
        targets = []
        changed: dict[str, dict[str, str]] = {}
        for section in _RESOLVED:
            for asked, reference in texts(stored.get(section)).items():
                key = self._lock.key_of(asked, reference)
                targets.append(key)
                if key is None or (key not in self._renamed and key not in self._wanted.removed):
                    continue
                if asks is None:
                    asks = self._asks(name, version) or {}
                target = self._follow(name, asked, key, text=asks.get(asked))
                if target is None:
                    if section == "dependencies":
                        raise CannotWriteError(f"{name} {version} would lack {asked}")
                    continue
                changed.setdefault(section, dict(texts(stored[section])))[asked] = self._reference(asked, target)
        self._refuse_hashed(new, targets)
        return {**stored, **changed} if changed else stored

    def _reference(self, name: str, key: str) -> str:
        """How a copy is referred to under a name."""
        package, rest = split_name(key)
        if package == name:
            return rest
        return self._written(key)

    def _written(self, key: str) -> str:
        """A key as it stands in the file."""
        return key if self._is_nine or self._keys.get(key, key) in self._lock.bare_keys else f"/{key}"

    def _reference_key(self, name: str, reference: str) -> str | None:
        """The new key that a reference means; `None` for a link."""
        for key in (f"{name}@{reference}", reference if self._is_nine else reference.removeprefix("/")):
            if key in self._keys:
                return key
        return None

    def _about(self, release: Release, old: Mapping[str, Any]) -> Entry:
        """What an entry repeats of a registry record."""
        stored = texts(old.get("resolution"))
        resolution = {"integrity": integrity_of(release, stored.get("integrity", ""))}
        if "tarball" in stored or self._stores_addresses():
            resolution["tarball"] = tarball_address(self._releases, release, stored.get("tarball", ""))
        engines = engines_of(release)
        if isinstance(engines, list):
            engines = {str(index): text for index, text in enumerate(engines)}
        peers = peer_ranges(release)
        about: Entry = {
            "resolution": resolution,
            "engines": {name: text for name, text in sorted(engines.items()) if text != "*"},
            **{key: list(values) for key, values in release.platform.items()},
            "deprecated": release.deprecated,
            "hasBin": "true" if bins_of(release) else "",
            "peerDependencies": peers,
            "peerDependenciesMeta": {name: {"optional": "true"} for name in sorted(optional_peers(release))},
        }
        # pnpm 8 also says so of packages for other platforms, which it does not look into.
        if not self._is_nine and (
            release.has_install_script or old.get("requiresBuild") or (not old and release.platform)
        ):
            about["requiresBuild"] = "true"
        return {key: value for key, value in about.items() if value}

    def _stores_addresses(self) -> bool:
        flag = self._lock.settings["lockSettings"].get("lockfileIncludeTarballUrl")
        flags = self._unit.settings.get("flags", {})
        return "true" in (flag, flags.get("lockfileIncludeTarballUrl"), flags.get("lockfile-include-tarball-url"))

    # What follows for the whole lock.

    def _drop_unreached(self, snapshots: dict[str, Entry], before: "_Net", reached: set[str]) -> None:
        reached_before = before.below(root.where for root in before.roots)
        for key in [key for key in snapshots if key not in reached]:
            if not self._keys[key] or self._keys[key] in reached_before:
                del snapshots[key]

    def _set_transitive_peers(self, snapshots: dict[str, Entry], before: "_Net", after: "_Net") -> None:
        """Pnpm lists below a copy the peers of everything under it that the copy itself does not bring."""
        lock = self._lock
        old = before.transitive_peers({key: texts(lock.about(key).get("peerDependencies")) for key in lock.snapshots})
        new = after.transitive_peers({key: self._peer_names(key) for key in snapshots})
        for key, entry in snapshots.items():
            origin = self._keys[key]
            if origin and old[origin] == new[key]:
                continue
            stored = entry.get("transitivePeerDependencies") or []
            if origin and set(stored) != old[origin]:
                raise CannotWriteError(f"the peers below {base_of(key)} are not those that follow from the lock")
            changed = dict(entry)
            changed.pop("transitivePeerDependencies", None)
            if new[key]:
                changed["transitivePeerDependencies"] = sorted(new[key])
            snapshots[key] = changed

    def _peer_names(self, key: str) -> Mapping[str, str]:
        old = self._keys[key]
        if old and old not in self._wanted.moved:
            return texts(self._lock.about(old).get("peerDependencies"))
        return peer_ranges(self._releases.need(*split_name(base_of(key))))

    def _set_flags(self, snapshots: dict[str, Entry], before: "_Net", after: "_Net") -> None:
        """`optional`, and in 6.0 `dev`, where what leads to a copy changes them."""
        old_flags, new_flags = before.flags(), after.flags()
        for key, entry in snapshots.items():
            old, now = old_flags.get(self._keys[key]), new_flags[key]
            if old == now:
                continue
            changed = dict(entry)
            for flag in ("optional",) if self._is_nine else ("dev", "optional"):
                value = now[flag]
                if old is None or old[flag] != value:
                    changed.pop(flag, None)
                    if value is not None:
                        changed[flag] = value
            if changed != entry:
                snapshots[key] = changed

    # Texts.

    def _importers(self, text: "_Text") -> dict[str, dict[str, dict[str, str]]]:
        """Versions by folder, section and name, after the moves; lines of the text are brought up to date."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        has_importers = "importers" in self._lock.data
        for folder, importer in self._lock.importers.items():
            sections: dict[str, dict[str, str]] = {}
            for section in IMPORTER_SECTIONS:
                for name, about in _table(importer.get(section)).items():
                    reference, specifier = texts(about).get("version", ""), texts(about).get("specifier", "")
                    where = (*(("importers", folder or ".") if has_importers else ()), section, name)
                    now = self._specifier(folder, name, specifier)
                    if now != specifier:
                        text.set((*where, "specifier"), now)
                    key = self._lock.key_of(name, reference)
                    if key is not None:
                        asked = self._catalog_text(now)
                        target = self._follow("", name, key, text=asked)
                        if target is None:
                            raise CannotWriteError(f"{folder or 'the project'} would lack {name}")
                        new = self._reference(name, target)
                        if new != reference:
                            text.set((*where, "version"), new)
                        reference = new
                    sections.setdefault(section, {})[name] = reference
            found[folder] = sections
        return found

    def _specifier(self, folder: str, name: str, stored: str) -> str:
        """The text an importer repeats: the manifest's, or what an override makes of it."""
        manifest = self._manifests.get(folder, {})
        declared = next(
            (
                text
                for section in (*IMPORTER_SECTIONS, "peerDependencies")
                if isinstance(text := _table(manifest.get(section)).get(name), str)
            ),
            None,
        )
        if declared is None:
            return stored
        asker = str(manifest.get("name", ""))
        now = _forced(self._forces, asker, name, declared)
        if now == declared and declared.startswith("catalog:"):
            return stored
        is_edited = (folder, name) in self._edited
        return now if is_edited or now != _forced(self._forces_before, asker, name, declared) else stored

    def _catalog_text(self, specifier: str) -> str | None:
        """What a specifier asks for; `None` where a catalog says it, whose copies move together."""
        return None if specifier.startswith(("catalog:", "workspace:", "link:")) else specifier

    def _write_overrides(self, text: "_Text") -> None:
        """The lock's copy of what is forced, with the texts of catalogs that overrides point to in their place."""
        stored = texts(self._lock.data.get("overrides"))
        for edit in self._wanted.edits:
            for selector in self._forced_by(edit):
                if edit.from_text is not None and stored.get(selector) != edit.from_text:
                    raise CannotWriteError(f"the lock does not hold the override {selector}: {edit.from_text}")
                text.put("overrides", selector, edit.to_text)

    def _forced_by(self, edit: Edit) -> list[str]:
        """Selectors whose value an edit changes."""
        if edit.kind == "override":
            table = next(t for t in ("pnpm.overrides", "overrides", "resolutions") if edit.at.startswith(f"{t}."))
            return [edit.at[len(table) + 1 :]]
        return [one.selector for one in self._unit.overrides if one.via and (one.path, one.at) == (edit.path, edit.at)]

    def _write_catalogs(self, text: "_Text", importers: Mapping[str, Any]) -> None:
        catalogs = _table(self._lock.data.get("catalogs"))
        for edit in self._wanted.edits:
            if edit.kind != "catalog":
                continue
            head, _, package = edit.at.partition(".")
            name = "default"
            if head == "catalogs":
                name, package = next(
                    ((one, package[len(one) + 1 :]) for one in catalogs if package.startswith(f"{one}.")), ("", "")
                )
            if texts(_table(catalogs.get(name)).get(package)):
                stored = texts(catalogs[name][package]).get("specifier", "")
                text.set(
                    ("catalogs", name, package, "specifier"), stored.removesuffix(edit.from_text or "") + edit.to_text
                )
        for name, packages in catalogs.items():
            for package, about in _table(packages).items():
                moved = self._catalog_version(name, package, importers)
                if moved is not None and moved != texts(about).get("version"):
                    text.set(("catalogs", name, package, "version"), moved)

    def _catalog_version(self, catalog: str, package: str, importers: Mapping[str, Any]) -> str | None:
        """The version to which the users of a catalog entry lead."""
        wanted = {f"catalog:{catalog}", "catalog:"} if catalog == "default" else {f"catalog:{catalog}"}
        found = set()
        for folder, importer in self._lock.importers.items():
            for section in IMPORTER_SECTIONS:
                about = texts(_table(importer.get(section)).get(package))
                if about.get("specifier") in wanted:
                    found.add(base_of(importers[folder][section][package]))
        if len(found) > 1:
            raise CannotWriteError(f"users of the catalog entry {package} go different ways")
        return found.pop() if found else None

    def _write_entries(self, text: "_Text", snapshots: Mapping[str, Entry]) -> None:
        section = "snapshots" if self._is_nine else "packages"
        if self._is_nine:
            old_bases = {base_of(key) for key in self._lock.snapshots}
            new_bases = {base_of(key): self._keys[key] for key in snapshots}
            for base in old_bases - new_bases.keys():
                text.drop("packages", base)
            for base in sorted(new_bases.keys() - old_bases):
                release = self._releases.need(*split_name(base))
                text.put_entry("packages", base, self._about(release, self._lock.about(new_bases[base])))
        for key in self._lock.snapshots:
            if key not in snapshots:
                text.drop(section, key if self._is_nine or key in self._lock.bare_keys else f"/{key}")
        for key, entry in snapshots.items():
            if self._keys[key] != key or entry != self._lock.snapshots[key]:
                text.put_entry(section, self._written(key), entry)


def groups_of(key: str) -> list[str]:
    """The outermost bracketed parts of a key."""
    found: list[str] = []
    depth = start = 0
    for index, sign in enumerate(key):
        if sign == "(":
            depth += 1
            if depth == 1:
                start = index + 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                found.append(key[start:index])
    return found


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _versions(importer: Mapping[str, Any], section: str) -> dict[str, str]:
    return {name: texts(about).get("version", "") for name, about in _table(importer.get(section)).items()}


def _edited(unit: LockUnit, wanted: Wanted) -> set[tuple[str, str]]:
    """Folder, as the lock names it, and name of the declarations that change."""
    home = posixpath.dirname(unit.unit)
    found = set()
    for edit in wanted.edits:
        section, _, name = edit.at.partition(".")
        if edit.kind == "constraint" and section in SECTIONS:
            folder = posixpath.relpath(posixpath.dirname(edit.path) or ".", home or ".")
            found.add(("" if folder == "." else folder, name))
    return found


def _forces(unit: LockUnit, wanted: Wanted) -> list[_Force]:
    """Overrides as they count after the edits."""
    catalogs = {(edit.path, edit.at): edit.to_text for edit in wanted.edits if edit.kind == "catalog"}
    values = {
        one.place: (one.selector, catalogs.get((one.path, one.at), one.value) if one.via else one.value, one.kind)
        for one in unit.overrides
    }
    for edit in wanted.edits:
        if edit.kind == "override":
            table = next(t for t in ("pnpm.overrides", "overrides", "resolutions") if edit.at.startswith(f"{t}."))
            kind = "resolutions" if table == "resolutions" else "overrides"
            values[edit.path, edit.at] = (edit.at[len(table) + 1 :], edit.to_text, kind)
    return [
        _Force(yarn_selector(selector) if kind == "resolutions" else pnpm_selector(selector), value)
        for selector, value, kind in values.values()
        if not value.startswith("$")
    ]


def _forced(forces: Iterable[_Force], asker: str, name: str, text: str) -> str:
    """A requirement after overrides, the most specific one."""
    asked = text
    best: tuple[int, bool] = (-1, False)
    for force in forces:
        selector = force.selector
        if selector.package not in (read_specifier(name, asked).package, name):
            continue
        if selector.parents and selector.parents[-1] != asker:
            continue
        if selector.condition and not _overlap(selector.condition, asked):
            continue
        rank = (len(selector.parents), bool(selector.condition))
        if rank > best:
            best, text = rank, force.value
    return text


def _overlap(condition: str, text: str) -> bool:
    mine, other = parse_requirement("npm", read_specifier("", text).requirement), parse_requirement("npm", condition)
    if isinstance(mine, Unparsable) or isinstance(other, Unparsable):
        return False
    return not mine.intersect(other).is_empty


Importers = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Folder → section → name → reference."""


class _Net:
    """What leads where in one state of a lock."""

    def __init__(
        self,
        importers: Importers,
        snapshots: Mapping[str, Mapping[str, Any]],
        key_of: Callable[[str, str], str | None],
    ) -> None:
        self.roots = [
            Root(where=key, kind=IMPORTER_SECTIONS[section])
            for sections in importers.values()
            for section, names in sections.items()
            for name, reference in names.items()
            if (key := key_of(name, reference)) is not None
        ]
        self.edges: dict[str, list[tuple[str, str, bool]]] = {}
        """Key → name, key, and whether optional, of what the copy resolves to."""
        for key, entry in snapshots.items():
            self.edges[key] = found = []
            for section in _RESOLVED:
                for name, reference in (entry.get(section) or {}).items():
                    target = key_of(name, reference)
                    if target is not None:
                        found.append((name, target, section == "optionalDependencies"))

    def below(self, starts: Iterable[str]) -> set[str]:
        """The copies that these lead to, themselves included."""
        seen = set(starts)
        waiting = list(seen)
        while waiting:
            for _, target, _ in self.edges.get(waiting.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return seen

    def flags(self) -> dict[str, dict[str, str | None]]:
        """`dev` is true below development only, false below the rest only; `optional` only ever true."""
        dev_only, optional_only = dev_and_optional(
            self.roots, lambda key: ((target, optional) for _, target, optional in self.edges.get(key, ()))
        )
        below_dev = self.below(root.where for root in self.roots if root.kind is DependencyKind.DEV)
        return {
            key: {
                "dev": "true" if key in dev_only else None if key in below_dev else "false",
                "optional": "true" if key in optional_only else None,
            }
            for key in self.edges
        }

    def transitive_peers(self, peers: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
        """Peers of everything below a copy, without what it asks for itself; a peer of its own is not below it."""
        children: dict[str, list[str]] = {}
        parents: dict[str, list[str]] = {}
        for key, edges in self.edges.items():
            mine = peers.get(key, {})
            children[key] = [target for name, target, _ in edges if name not in mine and target in peers]
            for target in children[key]:
                parents.setdefault(target, []).append(key)
        found: dict[str, set[str]] = {key: set() for key in self.edges}
        waiting = list({parent for key in self.edges if peers.get(key) for parent in parents.get(key, ())})
        while waiting:
            key = waiting.pop()
            now: set[str] = set()
            for target in children[key]:
                now |= found[target] | peers[target].keys()
            now.difference_update(name for name, _, _ in self.edges[key])
            now -= {*peers.get(key, ()), split_name(base_of(key))[0]}
            if now != found[key]:
                found[key] = now
                waiting.extend(parents.get(key, ()))
        return found


class _Text:
    """The lines of a lock; sections of entries are kept as blocks."""

    def __init__(self, content: bytes, documents: int) -> None:
        text = content.decode("utf-8")
        self._newline = "\r\n" if "\r\n" in text else "\n"
        plain = text.replace("\r\n", "\n")
        if plain.replace("\n", self._newline) != text:
            raise CannotWriteError("the lock mixes line ends")
        lines = plain.split("\n")
        start = 0
        if documents > 1:
            start = len(lines) - lines[::-1].index("---")
        self._head, self._lines = lines[:start], lines[start:]
        self._changes: dict[str, dict[str, list[str] | None]] = {}

    def set(self, path: Sequence[str], value: str) -> None:
        """Replaces a scalar that stands on one line under these keys."""
        at = self._find(path)
        line = self._lines[at]
        key = line[: len(line) - len(line.lstrip(" "))] + _key(path[-1])
        self._lines[at] = f"{key}: {yaml_scalar(value)}"

    def put(self, section: str, key: str, value: str) -> None:
        """Sets a member of a section of scalars, behind the others when it is new; makes the section when there is none."""
        line = f"  {_key(key)}: {yaml_scalar(value)}"
        if f"{section}:" not in self._lines:
            before = next(
                index
                for index, one in enumerate(self._lines)
                if one.split(":")[0]
                in ("packageExtensionsChecksum", "pnpmfileChecksum", "patchedDependencies", "importers")
                or one in ("dependencies:", "devDependencies:", "optionalDependencies:", "packages:")
            )
            self._lines[before:before] = [f"{section}:", line, ""]
            return
        start, end = self._section(section)
        for index in range(start, end):
            if self._lines[index].startswith(f"  {_key(key)}:"):
                self._lines[index] = line
                return
        while not self._lines[end - 1]:
            end -= 1
        self._lines.insert(end, line)

    def put_entry(self, section: str, key: str, entry: Mapping[str, Any]) -> None:
        """Sets an entry of `packages` or `snapshots`."""
        self._changes.setdefault(section, {})[key] = rendered_entry(key, entry)

    def drop(self, section: str, key: str) -> None:
        """Removes an entry, unless it is set as well."""
        self._changes.setdefault(section, {}).setdefault(key, None)

    def joined(self) -> bytes:
        """The whole text."""
        for section, changes in self._changes.items():
            self._merge(section, changes)
        return self._newline.join([*self._head, *self._lines]).encode("utf-8")

    def _merge(self, section: str, changes: Mapping[str, list[str] | None]) -> None:
        start, end = self._section(section)
        tail_end = end
        while tail_end > start and not self._lines[tail_end - 1]:
            tail_end -= 1
        blocks: dict[str, list[str]] = {}
        name = ""
        for line in self._lines[start:tail_end]:
            if line.startswith("  ") and not line.startswith("   ") and not line.startswith("  #"):
                name = line
                blocks[name] = []
            if name:
                blocks[name].append(line)
        by_key = {_key_of_line(line): lines for line, lines in blocks.items()}
        order = list(by_key)
        for key, lines in sorted(changes.items()):
            if lines is None:
                by_key.pop(key, None)
            elif key in by_key:
                by_key[key] = [*lines, ""]
            else:
                by_key[key] = [*lines, ""]
                order.insert(_place(order, key), key)
        lines_out = [""]
        for key in order:
            if key in by_key:
                block = list(by_key[key])
                while not block[-1]:
                    block.pop()
                lines_out += [*block, ""]
        self._lines[start:tail_end] = lines_out[:-1] if tail_end < end or end == len(self._lines) else lines_out

    def _section(self, name: str) -> tuple[int, int]:
        try:
            start = self._lines.index(f"{name}:") + 1
        except ValueError as error:
            raise CannotWriteError(f"the lock has no {name}") from error
        end = start
        while end < len(self._lines) and (not self._lines[end] or self._lines[end].startswith(" ")):
            end += 1
        return start, end

    def _find(self, path: Sequence[str]) -> int:
        start, end, at = 0, len(self._lines), -1
        for depth, key in enumerate(path):
            lead = "  " * depth + _key(key) + ":"
            at = next(
                (i for i in range(start, end) if self._lines[i] == lead or self._lines[i].startswith(f"{lead} ")), -1
            )
            if at < 0:
                raise CannotWriteError(f"the lock is not laid out as pnpm does: {'.'.join(path)}")
            start = at + 1
            inner = "  " * (depth + 1)
            end = start
            while end < len(self._lines) and (not self._lines[end] or self._lines[end].startswith(inner)):
                end += 1
        return at


def _place(order: Sequence[str], key: str) -> int:
    for index in range(len(order), 0, -1):
        if order[index - 1] < key:
            return index
    return 0


def _key(text: str) -> str:
    return yaml_scalar(text, is_key=True)


def _key_of_line(line: str) -> str:
    text = line.strip()
    if text.startswith("'"):
        return text[1 : text.index("':")].replace("''", "'")
    head = text.partition(": ")[0] if ": " in text else text.removesuffix(":")
    return head.removesuffix(":")


def rendered_entry(key: str, entry: Mapping[str, Any]) -> list[str]:
    """An entry as pnpm writes it."""
    try:
        if not entry:
            return [f"  {_key(key)}: {{}}"]
        lines = [f"  {_key(key)}:"]
        for name, value in sorted(entry.items(), key=_entry_order):
            if name in _ON_ONE_LINE:
                lines.append(f"    {name}: {_flow(value)}")
            else:
                lines += _block(name, value, "    ")
    except ValueError as error:
        raise CannotWriteError(f"{key} holds a text that pnpm writes over several lines") from error
    return lines


def _entry_order(item: tuple[str, Any]) -> tuple[int, str]:
    return _ENTRY_AT.get(item[0], len(_ENTRY_ORDER)), item[0]


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{yaml_scalar(k, flow=True, is_key=True)}: {yaml_scalar(v, flow=True)}" for k, v in value.items()
        )
        return f"{{{inner}}}"
    return f"[{', '.join(yaml_scalar(item, flow=True) for item in value)}]"


def _block(name: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping):
        lines = [f"{indent}{_key(name)}:"]
        for key, inner in sorted(value.items(), key=_entry_order):
            lines += _block(key, inner, f"{indent}  ")
        return lines
    if isinstance(value, list):
        return [f"{indent}{_key(name)}:", *(f"{indent}  - {yaml_scalar(item)}" for item in value)]
    if name in ("hasBin", "requiresBuild", "dev", "optional", "patched") and value in ("true", "false"):
        return [f"{indent}{name}: {value}"]
    if "\n" in value:
        raise ValueError("several lines")
    return [f"{indent}{_key(name)}: {yaml_scalar(value)}"]
