"""The second corpus: harder projects, judged by people who had not seen the code.

`data/harder/projects` and `data/harder/metadata` have the form of `data/projects`
and `data/metadata`; what was recorded there counts here too. `data/harder/argued.json` names the answers that are held to be
wrong, with the argument: project → alert → text.
"""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from dependfix_core.github.decode import read_alert
from dependfix_core.github.normalise import alert_of
from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey
from fakes.corpus_metadata import corpus_records, records_in
from fakes.planning import NOW, plan_files
from fakes.step_driver import JUDGEMENT

HARDER: Final = Path(__file__).parent.parent / "data" / "harder"
NAMES: Final = tuple(sorted(path.parent.name for path in HARDER.glob("projects/*/expected.json")))
"""All of them, by folder."""
_POLICY: Final = (
    "allow_major",
    "allow_major_override",
    "allow_override",
    "allow_parent_bump",
    "cooldown_days",
    "raise_direct_floor",
    "young_fixes",
    "zero_major_minor_is_breaking",
)


def folder(name: str) -> Path:
    """Where a project lies."""
    return HARDER / "projects" / name


def files(name: str) -> dict[str, bytes]:
    """A project's files by path, without its alerts and their judgement."""
    root = folder(name)
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).as_posix() not in JUDGEMENT
    }


def expected(name: str) -> dict[str, Any]:
    """The judgement."""
    found: dict[str, Any] = json.loads((folder(name) / "expected.json").read_bytes())
    return found


def policy(name: str) -> ScanPolicy:
    """What the project's owner allows."""
    stated = expected(name).get("policy", {})
    return ScanPolicy(severity="all", **{key: stated[key] for key in _POLICY if key in stated})


def now(name: str) -> datetime:
    """The time at which the project was judged, where its answers depend on it."""
    stated = expected(name)
    text = stated["project"].get("now") or stated.get("policy", {}).get("now")
    return datetime.fromisoformat(text) if text else NOW


def alerts(name: str) -> tuple[Alert, ...]:
    """The open and other alerts, as GitHub lists them."""
    payload: list[dict[str, Any]] = json.loads((folder(name) / "alerts.json").read_bytes())
    read = [read_alert(item) for item in payload]
    return tuple(alert_of(one, f"acme/{name}") for one in read if one is not None)


def records() -> dict[RecordKey, Record]:
    """All recorded registry answers."""
    return {**corpus_records(), **records_in(HARDER / "metadata")}


def plan(name: str) -> Plan:
    """The plan under the project's policy."""
    return plan_files(files(name), alerts(name), records(), policy(name), repository=f"acme/{name}", now=now(name))


def argued(name: str) -> dict[int, str]:
    """Alerts whose judged answer is not shared, with the reason."""
    path = HARDER / "argued.json"
    stated: dict[str, dict[str, str]] = json.loads(path.read_bytes()) if path.exists() else {}
    return {int(number): text for number, text in stated.get(name, {}).items()}


def package_addresses(content: bytes) -> set[str]:
    """Hosts of everything in a file that packages are fetched from."""
    text = content.decode("utf-8", "replace")
    addresses = re.findall(r"https?://([^/\s\"']+)(/[^\s\"']*)?", text)
    is_package = re.compile(
        r"^registry\.|^[^/]*(?:npm|yarn|pypi|registry)[^/]*|/-/|\.(?:tgz|whl|tar\.gz|zip)\b|/simple\b"
    )
    return {host for host, path in addresses if is_package.search(f"{host}{path}")}
