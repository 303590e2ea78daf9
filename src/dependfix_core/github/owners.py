"""Reads the alerts of a whole owner, and says for each repository whether it was measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import anyio

from dependfix_core.errors import (
    AlertsDisabledError,
    ArchivedError,
    AuthenticationError,
    DependfixError,
    NotFoundError,
    PermissionDeniedError,
    PolicyBlockedError,
    RateLimitedError,
)
from dependfix_core.github.alerts import AlertReader, Walk
from dependfix_core.github.api import GitHubApi, path_of
from dependfix_core.github.decode import AlertProblem, Asked
from dependfix_core.github.query import AlertQuery
from dependfix_core.github.repositories import NameFilter, RepositoryFacts, RepositoryReader, owner_of
from dependfix_core.model.alert import Alert

CoverageStatus: TypeAlias = Literal["ok", "partial", "disabled", "archived", "forbidden", "sso", "error"]

OnRepository = Callable[[int, int], None]
"""(repositories done, repositories in all)."""

MAX_PARALLEL: Final = 6
MAX_PROBES: Final = 300
"""Repositories without alerts that are asked whether that is a measurement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Whether the alerts of a repository were measured. Everything but `ok` is not "no alerts"."""

    repository: str
    status: CoverageStatus
    error: DependfixError | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnerListing:
    """The alerts of an owner's repositories, sorted by repository and number."""

    owner: str
    alerts: tuple[Alert, ...] = field(repr=False)
    coverage: tuple[Coverage, ...] = field(repr=False)
    """One for each repository that was wanted, sorted by name."""
    via: Literal["organization", "repositories"]
    complete: bool = True
    problems: tuple[AlertProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    requests: int = 0
    repositories: tuple[RepositoryFacts, ...] = field(default=(), repr=False)
    """The facts about the repositories that were wanted."""


@dataclass(kw_only=True, slots=True)
class _Measured:
    alerts: list[Alert] = field(default_factory=list)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    problems: list[AlertProblem] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    stop: DependfixError | None = None
    requests: int = 0


def coverage_status(error: DependfixError) -> CoverageStatus:
    """What a failure says about the measurement of a repository."""
    match error:
        case AlertsDisabledError():
            return "disabled"
        case ArchivedError():
            return "archived"
        case PermissionDeniedError() if "ssoUrl" in error.details:
            return "sso"
        case PermissionDeniedError() | PolicyBlockedError() | NotFoundError():
            return "forbidden"
        case _:
            return "error"


def stops_everything(error: DependfixError) -> bool:
    """Whether the next repository would fail in the same way: it is the token's own matter."""
    return isinstance(error, AuthenticationError | RateLimitedError)


class OwnerReader:
    """The alerts of organisations and users."""

    def __init__(self, api: GitHubApi, alerts: AlertReader, repositories: RepositoryReader) -> None:
        self._api = api
        self._alerts = alerts
        self._repositories = repositories

    async def listing(
        self,
        owner: str,
        query: AlertQuery,
        *,
        names: NameFilter | None = None,
        allowed: Callable[[str], bool] | None = None,
        on_repository: OnRepository | None = None,
    ) -> OwnerListing:
        """Every alert that the query finds, and the coverage of every repository.

        The organisation's own list is read first, since it takes one request
        for a hundred alerts. A repository that does not occur in it either has
        no alerts or was not measured: one small request tells. Where the token
        may not read that list, repository by repository is read.

        Args:
            owner: The login of an organisation or user.
            query: Which alerts.
            names: Which repositories.
            allowed: What the operator allows, by full name.
            on_repository: Told of the progress.

        Raises:
            DependfixError: The repositories of the owner cannot be listed.
        """
        login = owner_of(owner)
        budget = self._api.http.budget()
        known = await self._repositories.of_owner(login, budget=budget)
        keep = names or NameFilter()
        wanted = {
            facts.full_name.lower(): facts
            for facts in known.repositories
            if keep.keeps(facts) and (allowed is None or allowed(facts.full_name))
        }
        measured = _Measured()
        for facts in wanted.values():
            if facts.archived:
                measured.coverage[facts.full_name.lower()] = Coverage(repository=facts.full_name, status="archived")
        via: Literal["organization", "repositories"] = "organization"
        refusal = await self._organization(login, query, wanted, measured)
        if refusal is not None:
            via = "repositories"
            measured.warnings[f"the alert list of {login} as a whole cannot be read: {refusal.message}"] = None
        todo = [facts for name, facts in wanted.items() if name not in measured.coverage]
        await self._each(todo, query, measured, whole=via == "repositories", on_repository=on_repository)
        incomplete = any(item.status in ("partial", "error") for item in measured.coverage.values())
        return OwnerListing(
            owner=login,
            alerts=tuple(sorted(measured.alerts, key=lambda alert: alert.key)),
            coverage=tuple(measured.coverage[name] for name in sorted(measured.coverage)),
            via=via,
            complete=known.complete and measured.stop is None and not incomplete,
            problems=tuple(sorted(measured.problems, key=lambda p: (p.repository or "", p.number or 0, p.message))),
            warnings=tuple(dict.fromkeys((*known.warnings, *measured.warnings, *self._api.warnings))),
            requests=budget.requests + measured.requests,
            repositories=tuple(wanted[name] for name in sorted(wanted)),
        )

    async def _organization(
        self, login: str, query: AlertQuery, wanted: dict[str, RepositoryFacts], measured: _Measured
    ) -> DependfixError | None:
        """Read the organisation's list into `measured`; the error when it cannot be read at all.

        A list that breaks off is not used: which repositories it lacks nobody knows.
        """
        walk = Walk(repository="", query=query)
        asked = Asked(purpose="organization", repository=login)
        budget = self._api.http.budget()
        params = {"sort": "created", "direction": "asc", **query.parameters(organization=True)}
        left_out = False
        try:
            async for response in self._api.pages(
                path_of("orgs", login, "dependabot", "alerts"),
                purpose="organization",
                budget=budget,
                repository=login,
                params=params,
            ):
                walk.add(response, asked)
                left_out = left_out or self._api.left_out_organizations(response)
        except DependfixError as error:
            measured.requests += budget.requests
            if stops_everything(error):
                measured.stop = error
            return error
        measured.requests += budget.requests
        measured.problems += [p for p in walk.problems if p.repository is None or p.repository.lower() in wanted]
        if left_out:
            measured.warnings["single sign-on: GitHub left out a part of the list"] = None
        for alert in walk.found.values():
            name = alert.repository.lower()
            facts = wanted.get(name)
            if facts is None:
                continue
            measured.alerts.append(replace(alert, default_branch=facts.default_branch))
            status: CoverageStatus = "partial" if walk.lost or left_out else "ok"
            measured.coverage.setdefault(name, Coverage(repository=facts.full_name, status=status))
        return None

    async def _each(
        self,
        todo: Sequence[RepositoryFacts],
        query: AlertQuery,
        measured: _Measured,
        *,
        whole: bool,
        on_repository: OnRepository | None,
    ) -> None:
        """Read (`whole`) or probe every repository, some at a time; one that fails never ends the others."""
        limiter = anyio.CapacityLimiter(MAX_PARALLEL)
        done = 0

        async def measure(position: int, facts: RepositoryFacts) -> None:
            nonlocal done
            async with limiter:
                coverage = await self._one(position, facts, query, measured, whole=whole)
            measured.coverage[facts.full_name.lower()] = coverage
            done += 1
            if on_repository is not None:
                on_repository(done, len(todo))

        async with anyio.create_task_group() as group:
            for position, facts in enumerate(todo):
                group.start_soon(measure, position, facts)

    async def _one(
        self, position: int, facts: RepositoryFacts, query: AlertQuery, measured: _Measured, *, whole: bool
    ) -> Coverage:
        name = facts.full_name
        if measured.stop is not None:
            return Coverage(repository=name, status="error", error=measured.stop)
        if not whole and position >= MAX_PROBES:
            measured.warnings[
                f"more than {MAX_PROBES} repositories are not in the list: whether the others have no alerts or were"
                " not measured is not known"
            ] = None
            return Coverage(repository=name, status="partial")
        budget = self._api.http.budget()
        try:
            if not whole:
                await self._alerts.measure(name, budget=budget)
                return Coverage(repository=name, status="ok")
            listing = await self._alerts.listing(name, query, budget=budget, default_branch=facts.default_branch)
        except DependfixError as error:
            if stops_everything(error):
                measured.stop = error
            return Coverage(repository=name, status=coverage_status(error), error=error)
        finally:
            measured.requests += budget.requests
        measured.alerts += listing.alerts
        measured.problems += listing.problems
        if listing.error is not None and stops_everything(listing.error):
            measured.stop = listing.error
        return Coverage(repository=name, status="ok" if listing.complete else "partial", error=listing.error)
