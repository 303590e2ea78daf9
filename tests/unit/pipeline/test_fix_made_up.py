"""Plans for invented packages as the bytes that they write."""

import hashlib
import json
from typing import Any

import pytest

from dependfix_core.ecosystems.pip.write_poetry import content_hashes
from dependfix_core.model.records import PackageRecord, RecordKey
from fakes.corpus_metadata import corpus_records
from fakes.planning import build_files, plan_files
from fakes.universe import alert, registry

pytestmark = pytest.mark.anyio

REGISTRY = "https://npm.registry.example"


def entry(headers: str, name: str, version: str, **needs: str) -> str:
    """An entry of a yarn 1 lock."""
    lines = [
        f"{headers}:",
        f'  version "{version}"',
        f'  resolved "{REGISTRY}/{name}/-/{name}-{version}.tgz"',
        f"  integrity sha512-{name}-{version}",
    ]
    if needs:
        lines += ["  dependencies:", *(f'    {asked} "{text}"' for asked, text in needs.items())]
    return "\n".join(lines) + "\n"


def yarn_lock(*entries: str) -> bytes:
    return ("# yarn lockfile v1\n\n\n" + "\n".join(entries)).encode()


async def test_a_copy_that_a_resolution_replaces_goes_and_its_descriptor_joins_the_one_that_replaces_it() -> None:
    packages: dict[str, dict[str, dict[str, Any]]] = {
        "vuln": {"1.0.0": {}, "1.1.0": {}, "1.2.0": {}},
        "a": {"1.0.0": {"vuln": "^1.1.0"}},
        "b": {"1.0.0": {"vuln": "1.0.0"}},
    }
    manifest = {"name": "app", "private": True, "dependencies": {"a": "^1.0.0", "b": "^1.0.0"}}
    a, b = entry("a@^1.0.0", "a", "1.0.0", vuln="^1.1.0"), entry("b@^1.0.0", "b", "1.0.0", vuln="1.0.0")
    files = {
        "package.json": json.dumps(manifest, indent=2).encode(),
        "yarn.lock": yarn_lock(a, b, entry("vuln@1.0.0", "vuln", "1.0.0"), entry("vuln@^1.1.0", "vuln", "1.1.0")),
    }
    alerts = [alert(1, "vuln", "< 1.2.0", "1.2.0", manifest="yarn.lock")]

    plan = plan_files(files, alerts, registry(packages))
    built = await build_files(files, alerts, plan)

    assert built.rejected == {}
    assert {change.path: change.after for change in built.changes.changes} == {
        "package.json": json.dumps({**manifest, "resolutions": {"b/vuln": "^1.2.0"}}, indent=2).encode(),
        "yarn.lock": yarn_lock(a, b, entry("vuln@1.0.0, vuln@^1.1.0, vuln@^1.2.0", "vuln", "1.2.0")),
    }


async def test_a_catalog_entry_that_a_forced_version_points_to_is_written_there_and_in_the_lock() -> None:
    packages: dict[str, dict[str, dict[str, Any]]] = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "loose": {"1.0.0": {"vuln": "^1.0.0"}},
    }
    lock = """lockfileVersion: '9.0'

settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false

overrides:
  vuln: 1.0.0

importers:

  .:
    dependencies:
      loose:
        specifier: ^1.0.0
        version: 1.0.0
      vuln:
        specifier: 1.0.0
        version: 1.0.0

packages:

  loose@1.0.0:
    resolution: {integrity: sha512-loose-1.0.0}

  vuln@1.0.0:
    resolution: {integrity: sha512-vuln-1.0.0}

snapshots:

  loose@1.0.0:
    dependencies:
      vuln: 1.0.0

  vuln@1.0.0: {}
"""
    workspace = "catalogs:\n  safe:\n    vuln: '1.0.0' # reviewed\noverrides:\n  vuln: catalog:safe\n"
    manifest = {"name": "app", "dependencies": {"loose": "^1.0.0", "vuln": "catalog:safe"}}
    files = {
        "package.json": json.dumps({**manifest, "packageManager": "pnpm@10.34.8"}).encode(),
        "pnpm-lock.yaml": lock.encode(),
        "pnpm-workspace.yaml": workspace.encode(),
    }
    alerts = [alert(1, "vuln", "< 1.2.0", "1.2.0", manifest="pnpm-lock.yaml")]

    plan = plan_files(files, alerts, registry(packages))
    built = await build_files(files, alerts, plan)

    assert built.rejected == {}
    after = lock.replace("vuln: 1.0.0", "vuln: 1.2.0").replace("vuln@1.0.0", "vuln@1.2.0")
    after = after.replace("vuln-1.0.0", "vuln-1.2.0")
    after = after.replace(
        "vuln:\n        specifier: 1.0.0\n        version: 1.0.0",
        "vuln:\n        specifier: 1.2.0\n        version: 1.2.0",
    )
    assert {change.path: (change.after or b"").decode() for change in built.changes.changes} == {
        "pnpm-lock.yaml": after,
        "pnpm-workspace.yaml": workspace.replace("1.0.0", "1.2.0"),
    }


async def test_a_poetry_lock_that_poetry_did_not_lay_out_is_left_to_poetry() -> None:
    manifest = b'[tool.poetry]\nname = "app"\n\n[tool.poetry.dependencies]\npython = "*"\nidna = "*"\n'
    files = {
        "pyproject.toml": manifest,
        "poetry.lock": f"""[[package]]
name = "idna"
version = "3.3"
description = ""
optional = false
python-versions = ">=3.5"

[[package.files]]
file = "idna-3.3.tar.gz"
hash = "sha256:00"

[metadata]
lock-version = "2.0"
python-versions = "*"
content-hash = "{content_hashes(manifest)[2]}"
""".encode(),
    }
    alerts = [alert(1, "idna", "< 3.7", "3.7", manifest="poetry.lock", ecosystem="pip")]

    plan = plan_files(files, alerts, corpus_records())
    built = await build_files(files, alerts, plan)

    assert not built.changes
    (refused,) = built.rejected.values()
    assert refused.reason == "tool-required"
    assert "package.0.files is spread over tables" in refused.detail


def former_pdm_hash(requirement: str) -> str:
    """What pdm before 2.17 kept of the project below."""
    relevant = {
        "sources": [],
        "dependencies": [requirement],
        "dev-dependencies": {"Lint_Tools": ["pip"]},
        "optional-dependencies": {},
        "requires-python": ">=3.8",
        "overrides": {"wheel": ">=0.40"},
    }
    return "sha256:" + hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()


def former_pdm_project(requirement: str, version: str, files: str) -> dict[str, bytes]:
    manifest = f"""[project]
name = "app"
requires-python = ">=3.8"
dependencies = ["{requirement}"]

[tool.pdm.dev-dependencies]
Lint_Tools = ["pip"]

[tool.pdm.resolution]
allow-prereleases = false

[tool.pdm.resolution.overrides]
wheel = ">=0.40"
"""
    lock = f"""# This file is @generated by PDM.
# It is not intended for manual editing.

[metadata]
groups = ["default"]
strategy = ["cross_platform"]
lock_version = "4.4.1"
content_hash = "{former_pdm_hash(requirement)}"

[[package]]
name = "idna"
version = "{version}"
requires_python = ">=3.5"
summary = "Internationalized Domain Names in Applications (IDNA)"
files = [
{files}]
"""
    return {"pyproject.toml": manifest.encode(), "pdm.lock": lock.encode()}


async def test_a_pdm_lock_of_a_former_release_keeps_the_digest_of_that_release() -> None:
    records = corpus_records()
    page = records[RecordKey(ecosystem="pip", name="idna")]
    assert isinstance(page, PackageRecord)

    def rows(version: str) -> str:
        listed = page.releases[version].files
        return "".join(f'    {{file = "{one.filename}", hash = "sha256:{one.hashes["sha256"]}"}},\n' for one in listed)

    files = former_pdm_project("idna==3.3", "3.3", rows("3.3"))
    alerts = [alert(1, "idna", "< 3.7", "3.7", manifest="pdm.lock", ecosystem="pip")]

    plan = plan_files(files, alerts, records)
    built = await build_files(files, alerts, plan)

    assert built.rejected == {}
    after = {change.path: change.after for change in built.changes.changes}
    assert after == former_pdm_project("idna==3.7", "3.7", rows("3.7"))
