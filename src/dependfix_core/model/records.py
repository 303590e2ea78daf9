"""What a registry says of a package, as values, and the keys to ask for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class RecordKey:
    """One metadata record that a reader or the planner needs.

    `version` empty asks for the list of releases; otherwise for the details of
    that one (dependencies, hashes). Both may come from the same document.
    """

    ecosystem: str
    name: str
    version: str = ""
    registry: str = ""
    """Base address as the project's own files give it; empty when they give none.
    A hint only: the metadata source decides whether it may be used."""


class Unavailability(StrEnum):
    """Why a record could not be had. Never the same as "the package does not exist"."""

    OFFLINE = "offline"
    NO_REGISTRY = "no-registry"
    NOT_ALLOWED = "not-allowed"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not-found"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unavailable:
    """The answer for a record that could not be had."""

    key: RecordKey
    why: Unavailability
    detail: str = ""
    """One line for a person; cleaned, without addresses that hold credentials."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseFile:
    """One downloadable file of a release (wheel, sdist, gem, …)."""

    filename: str
    url: str
    """As the registry gives it, made absolute; writers use the lockfile's own base instead."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Algorithm → hex digest."""
    size: int | None = None
    upload_time: datetime | None = None
    yanked: bool = False
    yanked_reason: str = ""
    requires_python: str | None = None
    raw_upload_time: str = ""
    """As written by the index."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseDependency:
    """One requirement of a release, as its own metadata states it."""

    name: str
    """Name by which it is asked for (an npm alias keeps the alias here)."""
    requirement: str
    """Requirement text in the ecosystem's grammar; empty when there is none."""
    kind: str = "prod"
    """prod, optional, peer, peer-optional, dev, build, bundled"""
    marker: str = ""
    """PEP 508 marker or platform condition; empty when unconditional."""
    extras: tuple[str, ...] = ()
    text: str = field(default="", compare=False)
    """Python: the whole line as published, with the name as its author spells it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One published version."""

    name: str
    version: str
    dependencies: tuple[ReleaseDependency, ...] | None = None
    """`None` when the registry did not give them (unknown, not empty)."""
    published_at: datetime | None = None
    deprecated: str = ""
    """The deprecation message; empty when not deprecated."""
    yanked: bool = False
    integrity: str = ""
    """npm: `dist.integrity`."""
    shasum: str = ""
    """npm: `dist.shasum` (sha1 hex)."""
    tarball: str = ""
    """npm: `dist.tarball`, as the registry gives it."""
    files: tuple[ReleaseFile, ...] = ()
    requires_runtime: Mapping[str, str] = field(default_factory=dict)
    """npm `engines`, `requires-python` under `python`, cargo `rust-version` under `rust`, …"""
    platform: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """npm `os`, `cpu`, `libc`."""
    has_install_script: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that a lockfile copies, under the registry's own keys
    (npm: license, bin, funding, peerDependenciesMeta, bundleDependencies, …;
    Python: provides-extra, summary, …)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageRecord:
    """All releases that the registry lists. A version that is not listed is unknown, not absent.

    `releases` is keyed by version text and in no particular order.
    """

    key: RecordKey
    releases: Mapping[str, Release]
    tags: Mapping[str, str] = field(default_factory=dict)
    """dist-tags."""
    digest: str = ""
    """Digest of the source document, for the plan's identity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseRecord:
    """The details of one release."""

    key: RecordKey
    release: Release
    digest: str = ""


Record = PackageRecord | ReleaseRecord | Unavailable
