"""The real package managers of Python against an index of made-up packages: exact, private, and never building."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems, ToolRelock
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.ecosystems.pip.write_pdm import pdm_content_hash
from dependfix_core.ecosystems.pip.write_pipenv import pipfile_hash
from dependfix_core.ecosystems.pip.write_poetry import content_hashes
from dependfix_core.http import HttpClient, HttpConfig
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.configuration import read_client_configuration
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Move, Plan, Remediation
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.relock import Relocker, RelockFailure
from dependfix_core.trees import MemoryTree, drive
from fakes.brought_tools import BroughtTools
from fakes.planning import ALL, NOW, drive_plan
from fakes.python_index import Published, PythonIndex
from fakes.step_driver import listing_of
from fakes.universe import alert

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ECOSYSTEM = PythonEcosystem()
ECOSYSTEMS: Ecosystems[Ecosystem] = Ecosystems(members=(ECOSYSTEM,))
LOGIN = 'us:p w"\\#'
TOOLS = {
    "uv": {"uv": "uv"},
    "poetry": {"poetry": "poetry"},
    "poetry-1": {"poetry": "poetry-1"},
    "pdm": {"pdm": "pdm"},
    "pipenv": {"pipenv": "pipenv"},
    "pip-tools": {"pip-tools": "pip-tools"},
    "uv-compile": {"uv": "uv"},
}
LOCKS = {
    "uv": "uv.lock",
    "poetry": "poetry.lock",
    "poetry-1": "poetry.lock",
    "pdm": "pdm.lock",
    "pipenv": "Pipfile.lock",
    "pip-tools": "requirements.txt",
    "uv-compile": "requirements.txt",
}


def published(canary: Path) -> list[Published]:
    code = f"open({str(canary)!r}, 'a').write('built')\n"
    return [
        Published(name="leaf", version="1.0", requires_python=">=3.8"),
        Published(name="leaf", version="1.1", requires_python=">=3.8", backend=code),
        Published(name="leaf", version="1.2", requires_python=">=3.8"),
        Published(name="leaf", version="1.3", wheel=False, backend=code),
        Published(name="tree", version="1.0", requires=("leaf>=1.0,<2",)),
        Published(name="tree", version="1.1", requires=("leaf>=1.1,<2", "extra-one")),
        Published(name="tree", version="1.2", requires=("leaf>=1.2,<2", "extra-one")),
        Published(name="extra-one", version="0.5", backend=code),
        Published(name="bystander", version="3.0"),
        Published(name="bystander", version="3.1"),
    ]


def project(tool: str, index: PythonIndex, canary: Path) -> dict[str, bytes]:
    """tree 1.0, leaf 1.0 and bystander 3.0, as the tool would have locked them; code of the project would betray itself."""
    code = f"open({str(canary)!r}, 'a').write('run')\n".encode()
    files = {"setup.py": code, "sitecustomize.py": code, "poetry.toml": b"[installer]\nparallel = true\n"}
    return {**files, **_MAKERS[tool](index)}


def uv_project(index: PythonIndex) -> dict[str, bytes]:
    manifest = f"""[project]
name = "app"
version = "1"
requires-python = ">=3.9"
dependencies = ["bystander", "tree>=1.0"]

[[tool.uv.index]]
name = "made-up"
url = "{index.simple}"
default = true
"""
    entries = []
    for name, version, needs in (("bystander", "3.0", ""), ("leaf", "1.0", ""), ("tree", "1.0", "leaf")):
        ((file, content, digest),) = listed(index, name, version)
        needed = f'dependencies = [\n    {{ name = "{needs}" }},\n]\n' if needs else ""
        entries.append(f"""
[[package]]
name = "{name}"
version = "{version}"
source = {{ registry = "{index.simple}" }}
{needed}wheels = [
    {{ url = "{index.base}/files/{file}", hash = "sha256:{digest}", size = {len(content)}, upload-time = "2020-01-01T00:00:00Z" }},
]
""")
    lock = """version = 1
revision = 5
requires-python = ">=3.9"

[[package]]
name = "app"
version = "1"
source = { virtual = "." }
dependencies = [
    { name = "bystander" },
    { name = "tree" },
]

[package.metadata]
requires-dist = [
    { name = "bystander" },
    { name = "tree", specifier = ">=1.0" },
]
""" + "".join(entries)
    return {"pyproject.toml": manifest.encode(), "uv.lock": lock.encode()}


def listed(index: PythonIndex, name: str, version: str) -> list[tuple[str, bytes, str]]:
    """(file name, content, sha256) of a version."""
    found = index.files.items()
    return [
        (file, content, digest) for file, (one, content, digest) in found if (one.name, one.version) == (name, version)
    ]


def poetry_project(index: PythonIndex, generator: str = "2.5.1") -> dict[str, bytes]:
    manifest = f"""[tool.poetry]
name = "app"
version = "1"
description = ""
authors = []
package-mode = false

[tool.poetry.dependencies]
python = ">=3.9"
bystander = "*"
tree = ">=1.0"

[[tool.poetry.source]]
name = "made-up"
url = "{index.simple}"

[tool.poetry.requires-plugins]
not-there = "*"
""".encode()
    is_new = generator.startswith("2")
    entries = []
    for name, version, needs in (("bystander", "3.0", ""), ("leaf", "1.0", ""), ("tree", "1.0", "leaf")):
        ((file, _, digest),) = listed(index, name, version)
        groups = 'groups = ["main"]\n' if is_new else ""
        needed = f'\n[package.dependencies]\n{needs} = ">=1.0,<2"\n' if needs else ""
        entries.append(f"""[[package]]
name = "{name}"
version = "{version}"
description = ""
optional = false
python-versions = "{">=3.8" if name == "leaf" else "*"}"
{groups}files = [
    {{file = "{file}", hash = "sha256:{digest}"}},
]
{needed}
[package.source]
type = "legacy"
url = "{index.simple}"
reference = "made-up"

""")
    digest = content_hashes(manifest)[0 if is_new else 2]
    lock = (
        f"# This file is automatically @generated by Poetry {generator} and should not be changed by hand.\n\n"
        + "".join(entries)
        + f'[metadata]\nlock-version = "{"2.1" if is_new else "2.0"}"\npython-versions = ">=3.9"\ncontent-hash = "{digest}"\n'
    )
    return {"pyproject.toml": manifest, "poetry.lock": lock.encode()}


def poetry_1_project(index: PythonIndex) -> dict[str, bytes]:
    return poetry_project(index, "1.8.5")


def pdm_project(index: PythonIndex) -> dict[str, bytes]:
    manifest = f"""[project]
name = "app"
version = "1"
requires-python = ">=3.9"
dependencies = ["bystander", "tree>=1.0"]

[[tool.pdm.source]]
name = "pypi"
url = "{index.simple}"

[tool.pdm.scripts]
pre_lock = "python sitecustomize.py"
post_lock = "python sitecustomize.py"

[tool.pdm.options]
lock = ["--no-such-option"]
""".encode()
    entries = []
    for name, version, needs in (("bystander", "3.0", ""), ("leaf", "1.0", ""), ("tree", "1.0", "leaf<2,>=1.0")):
        ((file, _, digest),) = listed(index, name, version)
        runs = 'requires_python = ">=3.8"\n' if name == "leaf" else ""
        needed = f'dependencies = [\n    "{needs}",\n]\n' if needs else ""
        entries.append(f"""
[[package]]
name = "{name}"
version = "{version}"
{runs}summary = ""
groups = ["default"]
{needed}files = [
    {{file = "{file}", hash = "sha256:{digest}"}},
]
""")
    lock = f"""# This file is @generated by PDM.
# It is not intended for manual editing.

[metadata]
groups = ["default"]
strategy = ["inherit_metadata"]
lock_version = "4.5.1"
content_hash = "{pdm_content_hash(manifest)}"

[[metadata.targets]]
requires_python = ">=3.9"
""" + "".join(entries)
    return {"pyproject.toml": manifest, "pdm.lock": lock.encode()}


def pipenv_project(index: PythonIndex) -> dict[str, bytes]:
    manifest = f"""[[source]]
url = "{index.simple}"
verify_ssl = false
name = "made-up"

[packages]
bystander = "*"
tree = ">=1.0"

[dev-packages]

[scripts]
lock = "python sitecustomize.py"
""".encode()
    entries = {
        name: [f'"sha256:{digest}"' for _, _, digest in listed(index, name, version)]
        for name, version in (("bystander", "3.0"), ("leaf", "1.0"), ("tree", "1.0"))
    }
    packages = ",\n".join(
        f"""        "{name}": {{
            "hashes": [
                {hashes[0]}
            ],
{extra}            "version": "=={version}"
        }}"""
        for (name, hashes), version, extra in zip(
            entries.items(),
            ("3.0", "1.0", "1.0"),
            (
                '            "index": "made-up",\n',
                '            "markers": "python_version >= \'3.8\'",\n',
                '            "index": "made-up",\n',
            ),
            strict=True,
        )
    )
    lock = f"""{{
    "_meta": {{
        "hash": {{
            "sha256": "{pipfile_hash(manifest)}"
        }},
        "pipfile-spec": 6,
        "requires": {{}},
        "sources": [
            {{
                "name": "made-up",
                "url": "{index.simple}",
                "verify_ssl": false
            }}
        ]
    }},
    "default": {{
{packages}
    }},
    "develop": {{}}
}}
"""
    return {"Pipfile": manifest, "Pipfile.lock": lock.encode()}


def compiled_project(index: PythonIndex, head: str, command: str) -> dict[str, bytes]:
    lines = []
    for name, version, via in (
        ("bystander", "3.0", "-r requirements.in"),
        ("leaf", "1.0", "tree"),
        ("tree", "1.0", "-r requirements.in"),
    ):
        ((_, _, digest),) = listed(index, name, version)
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{digest}\n    # via {via}\n")
    return {
        "requirements.in": b"bystander\ntree>=1.0\n",
        "requirements.txt": (head.format(command=command) + "".join(lines)).encode(),
        "pyproject.toml": b'[tool.pip-tools]\npip-args = "--no-such-option"\n',
    }


def pip_tools_project(index: PythonIndex) -> dict[str, bytes]:
    head = "#\n# This file is autogenerated by pip-compile with Python 3.11\n# by the following command:\n#\n#    {command}\n#\n"
    return compiled_project(index, head, "pip-compile --generate-hashes --strip-extras requirements.in")


def uv_compile_project(index: PythonIndex) -> dict[str, bytes]:
    head = "# This file was autogenerated by uv via the following command:\n#    {command}\n"
    return compiled_project(index, head, "uv pip compile --generate-hashes requirements.in -o requirements.txt")


_MAKERS = {
    "uv": uv_project,
    "poetry": poetry_project,
    "poetry-1": poetry_1_project,
    "pdm": pdm_project,
    "pipenv": pipenv_project,
    "pip-tools": pip_tools_project,
    "uv-compile": uv_compile_project,
}


def addresses_of(index: PythonIndex, home: Path) -> RegistryAddresses:
    """What the user's own configuration says: this index, with a password that wants to be quoted."""
    user, _, password = index.login.partition(":")
    place = home / ".config" / "pip" / "pip.conf"
    place.parent.mkdir(parents=True, exist_ok=True)
    address = index.simple.replace("://", f"://{user}:{quote(password, safe='')}@")
    place.write_text(f"[global]\nindex-url = {address}\n", encoding="utf-8")
    return RegistryAddresses({}, read_client_configuration(home, {}))


def marked(tool: str) -> object:
    return pytest.param(tool, marks=pytest.mark.needs_tool(*TOOLS[tool].values()))


@pytest.mark.parametrize("tool", [marked(tool) for tool in TOOLS])
async def test_a_plan_with_something_new_in_it_is_locked_by_the_tool_and_proven(tool: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    lock = LOCKS[tool]
    alerts = (
        alert(1, "leaf", "< 1.1", "1.1", manifest=lock, ecosystem="pip"),
        alert(2, "tree", "< 1.1", "1.1", manifest=lock, ecosystem="pip"),
    )
    with PythonIndex(published(canary), login=LOGIN) as index:
        addresses = addresses_of(index, tmp_path / "home")
        files = project(tool, index, canary)
        tree = MemoryTree(files)

        def planned(listing: Listing) -> Step[Plan]:
            return plan_repository(alerts, listing, ALL, ECOSYSTEMS, repository="acme/made-up", now=NOW)

        async with HttpClient(HttpConfig(trust_env=False, tries=1)) as http:
            metadata = RegistryMetadata(http, addresses)
            plan = await drive(planned(await tree.listing()), tree, metadata)
            builder = Builder(
                ecosystems=ECOSYSTEMS,
                metadata=metadata,
                relocker=Relocker(SubprocessRunner(), addresses, tools=BroughtTools(TOOLS[tool])),
            )
            built = await builder.build(plan, alerts, tree, planned)

    assert {rejected.detail for rejected in built.rejected.values()} == set()
    assert {(move.package_name, move.to_version) for one in plan.remediations for move in one.moves} == {
        ("leaf", "1.1"),
        ("tree", "1.1"),
        ("extra-one", "0.5"),
    }
    assert [change.path for change in built.changes.changes] == [lock]
    assert locked({**files, **{change.path: change.after or b"" for change in built.changes.changes}}, lock) == {
        ("bystander", "3.0"),
        ("extra-one", "0.5"),
        ("leaf", "1.1"),
        ("tree", "1.1"),
    }
    assert not canary.exists()
    assert {request.credential for request in index.requests} <= {"", LOGIN}
    assert sum(request.credential == LOGIN for request in index.requests) > len(index.requests) / 3


def locked(files: Mapping[str, bytes], lock: str) -> set[tuple[str, str]]:
    (unit,) = drive_plan(ECOSYSTEM.read_units(listing_of(files), [lock]), files, {})
    return {(one.name, one.version) for one in unit.instances.values() if one.name != "app"}


@pytest.mark.parametrize("tool", [marked(tool) for tool in TOOLS])
async def test_a_version_that_would_have_to_be_built_is_not_locked(tool: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    lock = LOCKS[tool]
    where = {"Pipfile.lock": "default.leaf", "requirements.txt": "leaf==1.0"}.get(lock, "package[leaf 1.0]")
    move = Move(where=where, package_name="leaf", from_version="1.0", to_version="1.3", strategy="lock-in-range")
    remediation = Remediation(
        unit=lock, ecosystem="pip", package_name="leaf", strategy="lock-in-range", moves=(move,), needs_tool=True
    )
    with PythonIndex(published(canary), login=LOGIN) as index:
        files = project(tool, index, canary)
        tree = MemoryTree(files)
        addresses = addresses_of(index, tmp_path / "home")
        async with HttpClient(HttpConfig(trust_env=False, tries=1)) as http:
            metadata = RegistryMetadata(http, addresses)
            (unit,) = await drive(ECOSYSTEM.read_units(await tree.listing(), [lock]), tree, metadata)
            wanted = await drive(ECOSYSTEM.relock(unit, [remediation]), tree, metadata)
        assert isinstance(wanted, ToolRelock)
        relocker = Relocker(SubprocessRunner(), addresses, tools=BroughtTools(TOOLS[tool]))
        failure = await relocker.relock(wanted, files)

    assert isinstance(failure, RelockFailure)
    assert failure.reason == "tool-required"
    assert not canary.exists()
    assert LOGIN.partition(":")[2] not in failure.detail
