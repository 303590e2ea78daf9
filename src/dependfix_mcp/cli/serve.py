"""`dependfix-mcp serve`: the MCP server until its client leaves."""

import functools

import anyio

from dependfix_mcp.cli.arguments import CommandLine
from dependfix_mcp.serve import configure_logging, serve_stdio
from dependfix_mcp.server import build_server
from dependfix_mcp.services import Services


def run(line: CommandLine) -> int:
    """Serve; does not come back but for a setting that is wrong.

    Raises:
        SettingsError: A tool is named that does not exist.
    """
    services = Services(settings=line.settings)
    configure_logging(services.secrets)
    server = build_server(line.settings, services)
    if line.settings.transport == "http":
        from dependfix_mcp.http import serve_http  # noqa: PLC0415  # stdio needs no HTTP server

        anyio.run(functools.partial(serve_http, server, services))
    else:
        anyio.run(functools.partial(serve_stdio, server, services))
    return 0
