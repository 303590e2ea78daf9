"""From GitHub's payload to `Alert`; the only module that knows both."""

import re
from sys import intern
from typing import Final

from dependfix_core.github.decode import AlertProblem, ReadAlert
from dependfix_core.github.query import package_identity
from dependfix_core.github.wire import AdvisoryWire, PackageWire, ScoreWire, VulnerabilityWire
from dependfix_core.model.alert import AffectedRange, Alert, Severity
from dependfix_core.model.repository import full_name_of
from dependfix_core.process.redact import clean_text

SUMMARY_CHARS: Final = 300
COMMENT_CHARS: Final = 300
NAME_CHARS: Final = 1000


def alert_of(read: ReadAlert, repository: str, *, default_branch: str = "", assumed_state: str = "") -> Alert:
    """The alert of one item.

    Args:
        read: The item as it was decoded.
        repository: `owner/name`, where the item does not say it itself; empty when only the item can.
        default_branch: Of the repository, when known.
        assumed_state: The one that was asked for, where the item has none.
    """
    wire = read.wire
    advisory = wire.security_advisory or AdvisoryWire()
    own = wire.security_vulnerability or VulnerabilityWire()
    dependency = wire.dependency
    package = (dependency.package if dependency is not None else None) or own.package or PackageWire()
    ecosystem = _word(package.ecosystem)
    name = _name(package.name)
    owner = wire.repository.full_name if wire.repository is not None else None
    return Alert(
        repository=_word(owner) or repository or _repository_in(wire.html_url),
        number=wire.number,
        state=_word(wire.state) or assumed_state,
        severity=Severity.of(own.severity or advisory.severity),
        ecosystem=ecosystem,
        package_name=name,
        manifest_path=_name(dependency.manifest_path) if dependency is not None else "",
        ghsa_id=_word(advisory.ghsa_id),
        cve_id=_optional(advisory.cve_id),
        summary=clean_text(advisory.summary, max_chars=SUMMARY_CHARS, one_line=True) if advisory.summary else "",
        html_url=_address(wire.html_url),
        vulnerable_range=_word(own.vulnerable_version_range),
        first_patched_version=_patched(own),
        other_ranges=_other_ranges(advisory, own, ecosystem, name),
        relationship=_optional(dependency.relationship) if dependency is not None else None,
        scope=_optional(dependency.scope) if dependency is not None else None,
        version_requirement=_stated(dependency.version_requirement) if dependency is not None else None,
        classification=_word(advisory.classification) or "general",
        cvss_score=_score(advisory),
        epss=advisory.epss.percentage if advisory.epss is not None else None,
        cwe_ids=tuple(_word(cwe.cwe_id) for cwe in advisory.cwes or () if cwe is not None and cwe.cwe_id),
        created_at=_moment(wire.created_at) or "",
        updated_at=_moment(wire.updated_at) or "",
        fixed_at=_moment(wire.fixed_at),
        auto_dismissed_at=_moment(wire.auto_dismissed_at),
        dismissed_at=_moment(wire.dismissed_at),
        dismissed_by=_optional(wire.dismissed_by.login) if wire.dismissed_by is not None else None,
        dismissed_reason=_optional(wire.dismissed_reason),
        dismissed_comment=clean_text(wire.dismissed_comment, max_chars=COMMENT_CHARS, one_line=True)
        if wire.dismissed_comment
        else None,
        dismissal_request=_optional(wire.dismissal_request.status) if wire.dismissal_request is not None else None,
        withdrawn_at=_moment(advisory.withdrawn_at),
        assignees=tuple(_word(user.login) for user in wire.assignees or () if user is not None and user.login),
        default_branch=default_branch,
        unreadable=read.unreadable,
    )


def problems_of(alert: Alert) -> tuple[AlertProblem, ...]:
    """What of this alert could not be read, in at most one line."""
    lost = [f"{path} has an unknown shape" for path in alert.unreadable]
    if not alert.is_readable:
        known = (alert.ecosystem and alert.package_name, alert.vulnerable_range)
        missing = [what for what, value in zip(("its package", "its version range"), known, strict=True) if not value]
        lost.append(f"{' and '.join(missing)} is not stated")
    if not lost:
        return ()
    return (AlertProblem(number=alert.number, repository=alert.repository, message="; ".join(lost)),)


def _other_ranges(
    advisory: AdvisoryWire, own: VulnerabilityWire, ecosystem: str, name: str
) -> tuple[AffectedRange, ...]:
    entries = advisory.vulnerabilities
    if not entries or (len(entries) == 1 and entries[0] == own):
        return ()
    identity = package_identity(ecosystem, name)
    seen = {(_word(own.vulnerable_version_range), _patched(own))}
    found: list[AffectedRange] = []
    for entry in entries:
        if entry is None or entry.package is None or _word(entry.package.ecosystem) != ecosystem:
            continue
        key = (_word(entry.vulnerable_version_range), _patched(entry))
        if key[0] and key not in seen and package_identity(ecosystem, _name(entry.package.name)) == identity:
            seen.add(key)
            found.append(AffectedRange(vulnerable_range=key[0], first_patched_version=key[1]))
    return tuple(found)


def _patched(entry: VulnerabilityWire) -> str | None:
    return _optional(entry.first_patched_version.identifier) if entry.first_patched_version is not None else None


def _score(advisory: AdvisoryWire) -> float | None:
    """The CVSS score, the newest version first; 0.0 means that there is none."""
    scores = advisory.cvss_severities
    modern: tuple[ScoreWire | None, ...] = (scores.cvss_v4, scores.cvss_v3) if scores is not None else ()
    for wire in (*modern, advisory.cvss):
        if wire is not None and wire.score:
            return wire.score
    return None


def _repository_in(address: str | None) -> str:
    """`owner/name` in the web address of an alert; empty when there is none."""
    match = re.fullmatch(r"https?://[^/]+/([^/]+/[^/]+)/security/dependabot/\d+", address or "")
    return full_name_of(match.group(1)) or "" if match else ""


def _word(text: str | None) -> str:
    # Few different texts for many alerts.
    return intern(clean_text(text, max_chars=NAME_CHARS, one_line=True).strip()) if text else ""


def _name(text: str | None) -> str:
    return intern(clean_text(text, max_chars=NAME_CHARS, one_line=True)) if text else ""


def _optional(text: str | None) -> str | None:
    return _word(text) or None


def _moment(text: str | None) -> str | None:
    return clean_text(text, max_chars=40, one_line=True) if text else None


def _stated(text: str | None) -> str | None:
    """None is not stated, empty is unconstrained."""
    return None if text is None else _word(text)


def _address(text: str | None) -> str:
    cleaned = clean_text(text, max_chars=NAME_CHARS, one_line=True) if text else ""
    return cleaned if cleaned.startswith(("https://", "http://")) and " " not in cleaned else ""
