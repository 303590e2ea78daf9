"""What every lockfile writer of this ecosystem works on: the moves and edits of a plan, files and records."""

import posixpath
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dependfix_core.ecosystems.npm.selectors import pnpm_steps, split_name, yarn_selector
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Edit, Move, RefusalReason, Remediation
from dependfix_core.model.records import RecordKey, Release, ReleaseRecord
from dependfix_core.model.steps import Step, records_for
from dependfix_core.versions import Unparsable, parse_requirement


class CannotWriteError(Exception):
    """The lock cannot be written here; `reason` says whether the package manager can."""

    def __init__(self, detail: str, reason: RefusalReason = "tool-required", remediation: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason: RefusalReason = reason
        self.remediation = remediation


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """All remediations of one unit together."""

    moved: Mapping[str, Move] = field(default_factory=dict)
    """Copies that are there and get another version, by place."""
    added: Mapping[str, Move] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    edits: tuple[Edit, ...] = ()

    @property
    def releases(self) -> frozenset[tuple[str, str]]:
        """Name and version of everything that comes in."""
        return frozenset(
            (move.package_name, move.to_version)
            for move in (*self.moved.values(), *self.added.values())
            if move.to_version is not None
        )

    @property
    def forced(self) -> set[str]:
        """Packages whose overrides or resolutions change."""
        found = set()
        for edit in self.edits:
            if edit.kind == "override":
                last = pnpm_steps(edit.at.removeprefix("pnpm.").partition(".")[2])[-1]
                found.add(yarn_selector(last).package if edit.at.startswith("resolutions.") else split_name(last)[0])
        return found

    def edits_of(self, path: str) -> list[Edit]:
        """The edits of one file, in the plan's order."""
        return [edit for edit in self.edits if edit.path == path]


def combined(unit: LockUnit, remediations: Sequence[Remediation]) -> Wanted:
    """The moves and edits of all remediations, each once.

    Raises:
        CannotWriteError: Two of them disagree, a move does not fit the unit, or one needs the package manager.
    """
    moved: dict[str, Move] = {}
    added: dict[str, Move] = {}
    removed: dict[str, Move] = {}
    edits: dict[tuple[str, str, str | None], Edit] = {}
    for index, remediation in enumerate(remediations):
        if remediation.needs_tool:
            why = f": {'; '.join(remediation.warnings)}" if remediation.warnings else ""
            raise CannotWriteError(f"the plan leaves a part to the package manager{why}", remediation=index)
        for move in remediation.moves:
            place = move.where
            holder = removed if move.removed else added if move.added else moved
            known = moved.get(place) or added.get(place) or removed.get(place)
            if known is not None and known.to_version != move.to_version:
                raise CannotWriteError(f"two remediations move {place} differently", remediation=index)
            instance = unit.instances.get(place)
            is_locked = unit.format != "manifest"
            if is_locked and not move.added and (instance is None or instance.version != move.from_version):
                raise CannotWriteError(f"{place} is not at {move.from_version}", remediation=index)
            holder[place] = move
        for edit in remediation.edits:
            known_edit = edits.setdefault(
                (edit.path, edit.at, edit.to_text if edit.kind == "gate-exclusion" else ""), edit
            )
            if known_edit.to_text != edit.to_text:
                raise CannotWriteError(f"two remediations edit {edit.path} {edit.at} differently", remediation=index)
    return Wanted(moved=moved, added=added, removed=frozenset(removed), edits=tuple(edits.values()))


class Releases:
    """Registry records of the versions that come in, and of those whose requirements are asked for."""

    def __init__(self, unit: LockUnit) -> None:
        self._unit = unit
        self._bases: dict[str, str] = {}
        for instance in unit.instances.values():
            if instance.source.base:
                self._bases.setdefault(instance.name, instance.source.base)
        self._known: dict[tuple[str, str], Release | None] = {}

    def fetch(self, wanted: Iterable[tuple[str, str]]) -> Step[None]:
        """Asks for records by name and version; those that are known are not asked for again."""
        keys = {pair: self._key(*pair) for pair in wanted if pair not in self._known}
        found = yield from records_for(keys.values())
        for pair, key in keys.items():
            record = found[key]
            self._known[pair] = record.release if isinstance(record, ReleaseRecord) else None

    def get(self, name: str, version: str) -> Release | None:
        """A record that was fetched; `None` when it could not be had."""
        return self._known.get((name, version))

    def need(self, name: str, version: str) -> Release:
        """A record that was fetched.

        Raises:
            CannotWriteError: It could not be had.
        """
        release = self.get(name, version)
        if release is None:
            raise CannotWriteError(f"there is no record of {name} {version}", "metadata-unavailable")
        if release.dependencies is None:
            raise CannotWriteError(
                f"the record of {name} {version} does not say what it asks for", "metadata-unavailable"
            )
        return release

    def base(self, name: str) -> str:
        """Address from which the lock has copies of `name`, or would have them; empty when it does not say."""
        if name in self._bases:
            return self._bases[name]
        scope = name.partition("/")[0] if name.startswith("@") else ""
        registries = self._unit.registries
        return registries.get(scope, registries.get("", ""))

    def _key(self, name: str, version: str) -> RecordKey:
        return RecordKey(ecosystem=self._unit.ecosystem, name=name, version=version, registry=self.base(name))


def tarball_address(releases: Releases, release: Release, old: str = "") -> str:
    """The address of a release under the registry that the lock uses, never under the record's own.

    Raises:
        CannotWriteError: The lock's registry has a layout of its own, or is not known.
    """
    name, version = release.name, release.version
    suffix = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
    if release.tarball and not release.tarball.endswith((suffix, suffix.replace("/@", "/%40", 1))):
        raise CannotWriteError(f"the registry names the file of {name} {version} otherwise", "integrity-unavailable")
    if old:
        at = old.find(f"/{name}/-/")
        if at <= 0:
            raise CannotWriteError(f"{old} does not say how the registry names files", "integrity-unavailable")
        return old[:at] + suffix
    base = releases.base(name)
    if not base:
        raise CannotWriteError(f"the lock does not say where {name} comes from", "integrity-unavailable")
    return base + suffix


def integrity_of(release: Release, old: str = "") -> str:
    """The hash that a lock stores for a release.

    Raises:
        CannotWriteError: There is none, or a weaker one than before.
    """
    integrity = release.integrity
    if not integrity and release.shasum and (not old or old.startswith("sha1-")):
        try:
            digest = bytes.fromhex(release.shasum)
        except ValueError:
            digest = b""
        if len(digest) == 20:
            return f"sha1-{b64encode(digest).decode()}"
    if not integrity or (old.startswith("sha512-") and "sha512-" not in integrity):
        raise CannotWriteError(
            f"no hash of {release.name} {release.version} as strong as before", "integrity-unavailable"
        )
    return integrity


def requirements(release: Release, *kinds: str) -> dict[str, str]:
    """Name → text of the requirements of these kinds, in the record's order."""
    return {one.name: one.requirement for one in release.dependencies or () if one.kind in kinds}


def admits(requirement: str, version: str) -> bool:
    """Whether a range certainly or possibly admits a version; what is no range (a tag, a place) does."""
    parsed = parse_requirement("npm", requirement)
    return True if isinstance(parsed, Unparsable) else parsed.admits(version).may_be


def bundles(release: Release) -> bool:
    """Whether the release brings packages inside its tarball, or a lock of its own."""
    extra = release.extra
    listed = extra.get("bundleDependencies", extra.get("bundledDependencies"))
    return bool(listed) or bool(extra.get("_hasShrinkwrap"))


def engines_of(release: Release) -> Any:
    """`engines` as the package states them: a table, or a list of old."""
    stated = release.extra.get("engines")
    return stated if isinstance(stated, list) else dict(release.requires_runtime)


def bins_of(release: Release) -> dict[str, str]:
    """Commands, with their files without a leading `./`."""
    stated = release.extra.get("bin")
    if isinstance(stated, str):
        stated = {release.name.rpartition("/")[2]: stated} if stated else {}
    if not isinstance(stated, dict):
        return {}
    return {
        name.rpartition("/")[2]: posixpath.normpath(f"/{path}")[1:]
        for name, path in stated.items()
        if isinstance(path, str) and path
    }


def table(value: Any) -> Mapping[str, Any]:
    """A mapping as it is; of anything else an empty one."""
    return value if isinstance(value, Mapping) else {}


def peer_ranges(release: Release) -> dict[str, str]:
    """Peers as pnpm and bun count them: not what the package depends on itself, and those that only the details name."""
    own = {release.name, *requirements(release, "prod", "optional")}
    meta = table(release.extra.get("peerDependenciesMeta"))
    named = {name: "*" for name, about in meta.items() if table(about).get("optional") is True}
    found = {**named, **requirements(release, "peer", "peer-optional")}
    return {name: found[name] for name in sorted(found) if name not in own}


def optional_peers(release: Release) -> set[str]:
    """Those of the peers that may be missing."""
    meta = table(release.extra.get("peerDependenciesMeta"))
    optional = {name for name, about in meta.items() if table(about).get("optional") is True}
    optional |= set(requirements(release, "peer-optional"))
    return {name for name in peer_ranges(release) if name in optional}
