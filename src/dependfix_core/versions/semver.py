"""Semantic versions as npm, Cargo, Hex, Swift, Go, pub and GitHub Actions order them.

Key: major, minor, patch, 1 for a release and 0 for a pre-release, identifiers.
Numeric identifiers sort by value below the others, a shorter list first, and
build metadata does not count, except in pub.

Source: https://semver.org/spec/v2.0.0.html §9 to §11
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dependfix_core.versions.base import CACHED_VERSIONS, SMALL_NUMBERS, Key, KeyedScheme, Unparsable, Version

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?![0-9A-Za-z-])"
_PRERELEASE: Final = rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
_BUILD: Final = r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_FULL: Final = re.compile(rf"[v=\s]*({_NUMBER})\.({_NUMBER})\.({_NUMBER}){_PRERELEASE}{_BUILD}\s*")
_SHORT: Final = re.compile(rf"[v=\s]*({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?{_PRERELEASE}{_BUILD}\s*")
_PLAIN_PRERELEASE: Final = re.compile(rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*")
_MAX_PLAIN_CHARS: Final = 100
_NO_IDENTIFIERS: Final = ()


def semver_key(text: str) -> Key | None:
    """The key of a complete version, or None."""
    return _key(_FULL.fullmatch(text))


def short_semver_key(text: str) -> Key | None:
    """The key of a version with one to three numbers, or None."""
    return _key(_SHORT.fullmatch(text))


def build_semver_key(text: str) -> Key | None:
    """As `semver_key`, and behind it the build metadata if there is any: none first, then like a pre-release.

    Source: https://pub.dev/documentation/pub_semver/latest/pub_semver/Version/compareTo.html
    """
    match = _FULL.fullmatch(text)
    key = _key(match)
    if key is None or match is None:
        return None
    build = match[5]
    return key if build is None else (*key, identifiers_key(build))


def _key(match: re.Match[str] | None) -> Key | None:
    if match is None:
        return None
    major, minor, patch, pre = match.group(1, 2, 3, 4)
    if pre is None:
        return (int(major), int(minor or 0), int(patch or 0), 1, _NO_IDENTIFIERS)
    return (int(major), int(minor or 0), int(patch or 0), 0, identifiers_key(pre))


def identifiers_key(text: str) -> Key:
    """Dotted identifiers: numbers by value, below texts in ASCII order."""
    return tuple([(0, int(part)) if part.isdigit() else (1, part) for part in text.split(".")])


@lru_cache(4096)
def _prerelease_key(text: str) -> Key:
    """The identifiers of a pre-release without build metadata; the same few come back all the time.

    Raises:
        ValueError: It is none.
    """
    if len(text) > _MAX_PLAIN_CHARS or _PLAIN_PRERELEASE.fullmatch(text) is None:
        raise ValueError(text[:_MAX_PLAIN_CHARS])
    return identifiers_key(text)


class SemverScheme(KeyedScheme):
    """One ecosystem that uses semantic versions."""

    def __init__(self, name: str, read: Callable[[str], Key | None] = semver_key) -> None:
        super().__init__(name, read)

    def try_parse(self, text: str, /) -> Version | Unparsable:
        """The version that `text` is, or why it is none."""
        cache = self._cache
        found = cache.get(text)
        if found is not None:
            return found
        # Most versions are three small numbers, read here in one go: each further call would cost as much.
        try:
            if "-" in text:
                head, _, pre = text.partition("-")
                major, minor, patch = head.split(".")
                key: Key = (SMALL_NUMBERS[major], SMALL_NUMBERS[minor], SMALL_NUMBERS[patch], 0, _prerelease_key(pre))
            else:
                major, minor, patch = text.split(".")
                key = (SMALL_NUMBERS[major], SMALL_NUMBERS[minor], SMALL_NUMBERS[patch], 1, _NO_IDENTIFIERS)
        except (KeyError, ValueError):
            return self._read_new(text)
        if len(cache) >= CACHED_VERSIONS:
            cache.clear()
        cache[text] = found = Version(text, key, self._name)
        return found

    def try_parse_bound(self, text: str) -> Version | Unparsable:
        """Also `1` and `1.2`, which advisories write; what is missing is zero."""
        version = self.try_parse(text)
        if isinstance(version, Version):
            return version
        key = short_semver_key(text) if len(text) < 100 else None
        return version if key is None else Version(text, key, self.name)

    def is_prerelease(self, version: Version) -> bool:
        """Whether it has pre-release identifiers; a Go pseudo-version has."""
        return bool(version.key[3] == 0)

    def numbers(self, version: Version) -> tuple[int, ...]:
        """Major, minor, patch."""
        return version.key[:3]
