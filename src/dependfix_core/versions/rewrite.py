"""How a requirement's text changes so that nothing older than a target is asked for.

The operator, the spacing and all that is not a version stay as they are, an
exact version stays exact, an upper bound stays while it admits the target, and
nothing is ever lowered.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dependfix_core.model.plan import RefusalReason
from dependfix_core.versions.base import Key, Unparsable, Version
from dependfix_core.versions.grammars import parse_requirement
from dependfix_core.versions.intervals import Interval, VersionSet
from dependfix_core.versions.ranges import VulnerableRange
from dependfix_core.versions.requirement import Comparator, Requirement, Span
from dependfix_core.versions.styles import Pairs, Role, Style, dotted, numbers_in, style_of

RaiseFlag = Literal["open-range", "arm-dropped", "arm-kept", "upper-raised", "line-crossed"]
"""What a person should know about a raised requirement.

`open-range`: it has no lower bound to raise, only a lock decides.
`arm-dropped`, `arm-kept`: an alternative without the target was taken out as
vulnerable, or left in. `upper-raised`: the upper bound excluded the target.
`line-crossed`: the target is on another line than the old lower bound.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """The text that admits the target; equal to the old one when nothing has to change."""

    text: str
    changed: bool
    flags: frozenset[RaiseFlag] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why the text cannot be changed."""

    reason: RefusalReason
    detail: str
    """The part of the requirement that stands against it, as written."""


def raise_requirement(
    requirement: Requirement | Unparsable, target: Version | str, *, vulnerable: Sequence[VulnerableRange] = ()
) -> Raised | Refusal:
    """The requirement with its lower bound at `target`, in the style of the old one.

    Raises the bound also where the old text admits the target already: whether
    to touch such a text is the caller's policy. A text without a lower bound
    (`*`, `4.x`, `<5`, `latest`) is unchanged while it admits the target.

    Args:
        requirement: From `parse_requirement`; npm's tags and sources that are no
            registry are answered from their `Unparsable`.
        target: A version of the requirement's ecosystem.
        vulnerable: An alternative that does not admit the target is kept only if
            it lies outside all of these.
    """
    if isinstance(requirement, Unparsable):
        return _unread(requirement)
    parsed = requirement.allowed.scheme.try_parse(target) if isinstance(target, str) else target
    if isinstance(parsed, Unparsable):
        return Refusal(reason="unparsable-version", detail=parsed.text)
    return _Raise(requirement, parsed, vulnerable).result()


def _unread(requirement: Unparsable) -> Raised | Refusal:
    match requirement.reason:
        case "tag":
            return Raised(text=requirement.text, changed=False, flags=frozenset({"open-range"}))
        case "catalog" | "dynamic":
            return Refusal(reason="dynamic-version", detail=requirement.text)
        case "workspace" | "file" | "link" | "portal" | "patch" | "git" | "url":
            return Refusal(reason="non-registry-source", detail=requirement.text)
        case _:
            return Refusal(reason="unparsable-version", detail=requirement.text)


class _Raise:
    """One requirement on its way to one target: replacements and flags, collected arm by arm."""

    def __init__(self, requirement: Requirement, target: Version, vulnerable: Iterable[VulnerableRange]) -> None:
        self.requirement = requirement
        self.scheme = requirement.allowed.scheme
        self.target = target
        self.style: Style = style_of(requirement.grammar)
        self.target_text = target.text.strip().lstrip(self.style.prefix).strip()
        self.vulnerable = [entry.as_set() for entry in vulnerable]
        self.replacements: list[tuple[Span, str]] = []
        self.flags: set[RaiseFlag] = set()

    def result(self) -> Raised | Refusal:
        """The new text, proved by reading it again."""
        refusal = self._raise_arms()
        if refusal is not None:
            return refusal
        text = self.requirement.text
        for (start, end), new in sorted(self.replacements, reverse=True):
            text = text[:start] + new + text[end:]
        again = parse_requirement(self.requirement.grammar, text)
        if isinstance(again, Unparsable) or not again.admits(self.target).is_yes:
            return self._conflict()
        return Raised(text=text, changed=text != self.requirement.text, flags=frozenset(self.flags))

    def _raise_arms(self) -> Refusal | None:
        arms = self.requirement.arms
        chosen = {index for index, arm in enumerate(arms) if self._spans(arm.intervals)}
        if not chosen:
            # The alternative that comes nearest from below; one above the target would be lowered.
            starts = {index: _start(arm.intervals) for index, arm in enumerate(arms) if arm.intervals}
            below = [index for index, start in starts.items() if start <= self.target.key]
            if not below:
                return self._conflict()
            chosen = {max(below, key=lambda index: (starts[index], index))}
        kept = []
        for index in range(len(arms)):
            if index in chosen:
                kept.append(index)
                refusal = self._raise_arm(index)
                if refusal is not None:
                    return refusal
            elif self._is_vulnerable(arms[index].intervals):
                self.flags.add("arm-dropped")
            else:
                self.flags.add("arm-kept")
                kept.append(index)
        if len(kept) < len(arms):
            self._drop_all_but(kept)
        return None

    def _drop_all_but(self, kept: list[int]) -> None:
        """Takes out the other arms, each with the separator before it, or after it at the beginning."""
        arms = self.requirement.arms
        first = kept[0]
        if first:
            self._replace((arms[0].span[0], arms[first].span[0]), "")
        for index in range(first + 1, len(arms)):
            if index not in kept:
                self._replace((arms[index - 1].span[1], arms[index].span[1]), "")

    def _raise_arm(self, index: int) -> Refusal | None:
        parts = [(part, self.style.role(part)) for part in self.requirement.comparators if part.arm == index]
        has_floor = any(role in (Role.FLOOR, Role.ABOVE) for _, role in parts)
        is_open = True
        for part, role in parts:
            admits = self._spans(part.intervals)
            match role:
                case Role.EXCLUDE | Role.FIXED:
                    done = admits
                case Role.CAP:
                    done = admits or self._widen(part)
                case Role.WILDCARD:
                    done = admits or self._move_wildcard(part)
                case Role.COMPATIBLE if has_floor and admits:
                    # The floor beside it is what is raised (`~> 1.4, >= 1.4.2`).
                    done = True
                case _:
                    is_open = False
                    done = self._raise_part(part, role)
            if not done:
                return self._conflict(part)
        if is_open:
            self.flags.add("open-range")
        return None

    def _raise_part(self, part: Comparator, role: Role) -> bool:
        old = self._begin(part)
        if old is not None:
            sign = self.scheme.compare(self.target, old)
            if sign is None or sign < 0:
                return False
            if sign == 0 and role is not Role.ABOVE:
                return True
            if not self.scheme.same_line(self.target, old):
                self.flags.add("line-crossed")
        match role:
            case Role.COMPATIBLE:
                pairs = self.style.compatible(part, self.target_text)
            case Role.ABOVE:
                pairs = ((self.style.floor, self.target_text),)
            case Role.EXACT:
                pairs = ((part.operator, self.style.exact(part, self.target_text)),)
            case _:
                pairs = ((part.operator, self.target_text),)
        self._replace(part.span, self._written(part, pairs))
        return True

    def _written(self, part: Comparator, pairs: Pairs) -> str:
        """The pairs with the spacing of `part`, and with its own text before the version where the operator stays."""
        text, (start, end), (at, until) = self.requirement.text, part.span, part.version_span
        lead = text[start:at]
        gap = re.search(r"\s*\Z", lead)
        space = gap[0] if gap else ""
        pieces = [(lead if operator == part.operator else operator + space) + version for operator, version in pairs]
        found = self.style.separators.search(text) if self.style.separators else None
        return (found[0] if found else self.style.separator).join(pieces) + text[until:end]

    def _widen(self, part: Comparator) -> bool:
        """An upper bound that shut out the target goes up by as little as its precision allows."""
        new = _widened(part, self.target_text)
        if new is None:
            return False
        self.flags.add("upper-raised")
        self._replace(part.version_span, new)
        return True

    def _move_wildcard(self, part: Comparator) -> bool:
        """`4.x` becomes `5.x`: as many numbers as before, and never lower ones."""
        wanted = numbers_in(self.target_text)
        if not part.intervals or not wanted or _start(part.intervals) > self.target.key:
            return False
        pieces = part.version.split(".")
        moved = [
            str(wanted[at] if at < len(wanted) else 0) if piece.isdigit() else piece for at, piece in enumerate(pieces)
        ]
        begin = self._begin(part)
        if begin is not None and not self.scheme.same_line(self.target, begin):
            self.flags.add("line-crossed")
        self._replace(part.version_span, ".".join(moved))
        return True

    def _begin(self, part: Comparator) -> Version | None:
        """Where the comparator begins, as a version; None when it has no beginning that could be compared."""
        lower = part.intervals[0].lower if part.intervals else None
        if lower is not None:
            return Version(part.version, lower.key, self.scheme.name)
        parsed = self.scheme.try_parse(part.version)
        return parsed if isinstance(parsed, Version) else None

    def _is_vulnerable(self, intervals: tuple[Interval, ...]) -> bool:
        mine = VersionSet(scheme=self.scheme, intervals=intervals)
        return any(not mine.intersect(entry).is_empty for entry in self.vulnerable)

    def _spans(self, intervals: tuple[Interval, ...]) -> bool:
        return any(interval.spans(self.target.key) for interval in intervals)

    def _replace(self, span: Span, new: str) -> None:
        self.replacements.append((span, new))

    def _conflict(self, part: Comparator | None = None) -> Refusal:
        start, end = part.span if part else (0, len(self.requirement.text))
        return Refusal(reason="constraint-conflict", detail=self.requirement.text[start:end])


def _start(intervals: tuple[Interval, ...]) -> Key:
    """The least lower bound; below all keys when there is none."""
    return min((interval.lower.key if interval.lower else () for interval in intervals), default=())


_BOUND: re.Pattern[str] = re.compile(r"([0-9]+(?:\.[0-9]+)*)((?:\.[xX*])*|-0|-dev)")


def _widened(part: Comparator, target: str) -> str | None:
    match = _BOUND.fullmatch(part.version)
    wanted = numbers_in(target)
    if match is None or not wanted:
        return None
    upper = part.intervals[0].upper
    if upper is not None and upper.inclusive:
        return target
    written = numbers_in(part.version)
    last = max((at for at, number in enumerate(written) if number), default=0)
    wanted += (0,) * (len(written) - len(wanted))
    return dotted((*wanted[:last], wanted[last] + 1, *(0,) * (len(written) - last - 1))) + match[2]
