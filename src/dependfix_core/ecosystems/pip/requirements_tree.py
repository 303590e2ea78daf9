"""Which requirements files belong together, and what do they pin as one?

Files that include, constrain or are compiled from one another form one scope:
what one of them pins must stay the same in all of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import basename, dirname, join, normpath
from typing import Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.floors import with_floors
from dependfix_core.ecosystems.pip.in_step import out_of_step
from dependfix_core.ecosystems.pip.lock_graph import with_reach
from dependfix_core.ecosystems.pip.poetry_lock import admits
from dependfix_core.ecosystems.pip.pyproject import PyProject, read_pyproject
from dependfix_core.ecosystems.pip.requirement_text import is_remote
from dependfix_core.ecosystems.pip.requirements import RequirementLine, RequirementsFile, read_requirements
from dependfix_core.ecosystems.pip.setup_cfg import SetupCfg, read_setup_cfg
from dependfix_core.ecosystems.pip.setup_py import SetupPy, read_setup_py
from dependfix_core.ecosystems.pip.toml_text import TomlTextError
from dependfix_core.model.files import Absence, FileContent, Listing
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Edge,
    Instance,
    LockUnit,
    Override,
    Problem,
    ReleaseAgeGate,
    Source,
    SourceKind,
)
from dependfix_core.model.steps import Step, file_contents

ECOSYSTEM: Final = "pip"
MAX_FILES: Final = 400
"""A scope of more files is cut here and says so."""

_REQUIREMENT_NAME: Final = re.compile(r"(?i)[^/]*(?:requirement|constraint)[^/]*\.(?:txt|in|pip)$")
_REQUIREMENT_FOLDER: Final = re.compile(r"(?i)(?:requirements?|reqs|pip)$")
_LISTED_EXTENSION: Final = re.compile(r"(?i)\.(?:txt|in|pip)$")
_DEVELOPMENT_NAME: Final = re.compile(
    r"(?i)(?:^|[-_./])(?:dev|develop|development|test|tests|testing|lint|docs?|ci)(?:[-_.]|$)"
)
_MERGE: Final = re.compile(rb"(?:<{7}|>{7}|={7}|\|{7})(?:\s|$)")
_DIGEST_CHARS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_NAMING: Final = ("pyproject.toml", "setup.cfg", "setup.py")
_MANIFEST: Final = frozenset(_NAMING)

Manifest = PyProject | SetupCfg | SetupPy


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One line that pins a copy; a copy has one for each file that names it."""

    path: str
    line: RequirementLine


@dataclass(slots=True)
class _Tree:
    files: dict[str, RequirementsFile] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    absent: dict[str, Absence] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Compiled file → the files it was made from."""


def is_requirements_path(path: str) -> bool:
    """Whether a file's name says that it holds requirements."""
    name = basename(path)
    if name.lower() == "manifest.in":
        return False
    if _REQUIREMENT_NAME.match(name):
        return True
    return bool(_LISTED_EXTENSION.search(name) and _REQUIREMENT_FOLDER.search(dirname(path)))


def may_hold_requirements(path: str) -> bool:
    """Whether a file that somebody names as a manifest can be one of requirements, whatever it is called."""
    return _LISTED_EXTENSION.search(path) is not None and basename(path).lower() != "manifest.in"


def read_manifest(path: str, content: bytes) -> Manifest:
    """The declarations of a `pyproject.toml`, `setup.cfg` or `setup.py`.

    Raises:
        TomlTextError: A `pyproject.toml` that is not TOML.
    """
    name = basename(path)
    if name == "pyproject.toml":
        return read_pyproject(path, content)
    return read_setup_cfg(path, content) if name == "setup.cfg" else read_setup_py(path, content)


def read_requirement_units(listing: Listing, paths: Iterable[str]) -> Step[tuple[LockUnit, ...]]:
    """The scopes that the given requirements files (and manifests that point to such) belong to."""
    asked = sorted(set(paths))
    tree = _Tree()
    yield from _load(listing, asked, tree)
    units = [_unit(tree, component) for component in _components(tree) if not component.isdisjoint(asked)]
    return (*units, *(_unread(path, tree.absent[path]) for path in asked if path in tree.absent))


def _unread(path: str, absence: Absence) -> LockUnit:
    problem = Problem(path=path, position="", message=f"not read: {absence.value}", reason="unreadable")
    return LockUnit(unit=path, ecosystem=ECOSYSTEM, format="requirements", files=(path,), problems=(problem,))


def _load(listing: Listing, asked: Sequence[str], tree: _Tree) -> Step[None]:
    waiting = {*asked, *_siblings(listing, asked)}
    while waiting:
        wanted = sorted(waiting)[: max(MAX_FILES - len(tree.files) - len(tree.manifests), 0)]
        if len(wanted) < len(waiting):
            message = f"more than {MAX_FILES} files belong together"
            tree.problems.append(Problem(path=asked[0], position="", message=message))
        found = yield from file_contents(wanted)
        waiting = set()
        for path in wanted:
            entry = found[path]
            if isinstance(entry, FileContent):
                waiting.update(_take(listing, tree, entry))
            else:
                tree.absent[path] = entry
        waiting -= {*tree.files, *tree.manifests, *tree.absent}


def _siblings(listing: Listing, asked: Sequence[str]) -> Iterator[str]:
    """Files that may include the asked ones: in their folder or one above, or in a requirements folder of those."""
    near = set()
    for path in asked:
        folder = dirname(path)
        while folder not in near:
            near.add(folder)
            folder = dirname(folder)
    for path in listing:
        folder = dirname(path)
        below = bool(_REQUIREMENT_FOLDER.search(folder)) and dirname(folder) in near
        if (folder in near or below) and is_requirements_path(path):
            yield path


def _take(listing: Listing, tree: _Tree, entry: FileContent) -> Iterator[str]:
    """Reads one file; yields the paths it leads to."""
    path = entry.path
    if basename(path) in _MANIFEST:
        try:
            manifest = tree.manifests[path] = read_manifest(path, entry.content)
        except TomlTextError as error:
            tree.absent[path] = Absence.UNREADABLE
            tree.problems.append(Problem(path=path, position=error.position, message=error.message))
            return
        for name in manifest.requirement_files if not isinstance(manifest, SetupPy) else ():
            target = normpath(join(dirname(path), name))
            if target in listing:
                tree.links.append((path, target))
                yield target
        return
    read = tree.files[path] = read_requirements(path, entry.content)
    for reference in read.references:
        if reference.path in listing:
            tree.links.append((path, reference.path))
            yield reference.path
        else:
            position = f"{reference.number}:1"
            tree.problems.append(Problem(path=path, position=position, message=f"{reference.path} is not there"))
    for line in read.lines:
        yield from (name for name in _folder_manifests(path, line) if name in listing)
    sources = tuple(_compiled_from(listing, read))
    if sources:
        tree.sources[path] = sources
        tree.links.extend((path, source) for source in sources)
        yield from sources


def _compiled_from(listing: Listing, read: RequirementsFile) -> Iterator[str]:
    """The named sources as far as they are there; without a head the input of the same name."""
    stem, dot, extension = read.path.rpartition(".")
    found = []
    if read.header:
        for source in read.header.sources:
            near, top = normpath(join(dirname(read.path), source)), normpath(source)
            found.extend([near if near in listing else top] if near in listing or top in listing else [])
    if not found and dot and extension == "txt" and f"{stem}.in" in listing:
        found.append(f"{stem}.in")
    yield from (path for path in dict.fromkeys(found) if path != read.path)


def _components(tree: _Tree) -> list[set[str]]:
    parent = {path: path for path in (*tree.files, *tree.manifests)}

    def root(path: str) -> str:
        while parent[path] != path:
            parent[path] = parent[parent[path]]
            path = parent[path]
        return path

    for left, right in tree.links:
        if left in parent and right in parent:
            parent[root(left)] = root(right)
    found: dict[str, set[str]] = {}
    for path in parent:
        found.setdefault(root(path), set()).add(path)
    return sorted(found.values(), key=min)


def _unit(tree: _Tree, component: set[str]) -> LockUnit:
    files = [tree.files[path] for path in sorted(component) if path in tree.files]
    manifests = [tree.manifests[path] for path in sorted(component) if path in tree.manifests]
    constraining = _constraining(tree, files)
    compiled = {file.path for file in files if file.header or file.path in tree.sources}
    pins = _pins(files)
    instances = _instances(files, pins)
    instances.update(_local_instances(tree, files))
    constraints = [
        *_declared(files, compiled, constraining, pins),
        *(constraint for manifest in manifests for constraint in _with_targets(manifest.constraints, pins)),
    ]
    # Sources of a compiled file lead to its pins; a requirement that has none there is out of step with it.
    sources = {source for path in component for source in tree.sources.get(path, ())}
    floors, led = with_floors(constraints, by_text=True, without=sources)
    instances.update(floors)
    header = next((file.header for file in files if file.header), None)
    registries = _registries(files, manifests)
    problems = [problem for part in (*files, *manifests) for problem in part.problems]
    problems.extend(problem for problem in tree.problems if problem.path in component)
    unit = LockUnit(
        unit=min(component, key=lambda path: _rank(tree, path, compiled, constraining)),
        ecosystem=ECOSYSTEM,
        format="requirements",
        manifests=tuple(sorted(component)),
        files=tuple(sorted(component)),
        instances=with_reach(instances, led),
        constraints=led,
        overrides=(
            *_constraint_files(files, constraining),
            *(override for manifest in manifests if isinstance(manifest, PyProject) for override in manifest.overrides),
        ),
        gates=(
            *_compile_gates(files),
            *(gate for manifest in manifests if isinstance(manifest, PyProject) for gate in manifest.gates),
        ),
        runtime=_runtime(files, manifests),
        tool=header.tool if header else "pip-tools" if tree.sources.keys() & component else "pip",
        registries=registries,
        problems=tuple(problems),
        settings={
            "edges": "via" if any(line.via for file in files for line in file.lines) else "unknown",
            "hashes": any(line.hashes for file in files for line in file.lines)
            or any("--require-hashes" in file.options for file in files),
            "compiled": {path: tree.sources.get(path, ()) for path in sorted(compiled)},
            "constraining": tuple(sorted(constraining)),
            "index_of": _index_of(manifests),
            "names": {manifest.path: manifest.name for manifest in manifests if manifest.name},
        },
    )
    return replace(unit, problems=(*unit.problems, *_torn(unit.unit, files), *out_of_step(unit, {})))


def _torn(unit: str, files: Iterable[RequirementsFile]) -> Iterator[Problem]:
    """Where one of the files is not whole: a merge is not resolved, or the text is cut."""

    def problem(path: str, number: int, message: str) -> Problem:
        return Problem(path=unit, position=f"{path}:{number}", message=message, reason="unsupported-lock-format")

    for file in files:
        for number, line in enumerate(file.content.splitlines(), start=1):
            if _MERGE.match(line):
                yield problem(file.path, number, "a merge conflict is not resolved")
                break
        for one in file.lines:
            for text in one.hashes:
                algorithm, _, digest = text.partition(":")
                if algorithm in _DIGEST_CHARS and len(digest) != _DIGEST_CHARS[algorithm]:
                    yield problem(file.path, one.number, f"a hash of {one.name} is cut")
                    break


def _rank(tree: _Tree, path: str, compiled: set[str], constraining: set[str]) -> tuple[object, ...]:
    """The file that names the scope: compiled before written, requirements before constraints, telling names first."""
    last = (not is_requirements_path(path), path.count("/"), len(path), path)
    return (path not in tree.files, path not in compiled, path in constraining, *last)


def _constraining(tree: _Tree, files: Sequence[RequirementsFile]) -> set[str]:
    """Files that only narrow: named by `-c` and by nothing else, neither compiled nor named like requirements."""
    by_kind: dict[str, set[str]] = {}
    for file in files:
        for reference in file.references:
            by_kind.setdefault(reference.path, set()).add(reference.kind)
    return {
        file.path
        for file in files
        if (by_kind.get(file.path) == {"constraint"} and "requirement" not in basename(file.path).lower())
        or (file.path not in by_kind and basename(file.path).lower().startswith("constraint"))
        if file.path not in tree.sources and not file.header
    }


def entry_names(file: RequirementsFile) -> dict[int, str]:
    """Line number → what the entry is called in its file: the name as written, numbered from the second on.

    Numbers of lines would not do, since hashes come and go above an entry.
    """
    found: dict[int, str] = {}
    seen: dict[str, int] = {}
    for line in file.lines:
        count = seen[line.package] = seen.get(line.package, 0) + 1
        found[line.number] = line.name if count == 1 else f"{line.name} ({count})"
    return found


def _pins(files: Sequence[RequirementsFile]) -> dict[str, list[Pin]]:
    """`name==version` → the lines that pin it, in file order."""
    found: dict[str, list[Pin]] = {}
    for file in files:
        for line in file.lines:
            if line.version and line.package and line.source.kind is SourceKind.REGISTRY:
                found.setdefault(f"{line.package}=={line.version}", []).append(Pin(path=file.path, line=line))
    return found


def _instances(files: Sequence[RequirementsFile], pins: Mapping[str, Sequence[Pin]]) -> dict[str, Instance]:
    in_file: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for where, lines in pins.items():
        for pin in lines:
            in_file.setdefault((pin.path, pin.line.package), []).append((where, pin.line.marker))
    edges: dict[str, dict[str, Edge]] = {}
    for where, lines in pins.items():
        for pin in lines:
            for parent in askers(pin.line.via):
                for parent_where, _ in in_file.get((pin.path, parent), []):
                    edges.setdefault(parent_where, {})[where] = Edge(
                        name=pin.line.package, requirement=None, target=where, marker=pin.line.marker
                    )
    base = next((file.index_url for file in files if file.index_url), "")
    instances = {}
    for where, lines in pins.items():
        first = lines[0].line
        markers = list(dict.fromkeys(pin.line.marker for pin in lines))
        instances[where] = Instance(
            where=where,
            name=first.package,
            version=first.version,
            edges=tuple(edges.get(where, {}).values()),
            source=Source(base=base),
            dev=all(_DEVELOPMENT_NAME.search(pin.path) for pin in lines),
            markers="" if "" in markers else " or ".join(f"({marker})" for marker in markers),
            path=lines[0].path,
            raw={"pins": tuple(lines)},
        )
    return instances


def askers(via: Sequence[str]) -> Iterator[str]:
    """The packages among those that a note names, canonical; files are left out."""
    for text in via:
        if not text.startswith("-"):
            yield canonicalize_name(re.split(r"[\s\[(]", text, maxsplit=1)[0])


def _folder_manifests(path: str, line: RequirementLine) -> Iterator[str]:
    """Files that name the project of a folder, for a line that gives the folder alone."""
    is_folder = line.source.kind in (SourceKind.LINK, SourceKind.FILE) and not line.package
    folder = normpath(join(dirname(path), line.source.text.partition("[")[0]))
    if is_folder and not is_remote(line.source.text) and not folder.startswith(("..", "/")):
        yield from (normpath(join(folder, name)) for name in _NAMING)


def _identity(tree: _Tree, path: str, line: RequirementLine) -> tuple[str, str]:
    """Name (canonical) and version of what a line brings in, as far as they are written out somewhere."""
    if line.package:
        return line.package, line.version
    manifests = (tree.manifests.get(name) for name in _folder_manifests(path, line))
    named = next((one for one in manifests if one is not None and one.name), None)
    return (canonicalize_name(named.name), getattr(named, "version", "")) if named is not None else ("", "")


def _local_instances(tree: _Tree, files: Sequence[RequirementsFile]) -> dict[str, Instance]:
    """Copies that come from a repository, an address or a folder."""
    found: dict[str, Instance] = {}
    for file in files:
        for line in file.lines:
            if line.source.kind is SourceKind.REGISTRY:
                continue
            name, version = _identity(tree, file.path, line)
            if name:
                where = f"{name} @ {line.source.text}"
                found.setdefault(
                    where,
                    Instance(
                        where=where,
                        name=name,
                        version=version,
                        source=line.source,
                        dev=bool(_DEVELOPMENT_NAME.search(file.path)),
                        markers=line.marker,
                        path=file.path,
                        raw={"pins": (Pin(path=file.path, line=line),)},
                    ),
                )
    return found


def _declared(
    files: Sequence[RequirementsFile], compiled: set[str], constraining: set[str], pins: Mapping[str, Sequence[Pin]]
) -> Iterator[Constraint]:
    """Requirements that a person wrote; the lines of compiled files follow from them."""
    for file in files:
        if file.path in compiled:
            continue
        names = entry_names(file)
        for line in file.lines:
            if not line.package:
                continue
            if file.path in constraining:
                kind = DependencyKind.CONSTRAINT
            else:
                kind = DependencyKind.DEV if _DEVELOPMENT_NAME.search(file.path) else DependencyKind.PROD
            constraint = Constraint(
                path=file.path,
                at=names[line.number],
                name=line.name,
                package=line.package,
                requirement=line.specifier,
                span=line.specifier_span,
                kind=kind,
                group=file.path,
                marker=line.marker,
                extras=line.extras,
                source=line.source,
            )
            if line.source.kind is SourceKind.REGISTRY:
                yield from _with_targets([constraint], pins)
            else:
                yield replace(constraint, target=f"{line.package} @ {line.source.text}")


def _with_targets(constraints: Iterable[Constraint], pins: Mapping[str, Sequence[Pin]]) -> Iterator[Constraint]:
    """One for each copy of the package, since a scope may pin one version for each environment."""
    by_name: dict[str, list[str]] = {}
    for where in pins:
        by_name.setdefault(where.partition("==")[0], []).append(where)
    for constraint in constraints:
        if constraint.kind is DependencyKind.BUILD:
            yield constraint
            continue
        places = by_name.get(constraint.package, [])
        if len(places) > 1:
            asked = constraint.requirement
            places = [where for where in places if admits(asked, where.partition("==")[2]) is not False] or places
        yield from (replace(constraint, target=where) for where in places)
        if not places:
            yield constraint


def _constraint_files(files: Sequence[RequirementsFile], constraining: set[str]) -> Iterator[Override]:
    for file in files:
        if file.path in constraining:
            names = entry_names(file)
            for line in file.lines:
                if line.specifier and line.package:
                    yield Override(
                        path=file.path,
                        at=names[line.number],
                        selector=line.name,
                        package=line.package,
                        value=line.specifier,
                        span=line.specifier_span,
                        kind="constraint",
                        condition=line.marker,
                    )


def _compile_gates(files: Sequence[RequirementsFile]) -> Iterator[ReleaseAgeGate]:
    """A compile command that was given a date holds younger releases back the next time too."""
    for file in files:
        words = file.header.command if file.header else ()
        for index, word in enumerate(words):
            name, equals, value = word.partition("=")
            if name == "--exclude-newer":
                limit = value if equals else next(iter(words[index + 1 : index + 2]), "")
                yield ReleaseAgeGate(path=file.path, at="head", exclude_newer=limit, kind="exclude-newer")


def _runtime(files: Sequence[RequirementsFile], manifests: Sequence[Manifest]) -> dict[str, str]:
    for manifest in manifests:
        if manifest.requires_python:
            return {"python": manifest.requires_python}
    for file in files:
        if file.header and file.header.python:
            version = file.header.python
            if file.header.universal:
                return {"python": f">={version}"}
            return {"python": f"=={version}" if version.count(".") > 1 else f"=={version}.*"}
    return {}


def _registries(files: Sequence[RequirementsFile], manifests: Sequence[Manifest]) -> dict[str, str]:
    found: dict[str, str] = {}
    for manifest in manifests:
        if isinstance(manifest, PyProject):
            found.update(manifest.registries)
    for file in files:
        if file.index_url:
            found[""] = file.index_url
        found.update((url, url) for url in file.extra_index_urls)
    return found


def _index_of(manifests: Sequence[Manifest]) -> dict[str, str]:
    return {
        package: index
        for manifest in manifests
        if isinstance(manifest, PyProject)
        for package, index in manifest.index_of.items()
    }
