"""Python versions by PEP 440, read by `packaging`.

Key: epoch, release without trailing zeros, then pre-release, post-release and
development release as numbers, then the local label.

Source: https://packaging.python.org/en/latest/specifications/version-specifiers/
"""

import re
from typing import Any, Final

from packaging.version import InvalidVersion
from packaging.version import Version as PackagingVersion

from dependfix_core.versions.base import SMALL_NUMBERS, Key, KeyedScheme, Line, Version, line_of

_PHASES: Final = {"a": 0, "b": 1, "rc": 2}
_NORMAL: Final = re.compile(
    r"([0-9]+(?:\.[0-9]+)*)(?:(a|b|rc)([0-9]+))?(?:\.post([0-9]+))?(?:\.dev([0-9]+))?"
).fullmatch
_DEVELOPMENT: Final = -1
_FINAL: Final = 3
_STABLE: Final = (_FINAL, 0, 0, 0, 1, 0)
_NO_LOCAL: Final = ()


def pep440_key(text: str) -> Key | None:
    """The key, or None for what PEP 440 does not allow."""
    # Most versions are small numbers, which need no grammar.
    release = [SMALL_NUMBERS.get(part, -1) for part in text.split(".")]
    if -1 not in release:
        return (0, tuple(release) if release[-1] else _trimmed(tuple(release)), _STABLE, _NO_LOCAL)
    match = _NORMAL(text)
    if match:
        return _normal_key(match)
    try:
        version = PackagingVersion(text)
    except InvalidVersion:
        return None
    return key_of(version)


def _normal_key(match: re.Match[str]) -> Key:
    """The key of a version in its normal spelling."""
    numbers, pre, number, post, dev = match.groups()
    release = tuple(map(int, numbers.split(".")))
    phase = _PHASES[pre] if pre else _FINAL if post or not dev else _DEVELOPMENT
    suffix = (phase, int(number or 0), 1 if post else 0, int(post or 0), 0 if dev else 1, int(dev or 0))
    return (0, release if release[-1] else _trimmed(release), suffix, _NO_LOCAL)


def key_of(version: PackagingVersion) -> Key:
    """The key of what `packaging` has read."""
    pre, post, dev = version.pre, version.post, version.dev
    if pre is not None:
        phase, number = _PHASES[pre[0]], pre[1]
    else:
        phase, number = (_FINAL if dev is None or post is not None else _DEVELOPMENT), 0
    suffix = (phase, number, int(post is not None), post or 0, int(dev is None), dev or 0)
    local = version.local
    return (version.epoch, _trimmed(version.release), suffix, _NO_LOCAL if local is None else _local(local))


def _trimmed(release: tuple[int, ...]) -> tuple[int, ...]:
    end = len(release)
    while end and release[end - 1] == 0:
        end -= 1
    return release if end == len(release) else release[:end]


def _local(label: str) -> tuple[tuple[int, Any], ...]:
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in label.split("."))


class Pep440Scheme(KeyedScheme):
    """The Python Package Index and whatever installs from it."""

    def __init__(self, name: str = "pip") -> None:
        super().__init__(name, pep440_key)

    def is_prerelease(self, version: Version) -> bool:
        """Whether it is a pre-release or a development release."""
        suffix = version.key[2]
        return bool(suffix[0] != _FINAL or suffix[4] == 0)

    def numbers(self, version: Version) -> tuple[int, ...]:
        """The release segment without trailing zeros."""
        release: tuple[int, ...] = version.key[1]
        return release

    def line(self, version: Version) -> Line:
        """As everywhere, within one epoch."""
        epoch, release = version.key[:2]
        line = line_of(release)
        return ("epoch", epoch, *line) if epoch else line

    def same_release(self, left: Version, right: Version) -> bool:
        """Same epoch and release segment."""
        return left.key[:2] == right.key[:2]
