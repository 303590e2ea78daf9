"""The fields that are read of GitHub's payloads, and nothing more.

Every field beyond an alert's number may be missing or null. Strings that are
enumerations today stay open. What is not listed is ignored.

Source: https://docs.github.com/rest/dependabot/alerts
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


def _first(value: Any) -> Any:
    # Older descriptions show an array of one.
    return (value[0] if value else None) if isinstance(value, list) else value


class PackageWire(_Wire):
    """`package` of a dependency or vulnerability."""

    ecosystem: str | None = None
    name: str | None = None


class DependencyWire(_Wire):
    """`dependency`."""

    package: PackageWire | None = None
    manifest_path: str | None = None
    version_requirement: str | None = None
    scope: str | None = None
    relationship: str | None = None


class PatchedWire(_Wire):
    """`first_patched_version`."""

    identifier: str | None = None


class VulnerabilityWire(_Wire):
    """`security_vulnerability`, and each entry of an advisory's `vulnerabilities`."""

    package: PackageWire | None = None
    severity: str | None = None
    vulnerable_version_range: str | None = None
    first_patched_version: PatchedWire | None = None


class ScoreWire(_Wire):
    """A CVSS score; 0.0 means that there is none."""

    score: float | None = None


class ScoresWire(_Wire):
    """`cvss_severities`."""

    cvss_v3: ScoreWire | None = None
    cvss_v4: ScoreWire | None = None


class EpssWire(_Wire):
    """`epss`; numbers come as strings too."""

    percentage: float | None = None


class CweWire(_Wire):
    """One of `cwes`."""

    cwe_id: str | None = None


class AdvisoryWire(_Wire):
    """`security_advisory`, without its description and references."""

    ghsa_id: str | None = None
    cve_id: str | None = None
    summary: str | None = None
    severity: str | None = None
    classification: str | None = None
    vulnerabilities: list[VulnerabilityWire | None] | None = None
    cvss: ScoreWire | None = None
    cvss_severities: ScoresWire | None = None
    epss: Annotated[EpssWire | None, BeforeValidator(_first)] = None
    cwes: list[CweWire | None] | None = None
    withdrawn_at: str | None = None


class UserWire(_Wire):
    """A simple user."""

    login: str | None = None


class DismissalWire(_Wire):
    """`dismissal_request`."""

    status: str | None = None


class OwnedWire(_Wire):
    """`repository` of an alert in an organisation's list."""

    full_name: str | None = None


class AlertWire(_Wire):
    """One alert. Only the number is indispensable."""

    number: int
    state: str | None = None
    dependency: DependencyWire | None = None
    security_advisory: AdvisoryWire | None = None
    security_vulnerability: VulnerabilityWire | None = None
    html_url: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    dismissed_at: str | None = None
    dismissed_by: UserWire | None = None
    dismissed_reason: str | None = None
    dismissed_comment: str | None = None
    fixed_at: str | None = None
    auto_dismissed_at: str | None = None
    dismissal_request: DismissalWire | None = None
    assignees: list[UserWire | None] | None = None
    repository: OwnedWire | None = None


class PermissionsWire(_Wire):
    """What the token may do in a repository."""

    push: bool | None = None
    admin: bool | None = None


class RepositoryWire(_Wire):
    """A repository, in full or as a list shows it."""

    full_name: str
    default_branch: str | None = None
    html_url: str | None = None
    private: bool | None = None
    archived: bool | None = None
    disabled: bool | None = None
    fork: bool | None = None
    topics: list[str | None] | None = None
    permissions: PermissionsWire | None = None
    pushed_at: str | None = None


class AccountWire(_Wire):
    """The user behind a token."""

    login: str | None = None


class TreeEntryWire(_Wire):
    """One entry of a git tree."""

    path: str
    mode: str | None = None
    type: str | None = None
    sha: str | None = None
    size: int | None = None


class TreeWire(_Wire):
    """A git tree."""

    sha: str | None = None
    tree: list[TreeEntryWire] = []
    truncated: bool | None = None


class NamedWire(_Wire):
    """An entry of a folder, or a label."""

    name: str | None = None
    type: str | None = None


class BranchWire(_Wire):
    """An end of a pull request."""

    ref: str | None = None
    sha: str | None = None
    repo: OwnedWire | None = None


class PullRequestWire(_Wire):
    """A pull request as a list shows it."""

    number: int
    state: str | None = None
    title: str | None = None
    body: str | None = None
    html_url: str | None = None
    draft: bool | None = None
    user: UserWire | None = None
    head: BranchWire | None = None
    base: BranchWire | None = None
    merged_at: str | None = None
    closed_at: str | None = None
    labels: list[NamedWire | None] | None = None


ALERTS: TypeAdapter[list[AlertWire]] = TypeAdapter(list[AlertWire])
