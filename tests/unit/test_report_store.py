import errno
import json
import multiprocessing
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from dependfix_core.report import store
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.history import INDEX_NAME, History
from dependfix_core.report.store import ReportNotWrittenError, find_by_run_id, write_report
from fakes.reports import result

DATA = Path(__file__).parent.parent / "data" / "dependfix-ts"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(INDEX_NAME))


def test_a_report_has_all_its_forms_and_never_dirties_a_checkout(tmp_path: Path) -> None:
    folders = ReportFolders.choose(None, tmp_path, None)

    written = write_report(folders, result())

    stem = "dependfix-report-20261130-171400-abc123"
    folder = tmp_path / "dependfix-reports"
    assert names(folder) == [".gitignore", *(f"{stem}.{ending}" for ending in ("html", "json", "md", "sarif"))]
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert written.report_uri == "dependfix://reports/20261130-171400-abc123"
    assert [(file.format, Path(file.path)) for file in written.report_files or ()] == [
        (ending, folder / f"{stem}.{ending}") for ending in ("json", "md", "html", "sarif")
    ]
    found = find_by_run_id(folders, written.run_id)
    assert found is not None
    assert found.result == written


def test_a_folder_with_other_files_gets_no_ignore_rule(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("", encoding="utf-8")

    write_report(ReportFolders.choose(tmp_path, tmp_path, None), result())

    assert ".gitignore" not in names(tmp_path)


def test_state_folder_takes_what_the_first_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "dependfix-reports").write_text("in the way", encoding="utf-8")

    written = write_report(ReportFolders.choose(None, tmp_path, tmp_path / "state"), result())

    assert {Path(file.path).parent for file in written.report_files or ()} == {tmp_path / "state" / "reports"}


def test_nothing_is_written_into_the_root_directory_or_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "dependfix-reports").symlink_to(tmp_path / "elsewhere")

    assert ReportFolders.choose(None, Path("/"), tmp_path / "s").candidates == (tmp_path / "s" / "reports",)
    assert ReportFolders.choose(None, tmp_path, None).candidates == ()
    with pytest.raises(ReportNotWrittenError):
        write_report(ReportFolders.choose(None, tmp_path, None), result())
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("failing", ["md", "html", "sarif", "json"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.write_new

    def write_new(path: Path, content: bytes) -> None:
        if path.suffix == f".{failing}":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(store, "write_new", write_new)

    with pytest.raises(ReportNotWrittenError):
        write_report(ReportFolders.choose(tmp_path / "r", tmp_path, None), result())

    assert names(tmp_path / "r") == [".gitignore"]


def test_a_file_that_cannot_be_finished_does_not_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)

    with pytest.raises(OSError, match="space"):
        store.write_new(tmp_path / "a.json", b"{}")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_in_the_middle_leaves_no_half_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_result: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setitem(store._RENDERERS, "sarif", interrupted)

    with pytest.raises(KeyboardInterrupt):
        write_report(ReportFolders.choose(tmp_path / "r", tmp_path, None), result())

    assert names(tmp_path / "r") == [".gitignore"]


def test_an_existing_report_is_never_replaced(tmp_path: Path) -> None:
    folders = ReportFolders.choose(tmp_path / "r", tmp_path, None)
    first = write_report(folders, result())

    with pytest.raises(ReportNotWrittenError):
        write_report(folders, result(repository="octo/other"))

    found = find_by_run_id(folders, first.run_id)
    assert found is not None
    assert found.result == first


def _write_many(arguments: tuple[str, int]) -> None:
    folder, start = arguments
    folders = ReportFolders(candidates=(Path(folder),))
    for index in range(5):
        write_report(folders, result(f"20261130-1714{start:02d}-w{index}", after_s=start + index / 10))
        History(folders).page(limit=3)


def test_processes_write_and_index_at_the_same_time(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(_write_many, [(str(tmp_path), start) for start in range(0, 40, 10)])

    page = History(ReportFolders(candidates=(tmp_path,))).page(limit=100)
    assert len(page.runs) == 20
    assert page.runs == tuple(sorted(page.runs, key=lambda run: (run.started_at, run.run_id), reverse=True))


@pytest.fixture
def mixed(tmp_path: Path) -> ReportFolders:
    """Two reports of the original and two of ours."""
    for path in DATA.glob("*.json"):
        shutil.copy(path, tmp_path / path.name)
    folders = ReportFolders(candidates=(tmp_path,))
    write_report(folders, result("20261130-171500-aaaaaa", after_s=60))
    write_report(folders, result("20261130-171600-bbbbbb", repository="Octo/Web", after_s=120))
    return folders


def test_history_lists_reports_of_both_newest_first(mixed: ReportFolders) -> None:
    page = History(mixed).page()

    assert [(run.run_id, run.duration_ms, run.repositories) for run in page.runs] == [
        ("20261130-171600-bbbbbb", 2000, ("Octo/Web",)),
        ("20261130-171500-aaaaaa", 2000, ("octo/shop",)),
        ("dependfix-mx3j26vz-on22e1", 5450, ("acme/pnpm-v9-override",)),
        ("dependfix-mx3j26n1-w72jak", 93, ("acme/pnpm-v6-workspace",)),
    ]
    assert page.next is None
    assert [run.run_id for run in History(mixed).page(repository="octo/web").runs] == ["20261130-171600-bbbbbb"]


def test_pages_of_the_history_join_up(mixed: ReportFolders) -> None:
    history = History(mixed)
    seen, after = [], None
    while True:
        page = history.page(limit=1, after=after)
        seen += [run.run_id for run in page.runs]
        after = page.next
        if after is None:
            break

    assert seen == [run.run_id for run in history.page().runs]


def test_latest_is_the_newest_by_time_not_by_name(mixed: ReportFolders) -> None:
    history = History(mixed)

    def latest(repository: str = "") -> str | None:
        found = history.latest(repository)
        return found.result.run_id if found else None

    assert latest() == "20261130-171600-bbbbbb"
    assert latest("OCTO/shop") == "20261130-171500-aaaaaa"
    assert latest("acme/pnpm-v6-workspace") == "dependfix-mx3j26n1-w72jak"
    assert latest("octo/none") is None
    found = find_by_run_id(mixed, "dependfix-mx3j26vz-on22e1")
    assert found is not None
    assert found.result.summary.alerts_found == 6


def test_a_run_of_the_originals_index_stays_when_its_report_is_gone(mixed: ReportFolders) -> None:
    (folder,) = mixed.candidates
    History(mixed).page()
    (folder / "dependfix-report-20261130-171400-w72jak.json").unlink()

    runs = [run.run_id for run in History(mixed).page().runs]

    assert runs.count("dependfix-mx3j26n1-w72jak") == 1
    assert find_by_run_id(mixed, "dependfix-mx3j26n1-w72jak") is None


def test_index_follows_the_files_and_is_rebuilt(mixed: ReportFolders) -> None:
    (folder,) = mixed.candidates
    before = History(mixed).page()
    (folder / "index.json").unlink()
    (folder / "dependfix-report-20261130-171500-aaaaaa.json").unlink()

    assert len(History(mixed).page().runs) == len(before.runs) - 1
    (folder / INDEX_NAME).write_bytes(b"this is no database" * 100)
    assert len(History(mixed).page().runs) == len(before.runs) - 1
    assert len(History(mixed).page().runs) == len(before.runs) - 1
    with sqlite3.connect(folder / INDEX_NAME) as index:
        assert index.execute("pragma integrity_check").fetchone() == ("ok",)


def test_files_that_are_no_reports_are_passed_over(mixed: ReportFolders) -> None:
    (folder,) = mixed.candidates
    (folder / "dependfix-report-20261130-999999-zzzzzz.json").write_text('{"runId": ', encoding="utf-8")
    (folder / "dependfix-report-20261130-999999-yyyyyy.json").write_text(json.dumps([1]), encoding="utf-8")
    (folder / "index.json").write_text('{"runs": [{"runId": 3}, null]}', encoding="utf-8")

    assert len(History(mixed).page().runs) == 4


def test_history_of_a_folder_that_takes_no_index_is_read_all_the_same(mixed: ReportFolders) -> None:
    (folder,) = mixed.candidates
    (folder / INDEX_NAME).unlink(missing_ok=True)
    (folder / INDEX_NAME).mkdir()

    assert len(History(mixed).page().runs) == 4
    assert History(ReportFolders(candidates=(folder / "missing",))).page().runs == ()


def test_completions_come_from_the_index(mixed: ReportFolders) -> None:
    history = History(mixed)

    assert history.run_ids("20261130-1715") == ("20261130-171500-aaaaaa",)
    assert history.run_ids("") == (
        "20261130-171600-bbbbbb",
        "20261130-171500-aaaaaa",
        "dependfix-mx3j26vz-on22e1",
        "dependfix-mx3j26n1-w72jak",
    )
    assert history.repositories("OCTO/") == ("octo/shop", "Octo/Web")
