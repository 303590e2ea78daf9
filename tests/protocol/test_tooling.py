import json
from typing import Annotated, Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import Field

from dependfix_core.errors import RateLimitedError
from dependfix_mcp.envelope import Envelope, Record
from dependfix_mcp.tooling import ProductTool, ToolSpec

pytestmark = pytest.mark.anyio

SECRET = "planted-secret-value"


class Item(Record):
    name: str = Field(description="Name")
    size: int | None = Field(None, description="Size")


class Echo(Envelope):
    items: list[Item] | None = Field(None, description="What was asked for")


async def echo(
    name: Annotated[str, Field(description="What to say")],
    mode: Annotated[Literal["plain", "limit", "crash", "slow", "long"], Field(description="How to end")] = "plain",
) -> Echo:
    """Say something back, or fail in one of the ways there are."""
    if mode == "limit":
        raise RateLimitedError("used up", retry_after_s=7, hint="Wait.")
    if mode == "crash":
        raise KeyError(SECRET)
    if mode == "slow":
        await anyio.sleep(5)
    if mode == "long":
        name = "x" * 70_000
    return Echo(ok=True, items=[Item(name=name)])


def client(mode: str) -> Client:
    spec = ToolSpec(
        fn=echo, title="Echo", read_only=True, destructive=False, idempotent=True, open_world=False, timeout_s=0.2
    )
    tool = ProductTool.build(spec, secrets=lambda: [SECRET])
    return Client(MCPServer(name="t", version="1", tools=[tool]), mode=mode)


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"name": f"a\u202e b {SECRET}"}, {"ok": True, "items": [{"name": "a b [redacted]"}]}),
        (
            {"name": "a", "mode": "limit"},
            {
                "ok": False,
                "error": "used up",
                "code": "rate_limited",
                "hint": "Wait.",
                "retryable": True,
                "retryAfterSeconds": 7,
            },
        ),
        (
            {"name": "a", "mode": "crash"},
            {
                "ok": False,
                "error": "an unexpected error; details are in the server's log",
                "code": "internal_error",
                "retryable": False,
            },
        ),
        (
            {"name": "a", "mode": "slow"},
            {"ok": False, "error": "no result within 0.2 s", "code": "timeout", "retryable": True},
        ),
        (
            {"name": "a", "extra": 1},
            {
                "ok": False,
                "error": "unknown argument: extra",
                "code": "invalid_arguments",
                "hint": "Allowed: name, mode.",
                "retryable": False,
                "details": {"argument": "extra"},
            },
        ),
    ],
)
async def test_every_answer_is_the_envelope(era: str, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    async with client(era) as session:
        result = await session.call_tool("echo", arguments)

    assert result.structured_content == expected
    assert result.is_error is not expected["ok"]
    (block,) = result.content
    assert block.type == "text"
    assert json.loads(block.text) == expected


@pytest.mark.parametrize(
    ("arguments", "code", "argument"),
    [
        ({"name": "a", "mode": "other"}, "invalid_arguments", "mode"),
        ({}, "invalid_arguments", "name"),
        ({"name": "a", "mode": "long"}, "output_too_large", None),
    ],
)
async def test_bad_arguments_and_oversized_results_have_their_codes(
    arguments: dict[str, Any], code: str, argument: str | None
) -> None:
    async with client("auto") as session:
        result = await session.call_tool("echo", arguments)

    assert result.structured_content is not None
    assert result.structured_content["code"] == code
    assert (result.structured_content.get("details") or {}).get("argument") == argument


async def test_schemas_are_flat_and_closed() -> None:
    async with client("auto") as session:
        (tool,) = (await session.list_tools()).tools

    assert tool.input_schema["additionalProperties"] is False
    text = json.dumps([tool.input_schema, tool.output_schema])
    assert not any(word in text for word in ("$ref", "$defs", "anyOf", '"null"', '"title"'))
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["ok"]
