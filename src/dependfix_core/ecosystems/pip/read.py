"""Which scopes do a repository's Python files form, and what does each of them say?

Reading asks for files in rounds and never looks at a disk: a lock brings its
manifests, a manifest its lock, a requirements file the tree around it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, dirname, join
from typing import Final

from dependfix_core.ecosystems.pip.floors import with_floors
from dependfix_core.ecosystems.pip.in_step import out_of_step
from dependfix_core.ecosystems.pip.lock_graph import with_reach
from dependfix_core.ecosystems.pip.pdm_lock import read_pdm_lock
from dependfix_core.ecosystems.pip.pipfile import (
    Pipfile,
    PipfileLockError,
    lock_section,
    read_pipfile,
    read_pipfile_lock,
)
from dependfix_core.ecosystems.pip.poetry_constraint import to_pep440
from dependfix_core.ecosystems.pip.poetry_lock import admits, read_poetry_lock
from dependfix_core.ecosystems.pip.pylock import FILE_NAME as PYLOCK_NAME
from dependfix_core.ecosystems.pip.pylock import read_pylock
from dependfix_core.ecosystems.pip.pyproject import PyProject, read_pyproject
from dependfix_core.ecosystems.pip.requirements_tree import (
    ECOSYSTEM,
    is_requirements_path,
    may_hold_requirements,
    read_manifest,
    read_requirement_units,
)
from dependfix_core.ecosystems.pip.toml_text import TomlTextError
from dependfix_core.ecosystems.pip.uv_lock import LocalPackage, UvLock, read_uv_lock
from dependfix_core.model.files import Absence, FileContent, Listing
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, LockUnit, Problem
from dependfix_core.model.steps import Step, file_content, file_contents, together

_LOCKS_OF_PYPROJECT: Final = ("uv.lock", "poetry.lock", "pdm.lock")
_TOOL_OF_LOCK: Final = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm"}
_LONE_MANIFESTS: Final = frozenset({"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"})

_Found = Mapping[str, FileContent | Absence]


def is_python_path(path: str) -> bool:
    """Whether a file's name is one that this ecosystem reads."""
    name = basename(path)
    return (
        name in _LONE_MANIFESTS
        or name in _TOOL_OF_LOCK
        or name == "Pipfile.lock"
        or PYLOCK_NAME.fullmatch(name) is not None
        or is_requirements_path(path)
    )


def read_units(listing: Listing, manifest_paths: Iterable[str]) -> Step[tuple[LockUnit, ...]]:
    """The scopes that the given files belong to, sorted by name, each once.

    Paths that are not in the listing lead nowhere. A file that cannot be read
    gives a scope of its name with a problem and nothing else. Files of
    requirements may be named anyhow: others include them, and scopes bear their names.
    """
    there = sorted({path for path in manifest_paths if path in listing})
    trees = [path for path in there if may_hold_requirements(path)]
    locks = yield from _locks_for(listing, [path for path in there if is_python_path(path) and path not in trees])
    lone = [path for path, lock in locks.items() if lock is None]
    steps: list[Step[tuple[LockUnit, ...]]] = [
        _lock_unit(listing, lock) for lock in sorted({lock for lock in locks.values() if lock is not None})
    ]
    steps.extend(_lone_units(listing, path) for path in lone)
    if trees:
        steps.append(read_requirement_units(listing, trees))
    units: dict[str, LockUnit] = {}
    for found in (yield from together(steps)):
        units.update((unit.unit, unit) for unit in found)
    return tuple(units[name] for name in sorted(units))


def _locks_for(listing: Listing, paths: Sequence[str]) -> Step[dict[str, str | None]]:
    """Manifest or lock → the lock whose scope it belongs to, or `None`."""
    found = yield from together([_lock_for(listing, path) for path in paths])
    return dict(zip(paths, found, strict=True))


def _lock_for(listing: Listing, path: str) -> Step[str | None]:
    name, folder = basename(path), dirname(path)
    if name in _TOOL_OF_LOCK or name == "Pipfile.lock" or PYLOCK_NAME.fullmatch(name):
        return path
    if name == "Pipfile":
        lock = join(folder, "Pipfile.lock")
        return lock if lock in listing else None
    if name != "pyproject.toml":
        return None
    near = [join(folder, lock) for lock in _LOCKS_OF_PYPROJECT if join(folder, lock) in listing]
    if len(near) == 1:
        return near[0]
    if near:
        content = yield from file_content(path)
        return _own_lock(content, near)
    return (yield from _workspace_lock(listing, path)) or next(iter(_pylocks(listing, folder)), None)


def _own_lock(content: FileContent | Absence, locks: Sequence[str]) -> str:
    """Of several locks side by side the one of the tool that the manifest is written for."""
    if isinstance(content, FileContent):
        try:
            tools = read_pyproject(content.path, content.content).tools
        except TomlTextError:
            tools = frozenset()
        for lock in locks:
            if _TOOL_OF_LOCK[basename(lock)] in tools:
                return lock
    return locks[0]


def _workspace_lock(listing: Listing, path: str) -> Step[str | None]:
    """The uv lock of a folder above that names the manifest's folder as a member."""
    above = [lock for folder in _parents(dirname(path)) if (lock := join(folder, "uv.lock")) in listing]
    for lock in above:
        content = yield from file_content(lock)
        if isinstance(content, FileContent):
            try:
                read = read_uv_lock(lock, content.content)
            except TomlTextError:
                continue
            if any(local.folder == dirname(path) for local in read.locals):
                return lock
    return None


def _parents(folder: str) -> Iterator[str]:
    while folder:
        folder = dirname(folder)
        yield folder


def _pylocks(listing: Listing, folder: str) -> list[str]:
    found = [path for path in listing if dirname(path) == folder and PYLOCK_NAME.fullmatch(basename(path))]
    return sorted(found, key=lambda path: (basename(path) != "pylock.toml", path))


def _lock_unit(listing: Listing, lock: str) -> Step[tuple[LockUnit, ...]]:
    content = yield from file_content(lock)
    if not isinstance(content, FileContent):
        return (
            _broken(lock, Problem(path=lock, position="", message=f"not read: {content.value}", reason="unreadable")),
        )
    name = basename(lock)
    readers: dict[str, Callable[[Listing, FileContent], Step[LockUnit]]] = {
        "uv.lock": _uv_unit,
        "poetry.lock": _poetry_unit,
        "pdm.lock": _pdm_unit,
        "Pipfile.lock": _pipenv_unit,
    }
    try:
        unit = yield from readers.get(name, _pylock_unit)(listing, content)
    except (TomlTextError, PipfileLockError) as error:
        problem = Problem(path=lock, position=error.position, message=error.message, reason="unsupported-lock-format")
        return (_broken(lock, problem),)
    found = yield from file_contents(unit.manifests)
    texts = {path: file.content for path, file in found.items() if isinstance(file, FileContent)}
    problems = (*unit.problems, *_unread_manifests(unit), *out_of_step(unit, texts))
    return (replace(unit, problems=problems),)


def _unread_manifests(unit: LockUnit) -> Iterator[Problem]:
    """Manifests beside the lock that nobody could read: what they ask for is not known."""
    for one in unit.problems:
        if basename(one.path) in _LONE_MANIFESTS and one.path not in unit.manifests:
            said = f"{one.path}:{one.position}" if one.position else one.path
            yield Problem(path=unit.unit, position="", message=f"{said}: {one.message}", reason="unreadable")


def _broken(path: str, problem: Problem) -> LockUnit:
    return LockUnit(
        unit=path,
        ecosystem=ECOSYSTEM,
        format=_FORMAT_OF_NAME.get(basename(path), "manifest"),
        files=(path,),
        problems=(problem,),
    )


_FORMAT_OF_NAME: Final = {
    "uv.lock": "uv-lock",
    "poetry.lock": "poetry-lock",
    "pdm.lock": "pdm-lock",
    "Pipfile.lock": "pipfile-lock",
    "pylock.toml": "pylock",
}


def _lone_units(listing: Listing, path: str) -> Step[tuple[LockUnit, ...]]:
    """A manifest without a lock, unless it takes its requirements from files of their own."""
    content = yield from file_content(path)
    if not isinstance(content, FileContent):
        return (
            _broken(path, Problem(path=path, position="", message=f"not read: {content.value}", reason="unreadable")),
        )
    try:
        manifest = (
            read_pipfile(path, content.content) if basename(path) == "Pipfile" else read_manifest(path, content.content)
        )
    except TomlTextError as error:
        return (_broken(path, Problem(path=path, position=error.position, message=error.message)),)
    if getattr(manifest, "requirement_files", ()):
        return (yield from read_requirement_units(listing, [path]))
    instances, constraints = with_floors(manifest.constraints, by_text=False)
    return (
        LockUnit(
            unit=path,
            ecosystem=ECOSYSTEM,
            format="manifest",
            manifests=(path,),
            files=(path,),
            instances=with_reach(instances, constraints),
            constraints=constraints,
            overrides=manifest.overrides if isinstance(manifest, PyProject) else (),
            gates=manifest.gates if isinstance(manifest, PyProject) else (),
            runtime={"python": manifest.requires_python} if manifest.requires_python else {},
            tool=_manifest_tool(manifest),
            registries=manifest.registries if isinstance(manifest, PyProject | Pipfile) else {},
            problems=manifest.problems,
            settings={
                "index_of": manifest.index_of if isinstance(manifest, PyProject | Pipfile) else {},
                "names": {} if isinstance(manifest, Pipfile) or not manifest.name else {path: manifest.name},
            },
        ),
    )


def _manifest_tool(manifest: object) -> str:
    if isinstance(manifest, Pipfile):
        return "pipenv"
    if isinstance(manifest, PyProject):
        return next((tool for tool in ("poetry", "pdm", "uv") if tool in manifest.tools), "pip")
    return "pip"


class _Manifests:
    """The manifests of one lock, as far as they could be read."""

    def __init__(self, found: _Found) -> None:
        self.read: dict[str, PyProject] = {}
        self.problems: list[Problem] = []
        for path, content in found.items():
            if isinstance(content, FileContent):
                try:
                    self.read[path] = read_pyproject(path, content.content)
                except TomlTextError as error:
                    self.problems.append(Problem(path=path, position=error.position, message=error.message))
                else:
                    self.problems.extend(self.read[path].problems)
            else:
                self.problems.append(Problem(path=path, position="", message=f"not read: {content.value}"))

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self.read))

    def registries(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for manifest in self.read.values():
            found.update(manifest.registries)
        return found

    def names(self) -> dict[str, str]:
        """Manifest → name of its project, where it has one."""
        return {path: manifest.name for path, manifest in self.read.items() if manifest.name}

    def index_of(self) -> dict[str, str]:
        return {package: index for manifest in self.read.values() for package, index in manifest.index_of.items()}


def _uv_unit(listing: Listing, content: FileContent) -> Step[LockUnit]:
    lock = read_uv_lock(content.path, content.content)
    folder = dirname(content.path)
    paths = {join(local.folder, "pyproject.toml"): local for local in lock.locals if local.is_member}
    paths.setdefault(join(folder, "pyproject.toml"), _NO_PACKAGE)
    manifests = _Manifests((yield from file_contents(path for path in paths if path in listing)))
    constraints = [
        constraint
        for path in manifests.paths
        for constraint in _uv_constraints(manifests.read[path], paths[path], lock)
    ]
    root = manifests.read.get(join(folder, "pyproject.toml"))
    return LockUnit(
        unit=content.path,
        ecosystem=ECOSYSTEM,
        format="uv-lock",
        format_version=f"{lock.version}.{lock.revision}",
        manifests=manifests.paths,
        files=tuple(sorted({content.path, *manifests.read})),
        instances=with_reach(lock.instances, constraints),
        constraints=tuple(constraints),
        # Only the workspace root's own tables are in force.
        overrides=root.overrides if root else (),
        gates=root.gates or lock.gates if root else lock.gates,
        runtime={"python": lock.requires_python} if lock.requires_python else {},
        tool="uv",
        registries=manifests.registries(),
        problems=(*lock.problems, *manifests.problems),
        settings={
            "edges": "names",
            "index_of": manifests.index_of(),
            "names": manifests.names(),
            "locals": {local.where: local.folder for local in lock.locals},
            "members": {join(local.folder, "pyproject.toml"): local.where for local in lock.locals if local.is_member},
            "resolution_markers": lock.resolution_markers,
            "manifest": lock.manifest,
            "options": lock.options,
        },
    )


_NO_PACKAGE: Final = LocalPackage(where="", name="", folder="", is_member=False, requires={})


def _uv_constraints(manifest: PyProject, local: LocalPackage, lock: UvLock) -> Iterator[Constraint]:
    """Each requirement with the copies that the lock gives its project for it."""
    by_name: dict[str, list[str]] = {}
    for instance in lock.instances.values():
        by_name.setdefault(instance.name, []).append(instance.where)
    edges = [edge for listed in local.requires.values() for edge in listed]
    for constraint in manifest.constraints:
        if constraint.kind is DependencyKind.CONSTRAINT:
            for where in by_name.get(constraint.package, []):
                yield replace(constraint, target=where)
            continue
        section = {DependencyKind.PROD: "dependencies", DependencyKind.OPTIONAL: "optional-dependencies"}.get(
            constraint.kind, "dev-dependencies"
        )
        own = local.requires.get((section, constraint.group.lower()), ())
        wheres = list(
            dict.fromkeys(
                edge.target
                for edge in own or edges
                if edge.name == constraint.package and edge.target and constraint.kind is not DependencyKind.BUILD
            )
        )
        if len(wheres) > 1:
            fitting = [
                one for one in wheres if admits(constraint.requirement, lock.instances[one].version) is not False
            ]
            wheres = fitting or wheres
        # A requirement that the lock does not know for this project has no copy: the two are out of step.
        yield from (replace(constraint, target=where) for where in wheres)
        if not wheres:
            yield constraint


def _poetry_unit(listing: Listing, content: FileContent) -> Step[LockUnit]:
    lock = read_poetry_lock(content.path, content.content)
    path = join(dirname(content.path), "pyproject.toml")
    manifests = _Manifests((yield from file_contents([path] if path in listing else [])))
    manifest = manifests.read.get(path)
    constraints = list(_admitted(manifest.constraints, lock.instances)) if manifest else []
    instances = lock.instances
    if not lock.has_groups:
        instances = with_reach(instances, constraints)
    runtime = (
        manifest.requires_python if manifest and manifest.requires_python else _poetry_python(lock.requires_python)
    )
    return LockUnit(
        unit=content.path,
        ecosystem=ECOSYSTEM,
        format="poetry-lock",
        format_version=lock.version,
        manifests=manifests.paths,
        files=tuple(sorted({content.path, *manifests.read})),
        instances=instances,
        constraints=tuple(constraints),
        runtime={"python": runtime} if runtime else {},
        tool="poetry",
        tool_version=lock.generator,
        registries=manifest.registries if manifest else {},
        problems=(*lock.problems, *manifests.problems),
        settings={
            "edges": "ranges",
            "index_of": manifests.index_of(),
            "names": manifests.names(),
            "content_hash": lock.content_hash,
            "extras": lock.extras,
        },
    )


def _poetry_python(text: str) -> str:
    try:
        arms = to_pep440(text)
    except ValueError:
        return ""
    return arms[0] if len(arms) == 1 else ""


def _admitted(constraints: Iterable[Constraint], instances: Mapping[str, Instance]) -> Iterator[Constraint]:
    """Each requirement with every copy of its package that it admits; the only copy whatever its version."""
    by_name: dict[str, list[Instance]] = {}
    for instance in instances.values():
        by_name.setdefault(instance.name, []).append(instance)
    for constraint in constraints:
        found = by_name.get(constraint.package, []) if constraint.kind is not DependencyKind.BUILD else []
        if len(found) > 1:
            admitted = [one for one in found if admits(constraint.requirement or "*", one.version) is not False]
            found = admitted or found
        yield from (replace(constraint, target=instance.where) for instance in found)
        if not found:
            yield constraint


def _pdm_unit(listing: Listing, content: FileContent) -> Step[LockUnit]:
    lock = read_pdm_lock(content.path, content.content)
    path = join(dirname(content.path), "pyproject.toml")
    manifests = _Manifests((yield from file_contents([path] if path in listing else [])))
    manifest = manifests.read.get(path)
    runtime = (manifest.requires_python if manifest else "") or lock.requires_python
    return LockUnit(
        unit=content.path,
        ecosystem=ECOSYSTEM,
        format="pdm-lock",
        format_version=lock.version,
        manifests=manifests.paths,
        files=tuple(sorted({content.path, *manifests.read})),
        instances=lock.instances,
        constraints=tuple(_admitted(manifest.constraints, lock.instances)) if manifest else (),
        overrides=manifest.overrides if manifest else (),
        gates=manifest.gates if manifest else (),
        runtime={"python": runtime} if runtime else {},
        tool="pdm",
        registries=manifest.registries if manifest else {},
        problems=(*lock.problems, *manifests.problems),
        settings={
            "edges": "ranges",
            "index_of": manifests.index_of(),
            "names": manifests.names(),
            "content_hash": lock.content_hash,
            "strategy": lock.strategy,
            "groups": lock.groups,
        },
    )


def _pylock_unit(listing: Listing, content: FileContent) -> Step[LockUnit]:
    lock = read_pylock(content.path, content.content)
    folder = dirname(content.path)
    path = join(folder, "pyproject.toml")
    # Beside another lock the manifest is that lock's; this one is an export and only has to follow.
    others = [join(folder, name) for name in _LOCKS_OF_PYPROJECT if join(folder, name) in listing]
    manifests = _Manifests((yield from file_contents([path] if path in listing else [])))
    manifest = manifests.read.get(path)
    constraints = tuple(_admitted(manifest.constraints, lock.instances)) if manifest else ()
    edges_known = any(instance.edges for instance in lock.instances.values())
    return LockUnit(
        unit=content.path,
        ecosystem=ECOSYSTEM,
        format="pylock",
        format_version=lock.version,
        manifests=() if others else manifests.paths,
        files=tuple(sorted({content.path, *manifests.read})),
        instances=with_reach(lock.instances, constraints) if edges_known else lock.instances,
        constraints=constraints,
        overrides=manifest.overrides if manifest else (),
        gates=manifest.gates if manifest else (),
        runtime={"python": lock.requires_python} if lock.requires_python else {},
        tool=lock.created_by or "pip",
        registries=manifest.registries if manifest else {},
        problems=(*lock.problems, *manifests.problems),
        settings={
            "edges": "names" if edges_known else "unknown",
            "index_of": manifests.index_of(),
            "names": manifests.names(),
            "environments": lock.environments,
            "exported": bool(others),
        },
    )


def _pipenv_unit(listing: Listing, content: FileContent) -> Step[LockUnit]:
    lock = read_pipfile_lock(content.path, content.content)
    path = join(dirname(content.path), "Pipfile")
    found = yield from file_contents([path] if path in listing else [])
    manifest: Pipfile | None = None
    problems = list(lock.problems)
    text = found.get(path)
    if isinstance(text, FileContent):
        try:
            manifest = read_pipfile(path, text.content)
        except TomlTextError as error:
            problems.append(Problem(path=path, position=error.position, message=error.message))
        else:
            problems.extend(manifest.problems)
    elif text is not None:
        problems.append(Problem(path=path, position="", message=f"not read: {text.value}"))
    runtime = manifest.requires_python if manifest else lock.requires_python
    return LockUnit(
        unit=content.path,
        ecosystem=ECOSYSTEM,
        format="pipfile-lock",
        format_version=str(lock.spec),
        manifests=(path,) if manifest else (),
        files=(path, content.path) if manifest else (content.path,),
        instances=lock.instances,
        constraints=tuple(_in_sections(manifest, lock.instances)) if manifest else (),
        runtime={"python": runtime} if runtime else {},
        tool="pipenv",
        registries=manifest.registries if manifest else lock.registries,
        problems=tuple(problems),
        settings={
            "edges": "unknown",
            "index_of": manifest.index_of if manifest else {},
            "content_hash": lock.content_hash,
        },
    )


def _in_sections(manifest: Pipfile, instances: Mapping[str, Instance]) -> Iterator[Constraint]:
    """Each requirement with the copy of its own section of the lock."""
    for constraint in manifest.constraints:
        section = lock_section(constraint.group or "packages")
        where = f"{section}.{constraint.package}"
        yield replace(constraint, target=where if where in instances else None)
