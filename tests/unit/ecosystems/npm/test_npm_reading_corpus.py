"""The corpus projects as units: every copy with its place, edges and flags, compared with values read by hand."""

import pytest

from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.model.lock import DependencyKind, Instance, LockUnit
from fakes.step_driver import drive, listing_of, project_files


def unit_of_project(name: str, lock: str) -> LockUnit:
    files = project_files(name)
    units = drive(read_units(listing_of(files), [lock]), files)
    assert [unit.unit for unit in units] == [lock]
    return units[0]


def shape(instance: Instance) -> str:
    """`version flags: edges`, short enough to write down."""
    flags = "".join(
        letter
        for letter, on in (("d", instance.dev), ("o", instance.optional), ("p", instance.peer), ("b", instance.bundled))
        if on
    )
    edges = " ".join(f"{edge.name}@{edge.requirement or '?'}>{edge.target}" for edge in instance.edges)
    return f"{instance.version}{' ' + flags if flags else ''}{': ' + edges if edges else ''}"


def shapes(unit: LockUnit) -> dict[str, str]:
    return {where: shape(instance) for where, instance in unit.instances.items()}


def test_npm_1_nested_copies_have_their_places_and_ranges() -> None:
    unit = unit_of_project("npm-v1-legacy", "package-lock.json")

    assert shapes(unit) == {
        "node_modules/lodash": "4.17.11",
        "node_modules/minimist": "1.2.0 d",
        "node_modules/mkdirp": "0.5.1: minimist@0.0.8>node_modules/mkdirp/node_modules/minimist",
        "node_modules/mkdirp/node_modules/minimist": "0.0.8",
        "node_modules/optimist": (
            "0.6.1: minimist@~0.0.1>node_modules/optimist/node_modules/minimist wordwrap@~0.0.2>node_modules/wordwrap"
        ),
        "node_modules/optimist/node_modules/minimist": "0.0.10",
        "node_modules/wordwrap": "0.0.3",
    }
    assert (unit.format, unit.format_version, unit.tool) == ("npm-lock", "1", "npm")
    assert [(c.at, c.requirement, c.kind, c.target) for c in unit.constraints] == [
        ("dependencies.mkdirp", "^0.5.1", DependencyKind.PROD, "node_modules/mkdirp"),
        ("dependencies.optimist", "^0.6.1", DependencyKind.PROD, "node_modules/optimist"),
        ("dependencies.lodash", "~4.17.11", DependencyKind.PROD, "node_modules/lodash"),
        ("devDependencies.minimist", "^1.2.0", DependencyKind.DEV, "node_modules/minimist"),
    ]


def test_npm_2_is_read_from_its_packages() -> None:
    unit = unit_of_project("npm-v2-multi-line", "package-lock.json")
    found = shapes(unit)

    assert len(found) == 20
    assert unit.format_version == "2"
    assert unit.runtime == {"node": ">=14"}
    assert found["node_modules/semver"] == "7.3.5: lru-cache@^6.0.0>node_modules/lru-cache"
    assert found["node_modules/make-dir"] == "3.1.0 d: semver@^6.0.0>node_modules/make-dir/node_modules/semver"
    assert found["node_modules/make-dir/node_modules/semver"] == "6.3.0 d"
    assert found["node_modules/normalize-package-data"] == (
        "2.5.0: hosted-git-info@^2.1.4>node_modules/hosted-git-info resolve@^1.10.0>node_modules/resolve "
        "semver@2 || 3 || 4 || 5>node_modules/normalize-package-data/node_modules/semver "
        "validate-npm-package-license@^3.0.1>node_modules/validate-npm-package-license"
    )
    assert {where for where, text in found.items() if text.split(":")[0].endswith(" d")} == {
        "node_modules/make-dir",
        "node_modules/make-dir/node_modules/semver",
    }


def test_npm_3_copies_spans_and_registry() -> None:
    files = project_files("npm-v3-direct")
    unit = unit_of_project("npm-v3-direct", "package-lock.json")
    found = shapes(unit)
    manifest = files["package.json"]

    assert len(found) == 55
    assert found["node_modules/axios"] == "0.21.0: follow-redirects@^1.10.0>node_modules/follow-redirects"
    assert found["node_modules/send/node_modules/ms"] == "2.1.1"
    assert found["node_modules/mkdirp"] == "0.5.5 d: minimist@^1.2.5>node_modules/minimist"
    assert unit.registries == {"": "https://npm.registry.example"}
    assert {c.name: manifest[c.span.start : c.span.end].decode() for c in unit.constraints if c.span is not None} == {
        "express": "~4.17.1",
        "lodash": "^4.17.15",
        "axios": "^0.21.0",
        "minimist": "1.2.5",
        "mkdirp": "^0.5.1",
    }
    assert unit.instances["node_modules/qs"].source.base == "https://npm.registry.example"
    assert (unit.files, unit.problems) == (("package-lock.json", "package.json"), ())


def test_pnpm_6_workspace() -> None:
    unit = unit_of_project("pnpm-v6-workspace", "pnpm-lock.yaml")

    assert shapes(unit) == {
        "asynckit@0.4.0": "0.4.0",
        "axios@0.27.2": "0.27.2: follow-redirects@?>follow-redirects@1.15.2 form-data@?>form-data@4.0.0",
        "axios@1.4.0": (
            "1.4.0: follow-redirects@?>follow-redirects@1.15.2 form-data@?>form-data@4.0.0 "
            "proxy-from-env@?>proxy-from-env@1.1.0"
        ),
        "combined-stream@1.0.8": "1.0.8: delayed-stream@?>delayed-stream@1.0.0",
        "delayed-stream@1.0.0": "1.0.0",
        "follow-redirects@1.15.2": "1.15.2: debug@*>None",
        "form-data@4.0.0": (
            "4.0.0: asynckit@?>asynckit@0.4.0 combined-stream@?>combined-stream@1.0.8 mime-types@?>mime-types@2.1.35"
        ),
        "mime-db@1.52.0": "1.52.0",
        "mime-types@2.1.35": "2.1.35: mime-db@?>mime-db@1.52.0",
        "minimist@1.2.8": "1.2.8 d",
        "mkdirp@0.5.6": "0.5.6 d: minimist@?>minimist@1.2.8",
        "proxy-from-env@1.1.0": "1.1.0",
        "ws@7.5.9": "7.5.9 d: bufferutil@^4.0.1>None utf-8-validate@^5.0.2>None",
    }
    assert unit.manifests == (
        "package.json",
        "apps/api/package.json",
        "apps/legacy/package.json",
        "packages/http/package.json",
    )
    assert (unit.format_version, unit.tool, unit.tool_version) == ("6.0", "pnpm", "8.15.9")
    assert [(c.path, c.name, c.target) for c in unit.constraints if c.name in ("axios", "ws")] == [
        ("apps/api/package.json", "axios", "axios@1.4.0"),
        ("apps/legacy/package.json", "axios", "axios@0.27.2"),
        ("packages/http/package.json", "axios", "axios@1.4.0"),
        ("packages/http/package.json", "ws", "ws@7.5.9"),
        ("packages/http/package.json", "ws", "ws@7.5.9"),
    ]


def test_pnpm_9_override_and_peers() -> None:
    unit = unit_of_project("pnpm-v9-override", "pnpm-lock.yaml")
    found = shapes(unit)

    assert len(found) == 67
    assert found["debug@3.1.0"] == "3.1.0: ms@?>ms@2.0.0 supports-color@*>None"
    assert found["form-data@2.3.3"] == (
        "2.3.3: asynckit@?>asynckit@0.4.0 combined-stream@?>combined-stream@1.0.8 mime-types@?>mime-types@2.1.35"
    )
    assert found["ws@8.11.0"] == "8.11.0: bufferutil@^4.0.1>None utf-8-validate@^5.0.2>None"
    assert [(o.at, o.selector, o.package, o.condition, o.value) for o in unit.overrides] == [
        ("pnpm.overrides.uuid@<3.4.0", "uuid@<3.4.0", "uuid", "<3.4.0", "3.4.0")
    ]
    assert unit.problems == ()


def test_yarn_1_descriptors_lead_to_their_entries() -> None:
    unit = unit_of_project("yarn1-resolutions", "yarn.lock")
    found = shapes(unit)

    assert unit.format == "yarn-classic"
    assert found["qs@~6.5.2"] == "6.5.2"
    assert found["qs@^6.9.0"] == "6.9.4"
    assert found["mkdirp@^0.5.1"] == "0.5.1: minimist@0.0.8>minimist@0.0.8"
    assert found["glob@^7.1.6"] == (
        "7.1.6 d: fs.realpath@^1.0.0>fs.realpath@^1.0.0 inflight@^1.0.4>inflight@^1.0.4 inherits@2>inherits@2 "
        "minimatch@^3.0.4>minimatch@^3.0.4 once@^1.3.0>once@^1.3.0 path-is-absolute@^1.0.0>path-is-absolute@^1.0.0"
    )
    assert unit.instances["safe-buffer@5.2.1"].aliases == (
        "safe-buffer@5.2.1",
        "safe-buffer@^5.0.1",
        "safe-buffer@^5.1.2",
    )
    assert unit.instances["combined-stream@^1.0.6"].aliases == ("combined-stream@^1.0.6", "combined-stream@~1.0.6")
    assert [edge.target for where in found for edge in unit.instances[where].edges if edge.target is None] == []
    assert [(o.at, o.value) for o in unit.overrides] == [("resolutions.safe-buffer", "5.2.1")]


def test_yarn_4_descriptors_lead_to_their_entries() -> None:
    unit = unit_of_project("yarn-berry-lines", "yarn.lock")

    assert shapes(unit) == {
        "@types/json5@npm:^0.0.29": "0.0.29",
        "asset-pipeline@workspace:.": "0.0.0-use.local",
        "big.js@npm:^5.2.2": "5.2.2",
        "emojis-list@npm:^3.0.0": "3.0.0",
        "json5@npm:^1.0.1": "1.0.1: minimist@^1.2.0>minimist@npm:^1.2.0",
        "json5@npm:^2.1.2": "2.2.1",
        "loader-utils@npm:^2.0.0": (
            "2.0.0: big.js@^5.2.2>big.js@npm:^5.2.2 emojis-list@^3.0.0>emojis-list@npm:^3.0.0 "
            "json5@^2.1.2>json5@npm:^2.1.2"
        ),
        "lru-cache@npm:^6.0.0": "6.0.0 d: yallist@^4.0.0>yallist@npm:^4.0.0",
        "minimist@npm:^1.2.0": "1.2.8",
        "semver@npm:^7.3.5": "7.3.5 d: lru-cache@^6.0.0>lru-cache@npm:^6.0.0",
        "strip-bom@npm:^3.0.0": "3.0.0",
        "tsconfig-paths@npm:^3.9.0": (
            "3.9.0: @types/json5@^0.0.29>@types/json5@npm:^0.0.29 json5@^1.0.1>json5@npm:^1.0.1 "
            "minimist@^1.2.0>minimist@npm:^1.2.0 strip-bom@^3.0.0>strip-bom@npm:^3.0.0"
        ),
        "yallist@npm:^4.0.0": "4.0.0 d",
    }
    assert (unit.format, unit.tool_version) == ("yarn-berry", "4.18.1")


@pytest.mark.parametrize(
    ("project", "lock"),
    [
        ("npm-v1-legacy", "package-lock.json"),
        ("npm-v2-multi-line", "package-lock.json"),
        ("npm-v3-direct", "package-lock.json"),
        ("pnpm-v6-workspace", "pnpm-lock.yaml"),
        ("pnpm-v9-override", "pnpm-lock.yaml"),
        ("yarn-berry-lines", "yarn.lock"),
        ("yarn1-resolutions", "yarn.lock"),
    ],
)
def test_an_alert_on_the_manifest_beside_is_planned_in_the_locks_unit(project: str, lock: str) -> None:
    files = project_files(project)

    units = drive(read_units(listing_of(files), ["package.json", lock]), files)

    assert [unit.unit for unit in units] == [lock]
    assert units[0].problems == ()
    assert units[0].settings["outOfSync"] == ()
