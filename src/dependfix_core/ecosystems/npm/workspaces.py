"""Which folders are members of a workspace: npm's, yarn's, bun's and pnpm's patterns over a listing.

Patterns come from the repository and are not trusted: they are matched by a
linear walk, never as regular expressions, and what they may expand to is limited.
"""

import posixpath
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dependfix_core.versions import Unparsable, parse_requirement

MAX_ALTERNATIVES: Final = 200
"""A brace pattern that expands to more is not understood."""
MAX_PATTERN: Final = 300

MANIFEST: Final = "package.json"
_SKIPPED: Final = frozenset({"node_modules", "bower_components"})


def links_member(requirement: str, version: str) -> bool:
    """Whether a requirement for a member's name takes the member itself, and not a package of that name."""
    parsed = parse_requirement("npm", requirement)
    return bool(version) and not isinstance(parsed, Unparsable) and parsed.admits(version).is_yes


class PatternError(ValueError):
    """A workspace pattern that is not understood."""


def member_folders(
    root: str, patterns: Iterable[str], paths: Iterable[str], *, negatives_always_win: bool
) -> tuple[str, ...]:
    """Folders of the members under `root`, sorted, without the root itself.

    `root` is the folder of the workspace root (empty for the top level) and
    `paths` all paths of the listing. pnpm lets a `!pattern` win whatever its
    place; npm, yarn and bun apply patterns in order, the last match decides.

    Raises:
        PatternError: A pattern that is not understood.
    """
    rules = [_rule(pattern) for pattern in patterns]
    prefix = f"{root}/" if root else ""
    members = []
    for path in paths:
        if not path.startswith(prefix) or posixpath.basename(path) != MANIFEST:
            continue
        folder = posixpath.dirname(path)[len(prefix) :]
        segments = tuple(folder.split("/")) if folder else ()
        if not segments or _SKIPPED.intersection(segments):
            continue
        if _included(segments, rules, negatives_always_win=negatives_always_win):
            members.append(prefix + folder)
    return tuple(sorted(members))


def _included(
    segments: tuple[str, ...],
    rules: list[tuple[bool, tuple[tuple[str, ...], ...]]],
    *,
    negatives_always_win: bool,
) -> bool:
    included = False
    for positive, alternatives in rules:
        if not any(_matches(segments, alternative) for alternative in alternatives):
            continue
        if positive:
            included = True
        elif negatives_always_win:
            return False
        else:
            included = False
    return included


@lru_cache(maxsize=512)
def _rule(pattern: str) -> tuple[bool, tuple[tuple[str, ...], ...]]:
    """Whether it includes, and the alternatives as segments."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError("a workspace pattern is too long")
    positive = True
    text = pattern.strip().replace("\\", "/")
    while text.startswith("!") and not text.startswith("!("):
        positive = not positive
        text = text[1:]
    alternatives = []
    for alternative in _expand(text):
        normal = posixpath.normpath(alternative).lstrip("/")
        if normal.startswith(".."):
            raise PatternError(f"a workspace pattern leaves its folder: {pattern!r}")
        alternatives.append(tuple(normal.split("/")) if normal != "." else ())
    return positive, tuple(alternatives)


def _expand(text: str) -> list[str]:
    """Without braces and without the extended groups that stand for a plain choice."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        current = waiting.pop()
        found = _first_choice(current)
        if found is None:
            done.append(current)
        else:
            before, choices, after = found
            waiting.extend(before + choice + after for choice in choices)
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise PatternError("a workspace pattern has too many alternatives")
    return sorted(done)


def _first_choice(text: str) -> tuple[str, list[str], str] | None:
    """The first outermost `{a,b}`, `(a|b)` or `@(a|b)` of `text`, cut out."""
    for index, sign in enumerate(text):
        if sign not in "{(":
            continue
        closing, separator = ("}", ",") if sign == "{" else (")", "|")
        head = text[:index]
        if sign == "(" and head[-1:] in ("!", "*", "?", "+"):
            raise PatternError(f"a workspace pattern is not understood: {text!r}")
        end, choices = _choices(text, index, sign, closing, separator)
        if end < 0 or (sign == "{" and len(choices) == 1):
            continue
        return head.removesuffix("@") if sign == "(" else head, choices, text[end + 1 :]
    return None


def _choices(text: str, start: int, opening: str, closing: str, separator: str) -> tuple[int, list[str]]:
    depth, piece_start = 0, start + 1
    pieces: list[str] = []
    for index in range(start, len(text)):
        sign = text[index]
        if sign == opening:
            depth += 1
        elif sign == closing:
            depth -= 1
            if depth == 0:
                return index, [*pieces, text[piece_start:index]]
        elif sign == separator and depth == 1:
            pieces.append(text[piece_start:index])
            piece_start = index + 1
    return -1, []


def _matches(segments: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whole-path match; `**` stands for any number of segments. Linear in both lengths."""
    reachable = {0}
    for piece in pattern:
        if piece == "**":
            first = min(reachable, default=None)
            reachable = set() if first is None else set(range(first, len(segments) + 1))
        else:
            reachable = {at + 1 for at in reachable if at < len(segments) and _segment_matches(segments[at], piece)}
    return len(segments) in reachable


def _segment_matches(text: str, pattern: str) -> bool:
    """`*`, `?` and `[…]` within one segment; a leading dot has to be written."""
    if text.startswith(".") and not pattern.startswith("."):
        return False
    tokens = _tokens(pattern)
    at = token = 0
    star, star_at = -1, 0
    while at < len(text):
        if token < len(tokens) and tokens[token] != "*" and _one_matches(text[at], tokens[token]):
            at += 1
            token += 1
        elif token < len(tokens) and tokens[token] == "*":
            star, star_at = token, at
            token += 1
        elif star >= 0:
            star_at += 1
            at, token = star_at, star + 1
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


@lru_cache(maxsize=1024)
def _tokens(pattern: str) -> tuple[str, ...]:
    tokens: list[str] = []
    index = 0
    while index < len(pattern):
        if pattern[index] == "[":
            end = pattern.find("]", index + 2)
            if end > 0:
                tokens.append(pattern[index : end + 1])
                index = end + 1
                continue
        if not (pattern[index] == "*" and tokens[-1:] == ["*"]):
            tokens.append(pattern[index])
        index += 1
    return tuple(tokens)


def _one_matches(letter: str, token: str) -> bool:
    if len(token) == 1:
        return token in ("?", letter)
    body = token[1:-1]
    negated = body[:1] in ("!", "^")
    body = body[1:] if negated else body
    inside, index = False, 0
    while index < len(body):
        if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
            inside = inside or body[index] <= letter <= body[index + 2]
            index += 3
        else:
            inside = inside or body[index] == letter
            index += 1
    return inside != negated
