"""The demonstration's repository as a loopback service, a registry and a git checkout."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dependfix_mcp.demo
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub
from dependfix_mcp.demo.loopback_registry import LoopbackRegistry
from dependfix_mcp.settings import Secret, Settings
from fakes.github_server import TOKEN

DATA = Path(dependfix_mcp.demo.__file__).parent / "data"
REPO = "acme/storefront"


def files() -> dict[str, bytes]:
    top = DATA / "repository"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}


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
    hosted = HostedRepository(full_name=REPO, alerts=json.loads((DATA / "alerts.json").read_bytes()), files=files())
    with LoopbackGitHub([hosted], token=TOKEN) as github, LoopbackRegistry(DATA) as registry:
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
