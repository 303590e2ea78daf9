"""The toolset as clients see it: names, parameters and defaults of the specification, resources, prompts."""

import json
import subprocess
import sys
from typing import Any

import pytest
from mcp import Client

from dependfix_mcp.server import build_server
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings
from dependfix_mcp.tools import sudocode
from fakes.sudocode_cli import OCT_20, OCT_22
from fakes.sudocode_project import Project, fake_program

pytestmark = pytest.mark.anyio
ABSENT = object()
# Name → parameter → default; `...` where it is required.
SPECIFIED: dict[str, dict[str, Any]] = {
    "ready": {"limit": 10, "priority": ABSENT, "assignee": "", "show_specs": False, "show_issues": True},
    "list_issues": {"status": ABSENT, "type": ABSENT, "priority": ABSENT, "assignee": "", "limit": 50},
    "show_issue": {"issue_id": ...},
    "create_issue": {
        "title": ...,
        "description": "",
        "type": "task",
        "priority": 2,
        "assignee": "",
        "parent": "",
        "tags": [],
        "estimate": ABSENT,
    },
    "update_issue": {
        "issue_id": ...,
        "status": ABSENT,
        "priority": ABSENT,
        "assignee": "",
        "type": ABSENT,
        "title": "",
        "description": "",
    },
    "close_issue": {"issue_ids": ..., "reason": "Completed"},
    "blocked_issues": {"show_specs": False, "show_issues": True},
    "list_specs": {"status": ABSENT, "type": ABSENT, "priority": ABSENT, "limit": 50},
    "show_spec": {"spec_id": ...},
    "create_spec": {
        "title": ...,
        "type": "feature",
        "priority": 2,
        "description": "",
        "design": "",
        "file_path": "",
        "parent": "",
        "tags": [],
    },
    "link": {"from_id": ..., "to_id": ..., "type": "references"},
    "add_feedback": {
        "issue_id": ...,
        "spec_id": ...,
        "content": ...,
        "type": "comment",
        "line": ABSENT,
        "text": "",
        "agent": "",
    },
    "list_feedback": {"issue_id": "", "spec_id": "", "type": ABSENT, "status": ABSENT, "limit": 50},
    "show_feedback": {"feedback_id": ...},
    "acknowledge_feedback": {"feedback_id": ...},
    "resolve_feedback": {"feedback_id": ..., "comment": ""},
    "wontfix_feedback": {"feedback_id": ..., "reason": ""},
    "stale_feedback": {},
    "relocate_feedback": {"feedback_id": ..., "line": ...},
    "stats": {},
    "status": {"verbose": False},
    "init": {},
}
READS = {"ready", "list_issues", "show_issue", "blocked_issues", "list_specs", "show_spec", "list_feedback"}
READS |= {"show_feedback", "stale_feedback", "stats", "status"}
CREATES = {"create_issue", "create_spec", "add_feedback"}
EXTRAS = ["create_issues", "update_issues", "search", "sync", "graph"]


async def listed(**more: Any) -> list[Any]:
    async with Client(build_server(Settings(toolsets=("sudocode",), **more))) as client:
        return list((await client.list_tools()).tools)


async def test_the_tools_are_those_of_the_specification_in_its_order() -> None:
    tools = await listed()

    assert [tool.name for tool in tools] == list(SPECIFIED)
    for tool in tools:
        schema = tool.input_schema
        wanted = SPECIFIED[tool.name]
        assert list(schema["properties"]) == list(wanted)
        assert schema.get("required", []) == [name for name, default in wanted.items() if default is ...]
        given = {name: part.get("default", ABSENT) for name, part in schema["properties"].items()}
        assert given == {name: ABSENT if default is ... else default for name, default in wanted.items()}


async def test_hints_say_what_changes_something() -> None:
    for tool in await listed(sudocode_extras=True):
        reads = tool.name in READS | {"search", "graph"}
        assert tool.annotations is not None
        assert (
            tool.annotations.read_only_hint,
            tool.annotations.destructive_hint,
            tool.annotations.idempotent_hint,
            tool.annotations.open_world_hint,
        ) == (reads, False, tool.name not in CREATES | {"create_issues"}, False)
        assert tool.title.startswith("Sudocode: ")
        assert tool.description.startswith("Sudocode: ")


async def test_extras_come_only_when_asked_for() -> None:
    assert [tool.name for tool in await listed(sudocode_extras=True)] == [*SPECIFIED, *EXTRAS]


async def test_read_only_lists_what_reads() -> None:
    tools = await listed(read_only=True, sudocode_extras=True)

    assert {tool.name for tool in tools} == READS | {"search", "graph"}


async def test_schemas_are_small_and_in_the_words_that_every_client_knows() -> None:
    tools = await listed(sudocode_extras=True)
    specified = [tool for tool in tools if tool.name in SPECIFIED]
    forwarded = [{"name": t.name, "description": t.description, "input": t.input_schema} for t in specified]

    assert len(json.dumps(forwarded, separators=(",", ":"))) < 12_000
    known = {"type", "properties", "required", "items", "enum", "default", "description", "additionalProperties"}
    known |= {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"}

    def walk(node: dict[str, Any]) -> None:
        assert set(node) <= known
        assert isinstance(node["type"], str)
        assert "" not in node.get("enum", [])
        for part in node.get("properties", {}).values():
            walk(part)
        if "items" in node:
            walk(node["items"])

    for tool in tools:
        walk(tool.input_schema)
        assert all(part["description"] for part in tool.input_schema["properties"].values())
        walk(tool.output_schema or {})
        assert len(tool.description or "") < 600


def test_nothing_of_sudocode_is_imported_before_the_first_call() -> None:
    code = (
        "import sys; from dependfix_mcp.server import build_server; from dependfix_mcp.settings import Settings; "
        "build_server(Settings(toolsets=('sudocode',))); print([m for m in sys.modules if m.startswith('adapters')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"


async def test_the_resources_tell_the_facts_of_the_release(project: Project) -> None:
    async with project.client() as client:
        named = {str(one.uri): one for one in (await client.list_resources()).resources}
        quickstart, workflow = [
            (await client.read_resource(uri)).contents[0] for uri in ("sudocode://quickstart", "sudocode://workflow")
        ]

    assert {uri: one.name for uri, one in named.items()} == {
        "sudocode://quickstart": "Sudocode Quickstart Guide",
        "sudocode://workflow": "Agent Workflow Guide",
    }
    assert {one.mime_type for one in named.values()} == {"text/markdown"}
    text = quickstart.text  # type: ignore[union-attr]  # both are texts
    for heading in ("# Sudocode Quickstart", "## Core Concepts", "## Typical Workflow", "## Relationship Types"):
        assert f"{heading}\n" in text
    assert "- `blocks`: to_id waits for from_id\n" in text
    assert str(project.root) in text
    guide = workflow.text  # type: ignore[union-attr]  # both are texts
    assert {name for name in SPECIFIED if f"`{name}`" in guide} >= {
        "ready",
        "show_issue",
        "update_issue",
        "close_issue",
    }
    for code in ("not_initialized", "database_stale", "outcome_unknown", "unsupported_by_cli"):
        assert f"`{code}`" in guide


@pytest.mark.parametrize(
    ("generation", "facts"),
    [
        (OCT_22, ["from_id waits for to_id (the old direction)", "open, acknowledged, resolved, wont_fix"]),
        (OCT_20, ["bug, feature, task, epic, chore", "draft, review, approved, deprecated", "ambiguity"]),
    ],
)
async def test_the_resources_follow_an_older_release(faked: Project, generation: str, facts: list[str]) -> None:
    faked.program = fake_program(faked.root.parent, generation=generation)

    async with faked.client() as client:
        text = (await client.read_resource("sudocode://quickstart")).contents[0].text  # type: ignore[union-attr]  # a text

    for fact in facts:
        assert fact in text


async def test_the_resources_are_there_without_the_program(faked: Project) -> None:
    faked.program.path.unlink()

    async with faked.client() as client:
        texts = [
            (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]  # both are texts
            for uri in ("sudocode://quickstart", "sudocode://workflow")
        ]

    assert "cli_missing" in texts[0]
    assert "# Agent Workflow Guide" in texts[1]


async def test_the_prompts_name_real_tools_and_take_their_arguments(faked: Project) -> None:
    async with faked.client() as client:
        listed_prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        start = await client.get_prompt("sudocode-start-next-task", {"assignee": "ana"})
        review = await client.get_prompt("sudocode-review-spec", {"spec_id": "s-14sh"})

    assert set(listed_prompts) == {"sudocode-start-next-task", "sudocode-review-spec"}
    texts = [one.messages[0].content.text for one in (start, review)]  # type: ignore[union-attr]  # texts
    assert "assignee='ana'" in texts[0]
    assert "'s-14sh'" in texts[1]
    for text, tools in zip(texts, (("ready", "show_issue", "close_issue"), ("show_spec", "add_feedback")), strict=True):
        assert all(tool in text for tool in tools)


async def test_ids_and_names_are_completed(faked: Project) -> None:
    issue = await faked.issue("One", assignee="ana", priority=0)
    await faked.issue("Two", assignee="bob")
    spec = await faked.spec()
    settings = Settings(toolsets=("sudocode",), sudocode_path=str(faked.program.path), sudocode_working_dir=faked.root)
    toolset = sudocode.build(Services(settings=settings, runner=faked.program.runner))
    assert toolset.complete is not None

    async def values(prompt: str, argument: str, typed: str) -> list[str] | None:
        assert toolset.complete is not None
        found = await toolset.complete(prompt, argument, typed)
        return None if found is None else found.values

    assert await values("sudocode-review-spec", "spec_id", "s-") == [spec]
    assert (await values("sudocode-review-spec", "issue_id", "") or [])[0] == issue
    assert await values("sudocode-start-next-task", "assignee", "A") == ["ana"]
    assert await values("other", "spec_id", "") is None
    faked.program.path.unlink()
    assert await values("sudocode-review-spec", "spec_id", "") == []
