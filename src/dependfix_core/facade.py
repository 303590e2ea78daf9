"""The library's front door: `Dependfix`, its asynchronous twin, and runs over many repositories.

Everything is read lazily: constructing costs nothing, and nothing is asked
of a network before a method needs it.
"""

import contextlib
import functools
import os
import pickle
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from dependfix_core.collector import collector_paused
from dependfix_core.connection import (
    PUBLIC_API_URL,
    find_alerts_token,
    find_token,
    normalise_api_url,
    web_host,
)
from dependfix_core.environment import REGISTRY_KEYS, ca_bundle_of, home_of, registry_variable, user_folder
from dependfix_core.errors import (
    AuthenticationError,
    CheckoutBusyError,
    DependfixError,
    SourceError,
    TimeLimitError,
    UnsupportedError,
)
from dependfix_core.github.alerts import AlertListing, AlertPage
from dependfix_core.github.client import GitHubReader
from dependfix_core.github.decode import AlertProblem
from dependfix_core.github.owners import OwnerListing
from dependfix_core.github.query import AlertQuery
from dependfix_core.github.repositories import NameFilter, RepositoryFacts, RepositoryListing
from dependfix_core.github.token import StaticToken, TokenSource
from dependfix_core.github.tree import GitHubTree
from dependfix_core.http import CallBudget, DiskCache, HttpClient, HttpConfig, MemoryCache
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.base import MetadataSource
from dependfix_core.metadata.configuration import read_client_configuration
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.alert import Alert
from dependfix_core.model.plan import Plan, PlanProblem
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.progress import OnProgress, Progress, silent
from dependfix_core.model.repository import parse_repository
from dependfix_core.model.run import Applied, RunError, RunInfo, RunMode, Stage
from dependfix_core.pipeline.dependency import DependencyRequest
from dependfix_core.pipeline.run import (
    FetchedAlerts,
    OpenedFiles,
    Planned,
    Planners,
    Scanned,
    ScanRequest,
    plan_scan,
    scan,
)
from dependfix_core.process import Runner, SubprocessRunner
from dependfix_core.report.build import RepositoryRun, build_result
from dependfix_core.report.folders import ReportFolders
from dependfix_core.report.plan_store import PlanStore
from dependfix_core.report.run_id import new_run_id
from dependfix_core.report.store import ReportNotWrittenError, without_secrets, write_report
from dependfix_core.report.wire import DependencyFixResult, RunConfig, RunProblem, RunResult
from dependfix_core.workspace.locate import Workplaces, find_checkout
from dependfix_core.workspace.transaction import is_interrupted, recover
from dependfix_core.workspace.tree import CheckoutTree

if TYPE_CHECKING:
    from dependfix_core.fixing import Fixer, FixSettings

T = TypeVar("T")

MAX_PARALLEL_REPOSITORIES: Final = 6
_DEFAULT_WORKERS: Final = 4
_LEAST_ALLOWANCE: Final = 10
"""Requests that a task of a run over many repositories may make even when little is left."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """Everything that decides where answers come from; values only, so that it goes to other processes.

    `api_url` is normalised; a token is never part of it, only where one comes from.
    """

    api_url: str = PUBLIC_API_URL
    tokens: TokenSource = field(default_factory=StaticToken)
    alerts_tokens: TokenSource | None = None
    ca_bundle: str | None = None
    max_wait_s: float = 60.0
    registries: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    cache_dir: Path | None = None
    home: Path | None = None
    """Whose configuration of registry clients is read; `None` reads none."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that this configuration may refer to. Not handed to other processes."""

    def portable(self) -> "Connection":
        """Without what belongs to this process alone."""
        return replace(self, environment={})


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Folders of this machine."""

    current: Path | None = None
    """Where a checkout is looked for when a call names none; `None` uses no checkout."""
    roots: tuple[Path, ...] = ()
    reports: ReportFolders = field(default_factory=lambda: ReportFolders(candidates=()))
    recover: bool = False
    """Whether a checkout that an earlier run left half changed is put right first; else it is an error."""


@dataclass(frozen=True, slots=True)
class EnvironmentToken:
    """The token of whatever process asks, from its own environment; carries only rules, no token."""

    api_url: str = PUBLIC_API_URL

    async def token(self) -> str:
        """The token.

        Raises:
            AuthenticationError: This process has none.
        """
        return find_token(_process_environment(), self.api_url).require()


class AsyncDependfix:
    """Reads alerts, plans and reports; `async with` closes its connections."""

    def __init__(
        self,
        *,
        token: str | TokenSource | None = None,
        api_url: str = "",
        alerts_token: str | TokenSource | None = None,
        ca_bundle: str | Path | None = None,
        max_wait_s: float = 60,
        connection: Connection | None = None,
        places: Places | None = None,
        runner: Runner | None = None,
        metadata: MetadataSource | None = None,
        max_requests: int | None = None,
        fix: "FixSettings | None" = None,
        secrets: Callable[[], Sequence[str]] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Collect what is needed; `connection` replaces the arguments before it.

        Raises:
            ConfigurationError: `api_url` is no address, or a token holds characters that no token has.
        """
        self.connection = connection or Connection(
            api_url=normalise_api_url(api_url),
            tokens=_token_source(token) or StaticToken(),
            alerts_tokens=_token_source(alerts_token),
            ca_bundle=str(ca_bundle) if ca_bundle is not None else None,
            max_wait_s=max_wait_s,
        )
        self.places = places or Places()
        self.runner = runner or SubprocessRunner()
        self.max_requests = max_requests
        self._secrets = secrets or self._own_secrets
        self._fix_settings = fix
        self._clock = clock or (lambda: datetime.now(UTC))
        self._given_metadata = metadata

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """From the same variables, by the same rules, as the server.

        Raises:
            ConfigurationError: A variable holds what it may not.
        """
        return cls(**_from_environment(environ))

    async def __aenter__(self) -> Self:
        """Nothing is opened before it is needed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        for name in ("_github_http", "_registry_http"):
            client = self.__dict__.pop(name, None)
            if client is not None:
                await client.close()
        for name in ("github", "metadata"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def github(self) -> GitHubReader:
        """Everything that is read of GitHub."""
        connection = self.connection
        return GitHubReader(
            self._github_http,
            tokens=connection.tokens,
            alerts_tokens=connection.alerts_tokens,
            api_url=connection.api_url,
        )

    @functools.cached_property
    def metadata(self) -> MetadataSource:
        """Registry records."""
        if self._given_metadata is not None:
            return self._given_metadata
        return RegistryMetadata(self._registry_http, self.registry_addresses(), offline=self.connection.offline)

    @functools.cached_property
    def ecosystems(self) -> Planners:
        """Readers and graphs of every ecosystem whose files are read."""
        from dependfix_core.ecosystems.registry import ECOSYSTEMS  # noqa: PLC0415  # every reader and parser

        return ECOSYSTEMS

    @functools.cached_property
    def fixer(self) -> "Fixer":
        """Carries plans out, within what the operator allows."""
        from dependfix_core.ecosystems.registry import FIXABLE  # noqa: PLC0415  # every writer
        from dependfix_core.fixing import Fixer, FixSettings  # noqa: PLC0415  # as above

        return Fixer(
            ecosystems=FIXABLE,
            addresses=self.registry_addresses,
            runner=self.runner,
            settings=self._fix_settings or FixSettings(),
        )

    @functools.cached_property
    def _github_http(self) -> HttpClient:
        # What a token may see stays in memory.
        return HttpClient(self._http_config(), cache=MemoryCache())

    @functools.cached_property
    def _registry_http(self) -> HttpClient:
        folder = self.connection.cache_dir
        cache = DiskCache(folder / "registries") if folder is not None else MemoryCache()
        return HttpClient(self._http_config(), cache=cache)

    def _http_config(self) -> HttpConfig:
        return HttpConfig(ca_bundle=self.connection.ca_bundle, max_wait_s=self.connection.max_wait_s)

    def registry_addresses(self) -> RegistryAddresses:
        """Which registry is asked for what, and why."""
        connection = self.connection
        configuration = read_client_configuration(connection.home, connection.environment)
        return RegistryAddresses(connection.registries, configuration)

    def _own_secrets(self) -> Sequence[str]:
        found = []
        for source in (self.connection.tokens, self.connection.alerts_tokens):
            if isinstance(source, StaticToken):
                found.append(source.found.value)
            elif isinstance(source, EnvironmentToken):
                found.append(find_token(_process_environment(), source.api_url).value)
        return [value for value in found if value]

    def budget(self) -> CallBudget:
        """A fresh allowance of waiting and requests for one operation."""
        return CallBudget(max_wait_s=self.connection.max_wait_s, max_requests=self.max_requests)

    def now(self) -> datetime:
        """The time by which ages are counted."""
        return self._clock()

    def repository_name(self, text: str) -> str:
        """`owner/name` from any form that names the configured host.

        Raises:
            ArgumentError: It is none.
        """
        return parse_repository(text, host=web_host(self.connection.api_url))

    # --- reading ------------------------------------------------------------------

    async def fetch_alerts(
        self,
        repository: str,
        *,
        severity: str = "all",
        state: str = "open",
        ecosystem: str | None = None,
        package: str | None = None,
        manifest: str | None = None,
        scope: str | None = None,
        since: str | None = None,
        on_progress: OnProgress = silent,
    ) -> AlertListing:
        """All alerts of a repository that fit; lists are separated by commas.

        Raises:
            ArgumentError: A value has no meaning.
            DependfixError: The alerts could not be measured. That is never an empty listing.
        """
        query = AlertQuery.of(
            state=state,
            severity=severity,
            ecosystem=ecosystem,
            package=package,
            manifest=manifest,
            scope=scope,
            since=since,
        )
        name = self.repository_name(repository)
        return await self.github.list_alerts(name, query, budget=self.budget(), on_page=_alert_pages(name, on_progress))

    async def alert_page(
        self,
        repository: str,
        query: AlertQuery,
        *,
        limit: int = 30,
        cursor: str | None = None,
        on_progress: OnProgress = silent,
    ) -> AlertPage:
        """A page of the alerts that a query finds.

        Raises:
            DependfixError: As `fetch_alerts`; `ArgumentError` for a cursor of something else.
        """
        name = self.repository_name(repository)
        return await self.github.alert_page(
            name, query, limit=limit, cursor=cursor, budget=self.budget(), on_page=_alert_pages(name, on_progress)
        )

    async def owner_alerts(
        self,
        owner: str,
        query: AlertQuery | None = None,
        *,
        names: NameFilter | None = None,
        allowed: Callable[[str], bool] | None = None,
        on_progress: OnProgress = silent,
    ) -> OwnerListing:
        """The alerts of all repositories of an organisation or user, and which of them could be measured.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """

        def tell(done: int, total: int) -> None:
            on_progress(Progress(message=f"reading the repositories of {owner}", done=done, total=total))

        return await self.github.owner_alerts(owner, query, names=names, allowed=allowed, on_repository=tell)

    async def repositories_of(self, owner: str) -> RepositoryListing:
        """The repositories of an organisation or user that the token can see.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """
        return await self.github.repositories_of(owner, budget=self.budget())

    # --- planning and running -----------------------------------------------------

    async def plan(
        self,
        repository: str,
        *,
        workdir: str | Path | None = None,
        policy: ScanPolicy | None = None,
        on_progress: OnProgress = silent,
    ) -> Plan:
        """What to do about every open alert; nothing is changed.

        Raises:
            DependfixError: The alerts could not be measured, or `workdir` is no checkout of the repository.
        """
        planned = await self.plan_scan(repository, workdir=workdir, policy=policy, on_progress=on_progress)
        return planned.plan

    async def plan_scan(
        self,
        repository: str,
        *,
        workdir: str | Path | None = None,
        policy: ScanPolicy | None = None,
        on_progress: OnProgress = silent,
    ) -> Planned:
        """As `plan`, with what the plan was made from.

        Raises:
            DependfixError: As `plan`.
        """
        request = ScanRequest(
            repository=self.repository_name(repository),
            policy=policy or ScanPolicy(),
            work_dir=Path(workdir) if workdir is not None else None,
        )
        return await plan_scan(request, _Sources(self), now=self.now(), on_progress=on_progress)

    async def run_scan(
        self,
        repository: str,
        *,
        mode: RunMode = "report-only",
        workdir: str | Path | None = None,
        policy: ScanPolicy | None = None,
        dry_run: bool = False,
        allow_dirty: bool = False,
        plan: Plan | None = None,
        run_id: str | None = None,
        timeout_s: float | None = None,
        write_reports: bool = True,
        on_progress: OnProgress = silent,
    ) -> RunResult:
        """Scan one repository, in mode `fix` carry the plan out in its checkout, and write the report.

        With `plan` exactly that plan is carried out.

        Raises:
            StalePlanError: `plan` was made on other files or for other alerts.
            DirtyCheckoutError: Files to be written have uncommitted changes.
            DependfixError: The alerts could not be measured, or the checkout cannot be used.
            TimeLimitError: It took longer than `timeout_s`; what was begun is undone.
        """
        started = self.now()
        request = ScanRequest(
            repository=self.repository_name(repository),
            policy=plan.policy if plan is not None else policy or ScanPolicy(),
            mode=_served_mode(mode),
            work_dir=Path(workdir) if workdir is not None else None,
            dry_run=dry_run,
            allow_dirty=allow_dirty,
            given=plan,
        )
        apply = functools.partial(self._carry_out, started) if mode == "fix" else None
        try:
            with anyio.fail_after(timeout_s):
                scanned = await scan(request, _Sources(self), now=started, apply=apply, on_progress=on_progress)
        except TimeoutError as error:
            raise TimeLimitError(f"the run did not end within {timeout_s:g} s", retryable=True) from error
        info = RunInfo(
            run_id=run_id or new_run_id(started),
            started_at=started,
            finished_at=self.now(),
            mode=mode,
            dry_run=dry_run,
        )
        config = _config([scanned.planned.fetched.repository], request)
        with collector_paused():
            result = build_result(info, config, [_repository_run(scanned)])
        if not write_reports:
            return result
        with contextlib.suppress(ReportNotWrittenError):  # the report says so, or there is none
            await anyio.to_thread.run_sync(self._keep, scanned.planned.plan)
        return await self._reported(result)

    def _keep(self, plan: Plan) -> None:
        with collector_paused():
            PlanStore(self.places.reports).save(plan)

    async def _carry_out(self, now: datetime, planned: Planned, on_progress: OnProgress) -> Applied:
        checkout = planned.files.checkout
        assert checkout is not None, "a run that fixes has a checkout"
        count = len(planned.plan.remediations)
        on_progress(Progress(message=f"writing and proving {count} remediations"))
        return await self.fixer.fix(
            planned.plan,
            planned.fetched.alerts,
            checkout.git,
            now=now,
            allow_dirty=planned.request.allow_dirty,
            dry_run=planned.request.dry_run,
        )

    async def apply(
        self, plan: Plan, *, workdir: str | Path | None = None, allow_dirty: bool = False, dry_run: bool = False
    ) -> RunResult:
        """Carry out exactly `plan` in a checkout of its repository, and write the report.

        Raises:
            StalePlanError: The plan was made on other files or for other alerts.
            DependfixError: As `run_scan`.
        """
        return await self.run_scan(
            plan.repository, mode="fix", workdir=workdir, plan=plan, allow_dirty=allow_dirty, dry_run=dry_run
        )

    async def preview(self, planned: Planned) -> Plan:
        """The plan with the diff that applying it makes, as far as no package manager has to write."""
        tree = planned.files.tree
        if tree is None:
            return planned.plan
        return await self.fixer.preview(planned.plan, planned.fetched.alerts, tree, now=self.now())

    async def fix_dependency(
        self,
        repository: str,
        package: str,
        target: str,
        *,
        workdir: str | Path | None = None,
        ecosystem: str = "",
        manifest: str = "",
        policy: ScanPolicy | None = None,
        allow_dirty: bool = False,
        dry_run: bool = False,
        timeout_s: float | None = None,
    ) -> DependencyFixResult:
        """Move one package to one version in a checkout, by the same legality and proof as for an alert.

        Runs without a token too; then the result warns that the target was not
        checked against open alerts. A refusal is a result with `success` false.

        Raises:
            ArgumentError: No manifest holds the package, or several do.
            DirtyCheckoutError: Files to be written have uncommitted changes.
            WorkspaceMismatchError: There is no checkout of the repository.
            TimeLimitError: It took longer than `timeout_s`; what was begun is undone.
        """
        from dependfix_core.fixing import fix_dependency  # noqa: PLC0415  # every writer

        name = self.repository_name(repository)
        request = ScanRequest(
            repository=name,
            policy=policy or ScanPolicy(),
            mode="fix",
            work_dir=Path(workdir) if workdir is not None else None,
            dry_run=dry_run,
            allow_dirty=allow_dirty,
        )
        sources = _Sources(self)
        warning = None
        try:
            fetched = await sources.fetch(request, silent)
        except AuthenticationError as error:
            if error.code != "auth_missing":
                raise
            fetched = FetchedAlerts(repository=name, names=(name,), alerts=())
            warning = "GITHUB_TOKEN not set: the target was not checked against the ranges of open alerts"
        files = await sources.open_files(request, fetched)
        wanted = DependencyRequest(package=package, target=target, ecosystem=ecosystem, manifest=manifest)
        try:
            with anyio.fail_after(timeout_s):
                return await fix_dependency(
                    self.fixer, wanted, request, fetched, files, self.metadata, now=self.now(), warning=warning
                )
        except TimeoutError as error:
            raise TimeLimitError(f"the fix did not end within {timeout_s:g} s", retryable=True) from error

    async def scan_many(
        self,
        repositories: Sequence[str],
        *,
        executor: Executor | None = None,
        policy: ScanPolicy | None = None,
        write_reports: bool = True,
        on_progress: OnProgress = silent,
    ) -> RunResult:
        """Scan many repositories, report-only; one report for each and one over all.

        The alerts are listed here; each repository is then planned by a task
        on `executor` (a bounded thread pool without one), which may be that of
        a cluster. A task carries where its token comes from, never a token,
        and may make its share of the requests that are left.

        What fails for one repository is an error of the result.

        Raises:
            ArgumentError: One of the names is none.
            ConfigurationError: The token cannot go to another process.
        """
        started = self.now()
        names = list(dict.fromkeys(self.repository_name(text) for text in repositories))
        chosen = policy or ScanPolicy()
        fetched = await self._fetch_many(names, chosen, on_progress)
        good = [item for item in fetched.values() if isinstance(item, FetchedAlerts)]
        tasks = [
            ScanTask(
                fetched=item,
                policy=chosen,
                connection=self.connection.portable(),
                max_requests=self._share(len(good)),
                started=started,
            )
            for item in good
        ]
        if executor is not None and not isinstance(executor, ThreadPoolExecutor):
            pickle.dumps(tasks)  # says at once when something cannot go to another process
        runs = [_failed_run(name, error) for name, error in fetched.items() if isinstance(error, DependfixError)]
        runs += await self._run_tasks(tasks, executor, on_progress)
        return await self._combined(runs, names, chosen, started, write_reports=write_reports)

    async def report_owners(
        self,
        owners: Sequence[str],
        *,
        policy: ScanPolicy | None = None,
        names: NameFilter | None = None,
        allowed: Callable[[str], bool] | None = None,
        write_reports: bool = True,
        on_progress: OnProgress = silent,
    ) -> RunResult:
        """Report the alerts of everything that some owners have, planned from the alerts alone.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """
        started = self.now()
        chosen = policy or ScanPolicy()
        runs: dict[str, RepositoryRun] = {}
        for owner in owners:
            listing = await self.owner_alerts(owner, names=names, allowed=allowed, on_progress=on_progress)
            for item in _fetched_of(listing):
                runs[item.repository] = await self._planned_from_alerts(item, chosen, started)
        return await self._combined(list(runs.values()), list(runs), chosen, started, write_reports=write_reports)

    async def _planned_from_alerts(
        self, item: "FetchedAlerts | RepositoryRun", policy: ScanPolicy, started: datetime
    ) -> RepositoryRun:
        if isinstance(item, RepositoryRun):
            return item
        request = ScanRequest(repository=item.repository, policy=policy)
        return _repository_run(await scan(request, _Prefetched(self, item, reads_files=False), now=started))

    async def _fetch_many(
        self, names: Sequence[str], policy: ScanPolicy, on_progress: OnProgress
    ) -> dict[str, FetchedAlerts | DependfixError]:
        found: dict[str, FetchedAlerts | DependfixError] = {}
        limiter = anyio.CapacityLimiter(MAX_PARALLEL_REPOSITORIES)

        async def fetch(name: str) -> None:
            async with limiter:
                try:
                    found[name] = await _Sources(self).fetch(ScanRequest(repository=name, policy=policy), silent)
                except DependfixError as error:
                    found[name] = error
            on_progress(Progress(message="reading alerts", done=len(found), total=len(names)))

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(fetch, name)
        return {name: found[name] for name in names}

    def _share(self, tasks: int) -> int | None:
        rate = self.github.rate
        if rate is None or not tasks:
            return self.max_requests
        share = max(_LEAST_ALLOWANCE, rate.remaining // tasks)
        return min(share, self.max_requests) if self.max_requests is not None else share

    async def _run_tasks(
        self, tasks: Sequence["ScanTask"], executor: Executor | None, on_progress: OnProgress
    ) -> list[RepositoryRun]:
        done = 0

        def note(_future: object) -> None:
            nonlocal done
            done += 1

        runs: list[RepositoryRun] = []
        futures: list[Future[RepositoryRun]] = []
        own = ThreadPoolExecutor(_DEFAULT_WORKERS, thread_name_prefix="dependfix")  # starts no thread unused
        pool = executor if executor is not None else own
        try:
            for task in tasks:
                futures.append(pool.submit(run_task, task))
                futures[-1].add_done_callback(note)
            for future, task in zip(futures, tasks, strict=True):
                try:
                    runs.append(await anyio.to_thread.run_sync(future.result, abandon_on_cancel=True))
                except DependfixError as error:
                    runs.append(_failed_run(task.fetched.repository, error, "plan"))
                on_progress(Progress(message="planning", done=done, total=len(tasks)))
        finally:
            for future in futures:
                future.cancel()
            own.shutdown(wait=False)
        return runs

    async def _combined(
        self,
        runs: Sequence[RepositoryRun],
        names: Sequence[str],
        policy: ScanPolicy,
        started: datetime,
        *,
        write_reports: bool,
    ) -> RunResult:
        info = RunInfo(run_id=new_run_id(started), started_at=started, finished_at=self.now(), mode="report-only")
        request = ScanRequest(repository="", policy=policy)
        result = build_result(info, _config(names, request), runs)
        if not write_reports:
            return result
        parts = {run.repository: build_result(info, _config([run.repository], request), [run]) for run in runs}
        return await self._reported(result, parts if len(parts) > 1 else None)

    async def _reported(self, result: RunResult, parts: Mapping[str, RunResult] | None = None) -> RunResult:
        """The result with its files; a report that cannot be written is an error of the result, not of the run."""
        secrets = tuple(self._secrets())

        def write() -> RunResult:
            with collector_paused():
                return write_report(self.places.reports, result, parts, secrets=secrets)

        try:
            return await anyio.to_thread.run_sync(write)
        except ReportNotWrittenError as error:
            problem = RunProblem(stage="report", category=error.code, message=error.message)
            return without_secrets(result.model_copy(update={"errors": (*result.errors, problem)}), secrets)


def _served_mode(mode: str) -> RunMode:
    if mode == "fix":
        return "fix"
    if mode != "report-only":
        raise UnsupportedError(f"mode {mode} is not served", hint="Use mode='report-only' or 'fix'.")
    return "report-only"


class _Sources:
    """Where a run over one repository takes things from: GitHub, the checkout, the registries."""

    def __init__(self, owner: AsyncDependfix) -> None:
        self._owner = owner

    @property
    def metadata(self) -> MetadataSource:
        return self._owner.metadata

    @property
    def ecosystems(self) -> Planners:
        return self._owner.ecosystems

    async def fetch(self, request: ScanRequest, on_progress: OnProgress) -> FetchedAlerts:
        github, budget = self._owner.github, self._owner.budget()
        listing = await github.list_alerts(
            request.repository, budget=budget, on_page=_alert_pages(request.repository, on_progress)
        )
        facts: RepositoryFacts | None = None
        try:
            facts = await github.repository(listing.repository, budget=budget)
        except DependfixError:
            # Only its default branch and spelling are wanted; the alerts stand without them.
            facts = None
        name = facts.full_name if facts is not None else listing.repository
        branch = facts.default_branch if facts is not None else ""
        return FetchedAlerts(
            repository=name,
            names=tuple(dict.fromkeys((name, listing.repository, request.repository))),
            alerts=_under_name(listing.alerts, name),
            default_branch=branch,
            problems=_plan_problems(listing.problems, listing.error),
        )

    async def open_files(self, request: ScanRequest, fetched: FetchedAlerts) -> OpenedFiles:
        owner = self._owner
        checkout = await find_checkout(
            owner.runner,
            names=fetched.names,
            api_url=owner.connection.api_url,
            places=Workplaces(folder=owner.places.current, roots=owner.places.roots),
            work_dir=request.work_dir,
            required=request.mode == "fix",
        )
        if checkout is None:
            return await self._on_github(fetched)
        top, git_dir = checkout.git.top, checkout.git.git_dir
        if is_interrupted(git_dir):
            if not owner.places.recover and request.mode != "fix":
                raise CheckoutBusyError(
                    f"{top} was left in the middle of a change",
                    hint=f"Bring it back with: dependfix-mcp doctor --recover {shlex.quote(str(top))}",
                    details={"folder": str(top)},
                )
            await anyio.to_thread.run_sync(recover, top, git_dir)
        return OpenedFiles(tree=CheckoutTree(top, owner.runner), checkout=checkout)

    async def _on_github(self, fetched: FetchedAlerts) -> OpenedFiles:
        github, budget = self._owner.github, self._owner.budget()
        if not fetched.default_branch:
            return OpenedFiles()
        try:
            commit = await github.head(fetched.repository, fetched.default_branch, budget=budget)
            tree = GitHubTree(github, fetched.repository, commit, budget=budget)
            await tree.listing()
        except SourceError as error:
            # Planned from the alerts alone, and said so.
            return OpenedFiles(problems=(PlanProblem(stage="plan", message=f"files: {error.message}"),))
        return OpenedFiles(tree=tree)


class _Prefetched(_Sources):
    """As `_Sources`, for alerts that are at hand."""

    def __init__(self, owner: AsyncDependfix, fetched: FetchedAlerts, *, reads_files: bool = True) -> None:
        super().__init__(owner)
        self._fetched = fetched
        self._reads_files = reads_files

    async def fetch(self, request: ScanRequest, on_progress: OnProgress) -> FetchedAlerts:  # noqa: ARG002  # nothing is left to ask
        return self._fetched

    async def open_files(self, request: ScanRequest, fetched: FetchedAlerts) -> OpenedFiles:
        return await super().open_files(request, fetched) if self._reads_files else OpenedFiles()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanTask:
    """One repository's share of a run over many; pickles, and holds no token."""

    fetched: FetchedAlerts
    policy: ScanPolicy
    connection: Connection
    max_requests: int | None
    started: datetime


def run_task(task: ScanTask) -> RepositoryRun:
    """Plan one repository in whatever process this is.

    Raises:
        DependfixError: It could not be planned.
    """

    async def run() -> RepositoryRun:
        async with AsyncDependfix(connection=task.connection, max_requests=task.max_requests) as dependfix:
            request = ScanRequest(repository=task.fetched.repository, policy=task.policy)
            return _repository_run(await scan(request, _Prefetched(dependfix, task.fetched), now=task.started))

    return anyio.run(run)


def _under_name(alerts: Sequence[Alert], name: str) -> tuple[Alert, ...]:
    """The alerts under the repository's name of today, in GitHub's spelling."""
    return tuple(alert if alert.repository == name else replace(alert, repository=name) for alert in alerts)


def _repository_run(scanned: Scanned) -> RepositoryRun:
    planned = scanned.planned
    return RepositoryRun(
        repository=planned.fetched.repository,
        default_branch=planned.fetched.default_branch,
        alerts=planned.fetched.alerts,
        plan=planned.plan,
        applied=scanned.applied,
        checkout=planned.files.checkout.view() if planned.files.checkout is not None else None,
        duration_ms=scanned.duration_ms,
    )


def _failed_run(repository: str, error: DependfixError, stage: Stage = "fetch") -> RepositoryRun:
    problem = RunError(repository=repository, stage=stage, category=error.code, message=error.message)
    return RepositoryRun(repository=repository, measured=False, errors=(problem,))


def _fetched_of(listing: OwnerListing) -> Iterator[FetchedAlerts | RepositoryRun]:
    """The alerts of each repository, or the run that failed to measure them."""
    branches = {facts.full_name: facts.default_branch for facts in listing.repositories}
    alerts: dict[str, list[Alert]] = {}
    for alert in listing.alerts:
        alerts.setdefault(alert.repository.lower(), []).append(alert)
    problems: dict[str, list[AlertProblem]] = {}
    for problem in listing.problems:
        problems.setdefault((problem.repository or "").lower(), []).append(problem)
    for coverage in listing.coverage:
        name = coverage.repository
        if coverage.error is not None and coverage.status not in ("ok", "partial"):
            yield _failed_run(name, coverage.error)
            continue
        yield FetchedAlerts(
            repository=name,
            names=(name,),
            alerts=tuple(alerts.get(name.lower(), ())),
            default_branch=branches.get(name, ""),
            problems=_plan_problems(problems.get(name.lower(), ()), coverage.error),
        )


def _plan_problems(problems: Sequence[AlertProblem], error: DependfixError | None) -> tuple[PlanProblem, ...]:
    found = [
        PlanProblem(
            stage="fetch",
            message=problem.message,
            target=f"alert {problem.number}" if problem.number is not None else "",
        )
        for problem in problems
    ]
    if error is not None:
        found.append(PlanProblem(stage="fetch", message=error.message))
    return tuple(found)


def _config(repositories: Sequence[str], request: ScanRequest) -> RunConfig:
    return RunConfig(
        mode=request.mode,
        severity_threshold=request.policy.severity,
        repositories=tuple(repositories),
        dry_run=request.dry_run,
        create_pull_request=request.mode == "fix-and-pr",
        max_alerts_per_repository=request.policy.max_alerts or 0,
    )


def _alert_pages(repository: str, on_progress: OnProgress) -> Callable[[int, int], None]:
    def tell(pages: int, alerts: int) -> None:
        on_progress(Progress(message=f"read {alerts} alerts of {repository}", done=pages))

    return tell


def _token_source(given: str | TokenSource | None) -> TokenSource | None:
    if given is None or not isinstance(given, str):
        return given
    return StaticToken.of(given)


def _process_environment() -> Mapping[str, str]:
    return dict(os.environ)  # noqa: TID251  # the library's one entry that says it reads the environment


def _from_environment(given: Mapping[str, str] | None) -> dict[str, Any]:
    environ = _process_environment() if given is None else given
    api_url = normalise_api_url(environ.get("GITHUB_API_URL", ""))
    alerts = find_alerts_token(environ)
    bundle = ca_bundle_of(environ)
    report_dir = environ.get("DEPENDFIX_REPORT_DIR") or environ.get("DEPENDFIX_MCP_REPORT_DIR")
    cache = environ.get("DEPENDFIX_CACHE_DIR")
    current = Path.cwd()
    registries = {key: environ.get(registry_variable(key), "") for key in REGISTRY_KEYS}
    return {
        "connection": Connection(
            api_url=api_url,
            # Every process can look into its own environment: this source goes to other ones.
            tokens=EnvironmentToken(api_url) if given is None else StaticToken(find_token(environ, api_url)),
            alerts_tokens=StaticToken(alerts) if alerts.value else None,
            ca_bundle=str(bundle) if bundle is not None else None,
            registries={key: url for key, url in registries.items() if url},
            offline=environ.get("DEPENDFIX_OFFLINE", "").lower() in ("1", "true", "yes", "on"),
            cache_dir=Path(cache) if cache else user_folder(environ, "cache"),
            home=home_of(environ),
            environment=dict(environ),
        ),
        "places": Places(
            current=current,
            reports=ReportFolders.choose(
                Path(report_dir) if report_dir else None, current, user_folder(environ, "state")
            ),
        ),
    }


class Dependfix:
    """`AsyncDependfix` for code without an event loop: the same methods, one after the other.

    Use it as a context, or call `close`.
    """

    def __init__(self, **arguments: Any) -> None:
        """Take the arguments of `AsyncDependfix`."""
        self._twin = AsyncDependfix(**arguments)
        self._loop: AbstractContextManager[anyio.from_thread.BlockingPortal] | None = None
        self._portal: anyio.from_thread.BlockingPortal | None = None

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """From the same variables, by the same rules, as the server.

        Raises:
            ConfigurationError: A variable holds what it may not.
        """
        return cls(**_from_environment(environ))

    def __enter__(self) -> Self:
        """Nothing is opened before it is needed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        if self._portal is not None and self._loop is not None:
            self._portal.call(self._twin.close)
            self._loop.__exit__(None, None, None)
            self._portal = self._loop = None

    def _call(self, method: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        if self._portal is None:
            self._loop = anyio.from_thread.start_blocking_portal()
            self._portal = self._loop.__enter__()
        return self._portal.call(functools.partial(method, *arguments, **named))

    def fetch_alerts(self, repository: str, **filters: Any) -> AlertListing:
        """See `AsyncDependfix.fetch_alerts`.

        Raises:
            DependfixError: The alerts could not be measured.
        """
        return self._call(self._twin.fetch_alerts, repository, **filters)

    def owner_alerts(self, owner: str, query: AlertQuery | None = None, **options: Any) -> OwnerListing:
        """See `AsyncDependfix.owner_alerts`.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """
        return self._call(self._twin.owner_alerts, owner, query, **options)

    def repositories_of(self, owner: str) -> RepositoryListing:
        """See `AsyncDependfix.repositories_of`.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """
        return self._call(self._twin.repositories_of, owner)

    def plan(self, repository: str, *, workdir: str | Path | None = None, policy: ScanPolicy | None = None) -> Plan:
        """See `AsyncDependfix.plan`.

        Raises:
            DependfixError: The alerts could not be measured, or `workdir` is no checkout of the repository.
        """
        return self._call(self._twin.plan, repository, workdir=workdir, policy=policy)

    def run_scan(
        self,
        repository: str,
        *,
        mode: RunMode = "report-only",
        workdir: str | Path | None = None,
        policy: ScanPolicy | None = None,
        **options: Any,
    ) -> RunResult:
        """See `AsyncDependfix.run_scan`.

        Raises:
            DependfixError: The alerts could not be measured, or the checkout cannot be used.
        """
        return self._call(self._twin.run_scan, repository, mode=mode, workdir=workdir, policy=policy, **options)

    def apply(self, plan: Plan, *, workdir: str | Path | None = None, **options: Any) -> RunResult:
        """See `AsyncDependfix.apply`.

        Raises:
            StalePlanError: The plan was made on other files or for other alerts.
            DependfixError: As `run_scan`.
        """
        return self._call(self._twin.apply, plan, workdir=workdir, **options)

    def fix_dependency(self, repository: str, package: str, target: str, **options: Any) -> DependencyFixResult:
        """See `AsyncDependfix.fix_dependency`.

        Raises:
            DependfixError: The checkout cannot be used, or an argument does not fit it.
        """
        return self._call(self._twin.fix_dependency, repository, package, target, **options)

    def scan_many(
        self,
        repositories: Sequence[str],
        executor: Executor | None = None,
        *,
        policy: ScanPolicy | None = None,
        **options: Any,
    ) -> RunResult:
        """See `AsyncDependfix.scan_many`.

        Raises:
            DependfixError: A name is none, or the token cannot go to another process.
        """
        return self._call(self._twin.scan_many, repositories, executor=executor, policy=policy, **options)

    def report_owners(self, owners: Sequence[str], *, policy: ScanPolicy | None = None, **options: Any) -> RunResult:
        """See `AsyncDependfix.report_owners`.

        Raises:
            DependfixError: There is no such owner, or nothing of it may be seen.
        """
        return self._call(self._twin.report_owners, owners, policy=policy, **options)
