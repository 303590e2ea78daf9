"""Is a lock the one that its tool made of the manifests that lie beside it?

A lock that is not is not repaired in passing: what its tool would make of the
manifests now is not known, and a fix of it would be lost with the next run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.environments import Environments
from dependfix_core.ecosystems.pip.needs import grammar_of, read_range
from dependfix_core.ecosystems.pip.toml_text import TomlTextError, parse_toml, strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.write_pdm import pdm_content_hashes
from dependfix_core.ecosystems.pip.write_pipenv import pipfile_hashes
from dependfix_core.ecosystems.pip.write_poetry import content_hashes
from dependfix_core.model.lock import Constraint, DependencyKind, LockUnit, Problem, SourceKind

_NARROWS: Final = (DependencyKind.BUILD, DependencyKind.CONSTRAINT)

_NAMES_ALL: Final = frozenset({"uv-lock", "poetry-lock", "pdm-lock"})
_TAKEN_FOR_GIVEN: Final = frozenset({"pip", "setuptools", "distribute", "wheel"})


def out_of_step(unit: LockUnit, manifests: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """Where the lock of `unit` and its manifests (path → content) say different things; empty when they agree.

    A lock whose manifests are not there has nothing to agree with.
    """
    if any(problem.reason for problem in unit.problems if problem.path == unit.unit):
        return ()
    torn = tuple(
        Problem(path=unit.unit, position=at, message=f"{said}: it is cut or edited", reason="unsupported-lock-format")
        for at, said in _torn(unit, manifests)
    )
    return torn or tuple(
        Problem(path=unit.unit, position=at, message=f"{said}: the two are not in sync", reason="tool-required")
        for at, said in _differences(unit, manifests)
    )


def _torn(unit: LockUnit, manifests: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """What an entry names without any condition is in the lock, in the formats that name it."""
    if unit.format not in _NAMES_ALL:
        return
    names = {one.name for one in unit.instances.values()} | _left_out(manifests)
    for where, one in unit.instances.items():
        for edge in one.edges:
            if edge.target is None and not edge.marker and edge.name not in names and not one.optional:
                yield where, f"{one.name} needs {edge.name}, which is not in {unit.unit}"


def _left_out(manifests: Mapping[str, bytes]) -> set[str]:
    """Names that no lock has to hold: what older tools took for given, and what the project excludes."""
    found = set(_TAKEN_FOR_GIVEN)
    for content in manifests.values():
        pdm = table_of(table_of(parse_toml(content).get("tool")).get("pdm"))
        found |= {canonicalize_name(name) for name in strings_of(table_of(pdm.get("resolution")).get("excludes"))}
    return found


def _differences(unit: LockUnit, manifests: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    if unit.format == "uv-lock":
        yield from _not_locked(unit, unit.constraints)
        yield from _not_mirrored(unit)
    elif unit.format == "requirements":
        sources = {source for listed in unit.settings["compiled"].values() for source in listed}
        yield from _not_locked(unit, (one for one in unit.constraints if one.path in sources))
        yield from _refused(unit, sources)
    elif unit.format in _HASHES:
        for path, content in manifests.items():
            yield from _not_locked(unit, (one for one in unit.constraints if not one.marker))
            if not hash_differs(unit, content):
                continue
            if not unit.registries:
                yield "content-hash", f"the lock was made of another {path}"
            else:
                # The digest counts the addresses of indexes too, and those alone change nothing.
                yield from _refused(unit, {path})


_HASHES: Final[Mapping[str, Callable[[bytes], tuple[str, ...]]]] = {
    "poetry-lock": content_hashes,
    "pipfile-lock": pipfile_hashes,
    "pdm-lock": pdm_content_hashes,
}
"""Format → the digests that its tool's versions compute of a manifest."""


def hash_differs(unit: LockUnit, manifest: bytes) -> bool:
    """Whether the lock keeps a digest that is none of those that the manifest has."""
    written = unit.settings.get("content_hash")
    try:
        return bool(written) and written not in _HASHES[unit.format](manifest)
    except (TomlTextError, TypeError):
        return False


def _not_locked(unit: LockUnit, constraints: Iterable[Constraint]) -> Iterator[tuple[str, str]]:
    """Declarations for which the lock has nothing."""
    environments = Environments(unit.runtime.get("python", ""), unit.settings.get("environments", ()))
    own = {canonicalize_name(name) for name in unit.settings.get("names", {}).values()}
    groups = unit.settings.get("groups")
    for one in constraints:
        is_asked = one.target is None and one.kind not in _NARROWS and one.source.kind is SourceKind.REGISTRY
        # pdm locks the groups that it is told to.
        is_left = groups is not None and one.kind is not DependencyKind.PROD and one.group not in groups
        if is_asked and not is_left and one.package not in own and environments.mask(one.marker, None):
            yield one.at, f"{one.path} asks for {one.name}, which is not locked"


def _refused(unit: LockUnit, sources: set[str]) -> Iterator[tuple[str, str]]:
    """Declarations that do not admit what is locked for them."""
    by_place: dict[tuple[str, str], list[Constraint]] = {}
    for one in unit.constraints:
        if one.path in sources and one.kind not in _NARROWS and one.target in unit.instances:
            by_place.setdefault((one.path, one.at), []).append(one)
    for (path, at), found in by_place.items():
        requirement = read_range(grammar_of(found[0]), found[0].requirement)
        versions = [unit.instances[one.target].version for one in found if one.target is not None]
        if requirement is not None and all(requirement.admits(v, include_prereleases=True).is_no for v in versions):
            yield at, f"{path} asks for {found[0].name}{found[0].requirement}, and {versions[0]} is locked"


def _not_mirrored(unit: LockUnit) -> Iterator[tuple[str, str]]:
    """Requirements of uv's projects that the lock does not repeat; locks of old have no mirror."""
    members: Mapping[str, str] = unit.settings.get("members", {})
    for path, where in members.items():
        instance = unit.instances.get(where)
        metadata = table_of(instance.raw.get("metadata")) if instance is not None else {}
        if not metadata:
            continue
        mirrored = [*tables_of(metadata.get("requires-dist"))]
        mirrored += [one for listed in table_of(metadata.get("requires-dev")).values() for one in tables_of(listed)]
        for one in unit.constraints:
            if one.path != path or one.kind in _NARROWS or one.source.kind is not SourceKind.REGISTRY:
                continue
            if not any(_is_mirror(entry, one) for entry in mirrored):
                yield one.at, f"{path} asks for {one.name}{one.requirement}, which the lock does not repeat"


def _is_mirror(entry: Mapping[str, Any], declared: Constraint) -> bool:
    extras = sorted(canonicalize_name(extra) for extra in strings_of(entry.get("extras")))
    if canonicalize_name(str(entry.get("name", ""))) != declared.package or extras != sorted(declared.extras):
        return False
    try:
        return SpecifierSet(str(entry.get("specifier", ""))) == SpecifierSet(declared.requirement)
    except InvalidSpecifier:
        return True
