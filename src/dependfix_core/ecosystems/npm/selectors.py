"""The keys of overrides and resolutions: which package, below which parents, of which versions."""

import re
from dataclasses import dataclass
from typing import Final

# `>` separates parents, unless it is part of a range (`pkg@>1`, `pkg@<1 >2`): the rule of pnpm.
_PNPM_STEP: Final = re.compile(r"(?<=[^ |@])>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selector:
    """A key, taken apart."""

    package: str
    parents: tuple[str, ...] = ()
    """Names, outermost first."""
    condition: str = ""
    """Range on the package itself."""


def split_name(text: str) -> tuple[str, str]:
    """`name@range` as name and range; the range is empty when there is none."""
    at = text.find("@", 1)
    return (text, "") if at < 0 else (text[:at], text[at + 1 :])


def pnpm_steps(text: str) -> list[str]:
    """`parent@1>pkg@<2` as its steps."""
    return _PNPM_STEP.split(text)


def pnpm_selector(text: str) -> Selector:
    """`pkg`, `pkg@range`, `parent>pkg`, `parent@range>pkg@range`."""
    *parents, last = pnpm_steps(text)
    name, condition = split_name(last)
    return Selector(package=name, parents=tuple(split_name(parent)[0] for parent in parents), condition=condition)


def yarn_selector(text: str) -> Selector:
    """`pkg`, `parent/pkg`, `**/pkg`, `pkg@npm:range`; yarn 1 knows no ranges."""
    steps: list[tuple[str, str]] = []
    parts = text.strip().split("/")
    while parts:
        step = parts.pop(0)
        if step.startswith("@") and parts:
            step = f"{step}/{parts.pop(0)}"
        name, condition = split_name(step)
        if ":" in condition and not condition.startswith("npm:"):
            condition, parts = "/".join([condition, *parts]), []  # a location, which may hold slashes
        if name not in ("", "*", "**"):
            steps.append((name, condition))
    if not steps:
        return Selector(package=text)
    name, condition = steps[-1]
    return Selector(
        package=name,
        parents=tuple(step for step, _ in steps[:-1]),
        condition=condition.removeprefix("npm:"),
    )
