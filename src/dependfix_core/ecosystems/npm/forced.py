"""Forced versions: what overrides and resolutions make of a requirement, and how a new one is written."""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from dependfix_core.ecosystems.base import AddOverride, Dependent, NoOverride
from dependfix_core.ecosystems.npm.asks import GRAMMAR, Ask, Wanted, wanted
from dependfix_core.ecosystems.npm.selectors import pnpm_steps, split_name
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.model.lock import Constraint, LockUnit, Override
from dependfix_core.versions import Requirement, Unparsable, Version, parse_requirement, scheme_for
from dependfix_core.versions.rewrite import Raised, raise_requirement

_FIRST_NPM: Final = (8, 3)
_FIRST_PNPM_WITHOUT_MANIFEST: Final = 11
_REMOVED: Final = "-"
"""pnpm's value for "do not install it"."""

IsBelow = Callable[[str], bool]
"""Whether the asking copy is, or lies below, a package of this name."""


def forcing(
    unit: LockUnit,
    overrides: Sequence[Override],
    ask: Ask,
    asker: tuple[str, str],
    is_below: IsBelow,
    *,
    declared: bool,
) -> Override | None:
    """The override that replaces `ask`, the most specific first.

    Args:
        unit: Tells the tool, each of which has rules of its own.
        overrides: Those that count, with their present values.
        ask: The requirement as its package states it.
        asker: Name and version of the package that asks; empty for a manifest.
        is_below: For selectors that hold for everything below a parent.
        declared: Whether a manifest asks. npm leaves those alone.
    """
    if declared and unit.tool == "npm":
        return None
    fitting = [one for one in overrides if _fits(unit, one, ask, asker, is_below)]
    return max(fitting, key=lambda one: (len(one.parents), bool(one.condition)), default=None)


def _fits(unit: LockUnit, override: Override, ask: Ask, asker: tuple[str, str], is_below: IsBelow) -> bool:
    if override.package not in (ask.name, ask.package):
        return False
    if override.parents:
        deep = unit.tool in ("npm", "bun") or "**" in override.selector.removeprefix("**/")
        if asker[0] == override.parents[-1]:
            if not _meets_parent(unit, override, asker[1]):
                return False
        elif not (deep and is_below(override.parents[-1])):
            return False
    return not override.condition or _meets_condition(unit, override.condition, ask.text)


def _meets_parent(unit: LockUnit, override: Override, version: str) -> bool:
    """Whether the version of the asking parent is one that the selector means (`parent@1>pkg`)."""
    if unit.tool == "yarn":
        return True
    steps = pnpm_steps(override.selector)
    condition = split_name(steps[-2])[1] if len(steps) > 1 else ""
    parsed = parse_requirement(GRAMMAR, condition)
    return not condition or isinstance(parsed, Unparsable) or parsed.admits(version).may_be


def _meets_condition(unit: LockUnit, condition: str, text: str | None) -> bool:
    if text is None:
        return True
    asked = read_specifier("", text).requirement
    if unit.tool == "yarn":
        return condition.removeprefix("npm:").strip() == asked.removeprefix("npm:").strip()
    mine, other = parse_requirement(GRAMMAR, asked), parse_requirement(GRAMMAR, condition)
    if isinstance(mine, Unparsable) or isinstance(other, Unparsable):
        # A tag or a location: npm applies the override to it, pnpm does not.
        return unit.tool == "npm"
    return not mine.intersect(other).is_empty


def forced(override: Override, ask: Ask, constraints: Iterable[Constraint]) -> Wanted:
    """What the override makes of `ask`."""
    value = override.value.strip()
    if value.startswith("$"):
        named = value[1:]
        value = next((one.requirement for one in constraints if one.name == named), "")
    if value in ("", _REMOVED):
        return Wanted(package=ask.package, text=value, requirement=None, is_open=True)
    return wanted(ask.package, value)


def reference_of(override: Override, constraints: Iterable[Constraint]) -> Constraint | None:
    """The declaration that a value like `$semver` points to."""
    if not override.value.strip().startswith("$"):
        return None
    return next((one for one in constraints if one.name == override.value.strip()[1:]), None)


def raised_value(override: Override, version: str) -> str | None:
    """The override's value, in its style, that forces `version` or newer on its line."""
    value = override.value.strip()
    specifier = read_specifier(override.package, value)
    parsed = parse_requirement(GRAMMAR, specifier.requirement)
    if value.startswith("$") or not value or isinstance(parsed, Unparsable):
        return None
    raised = raise_requirement(parsed, version)
    return value[: specifier.start] + raised.text if isinstance(raised, Raised) else None


class OverrideWriter:
    """Makes new entries for one unit, in the form that its tool reads."""

    def __init__(self, unit: LockUnit, overrides: Sequence[Override]) -> None:
        self._unit = unit
        self._overrides = overrides
        self._folder = posixpath.dirname(unit.unit)

    def ways(
        self,
        package: str,
        version: str,
        refusing: Sequence[Dependent],
        elsewhere: Sequence[Dependent],
        locked: Sequence[str],
    ) -> tuple[tuple[AddOverride, ...], ...] | NoOverride:
        """Entries that force `package` to `version` or newer on its line, the narrowest first.

        Args:
            package: What is forced.
            version: The least version that it shall have.
            refusing: The dependents that do not admit it; all of them copies.
            elsewhere: Dependents of other copies of the package, which the entries have to leave alone.
            locked: Versions of the other copies.
        """
        unsupported = self.unsupported()
        if unsupported is not None:
            return unsupported
        value = f"^{version}"
        versioned = self._versioned(package, version, value, refusing, elsewhere, locked)
        by_parent = self._by_parent(package, value, refusing, elsewhere)
        ways: list[tuple[AddOverride, ...]] = []
        if self._unit.tool == "bun":
            ways = [] if locked else [(self._entry(package, value, selector=package),)]
        elif self._unit.tool == "npm" and len(by_parent) == 1:
            ways = [by_parent, *versioned]
        else:
            ways = [*versioned, by_parent]
        ways = [way for way in ways if way and not self._clashes(way)]
        if not ways:
            return NoOverride(reason="constraint-conflict", detail=f"no selector reaches only this copy of {package}")
        return tuple(ways)

    def unsupported(self) -> NoOverride | None:
        """Why this unit can have no overrides at all."""
        unit = self._unit
        if unit.tool == "npm":
            if unit.format_version == "1":
                return NoOverride(reason="override-unsupported", detail="npm before 8.3 knows no overrides")
            stated = unit.tool_version or unit.runtime.get("npm", "")
            if stated and _is_below(stated, _FIRST_NPM):
                return NoOverride(reason="override-unsupported", detail=f"npm {stated} knows no overrides")
        if self._manifest() not in unit.manifests and self._workspace_file() not in unit.files:
            return NoOverride(reason="override-unsupported", detail="there is no root manifest to write one into")
        return None

    def _versioned(
        self,
        package: str,
        version: str,
        value: str,
        refusing: Sequence[Dependent],
        elsewhere: Sequence[Dependent],
        locked: Sequence[str],
    ) -> list[tuple[AddOverride, ...]]:
        """Keys with a range, which expire by themselves once nobody asks for it any more."""
        if self._unit.tool == "yarn":
            if self._unit.format == "yarn-classic":
                return []
            texts = sorted({one.text.removeprefix("npm:") for one in refusing})
            return [
                tuple(
                    self._entry(package, f"npm:{value}", selector=f"{package}@npm:{text}", condition=text)
                    for text in texts
                )
            ]
        if self._unit.tool == "bun":
            return []
        condition = f"<{version}"
        floor = _line_start(version)
        if floor is not None and any(_is_under(one, floor) for one in locked):
            condition = f">={floor} <{version}"
        if not all(_is_inside(one.requirement, condition) for one in refusing):
            return []
        if any(_intersects(one.requirement, condition) for one in elsewhere):
            return []
        return [(self._entry(package, value, selector=f"{package}@{condition}", condition=condition),)]

    def _by_parent(
        self, package: str, value: str, refusing: Sequence[Dependent], elsewhere: Sequence[Dependent]
    ) -> tuple[AddOverride, ...]:
        """One entry for each parent; none at all where one would reach a copy that is to stay as it is."""
        parents = {one.name for one in refusing if one.where is not None}
        clashing = {one.name for one in elsewhere if one.where is not None} & parents
        if clashing and self._unit.tool not in ("npm", "pnpm"):
            return ()
        entries = [self._below_parent(package, parent, value) for parent in sorted(parents - clashing)]
        for name, stated in sorted({(one.name, one.version) for one in refusing if one.name in clashing}):
            if any((one.name, one.version) == (name, stated) for one in elsewhere):
                return ()
            entries.append(self._entry(package, value, selector=f"{name}@{stated}>{package}", parents=(name,)))
        return tuple(entries)

    def _below_parent(self, package: str, parent: str, value: str) -> AddOverride:
        separator = ">" if self._unit.tool in ("npm", "pnpm") else "/"
        # yarn 1 reads a key as a path from the root: deeper parents need the pattern.
        is_deep = self._unit.format == "yarn-classic" and all(one.name != parent for one in self._unit.constraints)
        prefix = "**/" if is_deep else ""
        return self._entry(package, value, selector=f"{prefix}{parent}{separator}{package}", parents=(parent,))

    def _entry(
        self, package: str, value: str, *, selector: str, parents: tuple[str, ...] = (), condition: str = ""
    ) -> AddOverride:
        path, at = self._place()
        return AddOverride(
            override=Override(
                path=path,
                at=f"{at}.{selector}",
                selector=selector,
                package=package,
                value=value,
                span=None,
                kind="resolutions" if at == "resolutions" else "overrides",
                parents=parents,
                condition=condition,
            )
        )

    def _clashes(self, way: Iterable[AddOverride]) -> bool:
        """Whether an entry of the same key is there already; that one would have to be edited."""
        taken = {one.place for one in self._overrides}
        return any((one.override.path, one.override.at) in taken for one in way)

    def _place(self) -> tuple[str, str]:
        """File and table where this tool, as far as the project tells its version, reads a new entry."""
        if self._unit.tool == "yarn":
            return self._manifest(), "resolutions"
        if self._unit.tool != "pnpm":
            return self._manifest(), "overrides"
        there = [one for one in self._overrides if one.kind == "overrides"]
        for one in there:
            path, at = one.place
            return path, at[: -len(one.selector) - 1]
        major = _numbers(self._unit.tool_version)[:1]
        if major and major[0] >= _FIRST_PNPM_WITHOUT_MANIFEST:
            return self._workspace_file(), "overrides"
        return self._manifest(), "pnpm.overrides"

    def _manifest(self) -> str:
        return posixpath.join(self._folder, "package.json")

    def _workspace_file(self) -> str:
        return posixpath.join(self._folder, "pnpm-workspace.yaml")


def with_value(override: Override, value: str) -> Override:
    """The same entry with another value."""
    return replace(override, value=value, span=None)


def _numbers(text: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _is_below(stated: str, first: tuple[int, int]) -> bool:
    """Whether a stated version, or everything that a stated range admits, is older than `first`."""
    parsed = parse_requirement(GRAMMAR, stated)
    if isinstance(parsed, Unparsable):
        return False
    newest = max((one.upper.key[:2] for one in parsed.intervals if one.upper is not None), default=None)
    return all(one.upper is not None for one in parsed.intervals) and newest is not None and newest < first


def _line_start(version: str) -> str | None:
    """The first version of the line, where there are lines before it."""
    scheme = scheme_for("npm")
    parsed = scheme.try_parse(version) if scheme is not None else None
    if not isinstance(parsed, Version):
        return None
    major, minor, patch = parsed.key[:3]
    if major:
        return f"{major}.0.0"
    return f"0.{minor}.0" if minor else f"0.0.{patch}"


def _is_under(version: str, floor: str) -> bool:
    scheme = scheme_for("npm")
    assert scheme is not None
    mine, other = scheme.try_parse(version), scheme.try_parse(floor)
    return isinstance(mine, Version) and isinstance(other, Version) and scheme.compare(mine, other) == -1


def _intersects(requirement: Requirement | None, condition: str) -> bool:
    """Whether a key with this range would reach the requirement too."""
    other = parse_requirement(GRAMMAR, condition)
    return requirement is not None and not isinstance(other, Unparsable) and not requirement.intersect(other).is_empty


def _is_inside(requirement: Requirement | None, condition: str) -> bool:
    """Whether everything that is asked for lies in the condition, so that no reading of the key misses it."""
    outer = parse_requirement(GRAMMAR, condition)
    if requirement is None or isinstance(outer, Unparsable):
        return False
    for interval in requirement.intervals:
        both = [interval.intersect(other) for other in outer.intervals]
        if not any((one.lower, one.upper) == (interval.lower, interval.upper) for one in both):
            return False
    return True
