"""GitHub's ranges: grammar, membership by plain order, and the gap before the first patched version."""

import pytest

from dependfix_core.versions import Answer, Unparsable, Version, VulnerableRange, is_unsafe, scheme_for


def parsed(ecosystem: str, text: str) -> VulnerableRange:
    found = VulnerableRange.parse(ecosystem, text)
    assert isinstance(found, VulnerableRange)
    return found


def version(ecosystem: str, text: str) -> Version:
    scheme = scheme_for(ecosystem)
    assert scheme is not None
    return scheme.parse(text)


@pytest.mark.parametrize(
    ("ecosystem", "text", "inside", "outside"),
    [
        ("npm", ">= 4.0.0, < 4.17.21", ["4.0.0", "4.17.20", "4.17.21-rc.1"], ["3.10.1", "4.0.0-rc.1", "4.17.21"]),
        ("npm", "<4.17.21,>=4.0.0", ["4.17.20"], ["4.17.21"]),
        ("npm", ">=1.0.0,<2.0.0,>=1.5.0", ["1.5.0"], ["1.4.9", "2.0.0"]),
        ("npm", ">= 0", ["0.0.0", "0.0.0-alpha", "99.0.0"], []),
        ("npm", "> 0", ["0.0.0-alpha", "99.0.0"], []),
        ("npm", "= 1.2.3", ["1.2.3", "1.2.3+build"], ["1.2.3-rc.1", "1.2.4"]),
        ("npm", "< 2.0.0", ["2.0.0-rc.1"], ["2.0.0"]),
        ("rust", "= 0.20", ["0.20.0"], ["0.20.1"]),
        ("rust", ">= 0.1, < 0.2", ["0.1.45"], ["0.2.0"]),
        ("pip", ">= 2017.11.05, < 2022.12.07", ["2022.12.6", "2017.11.5"], ["2022.12.7"]),
        ("pip", ">= 1!2.0, < 1!2.4.post1", ["1!2.4"], ["2.2", "1!2.4.post1"]),
        ("pip", "< 2.0", ["2.0rc1"], ["2.0", "2.0+local"]),
        ("maven", "< 5.2.20.RELEASE", ["5.2.9.RELEASE"], ["5.2.20", "5.2.20.RELEASE"]),
        ("maven", "<= 5.3.20", ["5.3.20.RELEASE"], ["5.3.21"]),
        ("maven", ">= 1.0, < 32.0.0-android", ["31.1-jre", "31.1-android"], ["32.0.0-jre", "32.0.0-android"]),
        ("composer", ">= 6.0, < 6.4.20.1", ["6.4.20.0", "6.4.20"], ["6.4.20.1", "6.4.21"]),
        ("composer", ">= v6.0.0, < v6.20.45", ["v6.20.44"], ["6.20.45"]),
        ("rubygems", ">= 0.4, < 2.2.8.1", ["2.2.8", "2.2.8.1.rc1"], ["2.2.8.1", "2.2.9"]),
        ("rubygems", "< 1.13.9", ["1.13.8-x86_64-linux"], ["1.13.9-java"]),
        ("go", "= 2.8.1", ["2.8.1+incompatible", "v2.8.1"], ["v2.8.2"]),
        (
            "go",
            ">= 0.0.0-20220524220425-1d687d428aca, < 0.1.1-0.20221104162952-702349b0e862",
            ["v0.1.0", "v0.0.0-20220601000000-aaaaaaaaaaaa"],
            ["v0.0.0-20200101000000-aaaaaaaaaaaa", "v0.1.1"],
        ),
        ("nuget", ">= 2.0, < 4.3.4", ["4.3.0", "4.3.4-preview"], ["4.3.4.0"]),
        ("actions", "< 41", ["v40", "v40.1.2"], ["v41", "41.0.1"]),
        ("actions", "= 1", ["v1", "1.0.0"], ["v1.1"]),
    ],
)
def test_membership_is_by_plain_order(ecosystem: str, text: str, inside: list[str], outside: list[str]) -> None:
    vulnerable = parsed(ecosystem, text)

    assert {vulnerable.contains(version(ecosystem, entry)) for entry in inside} == {Answer.YES}
    assert {vulnerable.contains(version(ecosystem, entry)) for entry in outside} <= {Answer.NO}


def test_membership_of_what_has_no_order_is_unknown() -> None:
    assert parsed("composer", "< 1.8.4").contains(version("composer", "dev-main")) is Answer.UNKNOWN
    assert parsed("composer", ">= 0").contains(version("composer", "dev-main")) is Answer.YES


@pytest.mark.parametrize(
    ("ecosystem", "text"),
    [
        ("npm", ""),
        ("npm", "1.2.3"),
        ("npm", "^1.2.3"),
        ("npm", "< 1.0.0 || > 2.0.0"),
        ("npm", "< 1.2.3.4"),
        ("npm", ">= 1.0.0,"),
        ("npm", "< x"),
        ("pip", "< 1.0-SNAPSHOT"),
        ("other", "< 1.0"),
        ("npm", "< 1.0.0," * 400),
    ],
)
def test_other_texts_are_no_range(ecosystem: str, text: str) -> None:
    assert isinstance(VulnerableRange.parse(ecosystem, text), Unparsable)


@pytest.mark.parametrize(
    ("ecosystem", "text", "patched", "candidate", "answer"),
    [
        ("pip", "< 2.32.0", "2.32.2", "2.32.0", Answer.YES),
        ("pip", "< 2.32.0", "2.32.2", "2.32.1", Answer.YES),
        ("pip", "< 2.32.0", "2.32.2", "2.32.2", Answer.NO),
        ("pip", "< 2.32.0", "2.32.2", "2.31.0", Answer.NO),
        ("pip", "< 2.32.0", None, "2.32.0", Answer.NO),
        ("npm", ">= 2.0.0, <= 2.0.1", "2.0.3", "2.0.2", Answer.YES),
        ("npm", ">= 2.0.0, <= 2.0.1", "2.0.3", "1.9.0", Answer.NO),
        ("npm", ">= 2.0.0, <= 2.0.1", "2.0.3", "2.0.0-rc.1", Answer.NO),
        ("npm", "<= 8.5.1", "9.0.0", "8.6.0", Answer.NO),
        ("npm", "= 1.0.0", "1.0.2", "1.0.1", Answer.YES),
        ("npm", ">= 1.0.0", "2.0.0", "2.0.0-rc.1", Answer.NO),
        ("composer", "< 1.8.4", "1.8.6", "1.8.5", Answer.YES),
        ("composer", "< 1.8.4", "1.8.6", "dev-main", Answer.NO),
    ],
)
def test_gap_before_the_first_patched_version(
    ecosystem: str, text: str, patched: str | None, candidate: str, answer: Answer
) -> None:
    first = version(ecosystem, patched) if patched else None

    assert parsed(ecosystem, text).is_in_gap(version(ecosystem, candidate), first) is answer


def test_a_version_is_unsafe_by_any_entry_and_an_unread_one_makes_it_unknown() -> None:
    entries = [
        (parsed("npm", "< 1.6.0"), version("npm", "1.6.0")),
        (parsed("npm", ">= 1.3.2, <= 1.7.3"), version("npm", "1.7.4")),
    ]
    unread = VulnerableRange.parse("npm", "< 1.2.3.4")

    assert is_unsafe(version("npm", "1.6.0"), entries) is Answer.YES
    assert is_unsafe(version("npm", "1.8.2"), entries) is Answer.NO
    assert is_unsafe(version("npm", "1.8.2"), [*entries, (unread, None)]) is Answer.UNKNOWN
    assert is_unsafe(version("npm", "1.0.0"), [(unread, None), *entries]) is Answer.YES
    assert is_unsafe(version("npm", "1.0.0"), []) is Answer.NO


@pytest.mark.parametrize("text", [">= 4.0.0, < 4.17.21", "<= 2.0.1", "= 1.0.0", ">= 0", "> 1.0.0"])
def test_range_as_a_set_has_the_same_members(text: str) -> None:
    vulnerable = parsed("npm", text)
    pool = [version("npm", entry) for entry in ["0.0.1", "1.0.0", "1.0.1-a", "2.0.1", "4.0.0", "4.17.20", "4.17.21"]]

    assert [vulnerable.as_set().admits(entry) for entry in pool] == [vulnerable.contains(entry) for entry in pool]


def test_a_range_that_contradicts_itself_is_empty() -> None:
    assert parsed("npm", "> 2.0.0, < 1.0.0").as_set().is_empty
