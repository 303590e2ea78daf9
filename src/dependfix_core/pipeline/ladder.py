"""How does one vulnerable copy get to a safe version, in the least intrusive way that is legal?

The ladder tries, in this order: the entry that already forces the version, a
move of the copy alone, a raised declaration, newer parents inside what is
asked of them, newer parents with a raised declaration, a new override, and,
where the caller allows it, the same across release lines. Every rung is the
same search with other permissions: propose changes, let the graph judge them,
and repair what it names as blocked by moving the dependent that is in the way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Change,
    Dependent,
    Graph,
    Legal,
    NoOverride,
    SetConstraint,
    SetOverride,
    SetVersion,
)
from dependfix_core.model.lock import DependencyKind, Instance, SourceKind
from dependfix_core.model.plan import RefusalReason, Strategy
from dependfix_core.model.records import Release
from dependfix_core.model.steps import Step, together
from dependfix_core.pipeline.targets import Candidate, Chooser, Targets
from dependfix_core.versions import Requirement

MAX_LEVELS: Final = 4
"""How far a search climbs from a vulnerable copy to its dependents' dependents."""
_MAX_TRIES: Final = 60
_MAX_SCANNED: Final = 400
_SCANNED_AT_ONCE: Final = 80
_MAX_OWN: Final = 12
_MAX_OVERRIDES: Final = 3
_PEERS: Final = frozenset({DependencyKind.PEER, DependencyKind.PEER_OPTIONAL})
_NOTHING_HELPS: Final[frozenset[RefusalReason]] = frozenset({"cooldown", "metadata-unavailable", "unparsable-version"})
"""Reasons of a copy's own targets that no rung can do anything about."""
_Tries = dict[str, tuple[str, list[str]]]
"""Copy → the version that is tried now, and the ones to try after it."""


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
class _Permits:
    """What a rung may change besides the copy itself."""

    raises: _May = "nothing"
    """Declared requirements: none, those on the copy and its peers, or all on the way."""
    moves_parents: bool = False
    splits: bool = False
    """Dependents of the copy may get copies of their own."""
    crosses_lines: bool = False
    """Parents may go to another line although their own dependents have to be raised for it."""


_OWN: Final = _Permits(raises="own")
_OWN_CROSSING: Final = _Permits(raises="own", crosses_lines=True)
_RAISING: Final = _Permits(raises="all", moves_parents=True)
_CROSSING: Final = _Permits(raises="all", moves_parents=True, crosses_lines=True)


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
        rungs = _Rungs(self.graph, self.chooser, instance, targets, dependents)
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

    def __init__(
        self,
        graph: Graph,
        chooser: Chooser,
        instance: Instance,
        targets: Targets,
        dependents: tuple[Dependent, ...],
    ) -> None:
        self.graph = graph
        self.chooser = chooser
        self._policy = chooser.policy
        self._instance = instance
        self.where = instance.where
        self.targets = targets
        self._dependents = dependents
        self._failures: list[tuple[_Rung, Blocked]] = []

    def climb(self) -> Step[Option | Dead]:
        """From the cheapest rung to the refusal."""
        same_line, other_lines = self.targets.same_line, self.targets.other_lines
        rungs: list[Callable[[], Step[Option | None]]] = [lambda: self._edit_override(same_line)]
        if self._policy.raise_direct_floor:
            rungs.append(self._raise_floor)
        rungs.append(lambda: self._in_range(same_line))
        if not same_line:
            rungs.append(lambda: self._in_range(other_lines))
        rungs += [
            lambda: self._raise_own(same_line),
            lambda: self._parents(_Permits(moves_parents=True), "parent-refresh"),
        ]
        if self._policy.allow_parent_bump:
            rungs.append(self._parent_bump)
        if self._policy.allow_override:
            rungs.append(lambda: self._override(same_line))
        if same_line:
            rungs.append(lambda: self._in_range(other_lines))
        if self._policy.allow_major:
            rungs.append(lambda: self._raise_own(same_line, _OWN_CROSSING))
            rungs.append(lambda: self._raise_own(other_lines, _OWN_CROSSING))
            if self._policy.allow_parent_bump:
                rungs.append(lambda: self._parents(_CROSSING, "parent-bump"))
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
            for one in self._dependents
            if one.override is not None and not any(one.admits(c.text).may_be for c in candidates)
        }
        if not holders:
            return None
        for candidate in candidates:
            values = [(held, self.graph.override_value(held, candidate.text)) for held in holders.values()]
            edits = tuple(SetOverride(override=held, value=value) for held, value in values if value is not None)
            if len(edits) < len(values):
                continue
            start: _Tries = {self.where: (candidate.text, [])}
            found = yield from self._settle(start, edits, _OWN, "override-edit")
            if found is not None:
                return found
        return None

    def _raise_floor(self) -> Step[Option | None]:
        """Also where the declared requirement admits the target, it is raised to it."""
        declared = [one.constraint for one in self._dependents if one.constraint is not None and one.override is None]
        for candidate in self._admitted(self.targets.same_line)[:_MAX_OWN]:
            texts = [(constraint, self.graph.raised(constraint, candidate)) for constraint in declared]
            raised = tuple(
                SetConstraint(constraint=constraint, requirement=text)
                for constraint, text in texts
                if text is not None and text != constraint.requirement
            )
            if not raised:
                return None
            start: _Tries = {self.where: (candidate, [])}
            option = yield from self._settle(start, raised, _Permits(), self.graph.direct_strategy)
            if option is not None:
                return option
        return None

    def _in_range(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """The copy moves, alone or with what it needs, and nothing is declared anew."""
        admitted = self._admitted(candidates)
        if not admitted:
            return (yield from self._split(candidates))
        start: _Tries = {self.where: (admitted[0], admitted[1:])}
        return (yield from self._settle(start, (), _Permits(), "lock-in-range"))

    def _split(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """Dependents that cannot share one version may each have one, where the format has room for several copies."""
        askers = self._askers()
        if len(askers) < 2 or not all(any(one.admits(c.text).is_yes for c in candidates) for one in askers):
            return None
        best = min(candidates, key=lambda one: len(self._refusing(one)))
        return (yield from self._settle({self.where: (best.text, [])}, (), _Permits(splits=True), "lock-in-range"))

    def _admitted(self, candidates: Sequence[Candidate]) -> list[str]:
        """Those that all dependents admit; across lines they have to be known to.

        Peers are left out: they may be moved along.
        """
        found = []
        for one in candidates:
            answers = [dependent.admits(one.text) for dependent in self._askers()]
            if all(answer.may_be if one.same_line else answer.is_yes for answer in answers):
                found.append(one.text)
        return found[:_MAX_OWN]

    def _raise_own(self, candidates: Sequence[Candidate], permits: _Permits = _OWN) -> Step[Option | None]:
        """The declared requirement on the copy is raised, or those on the peers that have to move with it."""
        usable = []
        peers_failed = any(
            failed.dependent is not None and failed.dependent.kind in _PEERS for _, failed in self._failures
        )
        for one in candidates:
            refusing = self._refusing(one)
            declared = all(d.constraint is not None and d.override is None for d in refusing)
            if declared and (refusing or peers_failed or self._peers_refusing(one)):
                usable.append(one.text)
        if not usable:
            return None
        start: _Tries = {self.where: (usable[0], usable[1:_MAX_OWN])}
        return (yield from self._settle(start, (), permits, self.graph.direct_strategy))

    def _parents(self, permits: _Permits, strategy: Strategy) -> Step[Option | None]:
        """The dependents that are in the way move to releases that ask for something safe, or for nothing."""
        blocking = self._blocking()
        parents = [one for one in blocking if one.where is not None]
        if not parents or any(one.override is not None for one in blocking):
            return None
        if len(parents) < len(blocking) and permits.raises == "nothing":
            return None
        start: _Tries = {}
        for parent in parents:
            assert parent.where is not None
            found = yield from self.releases_asking(parent, self._instance.name, self._accepts, permits)
            if isinstance(found, Blocked):
                self._failures.append(("parents", found))
                return None
            start[parent.where] = (found[0], found[1:])
        return (yield from self._settle(start, (), permits, strategy, rung="parents"))

    def _parent_bump(self) -> Step[Option | None]:
        return (yield from self._parents(_RAISING, "parent-bump"))

    def _override(self, candidates: Sequence[Candidate]) -> Step[Option | None]:
        """A new entry forces the version."""
        current = yield from self.chooser.release_of(self._instance)
        for candidate in _without_passing_dependencies(candidates, current)[:_MAX_OVERRIDES]:
            ways = yield from self.graph.overrides(self.where, candidate.text)
            if isinstance(ways, NoOverride):
                refused = Blocked(reason=ways.reason, detail=ways.detail)
                peers = self._peers_refusing(candidate)
                if ways.reason == "peer-conflict" and peers:
                    refused = yield from self.named(replace(refused, dependent=peers[0], where=self.where))
                self._failures.append(("override", refused))
                return None
            for way in ways:
                start: _Tries = {self.where: (candidate.text, [])}
                option = yield from self._settle(start, way, _Permits(), "override", rung="override")
                if option is not None:
                    return option
                self._failures[-1] = ("override", _without_new(self._failures[-1][1], way))
        return None

    # Who is in the way.

    def _askers(self) -> list[Dependent]:
        """Dependents that are no peers."""
        return [one for one in self._dependents if one.kind not in _PEERS]

    def _refusing(self, candidate: Candidate) -> list[Dependent]:
        return [one for one in self._askers() if one.admits(candidate.text).is_no]

    def _peers_refusing(self, candidate: Candidate) -> list[Dependent]:
        return [one for one in self._dependents if one.kind in _PEERS and one.admits(candidate.text).is_no]

    def _blocking(self) -> list[Dependent]:
        """Dependents that admit no safe version; where each admits some but none is for all, those against the least."""
        candidates = self.targets.all
        blocking = [one for one in self._askers() if not _admits_any(one, candidates)]
        if blocking or not candidates:
            return blocking
        return self._refusing(candidates[0])

    def _accepts(self, requirement: Requirement) -> bool:
        return any(requirement.admits(one.text).may_be for one in self.targets.all)

    def releases_asking(
        self, parent: Dependent, package: str, accepts: Callable[[Requirement], bool], permits: _Permits
    ) -> Step[list[str] | Blocked]:
        """Newer releases of a dependent that ask for an accepted version of `package`, or do not ask for it.

        Least first, those first of all that admit no vulnerable version: they
        hold the fix when somebody resolves anew.
        """
        assert parent.where is not None
        copy = self.graph.instance(parent.where)
        assert copy is not None
        targets = yield from self.chooser.targets(copy.name, copy.version)
        if permits.raises == "all":
            pool = list(targets.all if permits.crosses_lines else targets.same_line)
        else:
            # What is declared stays as it is: nothing that it refuses is worth looking at.
            above = yield from self.graph.dependents(parent.where)
            declared = [one for one in above if one.constraint is not None]
            pool = [one for one in targets.all if not any(each.admits(one.text).is_no for each in declared)]
        if not pool:
            reason: RefusalReason = "constraint-conflict"
            if targets.reason in ("metadata-unavailable", "cooldown"):
                reason = targets.reason
            return Blocked(reason=reason, detail=targets.detail, dependent=parent, where=self.where)
        vulnerable = yield from self.chooser.vulnerable_releases(package)
        found: list[tuple[bool, int, str]] = []
        unknown = False
        for first in range(0, min(len(pool), _MAX_SCANNED), _SCANNED_AT_ONCE):
            part = pool[first : first + _SCANNED_AT_ONCE]
            asked = yield from together([self.graph.asks(parent.where, one.text, package) for one in part])
            for index, (candidate, asks) in enumerate(zip(part, asked, strict=True)):
                if asks is None:
                    found.append((False, index, candidate.text))
                elif not isinstance(asks, Requirement):
                    unknown = True
                elif accepts(asks):
                    is_loose = any(asks.admits(text).is_yes for text in vulnerable)
                    found.append((is_loose, index, candidate.text))
            if found:
                break
        if not found:
            return Blocked(
                reason="metadata-unavailable" if unknown else "constraint-conflict",
                detail=f"what newer releases of {copy.name} ask for is not known" if unknown else "",
                dependent=parent,
                where=self.where,
            )
        return [text for _, _, text in sorted(found)]

    # Peers.

    def named(self, blocked: Blocked) -> Step[Blocked]:
        """An obstacle made of peers: a major move where other lines of the packages would fit, else a conflict.

        One peer that nothing satisfies is a conflict, whatever the others need.
        """
        peer = blocked.dependent
        if peer is None or peer.kind not in _PEERS:
            return blocked
        if blocked.where != self.where:
            return (yield from self._named_by_line(blocked, peer))
        refusing = [one for one in self._dependents if one.kind in _PEERS and one.where is not None]
        wanted = self.targets.same_line or self.targets.other_lines
        first: Blocked | None = None
        for one in refusing:
            if _admits_any(one, wanted):
                continue
            found = yield from self.releases_asking(one, self._instance.name, self._accepts, _CROSSING)
            if isinstance(found, Blocked):
                return replace(blocked, reason="peer-conflict", dependent=one, detail=blocked.detail)
            if first is None:
                said = f"{self._instance.name} {wanted[0].text} would need {one.name} {found[0]}"
                first = replace(blocked, reason="major-required", dependent=one, detail=said)
        return first if first is not None else blocked

    def _named_by_line(self, blocked: Blocked, peer: Dependent) -> Step[Blocked]:
        """Something that moves asks for a peer which only another line of that package has."""
        copy = self.graph.instance(blocked.where)
        if copy is None:
            return blocked
        targets = yield from self.chooser.targets(copy.name, copy.version)
        fitting = next((one.text for one in targets.other_lines if peer.admits(one.text).is_yes), None)
        if fitting is None:
            return blocked
        said = f"{peer.name} {peer.version} would need {copy.name} {fitting}"
        return replace(blocked, reason="major-required", detail=said)

    # The search of a rung.

    def _settle(
        self,
        start: "_Tries",
        fixed: Sequence[Change],
        permits: _Permits,
        strategy: Strategy,
        rung: _Rung = "own",
    ) -> Step[Option | None]:
        """Simulates and repairs until the changes are legal and the copy is safe; None, with the failure kept, if never."""
        search = _Search(self, permits, dict(start), tuple(fixed))
        verdict = yield from search.run()
        if isinstance(verdict, Blocked):
            self._failures.append((rung, verdict))
            return None
        changes = search.changes()
        return Option(
            where=self.where,
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
        copy = self.graph.instance(change.where)
        return copy is not None and self.chooser.crosses_line(copy.version, change.version)

    def _warnings(self, changes: Sequence[Change]) -> tuple[str, ...]:
        declared = any(not isinstance(change, SetVersion) for change in changes)
        kind = "major" if declared else "cross-line-in-range"
        crossing = [change for change in changes if isinstance(change, SetVersion) and self._is_major(change)]
        return tuple(f"{kind}: {change.where} goes to {change.version}" for change in crossing)

    # The refusal.

    def _refusal(self) -> Step[Dead]:
        targets = self.targets
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
        least = self.targets.other_lines[0]
        if not any(one.constraint is not None for one in self._dependents):
            ways = yield from self.graph.overrides(self.where, least.text)
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
            detail=f"{self._instance.name} {least.text} is the least safe version, on another release line",
            next_safe=self.targets.next_safe,
        )

    def _forbidden_by_policy(self, by: str | None) -> Step[Dead | None]:
        """What would have helped had the caller allowed it."""
        kept = list(self._failures)
        self._failures = []
        if not self._policy.allow_parent_bump:
            option = yield from self._parent_bump()
            if option is not None:
                said = f"{self._says(option)}; raising a parent is not allowed here"
                return Dead(reason="parent-bump-required", blocked_by=by, detail=said, next_safe=self.targets.next_safe)
        if not self._policy.allow_override:
            option = yield from self._override(self.targets.same_line)
            if option is not None:
                return Dead(
                    reason="override-unsupported",
                    blocked_by=by,
                    detail="an override would do; overrides are not allowed here",
                    next_safe=self.targets.next_safe,
                )
        self._failures = kept
        return None

    def _says(self, option: Option) -> str:
        raised = [change for change in option.changes if isinstance(change, SetConstraint)]
        return ", ".join(f"{change.constraint.at} would have to ask `{change.requirement}`" for change in raised)

    def _dead(self, failure: Blocked, by: str | None) -> Dead:
        named = str(failure.dependent) if failure.dependent is not None else by
        return Dead(reason=failure.reason, blocked_by=named, detail=failure.detail, next_safe=self.targets.next_safe)

    def _blocking_text(self) -> str | None:
        blocking = self._blocking()
        # A declaration could be raised; where a package refuses too, that one is in the way.
        named = [one for one in blocking if one.constraint is None or one.override is not None] or blocking
        return str(named[0]) if named else None


@dataclass(slots=True)
class _Search:
    """Changes that grow until the graph finds them legal."""

    rungs: _Rungs
    permits: _Permits
    versions: _Tries
    fixed: tuple[Change, ...]
    raised: dict[tuple[str, str], SetConstraint] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    peers: set[str] = field(default_factory=set)
    """Copies that move because they peer on one that does."""
    tried: dict[str, set[str]] = field(default_factory=dict)
    """Copy → versions that were tried, so that none is tried twice."""
    objection: Blocked | None = None
    """The first peer that was in the way: what a person has to hear of when nothing helps."""

    def changes(self) -> tuple[Change, ...]:
        """What is proposed, in an order that depends on the content only."""
        return (
            *self.fixed,
            *(self.raised[key] for key in sorted(self.raised)),
            *(
                SetVersion(
                    where=where,
                    version=self.versions[where][0],
                    may_split=self.permits.splits and where == self.rungs.where,
                )
                for where in sorted(self.versions)
            ),
        )

    def run(self) -> Step[Legal | Blocked]:
        """Legal with the copy gone or safe, or the obstacle that could not be repaired."""
        graph, chooser = self.rungs.graph, self.rungs.chooser
        verdict: Legal | Blocked = Blocked(reason="constraint-conflict")
        for _ in range(_MAX_TRIES):
            verdict = yield from graph.simulate(self.changes(), chooser)
            if isinstance(verdict, Legal):
                remaining = verdict.graph.instance(self.rungs.where)
                if is_gone(self.rungs.where, graph, verdict.graph, chooser):
                    return verdict
                if remaining is None:
                    return Blocked(reason="constraint-conflict", detail="what replaces it is vulnerable as well")
                if not (yield from self._move_what_remains(verdict.graph)):
                    return Blocked(
                        reason="constraint-conflict", detail=f"{remaining.name} {remaining.version} would stay"
                    )
            else:
                if self.objection is None and verdict.dependent is not None and verdict.dependent.kind in _PEERS:
                    self.objection = verdict
                if not (yield from self._repair(verdict)):
                    return (yield from self.rungs.named(self._most_telling(verdict)))
        return verdict if isinstance(verdict, Blocked) else Blocked(reason="constraint-conflict")

    def _most_telling(self, last: Blocked) -> Blocked:
        """The first peer that was in the way, unless that one was moved and another peer stood in the way of it."""
        if self.objection is None:
            return last
        is_peer = last.dependent is not None and last.dependent.kind in _PEERS
        return last if is_peer and last.where != self.objection.where else self.objection

    def _move_what_remains(self, graph: Graph) -> Step[bool]:
        """The parents no longer hold the copy, but others still use it: it moves for them."""
        where = self.rungs.where
        if where in self.versions:
            return False
        dependents = yield from graph.dependents(where)
        raisable = self.permits.raises != "nothing"

        def is_in_the_way(dependent: Dependent, version: str) -> bool:
            declared = dependent.constraint is not None and dependent.override is None
            return dependent.admits(version).is_no and not (declared and raisable)

        fitting = [
            one.text for one in self.rungs.targets.all if not any(is_in_the_way(each, one.text) for each in dependents)
        ]
        if not fitting:
            return False
        self.versions[where] = (fitting[0], fitting[1:])
        return True

    def _repair(self, blocked: Blocked) -> Step[bool]:
        dependent = blocked.dependent
        if dependent is None:
            return self._advance(blocked.where) or (yield from self._advance_mover(blocked.where))
        if dependent.override is not None:
            return self._advance(blocked.where)
        wanted = self.versions.get(blocked.where)
        if wanted is None:
            if dependent.kind in _PEERS and (yield from self._move_peer(dependent, blocked.where)):
                return True
            # A requirement of something that moves cannot be met: try the next version of what made it move.
            asking = dependent.where if dependent.where is not None else blocked.where
            return self._advance(asking) or (yield from self._advance_mover(asking))
        if dependent.constraint is not None:
            return self._raise(dependent, blocked.where, wanted[0]) or self._advance(blocked.where)
        assert dependent.where is not None
        if dependent.where in self.versions:
            followed = self._follow(blocked.where, dependent) or self._advance(dependent.where)
            return followed or (yield from self._seek_again(dependent, blocked, wanted[0]))
        if not self.permits.moves_parents and dependent.kind not in _PEERS:
            return self._advance(blocked.where)
        moved = yield from self._move_parent(dependent, blocked, wanted[0])
        return moved or self._advance(blocked.where)

    def _raise(self, dependent: Dependent, where: str, version: str) -> bool:
        own = where == self.rungs.where or where in self.peers
        if self.permits.raises == "nothing" or (self.permits.raises == "own" and not own):
            return False
        assert dependent.constraint is not None
        constraint = dependent.constraint
        text = self.rungs.graph.raised(constraint, version)
        key = (constraint.path, constraint.at)
        if text is None or (key in self.raised and self.raised[key].requirement == text):
            return False
        self.raised[key] = SetConstraint(constraint=constraint, requirement=text)
        return True

    def _move_parent(self, parent: Dependent, blocked: Blocked, version: str) -> Step[bool]:
        assert parent.where is not None
        level = self.levels.get(blocked.where, 1) + 1
        child = self.rungs.graph.instance(blocked.where)
        if level > MAX_LEVELS or child is None:
            return False
        found = yield from self.rungs.releases_asking(
            parent,
            child.name,
            lambda requirement: requirement.admits(version).may_be,
            self._permits_of(parent),
        )
        if isinstance(found, Blocked):
            return False
        self._try(parent.where, found)
        self.levels[parent.where] = level
        if parent.kind in _PEERS:
            self.peers.add(parent.where)
        return True

    def _permits_of(self, dependent: Dependent) -> _Permits:
        """Who peers on something that moves may be raised even where nothing else may."""
        if dependent.kind not in _PEERS or self.permits.raises == "nothing":
            return self.permits
        return _CROSSING if self.permits.crosses_lines else _RAISING

    def _move_peer(self, dependent: Dependent, where: str) -> Step[bool]:
        """Moves the copy that something which moves peers on, and raises what is declared for it."""
        copy = self.rungs.graph.instance(where)
        if copy is None or where in self.tried or self.permits.raises == "nothing":
            return False
        targets = yield from self.rungs.chooser.targets(copy.name, copy.version)
        pool = targets.all if self.permits.crosses_lines else targets.same_line
        fitting = [one.text for one in pool if dependent.admits(one.text).is_yes]
        if fitting:
            self._try(where, fitting)
            self.peers.add(where)
        return bool(fitting)

    def _advance(self, where: str) -> bool:
        tried = self.versions.get(where)
        if tried is None or not tried[1]:
            return False
        self._try(where, tried[1])
        # What was raised for the version before is raised anew for this one.
        self.raised = {}
        return True

    def _try(self, where: str, texts: list[str]) -> None:
        self.versions[where] = (texts[0], texts[1:])
        self.tried.setdefault(where, set()).add(texts[0])

    def _follow(self, where: str, dependent: Dependent) -> bool:
        """Takes the next version of a copy that a parent, which moved as well, asks for."""
        tried = self.versions[where][1]
        for index, text in enumerate(tried):
            if dependent.admits(text).may_be:
                self._try(where, tried[index:])
                return True
        return False

    def _seek_again(self, parent: Dependent, blocked: Blocked, version: str) -> Step[bool]:
        """Releases of a parent that was moved for another version of the child, for the one that is tried now."""
        child = self.rungs.graph.instance(blocked.where)
        if child is None or parent.where is None:
            return False
        found = yield from self.rungs.releases_asking(
            parent, child.name, lambda requirement: requirement.admits(version).may_be, self.permits
        )
        if isinstance(found, Blocked):
            return False
        fresh = [text for text in found if text not in self.tried.get(parent.where, ())]
        if fresh:
            self._try(parent.where, fresh)
        return bool(fresh)

    def _advance_mover(self, where: str) -> Step[bool]:
        """The next version of the nearest dependent above that was moved on purpose, else of the last one that was."""
        seen, level = {where}, [where]
        for _ in range(MAX_LEVELS):
            above: list[str] = []
            for one in level:
                if self.rungs.graph.instance(one) is None:
                    continue
                for dependent in (yield from self.rungs.graph.dependents(one)):
                    if dependent.where is not None and dependent.where not in seen:
                        seen.add(dependent.where)
                        above.append(dependent.where)
            if any(self._advance(one) for one in above):
                return True
            level = above
        return any(self._advance(one) for one in reversed(list(self.versions)))


def _without_new(blocked: Blocked, way: Iterable[AddOverride]) -> Blocked:
    """An obstacle that a new entry itself made: nothing that is there is to be named for it."""
    forcing = blocked.dependent.override if blocked.dependent is not None else None
    if forcing is None or all(one.override != forcing for one in way):
        return blocked
    return replace(blocked, dependent=None, detail=f"an entry {forcing.selector} would reach other copies as well")


def is_gone(where: str, before: Graph, after: Graph, chooser: Chooser) -> bool:
    """Whether a vulnerable copy is safe now, or went without a vulnerable one of its package coming in for it."""
    copy = after.instance(where)
    if copy is not None:
        return chooser.is_safe(copy.name, copy.version)
    old = before.instance(where)
    return old is None or all(
        chooser.is_safe(one.name, one.version)
        for one in after.instances(old.name)
        if before.instance(one.where) is None
    )


def _admits_any(dependent: Dependent, candidates: Iterable[Candidate]) -> bool:
    return any(dependent.admits(one.text).may_be for one in candidates)


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
