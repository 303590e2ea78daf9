"""What a package asks of others: one shape for lockfile edges, registry records and manifests."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.model.lock import Constraint, DependencyKind, Edge, Instance, SourceKind
from dependfix_core.model.records import Release
from dependfix_core.versions import Requirement, Unparsable, parse_requirement

GRAMMAR: Final = "npm"
_KINDS: Final = {
    "prod": DependencyKind.PROD,
    "optional": DependencyKind.OPTIONAL,
    "peer": DependencyKind.PEER,
    "peer-optional": DependencyKind.PEER_OPTIONAL,
}
PEER_KINDS: Final = frozenset({DependencyKind.PEER, DependencyKind.PEER_OPTIONAL})
OPTIONAL_KINDS: Final = frozenset({DependencyKind.OPTIONAL, DependencyKind.PEER_OPTIONAL})


@dataclass(frozen=True, slots=True)
class Ask:
    """One requirement of a package or manifest, before overrides."""

    name: str
    """Name in the tree; an alias keeps the alias."""
    package: str
    """Real package."""
    text: str | None
    """Range or tag; None when it is not known."""
    kind: DependencyKind

    @property
    def is_peer(self) -> bool:
        """Whether the package only wants it beside itself."""
        return self.kind in PEER_KINDS


@dataclass(frozen=True, slots=True)
class Wanted:
    """An ask as it counts, after overrides."""

    package: str
    text: str
    requirement: Requirement | None
    """None when it is not known or no range."""
    is_open: bool = False
    """Every version meets it: a tag, a folder, a repository."""

    def is_met_by(self, version: str) -> bool:
        """Whether `version` certainly meets it; what is not known is not held against it."""
        if self.is_open or self.requirement is None:
            return True
        return self.requirement.admits(version).may_be

    @property
    def named(self) -> tuple[str, ...]:
        """Versions that it spells out: an exact pin."""
        if self.requirement is None:
            return ()
        return tuple(
            one.version
            for one in self.requirement.comparators
            if one.operator in ("", "=") and one.version.count(".") >= 2 and one.version[-1:] not in "xX*"
        )


def wanted(package: str, text: str | None) -> Wanted:
    """What `text` comes to."""
    if text is None:
        return Wanted(package=package, text="", requirement=None)
    specifier = read_specifier(package, text)
    parsed = parse_requirement(GRAMMAR, specifier.requirement)
    if isinstance(parsed, Unparsable):
        # A tag, a folder, a repository, a workspace: nothing that a version could break.
        return Wanted(package=specifier.package, text=text, requirement=None, is_open=True)
    return Wanted(package=specifier.package, text=text, requirement=parsed)


def ask_of_edge(edge: Edge, target: Instance | None) -> Ask:
    """An edge as the lockfile has it."""
    package = edge.name
    if target is not None and target.name != edge.name:
        package = target.name
    return Ask(name=edge.name, package=package, text=edge.requirement, kind=edge.kind)


def asks_of_release(release: Release) -> tuple[Ask, ...] | None:
    """What a release asks for; None when its record does not say."""
    if release.dependencies is None:
        return None
    bundled = _bundled(release)
    found = []
    for one in release.dependencies:
        kind = _KINDS.get(one.kind)
        if kind is None or one.name in bundled:
            continue
        specifier = read_specifier(one.name, one.requirement)
        found.append(Ask(name=one.name, package=specifier.package, text=one.requirement, kind=kind))
    # What only the table about peers names is a peer as well, in any version and optional.
    named = {ask.name for ask in found}
    about = release.extra.get("peerDependenciesMeta")
    for name, facts in about.items() if isinstance(about, dict) else ():
        if name not in named and isinstance(facts, dict) and facts.get("optional") is True:
            found.append(Ask(name=name, package=name, text="*", kind=DependencyKind.PEER_OPTIONAL))
    return tuple(found)


def _bundled(release: Release) -> frozenset[str]:
    """Names that come inside the package and are not installed beside it."""
    stated = release.extra.get("bundleDependencies", release.extra.get("bundledDependencies"))
    if stated is True:
        return frozenset(one.name for one in release.dependencies or () if one.kind == "prod")
    return frozenset(name for name in stated if isinstance(name, str)) if isinstance(stated, list) else frozenset()


def ask_of_constraint(constraint: Constraint, text: str | None = None) -> Ask:
    """A declared requirement, possibly with another text."""
    if constraint.source.kind is not SourceKind.REGISTRY:
        # The whole location stands in the requirement, and every version of it is right.
        return Ask(name=constraint.name, package=constraint.package, text=constraint.source.text, kind=constraint.kind)
    return Ask(
        name=constraint.name,
        package=constraint.package,
        text=constraint.requirement if text is None else text,
        kind=constraint.kind,
    )


def find_ask(asks: Iterable[Ask], package: str) -> Ask | None:
    """The ask for a real package; one that is no peer before one that is."""
    found = [ask for ask in asks if ask.package == package]
    return min(found, key=lambda ask: ask.is_peer) if found else None
