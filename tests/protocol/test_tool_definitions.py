"""What every tool says of itself: reviewed files, and the rules that all clients accept.

A changed definition is a reviewed change: run with `--update-definitions` to write the files.
"""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from mcp import Client

from dependfix_core.errors import ErrorCode
from dependfix_mcp.server import MAX_INSTRUCTIONS, TOOLSET_BUILDERS, build_server
from dependfix_mcp.settings import TOOLSETS, Settings, SettingsError
from fakes.served import connected

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "definitions"
MAX_LIST_BYTES = 64 * 1024
MAX_FORWARDED_CHARS = 24_000
"""Names, descriptions and inputs, which hosts hand to the model: about 6,000 tokens."""
KEYWORDS = frozenset(
    [
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "default",
        "description",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "pattern",
        "additionalProperties",
    ]
)
COMBINATIONS = [names for count in range(1, len(TOOLSETS) + 1) for names in itertools.combinations(TOOLSETS, count)]


async def listed(settings: Settings) -> list[dict[str, Any]]:
    async with connected(settings) as client:
        return [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
        ]


@pytest.fixture
async def tools() -> list[dict[str, Any]]:
    return await listed(Settings(sudocode_extras=True))


async def test_definitions_are_the_reviewed_ones(tools: list[dict[str, Any]], request: pytest.FixtureRequest) -> None:
    found = {tool["name"]: json.dumps(tool, indent=2, ensure_ascii=False) + "\n" for tool in tools}
    read_only = {
        f"{tool['name']}.read-only": json.dumps(tool, indent=2, ensure_ascii=False) + "\n"
        for tool in await listed(Settings(read_only=True, sudocode_extras=True))
        if json.dumps(tool, indent=2, ensure_ascii=False) + "\n" != found[tool["name"]]
    }
    found |= read_only
    if request.config.getoption("--update-definitions"):
        for path in FOLDER.glob("*.json"):
            path.unlink()
        for name, text in found.items():
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")

    assert found == {
        path.name.removesuffix(".json"): path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")
    }


def schemas(node: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema inside a schema, with its depth."""
    yield node, depth
    for child in node.get("properties", {}).values():
        yield from schemas(child, depth + 1)
    if "items" in node:
        yield from schemas(node["items"], depth + 1)


async def test_inputs_follow_the_rules_that_all_clients_accept(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        root = tool["inputSchema"]
        assert root["type"] == "object", tool["name"]
        assert root["additionalProperties"] is False
        assert set(root.get("required", [])) <= set(root["properties"])
        assert len(root["properties"]) <= 100
        for schema, depth in schemas(root):
            assert set(schema) <= KEYWORDS, (tool["name"], schema)
            assert isinstance(schema["type"], str)
            assert depth <= 5
            if depth == 1:
                assert schema["description"], (tool["name"], schema)
            if schema["type"] == "array":
                assert "type" in schema["items"]
            if "enum" in schema:
                assert len(set(schema["enum"])) == len(schema["enum"])
                assert all(isinstance(value, str) and value for value in schema["enum"])
            if "default" in schema:
                jsonschema.validate(schema["default"], schema)
            if "pattern" in schema:
                assert not re.search(r"\(\?P|\\A|\\Z|\(\?[a-z]", schema["pattern"])
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in root["properties"])


async def test_outputs_are_flat_objects_that_a_failure_fits(tools: list[dict[str, Any]]) -> None:
    failure = {"ok": False, "error": "x", "code": "timeout", "hint": "y", "retryable": True, "retryAfterSeconds": 1}
    for tool in tools:
        schema = tool["outputSchema"]
        assert schema["type"] == "object"
        assert schema["required"] == ["ok"], tool["name"]
        assert not set(schema) & {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs"}
        assert '"$ref"' not in json.dumps(schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate({**failure, "details": {"argument": "x"}}, schema)


async def test_every_tool_says_what_it_is(tools: list[dict[str, Any]]) -> None:
    names = [tool["name"] for tool in tools]
    assert len(names) == len(set(names))
    for tool in tools:
        assert re.fullmatch(r"[a-z_]{1,25}", tool["name"])
        assert 20 <= len(tool["description"]) <= 1024, tool["name"]
        assert tool["title"]
        hints = tool["annotations"]
        assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(hints)
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
        assert not re.search("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\U000e0000-\U000e007f]", json.dumps(tool))


async def test_list_stays_within_its_budgets() -> None:
    tools = await listed(Settings())

    assert len(json.dumps(tools, separators=(",", ":")).encode()) <= MAX_LIST_BYTES
    forwarded = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(forwarded, separators=(",", ":"))) <= MAX_FORWARDED_CHARS


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("toolsets", COMBINATIONS)
async def test_each_combination_serves_its_own_tools_in_a_fixed_order(
    toolsets: tuple[str, ...], read_only: bool
) -> None:
    everything = await listed(Settings())
    order = [tool["name"] for tool in everything]

    settings = Settings(toolsets=toolsets, read_only=read_only)
    async with connected(settings) as client:
        tools = (await client.list_tools()).tools
        instructions = client.instructions or ""

    names = [tool.name for tool in tools]
    assert names == sorted(names, key=order.index)
    assert names
    if read_only:
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert len(instructions.encode()) <= MAX_INSTRUCTIONS
    hidden = set(order) - set(names)
    assert not hidden & set(re.findall(r"[a-z]+(?:_[a-z]+)+", instructions))


async def test_single_tools_are_added_and_taken_away() -> None:
    assert [tool["name"] for tool in await listed(Settings(toolsets=("suspec",), tools=("history",)))] == [
        "history",
        "suspec_check",
        "suspec_get_checks",
    ]
    assert [tool["name"] for tool in await listed(Settings(toolsets=("suspec",), exclude_tools=("suspec_check",)))] == [
        "suspec_get_checks"
    ]
    writing = Settings(read_only=True, toolsets=("suspec",), tools=("create_issue",))
    assert "create_issue" not in [tool["name"] for tool in await listed(writing)]


async def test_excluded_tool_is_unknown_to_a_call() -> None:
    async with connected(Settings(toolsets=("suspec",), exclude_tools=("suspec_check",))) as client:
        result = await client.call_tool("suspec_check", {"paths": ["/a"]})

    assert result.is_error


@pytest.mark.parametrize(
    "settings", [Settings(tools=("no_such_tool", "history")), Settings(exclude_tools=("no_such_tool", "history"))]
)
def test_unknown_tool_name_is_a_fault(settings: Settings) -> None:
    with pytest.raises(SettingsError) as caught:
        build_server(settings)

    assert len(caught.value.faults) == 1


def test_every_toolset_has_a_builder_in_the_order_of_the_settings() -> None:
    assert tuple(TOOLSET_BUILDERS) == TOOLSETS


async def test_lists_may_be_cached_and_prompts_refuse_with_a_reason() -> None:
    async with connected(Settings()) as client:
        assert (await client.list_tools()).ttl_ms == 300_000
        faults = []
        for name in ("no-such", "sudocode-review-spec"):
            try:
                await client.get_prompt(name, {})
            except Exception as error:  # noqa: BLE001  # the type is the SDK's own
                faults.append(str(error))

    assert faults == ["Unknown prompt: no-such", "Missing arguments: spec_id"]


async def test_codes_of_failures_are_the_documented_ones() -> None:
    assert len(get_args(ErrorCode)) == len(set(get_args(ErrorCode)))


async def test_initialize_names_the_server() -> None:
    async with Client(build_server(Settings())) as client:
        assert client.server_info is not None
        assert client.server_info.name == "dependfix-mcp"
        assert client.server_info.version
