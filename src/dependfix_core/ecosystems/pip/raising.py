"""How does a declared text read that asks for a version at least?"""

import re
from typing import Final

from dependfix_core.ecosystems.pip.needs import POETRY
from dependfix_core.versions import Raised, parse_requirement, raise_requirement

_POETRY_SIMPLE: Final = re.compile(r"\s*(?P<operator>\^|~|=|)\s*v?\d[0-9A-Za-z.+!_-]*\s*")


def raised_text(grammar: str, text: str, version: str) -> str | None:
    """The text in its own style; `None` when it cannot be raised. A text without any bound gets one."""
    if text.strip() in {"", "*"}:
        return f">={version}"
    raised = raise_requirement(parse_requirement(grammar, text), version)
    if isinstance(raised, Raised):
        return raised.text
    if grammar == POETRY and (found := _POETRY_SIMPLE.fullmatch(text)):
        return f"{found['operator']}{version}"
    return None
