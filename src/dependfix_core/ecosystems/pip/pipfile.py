"""What do a `Pipfile` and its `Pipfile.lock` declare and pin?

Source: https://pipenv.pypa.io/en/latest/pipfile.html
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.requirement_text import is_remote, source_of_url, without_credentials
from dependfix_core.ecosystems.pip.toml_text import (
    UTF8_BOM,
    KeyPath,
    TomlText,
    line_and_column,
    read_toml,
    spell_path,
    strings_of,
    table_of,
    tables_of,
)
from dependfix_core.model.lock import Constraint, DependencyKind, Instance, Problem, Source, SourceKind

SUPPORTED_SPEC: Final = 6
_SECTIONS_WITHOUT_PACKAGES: Final = frozenset({"source", "requires", "pipenv", "scripts", "build-system"})
_LOCK_SECTION: Final = {"packages": "default", "dev-packages": "develop"}
_MARKER_KEYS: Final = (
    "os_name",
    "sys_platform",
    "platform_machine",
    "platform_python_implementation",
    "platform_release",
    "platform_system",
    "platform_version",
    "python_version",
    "python_full_version",
    "implementation_name",
    "implementation_version",
)
_FULL_PYTHON: Final = re.compile(r"\d+\.\d+\.\d+\S*")
_MINOR_PYTHON: Final = re.compile(r"\d+(?:\.\d+)?")


class PipfileLockError(ValueError):
    """The bytes are no lock. `position` is `line:column`, from 1."""

    def __init__(self, position: str, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipfile:
    """A `Pipfile` as values."""

    path: str
    text: TomlText
    requires_python: str
    """PEP 440, from `[requires]`."""
    constraints: tuple[Constraint, ...]
    registries: Mapping[str, str] = field(default_factory=dict)
    index_of: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PipfileLock:
    """A `Pipfile.lock` as values. The format has no edges between packages."""

    path: str
    spec: int
    content_hash: str
    requires_python: str
    instances: Mapping[str, Instance]
    registries: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def lock_section(pipfile_section: str) -> str:
    """The lock's name for a section of the Pipfile."""
    return _LOCK_SECTION.get(pipfile_section, pipfile_section)


def read_pipfile(path: str, content: bytes) -> Pipfile:
    """The declarations of a Pipfile.

    Raises:
        TomlTextError: Not TOML at all.
    """
    text = read_toml(content)
    registries: dict[str, str] = {}
    index_of: dict[str, str] = {}
    problems: list[Problem] = []
    constraints: list[Constraint] = []
    for section, table in text.data.items():
        if section in _SECTIONS_WITHOUT_PACKAGES or not isinstance(table, dict):
            continue
        for name, value in table.items():
            place = (section, name)
            constraint = _constraint(path, text, place, value)
            if constraint is None:
                position = (
                    line_and_column(content, text.spans[place].start) if place in text.spans else spell_path(place)
                )
                problems.append(Problem(path=path, position=position, message=f"{spell_path(place)} is no dependency"))
                continue
            constraints.append(constraint)
            if isinstance(value, dict) and isinstance(value.get("index"), str):
                index_of[constraint.package] = value["index"]
    _add_registries(registries, text.data.get("source"))
    return Pipfile(
        path=path,
        text=text,
        requires_python=_requires_python(text.data.get("requires")),
        constraints=tuple(constraints),
        registries=registries,
        index_of=index_of,
        problems=tuple(problems),
    )


def read_pipfile_lock(path: str, content: bytes) -> PipfileLock:
    """The copies of a lock.

    Raises:
        PipfileLockError: No JSON object; `position` says where.
    """
    data = _read_json(content)
    meta = table_of(data.get("_meta"))
    spec = meta.get("pipfile-spec")
    digest = meta.get("hash")
    problems: list[Problem] = []
    instances: dict[str, Instance] = {}
    registries: dict[str, str] = {}
    _add_registries(registries, meta.get("sources"))
    if spec != SUPPORTED_SPEC:
        problems.append(
            Problem(
                path=path,
                position="_meta.pipfile-spec",
                message=f"pipfile-spec {spec!r} is not known",
                reason="unsupported-lock-format",
            )
        )
    else:
        instances = {instance.where: instance for instance in _instances(path, data, registries, problems)}
    return PipfileLock(
        path=path,
        spec=spec if isinstance(spec, int) else 0,
        content_hash=str(digest.get("sha256", "")) if isinstance(digest, dict) else "",
        requires_python=_requires_python(meta.get("requires")),
        instances=instances,
        registries=registries,
        problems=tuple(problems),
    )


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise PipfileLockError("", f"{twin!r} is there twice")
    return found


def _read_json(content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content.removeprefix(UTF8_BOM).decode("utf-8"), object_pairs_hook=_without_twins)
    except UnicodeDecodeError as error:
        raise PipfileLockError(line_and_column(content, error.start), "not UTF-8") from None
    except json.JSONDecodeError as error:
        raise PipfileLockError(f"{error.lineno}:{error.colno}", error.msg) from None
    except RecursionError:
        raise PipfileLockError("1:1", "nested too deeply") from None
    if not isinstance(data, dict):
        raise PipfileLockError("1:1", "not an object")
    return data


def _instances(
    path: str, data: Mapping[str, Any], registries: Mapping[str, str], problems: list[Problem]
) -> Iterator[Instance]:
    for section, packages in data.items():
        if section == "_meta" or not isinstance(packages, dict):
            continue
        for name, entry in packages.items():
            if not isinstance(entry, dict):
                problems.append(Problem(path=path, position=f"{section}.{name}", message="no package"))
                continue
            version = entry.get("version", "")
            index = entry.get("index")
            source = _source_of_entry(entry)
            if source.kind is SourceKind.REGISTRY:
                source = Source(base=registries.get(str(index), registries.get("", "")), text=str(index or ""))
            yield Instance(
                where=f"{section}.{name}",
                name=canonicalize_name(name),
                version=str(version).removeprefix("=").removeprefix("=").strip(),
                source=source,
                dev=section == "develop",
                groups=(section,),
                markers=str(entry.get("markers", "")),
                path=path,
                raw=entry,
            )


def _constraint(path: str, text: TomlText, place: KeyPath, value: object) -> Constraint | None:
    section, name = str(place[0]), str(place[1])
    table: Mapping[str, Any] = (
        {"version": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
    )
    if not table:
        return None
    version = table.get("version", "")
    where = place if isinstance(value, str) else (*place, "version")
    if not isinstance(version, str):
        return None
    return Constraint(
        path=path,
        at=spell_path(where),
        name=name,
        package=canonicalize_name(name),
        requirement=version,
        span=text.inner_span(where, 0, len(version)),
        kind=DependencyKind.DEV if section == "dev-packages" else DependencyKind.PROD,
        group="" if section == "packages" else section,
        marker=_marker(table),
        extras=tuple(sorted(canonicalize_name(extra) for extra in strings_of(table.get("extras")))),
        source=_source_of_entry(table),
    )


def _marker(table: Mapping[str, Any]) -> str:
    """A marker may be spread over keys, each holding an operator and a quoted value."""
    parts = [str(table["markers"])] if isinstance(table.get("markers"), str) else []
    parts.extend(f"{key} {table[key]}" for key in _MARKER_KEYS if isinstance(table.get(key), str))
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def _source_of_entry(table: Mapping[str, Any]) -> Source:
    for key in ("git", "hg", "svn", "bzr"):
        if isinstance(table.get(key), str):
            return Source(kind=SourceKind.GIT, text=without_credentials(table[key]))
    if isinstance(table.get("path"), str):
        kind = SourceKind.LINK if table.get("editable") is True else SourceKind.FILE
        return Source(kind=kind, text=table["path"])
    for key in ("file", "uri"):
        if isinstance(table.get(key), str):
            return source_of_url(table[key])
    return Source()


def _add_registries(registries: dict[str, str], sources: object) -> None:
    for entry in tables_of(sources):
        url, name = entry.get("url"), entry.get("name")
        if isinstance(url, str) and is_remote(url):
            registries.setdefault("", without_credentials(url))
            if isinstance(name, str):
                registries[name] = without_credentials(url)


def _requires_python(requires: object) -> str:
    """`[requires]` names one python; the project is for that one alone."""
    if not isinstance(requires, dict):
        return ""
    full, minor = requires.get("python_full_version"), requires.get("python_version")
    if isinstance(full, str) and _FULL_PYTHON.fullmatch(full):
        return f"=={full}"
    if isinstance(minor, str) and _MINOR_PYTHON.fullmatch(minor):
        return f"=={minor}.*"
    return ""
