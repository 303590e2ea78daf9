"""Semantic versions as npm, Cargo, Hex, Swift, Go, pub and GitHub Actions order them.

Key: major, minor, patch, 1 for a release and 0 for a pre-release, identifiers.
Numeric identifiers sort by value below the others, a shorter list first, and
build metadata does not count, except in pub.

Source: https://semver.org/spec/v2.0.0.html §9 to §11
"""

import re
from collections.abc import Callable
from typing import Final

from dependfix_core.versions.base import Key, KeyedScheme, Unparsable, Version

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_FULL: Final = re.compile(
    rf"[v=\s]*({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?\s*"
)
_SHORT: Final = re.compile(
    rf"[v=\s]*({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?\s*"
)
_NO_IDENTIFIERS: Final = ()


def semver_key(text: str) -> Key | None:
    """The key of a complete version, or None."""
    return _key(_FULL.fullmatch(text))


def short_semver_key(text: str) -> Key | None:
    """The key of a version with one to three numbers, or None."""
    return _key(_SHORT.fullmatch(text))


def build_semver_key(text: str) -> Key | None:
    """As `semver_key`, with the build metadata as the last criterion: none first, then like a pre-release.

    Source: https://pub.dev/documentation/pub_semver/latest/pub_semver/Version/compareTo.html
    """
    match = _FULL.fullmatch(text)
    key = _key(match)
    if key is None or match is None:
        return None
    build = match[5]
    return (*key, () if build is None else identifiers_key(build))


def _key(match: re.Match[str] | None) -> Key | None:
    if match is None:
        return None
    major, minor, patch, pre = match.group(1, 2, 3, 4)
    if pre is None:
        return (int(major), int(minor or 0), int(patch or 0), 1, _NO_IDENTIFIERS)
    identifiers = identifiers_key(pre)
    for identifier in pre.split("."):
        if len(identifier) > 1 and identifier[0] == "0" and identifier.isdigit():
            return None
    return (int(major), int(minor or 0), int(patch or 0), 0, identifiers)


def identifiers_key(text: str) -> Key:
    """Dotted identifiers: numbers by value, below texts in ASCII order."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in text.split("."))


class SemverScheme(KeyedScheme):
    """One ecosystem that uses semantic versions."""

    def __init__(self, name: str, read: Callable[[str], Key | None] = semver_key) -> None:
        super().__init__(name, read)

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
