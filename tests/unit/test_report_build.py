import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from dependfix_core.errors import UnsupportedFormatError
from dependfix_core.model.alert import Severity
from dependfix_core.model.plan import AlertOutcome, Move, Remediation, Strategy
from dependfix_core.model.run import Action, AlertDisposition, Applied, Disposition, RunError
from dependfix_core.report.build import RepositoryRun, build_result, normalise_alert, planned_dispositions
from dependfix_core.report.run_id import file_stem, is_run_id, new_run_id
from dependfix_core.report.wire import RunConfig, read_report, render_json, to_wire
from fakes.reports import START, alert, fix, info, plan, remediation, result

DATA = Path(__file__).parent.parent / "data" / "dependfix-ts"


@pytest.mark.parametrize("name", ["on22e1", "w72jak"])
def test_a_report_of_the_original_keeps_every_key_and_value(name: str) -> None:
    text = (DATA / f"dependfix-report-20261130-171400-{name}.json").read_text(encoding="utf-8")

    read = read_report(text, path=name)

    assert_holds(json.loads(text), to_wire(read))
    assert read_report(render_json(read), path=name) == read


def assert_holds(expected: Any, found: Any) -> None:
    """`found` has everything of `expected`, in the same order."""
    if isinstance(expected, dict):
        assert [key for key in found if key in expected] == sorted(expected, key=list(found).index)
        for key, value in expected.items():
            assert_holds(value, found[key])
    elif isinstance(expected, list):
        for one, other in zip(expected, found, strict=True):
            assert_holds(one, other)
    else:
        assert found == expected


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"runs": []}', '{"runId": 1}', '{"runId": "x", "alerts": [1]}'])
def test_what_is_no_report_is_refused_with_its_path(text: str) -> None:
    with pytest.raises(UnsupportedFormatError) as caught:
        read_report(text, path="some.json")

    assert caught.value.path == "some.json"


def test_missing_counters_of_an_older_report_are_zero() -> None:
    read = read_report('{"runId": "a", "summary": {"alertsFound": 2, "alertsFixed": null}}', path="x")

    assert (read.summary.alerts_found, read.summary.alerts_fixed, read.summary.alerts_planned) == (2, 0, 0)


def test_every_alert_is_counted_once_and_found_is_the_sum() -> None:
    kinds: tuple[Disposition, ...] = get_args(Disposition)
    numbers = {kind: index + 1 for index, kind in enumerate(kinds)}
    planned = plan(*(fix(number, "7.5.2") for number in numbers.values()))
    applied = Applied(
        plan=planned,
        dispositions=tuple(AlertDisposition(alert=number, disposition=kind) for kind, number in numbers.items()),
        actions=(
            Action(type="lockfile-repair", repository="octo/shop", target="package-lock.json", success=True),
            Action(type="verification", repository="octo/shop", target="npm test", success=True),
            Action(type="verification", repository="octo/shop", target="npm run lint", success=False),
        ),
        lockfile_repaired=True,
        verification_passed=False,
    )
    run = RepositoryRun(
        repository="octo/shop",
        alerts=tuple(alert(number) for number in numbers.values()),
        plan=planned,
        applied=applied,
    )

    built = build_result(info(), RunConfig(mode="fix"), [run])

    assert to_wire(built)["summary"] == {
        "repositoriesScanned": 1,
        "alertsFound": 7,
        "alertsFixable": 7,
        "alertsFixed": 1,
        "alertsPartial": 1,
        "alertsFailed": 1,
        "alertsSkipped": 1,
        "alertsConverged": 1,
        "alertsTruncated": 1,
        "alertsPlanned": 1,
        "lockfileRepairs": 1,
        "verificationsPassed": 1,
        "verificationsFailed": 1,
    }
    assert {item.id: item.disposition for item in built.alerts} == {number: kind for kind, number in numbers.items()}


def test_report_only_counts_what_would_be_done() -> None:
    outcomes = (
        fix(1, "7.5.2"),
        AlertOutcome(alert=2, outcome="partial"),
        AlertOutcome(alert=3, outcome="refuse", reason="no-patch"),
        AlertOutcome(alert=4, outcome="converged"),
        AlertOutcome(alert=5, outcome="not-present"),
        AlertOutcome(alert=6, outcome="skip", reason="below-threshold"),
        AlertOutcome(alert=7, outcome="skip", reason="truncated"),
    )

    assert [found.disposition for found in planned_dispositions(plan(*outcomes))] == [
        "planned",
        "planned",
        "skipped",
        "converged",
        "converged",
        "skipped",
        "truncated",
    ]


def test_alert_before_planning_speaks_for_its_own_entry() -> None:
    wire = normalise_alert(alert(3, first_patched_version=None), now=START).model_dump(by_alias=True, exclude_none=True)

    assert wire == {
        "id": 3,
        "source": "dependabot",
        "repository": "octo/shop",
        "defaultBranch": "main",
        "severity": "high",
        "packageEcosystem": "npm",
        "packageName": "semver",
        "manifestPath": "package-lock.json",
        "ruleId": "GHSA-c2qf-rxjj-qqgw",
        "summary": "semver is slow on crafted ranges",
        "htmlUrl": "https://github.com/octo/shop/security/dependabot/3",
        "fixable": False,
        "recommendedVersion": "",
        "dependencyType": "transitive",
        "cveId": "CVE-2022-25883",
        "classification": "general",
        "vulnerableVersionRange": ">= 7.0.0, < 7.5.2",
        "scope": "runtime",
        "cvssScore": 7.5,
        "epss": 0.01,
        "state": "open",
        "createdAt": "2026-11-20T17:14:00Z",
        "updatedAt": "2026-11-20T17:14:00Z",
        "ageDays": 10,
    }


def strategies(*moves: Strategy) -> Remediation:
    base = remediation(1)
    listed = tuple(
        Move(where="w", package_name="semver", from_version="1.0.0", to_version="1.0.1", strategy=strategy)
        for strategy in moves
    )
    return Remediation(
        unit=base.unit,
        ecosystem=base.ecosystem,
        package_name="semver",
        strategy=moves[0] if len(moves) == 1 else "mixed",
        moves=listed,
        alerts=(1,),
    )


@pytest.mark.parametrize(
    ("outcome", "answers", "expected"),
    [
        (fix(1, "7.10.0", "7.9.0"), (strategies("lock-in-range"),), (True, "lock", "7.9.0")),
        (fix(1, "7.5.2"), (strategies("parent-refresh"),), (True, "lock", "7.5.2")),
        (fix(1, "7.5.2"), (strategies("manifest-bump"),), (True, "upgrade", "7.5.2")),
        (fix(1, "7.5.2"), (strategies("override"),), (True, "override", "7.5.2")),
        (fix(1, "7.5.2"), (strategies("override", "parent-bump"),), (True, "upgrade", "7.5.2")),
        (AlertOutcome(alert=1, outcome="refuse", reason="no-patch"), (), (False, "wait-upstream", "")),
        (
            AlertOutcome(alert=1, outcome="refuse", reason="major-required", next_safe_version="8.0.0"),
            (),
            (False, "manual", "8.0.0"),
        ),
        (AlertOutcome(alert=1, outcome="converged"), (), (False, None, "")),
        (AlertOutcome(alert=1, outcome="skip", reason="below-threshold"), (), (True, None, "7.5.2")),
    ],
)
def test_alert_after_planning_says_how_and_to_what(
    outcome: AlertOutcome, answers: tuple[Remediation, ...], expected: tuple[bool, str | None, str]
) -> None:
    run = RepositoryRun(repository="octo/shop", alerts=(alert(1),), plan=plan(outcome, remediations=answers))

    (found,) = build_result(info(), RunConfig(), [run]).alerts

    assert (found.fixable, found.fix_strategy, found.recommended_version) == expected


def test_order_does_not_depend_on_the_order_of_the_runs() -> None:
    runs = [
        RepositoryRun(
            repository=name,
            alerts=(alert(2, repository=name), alert(1, repository=name, severity=Severity.LOW)),
            plan=plan(fix(1, "7.5.2"), fix(2, "7.5.2")),
        )
        for name in ("octo/Web", "octo/api", "octo/shop")
    ]

    one, other = build_result(info(), RunConfig(), runs), build_result(info(), RunConfig(), runs[::-1])

    assert one == other
    assert [(item.repository, item.id) for item in one.alerts] == [
        ("octo/api", 2),
        ("octo/shop", 2),
        ("octo/Web", 2),
        ("octo/api", 1),
        ("octo/shop", 1),
        ("octo/Web", 1),
    ]
    assert one.plan is None


def test_what_could_not_be_measured_is_an_error_not_zero_alerts() -> None:
    error = RunError(repository="octo/shop", stage="fetch", category="alerts_disabled", message="switched off")
    run = RepositoryRun(repository="octo/shop", measured=False, errors=(error,))

    built = build_result(info(), RunConfig(), [run])

    assert built.summary.repositories_scanned == 0
    assert [(found.stage, found.category) for found in built.errors] == [("fetch", "alerts_disabled")]


def test_an_alert_without_a_plan_is_still_counted() -> None:
    built = build_result(info(), RunConfig(), [RepositoryRun(repository="octo/shop", alerts=(alert(1),))])

    assert (built.summary.alerts_found, built.summary.alerts_failed) == (1, 1)


def test_result_survives_a_process_boundary() -> None:
    built = result()

    assert pickle.loads(pickle.dumps(built)) == built  # noqa: S301  # our own bytes


def test_run_ids_have_no_dot_and_name_their_files() -> None:
    run_id = new_run_id(START)

    assert run_id.startswith("20261130-171400-")
    assert is_run_id(run_id)
    assert new_run_id(START) != run_id
    assert file_stem("20261130-171400-abc123", START + timedelta(days=1)) == "dependfix-report-20261130-171400-abc123"
    assert file_stem("dependfix-mx3j26vz-on22e1", START) == "dependfix-report-20261130-171400-on22e1"
    assert not any(map(is_run_id, ("", "a.b", "../x", "a/b", "-x", "a b", "x" * 200)))
