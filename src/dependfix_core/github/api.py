"""Asks one GitHub, keeps to its limits, and raises its refusals as typed errors."""

import logging
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from dependfix_core.collector import collector_paused
from dependfix_core.connection import PUBLIC_API_URL
from dependfix_core.errors import ArgumentError, DependfixError, NetworkError, RateLimitedError
from dependfix_core.github.decode import (
    LIMITS,
    Asked,
    Failure,
    Purpose,
    classify,
    error_of,
    not_an_answer,
)
from dependfix_core.github.token import TokenSource, token_kind
from dependfix_core.http import CallBudget, Credential, HttpClient, HttpResponse, link_target, origin_of
from dependfix_core.http.message import http_date
from dependfix_core.process.redact import clean_text

log = logging.getLogger(__name__)

DEFAULT_API_VERSION: Final = "2022-11-28"
JSON: Final = "application/vnd.github+json"
RAW: Final = "application/vnd.github.raw+json"
SHA: Final = "application/vnd.github.sha"
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 1000
"""No list is walked further; a longer one is reported as incomplete."""

_SMALLEST_PAGE: Final = 25
_LIMIT_WAITS: Final = 2
"""Pauses for a limit that one request is worth."""
_SECONDARY_WAIT_S: Final = 60.0
_EXPIRY_WARNING_DAYS: Final = 7

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """What is left of the hourly limit, as the last answer said."""

    limit: int
    remaining: int
    resets_at: str
    """ISO 8601 in UTC."""


class GitHubApi:
    """One GitHub under one or two tokens: the second, when given, is for alerts only."""

    def __init__(
        self,
        http: HttpClient,
        *,
        tokens: TokenSource,
        alerts_tokens: TokenSource | None = None,
        api_url: str = PUBLIC_API_URL,
        api_version: str = DEFAULT_API_VERSION,
    ) -> None:
        self.http = http
        self.api_url = api_url or PUBLIC_API_URL
        self.rate: Rate | None = None
        self._origin = origin_of(self.api_url)
        self._tokens = tokens
        self._alerts_tokens = alerts_tokens
        self._api_version = api_version
        self._paused_until: dict[str, float] = {}
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the answers so far said about the token and the API, without repetition."""
        return tuple(self._warnings)

    async def get(
        self,
        target: str,
        *,
        purpose: Purpose,
        budget: CallBudget,
        repository: str = "",
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
        max_bytes: int | None = None,
    ) -> HttpResponse:
        """The answer to a GET, of status 200 to 299.

        Args:
            target: A path below the API's base, or an address that the server gave as a link.
            purpose: What is read; it chooses the token and the words of an error.
            budget: What may be spent on waiting.
            repository: `owner/name`, for the words of an error.
            params: The query; `per_page` is halved for the next try when the server gave up on a page.
            accept: The representation.
            max_bytes: Cap of the body.

        Raises:
            DependfixError: As `errors.py` lists them below `SourceError`; `ArgumentError` for a filter
                that GitHub does not know.
        """
        url = self._address(target, params)
        token = await self._token(purpose)
        credential = Credential.bearer(token, self.api_url)
        asked = Asked(purpose=purpose, repository=repository, token_kind=token_kind(token), secrets=(token,))
        gate = credential.fingerprint()
        headers = {"accept": accept, "x-github-api-version": self._api_version}
        waits = 0
        while True:
            await self._pass_gate(gate, budget)
            response = await self.http.request(
                "GET",
                url,
                headers=headers,
                auth=credential,
                budget=budget,
                max_bytes=max_bytes,
                conditional=True,
                keep_query=True,
                retry_url=_smaller_page,
            )
            failure = classify(response.status, response.headers, response.content, now=self.http.clock.now())
            self._note(response, gate)
            if failure is None:
                return response
            if failure.kind not in LIMITS:
                raise error_of(failure, asked)
            wait = _limit_wait(failure, waits)
            self._pause(gate, wait)
            if failure.kind == "rate_limited_secondary":
                self.http.slow_down(url)
            waits += 1
            if waits > _LIMIT_WAITS or not budget.affords(wait):
                raise _limit_error(failure, wait, asked)

    async def get_model(
        self, target: str, model: type[M], *, purpose: Purpose, budget: CallBudget, repository: str = ""
    ) -> M:
        """An answer in a known shape.

        Raises:
            DependfixError: As `get`; `NetworkError` when it has another shape.
        """
        response = await self.get(target, purpose=purpose, budget=budget, repository=repository)
        return read_model(response, model, Asked(purpose=purpose, repository=repository))

    async def pages(
        self,
        target: str,
        *,
        purpose: Purpose,
        budget: CallBudget,
        repository: str = "",
        params: Mapping[str, str] | None = None,
    ) -> AsyncIterator[HttpResponse]:
        """The pages of a list, following the links of the server as they are.

        Raises:
            DependfixError: As `get`; `NetworkError` when a link leads back, to another host, or on
                beyond `MAX_PAGES`. Pages that came before have been handed out by then.
        """
        query = {"per_page": str(PAGE_SIZE), **(params or {})}
        address: str | None = target
        seen: set[str] = set()
        while address is not None:
            response = await self.get(
                address, purpose=purpose, budget=budget, repository=repository, params=query if not seen else None
            )
            seen.add(address)
            yield response
            address = self.next_page(response)
            if address is not None and (address in seen or address == response.url):
                raise _endless("GitHub's list leads back to a page that was read already", "link-loop")
            if address is not None and len(seen) >= MAX_PAGES:
                raise _endless(f"the list has more than {MAX_PAGES} pages", "too-long")

    def next_page(self, response: HttpResponse) -> str | None:
        """The address of the next page, exactly as the server wrote it.

        Raises:
            NetworkError: It lies on another host than the API.
        """
        link = link_target(response.headers, "next")
        if link is None:
            return None
        try:
            origin = origin_of(link)
        except DependfixError:
            origin = None
        if origin != self._origin:
            raise NetworkError(
                "GitHub's list goes on at another host than the API's",
                hint="If a proxy stands in front of the server, use the address that the server itself has.",
                retryable=False,
                details={"host": origin[1] if origin else "", "kind": "foreign-link"},
            )
        return link

    def left_out_organizations(self, response: HttpResponse) -> bool:
        """Whether single sign-on made the server leave organisations out of a list."""
        return response.headers.get("x-github-sso", "").strip().startswith("partial-results")

    def _address(self, target: str, params: Mapping[str, str] | None) -> str:
        url = target if "://" in target else f"{self.api_url}{target}"
        return f"{url}?{urlencode(params, quote_via=quote)}" if params else url

    async def _token(self, purpose: Purpose) -> str:
        for_alerts = purpose in ("alerts", "organization") and self._alerts_tokens is not None
        source = self._alerts_tokens if for_alerts and self._alerts_tokens is not None else self._tokens
        return await source.token()

    async def _pass_gate(self, gate: str, budget: CallBudget) -> None:
        wait = self._paused_until.get(gate, 0.0) - self.http.clock.monotonic()
        if wait <= 0:
            return
        if not budget.affords(wait):
            raise RateLimitedError(
                "GitHub's rate limit is reached",
                hint=f"Wait {math.ceil(wait)} s, then ask for less at a time.",
                retry_after_s=math.ceil(wait),
            )
        budget.spend(wait, "rate limit")
        log.warning("waiting for a rate limit", extra={"seconds": wait})
        await self.http.clock.sleep(wait)

    def _pause(self, gate: str, wait: float) -> None:
        until = self.http.clock.monotonic() + wait
        self._paused_until[gate] = max(until, self._paused_until.get(gate, 0.0))

    def _note(self, response: HttpResponse, gate: str) -> None:
        headers = response.headers
        limit, remaining, reset = (headers.get(f"x-ratelimit-{name}", "") for name in ("limit", "remaining", "reset"))
        if limit.isdigit() and remaining.isdigit() and reset.isdigit() and len(reset) < 12:
            resets_at = datetime.fromtimestamp(int(reset), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.rate = Rate(limit=int(limit), remaining=int(remaining), resets_at=resets_at)
            now = http_date(headers.get("date")) or self.http.clock.now()
            if remaining == "0" and response.status < 300 and float(reset) > now:
                self._pause(gate, float(reset) - now + 1.0)
        expiry = _token_expiry(headers.get("github-authentication-token-expiration", ""))
        if expiry is not None and expiry - self.http.clock.now() < _EXPIRY_WARNING_DAYS * 86400:
            day = datetime.fromtimestamp(expiry, UTC).strftime("%Y-%m-%d %H:%M UTC")
            self._warnings[f"the token expires on {day}"] = None
        if "sunset" in headers or "deprecation" in headers:
            day = clean_text(headers.get("sunset", "soon"), max_chars=40, one_line=True)
            self._warnings[f"GitHub retires the API version {self._api_version} ({day})"] = None


def read_json(response: HttpResponse, asked: Asked) -> Any:
    """The body of an answer as a JSON value.

    Raises:
        NetworkError: It is none.
    """
    try:
        return response.json()
    except (ValueError, RecursionError):
        content_type = response.headers.get("content-type", "")
        raise not_an_answer(content_type, response.content, "JSON", asked) from None


def read_model(response: HttpResponse, model: type[M], asked: Asked) -> M:
    """The body of an answer in a known shape.

    Raises:
        NetworkError: It has another one.
    """
    try:
        with collector_paused():
            return model.model_validate_json(response.content)
    except ValidationError:
        content_type = response.headers.get("content-type", "")
        raise not_an_answer(content_type, response.content, "answer of this kind", asked) from None


def path_of(*parts: str) -> str:
    """A path below the API's base; every part is quoted, slashes inside a part stay.

    Raises:
        ArgumentError: A part would leave its place in the path.
    """
    if any(segment in ("", ".", "..") for part in parts for segment in part.split("/")):
        raise ArgumentError(
            "not a path or name inside a repository", hint="Give it relative to the top level, without '..'."
        )
    return "".join(f"/{quote(part, safe='/')}" for part in parts)


def _smaller_page(url: str, status: int) -> str:
    """Half the page for the next try when the server gave up on a whole one."""
    if status not in (502, 504):
        return url
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    size = query.get("per_page", "")
    if not size.isdigit() or int(size) <= _SMALLEST_PAGE:
        return url
    half = max(_SMALLEST_PAGE, int(size) // 2)
    # Only this number is replaced: the cursor beside it stays as the server wrote it.
    pieces = [f"per_page={half}" if piece == f"per_page={size}" else piece for piece in parts.query.split("&")]
    return parts._replace(query="&".join(pieces)).geturl()


def _limit_wait(failure: Failure, waits: int) -> float:
    if failure.wait_s is not None:
        return max(1.0, failure.wait_s)
    return _SECONDARY_WAIT_S * float(2**waits)


def _limit_error(failure: Failure, wait: float, asked: Asked) -> DependfixError:
    error = error_of(failure, asked)
    if error.retry_after_s is None:
        error.retry_after_s = math.ceil(wait)
    return error


def _endless(message: str, kind: str) -> NetworkError:
    return NetworkError(
        message,
        hint="A caching proxy in between may be at fault.",
        retryable=False,
        details={"kind": kind},
    )


def _token_expiry(text: str) -> float | None:
    """Seconds since the epoch of `2026-12-31 23:59:59 UTC` or `… +0100`; None without a usable time."""
    for form in ("%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S UTC"):
        try:
            moment = datetime.strptime(text, form)  # noqa: DTZ007  # the second form is UTC by its own words
        except ValueError:
            continue
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return None
