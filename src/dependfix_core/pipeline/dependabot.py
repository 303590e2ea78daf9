"""What a repository's dependabot.yml says of young releases.

Source: https://docs.github.com/code-security/dependabot/working-with-dependabot/dependabot-options-reference
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import yaml

from dependfix_core.model.files import FileContent, Listing
from dependfix_core.model.lock import LockUnit, ReleaseAgeGate
from dependfix_core.model.plan import PlanProblem
from dependfix_core.model.steps import Step, file_contents

PATHS: Final = (".github/dependabot.yml", ".github/dependabot.yaml")
KIND: Final = "cooldown"
_MAX_BYTES: Final = 1_000_000
_MINUTES_A_DAY: Final = 24 * 60
_MAX_DAYS: Final = 10_000
_ECOSYSTEMS: Final[Mapping[str, str]] = {
    "npm": "npm",
    "bun": "npm",
    "pip": "pip",
    "uv": "pip",
    "gomod": "go",
    "cargo": "rust",
    "bundler": "rubygems",
    "composer": "composer",
    "nuget": "nuget",
    "maven": "maven",
    "gradle": "maven",
    "github-actions": "actions",
    "mix": "erlang",
    "pub": "pub",
    "swift": "swift",
}
"""Dependabot's names of package managers → GitHub's names of ecosystems."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cooldown:
    """The cooldown of one entry of `updates`."""

    ecosystem: str
    directories: tuple[str, ...]
    gate: ReleaseAgeGate

    def covers(self, unit: LockUnit) -> bool:
        """Whether the entry is about the folder that the unit lies in."""
        folder = "/" + posixpath.dirname(unit.unit)
        return self.ecosystem == unit.ecosystem and any(fnmatchcase(folder, one) for one in self.directories)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependabot:
    """The parts of the file that planning heeds."""

    cooldowns: tuple[Cooldown, ...] = ()
    problems: tuple[PlanProblem, ...] = ()

    def gates(self, unit: LockUnit) -> tuple[ReleaseAgeGate, ...]:
        """The release-age rules for a unit."""
        return tuple(one.gate for one in self.cooldowns if one.covers(unit))


def read_dependabot(listing: Listing) -> Step[Dependabot]:
    """The file's rules; without a file there are none."""
    path = next((path for path in PATHS if path in listing), None)
    if path is None:
        return Dependabot()
    found = (yield from file_contents([path]))[path]
    if not isinstance(found, FileContent):
        return Dependabot(problems=(PlanProblem(stage="plan", message=f"not read: {found.value}", target=path),))
    return parse_dependabot(path, found.content)


def parse_dependabot(path: str, content: bytes) -> Dependabot:
    """The rules in the bytes of the file; what has another shape than documented is passed over."""
    if len(content) > _MAX_BYTES:
        return Dependabot(problems=(PlanProblem(stage="plan", message="too large to be read", target=path),))
    try:
        data = yaml.load(content, Loader=_Loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = f"cannot be read: {type(error).__name__}"
        return Dependabot(problems=(PlanProblem(stage="plan", message=message, target=path),))
    updates = data.get("updates") if isinstance(data, dict) else None
    found: list[Cooldown] = []
    for index, entry in enumerate(updates if isinstance(updates, list) else ()):
        if isinstance(entry, dict):
            found += _cooldown(path, f"updates.{index}.cooldown", entry)
    return Dependabot(cooldowns=tuple(found))


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which a small file can be made to fill the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """See `yaml.composer.Composer`."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _cooldown(path: str, at: str, entry: Mapping[str, Any]) -> Iterator[Cooldown]:
    rules, ecosystem = entry.get("cooldown"), _ECOSYSTEMS.get(str(entry.get("package-ecosystem")))
    if not isinstance(rules, dict) or ecosystem is None:
        return
    minutes = {name: days * _MINUTES_A_DAY for name in _DAYS if (days := _days(rules.get(name))) is not None}
    levels = {_DAYS[name]: value for name, value in minutes.items() if _DAYS[name]}
    if not minutes:
        return
    gate = ReleaseAgeGate(
        path=path,
        at=at,
        minimum_age_minutes=minutes.get("default-days"),
        by_level=levels,
        excluded=_texts(rules.get("exclude")),
        applies_to=_texts(rules.get("include")),
        kind=KIND,
    )
    folders = [entry.get("directory"), *_list(entry.get("directories"))]
    directories = tuple(_folder(one) for one in folders if isinstance(one, str))
    yield Cooldown(ecosystem=ecosystem, directories=directories or ("/",), gate=gate)


_DAYS: Final = {
    "default-days": "",
    "semver-major-days": "major",
    "semver-minor-days": "minor",
    "semver-patch-days": "patch",
}


def _days(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_DAYS else None


def _folder(text: str) -> str:
    return "/" + text.strip().strip("/")


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in _list(value) if isinstance(one, str))
