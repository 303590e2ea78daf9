"""Corpus projects with the installed clients' own registries in their lockfiles, as the real tools wrote them."""

import subprocess
from functools import cache
from pathlib import Path

from tools.bring import command_of, tools_folder

PROJECTS = Path(__file__).parent.parent / "data" / "projects"
_NOT_PROJECT = ("alerts.json", "expected.json")


@cache
def real_hosts() -> dict[str, str]:
    """Placeholder address → the installed client's default."""
    npm = _said(["npm", "config", "get", "registry"]).rstrip("/")
    code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print(PyPI.file_storage_domain)"
    pip_tools = command_of("pip-tools", tools_folder())
    assert pip_tools is not None
    simple, files = _said([str(Path(pip_tools[0]).with_name("python")), "-c", code]).splitlines()
    return {
        "https://npm.registry.example": npm,
        "https://yarn.registry.example": npm,
        "https://pypi.registry.example/simple": simple,
        "https://files.registry.example": f"https://{files}",
    }


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def materialise(project: Path, target: Path) -> Path:
    """A git checkout of `project` with real addresses."""
    for source in sorted(project.rglob("*")):
        if source.is_file() and source.name not in _NOT_PROJECT:
            content = source.read_bytes()
            for placeholder, real in real_hosts().items():
                content = content.replace(placeholder.encode(), real.encode())
            place = target / source.relative_to(project)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example", *arguments],
            cwd=target,
            check=True,
            capture_output=True,
        )
    return target
