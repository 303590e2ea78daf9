"""The only module that speaks HTTP: one request, one complete answer, or a typed error.

Loading httpx takes longer than everything else here, so this module is
imported with the first request.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx

from dependfix_core.errors import ConfigurationError, DependfixError, NetworkError
from dependfix_core.http.address import blocked, is_public_address
from dependfix_core.http.config import HttpConfig
from dependfix_core.http.message import too_large

_NO_PROXY: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")
"""This machine is never reached through a proxy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawAnswer:
    """Status, headers and the body as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    raw: bytes = field(repr=False)


class HttpxTransport:
    """One connection pool with the trust, proxies and limits of a configuration."""

    def __init__(self, config: HttpConfig, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Open nothing yet.

        Raises:
            ConfigurationError: The CA bundle or a proxy of the environment cannot be used.
        """
        self._config = config
        bypass: dict[str, httpx.AsyncBaseTransport | None] = {}
        verify = trust(config.ca_bundle)
        if config.trust_env and config.proxy is None and transport is None:
            bypass = dict.fromkeys(_NO_PROXY)
        try:
            self._client = httpx.AsyncClient(
                headers={"user-agent": config.user_agent, "accept-encoding": "gzip"},
                timeout=httpx.Timeout(config.read_timeout_s, connect=config.connect_timeout_s, pool=None),
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30),
                verify=verify,
                trust_env=config.trust_env and transport is None,
                proxy=config.proxy,
                mounts=bypass,
                transport=transport,
                follow_redirects=False,
            )
        except (ValueError, ImportError, httpx.InvalidURL):
            # Never chained: the address can hold a password. (A SOCKS proxy asks for a package of its own.)
            raise ConfigurationError(
                "the proxy that the environment names cannot be used",
                hint="HTTPS_PROXY, HTTP_PROXY and ALL_PROXY take addresses like http://HOST:PORT.",
            ) from None
        # No service may leave something behind that is sent with the next request.
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        max_bytes: int,
        public_only: bool,
    ) -> RawAnswer:
        """Send once.

        Raises:
            NetworkError: No answer, or not all of it; `details.kind` says why.
            OutputTooLargeError: The body as sent is above `max_bytes`.
        """
        host = urlsplit(url).hostname or ""
        extensions: dict[str, Any] = {"trace": _PublicOnly(host)} if public_only else {}
        try:
            request = self._client.build_request(
                method, url, headers=dict(headers), content=content, extensions=extensions
            )
            with anyio.fail_after(self._config.total_timeout_s):
                response = await self._client.send(request, stream=True)
                try:
                    raw = await _read(response, max_bytes, host)
                finally:
                    await response.aclose()
        except DependfixError:
            raise
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, TimeoutError, OSError) as error:
            # Never chained: a message about a refused header can hold its value.
            raise network_error(error, host, self._config) from None
        return RawAnswer(status=response.status_code, headers=_headers(response.headers), raw=raw)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


async def _read(response: httpx.Response, max_bytes: int, host: str) -> bytes:
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > max_bytes and response.request.method != "HEAD":
        raise too_large(host, max_bytes)
    pieces: list[bytes] = []
    size = 0
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    # Not `aiter_bytes`: the body stays compressed for the cache, and is unpacked under a cap.
    async for piece in stream:
        size += len(piece)
        if size > max_bytes:
            raise too_large(host, max_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def _headers(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def trust(ca_bundle: str | None) -> ssl.SSLContext:
    """Which certificates are accepted: those of `ca_bundle`, else the system's and certifi's.

    Raises:
        ConfigurationError: There is nothing usable at `ca_bundle`.
    """
    if ca_bundle is None:
        return _built_in_trust()
    path = Path(ca_bundle)
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=str(path))
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError):
        raise ConfigurationError(
            "the CA bundle cannot be read as PEM certificates", hint=f"It is what one of {_CA_VARIABLES} names."
        ) from None


@cache
def _built_in_trust() -> ssl.SSLContext:
    # Reading some 300 certificates takes longer than many a request, so it is done once.
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


class _PublicOnly:
    """Looks at the peer of each new connection before anything is sent to it.

    Checking the name beforehand would not do: it can resolve to something else
    a moment later. A connection to a proxy is none to the host itself, and is
    left alone.
    """

    def __init__(self, host: str) -> None:
        self._host = host.lower().strip("[]")
        self._direct = True

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            self._direct = str(info.get("host", "")).lower().strip("[]") == self._host
        elif event == "connection.connect_tcp.complete" and self._direct:
            stream = info["return_value"]
            peer = stream.get_extra_info("server_addr")
            if not is_public_address(str(peer[0]) if peer else ""):
                await stream.aclose()
                raise blocked(self._host)


def network_error(error: BaseException, host: str, config: HttpConfig) -> NetworkError:
    """What a failed exchange with `host` was, as far as a person can act on it."""
    kind = _kind(error)
    message, hint = _WORDS[kind]
    if kind == "timeout":
        hint = f"The limits are {config.connect_timeout_s:g} s to connect and {config.read_timeout_s:g} s for data."
    return NetworkError(
        f"{host}: {message}",
        hint=hint,
        retryable=kind not in ("tls", "address", "proxy"),
        details={"host": host, "kind": kind},
    )


_CA_VARIABLES: Final = "SSL_CERT_FILE, SSL_CERT_DIR, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE"
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "dns": ("the name cannot be resolved", "Check the spelling of the host, the network and the proxy variables."),
    "refused": ("the connection is refused", "Check host and port, and whether the service runs."),
    "tls": (
        "the certificate is not trusted or the TLS handshake fails",
        f"For a private CA name its PEM file in one of {_CA_VARIABLES}.",
    ),
    "timeout": ("no answer in time", ""),
    "proxy": ("the proxy refuses the connection", "Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY."),
    "cut": ("the answer was cut short", "Try again; a proxy in between may be at fault."),
    "reset": ("the connection broke", "Try again; a firewall or proxy in between may be at fault."),
    "connect": ("no connection can be made", "Check the network, the firewall and the proxy variables."),
    "address": ("the request cannot be sent", "Check address and token for characters that do not belong there."),
}


def _kind(error: BaseException) -> str:
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "tls"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "dns"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "refused"
    match error:
        case httpx.TimeoutException() | TimeoutError():
            return "timeout"
        case httpx.ProxyError():
            return "proxy"
        case httpx.RemoteProtocolError() | httpx.StreamError():
            return "cut"
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL():
            return "address"
        case httpx.ConnectError():
            return "connect"
        case _:
            return "reset"


def _causes(error: BaseException) -> Iterator[BaseException]:
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        todo += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            todo += current.exceptions
