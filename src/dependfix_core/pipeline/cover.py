"""Which of the ways found for single copies are taken together, and what belongs together in one remediation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dependfix_core.ecosystems.base import (
    Blocked,
    Change,
    Graph,
    Legal,
    Moved,
    SetConstraint,
    SetVersion,
)
from dependfix_core.model.plan import Edit, RefusalReason, Strategy
from dependfix_core.model.steps import Step, together
from dependfix_core.pipeline.goal import is_gone
from dependfix_core.pipeline.ladder import Dead, Ladder, Option
from dependfix_core.pipeline.targets import Chooser

_STAYS: Final[frozenset[RefusalReason]] = frozenset(
    {"bundled", "non-registry-source", "patched-dependency", "cooldown", "unparsable-version", "malware"}
)
"""Refusals that nothing which is decided for other copies can lift."""
_MAX_ROUNDS: Final = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedMove:
    """What becomes of one copy, and by which strategy."""

    moved: Moved
    strategy: Strategy
    is_leading: bool
    """Whether the option was made for it or its like, so that it is not only moved along."""
    is_asked: bool
    """Whether this very move was decided; what a parent asks for follows from the parent's move."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Moves and edits that stand and fall together."""

    moves: tuple[PlannedMove, ...]
    edits: tuple[Edit, ...]
    strategies: tuple[Strategy, ...]
    """Of the ways that it is made of, each once."""
    needs_tool: bool
    warnings: tuple[str, ...]
    repeats: frozenset[str] = frozenset()
    """Copies whose move is another bundle's own, and stands here too because this one relies on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What is done in one unit, and the copies that stay, each with its reason."""

    bundles: tuple[Bundle, ...]
    dead: Mapping[str, Dead]
    graph: Graph
    """The unit after all bundles."""


def decide(graph: Graph, vulnerable: Sequence[str], chooser: Chooser) -> Step[Decision]:
    """The cheapest ways that make all of the `vulnerable` copies safe, as far as there are any."""
    ladder = Ladder(graph=graph, chooser=chooser)
    found = yield from together([ladder.climb(where) for where in vulnerable])
    dead = {where: one for where, one in zip(vulnerable, found, strict=True) if isinstance(one, Dead)}
    options = [one for one in found if isinstance(one, Option)]
    own = {option.where: option.strategy for option in options}
    state = _State(base=graph, graph=graph, chooser=chooser, own=own)
    needed = _without_redundant(options, vulnerable, chooser, graph)
    yield from _take_all(state, [one for one in needed if not one.legal.is_partial], dead)
    for _ in range(_MAX_ROUNDS):
        # What was decided for others may have taken away what was in the way.
        taken = len(state.steps)
        for where in vulnerable if taken else ():
            if where in dead and dead[where].reason not in _STAYS and state.graph.instance(where) is not None:
                again = yield from state.climb(where)
                if isinstance(again, Dead):
                    dead[where] = again
                else:
                    del dead[where]
        if len(state.steps) == taken:
            break
    # After what only a tool can finish nothing is certain: those come last.
    yield from _take_all(state, [one for one in needed if one.legal.is_partial], dead)
    for where in vulnerable:
        if is_gone(where, graph, state.graph, chooser):
            dead.pop(where, None)
        elif where not in dead:
            copy = graph.instance(where)
            said = f"{copy.name} {copy.version} would stay" if copy is not None else ""
            dead[where] = Dead(reason="constraint-conflict", detail=said)
    return Decision(bundles=state.bundles(), dead=dead, graph=state.graph)


def _take_all(state: "_State", options: Iterable[Option], dead: dict[str, Dead]) -> Step[None]:
    for option in sorted(options, key=_order):
        refused = yield from state.take(option)
        if refused is None:
            continue
        # What others decided stands in its way: look again from where they left the unit.
        again = yield from state.climb(option.where)
        if isinstance(again, Dead):
            dead[option.where] = again


def _order(option: Option) -> tuple[object, ...]:
    return (option.cost.key, option.where)


def _without_redundant(
    options: Iterable[Option], vulnerable: Sequence[str], chooser: Chooser, base: Graph
) -> list[Option]:
    """One option for the same changes, and none whose copies others make safe as well; the dearest go first."""
    distinct: dict[tuple[Change, ...], Option] = {}
    for option in options:
        distinct.setdefault(option.changes, option)
    kept = sorted(distinct.values(), key=_order)
    covers = {option.where: _covered(option, vulnerable, chooser, base) for option in kept}
    for option in sorted(kept, key=_order, reverse=True):
        others = [
            other for other in kept if other is not option and (option.legal.needs_tool or not other.legal.needs_tool)
        ]
        if covers[option.where] <= {where for other in others for where in covers[other.where]}:
            kept = [other for other in kept if other is not option]
    return kept


def _covered(option: Option, vulnerable: Sequence[str], chooser: Chooser, base: Graph) -> frozenset[str]:
    moved = {move.where for move in option.legal.moved}
    return frozenset(
        where for where in vulnerable if where in moved and is_gone(where, base, option.legal.graph, chooser)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """One option as it was taken."""

    option: Option
    legal: Legal
    """What it came to when it was taken, after the steps before it."""
    touched: frozenset[str]
    """Copies and texts that it changes or relies on having been changed."""
    stands_alone: bool
    """Whether it comes to the same without the steps before it."""
    is_apart: bool = False
    """Only a tool can finish it: it repeats what it needs of others, so that those do not wait for the tool."""

    @property
    def result(self) -> Legal:
        """What it comes to, without what the steps before it leave open."""
        return self.option.legal if self.stands_alone or self.is_apart else self.legal


@dataclass(slots=True)
class _State:
    """The unit on its way from the base to the decision."""

    base: Graph
    graph: Graph
    chooser: Chooser
    own: Mapping[str, Strategy]
    """Vulnerable copy → the strategy of the way that was found for itself."""
    steps: list[_Step] = field(default_factory=list)

    def climb(self, where: str) -> Step[Dead | None]:
        """Finds and takes a way from the present state; None when the copy is safe now."""
        copy = self.graph.instance(where)
        if copy is None or self.chooser.is_safe(copy.name, copy.version):
            return None
        found = yield from Ladder(graph=self.graph, chooser=self.chooser).climb(where)
        if isinstance(found, Dead):
            return found
        if self.graph is not self.base:
            # Found on what others left; on the unit as it was it may not be there.
            alone = yield from self.base.simulate(found.changes, self.chooser)
            if isinstance(alone, Blocked):
                yield from self._take_on_top(found)
                return None
            found = replace(found, legal=alone)
        refused = yield from self.take(found)
        return Dead(reason=refused.reason, detail=str(refused)) if refused is not None else None

    def take(self, option: Option) -> Step[Blocked | None]:
        """Makes the option's changes on the present state; the obstacle when that is not possible any more."""
        legal = option.legal
        if self.graph is not self.base:
            verdict = yield from self.graph.simulate(self._rebased(option.changes), self.chooser)
            if isinstance(verdict, Blocked):
                return verdict
            legal = verdict
        touched = _touched(legal) | _touched(option.legal)
        if option.legal.is_partial and _agrees(option.legal, legal.graph):
            touched = _touched(option.legal)
            self._add(_Step(option=option, legal=legal, touched=frozenset(touched), stands_alone=False, is_apart=True))
            return None
        differing = set(legal.moved) ^ set(option.legal.moved)
        if differing:
            # What others moved makes it come out differently: it relies on them.
            packages = {move.package for move in differing}
            touched |= {move.where for step in self.steps for move in step.legal.moved if move.package in packages}
        self._add(_Step(option=option, legal=legal, touched=frozenset(touched), stands_alone=not differing))
        return None

    def _take_on_top(self, option: Option) -> Step[None]:
        """Takes an option that only what others did makes possible: those who moved its neighbours, else all of them."""
        near = {move.where for move in option.legal.moved}
        for where in sorted(near):
            if self.base.instance(where) is not None:
                near |= {one.where for one in (yield from self.base.dependents(where)) if one.where is not None}
        moved = {move.where for step in self.steps for move in step.legal.moved}
        touched = _touched(option.legal) | (near & moved or moved)
        self._add(_Step(option=option, legal=option.legal, touched=frozenset(touched), stands_alone=False))

    def _add(self, step: _Step) -> None:
        self.graph = step.legal.graph
        self.steps.append(step)

    def _rebased(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Without what other steps have done already, or have done better."""
        kept: list[Change] = []
        dropped: set[str] = set()
        for change in changes:
            if isinstance(change, SetVersion) and not self._is_ahead(change):
                dropped.add(change.where)
            else:
                kept.append(change)
        done = {change for step in self.steps for change in step.option.changes if not isinstance(change, SetVersion)}
        return tuple(
            change
            for change in kept
            if change not in done and not (isinstance(change, SetConstraint) and change.constraint.target in dropped)
        )

    def _is_ahead(self, change: SetVersion) -> bool:
        copy = self.graph.instance(change.where)
        if copy is None:
            return False
        scheme = self.chooser.scheme
        order = scheme.compare(scheme.parse(change.version), scheme.parse(copy.version))
        return order != -1 and change.version != copy.version

    def bundles(self) -> tuple[Bundle, ...]:
        """The steps, those that touch the same thing in one."""
        whole = [_bundle(steps, self.own) for steps in _joined([step for step in self.steps if not step.is_apart])]
        moved = frozenset(planned.moved.where for bundle in whole for planned in bundle.moves)
        apart = [_bundle(steps, self.own) for steps in _joined([step for step in self.steps if step.is_apart])]
        return (*whole, *(replace(bundle, repeats=moved) for bundle in apart))


def _agrees(legal: Legal, graph: Graph) -> bool:
    """Whether everything that `legal` moves is in `graph` what it makes of it."""
    for move in legal.moved:
        copy = graph.instance(move.where)
        if (copy.version if copy is not None else None) != move.to_version:
            return False
    return True


def _touched(legal: Legal) -> set[str]:
    return {move.where for move in legal.moved} | {f"{edit.path}\0{edit.at}" for edit in legal.edits}


def _joined(steps: Sequence[_Step]) -> list[list[_Step]]:
    groups: list[tuple[set[str], list[_Step]]] = []
    for step in steps:
        touched, members = set(step.touched), [step]
        apart = []
        for group in groups:
            if group[0] & touched:
                touched |= group[0]
                members = [*group[1], *members]
            else:
                apart.append(group)
        groups = [*apart, (touched, members)]
    return [sorted(members, key=steps.index) for _, members in groups]


def _bundle(steps: Sequence[_Step], own: Mapping[str, Strategy]) -> Bundle:
    moves: dict[str, PlannedMove] = {}
    edits: dict[tuple[str, str], Edit] = {}
    results = [step.result if len(steps) == 1 or step.is_apart else step.legal for step in steps]
    for step, legal in zip(steps, results, strict=True):
        for moved in legal.moved:
            _add_move(moves, _planned(step.option, moved, own))
        for edit in legal.edits:
            known = edits.get((edit.path, edit.at))
            edits[edit.path, edit.at] = edit if known is None else replace(edit, from_text=known.from_text)
    warnings = {text for step in steps for text in step.option.warnings}
    warnings |= {text for legal in results for text in legal.warnings}
    return Bundle(
        moves=tuple(moves[where] for where in sorted(moves)),
        edits=tuple(edits[key] for key in sorted(edits)),
        strategies=tuple(dict.fromkeys(step.option.strategy for step in steps)),
        needs_tool=any(legal.needs_tool for legal in results),
        warnings=tuple(sorted(warnings)),
    )


def _planned(option: Option, moved: Moved, own: Mapping[str, Strategy]) -> PlannedMove:
    """A move with its strategy: that of the option for what it was made for, `lock-in-range` for what moves along.

    Another vulnerable copy that the option takes care of has the option's too,
    unless it could have moved within its range by itself.
    """
    asked = {change.where for change in option.changes if isinstance(change, SetVersion)} | {option.where}
    package = next((one.package for one in option.legal.moved if one.where == option.where), None)
    is_leading = moved.where in asked or moved.package == package or moved.where in own
    strategy: Strategy = option.strategy if is_leading else "lock-in-range"
    if moved.where not in asked and own.get(moved.where) == "lock-in-range":
        strategy = "lock-in-range"
    set_to = {change.where for change in option.changes if isinstance(change, SetVersion)}
    return PlannedMove(moved=moved, strategy=strategy, is_leading=is_leading, is_asked=moved.where in set_to)


def _add_move(moves: dict[str, PlannedMove], new: PlannedMove) -> None:
    """Puts a move behind those before it of the same copy."""
    known = moves.get(new.moved.where)
    if known is None:
        moves[new.moved.where] = new
        return
    from_version, to_version = known.moved.from_version, new.moved.to_version
    if from_version is None and to_version is None:
        del moves[new.moved.where]
        return
    leading = new if new.is_leading and not known.is_leading else known
    moves[new.moved.where] = replace(leading, moved=replace(new.moved, from_version=from_version))
