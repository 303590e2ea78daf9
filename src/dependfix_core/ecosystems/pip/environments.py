"""For which pythons and platforms of a project does an environment marker hold?

A project's environments are a grid of python versions inside its declared
range and the usual platforms; a marker is the set of cells where it is true,
kept as the bits of an integer. So implication and overlap of markers are
questions about bits.

Source: https://packaging.python.org/en/latest/specifications/dependency-specifiers/#environment-markers
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

Mask = int
"""Cells of the grid, one bit each; 0 is nowhere."""

MAX_MARKER_CHARS: Final = 8192
_LAST_MINOR: Final = 20
"""Of python 3; later ones are far enough away."""
_LATE_PATCH: Final = 99

_PLATFORMS: Final[tuple[Mapping[str, str], ...]] = tuple(
    {
        "os_name": os_name,
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": machine,
        "platform_python_implementation": python,
        "implementation_name": python.lower(),
    }
    for os_name, sys_platform, system, machine, python in (
        ("posix", "linux", "Linux", "x86_64", "CPython"),
        ("posix", "linux", "Linux", "aarch64", "CPython"),
        ("posix", "darwin", "Darwin", "arm64", "CPython"),
        ("posix", "darwin", "Darwin", "x86_64", "CPython"),
        ("nt", "win32", "Windows", "AMD64", "CPython"),
        ("posix", "linux", "Linux", "x86_64", "PyPy"),
        ("nt", "win32", "Windows", "AMD64", "PyPy"),
        ("posix", "freebsd14", "FreeBSD", "amd64", "CPython"),
    )
)
_ALIASES: Final = {
    "os.name": "os_name",
    "sys.platform": "sys_platform",
    "platform.version": "platform_version",
    "platform.machine": "platform_machine",
    "platform.python_implementation": "platform_python_implementation",
    "python_implementation": "platform_python_implementation",
}
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<operator>===|~=|==|!=|<=|>=|<|>)|(?P<bracket>[()])"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_.]*))"
)
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_UV_CONFLICT: Final = re.compile(r"(?:extra|group|project)-\d+-")


class Environments:
    """The environments that a project is for."""

    def __init__(self, requires_python: str, supported: Sequence[str] = ()) -> None:
        """`requires_python` is a PEP 440 range (empty: any); `supported` are markers, one of which has to hold."""
        self.requires_python: Final = _specifiers(requires_python)
        self.pythons: Final = tuple(_pythons(self.requires_python))
        width = len(_PLATFORMS)
        self._rows: Final = tuple(((1 << width) - 1) << (index * width) for index in range(len(self.pythons)))
        column = sum(1 << (index * width) for index in range(len(self.pythons)))
        self._columns: Final = tuple(column << place for place in range(width))
        self._known: dict[tuple[str, frozenset[str] | None], Mask] = {}
        self.everywhere: Mask = sum(self._rows)
        if supported:
            self.everywhere = 0
            self.everywhere = self._union(self.mask(marker) for marker in supported) or sum(self._rows)

    def mask(self, marker: str, extras: Iterable[str] | None = ()) -> Mask:
        """Where `marker` holds when a package is asked for with `extras`; `None` stands for any extra.

        A marker that cannot be read holds everywhere, so that nothing it
        guards is overlooked.
        """
        asked = None if extras is None else frozenset(extras)
        known = self._known.get((marker, asked))
        if known is None:
            known = self._known[marker, asked] = self._evaluate(marker, asked)
        return known & self.everywhere if self.everywhere else known

    def pythons_in(self, mask: Mask) -> tuple[Version, ...]:
        """The sampled pythons that have a cell in `mask`, ascending."""
        return tuple(python for python, row in zip(self.pythons, self._rows, strict=True) if mask & row)

    def _evaluate(self, marker: str, extras: frozenset[str] | None) -> Mask:
        whole = sum(self._rows)
        if not marker.strip():
            return whole
        if len(marker) > MAX_MARKER_CHARS:
            return whole
        try:
            return _Parser(marker, self._rows, self._columns, self.pythons, extras).parse()
        except (ValueError, RecursionError):
            return whole

    @staticmethod
    def _union(masks: Iterable[Mask]) -> Mask:
        found = 0
        for mask in masks:
            found |= mask
        return found


def covers_python(requires_python: str, pythons: Iterable[Version], *, upper: bool = True) -> Version | None:
    """The first of `pythons` that `requires_python` leaves out, else `None`.

    Without `upper`, bounds from above do not count, as uv reads them. A range
    that cannot be read leaves nothing out.
    """
    wanted = _specifiers(requires_python)
    if not upper:
        wanted = SpecifierSet(",".join(str(one) for one in wanted if one.operator in {">=", ">", "~=", "==", "!="}))
    return next((python for python in pythons if not wanted.contains(python, prereleases=True)), None)


def named_pythons(requires_python: str) -> tuple[Version, ...]:
    """The versions that a range names, wildcards left out."""
    found = []
    for one in _specifiers(requires_python):
        try:
            found.append(Version(one.version))
        except InvalidVersion:
            continue
    return tuple(found)


def _specifiers(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return SpecifierSet("")


def _pythons(wanted: SpecifierSet) -> Iterator[Version]:
    """First and last patch of each minor, and the versions that the range itself names."""
    found = {Version(f"2.7.{patch}") for patch in (0, _LATE_PATCH)}
    found |= {Version(f"3.{minor}.{patch}") for minor in range(_LAST_MINOR + 1) for patch in (0, _LATE_PATCH)}
    for one in wanted:
        try:
            named = Version(one.version)
        except InvalidVersion:
            continue
        release = (*named.release, 0, 0)[:3]
        found |= {Version(".".join(map(str, release))), Version(f"{release[0]}.{release[1]}.{release[2] + 1}")}
    inside = [python for python in found if wanted.contains(python, prereleases=True) and python < Version("4")]
    # A range beyond all samples still has one environment, else nothing would ever be needed.
    yield from sorted(inside or {Version(f"3.{_LAST_MINOR}.{_LATE_PATCH}")})


class _Parser:
    """Recursive descent over `or`, `and`, brackets and comparisons."""

    def __init__(
        self,
        text: str,
        rows: Sequence[Mask],
        columns: Sequence[Mask],
        pythons: Sequence[Version],
        extras: frozenset[str] | None,
    ) -> None:
        self._tokens = list(marker_tokens(text))
        self._at = 0
        self._rows = rows
        self._columns = columns
        self._pythons = pythons
        self._extras = extras

    def parse(self) -> Mask:
        mask = self._either()
        if self._at != len(self._tokens):
            raise ValueError("text after the marker")
        return mask

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise ValueError("marker ends early")
        self._at += 1
        return token

    def _either(self) -> Mask:
        mask = self._both()
        while self._peek() == "or":
            self._at += 1
            mask |= self._both()
        return mask

    def _both(self) -> Mask:
        mask = self._one()
        while self._peek() == "and":
            self._at += 1
            mask &= self._one()
        return mask

    def _one(self) -> Mask:
        if self._peek() == "(":
            self._at += 1
            mask = self._either()
            if self._take() != ")":
                raise ValueError("bracket not closed")
            return mask
        left = self._take()
        operator = self._take()
        if operator == "not":
            if self._take() != "in":
                raise ValueError("not what")
            operator = "not in"
        right = self._take()
        if left[0] in "'\"":
            return self._compare(right, _FLIPPED.get(operator, operator), left[1:-1], flipped=True)
        return self._compare(left, operator, right[1:-1], flipped=False)

    def _compare(self, variable: str, operator: str, value: str, *, flipped: bool) -> Mask:
        variable = _ALIASES.get(variable, variable)
        if variable in {"extra", "extras", "dependency_groups"}:
            return self._extra(operator, value)
        if variable == "python_version":
            texts = [f"{python.major}.{python.minor}" for python in self._pythons]
            return self._union(self._rows, texts, operator, value, flipped=flipped)
        if variable in {"python_full_version", "implementation_version"}:
            return self._union(self._rows, [str(one) for one in self._pythons], operator, value, flipped=flipped)
        texts = [platform.get(variable, "") for platform in _PLATFORMS]
        return self._union(self._columns, texts, operator, value, flipped=flipped)

    def _extra(self, operator: str, value: str) -> Mask:
        whole = sum(self._rows)
        if self._extras is None or _UV_CONFLICT.match(value):
            return whole
        named = re.sub(r"[-_.]+", "-", value).lower() in self._extras
        return whole if named == (operator in {"==", "in"}) else 0

    def _union(self, masks: Sequence[Mask], texts: Sequence[str], operator: str, value: str, *, flipped: bool) -> Mask:
        found = 0
        for mask, text in zip(masks, texts, strict=True):
            if _holds(text, operator, value, flipped=flipped):
                found |= mask
        return found


def marker_tokens(text: str) -> Iterator[str]:
    """Quoted values, operators, brackets and words of a marker.

    Raises:
        ValueError: Something else is in it.
    """
    position = 0
    body = text.rstrip()
    while position < len(body):
        found = _TOKEN.match(body, position)
        if not found:
            raise ValueError("not a marker")
        yield found[0].strip()
        position = found.end()


def _holds(text: str, operator: str, value: str, *, flipped: bool) -> bool:
    if operator in {"in", "not in"}:
        inside = (value in text) if flipped else (text in value)
        return inside == (operator == "in")
    try:
        return Specifier(f"{operator}{value}").contains(Version(text), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        pass
    match operator:
        case "==" | "===":
            return text == value
        case "!=":
            return text != value
        case "<":
            return text < value
        case "<=":
            return text <= value
        case ">":
            return text > value
        case ">=":
            return text >= value
        case _:
            raise ValueError("no comparison of texts")
