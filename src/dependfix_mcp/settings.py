"""The settings as one frozen value. This module is the only reader of the environment."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

TOOLSETS: Final = ("dependfix", "suspec", "sudocode")


class Secret(str):
    """A text that does not show itself in `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret('***')"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set, checked; the defaults are those of the documentation."""

    github_token: Secret | None = None
    alerts_token: Secret | None = None
    app_id: str | None = None
    app_private_key: Secret | None = None
    app_installation_id: str | None = None
    gh_auth: bool = False
    github_api_url: str = ""
    """Normalised REST base without a trailing slash; empty means the public service."""
    registries: dict[str, str] = field(default_factory=dict)
    """Ecosystem (or `go-sum`) → base address."""
    offline: bool = False
    cache_dir: Path | None = None
    toolsets: tuple[str, ...] = TOOLSETS
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    read_only: bool = False
    confirm: bool = False
    workdir: Path | None = None
    roots: tuple[Path, ...] = ()
    project_dir: Path | None = None
    """The host's project variable (`CLAUDE_PROJECT_DIR`)."""
    repos: tuple[str, ...] = ()
    report_dir: Path | None = None
    relock: Literal["auto", "in-process", "tool"] = "auto"
    verify: tuple[str, ...] = ()
    verify_env: tuple[str, ...] = ()
    verify_with_tool: bool = False
    young_fixes: Literal["refuse", "exclude"] = "refuse"
    cooldown_days: int = 0
    group: Literal["repository", "unit", "package", "major"] = "repository"
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    draft: bool = False
    commit: bool = False
    max_wait_s: int = 60
    answer_within_s: int = 45
    run_timeout_s: int = 1800
    suspec_bin: str | None = None
    node_bin: str = "node"
    sudocode_path: str | None = None
    sudocode_db: str | None = None
    sudocode_working_dir: Path | None = None
    sudocode_actor: str | None = None
    sudocode_extras: bool = False
    transport: Literal["stdio", "http"] = "stdio"
    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    http_token: Secret | None = None
    share_token: bool = False
    ai: bool = False
    ai_api_key: Secret | None = None
    ai_api_base_url: str | None = None
    ai_model: str | None = None

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is set, for redaction."""
        held = (self.github_token, self.alerts_token, self.app_private_key, self.http_token, self.ai_api_key)
        return tuple(str(secret) for secret in held if secret)
