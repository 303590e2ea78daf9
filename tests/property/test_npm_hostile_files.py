"""Whatever the bytes of a repository are, reading and writing answer: a unit, a problem, a refusal, never a crash."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.npm.read import LOCKFILES, read_units
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.model.files import ChangeSet
from dependfix_core.model.lock import LockUnit
from fakes.npm_writing import CASES, case_files, release_records, remediation_of, unit_of_case
from fakes.step_driver import drive, listing_of

SIGNS = rb"""{ } [ ] " : , \ null 1 <<<<<<< @ --- ' - | & * ( ) node_modules/ .. / link true {}"""
PIECES = st.sampled_from([*SIGNS.split(b" "), b"\0", b"\xff", b"\n", b"  ", b"- ", b"&a ", b"---\n"])
CUTS = st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES)


def mutated(content: bytes, cuts: list[tuple[float, int, bytes]]) -> bytes:
    for where, length, piece in cuts:
        at = int(where * len(content))
        content = content[:at] + piece + content[at + length :]
    return content


@cache
def start(name: str) -> tuple[tuple[tuple[str, bytes], ...], LockUnit]:
    files = case_files(CASES[name])
    return tuple(files.items()), unit_of_case(CASES[name], files)


@pytest.mark.parametrize("name", ["npm1-flags", "npm3-forced", "pnpm9-lines", "yarn1-forced", "bun2-forced", "berry"])
@given(cuts=st.lists(CUTS, min_size=1, max_size=4), data=st.data())
@settings(max_examples=400)
def test_mutated_files_are_read_to_the_end(
    name: str, cuts: list[tuple[float, int, bytes]], data: st.DataObject
) -> None:
    cases = {
        "npm3-forced": "npm3-override-edit",
        "yarn1-forced": "yarn1-override-edit",
        "bun2-forced": "bun2-override-edit",
        "berry": "yarn1-lines",
    }
    files = dict(start(cases.get(name, name))[0])
    if name == "berry":
        files["yarn.lock"] = (
            b'__metadata:\n  version: 8\n\n"a@npm:^1":\n  version: 1.0.0\n  resolution: "a@npm:1.0.0"\n'
        )
    broken = data.draw(st.sampled_from(sorted(files)))
    files[broken] = mutated(files[broken], cuts)

    for unit in drive(read_units(listing_of(files), list(files)), files):
        for instance in unit.instances.values():
            assert all(edge.target is None or edge.target in unit.instances for edge in instance.edges)
        assert unit.unit.rpartition("/")[2] in LOCKFILES or unit.format == "manifest"


@pytest.mark.parametrize(
    "name", ["npm1-flags", "npm3-override-edit", "pnpm9-lines", "yarn1-lines", "bun2-override-edit"]
)
@given(cuts=st.lists(CUTS, min_size=1, max_size=3))
@settings(max_examples=40)
def test_plans_on_mutated_locks_are_written_or_refused(name: str, cuts: list[tuple[float, int, bytes]]) -> None:
    case = CASES[name]
    items, unit = start(name)
    files = dict(items)
    files[case.lock] = mutated(files[case.lock], cuts)

    written = drive(write(unit, [remediation_of(case, unit)]), files, release_records())

    assert isinstance(written, ChangeSet | WriteRefusal)
