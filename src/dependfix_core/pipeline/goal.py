"""One vulnerable copy, who asks for it, and what newer releases of those ask."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from dependfix_core.ecosystems.base import Blocked, Dependent, Graph
from dependfix_core.model.lock import DependencyKind, Instance
from dependfix_core.model.plan import RefusalReason
from dependfix_core.model.steps import Step, together
from dependfix_core.pipeline.targets import Candidate, Chooser, Targets
from dependfix_core.versions import Requirement

_MAX_SCANNED: Final = 400
_SCANNED_AT_ONCE: Final = 80
PEERS: Final = frozenset({DependencyKind.PEER, DependencyKind.PEER_OPTIONAL})
_May = Literal["nothing", "own", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Permits:
    """What a rung may change besides the copy itself."""

    raises: _May = "nothing"
    """Declared requirements: none, those on the copy and its peers, or all on the way."""
    moves_parents: bool = False
    splits: bool = False
    """Dependents of the copy may get copies of their own."""
    crosses_lines: bool = False
    """Parents may go to another line although their own dependents have to be raised for it."""


OWN: Final = Permits(raises="own")
OWN_CROSSING: Final = Permits(raises="own", crosses_lines=True)
RAISING: Final = Permits(raises="all", moves_parents=True)
CROSSING: Final = Permits(raises="all", moves_parents=True, crosses_lines=True)


class Goal:
    """A copy that shall be safe or gone, on one graph."""

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
        self.instance = instance
        self.where = instance.where
        self.targets = targets
        self.dependents = dependents

    # Who is in the way.

    def askers(self) -> list[Dependent]:
        """Dependents that are no peers."""
        return [one for one in self.dependents if one.kind not in PEERS]

    def refusing(self, candidate: Candidate) -> list[Dependent]:
        """Those of them that do not admit the candidate."""
        return [one for one in self.askers() if one.admits(candidate.text).is_no]

    def peers_refusing(self, candidate: Candidate) -> list[Dependent]:
        """Peers that do not admit the candidate."""
        return [one for one in self.dependents if one.kind in PEERS and one.admits(candidate.text).is_no]

    def blocking(self) -> list[Dependent]:
        """Dependents that admit no safe version; where each admits some but none is for all, those against the least."""
        candidates = self.targets.all
        blocking = [one for one in self.askers() if not admits_any(one, candidates)]
        if blocking or not candidates:
            return blocking
        return self.refusing(candidates[0])

    def accepts(self, requirement: Requirement) -> bool:
        """Whether the requirement admits any version that the copy may go to."""
        return any(requirement.admits(one.text).may_be for one in self.targets.all)

    def releases_asking(
        self, parent: Dependent, package: str, accepts: Callable[[Requirement], bool], permits: Permits
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
            safe = targets.all if permits.crosses_lines else targets.same_line
            pool = [one.text for one in safe] or (yield from self._own_line_as_before(copy))
        else:
            # What is declared stays as it is: nothing that it refuses is worth looking at.
            above = yield from self.graph.dependents(parent.where)
            declared = [one for one in above if one.constraint is not None]

            def is_declared(text: str) -> bool:
                return not any(each.admits(text).is_no for each in declared)

            pool = [one.text for one in targets.all if is_declared(one.text)]
            pool = pool or [text for text in (yield from self._own_line_as_before(copy)) if is_declared(text)]
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
            asked = yield from together([self.graph.asks(parent.where, text, package) for text in part])
            for index, (version, asks) in enumerate(zip(part, asked, strict=True)):
                if asks is None:
                    found.append((False, index, version))
                elif not isinstance(asks, Requirement):
                    unknown = True
                elif accepts(asks):
                    is_loose = any(asks.admits(text).is_yes for text in vulnerable)
                    found.append((is_loose, index, version))
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

    def _own_line_as_before(self, copy: Instance) -> Step[list[str]]:
        """Releases of a vulnerable copy's line, where no safe one is there, that are no worse than it."""
        found = yield from self.chooser.as_before(copy.name, copy.version)
        return [text for text in found if not self.chooser.crosses_line(copy.version, text)]

    # Peers.

    def named(self, blocked: Blocked) -> Step[Blocked]:
        """An obstacle made of peers: a major move where other lines of the packages would fit, else a conflict.

        One peer that nothing satisfies is a conflict, whatever the others need.
        """
        peer = blocked.dependent
        if peer is None or peer.kind not in PEERS:
            return blocked
        if blocked.where != self.where:
            return (yield from self._named_by_line(blocked, peer))
        refusing = [one for one in self.dependents if one.kind in PEERS and one.where is not None]
        wanted = self.targets.same_line or self.targets.other_lines
        first: Blocked | None = None
        for one in refusing:
            if admits_any(one, wanted):
                continue
            found = yield from self.releases_asking(one, self.instance.name, self.accepts, CROSSING)
            if isinstance(found, Blocked):
                return replace(blocked, reason="peer-conflict", dependent=one, detail=blocked.detail)
            if first is None:
                said = f"{self.instance.name} {wanted[0].text} would need {one.name} {found[0]}"
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


def admits_any(dependent: Dependent, candidates: Iterable[Candidate]) -> bool:
    """Whether the dependent admits one of the candidates, or may."""
    return any(dependent.admits(one.text).may_be for one in candidates)
