"""NuGet versions: up to four numbers, then a pre-release without regard to case.

Key: the four numbers, 1 for a release and 0 for a pre-release, identifiers.

Source: https://learn.microsoft.com/en-us/nuget/concepts/package-versioning
"""

import re
from typing import Final

from dependfix_core.versions.base import Key, KeyedScheme, Version
from dependfix_core.versions.semver import identifiers_key

_VERSION: Final = re.compile(
    r"\s*v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:\.([0-9]+))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\s*"
)


def nuget_key(text: str) -> Key | None:
    """The key, or None; missing numbers are zero, leading zeros and build metadata do not count."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    numbers = tuple(int(match[index] or 0) for index in range(1, 5))
    pre = match[5]
    return (*numbers, 1, ()) if pre is None else (*numbers, 0, identifiers_key(pre.lower()))


class NugetScheme(KeyedScheme):
    """NuGet packages."""

    def __init__(self) -> None:
        super().__init__("nuget", nuget_key)

    def is_prerelease(self, version: Version) -> bool:
        """Whether it has a pre-release label."""
        return bool(version.key[4] == 0)

    def numbers(self, version: Version) -> tuple[int, ...]:
        """All four."""
        return version.key[:4]
