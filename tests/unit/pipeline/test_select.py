from dataclasses import replace

import pytest

from dependfix_core.model.alert import Alert, Severity
from dependfix_core.model.policy import ScanPolicy, SeverityThreshold
from dependfix_core.pipeline.select import first_objection, select_alerts
from fakes.universe import alert


def of(number: int, **fields: object) -> Alert:
    return replace(alert(number, "vuln", "< 2", "2.0.0"), **fields)  # type: ignore[arg-type] # fields of `Alert`


ALERTS = (
    of(1, severity=Severity.LOW),
    of(2, severity=Severity.CRITICAL),
    of(3, severity=Severity.UNKNOWN),
    of(4, severity=Severity.MEDIUM),
    of(5, severity=Severity.HIGH),
)


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [("critical", [2]), ("high", [2, 5]), ("medium", [2, 4, 5]), ("low", [1, 2, 4, 5]), ("all", [1, 2, 3, 4, 5])],
)
def test_a_threshold_keeps_its_level_and_above(threshold: SeverityThreshold, kept: list[int]) -> None:
    selection = select_alerts(ALERTS, ScanPolicy(severity=threshold))

    assert [one.number for one in selection.chosen] == kept
    reasons = {one.alert.number: one.reason for one in selection.left_out}
    assert reasons == {
        one.number: "unknown-severity" if one.severity is Severity.UNKNOWN else "below-threshold"
        for one in ALERTS
        if one.number not in kept
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "dismissed"}, "dismissed"),
        ({"state": "auto_dismissed"}, "auto-dismissed"),
        ({"state": "fixed"}, "fixed"),
        ({"state": "withdrawn"}, "withdrawn"),
        ({"withdrawn_at": "2024-01-01T00:00:00Z"}, "withdrawn"),
        ({"state": "something-new"}, "unreadable"),
        ({"package_name": ""}, "unreadable"),
        ({"vulnerable_range": ""}, "unreadable"),
        ({"ecosystem": ""}, "unreadable"),
    ],
)
def test_an_alert_that_is_not_open_or_not_readable_says_so(fields: dict[str, object], reason: str) -> None:
    selection = select_alerts([of(1, **fields)], ScanPolicy(severity="all"))

    assert selection.chosen == ()
    assert [one.reason for one in selection.left_out] == [reason]


def test_packages_and_numbers_filter_together() -> None:
    alerts = [
        of(1, package_name="Vuln"),
        of(2),
        of(3, package_name="other"),
        of(4, ecosystem="pip", package_name="VULN"),
    ]

    selection = select_alerts(alerts, ScanPolicy(severity="all", packages=("vuln",), alerts=(1, 3, 4)))

    assert [one.number for one in selection.chosen] == [1, 4]
    assert {one.alert.number: one.reason for one in selection.left_out} == {2: "filtered", 3: "filtered"}


def test_the_limit_keeps_the_most_urgent_ones() -> None:
    selection = select_alerts(ALERTS, ScanPolicy(severity="all", max_alerts=2))

    assert [one.number for one in selection.chosen] == [2, 5]
    assert {one.reason for one in selection.left_out} == {"truncated"}


def test_a_limit_of_none_at_all_leaves_everything_out() -> None:
    selection = select_alerts(ALERTS, ScanPolicy(severity="all", max_alerts=0))

    assert (selection.chosen, len(selection.left_out)) == ((), 5)


def test_a_number_that_comes_twice_counts_once_whichever_comes_first() -> None:
    old = of(7, state="open", updated_at="2025-01-01T00:00:00Z")
    new = of(7, state="fixed", updated_at="2025-02-01T00:00:00Z")

    selections = [select_alerts(pair, ScanPolicy(severity="all")) for pair in ([old, new], [new, old])]

    assert selections[0] == selections[1]
    assert [one.reason for one in selections[0].left_out] == ["fixed"]


def test_no_predicates_let_everything_pass() -> None:
    assert first_objection(ALERTS[0], ()) is None
