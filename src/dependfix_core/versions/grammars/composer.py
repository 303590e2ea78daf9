"""Composer's constraints.

A lower bound without stability begins with its development versions, an
exclusive upper one ends before its own; what may be installed besides is
decided by the stability a project asks for.

Source: https://getcomposer.org/doc/articles/versions.md
"""

import re
from dataclasses import replace
from typing import Final

from dependfix_core.versions.base import Key, Unparsable, VersionScheme
from dependfix_core.versions.composer import DEV, END, NUMBER, RANKS, composer_key, is_branch
from dependfix_core.versions.grammars.assemble import Draft, assemble, comparator, stripped
from dependfix_core.versions.intervals import Bound, Interval
from dependfix_core.versions.requirement import Comparator, Requirement, Span

_OR: Final = re.compile(r"\s*\|\|?\s*")
_AND: Final = re.compile(r"(?<!as)(?<![=>< ,^~!]) *(?<!-)[, ](?!-) *(?!,|as|$)")
_STABILITY: Final = r"(?:[._-]?(?:(?:stable|beta|b|RC|alpha|a|patch|pl|p)(?:[.-]?[0-9]++)*+)?(?:[.-]?dev)?|\.[xX*][.-]?dev)(?:\+[^\s]+)?"
_VERSION: Final = rf"[0-9]+(?:\.[0-9]+){{0,3}}{_STABILITY}"
_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_COMPATIBLE: Final = re.compile(rf"(?P<operator>[~^])v?(?P<version>{_VERSION})", re.IGNORECASE)
_ANY: Final = re.compile(r"v?[xX*](?:\.[xX*])*")
_WILDCARD: Final = re.compile(r"v?(?P<version>[0-9]+(?:\.[0-9]+){0,2}(?:\.[xX*])+)")
_HYPHEN: Final = re.compile(rf"v?(?P<low>{_VERSION}) +- +v?(?P<high>{_VERSION})", re.IGNORECASE)
_BASIC: Final = re.compile(r"(?P<operator><>|!=|>=|<=|==|[<>=])?\s*v?(?P<version>\S+)", re.IGNORECASE)
_ALIAS: Final = re.compile(r"(?P<kept>[^,\s]+)\s+as\s+[^,\s]+")
_FLAG: Final = re.compile(r"@(?P<stability>stable|RC|beta|alpha|dev)\Z", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"(dev-[^,\s@]+?|[^,\s@]+?\.x-dev)#.+", re.IGNORECASE)
_UNSTABLE: Final = re.compile(r"(?:alpha|beta|rc|dev|[ab])[.0-9-]*(?:dev)?\Z|patch|pl?[0-9]*\Z|stable\Z", re.IGNORECASE)


def parse_composer(text: str, scheme: VersionScheme) -> Requirement | Unparsable:
    """A constraint of `composer.json` or `composer.lock`."""
    drafts: list[Draft] = []
    start, end = stripped(text, 0, len(text))
    for arm in _split(text, _OR, start, end):
        parts: list[Comparator] = []
        for span in _split(text, _AND, *arm):
            found = _constraint(text, span)
            if found is None:
                return Unparsable(text=text, scheme="composer", reason="not a constraint")
            parts.extend(found)
        drafts.append((arm, _without_mixed_branches(parts)))
    return assemble("composer", text, scheme, drafts)


def _without_mixed_branches(parts: list[Comparator]) -> tuple[Comparator, ...]:
    """A branch is in no order, so that it cannot meet a bound beside it."""
    branches, others = set(), False
    for part in parts:
        for entry in part.intervals:
            for bound in (entry.lower, entry.upper):
                if bound is None or part.operator in ("!=", "<>"):
                    continue
                if is_branch(bound.key):
                    branches.add(bound.key)
                else:
                    others = True
    if branches and (others or len(branches) > 1):
        return tuple(replace(part, intervals=()) for part in parts)
    return tuple(parts)


def _split(text: str, separator: re.Pattern[str], start: int, end: int) -> list[Span]:
    spans: list[Span] = []
    at = start
    for match in separator.finditer(text, start, end):
        if match.end() > match.start():
            spans.append((at, match.start()))
            at = match.end()
    return [*spans, (at, end)]


def _constraint(text: str, span: Span) -> tuple[Comparator, ...] | None:
    start, end = span
    alias = _ALIAS.fullmatch(text, start, end)
    if alias:
        end = alias.end("kept")
    flag = None if re.search(r"\s-\s", text[start:end]) else _FLAG.search(text, start, end)
    stability = ""
    if flag:
        end = flag.start()
        # Behind a space Composer reads it as part of the version, where it says nothing.
        stability = "" if re.search(r"\s", text[start:end]) else flag["stability"].lower()
        if start == end:
            return ()
    reference = _REFERENCE.fullmatch(text, start, end)
    if reference:
        end = reference.end(1)
    if _ANY.fullmatch(text, start, end):
        whole = Comparator(
            operator="", version="*", span=(start, end), version_span=(start, end), intervals=(Interval(),)
        )
        return (whole,)
    return _ranged(text, start, end) or _basic(text, start, end, stability)


def _ranged(text: str, start: int, end: int) -> tuple[Comparator, ...] | None:
    match = _COMPATIBLE.fullmatch(text, start, end)
    if match:
        interval = _compatible(match["operator"], match["version"])
        return (_part(match, "version", match["operator"], interval),) if interval else None
    match = _WILDCARD.fullmatch(text, start, end)
    if match:
        numbers = _numbers(match["version"])
        lower = None if not any(numbers) else Bound(_development(numbers), inclusive=True)
        return (_part(match, "version", "", Interval(lower, _before_next(numbers, len(numbers)))),)
    match = _HYPHEN.fullmatch(text, start, end)
    if match is None:
        return None
    low, high = _lower_key(match["low"]), composer_key(match["high"])
    if low is None or high is None:
        return None
    numbers = _numbers(match["high"])
    whole = len(numbers) > 2 or _is_unstable(match["high"])
    upper = Bound(high, inclusive=True) if whole else _before_next(numbers, len(numbers))
    return (
        _part(match, "low", "-", Interval(Bound(low, inclusive=True), None)),
        _part(match, "high", "-", Interval(None, upper)),
    )


def _basic(text: str, start: int, end: int, stability: str) -> tuple[Comparator, ...] | None:
    match = _BASIC.fullmatch(text, start, end)
    if match is None:
        return None
    operator, version = match["operator"] or "", match["version"]
    key = composer_key(version)
    if key is None and version.lower().endswith("-dev") and re.fullmatch(r"[0-9a-zA-Z./-]+", version) and not operator:
        key = composer_key(f"dev-{version[:-4]}")
    if key is None:
        return None
    if is_branch(key):
        # A branch is itself and not another; it is neither before nor after anything.
        ordered = operator in ("<", "<=", ">", ">=")
    else:
        ordered = False
        if operator not in ("", "=", "==") and stability not in ("", "stable") and _is_stable(key):
            key = (*key[:-1], (RANKS[stability], 0), END)
        elif operator in ("<", ">="):
            key = _lower_key(version) or key
    inside, outside = Bound(key, inclusive=True), Bound(key, inclusive=False)
    intervals: tuple[Interval, ...]
    match operator:
        case _ if ordered:
            intervals = ()
        case "" | "=" | "==":
            intervals = (Interval(inside, inside),)
        case "!=" | "<>":
            intervals = (Interval(None, outside), Interval(outside, None))
        case ">":
            intervals = (Interval(outside, None),)
        case ">=":
            intervals = (Interval(inside, None),)
        case "<":
            intervals = (Interval(None, outside),)
        case _:
            intervals = (Interval(None, inside),)
    return (comparator(match, intervals),)


def _part(match: re.Match[str], group: str, operator: str, interval: Interval) -> Comparator:
    span = match.span() if group == "version" else match.span(group)
    return Comparator(
        operator=operator, version=match[group], span=span, version_span=match.span(group), intervals=(interval,)
    )


def _compatible(operator: str, version: str) -> Interval | None:
    # Build metadata hides from Composer that there is no stability.
    low = composer_key(version) if "+" in version else _lower_key(version)
    if low is None:
        return None
    numbers = _numbers(version)
    shifted = len(numbers) + (1 if re.search(r"\.[xX*][.-]?dev\Z", version) else 0)
    if operator == "~":
        keep = max(1, shifted - 1)
    elif numbers[0] or len(numbers) < 2:
        keep = 1
    else:
        keep = 2 if numbers[1] or len(numbers) < 3 else 3
    return Interval(Bound(low, inclusive=True), _before_next(numbers, keep))


def _numbers(version: str) -> tuple[int, ...]:
    match = _NUMBERS.match(version)
    assert match is not None
    return tuple(map(int, match[0].split(".")))


def _is_unstable(version: str) -> bool:
    """Whether it names a stability, so that its development versions are not meant as well."""
    match = _NUMBERS.match(version)
    return _UNSTABLE.search(version[match.end() if match else 0 :].partition("+")[0]) is not None


def _is_stable(key: Key) -> bool:
    return all(token[0] >= NUMBER for token in key)


def _lower_key(version: str) -> Key | None:
    key = composer_key(version)
    if key is None or is_branch(key) or _is_unstable(version):
        return key
    return (*key[:-1], (DEV, 0), END)


def _development(numbers: tuple[int, ...]) -> Key:
    padded = (*numbers, 0, 0, 0)[:4]
    return (*((NUMBER, number) for number in padded), (DEV, 0), END)


def _before_next(numbers: tuple[int, ...], keep: int) -> Bound:
    """Before the first development version after all that share `keep` numbers."""
    padded = (*numbers, 0, 0, 0, 0)[:keep]
    return Bound(_development((*padded[:-1], padded[-1] + 1)), inclusive=False)
