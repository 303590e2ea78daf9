"""What does a copy ask for, in the project's environments?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dependfix_core.ecosystems.pip.environments import Environments, Mask
from dependfix_core.model.lock import Constraint
from dependfix_core.model.records import Release
from dependfix_core.versions import Requirement, Unparsable, parse_requirement

PEP440: Final = "pip"
POETRY: Final = "poetry"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """One requirement of a copy that counts somewhere in the project's environments."""

    name: str
    """Canonical."""
    text: str | None
    """The requirement; `None` when it is not known."""
    grammar: str = PEP440
    mask: Mask
    """Where it counts."""
    extras: tuple[str, ...] = ()
    """Asked of the package."""
    target: str | None = None
    """The copy that the lock itself names."""
    marker: str = ""

    @property
    def requirement(self) -> Requirement | None:
        """The requirement as a set of versions; `None` when it is not known or no range."""
        return read_range(self.grammar, self.text) if self.text is not None else None


def grammar_of(constraint: Constraint) -> str:
    """How a declared text is to be read: poetry's own tables have their own grammar."""
    return POETRY if constraint.at.startswith("tool.poetry.") else PEP440


@lru_cache(maxsize=1 << 14)
def read_range(grammar: str, text: str) -> Requirement | None:
    """A requirement text as a set of versions; `None` when it is none (an address, a broken text)."""
    found = parse_requirement(grammar, text)
    return None if isinstance(found, Unparsable) else found


@lru_cache(maxsize=1 << 14)
def normal_version(text: str) -> str:
    """A version as registries spell it (`2022.12.07` is `2022.12.7`); another text comes back as it is."""
    try:
        return str(Version(text))
    except InvalidVersion:
        return text


def release_needs(release: Release, asked: Iterable[str], environments: Environments, within: Mask) -> tuple[Need, ...]:
    """What a release asks for when it is asked for with the extras `asked`, inside the environments `within`.

    One entry for each requirement that counts anywhere; a package's own extras
    that bring in others of its extras are followed.
    """
    extras: set[str] = {canonicalize_name(extra) for extra in asked}
    name = canonicalize_name(release.name)
    while True:
        grown = {
            extra
            for dependency in release.dependencies or ()
            if canonicalize_name(dependency.name) == name and environments.mask(dependency.marker, extras) & within
            for extra in dependency.extras
        }
        if grown <= extras:
            break
        extras.update(grown)
    return tuple(
        Need(
            name=canonicalize_name(dependency.name),
            text=dependency.requirement,
            mask=mask,
            extras=dependency.extras,
            marker=dependency.marker,
        )
        for dependency in release.dependencies or ()
        if canonicalize_name(dependency.name) != name
        and (mask := environments.mask(dependency.marker, extras) & within)
    )


def shape(needs: Iterable[Need]) -> Mapping[tuple[str, tuple[str, ...]], Mask]:
    """(package, extras) → where it is needed: what a lock without ranges says of a copy."""
    found: dict[tuple[str, tuple[str, ...]], Mask] = {}
    for need in needs:
        key = (need.name, tuple(sorted(need.extras)))
        found[key] = found.get(key, 0) | need.mask
    return found
