"""pnpm, yarn and bun: the same decisions in the forms that each of them reads."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import AlertOutcome, Plan, Remediation
from dependfix_core.model.policy import ScanPolicy
from fakes.planning import ALL, NOW, plan_files
from fakes.universe import alert, registry

Universe = Mapping[str, Mapping[str, Mapping[str, Any]]]
PACKAGES: Universe = {
    "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}},
    "loose": {"1.0.0": {"vuln": "^1.0.0"}},
    "strict": {"1.0.0": {"vuln": "~1.0.0"}},
    "modern": {"1.0.0": {"vuln": "^2.0.0"}},
    "plugin": {"1.0.0": {"peer:vuln": "^1.0.0"}},
    "picky": {"1.0.0": {"peer:vuln": "1.0.0"}, "1.1.0": {"peer:vuln": "1.2.0"}},
}


def answer(planned: Plan, number: int = 1) -> AlertOutcome:
    (found,) = (one for one in planned.outcomes if one.alert == number)
    return found


def only(planned: Plan) -> Remediation:
    (found,) = planned.remediations
    return found


def moves(planned: Plan) -> dict[str, tuple[str | None, str | None]]:
    return {move.where: (move.from_version, move.to_version) for one in planned.remediations for move in one.moves}


def edits(planned: Plan) -> dict[tuple[str, str], str]:
    return {(edit.path, edit.at): edit.to_text for one in planned.remediations for edit in one.edits}


def manifest(**fields: Any) -> bytes:
    return json.dumps({"name": "app", "version": "1.0.0", **fields}, indent=2).encode()


# pnpm.


def pnpm(
    dependencies: Mapping[str, tuple[str, str]],
    snapshots: Mapping[str, Mapping[str, str]],
    *,
    overrides: Mapping[str, str] | None = None,
    workspace: str = "",
    peers: Mapping[str, Mapping[str, str]] | None = None,
    **fields: Any,
) -> dict[str, bytes]:
    """A project with a lock of version 9.0: name → (specifier, version), key → name → reference."""
    lines = ["lockfileVersion: '9.0'", "", "settings:", "  autoInstallPeers: true", ""]
    if overrides:
        lines += ["overrides:", *(f"  {key}: {value}" for key, value in overrides.items()), ""]
    lines += ["importers:", "", "  .:", "    dependencies:"]
    for name, (specifier, version) in sorted(dependencies.items()):
        lines += [f"      {name}:", f"        specifier: '{specifier}'", f"        version: {version}"]
    lines += ["", "packages:", ""]
    for key in sorted({key.partition("(")[0] for key in snapshots}):
        lines += [f"  {key}:", f"    resolution: {{integrity: sha512-{key.replace('@', '-')}}}"]
        if peers and key in peers:
            lines += ["    peerDependencies:", *(f"      {name}: '{text}'" for name, text in peers[key].items())]
        lines += [""]
    lines += ["snapshots:", ""]
    for key, needs in sorted(snapshots.items()):
        if needs:
            lines += [f"  {key}:", "    dependencies:", *(f"      {n}: {r}" for n, r in sorted(needs.items())), ""]
        else:
            lines += [f"  {key}: {{}}", ""]
    declared = {name: specifier for name, (specifier, _) in dependencies.items()}
    fields.setdefault("packageManager", "pnpm@9.15.9")
    if overrides and not workspace:
        fields["pnpm"] = {"overrides": dict(overrides)}
    files = {
        "package.json": manifest(dependencies=declared, **fields),
        "pnpm-lock.yaml": "\n".join(lines).encode(),
    }
    if workspace:
        files["pnpm-workspace.yaml"] = workspace.encode()
    return files


def plan(
    files: Mapping[str, bytes],
    *alerts: Alert,
    policy: ScanPolicy = ALL,
    packages: Universe = PACKAGES,
    now: datetime = NOW,
    lock: str = "pnpm-lock.yaml",
) -> Plan:
    found = alerts or (alert(1, "vuln", "< 1.2.0", "1.2.0", manifest=lock),)
    return plan_files(files, found, registry(packages), policy, now=now)


LOOSE = pnpm({"loose": ("^1.0.0", "1.0.0")}, {"loose@1.0.0": {"vuln": "1.0.0"}, "vuln@1.0.0": {}})
STRICT = {"strict@1.0.0": {"vuln": "1.0.0"}, "vuln@1.0.0": {}}


def test_pnpm_moves_a_transitive_copy_that_its_parent_s_record_admits() -> None:
    planned = plan(LOOSE)

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}
    assert only(planned).strategy == "lock-in-range"
    assert not only(planned).needs_tool
    assert answer(planned).instances[0].via == (("package.json", "loose", "vuln"),)


def test_pnpm_leaves_to_the_tool_what_no_record_can_judge() -> None:
    planned = plan(LOOSE, packages={"vuln": PACKAGES["vuln"]})

    assert answer(planned).outcome == "fix"
    assert only(planned).needs_tool


@pytest.mark.parametrize(
    ("fields", "workspace", "expected"),
    [
        ({}, "", ("package.json", "pnpm.overrides.vuln@<1.2.0")),
        ({"packageManager": "pnpm@10.34.0"}, "", ("package.json", "pnpm.overrides.vuln@<1.2.0")),
        ({"packageManager": "pnpm@11.1.0"}, "", ("pnpm-workspace.yaml", "overrides.vuln@<1.2.0")),
        (
            {"packageManager": "pnpm@10.34.0"},
            "overrides:\n  other: 1.0.0\n",
            ("pnpm-workspace.yaml", "overrides.vuln@<1.2.0"),
        ),
    ],
)
def test_pnpm_overrides_stand_where_that_pnpm_reads_them(
    fields: Mapping[str, Any], workspace: str, expected: tuple[str, str]
) -> None:
    overrides = {"other": "1.0.0"} if workspace else None

    planned = plan(pnpm({"strict": ("^1.0.0", "1.0.0")}, STRICT, workspace=workspace, overrides=overrides, **fields))

    assert edits(planned) == {expected: "^1.2.0"}
    assert only(planned).strategy == "override"


def test_pnpm_overrides_say_the_line_where_another_one_lies_below() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}, "2.2.0": {}},
        "first": {"1.0.0": {"vuln": "^1.0.0"}},
        "second": {"1.0.0": {"vuln": "~2.0.0"}},
    }
    files = pnpm(
        {"first": ("1.0.0", "1.0.0"), "second": ("1.0.0", "1.0.0")},
        {
            "first@1.0.0": {"vuln": "1.0.0"},
            "second@1.0.0": {"vuln": "2.0.0"},
            "vuln@1.0.0": {},
            "vuln@2.0.0": {},
        },
    )

    planned = plan(files, alert(1, "vuln", ">= 2.0.0, < 2.2.0", "2.2.0", manifest="pnpm-lock.yaml"), packages=packages)

    assert edits(planned) == {("package.json", "pnpm.overrides.vuln@>=2.0.0 <2.2.0"): "^2.2.0"}
    assert moves(planned) == {"vuln@2.0.0": ("2.0.0", "2.2.0")}


def test_pnpm_changes_the_entry_that_forces_the_bad_version() -> None:
    planned = plan(
        pnpm(
            {"loose": ("^1.0.0", "1.0.0")},
            {"loose@1.0.0": {"vuln": "1.0.0"}, "vuln@1.0.0": {}},
            overrides={"loose>vuln": "~1.0.0"},
        )
    )

    assert only(planned).strategy == "override-edit"
    assert edits(planned) == {("package.json", "pnpm.overrides.loose>vuln"): "~1.2.0"}


def test_a_catalog_entry_is_raised_where_it_stands() -> None:
    files = pnpm(
        {"vuln": ("catalog:", "1.0.0")},
        {"vuln@1.0.0": {}},
        workspace="packages:\n  - packages/*\ncatalog:\n  vuln: 1.0.0 # pinned\n",
    )

    planned = plan(files)

    assert edits(planned) == {("pnpm-workspace.yaml", "catalog.vuln"): "1.2.0"}
    (edit,) = only(planned).edits
    assert edit.kind == "catalog"


@pytest.mark.parametrize("declared", [{"loose": ("^1.0.0", "1.0.0")}, {"vuln": ("catalog:safe", "1.0.0")}])
def test_a_forced_version_that_stands_in_a_catalog_is_raised_there(declared: Mapping[str, tuple[str, str]]) -> None:
    files = pnpm(
        declared,
        {"loose@1.0.0": {"vuln": "1.0.0"}, "vuln@1.0.0": {}} if "loose" in declared else {"vuln@1.0.0": {}},
        overrides={"vuln": "1.0.0"},
        workspace="packages: [packages/*]\ncatalogs:\n  safe:\n    vuln: 1.0.0\noverrides:\n  vuln: catalog:safe\n",
    )

    planned = plan(files)

    assert only(planned).strategy == "override-edit"
    assert edits(planned) == {("pnpm-workspace.yaml", "catalogs.safe.vuln"): "1.2.0"}
    (edit,) = only(planned).edits
    assert edit.kind == "catalog"
    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}


def test_a_new_entry_stands_beside_one_that_points_to_a_catalog() -> None:
    files = pnpm(
        {"strict": ("^1.0.0", "1.0.0")},
        STRICT,
        overrides={"other": "1.0.0"},
        workspace="packages: [packages/*]\ncatalog:\n  other: 1.0.0\noverrides:\n  other: 'catalog:'\n",
    )

    assert edits(plan(files)) == {("pnpm-workspace.yaml", "overrides.vuln@<1.2.0"): "^1.2.0"}


@pytest.mark.parametrize("key", ["vuln@1.0.0", "vuln@^1.0.0", "vuln"])
def test_pnpm_s_own_patches_hold_a_copy_where_it_is(key: str) -> None:
    files = pnpm(*DIRECT, workspace=f"patchedDependencies:\n  {key}: patches/vuln.patch\n")

    planned = plan(files)

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "patched-dependency")
    assert answer(planned).next_safe_version == "1.2.0"


def test_pnpm_moves_a_copy_that_stands_in_peer_suffixes() -> None:
    files = pnpm(
        {"plugin": ("^1.0.0", "1.0.0(vuln@1.0.0)"), "vuln": ("^1.0.0", "1.0.0")},
        {"plugin@1.0.0(vuln@1.0.0)": {"vuln": "1.0.0"}, "vuln@1.0.0": {}},
        peers={"plugin@1.0.0": {"vuln": "^1.0.0"}},
    )

    planned = plan(files)

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}


def test_pnpm_moves_a_peer_that_would_not_fit_any_more() -> None:
    files = pnpm(
        {"picky": ("^1.0.0", "1.0.0(vuln@1.0.0)"), "vuln": ("^1.0.0", "1.0.0")},
        {"picky@1.0.0(vuln@1.0.0)": {"vuln": "1.0.0"}, "vuln@1.0.0": {}},
        peers={"picky@1.0.0": {"vuln": "1.0.0"}},
    )

    planned = plan(files)

    assert moves(planned) == {
        "picky@1.0.0(vuln@1.0.0)": ("1.0.0", "1.1.0"),
        "vuln@1.0.0": ("1.0.0", "1.2.0"),
    }


def test_a_copy_that_another_one_as_vulnerable_replaces_is_not_fixed() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"engine": "~0.20.0"}, "1.2.0": {"engine": "~0.21.0"}},
        "engine": {"0.20.0": {}, "0.21.0": {}, "0.25.0": {}},
    }
    files = pnpm(
        {"vuln": ("^1.0.0", "1.0.0")},
        {"vuln@1.0.0": {"engine": "0.20.0"}, "engine@0.20.0": {}},
    )
    engine = alert(2, "engine", "< 0.25.0", "0.25.0", manifest="pnpm-lock.yaml")

    planned = plan(files, alert(1, "vuln", "< 1.2.0", "1.2.0", manifest="pnpm-lock.yaml"), engine, packages=packages)

    assert moves(planned) == {
        "vuln@1.0.0": ("1.0.0", "1.2.0"),
        "engine@0.20.0": ("0.20.0", None),
        "engine@0.21.0": (None, "0.21.0"),
    }
    assert only(planned).alerts == (1,)
    assert (answer(planned, 2).outcome, answer(planned, 2).reason) == ("refuse", "major-required")


def test_pnpm_gives_a_new_copy_the_peers_that_are_above_it() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"peer:core": "*"}, "1.2.0": {"peer:core": "*", "helper": "^1.0.0"}},
        "helper": {"1.0.0": {"peer:core": "*"}},
        "core": {"1.0.0": {}, "2.0.0": {}},
    }
    files = pnpm(
        {"core": ("^1.0.0", "1.0.0"), "vuln": ("^1.0.0", "1.0.0(core@1.0.0)")},
        {"vuln@1.0.0(core@1.0.0)": {"core": "1.0.0"}, "core@1.0.0": {}},
        peers={"vuln@1.0.0": {"core": "*"}},
    )

    planned = plan(files, packages=packages)

    assert moves(planned) == {"vuln@1.0.0(core@1.0.0)": ("1.0.0", "1.2.0"), "helper@1.0.0": (None, "1.0.0")}


# Release-age gates.

DATED: Universe = {
    "vuln": {
        "1.0.0": {"!published": "2025-01-01T00:00:00+00:00"},
        "1.2.0": {"!published": "2025-12-31T12:00:00+00:00"},
        "1.2.1": {"!published": "2025-12-31T18:00:00+00:00"},
        "2.0.0": {"!published": "2025-02-01T00:00:00+00:00"},
    }
}
DIRECT: tuple[Mapping[str, tuple[str, str]], Mapping[str, Mapping[str, str]]] = (
    {"vuln": ("^1.0.0", "1.0.0")},
    {"vuln@1.0.0": {}},
)
GATE = "minimumReleaseAge: 1440\n"


def test_a_fix_that_is_too_young_waits_and_says_until_when() -> None:
    planned = plan(pnpm(*DIRECT, workspace=GATE), packages=DATED)

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "cooldown")
    assert "2026-01-01T12:00:00+00:00" in answer(planned).detail
    assert answer(planned).next_safe_version == "1.2.0"


def test_the_gate_opens_with_time() -> None:
    planned = plan(pnpm(*DIRECT, workspace=GATE), packages=DATED, now=datetime(2026, 1, 1, 13, tzinfo=UTC))

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}


def test_an_older_safe_version_is_preferred_to_waiting() -> None:
    packages: Universe = {"vuln": {**DATED["vuln"], "1.3.0": {"!published": "2025-06-01T00:00:00+00:00"}}}

    planned = plan(pnpm(*DIRECT, workspace=GATE), packages=packages)

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.3.0")}


@pytest.mark.parametrize("pattern", ["vuln", "vu*", "vuln@1.2.0", "vuln@1.1.9 || 1.2.0"])
def test_what_a_gate_excludes_is_not_held_back(pattern: str) -> None:
    workspace = f"{GATE}minimumReleaseAgeExclude:\n  - '{pattern}'\n"

    planned = plan(pnpm(*DIRECT, workspace=workspace), packages=DATED)

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}


def test_a_young_fix_can_be_let_in_by_its_exact_version() -> None:
    planned = plan(pnpm(*DIRECT, workspace=GATE), packages=DATED, policy=replace(ALL, young_fixes="exclude"))

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}
    assert edits(planned) == {("pnpm-workspace.yaml", "minimumReleaseAgeExclude"): "vuln@1.2.0"}
    (edit,) = only(planned).edits
    assert (edit.kind, edit.from_text) == ("gate-exclusion", None)


def test_the_caller_s_own_cooldown_counts_as_well() -> None:
    planned = plan(pnpm(*DIRECT), packages=DATED, policy=replace(ALL, cooldown_days=2))

    assert answer(planned).reason == "cooldown"


def test_a_release_without_a_date_is_taken_and_flagged() -> None:
    planned = plan(pnpm(*DIRECT, workspace=GATE))

    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}
    assert only(planned).warnings == ("age-unknown: vuln 1.2.0",)


def test_a_gate_holds_for_what_moves_along_too() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"dep": "^1.0.0"}, "1.2.0": {"dep": "^1.1.0"}},
        "dep": {"1.0.0": {}, "1.1.0": {"!published": "2025-12-31T23:00:00+00:00"}},
    }
    files = pnpm({"vuln": ("^1.0.0", "1.0.0")}, {"vuln@1.0.0": {"dep": "1.0.0"}, "dep@1.0.0": {}}, workspace=GATE)

    planned = plan(files, packages=packages)

    assert answer(planned).reason == "cooldown"


# yarn 1.


def yarn(
    dependencies: Mapping[str, str], blocks: Mapping[str, tuple[str, Mapping[str, str]]], **fields: Any
) -> dict[str, bytes]:
    """A project with a lock of yarn 1: header → (version, what it needs)."""
    lines = ["# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.", "# yarn lockfile v1", "", ""]
    for header, (version, needs) in blocks.items():
        name = header.split("@")[0].strip('"')
        lines += [f"{header}:", f'  version "{version}"']
        lines += [f'  resolved "https://yarn.registry.example/{name}/-/{name}-{version}.tgz#0123"']
        if needs:
            lines += ["  dependencies:", *(f'    {asked} "{text}"' for asked, text in needs.items())]
        lines += [""]
    return {"package.json": manifest(dependencies=dict(dependencies), **fields), "yarn.lock": "\n".join(lines).encode()}


def test_yarn_moves_all_descriptors_of_an_entry_with_the_pin() -> None:
    files = yarn(
        {"vuln": "1.0.0", "loose": "^1.0.0"},
        {"loose@^1.0.0": ("1.0.0", {"vuln": "^1.0.0"}), "vuln@1.0.0, vuln@^1.0.0": ("1.0.0", {})},
    )

    planned = plan(files, lock="yarn.lock")

    assert only(planned).strategy == "manifest-bump"
    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}
    assert edits(planned) == {("package.json", "dependencies.vuln"): "1.2.0"}


def test_yarn_forces_by_parent() -> None:
    files = yarn({"strict": "^1.0.0"}, {"strict@^1.0.0": ("1.0.0", {"vuln": "~1.0.0"}), "vuln@~1.0.0": ("1.0.0", {})})

    planned = plan(files, lock="yarn.lock")

    assert edits(planned) == {("package.json", "resolutions.strict/vuln"): "^1.2.0"}
    assert moves(planned) == {"vuln@~1.0.0": ("1.0.0", "1.2.0")}


def test_a_resolution_of_yarn_1_that_would_reach_another_line_is_a_conflict() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}},
        "parent": {"1.0.0": {"vuln": "~1.0.0"}, "2.0.0": {"vuln": "~2.0.0"}},
        "other": {"1.0.0": {"parent": "^2.0.0"}},
    }
    files = yarn(
        {"parent": "^1.0.0", "other": "1.0.0"},
        {
            "other@1.0.0": ("1.0.0", {"parent": "^2.0.0"}),
            "parent@^1.0.0": ("1.0.0", {"vuln": "~1.0.0"}),
            "parent@^2.0.0": ("2.0.0", {"vuln": "~2.0.0"}),
            "vuln@~1.0.0": ("1.0.0", {}),
            "vuln@~2.0.0": ("2.0.0", {}),
        },
    )
    across = alert(1, "vuln", "< 2.0.0", "2.0.0", manifest="yarn.lock")

    planned, majors = plan(files, packages=packages, lock="yarn.lock"), plan(files, across, packages=packages)

    assert (answer(planned).reason, answer(planned).blocked_by) == ("constraint-conflict", "parent 1.0.0 asks `~1.0.0`")
    assert answer(majors).reason == "major-required"


def test_yarn_changes_a_resolution_that_forces_the_bad_version() -> None:
    files = yarn(
        {"loose": "^1.0.0"},
        {"loose@^1.0.0": ("1.0.0", {"vuln": "^1.0.0"}), "vuln@1.0.0, vuln@^1.0.0": ("1.0.0", {})},
        resolutions={"vuln": "1.0.0"},
    )

    planned = plan(files, lock="yarn.lock")

    assert only(planned).strategy == "override-edit"
    assert edits(planned) == {("package.json", "resolutions.vuln"): "1.2.0"}
    assert moves(planned) == {"vuln@1.0.0": ("1.0.0", "1.2.0")}


def test_yarn_splits_an_entry_whose_descriptors_cannot_share_a_safe_version() -> None:
    packages: Universe = {
        "vuln": {"1.0.5": {}, "1.0.9": {}, "1.2.0": {}},
        "low": {"1.0.0": {"vuln": "~1.0.5"}},
        "gap": {"1.0.0": {"vuln": "1.0.5 || ^1.2.0"}},
    }
    files = yarn(
        {"low": "1.0.0", "gap": "1.0.0"},
        {
            "gap@1.0.0": ("1.0.0", {"vuln": "1.0.5 || ^1.2.0"}),
            "low@1.0.0": ("1.0.0", {"vuln": "~1.0.5"}),
            '"vuln@1.0.5 || ^1.2.0", vuln@~1.0.5': ("1.0.5", {}),
        },
    )

    planned = plan(
        files, alert(1, "vuln", "< 1.0.9", "1.0.9", manifest="yarn.lock"), packages=packages, lock="yarn.lock"
    )

    assert answer(planned).outcome == "fix"
    assert sorted(to for _, to in moves(planned).values() if to) == ["1.0.9", "1.2.0"]


# yarn since 2.


def berry(
    dependencies: Mapping[str, str], entries: Mapping[str, tuple[str, Mapping[str, str]]], **fields: Any
) -> dict[str, bytes]:
    """A project with a lock of yarn 4: key → (version, what it needs)."""
    lines = ["# yarn", "", "__metadata:", "  version: 8", "  cacheKey: 10c0", ""]
    root = {"app@workspace:.": ("0.0.0-use.local", dependencies)}
    for key, (version, needs) in {**root, **entries}.items():
        name = key[0] + key[1:].partition("@")[0]
        reference = "workspace:." if "workspace" in key else f"npm:{version}"
        lines += [f'"{key}":', f"  version: {version}", f'  resolution: "{name}@{reference}"']
        if needs:
            lines += ["  dependencies:", *(f'    "{asked}": "npm:{text}"' for asked, text in needs.items())]
        lines += ["  languageName: node", "  linkType: hard", ""]
    return {
        "package.json": manifest(dependencies=dict(dependencies), packageManager="yarn@4.18.1", **fields),
        "yarn.lock": "\n".join(lines).encode(),
    }


def test_yarn_4_forces_by_descriptor_and_always_needs_the_tool() -> None:
    files = berry(
        {"strict": "^1.0.0"},
        {"strict@npm:^1.0.0": ("1.0.0", {"vuln": "~1.0.0"}), "vuln@npm:~1.0.0": ("1.0.0", {})},
    )

    planned = plan(files, lock="yarn.lock")

    assert edits(planned) == {("package.json", "resolutions.vuln@npm:~1.0.0"): "npm:^1.2.0"}
    assert moves(planned) == {"vuln@npm:~1.0.0": ("1.0.0", "1.2.0")}
    assert only(planned).needs_tool


PATCHED = """
"vuln@patch:vuln@npm%3A1.0.0#./.yarn/patches/vuln.patch":
  version: 1.0.0
  resolution: "vuln@patch:vuln@npm%3A1.0.0#./.yarn/patches/vuln.patch::version=1.0.0&hash=abcdef"
  languageName: node
  linkType: hard
"""


@pytest.mark.parametrize("vulnerable", ["< 1.2.0", "< 2.0.0"])
@pytest.mark.parametrize("selector", ["vuln", "vuln@npm:^1.0.0"])
def test_a_copy_below_a_patch_of_yarn_4_is_refused_with_the_patched_one(selector: str, vulnerable: str) -> None:
    files = berry(
        {"loose": "^1.0.0"},
        {"loose@npm:^1.0.0": ("1.0.0", {"vuln": "^1.0.0"}), "vuln@npm:1.0.0": ("1.0.0", {})},
        resolutions={selector: "patch:vuln@npm%3A1.0.0#./.yarn/patches/vuln.patch"},
    )
    files["yarn.lock"] += PATCHED.encode()

    planned = plan(files, alert(1, "vuln", vulnerable, vulnerable[2:], manifest="yarn.lock"), lock="yarn.lock")

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "patched-dependency")
    assert [one.version for one in answer(planned).instances] == ["1.0.0", "1.0.0"]
    assert planned.remediations == ()


@pytest.mark.parametrize(
    ("approved", "is_open"),
    [
        ("vuln", True),
        ("vu*", True),
        ("{other,vuln}", True),
        ("vuln@^1.1.0", True),
        ("vuln@1.2.0", True),
        ("vu*@^1.0.0", True),
        ("vuln@^2.0.0", False),
        ("vuln@latest", False),
        ("@acme/*", False),
        ("{vuln", False),
    ],
)
def test_what_yarn_4_is_told_to_approve_is_not_held_back(approved: str, is_open: bool) -> None:
    files = berry({"vuln": "^1.0.0"}, {"vuln@npm:^1.0.0": ("1.0.0", {})})
    files[".yarnrc.yml"] = f'npmMinimalAgeGate: 1d\nnpmPreapprovedPackages:\n  - "{approved}"\n'.encode()

    planned = plan(files, packages=DATED, lock="yarn.lock")

    assert (answer(planned).outcome, answer(planned).reason) == (("fix", None) if is_open else ("refuse", "cooldown"))


@pytest.mark.parametrize(("own", "general", "is_open"), [("0", "1d", True), ("1d", "0", False)])
def test_a_scope_of_yarn_4_can_have_a_gate_of_its_own(own: str, general: str, is_open: bool) -> None:
    name = "@acme/vuln"
    files = berry({name: "^1.0.0"}, {f"{name}@npm:^1.0.0": ("1.0.0", {})})
    files[".yarnrc.yml"] = f"npmMinimalAgeGate: {general}\nnpmScopes:\n  acme:\n    npmMinimalAgeGate: {own}\n".encode()

    planned = plan(
        files,
        alert(1, name, "< 1.2.0", "1.2.0", manifest="yarn.lock"),
        packages={name: DATED["vuln"]},
        lock="yarn.lock",
    )

    assert (answer(planned).outcome, answer(planned).reason) == (("fix", None) if is_open else ("refuse", "cooldown"))


# bun.


def bun(dependencies: Mapping[str, str], packages: Mapping[str, tuple[str, Mapping[str, str]]]) -> dict[str, bytes]:
    """A project with a text lock of bun: place → (name@version, what it needs)."""
    lock = {
        "lockfileVersion": 1,
        "workspaces": {"": {"name": "app", "dependencies": dict(dependencies)}},
        "packages": {
            place: [resolution, "", {"dependencies": dict(needs)} if needs else {}, "sha512-x"]
            for place, (resolution, needs) in packages.items()
        },
    }
    return {"package.json": manifest(dependencies=dict(dependencies)), "bun.lock": json.dumps(lock, indent=2).encode()}


def test_bun_places_are_moved() -> None:
    files = bun(
        {"loose": "^1.0.0", "modern": "1.0.0"},
        {
            "loose": ("loose@1.0.0", {"vuln": "^1.0.0"}),
            "modern": ("modern@1.0.0", {"vuln": "^2.0.0"}),
            "vuln": ("vuln@2.0.0", {}),
            "loose/vuln": ("vuln@1.0.0", {}),
        },
    )

    planned = plan(files, lock="bun.lock")

    assert moves(planned) == {"loose/vuln": ("1.0.0", "1.2.0")}
    assert not only(planned).needs_tool


def test_a_binary_lock_is_refused() -> None:
    planned = plan({"package.json": manifest(dependencies={"vuln": "^1.0.0"}), "bun.lockb": b"\0"}, lock="bun.lockb")

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "unsupported-lock-format")
