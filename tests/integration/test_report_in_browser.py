"""The HTML report in a real browser: the script runs under its policy, filters and sorts, and hostile text stays text."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dependfix_core.report.html import render_html
from dependfix_core.report.wire import RunResult
from fakes.reports import HOSTILE, result

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.needs_chromium
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
]


def dom(page: str, tmp_path: Path) -> str:
    """The document after its scripts have run."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    arguments = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(arguments, check=True, capture_output=True, timeout=60)
    return done.stdout.decode()


def with_probe(page: str, script: str) -> str:
    """The page with a script of the test behind its own, which its policy would not allow."""
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return open_page.replace("</body>", f"<script>{script}</script></body>")


def hostile() -> RunResult:
    attack = f'{HOSTILE}"><img src=x onerror="document.title=1"><script>document.title="owned"</script>'
    alerts = tuple(
        alert.model_copy(update={"summary": attack, "package_name": attack, "manifest_path": attack})
        for alert in result().alerts
    )
    return result().model_copy(update={"alerts": alerts})


def test_policy_lets_the_pages_own_script_run_and_no_text_of_others(tmp_path: Path) -> None:
    found = dom(render_html(hostile()), tmp_path)

    assert re.search(r'id="tools" role="search">', found), "the script shows the tools"
    assert "2 alerts</span>" in found
    assert "<title>Dependency security: octo/shop</title>" in found
    assert "<img" not in found


def test_filter_and_sort_change_what_is_shown(tmp_path: Path) -> None:
    script = """
      const pick = document.querySelector('select[name=severity]');
      pick.value = 'high'; pick.dispatchEvent(new Event('change'));
      const rows = () => Array.from(document.querySelectorAll('#alerts tbody tr'));
      const seen = rows().filter((row) => row.checkVisibility()).map((row) => row.dataset.severity).join();
      const shown = document.getElementById('shown').textContent;
      document.getElementById('reset').click();
      const button = document.querySelector('button[data-key=rank]');
      button.click(); button.click();
      const sorted = rows().map((row) => row.dataset.severity).join();
      const find = document.getElementById('find');
      find.value = 'no such thing'; find.dispatchEvent(new Event('input'));
      const none = document.getElementById('none').checkVisibility();
      document.title = [seen, shown, sorted, none].join('|');
    """

    found = dom(with_probe(render_html(result()), script), tmp_path)

    assert "<title>high|1 of 2 alerts|high,critical|true</title>" in found


@pytest.mark.parametrize("width", [320, 1280])
def test_page_is_never_wider_than_the_window(tmp_path: Path, width: int) -> None:
    script = f"""
      const frame = document.documentElement;
      frame.style.width = '{width}px';
      document.title = [frame.scrollWidth <= Math.max({width}, window.innerWidth)].join();
    """

    found = dom(with_probe(render_html(hostile()), script), tmp_path)

    assert "<title>true</title>" in found
