import pickle
from datetime import UTC, datetime

import pytest

from dependfix_core.model import THRESHOLDS, AffectedRange, Alert, Severity, Threshold, by_severity, parse_time


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [
        ("critical", {"critical"}),
        ("high", {"critical", "high"}),
        ("medium", {"critical", "high", "medium"}),
        ("low", {"critical", "high", "medium", "low"}),
        ("all", {"critical", "high", "medium", "low", "unknown"}),
    ],
)
def test_threshold_keeps_its_level_and_above(threshold: Threshold, kept: set[str]) -> None:
    assert {severity.value for severity in Severity if severity.meets(threshold)} == kept
    assert threshold in THRESHOLDS


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("critical", Severity.CRITICAL),
        (" HIGH ", Severity.HIGH),
        ("moderate", Severity.MEDIUM),
        ("low", Severity.LOW),
        ("catastrophic", Severity.UNKNOWN),
        ("", Severity.UNKNOWN),
        (None, Severity.UNKNOWN),
    ],
)
def test_severity_text_is_read_or_unknown(text: str | None, severity: Severity) -> None:
    assert Severity.of(text) is severity


def test_severities_have_no_accidental_order() -> None:
    with pytest.raises(TypeError):
        sorted([Severity.LOW, Severity.CRITICAL])  # type: ignore[type-var]  # the point of the test


def test_alerts_sort_by_severity_repository_number() -> None:
    alerts = [
        Alert(repository="b/b", number=1, severity=Severity.UNKNOWN),
        Alert(repository="b/b", number=9, severity=Severity.HIGH),
        Alert(repository="A/a", number=10, severity=Severity.HIGH),
        Alert(repository="b/b", number=2, severity=Severity.CRITICAL),
    ]

    assert [(a.repository, a.number) for a in sorted(alerts, key=by_severity)] == [
        ("b/b", 2),
        ("A/a", 10),
        ("b/b", 9),
        ("b/b", 1),
    ]


def test_key_tells_repositories_apart_without_case() -> None:
    assert Alert(repository="Octo/Shop", number=3).key == ("octo/shop", 3)


def test_affected_ranges_start_with_the_own_one() -> None:
    other = AffectedRange(vulnerable_range="< 2.0", first_patched_version="2.0")
    alert = Alert(
        repository="o/r", number=1, vulnerable_range="< 1.5", first_patched_version=None, other_ranges=(other,)
    )

    assert alert.affected_ranges == (AffectedRange(vulnerable_range="< 1.5"), other)


@pytest.mark.parametrize(
    ("relationship", "kind"),
    [("direct", "direct"), ("transitive", "transitive"), ("inconclusive", None), ("unknown", None), (None, None)],
)
def test_dependency_type_is_stated_only_when_known(relationship: str | None, kind: str | None) -> None:
    assert Alert(repository="o/r", number=1, relationship=relationship).dependency_type == kind


def test_alert_without_package_or_range_is_not_readable() -> None:
    whole = Alert(repository="o/r", number=1, ecosystem="npm", package_name="ws", vulnerable_range="< 8")

    assert whole.is_readable
    assert not Alert(repository="o/r", number=1, ecosystem="npm", package_name="ws").is_readable
    assert not Alert(repository="o/r", number=1, vulnerable_range="< 8").is_readable


def test_malware_is_known_by_its_classification() -> None:
    assert Alert(repository="o/r", number=1, classification="malware").is_malware
    assert not Alert(repository="o/r", number=1).is_malware


@pytest.mark.parametrize(
    ("created", "days"), [("2026-11-20T12:00:00Z", 9), ("2026-12-24T00:00:00Z", 0), ("", 0), ("soon", 0)]
)
def test_age_is_whole_days_and_never_negative(created: str, days: int) -> None:
    alert = Alert(repository="o/r", number=1, created_at=created)

    assert alert.age_days(datetime(2026, 11, 30, 11, 59, tzinfo=UTC)) == days


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-30T00:00:00Z", datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30T02:00:00+02:00", datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30", None),
        ("", None),
        (None, None),
        ("yesterday", None),
    ],
)
def test_time_is_aware_or_nothing(text: str | None, time: datetime | None) -> None:
    assert parse_time(text) == time


def test_alert_survives_a_process_boundary() -> None:
    alert = Alert(
        repository="o/r", number=1, severity=Severity.HIGH, other_ranges=(AffectedRange(vulnerable_range="< 1"),)
    )

    assert pickle.loads(pickle.dumps(alert)) == alert  # noqa: S301  # our own bytes
