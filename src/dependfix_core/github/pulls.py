"""Lists pull requests."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from dependfix_core.github.api import GitHubApi, path_of, read_json
from dependfix_core.github.decode import Asked, not_an_answer
from dependfix_core.github.wire import BranchWire, PullRequestWire
from dependfix_core.http import CallBudget
from dependfix_core.process.redact import clean_text

PullState: TypeAlias = Literal["open", "closed", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PullRequest:
    """A pull request as a list shows it. Texts are cleaned."""

    number: int
    state: str
    """`open` or `closed`; a merged one is closed and has `merged_at`."""
    title: str
    body: str
    html_url: str
    author: str
    is_draft: bool
    head_branch: str
    head_sha: str
    head_repository: str
    """Empty when the fork is gone."""
    base_branch: str
    base_sha: str
    merged_at: str | None
    closed_at: str | None
    labels: tuple[str, ...]

    @property
    def is_merged(self) -> bool:
        """Whether it went in."""
        return self.merged_at is not None


class PullReader:
    """The list of pull requests of a repository."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    async def listing(
        self,
        repository: str,
        *,
        budget: CallBudget,
        state: PullState = "open",
        head: str | None = None,
        base: str | None = None,
    ) -> tuple[PullRequest, ...]:
        """Every pull request, to the last page, newest first.

        Args:
            repository: `owner/name`.
            budget: What may be spent.
            state: Which ones.
            head: Only those from this branch: `OWNER:BRANCH`.
            base: Only those into this branch.

        Raises:
            DependfixError: They cannot all be read: a list that is cut would hide duplicates.
        """
        params = {"state": state, **({"head": head} if head else {}), **({"base": base} if base else {})}
        asked = Asked(purpose="pulls", repository=repository)
        found: dict[int, PullRequest] = {}
        async for response in self._api.pages(
            path_of("repos", repository, "pulls"), purpose="pulls", budget=budget, repository=repository, params=params
        ):
            value = read_json(response, asked)
            if not isinstance(value, list):
                content_type = response.headers.get("content-type", "")
                raise not_an_answer(content_type, response.content, "list of pull requests", asked)
            for item in value:
                pull = _pull_of(item)
                if pull is None:
                    content_type = response.headers.get("content-type", "")
                    raise not_an_answer(content_type, response.content, "list of pull requests", asked)
                found[pull.number] = pull
        return tuple(found[number] for number in sorted(found, reverse=True))


def _pull_of(item: Any) -> PullRequest | None:
    try:
        wire = PullRequestWire.model_validate(item)
    except ValidationError:
        return None
    head, base = wire.head or BranchWire(), wire.base or BranchWire()
    return PullRequest(
        number=wire.number,
        state=_line(wire.state),
        title=_line(wire.title),
        body=clean_text(wire.body or "", max_chars=70_000),
        html_url=_line(wire.html_url),
        author=_line(wire.user.login if wire.user is not None else None),
        is_draft=bool(wire.draft),
        head_branch=_line(head.ref),
        head_sha=_line(head.sha),
        head_repository=_line(head.repo.full_name if head.repo is not None else None),
        base_branch=_line(base.ref),
        base_sha=_line(base.sha),
        merged_at=wire.merged_at,
        closed_at=wire.closed_at,
        labels=tuple(_line(label.name) for label in wire.labels or () if label is not None and label.name),
    )


def _line(text: str | None) -> str:
    return clean_text(text, max_chars=300, one_line=True) if text else ""
