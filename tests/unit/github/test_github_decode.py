import gc
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from dependfix_core.collector import collector_paused
from dependfix_core.connection import AUTHENTICATION_HINT
from dependfix_core.errors import DependfixError, NetworkError
from dependfix_core.github import Asked, Failure, TokenKind, classify, classify_graphql, error_of
from dependfix_core.github.decode import read_alert, read_alerts
from fakes.github_server import TOKEN, corpus, error, error_body, errors

NOW = 1_796_000_000.0
ASKED = Asked(purpose="alerts", repository="octo-org/octo-shop", token_kind=TokenKind.CLASSIC, secrets=(TOKEN,))

CODES = {
    "no_token": "auth_missing",
    "bad_token": "auth_denied",
    "sso_required": "permission_denied",
    "missing_permission": "permission_denied",
    "missing_scope": "permission_denied",
    "user_not_allowed": "permission_denied",
    "org_policy": "policy_blocked",
    "blocked": "policy_blocked",
    "alerts_disabled": "alerts_disabled",
    "archived": "archived",
    "not_found": "not_found",
    "rate_limited": "rate_limited",
    "rate_limited_secondary": "rate_limited",
    "server_error": "github_error",
    "client_bug": "github_error",
    "invalid_parameter": "invalid_arguments",
    "conflict": "conflict",
    "already_exists": "already_exists",
    "nothing_to_do": "nothing_to_do",
}
REFUSALS = [entry for entry in errors() if entry["class"] not in ("redirect", "not_modified")]


def failure(entry: Mapping[str, Any]) -> Failure:
    body = error_body(dict(entry))
    found = classify(entry["status"], entry["headers"], body, now=NOW)
    if entry["status"] == 200:
        found = classify_graphql(entry["headers"], body, now=NOW)
    assert found is not None
    return found


@pytest.mark.parametrize("entry", REFUSALS, ids=lambda entry: entry["id"])
def test_every_recorded_refusal_has_its_class_and_code(entry: dict[str, Any]) -> None:
    found = failure(entry)
    raised = error_of(found, ASKED)

    assert found.kind == entry["class"]
    assert raised.code == CODES[entry["class"]]
    assert raised.hint
    assert raised.details["status"] == entry["status"]
    assert raised.details["requestId"] == entry["headers"]["x-github-request-id"]
    assert raised.retryable is (entry["retry"] != "never")
    assert pickle.loads(pickle.dumps(raised)).to_dict() == raised.to_dict()  # noqa: S301  # our own bytes


def test_every_recorded_answer_is_covered() -> None:
    others = {entry["id"]: entry["class"] for entry in errors() if entry not in REFUSALS}

    assert len(errors()) == 51
    assert others == {"renamed-301": "redirect", "renamed-307": "redirect", "304": "not_modified"}


@pytest.mark.parametrize(
    ("identifier", "wait"),
    [
        ("primary", 1801),
        ("primary-429", 1801),
        ("secondary", 60),
        ("secondary-429", 60),
        ("secondary-noretry", None),
        ("secondary-long", 3600),
        ("503", 1),
        ("500", None),
    ],
)
def test_seconds_to_wait_are_those_of_the_answer(identifier: str, wait: int | None) -> None:
    assert error_of(failure(error(identifier)), ASKED).retry_after_s == wait


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("identifier", ["primary", "secondary", "secondary-noretry"])
def test_both_limits_come_with_both_statuses(identifier: str, status: int) -> None:
    entry = {**error(identifier), "status": status}

    assert failure(entry).kind == error(identifier)["class"]


def test_clock_of_the_server_counts_for_a_reset() -> None:
    headers = {**error("primary")["headers"], "date": "Mon, 30 Nov 2026 01:23:00 GMT"}
    found = classify(403, headers, error_body(error("primary")), now=0.0)

    assert found is not None
    assert found.wait_s == 21.0
    assert error_of(found, ASKED).details["resetsAt"] == "2026-11-30T01:23:20Z"


def test_used_up_limit_answers_before_everything_else() -> None:
    entry = error("primary")
    body = json.dumps({"message": "API rate limit exceeded. Dependabot alerts are disabled for this repository."})
    found = classify(403, entry["headers"], body.encode(), now=NOW)

    assert found is not None
    assert found.kind == "rate_limited"


@pytest.mark.parametrize("status", [401, 403, 404, 407, 429])
def test_refusal_without_a_request_id_is_not_githubs(status: int) -> None:
    found = classify(status, {"content-type": "text/html"}, b"<h1>Blocked by the sandbox</h1>", now=NOW)

    assert found is not None
    raised = error_of(found, ASKED)
    assert (type(raised), raised.code, raised.retryable) == (NetworkError, "network", False)
    assert "Blocked by the sandbox" in raised.message
    assert "scope" not in raised.hint


def test_name_of_an_organisation_is_no_class() -> None:
    message = "`was-archived-org` forbids access via a personal access token (classic)."
    found = classify(403, error("404")["headers"], json.dumps({"message": message}).encode(), now=NOW)

    assert found is not None
    assert found.kind == "org_policy"


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("sso", "https://github.com/orgs/octo-org/sso?authorization_request=AZSCKL4U8YQW1MRAPLE0"),
        ("fgpat", "'Dependabot alerts: read'"),
        ("integration", "vulnerability-alerts: read"),
        ("scope", "security_events"),
        ("not-authorized", "security manager"),
        ("404", "may not see"),
        ("classic-forbidden", "fine-grained"),
        ("pat-lifetime", "shorter lifetime"),
        ("ip-allow-list", "address"),
        ("oauth-restricted", "approve the app"),
        ("actions-no-pr", "Allow GitHub Actions"),
        ("451", "https://github.com/github/dmca/blob/master/2024/02/2024-02-01-example.md"),
        ("primary", "01:23:20 UTC"),
        ("secondary", "60 s"),
        ("write-no-permission", "'Contents: write' or 'Contents: write' and 'Workflows: write'"),
        ("401-anonymous", AUTHENTICATION_HINT),
    ],
)
def test_hint_names_what_a_person_can_do(identifier: str, words: str) -> None:
    assert words in error_of(failure(error(identifier)), ASKED).hint


def test_missing_token_has_the_documented_text() -> None:
    assert error_of(failure(error("401-anonymous")), ASKED).message == "GITHUB_TOKEN not set"


def test_details_say_what_is_needed_and_what_the_token_has() -> None:
    assert error_of(failure(error("scope")), ASKED).details == {
        "status": 403,
        "message": "You are not authorized to perform this operation.",
        "requestId": "F0A1:01234:6B0C1D2E",
        "needed": "public_repo, repo, security_events",
        "scopes": "read:org",
        "documentationUrl": "https://docs.github.com/rest/dependabot/alerts#list-dependabot-alerts-for-a-repository",
        "repository": "octo-org/octo-shop",
    }


def test_answer_that_repeats_the_token_does_not_show_it() -> None:
    body = json.dumps({"message": f"Bad token {TOKEN}", "documentation_url": f"https://x/{TOKEN}"}).encode()
    headers = {**error("401")["headers"], "x-accepted-github-permissions": TOKEN}
    found = classify(401, headers, body, now=NOW)

    assert found is not None
    raised = error_of(found, ASKED)
    assert TOKEN not in json.dumps(raised.to_dict())
    assert TOKEN not in str(raised)
    assert TOKEN not in repr(ASKED)


def test_hostile_message_is_one_clean_line() -> None:
    body = json.dumps(
        {"message": "\x1b[31mred\x00\u202e\nnext line " + "x" * 5000, "documentation_url": "javascript:1"}
    )
    found = classify(404, error("404")["headers"], body.encode(), now=NOW)

    assert found is not None
    raised = error_of(found, ASKED)
    assert raised.details["message"].startswith("red next line xxx")
    assert len(raised.details["message"]) <= 400
    assert "documentationUrl" not in raised.details


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"{", b'{"a":' * 100_000, b"\xff\xfe", b'{"message": null, "errors": "bad"}']
)
def test_strange_body_does_not_hide_the_status(body: bytes) -> None:
    found = classify(404, error("404")["headers"], body, now=NOW)

    assert found is not None
    assert error_of(found, ASKED).code == "not_found"


@pytest.mark.parametrize(
    ("status", "code"), [(200, None), (204, None), (304, None), (418, "github_error"), (599, "github_error")]
)
def test_other_statuses(status: int, code: str | None) -> None:
    found = classify(status, {"x-github-request-id": "1"}, b"", now=NOW)

    assert (error_of(found, ASKED).code if found is not None else None) == code


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("FORBIDDEN", "permission_denied"),
        ("NOT_FOUND", "not_found"),
        ("RATE_LIMITED", "rate_limited"),
        ("", "github_error"),
    ],
)
def test_graphql_failures_have_codes_too(kind: str, code: str) -> None:
    body = json.dumps({"errors": [{"type": kind, "message": "no"}]}).encode()
    found = classify_graphql({}, body, now=NOW)

    assert found is not None
    assert error_of(found, ASKED).code == code
    assert classify_graphql({}, b'{"data": {}}', now=NOW) is None


def parse(items: list[Any]) -> tuple[list[tuple[int, tuple[str, ...]]], int]:
    page = read_alerts(json.dumps(items).encode(), "application/json", ASKED)
    return [(read.wire["number"], read.unreadable) for read in page.alerts], len(page.lost)


def test_whole_page_is_read() -> None:
    alerts = corpus("octo-shop")

    assert parse(alerts) == ([(alert["number"], ()) for alert in alerts], 0)


def test_strange_item_costs_only_its_strange_fields() -> None:
    good, strange = corpus("octo-shop")[:2]
    strange["dependency"] = "package-lock.json"
    strange["security_advisory"]["cvss_severities"]["cvss_v3"]["score"] = {"base": 7}
    strange["security_advisory"]["vulnerabilities"].append(3)
    strange["assignees"] = {"login": "octocat"}

    read, lost = parse([good, strange])

    assert read == [
        (good["number"], ()),
        (
            strange["number"],
            (
                "assignees",
                "dependency",
                "security_advisory.cvss_severities.cvss_v3.score",
                "security_advisory.vulnerabilities",
            ),
        ),
    ]
    assert lost == 0


@pytest.mark.parametrize("item", [None, "alert", 7, [], {}, {"number": "many"}, {"number": None}])
def test_item_without_a_number_is_reported_and_the_others_stay(item: object) -> None:
    good = corpus("octo-shop")[0]

    read, lost = parse([good, item])

    assert (read, lost) == ([(good["number"], ())], 1)


def test_number_as_text_is_a_number() -> None:
    assert parse([{"number": "40000000001"}]) == ([(40000000001, ())], 0)


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"alerts": []}', b"null", b"", b"[" * 100_000])
def test_page_that_is_no_list_is_not_githubs(body: bytes) -> None:
    with pytest.raises(NetworkError) as caught:
        read_alerts(body, "text/html", ASKED)

    assert caught.value.details["kind"] == "not-github"
    assert caught.value.retryable is False


def test_each_field_may_be_missing_or_strange() -> None:
    def places(node: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        if not isinstance(node, dict):
            return []
        return [place for key, child in node.items() for place in [(*path, key), *places(child, (*path, key))]]

    for place in places(corpus("octo-api")[1]):
        for change in ("remove", None, "strange", 7, [1], {"a": 1}):
            alert = corpus("octo-api")[1]
            node = alert
            for key in place[:-1]:
                node = node[key]
            if change == "remove":
                del node[place[-1]]
            else:
                node[place[-1]] = change
            read = read_alert(alert)
            assert (read is None) == (place == ("number",) and change != 7)


def test_collector_runs_again_afterwards() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()

    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_errors_are_one_tree() -> None:
    assert all(isinstance(error_of(failure(entry), ASKED), DependfixError) for entry in REFUSALS)
