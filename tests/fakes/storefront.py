"""The demonstration's repository as a loopback service, a registry and a git checkout."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dependfix_mcp.demo.hosted import REPOSITORY as REPO
from dependfix_mcp.demo.hosted import files, hosted_repository, records
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from dependfix_mcp.demo.loopback_registry import LoopbackRegistry
from dependfix_mcp.settings import Secret, Settings
from fakes.github_server import TOKEN

__all__ = ["REPO", "Storefront", "checkout", "files", "git", "storefront"]


def git(top: Path, *arguments: str) -> str:
    run = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example", *arguments],
        cwd=top,
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout


def checkout(top: Path) -> Path:
    for path, content in files().items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content)
    git(top, "init", "-q", "-b", "main")
    git(top, "remote", "add", "origin", f"https://github.com/{REPO}.git")
    git(top, "add", ".")
    git(top, "commit", "-qm", "start")
    return top


@dataclass(frozen=True, kw_only=True)
class Storefront:
    github: LoopbackGitHub
    registry: LoopbackRegistry
    top: Path
    settings: Settings

    @property
    def hosted(self) -> HostedRepository:
        return self.github.repositories[REPO]


@contextmanager
def storefront(folder: Path, **more: object) -> Iterator[Storefront]:
    with LoopbackGitHub([hosted_repository()], token=TOKEN) as github, LoopbackRegistry(records()) as registry:
        top = checkout(folder / "checkout")
        fields: dict[str, object] = {
            "github_token": Secret(TOKEN),
            "github_api_url": github.url,
            "registries": registry.registries,
            "workdir": top,
            "report_dir": folder / "reports",
            "toolsets": ("dependfix",),
            "relock": "in-process",
            **more,
        }
        yield Storefront(github=github, registry=registry, top=top, settings=Settings(**fields))  # type: ignore[arg-type] # fields by name
