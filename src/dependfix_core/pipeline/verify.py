"""Proves a change set before anything of it is kept.

The checks, by the numbers under which failures are reported:

V1  Every written file parses as what it was.
V2  No copy is in the range of an alert that is answered, except those that the plan leaves.
V3  No version that came in is vulnerable by any open alert that the one in its place was not.
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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dependfix_core.ecosystems.base import Ecosystem, Finding
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.lock import Constraint, LockUnit, Override, SourceKind
from dependfix_core.model.plan import AlertOutcome, Move, Remediation
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.group import UnitNames
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.versions import Unparsable, Version, VulnerableRange, parse_requirement, scheme_for


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckFailure:
    """One check that did not hold."""

    check: str
    """`V1` … `V11`."""
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What a set of remediations of one unit claims to have done."""

    remediations: Sequence[Remediation]
    answered: Sequence[tuple[Alert, AlertOutcome]]
    """The alerts that are settled by them, each with what the plan said of it."""
    advisories: Advisories
    by_tool: bool = False
    """Whether the package manager wrote, so that the plan does not name all that follows."""


def verify_unit(
    before: LockUnit, listing: Listing, ecosystem: Ecosystem, claim: Claim
) -> Step[tuple[CheckFailure, ...]]:
    """V1 to V8 for one unit, on the tree of `listing` as it is after the claimed remediations.

    `before` is the unit as it was read before. Failures come in the order of the checks.
    """
    after = yield from _read_again(before, listing, ecosystem)
    if not isinstance(after, LockUnit):
        return (after,)
    failures = [
        *_still_vulnerable(after, claim),
        *_newly_vulnerable(before, after, claim.advisories),
    ]
    known = yield from ecosystem.inspect(before)
    found = yield from ecosystem.inspect(after)
    failures += _new_findings(known, found)
    failures += _unplanned(before, after, claim)
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


def _still_vulnerable(after: LockUnit, claim: Claim) -> Iterator[CheckFailure]:
    scheme = scheme_for(after.ecosystem)
    names = UnitNames(after)
    for alert, outcome in claim.answered:
        vulnerable = VulnerableRange.parse(after.ecosystem, alert.vulnerable_range)
        package = names.spelled(alert.package_name)
        stays = {one.where for one in outcome.instances if one.to_version is None and one.reason is not None}
        for instance in after.instances.values():
            if instance.name != package or instance.where in stays or instance.source.kind is SourceKind.WORKSPACE:
                continue
            version = scheme.try_parse(instance.version) if scheme is not None else None
            known = isinstance(version, Version) and not isinstance(vulnerable, Unparsable)
            if not known or not vulnerable.contains(version).is_no:  # type: ignore[union-attr, arg-type] # just tested
                yield CheckFailure(
                    check="V2",
                    detail=f"{instance.where}: {package} {instance.version} is in the range of alert {alert.number}",
                )


def _newly_vulnerable(before: LockUnit, after: LockUnit, advisories: Advisories) -> list[CheckFailure]:
    """A vulnerable version that came in, unless one of the same package went that was no better."""
    known, now = _versions(before), _versions(after)
    return [
        CheckFailure(check="V3", detail=f"{name} {version} came in and is vulnerable")
        for name, version in sorted(now - known)
        if not advisories.unsafe(after.ecosystem, name, version).is_no
        and not any(
            gone == name and advisories.is_no_worse(after.ecosystem, name, version, old) for gone, old in known - now
        )
    ]


def _new_findings(known: Iterable[Finding], found: Iterable[Finding]) -> list[CheckFailure]:
    # A moved copy may be found under another place, with the same words.
    old = {(finding.check, finding.where) for finding in known} | {(finding.check, finding.detail) for finding in known}
    return [
        CheckFailure(check=finding.check, detail=f"{finding.where}: {finding.detail}")
        for finding in sorted(found, key=lambda one: (one.check, one.where, one.detail))
        if (finding.check, finding.where) not in old and (finding.check, finding.detail) not in old
    ]


def _unplanned(before: LockUnit, after: LockUnit, claim: Claim) -> list[CheckFailure]:
    failures = [
        *_changed_format(before, after),
        *_unplanned_versions(before, after, claim),
        *_unplanned_declarations(before, after, claim.remediations),
    ]
    return [CheckFailure(check="V8", detail=detail) for detail in failures]


def _changed_format(before: LockUnit, after: LockUnit) -> list[str]:
    pairs = (
        ("format", before.format, after.format),
        ("format version", before.format_version, after.format_version),
        ("package manager", before.tool, after.tool),
        ("registries", dict(before.registries), dict(after.registries)),
        ("range of runtimes", dict(before.runtime), dict(after.runtime)),
        ("set of checksums of its settings", before.settings.get("checksums"), after.settings.get("checksums")),
    )
    return [f"the {name} changed" for name, old, new in pairs if old != new]


def _unplanned_versions(before: LockUnit, after: LockUnit, claim: Claim) -> list[str]:
    moves = [move for remediation in claim.remediations for move in remediation.moves]
    old, new = _versions(before), _versions(after)
    arrived = {(move.package_name, move.to_version) for move in moves if move.to_version is not None}
    left = {(move.package_name, move.from_version) for move in moves if move.from_version is not None}
    came = sorted(pair for pair in new - old if not _is_among(after, pair, arrived))
    went = sorted(pair for pair in old - new if pair not in left)
    missing = sorted(pair for pair in arrived if not _is_among(after, pair, new))
    if claim.by_tool:
        explained = _explained(before, after, moves)
        names = {name for name, _ in explained}
        came = [pair for pair in came if pair not in explained]
        # A newer release than planned may ask for fewer new copies; what it does ask for is there by V4.
        new_copies = {(move.package_name, move.to_version) for move in moves if move.added}
        missing = [
            pair
            for pair in missing
            if pair not in new_copies and not any(_is_at_least(after, one, pair) for one in explained)
        ]
        went = [pair for pair in went if pair[0] not in names and _names(after, pair[0])]
        went = [pair for pair in went if not _is_left_behind(before, pair, new)]
    out = [f"{name} {version} came in and is not in the plan" for name, version in came]
    out += [f"{name} {version} went and is not in the plan" for name, version in went]
    out += [f"{name} {version} is in the plan and did not come in" for name, version in missing]
    return out + _moved_sources(before, after, moves)


def _is_among(unit: LockUnit, pair: tuple[str, str], others: set[tuple[str, str]]) -> bool:
    """Whether the same version of the package is there, however it is spelled: `~=1.1.0` asks for the release 1.1."""
    if pair in others:
        return True
    scheme = scheme_for(unit.ecosystem)
    mine = scheme.try_parse(pair[1]) if scheme is not None else None
    if scheme is None or not isinstance(mine, Version):
        return False
    texts = (scheme.try_parse(version) for name, version in others if name == pair[0])
    return any(isinstance(other, Version) and scheme.compare(mine, other) == 0 for other in texts)


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


def _explained(before: LockUnit, after: LockUnit, moves: Sequence[Move]) -> set[tuple[str, str]]:
    """Versions that the package manager had to bring in once the planned copies moved; everything else is churn.

    What a moved copy resolves to may be newer than the plan says, on its line.
    A version that comes in is explained by a copy that moved or came in itself
    and asks for it, as long as nothing that was there would have done.
    """
    old = _versions(before)
    wanted = [(move.package_name, move.to_version) for move in moves if move.to_version is not None]
    explained = {
        pair for pair in _versions(after) if pair in wanted or any(_is_at_least(after, pair, one) for one in wanted)
    }
    waiting = [one for one in after.instances.values() if (one.name, one.version) in explained]
    while waiting:
        parent = waiting.pop()
        for edge in parent.edges:
            child = after.instances.get(edge.target) if edge.target is not None else None
            if child is None:
                continue
            pair = (child.name, child.version)
            if pair in explained or pair in old:
                continue
            if any(_admits(after, edge.requirement, version) for version in _names(before, child.name)):
                continue
            explained.add(pair)
            waiting += [one for one in after.instances.values() if (one.name, one.version) == pair]
    return explained


def _is_left_behind(before: LockUnit, pair: tuple[str, str], now: set[tuple[str, str]]) -> bool:
    """Whether everybody who asked for the version is gone or at another version himself."""
    places = {one.where for one in before.instances.values() if (one.name, one.version) == pair}
    if any(one.target in places for one in before.constraints):
        return False
    asked = [
        (one.name, one.version) for one in before.instances.values() if any(edge.target in places for edge in one.edges)
    ]
    return bool(asked) and not any(one in now for one in asked)


def _admits(unit: LockUnit, requirement: str | None, version: str) -> bool:
    """Whether it certainly does; of a requirement that the lock does not store nobody knows."""
    if requirement is None:
        return False
    parsed = parse_requirement(unit.ecosystem, requirement)
    return not isinstance(parsed, Unparsable) and parsed.admits(version).is_yes


def _is_at_least(unit: LockUnit, pair: tuple[str, str], wanted: tuple[str, str]) -> bool:
    """Whether `pair` is the wanted package at the wanted version or a newer one of its line."""
    scheme = scheme_for(unit.ecosystem)
    if scheme is None or pair[0] != wanted[0]:
        return False
    mine, least = scheme.try_parse(pair[1]), scheme.try_parse(wanted[1])
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
    found = {one.place: f"{one.selector} {one.via or one.value}" for one in overrides}
    return found | {(one.path, one.at): one.value for one in overrides if one.via}


def _versions(unit: LockUnit) -> set[tuple[str, str]]:
    return {(instance.name, instance.version) for instance in unit.instances.values()}


def _names(unit: LockUnit, name: str) -> set[str]:
    return {instance.version for instance in unit.instances.values() if instance.name == name}
