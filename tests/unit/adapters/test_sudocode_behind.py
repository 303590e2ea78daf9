import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.sudocode.behind import JsonlFile, compare, read_jsonl, with_other_times

Row = dict[str, Any]
OLD, NEW = "2026-01-01 00:00:00", "2026-01-02T00:00:00.000Z"
LINK = {"from": "i-1", "from_type": "issue", "to": "i-2", "to_type": "issue", "type": "blocks"}
ENTRY = {"id": "f-1", "to_id": "i-2", "content": "x", "updated_at": OLD}


def row(name: str = "i-1", **more: Any) -> Row:
    base = {"id": name, "uuid": f"u-{name}", "title": "T", "updated_at": OLD, "relationships": [], "tags": []}
    return {**base, **more}


def differences(files: list[Row], database: list[Row]) -> dict[str, Any]:
    def file(rows: list[Row]) -> JsonlFile:
        return JsonlFile(rows={one["uuid"]: one for one in rows}, faults=())

    return compare([(file(files), file(database))]).facts()


@pytest.mark.parametrize(
    ("files", "database", "expected"),
    [
        ([row()], [row()], {}),
        ([], [], {}),
        ([row()], [], {"only_in_files": ["i-1"]}),
        ([], [row()], {"only_in_database": ["i-1"]}),
        ([row(updated_at=NEW, title="N")], [row()], {"newer_in_files": ["i-1"]}),
        ([row()], [row(updated_at=NEW, title="N")], {"newer_in_database": ["i-1"]}),
        ([row(updated_at=NEW)], [row()], {}),
        ([row()], [row(updated_at=NEW)], {}),
        ([row(title="N")], [row()], {"contradictory": ["i-1"]}),
        # The same instant in both forms, nothing in both forms, fields that no database keeps.
        ([row(updated_at="2026-01-01T00:00:00.000Z", archived=False)], [row(archived=0, assignee=None)], {}),
        ([row(closed_at="2026-01-01 10:00:00")], [row(closed_at="2026-01-01T10:00:00.000Z")], {}),
        ([row(external_links=[{"provider": "x"}])], [row(external_links=None)], {}),
        ([row(), row("i-2")], [row(relationships=[LINK]), row("i-2")], {"more_in_database": ["i-1"]}),
        ([row(relationships=[LINK]), row("i-2")], [row(), row("i-2")], {"more_in_files": ["i-1"]}),
        ([row(feedback=[ENTRY]), row("i-2")], [row(), row("i-2")], {"more_in_files": ["i-1"]}),
        (
            [row(feedback=[{**ENTRY, "updated_at": NEW}]), row("i-2")],
            [row(feedback=[ENTRY]), row("i-2")],
            {"more_in_files": ["i-1"]},
        ),
        ([row(tags=["a"])], [row()], {"more_in_files": ["i-1"]}),
        # What points at a row that is nowhere cannot be in a database.
        ([row(relationships=[LINK], feedback=[ENTRY])], [row()], {}),
        # The newer row is right about tags, but links and feedback only ever come in addition.
        ([row(updated_at=NEW)], [row(tags=["a"])], {"newer_in_files": ["i-1"]}),
        ([row(tags=["a"])], [row(updated_at=NEW)], {"newer_in_database": ["i-1"]}),
        (
            [row(updated_at=NEW), row("i-2")],
            [row(relationships=[LINK]), row("i-2")],
            {"newer_in_files": ["i-1"], "more_in_database": ["i-1"]},
        ),
        (
            [row(relationships=[LINK]), row("i-2")],
            [row(updated_at=NEW), row("i-2")],
            {"newer_in_database": ["i-1"], "more_in_files": ["i-1"]},
        ),
    ],
)
def test_each_way_to_differ_has_its_name(files: list[Row], database: list[Row], expected: dict[str, Any]) -> None:
    assert differences(files, database) == expected


def test_rows_without_uuid_are_told_apart_by_id(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text('{"id":"sg-001"}\n\n{"id":"sg-002"}\n', encoding="utf-8")

    assert set(read_jsonl(path).rows) == {"sg-001", "sg-002"}


def test_a_second_row_with_other_values_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    first = json.dumps({"id": "i-1", "uuid": "u", "title": "A"})
    path.write_text(f"{first}\n{first}\n{json.dumps({'id': 'i-1', 'uuid': 'u', 'title': 'B'})}\n", encoding="utf-8")

    assert read_jsonl(path).faults == ({"file": "issues.jsonl", "line": 3, "reason": "second row for i-1"},)


def test_a_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_jsonl(tmp_path / "none.jsonl") == JsonlFile(rows={}, faults=())


@given(texts=st.lists(st.text(max_size=20), max_size=5))
def test_any_text_survives_reading_and_rewriting(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "issues.jsonl"
    rows = [row(f"i-{at}", title=text) for at, text in enumerate(texts)]
    written = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in rows)
    path.write_text(written, encoding="utf-8")

    found = read_jsonl(path)
    rewritten = [json.loads(line) for line in with_other_times(path, {"i-0"}).split("\n") if line]

    assert found.faults == ()
    assert [one["title"] for one in rewritten] == [one["title"] for one in found.rows.values()]
    for one, other in zip(found.rows.values(), rewritten, strict=True):
        assert (one["updated_at"] != other["updated_at"]) == (one["id"] == "i-0")
    assert differences(list(found.rows.values()), rewritten) == {}


def test_what_is_no_text_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "specs.jsonl"
    path.write_bytes(b'{"id":"s-1","title":"\xff"}\n{"id":"s-2","title":"\\ud800"}\n')

    assert read_jsonl(path).faults == ({"file": "specs.jsonl", "line": 1, "reason": "not UTF-8"},)
    path.write_bytes(path.read_bytes().split(b"\n")[1])
    assert json.loads(with_other_times(path, {"s-2"}))["title"] == "\ud800"
