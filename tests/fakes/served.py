"""A server over the loopback GitHub, asked through the in-memory client."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from dependfix_mcp.demo.loopback_github import LoopbackGitHub
from dependfix_mcp.server import build_server
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Secret, Settings
from fakes.github_server import TOKEN


def settings_for(github: LoopbackGitHub | None, folder: Path, **changes: Any) -> Settings:
    """Settings that reach nothing but the loopback service and `folder`."""
    given: dict[str, Any] = {
        "github_token": Secret(TOKEN),
        "github_api_url": github.url if github is not None else "http://127.0.0.1:9",
        "report_dir": folder / "reports",
        "workdir": folder,
        "offline": True,
        "max_wait_s": 0,
        "toolsets": ("dependfix",),
        "environment": {"PATH": "/usr/bin:/bin"},
    }
    return Settings(**{**given, **changes})


@asynccontextmanager
async def connected(settings: Settings, *, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of the server that these settings ask for."""
    async with Client(build_server(settings, Services(settings=settings)), mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer, success or failure; its text says the same."""
    result = await client.call_tool(tool, arguments)
    return answer_of(result)


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """The structured answer of a result."""

    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.structured_content is not None
    assert json.loads(block.text) == result.structured_content
    assert len(block.text) <= 60_000
    assert result.is_error is not result.structured_content["ok"]
    answer: dict[str, Any] = result.structured_content
    return answer
