"""The README's first command does what it promises: no token, no network, an exit code, a report."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


@pytest.mark.timeout(120)
def test_the_demonstration_fixes_its_repository_and_names_its_report(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SRC),
        "TMPDIR": str(tmp_path),
        # Nothing that leaves this machine could be reached.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }

    run = subprocess.run(
        [sys.executable, "-m", "dependfix_mcp", "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    assert "1  fetch_alerts: 18 open alerts" in run.stdout
    assert "3  run_scan mode=fix: 15 of 18 alerts fixed and proven" in run.stdout
    assert re.search(r"\(IDNA\) vuln\w*…", run.stdout), "a text that was cut says so"
    outcomes = re.findall(
        r"^(\d+) +\S+ +(fixed|partly fixed|nothing to do|left, with a reason|put back)", run.stdout, re.MULTILINE
    )
    expected = dict.fromkeys(range(1, 19), "fixed") | {18: "nothing to do"}
    # Express's next version brings packages of its own, and which go where only npm says.
    expected |= dict.fromkeys((9, 10), "left, with a reason")
    assert {int(number): outcome for number, outcome in outcomes} == expected
    html = re.search(r"The report for people: (\S+\.html)", run.stdout)
    assert html is not None
    assert "<!doctype html>" in Path(html[1]).read_text(encoding="utf-8").lower()
