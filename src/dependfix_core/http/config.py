"""How the HTTP edge behaves, as values: limits, time-outs, trust, and the clock it goes by."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio

from dependfix_core._version import __version__
from dependfix_core.errors import RateLimitedError

MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpConfig:
    """Everything that can be set about the edge; nothing here is read from the environment."""

    user_agent: str = f"dependfix-mcp/{__version__}"
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    """Between two pieces of an answer. GitHub itself gives up after 10 s."""
    total_timeout_s: float = 120.0
    """For one answer with all of its body."""
    ca_bundle: str | None = None
    """PEM file or directory of certificates that is trusted instead of the built-in ones."""
    trust_env: bool = True
    """Whether httpx honours `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`."""
    proxy: str | None = field(default=None, repr=False)
    """A proxy for everything, instead of those of the environment. May hold a password."""
    max_response_bytes: int = 50 * MEBIBYTE
    """Of the decoded body."""
    max_redirects: int = 5
    tries: int = 3
    """Of a GET, the first included."""
    concurrency: int = 6
    """Requests to one host at the same time."""
    max_wait_s: float = 60.0
    """All pauses of one operation together; a budget may say otherwise."""


class Clock(Protocol):
    """Time as the edge sees it, so that tests need not wait."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Pause."""


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Pause, cancellable."""
        await anyio.sleep(seconds)


@dataclass(kw_only=True, slots=True)
class CallBudget:
    """What one operation may spend on waiting and requests, and what it has spent.

    One object goes through all requests of an operation; operations do not share it.
    """

    max_wait_s: float
    max_requests: int | None = None
    on_wait: Callable[[float, str], None] | None = None
    """Told before each pause: seconds, and why."""
    waited_s: float = 0.0
    requests: int = 0

    def affords(self, seconds: float) -> bool:
        """Whether a pause of `seconds` still fits."""
        return self.waited_s + seconds <= self.max_wait_s

    def spend(self, seconds: float, reason: str) -> None:
        """Account for a pause that begins now."""
        self.waited_s += seconds
        if self.on_wait is not None:
            self.on_wait(seconds, reason)

    def count_request(self) -> None:
        """Account for one request.

        Raises:
            RateLimitedError: The operation's allowance is used up.
        """
        if self.max_requests is not None and self.requests >= self.max_requests:
            raise RateLimitedError(
                f"the allowance of {self.max_requests} requests for this task is used up",
                hint="Give the task a larger allowance, or fewer repositories.",
                retryable=False,
            )
        self.requests += 1
