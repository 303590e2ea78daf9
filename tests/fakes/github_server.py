"""The loopback GitHub filled with the recorded corpus, and readers of it that never really wait."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from dependfix_core.connection import FoundToken
from dependfix_core.github import GitHubReader, StaticToken
from dependfix_core.http import HttpClient, HttpConfig, ResponseCache
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Reply
from fakes.still_clock import StillClock

ALERTS: Final = Path(__file__).parents[1] / "data" / "alerts"
ORGANIZATION: Final = "octo-org"
NAMES: Final = ("octo-api", "octo-billing", "octo-edge", "octo-mobile", "octo-shop", "octo-weird", "octo-web")
TOKEN: Final = "ghp_0123456789abcdefghij0123456789abcdef"


@cache
def _pages(name: str) -> str:
    pages = sorted(ALERTS.glob(f"{name}.page*.json"))
    return json.dumps([alert for page in pages for alert in json.loads(page.read_bytes())])


def corpus(name: str) -> list[dict[str, Any]]:
    """The alerts of a recorded repository, newest first, free to change."""
    alerts: list[dict[str, Any]] = json.loads(_pages(name))
    return alerts


def hosted(name: str, **facts: Any) -> HostedRepository:
    """A recorded repository for the loopback service."""
    return HostedRepository(full_name=f"{ORGANIZATION}/{name}", alerts=corpus(name), **facts)


def corpus_github(**options: Any) -> LoopbackGitHub:
    """A service with all recorded repositories, in one organisation."""
    return LoopbackGitHub([hosted(name) for name in NAMES], organizations=[ORGANIZATION], **options)


@cache
def _errors() -> str:
    return (ALERTS / "errors.json").read_text(encoding="utf-8")


def errors() -> list[dict[str, Any]]:
    """Every recorded failure answer."""
    found: list[dict[str, Any]] = json.loads(_errors())["errors"]
    return found


def error(identifier: str) -> dict[str, Any]:
    """A recorded failure answer."""
    return next(entry for entry in errors() if entry["id"] == identifier)


def error_body(entry: dict[str, Any]) -> bytes:
    """The body of a recorded failure answer."""
    if entry["body"] is None:
        return str(entry.get("body_text", "")).encode()
    return json.dumps(entry["body"]).encode()


def error_reply(identifier: str) -> Reply:
    """A recorded failure answer for the loopback service, with exactly its own headers."""
    entry = error(identifier)
    unset = dict.fromkeys(("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"), "")
    return Reply(status=entry["status"], body=error_body(entry), headers={**unset, **entry["headers"]})


def generated_alerts(count: int, *, ecosystem: str = "npm") -> list[dict[str, Any]]:
    """That many alerts with numbers from 1, oldest first; a page of them never looks like another."""
    template = json.dumps(corpus("octo-shop")[-1])
    alerts: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        alert = json.loads(template)
        alert["number"] = number
        alert["state"] = "open"
        alert["created_at"] = f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
        alert["updated_at"] = alert["created_at"]
        alert["security_vulnerability"]["severity"] = ("critical", "high", "medium", "low")[number % 4]
        alert["dependency"]["package"] = {"ecosystem": ecosystem, "name": f"octo-package-{number % 50}"}
        alerts.append(alert)
    return alerts


def reader(
    service: LoopbackGitHub,
    *,
    token: str = TOKEN,
    clock: StillClock | None = None,
    cache: ResponseCache | None = None,
    config: HttpConfig | None = None,
    **options: Any,
) -> GitHubReader:
    """A reader of the loopback service, on a clock that stands still."""
    http = HttpClient(
        config or HttpConfig(trust_env=False), clock=clock or StillClock(), jitter=lambda: 0.0, cache=cache
    )
    return GitHubReader(http, tokens=StaticToken(FoundToken(value=token)), api_url=service.url, **options)


def numbers(alerts: Iterable[Any]) -> list[int]:
    """The numbers of alerts, in their order."""
    return [alert.number for alert in alerts]
