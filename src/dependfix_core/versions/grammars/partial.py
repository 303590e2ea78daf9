"""What grammars over semantic versions share: partial versions and the intervals made from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dependfix_core.versions.base import Key
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Comparator
from dependfix_core.versions.semver import identifiers_key, semver_key

_IDENTIFIER: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
PARTIAL_TAIL: Final = rf"(?:-(?P<pre>{_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
"""Pre-release and build after the numbers, as a pattern."""

_LOWEST_PRERELEASE: Key = ((0, 0),)


@dataclass(frozen=True, slots=True)
class Partial:
    """A version whose later numbers may be missing or wildcards (None)."""

    major: int | None
    minor: int | None
    patch: int | None
    prerelease: str | None = None
    has_wildcard: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all three numbers are there."""
        return self.patch is not None

    @property
    def key(self) -> Key:
        """The key, missing numbers being zero; a pre-release counts only with all three numbers."""
        base = (self.major or 0, self.minor or 0, self.patch or 0)
        if self.prerelease is None or not self.is_complete:
            return (*base, 1, ())
        return (*base, 0, identifiers_key(self.prerelease))

    @property
    def full_key(self) -> Key:
        """As `key`, with the pre-release also where numbers are missing."""
        base = (self.major or 0, self.minor or 0, self.patch or 0)
        return (*base, 1, ()) if self.prerelease is None else (*base, 0, identifiers_key(self.prerelease))

    @property
    def named_prereleases(self) -> frozenset[Key]:
        """The release whose pre-releases it opens by being one."""
        return frozenset({self.key[:3]}) if self.key[3] == 0 else frozenset()


def partial_of(match: re.Match[str]) -> Partial:
    """From a match with the groups `major`, `minor`, `patch` and `pre`; nothing counts after a wildcard."""
    written = match.group("major", "minor", "patch")
    numbers: list[int | None] = []
    for number in written:
        wild = number is None or number in "xX*" or (bool(numbers) and numbers[-1] is None)
        numbers.append(None if wild or number is None else int(number))
    major, minor, patch = numbers
    return Partial(major, minor, patch, match["pre"], any(number is not None and number in "xX*" for number in written))


def named_prereleases(parts: Sequence[Comparator]) -> frozenset[Key]:
    """The releases whose pre-releases comparators open by naming one."""
    keys = (semver_key(part.version) for part in parts)
    return frozenset(key[:3] for key in keys if key is not None and key[3] == 0)


def below(major: int, minor: int = 0, patch: int = 0) -> Bound:
    """Ends before the first pre-release of a version (`<2.0.0-0`)."""
    return Bound((major, minor, patch, 0, _LOWEST_PRERELEASE), inclusive=False)


def at_least(partial: Partial) -> Bound:
    """Begins with the version itself."""
    return Bound(partial.key, inclusive=True)


def nothing() -> Interval:
    """The empty interval."""
    return Interval(below(0), below(0))


def after(partial: Partial) -> Bound:
    """Ends where the last number that is there would go up."""
    major, minor, patch = partial.major or 0, partial.minor, partial.patch
    if minor is None:
        return below(major + 1)
    if patch is None:
        return below(major, minor + 1)
    return below(major, minor, patch + 1)


def tilde(partial: Partial) -> Interval:
    """From the version to the end of its minor, or of its major when there is no minor."""
    if partial.major is None:
        return Interval()
    upper = below(partial.major + 1) if partial.minor is None else below(partial.major, partial.minor + 1)
    return Interval(at_least(partial), upper)


def caret(partial: Partial) -> Interval:
    """From the version up to where the leftmost number that is not zero would change."""
    major, minor, patch = partial.major, partial.minor, partial.patch
    if major is None:
        return Interval()
    if major > 0 or minor is None:
        upper = below(major + 1)
    elif minor > 0 or patch is None:
        upper = below(0, minor + 1)
    else:
        upper = below(0, 0, patch + 1)
    return Interval(at_least(partial), upper)


def wildcard(partial: Partial) -> Interval:
    """All versions that begin with the numbers that are there; exactly one when all are."""
    if partial.major is None:
        return Interval()
    if partial.is_complete:
        return Interval(at_least(partial), at_least(partial))
    return Interval(at_least(partial), after(partial))


def compared(operator: str, partial: Partial) -> Interval:
    """`<`, `<=`, `>`, `>=` with node's reading of partial versions."""
    if partial.major is None:
        return nothing() if operator in ("<", ">") else Interval()
    if partial.is_complete:
        if operator[0] == ">":
            return Interval(Bound(partial.key, inclusive=operator == ">="), None)
        return Interval(None, Bound(partial.key, inclusive=operator == "<="))
    match operator:
        case ">":
            start = after(partial).key
            return Interval(Bound((*start[:3], 1, ()), inclusive=True), None)
        case ">=":
            return Interval(at_least(partial), None)
        case "<=":
            return Interval(None, after(partial))
        case _:
            return Interval(None, below(*partial.key[:3]))
