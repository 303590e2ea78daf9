import json
from typing import Any

import pytest

from dependfix_core.github import AlertProblem
from dependfix_core.github.decode import read_alert
from dependfix_core.github.normalise import alert_of, problems_of
from dependfix_core.model import AffectedRange, Alert, Severity
from fakes.github_server import ALERTS, NAMES, corpus


def normalised(payload: dict[str, Any], repository: str = "octo-org/octo-shop") -> Alert:
    read = read_alert(payload)
    assert read is not None
    return alert_of(read, repository, default_branch="main")


def by_number(name: str, number: int) -> dict[str, Any]:
    return next(alert for alert in corpus(name) if alert["number"] == number)


def test_an_alert_is_read_whole() -> None:
    payload = by_number("octo-shop", 16)

    assert normalised(payload) == Alert(
        repository="octo-org/octo-shop",
        number=16,
        state="dismissed",
        severity=Severity.MEDIUM,
        ecosystem="npm",
        package_name="follow-redirects",
        manifest_path="package-lock.json",
        ghsa_id=payload["security_advisory"]["ghsa_id"],
        cve_id=payload["security_advisory"]["cve_id"],
        summary=payload["security_advisory"]["summary"],
        html_url="https://github.com/octo-org/octo-shop/security/dependabot/16",
        vulnerable_range="<= 1.15.5",
        first_patched_version="1.15.6",
        relationship="transitive",
        scope="runtime",
        version_requirement="1.15.2",
        cvss_score=payload["security_advisory"]["cvss_severities"]["cvss_v3"]["score"],
        epss=payload["security_advisory"]["epss"]["percentage"],
        cwe_ids=tuple(cwe["cwe_id"] for cwe in payload["security_advisory"]["cwes"]),
        created_at=payload["created_at"],
        updated_at=payload["updated_at"],
        dismissed_at=payload["dismissed_at"],
        dismissed_by=payload["dismissed_by"]["login"],
        dismissed_reason=payload["dismissed_reason"],
        dismissed_comment=payload["dismissed_comment"],
        default_branch="main",
    )


def test_severity_is_that_of_the_vulnerability() -> None:
    payload = by_number("octo-weird", 7)

    assert payload["security_advisory"]["severity"] == "high"
    assert normalised(payload).severity is Severity.MEDIUM


def test_other_lines_of_the_package_come_along_and_other_packages_do_not() -> None:
    payload = json.loads((ALERTS / "org-shape.example.json").read_bytes())[0]
    several = normalised(by_number("octo-shop", 5))

    assert normalised(payload).other_ranges == ()
    assert several.other_ranges == (
        AffectedRange(vulnerable_range=">= 6.0.0, < 6.3.1", first_patched_version="6.3.1"),
        AffectedRange(vulnerable_range="< 5.7.2", first_patched_version="5.7.2"),
    )


def test_repository_of_the_item_counts() -> None:
    payload = json.loads((ALERTS / "org-shape.example.json").read_bytes())[0]

    assert normalised(payload, "").repository == "octo-org/octo-edge"
    del payload["repository"]
    assert normalised(payload, "").repository == "octo-org/octo-edge"
    payload["html_url"] = "https://github.com/settings"
    assert normalised(payload, "").repository == ""


@pytest.mark.parametrize(
    ("name", "number", "field", "value"),
    [
        ("octo-weird", 10, "manifest_path", ""),
        ("octo-weird", 9, "package_name", "glob-parent"),
        ("octo-weird", 9, "ecosystem", "npm"),
        ("octo-weird", 8, "relationship", None),
        ("octo-weird", 4, "classification", "malware"),
        ("octo-weird", 6, "withdrawn_at", "2026-01-20T10:00:00Z"),
        ("octo-weird", 1, "vulnerable_range", "1!2.0"),
        ("octo-shop", 23, "classification", "general"),
        ("octo-shop", 8, "dependency_type", None),
        ("octo-api", 12, "version_requirement", ""),
        ("octo-weird", 9, "version_requirement", None),
        ("octo-api", 15, "dismissal_request", "pending"),
        ("octo-api", 7, "first_patched_version", None),
    ],
)
def test_what_goes_missing_or_is_special(name: str, number: int, field: str, value: str | None) -> None:
    payload = by_number(name, number)
    if field == "vulnerable_range":
        value = payload["security_vulnerability"]["vulnerable_version_range"]

    assert getattr(normalised(payload), field) == value


def test_whole_corpus_is_readable_without_a_problem() -> None:
    for name in NAMES:
        for payload in corpus(name):
            alert = normalised(payload)
            assert alert.is_readable
            assert problems_of(alert) == ()


def test_newest_score_counts_and_zero_is_none() -> None:
    payload = by_number("octo-shop", 16)
    scores = payload["security_advisory"]["cvss_severities"]

    scores["cvss_v4"] = {"score": 6.9, "vector_string": "CVSS:4.0/AV:N"}
    assert normalised(payload).cvss_score == 6.9
    del payload["security_advisory"]["cvss_severities"]
    assert normalised(payload).cvss_score == payload["security_advisory"]["cvss"]["score"]
    payload["security_advisory"]["cvss"] = {"score": 0.0, "vector_string": None}
    assert normalised(payload).cvss_score is None


@pytest.mark.parametrize(
    ("epss", "value"),
    [
        ({"percentage": 0.25, "percentile": "0.16001e0"}, 0.25),
        ({"percentage": "0.25e0"}, 0.25),
        ([{"percentage": 0.5}], 0.5),
        ([], None),
        (None, None),
        ({}, None),
    ],
)
def test_epss_comes_in_several_shapes(epss: object, value: float | None) -> None:
    payload = by_number("octo-shop", 16)
    payload["security_advisory"]["epss"] = epss

    alert = normalised(payload)

    assert (alert.epss, alert.unreadable) == (value, ())


def test_strange_epss_in_its_old_shape_costs_the_epss_alone() -> None:
    payload = by_number("octo-shop", 16)
    payload["security_advisory"]["epss"] = [{"percentage": [1]}]

    alert = normalised(payload)

    assert (alert.number, alert.epss, alert.unreadable) == (16, None, ("security_advisory.epss",))


def test_what_cannot_be_read_is_named() -> None:
    payload = by_number("octo-shop", 16)
    payload["dependency"]["package"] = "follow-redirects"
    payload["security_vulnerability"] = None

    alert = normalised(payload)

    assert alert.unreadable == ("dependency.package",)
    assert alert.severity is Severity.MEDIUM
    assert problems_of(alert) == (
        AlertProblem(
            number=16,
            repository="octo-org/octo-shop",
            message="dependency.package has an unknown shape; its package and its version range is not stated",
        ),
    )


def test_hostile_texts_are_cleaned_and_cut() -> None:
    payload = by_number("octo-shop", 16)
    payload["security_advisory"]["summary"] = "\x1b[2Jline\nbreak \u202eevil\u202c " + "x" * 2000
    payload["dismissed_comment"] = "a\x00b" + "y" * 2000
    payload["html_url"] = "javascript:alert(1)"
    payload["created_at"] = "2026-01-01T00:00:00Z\x1b[0m"

    alert = normalised(payload)

    assert alert.summary.startswith("line break evil xxx")
    assert (len(alert.summary), len(alert.dismissed_comment or "")) == (300, 300)
    assert alert.html_url == ""
    assert alert.created_at == "2026-01-01T00:00:00Z"
