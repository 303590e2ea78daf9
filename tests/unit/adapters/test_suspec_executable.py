import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.suspec.executable import Program, code_files, find_program, fingerprint, package_root
from dependfix_core.errors import CommandError


def locate_in(folder: Path) -> Callable[[str], str | None]:
    def locate(name: str) -> str | None:
        return shutil.which(name, path=str(folder))

    return locate


def program(path: Path, *, runs: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755 if runs else 0o644)
    return path


def test_the_configured_program_comes_before_path(tmp_path: Path) -> None:
    on_path, named = program(tmp_path / "bin" / "suspec"), program(tmp_path / "mine")
    locate = locate_in(tmp_path / "bin")

    assert find_program(None, "node", locate).argv == (str(on_path),)
    assert find_program("", "node", locate).argv == (str(on_path),)
    assert find_program("suspec", "node", locate).argv == (str(on_path),)
    assert find_program(str(named), "node", locate).argv == (str(named),)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "sub" / "suspec")
    monkeypatch.chdir(tmp_path)

    assert find_program("sub/suspec", "node", locate_in(tmp_path)).argv == (str(tmp_path / "sub" / "suspec"),)


@pytest.mark.parametrize("suffix", [".js", ".mjs", ".cjs", ".JS"])
def test_a_script_is_run_by_node_and_needs_no_mode(tmp_path: Path, suffix: str) -> None:
    entry, node = program(tmp_path / f"suspec{suffix}", runs=False), program(tmp_path / "bin" / "node22")

    found = find_program(str(entry), str(node), locate_in(tmp_path))

    assert found == Program(entry=str(entry), argv=(str(node), str(entry)))
    assert find_program(str(entry), "node22", locate_in(tmp_path / "bin")) == found


def make_nothing(_path: Path) -> None: ...


def make_below_a_file(path: Path) -> None:
    path.parent.write_text("")


def make_loop(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "name", "code"),
    [
        (make_nothing, "x/suspec", "cli_missing"),
        (make_below_a_file, "x/suspec", "cli_missing"),
        (make_loop, "x/suspec", "cli_broken"),
        (lambda path: path.mkdir(parents=True), "x/suspec", "cli_broken"),
        (lambda path: program(path, runs=False), "x/suspec", "cli_broken"),
        (program, "x/suspec.cmd", "cli_broken"),
        (program, "x/suspec.bat", "cli_broken"),
        (program, "x/suspec.js", "cli_broken"),  # and no Node
    ],
    ids=["missing", "below-a-file", "loop", "folder", "not-executable", "cmd", "bat", "no-node"],
)
def test_a_program_that_cannot_run_says_why(
    tmp_path: Path, make: Callable[[Path], object], name: str, code: str
) -> None:
    make(tmp_path / name)

    with pytest.raises(CommandError) as caught:
        find_program(str(tmp_path / name), "node", locate_in(tmp_path / "empty"))

    assert caught.value.code == code


@pytest.mark.parametrize("name", [None, "suspec2", "suspec.js"])
def test_a_bare_name_is_never_looked_up_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    program(tmp_path / (name or "suspec"))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError) as caught:
        find_program(name, "node", locate_in(tmp_path / "bin"))

    assert caught.value.code == "cli_missing"


def package(folder: Path, *inside: str) -> Path:
    entry = program(folder / "bin" / "suspec.js")
    for name in ("package.json", *inside):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return entry


def test_the_code_that_runs_is_the_source_where_there_is_one(tmp_path: Path) -> None:
    checkout = package(tmp_path / "a", "src/index.ts", "src/x/y.ts", "dist/index.js")
    published = package(tmp_path / "b", "dist/index.js")
    alone = program(tmp_path / "c" / "suspec")

    assert code_files(checkout) == (tmp_path / "a/src/index.ts", tmp_path / "a/src/x/y.ts")
    assert code_files(published) == (tmp_path / "b/dist/index.js",)
    assert code_files(alone) == (alone,)
    assert package_root(alone) is None


def replace_same_bytes(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


@pytest.mark.parametrize(
    ("inside", "change"),
    [
        ("bin/suspec.js", lambda path: path.write_text("other")),
        ("bin/suspec.js", replace_same_bytes),
        ("bin/suspec.js", Path.unlink),
        ("dist/index.js", lambda path: path.write_text("other")),
        ("dist/index.js", lambda path: os.utime(path, ns=(1, 1))),
        ("dist/chunk.js", Path.touch),
        ("package.json", lambda path: path.write_text("other")),
    ],
)
def test_an_upgrade_changes_the_fingerprint(tmp_path: Path, inside: str, change: Callable[[Path], object]) -> None:
    entry = package(tmp_path / "real", "dist/index.js")
    link = tmp_path / "suspec"
    link.symlink_to(entry)
    found = Program(entry=str(link), argv=(str(link),))
    before = fingerprint(found)

    assert fingerprint(found) == before
    change(tmp_path / "real" / inside)
    assert fingerprint(found) != before
