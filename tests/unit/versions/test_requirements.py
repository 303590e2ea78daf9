"""What requirements admit, where no tool's record says it; and what is no requirement."""

import pickle

import pytest

from dependfix_core.versions import (
    GRAMMARS,
    Answer,
    NpmSpecifier,
    Requirement,
    Unparsable,
    npm_specifier,
    parse_requirement,
)


def parsed(grammar: str, text: str) -> Requirement:
    found = parse_requirement(grammar, text)
    assert isinstance(found, Requirement)
    return found


def admitted(grammar: str, text: str, pool: list[str]) -> list[str]:
    return [version for version in pool if parsed(grammar, text).admits(version).is_yes]


def test_grammars_are_the_ecosystems_and_their_dialects() -> None:
    assert set(GRAMMARS) == {
        *("npm", "pip", "rust", "composer", "rubygems", "nuget", "maven", "erlang", "pub", "go", "actions"),
        *("pep440", "poetry", "cargo", "gradle", "hex"),
    }
    assert isinstance(parse_requirement("swift", "1.0.0"), Unparsable)
    assert isinstance(parse_requirement("npm", "^1.0.0 " * 1000), Unparsable)


NUGET = ["0.9.0", "1.0.0-beta", "1.0.0", "1.0.0.1", "1.2.0", "2.0.0-rc", "2.0.0", "3.0.0"]


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("1.0", ["1.0.0", "1.0.0.1", "1.2.0", "2.0.0-rc", "2.0.0", "3.0.0"]),
        ("[1.0]", ["1.0.0"]),
        ("[1.0, 2.0)", ["1.0.0", "1.0.0.1", "1.2.0", "2.0.0-rc"]),
        ("(1.0,2.0]", ["1.0.0.1", "1.2.0", "2.0.0-rc", "2.0.0"]),
        ("(,1.0]", ["0.9.0", "1.0.0-beta", "1.0.0"]),
        ("[1.2,)", ["1.2.0", "2.0.0-rc", "2.0.0", "3.0.0"]),
        ("1.*", ["1.0.0", "1.0.0.1", "1.2.0"]),
        ("1.0.*", ["1.0.0", "1.0.0.1"]),
        ("*", NUGET),
        ("1.0.0-*", ["1.0.0-beta", "1.0.0"]),
        ("[1.*, 2.0.0)", ["1.0.0", "1.0.0.1", "1.2.0", "2.0.0-rc"]),
    ],
)
def test_nuget(text: str, versions: list[str]) -> None:
    """https://learn.microsoft.com/en-us/nuget/concepts/package-versioning"""
    assert admitted("nuget", text, NUGET) == versions


MAVEN = ["0.9", "1.0-SNAPSHOT", "1.0", "1.0.RELEASE", "1.2", "1.33", "2.0-rc1", "2.0", "3.0"]


@pytest.mark.parametrize(
    ("grammar", "text", "versions"),
    [
        ("maven", "1.0", ["1.0", "1.0.RELEASE"]),
        ("maven", "[1.0]", ["1.0", "1.0.RELEASE"]),
        ("maven", "[1.0,2.0)", ["1.0", "1.0.RELEASE", "1.2", "1.33", "2.0-rc1"]),
        ("maven", "(,1.0],[2.0,)", ["0.9", "1.0-SNAPSHOT", "1.0", "1.0.RELEASE", "2.0", "3.0"]),
        ("maven", "(1.0,)", ["1.2", "1.33", "2.0-rc1", "2.0", "3.0"]),
        ("gradle", "1.2", ["1.2"]),
        ("gradle", "1.+", ["1.0", "1.0.RELEASE", "1.2", "1.33", "2.0-rc1"]),
        ("gradle", "+", MAVEN),
        ("gradle", "[1.0, 2.0[", ["1.0", "1.0.RELEASE", "1.2", "1.33", "2.0-rc1"]),
        ("gradle", "]1.0,1.33]", ["1.2", "1.33"]),
        ("gradle", "1.2!!", ["1.2"]),
        ("gradle", "[1.0,1.33[!!1.2", ["1.0", "1.0.RELEASE", "1.2"]),
    ],
)
def test_maven_and_gradle(grammar: str, text: str, versions: list[str]) -> None:
    assert admitted(grammar, text, MAVEN) == versions


def test_bare_maven_version_is_a_wish_and_a_range_is_not() -> None:
    texts = [("maven", "1.0"), ("maven", "[1.0]"), ("gradle", "1.0"), ("gradle", "1.0!!"), ("nuget", "1.0")]

    assert [parsed(*entry).is_soft for entry in texts] == [True, False, True, False, False]


PUB = ["0.0.3", "0.0.4", "0.1.0", "1.2.3-dev", "1.2.3", "1.9.0", "2.0.0-dev.1", "2.0.0-dev.2", "2.0.0", "2.0.0+1"]


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("^1.2.3", ["1.2.3", "1.9.0"]),
        ("^0.0.3", ["0.0.3", "0.0.4"]),
        ("^2.0.0-dev.1", ["2.0.0-dev.1", "2.0.0-dev.2", "2.0.0", "2.0.0+1"]),
        (">=1.2.3 <2.0.0", ["1.2.3", "1.9.0"]),
        (">=2.0.0-dev.1 <2.0.0", ["2.0.0-dev.1", "2.0.0-dev.2"]),
        ("<=2.0.0", ["0.0.3", "0.0.4", "0.1.0", "1.2.3-dev", "1.2.3", "1.9.0", "2.0.0-dev.1", "2.0.0-dev.2", "2.0.0"]),
        (">1.9.0", ["2.0.0-dev.1", "2.0.0-dev.2", "2.0.0", "2.0.0+1"]),
        ("2.0.0", ["2.0.0"]),
        ("any", PUB),
        ("", PUB),
    ],
)
def test_pub(text: str, versions: list[str]) -> None:
    """https://dart.dev/tools/pub/dependencies#version-constraints, and `pub_semver` for the pre-releases"""
    assert admitted("pub", text, PUB) == versions


@pytest.mark.parametrize(
    ("grammar", "text", "versions"),
    [
        ("go", "v1.2.3", ["v1.2.3", "1.3.0", "2.0.0+incompatible"]),
        ("actions", "v1", ["v1.2.3", "1.3.0"]),
        ("actions", "v1.2", ["v1.2.3"]),
        ("actions", "v1.2.3", ["v1.2.3"]),
    ],
)
def test_go_and_actions(grammar: str, text: str, versions: list[str]) -> None:
    pool = ["v1.2.0-rc.1", "v1.2.3", "1.3.0", "2.0.0+incompatible"]

    assert admitted(grammar, text, pool) == versions


@pytest.mark.parametrize(
    ("text", "versions", "installed"),
    [
        (">=1.0", ["1.0", "1.0.post1", "2.0"], ["1.0", "1.0.post1", "2.0rc1", "2.0"]),
        (">1.0", ["2.0"], ["2.0rc1", "2.0"]),
        ("<2.0", ["1.0", "1.0.post1"], ["1.0rc1", "1.0", "1.0.post1"]),
        ("==1.*", ["1.0", "1.0.post1"], ["1.0rc1", "1.0", "1.0.post1"]),
        ("~=1.0", ["1.0", "1.0.post1"], ["1.0", "1.0.post1"]),
        (">=1.0rc1", ["1.0rc1", "1.0", "1.0.post1", "2.0rc1", "2.0"], ["1.0rc1", "1.0", "1.0.post1", "2.0rc1", "2.0"]),
        ("===1.0", ["1.0"], ["1.0"]),
        ("===1.0.0", [], []),
        ("==1.0,!=1.0.post1", ["1.0"], ["1.0"]),
        ("", ["1.0", "1.0.post1", "2.0"], ["1.0rc1", "1.0", "1.0.post1", "2.0rc1", "2.0"]),
    ],
)
def test_python_prereleases_count_where_named_or_installed(
    text: str, versions: list[str], installed: list[str]
) -> None:
    pool = ["1.0rc1", "1.0", "1.0.post1", "2.0rc1", "2.0"]
    requirement = parsed("pip", text)

    assert [entry for entry in pool if requirement.admits(entry).is_yes] == versions
    assert [entry for entry in pool if requirement.admits(entry, include_prereleases=True).is_yes] == installed


@pytest.mark.parametrize(
    ("grammar", "text", "reason"),
    [
        ("npm", "latest", "tag"),
        ("npm", "workspace:^", "workspace"),
        ("npm", "catalog:react", "catalog"),
        ("npm", "file:../a", "file"),
        ("npm", "git+ssh://git@host/a.git#v1", "git"),
        ("npm", "https://host/a.tgz", "url"),
        ("npm", ">=1.2.3.4", "no range"),
        ("nuget", "$(Version)", "dynamic"),
        ("maven", "${spring.version}", "dynamic"),
        ("maven", "RELEASE", "dynamic"),
        ("gradle", "latest.release", "dynamic"),
        ("actions", "main", "dynamic"),
        ("actions", "8f4b7f84864484a7bf31766abe9204da3cbe65b3", "dynamic"),
    ],
)
def test_other_texts_say_what_they_are(grammar: str, text: str, reason: str) -> None:
    found = parse_requirement(grammar, text)

    assert isinstance(found, Unparsable)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("pip", ">=1.0;python_version<'3'"),
        ("pip", "1.0"),
        ("pip", "==1.0-SNAPSHOT"),
        ("poetry", ">=1.0 and <2"),
        ("cargo", "1.2.3.4"),
        ("cargo", "*, 1"),
        ("composer", "~> 1.2"),
        ("rubygems", "=> 1.0"),
        ("nuget", "[1.0,2.0"),
        ("nuget", "(1.0)"),
        ("maven", "[1.0,2.0"),
        ("maven", "[1.0],x"),
        ("hex", ">= 1.0"),
        ("hex", "1.0.0, 2.0.0"),
        ("pub", "1.0"),
        ("go", "latest"),
    ],
)
def test_broken_requirements_are_values(grammar: str, text: str) -> None:
    assert isinstance(parse_requirement(grammar, text), Unparsable)


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("^1.2.3", NpmSpecifier("range", None, 0)),
        ("", NpmSpecifier("range", None, 0)),
        ("next", NpmSpecifier("tag", None, 0)),
        ("npm:lodash@^4", NpmSpecifier("range", "lodash", 11)),
        ("npm:@babel/core@7.x", NpmSpecifier("range", "@babel/core", 16)),
        ("npm:@babel/core", NpmSpecifier("range", "@babel/core", 15)),
        ("npm:lodash@next", NpmSpecifier("tag", "lodash", 11)),
        ("npm:^4.17.0", NpmSpecifier("range", None, 4)),
        ("workspace:*", NpmSpecifier("workspace", None, 0)),
        ("catalog:", NpmSpecifier("catalog", None, 0)),
        ("link:../x", NpmSpecifier("link", None, 0)),
        ("portal:../x", NpmSpecifier("portal", None, 0)),
        ("patch:x@npm:1.0.0#./x.patch", NpmSpecifier("patch", None, 0)),
        ("../x", NpmSpecifier("file", None, 0)),
        ("owner/repo#semver:^1", NpmSpecifier("git", None, 0)),
        ("github:owner/repo", NpmSpecifier("git", None, 0)),
        ("git@host:owner/repo.git", NpmSpecifier("git", None, 0)),
        ("https://host/owner/repo.git#v1", NpmSpecifier("git", None, 0)),
        ("https://host/x-1.0.0.tgz", NpmSpecifier("url", None, 0)),
    ],
)
def test_npm_specifiers(text: str, specifier: NpmSpecifier) -> None:
    assert npm_specifier(text) == specifier


def test_alias_is_kept_and_spans_count_in_the_whole_text() -> None:
    requirement = parsed("npm", "npm:lodash@>=4.0.0 <5")

    assert requirement.alias == "lodash"
    assert [requirement.text[slice(*part.span)] for part in requirement.comparators] == [">=4.0.0", "<5"]
    assert [part.operator for part in requirement.comparators] == [">=", "<"]
    assert requirement.admits("4.17.21") is Answer.YES


def test_what_two_dependents_ask_for() -> None:
    both = parsed("npm", "^4.17.0 || ^5").intersect(parsed("npm", ">=4.17.15 <5.2.0"))
    pool = ["4.17.14", "4.17.15", "5.1.0", "5.2.0", "4.18.0-rc.1"]

    assert [entry for entry in pool if both.admits(entry).is_yes] == ["4.17.15", "5.1.0"]
    assert both.intersect(parsed("npm", "^3").allowed).is_empty
    with pytest.raises(ValueError, match="nothing in common"):
        both.intersect(parsed("pip", ">=1").allowed)


def test_prerelease_counts_only_if_both_dependents_name_its_release() -> None:
    first, second = parsed("npm", ">=1.0.0-rc.1"), parsed("npm", "<2.0.0")

    assert first.admits("1.0.0-rc.2") is Answer.YES
    assert first.intersect(second).admits("1.0.0-rc.2") is Answer.NO
    assert first.intersect(parsed("npm", "^1.0.0-rc.2")).admits("1.0.0-rc.2") is Answer.YES


def test_unreadable_or_incomparable_version_is_unknown() -> None:
    assert parsed("npm", "^1").admits("1.2.3.4") is Answer.UNKNOWN
    assert parsed("composer", "^1.0").admits("dev-main") is Answer.UNKNOWN
    assert parsed("composer", "dev-main").admits("dev-main") is Answer.YES


@pytest.mark.parametrize(("grammar", "text"), [("npm", "^1 || 2.x"), ("maven", "[1.0,2.0)"), ("pip", "~=1.4,!=1.5")])
def test_requirements_pickle(grammar: str, text: str) -> None:
    requirement = parsed(grammar, text)
    again = pickle.loads(pickle.dumps(requirement))  # noqa: S301 - our own bytes

    assert again == requirement
    assert again.allowed.scheme is requirement.allowed.scheme


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("composer", "1.0-beta" + "1" * 3000),
        ("composer", "1.0-beta" + "1-1" * 80 + "!"),
        ("composer", "1.0" + " " * 3900 + ",as"),
        ("npm", "1 - " + " " * 3900 + "x"),
        ("npm", "1.0 " + "|" * 3900),
        ("nuget", "[1," + " " * 3900),
        ("poetry", "1.0 " + "||" * 1900 + ","),
        ("rubygems", "1." + "a-" * 1900 + "!"),
    ],
)
def test_hostile_texts_are_answered_soon(grammar: str, text: str) -> None:
    """A pattern that tries all ways to split these would run for years."""
    assert isinstance(parse_requirement(grammar, text), Unparsable | Requirement)
