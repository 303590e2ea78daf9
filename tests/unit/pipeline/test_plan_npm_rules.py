"""What is legal in a JavaScript lock, one rule at a time, on invented packages."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import AlertOutcome, Plan, Remediation
from dependfix_core.model.policy import ScanPolicy
from fakes.planning import ALL, plan_files
from fakes.universe import alert, npm_project, registry

Universe = Mapping[str, Mapping[str, Mapping[str, Any]]]
VULN = alert(1, "vuln", "< 1.2.0", "1.2.0")


def plan(
    packages: Universe,
    manifest: Mapping[str, Any],
    tree: Mapping[str, str],
    *alerts: Alert,
    policy: ScanPolicy = ALL,
    extra: Mapping[str, bytes] | None = None,
    **lock: Any,
) -> Plan:
    files = {**npm_project(packages, manifest, tree, **lock), **(extra or {})}
    return plan_files(files, alerts or (VULN,), registry(packages), policy)


def answer(planned: Plan, number: int = 1) -> AlertOutcome:
    (found,) = (one for one in planned.outcomes if one.alert == number)
    return found


def only(planned: Plan) -> Remediation:
    (found,) = planned.remediations
    return found


def moves(planned: Plan) -> dict[str, tuple[str | None, str | None]]:
    return {
        move.where.replace("node_modules/", ""): (move.from_version, move.to_version)
        for one in planned.remediations
        for move in one.moves
    }


def edits(planned: Plan) -> dict[str, str]:
    return {edit.at: edit.to_text for one in planned.remediations for edit in one.edits}


PLAIN: Universe = {"vuln": {"1.0.0": {}, "1.2.0": {}, "1.3.0": {}, "2.0.0": {}}}


def test_a_direct_copy_moves_inside_its_range_and_the_manifest_stays() -> None:
    planned = plan(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}
    assert only(planned).strategy == "lock-in-range"
    assert edits(planned) == {}
    assert not only(planned).needs_tool


@pytest.mark.parametrize(
    ("declared", "raised"),
    [("1.0.0", "1.2.0"), ("~1.0.0", "~1.2.0"), (">=1.0.0 <1.1.0", None), ("1.0.x", None)],
)
def test_a_declaration_that_excludes_the_target_is_raised_in_its_own_style(declared: str, raised: str | None) -> None:
    planned = plan(PLAIN, {"dependencies": {"vuln": declared}}, {"vuln": "1.0.0"})

    assert only(planned).strategy == "manifest-bump"
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}
    if raised is not None:
        assert edits(planned) == {"dependencies.vuln": raised}


def test_another_line_needs_permission_and_is_named() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "2.0.0": {}}}
    one = alert(1, "vuln", "< 2.0.0", "2.0.0")

    refused = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"}, one)
    allowed = plan(
        packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"}, one, policy=replace(ALL, allow_major=True)
    )

    assert (answer(refused).outcome, answer(refused).reason) == ("refuse", "major-required")
    assert answer(refused).next_safe_version == "2.0.0"
    assert answer(refused).blocked_by == "package.json dependencies.vuln asks `^1.0.0`"
    assert edits(allowed) == {"dependencies.vuln": "^2.0.0"}
    assert only(allowed).is_major


def test_another_line_that_everybody_admits_is_taken_and_flagged() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "2.0.0": {}}}

    planned = plan(
        packages, {"dependencies": {"vuln": ">=1.0.0"}}, {"vuln": "1.0.0"}, alert(1, "vuln", "< 2.0.0", "2.0.0")
    )

    assert only(planned).strategy == "lock-in-range"
    assert only(planned).is_major
    assert any(text.startswith("cross-line-in-range") for text in only(planned).warnings)


def test_every_copy_goes_to_its_own_line() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}, "2.1.0": {}, "3.0.0": {}},
        "a": {"1.0.0": {"vuln": "^1.0.0"}},
        "b": {"1.0.0": {"vuln": "^2.0.0"}},
    }
    one = alert(1, "vuln", ">= 1.0.0, < 1.2.0", "1.2.0", others=[(">= 2.0.0, < 2.1.0", "2.1.0")])
    two = alert(2, "vuln", ">= 2.0.0, < 2.1.0", "2.1.0", others=[(">= 1.0.0, < 1.2.0", "1.2.0")])

    planned = plan(
        packages,
        {"dependencies": {"a": "1.0.0", "b": "1.0.0"}},
        {"a": "1.0.0", "b": "1.0.0", "vuln": "1.0.0", "b/vuln": "2.0.0"},
        one,
        two,
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "b/vuln": ("2.0.0", "2.1.0")}
    assert len(planned.remediations) == 2


def test_one_alert_with_several_copies_is_partial_when_one_cannot_move() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "old": {"1.0.0": {"vuln": "1.0.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"old": "1.0.0", "vuln": "^1.0.0"}},
        {"old": "1.0.0", "vuln": "1.0.0", "old/vuln": "1.0.0"},
        policy=replace(ALL, allow_override=False),
    )

    assert answer(planned).outcome == "partial"
    assert answer(planned).reason == "override-unsupported"
    assert {v.where: (v.to_version, v.reason) for v in answer(planned).instances} == {
        "node_modules/vuln": ("1.2.0", None),
        "node_modules/old/node_modules/vuln": (None, "override-unsupported"),
    }
    assert answer(planned).blocked_by == "old 1.0.0 asks `1.0.0`"


# What a new version needs.


def test_a_sibling_that_is_too_old_moves_along() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"dep": "^1.0.0"}, "1.2.0": {"dep": "^1.4.0"}},
        "dep": {"1.0.0": {}, "1.4.0": {}, "1.5.0": {}},
    }

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0", "dep": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "dep": ("1.0.0", "1.4.0")}


def test_a_sibling_that_others_hold_gets_a_copy_below_the_one_that_needs_it() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"dep": "^1.0.0"}, "1.2.0": {"dep": "^2.0.0"}},
        "dep": {"1.0.0": {}, "2.0.0": {}, "2.1.0": {}},
    }

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0", "dep": "^1.0.0"}}, {"vuln": "1.0.0", "dep": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "vuln/dep": (None, "2.1.0")}


def test_new_packages_come_in_with_theirs_and_orphans_go() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"gone": "^1.0.0"}, "1.2.0": {"fresh": "^1.0.0"}},
        "gone": {"1.0.0": {"alsogone": "^1.0.0"}},
        "alsogone": {"1.0.0": {}},
        "fresh": {"1.0.0": {"leaf": "^1.0.0"}, "1.1.0": {"leaf": "^1.0.0"}, "2.0.0": {}},
        "leaf": {"1.0.0": {}, "1.0.1-rc.1": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.0.0", "gone": "1.0.0", "alsogone": "1.0.0"},
    )

    assert moves(planned) == {
        "vuln": ("1.0.0", "1.2.0"),
        "gone": ("1.0.0", None),
        "alsogone": ("1.0.0", None),
        "fresh": (None, "1.1.0"),
        "leaf": (None, "1.0.0"),
    }
    assert {move.where: (move.added, move.removed) for move in only(planned).moves}["node_modules/fresh"] == (
        True,
        False,
    )


def test_two_packages_that_only_hold_each_other_are_orphans() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"ring": "^1.0.0"}, "1.2.0": {}},
        "ring": {"1.0.0": {"back": "^1.0.0"}},
        "back": {"1.0.0": {"ring": "^1.0.0"}},
    }

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0", "ring": "1.0.0", "back": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "ring": ("1.0.0", None), "back": ("1.0.0", None)}


def test_more_new_packages_than_allowed_are_the_tool_s_business() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {f"n{i}": "^1.0.0" for i in range(4)}},
        **{f"n{i}": {"1.0.0": {}} for i in range(4)},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.0.0"},
        policy=replace(ALL, max_new_nodes=2),
    )

    assert answer(planned).outcome == "fix"
    assert only(planned).needs_tool


def test_a_new_package_is_never_a_vulnerable_one() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {"bad": "1.0.0"}, "1.3.0": {"bad": "^1.0.0"}},
        "bad": {"1.0.0": {}, "1.0.1": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.0.0"},
        VULN,
        alert(2, "bad", "< 1.0.1", "1.0.1"),
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.3.0"), "bad": (None, "1.0.1")}
    assert answer(planned, 2).outcome == "not-present"


def test_what_moves_along_may_stay_as_vulnerable_as_it_was_but_no_more() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"dep": "^1.0.0"}, "1.2.0": {"dep": "^1.1.0"}},
        "dep": {"1.0.0": {}, "1.1.0": {}, "1.2.0": {}, "2.0.0": {}},
    }
    stays = alert(2, "dep", "< 2.0.0", "2.0.0")
    worse = alert(3, "dep", ">= 1.1.0, < 1.2.0", "1.2.0")
    manifest, tree = {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0", "dep": "1.0.0"}

    planned = plan(packages, manifest, tree, VULN, stays)
    above = plan(packages, manifest, tree, VULN, stays, worse)

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "dep": ("1.0.0", "1.1.0")}
    assert only(planned).alerts == (1,)
    assert (answer(planned, 2).outcome, answer(planned, 2).reason) == ("refuse", "major-required")
    assert moves(above) == {"vuln": ("1.0.0", "1.2.0"), "dep": ("1.0.0", "1.2.0")}


def test_a_new_copy_does_not_shadow_what_others_found() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {"dep": "^2.0.0"}},
        "holder": {"1.0.0": {"vuln": "^1.0.0", "user": "^1.0.0"}},
        "user": {"1.0.0": {"dep": "^1.0.0"}},
        "dep": {"1.0.0": {}, "2.0.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"holder": "1.0.0", "dep": "^1.0.0"}},
        {"holder": "1.0.0", "dep": "1.0.0", "holder/vuln": "1.0.0", "holder/user": "1.0.0"},
    )

    assert moves(planned)["holder/vuln/dep"] == (None, "2.0.0")


def test_a_new_copy_lies_beside_the_peers_that_fit_it() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {"core": "^8.0.0", "core-plugin": "^1.0.0"}, "1.3.0": {}},
        "core": {"7.0.0": {}, "8.0.0": {}},
        "core-plugin": {"1.0.0": {"peer:core": "^8.0.0"}},
    }

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0", "core": "^7.0.0"}}, {"vuln": "1.0.0", "core": "7.0.0"})

    assert moves(planned) == {
        "vuln": ("1.0.0", "1.2.0"),
        "vuln/core": (None, "8.0.0"),
        "vuln/core-plugin": (None, "1.0.0"),
    }


def test_an_optional_peer_that_nobody_answered_stays_unanswered() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {"debug": "^4.0.0"}},
        "shy": {"1.0.0": {"peer-optional:debug": "*"}},
        "debug": {"4.0.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0", "shy": "1.0.0"}},
        {"vuln": "1.0.0", "shy": "1.0.0"},
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "vuln/debug": (None, "4.0.0")}


def test_an_install_script_that_comes_with_the_fix_is_a_warning() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "1.2.0": {"!script": True}}}

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})

    assert [text.split(":")[0] for text in only(planned).warnings] == ["install-script"]


def test_packages_for_single_platforms_move_together() -> None:
    packages: Universe = {
        "vuln": {
            "1.0.0": {"optional:@vuln/linux": "1.0.0", "optional:@vuln/mac": "1.0.0"},
            "1.2.0": {"optional:@vuln/linux": "1.2.0", "optional:@vuln/mac": "1.2.0"},
        },
        "@vuln/linux": {"1.0.0": {"!os": ["linux"]}, "1.2.0": {"!os": ["linux"]}},
        "@vuln/mac": {"1.0.0": {"!os": ["darwin"]}, "1.2.0": {"!os": ["darwin"]}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.0.0", "@vuln/linux": "1.0.0", "@vuln/mac": "1.0.0"},
        entries={"@vuln/linux": {"optional": True}, "@vuln/mac": {"optional": True}},
    )

    assert moves(planned) == {
        "vuln": ("1.0.0", "1.2.0"),
        "@vuln/linux": ("1.0.0", "1.2.0"),
        "@vuln/mac": ("1.0.0", "1.2.0"),
    }


def test_a_copy_that_would_run_on_fewer_platforms_is_not_taken() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "1.2.0": {"!os": ["linux"]}, "1.3.0": {}}}

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.3.0")}


# Runtime.


def test_a_version_above_the_project_s_node_floor_is_passed_over() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "1.2.0": {"!node": ">=20"}, "1.3.0": {"!node": ">=14"}}}

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}, "engines": {"node": ">=14"}}, {"vuln": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.3.0")}


def test_a_fix_that_needs_a_newer_node_is_refused() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}, "1.2.0": {"!node": ">=20"}}}

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}, "engines": {"node": ">=14"}}, {"vuln": "1.0.0"})

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "runtime-floor")
    assert planned.remediations == ()


def test_without_a_declared_floor_a_stricter_runtime_is_a_warning() -> None:
    packages: Universe = {"vuln": {"1.0.0": {"!node": ">=10"}, "1.2.0": {"!node": ">=20"}}}

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})

    assert [text.split(":")[0] for text in only(planned).warnings] == ["runtime-stricter"]


# Peers.

REACT: Universe = {
    "vuln": {"1.0.0": {}, "1.2.0": {}},
    "plugin": {
        "1.0.0": {"peer:vuln": "1.0.0"},
        "1.1.0": {"peer:vuln": "^1.0.0"},
        "2.0.0": {"peer:vuln": "^1.0.0"},
    },
}


def test_who_peers_on_the_copy_moves_with_it() -> None:
    planned = plan(
        REACT, {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"}
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "plugin": ("1.0.0", "1.1.0")}


def test_a_pinned_peer_is_raised_with_the_copy() -> None:
    planned = plan(REACT, {"dependencies": {"vuln": "^1.0.0", "plugin": "1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "plugin": ("1.0.0", "1.1.0")}
    assert edits(planned) == {"dependencies.plugin": "1.1.0"}


def test_a_peer_that_would_have_to_cross_a_line_makes_it_a_major_one() -> None:
    packages = {**REACT, "plugin": {version: REACT["plugin"][version] for version in ("1.0.0", "2.0.0")}}

    planned = plan(
        packages, {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"}
    )

    assert answer(planned).reason == "major-required"
    assert answer(planned).blocked_by == "plugin 1.0.0 asks `1.0.0`"
    assert "plugin 2.0.0" in answer(planned).detail


def test_a_peer_that_no_release_lets_go_is_a_conflict() -> None:
    packages = {**REACT, "plugin": {"1.0.0": REACT["plugin"]["1.0.0"]}}

    planned = plan(
        packages, {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"}
    )

    assert answer(planned).reason == "peer-conflict"


def test_a_peer_behind_many_releases_is_found_as_well() -> None:
    plugin = {f"1.{minor}.0": {"peer:vuln": "1.0.0"} for minor in range(100)}
    packages: Universe = {"vuln": REACT["vuln"], "plugin": {**plugin, "2.0.0": {"peer:vuln": "^1.0.0"}}}

    planned = plan(
        packages, {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"}
    )

    assert answer(planned).reason == "major-required"


def test_one_peer_that_nothing_satisfies_is_a_conflict_whatever_the_others_need() -> None:
    packages: Universe = {
        "vuln": REACT["vuln"],
        "plugin": {"1.0.0": {"peer:vuln": "1.0.0"}, "2.0.0": {"peer:vuln": "^1.0.0"}},
        "settled": {"1.0.0": {"peer:vuln": "1.0.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0", "settled": "^1.0.0"}},
        {"vuln": "1.0.0", "plugin": "1.0.0", "settled": "1.0.0"},
    )

    assert answer(planned).reason == "peer-conflict"
    assert answer(planned).blocked_by == "settled 1.0.0 asks `1.0.0`"


def test_a_peer_in_the_way_of_a_forced_version_is_named_by_what_it_needs() -> None:
    packages: Universe = {
        "vuln": REACT["vuln"],
        "parent": {"1.0.0": {"vuln": "~1.0.0"}},
        "plugin": {"1.0.0": {"peer:vuln": "~1.0.0"}, "2.0.0": {"peer:vuln": "^1.2.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"parent": "1.0.0", "plugin": "^1.0.0"}},
        {"parent": "1.0.0", "plugin": "1.0.0", "vuln": "1.0.0"},
    )

    assert answer(planned).reason == "major-required"
    assert "plugin 2.0.0" in answer(planned).detail


NEXT_CORE: Universe = {
    "vuln": {"1.0.0": {"peer:core": "^1.0.0"}, "1.2.0": {"peer:core": "^2.0.0"}},
    "core": {"1.0.0": {}, "2.0.0": {}},
}
BESIDE = {"dependencies": {"vuln": "^1.0.0", "core": "^1.0.0"}}


def test_a_safe_version_that_needs_its_peer_s_next_line_is_a_major_one() -> None:
    planned = plan(NEXT_CORE, BESIDE, {"vuln": "1.0.0", "core": "1.0.0"})

    assert answer(planned).reason == "major-required"
    assert answer(planned).detail == "vuln 1.2.0 would need core 2.0.0"


def test_a_safe_version_that_needs_a_peer_which_nobody_published_is_a_conflict() -> None:
    packages = {**NEXT_CORE, "core": {"1.0.0": {}}}

    planned = plan(packages, BESIDE, {"vuln": "1.0.0", "core": "1.0.0"})

    assert answer(planned).reason == "peer-conflict"


def test_the_peer_that_the_moved_peer_needs_is_the_one_named() -> None:
    packages: Universe = {
        "vuln": REACT["vuln"],
        "core": NEXT_CORE["core"],
        "plugin": {
            "1.0.0": {"peer:vuln": "1.0.0", "peer:core": "^1.0.0"},
            "1.1.0": {"peer:vuln": "^1.0.0", "peer:core": "^2.0.0"},
        },
    }

    planned = plan(
        packages,
        {"dependencies": {**BESIDE["dependencies"], "plugin": "^1.0.0"}},
        {"vuln": "1.0.0", "core": "1.0.0", "plugin": "1.0.0"},
    )

    assert answer(planned).reason == "major-required"
    assert answer(planned).detail == "plugin 1.1.0 would need core 2.0.0"


@pytest.mark.parametrize("strict", [True, False])
def test_peers_that_are_pinned_to_each_other_are_raised_together(strict: bool) -> None:
    packages: Universe = {
        "vuln": {"16.0.0": {"peer:core": "16.0.0"}, "16.4.2": {"peer:core": "16.4.2" if strict else "^16.4.0"}},
        "core": {"16.0.0": {}, "16.4.2": {}, "16.5.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"vuln": "16.0.0", "core": "16.0.0"}},
        {"vuln": "16.0.0", "core": "16.0.0"},
        alert(1, "vuln", "< 16.4.2", "16.4.2"),
    )

    assert only(planned).strategy == "manifest-bump"
    assert moves(planned) == {"vuln": ("16.0.0", "16.4.2"), "core": ("16.0.0", "16.4.2")}
    assert edits(planned) == {"dependencies.vuln": "16.4.2", "dependencies.core": "16.4.2"}


def test_packages_that_peer_on_each_other_exactly_move_in_step_within_what_is_declared() -> None:
    def release(version: str) -> dict[str, dict[str, str]]:
        return {
            "vuln": {"peer:common": version, "peer:core": version},
            "common": {"peer:core": version},
            "core": {},
            "extra": {"peer:core": version, "peer-optional:common": version},
        }

    packages: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in release("")}
    for version in ("18.0.0", "18.1.0", "18.2.0", "19.0.0"):
        for name, needs in release(version).items():
            packages[name][version] = needs
    stays = alert(2, "common", "< 19.0.0", "19.0.0")

    planned = plan(
        packages,
        {"dependencies": dict.fromkeys(packages, "^18.0.0")},
        dict.fromkeys(packages, "18.0.0"),
        alert(1, "vuln", "< 18.1.0", "18.1.0"),
        stays,
    )

    assert only(planned).strategy == "lock-in-range"
    assert only(planned).alerts == (1,)
    assert moves(planned) == dict.fromkeys(packages, ("18.0.0", "18.1.0"))
    assert edits(planned) == {}
    assert answer(planned, 2).reason == "major-required"


def test_with_majors_allowed_peers_cross_their_lines_together() -> None:
    packages = {**REACT, "plugin": {version: REACT["plugin"][version] for version in ("1.0.0", "2.0.0")}}
    allowed = replace(ALL, allow_major=True)

    outwards = plan(
        packages,
        {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}},
        {"vuln": "1.0.0", "plugin": "1.0.0"},
        policy=allowed,
    )
    inwards = plan(NEXT_CORE, BESIDE, {"vuln": "1.0.0", "core": "1.0.0"}, policy=allowed)

    assert moves(outwards) == {"vuln": ("1.0.0", "1.2.0"), "plugin": ("1.0.0", "2.0.0")}
    assert edits(outwards) == {"dependencies.plugin": "^2.0.0"}
    assert moves(inwards) == {"vuln": ("1.0.0", "1.2.0"), "core": ("1.0.0", "2.0.0")}
    assert edits(inwards) == {"dependencies.core": "^2.0.0"}
    assert only(outwards).is_major
    assert only(inwards).is_major


def test_a_peer_of_the_new_version_moves_along() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {"peer:core": "^1.0.0"}, "1.2.0": {"peer:core": "^1.5.0"}},
        "core": {"1.0.0": {}, "1.5.0": {}},
    }

    planned = plan(packages, {"dependencies": {"vuln": "^1.0.0", "core": "^1.0.0"}}, {"vuln": "1.0.0", "core": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0"), "core": ("1.0.0", "1.5.0")}


# Where a copy comes from.


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"inBundle": True}, "bundled"),
        (
            {"resolved": "git+ssh://git@git.example/acme/vuln.git#0123456789012345678901234567890123456789"},
            "non-registry-source",
        ),
        ({"resolved": "file:vendor/vuln.tgz"}, "non-registry-source"),
    ],
)
def test_a_copy_that_is_fixed_where_it_is_is_refused(entry: Mapping[str, Any], reason: str) -> None:
    packages: Universe = {**PLAIN, "holder": {"1.0.0": {"vuln": "^1.0.0", "!bundleDependencies": ["vuln"]}}}

    planned = plan(
        packages,
        {"dependencies": {"holder": "^1.0.0"}},
        {"holder": "1.0.0", "holder/vuln": "1.0.0"},
        entries={"holder/vuln": entry},
    )

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", reason)


def test_a_copy_that_the_project_patches_is_refused() -> None:
    planned = plan(
        PLAIN,
        {"dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.0.0"},
        extra={"patches/vuln+1.0.0.patch": b"--- a\n"},
    )

    assert answer(planned).reason == "patched-dependency"


def test_an_alias_is_found_by_its_real_name_and_keeps_its_own() -> None:
    planned = plan(PLAIN, {"dependencies": {"nick": "npm:vuln@1.0.0"}}, {"nick": "vuln@1.0.0"})

    assert moves(planned) == {"nick": ("1.0.0", "1.2.0")}
    assert edits(planned) == {"dependencies.nick": "1.2.0"}


def test_a_name_that_only_differs_in_case_is_the_same_package() -> None:
    planned = plan(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"}, replace(VULN, package_name="Vuln"))

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


# Parents.


def test_a_parent_inside_what_is_asked_of_it_lets_go_of_the_copy() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "parent": {"1.0.0": {"vuln": "1.0.0"}, "1.0.1": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "^1.2.0"}},
    }

    planned = plan(packages, {"dependencies": {"parent": "^1.0.0"}}, {"parent": "1.0.0", "vuln": "1.0.0"})

    assert only(planned).strategy == "parent-refresh"
    assert moves(planned) == {"parent": ("1.0.0", "1.1.0"), "vuln": ("1.0.0", "1.2.0")}


def test_a_parent_that_drops_the_package_answers_even_where_nothing_is_patched() -> None:
    packages: Universe = {"vuln": {"1.0.0": {}}, "parent": {"1.0.0": {"vuln": "^1.0.0"}, "1.1.0": {}}}

    planned = plan(
        packages,
        {"dependencies": {"parent": "^1.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0"},
        alert(1, "vuln", ">= 0", None),
    )

    assert answer(planned).outcome == "fix"
    assert moves(planned) == {"parent": ("1.0.0", "1.1.0"), "vuln": ("1.0.0", None)}


def test_several_levels_are_climbed() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "c": {"1.0.0": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "1.2.0"}},
        "b": {"1.0.0": {"c": "1.0.0"}, "1.1.0": {"c": "1.1.0"}},
        "a": {"1.0.0": {"b": "1.0.0"}, "1.1.0": {"b": "1.1.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"a": "^1.0.0"}},
        {"a": "1.0.0", "b": "1.0.0", "c": "1.0.0", "vuln": "1.0.0"},
    )

    assert only(planned).strategy == "parent-refresh"
    assert moves(planned) == {
        "a": ("1.0.0", "1.1.0"),
        "b": ("1.0.0", "1.1.0"),
        "c": ("1.0.0", "1.1.0"),
        "vuln": ("1.0.0", "1.2.0"),
    }


def test_one_raised_ancestor_answers_several_alerts() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "other": {"1.0.0": {}, "1.1.0": {}},
        "parent": {
            "1.0.0": {"vuln": "1.0.0", "other": "1.0.0"},
            "1.0.1": {"vuln": "1.2.0", "other": "1.0.0"},
            "1.1.0": {"vuln": "1.2.0", "other": "1.1.0"},
        },
    }

    planned = plan(
        packages,
        {"dependencies": {"parent": "~1.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0", "other": "1.0.0"},
        VULN,
        alert(2, "other", "< 1.1.0", "1.1.0"),
    )

    assert only(planned).strategy == "parent-bump"
    assert only(planned).alerts == (1, 2)
    assert edits(planned) == {"dependencies.parent": "~1.1.0"}


def test_a_parent_is_not_moved_into_a_vulnerable_release_of_its_own() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "parent": {"1.0.0": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "1.2.0"}, "1.2.0": {"vuln": "1.2.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"parent": "^1.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0"},
        VULN,
        alert(2, "parent", ">= 1.1.0, < 1.2.0", "1.2.0"),
    )

    assert moves(planned)["parent"] == ("1.0.0", "1.2.0")
    assert answer(planned, 2).outcome == "converged"


def test_a_loose_parent_that_shares_the_copy_moves_with_the_strict_one() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "strict": {"1.0.0": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "^1.2.0"}},
        "loose": {"1.0.0": {"vuln": "^1.0.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"strict": "^1.0.0", "loose": "1.0.0"}},
        {"strict": "1.0.0", "loose": "1.0.0", "vuln": "1.0.0"},
    )

    assert moves(planned) == {"strict": ("1.0.0", "1.1.0"), "vuln": ("1.0.0", "1.2.0")}


# Overrides.

STUCK: Universe = {
    "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}},
    "parent": {"1.0.0": {"vuln": "~1.0.0"}},
    "modern": {"1.0.0": {"vuln": "^2.0.0"}},
}


def test_a_parent_that_never_lets_go_is_overridden_as_narrowly_as_possible() -> None:
    planned = plan(STUCK, {"dependencies": {"parent": "^1.0.0"}}, {"parent": "1.0.0", "vuln": "1.0.0"})

    assert only(planned).strategy == "override"
    assert edits(planned) == {"overrides.parent>vuln": "^1.2.0"}
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


@pytest.mark.parametrize(
    "manifest", [{"engines": {"npm": "<8"}}, {"packageManager": "npm@7.24.2"}, {"engines": {"npm": "^6.0.0 || ^7.0.0"}}]
)
def test_an_npm_that_knows_no_overrides_gets_none(manifest: Mapping[str, Any]) -> None:
    planned = plan(STUCK, {"dependencies": {"parent": "^1.0.0"}, **manifest}, {"parent": "1.0.0", "vuln": "1.0.0"})

    assert answer(planned).reason == "override-unsupported"
    assert answer(planned).blocked_by == "parent 1.0.0 asks `~1.0.0`"


def test_an_entry_that_forces_the_bad_version_is_changed_first() -> None:
    planned = plan(
        {**STUCK, "parent": {"1.0.0": {"vuln": "^1.0.0"}}},
        {"dependencies": {"parent": "^1.0.0"}, "overrides": {"vuln": "1.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0"},
    )

    assert only(planned).strategy == "override-edit"
    assert edits(planned) == {"overrides.vuln": "1.2.0"}


def test_an_entry_that_admits_the_target_is_left_alone() -> None:
    planned = plan(
        STUCK,
        {"dependencies": {"parent": "^1.0.0"}, "overrides": {"parent": {"vuln": "^1.0.0"}}},
        {"parent": "1.0.0", "vuln": "1.0.0"},
    )

    assert only(planned).strategy == "lock-in-range"
    assert edits(planned) == {}


def test_an_entry_that_points_to_a_declaration_is_answered_by_raising_that() -> None:
    planned = plan(
        STUCK,
        {"dependencies": {"parent": "^1.0.0", "vuln": "1.0.0"}, "overrides": {"vuln": "$vuln"}},
        {"parent": "1.0.0", "vuln": "1.0.0"},
    )

    assert edits(planned) == {"dependencies.vuln": "1.2.0"}
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


def test_a_new_entry_leaves_other_lines_alone() -> None:
    planned = plan(
        STUCK,
        {"dependencies": {"parent": "^1.0.0", "modern": "1.0.0"}},
        {"parent": "1.0.0", "modern": "1.0.0", "vuln": "2.0.0", "parent/vuln": "1.0.0"},
    )

    assert edits(planned) == {"overrides.parent>vuln": "^1.2.0"}
    assert moves(planned) == {"parent/vuln": ("1.0.0", "1.2.0")}


def test_a_release_whose_new_dependency_was_a_mistake_is_not_forced_in() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {"has-typo": "^1.0.0"}, "1.2.1": {"hastypo": "^1.0.0"}},
        "parent": {"1.0.0": {"vuln": "~1.0.0"}},
        "has-typo": {"1.0.0": {}},
        "hastypo": {"1.0.0": {}},
    }

    planned = plan(packages, {"dependencies": {"parent": "^1.0.0"}}, {"parent": "1.0.0", "vuln": "1.0.0"})

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.1"), "hastypo": (None, "1.0.0")}


# What belongs together.


def test_what_only_a_tool_can_finish_keeps_nothing_else_waiting() -> None:
    packages: Universe = {
        "other": {"1.0.0": {}, "1.1.0": {"vuln": "^1.2.0", "unrecorded": "^1.0.0"}},
        "vuln": {"1.0.0": {}, "1.2.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"other": "^1.0.0", "vuln": "^1.0.0"}},
        {"other": "1.0.0", "vuln": "1.0.0"},
        VULN,
        alert(2, "other", "< 1.1.0", "1.1.0"),
    )

    shown = {
        one.alerts: ([(move.package_name, move.to_version) for move in one.moves], one.needs_tool)
        for one in planned.remediations
    }
    assert shown == {
        (1,): ([("vuln", "1.2.0")], False),
        (2,): ([("other", "1.1.0"), ("vuln", "1.2.0")], True),
    }


# Workspaces.


def test_a_member_s_pin_is_raised_where_it_stands() -> None:
    planned = plan(
        PLAIN,
        {"workspaces": ["packages/*"], "dependencies": {"vuln": "^1.0.0"}},
        {"vuln": "1.3.0", "packages/web:vuln": "1.0.0"},
        members={"packages/web": {"name": "web", "version": "1.0.0", "dependencies": {"vuln": "1.0.0"}}},
    )

    assert moves(planned) == {"packages/web/vuln": ("1.0.0", "1.2.0")}
    (edit,) = only(planned).edits
    assert (edit.path, edit.at, edit.from_text, edit.to_text) == (
        "packages/web/package.json",
        "dependencies.vuln",
        "1.0.0",
        "1.2.0",
    )


def test_an_alert_on_a_member_s_manifest_is_planned_in_the_shared_lock() -> None:
    planned = plan(
        PLAIN,
        {"workspaces": ["packages/*"]},
        {"vuln": "1.0.0"},
        replace(VULN, manifest_path="packages/web/package.json"),
        members={"packages/web": {"name": "web", "version": "1.0.0", "dependencies": {"vuln": "^1.0.0"}}},
    )

    assert only(planned).unit == "package-lock.json"
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}
    assert answer(planned).instances[0].via == (("packages/web/package.json", "vuln"),)


# Files.


def test_a_lock_that_does_not_match_its_manifest_is_not_repaired_silently() -> None:
    files = npm_project(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})
    manifest = json.loads(files["package.json"])
    manifest["dependencies"]["forgotten"] = "^1.0.0"
    files["package.json"] = json.dumps(manifest).encode()

    planned = plan_files(files, [VULN], registry(PLAIN))

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "tool-required")
    assert not planned.complete


def test_a_broken_lock_leaves_its_alerts_and_no_others() -> None:
    files = npm_project(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"})
    broken = {f"broken/{path}": content for path, content in files.items()}
    broken["broken/package-lock.json"] = b'{"lockfileVersion": 3,\n "packages": {'

    planned = plan_files(
        {**files, **broken},
        [VULN, replace(VULN, number=2, manifest_path="broken/package-lock.json")],
        registry(PLAIN),
    )

    assert answer(planned).outcome == "fix"
    assert (answer(planned, 2).outcome, answer(planned, 2).reason) == ("skip", "unreadable")
    assert answer(planned, 2).blocked_by is not None
    assert "broken/package-lock.json 2:" in (answer(planned, 2).blocked_by or "")
    assert not planned.complete


@pytest.mark.parametrize(
    "path", ["gone/package-lock.json", "../package-lock.json", "", "C:\\x\\package.json", "Gemfile"]
)
def test_a_manifest_that_is_not_there_is_never_guessed(path: str) -> None:
    planned = plan(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"}, replace(VULN, manifest_path=path))

    assert (answer(planned).outcome, answer(planned).reason) == ("not-present", "manifest-missing")
    assert planned.remediations == ()


@pytest.mark.parametrize("path", ["/package-lock.json", ".\\package-lock.json", "./package.json"])
def test_a_path_that_is_written_oddly_is_found(path: str) -> None:
    planned = plan(PLAIN, {"dependencies": {"vuln": "^1.0.0"}}, {"vuln": "1.0.0"}, replace(VULN, manifest_path=path))

    assert answer(planned).outcome == "fix"


def test_a_manifest_without_a_lock_has_its_floor_raised() -> None:
    files = {"package.json": json.dumps({"name": "lib", "dependencies": {"vuln": "^1.0.0"}}).encode()}

    planned = plan_files(files, [replace(VULN, manifest_path="package.json")], registry(PLAIN))

    assert only(planned).strategy == "manifest-bump"
    assert edits(planned) == {"dependencies.vuln": "^1.2.0"}
    assert [(v.where, v.version, v.to_version) for v in answer(planned).instances] == [
        ("dependencies.vuln", "1.0.0", "1.2.0")
    ]


# What was wrong before.


def test_a_peer_that_did_not_fit_before_is_not_held_against_a_fix() -> None:
    packages: Universe = {**PLAIN, "plugin": {"1.0.0": {"peer:vuln": "^0.9.0"}}}

    planned = plan(
        packages, {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}}, {"vuln": "1.0.0", "plugin": "1.0.0"}
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}
    assert only(planned).warnings == ("unmet before: plugin 1.0.0 asks vuln `^0.9.0`",)


def test_a_project_that_passes_over_peers_is_taken_at_its_word() -> None:
    planned = plan(
        {**REACT, "plugin": {"1.0.0": REACT["plugin"]["1.0.0"]}},
        {"dependencies": {"vuln": "^1.0.0", "plugin": "^1.0.0"}},
        {"vuln": "1.0.0", "plugin": "1.0.0"},
        extra={".npmrc": b"legacy-peer-deps=true\n"},
    )

    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


def test_a_new_entry_that_would_reach_another_line_is_not_written() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}},
        "one": {"1.0.0": {"vuln": "~1.0.0"}},
        "two": {"1.0.0": {"vuln": "~1.0.0"}},
        "wide": {"1.0.0": {"vuln": ">=1.0.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"one": "1.0.0", "two": "1.0.0", "wide": "1.0.0"}},
        {"one": "1.0.0", "two": "1.0.0", "wide": "1.0.0", "vuln": "1.0.0", "wide/vuln": "2.0.0"},
    )

    assert edits(planned) == {"overrides.one>vuln": "^1.2.0", "overrides.two>vuln": "^1.2.0"}
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


@pytest.mark.parametrize("declared", ["*", "latest", "<5"])
def test_a_declaration_without_a_floor_cannot_be_raised(declared: str) -> None:
    files = {"package.json": json.dumps({"name": "lib", "dependencies": {"vuln": declared}}).encode()}

    planned = plan_files(files, [replace(VULN, manifest_path="package.json")], registry(PLAIN))

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", "dynamic-version")


def test_a_pinned_copy_that_a_strict_parent_shares_needs_both_to_move() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "strict": {"1.0.0": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "1.2.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"strict": "^1.0.0", "vuln": "1.0.0"}},
        {"strict": "1.0.0", "vuln": "1.0.0"},
    )

    assert moves(planned) == {"strict": ("1.0.0", "1.1.0"), "vuln": ("1.0.0", "1.2.0")}
    assert edits(planned) == {"dependencies.vuln": "1.2.0"}


def test_a_parent_s_new_release_may_ask_for_an_older_copy_of_its_own() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "parent": {"1.0.0": {"vuln": "1.0.0", "debug": "^4.0.0"}, "1.1.0": {"vuln": "1.2.0", "debug": "~3.1.0"}},
        "debug": {"2.0.0": {}, "3.1.0": {}, "4.0.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"parent": "^1.0.0", "debug": "^2.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0", "debug": "2.0.0", "parent/debug": "4.0.0"},
    )

    assert moves(planned) == {
        "parent": ("1.0.0", "1.1.0"),
        "vuln": ("1.0.0", "1.2.0"),
        "parent/debug": ("4.0.0", "3.1.0"),
    }


def test_parents_that_ask_for_each_other_exactly_move_in_step() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "client": {
            "2.3.0": {"vuln": "1.0.0"},
            "2.4.0": {"vuln": "^1.2.0", "gone": "1.0.0"},
            "2.5.0": {"vuln": "^1.2.0"},
        },
        "server": {"2.3.0": {"client": "2.3.0"}, "2.4.0": {"client": "2.4.0"}, "2.5.0": {"client": "2.5.0"}},
        "gone": {"1.0.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"server": "^2.3.0"}},
        {"server": "2.3.0", "client": "2.3.0", "vuln": "1.0.0"},
        VULN,
        alert(2, "gone", "<= 1.0.0", None),
    )

    assert moves(planned) == {
        "server": ("2.3.0", "2.5.0"),
        "client": ("2.3.0", "2.5.0"),
        "vuln": ("1.0.0", "1.2.0"),
    }


def test_an_entry_by_parent_names_the_release_where_another_one_has_its_own_copy() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}, "2.0.0": {}},
        "parent": {"1.0.0": {"vuln": "~1.0.0"}, "2.0.0": {"vuln": ">=0.5.0"}},
        "other": {"1.0.0": {"parent": "^2.0.0"}},
    }

    planned = plan(
        packages,
        {"dependencies": {"parent": "^1.0.0", "other": "1.0.0"}},
        {"parent": "1.0.0", "vuln": "1.0.0", "other": "1.0.0", "other/parent": "2.0.0", "other/parent/vuln": "2.0.0"},
    )

    assert edits(planned) == {"overrides.parent@1.0.0>vuln": "^1.2.0"}
    assert moves(planned) == {"vuln": ("1.0.0", "1.2.0")}


def test_a_parent_whose_next_line_lets_go_is_not_taken_across_what_is_declared() -> None:
    packages: Universe = {
        "vuln": {"1.0.0": {}, "1.2.0": {}},
        "child": {"1.0.0": {"vuln": "1.0.0"}, "1.1.0": {"vuln": "1.2.0"}, "1.2.0": {"vuln": "1.2.0"}},
        "tool": {"1.0.0": {"child": "1.0.0"}, "1.0.1": {"child": "1.1.0"}, "2.0.0": {}},
    }

    planned = plan(
        packages,
        {"dependencies": {"tool": "^1.0.0"}},
        {"tool": "1.0.0", "child": "1.0.0", "vuln": "1.0.0"},
    )

    assert only(planned).strategy == "parent-refresh"
    assert not only(planned).is_major
    assert moves(planned) == {
        "tool": ("1.0.0", "1.0.1"),
        "child": ("1.0.0", "1.1.0"),
        "vuln": ("1.0.0", "1.2.0"),
    }
