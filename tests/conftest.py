import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tools.bring import TOOLS, command_of, tools_folder

# Named by their own variables, as users name them.
NAMED_BY_VARIABLE = {"suspec": "SUSPEC_BIN", "sudocode": "SUDOCODE_PATH"}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

# Laws are never timed: a machine that is busy breaks none. Every run tries the same
# examples; `--hypothesis-profile explore` draws new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("laws", settings.get_profile("explore"), derandomize=True, database=None)
settings.load_profile("laws")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-definitions",
        action="store_true",
        help="write the tools' definitions to tests/protocol/definitions, to be reviewed",
    )


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes do not name a test: what they hold may be new in every process, and the names must be the same in all."""
    return argname if isinstance(val, bytes) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs a tool skips with the reason where the tool is missing."""
    for marker in item.iter_markers("needs_tool"):
        for name in marker.args:
            if missing := _missing(name):
                pytest.skip(f"needs {name}: {missing}")
    if item.get_closest_marker("needs_chromium") and not any(map(shutil.which, CHROMIUM)):
        pytest.skip("needs chromium: not on PATH")


def _missing(name: str) -> str:
    if variable := NAMED_BY_VARIABLE.get(name):
        path = os.environ.get(variable, "")
        return "" if path and Path(path).exists() else f"{variable} names none"
    if name in TOOLS:
        found = command_of(name, tools_folder())
        return "" if found else "not brought (python tests/tools/bring.py)"
    return "" if shutil.which(name) else "not on PATH"


@pytest.fixture
def tool_command(request: pytest.FixtureRequest) -> list[str]:
    """How the one tool that the test's `needs_tool` names starts."""
    marker = request.node.get_closest_marker("needs_tool")
    assert marker is not None
    command = command_of(marker.args[0], tools_folder())
    assert command is not None
    return command


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what was skipped, for the comparison with the reviewed list."""
    path = os.environ.get("DEPENDFIX_SKIPS_FILE")
    if path and report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\t{reason}\n")
