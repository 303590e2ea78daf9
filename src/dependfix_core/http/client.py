"""The HTTP edge that GitHub and the registries share: retries, redirects, limits, cached answers.

It gives back answers of every status; what they mean is the caller's matter.
"""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.to_thread

from dependfix_core.errors import ConfigurationError, NetworkError
from dependfix_core.http.address import refuse_local_host
from dependfix_core.http.cache import CachedAnswer, ResponseCache, cache_key
from dependfix_core.http.config import CallBudget, Clock, HttpConfig, SystemClock
from dependfix_core.http.message import (
    Credential,
    HttpResponse,
    Origin,
    decoded,
    is_repeatable,
    is_retryable_status,
    origin_of,
    redirect_target,
    retry_after_s,
)

if TYPE_CHECKING:
    import httpx

    from dependfix_core.http.transport import HttpxTransport, RawAnswer

log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.5
_SLOW_FOR_S: Final = 600.0
"""How long fewer requests run at once after a service complained."""
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})

RetryUrl = Callable[[str, int], str]
"""(address, failed status) → the address of the next try."""
HopRule = Callable[[str], None]
"""Called with each address before it is asked; raises to forbid it."""


class HttpClient:
    """Sends requests to any host; a credential goes only to the origin that it names.

    Safe for many tasks of one event loop. Close it, or use it as a context.
    """

    def __init__(
        self,
        config: HttpConfig | None = None,
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        cache: ResponseCache | None = None,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        self.config = config or HttpConfig()
        self.clock = clock or SystemClock()
        self._jitter = jitter
        self._cache = cache
        self._given_transport = transport
        self._transport: HttpxTransport | None = None
        self._limiters: dict[Origin, anyio.CapacityLimiter] = {}
        self._slowed_at: dict[Origin, float] = {}

    async def __aenter__(self) -> Self:
        """Connections are made when they are needed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        transport, self._transport = self._transport, None
        self._limiters.clear()
        if transport is not None:
            await transport.close()

    def budget(self, on_wait: Callable[[float, str], None] | None = None) -> CallBudget:
        """A fresh budget for one operation, with the configured limit of waiting."""
        return CallBudget(max_wait_s=self.config.max_wait_s, on_wait=on_wait)

    def slow_down(self, url: str) -> None:
        """Half as many requests to the origin of `url` at the same time, at least one, for a while."""
        origin = origin_of(url)
        limiter = self._limiter(origin)
        limiter.total_tokens = max(1, int(limiter.total_tokens) // 2)
        self._slowed_at[origin] = self.clock.monotonic()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        auth: Credential | None = None,
        budget: CallBudget | None = None,
        max_bytes: int | None = None,
        conditional: bool = False,
        public_only: bool = False,
        keep_query: bool = False,
        retry_url: RetryUrl | None = None,
        hop_rule: HopRule | None = None,
    ) -> HttpResponse:
        """The answer, after retries and redirects, whatever its status.

        A GET or HEAD is tried up to `config.tries` times on 500, 502, 503, 504
        and on a broken connection, with growing pauses within `budget`; other
        methods are sent once. Redirects are followed up to
        `config.max_redirects`; `auth` is left out for another origin.

        Args:
            method: In capitals.
            url: http or https, without credentials in it.
            headers: Everything but credentials.
            content: The body.
            auth: The credential of one origin.
            budget: What may be spent; a fresh one by default.
            max_bytes: Cap of the decoded body instead of the configured one.
            conditional: Ask with the validator of a cached answer, and keep the new one.
            public_only: The address comes from an untrusted file: https only, and no
                host of this machine or the local network, after resolution too.
            keep_query: A redirect without a query keeps that of the request.
            retry_url: Changes the address for the next try after a failed status.
            hop_rule: Sees each address, redirects included, before it is asked.

        Raises:
            NetworkError: No usable answer; `details.kind` says why.
            OutputTooLargeError: The body is larger than allowed.
            RateLimitedError: The budget's allowance of requests is used up.
            ConfigurationError: `url` is no such address, or `headers` holds a credential.
        """
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if _SECRET_HEADERS & set(given):
            raise ConfigurationError("a credential has to be given as one, bound to its origin")
        budget = budget or self.budget()
        cap = max_bytes if max_bytes is not None else self.config.max_response_bytes
        left: list[str] = []
        while True:
            host = _checked_host(url, public_only=public_only)
            if hop_rule is not None:
                hop_rule(url)
            credential = auth if auth is not None and auth.origin == origin_of(url) else None
            exchange = _Exchange(
                method=method,
                headers=given | ({credential.header: credential.value} if credential is not None else {}),
                content=content,
                max_bytes=cap,
                public_only=public_only,
                cache_owner=(credential.fingerprint() if credential is not None else "") if conditional else None,
            )
            response = await self._with_retries(exchange, url, budget, retry_url)
            target = redirect_target(method, response.url, response, keep_query=keep_query)
            if target is None:
                return replace(response, redirects=tuple(left)) if left else response
            left.append(response.url)
            if target in left or len(left) > self.config.max_redirects:
                raise NetworkError(
                    f"{host} redirects in circles",
                    retryable=False,
                    details={"host": host, "kind": "redirect-loop"},
                )
            url = target

    async def cached(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Credential | None = None,
        max_bytes: int | None = None,
    ) -> HttpResponse | None:
        """The kept answer to a conditional GET, without asking anybody; None when there is none.

        Raises:
            OutputTooLargeError: The kept body is larger than allowed.
        """
        if self._cache is None:
            return None
        given = {name.lower(): value for name, value in (headers or {}).items()}
        found = await self._cached(self._cache, _key(url, given, auth))
        if found is None:
            return None
        cap = max_bytes if max_bytes is not None else self.config.max_response_bytes
        content = decoded(found.raw, found.encoding, max_bytes=cap, host=origin_of(url)[1])
        return HttpResponse(status=200, headers=found.headers, content=content, url=url, from_cache=True)

    async def _with_retries(
        self, exchange: "_Exchange", url: str, budget: CallBudget, retry_url: RetryUrl | None
    ) -> HttpResponse:
        tries = self.config.tries if is_repeatable(exchange.method) else 1
        for attempt in range(1, tries + 1):
            error: NetworkError | None = None
            response: HttpResponse | None = None
            try:
                response = await self._once(exchange, url, budget)
            except NetworkError as failed:
                if not failed.retryable:
                    raise
                error = failed
            if response is not None and not is_retryable_status(response.status):
                return response
            pause = _FIRST_PAUSE_S * 2 ** (attempt - 1) * (1 + self._jitter())
            if response is not None:
                pause = max(pause, retry_after_s(response.headers, self.clock.now()) or 0.0)
            if attempt == tries or not budget.affords(pause):
                if error is not None:
                    raise error
                assert response is not None
                return response
            reason = f"status {response.status}" if response is not None else "no answer"
            budget.spend(pause, reason)
            log.debug("a request is tried again", extra={"host": origin_of(url)[1], "reason": reason, "pause_s": pause})
            await self.clock.sleep(pause)
            if response is not None and retry_url is not None:
                url = retry_url(url, response.status)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, exchange: "_Exchange", url: str, budget: CallBudget) -> HttpResponse:
        key, cached = "", None
        if exchange.cache_owner is not None and self._cache is not None and exchange.method == "GET":
            key = _key(url, exchange.headers, exchange.cache_owner)
            cached = await self._cached(self._cache, key)
        budget.count_request()
        headers = exchange.headers | ({"if-none-match": cached.etag} if cached is not None else {})
        async with self._limiter(origin_of(url)):
            answer = await self._open().send(
                exchange.method,
                url,
                headers=headers,
                content=exchange.content,
                max_bytes=exchange.max_bytes,
                public_only=exchange.public_only,
            )
        log.debug("an answer", extra={"host": origin_of(url)[1], "status": answer.status, "bytes": len(answer.raw)})
        if answer.status == 304 and cached is not None:
            return self._revived(answer, cached, url, exchange.max_bytes)
        encoding = answer.headers.get("content-encoding", "").lower()
        content = decoded(
            answer.raw if exchange.method != "HEAD" else b"",
            encoding if answer.raw else "",
            max_bytes=exchange.max_bytes,
            host=origin_of(url)[1],
        )
        if key and self._cache is not None and answer.status == 200:
            kept = CachedAnswer.of(answer.headers, answer.raw)
            if kept is not None:
                await self._keep(self._cache, key, kept)
        return HttpResponse(status=answer.status, headers=answer.headers, content=content, url=url)

    def _revived(self, answer: "RawAnswer", cached: CachedAnswer, url: str, max_bytes: int) -> HttpResponse:
        # What the 304 says about limits and links is newer than what was kept.
        headers = {**cached.headers, **answer.headers}
        if "content-type" in cached.headers:
            headers["content-type"] = cached.headers["content-type"]
        content = decoded(cached.raw, cached.encoding, max_bytes=max_bytes, host=origin_of(url)[1])
        return HttpResponse(status=200, headers=headers, content=content, url=url, from_cache=True)

    async def _cached(self, cache: ResponseCache, key: str) -> CachedAnswer | None:
        return await anyio.to_thread.run_sync(partial(cache.get, key)) if cache.blocking else cache.get(key)

    async def _keep(self, cache: ResponseCache, key: str, answer: CachedAnswer) -> None:
        if cache.blocking:
            await anyio.to_thread.run_sync(partial(cache.put, key, answer))
        else:
            cache.put(key, answer)

    def _limiter(self, origin: Origin) -> anyio.CapacityLimiter:
        limiter = self._limiters.get(origin)
        if limiter is None:
            limiter = self._limiters[origin] = anyio.CapacityLimiter(self.config.concurrency)
        slowed_at = self._slowed_at.get(origin)
        if slowed_at is not None and self.clock.monotonic() - slowed_at > _SLOW_FOR_S:
            del self._slowed_at[origin]
            limiter.total_tokens = self.config.concurrency
        return limiter

    def _open(self) -> "HttpxTransport":
        if self._transport is None:
            from dependfix_core.http.transport import HttpxTransport  # noqa: PLC0415  # httpx loads with first use

            self._transport = HttpxTransport(self.config, self._given_transport)
        return self._transport


@dataclass(frozen=True, kw_only=True, slots=True)
class _Exchange:
    """What stays the same over the tries of one request."""

    method: str
    headers: dict[str, str] = field(repr=False)
    content: bytes | None
    max_bytes: int
    public_only: bool
    cache_owner: str | None
    """Fingerprint of the credential; None when nothing is cached."""


def _key(url: str, headers: Mapping[str, str], owner: Credential | str | None) -> str:
    if owner is None or isinstance(owner, Credential):
        owner = owner.fingerprint() if owner is not None else ""
    return cache_key(url, headers.get("accept", ""), headers.get("x-github-api-version", ""), owner)


def _checked_host(url: str, *, public_only: bool) -> str:
    scheme, host, _ = origin_of(url)
    if public_only:
        if scheme != "https":
            raise NetworkError(
                f"{host} is asked for without https, and only a file of the repository names it",
                retryable=False,
                details={"host": host, "kind": "blocked-address"},
            )
        refuse_local_host(host)
    return host
