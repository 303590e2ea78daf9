"""What a package manager may have done beside the plan, and what is churn."""

from dataclasses import replace

import pytest

from dependfix_core.model.lock import Constraint, Edge, Instance, LockUnit
from dependfix_core.model.plan import Move, Remediation
from dependfix_core.pipeline.targets import Advisories
from dependfix_core.pipeline.verify import Claim, _unplanned

MOVE = Move(where="parent", package_name="parent", from_version="1.0.0", to_version="1.1.0", strategy="lock-in-range")


def unit(versions: dict[str, tuple[str, str]], asks: dict[str, list[str]], direct: tuple[str, ...]) -> LockUnit:
    """Place → (name, version), place → places it leads to, places that the manifest leads to."""
    return LockUnit(
        unit="bun.lock",
        ecosystem="npm",
        format="bun-lock",
        instances={
            where: Instance(
                where=where,
                name=name,
                version=version,
                edges=tuple(
                    Edge(name=versions[target][0], requirement=versions[target][1], target=target)
                    for target in asks.get(where, ())
                ),
            )
            for where, (name, version) in versions.items()
        },
        constraints=tuple(
            Constraint(
                path="package.json", at=where, name=where, package=where, requirement="*", span=None, target=where
            )
            for where in direct
        ),
    )


BEFORE = {"parent": ("parent", "1.0.0"), "other": ("other", "1.0.0"), "ms": ("ms", "2.0.0"), "o/ms": ("ms", "3.0.0")}
AFTER = {"parent": ("parent", "1.1.0"), "other": ("other", "1.0.0"), "ms": ("ms", "3.0.0")}


@pytest.mark.parametrize(
    ("asks", "direct", "found"),
    [
        ({"parent": ["ms"], "other": ["o/ms"]}, ("parent", "other"), []),
        ({"parent": ["ms"], "other": ["o/ms", "ms"]}, ("parent", "other"), ["ms 2.0.0 went and is not in the plan"]),
        ({"parent": ["ms"], "other": ["o/ms"]}, ("parent", "other", "ms"), ["ms 2.0.0 went and is not in the plan"]),
    ],
    ids=["left by all", "still asked for", "declared"],
)
def test_a_copy_goes_with_those_who_asked_for_it(
    asks: dict[str, list[str]], direct: tuple[str, ...], found: list[str]
) -> None:
    remediation = Remediation(
        unit="bun.lock", ecosystem="npm", package_name="parent", strategy="lock-in-range", moves=(MOVE,)
    )
    claim = Claim(remediations=[remediation], answered=[], advisories=Advisories([]), by_tool=True)

    failures = _unplanned(unit(BEFORE, asks, direct), unit(AFTER, {"other": ["ms"], "parent": ["ms"]}, direct), claim)

    assert [one.detail for one in failures] == found


def test_a_lock_that_loses_a_checksum_of_its_settings_is_not_kept() -> None:
    before = replace(unit(BEFORE, {}, ()), settings={"checksums": ("pnpmfileChecksum",)})
    claim = Claim(remediations=[], answered=[], advisories=Advisories([]), by_tool=True)

    assert _unplanned(before, before, claim) == []
    assert [one.detail for one in _unplanned(before, replace(before, settings={"checksums": ()}), claim)] == [
        "the set of checksums of its settings changed"
    ]
