"""Proves a change set before anything of it is kept.

The checks, by the numbers under which failures are reported:

V1  Every written file parses as what it was.
V2  No copy of a fixed package is in a range of the alerts that are answered.
V3  No version that came in is vulnerable by any open alert.
V4  No requirement is unmet that was met before.
V5  Manifests and lock agree as they did before.
V6  Hashes and addresses are the registry's, on the hosts that were there.
V7  Flags, groups and markers are those that the graph gives.
V8  Nothing moved that the plan does not name: versions, declarations, overrides, format.
V9  Planning again finds nothing more to do for the alerts that are answered.

Everything is read anew from the changed tree, never from the plan's memory.
V4 to V7 are the ecosystem's own inspection, before and after; a lock that was
broken before is not blamed on the fix.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dependfix_core.ecosystems.base import Ecosystem, Finding
from dependfix_core.model.files import Listing
from dependfix_core.model.lock import Constraint, Instance, LockUnit, Override
from dependfix_core.model.plan import AlertOutcome, Move, Remediation
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.versions import Version, scheme_for


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckFailure:
    """One check that did not hold."""

    check: str
    """`V1` … `V11`."""
    detail: str


def verify_unit(
    before: LockUnit,
    listing: Listing,
    ecosystem: Ecosystem,
    remediations: Sequence[Remediation],
    outcomes: Sequence[AlertOutcome],
    advisories: Advisories,
) -> Step[tuple[CheckFailure, ...]]:
    """V1 to V8 for one unit, on the tree of `listing` as it is after `remediations`.

    `before` is the unit as it was read before; `outcomes` are those of the
    alerts that `remediations` answer. Failures come in the order of the checks.
    """
    after = yield from _read_again(before, listing, ecosystem)
    if not isinstance(after, LockUnit):
        return (after,)
    failures = [
        *_still_vulnerable(after, remediations, outcomes, advisories),
        *_newly_vulnerable(before, after, advisories),
    ]
    known = yield from ecosystem.inspect(before)
    found = yield from ecosystem.inspect(after)
    failures += _new_findings(known, found)
    failures += _unplanned(before, after, remediations)
    return tuple(failures)


def _read_again(before: LockUnit, listing: Listing, ecosystem: Ecosystem) -> Step[LockUnit | CheckFailure]:
    units = yield from ecosystem.read_units(listing, sorted({before.unit, *before.manifests}))
    after = next((unit for unit in units if unit.unit == before.unit), None)
    if after is None:
        return CheckFailure(check="V1", detail=f"{before.unit} is not there any more")
    known = {(problem.path, problem.message) for problem in before.problems}
    for problem in after.problems:
        if (problem.path, problem.message) not in known:
            place = f"{problem.path}:{problem.position}" if problem.position else problem.path
            return CheckFailure(check="V1", detail=f"{place}: {problem.message}")
    return after


def _still_vulnerable(
    after: LockUnit, remediations: Sequence[Remediation], outcomes: Sequence[AlertOutcome], advisories: Advisories
) -> list[CheckFailure]:
    answered = {alert for remediation in remediations for alert in remediation.alerts}
    packages = {
        outcome.alert: {instance.where for instance in outcome.instances if instance.to_version is None}
        for outcome in outcomes
        if outcome.alert in answered
    }
    stays = set().union(*packages.values()) if packages else set()
    names = {remediation.package_name for remediation in remediations}
    names |= {move.package_name for remediation in remediations for move in remediation.moves}
    failures = []
    for instance in after.instances.values():
        if instance.name not in names or instance.where in stays:
            continue
        if not advisories.unsafe(after.ecosystem, instance.name, instance.version).is_no:
            failures.append(
                CheckFailure(check="V2", detail=f"{instance.where}: {instance.name} {instance.version} is vulnerable")
            )
    return failures


def _newly_vulnerable(before: LockUnit, after: LockUnit, advisories: Advisories) -> list[CheckFailure]:
    known = _versions(before)
    return [
        CheckFailure(check="V3", detail=f"{name} {version} came in and is vulnerable")
        for name, version in sorted(_versions(after) - known)
        if not advisories.unsafe(after.ecosystem, name, version).is_no
    ]


def _new_findings(known: Iterable[Finding], found: Iterable[Finding]) -> list[CheckFailure]:
    # A moved copy may be found under another place, with the same words.
    old = {(finding.check, finding.where) for finding in known} | {(finding.check, finding.detail) for finding in known}
    return [
        CheckFailure(check=finding.check, detail=f"{finding.where}: {finding.detail}")
        for finding in sorted(found, key=lambda one: (one.check, one.where, one.detail))
        if (finding.check, finding.where) not in old and (finding.check, finding.detail) not in old
    ]


def _unplanned(before: LockUnit, after: LockUnit, remediations: Sequence[Remediation]) -> list[CheckFailure]:
    failures = [
        *_changed_format(before, after),
        *_unplanned_versions(before, after, remediations),
        *_unplanned_declarations(before, after, remediations),
    ]
    return [CheckFailure(check="V8", detail=detail) for detail in failures]


def _changed_format(before: LockUnit, after: LockUnit) -> list[str]:
    pairs = (
        ("format", before.format, after.format),
        ("format version", before.format_version, after.format_version),
        ("package manager", before.tool, after.tool),
        ("registries", dict(before.registries), dict(after.registries)),
    )
    return [f"the {name} changed" for name, old, new in pairs if old != new]


def _unplanned_versions(before: LockUnit, after: LockUnit, remediations: Sequence[Remediation]) -> list[str]:
    moves = [move for remediation in remediations for move in remediation.moves]
    by_tool = any(remediation.needs_tool for remediation in remediations)
    old, new = _versions(before), _versions(after)
    arrived = {(move.package_name, move.to_version) for move in moves if move.to_version is not None}
    left = {(move.package_name, move.from_version) for move in moves if move.from_version is not None}
    came = sorted(pair for pair in new - old if pair not in arrived)
    went = sorted(pair for pair in old - new if pair not in left)
    missing = sorted(pair for pair in arrived if pair not in new)
    if by_tool:
        # What the package manager resolved is not known when the plan is made: it may
        # choose a newer version of what is moved, bring in what only moved copies need,
        # and drop what nothing needs any more. Everything else is churn.
        came = [pair for pair in came if not _is_explained(pair, before, after, moves)]
        missing = [pair for pair in missing if not _has_newer(pair, after, moves)]
        went = [
            pair for pair in went if _names(after, pair[0]) and pair[0] not in {move.package_name for move in moves}
        ]
    out = [f"{name} {version} came in and is not in the plan" for name, version in came]
    out += [f"{name} {version} went and is not in the plan" for name, version in went]
    out += [f"{name} {version} is in the plan and did not come in" for name, version in missing]
    return out + _moved_sources(before, after, moves)


def _moved_sources(before: LockUnit, after: LockUnit, moves: Sequence[Move]) -> list[str]:
    touched = {move.where for move in moves}
    out = []
    for where, instance in after.instances.items():
        was = before.instances.get(where)
        if was is None or where in touched or was.version != instance.version:
            continue
        if was.source != instance.source or was.bundled != instance.bundled:
            out.append(f"{where} comes from elsewhere now")
    return out


def _is_explained(pair: tuple[str, str], before: LockUnit, after: LockUnit, moves: Sequence[Move]) -> bool:
    name, version = pair
    if any(move.package_name == name and _is_at_least(after.ecosystem, version, move.to_version) for move in moves):
        return True
    if _names(before, name) - _names(after, name):
        # A version that was there was replaced, not added to.
        return False
    places = [instance.where for instance in after.instances.values() if (instance.name, instance.version) == pair]
    known = _versions(before)
    moved = {move.package_name for move in moves}
    return all(
        (parent.name, parent.version) not in known or parent.name in moved
        for where in places
        for parent in _parents(after, where)
    )


def _parents(unit: LockUnit, where: str) -> list[Instance]:
    return [parent for parent in unit.instances.values() if any(edge.target == where for edge in parent.edges)]


def _has_newer(pair: tuple[str, str | None], after: LockUnit, moves: Sequence[Move]) -> bool:
    name, version = pair
    asked = [move for move in moves if move.package_name == name and move.to_version == version]
    return bool(asked) and any(_is_at_least(after.ecosystem, found, version) for found in _names(after, name))


def _is_at_least(ecosystem: str, version: str, floor: str | None) -> bool:
    scheme = scheme_for(ecosystem)
    if scheme is None or floor is None:
        return False
    mine, least = scheme.try_parse(version), scheme.try_parse(floor)
    if not isinstance(mine, Version) or not isinstance(least, Version):
        return False
    return scheme.compare(mine, least) in (0, 1) and scheme.same_line(mine, least)


def _unplanned_declarations(before: LockUnit, after: LockUnit, remediations: Sequence[Remediation]) -> list[str]:
    edited = {(edit.path, edit.at) for remediation in remediations for edit in remediation.edits}
    out = _compared(_declared(before.constraints), _declared(after.constraints), edited, "declaration")
    out += _compared(_forced(before.overrides), _forced(after.overrides), edited, "override")
    if not edited and before.gates != after.gates:
        out.append("a release-age gate changed")
    return out


def _compared(
    old: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str], edited: set[tuple[str, str]], what: str
) -> list[str]:
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    # An override's place is that of its table in some formats, and an edit there names the entry.
    return [
        f"the {what} {at} of {path} changed and is not in the plan"
        for path, at in changed
        if (path, at) not in edited and not any(path == p and (at.startswith(e) or e.startswith(at)) for p, e in edited)
    ]


def _declared(constraints: Iterable[Constraint]) -> dict[tuple[str, str], str]:
    return {
        (one.path, one.at): f"{one.name} {one.requirement} {one.marker} {sorted(one.extras)} {one.via}"
        for one in constraints
        if not one.via
    }


def _forced(overrides: Iterable[Override]) -> dict[tuple[str, str], str]:
    return {(one.path, one.at): f"{one.selector} {one.value}" for one in overrides}


def _versions(unit: LockUnit) -> set[tuple[str, str]]:
    return {(instance.name, instance.version) for instance in unit.instances.values()}


def _names(unit: LockUnit, name: str) -> set[str]:
    return {instance.version for instance in unit.instances.values() if instance.name == name}
