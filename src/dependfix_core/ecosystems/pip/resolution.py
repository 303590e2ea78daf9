"""Which requirement lands on which locked copy, now and after changes?

Python has no nesting: a name has one version in each environment, so every
requirement on a name lands on the one copy (or on the forks whose markers
overlap with its own). What a lock does not store, the registry's records say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from packaging.utils import canonicalize_name
from packaging.version import Version

from dependfix_core.ecosystems.base import Dependent
from dependfix_core.ecosystems.pip.environments import Environments, Mask, covers_python, named_pythons
from dependfix_core.ecosystems.pip.floors import floor_of, from_above, is_floor
from dependfix_core.ecosystems.pip.lock_graph import extras_of
from dependfix_core.ecosystems.pip.needs import (
    PEP440,
    POETRY,
    Need,
    grammar_of,
    normal_version,
    read_range,
    release_needs,
)
from dependfix_core.ecosystems.pip.toml_text import strings_of
from dependfix_core.model.lock import Constraint, DependencyKind, Edge, Instance, LockUnit, Override, SourceKind
from dependfix_core.model.records import PackageRecord, RecordKey, Release, ReleaseRecord, Unavailability, Unavailable
from dependfix_core.model.steps import Step, records_for, together

Place = tuple[str, str]
"""(path, at) of a declaration."""

_EDGES_IN_LOCK: Final = frozenset({"names", "ranges", "via"})


@dataclass(slots=True)
class State:
    """What differs from the unit as it was read; copied before it is changed."""

    versions: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    added: dict[str, Instance] = field(default_factory=dict)
    texts: dict[Place, str] = field(default_factory=dict)
    values: dict[Place, str] = field(default_factory=dict)
    forced: list[Override] = field(default_factory=list)

    def copy(self) -> "State":
        """One that can be changed without the first one noticing."""
        return State(
            versions=dict(self.versions),
            removed=set(self.removed),
            added=dict(self.added),
            texts=dict(self.texts),
            values=dict(self.values),
            forced=list(self.forced),
        )


class Facts:
    """What never changes for one unit: indices over its copies, environments, records seen."""

    def __init__(self, unit: LockUnit) -> None:
        self.unit = unit
        self.edges: str = unit.settings.get("edges", "unknown")
        self.environments = Environments(unit.runtime.get("python", ""), unit.settings.get("environments", ()))
        self.by_name: dict[str, list[str]] = {}
        self.incoming: dict[str, list[tuple[str, Edge]]] = {}
        self.declared: dict[str, list[Constraint]] = {}
        self.asked: dict[str, set[str]] = {}
        for constraint in unit.constraints:
            # What builds the project is in no lock; only where nothing is locked its floors count.
            if constraint.target is not None and (
                constraint.kind is not DependencyKind.BUILD or self._is_floor(constraint)
            ):
                self.declared.setdefault(constraint.target, []).append(constraint)
                self.asked.setdefault(constraint.target, set()).update(constraint.extras)
        for where, instance in unit.instances.items():
            self.by_name.setdefault(instance.name, []).append(where)
            self.asked.setdefault(where, set()).update(_extras_in_entry(instance))
            for edge in instance.edges:
                if edge.target is not None:
                    self.incoming.setdefault(edge.target, []).append((where, edge))
                    self.asked.setdefault(edge.target, set()).update(edge.extras)
        self.releases: dict[tuple[str, str], Release | Unavailable] = {}
        self.packages: dict[str, PackageRecord | Unavailable] = {}

    @property
    def is_closed(self) -> bool:
        """Whether the lock lists everything that is installed, so that a new name has to be added."""
        if self.unit.format == "requirements":
            return bool(self.unit.settings.get("compiled")) or bool(self.unit.settings.get("hashes"))
        return self.unit.format != "manifest"

    @property
    def has_hashes(self) -> bool:
        """Whether an entry without the hashes of its files is no entry."""
        return self.is_closed and bool(self.unit.settings.get("hashes", True))

    def _is_floor(self, constraint: Constraint) -> bool:
        target = self.unit.instances.get(constraint.target or "")
        return target is not None and is_floor(target)

    @property
    def has_tool(self) -> bool:
        """Whether a package manager can write what is not known here; a file that a person wrote has none."""
        if self.unit.format == "requirements":
            return bool(self.unit.settings.get("compiled"))
        return self.unit.format not in {"manifest", "pylock"}

    def lost_python(self, mask: Mask, old: str, new: str) -> Version | None:
        """A python that the project is for inside `mask`, that ran `old` and does not run `new` (`Requires-Python`)."""
        environments = self.environments
        declared = environments.requires_python
        named = [python for python in named_pythons(new) if declared.contains(python, prereleases=True)]
        pythons = [*environments.pythons_in(mask), *(python for python in named if mask == environments.everywhere)]
        upper = self.unit.tool != "uv"  # uv takes no bound from above at its word
        before = [python for python in pythons if covers_python(old, [python], upper=upper) is None]
        return covers_python(new, before, upper=upper)


class Resolution:
    """One state of one unit. Changed only by a simulation, on a copy of its own."""

    def __init__(self, facts: Facts, state: State) -> None:
        self.facts = facts
        self.state = state

    @property
    def unit(self) -> LockUnit:
        """The unit as it was read."""
        return self.facts.unit

    def copy(self) -> "Resolution":
        """The same state, to be changed."""
        return Resolution(self.facts, self.state.copy())

    def record_key(self, package: str, version: str = "") -> RecordKey:
        """The key with the index that the unit takes the package from."""
        unit = self.unit
        index = unit.settings.get("index_of", {}).get(package)
        base = unit.registries.get(index, "") if index else ""
        if not base:
            bases = (unit.instances[where].source.base for where in self.facts.by_name.get(package, ()))
            base = next((one for one in bases if one), "") or unit.registries.get("", "")
        return RecordKey(
            ecosystem=unit.ecosystem, name=package, version=normal_version(version) if version else "", registry=base
        )

    def instances(self, package: str) -> tuple[Instance, ...]:
        """The copies of `package` in this state."""
        places = [*self.facts.by_name.get(package, ()), *self.state.added]
        found = (self.instance(where) for where in places)
        return tuple(one for one in found if one is not None and one.name == package)

    def instance(self, where: str) -> Instance | None:
        """The copy at `where` in this state."""
        state = self.state
        if where in state.removed:
            return None
        found = state.added.get(where) or self.unit.instances.get(where)
        version = state.versions.get(where)
        return replace(found, version=version) if found is not None and version is not None else found

    def dependents(self, where: str) -> Step[tuple[Dependent, ...]]:
        """All requirements that land on the copy, those of manifests first (of a floor: last)."""
        instance = self.instance(where)
        if instance is None:
            return ()
        declared = [self._declaration(constraint) for constraint in self.facts.declared.get(where, ())]
        parents = yield from self._parents(where, instance)
        asking: list[Dependent] = []
        for parent, need in parents:
            copy = self.instance(parent)
            assert copy is not None, "parents are copies of this state"
            asking.append(
                Dependent(
                    where=parent,
                    name=copy.name,
                    version=copy.version,
                    text=need.text or "",
                    requirement=from_above(need.requirement) if is_floor(instance) else need.requirement,
                    any_version=(need.text or "").startswith("@"),
                )
            )
        # A declaration that nothing pins moves with its floor, so that others are what stands in the way.
        listed = [*asking, *declared] if is_floor(instance) else [*declared, *asking]
        return tuple(self._overridden(instance, listed))

    # What lands on a copy.

    def text_of(self, constraint: Constraint) -> str:
        """What a declaration asks for in this state."""
        return self.state.texts.get((constraint.path, constraint.at), constraint.requirement)

    def _declaration(self, constraint: Constraint) -> Dependent:
        text = self.text_of(constraint)
        names = self.unit.settings.get("names", {})
        holder = self._pinning_entry(constraint)
        if holder is not None:
            text = self.state.values.get((holder.path, holder.at), holder.value)
        grammar = grammar_of(constraint)
        requirement = read_range(grammar, text)
        target = self.unit.instances.get(constraint.target or "")
        if target is not None and is_floor(target):
            floor = floor_of(grammar, text)
            requirement = read_range(PEP440, f"=={floor}") if floor is not None else None
        return Dependent(
            where=None,
            name=names.get(constraint.path) or constraint.path,
            version="",
            text=text,
            requirement=requirement,
            kind=constraint.kind,
            constraint=constraint,
            override=holder,
            any_version=constraint.source.kind is not SourceKind.REGISTRY,
        )

    def _pinning_entry(self, constraint: Constraint) -> Override | None:
        """A line that only narrows and names one exact version holds that version: it is an entry to edit.

        A range that a person wrote there is a decision, and is left alone.
        """
        if constraint.kind is not DependencyKind.CONSTRAINT or not constraint.requirement.startswith("=="):
            return None
        place = (constraint.path, constraint.at)
        return next((one for one in self.unit.overrides if (one.path, one.at) == place), None)

    def _overridden(self, instance: Instance, asking: Sequence[Dependent]) -> Iterator[Dependent]:
        forcing = [one for one in (*self.unit.overrides, *self.state.forced) if self._forces(one, instance)]
        if not forcing:
            yield from asking
            return
        override = forcing[-1]
        value = self.state.values.get((override.path, override.at), override.value)
        for one in asking:
            if one.kind is DependencyKind.CONSTRAINT:
                yield one
            else:
                yield replace(one, text=value, requirement=read_range(PEP440, _as_range(value)), override=override)

    def _forces(self, override: Override, instance: Instance) -> bool:
        if override.kind != "override" or override.package != instance.name:
            return False
        return bool(self.facts.environments.mask(override.condition, None) & self.mask(instance))

    def _parents(self, where: str, instance: Instance) -> Step[list[tuple[str, Need]]]:
        """Copies whose requirement lands on `where`, with that requirement."""
        facts, state = self.facts, self.state
        found: list[tuple[str, Need]] = []
        by_lock: dict[str, list[Edge]] = {}
        for parent, edge in facts.incoming.get(where, ()):
            if parent not in state.removed and parent not in state.versions:
                by_lock.setdefault(parent, []).append(edge)
        if facts.edges in _EDGES_IN_LOCK:
            for parent, edges in by_lock.items():
                needs = yield from self._needs_by_lock(parent, edges, instance.name)
                found.extend((parent, need) for need in needs)
            others = [*state.versions, *(place for place in state.added if place not in state.versions)]
        else:
            others = [*facts.unit.instances, *state.added]
        candidates = [place for place in dict.fromkeys(others) if place != where and place not in state.removed]
        asked = yield from together([self.needs(place) for place in candidates])
        for parent, needs_or_not in zip(candidates, asked, strict=True):
            if not isinstance(needs_or_not, Unavailable):
                found.extend(
                    (parent, need)
                    for need in needs_or_not
                    if need.name == instance.name and where in self.targets_of(parent, need)
                )
        return sorted(found, key=lambda pair: pair[0])

    def _needs_by_lock(self, parent: str, edges: Sequence[Edge], package: str) -> Step[list[Need]]:
        """The lock says that `parent` needs `package`; the record says in which versions where the lock does not."""
        copy = self.unit.instances[parent]
        within = self.mask(copy)
        asked = self.facts.asked.get(parent, set())
        grammar = POETRY if self.unit.format == "poetry-lock" else PEP440
        counting = [edge for edge in edges if not extras_of(edge) or not asked.isdisjoint(extras_of(edge))]
        if all(edge.requirement is not None for edge in counting):
            return [
                Need(
                    name=package,
                    text=edge.requirement,
                    grammar=grammar,
                    mask=self.facts.environments.mask(edge.marker, asked) & within,
                    extras=edge.extras,
                    marker=edge.marker,
                )
                for edge in counting
            ]
        release = yield from self.release(copy.name, copy.version)
        if not isinstance(release, Unavailable):
            needs = [need for need in self.needs_of(parent, release) if need.name == package]
            landing = [need for need in needs if edges[0].target in self.targets_of(parent, need)]
            if landing:
                return landing
            if needs:
                # A note of a compiled file names a package, not which of its copies asks.
                return [] if self.facts.edges == "via" else needs
        return [Need(name=package, text=None, mask=within)]

    # What a copy needs.

    def mask(self, instance: Instance) -> Mask:
        """Where the copy is installed, as far as its own marker says; never nowhere."""
        environments = self.facts.environments
        return environments.mask(instance.markers, None) or environments.everywhere

    def asked(self, where: str) -> set[str]:
        """The extras that somebody asks of the copy."""
        return self.facts.asked.get(where, set())

    def needs(self, where: str) -> Step[tuple[Need, ...] | Unavailable]:
        """What the copy asks for in this state: by its record, else as far as the lock says."""
        instance = self.instance(where)
        assert instance is not None, "only copies of this state are asked"
        if instance.source.kind is not SourceKind.REGISTRY or not instance.version:
            return ()
        release = yield from self.release(instance.name, instance.version)
        if not isinstance(release, Unavailable):
            return self.needs_of(where, release)
        is_as_locked = where in self.unit.instances and where not in self.state.versions
        if is_as_locked and self.facts.edges in _EDGES_IN_LOCK:
            return self._locked_needs(self.unit.instances[where])
        return release

    def _locked_needs(self, copy: Instance) -> tuple[Need, ...]:
        within, asked = self.mask(copy), self.asked(copy.where)
        grammar = POETRY if self.unit.format == "poetry-lock" else PEP440
        return tuple(
            Need(
                name=edge.name,
                text=edge.requirement,
                grammar=grammar,
                mask=mask,
                extras=edge.extras,
                target=edge.target,
                marker=edge.marker,
            )
            for edge in copy.edges
            if (mask := self.facts.environments.mask(edge.marker, asked) & within)
        )

    def needs_of(self, where: str, release: Release) -> tuple[Need, ...]:
        """What the copy would ask for if it were `release`."""
        instance = self.instance(where)
        within = self.mask(instance) if instance is not None else self.facts.environments.everywhere
        return release_needs(release, self.asked(where), self.facts.environments, within)

    def place_for(self, parent: str, package: str, version: str) -> str:
        """Where a copy that comes in for `parent` would be."""
        match self.unit.format:
            case "requirements":
                return f"{package}=={version}"
            case "pipfile-lock":
                return f"{parent.partition('.')[0]}.{package}"
            case _:
                return f"package[{package} {version}]"

    def targets_of(self, parent: str, need: Need) -> list[str]:
        """The copies that a requirement lands on: those of the name whose environments overlap with its own."""
        section = parent.partition(".")[0] if self.unit.format == "pipfile-lock" else ""
        found = [one for one in self.instances(need.name) if self.mask(one) & need.mask and one.where != parent]
        if section:
            own = [one for one in found if one.where.startswith(f"{section}.")]
            found = own or [one for one in found if one.where.startswith("default.")]
        return [one.where for one in found]

    # Records.

    def release(self, package: str, version: str) -> Step[Release | Unavailable]:
        """The details of one version; unavailable also when its requirements are not known."""
        known = self.facts.releases.get((package, version))
        if known is None:
            key = self.record_key(package, version)
            records = yield from records_for([key])
            record = records[key]
            if isinstance(record, ReleaseRecord) and record.release.dependencies is not None:
                known = record.release
            elif isinstance(record, Unavailable):
                known = record
            else:
                known = Unavailable(key=key, why=Unavailability.NOT_FOUND, detail="its requirements are not known")
            self.facts.releases[package, version] = known
        return known

    def package(self, name: str) -> Step[PackageRecord | Unavailable]:
        """The list of a package's releases."""
        known = self.facts.packages.get(name)
        if known is None:
            key = self.record_key(name)
            records = yield from records_for([key])
            record = records[key]
            known = (
                record
                if isinstance(record, PackageRecord | Unavailable)
                else Unavailable(key=key, why=Unavailability.NOT_FOUND)
            )
            self.facts.packages[name] = known
        return known


def _extras_in_entry(instance: Instance) -> Iterator[str]:
    """Extras that the lock's own entry says are asked for."""
    raw = instance.raw
    optional = raw.get("optional-dependencies")  # uv writes those extras only that are in use
    if isinstance(optional, dict):
        yield from (canonicalize_name(extra) for extra in optional)
    if "pins" in raw:
        yield from (extra for pin in raw["pins"] for extra in pin.line.extras)
    yield from (canonicalize_name(extra) for extra in strings_of(raw.get("extras")))
    for entry in raw.get("entries", ()):
        yield from (canonicalize_name(extra) for extra in strings_of(entry.get("extras")))


def _as_range(value: str) -> str:
    """Pdm writes a bare version for an exact one."""
    return f"=={value}" if value[:1].isdigit() else value
