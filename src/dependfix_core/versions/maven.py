"""Maven versions: the order of `ComparableVersion`, as far as Maven's releases agree on it.

A version is a list of items: numbers, words, and nested lists that a hyphen or
a border between digit and letter opens. The nesting after a letter differs
between Maven 3.6, 3.9 and 4; a pair whose order hangs on it is unknown.

Key: the items as Maven 4 reads them, as tokens that sort in its order.

Source: https://maven.apache.org/pom.html#version-order-specification
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final

from dependfix_core.versions.base import CACHED_VERSIONS, Key, KeyedScheme, Line, Version, line_of

_VERSION: Final = re.compile(r"[^\s\[\](),;${}<>\"'|&!]+")
_PLAIN: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_META: Final = ("latest", "release")
_QUALIFIERS: Final = {"alpha": 0, "beta": 1, "milestone": 2, "rc": 3, "cr": 3, "snapshot": 4, "sp": 6}
_RELEASE: Final = 5
_UNKNOWN: Final = 7
_RELEASE_WORDS: Final = ("", "ga", "final", "release")
_SHORT_WORDS: Final = {"a": "alpha", "b": "beta", "m": "milestone"}


class _Word:
    """A qualifier, with the number joined to it in Maven 4 (`rc1`)."""

    __slots__ = ("is_empty", "number", "rank", "text")

    def __init__(self, text: str, *, before_digit: bool, number: int | None = None, keeps_release: bool) -> None:
        if before_digit:
            text = _SHORT_WORDS.get(text, text)
        if text in _RELEASE_WORDS:
            self.rank, self.text = _RELEASE, ""
        else:
            self.rank = _QUALIFIERS.get(text, _UNKNOWN)
            self.text = text if self.rank == _UNKNOWN else ""
        self.number = number
        self.is_empty = number is None and (text == "" or (self.rank == _RELEASE and not keeps_release))


_Item = Any
"""An int, a `_Word`, or a list of items."""


def _read(text: str, dialect: int) -> list[_Item]:
    """The items of a version, by Maven 3.6 (3), 3.9 (2) or 4 (1)."""
    joins = dialect == 1
    top: list[_Item] = []
    lists = [top]
    current = top

    def nest() -> None:
        nonlocal current
        inner: list[_Item] = []
        current.append(inner)
        lists.append(inner)
        current = inner

    def word(token: str, *, before_digit: bool) -> _Word:
        return _Word(token, before_digit=before_digit, keeps_release=joins)

    def item(token: str, *, joined: bool, digits: bool) -> _Item:
        if joined:
            letters = token.rstrip("0123456789")
            number = token[len(letters) :]
            return _Word(letters.replace("-", ""), before_digit=True, number=int(number or 0), keeps_release=True)
        return int(token) if digits else word(token, before_digit=False)

    lowered = text.lower()
    digits = joined = False
    start = 0
    for at, char in enumerate(lowered):
        if char == ".":
            current.append(0 if at == start else item(lowered[start:at], joined=joined, digits=digits))
            joined = False
            start = at + 1
        elif char == "-":
            if at == start:
                current.append(0)
            else:
                if joins and not digits and "0" <= lowered[at + 1 : at + 2] <= "9":
                    joined = True
                    continue
                current.append(item(lowered[start:at], joined=joined, digits=digits))
            start = at + 1
            nest()
            joined = False
        elif "0" <= char <= "9":
            if not digits and at > start:
                if dialect != 3 and current:
                    nest()
                if joins:
                    joined = True
                else:
                    current.append(word(lowered[start:at], before_digit=True))
                    start = at
                    nest()
            digits = True
        else:
            if digits and at > start:
                current.append(item(lowered[start:at], joined=joined, digits=True))
                start = at
                nest()
                joined = False
            digits = False
    if len(lowered) > start:
        if dialect != 3 and not digits and current:
            nest()
        current.append(item(lowered[start:], joined=joined, digits=digits))
    for items in reversed(lists):
        _trim(items, keeps_inner=joins)
    return top


def _is_null(item: _Item) -> bool:
    if isinstance(item, _Word):
        return item.is_empty
    return not item


def _trim(items: list[_Item], *, keeps_inner: bool) -> None:
    """Takes out what counts as nothing: at the end, and before a qualifier."""
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if _is_null(item):
            if not keeps_inner or at == len(items) - 1 or _begins_with_word(items[at + 1]):
                del items[at]
        elif not keeps_inner and not isinstance(item, list):
            break


def _begins_with_word(item: _Item) -> bool:
    if isinstance(item, list):
        return bool(item) and isinstance(item[0], _Word)
    return isinstance(item, _Word)


def _compare_items(left: Sequence[_Item], right: Sequence[_Item], dialect: int) -> int:
    for mine, other in zip_longest(left, right):
        if mine is None:
            sign = -_against_none(other, dialect)
        else:
            sign = _against_none(mine, dialect) if other is None else _compare_item(mine, other, dialect)
        if sign:
            return sign
    return 0


def _against_none(item: _Item, dialect: int) -> int:
    if isinstance(item, _Word):
        return (item.rank > _RELEASE) - (item.rank < _RELEASE)
    if isinstance(item, list):
        # Maven 3.6 looked at the first item only.
        items = item[:1] if dialect == 3 else item
        return next((sign for inner in items if (sign := _against_none(inner, dialect))), 0)
    return int(bool(item))


def _compare_item(mine: _Item, other: _Item, dialect: int) -> int:
    kind, others = _kind(mine), _kind(other)
    if kind != others:
        return -1 if kind < others else 1
    if kind == 0:
        sign = _sign((mine.rank, mine.text), (other.rank, other.text))
        if sign:
            return sign
        return _sign(-1 if mine.number is None else mine.number, -1 if other.number is None else other.number)
    return _compare_items(mine, other, dialect) if kind == 1 else _sign(int(mine), int(other))


def _kind(item: _Item) -> int:
    """Words sort below lists, and these below numbers."""
    return 0 if isinstance(item, _Word) else 1 if isinstance(item, list) else 2


def _sign(mine: Any, other: Any) -> int:
    return int(mine > other) - int(mine < other)


@lru_cache(CACHED_VERSIONS)
def _dialects(text: str) -> tuple[list[_Item], ...]:
    return tuple(_read(text, dialect) for dialect in (1, 2, 3))


_END: Final = (2,)


def _tokens(items: Sequence[_Item]) -> tuple[Key, int]:
    """Tokens in whose order tuples sort as the items do, and the sign of the items against none."""
    tokens: list[tuple[Any, ...]] = []
    zeros = sign = 0
    for item in items:
        if isinstance(item, _Word):
            side = _against_none(item, 1)
            if side or item.number is not None:
                number = -1 if item.number is None else item.number
                tokens.append((0 if side < 0 else 3, item.rank, item.text, number))
                zeros = 0
        elif isinstance(item, list):
            inner, side = _tokens(item)
            if side < 0:
                tokens.append((1, *inner))
            elif zeros:
                tokens.append((5, zeros, *inner))
            elif side or len(inner) > 1:
                tokens.append((4, *inner))
            zeros = 0
        else:
            side = int(bool(item))
            if item:
                tokens.append((6, -zeros, item))
                zeros = 0
            else:
                zeros += 1
        sign = sign or side
    return (*tokens, _END), sign


def maven_key(text: str) -> Key | None:
    """The key, or None for what cannot be a version (ranges, properties, `LATEST`)."""
    text = text.strip()
    if _VERSION.fullmatch(text) is None or text.lower() in _META:
        return None
    return _tokens(_dialects(text)[0])[0]


_PRERELEASE_WORDS: Final = frozenset(
    (*_QUALIFIERS, "pre", "preview", "prerelease", "pr", "dev", "ea", "eap", "nightly", "canary")
) - {"sp"}
_RUNTIME_WORDS: Final = frozenset(["jre", "jdk", "java", "jvm", "android", "scala", "hadoop", "spark"])
_TAIL_WORDS: Final = re.compile(r"([a-z]+)([0-9]*)")


@lru_cache(CACHED_VERSIONS)
def _shape(text: str) -> tuple[tuple[int, ...], bool, tuple[str, ...]]:
    """The leading numbers, whether it is a pre-release, and the qualifier family."""
    lowered = text.strip().lower().removeprefix("v")
    head = _PLAIN.match(lowered)
    numbers = tuple(map(int, head[0].split("."))) if head else ()
    family: list[str] = []
    prerelease = False
    for word, digits in _TAIL_WORDS.findall(lowered[head.end() if head else 0 :]):
        if word in _PRERELEASE_WORDS or (digits and word in _SHORT_WORDS):
            prerelease = True
        elif word in _RUNTIME_WORDS:
            family.append(word + digits)
        else:
            # A service pack follows the final release of its line.
            family.append("final" if word == "sp" else word)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers, prerelease, tuple(family)


class MavenScheme(KeyedScheme):
    """Artifacts of Maven repositories."""

    is_total = False

    def __init__(self) -> None:
        super().__init__("maven", maven_key)

    def compare(self, left: Version, right: Version) -> int | None:
        """-1, 0 or 1; None when Maven's releases do not agree."""
        sign = super().compare(left, right)
        mine, other = left.text.strip(), right.text.strip()
        if _PLAIN.fullmatch(mine) and _PLAIN.fullmatch(other):
            return sign
        dialects = zip(_dialects(mine), _dialects(other), (1, 2, 3), strict=True)
        verdicts = (_compare_items(items, others, dialect) for items, others, dialect in dialects)
        return sign if all(verdict == sign for verdict in verdicts) else None

    def is_prerelease(self, version: Version) -> bool:
        """Whether a qualifier says so, among them words that Maven itself does not know (`preview`, `ea`)."""
        return _shape(version.text)[1]

    def numbers(self, version: Version) -> tuple[int, ...]:
        """The leading numbers, without trailing zeros."""
        return _shape(version.text)[0]

    def family(self, version: Version) -> tuple[str, ...]:
        """The qualifiers that a successor keeps: `jre`, `android`, `release`, `final`, `redhat`."""
        return _shape(version.text)[2]

    def line(self, version: Version) -> Line:
        """As everywhere, within one qualifier family."""
        numbers, _, family = _shape(version.text)
        return (*line_of(numbers), *family)

    def same_line(self, left: Version, right: Version) -> bool:
        """Whether both promise to be compatible; a pre-release that names no family belongs to any."""
        mine, other = _shape(left.text), _shape(right.text)
        return line_of(mine[0]) == line_of(other[0]) and (
            mine[2] == other[2] or any(shape[1] and not shape[2] for shape in (mine, other))
        )
