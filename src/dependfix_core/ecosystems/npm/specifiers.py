"""What the text after a package name in a manifest or lockfile asks for.

Sources: the `npm-package-arg` grammar, and the protocols of pnpm, yarn and bun.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dependfix_core.model.lock import Source, SourceKind

_REGISTRY: Final = Source()
_ALIAS: Final = re.compile(r"npm:((?:@[^/@\s]+/)?[^/@\s]+)(?:@(.*))?", re.DOTALL)
_RANGE_START: Final = re.compile(r"[\s\d^~<>=*|xXvV-]")
_GIT: Final = re.compile(
    r"(?:git[+:@]|git\+ssh:|github:|gitlab:|bitbucket:|gist:|ssh:)|[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+(?:#.*)?$"
)
_PREFIXES: Final = (
    ("workspace:", SourceKind.WORKSPACE),
    ("link:", SourceKind.LINK),
    ("portal:", SourceKind.LINK),
    ("file:", SourceKind.FILE),
    ("./", SourceKind.FILE),
    ("../", SourceKind.FILE),
    ("/", SourceKind.FILE),
    ("~/", SourceKind.FILE),
    ("patch:", SourceKind.PATCH),
    ("jsr:", SourceKind.UNKNOWN),
    ("exec:", SourceKind.UNKNOWN),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Specifier:
    """A requirement text, taken apart."""

    package: str
    """Real name; the asked name unless it is an alias."""
    requirement: str
    """Range or tag of a registry package, of an alias the part after the real name; else the whole text."""
    start: int
    """Where `requirement` starts in the text, in characters."""
    source: Source = _REGISTRY
    catalog: str | None = None
    """Name of the catalog that holds the real text; empty for the default one."""


@lru_cache(maxsize=4096)
def read_specifier(name: str, text: str) -> Specifier:
    """What `text` asks for under `name`."""
    if ":" not in text and "/" not in text:
        return Specifier(package=name, requirement=text, start=0)
    if text.startswith("npm:"):
        return _npm_protocol(name, text)
    if text.startswith("catalog:"):
        catalog = text[8:].strip()
        return Specifier(package=name, requirement=text, start=0, catalog="" if catalog in ("", "default") else catalog)
    return Specifier(package=name, requirement=text, start=0, source=Source(kind=kind_of(text), text=public_text(text)))


def kind_of(text: str) -> SourceKind:
    """Where a requirement or location text points to."""
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            return kind
    if text.startswith(("http://", "https://")):
        return SourceKind.GIT if re.search(r"\.git(?:#|$)", text) else SourceKind.URL
    if _GIT.match(text):
        return SourceKind.GIT
    return SourceKind.UNKNOWN if re.match(r"[a-z][a-z0-9+.-]*:", text) else SourceKind.REGISTRY


def public_text(text: str) -> str:
    """A location without the credentials that it may hold."""
    at = text.find("://")
    if at < 0:
        return text
    end = text.find("/", at + 3)
    host = text[at + 3 : end if end >= 0 else len(text)]
    return f"{text[: at + 3]}{host.rpartition('@')[2]}{text[at + 3 + len(host) :]}" if "@" in host else text


@lru_cache(maxsize=256)
def registry_base(text: str) -> str:
    """A registry address from a file of the repository, without credentials and final slash.

    Empty when it is no plain web address or still holds a variable: those of a
    repository's files are never expanded.
    """
    text = text.strip()
    if "${" in text or not text.startswith(("https://", "http://")) or any(sign in text for sign in "?#\\ "):
        return ""
    return public_text(text).rstrip("/")


@lru_cache(maxsize=256)
def registry_source(address: str) -> Source:
    """The source of copies from the registry at `address`, one value for all of them."""
    return Source(base=registry_base(address))


def _npm_protocol(name: str, text: str) -> Specifier:
    rest = text[4:]
    match = _ALIAS.fullmatch(text)
    if match is None or (match[2] is None and (not rest or _RANGE_START.match(rest) or rest in ("latest", "next"))):
        return Specifier(package=name, requirement=rest, start=4)
    requirement = match[2] or ""
    return Specifier(package=match[1], requirement=requirement, start=len(text) - len(requirement))
