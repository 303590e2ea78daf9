"""Composer versions: normalised to four numbers and stabilities, then ordered as PHP does.

Key: a token for each number or stability, and one for the end, with
dev < alpha < beta < RC < (none) < number < patch. A branch (`dev-main`) is
comparable with itself only.

Sources: https://getcomposer.org/doc/articles/versions.md,
https://www.php.net/manual/en/function.version-compare.php
"""

import re
from typing import Final

from dependfix_core.versions.base import Key, KeyedScheme, Line, Version, line_of

_MODIFIER: Final = (
    r"[._-]?(?:(?P<stability>stable|beta|b|RC|alpha|a|patch|pl|p)(?P<counter>(?:[.-]?[0-9]++)*+)?)?(?P<dev>[.-]?dev)?"
)
_CLASSIC: Final = re.compile(rf"v?([0-9]{{1,5}})(\.[0-9]+)?(\.[0-9]+)?(\.[0-9]+)?{_MODIFIER}", re.IGNORECASE)
_DATED: Final = re.compile(
    rf"v?([0-9]{{4}}(?:[.:-]?[0-9]{{2}}){{1,6}}(?:[.:-]?[0-9]{{1,3}}){{0,2}}){_MODIFIER}", re.IGNORECASE
)
_ALIAS: Final = re.compile(r"([^,\s]+)\s+as\s+([^,\s]+)")
_FLAG: Final = re.compile(r"@(?:stable|RC|beta|alpha|dev)\Z", re.IGNORECASE)
_BUILD: Final = re.compile(r"([^,\s+]+)\+\S+")
_NUMERIC_BRANCH: Final = re.compile(
    r"v?([0-9]+)(?:\.([0-9]+|[x*]))?(?:\.([0-9]+|[x*]))?(?:\.([0-9]+|[x*]))?[.-]?dev", re.IGNORECASE
)
_WORDS: Final = re.compile(r"[0-9]+|[a-z]+")
BRANCH_NUMBER: Final = 9999999
DEV, ALPHA, BETA, RC, NUMBER, PATCH = range(6)
_BRANCH: Final = -1
RANKS: Final = {"dev": DEV, "alpha": ALPHA, "a": ALPHA, "beta": BETA, "b": BETA, "rc": RC}
_PATCHES: Final = ("patch", "pl", "p")
END: Final = (NUMBER, -1)
"""Ends a key: below every number and patch, above every stability."""


def composer_key(text: str) -> Key | None:
    """The key, or None."""
    text = text.strip()
    alias = _ALIAS.fullmatch(text)
    if alias:
        text = alias[1]
    text = _FLAG.sub("", text)
    if text in ("master", "trunk", "default"):
        text = f"dev-{text}"
    if text[:4].lower() == "dev-":
        return ((_BRANCH, text[4:]),) if len(text) > 4 and not re.search(r"\s", text) else None
    build = _BUILD.fullmatch(text)
    if build:
        text = build[1]
    match = _CLASSIC.fullmatch(text)
    if match:
        numbers = [int(match[1]), *(int((match[index] or ".0")[1:]) for index in (2, 3, 4))]
        return _with_modifier(numbers, match)
    match = _DATED.fullmatch(text)
    if match:
        return _with_modifier([int(group) for group in re.findall(r"[0-9]+", match[1])], match)
    match = _NUMERIC_BRANCH.fullmatch(text)
    if match:
        groups = [match[1], *(match[index] or "x" for index in (2, 3, 4))]
        numbers = [int(group) if group.isdigit() else BRANCH_NUMBER for group in groups]
        return (*((NUMBER, number) for number in numbers), (DEV, 0), END)
    return None


def _with_modifier(numbers: list[int], match: re.Match[str]) -> Key:
    tokens = [(NUMBER, number) for number in numbers]
    stability = (match["stability"] or "").lower()
    if stability and stability != "stable":
        tokens.append((PATCH, 0) if stability in _PATCHES else (RANKS[stability], 0))
        tokens.extend((NUMBER, int(counter)) for counter in re.findall(r"[0-9]+", match["counter"] or ""))
    if match["dev"] and stability != "stable":
        tokens.append((DEV, 0))
    return (*tokens, END)


class ComposerScheme(KeyedScheme):
    """Packages of Composer repositories."""

    is_total = False

    def __init__(self) -> None:
        super().__init__("composer", composer_key)

    def compare(self, left: Version, right: Version) -> int | None:
        """-1, 0 or 1; None when one of two different versions is a branch."""
        if is_branch(left.key) or is_branch(right.key):
            return 0 if left.key == right.key else None
        return super().compare(left, right)

    def is_prerelease(self, version: Version) -> bool:
        """Whether it is less stable than a release; a branch is."""
        return any(token[0] < NUMBER for token in version.key)

    def numbers(self, version: Version) -> tuple[int, ...]:
        """The numbers before the stability; none for a branch."""
        numbers: list[int] = []
        for rank, number in version.key:
            if rank != NUMBER or number < 0:
                break
            numbers.append(number)
        return tuple(numbers)

    def line(self, version: Version) -> Line:
        """As everywhere; a branch is a line of its own."""
        if is_branch(version.key):
            return ("branch", version.key[0][1])
        return line_of(self.numbers(version))


def is_branch(key: Key) -> bool:
    """Whether it is the key of a branch, which no other version can be compared with."""
    return bool(key) and key[0][0] == _BRANCH
