"""Where do a Python unit's manifests and its lock say different things?"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.base import Finding
from dependfix_core.ecosystems.pip.in_step import hash_differs
from dependfix_core.ecosystems.pip.requirements import RequirementsFile, read_requirements
from dependfix_core.ecosystems.pip.resolution import Facts
from dependfix_core.ecosystems.pip.toml_text import strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.write_uv import canonical_specifier
from dependfix_core.model.files import FileContent
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, LockUnit, SourceKind
from dependfix_core.model.steps import Step, file_contents

_HASHED: Final = frozenset({"poetry-lock", "pdm-lock", "pipfile-lock"})
_NARROWS: Final = (DependencyKind.BUILD, DependencyKind.CONSTRAINT)
_Entry = tuple[str, str, tuple[str, ...]]
"""(package, specifier as uv writes it, extras)"""


def disagreements(unit: LockUnit, facts: Facts) -> Step[list[Finding]]:
    """V5, by the rule of the format: content hashes, mirrored declarations, layers of pins."""
    found = list(_not_locked(unit, facts))
    if unit.format == "uv-lock":
        found += _uv(unit)
    elif unit.format == "requirements":
        files = yield from file_contents(path for path in unit.files if path.endswith((".txt", ".in", ".pip")))
        read = [read_requirements(path, file.content) for path, file in files.items() if isinstance(file, FileContent)]
        found += _layers(unit, facts, {file.path: file for file in read})
    elif unit.format in _HASHED and unit.manifests:
        (manifest,) = unit.manifests
        held = (yield from file_contents([manifest]))[manifest]
        if isinstance(held, FileContent):
            found += _content_hash(unit, held)
    return found


def _not_locked(unit: LockUnit, facts: Facts) -> Iterator[Finding]:
    """Declarations for which the lock has nothing."""
    sources = {source for listed in unit.settings.get("compiled", {}).values() for source in listed}
    own = {canonicalize_name(name) for name in unit.settings.get("names", {}).values()}
    groups = unit.settings.get("groups")
    for one in unit.constraints:
        if one.target is not None or one.kind in _NARROWS or one.source.kind is not SourceKind.REGISTRY:
            continue
        if unit.format == "requirements" and one.path not in sources:
            continue
        if groups is not None and one.kind is not DependencyKind.PROD and one.group not in groups:
            continue
        if one.package not in own and facts.environments.mask(one.marker, None):
            yield Finding(check="V5", where=f"{one.path} {one.at}", detail=f"{one.package} is declared and not locked")


# Content hashes.


def _content_hash(unit: LockUnit, manifest: FileContent) -> Iterator[Finding]:
    if hash_differs(unit, manifest.content):
        yield Finding(check="V5", where=manifest.path, detail="the content hash in the lock is not that of the file")


# What uv mirrors.


def _uv(unit: LockUnit) -> Iterator[Finding]:
    members: Mapping[str, str] = unit.settings.get("members", {})
    for path, where in members.items():
        instance = unit.instances.get(where)
        metadata = table_of(instance.raw.get("metadata")) if instance is not None else {}
        own = [one for one in unit.constraints if one.path == path and one.kind not in _NARROWS]
        if not metadata:
            continue  # older locks have no mirror
        plain = list(tables_of(metadata.get("requires-dist")))
        grouped = [one for listed in table_of(metadata.get("requires-dev")).values() for one in tables_of(listed)]
        yield from _mirror(path, [one for one in own if one.kind is not DependencyKind.DEV], plain)
        yield from _mirror(path, [one for one in own if one.kind is DependencyKind.DEV], grouped)
    manifest = table_of(unit.settings.get("manifest"))
    for kind, key in (("constraint", "constraints"), ("override", "overrides")):
        declared = {(one.package, canonical_specifier(one.value)) for one in unit.overrides if one.kind == kind}
        locked = {(_name(one), one.get("specifier", "")) for one in tables_of(manifest.get(key))}
        for package, specifier in sorted(declared - locked, key=str):
            if specifier is not None:
                detail = f"{package}{specifier} is not among the lock's {key}"
                yield Finding(check="V5", where=f"{unit.unit} manifest.{key}", detail=detail)
        for package, specifier in sorted(locked - declared, key=str):
            detail = f"the lock's {key} hold {package}{specifier}, which is not declared"
            yield Finding(check="V5", where=f"{unit.unit} manifest.{key}", detail=detail)


def _mirror(path: str, declared: Iterable[Constraint], mirrored: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    locked = {_entry(one): _name(one) for one in mirrored}
    wanted: dict[_Entry, Constraint] = {}
    for one in declared:
        if one.source.kind is SourceKind.REGISTRY:
            specifier = canonical_specifier(one.requirement)
            if specifier is not None:
                wanted[one.package, specifier, tuple(sorted(one.extras))] = one
    elsewhere = {one.package for one in declared if one.source.kind is not SourceKind.REGISTRY}
    for entry, one in wanted.items():
        if entry not in locked:
            yield Finding(check="V5", where=f"{path} {one.at}", detail=f"the lock does not mirror {one.package}")
    for entry, package in locked.items():
        if entry not in wanted and package not in elsewhere and entry[1]:
            yield Finding(check="V5", where=f"{path} {package}", detail=f"the lock holds {package}{entry[1]}")


def _entry(one: Mapping[str, Any]) -> _Entry:
    extras = sorted(canonicalize_name(extra) for extra in strings_of(one.get("extras")))
    return _name(one), str(one.get("specifier", "")), tuple(extras)


def _name(one: Mapping[str, Any]) -> str:
    return canonicalize_name(str(one.get("name", "")))


# Layers of requirements files.


def _layers(unit: LockUnit, facts: Facts, files: Mapping[str, RequirementsFile]) -> Iterator[Finding]:
    """Files that are installed together and pin a package to different versions for the same environment."""
    by_file: dict[str, list[Instance]] = {}
    for instance in unit.instances.values():
        for pin in instance.raw.get("pins", ()):
            by_file.setdefault(pin.path, []).append(instance)
    compiled: Mapping[str, tuple[str, ...]] = unit.settings.get("compiled", {})
    for path in files:
        mine = {one.name: one for one in by_file.get(path, ())}
        for other in sorted(_included(path, files, compiled) - {path}):
            for theirs in by_file.get(other, ()):
                one = mine.get(theirs.name)
                if one is None or one.version == theirs.version:
                    continue
                if facts.environments.mask(one.markers, None) & facts.environments.mask(theirs.markers, None):
                    detail = f"{path} pins {one.name} to another version than {other}"
                    yield Finding(check="V5", where=one.where, detail=detail)


def _included(path: str, files: Mapping[str, RequirementsFile], compiled: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Every file that has a say when `path` is installed or was compiled, itself among them."""
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in seen and current in files:
            seen.add(current)
            waiting += [reference.path for reference in files[current].references]
            waiting += compiled.get(current, ())
    return seen
