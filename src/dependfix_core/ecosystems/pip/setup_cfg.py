"""What does a `setup.cfg` declare in `[options]` and its extras?

Source: https://setuptools.pypa.io/en/latest/userguide/declarative_config.html
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from dependfix_core.ecosystems.pip.requirement_text import read_requirement
from dependfix_core.ecosystems.pip.toml_text import UTF8_BOM, line_and_column
from dependfix_core.model.lock import Constraint, DependencyKind, Problem, Span

_SECTION: Final = re.compile(r"\[([^\]\n]+)\]\s*(?:[#;].*)?")
_OPTION: Final = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:]\s*(.*)")
_DIRECTIVE: Final = re.compile(r"(file|attr)\s*:\s*(.*)")
_KINDS: Final = {
    "install_requires": DependencyKind.PROD,
    "setup_requires": DependencyKind.BUILD,
    "tests_require": DependencyKind.DEV,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupCfg:
    """A `setup.cfg` as values."""

    path: str
    name: str = ""
    version: str = ""
    requires_python: str = ""
    constraints: tuple[Constraint, ...] = ()
    requirement_files: tuple[str, ...] = ()
    """Files named by a `file:` directive, relative to the file's folder."""
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Option:
    section: str
    name: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    """Byte offset and text (bytes read as latin-1) of each line of the value, without comments."""


def read_setup_cfg(path: str, content: bytes) -> SetupCfg:
    """The declarations of one file; a line that cannot be read becomes a problem, the rest goes on."""
    constraints: list[Constraint] = []
    problems: list[Problem] = []
    files: list[str] = []
    plain: dict[tuple[str, str], str] = {}
    for option in _options(content):
        kind, group = _kind(option)
        first = next((text.strip() for _, text in option.lines if text.strip()), "")
        if kind is None:
            plain[option.section, option.name] = first
            continue
        directive = _DIRECTIVE.match(first)
        if directive:
            if directive[1] == "file":
                files.extend(name.strip() for name in directive[2].split(",") if name.strip())
            else:
                position = line_and_column(content, option.lines[0][0])
                problems.append(
                    Problem(
                        path=path, position=position, message=f"{option.name} is computed", reason="dynamic-version"
                    )
                )
            continue
        for offset, text in _entries(option):
            try:
                constraints.append(_constraint(path, option, kind, group, offset=offset, text=text))
            except ValueError as error:
                problems.append(Problem(path=path, position=line_and_column(content, offset), message=str(error)))
    return SetupCfg(
        path=path,
        name=plain.get(("metadata", "name"), ""),
        version=plain.get(("metadata", "version"), ""),
        requires_python=plain.get(("options", "python_requires"), ""),
        constraints=numbered(constraints),
        requirement_files=tuple(files),
        problems=tuple(problems),
    )


def numbered(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The same with `at` made unique: a name that one list has twice is numbered from the second on."""
    found: list[Constraint] = []
    seen: dict[str, int] = {}
    for constraint in constraints:
        count = seen[constraint.at] = seen.get(constraint.at, 0) + 1
        found.append(constraint if count == 1 else replace(constraint, at=f"{constraint.at} ({count})"))
    return tuple(found)


def _kind(option: _Option) -> tuple[DependencyKind | None, str]:
    if option.section == "options":
        kind = _KINDS.get(option.name)
        return kind, "" if kind is DependencyKind.PROD else option.name
    if option.section == "options.extras_require":
        return DependencyKind.OPTIONAL, option.name
    return None, ""


def _options(content: bytes) -> Iterator[_Option]:
    """As `configparser` reads them: `=` or `:`, indented lines continue, whole-line comments."""
    section = ""
    current: _Option | None = None
    offset = len(UTF8_BOM) if content.startswith(UTF8_BOM) else 0
    for line in content[offset:].decode("latin-1").splitlines(keepends=True):
        start, offset = offset, offset + len(line)
        body = line.rstrip("\r\n")
        stripped = body.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if body[0] in " \t" and current is not None:
            indent = len(body) - len(body.lstrip())
            current.lines.append((start + indent, stripped))
            continue
        header = _SECTION.fullmatch(stripped)
        found = None if header else _OPTION.match(body)
        if current is not None:
            yield current
            current = None
        if header:
            section = header[1].strip()
        elif found:
            current = _Option(section=section, name=found[1].strip().lower().replace("-", "_"))
            if section.endswith("extras_require"):
                current.name = found[1].strip()
            if found[2].strip():
                current.lines.append((start + found.start(2), found[2].strip()))
    if current is not None:
        yield current


def _entries(option: _Option) -> Iterator[tuple[int, str]]:
    """One requirement a line; on the first line alone also separated by semicolons."""
    if len(option.lines) == 1 and ";" in option.lines[0][1]:
        offset, text = option.lines[0]
        pieces = text.split(";")
        if all(re.match(r"\s*[A-Za-z0-9._-]+\s*(?:\[|[=<>!~]|$)", piece) for piece in pieces) and not any(
            re.match(r"\s*(?:python|sys_|os_name|platform|implementation|extra)", piece) for piece in pieces[1:]
        ):
            for piece in pieces:
                if piece.strip():
                    yield offset + len(piece) - len(piece.lstrip()), piece.strip()
                offset += len(piece) + 1
            return
    for offset, text in option.lines:
        # setuptools drops an inline comment after a space.
        bare = re.split(r"\s#", text, maxsplit=1)[0].rstrip()
        if bare:
            yield offset, bare


def _constraint(path: str, option: _Option, kind: DependencyKind, group: str, *, offset: int, text: str) -> Constraint:
    requirement = read_requirement(text)
    return Constraint(
        path=path,
        at=f"{option.section}.{option.name}.{requirement.name}",
        name=requirement.name,
        package=requirement.package,
        requirement=requirement.specifier,
        span=Span(start=offset + requirement.start, end=offset + requirement.end),
        kind=kind,
        group=group,
        marker=requirement.marker,
        extras=requirement.extras,
        source=requirement.source,
    )
