"""The fields that are read of GitHub's payloads, and nothing more.

Every field beyond an alert's number may be missing or null. Strings that are
enumerations today stay open. What is not listed is ignored. Alerts come by the
thousand and are dictionaries, which are half as expensive as models.

Source: https://docs.github.com/rest/dependabot/alerts
"""

from typing import Annotated, Any, Required

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter
from typing_extensions import TypedDict


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


def _first(value: Any) -> Any:
    # Older descriptions show an array of one.
    return (value[0] if value else None) if isinstance(value, list) else value


class PackageWire(TypedDict, total=False):
    """`package` of a dependency or vulnerability."""

    ecosystem: str | None
    name: str | None


class DependencyWire(TypedDict, total=False):
    """`dependency`."""

    package: PackageWire | None
    manifest_path: str | None
    version_requirement: str | None
    scope: str | None
    relationship: str | None


class PatchedWire(TypedDict, total=False):
    """`first_patched_version`."""

    identifier: str | None


class VulnerabilityWire(TypedDict, total=False):
    """`security_vulnerability`, and each entry of an advisory's `vulnerabilities`."""

    package: PackageWire | None
    severity: str | None
    vulnerable_version_range: str | None
    first_patched_version: PatchedWire | None


class ScoreWire(TypedDict, total=False):
    """A CVSS score; 0.0 means that there is none."""

    score: float | None


class ScoresWire(TypedDict, total=False):
    """`cvss_severities`."""

    cvss_v3: ScoreWire | None
    cvss_v4: ScoreWire | None


class EpssWire(TypedDict, total=False):
    """`epss`; numbers come as strings too."""

    percentage: float | None


class CweWire(TypedDict, total=False):
    """One of `cwes`."""

    cwe_id: str | None


class AdvisoryWire(TypedDict, total=False):
    """`security_advisory`, without its description and references."""

    ghsa_id: str | None
    cve_id: str | None
    summary: str | None
    severity: str | None
    classification: str | None
    vulnerabilities: list[VulnerabilityWire | None] | None
    cvss: ScoreWire | None
    cvss_severities: ScoresWire | None
    epss: Annotated[EpssWire | None, BeforeValidator(_first)]
    cwes: list[CweWire | None] | None
    withdrawn_at: str | None


class UserWire(TypedDict, total=False):
    """A simple user."""

    login: str | None


class DismissalWire(TypedDict, total=False):
    """`dismissal_request`."""

    status: str | None


class OwnedWire(TypedDict, total=False):
    """`repository` of an alert in an organisation's list."""

    full_name: str | None


class AlertWire(TypedDict, total=False):
    """One alert. Only the number is indispensable."""

    number: Required[int]
    state: str | None
    dependency: DependencyWire | None
    security_advisory: AdvisoryWire | None
    security_vulnerability: VulnerabilityWire | None
    html_url: str | None
    created_at: str | None
    updated_at: str | None
    dismissed_at: str | None
    dismissed_by: UserWire | None
    dismissed_reason: str | None
    dismissed_comment: str | None
    fixed_at: str | None
    auto_dismissed_at: str | None
    dismissal_request: DismissalWire | None
    assignees: list[UserWire | None] | None
    repository: OwnedWire | None


ALERT: TypeAdapter[AlertWire] = TypeAdapter(AlertWire)
ALERTS: TypeAdapter[list[AlertWire]] = TypeAdapter(list[AlertWire])


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


class AuthorWire(_Wire):
    """Who opened a pull request."""

    login: str | None = None


class ForkWire(_Wire):
    """The repository of a branch."""

    full_name: str | None = None


class BranchWire(_Wire):
    """An end of a pull request."""

    ref: str | None = None
    sha: str | None = None
    repo: ForkWire | None = None


class PullRequestWire(_Wire):
    """A pull request as a list shows it."""

    number: int
    state: str | None = None
    title: str | None = None
    body: str | None = None
    html_url: str | None = None
    draft: bool | None = None
    user: AuthorWire | None = None
    head: BranchWire | None = None
    base: BranchWire | None = None
    merged_at: str | None = None
    closed_at: str | None = None
    labels: list[NamedWire | None] | None = None
