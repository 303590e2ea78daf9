"""Which releases are too young, by the project's own rules and by the caller's."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Final

from dependfix_core.model.alert import parse_time
from dependfix_core.model.lock import ReleaseAgeGate
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Release
from dependfix_core.pipeline.dependabot import KIND
from dependfix_core.versions import Unparsable, parse_requirement

_MINUTES_A_DAY: Final = 24 * 60
_NUMBER: Final = re.compile(r"\d+")
_STEPS: Final = ("major", "minor", "patch")
_YARN: Final = "npmMinimalAgeGate"
_GLOB: Final = re.compile(r"\*\*|.", re.DOTALL)
_GLOB_SIGNS: Final = {"**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
_UNDECIDABLE: Final = frozenset({"trustPolicy"})
"""Gates on provenance, which no record states."""


class Gates:
    """The release-age rules of one unit."""

    def __init__(self, gates: Sequence[ReleaseAgeGate], policy: ScanPolicy) -> None:
        own = [gate for gate in gates if gate.kind not in _UNDECIDABLE]
        if policy.cooldown_days > 0:
            own.append(ReleaseAgeGate(path="", at="", minimum_age_minutes=policy.cooldown_days * _MINUTES_A_DAY))
        self._gates = tuple(own)
        self._excluding = policy.young_fixes == "exclude"

    def opens_at(self, package: str, release: Release, now: datetime, current: str = "") -> str | None:
        """When the release may be taken in place of `current`, as text; None when it may be now.

        Under `young_fixes=exclude` the project's gates hold nothing back (see
        `held`), a release without a time of publication is not held either.
        """
        if self._excluding or not self._gates:
            return None
        openings = [
            text for gate in self._gates if (text := _opening(gate, package, release, now, current)) is not None
        ]
        return max(openings, default=None)

    def held(self, package: str, release: Release, now: datetime) -> tuple[ReleaseAgeGate, ...]:
        """The gates of the package manager that would hold the release back."""
        gates = (gate for gate in self._gates if gate.path and gate.kind != KIND)
        return tuple(gate for gate in gates if _opening(gate, package, release, now, "") is not None)

    def is_undated(self, package: str, release: Release) -> bool:
        """Whether a gate holds for the package but the release has no time of publication."""
        return release.published_at is None and any(_applies(gate, package, release.version) for gate in self._gates)


def _opening(gate: ReleaseAgeGate, package: str, release: Release, now: datetime, current: str) -> str | None:
    published = release.published_at
    if published is None or not _applies(gate, package, release.version):
        return None
    minutes = gate.by_level.get(step_of(current, release.version), gate.minimum_age_minutes)
    if minutes is not None:
        opens = published + timedelta(minutes=minutes)
        if opens > now:
            return f"opens at {opens.isoformat()}"
    limit = _moment(gate.exclude_newer)
    if limit is not None and published > limit:
        return f"published {published.isoformat()}, after `{gate.exclude_newer}` in {gate.path}"
    return None


def step_of(current: str, target: str) -> str:
    """`major`, `minor` or `patch` by the first number that differs; empty where there is nothing to compare."""
    mine, other = (_NUMBER.findall(text)[: len(_STEPS)] for text in (current, target))
    if not mine:
        return ""
    pairs = zip_longest(mine, other, fillvalue="0")
    return next((step for step, (left, right) in zip(_STEPS, pairs, strict=False) if int(left) != int(right)), "patch")


def _applies(gate: ReleaseAgeGate, package: str, version: str) -> bool:
    if gate.applies_to and not any(_matches(pattern, package, version) for pattern in gate.applies_to):
        return False
    matches = _approves if gate.kind == _YARN else _matches
    return not any(matches(pattern, package, version) for pattern in gate.excluded)


def _approves(pattern: str, package: str, version: str) -> bool:
    """One of yarn's `npmPreapprovedPackages`: a name or a glob, optionally with a range (`glob@^10.0.0`).

    A range that is none (a tag, a protocol) approves nothing; `*` stays within a scope, `**` does not.
    """
    name, at, text = pattern[1:].partition("@")
    glob = _GLOB.sub(lambda found: _GLOB_SIGNS.get(found[0]) or re.escape(found[0]), pattern[:1] + name)
    try:
        if re.fullmatch(glob, package) is None:
            return False
    except re.error:
        return False  # unbalanced braces
    if not at:
        return True
    wanted = parse_requirement("npm", text)
    return ":" not in text and not isinstance(wanted, Unparsable) and wanted.admits(version).is_yes


def _matches(pattern: str, package: str, version: str) -> bool:
    """A name with wildcards, optionally with versions: `@scope/*`, `pkg@1.2.3`, `pkg@1.2.3 || 1.2.4`."""
    name, at, versions = pattern[1:].partition("@")
    if at and versions.strip() not in ("", "*"):
        listed = {text.strip().removeprefix("npm:") for text in versions.split("||")}
        if version not in listed:
            return False
    return fnmatchcase(package.lower(), (pattern[:1] + name).lower())


def _moment(text: str) -> datetime | None:
    moment = parse_time(text)
    if moment is None and text and "T" not in text:
        # A date alone: the whole day is still allowed.
        moment = parse_time(f"{text}T23:59:59Z")
    return moment
