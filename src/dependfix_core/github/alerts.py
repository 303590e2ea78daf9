"""Reads the alerts of one repository: all of them, or a page of them in a wanted order."""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs, urlsplit

from dependfix_core.collector import collector_paused
from dependfix_core.errors import ArgumentError, DependfixError
from dependfix_core.github.api import PAGE_SIZE, GitHubApi, Rate, path_of, read_json, read_model
from dependfix_core.github.decode import AlertProblem, Asked, not_an_answer, read_alert, read_alerts
from dependfix_core.github.normalise import alert_of, problems_of
from dependfix_core.github.query import AlertQuery
from dependfix_core.github.wire import RepositoryWire
from dependfix_core.http import CallBudget, HttpResponse
from dependfix_core.model.alert import Alert, AlertKey, Severity
from dependfix_core.model.repository import full_name_of

OnPage = Callable[[int, int], None]
"""(pages read, alerts so far): called after every page."""

MAX_FILTERED_PAGES: Final = 10
"""Server pages that one page of ours may take when local filters leave little."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertListing:
    """All alerts that a query finds in a repository, sorted by number.

    `complete` is false when a page or an item could not be read: then this is
    no measurement, and `error` or `problems` say why. A repository whose alerts
    cannot be read at all is an exception, never an empty listing.
    """

    repository: str
    """Its name now; another than was asked for after a rename."""
    alerts: tuple[Alert, ...] = field(repr=False)
    complete: bool = True
    problems: tuple[AlertProblem, ...] = ()
    error: DependfixError | None = None
    """What ended the walk after at least one page."""
    pages: int = 0
    requests: int = 0
    rate: Rate | None = None
    warnings: tuple[str, ...] = ()
    renamed_to: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertPage:
    """Alerts in the order of the query, and where they go on."""

    repository: str
    alerts: tuple[Alert, ...] = field(repr=False)
    cursors: tuple[str | None, ...] = field(repr=False)
    """For each alert what continues behind it; None when nothing follows. Lets a caller end the page early."""
    next_cursor: str | None = None
    total: int | None = None
    """Of the whole query; only when everything was read."""
    complete: bool = True
    problems: tuple[AlertProblem, ...] = ()
    error: DependfixError | None = None
    requests: int = 0
    rate: Rate | None = None
    warnings: tuple[str, ...] = ()
    renamed_to: str | None = None


@dataclass(kw_only=True, slots=True)
class Walk:
    """What a walk over pages has gathered so far."""

    repository: str
    query: AlertQuery
    default_branch: str = ""
    found: dict[AlertKey, Alert] = field(default_factory=dict)
    problems: dict[AlertProblem, None] = field(default_factory=dict)
    lost: bool = False
    was_redirected: bool = False
    pages: int = 0
    reached_since: bool = False
    """A page sorted newest first went past the query's `since`."""

    def add(self, response: HttpResponse, asked: Asked) -> list[Alert]:
        """Take in a page; those of its alerts that the query wants, in the server's order.

        Raises:
            NetworkError: It is no list.
        """
        with collector_paused():
            # In a function of its own, so that the payload is gone before anybody looks for garbage.
            wanted = self._take(response, asked)
        self.was_redirected = self.was_redirected or bool(response.redirects)
        self.pages += 1
        return wanted

    def _take(self, response: HttpResponse, asked: Asked) -> list[Alert]:
        page = read_alerts(response.content, response.headers.get("content-type", ""), asked)
        states = self.query.states
        assumed = states[0] if len(states) == 1 else ""
        wanted: list[Alert] = []
        for read in page.alerts:
            alert = alert_of(read, self.repository, default_branch=self.default_branch, assumed_state=assumed)
            for problem in problems_of(alert):
                self.problems[problem] = None
            if not alert.repository:
                self.fault(AlertProblem(number=alert.number, message="it does not say whose alert it is"))
            elif self.query.matches(alert):
                # The list shifts while it is walked; what comes twice is newer the second time.
                key = alert.key
                if key not in self.found:
                    wanted.append(alert)
                self.found[key] = alert
            elif alert.severity is Severity.UNKNOWN and replace(self.query, severity="all").matches(alert):
                self.problems[_unknown_severity(alert)] = None
            if self.query.since is not None and not self.query.is_recent(alert):
                self.reached_since = True
        for problem in page.lost:
            self.fault(problem)
        return wanted

    def fault(self, problem: AlertProblem) -> None:
        """Note something that makes the list incomplete."""
        self.problems[problem] = None
        self.lost = True


class AlertReader:
    """The alert end points of one repository."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    async def listing(
        self,
        repository: str,
        query: AlertQuery,
        *,
        budget: CallBudget,
        default_branch: str = "",
        on_page: OnPage | None = None,
    ) -> AlertListing:
        """All alerts that the query finds. Pages that were read before a failure are kept.

        Raises:
            DependfixError: Not even the first page could be read.
        """
        walk = Walk(repository=repository, query=query, default_branch=default_branch)
        warnings: list[str] = []
        error = await self._collect(walk, budget, warnings, on_page)
        if not walk.found and error is None and query.packages:
            # The server compares names letter by letter; `Django` and `django` are one package.
            error = await self._collect(walk, budget, [], on_page, without=("package",))
        renamed = await self._new_name(walk, budget)
        alerts = list(walk.found.values())
        if renamed is not None:
            alerts = [replace(alert, repository=renamed) for alert in alerts]
        return AlertListing(
            repository=renamed or repository,
            alerts=tuple(sorted(alerts, key=lambda alert: alert.number)),
            complete=error is None and not walk.lost,
            problems=_ordered(walk.problems),
            error=error,
            pages=walk.pages,
            requests=budget.requests,
            rate=self._api.rate,
            warnings=(*self._api.warnings, *warnings, *_renaming(repository, renamed)),
            renamed_to=renamed,
        )

    async def page(
        self,
        repository: str,
        query: AlertQuery,
        *,
        limit: int,
        cursor: str | None,
        budget: CallBudget,
        default_branch: str = "",
        on_page: OnPage | None = None,
    ) -> AlertPage:
        """Up to `limit` alerts in the query's order, from `cursor` on.

        The server cannot sort by severity: for that everything is read, and
        the cursor names the last alert that was handed out.

        Raises:
            ArgumentError: The cursor is none, or one of another query.
            DependfixError: Not even the first page could be read.
        """
        limit = max(1, min(limit, PAGE_SIZE))
        place = _Place.read(cursor, query, repository)
        reading = _Reading(budget=budget, default_branch=default_branch, on_page=on_page)
        if query.server_sort is not None and (place is None or place.position == 0):
            try:
                return await self._server_page(repository, query, limit, place, reading)
            except ArgumentError as error:
                # Some servers do not know every order or filter; reading everything works on all of them.
                if place is not None or not ("sort" in error.message.lower() or _is_about_ecosystem(error, query)):
                    raise
        return await self._sorted_page(repository, query, limit, place, reading)

    async def one(self, repository: str, number: int, *, budget: CallBudget) -> Alert:
        """The alert with this number.

        Raises:
            DependfixError: It cannot be read; `NotFoundError` when there is none.
        """
        target = path_of("repos", repository, "dependabot", "alerts", str(number))
        asked = Asked(purpose="alerts", repository=repository)
        response = await self._api.get(target, purpose="alerts", budget=budget, repository=repository)
        value = read_json(response, asked)
        read = read_alert({**value, "number": number}) if isinstance(value, dict) else None
        if read is None:
            raise not_an_answer(response.headers.get("content-type", ""), response.content, "alert", asked)
        return alert_of(read, repository)

    async def measure(self, repository: str, *, budget: CallBudget) -> None:
        """Find out with one small request whether the alerts of a repository can be read.

        Raises:
            DependfixError: They cannot.
        """
        target = path_of("repos", repository, "dependabot", "alerts")
        params = {"state": "open", "per_page": "1"}
        response = await self._api.get(target, purpose="alerts", budget=budget, repository=repository, params=params)
        read_alerts(
            response.content,
            response.headers.get("content-type", ""),
            Asked(purpose="alerts", repository=repository),
        )

    async def _collect(
        self,
        walk: Walk,
        budget: CallBudget,
        warnings: list[str],
        on_page: OnPage | None,
        *,
        without: tuple[str, ...] = (),
    ) -> DependfixError | None:
        """Walk all pages into `walk`; the error that ended it after the first page, if one did."""
        # Oldest first: what appears meanwhile lands at the end, where it is still read.
        params = {"sort": "created", "direction": "asc", **walk.query.parameters()}
        for name in without:
            params.pop(name, None)
        target = path_of("repos", walk.repository, "dependabot", "alerts")
        asked = Asked(purpose="alerts", repository=walk.repository)
        first = walk.pages
        try:
            async for response in self._api.pages(
                target, purpose="alerts", budget=budget, repository=walk.repository, params=params
            ):
                walk.add(response, asked)
                if on_page is not None:
                    on_page(walk.pages, len(walk.found))
        except ArgumentError as error:
            if walk.pages == first and "ecosystem" in params and _is_about_ecosystem(error, walk.query):
                warnings.append("GitHub does not filter by this ecosystem: all alerts were read and filtered here")
                return await self._collect(walk, budget, warnings, on_page, without=(*without, "ecosystem"))
            if walk.pages == first:
                raise
            return error
        except DependfixError as error:
            if walk.pages == first:
                raise
            return error
        return None

    async def _new_name(self, walk: Walk, budget: CallBudget) -> str | None:
        """The name of a repository that was redirected; None when it has the one that was asked for."""
        if not walk.was_redirected:
            return None
        target = path_of("repos", walk.repository)
        try:
            response = await self._api.get(target, purpose="repository", budget=budget, repository=walk.repository)
            facts = read_model(response, RepositoryWire, Asked(purpose="repository", repository=walk.repository))
        except DependfixError:
            return None
        name = full_name_of(facts.full_name)
        return name if name is not None and name.lower() != walk.repository.lower() else None

    async def _sorted_page(
        self, repository: str, query: AlertQuery, limit: int, place: "_Place | None", reading: "_Reading"
    ) -> AlertPage:
        listing = await self.listing(
            repository,
            query,
            budget=reading.budget,
            default_branch=reading.default_branch,
            on_page=reading.on_page,
        )
        ordered = query.sorted(listing.alerts)
        start = 0
        if place is not None:
            positions = {alert.number: position for position, alert in enumerate(ordered)}
            # An alert that is gone by now has left its place to the next one.
            start = positions[place.number] + 1 if place.number in positions else place.position
        chosen = ordered[start : start + limit]
        digest = query.digest(repository)
        cursors = [
            _Place(digest=digest, number=alert.number, position=position).text() if position < len(ordered) else None
            for position, alert in enumerate(chosen, start + 1)
        ]
        return AlertPage(
            repository=listing.repository,
            alerts=tuple(chosen),
            cursors=tuple(cursors),
            next_cursor=cursors[-1] if cursors else None,
            total=len(ordered) if listing.complete else None,
            complete=listing.complete,
            problems=listing.problems,
            error=listing.error,
            requests=listing.requests,
            rate=listing.rate,
            warnings=listing.warnings,
            renamed_to=listing.renamed_to,
        )

    async def _server_page(
        self, repository: str, query: AlertQuery, limit: int, place: "_Place | None", reading: "_Reading"
    ) -> AlertPage:
        """One page of the server's; more only while local filters leave nothing of them."""
        walk = Walk(repository=repository, query=query, default_branch=reading.default_branch)
        asked = Asked(purpose="alerts", repository=repository)
        target = path_of("repos", repository, "dependabot", "alerts")
        params = {
            "sort": query.server_sort or "created",
            "direction": "desc",
            "per_page": str(limit),
            **query.parameters(),
        }
        after = place.after if place is not None else ""
        last = place.number if place is not None else None
        wanted: list[Alert] = []
        following: str | None = after
        error: DependfixError | None = None
        for _ in range(MAX_FILTERED_PAGES):
            after = following or ""
            try:
                response = await self._api.get(
                    target,
                    purpose="alerts",
                    budget=reading.budget,
                    repository=repository,
                    params={**params, "after": after} if after else params,
                )
                wanted = walk.add(response, asked)
                following = _after(self._api.next_page(response))
            except DependfixError as failed:
                if walk.pages == 0:
                    raise
                error, following = failed, None
                break
            if reading.on_page is not None:
                reading.on_page(walk.pages, len(walk.found))
            numbers = [alert.number for alert in wanted]
            if last in numbers:
                wanted = wanted[numbers.index(last) + 1 :]
            last = None
            if query.since is not None and query.sort in ("created", "updated") and walk.reached_since:
                following = None
            if following == after:
                walk.fault(AlertProblem(message="GitHub's list leads back to a page that was read already"))
                following = None
            if wanted or following is None:
                break
        renamed = await self._new_name(walk, reading.budget)
        digest = query.digest(repository)
        cursors: list[str | None] = [_Place(digest=digest, after=after, number=alert.number).text() for alert in wanted]
        next_cursor = _Place(digest=digest, after=following).text() if following is not None else None
        if cursors:
            cursors[-1] = next_cursor
        complete = error is None and not walk.lost
        everything = place is None and following is None and complete
        return AlertPage(
            repository=renamed or repository,
            alerts=tuple(replace(alert, repository=renamed) if renamed else alert for alert in wanted),
            cursors=tuple(cursors),
            next_cursor=next_cursor,
            total=len(wanted) if everything else None,
            complete=complete,
            problems=_ordered(walk.problems),
            error=error,
            requests=reading.budget.requests,
            rate=self._api.rate,
            warnings=(*self._api.warnings, *_renaming(repository, renamed)),
            renamed_to=renamed,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """What goes along with every way to read a page."""

    budget: CallBudget
    default_branch: str
    on_page: OnPage | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where a page went on, as the text that callers hand back.

    Either a cursor of the server (`after`), where needed with the alert behind
    which that page goes on; or, in a list that was sorted here, an alert and
    the position behind it.
    """

    digest: str
    after: str = ""
    number: int | None = None
    position: int = 0

    def text(self) -> str:
        """The opaque form."""
        value = json.dumps([self.digest, self.after, self.number, self.position], separators=(",", ":"))
        return base64.urlsafe_b64encode(value.encode()).decode("ascii").rstrip("=")

    @classmethod
    def read(cls, text: str | None, query: AlertQuery, repository: str) -> "_Place | None":
        """The place that a cursor names; None without one.

        Raises:
            ArgumentError: It is no cursor, or one of another query.
        """
        if text is None or not text.strip():
            return None
        try:
            padded = text.strip() + "=" * (-len(text.strip()) % 4)
            value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (ValueError, RecursionError):
            value = None
        match value:
            case [str() as digest, str() as after, int() | None as number, int() as position] if (
                len(after) <= _MAX_CURSOR and position >= 0
            ):
                place = cls(digest=digest, after=after, number=number, position=position)
            case _:
                raise _no_cursor("cursor: not one that an earlier answer gave")
        if place.digest != query.digest(repository):
            raise _no_cursor("cursor: it belongs to another repository or to other filters")
        return place


_MAX_CURSOR: Final = 4000


def _no_cursor(message: str) -> ArgumentError:
    return ArgumentError(
        message,
        hint="Use nextCursor of the answer before, with the same other arguments; leave it out to start again.",
        details={"argument": "cursor"},
    )


def _after(link: str | None) -> str | None:
    """The server's cursor in a link, decoded once; it is encoded once again when it is sent."""
    if link is None:
        return None
    values = parse_qs(urlsplit(link).query).get("after", [])
    return values[0] if values else None


def _is_about_ecosystem(error: ArgumentError, query: AlertQuery) -> bool:
    said = error.message.lower()
    return "ecosystem" in said or any(f"'{name.lower()}'" in said for name in query.ecosystems)


def _unknown_severity(alert: Alert) -> AlertProblem:
    return AlertProblem(
        number=alert.number,
        repository=alert.repository,
        message="its severity is unknown, so no threshold applies; it is left out",
    )


def _ordered(problems: Iterable[AlertProblem]) -> tuple[AlertProblem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.number or 0, problem.message)))


def _renaming(asked: str, renamed: str | None) -> tuple[str, ...]:
    return () if renamed is None else (f"{asked} is now {renamed}",)
