"""From GitHub's payload to `Alert`; the only module that knows both."""

import re
from functools import lru_cache
from typing import Final

from dependfix_core.github.decode import AlertProblem, ReadAlert
from dependfix_core.github.query import package_identity
from dependfix_core.github.wire import AdvisoryWire, DependencyWire, PackageWire, VulnerabilityWire
from dependfix_core.model.alert import AffectedRange, Alert, Severity
from dependfix_core.model.repository import full_name_of
from dependfix_core.process.redact import clean_text

SUMMARY_CHARS: Final = 300
COMMENT_CHARS: Final = 300
NAME_CHARS: Final = 1000
MOMENT_CHARS: Final = 40


def alert_of(read: ReadAlert, repository: str, *, default_branch: str = "", assumed_state: str = "") -> Alert:
    """The alert of one item.

    Args:
        read: The item as it was decoded.
        repository: `owner/name`, where the item does not say it itself; empty when only the item can.
        default_branch: Of the repository, when known.
        assumed_state: The one that was asked for, where the item has none.
    """
    wire = read.wire
    advisory: AdvisoryWire = wire.get("security_advisory") or {}
    own: VulnerabilityWire = wire.get("security_vulnerability") or {}
    dependency: DependencyWire = wire.get("dependency") or {}
    package: PackageWire = dependency.get("package") or own.get("package") or {}
    ecosystem = _word(package.get("ecosystem"))
    name = _word(package.get("name"))
    owner = wire.get("repository")
    epss, cwes, assignees = advisory.get("epss"), advisory.get("cwes"), wire.get("assignees")
    dismisser, request = wire.get("dismissed_by"), wire.get("dismissal_request")
    return Alert(
        repository=(_word(owner.get("full_name")) if owner else "")
        or repository
        or _repository_in(wire.get("html_url")),
        number=wire["number"],
        state=_word(wire.get("state")) or assumed_state,
        severity=Severity.of(own.get("severity") or advisory.get("severity")),
        ecosystem=ecosystem,
        package_name=name,
        manifest_path=_word(dependency.get("manifest_path")),
        ghsa_id=_word(advisory.get("ghsa_id")),
        cve_id=_word(advisory.get("cve_id")) or None,
        summary=_text(advisory.get("summary"), SUMMARY_CHARS),
        html_url=_address(wire.get("html_url")),
        vulnerable_range=_word(own.get("vulnerable_version_range")),
        first_patched_version=_patched(own),
        other_ranges=_other_ranges(advisory.get("vulnerabilities"), own, ecosystem, name),
        relationship=_word(dependency.get("relationship")) or None,
        scope=_word(dependency.get("scope")) or None,
        version_requirement=_stated(dependency.get("version_requirement")),
        classification=_word(advisory.get("classification")) or "general",
        cvss_score=_score(advisory),
        epss=epss.get("percentage") if epss else None,
        cwe_ids=tuple([_word(cwe.get("cwe_id")) for cwe in cwes if cwe and cwe.get("cwe_id")]) if cwes else (),
        created_at=_moment(wire.get("created_at")) or "",
        updated_at=_moment(wire.get("updated_at")) or "",
        fixed_at=_moment(wire.get("fixed_at")),
        auto_dismissed_at=_moment(wire.get("auto_dismissed_at")),
        dismissed_at=_moment(wire.get("dismissed_at")),
        dismissed_by=_word(dismisser.get("login")) or None if dismisser else None,
        dismissed_reason=_word(wire.get("dismissed_reason")) or None,
        dismissed_comment=_text(wire.get("dismissed_comment"), COMMENT_CHARS) or None,
        dismissal_request=_word(request.get("status")) or None if request else None,
        withdrawn_at=_moment(advisory.get("withdrawn_at")),
        assignees=tuple([_word(user.get("login")) for user in assignees if user and user.get("login")])
        if assignees
        else (),
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
    entries: list[VulnerabilityWire | None] | None, own: VulnerabilityWire, ecosystem: str, name: str
) -> tuple[AffectedRange, ...]:
    if not entries or (len(entries) == 1 and entries[0] == own):
        return ()
    identity = package_identity(ecosystem, name)
    seen = {(_word(own.get("vulnerable_version_range")), _patched(own))}
    found: list[AffectedRange] = []
    for entry in entries:
        package = entry.get("package") if entry and entry != own else None
        if not entry or not package or _word(package.get("ecosystem")) != ecosystem:
            continue
        key = (_word(entry.get("vulnerable_version_range")), _patched(entry))
        if key[0] and key not in seen and package_identity(ecosystem, _word(package.get("name"))) == identity:
            seen.add(key)
            found.append(AffectedRange(vulnerable_range=key[0], first_patched_version=key[1]))
    return tuple(found)


def _patched(entry: VulnerabilityWire) -> str | None:
    patched = entry.get("first_patched_version")
    return _word(patched.get("identifier")) or None if patched else None


def _score(advisory: AdvisoryWire) -> float | None:
    """The CVSS score, the newest version first; 0.0 means that there is none."""
    scores = advisory.get("cvss_severities") or {}
    for score in (scores.get("cvss_v4"), scores.get("cvss_v3"), advisory.get("cvss")):
        value = score.get("score") if score else None
        if value:
            return value
    return None


def _repository_in(address: str | None) -> str:
    """`owner/name` in the web address of an alert; empty when there is none."""
    match = re.fullmatch(r"https?://[^/]+/([^/]+/[^/]+)/security/dependabot/\d+", address or "")
    return full_name_of(match.group(1)) or "" if match else ""


@lru_cache(maxsize=8192)
def _word(text: str | None) -> str:
    """One clean line without blanks around it; few different texts come in many alerts."""
    if not text:
        return ""
    # Nearly everything is plain: then a look is enough.
    if text.isascii() and text.isprintable() and len(text) <= NAME_CHARS:
        return text.strip()
    return clean_text(text, max_chars=NAME_CHARS, one_line=True).strip()


def _text(text: str | None, max_chars: int) -> str:
    return clean_text(text, max_chars=max_chars, one_line=True) if text else ""


def _moment(text: str | None) -> str | None:
    if not text:
        return None
    is_plain = text.isascii() and text.isprintable() and len(text) <= MOMENT_CHARS
    return text if is_plain else clean_text(text, max_chars=MOMENT_CHARS, one_line=True)


def _stated(text: str | None) -> str | None:
    """None is not stated, empty is unconstrained."""
    return None if text is None else _word(text)


def _address(text: str | None) -> str:
    if not text or not text.startswith(("https://", "http://")):
        return ""
    cleaned = clean_text(text, max_chars=NAME_CHARS, one_line=True)
    return cleaned if " " not in cleaned else ""
