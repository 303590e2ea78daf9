"""Changes that grow until the graph finds them legal: every rung of the ladder is this search with other permissions."""

from dataclasses import dataclass, field
from typing import Final

from dependfix_core.ecosystems.base import Blocked, Change, Dependent, Graph, Legal, SetConstraint, SetVersion
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.goal import CROSSING, PEERS, RAISING, Goal, Permits, is_gone

MAX_LEVELS: Final = 4
"""How far a search climbs from a vulnerable copy to its dependents' dependents."""
_MAX_TRIES: Final = 60
Tries = dict[str, tuple[str, list[str]]]
"""Copy → the version that is tried now, and the ones to try after it."""


@dataclass(slots=True)
class Search:
    """Changes that grow until the graph finds them legal."""

    goal: Goal
    permits: Permits
    versions: Tries
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
                    may_split=self.permits.splits and where == self.goal.where,
                )
                for where in sorted(self.versions)
            ),
        )

    def run(self) -> Step[Legal | Blocked]:
        """Legal with the copy gone or safe, or the obstacle that could not be repaired."""
        graph, chooser = self.goal.graph, self.goal.chooser
        verdict: Legal | Blocked = Blocked(reason="constraint-conflict")
        for _ in range(_MAX_TRIES):
            verdict = yield from graph.simulate(self.changes(), chooser)
            if isinstance(verdict, Legal):
                remaining = verdict.graph.instance(self.goal.where)
                if is_gone(self.goal.where, graph, verdict.graph, chooser):
                    return verdict
                if remaining is None:
                    return Blocked(reason="constraint-conflict", detail="what replaces it is vulnerable as well")
                if not (yield from self._move_what_remains(verdict.graph)):
                    return Blocked(
                        reason="constraint-conflict", detail=f"{remaining.name} {remaining.version} would stay"
                    )
            else:
                if self.objection is None and verdict.dependent is not None and verdict.dependent.kind in PEERS:
                    self.objection = verdict
                if not (yield from self._repair(verdict)):
                    return (yield from self.goal.named(self._most_telling(verdict)))
        return verdict if isinstance(verdict, Blocked) else Blocked(reason="constraint-conflict")

    def _most_telling(self, last: Blocked) -> Blocked:
        """The first peer that was in the way, unless that one was moved and another peer stood in the way of it."""
        if self.objection is None:
            return last
        is_peer = last.dependent is not None and last.dependent.kind in PEERS
        return last if is_peer and last.where != self.objection.where else self.objection

    def _move_what_remains(self, graph: Graph) -> Step[bool]:
        """The parents no longer hold the copy, but others still use it: it moves for them."""
        where = self.goal.where
        if where in self.versions:
            return False
        dependents = yield from graph.dependents(where)
        raisable = self.permits.raises != "nothing"

        def is_in_the_way(dependent: Dependent, version: str) -> bool:
            declared = dependent.constraint is not None and dependent.override is None
            return dependent.admits(version).is_no and not (declared and raisable)

        fitting = [
            one.text for one in self.goal.targets.all if not any(is_in_the_way(each, one.text) for each in dependents)
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
            if dependent.kind in PEERS and (yield from self._move_peer(dependent, blocked.where)):
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
        if not self.permits.moves_parents and dependent.kind not in PEERS:
            return self._advance(blocked.where)
        moved = yield from self._move_parent(dependent, blocked, wanted[0])
        return moved or self._advance(blocked.where)

    def _raise(self, dependent: Dependent, where: str, version: str) -> bool:
        own = where == self.goal.where or where in self.peers
        if self.permits.raises == "nothing" or (self.permits.raises == "own" and not own):
            return False
        assert dependent.constraint is not None
        constraint = dependent.constraint
        text = self.goal.graph.raised(constraint, version)
        key = (constraint.path, constraint.at)
        if text is None or (key in self.raised and self.raised[key].requirement == text):
            return False
        self.raised[key] = SetConstraint(constraint=constraint, requirement=text)
        return True

    def _move_parent(self, parent: Dependent, blocked: Blocked, version: str) -> Step[bool]:
        assert parent.where is not None
        level = self.levels.get(blocked.where, 1) + 1
        child = self.goal.graph.instance(blocked.where)
        if level > MAX_LEVELS or child is None:
            return False
        found = yield from self.goal.releases_asking(
            parent,
            child.name,
            lambda requirement: requirement.admits(version).may_be,
            self._permits_of(parent),
        )
        if isinstance(found, Blocked):
            return False
        self._try(parent.where, found)
        self.levels[parent.where] = level
        if parent.kind in PEERS:
            self.peers.add(parent.where)
        return True

    def _permits_of(self, dependent: Dependent) -> Permits:
        """Who peers on something that moves may be raised even where nothing else may."""
        if dependent.kind not in PEERS or self.permits.raises == "nothing":
            return self.permits
        return CROSSING if self.permits.crosses_lines else RAISING

    def _move_peer(self, dependent: Dependent, where: str) -> Step[bool]:
        """Moves the copy that something which moves peers on, and raises what is declared for it."""
        copy = self.goal.graph.instance(where)
        if copy is None or where in self.tried:
            return False
        chooser = self.goal.chooser
        targets = yield from chooser.targets(copy.name, copy.version)
        pool = [one.text for one in (targets.all if self.permits.crosses_lines else targets.same_line)]
        pool += yield from chooser.as_before(copy.name, copy.version)
        fitting = [
            text
            for text in pool
            if dependent.admits(text).is_yes
            and (self.permits.crosses_lines or not chooser.crosses_line(copy.version, text))
        ]
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
        child = self.goal.graph.instance(blocked.where)
        if child is None or parent.where is None:
            return False
        found = yield from self.goal.releases_asking(
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
                if self.goal.graph.instance(one) is None:
                    continue
                for dependent in (yield from self.goal.graph.dependents(one)):
                    if dependent.where is not None and dependent.where not in seen:
                        seen.add(dependent.where)
                        above.append(dependent.where)
            if any(self._advance(one) for one in above):
                return True
            level = above
        return any(self._advance(one) for one in reversed(list(self.versions)))
