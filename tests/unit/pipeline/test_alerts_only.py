"""The plan where no files can be read."""

import pytest

from dependfix_core.ecosystems.base import Ecosystems
from dependfix_core.ecosystems.registry import ECOSYSTEMS
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing, TreeEntry
from dependfix_core.model.plan import AlertOutcome, Plan
from dependfix_core.pipeline.plan import Planners, plan_repository
from fakes.planning import ALL, NOW, drive_plan, plan_files
from fakes.universe import alert


def plan(*alerts: Alert, ecosystems: Planners = ECOSYSTEMS, listing: Listing | None = None) -> Plan:
    step = plan_repository(alerts, listing, ALL, ecosystems, repository="acme/made-up", now=NOW)
    return drive_plan(step, {}, {})


def answer(planned: Plan, number: int = 1) -> AlertOutcome:
    (found,) = (one for one in planned.outcomes if one.alert == number)
    return found


def test_the_alerts_of_a_package_decide_together_and_everything_is_unconfirmed() -> None:
    planned = plan(
        alert(1, "axios", ">= 1.0.0, < 1.6.0", "1.6.0"),
        alert(2, "axios", ">= 1.3.2, <= 1.7.3", "1.7.4"),
        alert(3, "axios", ">= 1.0.0, < 1.8.2", "1.8.2"),
    )

    (one,) = planned.remediations
    assert (one.alerts, one.unconfirmed, one.moves[0].to_version) == ((1, 2, 3), True, "1.8.2")
    assert [(o.outcome, o.next_safe_version) for o in planned.outcomes] == [("fix", "1.8.2")] * 3
    assert not planned.complete
    assert [problem.message for problem in planned.problems] == ["the project's files were not read"]


def test_every_line_keeps_its_own_patch() -> None:
    planned = plan(
        alert(1, "semver", ">= 7.0.0, < 7.5.2", "7.5.2", others=[("< 5.7.2", "5.7.2")]),
        alert(2, "semver", "< 5.7.2", "5.7.2", others=[(">= 7.0.0, < 7.5.2", "7.5.2")]),
    )

    assert {one.alerts: one.moves[0].to_version for one in planned.remediations} == {(1,): "7.5.2", (2,): "5.7.2"}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (alert(1, "request", "<= 2.88.2", None), "no-patch"),
        (alert(1, "jwt", "< 4.0.0-preview1", "4.0.0-preview1"), "no-stable-patch"),
        (alert(1, "vuln", "< 2", "next"), "unparsable-version"),
        (alert(1, "vuln", "< 2", "2.0.0", ecosystem="other"), "unparsable-version"),
        (alert(1, "vuln", ">= 0", "1.0.0"), "no-patch"),
        (alert(1, "evil", ">= 0", None, classification="malware"), "malware"),
    ],
)
def test_what_cannot_be_answered_says_why(one: Alert, reason: str) -> None:
    planned = plan(one)

    assert (answer(planned).outcome, answer(planned).reason) == ("refuse", reason)
    assert planned.remediations == ()


def test_an_ecosystem_that_nobody_reads_is_planned_from_its_alerts() -> None:
    planned = plan(
        alert(1, "vuln", "< 1.2.0", "1.2.0"),
        ecosystems=Ecosystems(members=()),
        listing=Listing(entries={"package-lock.json": TreeEntry(path="package-lock.json")}),
    )

    assert answer(planned).outcome == "fix"
    assert planned.remediations[0].unconfirmed
    assert [(p.target, p.message) for p in planned.problems] == [("npm", "files of npm are not read")]


def test_a_cut_listing_does_not_prove_that_a_manifest_is_gone() -> None:
    one = alert(1, "vuln", "< 1.2.0", "1.2.0", manifest="deep/package-lock.json")

    planned = plan_files({}, [one], {}, listing=Listing(entries={}, complete=False))

    assert answer(planned).outcome == "fix"
    assert planned.remediations[0].unconfirmed
    assert not planned.complete


def test_malware_is_never_answered_by_a_bump() -> None:
    planned = plan(alert(1, "evil", "= 1.0.0", "1.0.1", classification="malware"))

    assert answer(planned).reason == "malware"
    assert "rotate" in answer(planned).detail
