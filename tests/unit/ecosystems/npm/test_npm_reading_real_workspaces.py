"""Locks that the real tools wrote for workspaces; the npm edges are those that npm's own tree loader gives."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.model.lock import LockUnit, SourceKind
from fakes.step_driver import drive, listing_of

DATA = Path(__file__).parents[3] / "data" / "npm"


def read(project: str, lock: str) -> LockUnit:
    root = DATA / project
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "edges.json"
    }
    (unit,) = drive(read_units(listing_of(files), [lock]), files)
    assert unit.problems == ()
    return unit


@pytest.mark.parametrize("project", ["workspace-v1", "workspace-v3"])
def test_npm_edges_are_those_of_npm_itself(project: str) -> None:
    """Places, links, aliases, overrides' targets, peers, bundled and nested copies, in a workspace."""
    unit = read(project, "package-lock.json")
    judged: dict[str, Any] = json.loads((DATA / project / "edges.json").read_text())
    members = {"", *unit.settings["members"]}

    found = {
        (
            instance.where,
            edge.name,
            edge.requirement,
            edge.kind.value.replace("peer-optional", "peerOptional"),
            edge.target,
        )
        for instance in unit.instances.values()
        for edge in instance.edges
    }
    found |= {
        (
            c.path.rpartition("/")[0],
            c.name,
            c.requirement,
            c.kind.value.replace("peer-optional", "peerOptional"),
            c.target,
        )
        for c in unit.constraints
    }

    assert found == {
        (place, name, read_specifier(name, text).requirement, kind, target)
        for place, name, text, kind, target in judged["edges"]
        if kind != "workspace"
    }
    assert {instance.where for instance in unit.instances.values() if instance.bundled} == {
        node[0] for node in judged["nodes"] if node[4]
    }
    assert {instance.where for instance in unit.instances.values()} == {
        node[0] for node in judged["nodes"] if node[0] not in members
    }


def test_npm_aliases_and_links() -> None:
    unit = read("workspace-v3", "package-lock.json")
    alias = unit.instances["node_modules/string-width-cjs"]

    assert (alias.name, alias.aliases) == ("string-width", ("string-width-cjs",))
    assert {
        where: (instance.name, instance.version, instance.source.kind, instance.source.text)
        for where, instance in unit.instances.items()
        if instance.source.kind is not SourceKind.REGISTRY
    } == {
        "node_modules/@shop/a": ("@shop/a", "1.0.0", SourceKind.WORKSPACE, "packages/a"),
        "node_modules/@shop/b": ("@shop/b", "1.2.0", SourceKind.WORKSPACE, "packages/b"),
        "node_modules/local": ("local", "0.1.0", SourceKind.WORKSPACE, "libs/local"),
    }
    assert [(o.at, o.package, o.parents, o.condition, o.value) for o in unit.overrides] == [
        ("overrides.semver@^5", "semver", (), "^5", "5.7.2"),
        (
            "overrides.normalize-package-data>hosted-git-info",
            "hosted-git-info",
            ("normalize-package-data",),
            "",
            "2.8.9",
        ),
    ]


def test_pnpm_two_documents_catalogs_and_peers() -> None:
    unit = read("pnpm-two-documents", "pnpm-lock.yaml")
    axios = "axios@1.21.1(debug@4.4.3(supports-color@7.2.0))(supports-color@7.2.0)"

    assert len(unit.instances) == 255
    assert "is-odd@3.0.1" not in unit.instances
    assert unit.settings["documents"] == 2
    assert unit.settings["code"] == ("pnpm-workspace.yaml: configDependencies",)
    assert [
        (c.path, c.at, c.requirement, c.via, c.declared_in, c.target) for c in unit.constraints if c.package == "axios"
    ] == [
        ("pnpm-workspace.yaml", "catalog.axios", "^1.6.0", "catalog:", "package.json", axios),
        (
            "pnpm-workspace.yaml",
            "catalogs.old.axios",
            "~0.27.2",
            "catalog:old",
            "packages/a/package.json",
            "axios@0.27.2(debug@4.4.3(supports-color@7.2.0))",
        ),
    ]
    assert [(c.name, c.requirement, c.target) for c in unit.constraints if c.package == "lodash"] == [
        ("my-lodash", "^4.17.15", "lodash@4.18.1")
    ]
    assert [
        (e.name, e.requirement, e.kind.value, e.target)
        for e in unit.instances["debug@4.4.3(supports-color@7.2.0)"].edges
    ] == [
        ("ms", None, "prod", "ms@2.1.3"),
        ("supports-color", "*", "peer-optional", "supports-color@7.2.0"),
    ]
    assert unit.instances["@esbuild/linux-x64@0.19.12"].optional
    assert unit.instances["esbuild@0.19.12"].dev
    assert [(o.path, o.at, o.value) for o in unit.overrides] == [
        ("pnpm-workspace.yaml", "overrides.semver@<7.5.2", "^7.5.2")
    ]
    assert unit.settings["outOfSync"] == ()


def test_yarn_1_resolutions_decide_before_ranges() -> None:
    unit = read("yarn1-workspace", "yarn.lock")

    def targets(where: str) -> dict[str, str | None]:
        return {edge.name: edge.target for edge in unit.instances[where].edges}

    assert targets("request@^2.88.0")["form-data"] == "form-data@^2.5.4"
    assert targets("request@^2.88.0")["tough-cookie"] == "tough-cookie@4.1.3"
    assert targets("har-validator@~5.1.3")["ajv"] == "ajv@^6.12.3"  # its key is no path from the root
    assert unit.instances["my-lodash@npm:lodash@^4.17.15"].name == "lodash"
    assert {c.at: c.target for c in unit.constraints} == {
        "dependencies.request": "request@^2.88.0",
        "dependencies.my-lodash": "my-lodash@npm:lodash@^4.17.15",
        "dependencies.lodash": "lodash@^4.17.20",
        "dependencies.form-data": "form-data@~2.3.2",
        "dependencies.semver": "semver@^7.0.0",
        "dependencies.uuid": "uuid@^3.3.2",
        "optionalDependencies.fsevents": "fsevents@^2.3.2",
    }
    assert unit.instances["fsevents@^2.3.2"].optional


def test_yarn_4_workspaces_resolutions_and_peers() -> None:
    unit = read("yarn4-workspace", "yarn.lock")

    def targets(where: str) -> dict[str, str | None]:
        return {edge.name: edge.target for edge in unit.instances[where].edges}

    assert {c.name: c.target for c in unit.constraints if c.path == "packages/a/package.json"} == {
        "semver": "semver@npm:^7.0.0",
        "minimist": "minimist@npm:1.2.8",
        "fsevents": "fsevents@npm:^2.3.2",
        "eslint": None,
    }
    assert targets("rimraf@npm:^3.0.2") == {"glob": "glob@npm:7.2.3"}
    assert targets("eslint-plugin-react-hooks@npm:^4.6.0") == {"eslint": "eslint@npm:^8.57.0"}
    assert unit.instances["my-lodash@npm:lodash@^4.17.15"].name == "lodash"
    assert {
        instance.where: instance.source.kind
        for instance in unit.instances.values()
        if instance.source.kind is not SourceKind.REGISTRY
    } == {
        "@r/a@workspace:*": SourceKind.WORKSPACE,
        "@r/b@workspace:packages/b": SourceKind.WORKSPACE,
        "root@workspace:.": SourceKind.WORKSPACE,
        "fsevents@patch:fsevents@npm%3A^2.3.2#optional!builtin<compat/fsevents>": SourceKind.PATCH,
        "typescript@patch:typescript@npm%3A^5.0.0#optional!builtin<compat/typescript>": SourceKind.PATCH,
    }


def test_bun_places_and_members() -> None:
    unit = read("bun-workspace", "bun.lock")

    assert {(c.path, c.name): c.target for c in unit.constraints if c.name in ("semver", "minimist", "@r/a")} == {
        ("package.json", "@r/a"): "@r/a",
        ("packages/a/package.json", "semver"): "semver",
        ("packages/a/package.json", "minimist"): "minimist",
        ("packages/b/package.json", "@r/a"): "@r/a",
        ("packages/b/package.json", "semver"): "@r/b/semver",
    }
    assert {where: unit.instances[where].version for where in ("semver", "@r/b/semver", "my-lodash", "@r/a")} == {
        "semver": "7.8.6",
        "@r/b/semver": "5.7.3",
        "my-lodash": "4.17.20",
        "@r/a": "1.0.0",
    }
    assert unit.instances["my-lodash"].name == "lodash"
    assert unit.instances["react"].dev
    assert unit.format_version == "2"


@pytest.mark.parametrize(
    ("project", "lock"),
    [
        ("workspace-v3", "package-lock.json"),
        ("pnpm-two-documents", "pnpm-lock.yaml"),
        ("yarn4-workspace", "yarn.lock"),
        ("yarn1-workspace", "yarn.lock"),
        ("bun-workspace", "bun.lock"),
    ],
)
def test_units_survive_pickling(project: str, lock: str) -> None:
    unit = read(project, lock)

    assert pickle.loads(pickle.dumps(unit)) == unit  # noqa: S301 - our own bytes
