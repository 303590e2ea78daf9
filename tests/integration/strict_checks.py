"""The strictest check that each real package manager has for a lockfile, by project."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tools.bring import command_of, tools_folder


@dataclass(frozen=True)
class Check:
    """One run of a real tool that has to succeed, and a file that it must leave as it is."""

    tool: str
    arguments: tuple[str, ...]
    unchanged: str = ""
    may_drop: tuple[str, ...] = ()
    """Lines that the tool drops from the untouched start as well."""
    folder: str = "."
    program: str = ""
    """One beside the tool's own, in the same environment."""


_PIP = ("install", "--dry-run", "--ignore-installed", "--require-hashes", "--only-binary", ":all:", "--quiet", "-r")
_NPM = (
    ("ci", "--ignore-scripts", "--dry-run"),
    ("ls", "--all", "--package-lock-only"),
)
_NPM_RELOCK = ("install", "--package-lock-only", "--ignore-scripts", "--no-audit")
_PNPM_FROZEN = ("install", "--frozen-lockfile", "--lockfile-only", "--ignore-scripts")
_PNPM_RELOCK = ("install", "--lockfile-only", "--ignore-scripts", "--fix-lockfile")


def npm(tool: str, *, relock: str = "package-lock.json") -> tuple[Check, ...]:
    found = [Check(tool, arguments) for arguments in _NPM]
    return (*found, Check(tool, _NPM_RELOCK, unchanged=relock)) if relock else tuple(found)


def pnpm(tool: str, *may_drop: str) -> tuple[Check, ...]:
    return (
        Check(tool, _PNPM_FROZEN),
        Check(tool, _PNPM_RELOCK, unchanged="pnpm-lock.yaml", may_drop=may_drop),
    )


CHECKS: dict[str, tuple[Check, ...]] = {
    "npm-v1-legacy": (
        Check("npm-6", _NPM_RELOCK, unchanged="package-lock.json"),
        Check("npm-11", ("ci", "--ignore-scripts", "--dry-run")),
    ),
    "npm-v2-multi-line": npm("npm-11"),
    "npm-v3-direct": npm("npm-11"),
    "pnpm-v6-workspace": pnpm("pnpm-8", "    hasBin: true"),
    "pnpm-v9-override": pnpm("pnpm-9"),
    "yarn1-resolutions": (
        Check("yarn-1", ("install", "--frozen-lockfile", "--ignore-scripts", "--non-interactive")),
        Check("yarn-1", ("install", "--ignore-scripts", "--non-interactive"), unchanged="yarn.lock"),
    ),
    "yarn-berry-lines": (
        Check("yarn-4", ("install", "--immutable", "--mode=skip-build", "--check-resolutions"), unchanged="yarn.lock"),
    ),
    "uv-project": (Check("uv", ("lock", "--check")),),
    "poetry-groups": (Check("poetry", ("check", "--lock")),),
    "pipenv": (Check("pipenv", ("verify",)),),
    "pip-hashes": (
        Check("pip-tools", (*_PIP, "requirements.txt"), program="pip"),
        Check("pip-tools", (*_PIP, "requirements-dev.txt"), program="pip"),
    ),
}


_YARN_1 = ("install", "--ignore-scripts", "--non-interactive")
_YARN_4 = ("install", "--immutable", "--mode=skip-build", "--check-resolutions")
_BUN = ("install", "--frozen-lockfile", "--lockfile-only", "--ignore-scripts")


def checks_of(project: Path) -> tuple[Check, ...]:
    """The checks of a JavaScript project by its lockfiles and the tools that its judgement names."""
    named: dict[str, str] = json.loads((project / "expected.json").read_bytes())["project"].get("tools", {})
    found: list[Check] = []
    for path in sorted(project.rglob("*")):
        make = _BY_LOCK.get(path.name)
        if make is None:
            continue
        tool, checks = make
        version = str(named.get(tool, ""))
        name = tool if tool == "bun" else f"{tool}-{version.partition('.')[0]}"
        folder = path.parent.relative_to(project).as_posix()
        found += (replace(check, tool=name, folder=folder) for check in checks(path.name, name))
    return tuple(found)


_BY_LOCK: dict[str, tuple[str, Callable[[str, str], tuple[Check, ...]]]] = {
    "package-lock.json": ("npm", lambda lock, tool: npm(tool, relock=lock)),
    "npm-shrinkwrap.json": ("npm", lambda lock, tool: npm(tool, relock=lock)),
    # pnpm 8 drops these from locks that it made itself.
    "pnpm-lock.yaml": ("pnpm", lambda _, tool: pnpm(tool, *(["    hasBin: true"] if tool == "pnpm-8" else []))),
    "yarn.lock": (
        "yarn",
        lambda lock, tool: (
            (Check(tool, (*_YARN_1, "--frozen-lockfile")), Check(tool, _YARN_1, unchanged=lock))
            if tool == "yarn-1"
            else (Check(tool, _YARN_4, unchanged=lock),)
        ),
    ),
    "bun.lock": ("bun", lambda lock, tool: (Check(tool, _BUN, unchanged=lock),)),
}


def run_check(check: Check, top: Path, home: Path) -> None:
    """Fail with what the tool printed when it does not accept the project."""
    command = command_of(check.tool, tools_folder())
    assert command is not None, check.tool
    if check.program:
        command = [str(Path(command[0]).with_name(check.program))]
    home.mkdir(exist_ok=True)
    (home / ".npmrc").touch()
    before = (top / check.unchanged).read_bytes() if check.unchanged else b""
    environment = {
        **{name: value for name, value in os.environ.items() if name.upper() not in ("GITHUB_TOKEN", "CI")},
        "HOME": str(home),
        "npm_config_userconfig": str(home / ".npmrc"),
        "npm_config_cache": str(home.parent / "npm-cache"),
        "COREPACK_ENABLE_STRICT": "0",
        "npm_config_manage_package_manager_versions": "false",
        "pnpm_config_manage_package_manager_versions": "false",
        "pnpm_config_pm_on_fail": "ignore",
        "YARN_ENABLE_TELEMETRY": "0",
        "YARN_ENABLE_GLOBAL_CACHE": "0",
        "YARN_CACHE_FOLDER": str(home.parent / "yarn-cache"),
        "PIPENV_IGNORE_VIRTUALENVS": "1",
        "WORKON_HOME": str(home / "venvs"),
    }
    run = subprocess.run(
        [*command, *check.arguments],
        cwd=top / check.folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    said = f"{check.tool} {' '.join(check.arguments)}: {run.stdout[-3000:]}{run.stderr[-3000:]}"
    assert run.returncode == 0, said
    if check.unchanged:
        after = (top / check.unchanged).read_bytes()
        assert _without(after, check.may_drop) == _without(before, check.may_drop), (
            f"{said}\nit changed {check.unchanged}"
        )


def _without(content: bytes, lines: tuple[str, ...]) -> list[str]:
    return [line for line in content.decode().splitlines() if line not in lines]
