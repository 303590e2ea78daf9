"""The locks that are written in-process, judged by the strictest check of the real package managers."""

from pathlib import Path

import pytest

from dependfix_core.model.files import ChangeSet
from fakes.npm_writing import CASES, written_case
from integration.materialised import real_hosts
from integration.strict_checks import Check, npm, pnpm, run_check

_YARN = (
    Check("yarn-1", ("install", "--frozen-lockfile", "--ignore-scripts", "--non-interactive")),
    Check("yarn-1", ("install", "--ignore-scripts", "--non-interactive"), unchanged="yarn.lock"),
)
_BUN = (
    Check("bun", ("install", "--frozen-lockfile", "--lockfile-only", "--ignore-scripts")),
    Check("bun", ("install", "--lockfile-only", "--ignore-scripts"), unchanged="bun.lock"),
)
CHECKS = {
    "npm1-flags": (
        Check("npm-6", ("install", "--package-lock-only", "--ignore-scripts", "--no-audit"), "package-lock.json"),
        Check("npm-11", ("ci", "--ignore-scripts", "--dry-run")),
    ),
    **{
        name: npm("npm-11")
        for name in ("npm2-lines", "npm3-override", "npm3-override-edit", "npm3-closure", "npm2-closure")
    },
    **{name: pnpm("pnpm-8", "    hasBin: true") for name in ("pnpm6-coupled", "pnpm6-closure", "pnpm6-peers")},
    **{name: pnpm("pnpm-9") for name in ("pnpm9-lines", "pnpm9-override", "pnpm9-below-parent")},
    "pnpm9-peers": pnpm("pnpm-10"),
    "pnpm9-override-edit": pnpm("pnpm-10"),
    **dict.fromkeys(("bun2-closure", "bun2-override-edit"), _BUN),
    **dict.fromkeys(("yarn1-lines", "yarn1-resolution", "yarn1-override-edit"), _YARN),
}


def test_every_case_has_its_checks() -> None:
    assert set(CHECKS) == set(CASES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs_tool(*sorted({check.tool for check in checks})))
        for name, checks in CHECKS.items()
    ],
)
@pytest.mark.online
def test_the_real_tool_accepts_it(name: str, tmp_path: Path) -> None:
    files, changes = written_case(CASES[name])
    assert isinstance(changes, ChangeSet)
    after = {**files, **{change.path: change.after for change in changes.changes if change.after is not None}}
    top = tmp_path / "project"
    for path, content in after.items():
        text = content
        for placeholder, real in real_hosts().items():
            text = text.replace(placeholder.encode(), real.encode())
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(text)

    for check in CHECKS[name]:
        run_check(check, top, tmp_path / "home")
