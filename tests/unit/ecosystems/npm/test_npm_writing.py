"""Plans written into JavaScript locks. The golden differences are those that the real tools left unchanged."""

import difflib
from dataclasses import replace
from pathlib import Path

import pytest

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.npm.pnpm_lock import read_pnpm_lock
from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.ecosystems.npm.write_pnpm_lock import rendered_entry
from dependfix_core.ecosystems.npm.write_yarn_berry import rendered_berry_entry
from dependfix_core.ecosystems.npm.write_yarn_classic import rendered_block
from dependfix_core.ecosystems.npm.yarn_berry import read_yarn_berry
from dependfix_core.ecosystems.npm.yarn_classic import read_yarn_classic
from dependfix_core.model.files import ChangeSet
from dependfix_core.model.lock import Problem
from dependfix_core.model.plan import Edit, Move, Remediation
from fakes.npm_writing import (
    CASES,
    DATA,
    Case,
    case_files,
    release_records,
    remediation_of,
    unit_of_case,
    written_case,
)
from fakes.step_driver import drive, listing_of

GOLDEN = DATA / "written"


def difference(changes: ChangeSet) -> str:
    """All changes as one text; every line end is visible."""
    lines: list[str] = []
    for change in changes.changes:
        before = (change.before or b"").decode().split("\n")
        after = (change.after or b"").decode().split("\n")
        lines += difflib.unified_diff(before, after, change.path, change.path, n=0, lineterm="")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_written_files_are_those_that_the_tools_accepted(name: str) -> None:
    _, changes = written_case(CASES[name])

    assert isinstance(changes, ChangeSet), changes
    golden = GOLDEN / f"{name}.diff"
    assert difference(changes) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_reading_what_was_written_gives_the_plans_end_state(name: str) -> None:
    case = CASES[name]
    files, changes = written_case(case)
    assert isinstance(changes, ChangeSet)
    after = {**files, **{change.path: change.after for change in changes.changes if change.after is not None}}

    (before_unit,) = drive(read_units(listing_of(files), [case.lock]), files)
    (unit,) = drive(read_units(listing_of(after), [case.lock]), after)

    assert (unit.problems, unit.format_version) == ((), before_unit.format_version)
    versions = {(instance.name, instance.version) for instance in unit.instances.values()}
    for where, version in case.moves.items():
        assert (before_unit.instances[where].name, version) in versions
    assert versions >= set(case.added.values())
    assert not any(where in unit.instances for where in case.removed)
    edge_count = sum(1 for instance in unit.instances.values() for _ in instance.edges)
    assert edge_count > 0


@pytest.mark.parametrize("name", CASES)
def test_a_plan_without_moves_changes_nothing(name: str) -> None:
    case = replace(CASES[name], moves={}, added={}, removed=(), edits=(), esbuild=False)

    _, changes = written_case(case)

    assert changes == ChangeSet()


def test_golden_files_are_all_used() -> None:
    assert {Path(path).stem for path in GOLDEN.glob("*.diff")} == set(CASES)


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    for name in ("npm3-override", "npm1-flags", "yarn1-lines", "pnpm9-lines"):
        case = CASES[name]
        files = case_files(case)
        mark = b"\xef\xbb\xbf" if case.lock == "package-lock.json" else b""
        dressed = {path: mark + content.replace(b"\n", b"\r\n") for path, content in files.items()}
        unit = unit_of_case(case, dressed)

        plain = written_case(case)[1]
        changes = drive(write(unit, [remediation_of(case, unit)]), dressed, release_records())

        assert isinstance(changes, ChangeSet)
        assert isinstance(plain, ChangeSet)
        assert {change.path: change.after for change in changes.changes} == {
            change.path: mark + (change.after or b"").replace(b"\n", b"\r\n") for change in plain.changes
        }


def refusal(name: str, **changed: object) -> WriteRefusal:
    _, written = written_case(replace(CASES[name], **changed))  # type: ignore[arg-type]  # each test names real fields
    assert isinstance(written, WriteRefusal)
    return written


def test_what_would_break_a_requirement_is_refused() -> None:
    """axios 0.21.2 needs follow-redirects 1.14, which stays where it is here."""
    moves = {"node_modules/axios": "0.21.2"}

    assert refusal("npm3-override", moves=moves, edits=()).reason == "tool-required"


def test_a_closure_that_is_not_complete_is_refused() -> None:
    for name in ("npm3-closure", "pnpm6-closure", "yarn1-resolution"):
        added = dict(CASES[name].added)
        added.pop(next(where for where, (package, _) in added.items() if package == "gopd"))

        assert refusal(name, added=added).reason == "tool-required"


def test_an_unknown_release_is_refused() -> None:
    for name, where in (
        ("npm3-override", "node_modules/lodash"),
        ("npm1-flags", "node_modules/lodash"),
        ("pnpm9-lines", "qs@6.5.2"),
        ("yarn1-lines", "qs@~6.5.2"),
    ):
        assert refusal(name, moves={where: "99.0.0"}, removed=(), added={}).reason == "metadata-unavailable"


def test_a_plan_for_other_files_is_refused() -> None:
    """An edit whose text is not there any more."""
    edit = Edit(path="package.json", at="dependencies.lodash", from_text="^9", to_text="^10")

    assert refusal("npm3-override", edits=(edit,)).reason == "tool-required"


def test_a_lone_manifest_is_edited_alone() -> None:
    files = {"package.json": b'{\n  "dependencies": {\n    "lodash": "^4.17.15"\n  }\n}\n'}
    (unit,) = drive(read_units(listing_of(files), ["package.json"]), files)
    remediation = Remediation(
        unit="package.json",
        ecosystem="npm",
        package_name="lodash",
        strategy="manifest-bump",
        moves=(
            Move(
                where="dependencies.lodash",
                package_name="lodash",
                from_version="4.17.15",
                to_version="4.17.21",
                strategy="manifest-bump",
            ),
        ),
        edits=(Edit(path="package.json", at="dependencies.lodash", from_text="^4.17.15", to_text="^4.17.21"),),
    )

    changes = drive(write(unit, [remediation]), files)

    assert isinstance(changes, ChangeSet)
    assert [change.after for change in changes.changes] == [
        b'{\n  "dependencies": {\n    "lodash": "^4.17.21"\n  }\n}\n'
    ]


BERRY = Case(
    project="yarn-berry-lines",
    lock="yarn.lock",
    moves={
        "json5@npm:^1.0.1": "1.0.2",
        "json5@npm:^2.1.2": "2.2.2",
        "loader-utils@npm:^2.0.0": "2.0.4",
        "semver@npm:^7.3.5": "7.5.2",
    },
    edits=(Edit(path="package.json", at="devDependencies.semver", from_text="^7.3.5", to_text="^7.5.2"),),
)


def test_yarn_2_and_later_is_left_to_yarn() -> None:
    _, written = written_case(BERRY)

    assert isinstance(written, WriteRefusal)
    assert written.reason == "tool-required"


def test_yarn_2_and_later_may_leave_checksums_open() -> None:
    """yarn 4 accepts this with `--immutable --check-resolutions`, and its next install only adds checksums."""
    files = case_files(BERRY)
    unit = unit_of_case(BERRY, files)

    changes = drive(write(unit, [remediation_of(BERRY, unit)], pending_checksums=True), files, release_records())

    assert isinstance(changes, ChangeSet)
    lock = {change.path: change.after or b"" for change in changes.changes}["yarn.lock"].decode()
    assert lock.count("checksum:") == files["yarn.lock"].decode().count("checksum:") - 4
    assert '"semver@npm:^7.5.2":\n  version: 7.5.2\n  resolution: "semver@npm:7.5.2"\n' in lock
    assert '    semver: "npm:^7.5.2"\n' in lock
    assert "^7.3.5" not in lock


@pytest.mark.parametrize(
    ("project", "lock"),
    [("yarn4-workspace", "yarn.lock"), ("yarn1-workspace", "yarn.lock"), ("pnpm9-peers", "pnpm-lock.yaml")],
)
def test_every_entry_is_rendered_as_the_tool_wrote_it(project: str, lock: str) -> None:
    content = (DATA / project / lock).read_bytes()
    text = content.decode()
    if project == "yarn4-workspace":
        berry = read_yarn_berry(lock, content)
        assert not isinstance(berry, Problem)
        rendered = ["\n".join(rendered_berry_entry(entry.descriptors, entry.data)) for entry in berry.entries.values()]
    elif project == "yarn1-workspace":
        classic = read_yarn_classic(lock, content)
        assert not isinstance(classic, Problem)
        rendered = ["\n".join(rendered_block(block.descriptors, block.fields)) for block in classic.blocks]
    else:
        pnpm = read_pnpm_lock(lock, content)
        assert not isinstance(pnpm, Problem)
        entries = [*pnpm.packages.items(), *pnpm.snapshots.items()]
        rendered = ["\n".join(rendered_entry(key, entry)) for key, entry in entries]

    assert [entry for entry in rendered if f"\n{entry}\n" not in text] == []
    assert len(rendered) > 50
