import subprocess
from pathlib import Path

import pytest

from fakes.sudocode_project import Program, Project, fake_program, git, real_program


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.needs_tool("sudocode"))])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """The program of the present release: the fake, and the real one where SUDOCODE_PATH names it."""
    if request.param == "fake":
        return fake_program(tmp_path)
    found = real_program()
    version = subprocess.run([str(found.path), "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if tuple(map(int, version.split("-")[0].split("."))) < (0, 1, 7):
        pytest.skip("needs sudocode: SUDOCODE_PATH names an older release, which has tests of its own")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty git checkout."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    return root


@pytest.fixture
def project(folder: Path, program: Program) -> Project:
    """An initialised project."""
    made = Project(root=folder, program=program)
    made.by_hand("init")
    return made


@pytest.fixture
def faked(folder: Path, tmp_path: Path) -> Project:
    """An initialised project on the fake in this process, for what the real program does not do on demand."""
    made = Project(root=folder, program=fake_program(tmp_path))
    made.by_hand("init")
    return made
