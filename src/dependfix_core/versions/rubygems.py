"""Gem versions: runs of digits and of letters, where a letter sorts below any number.

Missing segments count as zero, so what a run of zeros means is decided by what
comes after it. Key: a token for each segment that is not zero (with the number
of zeros before it), and one for the end.

Source: https://docs.ruby-lang.org/en/3.3/Gem/Version.html
"""

import re
from typing import Final

from dependfix_core.versions.base import Key, KeyedScheme, Version

_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
_SEGMENT: Final = re.compile(r"[0-9]+|[A-Za-z]+")
_PLATFORM: Final = re.compile(
    r"""-(?:
        java | jruby | ruby | truffleruby | dalvik[0-9]* | dotnet[0-9.]* | macruby
      | (?:x86_64|x86|i[3-6]86|x64|amd64|universal|aarch64|arm64|arm|armv[0-9a-z]+|powerpc|ppc|ppc64le|ppc64|s390x
           |riscv64|sparc|mips64el)
        -?(?:linux|darwin|mingw|mswin|freebsd|openbsd|netbsd|solaris|aix|cygwin|dragonfly)
        [0-9A-Za-z_.-]*
      | (?:mswin|mingw|linux|darwin)[0-9_-]*
    )\Z""",
    re.VERBOSE,
)
_END: Final = (1,)
LOWEST_PRERELEASE: Final = (-1,)
"""In place of the end: below all pre-releases."""


def without_platform(text: str) -> str:
    """`text` without the platform that a lockfile appends (`1.13.9-x86_64-linux`)."""
    return _PLATFORM.sub("", text)


def gem_key(text: str) -> Key | None:
    """The key, or None."""
    text = without_platform(text.strip())
    if _VERSION.fullmatch(text) is None:
        return None
    tokens: list[tuple[object, ...]] = []
    zeros = 0
    in_head = True
    for segment in _SEGMENT.findall(text.replace("-", ".pre.")):
        if segment.isdigit():
            number = int(segment)
            if number:
                tokens.append((2, -zeros, number))
                zeros = 0
            else:
                zeros += 1
        else:
            # Zeros at the end of the leading numbers do not count: 1.0.a is 1.a.
            tokens.append((0, 0 if in_head else zeros, segment))
            in_head = False
            zeros = 0
    return (*tokens, _END)


class GemScheme(KeyedScheme):
    """Ruby gems."""

    def __init__(self) -> None:
        super().__init__("rubygems", gem_key)

    def is_prerelease(self, version: Version) -> bool:
        """Whether it has a letter."""
        return any(token[0] == 0 for token in version.key)

    def numbers(self, version: Version) -> tuple[int, ...]:
        """The numbers before the first letter."""
        numbers: list[int] = []
        for token in version.key:
            if token[0] != 2:
                break
            numbers.extend([0] * -token[1])
            numbers.append(token[2])
        return tuple(numbers)
