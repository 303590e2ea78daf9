"""What has to move along when locked Python packages change, and what stands in the way?"""

from collections.abc import Callable, Sequence
from typing import Final

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Candidates,
    Change,
    Dependent,
    Moved,
    NoCandidate,
    SetConstraint,
    SetOverride,
    SetVersion,
)
from dependfix_core.ecosystems.pip.environments import covers_python, named_pythons
from dependfix_core.ecosystems.pip.floors import is_floor
from dependfix_core.ecosystems.pip.needs import Need, normal_version, shape
from dependfix_core.ecosystems.pip.reach import keeps_reach
from dependfix_core.ecosystems.pip.resolution import Resolution
from dependfix_core.ecosystems.pip.wheels import pythons_with_wheel
from dependfix_core.model.lock import Constraint, Instance, Override, Source, SourceKind
from dependfix_core.model.plan import Edit
from dependfix_core.model.records import PackageRecord, Release, ReleaseFile, Unavailable
from dependfix_core.model.steps import Step

_MAX_ROUNDS: Final = 400
_EDGE_TABLES: Final = frozenset({"uv-lock", "poetry-lock", "pdm-lock", "pylock"})
"""Formats whose entries say on what condition they need what, or are there."""


class Simulation:
    """One set of changes, carried out on a copy of the state."""

    def __init__(self, before: Resolution, candidates: Candidates) -> None:
        self.before = before
        self.after = before.copy()
        self.edits: list[Edit] = []
        self.needs_tool = False
        self.warnings: dict[str, None] = {}
        self._candidates = candidates
        self._asked: dict[str, str] = {}
        """Copies that the caller moves; they stay where they are put."""
        self._waiting: list[str] = []
        self._raised: list[Constraint] = []

    def run(self, changes: Sequence[Change]) -> Step[Blocked | None]:
        """Carries the changes out with all that follows from them; `None` when nothing stands in the way."""
        for change in changes:
            blocked = self._apply(change)
            if blocked is not None:
                return blocked
        for _ in range(_MAX_ROUNDS):
            if not self._waiting:
                break
            blocked = yield from self._check(self._waiting.pop(0))
            if blocked is not None:
                return blocked
        else:
            return Blocked(reason="tool-required", detail="the changes do not come to rest")
        blocked = yield from self._check_declarations()
        if blocked is not None:
            return blocked
        yield from self._prune()
        return None

    def moved(self) -> tuple[Moved, ...]:
        """All copies that are not as before, by place."""
        before, after = self.before, self.after
        places = {*after.state.versions, *after.state.removed, *after.state.added}
        found = []
        for where in sorted(places):
            old, new = before.instance(where), after.instance(where)
            if old is None and new is None:
                continue
            if old is not None and new is not None and old.version == new.version:
                continue
            named = new or old
            assert named is not None, "one of the two is there"
            found.append(
                Moved(
                    where=where,
                    package=named.name,
                    from_version=old.version if old else None,
                    to_version=new.version if new else None,
                )
            )
        return tuple(found)

    # The changes that were asked for.

    def _apply(self, change: Change) -> Blocked | None:
        state = self.after.state
        match change:
            case SetVersion():
                return self._move(change.where, change.version)
            case SetConstraint():
                constraint = change.constraint
                place = (constraint.path, constraint.at)
                old = state.texts.get(place, constraint.requirement)
                if old != change.requirement:
                    state.texts[place] = change.requirement
                    self._edit(constraint.path, constraint.at, old, change.requirement, "constraint")
                self._raised.append(constraint)
            case SetOverride():
                override = change.override
                place = (override.path, override.at)
                old = state.values.get(place, override.value)
                if old != change.value:
                    state.values[place] = change.value
                    self._edit(override.path, override.at, old, change.value, "override")
            case AddOverride():
                state.forced.append(change.override)
                self._edit(change.override.path, change.override.at, None, entry_text(change.override), "override")
        return None

    def _edit(self, path: str, at: str, old: str | None, new: str, kind: str) -> None:
        edit = Edit(path=path, at=at, from_text=old, to_text=new, kind=kind)
        if edit not in self.edits:
            self.edits.append(edit)

    def _move(self, where: str, version: str) -> Blocked | None:
        copy = self.after.instance(where)
        if copy is None:
            return None
        if copy.source.kind is not SourceKind.REGISTRY:
            detail = f"{copy.name} comes from {copy.source.text or copy.source.kind.value}"
            return Blocked(reason="non-registry-source", detail=detail, where=where)
        for twin in self._twins(copy):
            if self.after.state.versions.get(twin) != version:
                self.after.state.versions[twin] = version
                self._asked[twin] = version
                self._waiting.append(twin)
        return None

    def _twins(self, copy: Instance) -> list[str]:
        """Copies that are one installation with `copy`: the sections of a Pipfile's lock."""
        if self.after.unit.format != "pipfile-lock":
            return [copy.where]
        return [one.where for one in self.after.instances(copy.name) if one.version == copy.version]

    # One copy that is not as before.

    def _check(self, where: str) -> Step[Blocked | None]:
        copy = self.after.instance(where)
        if copy is None:
            return None
        old = self.before.instance(where)
        release = yield from self.after.release(copy.name, copy.version)
        blocked = yield from self._check_files(copy, old, release)
        if blocked is None:
            blocked = yield from self._check_dependents(copy)
        if blocked is not None:
            return blocked
        if isinstance(release, Unavailable):
            self.needs_tool = True
            self._warn(f"what {copy.name} {copy.version} needs is not known")
            return None
        return (yield from self._check_needs(copy, old, release))

    def _warn(self, text: str) -> None:
        self.warnings[text] = None

    def _check_dependents(self, copy: Instance) -> Step[Blocked | None]:
        dependents = yield from self.after.dependents(copy.where)
        for dependent in dependents:
            answer = dependent.admits(copy.version)
            if answer.is_no:
                return Blocked(reason="constraint-conflict", dependent=dependent, where=copy.where)
            if not answer.is_yes:
                self.needs_tool = True
                self._warn(
                    f"whether {dependent.name} {dependent.version} admits {copy.name} {copy.version} is not known"
                )
        return None

    def _check_files(
        self, copy: Instance, old: Instance | None, details: Release | Unavailable
    ) -> Step[Blocked | None]:
        """Runtime floor, wheels and hashes, by the index's own list of files."""
        listed = yield from self._listed(copy)
        release = details if isinstance(details, Release) else listed
        if release is None:
            said = f"the index says nothing of {copy.name} {copy.version}"
            if not self.after.facts.has_tool:
                return Blocked(reason="metadata-unavailable", detail=said, where=copy.where)
            self.needs_tool = True
            self._warn(said)
            return None
        files = (listed.files if listed is not None else ()) or release.files
        if self.after.facts.has_hashes and not (files and all(file.hashes.get("sha256") for file in files)):
            said = f"the hashes of {copy.name} {copy.version} are not known"
            if not self.after.facts.has_tool:
                return Blocked(reason="integrity-unavailable", detail=said, where=copy.where)
            self.needs_tool = True
            self._warn(said)
        before = (yield from self._listed(old)) if old is not None else None
        return self._floor(copy, release, before) or self._wheels(copy, files, before)

    def _listed(self, copy: Instance) -> Step[Release | None]:
        package = yield from self.after.package(copy.name)
        if isinstance(package, Unavailable):
            return None
        return release_in(package, copy.version)

    def _floor(self, copy: Instance, release: Release, before: Release | None) -> Blocked | None:
        new, old = _requires_python(release), _requires_python(before)
        if not new or new == old:
            return None
        facts = self.after.facts
        if not self.after.unit.runtime.get("python"):
            if stricter(new, old):
                self._warn(f"{copy.name} {copy.version} needs python {new}; the project declares no range")
            return None
        lost = facts.lost_python(self.after.mask(copy), old, new)
        if lost is None:
            return None
        declared = self.after.unit.runtime["python"]
        detail = f"{copy.name} {copy.version} needs python {new}, the project is for {declared}"
        return Blocked(reason="runtime-floor", detail=detail, where=copy.where)

    def _wheels(self, copy: Instance, files: Sequence[ReleaseFile], before: Release | None) -> Blocked | None:
        environments = self.after.facts.environments
        pythons = environments.pythons_in(self.after.mask(copy))
        if not files or not self.after.unit.runtime.get("python"):
            return None
        now = pythons_with_wheel(files, pythons)
        if before is not None and (missing := pythons_with_wheel(before.files, pythons) - now):
            named = ".".join(map(str, min(missing)))
            detail = f"{copy.name} {copy.version} has no wheel for python {named}, {before.version} has"
            return Blocked(reason="no-wheel-for-runtime", detail=detail, where=copy.where)
        if not now and pythons:
            named = ".".join(map(str, min((python.major, python.minor) for python in pythons)))
            self._warn(f"no-wheel-for-runtime: {copy.name} {copy.version} has to be built on python {named}")
        return None

    def _check_needs(self, copy: Instance, old: Instance | None, release: Release) -> Step[Blocked | None]:
        needs = self.after.needs_of(copy.where, release)
        before: Sequence[Need] | None = ()
        if old is not None:
            known = yield from self.before.needs(old.where)
            before = None if isinstance(known, Unavailable) else known
        for need in needs:
            blocked = yield from self._meet(copy, need, before)
            if blocked is not None:
                return blocked
        self._judge_tables(copy, needs, before)
        return None

    def _meet(self, copy: Instance, need: Need, before: Sequence[Need] | None) -> Step[Blocked | None]:
        asking = Dependent(
            where=copy.where, name=copy.name, version=copy.version, text=need.text or "", requirement=need.requirement
        )
        targets = self.after.targets_of(copy.where, need)
        if not targets:
            return (yield from self._missing(copy, need, before, asking))
        for target in targets:
            held = self.after.instance(target)
            assert held is not None, "targets are copies of this state"
            if held.source.kind is not SourceKind.REGISTRY or (need.text or "").startswith("@"):
                continue
            forcing = yield from self.after.dependents(target)
            # One release may ask for several ranges, each under a condition of its own.
            own = (one for one in forcing if one.where == copy.where)
            mine = next((one for one in own if one.override is not None or one.text == asking.text), asking)
            if not mine.admits(held.version).is_no:
                continue
            if is_floor(held):
                return Blocked(reason="constraint-conflict", dependent=mine, where=held.where)
            blocked = yield from self._couple(held, mine, forcing)
            if blocked is not None:
                return blocked
        return None

    def _couple(self, held: Instance, asking: Dependent, forcing: Sequence[Dependent]) -> Step[Blocked | None]:
        """Moves a copy that the changed one needs newer, to the least version that all its dependents admit."""
        if held.where in self._asked:
            return Blocked(reason="constraint-conflict", dependent=asking, where=held.where)
        usable = yield from self._usable(held.name, held)
        found = yield from self._candidates.least(
            held.name,
            held.version,
            lambda version: usable(version) and not any(d.admits(version).is_no for d in forcing),
        )
        if isinstance(found, NoCandidate):
            return Blocked(reason=found.reason, detail=found.detail, dependent=asking, where=held.where)
        for twin in self._twins(held):
            self.after.state.versions[twin] = found
            self._waiting.append(twin)
        return None

    def _missing(
        self, copy: Instance, need: Need, before: Sequence[Need] | None, asking: Dependent
    ) -> Step[Blocked | None]:
        """A requirement on what is not locked: as before, somebody else's business, or a package to bring in."""
        if before is None:
            # What the old version needed is not known; what it had is in the lock, so this may be new.
            before = ()
        covered = 0
        for one in before:
            if one.name == need.name:
                covered |= one.mask
        if not need.mask & ~covered or not self.after.facts.is_closed:
            return None
        if len(self.after.state.added) >= self._candidates.policy.max_new_nodes:
            return Blocked(reason="tool-required", detail="too many packages would come in", dependent=asking)
        self.needs_tool = True
        usable = yield from self._usable(need.name, None)
        admits = need.requirement
        found = yield from self._candidates.newest(
            need.name, lambda version: usable(version) and (admits is None or admits.admits(version).is_yes)
        )
        if isinstance(found, NoCandidate):
            if found.reason == "metadata-unavailable":
                self._warn(f"{copy.name} {copy.version} brings in {need.name}, of which nothing is known")
                return None
            return Blocked(reason=found.reason, detail=found.detail, dependent=asking, where=copy.where)
        where = self.after.place_for(copy.where, need.name, found)
        self.after.state.added[where] = Instance(
            where=where,
            name=need.name,
            version=found,
            source=Source(base=copy.source.base),
            dev=copy.dev,
            optional=copy.optional,
            groups=copy.groups,
            markers=need.marker,
            path=copy.path,
        )
        self._waiting.append(where)
        return None

    def _usable(self, package: str, old: Instance | None) -> Step[Callable[[str], bool]]:
        """Whether a version runs on the project's pythons and is not withdrawn, as far as the index says."""
        record = yield from self.after.package(package)
        facts = self.after.facts
        mask = self.after.mask(old) if old is not None else facts.environments.everywhere
        held = release_in(record, old.version) if old is not None and isinstance(record, PackageRecord) else None

        def usable(version: str) -> bool:
            release = release_in(record, version) if isinstance(record, PackageRecord) else None
            if release is None:
                return True
            if release.yanked:
                return False
            if not self.after.unit.runtime.get("python"):
                return True
            return facts.lost_python(mask, _requires_python(held), _requires_python(release)) is None

        return usable

    def _judge_tables(self, copy: Instance, needs: Sequence[Need], before: Sequence[Need] | None) -> None:
        """Whether the entry's own list of needs can be written without the tool's eye for markers."""
        if self.after.unit.format not in _EDGE_TABLES or copy.where in self.after.state.added:
            return
        if before is None:
            self.needs_tool = True
            self._warn(f"what {copy.name} needed so far is not known")
            return
        old, new = shape(before), shape(needs)
        within = self.after.mask(copy)
        for key, mask in new.items():
            if old.get(key) == mask:
                continue
            plain = key not in old and mask == within and not key[1]
            if not plain or not self._joins_quietly(copy, key[0]):
                self.needs_tool = True

    def _joins_quietly(self, copy: Instance, package: str) -> bool:
        """A package that is there already for all that `copy` is there for: its own entry does not change."""
        found = self.after.instances(package)
        return (
            len(found) == 1
            and not self.after.mask(copy) & ~self.after.mask(found[0])
            and set(copy.groups) <= set(found[0].groups)
            and (copy.optional or not found[0].optional)
        )

    # After all moves.

    def _check_declarations(self) -> Step[Blocked | None]:
        """A requirement that was raised has to admit what it lands on."""
        for constraint in self._raised:
            for other in self.after.unit.constraints:
                if (other.path, other.at) != (constraint.path, constraint.at) or other.target is None:
                    continue
                copy = self.after.instance(other.target)
                if copy is None:
                    continue
                dependents = yield from self.after.dependents(copy.where)
                refusing = [d for d in dependents if d.constraint == other and d.admits(copy.version).is_no]
                if refusing:
                    return Blocked(reason="constraint-conflict", dependent=refusing[0], where=copy.where)
        return None

    def _prune(self) -> Step[None]:
        """Copies that lost the last one who asked for them go, with what only they asked for."""
        if not self.after.facts.is_closed:
            return
        waiting = [where for where in self.after.state.versions if where not in self.after.state.removed]
        seen: set[str] = set()
        while waiting:
            where = waiting.pop(0)
            if where in seen:
                continue
            seen.add(where)
            candidates = yield from self._lost_targets(where)
            for target in candidates:
                copy = self.after.instance(target)
                if copy is None or copy.source.kind in {SourceKind.WORKSPACE, SourceKind.LINK}:
                    continue
                dependents = yield from self.after.dependents(target)
                if not dependents and (yield from self._is_certain(target)):
                    self.after.state.removed.add(target)
                    waiting.append(target)
                elif dependents and not (yield from keeps_reach(self.after, copy, dependents)):
                    self.needs_tool = True

    def _lost_targets(self, where: str) -> Step[list[str]]:
        """Copies that `where` needed before and does not need any more."""
        before = yield from self._needs_before(where)
        if isinstance(before, Unavailable):
            return []
        kept: set[str] = set()
        if where not in self.after.state.removed:
            after = yield from self.after.needs(where)
            if isinstance(after, Unavailable):
                return []
            kept = {target for need in after for target in self.after.targets_of(where, need)}
        had = {target for need in before for target in self.before.targets_of(where, need)}
        return sorted(had - kept)

    def _needs_before(self, where: str) -> Step[tuple[Need, ...] | Unavailable]:
        if self.before.instance(where) is None:
            return ()
        return (yield from self.before.needs(where))

    def _is_certain(self, target: str) -> Step[bool]:
        """Where the lock has no edges, nobody asks only if everybody's record was there to be read."""
        if self.after.facts.edges in {"names", "ranges", "via"}:
            return True
        for where in self.after.unit.instances:
            if where != target and self.after.instance(where) is not None:
                needs = yield from self.after.needs(where)
                if isinstance(needs, Unavailable):
                    self._warn(f"{target} may not be needed any more")
                    return False
        return True


def release_in(package: PackageRecord, version: str) -> Release | None:
    """The listed release, however its version is spelled."""
    return package.releases.get(version) or package.releases.get(normal_version(version))


def entry_text(override: Override) -> str:
    """A new forcing entry as it is written: a PEP 508 requirement, or in pdm's table the bare value."""
    if override.at.startswith("tool.pdm."):
        return override.value
    return f"{override.selector}{override.value}" + (f" ; {override.condition}" if override.condition else "")


def stricter(new: str, old: str) -> bool:
    """Whether a range leaves out a python that it names itself or the other one names, and that the other has."""
    pythons = [*named_pythons(old), *named_pythons(new)]
    return covers_python(new, (p for p in pythons if covers_python(old, [p]) is None)) is not None


def _requires_python(release: Release | None) -> str:
    return release.requires_runtime.get("python", "") if release is not None else ""
