import json
from dataclasses import replace
from pathlib import Path

import pytest

from dependfix_core.ecosystems.base import ToolRelock, WriteRefusal
from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.ecosystems.npm.relock import relock
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.metadata import NoMetadata, RecordedMetadata
from dependfix_core.model.files import ChangeSet
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.trees import MemoryTree, drive
from fakes.universe import registry

pytestmark = pytest.mark.anyio

PROJECTS = Path(__file__).parents[3] / "data" / "projects"


def files_of(project: str, **more: bytes) -> dict[str, bytes]:
    top = PROJECTS / project
    found = {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and path.name not in ("alerts.json", "expected.json")
    }
    return {**found, **more}


def move(where: str, name: str, old: str, new: str) -> Move:
    return Move(where=where, package_name=name, from_version=old, to_version=new, strategy="lock-in-range")


async def wanted(
    files: dict[str, bytes], lock: str, moves: list[Move], edits: list[Edit] | None = None
) -> ToolRelock | WriteRefusal:
    tree = MemoryTree(files)
    (unit,) = await drive(read_units(await tree.listing(), [lock]), tree, NoMetadata())
    remediation = Remediation(
        unit=lock,
        ecosystem="npm",
        package_name="any",
        strategy="lock-in-range",
        moves=tuple(moves),
        edits=tuple(edits or ()),
        needs_tool=True,
    )
    return await drive(relock(unit, [remediation]), tree, NoMetadata())


async def test_npm_forces_a_transitive_copy_for_one_run_and_raises_a_direct_one_in_place() -> None:
    files = files_of("npm-v3-direct")
    moves = [
        move("node_modules/axios", "axios", "0.21.0", "0.21.2"),
        move("node_modules/follow-redirects", "follow-redirects", "1.13.0", "1.14.8"),
    ]

    found = await wanted(files, "package-lock.json", moves)

    assert isinstance(found, ToolRelock)
    argv = (
        "npm",
        "install",
        "--package-lock-only",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--lockfile-version=3",
    )
    assert [call.argv for call in found.calls] == [argv, argv]
    temporary = json.loads(found.calls[0].files["package.json"])
    assert temporary["overrides"] == {"follow-redirects@1.13.0": "1.14.8"}
    assert temporary["dependencies"]["axios"] == "0.21.2"
    assert found.calls[1].files == {"package.json": files["package.json"]}
    assert (found.results, found.edited, found.settings) == (("package-lock.json",), (), {})


async def test_npm_sees_the_manifest_in_the_style_of_the_lock_and_the_result_holds_it_as_it_was() -> None:
    files = files_of("npm-v3-direct")
    odd = json.dumps(json.loads(files["package.json"]), indent="\t").replace("\n", "\r\n").encode()
    files["package.json"] = odd
    edit = Edit(path="package.json", at="dependencies.axios", from_text="^0.21.0", to_text="^0.21.2")
    edited = odd.replace(b'"axios": "^0.21.0"', b'"axios": "^0.21.2"')
    assert edited != odd

    found = await wanted(files, "package-lock.json", [], [edit])

    assert isinstance(found, ToolRelock)
    assert found.files["package.json"] == json.dumps(json.loads(edited), indent=2).encode() + b"\n"
    assert (found.restored, found.edited) == ({"package.json": edited}, ("package.json",))


async def test_a_lock_without_addresses_stays_without_them() -> None:
    files = files_of("npm-v3-direct")
    lock = json.loads(files["package-lock.json"])
    for entry in lock["packages"].values():
        entry.pop("resolved", None)
    files["package-lock.json"] = json.dumps(lock).encode()

    found = await wanted(files, "package-lock.json", [move("node_modules/axios", "axios", "0.21.0", "0.21.2")])

    assert isinstance(found, ToolRelock)
    assert found.settings == {"omit-lockfile-registry-resolved": "true"}


async def test_pnpm_is_kept_from_the_projects_code_and_from_another_pnpm() -> None:
    hook = b"module.exports = {hooks: {readPackage: (p) => p}}\n"
    files = files_of("pnpm-v6-workspace", **{".pnpmfile.cjs": hook})

    found = await wanted(files, "pnpm-lock.yaml", [move("form-data@4.0.0", "form-data", "4.0.0", "4.0.4")])

    assert isinstance(found, ToolRelock)
    assert ".pnpmfile.cjs" not in found.files
    assert found.version == "8.15.9"
    assert all("--ignore-pnpmfile" in call.argv and "--ignore-scripts" in call.argv for call in found.calls)
    assert json.loads(found.calls[0].files["package.json"])["pnpm"]["overrides"] == {"form-data@4.0.0": "4.0.4"}
    assert found.warnings == ("neutralised: .pnpmfile.cjs was not run",)
    assert sorted(path for path in found.files if path.endswith("package.json")) == [
        path for path in sorted(files) if path.endswith("package.json")
    ]


@pytest.mark.parametrize(
    ("named", "workspace", "places"),
    [
        ("pnpm@9.15.9", None, {"package.json"}),
        ("pnpm@11.0.0", None, {"pnpm-workspace.yaml"}),
        ("", None, {"package.json", "pnpm-workspace.yaml"}),
        ("", b"packages:\n- packages/*\n", {"package.json", "pnpm-workspace.yaml"}),
        ("", b"overrides:\n  other: 1.0.0\n", {"pnpm-workspace.yaml"}),
    ],
)
async def test_pnpm_is_told_where_the_one_that_may_run_reads_it(
    named: str, workspace: bytes | None, places: set[str]
) -> None:
    files = files_of("pnpm-v9-override")
    manifest = {key: value for key, value in json.loads(files["package.json"]).items() if key != "packageManager"}
    files["package.json"] = json.dumps(manifest | ({"packageManager": named} if named else {}), indent=2).encode()
    if workspace is not None:
        files["pnpm-workspace.yaml"] = workspace

    found = await wanted(files, "pnpm-lock.yaml", [move("form-data@2.3.3", "form-data", "2.3.3", "2.3.4")])

    assert isinstance(found, ToolRelock)
    first, second = found.calls
    assert first.files.keys() == second.files.keys() == places
    for path in places:
        assert b"form-data@2.3.3" in first.files[path]
        assert second.files[path] == files.get(path, b"")
    if "pnpm-workspace.yaml" in places and workspace is None:
        assert first.files["pnpm-workspace.yaml"].endswith(b"packages:\n- .\n")


async def test_an_override_that_the_plan_adds_is_in_every_run_and_in_the_result() -> None:
    files = files_of("pnpm-v9-override")
    edit = Edit(
        path="package.json", at="pnpm.overrides.form-data@<2.5.4", from_text=None, to_text="^2.5.4", kind="override"
    )
    forced = Move(
        where="form-data@2.3.3", package_name="form-data", from_version="2.3.3", to_version="2.5.4", strategy="override"
    )

    found = await wanted(files, "pnpm-lock.yaml", [forced], [edit])

    assert isinstance(found, ToolRelock)
    assert len(found.calls) == 1
    assert json.loads(found.files["package.json"])["pnpm"]["overrides"] == {
        "uuid@<3.4.0": "3.4.0",
        "form-data@<2.5.4": "^2.5.4",
    }
    assert found.edited == ("package.json",)


async def test_yarn_sets_the_resolution_of_each_descriptor_without_the_projects_yarn() -> None:
    files = files_of("yarn-berry-lines")
    files[".yarnrc.yml"] = b"yarnPath: .yarn/releases/evil.cjs\nnodeLinker: node-modules\nnpmAuthToken: ${TOKEN}\n"

    found = await wanted(files, "yarn.lock", [move("json5@npm:^1.0.1", "json5", "1.0.1", "1.0.2")])

    assert isinstance(found, ToolRelock)
    assert [call.argv for call in found.calls] == [
        ("yarn", "set", "resolution", "json5@npm:^1.0.1", "npm:1.0.2"),
        ("yarn", "install", "--mode=update-lockfile"),
    ]
    assert json.loads(found.files[".yarnrc.yml"]) == {"nodeLinker": "node-modules"}
    assert found.edited == ()


async def test_yarn_sees_the_catalogs_of_a_neutralised_file_and_the_file_stays_as_it_is_laid_out() -> None:
    files = files_of("yarn-berry-lines")
    settings = "yarnPath: .yarn/releases/evil.cjs\n# ours\ncatalog:\n  semver: ^7.3.5\n"
    files[".yarnrc.yml"] = settings.encode()
    files["package.json"] = files["package.json"].replace(b'"semver": "^7.3.5"', b'"semver": "catalog:"')
    edit = Edit(path=".yarnrc.yml", at="catalog.semver", from_text="^7.3.5", to_text="^7.5.2", kind="catalog")

    found = await wanted(files, "yarn.lock", [], [edit])

    assert isinstance(found, ToolRelock)
    assert json.loads(found.files[".yarnrc.yml"]) == {"catalog": {"semver": "^7.5.2"}}
    assert found.edited == (".yarnrc.yml",)
    assert found.restored == {".yarnrc.yml": settings.replace("^7.3.5", "^7.5.2").encode()}


async def test_bun_forces_nothing_that_follows_from_what_comes_in() -> None:
    lock = {
        "lockfileVersion": 1,
        "workspaces": {"": {"name": "app", "dependencies": {"parent": "1.0.0", "other": "1.0.0"}}},
        "packages": {
            "parent": ["parent@1.0.0", "", {"dependencies": {"vuln": "1.0.0"}}, "sha512-p"],
            "other": ["other@1.0.0", "", {"dependencies": {"vuln": "2.0.0"}}, "sha512-o"],
            "vuln": ["vuln@1.0.0", "", {}, "sha512-v"],
            "other/vuln": ["vuln@2.0.0", "", {}, "sha512-w"],
        },
    }
    manifest = {"name": "app", "dependencies": {"parent": "1.0.0", "other": "1.0.0"}}
    tree = MemoryTree({"package.json": json.dumps(manifest).encode(), "bun.lock": json.dumps(lock).encode()})
    (unit,) = await drive(read_units(await tree.listing(), ["bun.lock"]), tree, NoMetadata())
    remediation = Remediation(
        unit="bun.lock",
        ecosystem="npm",
        package_name="vuln",
        strategy="parent-bump",
        moves=(move("parent", "parent", "1.0.0", "1.1.0"), move("vuln", "vuln", "1.0.0", "1.2.0")),
        edits=(Edit(path="package.json", at="dependencies.parent", from_text="1.0.0", to_text="1.1.0"),),
        needs_tool=True,
    )
    records = RecordedMetadata(registry({"parent": {"1.1.0": {"vuln": "1.2.0"}}, "vuln": {"1.2.0": {}}}))

    found = await drive(relock(unit, [remediation]), tree, records)

    assert isinstance(found, ToolRelock)
    first, last = found.calls
    assert json.loads(first.files["package.json"])["overrides"] == {"parent": "1.1.0"}
    assert "overrides" not in json.loads(last.files["package.json"])


@pytest.mark.parametrize(
    ("raised", "sets"),
    [
        # Exact: yarn has no choice, and would wait for itself.
        ("7.5.2", []),
        ("^7.5.2", [("yarn", "set", "resolution", "semver@npm:^7.5.2", "npm:7.5.2")]),
    ],
)
async def test_yarn_is_only_told_what_the_edits_leave_open(raised: str, sets: list[tuple[str, ...]]) -> None:
    files = files_of("yarn-berry-lines")
    (place,) = (
        line[1:-2].split(", ")[0] for line in files["yarn.lock"].decode().splitlines() if line.startswith('"semver@')
    )
    edit = Edit(path="package.json", at="devDependencies.semver", from_text="^7.3.5", to_text=raised)

    found = await wanted(files, "yarn.lock", [move(place, "semver", "7.3.5", "7.5.2")], [edit])

    assert isinstance(found, ToolRelock)
    install = ("yarn", "install", "--mode=update-lockfile")
    assert [call.argv for call in found.calls] == ([install, *sets, install] if sets else [install])


@pytest.mark.parametrize(
    ("project", "lock", "moved", "more"),
    [
        (
            "yarn-berry-lines",
            "yarn.lock",
            move("json5@npm:^1.0.1", "json5", "1.0.1", "1.0.2"),
            {".yarnrc.yml": b"plugins:\n  - path: .yarn/plugins/p.cjs\n"},
        ),
        ("npm-v1-legacy", "package-lock.json", move("node_modules/lodash", "lodash", "4.17.11", "4.17.21"), {}),
        ("yarn1-resolutions", "yarn.lock", move("qs@~6.5.2", "qs", "6.5.2", "6.5.3"), {}),
    ],
)
async def test_a_tool_without_a_safe_way_is_refused(
    project: str, lock: str, moved: Move, more: dict[str, bytes]
) -> None:
    found = await wanted(files_of(project, **more), lock, [moved])

    assert isinstance(found, WriteRefusal)
    assert found.reason == "tool-required"


@pytest.mark.parametrize("edited", [False, True])
async def test_a_lock_that_was_made_with_the_projects_own_hook_is_not_made_without_it(*, edited: bool) -> None:
    files = files_of("pnpm-v9-override")
    lock = files["pnpm-lock.yaml"]
    files["pnpm-lock.yaml"] = lock.replace(b"\nimporters:\n", b"\npnpmfileChecksum: made-up\n\nimporters:\n", 1)
    assert files["pnpm-lock.yaml"] != lock
    edit = Edit(
        path="package.json", at="pnpm.overrides.form-data@<2.3.4", from_text=None, to_text="^2.3.4", kind="override"
    )
    moved = move("form-data@2.3.3", "form-data", "2.3.3", "2.3.4")

    found = await wanted(files, "pnpm-lock.yaml", [] if edited else [moved], [edit] if edited else [])

    assert isinstance(found, WriteRefusal)
    assert found.detail == "the lock was made with a .pnpmfile.cjs, which is not run here"


@pytest.mark.parametrize(("raised", "is_left_to_yarn"), [("1.2.6", True), ("^1.2.6", False)])
async def test_yarn_1_raises_what_is_declared_exactly(raised: str, *, is_left_to_yarn: bool) -> None:
    files = {
        "package.json": b'{"name": "app", "dependencies": {"minimist": "1.2.5"}}',
        "yarn.lock": b'# yarn lockfile v1\n\n\nminimist@1.2.5:\n  version "1.2.5"\n',
    }
    edit = Edit(path="package.json", at="dependencies.minimist", from_text="1.2.5", to_text=raised)
    moved = replace(move("minimist@1.2.5", "minimist", "1.2.5", "1.2.6"), strategy="manifest-bump")

    found = await wanted(files, "yarn.lock", [moved], [edit])

    assert isinstance(found, ToolRelock) is is_left_to_yarn
    if isinstance(found, ToolRelock):
        assert [call.argv[:2] for call in found.calls] == [("yarn", "install")]


@pytest.mark.parametrize(
    ("extra", "is_refused"),
    [({}, True), ({"packageManager": "pnpm@9.15.9"}, False), ({"pnpm": {}}, False)],
    ids=["unknown", "named", "has a pnpm table"],
)
async def test_a_first_override_is_only_written_where_the_projects_pnpm_reads_it(
    extra: dict[str, object], *, is_refused: bool
) -> None:
    files = {
        "package.json": json.dumps({"name": "app", "dependencies": {"a": "1.0.0"}, **extra}).encode(),
        "pnpm-lock.yaml": b"lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    dependencies:\n      a:\n"
        b"        specifier: 1.0.0\n        version: 1.0.0\n\npackages:\n\n  a@1.0.0:\n"
        b"    resolution: {integrity: sha512-AAAA}\n\nsnapshots:\n\n  a@1.0.0: {}\n",
    }
    tree = MemoryTree(files)
    (unit,) = await drive(read_units(await tree.listing(), ["pnpm-lock.yaml"]), tree, NoMetadata())
    edit = Edit(path="package.json", at="pnpm.overrides.b@<2.0.0", from_text=None, to_text="^2.0.0", kind="override")
    remediation = Remediation(
        unit="pnpm-lock.yaml", ecosystem="npm", package_name="b", strategy="override", moves=(), edits=(edit,)
    )

    found = await drive(write(unit, [remediation]), tree, NoMetadata())

    if is_refused:
        assert found == WriteRefusal(
            reason="tool-required",
            detail="package.json does not name its pnpm (packageManager), and pnpm since 11 reads no overrides there",
        )
    else:
        assert isinstance(found, ChangeSet), found
        assert [change.path for change in found.changes] == ["package.json", "pnpm-lock.yaml"]
