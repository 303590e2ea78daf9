import json
from pathlib import Path

import pytest

from adapters.suspec.contract import VERSION
from recording.record_suspec import (
    DATA,
    arguments_of,
    find_cli,
    load_recorded,
    load_scenarios,
    provenance,
    run_case,
)


def package(folder: Path, name: str) -> Path:
    entry = folder / "bin" / "suspec.js"
    entry.parent.mkdir(parents=True)
    entry.write_text("//")
    manifest = {"name": name, "version": "1.0.0", "bin": {"suspec": "./bin/suspec.js"}}
    (folder / "package.json").write_text(json.dumps(manifest))
    return entry


def test_every_scenario_is_recorded_with_the_arguments_it_leads_to() -> None:
    scenarios, recorded = load_scenarios(), load_recorded()

    assert {case["id"]: arguments_of(case) for case in scenarios} == {
        case_id: case["argv"] for case_id, case in recorded.items()
    }
    assert len(scenarios) == len(recorded) >= 50


def test_the_recordings_name_the_code_that_answered() -> None:
    known = json.loads((DATA / "provenance.json").read_text())

    assert known["contractVersion"] == VERSION == json.loads(load_recorded()["contract"]["stdout"])["version"]
    assert known["package"] == "suspec-cli"
    assert len(known["git"]["head"]) == 40
    assert known["git"]["dirty"] is False
    digests = {known["git"]["worktreeSha256"], known["entry"]["sha256"], known["code"]["sha256"]}
    assert {len(digest) for digest in digests} == {64}
    assert len(digests) == 3
    assert "/home/" not in json.dumps(known)


def test_the_named_package_is_recorded_and_no_other(tmp_path: Path) -> None:
    right, wrong = package(tmp_path / "a", "suspec-cli"), package(tmp_path / "b", "other-cli")
    alone = tmp_path / "suspec"
    alone.write_text("#!/bin/sh\n")

    assert find_cli({"SUSPEC_BIN": str(right)}) == right
    for refused in (wrong, alone, tmp_path / "missing", tmp_path):
        with pytest.raises(SystemExit):
            find_cli({"SUSPEC_BIN": str(refused)})


def test_a_package_beside_the_repository_is_found_by_its_name(tmp_path: Path) -> None:
    repository = tmp_path / "product"
    repository.mkdir()
    package(tmp_path / "a-suspec-fork", "suspec-fork")
    with pytest.raises(SystemExit):
        find_cli({}, repository)

    right = package(tmp_path / "checkout", "suspec-cli")

    assert find_cli({"SUSPEC_BIN": ""}, repository) == tmp_path / "checkout" / "bin" / "suspec.js" == right


def test_provenance_follows_the_code_and_not_only_the_entry(tmp_path: Path) -> None:
    entry = package(tmp_path / "cli", "suspec-cli")
    (tmp_path / "cli" / "dist").mkdir()
    bundle = tmp_path / "cli" / "dist" / "index.js"
    bundle.write_text("1")
    contract = json.dumps({"version": VERSION})

    before = provenance(entry, "false", contract)
    bundle.write_text("2")
    after = provenance(entry, "false", contract)

    assert before["git"] is None
    assert before["entry"] == after["entry"]
    assert before["code"]["sha256"] != after["code"]["sha256"]
    assert (after["code"]["folder"], after["code"]["files"]) == ("dist", 1)


def test_a_run_is_recorded_with_the_folder_as_placeholder(tmp_path: Path) -> None:
    case = {"id": "x", "files": [], "argv": ["printf '%s\\n' {{ROOT}}/a; echo {{ROOT}} >&2; exit 3"]}

    assert run_case(["/bin/sh", "-c"], case, tmp_path) == {
        "argv": case["argv"],
        "exit": 3,
        "stdout": "{{ROOT}}/a\n",
        "stderr": "{{ROOT}}\n",
    }
