"""Harder Python projects are fixed in a checkout, and their real package managers accept what was written."""

import json
from pathlib import Path

import pytest

from dependfix_core.ecosystems.pip.write_pipenv import pipfile_hash
from fakes import harder
from fakes.storefront import git
from integration.fixing import fixed
from integration.materialised import materialise
from integration.strict_checks import Check, run_check
from integration.test_fix_harder import DISPOSITIONS

pytestmark = [pytest.mark.anyio, pytest.mark.online, pytest.mark.timeout(600)]

_HASHED = ("install", "--dry-run", "--ignore-installed", "--require-hashes", "--only-binary", ":all:", "--quiet", "-r")
_PLAIN = ("install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--quiet", "-r")
_WINDOWS = ("--platform", "win_amd64", "--python-version", "3.11", "--target", "x")
_COMPILE = ("pip", "compile", "--quiet", "--generate-hashes", "--python-version", "3.10", "--python-platform")
_PYLOCK = ("pip", "compile", "--quiet", "--universal", "--python-version", "3.9", "--group", "dev")


def _folders(name: str, lock: str) -> list[str]:
    """Where a project has locks."""
    root = harder.folder(name)
    return sorted(path.parent.relative_to(root).as_posix() for path in root.rglob(lock))


CHECKS: dict[str, tuple[Check, ...]] = {
    "uv-workspace-shop": (Check("uv", ("lock", "--check")), Check("uv", ("lock",), unchanged="uv.lock")),
    "poetry-shop": (Check("poetry", ("check", "--lock")), Check("poetry", ("lock",), unchanged="poetry.lock")),
    "pdm-shop": (
        Check("pdm", ("lock", "--check")),
        Check("pdm", ("lock", "--update-reuse"), unchanged="pdm.lock"),
    ),
    "pylock-shop": (Check("uv", (*_PYLOCK, "pyproject.toml", "-o", "pylock.toml"), unchanged="pylock.toml"),),
    "pip-linux-windows": (
        *(
            Check(
                "uv",
                (*_COMPILE, platform, "requirements/base.in", "-o", f"requirements/{platform}.txt"),
                unchanged=f"requirements/{platform}.txt",
            )
            for platform in ("linux", "windows")
        ),
        Check("pip-tools", (*_HASHED, "requirements/linux.txt"), program="pip"),
        Check("pip-tools", (*_HASHED, "requirements/dev.txt"), program="pip"),
    ),
    "pip-layers": tuple(
        Check("pip-tools", (*_PLAIN, f"requirements/{name}.txt"), program="pip") for name in ("dev", "prod", "tools")
    ),
    "pdm-groups-flags": (Check("pdm", ("lock", "--check")),),
    "pip-tree-conflicts": (Check("pip-tools", (*_PLAIN, "requirements/dev.txt"), program="pip"),),
    "pip-two-platforms": (
        Check("pip-tools", (*_HASHED, "requirements-linux.txt"), program="pip"),
        Check("pip-tools", (*_HASHED, "requirements.txt"), program="pip"),
        Check("pip-tools", (*_HASHED, "requirements-windows.txt", *_WINDOWS), program="pip"),
    ),
    "poetry1-legacy-forks": (Check("poetry-1", ("check", "--lock")),),
    "poetry2-sources-extras": (Check("poetry", ("check", "--lock")),),
    "pylock-two-writers": (
        Check("pip-tools", (*_PLAIN, "pylock.deploy.toml"), program="pip"),
        Check("uv", ("pip", "install", "--dry-run", "--target", "x", "-r", "pylock.toml", "--preview")),
    ),
    "uv-workspace-forks": (Check("uv", ("lock", "--check")),),
    "pip-compile-layers": tuple(
        Check("pip-tools", (*_HASHED, f"{name}.txt"), program="pip")
        for name in ("requirements", "requirements-dev", "requirements-deploy")
    ),
    "uv-gates-policy": tuple(
        Check("uv", ("lock", "--check"), folder=folder) for folder in _folders("uv-gates-policy", "uv.lock")
    ),
    "pipenv-categories": (Check("pipenv", ("verify",)),),
    # What is refused here leaves nothing that a tool would take.
    "refusals-locks": (),
    "refusals-manifests": (),
    # Manifests without a lock have no package manager that says more than that they can be read.
    "manifests-alone": (),
}


def marked(name: str) -> object:
    tools = sorted({check.tool for check in CHECKS[name]} | {"pip-tools"})
    return pytest.param(name, marks=pytest.mark.needs_tool(*tools))


def rehash(top: Path) -> None:
    """A Pipfile's digest counts the addresses of its indexes, which are real ones now."""
    lock = top / "Pipfile.lock"
    if lock.exists():
        old = json.loads(lock.read_bytes())["_meta"]["hash"]["sha256"].encode()
        lock.write_bytes(lock.read_bytes().replace(old, pipfile_hash((top / "Pipfile").read_bytes()).encode()))
        git(top, "commit", "-qam", "digest")


@pytest.mark.parametrize("name", [marked(name) for name in CHECKS])
async def test_a_fixed_harder_python_project_is_accepted_by_its_package_manager(name: str, tmp_path: Path) -> None:
    top = materialise(harder.folder(name), tmp_path / "top")
    rehash(top)

    # Forks that become one copy, and what brings something new in, are the package manager's to write.
    tools = {check.tool.partition("-1")[0]: check.tool for check in CHECKS[name] if not check.program}
    plan, applied = await fixed(
        top, harder.alerts(name), harder.records(), tools, policy=harder.policy(name), now=harder.now(name)
    )

    assert {one.alert: one.disposition for one in applied.dispositions} == {
        one.alert: DISPOSITIONS[one.outcome] for one in plan.outcomes
    }, [error.message for error in applied.errors]
    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")


def test_every_python_project_of_the_harder_ones_is_checked() -> None:
    names = {"pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml"}
    python = {
        name
        for name in harder.NAMES
        if any(Path(path).name in names or Path(path).suffix == ".txt" for path in harder.files(name))
    }

    assert set(CHECKS) == python
