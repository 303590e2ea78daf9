"""Runs that are under way or ended in this process; they go on when the call that began them has answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

import anyio

from dependfix_core.errors import DependfixError, UnsupportedError
from dependfix_core.model.progress import Progress
from dependfix_core.report.wire import RunConfig, RunResult
from dependfix_mcp.services import Services

_KEPT: Final = 50
_MAX_RUNNING: Final = 8


@dataclass(kw_only=True)
class LiveRun:
    """One run of this process."""

    run_id: str
    repository: str
    started_at: datetime
    config: RunConfig
    progress: Progress = field(default_factory=lambda: Progress(message="starting"))
    steps: int = 0
    """Rises with every report of progress."""
    result: RunResult | None = None
    error: DependfixError | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def status(self) -> Literal["running", "done", "failed"]:
        """How it stands."""
        if not self.ended.is_set():
            return "running"
        return "done" if self.result is not None else "failed"

    def note(self, progress: Progress) -> None:
        """Take in how far it is."""
        self.progress = progress
        self.steps += 1


Work = Callable[[LiveRun], Awaitable[RunResult]]


class Runs:
    """All runs of this process by id, the newest ones of those that ended."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs: dict[str, LiveRun] = {}

    def start(self, run: LiveRun, work: Work) -> None:
        """Begin `work` beside the calls.

        Raises:
            UnsupportedError: Too many are under way.
        """
        tasks = self._services.tasks
        under_way = sum(not known.ended.is_set() for known in self._runs.values())
        if tasks is None or under_way >= _MAX_RUNNING:
            raise UnsupportedError(
                f"{under_way} runs are under way already",
                hint="Wait for one of them: get_last_report(runId) tells how it stands.",
                retryable=True,
            )
        self._forget_old()
        self._runs[run.run_id] = run
        tasks.start_soon(self._carry, run, work)

    def get(self, run_id: str) -> LiveRun | None:
        """The run of that id, if it belongs to this process."""
        return self._runs.get(run_id)

    def ids(self, prefix: str) -> list[str]:
        """Ids that begin with `prefix`, newest first."""
        return [run_id for run_id in reversed(self._runs) if run_id.startswith(prefix)]

    async def _carry(self, run: LiveRun, work: Work) -> None:
        try:
            with run.scope:
                run.result = await work(run)
        except DependfixError as error:
            run.error = error
        finally:
            if run.result is None and run.error is None:
                run.error = DependfixError("the run was stopped", hint="Start it again.", retryable=True)
            run.ended.set()

    def _forget_old(self) -> None:
        ended = [run_id for run_id, run in self._runs.items() if run.ended.is_set()]
        for run_id in ended[: max(0, len(ended) - _KEPT)]:
            del self._runs[run_id]
