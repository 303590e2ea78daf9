"""What a release asks for, in the words in which pdm writes it into its locks."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from dependfix_core.ecosystems.pip.poetry_text import marker_text
from dependfix_core.model.records import Release, ReleaseDependency

_EXTRA: Final = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
_ANY_EXTRA: Final = re.compile(r"\bextra\b")
_LINE: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+(?:\[[^\]]*\])?)(?P<specifier>[^;]*)(?P<marker>;.*)?")


def dependency_lines(
    written: Sequence[str], old: Release, new: Release, extras: Iterable[str] = ()
) -> list[str] | None:
    """The `dependencies` of an entry of `new`, as pdm would list them; `None` for what is not certain.

    `written` are those of the entry of `old`: pdm spells conditions in a form of
    its own, and what it wrote tells how. Entries for `extras` of a package list
    what those bring in, and the package itself.

    Source: `filter_requirements_with_extras` and `Requirement.as_line` of pdm 2.
    """
    asked: set[str] = {canonicalize_name(extra) for extra in extras}
    before, after = _counting(old, asked), _counting(new, asked)
    if before is None or after is None:
        return None
    lines: dict[str, list[str]] = {}
    for line in written:
        lines.setdefault(_name_of(line), []).append(line)
    itself = lines.pop(canonicalize_name(old.name), []) if asked else []
    if lines.keys() != {canonicalize_name(one.name) for one in before}:
        return None  # an override or an exclusion of the project is in force
    found = [f"{_head(line)}=={new.version}" for line in itself]
    for one in after:
        spelled = _line(one, before, lines)
        if spelled is None:
            return None
        found.append(spelled)
    return sorted(found)


def _counting(release: Release, asked: set[str]) -> list[ReleaseDependency] | None:
    """The requirements of the package itself, or only those that the extras bring in."""
    found = []
    for one in release.dependencies or ():
        named = {canonicalize_name(extra) for extra in _EXTRA.findall(one.marker)}
        if not named and _ANY_EXTRA.search(one.marker):
            return None
        if named & asked if asked else not named:
            found.append(one)
    return found


def _line(one: ReleaseDependency, before: Sequence[ReleaseDependency], lines: dict[str, list[str]]) -> str | None:
    name = canonicalize_name(one.name)
    mine = [other for other in before if canonicalize_name(other.name) == name]
    spelled = lines.get(name, [])
    if len(mine) == 1 and len(spelled) == 1 and (mine[0].marker, mine[0].extras) == (one.marker, one.extras):
        # Everything but the range stays as pdm has put it.
        found = _LINE.fullmatch(spelled[0])
        specifier = _specifier(one)
        if found is None or specifier is None:
            return None
        return f"{found['name']}{specifier}{found['marker'] or ''}"
    line = _rendered(one)
    olds = [_rendered(other) for other in mine]
    # What this rule gives for the old release has to be what is written.
    return line if all(other in spelled for other in olds) else None


def _rendered(one: ReleaseDependency) -> str | None:
    marker = marker_text(one.marker, with_extras=False)
    specifier = _specifier(one)
    if marker is None or specifier is None or " and " in marker or " or " in marker:
        return None
    try:
        asked = Requirement(one.text)
    except InvalidRequirement:
        return None
    extras = f"[{','.join(sorted(asked.extras))}]" if asked.extras else ""
    return f"{asked.name}{extras}{specifier}" + (f"; {marker}" if marker else "")


def _specifier(one: ReleaseDependency) -> str | None:
    if one.requirement.startswith("@"):
        return None
    try:
        return str(Requirement(f"x{one.requirement}").specifier)
    except InvalidRequirement:
        return None


def _name_of(line: str) -> str:
    return canonicalize_name(re.split(r"[\s\[(;<>=!~@]", line, maxsplit=1)[0])


def _head(line: str) -> str:
    return line.partition("==")[0]
