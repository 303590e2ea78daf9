"""Requests and answers as values, and the rules of the protocol that need no I/O."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit

from dependfix_core.errors import ConfigurationError, NetworkError, OutputTooLargeError

Origin: TypeAlias = tuple[str, str, int]
"""(scheme, host in lower case, port): what a credential is bound to."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_RETRYABLE: Final = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, kw_only=True, slots=True)
class Credential:
    """A secret header that goes to one origin and nowhere else."""

    origin: Origin
    value: str = field(repr=False)
    """The whole header value."""
    header: str = "authorization"

    @classmethod
    def bearer(cls, token: str, url: str) -> "Credential":
        """`Authorization: Bearer …` for the origin of `url`."""
        return cls(origin=origin_of(url), value=f"Bearer {token}")

    @classmethod
    def basic(cls, user: str, password: str, url: str) -> "Credential":
        """`Authorization: Basic …` for the origin of `url`."""
        pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return cls(origin=origin_of(url), value=f"Basic {pair}")

    def fingerprint(self) -> str:
        """Tells credentials apart without showing them; for cache keys."""
        return hashlib.sha256(f"{self.header}\0{self.value}".encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """An answer with all of its body, decompressed."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; repeated headers are joined by commas."""
    content: bytes = field(repr=False)
    url: str
    """Where it came from, after redirects."""
    redirects: tuple[str, ...] = ()
    """The addresses that were left, first to last."""
    from_cache: bool = False

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: It is not.
        """
        return json.loads(self.content)

    def text(self, max_bytes: int = 4096) -> str:
        """The start of the body as text, whatever it is."""
        return self.content[:max_bytes].decode("utf-8", errors="replace")


def split_url(url: str) -> SplitResult:
    """The parts of an http(s) address.

    Raises:
        ConfigurationError: Another scheme, no host, or credentials in the address.
    """
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or 0 < parts.port < 65536
    except ValueError:
        raise ConfigurationError("not an address", hint="Use https://HOST/PATH.") from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or not port_is_fine:
        raise ConfigurationError("not an http address", hint="Use https://HOST/PATH.")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"the address of {parts.hostname} holds credentials", hint="Give credentials apart from the address."
        )
    return parts


def origin_of(url: str) -> Origin:
    """Scheme, host and port of an address, the port filled in.

    Raises:
        ConfigurationError: As `split_url`.
    """
    parts = split_url(url)
    return (parts.scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS[parts.scheme])


def is_retryable_status(status: int) -> bool:
    """Whether the server had a trouble that passes."""
    return status in _RETRYABLE


def is_repeatable(method: str) -> bool:
    """Whether the request may be sent twice without doing something twice."""
    return method in _SAFE_METHODS


def redirect_target(method: str, url: str, response: HttpResponse, *, keep_query: bool) -> str | None:
    """Where the request has to go instead; None when the answer is no redirect to follow.

    A method that changes something follows 307 and 308 only, and only within
    its origin. With `keep_query` a target without a query gets that of `url`.

    Raises:
        NetworkError: The target is no http address, has credentials in it, or
            leaves https for http.
    """
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or not location:
        return None
    host = origin_of(url)[1]
    try:
        target = urljoin(url, location)
        parts = split_url(target)
    except (ConfigurationError, ValueError):
        raise NetworkError(
            f"{host} redirects to something that is no plain http address",
            retryable=False,
            details={"host": host, "kind": "redirect"},
        ) from None
    if urlsplit(url).scheme == "https" and parts.scheme != "https":
        raise NetworkError(
            f"{host} redirects from https to http",
            hint="Use the address that the service has now.",
            retryable=False,
            details={"host": host, "kind": "insecure-redirect"},
        )
    if method not in _SAFE_METHODS and (response.status not in (307, 308) or origin_of(target) != origin_of(url)):
        return None
    if keep_query and not parts.query:
        parts = parts._replace(query=urlsplit(url).query)
    return parts._replace(fragment="").geturl()


def decoded(raw: bytes, encoding: str, *, max_bytes: int, host: str) -> bytes:
    """The body without its gzip coding, never more than `max_bytes`.

    Raises:
        OutputTooLargeError: It would be larger.
        NetworkError: It is damaged, cut, or in a coding that was not asked for.
    """
    if encoding in ("", "identity"):
        if len(raw) > max_bytes:
            raise too_large(host, max_bytes)
        return raw
    if encoding not in ("gzip", "x-gzip"):
        raise NetworkError(
            f"{host} answered in a coding that was not asked for", details={"host": host, "kind": "encoding"}
        )
    pieces: list[bytes] = []
    size = 0
    rest = raw
    try:
        while rest:
            member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            piece = member.decompress(rest, max_bytes + 1 - size)
            size += len(piece)
            if size > max_bytes:
                raise too_large(host, max_bytes)
            if not member.eof:
                raise NetworkError(f"{host} cut its answer short", details={"host": host, "kind": "cut"})
            pieces.append(piece)
            rest = member.unused_data
    except zlib.error:
        raise NetworkError(f"{host} sent a damaged gzip body", details={"host": host, "kind": "encoding"}) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(host: str, max_bytes: int) -> OutputTooLargeError:
    """The error for an answer above the cap."""
    return OutputTooLargeError(
        f"the answer of {host} is larger than {max_bytes} bytes", details={"host": host, "maxBytes": max_bytes}
    )


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `Retry-After` asks for, from a number or a date; None without a usable one."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if re.fullmatch(r"\d{1,9}", text):
        return float(text)
    at = http_date(text)
    return None if at is None else max(0.0, at - now)


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch of an HTTP date; None when it is none."""
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


_LINK: Final = re.compile(r"<([^<>]*)>((?:\s*;\s*[^\s;,=]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)")
_PARAMETER: Final = re.compile(r";\s*([^\s;,=]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")


def link_target(headers: Mapping[str, str], rel: str) -> str | None:
    """The address of the first `Link` with this relation, exactly as the server wrote it.

    Source: RFC 8288.
    """
    for address, parameters in _LINK.findall(headers.get("link", "")):
        for name, quoted, bare in _PARAMETER.findall(parameters):
            if name.lower() == "rel" and rel in (quoted or bare).lower().split():
                return str(address)
    return None
