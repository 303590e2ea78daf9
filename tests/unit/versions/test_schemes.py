"""What each ecosystem's versions mean: order, pre-releases, lines, names."""

import pickle

import pytest

from dependfix_core.errors import VersionError
from dependfix_core.versions import ECOSYSTEMS, Answer, Unparsable, Version, normalise_name, same_name, scheme_for


def parsed(ecosystem: str, text: str) -> Version:
    scheme = scheme_for(ecosystem)
    assert scheme is not None
    return scheme.parse(text)


def compared(ecosystem: str, left: str, right: str) -> int | None:
    scheme = scheme_for(ecosystem)
    assert scheme is not None
    return scheme.compare(scheme.parse(left), scheme.parse(right))


def test_every_ecosystem_of_github_has_a_scheme_and_no_other() -> None:
    names = ["npm", "pip", "maven", "go", "rubygems", "composer", "nuget", "rust", "erlang", "pub", "swift", "actions"]

    assert sorted(ECOSYSTEMS) == sorted(names)
    assert [scheme.name for name in names if (scheme := scheme_for(name.upper()))] == names
    assert (scheme_for("other"), scheme_for(""), scheme_for("hackage")) == (None, None, None)


ASCENDING = [
    ("npm", ["0.0.0-0", "0.0.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11"]),
    ("npm", ["1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "99999999999999999999.0.0"]),
    (
        "go",
        ["v0.0.0-20190101000000-8f96da9f5d5e", "v0.0.0-20220101000000-1f96da9f5d5e", "v0.1.0", "2.8.1+incompatible"],
    ),
    ("go", ["3.0.0-20210107192922-496545a6307b", "v3.0.0-20220521103104-8f96da9f5d5e", "3.0.0", "v3.0.1"]),
    ("pub", ["1.0.0-a", "1.0.0-a+1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+b", "1.0.1"]),
    ("nuget", ["1.0-alpha", "1.0.0-BETA", "1.0.0-rc.9", "1.0.0-rc.10", "01.0", "1.0.0.1", "1.0.1", "2"]),
    (
        "pip",
        ["1.0.dev1", "1.0a1.dev1", "1.0a1", "1.0rc1", "1.0", "1.0+local", "1.0.post1", "1.1", "2022.12.7", "1!0.1"],
    ),
    ("rubygems", ["1.a", "1.0.0.rc1", "1.0", "1.0.1.pre", "1.0.1", "1.13.9-x86_64-linux", "1.13.10"]),
    (
        "composer",
        ["1.0-dev", "1.0-alpha", "1.0a2", "1.0-beta", "1.0-RC1", "1.0", "1.0-p1", "1.0.0.1", "1.x-dev", "2.0"],
    ),
    ("maven", ["1-alpha-1", "1-beta", "1-M1", "1-rc", "1-SNAPSHOT", "1.0", "1-sp", "1-foo", "1-1", "1.0.1", "1.10"]),
    ("maven", ["2.12.6", "2.12.6.1", "2.12.7", "2.13.0-rc1", "2.13.0", "2.13.2.1", "2.15.0"]),
    ("actions", ["v1", "v1.0.1", "2", "v2.1", "v40.1.2", "41"]),
    ("swift", ["v4.89.3", "4.90.0"]),
]


@pytest.mark.parametrize(("ecosystem", "texts"), ASCENDING)
def test_versions_ascend(ecosystem: str, texts: list[str]) -> None:
    signs = [[compared(ecosystem, left, right) for right in texts] for left in texts]

    assert signs == [[(at > other) - (at < other) for other in range(len(texts))] for at in range(len(texts))]


@pytest.mark.parametrize(
    ("ecosystem", "left", "right"),
    [
        ("npm", "1.0.0+a", "v1.0.0+b"),
        ("npm", "=v1.2.3", "1.2.3"),
        ("go", "v2.8.1", "2.8.1+incompatible"),
        ("pip", "2022.12.07", "2022.12.7"),
        ("pip", "1.0", "1.0.0"),
        ("pip", "1.0-1", "1.0.post1"),
        ("pip", "1.0.0-preview_2", "1.0rc2"),
        ("nuget", "1.0", "1.0.0.0"),
        ("nuget", "1.0.0-Beta+x", "1.0-beta"),
        ("rubygems", "1.0.0", "1"),
        ("rubygems", "1.0.a", "1.a"),
        ("rubygems", "1.13.9-java", "1.13.9"),
        ("rubygems", "1.0-1", "1.0.pre.1"),
        ("composer", "v1.2", "1.2.0.0"),
        ("composer", "1.0-pl1", "1.0-patch1"),
        ("composer", "2010-01-02", "2010:01:02-stable"),
        ("composer", "dev-main", "dev-main"),
        ("maven", "1.0.RELEASE", "1"),
        ("maven", "1.0-ga", "1.0.Final"),
        ("maven", "1.0-a1", "1.0-alpha-1"),
        ("maven", "1-cr1", "1-rc1"),
        ("actions", "v4", "4.0.0"),
    ],
)
def test_different_texts_are_one_version(ecosystem: str, left: str, right: str) -> None:
    assert compared(ecosystem, left, right) == 0
    assert parsed(ecosystem, left) == parsed(ecosystem, right)
    assert hash(parsed(ecosystem, left)) == hash(parsed(ecosystem, right))


@pytest.mark.parametrize(
    ("ecosystem", "text"),
    [
        ("npm", "1.2"),
        ("npm", "1.2.3.4"),
        ("npm", "01.2.3"),
        ("npm", "1.2.3-01"),
        ("npm", "latest"),
        ("npm", ""),
        ("rust", "1.0"),
        ("erlang", "1.0"),
        ("swift", "1.2.3.4"),
        ("actions", "1.2.3.4"),
        ("actions", "main"),
        ("pip", "1.0-SNAPSHOT"),
        ("pip", "2004d.x"),
        ("nuget", "1.2.3.4.5"),
        ("nuget", "$(Version)"),
        ("rubygems", "abc"),
        ("composer", "1.2.3.4.5"),
        ("maven", "${revision}"),
        ("maven", "[1.0,2.0)"),
        ("maven", "LATEST"),
        ("maven", ""),
        ("pub", "1.0"),
        ("npm", "1.0.0-" + "a" * 300),
        ("pip", "1" * 300),
        ("npm", "١.0.0"),
    ],
)
def test_what_is_no_version_is_an_error_and_never_zero(ecosystem: str, text: str) -> None:
    scheme = scheme_for(ecosystem)
    assert scheme is not None

    assert isinstance(scheme.try_parse(text), Unparsable)
    with pytest.raises(VersionError) as caught:
        scheme.parse(text)
    assert (caught.value.scheme, caught.value.text) == (ecosystem, text[:256])


@pytest.mark.parametrize(
    ("left", "right"), [("dev-main", "1.0"), ("2.0", "dev-main"), ("dev-main", "dev-other"), ("master", "1.x-dev")]
)
def test_composer_branch_is_incomparable(left: str, right: str) -> None:
    assert compared("composer", left, right) is None


@pytest.mark.parametrize(
    ("ecosystem", "prereleases", "releases"),
    [
        ("npm", ["1.0.0-rc.1", "0.0.0-0"], ["1.0.0", "1.0.0+rc.1"]),
        ("go", ["v0.0.0-20190101000000-8f96da9f5d5e"], ["v2.0.0+incompatible"]),
        ("pip", ["1.0a1", "1.0.dev1", "1.0.post1.dev2"], ["1.0", "1.0.post1", "1.0+rc1"]),
        ("nuget", ["1.0-beta"], ["1.0.0.1", "1.0+beta"]),
        ("rubygems", ["1.0.rc1", "1.0-1"], ["1.0.1", "1.0-java"]),
        ("composer", ["1.0-RC1", "1.x-dev", "dev-main", "1.0-p1-dev"], ["1.0", "1.0-p1", "1.0-stable"]),
        (
            "maven",
            ["1.0-SNAPSHOT", "1.0-M1", "1.0.RC1", "2.0-beta9", "1.0.CR2", "1.0-a1", "2.10.0.pr1", "5-preview", "1-ea"],
            ["1.0.Final", "1.0.RELEASE", "32.0.0-android", "42.2.28.jre7", "9.4.11.v20180605", "1.0.SP1", "5.1-r"],
        ),
    ],
)
def test_prereleases_are_known(ecosystem: str, prereleases: list[str], releases: list[str]) -> None:
    scheme = scheme_for(ecosystem)
    assert scheme is not None

    assert [text for text in prereleases + releases if scheme.is_prerelease(scheme.parse(text))] == prereleases


@pytest.mark.parametrize(
    ("ecosystem", "left", "right", "same"),
    [
        ("npm", "1.2.3", "1.9.0", True),
        ("npm", "1.2.3", "2.0.0", False),
        ("npm", "0.2.3", "0.2.9", True),
        ("npm", "0.2.3", "0.3.0", False),
        ("npm", "0.0.3", "0.0.3-rc.1", True),
        ("npm", "0.0.3", "0.0.4", False),
        ("npm", "2.0.0-rc.1", "2.4.0", True),
        ("pip", "2015.4.28", "2023.7.22", True),
        ("pip", "1989.1", "1990.1", False),
        ("pip", "1!1.0", "1.0", False),
        ("pip", "1!1.0", "1!1.4", True),
        ("go", "v2.8.1", "2.8.2+incompatible", True),
        ("composer", "6.0.0", "6.4.20.1", True),
        ("composer", "dev-main", "1.0", False),
        ("rubygems", "6.1.4", "6.1.7.9", True),
        ("nuget", "4.3.0", "4.3.4", True),
        ("maven", "5.2.9.RELEASE", "5.2.20.RELEASE", True),
        ("maven", "5.2.9.RELEASE", "5.2.20", False),
        ("maven", "31.1-jre", "31.1-android", False),
        ("maven", "31.0-jre", "31.1-jre", True),
        ("maven", "42.2.5.jre7", "42.2.28.jre6", False),
        ("maven", "4.3.0.redhat-1", "4.3.1.redhat-00002", True),
        ("maven", "4.3.0", "4.3.1.redhat-00002", False),
        ("maven", "2.0.28.SP1", "2.0.30.Final", True),
        ("maven", "9.3.23.v20180228", "9.3.24.v20180605", True),
        ("maven", "5.0.0.CR1", "5.0.1.Final", True),
        ("maven", "2.13.0-rc1", "2.13.4", True),
        ("maven", "2.13.4", "3.0", False),
        ("actions", "v4", "v4.1.2", True),
    ],
)
def test_lines(ecosystem: str, left: str, right: str, same: bool) -> None:
    scheme = scheme_for(ecosystem)
    assert scheme is not None

    assert scheme.same_line(scheme.parse(left), scheme.parse(right)) is same
    assert scheme.same_line(scheme.parse(right), scheme.parse(left)) is same
    if not (ecosystem == "maven" and (scheme.is_prerelease(scheme.parse(left)))):
        assert (scheme.line(scheme.parse(left)) == scheme.line(scheme.parse(right))) is same


def test_release_of_a_prerelease() -> None:
    scheme = scheme_for("npm")
    assert scheme is not None

    assert scheme.same_release(scheme.parse("1.2.0-rc.1"), scheme.parse("1.2.0"))
    assert not scheme.same_release(scheme.parse("1.2.0-rc.1"), scheme.parse("1.2.1"))


def test_sorting_does_not_depend_on_the_order_given() -> None:
    scheme = scheme_for("maven")
    assert scheme is not None
    texts = ["1.0", "1.0.0", "1-ga", "0.9", "1.10", "1.2-SNAPSHOT", "1.2"]
    versions = [scheme.parse(text) for text in texts]

    assert [entry.text for entry in scheme.sort(versions)] == [entry.text for entry in scheme.sort(reversed(versions))]
    assert [entry.text for entry in scheme.sort(versions)] == [
        "0.9",
        "1-ga",
        "1.0",
        "1.0.0",
        "1.2-SNAPSHOT",
        "1.2",
        "1.10",
    ]


@pytest.mark.parametrize(
    ("ecosystem", "name", "normal"),
    [
        ("npm", "Axios", "Axios"),
        ("pip", "Zope.Interface__x", "zope-interface-x"),
        ("nuget", "Newtonsoft.Json", "newtonsoft.json"),
        ("composer", "Symfony/HTTP-Kernel", "symfony/http-kernel"),
        ("maven", " org.apache.logging.log4j : log4j-core ", "org.apache.logging.log4j:log4j-core"),
        ("maven", "com.google.guava:guava:31.1-jre", "com.google.guava:guava"),
        ("go", "github.com/Azure/go", "github.com/Azure/go"),
        ("actions", "Actions/Download-Artifact/sub/Path", "actions/download-artifact/sub/Path"),
        ("swift", "https://github.example/Vapor/vapor.git", "github.example/vapor/vapor"),
        ("swift", "git@github.example:Vapor/vapor.git", "github.example/vapor/vapor"),
        ("rubygems", "Nokogiri", "Nokogiri"),
    ],
)
def test_names_are_normalised(ecosystem: str, name: str, normal: str) -> None:
    assert normalise_name(ecosystem, name) == normal
    assert normalise_name(ecosystem, normal) == normal


def test_npm_names_are_the_same_in_any_case() -> None:
    assert same_name("npm", "Axios", "axios")
    assert not same_name("npm", "axios", "axioss")
    assert same_name("pip", "Ruamel.YAML", "ruamel-yaml")
    assert not same_name("rubygems", "Rack", "rack")


def test_an_answer_is_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(Answer.UNKNOWN)
    assert [answer.may_be for answer in (Answer.YES, Answer.NO, Answer.UNKNOWN)] == [True, False, True]
    assert [Answer.of(value) for value in (True, False, None)] == [Answer.YES, Answer.NO, Answer.UNKNOWN]


def test_versions_pickle() -> None:
    version = parsed("maven", "1.0.RELEASE")
    again = pickle.loads(pickle.dumps(version))  # noqa: S301 - our own bytes

    assert (again, again.text) == (version, "1.0.RELEASE")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("ecosystem", ECOSYSTEMS)
@pytest.mark.parametrize("piece", ["1", "1.", "-", "-1", "1-1", "a1", ".a", "1-beta"])
def test_hostile_versions_are_answered_soon(ecosystem: str, piece: str) -> None:
    scheme = scheme_for(ecosystem)
    assert scheme is not None
    text = ("1.0-beta" + piece * 250)[:255] + "!"

    assert isinstance(scheme.try_parse(text), Unparsable | Version)
