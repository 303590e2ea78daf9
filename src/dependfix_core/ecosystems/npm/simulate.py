"""What do changes of a JavaScript lock come to? One simulation: apply, let everything follow, check, clean up.

Requirements that are not met any more are settled breadth first, as npm does:
by a copy that is there, by moving the copy along, by a new copy. What the
registry could not be asked about is left to the package manager
(`needs_tool`), what cannot be settled blocks.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Candidates,
    Change,
    Moved,
    NoCandidate,
    SetConstraint,
    SetOverride,
    SetVersion,
)
from dependfix_core.ecosystems.npm.asks import Wanted, asks_of_release
from dependfix_core.ecosystems.npm.facts import Facts
from dependfix_core.ecosystems.npm.layout import Counting, Layout, Link, Node, State
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.model.lock import SourceKind
from dependfix_core.model.plan import Edit, RefusalReason
from dependfix_core.model.records import Release
from dependfix_core.model.steps import Step, together
from dependfix_core.versions import Unparsable, Version, parse_requirement, scheme_for

_MAX_RETRIES: Final = 8
_MAX_SETTLED: Final = 4_000
_MAX_UPWARDS: Final = 2_000
_MAX_LISTED: Final = 5
_ALWAYS_BY_TOOL: Final = {"yarn-berry": "yarn computes the checksums"}

LinkId = tuple[str | None, str]


class Simulation:
    """One set of changes on its way to a verdict."""

    def __init__(self, layout: Layout, state: State, facts: Facts, candidates: Candidates) -> None:
        self._layout = layout
        self._facts = facts
        self._unit = layout.unit
        self.state = state.copy()
        self._before = state
        self._candidates = candidates
        self._set: dict[str, SetVersion] = {}
        self._queue: deque[Link] = deque()
        self._pending: set[LinkId] = set()
        self._replaced: set[str] = set()
        """Places whose copy gave way to another once."""
        self._left: list[str] = []
        """Copies that lost a dependent."""
        self._open: set[LinkId] = set()
        """Requirements that are left to the package manager."""
        self._unrecorded: set[str] = set()
        """Packages whose registry record is missing."""
        self._unjudged: set[str] = set()
        """Dependents whose requirements are not known."""
        self._added = 0
        self._in_place_of: dict[str, str] = {}
        """Place of a copy that came in → the version that it replaces, empty when it replaces none."""
        self.needs_tool = False
        self.warnings: set[str] = set()
        self.edits: list[Edit] = []

    def run(self, changes: Sequence[Change]) -> Step[Blocked | None]:
        """The first obstacle, or None; afterwards `state`, `edits` and the rest say what came out."""
        self._apply_declared(changes)
        versions = [change for change in changes if isinstance(change, SetVersion)]
        self._set = {change.where: change for change in versions}
        for change in versions:
            blocked = yield from self._apply_version(change)
            if blocked is not None:
                return blocked
        for change in sorted(versions, key=lambda one: (self._depth(one.where), one.where)):
            self._enqueue_around(change.where)
        blocked = yield from self._settle_all()
        if blocked is not None:
            return blocked
        self._remove_orphans()
        blocked = yield from self._check_again()
        if blocked is None:
            self._finish()
        return blocked

    @property
    def is_partial(self) -> bool:
        """Whether requirements were left to the package manager, or what something asks for is not known."""
        return bool(self._open or self._unrecorded or self._unjudged)

    def moved(self) -> tuple[Moved, ...]:
        """Everything that is not as it was before, by place."""
        found = []
        for where, node in self.state.nodes.items():
            before = self._layout.node(self._before, where)
            if node is None and before is None:
                continue
            if node is None or before is None or node.version != before.version:
                known = node if node is not None else before
                assert known is not None
                found.append(
                    Moved(
                        where=where,
                        package=known.name,
                        from_version=before.version if before is not None else None,
                        to_version=node.version if node is not None else None,
                    )
                )
        return tuple(sorted(found, key=lambda one: one.where))

    # Changes.

    def _apply_declared(self, changes: Sequence[Change]) -> None:
        """Declarations and overrides; whoever they concern is settled anew."""
        dirty: dict[tuple[str, str], None] = {}
        packages: list[str] = []
        for change in changes:
            match change:
                case SetConstraint(constraint=constraint, requirement=text):
                    key = (constraint.path, constraint.at)
                    before = self.state.raised.get(key, constraint.requirement)
                    if before != text:
                        self.state.raised[key] = text
                        dirty[key] = None
                        packages += self._force_catalog(key, text)
                        kind = "catalog" if constraint.via else "constraint"
                        self.edits.append(Edit(path=key[0], at=key[1], from_text=before, to_text=text, kind=kind))
                case SetOverride(override=override, value=value):
                    key = (override.path, override.at)
                    before = self.state.forced.get(key, override.value)
                    if before != value:
                        self.state.forced[key] = value
                        packages.append(override.package)
                        kind = "catalog" if override.via else "override"
                        self.edits.append(Edit(path=key[0], at=key[1], from_text=before, to_text=value, kind=kind))
                        if override.via:
                            # Declarations that point to the same entry of the catalog read it as well.
                            self.state.raised[key] = read_specifier(override.package, value).requirement
                            dirty[key] = None
                case AddOverride(override=override):
                    self.state.added = (*self.state.added, override)
                    packages.append(override.package)
                    self.edits.append(
                        Edit(
                            path=override.path, at=override.at, from_text=None, to_text=override.value, kind="override"
                        )
                    )
                case SetVersion():
                    pass
        for link in self._layout.declared(self.state) if dirty else ():
            assert link.constraint is not None
            if (link.constraint.path, link.constraint.at) in dirty:
                self._enqueue(link)
        for package in packages:
            for link in self._layout.asking(self.state, package):
                # A descriptor that reads otherwise now has lost its entry.
                old = self._layout.target(self._before, link) if self._is_old(link) else None
                if old is not None:
                    self._left.append(old)
                self._enqueue(link)

    def _force_catalog(self, key: tuple[str, str], text: str) -> list[str]:
        """Lets overrides that point to a raised entry of a catalog read it; the packages that they force."""
        pointing = [one for one in self._unit.overrides if one.via and (one.path, one.at) == key]
        for one in pointing:
            specifier = read_specifier(one.package, one.value)
            self.state.forced[key] = one.value[: specifier.start] + text
        return [one.package for one in pointing]

    def _apply_version(self, change: SetVersion) -> Step[Blocked | None]:
        node = self._layout.node(self.state, change.where)
        if node is None:
            return Blocked(reason="constraint-conflict", detail=f"{change.where} is not there any more")
        if node.version == change.version:
            return None
        obstacle = self._immovable(node)
        if obstacle is not None:
            return obstacle
        return (yield from self._move(node, change.version))

    def _immovable(self, node: Node) -> Blocked | None:
        reason: RefusalReason | None = None
        instance = node.instance
        patched = self._unit.settings.get("patched", {})
        if instance is not None and instance.bundled:
            reason = "bundled"
        elif instance is not None and (instance.patched or instance.source.kind is SourceKind.PATCH):
            reason = "patched-dependency"
        elif instance is not None and instance.source.kind is not SourceKind.REGISTRY:
            reason = "non-registry-source"
        elif f"{node.name}@{node.version}" in patched or node.name in patched:
            reason = "patched-dependency"
        return Blocked(reason=reason, detail=f"{node.where} is fixed there", where=node.where) if reason else None

    def _move(self, node: Node, version: str) -> Step[Blocked | None]:
        """Puts another version in a copy's place."""
        fresh = yield from self._fresh(node.where, node.name, version, node)
        blocked = yield from self._check_release(node, fresh)
        if blocked is not None:
            return blocked
        self._replace(node.where, fresh)
        return None

    def _fresh(self, where: str, name: str, version: str, old: Node | None) -> Step[Node]:
        """A copy of a version, with what it asks for as far as its record is known."""
        release = yield from self._facts.release(name, version)
        asks = asks_of_release(release) if release is not None else None
        if release is None or asks is None:
            self.needs_tool = True
            self._unrecorded.add(f"{name} {version}")
            return Node(
                where=where,
                name=name,
                version=version,
                asks=old.asks if old is not None else (),
                knows_asks=False,
                instance=old.instance if old is not None else None,
                is_optional=old.is_optional if old is not None else False,
            )
        if not release.integrity:
            self.needs_tool = True
            self.warnings.add(f"the registry gives no integrity of {name} {version}")
        if "bundleDependencies" in release.extra or "bundledDependencies" in release.extra:
            self.needs_tool = True
        return Node(
            where=where,
            name=name,
            version=version,
            asks=asks,
            release=release,
            instance=old.instance if old is not None else None,
            is_optional=old.is_optional if old is not None else False,
        )

    def _replace(self, where: str, node: Node | None) -> None:
        old = self._layout.node(self.state, where)
        if old is not None:
            for link in self._layout.own_links(old):
                target = self._layout.target(self.state, link)
                if target is not None:
                    self._left.append(target)
        self.state.put(where, node)

    def _enqueue_around(self, where: str) -> None:
        """Everything that a changed copy asks for, and everybody who asks for it."""
        self._enqueue_own(where)
        for link in self._layout.links_to(self.state, where):
            self._enqueue(link)

    def _enqueue_own(self, where: str) -> None:
        node = self._layout.node(self.state, where)
        if node is not None and node.knows_asks:
            for link in self._layout.own_links(node):
                self._enqueue(link)

    def _enqueue(self, link: Link) -> None:
        key = _id(link)
        if key not in self._pending:
            self._pending.add(key)
            self._queue.append(link)

    def _is_old(self, link: Link) -> bool:
        return link.asker is None or self._layout.exists(self._before, link.asker)

    def _depth(self, where: str) -> int:
        """Steps down from a manifest, at most a few."""
        level, seen, depth = [where], {where}, 0
        while level and depth < 6:
            above: list[str] = []
            for one in level:
                for link in self._layout.links_to(self._before, one):
                    if link.asker is None:
                        return depth
                    if link.asker not in seen:
                        seen.add(link.asker)
                        above.append(link.asker)
            level, depth = above[:50], depth + 1
        return depth

    # Settling.

    def _settle_all(self) -> Step[Blocked | None]:
        for _ in range(_MAX_SETTLED):
            if not self._queue:
                return None
            if self._added > self._candidates.policy.max_new_nodes:
                break
            link = self._queue.popleft()
            self._pending.discard(_id(link))
            if link.asker is not None and not self._layout.exists(self.state, link.asker):
                continue
            blocked = yield from self._settle(link)
            if blocked is not None:
                return blocked
        self.needs_tool = True
        self.warnings.add("more packages come in than are worked out here")
        self._open |= self._pending
        self._queue.clear()
        self._pending.clear()
        return None

    def _settle(self, link: Link) -> Step[Blocked | None]:
        """Sees to it that one requirement is met."""
        counting = yield from self._facts.counting(self.state, link)
        want = counting.want
        target = self._layout.target(self.state, link)
        node = self._layout.node(self.state, target) if target is not None else None
        if want.requirement is None:
            if not want.is_open and node is not None and node.where in self.state.nodes:
                self.needs_tool = True
                self._unjudged.add(self._name(link))
            return None
        if node is not None and (node.name != want.package or want.is_met_by(node.version)):
            return None
        if node is not None and (self._ignores(link) or (yield from self._facts.was_unmet(self._before, link))):
            self.warnings.add(f"unmet before: {self._name(link)} asks {want.package} `{want.text}`")
            return None
        if node is None:
            return (yield from self._settle_missing(link, counting))
        if node.where in self._set and not self._set[node.where].may_split:
            return self._refused(link, counting, node.where)
        if self._bypass(link, want, node):
            return None
        moved = yield from self._settle_by_moving(link, want)
        if not isinstance(moved, NoCandidate):
            return None
        if link.is_peer:
            return self._refused(link, counting, node.where)
        if moved.reason == "metadata-unavailable":
            self._leave_open(link, want)
            return None
        added = yield from self._settle_by_adding(link, want, self._replaced_by(link, node))
        if not isinstance(added, NoCandidate):
            if added != node.where:
                self._left.append(node.where)
            return None
        if added.reason == "metadata-unavailable":
            self._leave_open(link, want)
            return None
        return self._refused(link, counting, node.where, added)

    def _settle_missing(self, link: Link, counting: Counting) -> Step[Blocked | None]:
        want = counting.want
        if link.is_peer and (link.may_be_missing or self._was_missing(link) or not self._brings_peers()):
            return None
        if not link.is_peer and self._reuse(link, want):
            return None
        if not link.is_peer:
            moved = yield from self._settle_by_moving(link, want)
            if not isinstance(moved, NoCandidate):
                return None
            if link.may_be_missing and self._was_missing(link):
                return None
        added = yield from self._settle_by_adding(link, want)
        if not isinstance(added, NoCandidate):
            return None
        if added.reason == "metadata-unavailable":
            self._leave_open(link, want)
            return None
        return None if link.may_be_missing else self._refused(link, counting, "", added)

    def _brings_peers(self) -> bool:
        """Whether this package manager installs peers that nobody asks for otherwise."""
        unit = self._unit
        if unit.tool == "npm":
            return unit.format_version != "1" and not self._ignores_peers()
        if unit.tool == "pnpm":
            return bool(unit.settings.get("lockSettings", {}).get("autoInstallPeers") == "true")
        return unit.tool == "bun"

    def _ignores(self, link: Link) -> bool:
        return link.is_peer and self._ignores_peers()

    def _ignores_peers(self) -> bool:
        """The project tells npm to pass over peers that do not fit."""
        return bool(self._unit.settings.get("flags", {}).get("legacy-peer-deps") == "true")

    def _was_missing(self, link: Link) -> bool:
        """Whether the asker asked for it in vain before."""
        if link.asker is None:
            return False
        before = self._layout.node(self._before, link.asker)
        same = (
            one
            for one in (self._layout.own_links(before) if before is not None else ())
            if one.ask.name == link.ask.name
        )
        return any(self._layout.target(self._before, one) is None for one in same)

    def _leave_open(self, link: Link, want: Wanted) -> None:
        self._open.add(_id(link))
        self.needs_tool = True
        self._unrecorded.add(want.package)

    def _reuse(self, link: Link, want: Wanted) -> bool:
        """Lets the requirement lead to the newest copy that is there and meets it."""
        scheme = scheme_for("npm")
        assert scheme is not None
        fitting: list[tuple[Version, str]] = []
        for node in self._layout.alternatives(self.state, link):
            version = scheme.try_parse(node.version)
            if self._is_unchanged(link) and self._would_lower(link, node):
                continue
            if (
                isinstance(version, Version)
                and want.is_met_by(node.version)
                and self._immovable_source(node)
                and self._candidates.is_safe(node.name, node.version)
            ):
                fitting.append((version, node.where))
        if not fitting:
            return False
        best = max(fitting, key=lambda pair: (pair[0].key, pair[1]))
        self._layout.connect(self.state, link, best[1])
        return True

    def _would_lower(self, link: Link, node: Node) -> bool:
        target = self._layout.target(self.state, link)
        now = self._layout.node(self.state, target) if target is not None else None
        return now is not None and _is_older(node.version, now.version)

    def _is_unchanged(self, link: Link) -> bool:
        """Whether the asker itself is as it was, so that only an override can have changed what it gets."""
        if link.asker is None:
            return False
        return self._layout.node(self.state, link.asker) is self._layout.node(self._before, link.asker)

    def _immovable_source(self, node: Node) -> bool:
        """Whether the copy may serve others: it comes from a registry and not inside another package."""
        instance = node.instance
        return instance is None or (instance.source.kind is SourceKind.REGISTRY and not instance.bundled)

    def _bypass(self, link: Link, want: Wanted, node: Node) -> bool:
        """Another copy that is there already meets it: the one in the way is not needed for this.

        Nobody is led to an older version who does not ask for it himself.
        """
        above = self._layout.shadowed(self.state, node.where)
        if above is None:
            old = node.where
            if not self._reuse(link, want):
                return False
            self._left.append(old)
            return True
        shadow = self._layout.node(self.state, above)
        if shadow is None or not want.is_met_by(shadow.version) or node.where in self._set:
            return False
        if self._is_unchanged(link) and _is_older(shadow.version, node.version):
            return False
        if not self._candidates.is_safe(shadow.name, shadow.version) or shadow.name != node.name:
            return False
        for other in self._layout.links_to(self.state, node.where):
            counts = _id(other) != _id(link) and _id(other) not in self._pending
            if counts and not self._layout.counting(self.state, other).want.is_met_by(shadow.version):
                return False
        self._replace(node.where, None)
        return True

    def _settle_by_moving(self, link: Link, want: Wanted) -> Step[str | NoCandidate]:
        """Moves a copy that is there to the least version that meets this and everybody else who uses it."""
        failed = NoCandidate(reason="constraint-conflict")
        for node in self._layout.alternatives(self.state, link):
            if node.name != want.package or node.where in self._set or self._immovable(node) is not None:
                continue
            held = yield from together(
                [
                    self._facts.counting(self.state, other)
                    for other in self._layout.links_to(self.state, node.where)
                    if _id(other) not in self._pending and _id(other) != _id(link)
                ]
            )
            others = [counting.want for counting in held]
            moved = yield from self._move_along(node, [want, *others], is_alone=not others)
            if not isinstance(moved, NoCandidate):
                self._layout.connect(self.state, link, node.where)
                self._enqueue_own(node.where)
                return node.where
            failed = moved
        return failed

    def _move_along(self, node: Node, wants: Sequence[Wanted], *, is_alone: bool) -> Step[str | NoCandidate]:
        excluded: set[str] = set()
        named = tuple(dict.fromkeys(text for one in wants for text in one.named))
        for _ in range(_MAX_RETRIES):
            version = yield from self._candidates.least(node.name, node.version, _admitting(wants, excluded), named)
            if isinstance(version, NoCandidate):
                return version
            if is_alone and not self._keeps_place(node) and self._candidates.crosses_line(node.version, version):
                return NoCandidate(reason="constraint-conflict", detail=f"{node.where} is replaced by another line")
            blocked = yield from self._move(node, version)
            if blocked is None:
                return version
            excluded.add(version)
        return NoCandidate(reason="constraint-conflict")

    def _keeps_place(self, node: Node) -> bool:
        """Whether a copy's place says nothing of its version, so that any other version may lie there."""
        return self._unit.format in ("npm-lock", "bun-lock") or node.where in self.state.nodes

    def _replaced_by(self, link: Link, node: Node) -> str:
        """The version that goes when the requirement gets a copy of its own: nobody else uses the one it has."""
        others = (_id(one) for one in self._layout.links_to(self.state, node.where))
        return "" if any(one != _id(link) and one not in self._pending for one in others) else node.version

    def _settle_by_adding(self, link: Link, want: Wanted, replaces: str = "") -> Step[str | NoCandidate]:
        """A new copy, as a new install would take it."""
        excluded: set[str] = set()
        failure: Blocked | None = None
        for _ in range(_MAX_RETRIES):
            version = yield from self._candidates.newest(
                want.package, _admitting([want], excluded), want.named, replaces
            )
            if isinstance(version, NoCandidate):
                return NoCandidate(reason=failure.reason, detail=failure.detail) if failure is not None else version
            fresh = yield from self._fresh("", want.package, version, None)
            where = self._layout.place(self.state, link, version, fresh.asks)
            if where is None:
                replaced = yield from self._replace_in_the_way(link, want, version)
                if replaced is not None:
                    return replaced
                return NoCandidate(reason="constraint-conflict", detail=f"there is no place for another {want.package}")
            fresh = replace(fresh, where=where)
            failure = yield from self._check_release(None, fresh)
            if failure is None:
                self._added += 1
                self._in_place_of[where] = replaces
                self.state.put(where, replace(fresh, is_optional=link.may_be_missing))
                self._layout.connect(self.state, link, where)
                for own in self._layout.own_links(fresh):
                    self._enqueue(own)
                return where
            excluded.add(version)
        return NoCandidate(reason="constraint-conflict")

    def _replace_in_the_way(self, link: Link, want: Wanted, version: str) -> Step[str | None]:
        """Takes the place of a copy that lies where nothing else can: whoever still needs that one finds another place.

        This may be an older version: a new release of the asker can ask for one.
        """
        target = self._layout.target(self.state, link)
        node = self._layout.node(self.state, target) if target is not None else None
        if node is None or node.where in self._set or node.where in self._replaced or self._immovable(node) is not None:
            return None
        if node.name != want.package or self._is_unchanged(link):
            return None
        self._replaced.add(node.where)
        if (yield from self._move(node, version)) is not None:
            return None
        self._enqueue_around(node.where)
        return node.where

    # Rules of a single release.

    def _check_release(self, old: Node | None, new: Node) -> Step[Blocked | None]:
        release = new.release
        if release is None:
            return None
        before: Release | None = None
        if old is not None:
            before = old.release if old.release is not None else (yield from self._facts.release(old.name, old.version))
            if before is not None and {a.name for a in old.asks if a.is_peer} != {
                a.name for a in new.asks if a.is_peer
            }:
                self.needs_tool = self.needs_tool or self._unit.format == "pnpm-lock"
        blocked = self._check_runtime(new, release, before)
        if blocked is None:
            blocked = self._check_platform(new, release, before)
        if blocked is None and release.has_install_script and (before is None or not before.has_install_script):
            self.warnings.add(f"install-script: {new.name} {new.version} brings one")
        return blocked

    def _check_runtime(self, new: Node, release: Release, before: Release | None) -> Blocked | None:
        needed = release.requires_runtime.get("node")
        if not needed:
            return None
        declared = self._unit.runtime.get("node")
        old = before.requires_runtime.get("node") if before is not None else None
        said = f"{new.name} {new.version} needs node {needed}"
        if not declared:
            if before is not None and old != needed and not _implies(old or "*", needed):
                self.warnings.add(f"runtime-stricter: {said}, before {old or 'any'}")
            return None
        if _implies(declared, needed):
            return None
        if old is not None and not _implies(declared, old):
            self.warnings.add(f"runtime: {said}, the project declares {declared}")
            return None
        return Blocked(reason="runtime-floor", detail=f"{said}, the project declares {declared}", where=new.where)

    def _check_platform(self, new: Node, release: Release, before: Release | None) -> Blocked | None:
        if before is None or new.is_optional:
            return None
        for what in ("os", "cpu", "libc"):
            now, then = release.platform.get(what, ()), before.platform.get(what, ())
            if now and (not then or not set(then) <= set(now)):
                said = f"{new.name} {new.version} runs on {what} {', '.join(now)} only"
                return Blocked(reason="runtime-floor", detail=said, where=new.where)
        return None

    # Afterwards.

    def _remove_orphans(self) -> None:
        """Copies that lost their last dependent go, and theirs after them."""
        waiting = list(dict.fromkeys(self._left))
        while waiting:
            where = waiting.pop()
            node = self._layout.node(self.state, where)
            if node is None or self._is_reached(where):
                continue
            targets = (self._layout.target(self.state, link) for link in self._layout.own_links(node))
            waiting.extend(one for one in targets if one is not None)
            if self._layout.node(self._before, where) is None:
                del self.state.nodes[where]
            else:
                self.state.put(where, None)

    def _is_reached(self, where: str) -> bool:
        """Whether a manifest leads to the copy; members and links are their own reason."""
        seen, waiting = {where}, [where]
        while waiting and len(seen) < _MAX_UPWARDS:
            here = waiting.pop()
            node = self._layout.node(self.state, here)
            if node is not None and node.instance is not None and node.instance.source.kind in _OWN:
                return True
            for link in self._layout.links_to(self.state, here):
                if link.asker is None:
                    return True
                if link.asker not in seen:
                    seen.add(link.asker)
                    waiting.append(link.asker)
        return bool(waiting)

    def _check_again(self) -> Step[Blocked | None]:
        """Everything around what changed, as it is in the end."""
        for where in sorted(self.state.nodes):
            node = self.state.nodes[where]
            if node is None or node is self._before.nodes.get(where):
                continue
            if not self._is_sound(node) and where not in self._before.nodes:
                return Blocked(reason="constraint-conflict", detail=f"{node.name} {node.version} is not safe")
            links = [*self._layout.links_to(self.state, where), *self._layout.own_links(node)]
            for link in links:
                counting = yield from self._facts.counting(self.state, link)
                target = self._layout.target(self.state, link)
                found = self._layout.node(self.state, target) if target is not None else None
                if found is None or found.name != counting.want.package or _id(link) in self._open:
                    continue
                met = counting.want.is_met_by(found.version) or self._ignores(link)
                if not met and not (yield from self._facts.was_unmet(self._before, link)):
                    return self._refused(link, counting, found.where)
        return None

    def _is_sound(self, node: Node) -> bool:
        """Whether a copy is safe, or at least no worse than the one that lay there."""
        if self._candidates.is_safe(node.name, node.version):
            return True
        before = self._layout.node(self._before, node.where)
        old = before.version if before is not None and before.name == node.name else self._in_place_of.get(node.where)
        return bool(old) and self._candidates.is_no_worse(node.name, node.version, old or "")

    def _finish(self) -> None:
        if self._unrecorded:
            self.warnings.add(f"left to the package manager, without a registry record: {_listed(self._unrecorded)}")
        if self._unjudged:
            self.warnings.add(f"what these ask for is not known: {_listed(self._unjudged)}")
        said = _ALWAYS_BY_TOOL.get(self._unit.format)
        moved = self.moved()
        if moved:
            self.warnings.update(self._unit.settings.get("warnings", ()))
            packages = {one.package for one in moved}
            for override in self._unit.settings.get("ignoredOverrides", ()):
                if override.package in packages:
                    self.warnings.add(f"{override.path} {override.at} is not read by this {self._unit.tool}")
        if said is not None and moved:
            self.needs_tool = True
            self.warnings.add(said)
        if self.edits and self._unit.settings.get("checksums"):
            self.needs_tool = True

    # Answers.

    def _refused(self, link: Link, counting: Counting, where: str, why: NoCandidate | None = None) -> Blocked:
        reason: RefusalReason = "peer-conflict" if link.is_peer else "constraint-conflict"
        detail = ""
        if why is not None and why.reason != "constraint-conflict":
            reason, detail = why.reason, why.detail
        return Blocked(
            reason=reason, detail=detail, dependent=self._facts.dependent(self.state, link, counting), where=where
        )

    def _name(self, link: Link) -> str:
        node = self._layout.node(self.state, link.asker) if link.asker is not None else None
        if node is not None:
            return f"{node.name} {node.version}"
        return link.constraint.path if link.constraint is not None else ""


_OWN: Final = frozenset({SourceKind.WORKSPACE, SourceKind.LINK})


def _id(link: Link) -> LinkId:
    if link.constraint is not None:
        return (f"\0{link.constraint.declared_in or link.constraint.path} {link.constraint.at}", link.ask.name)
    return (link.asker, f"{link.ask.name} {link.is_peer}")


def _is_older(version: str, than: str) -> bool:
    scheme = scheme_for("npm")
    assert scheme is not None
    mine, other = scheme.try_parse(version), scheme.try_parse(than)
    return isinstance(mine, Version) and isinstance(other, Version) and scheme.compare(mine, other) == -1


def _listed(names: set[str]) -> str:
    """The first few names, and how many more there are."""
    shown = sorted(names)[:_MAX_LISTED]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _admitting(wants: Iterable[Wanted], excluded: set[str]) -> Callable[[str], bool]:
    fixed = tuple(wants)
    return lambda version: version not in excluded and all(one.is_met_by(version) for one in fixed)


def _implies(declared: str, needed: str) -> bool:
    """Whether every runtime that the first text allows is allowed by the second; unread texts say nothing."""
    mine, other = parse_requirement("npm", declared), parse_requirement("npm", needed)
    if isinstance(mine, Unparsable) or isinstance(other, Unparsable):
        return True
    for interval in mine.intervals:
        both = [interval.intersect(one) for one in other.intervals]
        if not any((one.lower, one.upper) == (interval.lower, interval.upper) for one in both):
            return False
    return True
