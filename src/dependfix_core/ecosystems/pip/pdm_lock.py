"""What does a `pdm.lock` pin, in which groups, and who needs it?

Source: https://pdm-project.org/latest/usage/lockfile/ and pdm's own formatter (lock versions 4.x).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from dependfix_core.ecosystems.pip.lock_graph import extra_marker
from dependfix_core.ecosystems.pip.requirement_text import read_requirement, without_credentials
from dependfix_core.ecosystems.pip.toml_text import parse_toml, strings_of, table_of, tables_of
from dependfix_core.model.lock import DependencyKind, Edge, Instance, Problem, Source, SourceKind

_SUPPORTED_MAJOR: Final = "4"


@dataclass(frozen=True, kw_only=True, slots=True)
class PdmLock:
    """A `pdm.lock` as values."""

    path: str
    version: str
    content_hash: str
    requires_python: str
    """The targets' ranges, the first one when there are several."""
    strategy: tuple[str, ...]
    groups: tuple[str, ...]
    instances: Mapping[str, Instance]
    problems: tuple[Problem, ...] = ()


def read_pdm_lock(path: str, content: bytes) -> PdmLock:
    """The copies and edges of a lock.

    Raises:
        TomlTextError: Not TOML at all.
    """
    data = parse_toml(content)
    metadata = table_of(data.get("metadata"))
    version = str(metadata.get("lock_version", ""))
    problems: list[Problem] = []
    packages = tables_of(data.get("package"))
    if version.partition(".")[0] != _SUPPORTED_MAJOR:
        problems.append(
            Problem(
                path=path,
                position="metadata.lock_version",
                message=f"lock version {version or 'missing'} is not known",
                reason="unsupported-lock-format",
            )
        )
        packages = []
    complete = [entry for entry in packages if isinstance(entry.get("name"), str)]
    # An extra of a package is an entry of its own beside the package's; both are one installed copy.
    merged: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for entry in complete:
        key = (canonicalize_name(entry["name"]), str(entry.get("version", "")), _source(entry).text)
        merged.setdefault(key, []).append(entry)
    places = _places(list(merged))
    by_name: dict[str, list[tuple[str, str]]] = {}
    for (name, locked, _), where in zip(merged, places, strict=True):
        by_name.setdefault(name, []).append((where, locked))
    targets = tables_of(metadata.get("targets"))
    return PdmLock(
        path=path,
        version=version,
        content_hash=str(metadata.get("content_hash", "")),
        requires_python=str(targets[0].get("requires_python", "")) if targets else "",
        strategy=strings_of(metadata.get("strategy")),
        groups=strings_of(metadata.get("groups")),
        instances={
            where: _instance(path, where, key, entries, by_name=by_name, problems=problems)
            for (key, entries), where in zip(merged.items(), places, strict=True)
        },
        problems=tuple(problems),
    )


def _places(keys: Sequence[tuple[str, str, str]]) -> list[str]:
    places: list[str] = []
    seen: set[str] = set()
    for name, version, _ in keys:
        base = f"{name} {version}".rstrip()
        place, number = f"package[{base}]", 2
        while place in seen:
            place, number = f"package[{base} #{number}]", number + 1
        seen.add(place)
        places.append(place)
    return places


def _instance(
    path: str,
    where: str,
    key: tuple[str, str, str],
    entries: Sequence[Mapping[str, Any]],
    *,
    by_name: Mapping[str, list[tuple[str, str]]],
    problems: list[Problem],
) -> Instance:
    name, version, _ = key
    edges: list[Edge] = []
    groups: dict[str, None] = {}
    for entry in entries:
        groups.update(dict.fromkeys(strings_of(entry.get("groups"))))
        extras = tuple(canonicalize_name(extra) for extra in strings_of(entry.get("extras")))
        edges.extend(_edges(path, name, entry, extras, by_name=by_name, problems=problems))
    marker = entries[0].get("marker", "")
    return Instance(
        where=where,
        name=name,
        version=version,
        edges=tuple(edges),
        source=_source(entries[0]),
        dev=bool(groups) and "default" not in groups,
        groups=tuple(sorted(groups)),
        markers=marker if isinstance(marker, str) else "",
        path=path,
        raw={"entries": tuple(entries)},
    )


def _edges(
    path: str,
    name: str,
    entry: Mapping[str, Any],
    extras: tuple[str, ...],
    *,
    by_name: Mapping[str, list[tuple[str, str]]],
    problems: list[Problem],
) -> Iterator[Edge]:
    for text in strings_of(entry.get("dependencies")):
        try:
            requirement = read_requirement(text)
        except ValueError as error:
            problems.append(Problem(path=path, position=f"package {name}", message=f"{text[:100]}: {error}"))
            continue
        if requirement.package == name:
            continue  # the entry of an extra asks for its own package
        marker = requirement.marker
        if extras:
            condition = " or ".join(extra_marker(extra) for extra in extras)
            marker = f"({marker}) and ({condition})" if marker else condition
        for target in _admitted(by_name.get(requirement.package, []), requirement.specifier):
            yield Edge(
                name=requirement.package,
                requirement=requirement.specifier,
                kind=DependencyKind.OPTIONAL if extras else DependencyKind.PROD,
                target=target,
                marker=marker,
                extras=requirement.extras,
            )


def _admitted(found: Sequence[tuple[str, str]], specifier: str) -> list[str | None]:
    if len(found) > 1:
        try:
            wanted = SpecifierSet(specifier)
            admitted = [one for one in found if wanted.contains(one[1], prereleases=True)]
        except (InvalidSpecifier, InvalidVersion):
            admitted = []
        found = admitted or found
    return [where for where, _ in found] or [None]


def _source(entry: Mapping[str, Any]) -> Source:
    for key, kind in (
        ("git", SourceKind.GIT),
        ("hg", SourceKind.GIT),
        ("svn", SourceKind.GIT),
        ("url", SourceKind.URL),
        ("path", SourceKind.LINK if entry.get("editable") is True else SourceKind.FILE),
    ):
        if isinstance(entry.get(key), str):
            return Source(kind=kind, text=without_credentials(entry[key]))
    return Source()
