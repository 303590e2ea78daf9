"""What does a `pyproject.toml` declare, in any of its dialects?

Read are PEP 621 and PEP 735, poetry's and pdm's own tables, and uv's sources,
constraints, overrides, indexes and workspace.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.poetry_constraint import python_marker, to_pep440
from dependfix_core.ecosystems.pip.requirement_text import (
    RequirementText,
    is_remote,
    read_requirement,
    without_credentials,
)
from dependfix_core.ecosystems.pip.toml_text import (
    KeyPath,
    TomlText,
    line_and_column,
    read_toml,
    spell_path,
    strings_of,
    tables_of,
)
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Override,
    Problem,
    ReleaseAgeGate,
    Source,
    SourceKind,
)

_MAIN: Final = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PyProject:
    """A `pyproject.toml` as values. Names are canonical; paths relative to its own folder stay so."""

    path: str
    text: TomlText
    name: str = ""
    version: str = ""
    requires_python: str = ""
    """PEP 440; a poetry constraint is translated when it has one alternative."""
    constraints: tuple[Constraint, ...] = ()
    overrides: tuple[Override, ...] = ()
    gates: tuple[ReleaseAgeGate, ...] = ()
    registries: Mapping[str, str] = field(default_factory=dict)
    index_of: Mapping[str, str] = field(default_factory=dict)
    """Package → name of the index it is taken from."""
    members: tuple[str, ...] = ()
    """uv workspace patterns."""
    excluded_members: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    """`poetry`, `uv`, `pdm`, as far as the file has a table of theirs."""
    has_workspace: bool = False
    requirement_files: tuple[str, ...] = ()
    """Requirements files that setuptools takes the dependencies from, relative to the file's folder."""
    problems: tuple[Problem, ...] = ()


def read_pyproject(path: str, content: bytes) -> PyProject:
    """The declarations of one file; what cannot be read becomes a problem, the rest goes on.

    Raises:
        TomlTextError: Not TOML at all.
    """
    reader = _Reader(path, read_toml(content))
    reader.read()
    return reader.result()


class _Reader:
    def __init__(self, path: str, text: TomlText) -> None:
        self.path = path
        self.text = text
        self.constraints: list[Constraint] = []
        self.overrides: list[Override] = []
        self.gates: list[ReleaseAgeGate] = []
        self.registries: dict[str, str] = {}
        self.index_of: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.sources: dict[str, Source] = {}
        self.requires_python = ""
        self.requirement_files: list[str] = []

    def read(self) -> None:
        """Sources first, since they say where the requirements come from."""
        self._uv_sources()
        self._poetry_sources()
        self._pdm_sources()
        self._project()
        self._dependency_groups()
        self._build_system()
        self._uv()
        self._poetry()
        self._pdm()

    def result(self) -> PyProject:
        project = self._table("project")
        poetry = self._table("tool", "poetry")
        workspace = self._table("tool", "uv", "workspace")
        tools = {tool for tool in ("poetry", "uv", "pdm") if isinstance(self.text.value(("tool", tool)), dict)}
        name = project.get("name") or poetry.get("name")
        version = project.get("version") or poetry.get("version")
        return PyProject(
            path=self.path,
            text=self.text,
            name=canonicalize_name(name) if isinstance(name, str) else "",
            version=version if isinstance(version, str) else "",
            requires_python=self.requires_python,
            constraints=tuple(self.constraints),
            overrides=tuple(self.overrides),
            gates=tuple(self.gates),
            registries=self.registries,
            index_of=self.index_of,
            members=strings_of(workspace.get("members")),
            excluded_members=strings_of(workspace.get("exclude")),
            tools=frozenset(tools),
            has_workspace=isinstance(self.text.value(("tool", "uv", "workspace")), dict),
            requirement_files=tuple(self.requirement_files),
            problems=tuple(self.problems),
        )

    def _table(self, *path: str) -> Mapping[str, Any]:
        found = self.text.value(path)
        return found if isinstance(found, dict) else {}

    def _problem(self, path: KeyPath, message: str, reason: str = "") -> None:
        span = self.text.spans.get(path)
        position = line_and_column(self.text.content, span.start) if span else spell_path(path)
        self.problems.append(Problem(path=self.path, position=position, message=message, reason=reason))

    def _requirements(self, path: KeyPath) -> Iterator[tuple[KeyPath, RequirementText]]:
        listed = self.text.value(path)
        if listed is None:
            return
        if not isinstance(listed, list):
            self._problem(path, f"{spell_path(path)} is no list")
            return
        for index, entry in enumerate(listed):
            place = (*path, index)
            if isinstance(entry, str):
                try:
                    yield place, read_requirement(entry)
                except ValueError as error:
                    self._problem(place, f"{spell_path(place)}: {error}")
            elif not (isinstance(entry, dict) and ("include-group" in entry or "path" in entry)):
                self._problem(place, f"{spell_path(place)} is no requirement")

    def _declare(self, path: KeyPath, kind: DependencyKind, group: str) -> None:
        for place, requirement in self._requirements(path):
            source = requirement.source
            if source.kind is SourceKind.REGISTRY:
                source = self.sources.get(requirement.package, source)
            self.constraints.append(
                Constraint(
                    path=self.path,
                    at=spell_path(place),
                    name=requirement.name,
                    package=requirement.package,
                    requirement=requirement.specifier,
                    span=self.text.inner_span(place, requirement.start, requirement.end),
                    kind=kind,
                    group=group,
                    marker=requirement.marker,
                    extras=requirement.extras,
                    source=source,
                )
            )

    def _project(self) -> None:
        project = self._table("project")
        if isinstance(project.get("requires-python"), str):
            self.requires_python = project["requires-python"]
        self._declare(("project", "dependencies"), DependencyKind.PROD, _MAIN)
        for extra in self._table("project", "optional-dependencies"):
            self._declare(("project", "optional-dependencies", extra), DependencyKind.OPTIONAL, extra)
        dynamic = project.get("dynamic")
        for name in ("dependencies", "optional-dependencies"):
            # poetry fills these from its own tables, other back ends by running code.
            if isinstance(dynamic, list) and name in dynamic and not self._table("tool", "poetry"):
                self._dynamic(name)

    def _dynamic(self, name: str) -> None:
        """The files that setuptools takes the dependencies from; anything else is computed."""
        directive = self.text.value(("tool", "setuptools", "dynamic", name))
        tables = (
            [directive] if name == "dependencies" else list(directive.values()) if isinstance(directive, dict) else []
        )
        found: list[str] = []
        for table in tables_of(tables):
            named = table.get("file")
            found.extend([named] if isinstance(named, str) else strings_of(named))
        if found:
            self.requirement_files.extend(found)
        else:
            self._problem(("project", "dynamic"), f"{name} are computed by the build", "dynamic-version")

    def _dependency_groups(self) -> None:
        for group in self._table("dependency-groups"):
            self._declare(("dependency-groups", group), DependencyKind.DEV, group)

    def _build_system(self) -> None:
        self._declare(("build-system", "requires"), DependencyKind.BUILD, "build-system")

    def _force(self, path: KeyPath, kind: str) -> None:
        for place, requirement in self._requirements(path):
            span = self.text.inner_span(place, requirement.start, requirement.end)
            self.overrides.append(
                Override(
                    path=self.path,
                    at=spell_path(place),
                    selector=requirement.name,
                    package=requirement.package,
                    value=requirement.specifier,
                    span=span,
                    kind=kind,
                    condition=requirement.marker,
                )
            )
            if kind == "constraint":
                self.constraints.append(
                    Constraint(
                        path=self.path,
                        at=spell_path(place),
                        name=requirement.name,
                        package=requirement.package,
                        requirement=requirement.specifier,
                        span=span,
                        kind=DependencyKind.CONSTRAINT,
                        marker=requirement.marker,
                        source=requirement.source,
                    )
                )

    def _uv_sources(self) -> None:
        for entry in tables_of(self.text.value(("tool", "uv", "index"))):
            url, name = entry.get("url"), entry.get("name")
            if isinstance(url, str):
                key = "" if entry.get("default") is True else name if isinstance(name, str) else url
                self.registries[key] = without_credentials(url)
                if isinstance(name, str):
                    self.registries[name] = without_credentials(url)
        uv = self._table("tool", "uv")
        if isinstance(uv.get("index-url"), str):
            self.registries.setdefault("", without_credentials(uv["index-url"]))
        for url in strings_of(uv.get("extra-index-url")):
            self.registries.setdefault(without_credentials(url), without_credentials(url))
        for name, value in self._table("tool", "uv", "sources").items():
            entries = tables_of(value if isinstance(value, list) else [value])
            package = canonicalize_name(name)
            indexes = [entry["index"] for entry in entries if isinstance(entry.get("index"), str)]
            if indexes:
                self.index_of[package] = indexes[0]
            elif entries and not any("marker" in entry or "extra" in entry or "group" in entry for entry in entries):
                # Entries with conditions leave the registry in force elsewhere; the lock says what holds.
                self.sources[package] = _source_of_table(entries[0])

    def _uv(self) -> None:
        self._declare(("tool", "uv", "dev-dependencies"), DependencyKind.DEV, "dev")
        self._force(("tool", "uv", "constraint-dependencies"), "constraint")
        self._force(("tool", "uv", "override-dependencies"), "override")
        uv = self._table("tool", "uv")
        per_package = uv.get("exclude-newer-package")
        exempt = sorted(per_package) if isinstance(per_package, dict) else []
        if "exclude-newer" in uv:
            self.gates.append(
                ReleaseAgeGate(
                    path=self.path,
                    at="tool.uv.exclude-newer",
                    exclude_newer=str(uv["exclude-newer"]),
                    excluded=tuple(exempt),
                    kind="exclude-newer",
                )
            )
        for name in exempt:
            value = self.text.value(("tool", "uv", "exclude-newer-package", name))
            if value is not False:
                self.gates.append(
                    ReleaseAgeGate(
                        path=self.path,
                        at=spell_path(("tool", "uv", "exclude-newer-package", name)),
                        exclude_newer=str(value),
                        applies_to=(name,),
                        kind="exclude-newer",
                    )
                )

    def _poetry_sources(self) -> None:
        for entry in tables_of(self.text.value(("tool", "poetry", "source"))):
            url, name = entry.get("url"), entry.get("name")
            if isinstance(url, str) and isinstance(name, str) and is_remote(url):
                self.registries[name] = without_credentials(url)
                if entry.get("priority", "primary") in {"primary", "default"} and entry.get("secondary") is not True:
                    self.registries.setdefault("", without_credentials(url))

    def _poetry(self) -> None:
        extras_of: dict[str, list[str]] = {}
        for extra, names in self._table("tool", "poetry", "extras").items():
            for name in strings_of(names):
                extras_of.setdefault(canonicalize_name(name), []).append(extra)
        self._poetry_table(("tool", "poetry", "dependencies"), DependencyKind.PROD, _MAIN, extras_of)
        self._poetry_table(("tool", "poetry", "dev-dependencies"), DependencyKind.DEV, "dev", {})
        for group in self._table("tool", "poetry", "group"):
            self._poetry_table(("tool", "poetry", "group", group, "dependencies"), DependencyKind.DEV, group, {})

    def _poetry_table(
        self, path: KeyPath, kind: DependencyKind, group: str, extras_of: Mapping[str, list[str]]
    ) -> None:
        table = self.text.value(path)
        if not isinstance(table, dict):
            return
        for name, value in table.items():
            place = (*path, name)
            if name == "python" and group == _MAIN:
                self._poetry_python(place, value)
            elif isinstance(value, list):
                for index, entry in enumerate(value):
                    self._poetry_entry((*place, index), name, entry, kind, group, extras_of=extras_of)
            else:
                self._poetry_entry(place, name, value, kind, group, extras_of=extras_of)

    def _poetry_python(self, place: KeyPath, value: object) -> None:
        if not isinstance(value, str) or self.requires_python:
            return
        try:
            arms = to_pep440(value)
        except ValueError as error:
            self._problem(place, str(error))
            return
        if len(arms) == 1:
            self.requires_python = arms[0]
        else:
            self._problem(place, "a python range in several pieces is read as its lowest piece up")
            self.requires_python = next((part for part in arms[0].split(",") if part.startswith(">")), "")

    def _poetry_entry(
        self,
        place: KeyPath,
        name: str,
        value: object,
        kind: DependencyKind,
        group: str,
        *,
        extras_of: Mapping[str, list[str]],
    ) -> None:
        package = canonicalize_name(name)
        table: Mapping[str, Any] = (
            {"version": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
        )
        if not table:
            self._problem(place, f"{spell_path(place)} is no dependency")
            return
        if isinstance(table.get("source"), str):
            self.index_of[package] = table["source"]
        version = table.get("version")
        source = _source_of_table(table)
        if not isinstance(version, str):
            if source.kind is SourceKind.REGISTRY:
                return  # it only adds to what [project] declares
            version = ""
        where = place if isinstance(value, str) else (*place, "version")
        marker = self._poetry_marker(place, table)
        optional = kind is DependencyKind.PROD and table.get("optional") is True
        self.constraints.append(
            Constraint(
                path=self.path,
                at=spell_path(where),
                name=name,
                package=package,
                requirement=version,
                span=self.text.inner_span(where, 0, len(version)),
                kind=DependencyKind.OPTIONAL if optional else kind,
                group=next(iter(extras_of.get(package, ())), "") if optional else group,
                marker=marker,
                extras=tuple(sorted(canonicalize_name(extra) for extra in strings_of(table.get("extras")))),
                source=source,
            )
        )

    def _poetry_marker(self, place: KeyPath, table: Mapping[str, Any]) -> str:
        parts = []
        if isinstance(table.get("python"), str):
            try:
                parts.append(python_marker(table["python"]))
            except ValueError as error:
                self._problem(place, str(error))
        if isinstance(table.get("platform"), str):
            parts.append(f'sys_platform == "{re.sub(r"[^A-Za-z0-9_.-]", "", table["platform"])}"')
        if isinstance(table.get("markers"), str):
            parts.append(table["markers"])
        parts = [part for part in parts if part]
        return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)

    def _pdm_sources(self) -> None:
        for entry in tables_of(self.text.value(("tool", "pdm", "source"))):
            url, name = entry.get("url"), entry.get("name")
            if isinstance(url, str) and isinstance(name, str) and entry.get("type", "index") == "index":
                # pdm calls its default index so; its addresses may hold ${VAR}, which is never expanded.
                self.registries["" if name == "pypi" else name] = without_credentials(url)

    def _pdm(self) -> None:
        for group in self._table("tool", "pdm", "dev-dependencies"):
            self._declare(("tool", "pdm", "dev-dependencies", group), DependencyKind.DEV, group)
        path = ("tool", "pdm", "resolution", "overrides")
        for name, value in self._table(*path).items():
            if isinstance(value, str):
                self.overrides.append(
                    Override(
                        path=self.path,
                        at=spell_path((*path, name)),
                        selector=name,
                        package=canonicalize_name(name),
                        value=value,
                        span=self.text.inner_span((*path, name), 0, len(value)),
                        kind="override",
                    )
                )


def _source_of_table(table: Mapping[str, Any]) -> Source:
    kinds = (
        ("git", SourceKind.GIT),
        ("url", SourceKind.URL),
        ("path", SourceKind.LINK if table.get("editable") is True or table.get("develop") is True else SourceKind.FILE),
        ("file", SourceKind.FILE),
    )
    for key, kind in kinds:
        if isinstance(table.get(key), str):
            return Source(kind=kind, text=without_credentials(table[key]))
    if table.get("workspace") is True:
        return Source(kind=SourceKind.WORKSPACE)
    return Source()
