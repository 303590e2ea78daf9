"""Declared requirements of Python projects are raised where they stand, and no byte around them changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from fakes.python_fixing import fix_in_memory
from fakes.python_index import Published
from fakes.universe import alert

pytestmark = pytest.mark.anyio

PUBLISHED = [
    *(Published(name="leaf", version=version) for version in ("1.0", "1.1", "1.2", "2.0")),
    *(Published(name="other", version=version) for version in ("1.0", "1.1")),
    Published(name="tree", version="1.0", requires=("leaf>=1.0",)),
]


@dataclass(frozen=True)
class Case:
    name: str
    files: Mapping[str, str]
    """`<old|new>` is what changes and into what."""
    manifest: str
    strategy: str = "manifest-bump"
    more: Mapping[str, str] = field(default_factory=dict)

    def side(self, index: int) -> dict[str, str]:
        found = {}
        for path, text in self.files.items():
            pieces = text.replace(">>", "\0").split("<<")
            whole = pieces[0]
            for piece in pieces[1:]:
                change, _, rest = piece.partition("\0")
                whole += change.split("|")[index] + rest
            found[path] = whole
        return found


PEP_621 = """\
[project]
name = "app"  # ours
dependencies = [
    'other',
    "leaf <<==1.0|==1.1>> ; python_version >= '3.8'",  # pinned
]
"""
GROUPS = """\
[project]
name = "app"
requires-python = ">=3.9"

[project.optional-dependencies]
more = ["leaf[x]<<~=1.0.0|~=1.1.0>>"]

[dependency-groups]
dev = [{include-group = "test"}, 'leaf<<==1.0|==1.1>>']
test = ["other>=1"]
"""
POETRY = """\
[tool.poetry]
name = "app"

[tool.poetry.dependencies]
python = "^3.9"
leaf = {version = "<<1.0|1.1>>", extras = ["x"]}

[tool.poetry.group.dev.dependencies]
leaf = '<<~1.0|~1.1>>'
"""
PDM = """\
[project]
name = "app"
dependencies = []

[tool.pdm.dev-dependencies]
test = [
  "leaf<<>=1.0,<1.1|>=1.1,<1.2>>",
]
"""
SETUP_CFG = """\
[metadata]
name = app

[options]
install_requires =
    other >= 1.0
    leaf <<== 1.0|== 1.1>>; python_version < "4"   # pinned

[options.extras_require]
more = leaf<<>=1.0,<1.1|>=1.1,<1.2>>
"""
SETUP_PY = """\
from setuptools import setup

setup(
    name="app",
    install_requires=["other", 'leaf<<==1.0|==1.1>>'],  # pinned
    extras_require={"more": ["leaf <<>= 1.0|>= 1.1>>"]},
)
"""
PIPFILE = """\
[packages]
leaf = "<<==1.0|==1.1>>"

[dev-packages]
leaf = {version = '<<==1.0|==1.1>>', markers = "os_name == 'nt'"}
"""
CASES = [
    Case("pep-621", {"pyproject.toml": PEP_621}, "pyproject.toml"),
    Case("groups", {"pyproject.toml": GROUPS}, "pyproject.toml"),
    Case("poetry", {"pyproject.toml": POETRY}, "pyproject.toml"),
    Case("pdm", {"pyproject.toml": PDM}, "pyproject.toml"),
    Case("setup-cfg", {"setup.cfg": SETUP_CFG}, "setup.cfg"),
    Case("setup-py", {"setup.py": SETUP_PY}, "setup.py"),
    Case("pipfile", {"Pipfile": PIPFILE}, "Pipfile"),
    Case(
        "crlf-and-mark",
        {"setup.cfg": "\ufeff[options]\r\ninstall_requires = leaf<<==1.0|==1.1>>\r\n"},
        "setup.cfg",
    ),
    Case(
        "plain-requirements",
        {"requirements.txt": "# ours\nother>=1.0\nleaf [x] == <<1.0|1.1>> ; python_version > '3.8'  # pinned"},
        "requirements.txt",
    ),
    Case(
        "layers",
        {
            "requirements/base.txt": "leaf==<<1.0|1.1>>\nother==1.0\n",
            "requirements/dev.txt": "-r base.txt\nleaf==<<1.0|1.1>>\n",
            "requirements/prod.txt": "-r base.txt\n",
        },
        "requirements/dev.txt",
    ),
    Case(
        "constraint",
        {"requirements.txt": "-c constraints.txt\nleaf\nother\n", "constraints.txt": "leaf==<<1.0|1.1>>\n"},
        "requirements.txt",
        strategy="override-edit",
    ),
    Case("source-of-a-compiled-file", {"requirements.in": "leaf<<>=1.0|>=1.1>>\n"}, "requirements.in"),
    Case(
        "taken-from-a-file",
        {
            "pyproject.toml": '[project]\nname = "app"\ndynamic = ["dependencies"]\n\n'
            '[tool.setuptools.dynamic]\ndependencies = {file = ["requirements.txt"]}\n',
            "requirements.txt": "leaf==<<1.0|1.1>>\n",
        },
        "pyproject.toml",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_declared_requirement_is_raised_in_its_own_style(case: Case) -> None:
    alerts = [alert(1, "leaf", "< 1.1", "1.1", manifest=case.manifest, ecosystem="pip")]

    fixed = await fix_in_memory(case.side(0), alerts, PUBLISHED)

    assert fixed.refused == []
    assert fixed.outcomes == [("fix", None)]
    assert {path: content.decode() for path, content in fixed.files.items()} == case.side(1)
    assert set(fixed.strategies) == {case.strategy}


REFUSED = {
    "nothing-from-below": ("leaf<2\n", "dynamic-version"),
    "bare": ("leaf\n", "dynamic-version"),
    "repository": ("leaf @ git+https://git.example/leaf@v1.0\n", "non-registry-source"),
    "archive": ("https://files.registry.example/leaf-1.0.tar.gz\n", "non-registry-source"),
    "needed-older": ("leaf>=1.0\nkeeper==1.0\n", "override-unsupported"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_raised_is_refused_and_left_alone(name: str) -> None:
    text, reason = REFUSED[name]
    alerts = [alert(1, "leaf", "< 1.1", "1.1", manifest="requirements.txt", ecosystem="pip")]
    keeper = Published(name="keeper", version="1.0", requires=("leaf<1.1",))

    fixed = await fix_in_memory({"requirements.txt": text}, alerts, [*PUBLISHED, keeper])

    assert fixed.outcomes == [("refuse", reason)]
    assert fixed.files["requirements.txt"].decode() == text
    if name == "needed-older":
        assert fixed.plan.outcomes[0].blocked_by == "keeper 1.0 asks `<1.1`"


async def test_a_requirement_whose_floor_is_safe_has_converged() -> None:
    alerts = [alert(1, "leaf", "< 1.1", "1.1", manifest="setup.cfg", ecosystem="pip")]

    fixed = await fix_in_memory({"setup.cfg": "[options]\ninstall_requires = leaf~=1.1\n"}, alerts, PUBLISHED)

    assert fixed.outcomes == [("converged", None)]
