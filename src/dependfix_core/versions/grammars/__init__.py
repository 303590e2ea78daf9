"""Reads requirements: one module for each grammar, all into `Requirement`."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from dependfix_core.versions.base import Unparsable, VersionScheme
from dependfix_core.versions.grammars.npm import parse_npm
from dependfix_core.versions.grammars.pep440 import parse_pep440
from dependfix_core.versions.registry import scheme_for
from dependfix_core.versions.requirement import Requirement

_GRAMMARS: Final[Mapping[str, tuple[str, Callable[[str, VersionScheme], Requirement | Unparsable]]]] = {
    "npm": ("npm", parse_npm),
    "pip": ("pip", parse_pep440),
    "pep440": ("pip", parse_pep440),
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
    return known[1](text, scheme)
