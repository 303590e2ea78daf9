"""Every reason for which a Python alert can be refused, each by a project that gives it and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from dependfix_core.model.alert import Alert
from dependfix_core.model.policy import ScanPolicy
from fakes.planning import ALL
from fakes.python_fixing import fix_in_memory
from fakes.python_index import Published
from fakes.universe import alert

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, kw_only=True)
class Case:
    reason: str
    files: Mapping[str, str]
    published: Sequence[Published] = ()
    vulnerable: str = "< 1.1"
    patched: str | None = "1.1"
    manifest: str = "requirements.txt"
    policy: ScanPolicy = ALL
    outcome: str = "refuse"
    blocked_by: str | None = None
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.reason}{'-' if self.name else ''}{self.name}"

    @property
    def alert(self) -> Alert:
        return alert(1, "leaf", self.vulnerable, self.patched, manifest=self.manifest, ecosystem="pip")


def leaf(*versions: str, **fields: str) -> list[Published]:
    return [Published(name="leaf", version=version, **fields) for version in versions]  # type: ignore[arg-type] # texts


PYPROJECT = '[project]\nname = "app"\nrequires-python = ">=3.8"\ndependencies = ["leaf>=1.0"]\n'
CASES = [
    Case(
        reason="no-patch",
        files={"requirements.txt": "leaf==1.0\n"},
        published=leaf("1.0", "1.1"),
        vulnerable="<= 9",
        patched=None,
    ),
    Case(
        reason="no-stable-patch",
        files={"requirements.txt": "leaf==1.0\n"},
        published=leaf("1.0", "1.1rc1"),
        vulnerable="< 1.1rc1",
        patched="1.1rc1",
    ),
    Case(
        reason="no-patch",
        name="withdrawn",
        files={"requirements.txt": "leaf==1.0\n"},
        published=[*leaf("1.0"), Published(name="leaf", version="1.1", yanked=True)],
    ),
    Case(
        reason="major-required",
        files={"requirements.txt": "leaf==1.0\n"},
        published=leaf("1.0", "2.0"),
        vulnerable="< 2",
        patched="2.0",
        blocked_by="requirements.txt leaf asks `==1.0`",
    ),
    Case(
        reason="runtime-floor",
        files={"pyproject.toml": PYPROJECT},
        published=[*leaf("1.0", requires_python=">=3.8"), *leaf("1.1", requires_python=">=3.10")],
        manifest="pyproject.toml",
    ),
    Case(
        reason="no-wheel-for-runtime",
        files={"pyproject.toml": PYPROJECT},
        published=[*leaf("1.0"), Published(name="leaf", version="1.1", wheel=False, backend="pass")],
        manifest="pyproject.toml",
    ),
    Case(
        reason="constraint-conflict",
        files={"requirements.txt": "-c constraints.txt\nleaf==1.0\n", "constraints.txt": "leaf<1.1\n"},
        published=leaf("1.0", "1.1"),
        blocked_by="constraints.txt leaf asks `<1.1`",
    ),
    Case(
        reason="override-unsupported",
        files={"requirements.txt": "leaf==1.0\nkeeper==1.0\n"},
        published=[*leaf("1.0", "1.1"), Published(name="keeper", version="1.0", requires=("leaf<1.1",))],
        blocked_by="keeper 1.0 asks `<1.1`",
    ),
    Case(
        reason="parent-bump-required",
        files={
            "requirements.in": "keeper==1.0\n",
            "requirements.txt": "keeper==1.0\n    # via -r requirements.in\nleaf==1.0\n    # via keeper\n",
        },
        published=[
            *leaf("1.0", "1.1"),
            Published(name="keeper", version="1.0", requires=("leaf<1.1",)),
            Published(name="keeper", version="1.1", requires=("leaf>=1.1",)),
        ],
        policy=ScanPolicy(severity="all", allow_parent_bump=False),
        blocked_by="keeper 1.0 asks `<1.1`",
    ),
    Case(
        reason="non-registry-source",
        files={"requirements.txt": "leaf @ git+https://git.example/leaf@v1.0\n"},
        published=leaf("1.0", "1.1"),
    ),
    Case(reason="dynamic-version", files={"requirements.txt": "leaf\n"}, published=leaf("1.0", "1.1")),
    Case(
        reason="dynamic-version",
        name="computed",
        files={"setup.py": "from setuptools import setup\nsetup(install_requires=['leaf>=' + '1.0'])\n"},
        published=leaf("1.0", "1.1"),
        manifest="setup.py",
    ),
    Case(
        reason="unparsable-version",
        files={"requirements.txt": "leaf===2004d\n"},
        published=leaf("1.1"),
    ),
    Case(
        reason="unsupported-lock-format",
        files={"uv.lock": "version = 99\n", "pyproject.toml": PYPROJECT},
        published=leaf("1.0", "1.1"),
        manifest="uv.lock",
    ),
    Case(
        reason="manifest-missing",
        files={},
        manifest="poetry.lock",
        outcome="not-present",
    ),
    Case(
        reason="cooldown",
        files={"requirements.txt": "leaf==1.0\n"},
        published=[*leaf("1.0"), *leaf("1.1", uploaded="2025-12-31T00:00:00.000000Z")],
        policy=ScanPolicy(severity="all", cooldown_days=7),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
async def test_each_refusal_has_its_own_reason_and_leaves_the_files_alone(case: Case) -> None:
    fixed = await fix_in_memory(case.files, [case.alert], case.published, case.policy)

    (outcome,) = fixed.plan.outcomes
    assert (outcome.outcome, outcome.reason) == (case.outcome, case.reason), outcome
    if case.blocked_by is not None:
        assert outcome.blocked_by == case.blocked_by
    assert {path: content.decode() for path, content in fixed.files.items()} == case.files
