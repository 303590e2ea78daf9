"""How does a declared text read that asks for a version at least?"""

from dependfix_core.versions import Raised, parse_requirement, raise_requirement


def raised_text(grammar: str, text: str, version: str) -> str | None:
    """The text in its own style; `None` when it cannot be raised. A text without any bound gets one."""
    if text.strip() in {"", "*"}:
        return f">={version}"
    raised = raise_requirement(parse_requirement(grammar, text), version)
    return raised.text if isinstance(raised, Raised) else None
