"""What does a poetry version constraint mean in PEP 440 words?

Source: https://python-poetry.org/docs/dependency-specification/#version-constraints
"""

import re
from typing import Final

from packaging.version import InvalidVersion, Version

_ARM: Final = re.compile(r"\s*\|\|?\s*")
_PART: Final = re.compile(
    r"\s*(?P<op>\^|~=|~|===|==|!=|<=|>=|<|>|=)?\s*(?P<version>[vV]?\d[0-9A-Za-z.+!_-]*(?:\.\*)?|\*)\s*(?:,|(?=\s|$|[\^~=!<>]))"
)


def to_pep440(text: str) -> tuple[str, ...]:
    """Alternatives, each a PEP 440 specifier list (`""` admits everything).

    Raises:
        ValueError: `text` is no constraint.
    """
    return tuple(_conjunction(arm) for arm in _ARM.split(text.strip()))


def python_marker(text: str) -> str:
    """The environment marker of a `python = "…"` restriction; empty when it restricts nothing.

    Raises:
        ValueError: `text` is no constraint.
    """
    arms = []
    for arm in to_pep440(text):
        parts = []
        for part in filter(None, arm.split(",")):
            found = re.fullmatch(r"(~=|===|==|!=|<=|>=|<|>)(.+)", part)
            assert found is not None, "to_pep440 writes an operator before each version"
            operator, version = found.groups()
            precise = version.removesuffix(".*").count(".") > 1
            variable = "python_full_version" if precise else "python_version"
            parts.append(f'{variable} {operator} "{version}"')
        if not parts:
            return ""
        arms.append(" and ".join(parts))
    return " or ".join(f"({arm})" if " and " in arm else arm for arm in arms) if len(arms) > 1 else arms[0]


def _conjunction(text: str) -> str:
    parts: list[str] = []
    position = 0
    body = text.strip()
    if body in {"", "*"}:
        return ""
    while position < len(body):
        found = _PART.match(body, position)
        if not found:
            raise ValueError(f"not a constraint: {text[:100]!r}")
        position = found.end()
        parts.extend(_plain(found["op"] or "", found["version"]))
    return ",".join(parts)


def _plain(operator: str, version: str) -> list[str]:
    if version == "*":
        return []
    if version.endswith(".*"):
        return [f"{'!=' if operator == '!=' else '=='}{version}"]
    if operator in {"^", "~"}:
        try:
            parsed = Version(version)
        except InvalidVersion as error:
            raise ValueError(str(error)) from None
        numbers = parsed.release
        if operator == "^":
            keep = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
        else:
            keep = min(1, len(numbers) - 1)
        upper = [*numbers[:keep], numbers[keep] + 1, *([0] * (len(numbers) - keep - 1))]
        epoch = f"{parsed.epoch}!" if parsed.epoch else ""
        return [f">={version}", f"<{epoch}{'.'.join(map(str, upper))}"]
    return [f"{'==' if operator in {'', '='} else operator}{version}"]
