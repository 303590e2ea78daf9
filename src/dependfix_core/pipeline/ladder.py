"""How does one vulnerable copy get to a safe version, in the least intrusive way that is legal?

The ladder tries, in this order: the entry that already forces the version, a
move of the copy alone, a raised declaration, newer parents inside what is
asked of them, newer parents with a raised declaration, a new override, and,
where the caller allows it, the same across release lines. Every rung is the
same search with other permissions: propose changes, let the graph judge them,
and repair what it names as blocked by moving the dependent that is in the way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Change,
    Graph,
    Legal,
    NoOverride,
    SetConstraint,
    SetOverride,
    SetVersion,
)
from dependfix_core.model.lock import Instance, SourceKind
from dependfix_core.model.plan import RefusalReason, Strategy
from dependfix_core.model.records import Release
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.goal import CROSSING, OWN, OWN_CROSSING, PEERS, RAISING, Goal, Permits
from dependfix_core.pipeline.search import Search, Tries
from dependfix_core.pipeline.targets import Candidate, Chooser

_MAX_OWN: Final = 12
_MAX_OVERRIDES: Final = 3
_NOTHING_HELPS: Final[frozenset[RefusalReason]] = frozenset({"cooldown", "metadata-unavailable", "unparsable-version"})
"""Reasons of a copy's own targets that no rung can do anything about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Why one way is better than another; compared field by field."""

    major_crossings: int
    overrides: int
    manifest_lines: int
    moved: int
    added: int

    @property
    def key(self) -> tuple[int, ...]:
        """For sorting."""
        return (self.major_crossings, self.overrides, self.manifest_lines, self.moved, self.added)


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A way that is legal on the graph it was found on."""

    where: str
    """The vulnerable copy it was found for."""
    strategy: Strategy
    changes: tuple[Change, ...]
    legal: Legal
    cost: Cost
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Dead:
    """No way, with the reason of the cheapest rung that failed."""

    reason: RefusalReason
    blocked_by: str | None = None
    detail: str = ""
    next_safe: str | None = None


_May = Literal["nothing", "own", "all"]
_Rung = Literal["own", "parents", "override"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ladder:
    """The rungs for the copies of one graph."""

    graph: Graph
    chooser: Chooser

    def climb(self, where: str) -> Step[Option | Dead]:
        """The least intrusive legal way for the copy at `where`."""
        instance = self.graph.instance(where)
        assert instance is not None, "only copies that are there are climbed for"
        fixed_place = immovable(instance)
        if fixed_place is not None and fixed_place.reason == "non-registry-source":
            return fixed_place
        targets = yield from self.chooser.targets(instance.name, instance.version)
        if fixed_place is not None:
            return replace(fixed_place, next_safe=targets.next_safe)
        if targets.reason in _NOTHING_HELPS:
            return Dead(reason=targets.reason, detail=targets.detail, next_safe=targets.next_safe)
        dependents = yield from self.graph.dependents(where)
        rungs = _Rungs(Goal(self.graph, self.chooser, instance, targets, dependents))
        return (yield from rungs.climb())


def immovable(instance: Instance) -> Dead | None:
    """Why no rung can reach the copy at all, by where it comes from."""
    kind = instance.source.kind
    if instance.bundled:
        return Dead(reason="bundled", detail=f"{instance.where} lies inside the package of its parent")
    if instance.patched or kind is SourceKind.PATCH:
        return Dead(reason="patched-dependency", detail=f"{instance.where} is patched here")
    if kind is not SourceKind.REGISTRY:
        return Dead(reason="non-registry-source", detail=f"{instance.where} comes from {kind.value}")
    return None


class _Rungs:
    """One copy on its way up. Collects why rungs failed."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self._policy = goal.chooser.policy
        self._failures: list[tuple[_Rung, Blocked]] = []

    def climb(self) -> Step[Option | Dead]:
        """From the cheapest rung to the refusal."""
        same_line, other_lines = self.goal.targets.same_line, self.goal.targets.other_lines
        rungs: list[Callable[[], Step[Option | None]]] = [lambda: self._edit_override(same_line)]
        if self._policy.raise_direct_floor:
            rungs.append(self._raise_floor)
        rungs.append(lambda: self._in_range(same_line))
        if not same_line:
            rungs.append(lambda: self._in_range(other_lines))
        rungs += [
            lambda: self._raise_own(same_line),
            lambda: self._parents(Permits(moves_parents=True), "parent-refresh"),
        ]
        if self._policy.allow_parent_bump:
            rungs.append(self._parent_bump)
        if self._policy.allow_override:
            rungs.append(lambda: self._override(same_line))
        if same_line:
            rungs.append(lambda: self._in_range(other_lines))
        if self._policy.allow_major:
            rungs.append(lambda: self._raise_own(same_line, OWN_CROSSING))
            rungs.append(lambda: self._raise_own(other_lines, OWN_CROSSING))
            if self._policy.allow_parent_bump:
                rungs.append(lambda: self._parents(CROSSING, "parent-bump"))
            if self._policy.allow_override and self._policy.allow_major_override:
                rungs.append(lambda: self._edit_override(other_lines))
                rungs.append(lambda: self._override(other_lines))
        for rung in rungs:
            option = yield from rung()
            if option is not None:
                return option
        return (yield from self._refusal())

    # The rungs.

    def _edit_override(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """Where an entry forces the version, nothing but changing that entry can work."""
        holders = {
            (one.override.path, one.override.at): one.override
            for one in self.goal.dependents
            if one.override is not None and not any(one.admits(c.text).may_be for c in candidates)
        }
        if not holders:
            return None
        for candidate in candidates:
            values = [(held, self.goal.graph.override_value(held, candidate.text)) for held in holders.values()]
            edits = tuple(SetOverride(override=held, value=value) for held, value in values if value is not None)
            if len(edits) < len(values):
                continue
            start: Tries = {self.goal.where: (candidate.text, [])}
            found = yield from self._settle(start, edits, OWN, "override-edit")
            if found is not None:
                return found
        return None

    def _raise_floor(self) -> Step[Option | None]:
        """Also where the declared requirement admits the target, it is raised to it."""
        declared = [
            one.constraint for one in self.goal.dependents if one.constraint is not None and one.override is None
        ]
        for candidate in self._admitted(self.goal.targets.same_line)[:_MAX_OWN]:
            texts = [(constraint, self.goal.graph.raised(constraint, candidate)) for constraint in declared]
            raised = tuple(
                SetConstraint(constraint=constraint, requirement=text)
                for constraint, text in texts
                if text is not None and text != constraint.requirement
            )
            if not raised:
                return None
            start: Tries = {self.goal.where: (candidate, [])}
            option = yield from self._settle(start, raised, Permits(), self.goal.graph.direct_strategy)
            if option is not None:
                return option
        return None

    def _in_range(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """The copy moves, alone or with what it needs, and nothing is declared anew."""
        admitted = self._admitted(candidates)
        if not admitted:
            return (yield from self._split(candidates))
        start: Tries = {self.goal.where: (admitted[0], admitted[1:])}
        return (yield from self._settle(start, (), Permits(), "lock-in-range"))

    def _split(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """Dependents that cannot share one version may each have one, where the format has room for several copies."""
        askers = self.goal.askers()
        if len(askers) < 2 or not all(any(one.admits(c.text).is_yes for c in candidates) for one in askers):
            return None
        best = min(candidates, key=lambda one: len(self.goal.refusing(one)))
        return (yield from self._settle({self.goal.where: (best.text, [])}, (), Permits(splits=True), "lock-in-range"))

    def _admitted(self, candidates: Sequence[Candidate]) -> list[str]:
        """Those that all dependents admit; across lines they have to be known to.

        Peers are left out: they may be moved along.
        """
        found = []
        for one in candidates:
            answers = [dependent.admits(one.text) for dependent in self.goal.askers()]
            if all(answer.may_be if one.same_line else answer.is_yes for answer in answers):
                found.append(one.text)
        return found[:_MAX_OWN]

    def _raise_own(self, candidates: Sequence[Candidate], permits: Permits = OWN) -> Step[Option | None]:
        """The declared requirement on the copy is raised, or those on the peers that have to move with it."""
        usable = []
        peers_failed = any(
            failed.dependent is not None and failed.dependent.kind in PEERS for _, failed in self._failures
        )
        for one in candidates:
            refusing = self.goal.refusing(one)
            declared = all(d.constraint is not None and d.override is None for d in refusing)
            if declared and (refusing or peers_failed or self.goal.peers_refusing(one)):
                usable.append(one.text)
        if not usable:
            return None
        start: Tries = {self.goal.where: (usable[0], usable[1:_MAX_OWN])}
        return (yield from self._settle(start, (), permits, self.goal.graph.direct_strategy))

    def _parents(self, permits: Permits, strategy: Strategy) -> Step[Option | None]:
        """The dependents that are in the way move to releases that ask for something safe, or for nothing."""
        blocking = self.goal.blocking()
        parents = [one for one in blocking if one.where is not None]
        if not parents or any(one.override is not None for one in blocking):
            return None
        if len(parents) < len(blocking) and permits.raises == "nothing":
            return None
        start: Tries = {}
        for parent in parents:
            assert parent.where is not None
            found = yield from self.goal.releases_asking(parent, self.goal.instance.name, self.goal.accepts, permits)
            if isinstance(found, Blocked):
                self._failures.append(("parents", found))
                return None
            start[parent.where] = (found[0], found[1:])
        return (yield from self._settle(start, (), permits, strategy, rung="parents"))

    def _parent_bump(self) -> Step[Option | None]:
        return (yield from self._parents(RAISING, "parent-bump"))

    def _override(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """A new entry forces the version."""
        current = yield from self.goal.chooser.release_of(self.goal.instance)
        for candidate in _without_passing_dependencies(candidates, current)[:_MAX_OVERRIDES]:
            ways = yield from self.goal.graph.overrides(self.goal.where, candidate.text)
            if isinstance(ways, NoOverride):
                refused = Blocked(reason=ways.reason, detail=ways.detail)
                peers = self.goal.peers_refusing(candidate)
                if ways.reason == "peer-conflict" and peers:
                    refused = yield from self.goal.named(replace(refused, dependent=peers[0], where=self.goal.where))
                self._failures.append(("override", refused))
                return None
            for way in ways:
                start: Tries = {self.goal.where: (candidate.text, [])}
                option = yield from self._settle(start, way, Permits(), "override", rung="override")
                if option is not None:
                    return option
                self._failures[-1] = ("override", _without_new(self._failures[-1][1], way))
        return None

    # Who is in the way.

    # The search of a rung.

    def _settle(
        self,
        start: Tries,
        fixed: Sequence[Change],
        permits: Permits,
        strategy: Strategy,
        rung: _Rung = "own",
    ) -> Step[Option | None]:
        """Simulates and repairs until the changes are legal and the copy is safe; None, with the failure kept, if never."""
        search = Search(self.goal, permits, dict(start), tuple(fixed))
        verdict = yield from search.run()
        if isinstance(verdict, Blocked):
            self._failures.append((rung, verdict))
            return None
        changes = search.changes()
        return Option(
            where=self.goal.where,
            strategy=strategy,
            changes=changes,
            legal=verdict,
            cost=self._cost(changes, verdict),
            warnings=self._warnings(changes),
        )

    def _cost(self, changes: Sequence[Change], legal: Legal) -> Cost:
        set_versions = [change for change in changes if isinstance(change, SetVersion)]
        return Cost(
            major_crossings=sum(self._is_major(change) for change in set_versions),
            overrides=sum(not isinstance(change, SetVersion | SetConstraint) for change in changes),
            manifest_lines=sum(isinstance(change, SetConstraint) for change in changes),
            moved=sum(move.from_version is not None for move in legal.moved),
            added=sum(move.from_version is None for move in legal.moved),
        )

    def _is_major(self, change: SetVersion) -> bool:
        copy = self.goal.graph.instance(change.where)
        return copy is not None and self.goal.chooser.crosses_line(copy.version, change.version)

    def _warnings(self, changes: Sequence[Change]) -> tuple[str, ...]:
        declared = any(not isinstance(change, SetVersion) for change in changes)
        kind = "major" if declared else "cross-line-in-range"
        crossing = [change for change in changes if isinstance(change, SetVersion) and self._is_major(change)]
        return tuple(f"{kind}: {change.where} goes to {change.version}" for change in crossing)

    # The refusal.

    def _refusal(self) -> Step[Dead]:
        targets = self.goal.targets
        if targets.reason is not None:
            return Dead(reason=targets.reason, detail=targets.detail, next_safe=targets.next_safe)
        by = self._blocking_text()
        if not targets.same_line:
            return (yield from self._only_elsewhere(by))
        for rung, failure in self._failures:
            # What keeps the copy itself is the answer; of parents only that they could not be judged.
            if (rung == "own" and failure.reason != "constraint-conflict") or failure.reason == "metadata-unavailable":
                return self._dead(failure, by)
        forbidden = yield from self._forbidden_by_policy(by)
        if forbidden is not None:
            return forbidden
        telling = [(rung, one) for rung, one in self._failures if one.reason != "constraint-conflict" or one.dependent]
        for rung in ("override", "own", "parents"):
            for failed, failure in (*telling, *self._failures):
                if failed == rung:
                    return self._dead(failure, by)
        return Dead(reason="constraint-conflict", blocked_by=by, next_safe=targets.next_safe)

    def _only_elsewhere(self, by: str | None) -> Step[Dead]:
        """The safe versions are on another line, which nothing admits as it is."""
        least = self.goal.targets.other_lines[0]
        if not any(one.constraint is not None for one in self.goal.dependents):
            ways = yield from self.goal.graph.overrides(self.goal.where, least.text)
            if isinstance(ways, NoOverride):
                # Even with majors allowed nothing could be forced here; only parents could have helped.
                for _, failure in self._failures:
                    if failure.reason != "constraint-conflict":
                        return self._dead(failure, by)
                if ways.reason == "override-unsupported":
                    return self._dead(Blocked(reason=ways.reason, detail=ways.detail), by)
        return Dead(
            reason="major-required",
            blocked_by=by,
            detail=f"{self.goal.instance.name} {least.text} is the least safe version, on another release line",
            next_safe=self.goal.targets.next_safe,
        )

    def _forbidden_by_policy(self, by: str | None) -> Step[Dead | None]:
        """What would have helped had the caller allowed it."""
        kept = list(self._failures)
        self._failures = []
        if not self._policy.allow_parent_bump:
            option = yield from self._parent_bump()
            if option is not None:
                said = f"{self._says(option)}; raising a parent is not allowed here"
                return Dead(
                    reason="parent-bump-required", blocked_by=by, detail=said, next_safe=self.goal.targets.next_safe
                )
        if not self._policy.allow_override:
            option = yield from self._override(self.goal.targets.same_line)
            if option is not None:
                return Dead(
                    reason="override-unsupported",
                    blocked_by=by,
                    detail="an override would do; overrides are not allowed here",
                    next_safe=self.goal.targets.next_safe,
                )
        self._failures = kept
        return None

    def _says(self, option: Option) -> str:
        raised = [change for change in option.changes if isinstance(change, SetConstraint)]
        return ", ".join(f"{change.constraint.at} would have to ask `{change.requirement}`" for change in raised)

    def _dead(self, failure: Blocked, by: str | None) -> Dead:
        named = str(failure.dependent) if failure.dependent is not None else by
        return Dead(
            reason=failure.reason, blocked_by=named, detail=failure.detail, next_safe=self.goal.targets.next_safe
        )

    def _blocking_text(self) -> str | None:
        blocking = self.goal.blocking()
        # A declaration could be raised; where a package refuses too, that one is in the way.
        named = [one for one in blocking if one.constraint is None or one.override is not None] or blocking
        return str(named[0]) if named else None


def _without_new(blocked: Blocked, way: Iterable[AddOverride]) -> Blocked:
    """An obstacle that a new entry itself made: nothing that is there is to be named for it."""
    forcing = blocked.dependent.override if blocked.dependent is not None else None
    if forcing is None or all(one.override != forcing for one in way):
        return blocked
    return replace(blocked, dependent=None, detail=f"an entry {forcing.selector} would reach other copies as well")


def _without_passing_dependencies(candidates: Sequence[Candidate], current: Release | None) -> list[Candidate]:
    """Leaves out releases that bring in a package which the next release of the line drops again.

    Such a dependency is a mistake, often in the name, and nothing that a new
    override should let in.
    """
    if current is None or current.dependencies is None or not candidates:
        return list(candidates)
    before = {one.name for one in current.dependencies}
    kept = []
    for one, successor in zip(candidates, [*candidates[1:], None], strict=True):
        if successor is not None and successor.same_line == one.same_line:
            brought = _needed(one) - before
            if brought and _needed(successor) and brought - _needed(successor):
                continue
        kept.append(one)
    return kept or list(candidates)


def _needed(candidate: Candidate) -> set[str]:
    release = candidate.release
    if release is None or release.dependencies is None:
        return set()
    return {one.name for one in release.dependencies if one.kind == "prod"}
