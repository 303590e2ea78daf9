"""Which manifests belong to which lock, and what hostile or broken files give."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dependfix_core.ecosystems.npm.read import MAX_FILE_BYTES, read_units, safe_path, unit_of
from dependfix_core.model.files import Absence, Listing, TreeEntry
from dependfix_core.model.lock import LockUnit, ReleaseAgeGate, SourceKind
from dependfix_core.model.steps import Supplies
from fakes.step_driver import drive, listing_of

LODASH = {
    "node_modules/lodash": {
        "version": "4.17.20",
        "resolved": "https://npm.registry.example/lodash/-/lodash-4.17.20.tgz",
    }
}


def npm_lock(packages: Mapping[str, Any], **more: Any) -> bytes:
    return json.dumps({"name": "x", "lockfileVersion": 3, "packages": {"": {}, **packages}, **more}).encode()


def manifest(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def read(files: Mapping[str, bytes], *paths: str) -> tuple[LockUnit, ...]:
    return drive(read_units(listing_of(files), paths), files)


def test_members_excluded_folders_and_nested_locks() -> None:
    """`!` patterns, independent locks below a root, and a member's own manifest."""
    files = {
        "package.json": manifest(workspaces=["packages/*", "!packages/out"]),
        "package-lock.json": npm_lock({"packages/in": {}}),
        "packages/in/package.json": manifest(name="in"),
        "packages/out/package.json": manifest(name="out"),
        "tools/package.json": manifest(name="tools"),
        "tools/package-lock.json": npm_lock({}),
        "lone/package.json": manifest(name="lone", dependencies={"a": "^1"}),
    }

    units = read(files, *files)

    assert [(unit.unit, unit.format, unit.manifests) for unit in units] == [
        ("lone/package.json", "manifest", ("lone/package.json",)),
        ("package-lock.json", "npm-lock", ("package.json", "packages/in/package.json")),
        ("packages/out/package.json", "manifest", ("packages/out/package.json",)),
        ("tools/package-lock.json", "npm-lock", ("tools/package.json",)),
    ]
    found = unit_of(units, "packages/in/package.json")
    assert found is not None
    assert found.unit == "package-lock.json"


def test_yarn_1_links_members_that_a_range_takes_without_a_word_in_its_lock() -> None:
    files = {
        "package.json": manifest(private=True, workspaces=["packages/*"]),
        "packages/app/package.json": manifest(
            name="app", version="1.0.0", dependencies={"lib": "*", "old-lib": "^2.0.0", "@x/lib": "^1.2.0"}
        ),
        "packages/lib/package.json": manifest(name="lib", version="0.3.0"),
        "packages/old/package.json": manifest(name="old-lib", version="1.9.0"),
        "packages/scoped/package.json": manifest(name="@x/lib", version="1.4.1"),
        "yarn.lock": b"# yarn lockfile v1\n",
    }

    (unit,) = read(files, "yarn.lock")

    kinds = {constraint.at: constraint.source.kind for constraint in unit.constraints}
    assert kinds == {
        "dependencies.lib": SourceKind.WORKSPACE,
        "dependencies.old-lib": SourceKind.REGISTRY,
        "dependencies.@x/lib": SourceKind.WORKSPACE,
    }
    assert unit.settings["outOfSync"] == (("packages/app/package.json", "dependencies.old-lib", "nothing"),)


def test_a_foreign_lock_in_a_workspace_is_stray() -> None:
    files = {
        "pnpm-workspace.yaml": b"packages:\n  - apps/*\n",
        "package.json": manifest(packageManager="pnpm@9.1.0"),
        "pnpm-lock.yaml": b"lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n\n  apps/a: {}\n",
        "package-lock.json": npm_lock({}),
        "apps/a/package.json": manifest(name="a"),
        "apps/a/package-lock.json": npm_lock({}),
    }

    units = read(files, "apps/a/package.json", "apps/a/package-lock.json", "package-lock.json", "package.json")

    assert {unit.unit: unit.settings["stray"] for unit in units} == {
        "apps/a/package-lock.json": True,
        "package-lock.json": True,
        "pnpm-lock.yaml": False,
    }
    for path in ("apps/a/package.json", "package.json"):
        found = unit_of(units, path)
        assert found is not None
        assert found.unit == "pnpm-lock.yaml"


def test_pnpm_projects_that_keep_their_own_lock_are_their_own_units() -> None:
    lock = b"lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n"
    files = {
        "pnpm-workspace.yaml": b"packages: ['a']\nsharedWorkspaceLockfile: false\n",
        "package.json": manifest(),
        "pnpm-lock.yaml": lock,
        "a/package.json": manifest(name="a"),
        "a/pnpm-lock.yaml": lock,
    }

    assert [unit.unit for unit in read(files, "a/package.json")] == ["a/pnpm-lock.yaml"]


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("/package.json", "package.json"),
        ("apps\\web\\package-lock.json", "apps/web/package-lock.json"),
        ("./a/../package.json", "package.json"),
        ("../package.json", None),
        ("a/../../package.json", None),
        ("", None),
        ("a\0b", None),
    ],
)
def test_alert_paths_stay_in_the_tree(path: str, safe: str | None) -> None:
    assert safe_path(path) == safe


def test_paths_that_are_no_files_belong_to_no_unit() -> None:
    files = {"package.json": manifest()}

    assert read(files, "gone/package-lock.json", "npm (submitted)", "../package.json", "README.md") == ()


BROKEN = {
    "truncated": (b'{"lockfileVersion": 3, "packages": {"": {', "1:42", "unreadable"),
    "conflict": (b'{\n<<<<<<< HEAD\n"lockfileVersion": 3\n=======\n>>>>>>> x\n}', "2:1", "unreadable"),
    "twice": (b'{"lockfileVersion": 3,\n "packages": {"": {}, "": {}}}', "2:23", "unreadable"),
    "array": (b"[]", "1:1", "unreadable"),
    "version": (b'{"lockfileVersion": 4, "packages": {}}', "lockfileVersion", "unsupported-lock-format"),
    "deep": (b'{"a":' * 100_000, "", "unreadable"),
    "binary": (b"\x00\x01", "", "unreadable"),
    "latin": (b'{"name": "\xe9"}', "1:10", "unreadable"),
    "huge": (b" " * (MAX_FILE_BYTES + 1), "", "unreadable"),
    "nan": (b'{"lockfileVersion": 3, "packages": {"": {"a": NaN}}}', "1:47", "unreadable"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_npm_lock_is_a_problem_with_its_place(kind: str) -> None:
    content, position, reason = BROKEN[kind]
    files = {
        "package.json": manifest(dependencies={"a": "^1"}),
        "package-lock.json": content,
        "b/package.json": manifest(),
    }

    lone, unit = read(files, "package-lock.json", "b/package.json")

    assert [(p.path, p.position, p.reason) for p in unit.problems] == [("package-lock.json", position, reason)]
    assert (unit.instances, [c.name for c in unit.constraints]) == ({}, ["a"])
    assert (lone.unit, lone.problems) == ("b/package.json", ())


@pytest.mark.parametrize(
    ("lock", "content", "position", "reason"),
    [
        ("pnpm-lock.yaml", b"lockfileVersion: 5.4\n", "lockfileVersion", "unsupported-lock-format"),
        ("pnpm-lock.yaml", b"lockfileVersion: '9.0'\npackages:\n  a@1: {}\n  a@1: {}\n", "4:3", "unreadable"),
        ("pnpm-lock.yaml", b"lockfileVersion: '9.0'\n  x: [\n", "2:3", "unreadable"),
        ("pnpm-lock.yaml", b"<<<<<<< HEAD\n", "1:1", "unreadable"),
        ("yarn.lock", b'a@^1:\n  version "1.0.0"\na@^1:\n  version "1.0.0"\n', "3:1", "unreadable"),
        ("yarn.lock", b'a@^1:\n  version "1.0.0"\n  version "1.0.1"\n', "3:3", "unreadable"),
        ("yarn.lock", b"a@^1:\n  resolved x\n", "1:1", "unreadable"),
        ("yarn.lock", b"a@^1\n", "1:1", "unreadable"),
        ("yarn.lock", b"__metadata:\n  cacheKey: 8\n", "__metadata", "unsupported-lock-format"),
        ("yarn.lock", b'__metadata:\n  version: 8\n\n"a@npm:1":\n\tversion: 1\n', "5:1", "unreadable"),
        ("bun.lock", b'{"lockfileVersion": 7, "packages": {}}', "lockfileVersion", "unsupported-lock-format"),
        ("bun.lock", b'{"lockfileVersion": 1, "packages": {"a": [], }', "1:47", "unreadable"),
        ("bun.lockb", b"\x00bun", "", "unsupported-lock-format"),
    ],
)
def test_other_broken_locks_are_problems_with_their_place(
    lock: str, content: bytes, position: str, reason: str
) -> None:
    (unit,) = read({"package.json": manifest(), lock: content}, lock)

    assert [(p.path, p.position, p.reason) for p in unit.problems] == [(lock, position, reason)]


def test_a_broken_member_manifest_stops_the_unit_and_leaves_the_rest_readable() -> None:
    files = {
        "package.json": manifest(workspaces=["packages/*"], dependencies={"lodash": "^4.17.0"}),
        "package-lock.json": npm_lock({"": {"dependencies": {"lodash": "^4.17.0"}}, **LODASH}),
        "packages/a/package.json": b'{"dependencies": {"b": "1", "b": "2"}}',
    }

    (unit,) = read(files, "package-lock.json")

    assert [(p.path, p.position, p.reason) for p in unit.problems] == [
        ("packages/a/package.json", "1:29", "unreadable"),
        ("package-lock.json", "", "unreadable"),
    ]
    assert unit.problems[1].message == "packages/a/package.json:1:29: the key dependencies.b is written twice"
    assert [c.target for c in unit.constraints] == ["node_modules/lodash"]


def test_keys_that_nobody_reads_may_be_written_twice() -> None:
    (unit,) = read({"package.json": b'{"scripts": {"a": "x", "a": "y"}}'}, "package.json")

    assert unit.problems == ()


def test_absent_contents_are_problems() -> None:
    """A link, an LFS pointer or a file over the source's limit is named, never followed."""
    listing = Listing(entries={path: TreeEntry(path=path) for path in ("package.json", "package-lock.json")})
    step = read_units(listing, ["package-lock.json"])
    needs = next(step)
    units: tuple[LockUnit, ...] = ()
    try:
        while True:
            absent = {"package.json": Absence.SYMLINK, "package-lock.json": Absence.LFS_POINTER}
            needs = step.send(Supplies(files={path: absent[path] for path in needs.files}))
    except StopIteration as stop:
        units = stop.value

    assert [(p.path, p.reason) for p in units[0].problems] == [
        ("package-lock.json", "unreadable"),
        ("package.json", "unreadable"),
    ]


def test_a_cut_listing_is_asked_for_what_may_be_there() -> None:
    files = {
        "package.json": manifest(dependencies={"lodash": "^4"}),
        "package-lock.json": npm_lock({"": {"dependencies": {"lodash": "^4"}}, **LODASH}),
    }
    listing = Listing(entries={"package-lock.json": TreeEntry(path="package-lock.json")}, complete=False)

    (unit,) = drive(read_units(listing, ["package-lock.json"]), files)

    assert (unit.manifests, unit.files) == (("package.json",), ("package-lock.json", "package.json"))


@pytest.mark.parametrize(
    ("declared", "mirrored", "out"),
    [
        ({"lodash": "^4.17.0"}, {"lodash": "^4.17.0"}, []),
        ({"lodash": "^4.17.0"}, {}, [("package.json", "dependencies.lodash", "nothing")]),
        ({}, {"lodash": "^4.17.0"}, [("package.json", "dependencies.lodash", "^4.17.0")]),
    ],
)
def test_a_lock_that_does_not_match_its_manifest(
    declared: dict[str, str], mirrored: dict[str, str], out: list[tuple[str, str, str]]
) -> None:
    files = {
        "package.json": manifest(dependencies=declared),
        "package-lock.json": npm_lock({"": {"dependencies": mirrored}, **LODASH}),
    }

    (unit,) = read(files, "package-lock.json")

    assert list(unit.settings["outOfSync"]) == out
    assert [(p.position, p.reason) for p in unit.problems] == [(key, "tool-required") for _, key, _ in out]


def test_pnpm_takes_another_specifier_for_out_of_sync() -> None:
    files = {
        "package.json": manifest(dependencies={"a": "^1.1.0"}),
        "pnpm-lock.yaml": (
            b"lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    dependencies:\n      a:\n        specifier: ^1.0.0\n"
            b"        version: 1.2.0\n\npackages:\n\n  a@1.2.0:\n    resolution: {integrity: sha512-x}\n\n"
            b"snapshots:\n\n  a@1.2.0: {}\n"
        ),
    }

    (unit,) = read(files, "pnpm-lock.yaml")

    assert unit.settings["outOfSync"] == (("package.json", "dependencies.a", "^1.0.0"),)


def test_every_kind_of_source() -> None:
    packages = {
        "node_modules/git": {"version": "1.0.0", "resolved": "git+ssh://git@github.com/o/git.git#abc"},
        "node_modules/url": {"version": "1.0.0", "resolved": "https://host.example/url.tgz"},
        "node_modules/file": {"version": "1.0.0", "resolved": "file:../file.tgz"},
        "node_modules/plain": {"version": "1.0.0", "integrity": "sha512-x"},
        "node_modules/other": {"version": "1.0.0", "resolved": "https://npm.registry.example/download/other/1.0.0/abc"},
        "node_modules/secret": {
            "version": "1.0.0",
            "resolved": "https://u:p@npm.registry.example/secret/-/secret-1.0.0.tgz",
        },
    }
    dependencies = {
        "git": "github:o/git",
        "url": "https://host.example/url.tgz",
        "file": "file:../file.tgz",
        "plain": "1",
    }
    dependencies |= {"other": "1", "secret": "1"}
    files = {
        "package.json": manifest(dependencies=dependencies),
        "package-lock.json": npm_lock({"": {"dependencies": dependencies}, **packages}),
    }

    (unit,) = read(files, "package-lock.json")

    assert {where: (i.source.kind, i.source.base) for where, i in unit.instances.items()} == {
        "node_modules/git": (SourceKind.GIT, ""),
        "node_modules/url": (SourceKind.URL, ""),
        "node_modules/file": (SourceKind.FILE, ""),
        "node_modules/plain": (SourceKind.REGISTRY, ""),
        "node_modules/other": (SourceKind.REGISTRY, ""),
        "node_modules/secret": (SourceKind.REGISTRY, "https://npm.registry.example"),
    }
    assert "u:p" not in repr([i.source for i in unit.instances.values()])
    assert {c.name: c.source.kind for c in unit.constraints if c.source.kind is not SourceKind.REGISTRY} == {
        "git": SourceKind.GIT,
        "url": SourceKind.URL,
        "file": SourceKind.FILE,
    }


def test_release_age_gates_and_registries_of_every_tool() -> None:
    lock = b"lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n"
    pnpm = {
        "package.json": manifest(),
        "pnpm-lock.yaml": lock,
        ".npmrc": b"registry=https://a.registry.example/\n@s:registry=https://b.registry.example\n//a/:_authToken=x\n",
        "pnpm-workspace.yaml": (
            b"minimumReleaseAge: 4320\nminimumReleaseAgeExclude:\n  - lodash\n  - '@s/*'\ntrustPolicy: no-downgrade\n"
        ),
    }
    npm = {
        "package.json": manifest(),
        "package-lock.json": npm_lock({}),
        ".npmrc": b"min-release-age = 3\nmin-release-age-exclude[]=x\nbefore=2025-01-01\nregistry=https://${HOST}/\n",
    }
    yarn = {
        "package.json": manifest(),
        "yarn.lock": b"__metadata:\n  version: 8\n",
        ".yarnrc.yml": b"npmMinimalAgeGate: 3d\nnpmPreapprovedPackages: [a, 'b@^1']\nyarnPath: x.cjs\nplugins: [p]\n",
    }
    bun = {
        "package.json": manifest(),
        "bun.lock": b'{"lockfileVersion": 1, "workspaces": {"": {}}, "packages": {}}',
        "bunfig.toml": b'[install]\nminimumReleaseAge = 259200\nminimumReleaseAgeExcludes = ["x"]\n',
    }

    units = [read(files, path)[0] for files, path in ((pnpm, "pnpm-lock.yaml"), (npm, "package-lock.json"))]
    units += [read(files, path)[0] for files, path in ((yarn, "yarn.lock"), (bun, "bun.lock"))]

    def gate(path: str, at: str, minutes: int, *excluded: str, kind: str) -> ReleaseAgeGate:
        return ReleaseAgeGate(path=path, at=at, minimum_age_minutes=minutes, excluded=excluded, kind=kind)

    assert [unit.gates for unit in units] == [
        (
            gate("pnpm-workspace.yaml", "minimumReleaseAge", 4320, "lodash", "@s/*", kind="minimumReleaseAge"),
            ReleaseAgeGate(path="pnpm-workspace.yaml", at="trustPolicy", kind="trustPolicy"),
        ),
        (
            gate(".npmrc", "min-release-age", 4320, "x", kind="min-release-age"),
            ReleaseAgeGate(path=".npmrc", at="before", exclude_newer="2025-01-01", kind="min-release-age"),
        ),
        (gate(".yarnrc.yml", "npmMinimalAgeGate", 4320, "a", "b@^1", kind="npmMinimalAgeGate"),),
        (gate("bunfig.toml", "install.minimumReleaseAge", 4320, "x", kind="minimumReleaseAge"),),
    ]
    assert [unit.registries for unit in units] == [
        {"": "https://a.registry.example", "@s": "https://b.registry.example"},
        {},
        {},
        {},
    ]
    assert units[2].settings["code"] == (".yarnrc.yml: yarnPath", ".yarnrc.yml: plugins")


def test_code_and_patches_are_named() -> None:
    files = {
        "package.json": manifest(pnpm={"patchedDependencies": {"a@1.0.0": "patches/a.patch"}}),
        "pnpm-lock.yaml": b"lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n",
        ".pnpmfile.cjs": b"",
        "patches/@s+b+2.0.0.patch": b"",
    }

    (unit,) = read(files, "pnpm-lock.yaml")

    assert unit.settings["code"] == (".pnpmfile.cjs",)
    assert unit.settings["patched"] == {"a@1.0.0": "patches/a.patch", "@s/b@2.0.0": "patches/@s+b+2.0.0.patch"}


@pytest.mark.parametrize(
    ("manager", "effective"),
    [("pnpm@10.1.0", ["from-manifest"]), ("pnpm@11.0.0", ["from-workspace"]), ("", ["from-workspace"])],
)
def test_pnpm_overrides_stand_where_the_version_reads_them(manager: str, effective: list[str]) -> None:
    """In pnpm 10 package.json wins over the workspace file, pnpm 11 reads only the latter; else the lock says it."""
    files = {
        "package.json": manifest(packageManager=manager, pnpm={"overrides": {"x@<2": "from-manifest"}}),
        "pnpm-workspace.yaml": b"overrides:\n  x@<2: from-workspace\n",
        "pnpm-lock.yaml": b"lockfileVersion: '9.0'\n\noverrides:\n  y: '1'\n\nimporters:\n\n  .: {}\n",
    }

    (unit,) = read(files, "pnpm-lock.yaml")

    assert [override.value for override in unit.overrides] == effective


def test_a_shrinkwrap_and_what_npm_12_makes_of_it() -> None:
    files = {
        "package.json": manifest(packageManager="npm@12.0.0"),
        "package-lock.json": npm_lock({}),
        "npm-shrinkwrap.json": npm_lock({}),
    }

    lock, shrinkwrap = read(files, "package-lock.json", "npm-shrinkwrap.json")[::-1]

    assert (lock.unit, lock.settings["stray"]) == ("package-lock.json", True)
    assert (shrinkwrap.settings["stray"], len(shrinkwrap.settings["warnings"])) == (False, 1)


def test_a_lone_manifest_follows_the_catalogs_above_it() -> None:
    files = {
        "pnpm-workspace.yaml": b"catalog:\n  a: ^1.2.3\ncatalogs:\n  old:\n    a: ^0.9.0\n",
        "package.json": manifest(packageManager="pnpm@10.0.0"),
        "apps/x/package.json": manifest(dependencies={"a": "catalog:old"}, overrides={"b": "1"}),
    }

    (unit,) = read(files, "apps/x/package.json")

    assert [(c.path, c.at, c.requirement, c.declared_in) for c in unit.constraints] == [
        ("pnpm-workspace.yaml", "catalogs.old.a", "^0.9.0", "apps/x/package.json")
    ]
    assert (unit.tool, unit.tool_version) == ("pnpm", "10.0.0")


def test_bundled_and_shrinkwrapped_copies_lie_in_a_tarball() -> None:
    packages = {
        "node_modules/a": {"version": "1.0.0", "bundleDependencies": ["b"]},
        "node_modules/a/node_modules/b": {"version": "1.0.0", "inBundle": True},
        "node_modules/c": {"version": "1.0.0", "hasShrinkwrap": True},
        "node_modules/c/node_modules/d": {"version": "1.0.0"},
        "node_modules/e": {"version": "1.0.0", "inBundle": True},
    }
    files = {
        "package.json": manifest(bundleDependencies=["e"]),
        "package-lock.json": npm_lock({"": {"bundleDependencies": ["e"]}, **packages}),
    }

    (unit,) = read(files, "package-lock.json")

    assert [where for where, instance in unit.instances.items() if instance.bundled] == [
        "node_modules/a/node_modules/b",
        "node_modules/c/node_modules/d",
    ]
