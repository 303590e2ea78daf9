"""Values from which tests build runs and their results."""

from datetime import UTC, datetime, timedelta

from dependfix_core.model.alert import Alert, Severity
from dependfix_core.model.plan import AlertOutcome, InstanceVerdict, Move, Plan, Remediation
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.run import RunInfo
from dependfix_core.report.build import RepositoryRun, build_result
from dependfix_core.report.wire import RunConfig, RunResult

START = datetime(2026, 11, 30, 17, 14, 0, 123_000, tzinfo=UTC)

HOSTILE = "\u202e</title><script>alert(1)</script> | `x` [a](https://evil.example) @octo ![i](x) \x1b[31m\x00"
"""Text of an attacker: markup for every form of report, and characters that are not shown."""


def alert(number: int, **changes: object) -> Alert:
    """An open alert of `octo/shop`."""
    given: dict[str, object] = {
        "repository": "octo/shop",
        "number": number,
        "severity": Severity.HIGH,
        "ecosystem": "npm",
        "package_name": "semver",
        "manifest_path": "package-lock.json",
        "ghsa_id": "GHSA-c2qf-rxjj-qqgw",
        "cve_id": "CVE-2022-25883",
        "summary": "semver is slow on crafted ranges",
        "html_url": f"https://github.com/octo/shop/security/dependabot/{number}",
        "vulnerable_range": ">= 7.0.0, < 7.5.2",
        "first_patched_version": "7.5.2",
        "relationship": "transitive",
        "scope": "runtime",
        "cvss_score": 7.5,
        "epss": 0.01,
        "created_at": "2026-11-20T17:14:00Z",
        "updated_at": "2026-11-20T17:14:00Z",
        "default_branch": "main",
    }
    return Alert(**{**given, **changes})  # type: ignore[arg-type]  # the fields of `Alert` by name


def plan(*outcomes: AlertOutcome, remediations: tuple[Remediation, ...] = ()) -> Plan:
    """A plan for `octo/shop` with these outcomes."""
    return Plan(
        plan_id="plan-1",
        base="base-1",
        repository="octo/shop",
        policy=ScanPolicy(),
        complete=True,
        remediations=remediations,
        outcomes=outcomes,
    )


def fix(number: int, *targets: str) -> AlertOutcome:
    """An outcome that moves one instance to each target."""
    return AlertOutcome(
        alert=number,
        outcome="fix",
        instances=tuple(
            InstanceVerdict(where=f"node_modules/{index}/semver", version="7.3.5", to_version=target)
            for index, target in enumerate(targets)
        ),
    )


def remediation(*numbers: int, to: str = "7.5.2") -> Remediation:
    """What answers these alerts."""
    move = Move(
        where="node_modules/semver",
        package_name="semver",
        from_version="7.3.5",
        to_version=to,
        strategy="lock-in-range",
    )
    return Remediation(
        unit="package-lock.json",
        ecosystem="npm",
        package_name="semver",
        strategy="lock-in-range",
        moves=(move,),
        alerts=numbers,
    )


def info(run_id: str = "20261130-171400-abc123", *, after_s: float = 0) -> RunInfo:
    """A report-only run of two seconds."""
    begin = START + timedelta(seconds=after_s)
    return RunInfo(run_id=run_id, started_at=begin, finished_at=begin + timedelta(seconds=2), mode="report-only")


def result(run_id: str = "20261130-171400-abc123", *, repository: str = "octo/shop", after_s: float = 0) -> RunResult:
    """A small report-only result with one fix and one refusal."""
    alerts = (alert(1, repository=repository), alert(2, repository=repository, severity=Severity.CRITICAL))
    run = RepositoryRun(
        repository=repository,
        default_branch="main",
        alerts=alerts,
        plan=plan(
            fix(1, "7.5.2"),
            AlertOutcome(alert=2, outcome="refuse", reason="major-required", next_safe_version="8.0.0"),
            remediations=(remediation(1),),
        ),
        duration_ms=2000,
    )
    return build_result(info(run_id, after_s=after_s), RunConfig(repositories=(repository,)), [run])
