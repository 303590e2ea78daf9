"""Runs a built server until it should end: signals, a dead parent, the end of stdin, a toolset that cannot work."""

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import anyio
import anyio.abc
from mcp.server.mcpserver import MCPServer

from dependfix_core.process import redact
from dependfix_mcp.services import Services

EXIT_START_FAILED: Final = 3
_PARENT_CHECK_S: Final = 2.0
_CLEAN_UP_S: Final = 2.5


class RedactingFormatter(logging.Formatter):
    """Log lines without credentials, tracebacks included."""

    def __init__(self, secrets: Callable[[], tuple[str, ...]]) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        return redact(super().format(record), *self._secrets())


def configure_logging(secrets: Callable[[], tuple[str, ...]]) -> None:
    """Warnings and worse go to stderr. Must come before the server is built, which else brings its own handler."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(secrets))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


async def serve_stdio(server: MCPServer, services: Services) -> None:
    """Serve on stdin and stdout; ends the process."""
    await serve_until_stopped(services, server.run_stdio_async)


async def serve_until_stopped(
    services: Services, run: Callable[[], Awaitable[None]], ask_to_end: Callable[[], None] | None = None
) -> None:
    """Run until it ends by itself or something stops it; then end the process, cleaned up in either case.

    `ask_to_end` makes `run` end; without it `run` is cancelled, which ends
    running calls, their children and the lifespan.
    """
    async with anyio.create_task_group() as watchers:
        with anyio.CancelScope() as scope:

            async def stop(code: int) -> NoReturn:
                (ask_to_end or scope.cancel)()
                # Not longer than a host waits: a clean-up that hangs is left behind.
                with anyio.move_on_after(_CLEAN_UP_S):
                    await services.ended.wait()
                _leave(code)

            if sys.platform != "win32":  # there the end of stdin is the signal
                await watchers.start(_watch_signals, stop)
                watchers.start_soon(_watch_parent, stop)
            watchers.start_soon(_watch_start, services, stop)
            await run()
        # A run that was stopped leaves by `stop`, which knows the exit code.
        if scope.cancel_called:
            await anyio.sleep_forever()
        _leave(0)


_Stop = Callable[[int], Awaitable[NoReturn]]


async def _watch_signals(stop: _Stop, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        task_status.started()
        async for number in received:
            await stop(128 + number)


async def _watch_parent(stop: _Stop) -> None:
    # Compared with the first value, not with 1: the parent may be a subreaper.
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110  # nobody tells of a parent's end
        await anyio.sleep(_PARENT_CHECK_S)
    await stop(0)


async def _watch_start(services: Services, stop: _Stop) -> None:
    await services.start_failed.wait()
    error = services.failed_start
    if error is not None:
        say(f"dependfix-mcp: {error.message}", error.hint)
    await stop(EXIT_START_FAILED)


def say(*lines: str) -> None:
    """Lines for the person who starts the program, on stderr; stdout belongs to the protocol."""
    for line in filter(None, lines):
        print(line, file=sys.stderr, flush=True)  # noqa: T201  # the one way to speak before and beside serving


def _leave(code: int) -> NoReturn:
    # Ordinary shutdown waits for the thread that is blocked in reading stdin.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)
