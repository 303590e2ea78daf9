"""Which alerts are asked for: checked once, sent to the server, and applied again to what it answers."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from typing import Final, Literal, TypeAlias, get_args

from dependfix_core.errors import ArgumentError
from dependfix_core.model.alert import THRESHOLDS, Alert, Severity, Threshold, by_severity, parse_time

AlertSort: TypeAlias = Literal["severity", "epss", "created", "updated"]

_SORTS: Final = get_args(AlertSort)
_STATES: Final = ("open", "fixed", "dismissed", "auto_dismissed")
_SERVER_SORT: Final[Mapping[str, str]] = {"epss": "epss_percentage", "created": "created", "updated": "updated"}
_ECOSYSTEM_ALIASES: Final[Mapping[str, str]] = {
    "pypi": "pip",
    "python": "pip",
    "javascript": "npm",
    "cargo": "rust",
    "golang": "go",
    "gem": "rubygems",
    "ruby": "rubygems",
    "packagist": "composer",
    "hex": "erlang",
    "github-actions": "actions",
}
_WORD: Final = re.compile(r"[A-Za-z0-9._ -]{1,60}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertQuery:
    """Alternatives within a field, all fields together. The defaults ask for every open alert."""

    states: tuple[str, ...] = ("open",)
    """Empty means all."""
    severity: Threshold = "all"
    ecosystems: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    scope: str | None = None
    relationships: tuple[str, ...] = ()
    classifications: tuple[str, ...] = ()
    has_patch: bool = False
    """Only alerts whose own entry names a patched version."""
    epss_at_least: float | None = None
    assignees: tuple[str, ...] = ()
    """User names; `*` is anyone, `none` nobody."""
    since: str | None = None
    """ISO 8601 in UTC: updated since then when sorted by `updated`, otherwise created since then."""
    sort: AlertSort = "severity"

    @classmethod
    def of(
        cls,
        *,
        state: str = "open",
        severity: str = "all",
        ecosystem: str | None = None,
        package: str | None = None,
        manifest: str | None = None,
        scope: str | None = None,
        since: str | None = None,
        sort: str = "severity",
    ) -> "AlertQuery":
        """A query from the words people and tools use; lists are separated by commas.

        Raises:
            ArgumentError: A word has no meaning here; `details.argument` names the argument.
        """
        states = _words(state)
        for word in states or ("",):
            _require("state", word, (*_STATES, "all"), example="open")
        if "all" in states:
            states = ()
        threshold = severity.strip().lower()
        threshold = "medium" if threshold == "moderate" else threshold
        _require("severity", threshold, THRESHOLDS, example="high")
        _require("sort", sort, _SORTS, example="severity")
        if scope is not None:
            _require("scope", scope, ("runtime", "development"), example="runtime")
        ecosystems = tuple(_ECOSYSTEM_ALIASES.get(word, word) for word in _words(ecosystem))
        for word in ecosystems:
            if not _WORD.fullmatch(word):
                raise _wrong("ecosystem", "not the name of an ecosystem", "npm")
        return cls(
            states=states,
            severity=next(known for known in THRESHOLDS if known == threshold),
            ecosystems=ecosystems,
            packages=_items(package),
            manifests=_items(manifest),
            scope=scope,
            since=_moment(since),
            sort=next(known for known in _SORTS if known == sort),
        )

    def digest(self, repository: str) -> str:
        """Tells queries apart; a cursor of one is no cursor of another."""
        text = json.dumps([repository.lower(), asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def parameters(self, *, organization: bool = False) -> dict[str, str]:
        """What the server can filter by. The organisation list knows no manifests."""
        found: dict[str, str] = {}
        if self.states:
            found["state"] = ",".join(self.states)
        if self.severity != "all":
            found["severity"] = ",".join(s.value for s in Severity if s.meets(self.severity))
        if self.ecosystems:
            found["ecosystem"] = ",".join(self.ecosystems)
        # A comma would split a name into two.
        if self.packages and not any("," in name for name in self.packages):
            found["package"] = ",".join(self.packages)
        if self.manifests and not organization and not any("," in path for path in self.manifests):
            found["manifest"] = ",".join(self.manifests)
        if self.scope:
            found["scope"] = self.scope
        if self.relationships:
            found["relationship"] = ",".join(self.relationships)
        if self.classifications:
            found["classification"] = ",".join(self.classifications)
        if self.has_patch:
            found["has"] = "patch"
        if self.epss_at_least is not None:
            found["epss_percentage"] = f">={self.epss_at_least:g}"
        if self.assignees:
            found["assignee"] = ",".join(self.assignees)
        return found

    def matches(self, alert: Alert) -> bool:
        """The same filters on an alert that was read: some servers ignore some parameters.

        What is not known never excludes an alert, except an unknown severity
        under a threshold.
        """
        return (
            (not self.states or alert.state in self.states or alert.state == "")
            and alert.severity.meets(self.severity)
            and _any(self.ecosystems, alert.ecosystem, str.lower)
            and _any(self.packages, alert.package_name, lambda name: package_identity(alert.ecosystem, name))
            and (not self.manifests or alert.manifest_path in {path.lstrip("/") for path in self.manifests})
            and _any((self.scope,) if self.scope else (), alert.scope, str)
            and _any(self.relationships, alert.relationship, str)
            and _any(self.classifications, alert.classification, str)
            and (not self.has_patch or alert.first_patched_version is not None)
            and (self.epss_at_least is None or alert.epss is None or alert.epss >= self.epss_at_least)
            and self._is_assigned(alert)
            and self.is_recent(alert)
        )

    def _is_assigned(self, alert: Alert) -> bool:
        if not self.assignees:
            return True
        wanted = {name.lower() for name in self.assignees}
        has = {name.lower() for name in alert.assignees}
        return bool(wanted & has) or ("*" in wanted and bool(has)) or ("none" in wanted and not has)

    def is_recent(self, alert: Alert) -> bool:
        """Whether the alert is not older than `since`; one without a time is kept."""
        if self.since is None:
            return True
        since = parse_time(self.since)
        moment = parse_time(alert.updated_at if self.sort == "updated" else alert.created_at)
        return since is None or moment is None or moment >= since

    @property
    def server_sort(self) -> str | None:
        """The server's name for the order; None when it cannot sort so."""
        return _SERVER_SORT.get(self.sort)

    def sorted(self, alerts: Iterable[Alert]) -> list[Alert]:
        """The order that `sort` asks for: worst or newest first, ties by severity and number."""
        ordered = sorted(alerts, key=by_severity)
        match self.sort:
            case "severity":
                return ordered
            case "epss":
                return sorted(ordered, key=lambda alert: -1.0 if alert.epss is None else alert.epss, reverse=True)
            case "created":
                return sorted(ordered, key=lambda alert: alert.created_at, reverse=True)
            case "updated":
                return sorted(ordered, key=lambda alert: alert.updated_at, reverse=True)


def package_identity(ecosystem: str, name: str) -> str:
    """What names of one package have in common: no case, and for Python one kind of separator.

    Source: https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    lowered = name.lower()
    return re.sub(r"[-_.]+", "-", lowered) if ecosystem == "pip" else lowered


def _any(wanted: tuple[str, ...], value: str | None, identity: Callable[[str], str]) -> bool:
    return not wanted or value is None or identity(value) in {identity(word) for word in wanted}


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.lower() for word in _items(text)))


def _items(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _require(argument: str, word: str, allowed: tuple[str, ...], *, example: str) -> None:
    if word not in allowed:
        raise _wrong(argument, f"not one of {', '.join(allowed)}", example)


def _wrong(argument: str, rule: str, example: str) -> ArgumentError:
    return ArgumentError(
        f"{argument}: {rule}", hint=f"For example {argument}='{example}'.", details={"argument": argument}
    )


def _moment(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    written = text.strip()
    try:
        if len(written) == 10:
            moment = datetime.combine(date.fromisoformat(written), time(), UTC)
        else:
            moment = datetime.fromisoformat(written)
    except ValueError:
        raise _wrong("since", "not a date or time of ISO 8601", "2026-11-01") from None
    moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
