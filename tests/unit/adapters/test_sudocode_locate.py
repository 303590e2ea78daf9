import sys
from pathlib import Path

import pytest

from adapters.sudocode.config import SudocodeConfig
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.locate import find_project, find_sudocode, nearest_folder, shim_script


def program(folder: Path, name: str, *, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="PATH works in another way there")
def test_the_program_is_found_by_setting_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sudocode = program(tmp_path / "bin", "sudocode")
    short = program(tmp_path / "short", "sdc")
    script = program(tmp_path / "js", "cli.js", mode=0o644)
    monkeypatch.setenv("HOME", str(tmp_path))

    def argv(setting: str, path: Path) -> tuple[str, ...]:
        monkeypatch.setenv("PATH", str(path))
        return find_sudocode(SudocodeConfig(path=setting, working_dir=tmp_path, node="node20")).argv

    assert argv("", tmp_path / "bin") == (str(sudocode),)
    assert argv("", tmp_path / "short") == (str(short),)
    assert argv("sdc", tmp_path / "short") == (str(short),)
    assert argv(str(sudocode), tmp_path) == (str(sudocode),)
    assert argv("~/bin/sudocode", tmp_path) == (str(sudocode),)
    assert argv(str(script), tmp_path) == ("node20", str(script))
    for setting in (str(tmp_path / "none"), "none", str(program(tmp_path, "plain", mode=0o644))):
        with pytest.raises(SudocodeError) as caught:
            argv(setting, tmp_path / "bin")
        assert caught.value.code == "cli_missing"


def test_another_installation_at_the_same_place_is_another_program(tmp_path: Path) -> None:
    path = program(tmp_path, "sudocode")
    config = SudocodeConfig(path=str(path), working_dir=tmp_path)
    before = find_sudocode(config).identity

    path.write_text("#!/bin/sh\n# a newer release\n", encoding="utf-8")

    assert find_sudocode(config).identity != before


def test_a_windows_shim_leads_to_its_script(tmp_path: Path) -> None:
    script = program(tmp_path / "node_modules" / "sudocode" / "dist", "cli.js")
    shim = tmp_path / "sudocode.cmd"
    shim.write_text('@ECHO off\r\n"%_prog%"  "%dp0%\\node_modules\\sudocode\\dist\\cli.js" %*\r\n', encoding="utf-8")
    other = tmp_path / "other.cmd"
    other.write_text("@ECHO off\r\nsomething else\r\n", encoding="utf-8")

    assert shim_script(shim) == script
    assert shim_script(other) is None


def test_the_nearest_folder_wins_and_the_top_of_the_checkout_ends_the_search(tmp_path: Path) -> None:
    outer = tmp_path / ".sudocode"
    outer.mkdir()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)

    assert nearest_folder(inner) == outer

    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert nearest_folder(inner) is None

    (tmp_path / "a" / ".sudocode").mkdir()
    assert nearest_folder(inner) == tmp_path / "a" / ".sudocode"


def test_a_file_in_the_way_is_no_project(tmp_path: Path) -> None:
    (tmp_path / ".sudocode").write_text("x", encoding="utf-8")

    with pytest.raises(SudocodeError) as caught:
        nearest_folder(tmp_path)

    assert caught.value.code == "database_invalid"


@pytest.mark.parametrize(
    ("files", "expected"),
    [(["cache.db"], None), ([], "not_initialized"), (["sudograph.db"], "database_incompatible")],
)
def test_a_project_needs_the_database_of_the_release(tmp_path: Path, files: list[str], expected: str | None) -> None:
    (tmp_path / ".sudocode").mkdir()
    for name in files:
        (tmp_path / ".sudocode" / name).touch()
    config = SudocodeConfig(working_dir=tmp_path)

    if expected is None:
        assert find_project(config, database_name="cache.db").root == tmp_path.resolve()
        return
    with pytest.raises(SudocodeError) as caught:
        find_project(config, database_name="cache.db")
    assert caught.value.code == expected
