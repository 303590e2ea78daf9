"""What the demonstration is about: one repository with its alerts, and the registry records that it needs."""

import json
from pathlib import Path
from typing import Any, Final

from dependfix_mcp.demo.loopback_github import HostedRepository

REPOSITORY: Final = "acme/storefront"
TOKEN: Final = "demo-token"  # noqa: S105  # opens nothing but the loopback service
_DATA: Final = Path(__file__).parent / "data"


def files() -> dict[str, bytes]:
    """Path → content of the repository."""
    top = _DATA / "repository"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def alerts() -> list[dict[str, Any]]:
    """Its alerts in the shape of the REST API; the advisories are real ones."""
    found: list[dict[str, Any]] = json.loads((_DATA / "alerts.json").read_bytes())
    return found


def hosted_repository() -> HostedRepository:
    """The repository as the loopback GitHub serves it."""
    return HostedRepository(full_name=REPOSITORY, alerts=alerts(), files=files())


def records() -> Path:
    """Folder of the registry records, for `LoopbackRegistry`."""
    return _DATA
