"""`GitHubReader`: everything that is read of a GitHub, behind one object."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from dependfix_core.connection import PUBLIC_API_URL
from dependfix_core.github.alerts import AlertListing, AlertPage, AlertReader, OnPage
from dependfix_core.github.api import DEFAULT_API_VERSION, GitHubApi, Rate
from dependfix_core.github.files import FileReader, WantFolder, is_worth_walking
from dependfix_core.github.owners import OnRepository, OwnerListing, OwnerReader
from dependfix_core.github.pulls import PullReader, PullRequest, PullState
from dependfix_core.github.query import AlertQuery
from dependfix_core.github.repositories import NameFilter, RepositoryFacts, RepositoryListing, RepositoryReader
from dependfix_core.github.token import TokenSource
from dependfix_core.http import CallBudget, HttpClient
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Absence, FileContent, Listing, TreeEntry
from dependfix_core.trees.base import MAX_FILE_BYTES


class GitHubReader:
    """Reads alerts, repositories, files and pull requests of one GitHub.

    Repositories are `owner/name`, as `parse_repository` gives them. Every
    method raises a `DependfixError` when it could not do its job; each takes a
    `budget` for waiting and requests, a fresh one of the edge's configuration
    by default. Safe for many tasks of one event loop.
    """

    def __init__(
        self,
        http: HttpClient,
        *,
        tokens: TokenSource,
        alerts_tokens: TokenSource | None = None,
        api_url: str = PUBLIC_API_URL,
        api_version: str = DEFAULT_API_VERSION,
    ) -> None:
        self._http = http
        self._api = GitHubApi(
            http, tokens=tokens, alerts_tokens=alerts_tokens, api_url=api_url, api_version=api_version
        )
        self._alerts = AlertReader(self._api)
        self._repositories = RepositoryReader(self._api)
        self._owners = OwnerReader(self._api, self._alerts, self._repositories)
        self._files = FileReader(self._api)
        self._pulls = PullReader(self._api)

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the edge's connections."""
        await self._http.close()

    @property
    def rate(self) -> Rate | None:
        """What was left of the hourly limit at the last answer; None on a server without limits."""
        return self._api.rate

    @property
    def warnings(self) -> tuple[str, ...]:
        """What answers said about the token and the API: an expiry close by, a version that goes."""
        return self._api.warnings

    async def list_alerts(
        self,
        repository: str,
        query: AlertQuery | None = None,
        *,
        budget: CallBudget | None = None,
        default_branch: str = "",
        on_page: OnPage | None = None,
    ) -> AlertListing:
        """All alerts that the query finds; every open one by default."""
        return await self._alerts.listing(
            repository,
            query or AlertQuery(),
            budget=budget or self._http.budget(),
            default_branch=default_branch,
            on_page=on_page,
        )

    async def alert_page(
        self,
        repository: str,
        query: AlertQuery | None = None,
        *,
        limit: int = 30,
        cursor: str | None = None,
        budget: CallBudget | None = None,
        default_branch: str = "",
        on_page: OnPage | None = None,
    ) -> AlertPage:
        """Up to `limit` (1 to 100) alerts in the query's order, and where they go on."""
        return await self._alerts.page(
            repository,
            query or AlertQuery(),
            limit=limit,
            cursor=cursor,
            budget=budget or self._http.budget(),
            default_branch=default_branch,
            on_page=on_page,
        )

    async def alert(self, repository: str, number: int, *, budget: CallBudget | None = None) -> Alert:
        """One alert by its number."""
        return await self._alerts.one(repository, number, budget=budget or self._http.budget())

    async def owner_alerts(
        self,
        owner: str,
        query: AlertQuery | None = None,
        *,
        names: NameFilter | None = None,
        allowed: Callable[[str], bool] | None = None,
        on_repository: OnRepository | None = None,
    ) -> OwnerListing:
        """The alerts of all repositories of an organisation or user, with their coverage."""
        return await self._owners.listing(
            owner, query or AlertQuery(), names=names, allowed=allowed, on_repository=on_repository
        )

    async def measure(self, repository: str, *, budget: CallBudget | None = None) -> None:
        """Find out with one small request whether the alerts of a repository can be read."""
        await self._alerts.measure(repository, budget=budget or self._http.budget())

    async def repository(self, repository: str, *, budget: CallBudget | None = None) -> RepositoryFacts:
        """The facts about a repository, under its name of today."""
        return await self._repositories.facts(repository, budget=budget or self._http.budget())

    async def repositories_of(self, owner: str, *, budget: CallBudget | None = None) -> RepositoryListing:
        """All repositories of an organisation or user that the token can see."""
        return await self._repositories.of_owner(owner, budget=budget or self._http.budget())

    async def has_dependabot_config(self, repository: str, *, budget: CallBudget | None = None) -> bool:
        """Whether `.github/dependabot.yml` (or `.yaml`) is on the default branch."""
        return await self._repositories.has_dependabot_config(repository, budget=budget or self._http.budget())

    async def head(self, repository: str, branch: str, *, budget: CallBudget | None = None) -> str:
        """The commit id that a branch points to."""
        return await self._files.head(repository, branch, budget=budget or self._http.budget())

    async def listing(
        self,
        repository: str,
        commit: str,
        *,
        budget: CallBudget | None = None,
        want_folder: WantFolder = is_worth_walking,
    ) -> Listing:
        """All paths of a commit."""
        return await self._files.listing(
            repository, commit, budget=budget or self._http.budget(), want_folder=want_folder
        )

    async def read_file(
        self,
        repository: str,
        entry: TreeEntry,
        *,
        budget: CallBudget | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> FileContent | Absence:
        """The content behind an entry of a listing, or why there is none."""
        return await self._files.read(repository, entry, budget=budget or self._http.budget(), max_bytes=max_bytes)

    async def read_path(
        self,
        repository: str,
        path: str,
        ref: str,
        *,
        budget: CallBudget | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> FileContent | Absence:
        """One file by its path and a branch or commit, without its tree."""
        return await self._files.read_path(
            repository, path, ref, budget=budget or self._http.budget(), max_bytes=max_bytes
        )

    async def pull_requests(
        self,
        repository: str,
        *,
        state: PullState = "open",
        head: str | None = None,
        base: str | None = None,
        budget: CallBudget | None = None,
    ) -> tuple[PullRequest, ...]:
        """Every pull request with this state, branch (`OWNER:BRANCH`) and base, newest first."""
        return await self._pulls.listing(
            repository, budget=budget or self._http.budget(), state=state, head=head, base=base
        )
