from dataclasses import replace
from typing import Any

import pytest

from dependfix_core.ecosystems.pip.read import is_python_path, read_units
from dependfix_core.model.lock import DependencyKind, LockUnit, ReleaseAgeGate, Source, SourceKind
from fakes.step_driver import drive, listing_of, project_files

REGISTRY = "https://pypi.registry.example/simple"


def units(files: dict[str, bytes], *asked: str) -> dict[str, LockUnit]:
    return {unit.unit: unit for unit in drive(read_units(listing_of(files), asked or tuple(files)), files)}


def one(files: dict[str, bytes], *asked: str) -> LockUnit:
    (unit,) = units(files, *asked).values()
    return unit


def text(content: str) -> bytes:
    return content.replace("REGISTRY", REGISTRY).encode()


def declared(files: dict[str, bytes], unit: LockUnit) -> list[tuple[str, str, str | None]]:
    """(at, requirement, target) of each constraint; a span has to hold exactly the requirement."""
    for constraint in unit.constraints:
        if constraint.span:
            written = files[constraint.path][constraint.span.start : constraint.span.end].decode()
            assert written == constraint.requirement
    return [(constraint.at, constraint.requirement, constraint.target) for constraint in unit.constraints]


def edges(unit: LockUnit, where: str) -> list[tuple[str, str | None, str | None, str]]:
    return [(edge.name, edge.requirement, edge.target, edge.marker) for edge in unit.instances[where].edges]


UV_WORKSPACE = {
    "uv.lock": text(
        """version = 1
revision = 5
requires-python = ">=3.9"
resolution-markers = ["sys_platform == 'win32'", "sys_platform != 'win32'"]

[options]
exclude-newer = "2024-01-01T00:00:00Z"

[manifest]
members = ["app", "lib"]
constraints = [{ name = "idna", specifier = "<3.5" }]
overrides = [{ name = "certifi", specifier = "==2023.5.7" }]

[[package]]
name = "app"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "lib" },
    { name = "requests", extra = ["socks"] },
    { name = "urllib3", version = "1.26.18", source = { registry = "REGISTRY" }, marker = "sys_platform == 'win32'" },
    { name = "urllib3", version = "2.1.0", source = { registry = "REGISTRY" }, marker = "sys_platform != 'win32'" },
]

[package.optional-dependencies]
web = [{ name = "jinja2" }]

[package.dev-dependencies]
dev = [{ name = "idna" }]

[[package]]
name = "idna"
version = "3.4"
source = { registry = "REGISTRY" }

[[package]]
name = "jinja2"
version = "3.1.2"
source = { registry = "REGISTRY" }

[[package]]
name = "lib"
version = "0.2.0"
source = { editable = "packages/lib" }
dependencies = [{ name = "local" }, { name = "tarball" }]

[[package]]
name = "local"
version = "1.0"
source = { directory = "vendor/local" }
dependencies = [{ name = "idna" }]

[package.metadata]
requires-dist = [{ name = "idna", specifier = ">=3" }]

[[package]]
name = "pysocks"
version = "1.7.1"
source = { registry = "https://user:secret@other.registry.example/simple" }

[[package]]
name = "requests"
version = "2.31.0"
source = { registry = "REGISTRY" }
dependencies = [
    { name = "urllib3", version = "1.26.18", source = { registry = "REGISTRY" }, marker = "sys_platform == 'win32'" },
    { name = "urllib3", version = "2.1.0", source = { registry = "REGISTRY" }, marker = "sys_platform != 'win32'" },
]

[package.optional-dependencies]
socks = [{ name = "pysocks" }]

[[package]]
name = "tarball"
version = "1.0"
source = { url = "https://files.example/tarball-1.0.tar.gz" }

[[package]]
name = "urllib3"
version = "1.26.18"
source = { registry = "REGISTRY" }
resolution-markers = ["sys_platform == 'win32'"]

[[package]]
name = "urllib3"
version = "2.1.0"
source = { registry = "REGISTRY" }
resolution-markers = ["sys_platform != 'win32'"]
"""
    ),
    "pyproject.toml": text(
        """[project]
name = "app"
version = "0.1.0"
requires-python = ">=3.9"
dependencies = [
    "lib",
    "urllib3<2; sys_platform == 'win32'",
    "urllib3 >= 2; sys_platform != 'win32'",  # new
    'requests[socks]>=2.25',
]
optional-dependencies = { web = ["Jinja2>=3"] }
[dependency-groups]
dev = ["idna", {include-group = "lint"}]
lint = []
[tool.uv]
constraint-dependencies = ["idna<3.5"]
override-dependencies = ["certifi==2023.5.7"]
exclude-newer = "2024-01-01T00:00:00Z"
exclude-newer-package = { requests = "2024-02-01T00:00:00Z" }
[tool.uv.sources]
lib = { workspace = true }
pysocks = { index = "other" }
[[tool.uv.index]]
name = "other"
url = "https://user:secret@other.registry.example/simple"
[tool.uv.workspace]
members = ["packages/*"]
"""
    ),
    "packages/lib/pyproject.toml": text(
        """[project]
name = "lib"
version = "0.2.0"
dependencies = ["local", "tarball @ https://files.example/tarball-1.0.tar.gz"]
"""
    ),
}


def test_a_uv_workspace_is_one_unit_with_forks_extras_and_local_projects() -> None:
    unit = one(UV_WORKSPACE, "packages/lib/pyproject.toml")

    assert (unit.unit, unit.format, unit.format_version, unit.tool) == ("uv.lock", "uv-lock", "1.5", "uv")
    assert unit.manifests == ("packages/lib/pyproject.toml", "pyproject.toml")
    assert unit.runtime == {"python": ">=3.9"}
    assert declared(UV_WORKSPACE, unit) == [
        ("project.dependencies[0]", "", "package[local 1.0]"),
        ("project.dependencies[1]", "", "package[tarball 1.0]"),
        ("project.dependencies[0]", "", "package[lib 0.2.0]"),
        ("project.dependencies[1]", "<2", "package[urllib3 1.26.18]"),
        ("project.dependencies[2]", ">= 2", "package[urllib3 2.1.0]"),
        ("project.dependencies[3]", ">=2.25", "package[requests 2.31.0]"),
        ("project.optional-dependencies.web[0]", ">=3", "package[jinja2 3.1.2]"),
        ("dependency-groups.dev[0]", "", "package[idna 3.4]"),
        ("tool.uv.constraint-dependencies[0]", "<3.5", "package[idna 3.4]"),
    ]
    assert edges(unit, "package[requests 2.31.0]") == [
        ("urllib3", None, "package[urllib3 1.26.18]", "sys_platform == 'win32'"),
        ("urllib3", None, "package[urllib3 2.1.0]", "sys_platform != 'win32'"),
        ("pysocks", None, "package[pysocks 1.7.1]", 'extra == "socks"'),
    ]
    assert edges(unit, "package[local 1.0]") == [("idna", ">=3", "package[idna 3.4]", "")]
    assert edges(unit, "package[lib 0.2.0]") == []
    assert {where: (i.groups, i.dev, i.optional, i.markers) for where, i in unit.instances.items() if i.groups} == {
        "package[idna 3.4]": (("dev", "main"), False, False, ""),
        "package[jinja2 3.1.2]": (("web",), False, True, ""),
        "package[lib 0.2.0]": (("main",), False, False, ""),
        "package[local 1.0]": (("main",), False, False, ""),
        "package[pysocks 1.7.1]": (("main",), False, False, ""),
        "package[requests 2.31.0]": (("main",), False, False, ""),
        "package[tarball 1.0]": (("main",), False, False, ""),
        "package[urllib3 1.26.18]": (("main",), False, False, "sys_platform == 'win32'"),
        "package[urllib3 2.1.0]": (("main",), False, False, "sys_platform != 'win32'"),
    }
    assert {where: i.source for where, i in unit.instances.items() if i.source.base != REGISTRY} == {
        "package[app 0.1.0]": Source(kind=SourceKind.WORKSPACE, text="."),
        "package[lib 0.2.0]": Source(kind=SourceKind.WORKSPACE, text="packages/lib"),
        "package[local 1.0]": Source(kind=SourceKind.FILE, text="vendor/local"),
        "package[tarball 1.0]": Source(kind=SourceKind.URL, text="https://files.example/tarball-1.0.tar.gz"),
        "package[pysocks 1.7.1]": Source(
            base="https://other.registry.example/simple", text="https://other.registry.example/simple"
        ),
    }
    assert [(o.at, o.package, o.value, o.kind) for o in unit.overrides] == [
        ("tool.uv.constraint-dependencies[0]", "idna", "<3.5", "constraint"),
        ("tool.uv.override-dependencies[0]", "certifi", "==2023.5.7", "override"),
    ]
    assert unit.gates == (
        ReleaseAgeGate(
            path="pyproject.toml",
            at="tool.uv.exclude-newer",
            exclude_newer="2024-01-01T00:00:00Z",
            excluded=("requests",),
            kind="exclude-newer",
        ),
        ReleaseAgeGate(
            path="pyproject.toml",
            at="tool.uv.exclude-newer-package.requests",
            exclude_newer="2024-02-01T00:00:00Z",
            applies_to=("requests",),
            kind="exclude-newer",
        ),
    )
    assert unit.registries == {"other": "https://other.registry.example/simple"}
    assert unit.settings["index_of"] == {"pysocks": "other"}
    assert unit.problems == ()


def test_the_corpus_locks_are_read_whole() -> None:
    counts: dict[str, Any] = {}
    for name in ("uv-project", "poetry-groups", "pipenv"):
        files = project_files(name)
        unit = one(files)
        declared(files, unit)
        counts[unit.unit] = (
            len(unit.instances),
            sum(i.dev for i in unit.instances.values()),
            sum(i.optional for i in unit.instances.values()),
            unit.runtime["python"],
            unit.problems,
        )

    assert counts == {
        "uv.lock": (17, 7, 0, ">=3.9", ()),
        "poetry.lock": (26, 6, 4, ">=3.9,<4.0", ()),
        "Pipfile.lock": (12, 4, 0, "==3.11.*", ()),
    }


POETRY = {
    "poetry.lock": text(
        """# This file is automatically @generated by Poetry 1.8.5 and should not be changed by hand.

[[package]]
name = "Jinja2"
version = "3.1.2"
description = ""
optional = false
python-versions = ">=3.7"
files = []

[package.dependencies]
Babel = {version = ">=2.7", optional = true}

[package.extras]
i18n = ["Babel (>=2.7)"]

[[package]]
name = "numpy"
version = "1.24.4"
description = ""
optional = false
python-versions = ">=3.8"
files = []

[[package]]
name = "numpy"
version = "1.26.0"
description = ""
optional = false
python-versions = ">=3.9"
files = []

[package.source]
type = "legacy"
url = "https://u:p@corp.registry.example/simple"
reference = "corp"

[[package]]
name = "pandas"
version = "2.0.3"
description = ""
optional = false
python-versions = ">=3.8"
files = []

[package.dependencies]
numpy = [
    {version = ">=1.20.3,<1.25", markers = "python_version < \\"3.9\\""},
    {version = ">=1.26", markers = "python_version >= \\"3.9\\""},
]

[[package]]
name = "tool"
version = "1.0"
description = ""
optional = false
python-versions = "*"
files = []
develop = false

[package.source]
type = "git"
url = "https://git.example/x/tool"
reference = "main"

[metadata]
lock-version = "2.0"
python-versions = "^3.8"
content-hash = "00"
"""
    ),
    "pyproject.toml": text(
        """[tool.poetry]
name = "P"
[tool.poetry.dependencies]
python = "^3.8"
jinja2 = "^3.1"
pandas = {version = "~2.0", python = ">=3.8,<3.12", markers = "os_name == 'posix'", platform = "linux"}
numpy = [
    {version = "<1.25", python = "<3.9"},
    {version = "^1.26", python = "^3.9", source = "corp"},
]
[tool.poetry.group.dev.dependencies]
tool = {git = "https://git.example/x/tool", branch = "main"}
[[tool.poetry.source]]
name = "corp"
url = "https://u:p@corp.registry.example/simple"
priority = "explicit"
"""
    ),
}


def test_a_poetry_1_lock_gives_copies_by_marker_and_flags_by_reach() -> None:
    unit = one(POETRY)

    assert (unit.tool, unit.tool_version, unit.format_version) == ("poetry", "1.8.5", "2.0")
    assert unit.runtime == {"python": ">=3.8,<4.0"}
    assert declared(POETRY, unit) == [
        ("tool.poetry.dependencies.jinja2", "^3.1", "package[jinja2 3.1.2]"),
        ("tool.poetry.dependencies.pandas.version", "~2.0", "package[pandas 2.0.3]"),
        ("tool.poetry.dependencies.numpy[0].version", "<1.25", "package[numpy 1.24.4]"),
        ("tool.poetry.dependencies.numpy[1].version", "^1.26", "package[numpy 1.26.0]"),
        ("tool.poetry.group.dev.dependencies.tool.version", "", "package[tool 1.0]"),
    ]
    assert [constraint.marker for constraint in unit.constraints] == [
        "",
        '(python_version >= "3.8" and python_version < "3.12") and (sys_platform == "linux") and (os_name == \'posix\')',
        'python_version < "3.9"',
        'python_version >= "3.9" and python_version < "4.0"',
        "",
    ]
    assert edges(unit, "package[pandas 2.0.3]") == [
        ("numpy", ">=1.20.3,<1.25", "package[numpy 1.24.4]", 'python_version < "3.9"'),
        ("numpy", ">=1.26", "package[numpy 1.26.0]", 'python_version >= "3.9"'),
    ]
    assert edges(unit, "package[jinja2 3.1.2]") == [("babel", ">=2.7", None, 'extra == "i18n"')]
    assert unit.instances["package[tool 1.0]"].dev
    assert unit.instances["package[tool 1.0]"].source.kind is SourceKind.GIT
    assert unit.instances["package[numpy 1.26.0]"].source.base == "https://corp.registry.example/simple"
    assert unit.registries == {"corp": "https://corp.registry.example/simple"}
    assert unit.settings["index_of"] == {"numpy": "corp"}


def test_a_poetry_2_project_declares_in_project_and_enriches_in_its_own_table() -> None:
    files = {
        "poetry.lock": POETRY["poetry.lock"],
        "pyproject.toml": text(
            """[project]
name = "p"
requires-python = ">=3.8,<4"
dependencies = ["jinja2 (>=3.1,<4)", "numpy"]
[tool.poetry.dependencies]
numpy = {source = "corp"}
"""
        ),
    }

    unit = one(files)

    assert declared(files, unit) == [
        ("project.dependencies[0]", ">=3.1,<4", "package[jinja2 3.1.2]"),
        ("project.dependencies[1]", "", "package[numpy 1.24.4]"),
        ("project.dependencies[1]", "", "package[numpy 1.26.0]"),
    ]
    assert unit.settings["index_of"] == {"numpy": "corp"}


def test_an_old_poetry_lock_says_its_groups_as_category() -> None:
    files = {
        "poetry.lock": text(
            """[[package]]
name = "pytest"
version = "6.2.5"
category = "dev"
optional = false
python-versions = ">=3.6"

[metadata]
lock-version = "1.1"
python-versions = "*"
content-hash = "00"

[metadata.files]
pytest = []
"""
        )
    }

    unit = one(files)

    assert unit.instances["package[pytest 6.2.5]"].dev
    assert unit.runtime == {}


PDM = {
    "pdm.lock": text(
        """[metadata]
groups = ["default", "test"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"
content_hash = "sha256:00"

[[metadata.targets]]
requires_python = ">=3.9"

[[package]]
name = "requests"
version = "2.28.1"
requires_python = ">=3.7, <4"
summary = ""
groups = ["default"]
dependencies = ["idna<4,>=2.5", "urllib3<1.27,>=1.21.1"]
files = [{file = "requests-2.28.1.tar.gz", hash = "sha256:00"}]

[[package]]
name = "requests"
version = "2.28.1"
extras = ["socks"]
requires_python = ">=3.7, <4"
summary = ""
groups = ["default"]
dependencies = ["PySocks!=1.5.7,>=1.5.6", "requests==2.28.1"]
files = []

[[package]]
name = "pysocks"
version = "1.7.1"
groups = ["default"]
files = []

[[package]]
name = "idna"
version = "3.4"
groups = ["default"]
marker = "python_version >= '3.9'"
files = []

[[package]]
name = "urllib3"
version = "1.26.14"
groups = ["test"]
files = []

[[package]]
name = "mine"
version = "1.0"
path = "./libs/mine"
editable = true
groups = ["test"]
"""
    ),
    "pyproject.toml": text(
        """[project]
requires-python = ">=3.9"
dependencies = ["requests[socks]==2.28.1"]
[tool.pdm.dev-dependencies]
test = ["urllib3<2"]
[tool.pdm.resolution.overrides]
idna = ">=3.4"
[[tool.pdm.source]]
name = "pypi"
url = "https://${USER}:${PASS}@corp.registry.example/simple"
"""
    ),
}


def test_a_pdm_lock_joins_the_entries_of_extras() -> None:
    unit = one(PDM)

    assert (unit.format, unit.format_version, unit.tool, unit.runtime) == (
        "pdm-lock",
        "4.5.0",
        "pdm",
        {"python": ">=3.9"},
    )
    assert list(unit.instances) == [
        "package[requests 2.28.1]",
        "package[pysocks 1.7.1]",
        "package[idna 3.4]",
        "package[urllib3 1.26.14]",
        "package[mine 1.0]",
    ]
    assert edges(unit, "package[requests 2.28.1]") == [
        ("idna", "<4,>=2.5", "package[idna 3.4]", ""),
        ("urllib3", "<1.27,>=1.21.1", "package[urllib3 1.26.14]", ""),
        ("pysocks", "!=1.5.7,>=1.5.6", "package[pysocks 1.7.1]", 'extra == "socks"'),
    ]
    assert declared(PDM, unit) == [
        ("project.dependencies[0]", "==2.28.1", "package[requests 2.28.1]"),
        ("tool.pdm.dev-dependencies.test[0]", "<2", "package[urllib3 1.26.14]"),
    ]
    assert [(o.at, o.value, o.kind) for o in unit.overrides] == [
        ("tool.pdm.resolution.overrides.idna", ">=3.4", "override")
    ]
    assert [i.dev for i in unit.instances.values()] == [False, False, False, True, True]
    assert unit.instances["package[mine 1.0]"].source.kind is SourceKind.LINK
    assert unit.registries == {"": "https://corp.registry.example/simple"}


PYLOCK = {
    "pylock.toml": text(
        """lock-version = "1.0"
environments = ["sys_platform == 'linux'"]
requires-python = ">=3.9"
created-by = "uv"

[[packages]]
name = "requests"
version = "2.31.0"
index = "REGISTRY"
dependencies = [{ name = "urllib3" }]
wheels = []

[[packages]]
name = "urllib3"
version = "2.0.4"
marker = "python_version >= '3.9'"
index = "REGISTRY"

[[packages]]
name = "tool"
vcs = { type = "git", url = "https://u:p@git.example/x/tool", commit-id = "00" }

[[packages]]
name = "mine"
directory = { path = ".", editable = true }

[[packages]]
name = "packed"
version = "1.0"
archive = { url = "https://files.example/packed-1.0.zip", hashes = { sha256 = "00" } }
"""
    ),
    "pyproject.toml": text('[project]\nname = "mine"\ndependencies = ["requests>=2"]\n'),
}


def test_a_pep_751_lock_is_read_with_the_project_beside_it() -> None:
    unit = one(PYLOCK)

    assert (unit.unit, unit.format, unit.tool, unit.manifests) == ("pylock.toml", "pylock", "uv", ("pyproject.toml",))
    assert {where: i.source.kind for where, i in unit.instances.items()} == {
        "package[requests 2.31.0]": SourceKind.REGISTRY,
        "package[urllib3 2.0.4]": SourceKind.REGISTRY,
        "package[tool]": SourceKind.GIT,
        "package[mine]": SourceKind.FILE,
        "package[packed 1.0]": SourceKind.URL,
    }
    assert edges(unit, "package[requests 2.31.0]") == [("urllib3", None, "package[urllib3 2.0.4]", "")]
    assert declared(PYLOCK, unit) == [("project.dependencies[0]", ">=2", "package[requests 2.31.0]")]
    assert "u:p" not in repr(replace(unit, instances={k: replace(v, raw={}) for k, v in unit.instances.items()}))


def test_beside_another_lock_a_pep_751_lock_is_its_export() -> None:
    files = {**UV_WORKSPACE, "pylock.dev.toml": PYLOCK["pylock.toml"]}

    found = units(files, "pylock.dev.toml", "pyproject.toml")

    assert {name: unit.manifests for name, unit in found.items()} == {
        "pylock.dev.toml": (),
        "uv.lock": ("packages/lib/pyproject.toml", "pyproject.toml"),
    }


PIPENV = {
    "Pipfile": text(
        """[[source]]
url = "REGISTRY"
verify_ssl = true
name = "main"

[[source]]
url = "https://${TOKEN}@corp.registry.example/simple"
verify_ssl = true
name = "corp"

[packages]
Requests = {version = "~=2.28", extras = ["socks"], sys_platform = "== 'linux'", markers = "python_version > '3.8'"}
tool = {git = "https://git.example/x/tool.git", ref = "main"}
mine = {path = ".", editable = true}
inner = {version = "*", index = "corp"}

[dev-packages]
pytest = '>=7'

[docs]
sphinx = "*"

[requires]
python_full_version = "3.11.4"

[scripts]
serve = "python serve.py"
"""
    ),
    "Pipfile.lock": text(
        """{"_meta": {"hash": {"sha256": "00"}, "pipfile-spec": 6, "requires": {}, "sources": []},
 "default": {"requests": {"version": "==2.28.1", "markers": "python_version >= '3.7'", "index": "main"},
             "inner": {"version": "==1.0", "index": "corp"},
             "tool": {"git": "https://git.example/x/tool.git", "ref": "00"}},
 "develop": {"pytest": {"version": "==7.4.0"}, "requests": {"version": "==2.28.1"}},
 "docs": {"sphinx": {"version": "==5.0"}, "broken": "text"}}"""
    ),
}


def test_a_pipfile_and_its_lock_are_joined_section_by_section() -> None:
    unit = one(PIPENV, "Pipfile")

    assert (unit.unit, unit.manifests, unit.runtime) == ("Pipfile.lock", ("Pipfile",), {"python": "==3.11.4"})
    assert declared(PIPENV, unit) == [
        ("packages.Requests.version", "~=2.28", "default.requests"),
        ("packages.tool.version", "", "default.tool"),
        ("packages.mine.version", "", None),
        ("packages.inner.version", "*", "default.inner"),
        ("dev-packages.pytest", ">=7", "develop.pytest"),
        ("docs.sphinx", "*", "docs.sphinx"),
    ]
    assert unit.constraints[0].marker == "(python_version > '3.8') and (sys_platform == 'linux')"
    assert {where: (i.version, i.dev, i.source.kind) for where, i in unit.instances.items()} == {
        "default.requests": ("2.28.1", False, SourceKind.REGISTRY),
        "default.inner": ("1.0", False, SourceKind.REGISTRY),
        "default.tool": ("", False, SourceKind.GIT),
        "develop.pytest": ("7.4.0", True, SourceKind.REGISTRY),
        "develop.requests": ("2.28.1", True, SourceKind.REGISTRY),
        "docs.sphinx": ("5.0", False, SourceKind.REGISTRY),
    }
    assert unit.registries == {"": REGISTRY, "main": REGISTRY, "corp": "https://corp.registry.example/simple"}
    assert [(problem.path, problem.position) for problem in unit.problems] == [("Pipfile.lock", "docs.broken")]


def test_a_setup_cfg_is_read_line_by_line() -> None:
    files = {
        "setup.cfg": text(
            """[metadata]
name = shop
[options]
python_requires = >=3.8
install_requires =
    requests[socks]>=2.25,<3  # why
    # a comment
    urllib3 (<2) ; python_version < "3.10"

    !!
setup_requires = wheel>=0.3; setuptools
[options.extras_require]
dev =
  pytest>=7
[tool:pytest]
install_requires = not a requirement
"""
        )
    }

    unit = one(files)

    assert declared(files, unit) == [
        ("options.install_requires.requests", ">=2.25,<3", "options.install_requires.requests"),
        ("options.install_requires.urllib3", "<2", "options.install_requires.urllib3"),
        ("options.setup_requires.wheel", ">=0.3", "options.setup_requires.wheel"),
        ("options.setup_requires.setuptools", "", "options.setup_requires.setuptools"),
        ("options.extras_require.dev.pytest", ">=7", "options.extras_require.dev.pytest"),
    ]
    assert [constraint.kind for constraint in unit.constraints] == [
        DependencyKind.PROD,
        DependencyKind.PROD,
        DependencyKind.BUILD,
        DependencyKind.BUILD,
        DependencyKind.OPTIONAL,
    ]
    assert (unit.runtime, [p.position for p in unit.problems]) == ({"python": ">=3.8"}, ["10:5"])
    assert [(one.name, one.version) for one in unit.instances.values()] == [
        ("requests", "2.25"),
        ("urllib3", ""),
        ("wheel", "0.3"),
        ("setuptools", ""),
        ("pytest", "7"),
    ]


def test_a_setup_cfg_can_point_to_requirements_files_or_be_computed() -> None:
    files = {
        "setup.cfg": b"[options]\ninstall_requires = file: requirements.txt\ntests_require = attr: x.y\n",
        "requirements.txt": b"a==1\n",
    }

    unit = one(files, "setup.cfg")

    assert (unit.unit, unit.files) == ("requirements.txt", ("requirements.txt", "setup.cfg"))
    assert [(p.path, p.reason) for p in unit.problems] == [("setup.cfg", "dynamic-version")]


def test_a_setup_py_is_read_for_literals_only() -> None:
    files = {
        "setup.py": text(
            """# -*- coding: utf-8 -*-
# é
from setuptools import setup
TESTS = ["pytest>=7"]
GROWN = ["a"]
GROWN.append("b")
VERSIONS = {"q": "==1"}
setup(
    name="shop",
    python_requires=">=3.8",
    install_requires=[
        "requests>=2.25",  # é
        'urllib3' '<2',
        f"flask{VERSIONS['q']}",
        "jinja2" + VERSIONS["q"],
    ],
    tests_require=TESTS,
    setup_requires=GROWN,
    extras_require={"web": ("django<4",), "x" + "y": []},
)
"""
        )
    }

    unit = one(files)

    assert declared(files, unit) == [
        ("install_requires.requests", ">=2.25", "install_requires.requests"),
        ("install_requires.urllib3", "<2", "install_requires.urllib3"),
        ("tests_require.pytest", ">=7", "tests_require.pytest"),
        ("extras_require.web.django", "<4", "extras_require.web.django"),
    ]
    assert [constraint.span is None for constraint in unit.constraints] == [False, True, False, False]
    assert [(p.position, p.reason) for p in unit.problems] == [
        ("14:9", "dynamic-version"),
        ("15:9", "dynamic-version"),
        ("18:20", "dynamic-version"),
        ("19:54", "dynamic-version"),
    ]
    assert unit.runtime == {"python": ">=3.8"}


@pytest.mark.parametrize(
    "content",
    [b"", b"import os\n", b"setup(", b"\0", b"(" * 5000, b"setup(**config())\n", b"x = 1\n" * 100_000, b"\xff\xfe"],
)
def test_a_setup_py_without_a_literal_answer_is_dynamic(content: bytes) -> None:
    unit = one({"setup.py": content})

    assert {problem.reason for problem in unit.problems} == {"dynamic-version"}
    assert unit.constraints == ()


@pytest.mark.parametrize(
    ("path", "content", "position", "reason"),
    [
        ("uv.lock", b"version = 1\n[[package]\n", "2:10", "unsupported-lock-format"),
        ("uv.lock", b"version = 2\n", "version", "unsupported-lock-format"),
        ("uv.lock", b"version = 1\n[[package]]\nversion = '1'\n", "package", ""),
        ("poetry.lock", b"", None, ""),
        ("poetry.lock", b"\xff", "1:1", "unsupported-lock-format"),
        ("poetry.lock", b"[metadata]\nlock-version = '9.0'\n", "metadata.lock-version", "unsupported-lock-format"),
        ("poetry.lock", b"<<<<<<< HEAD\n", "1:1", "unsupported-lock-format"),
        ("pdm.lock", b"[metadata]\nlock_version = '3.1'\n", "metadata.lock_version", "unsupported-lock-format"),
        ("pdm.lock", b"", "metadata.lock_version", "unsupported-lock-format"),
        ("pylock.toml", b"lock-version = '2.0'\n", "lock-version", "unsupported-lock-format"),
        ("Pipfile.lock", b"{\n  ]", "2:3", "unsupported-lock-format"),
        ("Pipfile.lock", b"[]", "1:1", "unsupported-lock-format"),
        ("Pipfile.lock", b"{}", "_meta.pipfile-spec", "unsupported-lock-format"),
        ("Pipfile.lock", b"[" * 100_000, "1:1", "unsupported-lock-format"),
        ("pyproject.toml", b"[project\n", "1:9", ""),
        ("Pipfile", b"[packages]\nx = \n", "2:5", ""),
        ("Pipfile", b"[packages]\nx = 1\n", "2:5", ""),
        ("pyproject.toml", b"[project]\ndependencies = ['!!']\n", "2:17", ""),
        ("pyproject.toml", b"[project]\ndependencies = 'x'\n", "2:16", ""),
        ("pyproject.toml", b"[project]\ndynamic = ['dependencies']\n", "2:11", "dynamic-version"),
    ],
)
def test_a_broken_file_is_a_unit_with_a_problem(path: str, content: bytes, position: str | None, reason: str) -> None:
    unit = one({path: content})

    assert [(p.path, p.position, p.reason) for p in unit.problems] == ([(path, position, reason)] if position else [])
    assert (unit.unit, unit.instances) == (path, {})


def test_a_broken_manifest_leaves_its_lock_readable_and_says_so() -> None:
    files = {**UV_WORKSPACE, "packages/lib/pyproject.toml": b"[project\n"}

    unit = one(files, "uv.lock")

    assert len(unit.instances) == 10
    assert [(p.path, p.position, p.reason) for p in unit.problems] == [
        ("packages/lib/pyproject.toml", "1:9", ""),
        ("uv.lock", "", "unreadable"),
    ]


def test_side_by_side_the_lock_of_the_manifest_s_own_tool_decides() -> None:
    poetry, uv = POETRY["poetry.lock"], UV_WORKSPACE["uv.lock"]

    for manifest, lock in ((POETRY["pyproject.toml"], "poetry.lock"), (UV_WORKSPACE["pyproject.toml"], "uv.lock")):
        files = {"poetry.lock": poetry, "uv.lock": uv, "pyproject.toml": manifest}
        assert list(units(files, "pyproject.toml")) == [lock]


def test_a_path_that_is_no_python_file_of_the_listing_leads_nowhere() -> None:
    files = {"README.md": b"", "package.json": b"{}", "MANIFEST.in": b""}

    assert units(files) == {}
    assert units({}, "uv.lock", "../requirements.txt") == {}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("requirements.txt", True),
        ("a/requirements-dev.in", True),
        ("requirements/base.txt", True),
        ("constraints.txt", True),
        ("pylock.toml", True),
        ("pylock.ci.toml", True),
        ("notes.txt", False),
        ("MANIFEST.in", False),
        ("Cargo.lock", False),
    ],
)
def test_file_names_of_this_ecosystem(path: str, expected: bool) -> None:
    assert is_python_path(path) is expected
