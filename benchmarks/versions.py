"""How fast versions are compared, as a multiple of the libraries that do nothing else.

usage: python benchmarks/versions.py

Each figure is work per time against the base in brackets, two texts read and
compared: `fresh` with every text seen for the first time, `seen` with texts
that come back, as those of a lockfile do. The budgets hold for both: 4 for the
schemes of three numbers (the Python port `node-semver`), 0.8 for pip
(`packaging`). Ranges are shown without a budget. Exits with 1 on a miss.
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nodesemver  # type: ignore[import-untyped]  # the package has no types
from packaging.specifiers import SpecifierSet
from packaging.version import Version as PackagingVersion

sys.path.insert(0, str(Path(__file__).parent))
from ratio import ratio

from dependfix_core.versions import parse_requirement, scheme_for
from dependfix_core.versions.base import KeyedScheme

TRIPLE_BUDGET = 4.0
PIP_BUDGET = 0.8
COUNT = 3000
SEEN = 60
TRIPLE_SCHEMES = ("npm", "go", "rust", "erlang", "pub", "swift", "actions")


def numbers(count: int, tails: tuple[str, ...]) -> list[str]:
    """Distinct versions with the numbers and tails that registries hold."""
    rng = random.Random(5)
    found: dict[str, None] = {}
    while len(found) < count:
        text = f"{rng.randrange(12)}.{rng.randrange(40)}.{rng.randrange(40)}{rng.choice(tails)}"
        found[text] = None
    return list(found)


def triples(count: int) -> list[str]:
    return numbers(count, ("", "", "", "", "", "", "", "-rc.1"))


def python_versions(count: int) -> list[str]:
    return numbers(count, ("", "", "", "", "", "", "", "", "rc1", ".post1"))


def compare_all(scheme: KeyedScheme, texts: list[str]) -> Callable[[], None]:
    def work() -> None:
        parse, compare = scheme.try_parse, scheme.compare
        for left, right in zip(texts[::2], texts[1::2], strict=True):
            compare(parse(left), parse(right))  # type: ignore[arg-type]  # all are versions

    return work


def node(texts: list[str]) -> Callable[[], None]:
    def work() -> None:
        for left, right in zip(texts[::2], texts[1::2], strict=True):
            nodesemver.compare(left, right, loose=False)

    return work


def packaging(texts: list[str]) -> Callable[[], None]:
    def work() -> None:
        for left, right in zip(texts[::2], texts[1::2], strict=True):
            # As `compare`: which of three answers it is.
            one, two = PackagingVersion(left), PackagingVersion(right)
            _ = -1 if one < two else int(one != two)

    return work


def ranges(grammar: str, text: str, versions: list[str], contains: Callable[[str], Any]) -> tuple[Any, Any]:
    requirement = parse_requirement(grammar, text)

    def base() -> None:
        for version in versions:
            contains(version)

    def ours() -> None:
        for version in versions:
            requirement.admits(version)  # type: ignore[union-attr]  # the text is a range

    return base, ours


def main() -> int:
    missed = False
    fresh, fresh_python = triples(COUNT), python_versions(COUNT)
    seen, seen_python = triples(SEEN) * (COUNT // SEEN), python_versions(SEEN) * (COUNT // SEEN)
    print("compared, work per time             fresh    seen  budget")
    for name in (*TRIPLE_SCHEMES, "pip"):
        scheme = scheme_for(name)
        assert isinstance(scheme, KeyedScheme)
        is_pip = name == "pip"
        base, budget = (packaging, PIP_BUDGET) if is_pip else (node, TRIPLE_BUDGET)
        new, old = (fresh_python, seen_python) if is_pip else (fresh, seen)
        figures = (
            ratio(base(new), compare_all(scheme, new), before=scheme.forget),
            ratio(base(old), compare_all(scheme, old)),
        )
        missed = missed or min(figures) < budget
        against = "packaging" if is_pip else "node-semver"
        print(f"{name:8} ({against:11})         {figures[0]:12.2f}{figures[1]:8.1f}{budget:8.1f}")
    specifiers = SpecifierSet(">=1.2,<5,!=3.1")
    npm = ranges(
        "npm", "^1.2.3 || >=3 <5", seen, lambda text: nodesemver.satisfies(text, "^1.2.3 || >=3 <5", loose=False)
    )
    pip = ranges("pip", ">=1.2,<5,!=3.1", seen_python, specifiers.contains)
    print(f"npm range admits (node-semver)              {ratio(*npm):12.1f}")
    print(f"pip specifiers admit (packaging)            {ratio(*pip):12.1f}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
