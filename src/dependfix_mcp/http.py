"""Streamable HTTP: who may ask, under which names, and running it.

On a loopback address the SDK's own checks of Host and Origin hold; any other
address needs the names that the operator allows and a bearer token.
"""

import contextlib
import hmac
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from dependfix_core.connection import is_loopback
from dependfix_mcp.serve import say, serve_until_stopped
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings

PATH: Final = "/mcp"
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


def transport_security(settings: Settings) -> TransportSecuritySettings:
    """The names under which the server answers; browsers of other origins are refused."""
    names = list(settings.allowed_hosts)
    if is_loopback(settings.host):
        names += _LOOPBACK_NAMES
    hosts = [form for name in names for form in ((name,) if _has_port(name) else (name, f"{name}:*"))]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins)


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]


def build_app(server: MCPServer, settings: Settings) -> Any:
    """The ASGI application with its checks."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=transport_security(settings),
        host=settings.host,
    )
    return BearerGuard(app, str(settings.http_token)) if settings.http_token else app


class BearerGuard:
    """Lets only requests through that carry the one token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer 401, or hand on."""
        if scope["type"] == "http" and not self._is_allowed(scope["headers"]):
            headers = [
                (b"www-authenticate", b'Bearer realm="dependfix-mcp"'),
                (b"content-type", b"application/json"),
            ]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"error":"a bearer token is needed"}'})
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        # The scheme's name is free in case, the token is not.
        offered = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        canonical = b"Bearer " + offered[2].strip() if offered[0].lower() == b"bearer" else b""
        return hmac.compare_digest(canonical, self._expected)


class _Server(uvicorn.Server):
    """Leaves signals to us, and says where it listens."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for listener in self.servers:
            for socket in listener.sockets[:1]:
                host, port = socket.getsockname()[:2]
                say(f"dependfix-mcp listens on http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")


async def serve_http(server: MCPServer, services: Services) -> None:
    """Serve over HTTP; ends the process."""
    settings = services.settings
    config = uvicorn.Config(
        build_app(server, settings),
        host=settings.host.strip("[]"),
        port=settings.port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    listener = _Server(config)

    def ask_to_end() -> None:
        listener.should_exit = True

    await serve_until_stopped(services, listener.serve, ask_to_end)
