import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from dependfix_core.model.alert import Severity
from dependfix_core.model.run import Checkout, RunError
from dependfix_core.report.build import RepositoryRun, build_result
from dependfix_core.report.html import render_html
from dependfix_core.report.markdown import render_markdown
from dependfix_core.report.sarif import render_sarif
from dependfix_core.report.wire import (
    PlanEdit,
    PlanMove,
    PlanRemediation,
    PlanView,
    PullRequest,
    RunAction,
    RunConfig,
    RunProblem,
    RunResult,
    WireNextStep,
    read_report,
)
from fakes.reports import HOSTILE, alert, fix, info, plan, result

DATA = Path(__file__).parent.parent / "data"
SCHEMA = json.loads((DATA / "sarif" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def hostile() -> RunResult:
    """A result in which every text is an attack."""
    move = PlanMove(where=HOSTILE, package_name=HOSTILE, from_version=HOSTILE, to_version=HOSTILE, strategy=HOSTILE)
    edit = PlanEdit(path=HOSTILE, at=HOSTILE, from_=HOSTILE, to=HOSTILE)
    remediation = PlanRemediation(
        unit=HOSTILE,
        ecosystem=HOSTILE,
        package_name=HOSTILE,
        strategy=HOSTILE,
        moves=(move,) * 10,
        edits=(edit,),
        alerts=(1,),
        is_major=True,
        needs_tool=True,
        unconfirmed=True,
        warnings=(HOSTILE,),
    )
    base = result().alerts[0]
    texts = {
        name: HOSTILE
        for name, field in type(base).model_fields.items()
        if field.annotation in (str, str | None) and name != "repository"
    }
    alerts = (
        base.model_copy(update=texts),
        base.model_copy(update={**texts, "repository": HOSTILE, "html_url": "javascript:alert(1)", "id": 2}),
    )
    return result().model_copy(
        update={
            "run_id": HOSTILE,
            "status": HOSTILE,
            "config": RunConfig(mode=HOSTILE, severity_threshold=HOSTILE, dry_run=True),
            "alerts": alerts,
            "plan": PlanView(plan_id=HOSTILE, remediations=(remediation,), diff=f"+{HOSTILE}\n-{HOSTILE}"),
            "actions": (
                RunAction(type=HOSTILE, target=HOSTILE, error=HOSTILE, diff=HOSTILE, to_version=HOSTILE),
                RunAction(type="verification", target=HOSTILE, success=True),
            ),
            "errors": (RunProblem(repository=HOSTILE, stage=HOSTILE, target=HOSTILE, message=HOSTILE),),
            "next_steps": (WireNextStep(command=HOSTILE, folder=HOSTILE, why=HOSTILE),),
            "pull_requests": (PullRequest(repository=HOSTILE, number=1, url="javascript:alert(1)", state=HOSTILE),),
        }
    )


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_hostile_text_is_no_markup_in_the_page() -> None:
    page = Page(render_html(hostile()))

    assert [tag for tag, _ in page.tags].count("script") == 1
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "link", "object", "form", "base")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if "href" in attributes:
            assert re.match(r"https://github\.com/", attributes["href"] or "")


def test_no_hidden_character_reaches_a_report() -> None:
    for text in (render_html(hostile()), render_markdown(hostile()), render_sarif(hostile())):
        assert not re.search("[\u202a-\u202e\x00\x1b]", text)


def test_the_page_loads_nothing_and_allows_only_its_own_style_and_script() -> None:
    text = render_html(result())
    page = Page(text)

    (policy,) = [
        attributes["content"]
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'",
        policy,
    )
    assert not any("src" in attributes for _, attributes in page.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_hostile_text_is_no_markup_in_markdown() -> None:
    text = render_markdown(hostile())

    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside_code
    assert "](https://evil" not in outside_code
    assert "https://evil" not in outside_code
    assert not re.search(r"@\w", outside_code)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.replace("\\|", "").count("|") for line in tables if "alert(1)" in line}
    assert widths <= {4, 5, 8, 9}, "no cell is split by a bar of its text"


@pytest.mark.parametrize("make", [result, hostile], ids=["plain", "hostile"])
def test_sarif_is_valid(make: object) -> None:
    assert callable(make)
    log = json.loads(render_sarif(make()))

    jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)


def test_sarif_of_the_original_and_of_an_empty_run_is_valid() -> None:
    reports = [read_report(path.read_bytes(), path=path.name) for path in (DATA / "dependfix-ts").glob("dep*.json")]
    empty = build_result(info(), RunConfig(), [])

    for report in (*reports, empty):
        jsonschema.Draft7Validator(SCHEMA).validate(json.loads(render_sarif(report)))


def test_sarif_names_each_alert_once_and_leaves_out_paths_that_leave_the_repository() -> None:
    alerts = (
        alert(1),
        alert(2, severity=Severity.LOW, manifest_path="../../etc/passwd", state="dismissed"),
        alert(3, severity=Severity.MEDIUM, manifest_path="app dir/größe.lock", cvss_score=None),
    )
    run = RepositoryRun(
        repository="octo/shop", alerts=alerts, plan=plan(*(fix(number, "7.5.2") for number in (1, 2, 3)))
    )

    (found,) = json.loads(render_sarif(build_result(info(), RunConfig(), [run])))["runs"]

    assert [
        (
            entry["level"],
            entry["partialFingerprints"]["dependfixAlert/v1"],
            [place["physicalLocation"]["artifactLocation"]["uri"] for place in entry.get("locations", [])],
            "suppressions" in entry,
        )
        for entry in found["results"]
    ] == [
        ("error", "octo/shop#1", ["package-lock.json"], False),
        ("warning", "octo/shop#3", ["app%20dir/gr%C3%B6%C3%9Fe.lock"], False),
        ("note", "octo/shop#2", [], True),
    ]
    assert len(found["tool"]["driver"]["rules"]) == 1
    assert found["invocations"] == [
        {
            "executionSuccessful": True,
            "startTimeUtc": "2026-11-30T17:14:00.123Z",
            "endTimeUtc": "2026-11-30T17:14:02.123Z",
        }
    ]


def test_no_alerts_and_not_measured_read_differently() -> None:
    none = build_result(info(), RunConfig(), [RepositoryRun(repository="octo/shop", plan=plan())])
    error = RunError(repository="octo/shop", stage="fetch", message="alerts are switched off")
    unmeasured = build_result(
        info(), RunConfig(), [RepositoryRun(repository="octo/shop", measured=False, errors=(error,))]
    )

    for render in (render_html, render_markdown):
        assert render(none) != render(unmeasured)
        assert "alerts are switched off" in render(unmeasured)


def test_forms_are_the_same_for_the_same_result() -> None:
    for render in (render_html, render_markdown, render_sarif):
        assert render(result()) == render(result())


def test_pull_request_mode_says_pending_merge() -> None:
    built = result().model_copy(update={"config": RunConfig(mode="fix-and-pr")})
    fixed = built.model_copy(
        update={"alerts": tuple(item.model_copy(update={"disposition": "fixed"}) for item in built.alerts)}
    )

    assert "pending merge" in render_markdown(fixed)
    assert "pending merge" in render_html(fixed)


def test_checkout_is_named_in_the_result() -> None:
    checkout = Checkout(path="/src/shop", remote="https://github.com/octo/shop", branch="main", head="a" * 40)
    run = RepositoryRun(repository="octo/shop", plan=plan(), checkout=checkout)

    built = build_result(info(), RunConfig(), [run])

    assert built.checkout is not None
    assert built.checkout.path == "/src/shop"


def test_forms_for_people_say_what_they_leave_out() -> None:
    numbers = range(1, 2101)
    run = RepositoryRun(
        repository="octo/shop",
        alerts=tuple(alert(number) for number in numbers),
        plan=plan(*(fix(number, "7.5.2") for number in numbers)),
    )
    large = build_result(info(), RunConfig(), [run])

    assert "The 100 least severe ones" in render_html(large)
    assert "The 1100 least severe ones" in render_markdown(large)
    assert len(json.loads(render_sarif(large))["runs"][0]["results"]) == 2100
