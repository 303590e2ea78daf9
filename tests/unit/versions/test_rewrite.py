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
