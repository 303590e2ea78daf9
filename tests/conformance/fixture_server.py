"""The product's server with the fixture tools that the conformance suite asks for; never part of the package.

usage: python fixture_server.py PORT

What is under test is the product's: its tool class, envelope, middleware and
HTTP transport. The fixtures only give it something to carry.
"""

import base64
import sys
from typing import Annotated, Any, cast

import anyio
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl, BaseModel, Field

from dependfix_core.errors import DependfixError
from dependfix_mcp import server as product
from dependfix_mcp.envelope import Envelope
from dependfix_mcp.http import serve_http
from dependfix_mcp.serve import configure_logging
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings
from dependfix_mcp.tooling import Toolset, ToolSpec

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = base64.b64encode(
    b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00"
).decode()


class Said(Envelope):
    """A line of text as a product result."""

    text: str | None = Field(None, description="What is said")


class Name(BaseModel):
    """What the user is asked for."""

    username: str = Field(description="A name")


def content(*blocks: Any) -> CallToolResult:
    return CallToolResult(content=list(blocks), structured_content={"ok": True})


async def test_simple_text() -> Annotated[CallToolResult, Said]:
    """Say one fixed line of text, without arguments."""
    return content(TextContent(type="text", text="This is a simple text response for testing."))


async def test_image_content() -> Annotated[CallToolResult, Said]:
    """Show one fixed picture, without arguments."""
    return content(ImageContent(type="image", data=PIXEL, mime_type="image/png"))


async def test_audio_content() -> Annotated[CallToolResult, Said]:
    """Play one fixed sound, without arguments."""
    return content(AudioContent(type="audio", data=SILENCE, mime_type="audio/wav"))


def embedded() -> EmbeddedResource:
    return EmbeddedResource(
        type="resource",
        resource=TextResourceContents(
            uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
        ),
    )


async def test_embedded_resource() -> Annotated[CallToolResult, Said]:
    """Give one fixed resource inside the answer."""
    return content(embedded())


async def test_multiple_content_types() -> Annotated[CallToolResult, Said]:
    """Give text, a picture and a resource in one answer."""
    return content(
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(
                uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
            ),
        ),
    )


async def test_error_handling() -> Said:
    """Fail on purpose, as a product tool fails."""
    raise DependfixError("This tool intentionally returns an error for testing", code="unsupported")


async def test_tool_with_progress(context: Context) -> Said:
    """Report progress three times, then answer."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(0.05)
    return Said(ok=True, text="done")


async def ask_name(message: str) -> Elicit[Name]:
    return Elicit(message, Name)


async def test_elicitation(
    message: Annotated[str, Field(description="The question")], answer: Annotated[Name, Resolve(ask_name)]
) -> Said:
    """Ask the user for a name."""
    return Said(ok=True, text=f"User response: {answer.username}")


async def ask_fixed() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def test_input_required_result_tampered_state(answer: Annotated[Name, Resolve(ask_fixed)]) -> Said:
    """Ask the user for a name, behind a sealed state."""
    return Said(ok=True, text=f"Hello, {answer.username}!")


async def test_input_required_result_elicitation(answer: Annotated[Name, Resolve(ask_fixed)]) -> Said:
    """Ask the user for a name, with a fixed question."""
    return Said(ok=True, text=f"Hello, {answer.username}!")


async def test_missing_capability(answer: Annotated[Name, Resolve(ask_fixed)]) -> Said:
    """Need a client that can ask its user."""
    return Said(ok=True, text=answer.username)


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    test_elicitation,
    test_input_required_result_tampered_state,
    test_input_required_result_elicitation,
    test_missing_capability,
)


def register(server: MCPServer) -> None:
    @server.resource("test://static-text", name="static-text", description="Fixed text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", name="static-binary", description="Fixed bytes", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data", name="template", description="By id", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002  # the suite names the variable
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'

    @server.prompt(title="Simple", description="Fixed text")
    def test_simple_prompt() -> list[Message]:
        return [UserMessage("This is a simple prompt for testing.")]

    @server.prompt(title="Arguments", description="With two arguments")
    def test_prompt_with_arguments(
        arg1: Annotated[str, Field(description="First")], arg2: Annotated[str, Field(description="Second")]
    ) -> list[Message]:
        return [UserMessage(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]

    @server.prompt(title="Resource", description="With a resource inside")
    def test_prompt_with_embedded_resource(
        resourceUri: Annotated[str, Field(description="Address")],  # noqa: N803  # the suite names it
    ) -> list[Message]:
        resource = TextResourceContents(
            uri=str(AnyUrl(resourceUri)), mime_type="text/plain", text="Embedded resource content for testing."
        )
        return [
            UserMessage(EmbeddedResource(type="resource", resource=resource)),
            UserMessage("Please process the embedded resource above."),
        ]

    @server.prompt(title="Image", description="With a picture inside")
    def test_prompt_with_image() -> list[Message]:
        return [
            UserMessage(ImageContent(type="image", data=PIXEL, mime_type="image/png")),
            UserMessage("Please analyze the image above."),
        ]


def build(_services: Services) -> Toolset:
    specs = tuple(
        ToolSpec(
            fn=cast("Any", fn),
            title=fn.__name__.replace("_", " "),
            read_only=True,
            destructive=False,
            idempotent=True,
            open_world=False,
        )
        for fn in TOOLS
    )
    return Toolset(
        name="fixtures",
        instructions="Fixtures of the conformance suite.",
        tools=specs,
        register=register,
        prompts={
            "test_simple_prompt": frozenset(),
            "test_prompt_with_arguments": frozenset({"arg1", "arg2"}),
            "test_prompt_with_embedded_resource": frozenset({"resourceUri"}),
            "test_prompt_with_image": frozenset(),
        },
    )


def main(port: int) -> None:
    settings = Settings(transport="http", port=port, toolsets=("dependfix", "sudocode", "fixtures"))
    # First, so that the suite finds a resource that can be read.
    product.TOOLSET_BUILDERS = {"fixtures": build, **product.TOOLSET_BUILDERS}
    services = Services(settings=settings)
    configure_logging(services.secrets)
    anyio.run(serve_http, product.build_server(settings, services), services)


if __name__ == "__main__":
    main(int(sys.argv[1]))
