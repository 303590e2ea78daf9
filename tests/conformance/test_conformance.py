"""The official conformance suite against the product's server, beside reviewed lists of expected failures."""

import subprocess
from pathlib import Path

import pytest

from conformance.serving import free_port, serving
from tools.bring import command_of, tools_folder

HERE = Path(__file__).parent


@pytest.mark.timeout(300)
@pytest.mark.needs_tool("conformance", "conformance-2025", "node-22")
@pytest.mark.parametrize(
    ("suite", "arguments", "baseline"),
    [
        ("conformance", ["--requirements", "2025-11-25"], "baseline.2025-11-25.yml"),
        ("conformance", ["--requirements", "2026-07-28"], "baseline.2026-07-28.yml"),
        ("conformance-2025", ["--suite", "active"], "baseline.active.yml"),
    ],
)
def test_the_server_conforms(suite: str, arguments: list[str], baseline: str, tmp_path: Path) -> None:
    command = command_of(suite, tools_folder())
    assert command is not None
    with serving(HERE / "fixture_server.py", free_port()) as url:
        run = subprocess.run(
            [*command, "server", "--url", url, *arguments, "--expected-failures", str(HERE / baseline)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
