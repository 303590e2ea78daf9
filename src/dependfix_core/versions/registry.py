"""Which ecosystem orders its versions how, and when two package names are the same."""

import copyreg
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from dependfix_core.versions.base import VersionScheme
from dependfix_core.versions.composer import ComposerScheme
from dependfix_core.versions.maven import MavenScheme
from dependfix_core.versions.nuget import NugetScheme
from dependfix_core.versions.pep440 import Pep440Scheme
from dependfix_core.versions.rubygems import GemScheme
from dependfix_core.versions.semver import SemverScheme, build_semver_key, short_semver_key

_SCHEMES: Final[Mapping[str, VersionScheme]] = {
    scheme.name: scheme
    for scheme in (
        SemverScheme("npm"),
        Pep440Scheme("pip"),
        MavenScheme(),
        SemverScheme("go"),
        GemScheme(),
        ComposerScheme(),
        NugetScheme(),
        SemverScheme("rust"),
        SemverScheme("erlang"),
        SemverScheme("pub", build_semver_key),
        SemverScheme("swift"),
        SemverScheme("actions", short_semver_key),
    )
}

ECOSYSTEMS: Final = tuple(_SCHEMES)
"""GitHub's names of the ecosystems whose versions can be compared (all but `other`)."""


def scheme_for(ecosystem: str) -> VersionScheme | None:
    """The scheme of one of GitHub's ecosystems, in any case of letters; None for `other` and unknown ones."""
    return _SCHEMES.get(ecosystem.lower())


def _scheme_named(name: str) -> VersionScheme:
    return _SCHEMES[name]


# A scheme goes through pickle as its name, so that it stays the one there is and its cache stays at home.
for _scheme in _SCHEMES.values():
    copyreg.pickle(type(_scheme), lambda scheme: (_scheme_named, (scheme.name,)))


@lru_cache(maxsize=8_192)
def normalise_name(ecosystem: str, name: str) -> str:
    """The package's name in the form under which alerts, manifests and locks are brought together.

    Python names by PEP 503; NuGet and Composer in lower case; Maven as
    `group:artifact`; a Swift package as the address of its repository without
    protocol and `.git`; of an action the owner and repository in lower case
    and the path as it is. All others keep their spelling, npm too (see
    `same_name`).
    """
    normalise = _NAMES.get(ecosystem.lower())
    return normalise(name.strip()) if normalise else name.strip()


def same_name(ecosystem: str, left: str, right: str) -> bool:
    """Whether both name one package; for npm without regard to case, since advisories spell names freely."""
    mine, other = normalise_name(ecosystem, left), normalise_name(ecosystem, right)
    return mine == other or (ecosystem.lower() == "npm" and mine.lower() == other.lower())


_SEPARATORS: Final = re.compile(r"[-_.]+")
_ADDRESS_START: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*://(?:[^/@]*@)?|git@)", re.IGNORECASE)


def _pip_name(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def _maven_name(name: str) -> str:
    parts = [part.strip() for part in name.replace("/", ":", 1 if ":" not in name else 0).split(":")]
    return ":".join(parts[:2])


def _swift_name(name: str) -> str:
    address = _ADDRESS_START.match(name)
    if address:
        name = name[address.end() :].replace(":", "/", 1)
    return name.rstrip("/").removesuffix(".git").lower()


def _action_name(name: str) -> str:
    owner, _, rest = name.strip("/").partition("/")
    repository, slash, path = rest.partition("/")
    return f"{owner}/{repository}".lower() + slash + path if repository else owner.lower()


_NAMES: Final[Mapping[str, Callable[[str], str]]] = {
    "pip": _pip_name,
    "nuget": str.lower,
    "composer": str.lower,
    "maven": _maven_name,
    "swift": _swift_name,
    "actions": _action_name,
}
