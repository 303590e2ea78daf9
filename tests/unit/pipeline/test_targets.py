"""Which versions a copy may go to, and why there are none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dependfix_core.ecosystems.npm.graph import NpmGraph
from dependfix_core.model.alert import Alert
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.pipeline.gates import Gates
from dependfix_core.pipeline.targets import Advisories, Chooser, Targets
from fakes.planning import ALL, drive_plan
from fakes.universe import alert, registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def targets(
    versions: Mapping[str, Mapping[str, Any]] | Sequence[str] | None,
    current: str,
    *alerts: Alert,
    policy: ScanPolicy = ALL,
    ecosystem: str = "npm",
) -> Targets:
    unit = LockUnit(unit="lock", ecosystem=ecosystem, format="npm-lock")
    chooser = Chooser(
        advisories=Advisories(alerts), graph=NpmGraph(unit), policy=policy, gates=Gates((), policy), now=NOW
    )
    listed = versions if isinstance(versions, Mapping) or versions is None else {version: {} for version in versions}
    return drive_plan(chooser.targets("vuln", current), {}, {} if listed is None else registry({"vuln": listed}))


def texts(found: Targets) -> tuple[list[str], list[str]]:
    return [one.text for one in found.same_line], [one.text for one in found.other_lines]


def test_the_least_version_outside_all_ranges_comes_first() -> None:
    alerts = [
        alert(1, "vuln", "< 1.2.0", "1.2.0"),
        alert(2, "vuln", ">= 1.2.0, <= 1.3.1", "1.3.2"),
        alert(3, "vuln", ">= 1.0.0, < 1.5.0", "1.5.0"),
    ]

    found = targets(["1.0.0", "1.2.0", "1.3.2", "1.5.0", "1.6.0", "2.0.0"], "1.0.0", *alerts)

    assert texts(found) == (["1.5.0", "1.6.0"], ["2.0.0"])
    assert found.next_safe == "1.5.0"


def test_other_ranges_of_the_same_advisory_count() -> None:
    found = targets(
        ["6.7.0", "6.7.3", "6.9.6", "6.9.7"],
        "6.7.0",
        alert(1, "vuln", ">= 6.7.0, < 6.7.3", "6.7.3", others=[(">= 6.9.0, < 6.9.7", "6.9.7")]),
    )

    assert texts(found) == (["6.7.3", "6.9.7"], [])


def test_between_the_end_of_a_range_and_its_first_patched_version_nothing_is_safe() -> None:
    found = targets(["2.31.0", "2.32.0", "2.32.1", "2.32.2"], "2.31.0", alert(1, "vuln", "< 2.32.0", "2.32.2"))

    assert texts(found) == (["2.32.2"], [])


def test_the_gap_ends_with_the_line_of_the_patched_version() -> None:
    found = targets(["1.33.0", "1.34.0", "2.0.0"], "1.33.0", alert(1, "vuln", "<= 1.33.0", "2.0.0"))

    assert texts(found) == (["1.34.0"], ["2.0.0"])


@pytest.mark.parametrize(
    ("current", "same", "other"),
    [("0.2.0", ["0.2.1"], ["0.3.0", "1.0.0"]), ("0.0.1", [], ["0.2.1", "0.3.0", "1.0.0"])],
)
def test_minors_of_zero_are_lines_of_their_own(current: str, same: list[str], other: list[str]) -> None:
    found = targets(["0.0.1", "0.2.0", "0.2.1", "0.3.0", "1.0.0"], current, alert(1, "vuln", "< 0.2.1", "0.2.1"))

    assert texts(found) == (same, other)


def test_the_policy_can_take_minors_of_zero_for_one_line() -> None:
    policy = replace(ALL, zero_major_minor_is_breaking=False)

    found = targets(["0.2.0", "0.3.0"], "0.2.0", alert(1, "vuln", "< 0.3.0", "0.3.0"), policy=policy)

    assert texts(found) == (["0.3.0"], [])


def test_calendar_versions_have_no_lines() -> None:
    found = targets(["2022.9.24", "2023.7.22"], "2022.9.24", alert(1, "vuln", "< 2023.7.22", "2023.7.22"))

    assert texts(found) == (["2023.7.22"], [])


def test_withdrawn_releases_are_no_targets() -> None:
    found = targets(
        {"1.0.0": {}, "1.2.0": {"!yanked": True}, "1.2.1": {}}, "1.0.0", alert(1, "vuln", "< 1.2.0", "1.2.0")
    )

    assert texts(found) == (["1.2.1"], [])


def test_a_patch_that_was_withdrawn_and_not_replaced_is_none() -> None:
    found = targets({"1.0.0": {}, "1.2.0": {"!yanked": True}}, "1.0.0", alert(1, "vuln", "< 1.2.0", "1.2.0"))

    assert (texts(found), found.reason) == (([], []), "no-patch")


def test_a_release_with_a_deprecation_of_its_own_is_passed_over() -> None:
    versions = {"1.0.0": {}, "1.2.0": {"!deprecated": "broken, use 1.2.1"}, "1.2.1": {}}

    found = targets(versions, "1.0.0", alert(1, "vuln", "< 1.2.0", "1.2.0"))

    assert texts(found) == (["1.2.1"], [])


def test_a_deprecation_of_the_whole_line_says_nothing_against_its_fix() -> None:
    old = {"!deprecated": "version 1 is no longer supported"}

    found = targets({"1.0.0": old, "1.2.0": old, "2.0.0": {}}, "1.0.0", alert(1, "vuln", "< 1.2.0", "1.2.0"))

    assert texts(found) == (["1.2.0"], ["2.0.0"])


def test_pre_releases_are_for_those_who_have_one_of_the_same_release() -> None:
    versions = ["1.0.0", "2.0.0-rc.1", "2.0.0-rc.2", "2.0.0", "2.1.0-beta.1"]
    one = alert(1, "vuln", "< 2.0.0-rc.2", "2.0.0-rc.2")

    assert texts(targets(versions, "1.0.0", one)) == ([], ["2.0.0"])
    assert texts(targets(versions, "2.0.0-rc.1", one)) == (["2.0.0-rc.2", "2.0.0"], [])


def test_only_a_pre_release_is_no_stable_patch() -> None:
    found = targets(["3.2.0", "4.0.0-preview1"], "3.2.0", alert(1, "vuln", "< 4.0.0-preview1", "4.0.0-preview1"))

    assert (found.reason, found.next_safe) == ("no-stable-patch", "4.0.0-preview1")


def test_nothing_outside_the_ranges_is_no_patch() -> None:
    found = targets(["1.0.0", "1.1.0"], "1.0.0", alert(1, "vuln", ">= 0", None))

    assert (found.reason, found.next_safe) == ("no-patch", None)


def test_a_range_without_a_patch_is_not_cured_by_leaving_it() -> None:
    found = targets(["0.18.0", "0.19.0"], "0.18.0", alert(1, "vuln", "<= 0.18.0", None))

    assert (found.reason, found.next_safe) == ("no-patch", "0.19.0")


def test_another_line_of_the_same_advisory_is_a_patch() -> None:
    found = targets(
        ["0.1.43", "0.1.44", "0.2.22", "0.2.23"],
        "0.1.43",
        alert(1, "vuln", ">= 0.1.0, < 0.2.0", None, others=[(">= 0.2.7, < 0.2.23", "0.2.23")]),
    )

    assert texts(found) == ([], ["0.2.23"])


def test_a_patch_that_the_registry_does_not_list_is_unknown_and_not_absent() -> None:
    found = targets(["1.4.0", "1.8.4"], "1.4.0", alert(1, "vuln", "< 1.8.2", "1.8.2"))

    assert [(one.text, one.listed) for one in found.same_line] == [("1.8.2", False), ("1.8.4", True)]


def test_without_a_registry_the_advisories_own_versions_are_all_there_is() -> None:
    alerts = [alert(1, "vuln", "< 1.6.0", "1.6.0"), alert(2, "vuln", ">= 1.3.2, <= 1.7.3", "1.7.4")]

    assert texts(targets(None, "1.4.0", *alerts)) == (["1.7.4"], [])


def test_alerts_that_are_not_open_say_nothing() -> None:
    fixed = replace(alert(2, "vuln", "< 1.9.0", "1.9.0"), state="fixed")
    withdrawn = replace(alert(3, "vuln", "< 1.9.0", "1.9.0"), withdrawn_at="2024-01-01T00:00:00Z")

    found = targets(["1.0.0", "1.2.0", "1.9.0"], "1.0.0", alert(1, "vuln", "< 1.2.0", "1.2.0"), fixed, withdrawn)

    assert texts(found)[0][0] == "1.2.0"


def test_a_version_that_is_none_cannot_be_moved() -> None:
    assert targets(["1.0.0"], "main", alert(1, "vuln", "< 1.2.0", "1.2.0")).reason == "unparsable-version"


def test_a_range_that_cannot_be_read_is_never_safe() -> None:
    found = targets(["1.0.0", "9.0.0"], "1.0.0", alert(1, "vuln", "whatever || 1", "1.2.0"))

    assert (texts(found), found.reason) == (([], []), "unparsable-version")
