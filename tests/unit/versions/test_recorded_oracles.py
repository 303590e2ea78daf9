"""Orders and requirements agree with what the ecosystems' own implementations said (`tests/data/versions`)."""

import json
from pathlib import Path
from typing import Any

import pytest

from dependfix_core.versions import Answer, Requirement, Unparsable, Version, parse_requirement, scheme_for

DATA = Path(__file__).parents[2] / "data" / "versions"
ECOSYSTEMS = {"poetry": "pip"}
ORACLES = ["npm", "maven", "go", "rust", "rubygems", "composer", "erlang", "poetry"]
WITH_REQUIREMENTS = ["npm", "rust", "rubygems", "composer", "erlang", "poetry"]


def recorded(oracle: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DATA / f"{oracle}.json").read_text(encoding="utf-8"))
    return data


def versions(oracle: str, texts: list[str]) -> list[Version | Unparsable]:
    scheme = scheme_for(ECOSYSTEMS.get(oracle, oracle))
    assert scheme is not None
    return [scheme.try_parse(text) for text in texts]


@pytest.mark.parametrize("oracle", ORACLES)
def test_order_is_that_of_the_ecosystem(oracle: str) -> None:
    data = recorded(oracle)
    scheme = scheme_for(ECOSYSTEMS.get(oracle, oracle))
    assert scheme is not None
    parsed = versions(oracle, data["versions"])
    wrong, known = [], 0
    for left, row in zip(parsed, data["order"], strict=True):
        for right, expected in zip(parsed, row, strict=True):
            if isinstance(left, Unparsable) or isinstance(right, Unparsable):
                if expected != "?":
                    wrong.append((left, right, expected))
                continue
            sign = scheme.compare(left, right)
            known += sign is not None
            if sign is not None and "<=>"[sign + 1] != expected:
                wrong.append((left, right, expected))

    assert wrong == []
    assert known > 0.9 * sum(len(row) - row.count("?") - row.count("!") for row in data["order"])


@pytest.mark.parametrize("oracle", ORACLES)
def test_what_the_ecosystem_refuses_is_no_version(oracle: str) -> None:
    data = recorded(oracle)
    refused = [text for text, row in zip(data["versions"], data["order"], strict=True) if set(row) == {"?"}]
    parsed = versions(oracle, data["versions"])

    assert [entry.text for entry in parsed if isinstance(entry, Unparsable)] == refused


@pytest.mark.parametrize("oracle", ["maven", "composer"])
def test_pair_in_dispute_is_unknown(oracle: str) -> None:
    """Maven's releases disagree on some pairs; a Composer branch has no place among versions."""
    data = recorded(oracle)
    scheme = scheme_for(oracle)
    assert scheme is not None
    disputed = [
        (left, right)
        for left, row in zip(data["versions"], data["order"], strict=True)
        for right, sign in zip(data["versions"], row, strict=True)
        if sign == "!"
    ]

    assert disputed
    assert {scheme.compare(scheme.parse(left), scheme.parse(right)) for left, right in disputed} == {None}


@pytest.mark.parametrize("oracle", WITH_REQUIREMENTS)
@pytest.mark.parametrize("key", ["requirements", "with_prereleases"])
def test_requirement_admits_what_the_ecosystem_admits(oracle: str, key: str) -> None:
    data = recorded(oracle)
    pool = versions(oracle, data["versions"])
    wrong, judged = [], 0
    for text, bits in data.get(key, []):
        requirement = parse_requirement(oracle, text)
        if (bits is None) != isinstance(requirement, Unparsable):
            wrong.append((text, "refused" if bits is None else "accepted"))
        if bits is None or isinstance(requirement, Unparsable):
            continue
        for version, bit in zip(pool, bits, strict=True):
            if isinstance(version, Unparsable):
                continue
            answer = requirement.admits(version, include_prereleases=key == "with_prereleases")
            judged += 1
            if answer is not Answer.UNKNOWN and answer.is_yes != (bit == "1"):
                wrong.append((text, version.text))

    assert wrong == []
    assert judged > 1000 or not data.get(key)


@pytest.mark.parametrize("oracle", WITH_REQUIREMENTS)
def test_spans_of_a_requirement_point_into_its_text(oracle: str) -> None:
    read = [
        parse_requirement(oracle, text)
        for key in ("requirements", "with_prereleases")
        for text, _ in recorded(oracle).get(key, [])
    ]
    requirements = [entry for entry in read if isinstance(entry, Requirement)]

    assert requirements
    for requirement in requirements:
        for part in requirement.comparators:
            start, end = part.version_span
            assert requirement.text[start:end] == part.version
            assert part.span[0] <= start <= end <= part.span[1]
            arm = requirement.arms[part.arm]
            assert arm.span[0] <= part.span[0] <= part.span[1] <= arm.span[1]
