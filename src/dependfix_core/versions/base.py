"""What a version is, and what one ecosystem says about the order of its versions.

A text that is no version of its scheme is `Unparsable`, never 0.0.0, and a
pair that cannot be put in order compares as None. Neither ever counts as
safe: answers that may be unknown are an `Answer`, which refuses to be used as
a plain truth value.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from dependfix_core.errors import VersionError

Key = tuple[Any, ...]
"""Sorts versions of one scheme; plain, hashable, comparable with any other key of the scheme."""

Line = tuple[Any, ...]
"""Names a release line; two versions are on one line when these are equal."""

MAX_VERSION_CHARS: Final = 256
"""Longer texts are no versions in any ecosystem."""

CACHED_VERSIONS: Final = 1 << 16
SMALL_NUMBERS: Final = {str(number): number for number in range(4096)}
"""Numbers by their only spelling: quicker than `int`, and proof that a text is nothing but that number."""
FIRST_CALENDAR_YEAR: Final = 1990


class Answer(enum.Enum):
    """Yes, no, or not known; `if answer:` is an error, ask `is_yes` or `may_be`."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def is_yes(self) -> bool:
        """Certainly."""
        return self is Answer.YES

    @property
    def is_no(self) -> bool:
        """Certainly not."""
        return self is Answer.NO

    @property
    def may_be(self) -> bool:
        """Yes or unknown: what caution has to assume of danger."""
        return self is not Answer.NO

    def __bool__(self) -> NoReturn:
        raise TypeError("an Answer has three values: ask is_yes, is_no or may_be")

    @staticmethod
    def of(value: bool | None, /) -> "Answer":  # noqa: FBT001 - the value is the whole argument
        """None is unknown."""
        if value is None:
            return Answer.UNKNOWN
        return Answer.YES if value else Answer.NO


@dataclass(frozen=True, kw_only=True, slots=True)
class Unparsable:
    """A text that could not be read; a value, since one bad version must not stop a plan."""

    text: str
    scheme: str
    """The ecosystem or grammar it was read as."""
    reason: str = ""


class Version:
    """A version as written, with the key that orders it in its scheme.

    Equal when the scheme's order says so: `1.0` and `1.0.0` are equal in pip,
    and `text` tells them apart. There is deliberately no `<`: pairs can be
    incomparable, so order is asked from the scheme. Immutable by type only,
    which keeps its construction out of the way of reading large lockfiles.
    """

    __slots__ = ("key", "scheme", "text")

    def __init__(self, text: str, key: Key, scheme: str) -> None:
        self.text: Final = text
        self.key: Final = key
        self.scheme: Final = scheme

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self.key == other.key and self.scheme == other.scheme

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Version({self.scheme} {self.text!r})"

    def __str__(self) -> str:
        return self.text


class VersionScheme(Protocol):
    """The order of one ecosystem's versions."""

    @property
    def name(self) -> str:
        """GitHub's name of the ecosystem."""

    @property
    def is_total(self) -> bool:
        """Whether any two versions can be compared, so that keys alone decide."""

    def try_parse(self, text: str, /) -> Version | Unparsable:
        """The version that `text` is, or why it is none."""

    def parse(self, text: str) -> Version:
        """As `try_parse`.

        Raises:
            VersionError: `text` is no version of this scheme.
        """

    def try_parse_bound(self, text: str) -> Version | Unparsable:
        """As `try_parse`, and also the short forms that advisories write (`0`, `1.2`)."""

    def compare(self, left: Version, right: Version) -> int | None:
        """-1, 0 or 1; None when the two cannot be put in order."""

    def is_prerelease(self, version: Version) -> bool:
        """Whether it is published ahead of a release."""

    def line(self, version: Version) -> Line:
        """The release line it belongs to."""

    def same_line(self, left: Version, right: Version) -> bool:
        """Whether both promise to be compatible."""

    def same_release(self, left: Version, right: Version) -> bool:
        """Whether they differ in pre-release, build or the like only (`1.2.0-rc.1`, `1.2.0`)."""

    def sort(self, versions: Iterable[Version]) -> list[Version]:
        """Ascending; equal ones by text, so that the result does not depend on the input's order."""


class KeyedScheme(ABC):
    """A scheme made from a function of a text to its key.

    Subclasses say what a key means. Parsing is cached by text; a cache that is
    full starts anew, which costs less than keeping account of use.
    """

    is_total: bool = True

    def __init__(self, name: str, read: Callable[[str], Key | None]) -> None:
        self._name = name
        self._read = read
        self._cache: dict[str, Version | Unparsable] = {}

    @property
    def name(self) -> str:
        """GitHub's name of the ecosystem."""
        return self._name

    def try_parse(self, text: str, /) -> Version | Unparsable:
        """The version that `text` is, or why it is none."""
        found = self._cache.get(text)
        return self._read_new(text) if found is None else found

    def forget(self) -> None:
        """Empties the cache."""
        self._cache.clear()

    def parse(self, text: str) -> Version:
        """The version that `text` is.

        Raises:
            VersionError: It is none.
        """
        version = self.try_parse(text)
        if isinstance(version, Version):
            return version
        raise VersionError(text[:MAX_VERSION_CHARS], self._name)

    def try_parse_bound(self, text: str) -> Version | Unparsable:
        """The version that a bound of an advisory's range names."""
        return self.try_parse(text)

    def compare(self, left: Version, right: Version) -> int | None:
        """-1, 0 or 1; None when the two cannot be put in order."""
        mine, other = left.key, right.key
        return -1 if mine < other else 1 if mine > other else 0

    @abstractmethod
    def is_prerelease(self, version: Version) -> bool:
        """Whether it is published ahead of a release."""

    def line(self, version: Version) -> Line:
        """The release line it belongs to."""
        return line_of(self.numbers(version))

    def same_line(self, left: Version, right: Version) -> bool:
        """Whether both promise to be compatible."""
        return self.line(left) == self.line(right)

    def same_release(self, left: Version, right: Version) -> bool:
        """Whether they differ in pre-release, build or the like only."""
        return self.numbers(left) == self.numbers(right)

    @abstractmethod
    def numbers(self, version: Version) -> tuple[int, ...]:
        """The release numbers, without pre-release and build, without trailing zeros."""

    def sort(self, versions: Iterable[Version]) -> list[Version]:
        """Ascending; equal ones by text."""
        return sorted(versions, key=lambda version: (version.key, version.text))

    def _read_new(self, text: str) -> Version | Unparsable:
        key = self._read(text) if len(text) <= MAX_VERSION_CHARS else None
        if key is None:
            text = text[:MAX_VERSION_CHARS]
            return self._keep(text, Unparsable(text=text, scheme=self._name, reason="no version of this ecosystem"))
        return self._keep(text, Version(text, key, self._name))

    def _keep(self, text: str, found: Version | Unparsable) -> Version | Unparsable:
        if len(self._cache) >= CACHED_VERSIONS:
            self._cache.clear()
        self._cache[text] = found
        return found


def line_of(numbers: tuple[int, ...]) -> Line:
    """Same major; of 0.x the same minor; of 0.0.x the same patch; calendar versions are all one line."""
    major = numbers[0] if numbers else 0
    if major >= FIRST_CALENDAR_YEAR:
        return ("calendar",)
    if major:
        return (major,)
    minor = numbers[1] if len(numbers) > 1 else 0
    if minor:
        return (0, minor)
    return (0, 0, numbers[2] if len(numbers) > 2 else 0)
