"""Reads requirements: one module for each grammar, all into `Requirement`."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from dependfix_core.versions.base import Unparsable, VersionScheme
from dependfix_core.versions.grammars.assemble import MAX_REQUIREMENT_CHARS
from dependfix_core.versions.grammars.bracket import parse_gradle, parse_maven, parse_nuget
from dependfix_core.versions.grammars.cargo import parse_cargo
from dependfix_core.versions.grammars.composer import parse_composer
from dependfix_core.versions.grammars.hex import parse_hex
from dependfix_core.versions.grammars.npm import parse_npm
from dependfix_core.versions.grammars.pep440 import parse_pep440
from dependfix_core.versions.grammars.plain import parse_actions, parse_go
from dependfix_core.versions.grammars.poetry import parse_poetry
from dependfix_core.versions.grammars.pub import parse_pub
from dependfix_core.versions.grammars.rubygems import parse_rubygems
from dependfix_core.versions.registry import scheme_for
from dependfix_core.versions.requirement import Requirement

# Long runs of spaces mean nothing and would make some of the patterns slow.
_MUCH_SPACE: Final = re.compile(r"\s{40}")

_GRAMMARS: Final[Mapping[str, tuple[str, Callable[[str, VersionScheme], Requirement | Unparsable]]]] = {
    "npm": ("npm", parse_npm),
    "pip": ("pip", parse_pep440),
    "pep440": ("pip", parse_pep440),
    "poetry": ("pip", parse_poetry),
    "rust": ("rust", parse_cargo),
    "cargo": ("rust", parse_cargo),
    "composer": ("composer", parse_composer),
    "rubygems": ("rubygems", parse_rubygems),
    "nuget": ("nuget", parse_nuget),
    "maven": ("maven", parse_maven),
    "gradle": ("maven", parse_gradle),
    "erlang": ("erlang", parse_hex),
    "hex": ("erlang", parse_hex),
    "pub": ("pub", parse_pub),
    "go": ("go", parse_go),
    "actions": ("actions", parse_actions),
}

GRAMMARS: Final = tuple(_GRAMMARS)
"""Names that `parse_requirement` knows: GitHub's ecosystems, and the dialects within one."""


@lru_cache(1 << 15)
def parse_requirement(grammar: str, text: str) -> Requirement | Unparsable:
    """What `text` asks for.

    Args:
        grammar: One of `GRAMMARS`, in any case of letters.
        text: As in the manifest, without quotes, package name, extras and markers.
    """
    known = _GRAMMARS.get(grammar.lower())
    scheme = scheme_for(known[0]) if known else None
    if known is None or scheme is None:
        return Unparsable(text=text, scheme=grammar, reason="no requirement grammar of this name")
    if len(text) > MAX_REQUIREMENT_CHARS or _MUCH_SPACE.search(text):
        return Unparsable(text=text[:MAX_REQUIREMENT_CHARS], scheme=grammar, reason="too long")
    return known[1](text, scheme)
