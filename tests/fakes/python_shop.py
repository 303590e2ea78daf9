"""A Python repository on the loopback GitHub, its index, and a git checkout, behind the server's own door."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from dependfix_mcp.settings import Secret, Settings
from fakes.github_server import TOKEN
from fakes.python_index import Published, PythonIndex
from fakes.storefront import git

REPO = "acme/snakes"


@dataclass(frozen=True, kw_only=True)
class Shop:
    index: PythonIndex
    top: Path
    settings: Settings

    def changed(self) -> list[str]:
        """Paths that are not as they were committed."""
        return [line[3:] for line in git(self.top, "status", "--porcelain").splitlines()]


def alert_payload(
    number: int, package: str, manifest: str, vulnerable: str, patched: str | None, *, ecosystem: str = "pip"
) -> dict[str, Any]:
    """One alert of the REST API."""
    about = {"package": {"ecosystem": ecosystem, "name": package}, "severity": "high"}
    entry = {
        **about,
        "vulnerable_version_range": vulnerable,
        "first_patched_version": {"identifier": patched} if patched else None,
    }
    dates = dict.fromkeys(("created_at", "updated_at"), "2026-01-01T00:00:00Z")
    nothing = ("dismissed_at", "dismissed_by", "dismissed_reason", "dismissed_comment", "fixed_at", "auto_dismissed_at")
    return {
        "number": number,
        "state": "open",
        "dependency": {"package": about["package"], "manifest_path": manifest, "scope": "runtime"},
        "security_advisory": {
            "ghsa_id": f"GHSA-aaaa-bbbb-{number:04d}",
            "cve_id": None,
            "summary": f"{package} is weak",
            "description": "",
            "severity": "high",
            "identifiers": [],
            "references": [],
            "published_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "withdrawn_at": None,
            "vulnerabilities": [entry],
        },
        "security_vulnerability": entry,
        "url": f"https://api.github.com/repos/{REPO}/dependabot/alerts/{number}",
        "html_url": f"https://github.com/{REPO}/security/dependabot/{number}",
        **dates,
        **dict.fromkeys(nothing),
    }


@contextmanager
def python_shop(
    folder: Path,
    files: Mapping[str, bytes],
    alerts: Sequence[dict[str, Any]],
    index: PythonIndex,
    **more: object,
) -> Iterator[Shop]:
    """The running parts; `index` is served by the caller."""
    hosted = HostedRepository(full_name=REPO, alerts=list(alerts), files=dict(files))
    top = folder / "checkout"
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content)
    git(top, "init", "-q", "-b", "main")
    git(top, "remote", "add", "origin", f"https://github.com/{REPO}.git")
    git(top, "add", ".")
    git(top, "commit", "-qm", "start")
    with LoopbackGitHub([hosted], token=TOKEN) as github:
        fields: dict[str, object] = {
            "github_token": Secret(TOKEN),
            "github_api_url": github.url,
            "registries": {"pip": index.simple},
            "workdir": top,
            "report_dir": folder / "reports",
            "toolsets": ("dependfix",),
            "relock": "in-process",
            "environment": {"PATH": "/usr/bin:/bin", "HOME": str(folder)},
            **more,
        }
        yield Shop(index=index, top=top, settings=Settings(**fields))  # type: ignore[arg-type] # fields by name


def shop_packages() -> list[Published]:
    """leaf 1.0 to 2.0, tree above it, and a few others."""
    return [
        *(Published(name="leaf", version=version, requires_python=">=3.8") for version in ("1.0", "1.1", "1.2", "2.0")),
        *(Published(name="lone", version=version) for version in ("1.0", "1.1")),
        Published(name="tree", version="1.0", requires=("leaf>=1.0,<2",)),
        Published(name="tree", version="1.1", requires=("leaf>=1.1,<2",)),
        Published(name="keeper", version="1.0", requires=("leaf<1.1",)),
    ]
