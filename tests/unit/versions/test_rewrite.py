"""The table of how a requirement changes, and what is refused."""

import pytest

from dependfix_core.versions import Raised, Refusal, VulnerableRange, parse_requirement, raise_requirement


def raised(grammar: str, text: str, target: str, *vulnerable: str) -> Raised | Refusal:
    ecosystem = {"pep440": "pip", "poetry": "pip", "gradle": "maven", "cargo": "rust", "hex": "erlang"}
    ranges = [VulnerableRange.parse(ecosystem.get(grammar, grammar), entry) for entry in vulnerable]
    known = [entry for entry in ranges if isinstance(entry, VulnerableRange)]
    assert len(known) == len(ranges)
    return raise_requirement(parse_requirement(grammar, text), target, vulnerable=known)


NPM = [
    ("^4.17.15", "^4.17.21", set()),
    ("~4.17.11", "~4.17.21", set()),
    ("4.17.20", "4.17.21", set()),
    ("=4.17.20", "=4.17.21", set()),
    ("v4.17.2", "v4.17.21", set()),
    (">=4.17.0", ">=4.17.21", set()),
    (">= v4.17.2", ">= v4.17.21", set()),
    ("> 4.1.0", ">= 4.17.21", set()),
    (">=4.0.0 <5", ">=4.17.21 <5", set()),
    (">=4.0.0 <4.17.3", ">=4.17.21 <4.17.22", {"upper-raised"}),
    ("4.0.0 - 4.18", "4.17.21 - 4.18", set()),
    ("4.x", "4.x", {"open-range"}),
    ("*", "*", {"open-range"}),
    ("", "", {"open-range"}),
    ("latest", "latest", {"open-range"}),
    ("3.x", "4.x", {"open-range", "line-crossed"}),
    ("^3", "^4.17.21", {"line-crossed"}),
    ("^4.17.21", "^4.17.21", set()),
    ("npm:lodash@^4.17.15", "npm:lodash@^4.17.21", set()),
]


@pytest.mark.parametrize(("old", "new", "flags"), NPM)
def test_npm_requirement_keeps_its_style(old: str, new: str, flags: set[str]) -> None:
    assert raised("npm", old, "4.17.21") == Raised(text=new, changed=old != new, flags=frozenset(flags))  # type: ignore[arg-type]  # plain strings in the table


@pytest.mark.parametrize(
    ("old", "new", "vulnerable", "flags"),
    [
        ("^3 || ^4.17.15", "^4.17.21", "< 4.17.21", {"arm-dropped"}),
        ("^4.17.15 || ^3", "^4.17.21", "< 4.17.21", {"arm-dropped"}),
        ("^3 || ^4.17.15", "^3 || ^4.17.21", ">= 4.0.0, < 4.17.21", {"arm-kept"}),
        ("^2||^3||^4.17.15||^5.0.0", "^2||^4.17.21||^5.0.0", ">= 3.0.0, < 4.17.21", {"arm-dropped", "arm-kept"}),
    ],
)
def test_npm_alternative_stays_only_if_it_is_not_vulnerable(
    old: str, new: str, vulnerable: str, flags: set[str]
) -> None:
    assert raised("npm", old, "4.17.21", vulnerable) == Raised(text=new, changed=True, flags=frozenset(flags))  # type: ignore[arg-type]  # plain strings in the table


@pytest.mark.parametrize(
    ("old", "refusal"),
    [
        ("catalog:", Refusal(reason="dynamic-version", detail="catalog:")),
        ("workspace:*", Refusal(reason="non-registry-source", detail="workspace:*")),
        ("file:../x", Refusal(reason="non-registry-source", detail="file:../x")),
        ("owner/repo#v1", Refusal(reason="non-registry-source", detail="owner/repo#v1")),
        ("^5", Refusal(reason="constraint-conflict", detail="^5")),
        ("5.0.0", Refusal(reason="constraint-conflict", detail="5.0.0")),
        ("^1.2.3.4", Refusal(reason="unparsable-version", detail="^1.2.3.4")),
    ],
)
def test_npm_requirement_that_cannot_be_raised_is_refused(old: str, refusal: Refusal) -> None:
    assert raised("npm", old, "4.17.21") == refusal


@pytest.mark.parametrize(
    ("old", "target", "new", "flags"),
    [
        ("== 5.3.1", "5.4", "== 5.4", set()),
        ("===5.3.1", "5.4", "===5.4", set()),
        ("~=1.4", "1.4.5", "~=1.4.5", set()),
        ("~=1.4", "1.6", "~=1.6", set()),
        ("~=1.4", "1.6.2", ">=1.6.2,<2", set()),
        ("~= 1.4.2", "1.6.0", "~= 1.6.0", set()),
        ("~=1.4.2", "2.0", "~=2.0.0", {"line-crossed"}),
        (">=1.25,<1.27", "1.26.18", ">=1.26.18,<1.27", set()),
        (">=1.25, <1.26.5", "1.26.18", ">=1.26.18, <1.26.19", {"upper-raised"}),
        (">=1.0,!=1.5", "1.6", ">=1.6,!=1.5", set()),
        ("~=1.4,>=1.4.2", "1.6.2", "~=1.4,>=1.6.2", set()),
        ("==1.4.*", "1.5.2", "==1.5.*", {"open-range"}),
        ("", "2.0", "", {"open-range"}),
        ("<2", "1.5", "<2", {"open-range"}),
        ("(>=1.0)", "1.2", "(>=1.2)", set()),
    ],
)
def test_python_specifier_keeps_its_style(old: str, target: str, new: str, flags: set[str]) -> None:
    assert raised("pip", old, target) == Raised(text=new, changed=old != new, flags=frozenset(flags))  # type: ignore[arg-type]  # plain strings in the table


@pytest.mark.parametrize(
    ("old", "target", "part"), [(">=1.0,!=1.5", "1.5", "!=1.5"), (">2.0", "1.5", ">2.0"), ("==2.0", "1.5", "==2.0")]
)
def test_python_specifier_is_never_lowered_nor_contradicted(old: str, target: str, part: str) -> None:
    assert raised("pip", old, target) == Refusal(reason="constraint-conflict", detail=part)


OTHERS = [
    ("poetry", "2.28.1", "2.31.0", "2.31.0", set()),
    ("poetry", "^2.28", "2.31.0", "^2.31.0", set()),
    ("poetry", "~2.28.1", "2.28.5", "~2.28.5", set()),
    ("poetry", ">=1.0, <2.0", "1.5", ">=1.5, <2.0", set()),
    ("poetry", "~=1.4", "1.6.2", ">=1.6.2,<2", set()),
    ("poetry", "*", "2.3", "*", {"open-range"}),
    ("cargo", "1.2", "1.2.9", "1.2.9", set()),
    ("cargo", "~1.2.3", "1.2.9", "~1.2.9", set()),
    ("cargo", "=1.2.3", "1.2.9", "=1.2.9", set()),
    ("cargo", ">=1.2, <2", "1.2.9", ">=1.2.9, <2", set()),
    ("cargo", "1.*", "1.2.9", "1.*", {"open-range"}),
    ("cargo", "0.3", "0.4.2", "0.4.2", {"line-crossed"}),
    ("composer", "^6.5", "6.5.8", "^6.5.8", set()),
    ("composer", "v6.5.5", "v6.5.8", "v6.5.8", set()),
    ("composer", "~1.4", "1.6", "~1.6", set()),
    ("composer", "~1.4", "1.6.2", "^1.6.2", set()),
    ("composer", "~1.4.2", "1.6.0", "~1.6.0", set()),
    ("composer", "5.4.*", "5.4.20", "5.4.*", {"open-range"}),
    ("rubygems", "= 1.13.8", "1.13.9", "= 1.13.9", set()),
    ("rubygems", "~> 1.13", "1.13.9", "~> 1.13, >= 1.13.9", set()),
    ("rubygems", "~> 1.13.2", "1.13.9", "~> 1.13.9", set()),
    ("rubygems", "~> 6.1.4", "6.1.7.9", "~> 6.1.7, >= 6.1.7.9", set()),
    ("rubygems", "~> 1.4, >= 1.4.2", "1.6.0", "~> 1.4, >= 1.6.0", set()),
    ("rubygems", ">= 1.0, < 3", "1.2.8.1", ">= 1.2.8.1, < 3", set()),
    ("hex", "~> 1.4", "1.6.14", "~> 1.6 and >= 1.6.14", set()),
    ("hex", ">= 1.0.0 and < 2.0.0", "1.6.14", ">= 1.6.14 and < 2.0.0", set()),
    ("pub", "^4.0.0", "4.2.0", "^4.2.0", set()),
    ("pub", ">=4.0.0 <5.0.0", "4.2.0", ">=4.2.0 <5.0.0", set()),
    ("pub", "any", "5.0.0", "any", {"open-range"}),
    ("nuget", "13.0.0", "13.0.1", "13.0.1", set()),
    ("nuget", "[13.0.0]", "13.0.1", "[13.0.1]", set()),
    ("nuget", "(13.0.0, 14.0]", "13.0.1", "[13.0.1, 14.0]", set()),
    ("nuget", "[12.0,13.0)", "13.0.1", "[13.0.1,14.0)", {"line-crossed", "upper-raised"}),
    ("nuget", "13.*", "13.0.1", "13.*", {"open-range"}),
    ("maven", "1.26", "1.33", "1.33", set()),
    ("maven", "[1.26]", "1.33", "[1.33]", set()),
    ("maven", "[1.26,1.33]", "1.33", "[1.26,1.33]", {"open-range"}),
    ("maven", "5.2.9.RELEASE", "5.2.20.RELEASE", "5.2.20.RELEASE", set()),
    ("gradle", "1.26", "1.33", "1.33", set()),
    ("gradle", "1.7!!", "1.8", "1.8!!", set()),
    ("gradle", "1.+", "1.33", "1.+", {"open-range"}),
    ("go", "v1.2.0", "1.2.3", "v1.2.3", set()),
    ("go", "v2.8.1+incompatible", "2.8.2", "v2.8.2+incompatible", set()),
    ("go", "v3.0.0-20210107192922-496545a6307b", "v3.0.1", "v3.0.1", set()),
    ("actions", "v4.1.2", "4.1.3", "v4.1.3", set()),
    ("actions", "v4", "v4.1.3", "v4", {"open-range"}),
    ("actions", "v44", "v46.0.1", "v46", {"open-range", "line-crossed"}),
]


@pytest.mark.parametrize(("grammar", "old", "target", "new", "flags"), OTHERS)
def test_other_grammars_keep_their_style(grammar: str, old: str, target: str, new: str, flags: set[str]) -> None:
    assert raised(grammar, old, target) == Raised(text=new, changed=old != new, flags=frozenset(flags))  # type: ignore[arg-type]  # plain strings in the table


@pytest.mark.parametrize(
    ("grammar", "old", "target", "refusal"),
    [
        ("maven", "[1.26,1.33]", "2.0", Refusal(reason="constraint-conflict", detail="1.33]")),
        ("maven", "${snakeyaml}", "2.0", Refusal(reason="dynamic-version", detail="${snakeyaml}")),
        ("maven", "LATEST", "2.0", Refusal(reason="dynamic-version", detail="LATEST")),
        ("gradle", "latest.release", "2.0", Refusal(reason="dynamic-version", detail="latest.release")),
        ("nuget", "$(JsonVersion)", "13.0.1", Refusal(reason="dynamic-version", detail="$(JsonVersion)")),
        ("actions", "main", "v4", Refusal(reason="dynamic-version", detail="main")),
        ("composer", "dev-main", "1.0", Refusal(reason="constraint-conflict", detail="dev-main")),
        ("rubygems", ">= 1.0, != 1.2.3", "1.2.3", Refusal(reason="constraint-conflict", detail="!= 1.2.3")),
        ("npm", "^1.0.0", "2.0", Refusal(reason="unparsable-version", detail="2.0")),
        ("poetry", "2.31.0", "2.28.1", Refusal(reason="constraint-conflict", detail="2.31.0")),
    ],
)
def test_other_grammars_refuse(grammar: str, old: str, target: str, refusal: Refusal) -> None:
    assert raised(grammar, old, target) == refusal
