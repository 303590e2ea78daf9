"""What does a `pylock.toml` (PEP 751) pin, and for which environments?

Source: https://packaging.python.org/en/latest/specifications/pylock-toml/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.requirement_text import is_remote, without_credentials
from dependfix_core.ecosystems.pip.toml_text import parse_toml, strings_of, tables_of
from dependfix_core.model.lock import Edge, Instance, Problem, Source, SourceKind

FILE_NAME: Final = re.compile(r"pylock(?:\.[^./]+)?\.toml")
_SUPPORTED_MAJOR: Final = "1"
_SOURCES: Final = (("vcs", SourceKind.GIT), ("directory", SourceKind.FILE), ("archive", SourceKind.URL))


@dataclass(frozen=True, kw_only=True, slots=True)
class PyLock:
    """A PEP 751 lock as values."""

    path: str
    version: str
    created_by: str
    requires_python: str
    environments: tuple[str, ...]
    extras: tuple[str, ...]
    groups: tuple[str, ...]
    instances: Mapping[str, Instance]
    problems: tuple[Problem, ...] = ()


def read_pylock(path: str, content: bytes) -> PyLock:
    """The copies of a lock; edges where it records them (`dependencies` is optional in the format).

    Raises:
        TomlTextError: Not TOML at all.
    """
    data = parse_toml(content)
    version = str(data.get("lock-version", ""))
    problems: list[Problem] = []
    packages = tables_of(data.get("packages"))
    if version.partition(".")[0] != _SUPPORTED_MAJOR:
        problems.append(
            Problem(
                path=path,
                position="lock-version",
                message=f"lock version {version or 'missing'} is not known",
                reason="unsupported-lock-format",
            )
        )
        packages = []
    complete = [entry for entry in packages if isinstance(entry.get("name"), str)]
    if len(complete) < len(packages):
        problems.append(Problem(path=path, position="packages", message="an entry without a name"))
    places = _places(complete)
    return PyLock(
        path=path,
        version=version,
        created_by=str(data.get("created-by", "")),
        requires_python=str(data.get("requires-python", "")),
        environments=strings_of(data.get("environments")),
        extras=strings_of(data.get("extras")),
        groups=strings_of(data.get("dependency-groups")),
        instances={
            where: Instance(
                where=where,
                name=canonicalize_name(entry["name"]),
                version=str(entry.get("version", "")),
                edges=tuple(_edges(entry, complete, places)),
                source=_source(entry),
                markers=str(entry.get("marker", "")),
                path=path,
                raw=entry,
            )
            for entry, where in zip(complete, places, strict=True)
        },
        problems=tuple(problems),
    )


def _places(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    places: list[str] = []
    seen: set[str] = set()
    for entry in packages:
        base = f"{canonicalize_name(entry['name'])} {entry.get('version', '')}".rstrip()
        place, number = f"package[{base}]", 2
        while place in seen:
            place, number = f"package[{base} #{number}]", number + 1
        seen.add(place)
        places.append(place)
    return places


def _edges(entry: Mapping[str, Any], packages: Sequence[Mapping[str, Any]], places: Sequence[str]) -> Iterator[Edge]:
    """An entry of `dependencies` names keys of the package it means, as many as make it unique."""
    for dependency in tables_of(entry.get("dependencies")):
        if not isinstance(dependency.get("name"), str):
            continue
        matching = [
            where
            for other, where in zip(packages, places, strict=True)
            if all(other.get(key) == value for key, value in dependency.items())
        ]
        for target in [*matching, *([] if matching else [None])]:
            yield Edge(name=canonicalize_name(dependency["name"]), requirement=None, target=target)


def _source(entry: Mapping[str, Any]) -> Source:
    for key, kind in _SOURCES:
        table = entry.get(key)
        if isinstance(table, dict):
            text = str(table.get("url") or table.get("path") or "")
            return Source(kind=kind, text=without_credentials(text))
    index = entry.get("index")
    if isinstance(index, str) and is_remote(index):
        return Source(base=without_credentials(index), text=without_credentials(index))
    return Source()
