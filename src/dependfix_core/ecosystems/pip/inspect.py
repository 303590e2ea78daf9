"""What is wrong with a Python unit as it lies there, by the rules of its format and never by a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.base import Finding
from dependfix_core.ecosystems.inspection import edge_findings
from dependfix_core.ecosystems.pip.environments import Mask, covers_python
from dependfix_core.ecosystems.pip.graph import PythonGraph
from dependfix_core.ecosystems.pip.inspect_agreement import disagreements
from dependfix_core.ecosystems.pip.inspect_files import wrong_files
from dependfix_core.ecosystems.pip.lock_graph import MAIN_GROUP, extras_of, with_reach
from dependfix_core.ecosystems.pip.needs import PEP440, POETRY, Need, read_range
from dependfix_core.ecosystems.pip.poetry_constraint import to_pep440
from dependfix_core.ecosystems.pip.requirements_tree import Pin, askers
from dependfix_core.ecosystems.pip.resolution import Facts, Resolution, State
from dependfix_core.ecosystems.pip.simulation import release_in
from dependfix_core.ecosystems.pip.write import reached_masks
from dependfix_core.model.lock import DependencyKind, Edge, Instance, LockUnit, SourceKind
from dependfix_core.model.records import PackageRecord, Release, Unavailable
from dependfix_core.model.steps import Step, together

_EDGES_IN_LOCK: Final = frozenset({"names", "ranges", "via"})
_EDGE_TABLES: Final = frozenset({"uv-lock", "poetry-lock", "pdm-lock"})
"""Formats whose entries say what the copy needs."""


def inspect(unit: LockUnit) -> Step[tuple[Finding, ...]]:
    """See `Ecosystem.inspect`."""
    if unit.format == "manifest":
        return ()
    resolution = Resolution(Facts(unit), State())
    masks = _reached(resolution)
    found = yield from edge_findings(PythonGraph(unit, resolution))
    known = yield from _releases(resolution)
    needs = {where: resolution.needs_of(where, release) for where, release in known.items()}
    found += _unmet(resolution, needs, masks)
    found += yield from _wrong_pythons(resolution, masks)
    found += yield from disagreements(unit, resolution.facts)
    found += yield from wrong_files(resolution)
    if unit.format in _EDGE_TABLES:
        found += _wrong_tables(resolution, known, needs, masks)
    found += _wrong_ranges_of_python(unit, known)
    found += _wrong_groups(unit)
    found += _wrong_notes(resolution, known, needs)
    found += _unneeded(resolution)
    return tuple(dict.fromkeys(found))


def _reached(resolution: Resolution) -> dict[str, Mask]:
    """Where each copy is installed; a copy that nothing leads to is taken to be everywhere."""
    facts = resolution.facts
    found = reached_masks(resolution)
    for where in resolution.unit.instances:
        is_led_to = facts.edges in _EDGES_IN_LOCK and (where in facts.incoming or where in facts.declared)
        found.setdefault(where, 0 if is_led_to and found else facts.environments.everywhere)
    return found


def _releases(resolution: Resolution) -> Step[dict[str, Release]]:
    """The details of each copy whose record is at hand."""
    copies = [one for one in resolution.unit.instances.values() if _is_registry(one)]
    found = yield from together([resolution.release(one.name, one.version) for one in copies])
    return {
        copy.where: release for copy, release in zip(copies, found, strict=True) if not isinstance(release, Unavailable)
    }


def _is_registry(instance: Instance) -> bool:
    return instance.source.kind is SourceKind.REGISTRY and bool(instance.version)


# V4: requirements


def _unmet(resolution: Resolution, needs: Mapping[str, Sequence[Need]], masks: Mapping[str, Mask]) -> Iterator[Finding]:
    if not resolution.facts.is_closed:
        return
    instances = resolution.unit.instances
    # A Pipfile without a python is for one that is not known; what runs on which others is no matter.
    is_for_one = resolution.unit.format == "pipfile-lock" and not resolution.unit.runtime.get("python")
    for where, asked in needs.items():
        reached = masks[where]
        for need in asked:
            covered = 0
            for target in resolution.targets_of(where, need):
                covered |= resolution.mask(instances[target])
            if not covered:
                yield Finding(
                    check="V4", where=where, detail=f"{instances[where].name} needs {need.name}, which is not there"
                )
            elif need.mask & reached & ~covered and not is_for_one:
                detail = f"{instances[where].name} needs {need.name} also where it is not locked"
                yield Finding(check="V4", where=where, detail=detail)


def _wrong_pythons(resolution: Resolution, masks: Mapping[str, Mask]) -> Step[list[Finding]]:
    """Copies that do not run on a python of the project on which they are reached."""
    unit, environments = resolution.unit, resolution.facts.environments
    if not unit.runtime.get("python"):
        return []
    copies = [one for one in unit.instances.values() if _is_registry(one)]
    packages = yield from together([resolution.package(one.name) for one in copies])
    found = []
    for copy, package in zip(copies, packages, strict=True):
        release = release_in(package, copy.version) if isinstance(package, PackageRecord) else None
        wanted = release.requires_runtime.get("python", "") if release is not None else ""
        reached = masks[copy.where] & resolution.mask(copy)
        missing = covers_python(wanted, environments.pythons_in(reached), upper=unit.tool != "uv")
        if missing is not None:
            detail = f"{copy.name} does not run on python {missing.major}.{missing.minor}"
            found.append(Finding(check="V4", where=copy.where, detail=detail))
    return found


# V7: what an entry says of its copy


def _wrong_tables(
    resolution: Resolution,
    known: Mapping[str, Release],
    needs: Mapping[str, Sequence[Need]],
    masks: Mapping[str, Mask],
) -> Iterator[Finding]:
    """Entries that do not list what their release asks for, or list something else."""
    grammar = POETRY if resolution.unit.format == "poetry-lock" else PEP440
    for where, release in known.items():
        copy = resolution.unit.instances[where]
        reached = masks[where]
        wanted: dict[str, list[Need]] = {}
        for need in needs[where]:
            if need.mask & reached:
                wanted.setdefault(need.name, []).append(need)
        listed: dict[str, list[Edge]] = {}
        for edge in copy.edges:
            listed.setdefault(edge.name, []).append(edge)
        published = {canonicalize_name(one.name) for one in release.dependencies or ()}
        for name in sorted(wanted.keys() - listed.keys()):
            yield Finding(check="V7", where=where, detail=f"the entry of {copy.name} does not list {name}")
        for name in sorted(listed.keys() - published):
            detail = f"the entry of {copy.name} lists {name}, which it does not ask for"
            yield Finding(check="V7", where=where, detail=detail)
        for name in sorted(listed.keys() & wanted.keys()):
            if not _is_same_range(grammar, listed[name], wanted[name]):
                detail = f"the entry of {copy.name} asks for {name} in another range"
                yield Finding(check="V7", where=where, detail=detail)


def _is_same_range(grammar: str, edges: Iterable[Edge], needs: Iterable[Need]) -> bool:
    """Several ranges under several markers may be joined or split; that is not judged."""
    locked = {edge.requirement for edge in edges if not extras_of(edge)}
    asked = {need.text for need in needs}
    if len(locked) != 1 or len(asked) != 1:
        return True
    (mine,), (theirs,) = locked, asked
    if mine is None or theirs is None:
        return True
    left, right = read_range(grammar, mine), read_range(PEP440, theirs)
    return left is None or right is None or left.intervals == right.intervals


def _wrong_ranges_of_python(unit: LockUnit, known: Mapping[str, Release]) -> Iterator[Finding]:
    """Entries that name another `Requires-Python` than their release."""
    for where, release in known.items():
        copy = unit.instances[where]
        written = copy.raw.get("python-versions") if unit.format == "poetry-lock" else None
        if unit.format == "pdm-lock":
            written = next((one["requires_python"] for one in copy.raw["entries"] if "requires_python" in one), None)
        wanted = release.requires_runtime.get("python")
        if isinstance(written, str) and wanted and not _is_same_python(written, wanted):
            yield Finding(check="V7", where=where, detail=f"{copy.name} runs on other pythons than its entry says")


def _is_same_python(written: str, wanted: str) -> bool:
    try:
        arms = to_pep440(written)
        return len(arms) != 1 or SpecifierSet(arms[0]) == SpecifierSet(wanted)
    except (InvalidSpecifier, ValueError):
        return True


def _wrong_groups(unit: LockUnit) -> Iterator[Finding]:
    """Groups that do not follow from what leads to a copy, in the formats that store them."""
    main = {"poetry-lock": MAIN_GROUP, "pdm-lock": "default"}.get(unit.format)
    if main is None or not unit.manifests:
        return
    of_main = (DependencyKind.PROD, DependencyKind.OPTIONAL) if unit.format == "poetry-lock" else (DependencyKind.PROD,)
    labelled = [replace(one, group=main if one.kind in of_main else one.group) for one in unit.constraints]
    bare = {where: replace(one, groups=()) for where, one in unit.instances.items()}
    reached = with_reach(bare, [one for one in labelled if one.kind is not DependencyKind.BUILD])
    locked = unit.settings.get("groups")
    for where, one in unit.instances.items():
        stores = "groups" in one.raw or any("groups" in entry for entry in one.raw.get("entries", ()))
        should = {canonicalize_name(group) for group in reached[where].groups}
        if locked is not None:
            should &= {canonicalize_name(group) for group in locked}
        does = {canonicalize_name(group) for group in one.groups}
        if stores and should and should != does:
            detail = f"the groups of {one.name} are {' '.join(sorted(does))}, not {' '.join(sorted(should))}"
            yield Finding(check="V7", where=where, detail=detail)


def _wrong_notes(
    resolution: Resolution, known: Mapping[str, Release], needs: Mapping[str, Sequence[Need]]
) -> Iterator[Finding]:
    """Comments of compiled files that name somebody who never asks, or leave out somebody who does."""
    unit = resolution.unit
    if unit.format != "requirements" or unit.settings.get("edges") != "via":
        return
    pinned: dict[str, dict[str, list[str]]] = {}
    for where, one in unit.instances.items():
        for pin in _pins(one):
            pinned.setdefault(pin.path, {}).setdefault(one.name, []).append(where)
    published = {
        where: {canonicalize_name(one.name) for one in release.dependencies or ()} for where, release in known.items()
    }
    for where, one in unit.instances.items():
        for pin in _pins(one):
            if not pin.line.via:
                continue
            named = set(askers(pin.line.via))
            for parent in sorted(named):
                places = pinned[pin.path].get(parent, [])
                if not places:
                    detail = f"{pin.path}: {one.name} is noted to come by {parent}, which is not there"
                    yield Finding(check="V7", where=where, detail=detail)
                elif all(place in published and one.name not in published[place] for place in places):
                    detail = f"{pin.path}: {one.name} is noted to come by {parent}, which does not ask for it"
                    yield Finding(check="V7", where=where, detail=detail)
            for parent, places in sorted(pinned[pin.path].items()):
                # What only some platforms need is noted where the file was made for them; nobody knows for which.
                asks = any(
                    need.name == one.name
                    and need.mask == resolution.mask(unit.instances[place])
                    and where in resolution.targets_of(place, need)
                    for place in places
                    for need in needs.get(place, ())
                )
                if asks and parent not in named:
                    detail = f"{pin.path}: {parent} asks for {one.name}, which is not noted"
                    yield Finding(check="V7", where=where, detail=detail)


def _pins(instance: Instance) -> tuple[Pin, ...]:
    pins: tuple[Pin, ...] = instance.raw.get("pins", ())
    return pins


def _unneeded(resolution: Resolution) -> Iterator[Finding]:
    """Copies that nothing leads to, in the formats that say what leads where."""
    unit, facts = resolution.unit, resolution.facts
    if unit.format not in _EDGE_TABLES or not unit.constraints:
        return
    for where, one in unit.instances.items():
        if _is_registry(one) and where not in facts.declared and where not in facts.incoming:
            yield Finding(check="V7", where=where, detail=f"nothing asks for {one.name}")
