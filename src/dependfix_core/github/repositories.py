"""Which repositories there are, and the facts about them."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from dependfix_core.errors import ArgumentError, DependfixError, NotFoundError, PermissionDeniedError
from dependfix_core.github.api import GitHubApi, path_of, read_json
from dependfix_core.github.decode import Asked, not_an_answer
from dependfix_core.github.wire import AccountWire, NamedWire, RepositoryWire
from dependfix_core.http import CallBudget, HttpResponse
from dependfix_core.model.repository import full_name_of
from dependfix_core.process.redact import clean_text


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryFacts:
    """What GitHub says about a repository; None where it does not say it."""

    full_name: str
    """Its name now, in its own spelling."""
    default_branch: str = ""
    html_url: str = ""
    private: bool | None = None
    archived: bool = False
    disabled: bool = False
    fork: bool = False
    topics: tuple[str, ...] = ()
    can_push: bool | None = None
    can_administer: bool | None = None
    pushed_at: str = ""
    renamed_from: str | None = None
    """The name that was asked for, when it is an old one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryListing:
    """The repositories of an owner that the token can see, sorted by name."""

    owner: str
    repositories: tuple[RepositoryFacts, ...]
    complete: bool = True
    error: DependfixError | None = None
    """What ended the walk after at least one page."""
    warnings: tuple[str, ...] = ()
    requests: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class NameFilter:
    """Globs on repository names, without regard to case; empty `include` means all."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    """At least one of these."""

    def keeps(self, facts: RepositoryFacts) -> bool:
        """Whether the repository is wanted."""
        return (
            (not self.include or matches_any(facts.full_name, self.include))
            and not matches_any(facts.full_name, self.exclude)
            and (not self.topics or bool({t.lower() for t in self.topics} & {t.lower() for t in facts.topics}))
        )


def matches_any(full_name: str, globs: Iterable[str]) -> bool:
    """Whether a glob fits `owner/name`, or, when it has no slash, the name alone."""
    whole = full_name.lower()
    name = whole.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(whole if "/" in glob else name, glob.strip().lower()) for glob in globs)


class RepositoryReader:
    """The end points of repositories and their owners."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    async def facts(self, repository: str, *, budget: CallBudget) -> RepositoryFacts:
        """The facts about a repository, under its name of today.

        Raises:
            DependfixError: They cannot be read.
        """
        wire = await self._api.get_model(
            path_of("repos", repository), RepositoryWire, purpose="repository", budget=budget, repository=repository
        )
        facts = facts_of(wire)
        if facts is None:
            raise NotFoundError(f"{repository}: GitHub's answer has no usable name")
        return facts if facts.full_name.lower() == repository.lower() else replace(facts, renamed_from=repository)

    async def of_owner(self, owner: str, *, budget: CallBudget) -> RepositoryListing:
        """All repositories of an organisation or a user.

        An organisation is asked for first. Where there is none of that name, it
        is a user: for the token's own account the private ones come along, an
        installation is asked for what it was given, and for everybody else the
        public ones are listed.

        Raises:
            DependfixError: Not even the first page could be read.
        """
        login = owner_of(owner)
        try:
            return await self._walk(login, path_of("orgs", login, "repos"), {"type": "all"}, budget)
        except NotFoundError:
            pass
        account = await self._account(budget)
        if account is not None and account.lower() == login.lower():
            mine = {"affiliation": "owner", "visibility": "all"}
            return await self._walk(login, "/user/repos", mine, budget)
        if account is None:
            try:
                return await self._walk(login, "/installation/repositories", {}, budget)
            except (NotFoundError, PermissionDeniedError):
                pass
        return await self._walk(login, path_of("users", login, "repos"), {"type": "owner"}, budget)

    async def has_dependabot_config(self, repository: str, *, budget: CallBudget) -> bool:
        """Whether `.github/dependabot.yml` (or `.yaml`) is on the default branch.

        Raises:
            DependfixError: The folder cannot be read; that it is missing is no error.
        """
        target = path_of("repos", repository, "contents", ".github")
        asked = Asked(purpose="contents", repository=repository)
        try:
            response = await self._api.get(target, purpose="contents", budget=budget, repository=repository)
        except NotFoundError:
            return False
        value = read_json(response, asked)
        names = {_name(item) for item in value} if isinstance(value, list) else set()
        return bool(names & {"dependabot.yml", "dependabot.yaml"})

    async def _account(self, budget: CallBudget) -> str | None:
        """The login of the token's user; None for a token without a user."""
        try:
            wire = await self._api.get_model("/user", AccountWire, purpose="account", budget=budget)
        except (PermissionDeniedError, NotFoundError):
            return None
        return wire.login

    async def _walk(self, owner: str, target: str, params: dict[str, str], budget: CallBudget) -> RepositoryListing:
        found: dict[str, RepositoryFacts] = {}
        lost = 0
        error: DependfixError | None = None
        left_out = False
        pages = 0
        try:
            async for response in self._api.pages(
                target, purpose="repository", budget=budget, repository=owner, params=params
            ):
                for item in _items(response, owner):
                    facts = _facts_of_item(item)
                    if facts is None:
                        lost += 1
                    elif facts.full_name.lower().startswith(f"{owner.lower()}/"):
                        found[facts.full_name.lower()] = facts
                left_out = left_out or self._api.left_out_organizations(response)
                pages += 1
        except DependfixError as failed:
            if not pages:
                raise
            error = failed
        warnings = list(self._api.warnings)
        if left_out:
            warnings.append("single sign-on: GitHub left out organisations that the token is not authorised for")
        if lost:
            warnings.append(f"{lost} entries of the list of {owner} could not be read")
        return RepositoryListing(
            owner=owner,
            repositories=tuple(found[name] for name in sorted(found)),
            complete=error is None and not lost and not left_out,
            error=error,
            warnings=tuple(warnings),
            requests=budget.requests,
        )


def owner_of(text: str) -> str:
    """The login of an organisation or user.

    Raises:
        ArgumentError: It cannot be one.
    """
    login = text.strip().strip("/")
    if full_name_of(f"{login}/x") is None:
        raise ArgumentError(
            "owner: not the name of an organisation or user",
            hint="For example owner=['octo-org'].",
            details={"argument": "owner"},
        )
    return login


def facts_of(wire: RepositoryWire) -> RepositoryFacts | None:
    """The facts of a payload; None when its name is none."""
    name = full_name_of(wire.full_name)
    if name is None:
        return None
    permissions = wire.permissions
    return RepositoryFacts(
        full_name=name,
        default_branch=_line(wire.default_branch),
        html_url=_line(wire.html_url),
        private=wire.private,
        archived=bool(wire.archived),
        disabled=bool(wire.disabled),
        fork=bool(wire.fork),
        topics=tuple(_line(topic) for topic in wire.topics or () if topic),
        can_push=permissions.push if permissions is not None else None,
        can_administer=permissions.admin if permissions is not None else None,
        pushed_at=_line(wire.pushed_at),
    )


def _items(response: HttpResponse, owner: str) -> Sequence[Any]:
    asked = Asked(purpose="repository", repository=owner)
    value = read_json(response, asked)
    if isinstance(value, dict) and isinstance(value.get("repositories"), list):
        value = value["repositories"]
    if not isinstance(value, list):
        raise not_an_answer(response.headers.get("content-type", ""), response.content, "list of repositories", asked)
    return value


def _facts_of_item(item: Any) -> RepositoryFacts | None:
    try:
        return facts_of(RepositoryWire.model_validate(item))
    except ValidationError:
        return None


def _name(item: Any) -> str:
    try:
        return NamedWire.model_validate(item).name or ""
    except ValidationError:
        return ""


def _line(text: str | None) -> str:
    return clean_text(text, max_chars=300, one_line=True) if text else ""
