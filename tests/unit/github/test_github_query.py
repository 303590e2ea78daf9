import pytest

from dependfix_core.errors import ArgumentError
from dependfix_core.github import AlertQuery, package_identity
from dependfix_core.model import Alert, Severity


def test_defaults_ask_for_every_open_alert() -> None:
    assert AlertQuery.of() == AlertQuery()
    assert AlertQuery().parameters() == {"state": "open"}


def test_words_of_people_are_understood() -> None:
    query = AlertQuery.of(
        state="open, DISMISSED,open",
        severity=" High ",
        ecosystem="PyPI,cargo,npm,Future-Thing",
        package="Django, @scope/pkg",
        manifest="a/package.json",
        scope="runtime",
        since="2026-11-01",
        sort="epss",
    )

    assert query == AlertQuery(
        states=("open", "dismissed"),
        severity="high",
        ecosystems=("pip", "rust", "npm", "future-thing"),
        packages=("Django", "@scope/pkg"),
        manifests=("a/package.json",),
        scope="runtime",
        since="2026-11-01T00:00:00Z",
        sort="epss",
    )
    assert query.parameters() == {
        "state": "open,dismissed",
        "severity": "critical,high",
        "ecosystem": "pip,rust,npm,future-thing",
        "package": "Django,@scope/pkg",
        "manifest": "a/package.json",
        "scope": "runtime",
    }
    assert "manifest" not in query.parameters(organization=True)


def test_everything_else_of_the_rest_api_is_sent_too() -> None:
    query = AlertQuery(
        states=(),
        relationships=("direct",),
        classifications=("malware",),
        has_patch=True,
        epss_at_least=0.5,
        assignees=("octocat", "none"),
    )

    assert query.parameters() == {
        "relationship": "direct",
        "classification": "malware",
        "has": "patch",
        "epss_percentage": ">=0.5",
        "assignee": "octocat,none",
    }


def test_name_with_a_comma_is_filtered_here_only() -> None:
    assert AlertQuery(packages=("a,b",), manifests=("c,d",), states=()).parameters() == {}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("state", "closed"),
        ("state", ""),
        ("severity", "none"),
        ("severity", ""),
        ("sort", "number"),
        ("scope", "test"),
        ("ecosystem", "npm&x=1"),
        ("since", "yesterday"),
        ("since", "2026-13-01"),
    ],
)
def test_word_without_meaning_is_refused_by_name(argument: str, value: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        AlertQuery.of(**{argument: value})

    assert caught.value.details == {"argument": argument}
    assert f"{argument}='" in caught.value.hint


@pytest.mark.parametrize(
    ("since", "moment"),
    [
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T12:00:00", "2026-11-01T12:00:00Z"),
        ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00Z"),
        (" ", None),
    ],
)
def test_since_is_a_moment_in_utc(since: str, moment: str | None) -> None:
    assert AlertQuery.of(since=since).since == moment


def test_all_states_are_no_filter() -> None:
    assert AlertQuery.of(state="open,all").states == AlertQuery.of(state="all").states == ()


def test_moderate_is_medium() -> None:
    assert AlertQuery.of(severity="moderate").severity == "medium"


def alert(**fields: object) -> Alert:
    return Alert(repository="o/r", number=1, **fields)  # type: ignore[arg-type]  # fields of the case


@pytest.mark.parametrize(
    ("query", "candidate", "kept"),
    [
        (AlertQuery(), alert(state="open"), True),
        (AlertQuery(), alert(state="fixed"), False),
        (AlertQuery(), alert(state=""), True),
        (AlertQuery(severity="low"), alert(severity=Severity.UNKNOWN), False),
        (AlertQuery(severity="all"), alert(severity=Severity.UNKNOWN), True),
        (AlertQuery(packages=("ruamel_yaml",)), alert(ecosystem="pip", package_name="Ruamel.YAML"), True),
        (AlertQuery(packages=("ruamel_yaml",)), alert(ecosystem="npm", package_name="ruamel.yaml"), False),
        (AlertQuery(packages=("Axios",)), alert(ecosystem="npm", package_name="axios"), True),
        (AlertQuery(manifests=("/a/b.json",)), alert(manifest_path="a/b.json"), True),
        (AlertQuery(scope="runtime"), alert(scope=None), True),
        (AlertQuery(scope="runtime"), alert(scope="development"), False),
        (AlertQuery(has_patch=True), alert(first_patched_version=None), False),
        (AlertQuery(epss_at_least=0.5), alert(epss=None), True),
        (AlertQuery(epss_at_least=0.5), alert(epss=0.49), False),
        (AlertQuery(assignees=("Octocat",)), alert(assignees=("octocat",)), True),
        (AlertQuery(assignees=("*",)), alert(assignees=()), False),
        (AlertQuery(assignees=("*",)), alert(assignees=("a",)), True),
        (AlertQuery(assignees=("none",)), alert(assignees=()), True),
        (AlertQuery(assignees=("none",)), alert(assignees=("a",)), False),
        (AlertQuery(since="2026-01-02T00:00:00Z"), alert(created_at="2026-01-01T00:00:00Z"), False),
        (AlertQuery(since="2026-01-02T00:00:00Z"), alert(created_at=""), True),
        (
            AlertQuery(since="2026-01-02T00:00:00Z", sort="updated"),
            alert(created_at="2026-01-01T00:00:00Z", updated_at="2026-01-03T00:00:00Z"),
            True,
        ),
    ],
)
def test_filters_hold_on_what_was_read(query: AlertQuery, candidate: Alert, kept: bool) -> None:
    assert query.matches(candidate) is kept


def test_orders_are_total() -> None:
    alerts = [
        Alert(repository="o/r", number=1, severity=Severity.LOW, epss=0.9, created_at="2026-01-01"),
        Alert(repository="o/r", number=2, severity=Severity.HIGH, epss=None, created_at="2026-01-03"),
        Alert(repository="o/r", number=3, severity=Severity.HIGH, epss=0.9, created_at="2026-01-03"),
    ]

    def order(query: AlertQuery) -> list[int]:
        forwards = [a.number for a in query.sorted(alerts)]
        assert [a.number for a in query.sorted(reversed(alerts))] == forwards
        return forwards

    assert order(AlertQuery(sort="severity")) == [2, 3, 1]
    assert order(AlertQuery(sort="epss")) == [3, 1, 2]
    assert order(AlertQuery(sort="created")) == [2, 3, 1]
    assert order(AlertQuery(sort="updated")) == [2, 3, 1]


def test_digest_tells_queries_and_repositories_apart() -> None:
    digests = {
        AlertQuery().digest("o/r"),
        AlertQuery().digest("o/other"),
        AlertQuery(severity="high").digest("o/r"),
        AlertQuery(packages=("a",)).digest("o/r"),
    }

    assert len(digests) == 4
    assert AlertQuery().digest("O/R") in digests


def test_package_identity_knows_python_names() -> None:
    assert package_identity("pip", "Ruamel__Yaml.x") == "ruamel-yaml-x"
    assert package_identity("npm", "Lodash.merge") == "lodash.merge"
