"""Where copies lie and who resolves to them: the state of one unit that changes are simulated on.

Two layouts cover all JavaScript lockfiles. A `TreeLayout` (npm, bun) looks
names up through nested folders, so a new copy can shadow others. A
`LinkLayout` (pnpm, yarn) knows for every requirement the copy it leads to, so
any number of versions can stand side by side.

`State` is an overlay over the unit as it was read: copying it is cheap, and
what it does not mention is as in the lockfile.
"""

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dependfix_core.ecosystems.npm.asks import (
    OPTIONAL_KINDS,
    Ask,
    Wanted,
    ask_of_constraint,
    ask_of_edge,
    wanted,
)
from dependfix_core.ecosystems.npm.bun_lock import place_above
from dependfix_core.ecosystems.npm.forced import forced, forcing, reference_of, with_value
from dependfix_core.ecosystems.npm.npm_lock import folder_above, name_at
from dependfix_core.model.lock import Constraint, Instance, LockUnit, Override, SourceKind
from dependfix_core.model.records import Release

LinkKey = tuple[str, str]
_MAX_ABOVE: Final = 12
"""How many levels above a copy are searched for its peers."""


@dataclass(frozen=True, slots=True)
class Node:
    """One copy in a state."""

    where: str
    name: str
    """Real package."""
    version: str
    asks: tuple[Ask, ...]
    knows_asks: bool = True
    """False when its record is not known: then `asks` are those of the version before, and only a guess."""
    release: Release | None = None
    """Of a copy that moved or came in."""
    instance: Instance | None = None
    """Of a copy that is in the lockfile."""
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """One requirement together with who has it."""

    asker: str | None
    """The copy; None for a manifest."""
    ask: Ask
    constraint: Constraint | None = None

    @property
    def is_peer(self) -> bool:
        """Whether the asker only wants it beside itself."""
        return self.ask.is_peer

    @property
    def may_be_missing(self) -> bool:
        """Whether nothing breaks when it is not there."""
        return self.ask.kind in OPTIONAL_KINDS


@dataclass(slots=True)
class State:
    """What is not as in the lockfile. Only the simulation that made it may write to it."""

    nodes: dict[str, Node | None] = field(default_factory=dict)
    """Copies that changed or came in; None for one that went."""
    links: dict[LinkKey, str | None] = field(default_factory=dict)
    """Link layouts: requirement → the copy that it leads to now."""
    raised: dict[tuple[str, str], str] = field(default_factory=dict)
    """(path, at) of a declaration → its text."""
    forced: dict[tuple[str, str], str] = field(default_factory=dict)
    """(path, at) of an override that is there → its value."""
    added: tuple[Override, ...] = ()
    """New overrides."""
    askers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name → the copies in `nodes` that ask for it, or did."""

    def copy(self) -> "State":
        """A state that can be written to without touching this one."""
        return State(
            dict(self.nodes), dict(self.links), dict(self.raised), dict(self.forced), self.added, dict(self.askers)
        )

    def put(self, where: str, node: Node | None) -> None:
        """Lets a copy be there, or be gone."""
        self.nodes[where] = node
        for ask in node.asks if node is not None else ():
            for name in {ask.name, ask.package}:
                known = self.askers.get(name, ())
                if where not in known:
                    self.askers[name] = (*known, where)


@dataclass(frozen=True, slots=True)
class Counting:
    """A requirement as it counts, and what made it so."""

    want: Wanted
    override: Override | None = None
    reference: Constraint | None = None
    """The declaration that an override points to (`$name`), in its place."""


class Layout(ABC):
    """The unit as it was read, indexed, and the rules of its layout."""

    def __init__(self, unit: LockUnit) -> None:
        self.unit = unit
        self._nodes: dict[str, Node] = {}
        self._copies: dict[str, list[str]] | None = None
        self._askers: dict[str, list[str]] | None = None
        self._declared: dict[str | None, list[Link]] | None = None
        self._parents: dict[str, list[str]] | None = None

    # Copies.

    def node(self, state: State, where: str) -> Node | None:
        """The copy at `where`."""
        if where in state.nodes:
            return state.nodes[where]
        found = self._nodes.get(where)
        if found is None:
            instance = self.unit.instances.get(where)
            if instance is None:
                return None
            found = self._nodes[where] = self._read(instance)
        return found

    def exists(self, state: State, where: str) -> bool:
        """Whether there is a copy at `where`."""
        if where in state.nodes:
            return state.nodes[where] is not None
        return where in self.unit.instances

    def copies(self, state: State, package: str) -> list[Node]:
        """The copies of a package, in file order, new ones last."""
        if self._copies is None:
            self._copies = {}
            for where, instance in self.unit.instances.items():
                self._copies.setdefault(instance.name, []).append(where)
        found = [self.node(state, where) for where in self._copies.get(package, ())]
        found += [
            node
            for where, node in state.nodes.items()
            if node is not None and node.name == package and where not in self.unit.instances
        ]
        return [node for node in found if node is not None]

    # Requirements.

    def own_links(self, node: Node) -> list[Link]:
        """What a copy asks for, by name."""
        return [Link(asker=node.where, ask=ask) for ask in sorted(node.asks, key=lambda ask: ask.name)]

    def declared(self, state: State, name: str | None = None) -> list[Link]:
        """The requirements of manifests, with their present texts; with `name` those for that name, real or alias."""
        if self._declared is None:
            links = [Link(asker=None, ask=ask_of_constraint(one), constraint=one) for one in self.unit.constraints]
            self._declared = {None: links}
            for link in links:
                for known in {link.ask.name, link.ask.package}:
                    self._declared.setdefault(known, []).append(link)
        found = self._declared.get(name, [])
        return [_with_text(link, state.raised) for link in found] if state.raised else found

    def asking(self, state: State, name: str) -> list[Link]:
        """All requirements for `name`, which may be a real name or an alias, those of manifests first."""
        if self._askers is None:
            self._askers = {}
            for where, instance in self.unit.instances.items():
                names = {edge.name for edge in instance.edges}
                names |= {
                    self.unit.instances[edge.target].name
                    for edge in instance.edges
                    if edge.target is not None and edge.target in self.unit.instances
                }
                for asked in names:
                    self._askers.setdefault(asked, []).append(where)
        found = list(self.declared(state, name))
        nodes = [self.node(state, where) for where in self._askers.get(name, ()) if where not in state.nodes]
        nodes += [state.nodes.get(where) for where in state.askers.get(name, ())]
        for node in nodes:
            if node is not None:
                found += [Link(node.where, ask) for ask in node.asks if name in (ask.name, ask.package)]
        return found

    def links_to(self, state: State, where: str) -> list[Link]:
        """All requirements that lead to the copy at `where`, those of manifests first."""
        return [link for link in self.asking(state, self.asked_name(state, where)) if self.target(state, link) == where]

    def counting(self, state: State, link: Link) -> Counting:
        """The requirement after overrides. Its text has to be known, or counts as not known."""
        overrides = self.overrides(state)
        if overrides:
            asker = self.node(state, link.asker) if link.asker is not None else None
            who = (asker.name, asker.version) if asker is not None else ("", "")
            override = forcing(
                self.unit,
                overrides,
                link.ask,
                who,
                lambda parent: link.asker is not None and parent in self._names_above(link.asker),
                declared=link.asker is None,
            )
            if override is not None:
                declared = [
                    replace(one, requirement=state.raised.get((one.path, one.at), one.requirement))
                    for one in self.unit.constraints
                ]
                reference = reference_of(override, declared)
                want = forced(override, link.ask, declared)
                return Counting(want, None if reference is not None else override, reference)
        return Counting(wanted(link.ask.package, link.ask.text))

    def overrides(self, state: State) -> tuple[Override, ...]:
        """Those that count now."""
        if not state.forced and not state.added:
            return self.unit.overrides
        there = (
            with_value(one, state.forced[one.path, one.at]) if (one.path, one.at) in state.forced else one
            for one in self.unit.overrides
        )
        return (*there, *state.added)

    @abstractmethod
    def asked_name(self, state: State, where: str) -> str:
        """The name by which requirements for the copy are found."""

    @abstractmethod
    def target(self, state: State, link: Link) -> str | None:
        """The copy that a requirement leads to."""

    @abstractmethod
    def shadowed(self, state: State, where: str) -> str | None:
        """The copy that would be found if the one at `where` were not there."""

    @abstractmethod
    def alternatives(self, state: State, link: Link) -> list[Node]:
        """Copies that the requirement could be made to lead to."""

    @abstractmethod
    def place(self, state: State, link: Link, version: str, asks: Sequence[Ask] = ()) -> str | None:
        """Where a new copy of `version` for the requirement would go; None when there is no room for it.

        `asks` are its own requirements: beside its peers is better than above them.
        """

    @abstractmethod
    def connect(self, state: State, link: Link, where: str) -> None:
        """Makes the requirement lead to `where`, in layouts where that is written down."""

    def _names_above(self, where: str) -> frozenset[str]:
        """Names of everything that leads to the copy in the lockfile."""
        if self._parents is None:
            self._parents = {}
            for instance in self.unit.instances.values():
                for edge in instance.edges:
                    if edge.target is not None:
                        self._parents.setdefault(edge.target, []).append(instance.where)
        seen: set[str] = set()
        waiting = [where]
        while waiting:
            for parent in self._parents.get(waiting.pop(), ()):
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return frozenset(self.unit.instances[one].name for one in seen)

    def _read(self, instance: Instance) -> Node:
        instances = self.unit.instances
        asks = (
            ask_of_edge(edge, instances.get(edge.target) if edge.target is not None else None)
            for edge in instance.edges
        )
        # A peer that several dependents provide differently stands there once for each.
        return Node(
            where=instance.where,
            name=instance.name,
            version=instance.version,
            asks=tuple(dict.fromkeys(asks)),
            instance=instance,
            is_optional=instance.optional,
        )


def _with_text(link: Link, raised: Mapping[tuple[str, str], str]) -> Link:
    assert link.constraint is not None
    text = raised.get((link.constraint.path, link.constraint.at))
    return link if text is None else replace(link, ask=ask_of_constraint(link.constraint, text))


class TreeLayout(Layout):
    """Names are looked up from the asker's folder up to the root."""

    def __init__(self, unit: LockUnit) -> None:
        super().__init__(unit)
        self._is_bun = unit.format == "bun-lock"
        self._folders: dict[str, str] = {}
        self._lock_folder = posixpath.dirname(unit.unit)

    def asked_name(self, state: State, where: str) -> str:
        """See `Layout.asked_name`."""
        del state
        if self._is_bun:
            return where[len(place_above(where)) :].lstrip("/")
        return name_at(where)

    def target(self, state: State, link: Link) -> str | None:
        """See `Layout.target`."""
        return self._lookup(state, self._start(link), link.ask.name)

    def shadowed(self, state: State, where: str) -> str | None:
        """See `Layout.shadowed`."""
        holder = self._above(where)
        return self._lookup(state, self._above(holder), self.asked_name(state, where)) if holder else None

    def alternatives(self, state: State, link: Link) -> list[Node]:
        """Only the place that the lookup finds."""
        found = self.target(state, link)
        node = self.node(state, found) if found is not None else None
        return [node] if node is not None else []

    def place(self, state: State, link: Link, version: str, asks: Sequence[Ask] = ()) -> str | None:
        """The highest folder without a copy of that name where it shadows nobody and answers nobody it should not.

        One where its peers do not fit is taken only when there is no other.
        """
        peers = [ask for ask in asks if ask.is_peer]
        fitting = self._place(state, link, version, peers) if peers else None
        return fitting if fitting is not None else self._place(state, link, version, ())

    def _place(self, state: State, link: Link, version: str, peers: Sequence[Ask]) -> str | None:
        name = link.ask.name
        others = [one for one in self.asking(state, name) if one != link and one.ask.name == name]
        best: str | None = None
        here = self._start(link)
        while True:
            candidate = self._join(here, name)
            if self.exists(state, candidate):
                return best
            if not self._disturbs(state, here, version, others):
                if self._is_beside(state, candidate, peers):
                    best = candidate
            elif best is not None:
                return best
            if not here:
                return best
            here = self._above(here)

    def _is_beside(self, state: State, where: str, peers: Iterable[Ask]) -> bool:
        """Whether what lies beside `where`, or above, is what `peers` want; what is nowhere may still come."""
        for link in (Link(where, ask) for ask in peers):
            target = self.target(state, link)
            node = self.node(state, target) if target is not None else None
            if node is not None and not self.counting(state, link).want.is_met_by(node.version):
                return False
        return True

    def connect(self, state: State, link: Link, where: str) -> None:
        """Nothing to write: places decide."""

    def _disturbs(self, state: State, folder: str, version: str, others: Iterable[Link]) -> bool:
        """Whether a copy in `folder` would answer requirements that it does not meet, or that nobody answered so far."""
        for link in others:
            start = self._start(link)
            if not self._is_at_or_below(start, folder):
                continue
            found = self._lookup(state, start, link.ask.name)
            if found is not None and self._is_at_or_below(self._above(found), folder) and self._above(found) != folder:
                continue  # It finds another copy on its way up.
            if found is None and link.may_be_missing:
                return True
            if not self.counting(state, link).want.is_met_by(version):
                return True
        return False

    def _is_at_or_below(self, here: str, folder: str) -> bool:
        while here != folder:
            if not here or here == "..":
                return False
            here = self._above(here)
        return True

    def _start(self, link: Link) -> str:
        """Where the lookup of a requirement begins."""
        if link.asker is not None:
            # A peer is looked for beside the asker, never inside of it.
            return self._above(link.asker) if link.is_peer and not self._is_bun else link.asker
        assert link.constraint is not None
        path = link.constraint.declared_in or link.constraint.path
        known = self._folders.get(path)
        if known is None:
            relative = posixpath.relpath(posixpath.dirname(path) or ".", self._lock_folder or ".")
            known = self._folders[path] = self._member("" if relative == "." else relative)
        return known

    def _member(self, folder: str) -> str:
        """Where a member's requirements start: bun names it by its package, npm by its folder."""
        if self._is_bun and folder:
            for where, instance in self.unit.instances.items():
                if instance.source.kind is SourceKind.WORKSPACE and instance.source.text.endswith(f":{folder}"):
                    return where
            return ""
        return folder

    def _lookup(self, state: State, start: str, name: str) -> str | None:
        here = start
        while True:
            candidate = self._join(here, name)
            if self.exists(state, candidate):
                return candidate
            if not here or here == "..":
                return None
            here = self._above(here)

    def _join(self, here: str, name: str) -> str:
        if self._is_bun:
            return f"{here}/{name}" if here else name
        return f"{here}/node_modules/{name}" if here else f"node_modules/{name}"

    def _above(self, here: str) -> str:
        return place_above(here) if self._is_bun else folder_above(here)


class LinkLayout(Layout):
    """Every requirement has the copy that it leads to written down."""

    def __init__(self, unit: LockUnit) -> None:
        super().__init__(unit)
        self._by_descriptor = unit.format in ("yarn-classic", "yarn-berry")
        self._base: dict[LinkKey, str] | None = None

    def asked_name(self, state: State, where: str) -> str:
        """See `Layout.asked_name`."""
        node = self.node(state, where)
        return node.name if node is not None else ""

    def target(self, state: State, link: Link) -> str | None:
        """See `Layout.target`."""
        key = self._key(state, link)
        found = state.links[key] if key in state.links else self._known().get(key)
        if found is None and link.is_peer and self._is_new_peer(state, link):
            return self._provided(state, link)
        return found if found is not None and self.exists(state, found) else None

    def _is_new_peer(self, state: State, link: Link) -> bool:
        """Whether the asker came in or moved, and did not have this peer in the lockfile."""
        if link.asker is None or state.nodes.get(link.asker) is None:
            return False
        instance = self.unit.instances.get(link.asker)
        return instance is None or all(edge.name != link.ask.name for edge in instance.edges)

    def _provided(self, state: State, link: Link) -> str | None:
        """What those above the asker, the nearest first, have under the peer's name."""
        name = link.ask.name
        level, seen = [link.asker], {link.asker}
        for _ in range(_MAX_ABOVE):
            above: list[str | None] = []
            for place in level:
                for asking in self.links_to(state, place) if place is not None else ():
                    found = self._beside(state, asking, name)
                    if found is not None:
                        return found
                    if asking.asker not in seen:
                        seen.add(asking.asker)
                        above.append(asking.asker)
            level = above
        return None

    def _beside(self, state: State, link: Link, name: str) -> str | None:
        """What the one who has the requirement `link` has under another name."""
        if link.asker is None:
            assert link.constraint is not None
            home = link.constraint.declared_in or link.constraint.path
            declared = [
                one
                for one in self.declared(state, name)
                if one.constraint is not None and (one.constraint.declared_in or one.constraint.path) == home
            ]
            return next((found for one in declared if (found := self.target(state, one)) is not None), None)
        node = self.node(state, link.asker)
        if node is None:
            return None
        if node.name == name:
            return node.where
        own = [Link(node.where, ask) for ask in node.asks if ask.name == name and not ask.is_peer]
        return next((found for one in own if (found := self.target(state, one)) is not None), None)

    def links_to(self, state: State, where: str) -> list[Link]:
        """See `Layout.links_to`. A peer leads to every copy that one of its contexts provides."""
        found = []
        for link in self.asking(state, self.asked_name(state, where)):
            if self.target(state, link) == where:
                found.append(link)
            elif link.is_peer and link.asker is not None and link.asker not in state.nodes:
                edges = self.unit.instances[link.asker].edges
                if any(edge.target == where and edge.name == link.ask.name for edge in edges):
                    found.append(link)
        return found

    def shadowed(self, state: State, where: str) -> str | None:
        """Nothing shadows anything here."""
        del state, where
        return None

    def alternatives(self, state: State, link: Link) -> list[Node]:
        """Where it leads now, then all copies of the package."""
        package = self.counting(state, link).want.package
        found = self.target(state, link)
        nodes = self.copies(state, package)
        return sorted(nodes, key=lambda node: node.where != found)

    def place(self, state: State, link: Link, version: str, asks: Sequence[Ask] = ()) -> str | None:
        """The key of the new entry."""
        del asks
        want = self.counting(state, link).want
        if not self._by_descriptor:
            return f"{want.package}@{version}"
        text = want.text.removeprefix("npm:")
        protocol = "npm:" if self.unit.format == "yarn-berry" or want.package != link.ask.name else ""
        real = f"{want.package}@" if want.package != link.ask.name and f"{want.package}@" not in text else ""
        return f"{link.ask.name}@{protocol}{real}{text}"

    def connect(self, state: State, link: Link, where: str) -> None:
        """See `Layout.connect`."""
        state.links[self._key(state, link)] = where

    def _key(self, state: State, link: Link) -> LinkKey:
        if not self._by_descriptor:
            if link.asker is not None:
                return (link.asker, link.ask.name)
            assert link.constraint is not None
            return (f"{link.constraint.declared_in or link.constraint.path} {link.constraint.group}", link.ask.name)
        # All who write the same descriptor share one entry.
        if link.is_peer and link.asker is not None:
            return (f"{link.asker} peers", link.ask.name)
        want = self.counting(state, link).want
        return (f"{link.ask.name} {want.package}", want.text.removeprefix("npm:").removeprefix(f"{want.package}@"))

    def _known(self) -> dict[LinkKey, str]:
        """Where the lockfile lets each requirement lead."""
        if self._base is None:
            lockfile = State()
            base: dict[LinkKey, str] = {}
            self._base = base
            for instance in self.unit.instances.values():
                node = self.node(lockfile, instance.where)
                assert node is not None
                for edge in instance.edges:
                    if edge.target is not None:
                        ask = ask_of_edge(edge, self.unit.instances.get(edge.target))
                        base.setdefault(self._key(lockfile, Link(instance.where, ask)), edge.target)
            for constraint in self.unit.constraints:
                if constraint.target is not None:
                    link = Link(None, ask_of_constraint(constraint), constraint)
                    base.setdefault(self._key(lockfile, link), constraint.target)
        return self._base


def layout_of(unit: LockUnit) -> Layout:
    """The layout of the unit's format."""
    return TreeLayout(unit) if unit.format in ("npm-lock", "bun-lock") else LinkLayout(unit)
