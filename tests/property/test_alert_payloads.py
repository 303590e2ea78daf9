"""Whatever GitHub, a proxy or an enemy puts into an alert, reading it gives an alert or says that it is none."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dependfix_core.errors import NetworkError
from dependfix_core.github import AlertQuery, Asked, classify, error_of
from dependfix_core.github.decode import read_alert, read_alerts
from dependfix_core.github.normalise import alert_of, problems_of
from fakes.github_server import corpus

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ALERTS = corpus("octo-weird") + corpus("octo-shop")


def places(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, child in children for place in ((*path, key), *places(child, (*path, key)))]


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_alert_with_strange_values_keeps_its_number(data: st.DataObject) -> None:
    alert = json.loads(json.dumps(data.draw(st.sampled_from(ALERTS))))
    number = alert["number"]
    for place in data.draw(st.lists(st.sampled_from(places(alert)), max_size=4)):
        node: Any = alert
        try:
            for key in place[:-1]:
                node = node[key]
            if place != ("number",):
                node[place[-1]] = data.draw(ANY_JSON)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away

    read = read_alert(alert)

    assert read is not None
    found = alert_of(read, "octo-org/octo-shop")
    assert found.number == number
    assert AlertQuery(states=()).matches(found)
    assert all(problem.number == number for problem in problems_of(found))


@given(items=st.lists(ANY_JSON, max_size=4))
@settings(max_examples=100, deadline=None)
def test_every_item_of_a_page_is_an_alert_or_a_reported_loss(items: list[Any]) -> None:
    page = read_alerts(json.dumps(items).encode(), "application/json", Asked())

    assert len(page.alerts) + len(page.lost) == len(items)


@given(body=st.binary(max_size=200) | ANY_JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=150, deadline=None)
def test_page_of_anything_is_a_page_or_a_network_fault(body: bytes) -> None:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, list):
        page = read_alerts(body, "text/plain", Asked())
        assert len(page.alerts) + len(page.lost) == len(value)
    else:
        with pytest.raises(NetworkError):
            read_alerts(body, "text/plain", Asked())


@given(
    status=st.integers(min_value=300, max_value=599),
    headers=st.dictionaries(
        st.sampled_from(
            ["x-github-request-id", "retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "date", "x-github-sso"]
        ),
        st.sampled_from(
            ["0", "1", "60", "-1", "999999999999", "x", "", "required; url=https://h/", "Mon, 30 Nov 2026"]
        ),
    ),
    body=st.binary(max_size=100) | ANY_JSON.map(lambda value: json.dumps({"message": value, "errors": value}).encode()),
)
@settings(max_examples=150, deadline=None)
def test_every_refusal_is_one_error_with_a_finite_wait(status: int, headers: dict[str, str], body: bytes) -> None:
    failure = classify(status, headers, body, now=1_796_000_000.0)

    assert (failure is None) == (status == 304)
    if failure is not None:
        error = error_of(failure, Asked())
        assert error.message
        assert error.hint
        assert json.dumps(error.to_dict())
        assert error.retry_after_s is None or error.retry_after_s >= 0
