"""Builds the server from settings: which tools exist, what they are told, nothing else."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import MCPServer
from mcp.types import (
    INVALID_PARAMS,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from dependfix_core import __version__
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings, SettingsError
from dependfix_mcp.tooling import ProductTool, Toolset, ToolSpec
from dependfix_mcp.tools import dependfix, sudocode, suspec

TOOLSET_BUILDERS: Mapping[str, Callable[[Services], Toolset]] = {
    "dependfix": dependfix.build,
    "suspec": suspec.build,
    "sudocode": sudocode.build,
}
"""Toolset name → its builder, in the order of `tools/list`."""

MAX_INSTRUCTIONS: Final = 2048
"""Bytes; hosts cut longer ones."""
_LISTS_ARE_FIXED: Final = CacheHint(ttl_ms=300_000, scope="public")
_MAX_COMPLETIONS: Final = 100
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


def build_server(settings: Settings, services: Services | None = None) -> MCPServer:
    """A server with the toolsets and tools that `settings` asks for.

    Raises:
        SettingsError: A tool is named that does not exist.
    """
    services = services or Services(settings=settings)
    toolsets = {
        name: build(services)
        for name, build in TOOLSET_BUILDERS.items()
        if name in settings.toolsets or settings.tools or settings.exclude_tools
    }
    _refuse_unknown(settings, toolsets.values())
    chosen = {name: chosen_tools(toolset, settings) for name, toolset in toolsets.items()}
    served = tuple(toolset for name, toolset in toolsets.items() if chosen[name])
    hidden = {spec.name for toolset in toolsets.values() for spec in toolset.tools}
    hidden -= {spec.name for specs in chosen.values() for spec in specs}
    server = MCPServer(
        name="dependfix-mcp",
        title="dependfix",
        version=__version__,
        instructions=instructions(served, hidden, read_only=settings.read_only),
        tools=[
            ProductTool.build(spec, read_only=settings.read_only, secrets=services.secrets)
            for specs in chosen.values()
            for spec in specs
        ],
        lifespan=lambda _server: services.running(served),
        cache_hints={
            "tools/list": _LISTS_ARE_FIXED,
            "prompts/list": _LISTS_ARE_FIXED,
            "resources/list": _LISTS_ARE_FIXED,
            "resources/templates/list": _LISTS_ARE_FIXED,
            "server/discover": _LISTS_ARE_FIXED,
        },
        middleware=[prompt_guard({name: needed for toolset in served for name, needed in toolset.prompts.items()})],
        log_level="WARNING",
    )
    for toolset in served:
        toolset.register(server)
    _complete_with(server, served)
    return server


def _refuse_unknown(settings: Settings, toolsets: Iterable[Toolset]) -> None:
    known = [spec.name for toolset in toolsets for spec in toolset.tools]
    faults = [
        f"{flag}: there is no tool {name!r}; there are {', '.join(known)}"
        for flag, names in (("--tools", settings.tools), ("--exclude-tools", settings.exclude_tools))
        for name in names
        if name not in known
    ]
    if faults:
        raise SettingsError(faults)


def chosen_tools(toolset: Toolset, settings: Settings) -> tuple[ToolSpec, ...]:
    """Strongest first: read-only, excluded, named, toolset."""
    return tuple(
        spec
        for spec in toolset.tools
        if (spec.read_only or spec.read_only_fn is not None or not settings.read_only)
        and spec.name not in settings.exclude_tools
        and (spec.name in settings.tools or toolset.name in settings.toolsets)
    )


def instructions(toolsets: Sequence[Toolset], hidden: Iterable[str], *, read_only: bool) -> str:
    """What hosts put into the system prompt: no line names a tool that is not served."""
    unserved = set(hidden)
    parts = [
        "\n".join(line for line in toolset.instructions.splitlines() if not unserved & set(_WORD.findall(line)))
        for toolset in toolsets
    ]
    if read_only:
        parts.append("This server is read-only: it changes no file, branch or alert.")
    text = "\n\n".join(part for part in parts if part.strip())
    assert len(text.encode()) <= MAX_INSTRUCTIONS, "instructions have outgrown what hosts keep"
    return text


def prompt_guard(required: Mapping[str, frozenset[str]]) -> Any:
    """Middleware that refuses prompt calls with a reason; the SDK answers them with a bare internal error."""

    async def guard(context: Any, call_next: Any) -> Any:
        if context.method == "prompts/get":
            params = context.params or {}
            name, given = str(params.get("name")), set(params.get("arguments") or {})
            if name not in required:
                raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name[:64]}")
            missing = sorted(required[name] - given)
            if missing:
                raise MCPError(code=INVALID_PARAMS, message=f"Missing arguments: {', '.join(missing)}")
        return await call_next(context)

    return guard


def _complete_with(server: MCPServer, toolsets: Sequence[Toolset]) -> None:
    completers = [toolset.complete for toolset in toolsets if toolset.complete is not None]

    async def complete(
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,  # noqa: ARG001  # the SDK's signature
    ) -> Completion:
        place = reference.name if isinstance(reference, PromptReference) else reference.uri
        for ask in completers:
            found = await ask(place, argument.name, argument.value)
            if found is not None:
                return found.model_copy(update={"values": found.values[:_MAX_COMPLETIONS]})
        return Completion(values=[])

    register: Any = server.completion()  # type: ignore[no-untyped-call]  # the SDK leaves it untyped
    register(complete)
