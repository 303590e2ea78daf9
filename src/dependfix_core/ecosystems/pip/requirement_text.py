"""What does one PEP 508 requirement ask for, and which characters say which versions?

Source: https://packaging.python.org/en/latest/specifications/dependency-specifiers/
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from dependfix_core.model.lock import Source, SourceKind

MAX_REQUIREMENT_CHARS: Final = 4096
"""Longer texts are refused before any parser sees them."""

_HEAD: Final = re.compile(r"\s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\]\s*)?")
_VCS: Final = re.compile(r"(?:git|hg|svn|bzr)\+|git@|git:|.*\.git(?:[@#?]|$)")
_LOCAL_REFERENCE: Final = re.compile(r"file:|\.{1,2}(?:[/\\]|$)|[/\\~]|[A-Za-z]:[\\/]")


@dataclass(frozen=True, kw_only=True, slots=True)
class RequirementText:
    """A requirement, taken apart; `start` and `end` are the characters of `specifier` in the text read."""

    name: str
    """As written."""
    package: str
    """Canonical (PEP 503)."""
    extras: tuple[str, ...]
    specifier: str
    """As written, without surrounding parentheses and space."""
    start: int
    end: int
    marker: str
    url: str

    @property
    def source(self) -> Source:
        """The registry, or where its `url` points to."""
        return source_of_url(self.url) if self.url else Source()


def read_requirement(text: str) -> RequirementText:
    """The parts of one requirement.

    Raises:
        ValueError: `text` is none; the message says why.
    """
    if len(text) > MAX_REQUIREMENT_CHARS:
        raise ValueError("requirement too long")
    try:
        parsed = Requirement(text.strip())
    except (InvalidRequirement, RecursionError) as error:
        raise ValueError(_first_line(error)) from None
    head = _HEAD.match(text)
    assert head is not None, "packaging has accepted a name"
    start = end = head.end()
    if parsed.url is None:
        stop = text.find(";", start)
        rest = text[start : len(text) if stop < 0 else stop]
        specifier = rest.strip().removeprefix("(").removesuffix(")").strip()
        start += rest.find(specifier) if specifier else 0
        end = start + len(specifier)
    return RequirementText(
        name=parsed.name,
        package=canonicalize_name(parsed.name),
        extras=tuple(sorted(canonicalize_name(extra) for extra in parsed.extras)),
        specifier=text[start:end],
        start=start,
        end=end,
        marker=str(parsed.marker) if parsed.marker else "",
        url=parsed.url or "",
    )


def source_of_url(url: str) -> Source:
    """Where a direct reference comes from; credentials are left out of what is kept."""
    if _VCS.match(url):
        return Source(kind=SourceKind.GIT, text=without_credentials(url))
    if _LOCAL_REFERENCE.match(url):
        return Source(kind=SourceKind.FILE, text=url)
    return Source(kind=SourceKind.URL, text=without_credentials(url))


def without_credentials(url: str) -> str:
    """The address without `user:password@`; a text that is no address comes back as it is."""
    prefix, plus, rest = url.partition("+")
    if plus and "://" not in prefix:
        return prefix + plus + without_credentials(rest)
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if not parts.scheme or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def is_remote(url: str) -> bool:
    """Whether an index address is one that can be asked, not a folder."""
    return url.lower().startswith(("https://", "http://"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["not a requirement"])[0]
