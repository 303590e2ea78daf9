"""What the server holds for its life and hands to the tools."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from dependfix_core.errors import DependfixError
from dependfix_core.process import Runner, SubprocessRunner
from dependfix_mcp.settings import Settings

if TYPE_CHECKING:
    from dependfix_mcp.tooling import Toolset

T = TypeVar("T")

_DISK_THREADS: Final = 8


@dataclass(kw_only=True)
class Services:
    """Collaborators of the tools; tests replace them one by one."""

    settings: Settings
    runner: Runner = field(default_factory=SubprocessRunner)
    tasks: anyio.abc.TaskGroup | None = None
    """Work that outlives the call that began it; there while the server runs."""
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Asked once when the server ends."""
    late_secrets: set[str] = field(default_factory=set)
    """Secrets that became known while running (a token of the `gh` CLI, of a GitHub App)."""
    failed_start: DependfixError | None = None
    """Why the one toolset that was asked for cannot work."""
    start_failed: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    _limiter: anyio.CapacityLimiter | None = None
    """Set when everything has been cleaned up."""

    async def on_disk(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread of our own few: the SDK reads and writes through the common ones."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_DISK_THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is known, for redaction."""
        return (*self.settings.secrets(), *self.late_secrets)

    @asynccontextmanager
    async def running(self, toolsets: tuple["Toolset", ...] = ()) -> AsyncIterator["Services"]:
        """The life of the server: toolsets prepare themselves, and what still works at the end is cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                self.tasks = tasks
                for toolset in toolsets:
                    if toolset.start is not None:
                        tasks.start_soon(self._prepare, toolset.start, len(toolsets) == 1)
                yield self
                tasks.cancel_scope.cancel()
        finally:
            self.tasks = None
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                for close in self.closing:
                    await close()
            self.ended.set()

    async def _prepare(self, start: Callable[[], Awaitable[None]], is_the_only_one: bool) -> None:  # noqa: FBT001  # `start_soon` hands on positions only
        try:
            await start()
        except DependfixError as error:
            # Beside other toolsets its tools answer with the error; alone there is nothing to serve.
            if is_the_only_one:
                self.failed_start = error
                self.start_failed.set()
