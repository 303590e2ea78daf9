"""Builds the server from settings: which tools exist, what they are told, nothing else."""

from collections.abc import Callable, Mapping

from mcp.server.mcpserver import MCPServer

from dependfix_core import __version__
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings
from dependfix_mcp.tooling import ProductTool, Toolset
from dependfix_mcp.tools import sudocode, suspec

TOOLSET_BUILDERS: Mapping[str, Callable[[Services], Toolset]] = {
    "suspec": suspec.build,
    "sudocode": sudocode.build,
}
"""Toolset name → its builder, in the order of `tools/list`."""


def build_server(settings: Settings, services: Services | None = None) -> MCPServer:
    """A server with the toolsets and tools that `settings` asks for."""
    services = services or Services(settings=settings)
    toolsets = [build(services) for name, build in TOOLSET_BUILDERS.items() if name in settings.toolsets]
    tools = [
        ProductTool.build(spec, read_only=settings.read_only, secrets=settings.secrets)
        for toolset in toolsets
        for spec in toolset.tools
        if spec.name not in settings.exclude_tools
        and (not settings.read_only or spec.read_only or spec.read_only_fn is not None)
    ]
    server = MCPServer(
        name="dependfix-mcp",
        title="dependfix",
        version=__version__,
        instructions="\n\n".join(toolset.instructions for toolset in toolsets),
        tools=list(tools),
    )
    for toolset in toolsets:
        toolset.register(server)
    return server
