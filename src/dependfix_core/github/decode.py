"""What an answer of GitHub means: its failures as typed errors, its alert pages item by item.

Nothing here waits or sends; headers and bodies go in, values come out.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from dependfix_core.connection import AUTHENTICATION_HINT
from dependfix_core.errors import (
    AlertsDisabledError,
    AlreadyExistsError,
    ArchivedError,
    ArgumentError,
    AuthenticationError,
    ConflictError,
    DependfixError,
    ErrorCode,
    GitHubError,
    NetworkError,
    NotFoundError,
    NothingToDoError,
    PermissionDeniedError,
    PolicyBlockedError,
    RateLimitedError,
)
from dependfix_core.github.token import TokenKind
from dependfix_core.github.wire import ALERT, ALERTS, AlertWire
from dependfix_core.http.message import http_date, retry_after_s
from dependfix_core.process.redact import clean_text, redact

FailureKind: TypeAlias = Literal[
    "no_token",
    "bad_token",
    "sso_required",
    "missing_permission",
    "missing_scope",
    "user_not_allowed",
    "forbidden",
    "org_policy",
    "blocked",
    "alerts_disabled",
    "archived",
    "not_found",
    "rate_limited",
    "rate_limited_secondary",
    "server_error",
    "client_bug",
    "invalid_parameter",
    "conflict",
    "already_exists",
    "nothing_to_do",
    "redirect",
    "not_github",
]

Purpose: TypeAlias = Literal["alerts", "repository", "contents", "pulls", "organization", "account"]
"""What a request reads; it decides which permission a hint names."""

LIMITS: Final = frozenset({"rate_limited", "rate_limited_secondary"})

_POLICIES: Final = (
    "forbids access via",
    "lifetime is greater than",
    "ip allow list",
    "oauth app access restrictions",
    "is not permitted to create or approve pull requests",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A refusal, classified. Texts are GitHub's, cleaned and cut."""

    kind: FailureKind
    status: int
    message: str = ""
    request_id: str = ""
    documentation_url: str = ""
    needed: str = ""
    """Permissions or scopes that the end point accepts, not what the token has."""
    scopes: str | None = None
    """What a classic token has; None for other kinds."""
    url: str = ""
    """Where the remedy or the notice is."""
    wait_s: float | None = None
    """Seconds to wait before it can succeed; None when that is not known."""
    resets_at: float | None = None
    """The same moment in seconds since the epoch, for a primary limit."""
    retryable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the failed request was about; decides the words of the error."""

    purpose: Purpose = "repository"
    repository: str = ""
    token_kind: TokenKind = TokenKind.UNKNOWN
    secrets: tuple[str, ...] = ()
    """Never to appear in a text."""

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Asked(purpose={self.purpose!r}, repository={self.repository!r})"


def classify(status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> Failure | None:
    """What kind of refusal an answer is; None for a success.

    `now` is the local time; the answer's own `Date` is preferred for counting
    the seconds to a reset. The order of the tests matters: an exhausted token
    answers every path with the limit.
    """
    if status < 300 or status == 304:
        return None
    payload = _object(body)
    message = _message(payload, body)
    facts = _Facts(status=status, headers=headers, payload=payload, message=message, now=now)
    if status >= 500:
        return facts.failure("server_error", wait_s=retry_after_s(headers, now), retryable=True)
    if status in (401, 403, 404, 407, 429):
        return _refused(facts)
    return _other(facts)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    status: int
    headers: Mapping[str, str]
    payload: Mapping[str, Any]
    message: str
    now: float

    @property
    def said(self) -> str:
        return self.message.lower()

    def failure(
        self,
        kind: FailureKind,
        *,
        url: str = "",
        wait_s: float | None = None,
        resets_at: float | None = None,
        retryable: bool = False,
    ) -> Failure:
        headers = self.headers
        needed = headers.get("x-accepted-github-permissions") or headers.get("x-accepted-oauth-scopes", "")
        scopes = headers.get("x-oauth-scopes")
        return Failure(
            kind=kind,
            status=self.status,
            message=self.message,
            request_id=_plain(headers.get("x-github-request-id"), 80),
            documentation_url=_web_address(self.payload.get("documentation_url")),
            needed=_plain(needed, 200),
            scopes=None if scopes is None else _plain(scopes, 200),
            url=url,
            wait_s=wait_s,
            resets_at=resets_at,
            retryable=retryable,
        )


def _refused(facts: _Facts) -> Failure:
    status, headers, said = facts.status, facts.headers, facts.said
    if not headers.get("x-github-request-id"):
        return facts.failure("not_github")
    if status == 401:
        return facts.failure("no_token" if "requires authentication" in said else "bad_token")
    sso = re.match(r"\s*required;\s*url=(\S+)", headers.get("x-github-sso", ""))
    if sso:
        return facts.failure("sso_required", url=_web_address(sso.group(1)))
    if "retry-after" in headers or "secondary rate limit" in said or "abuse detection" in said:
        return facts.failure("rate_limited_secondary", wait_s=retry_after_s(headers, facts.now), retryable=True)
    if headers.get("x-ratelimit-remaining") == "0" and (status == 429 or "rate limit exceeded" in said):
        return _primary(facts)
    if status == 429 or "rate limit exceeded" in said:
        return facts.failure("rate_limited_secondary", retryable=True)
    if "block" in facts.payload:
        return _blocked(facts)
    if "alerts are disabled" in said:
        return facts.failure("alerts_disabled")
    if "archived repositories" in said or "was archived" in said:
        return facts.failure("archived")
    if status == 404:
        return facts.failure("not_found")
    if "was suspended" in said:
        return facts.failure("bad_token")
    if "resource not accessible by" in said:
        return facts.failure("missing_permission")
    if "user-agent" in said:
        return facts.failure("client_bug")
    if any(policy in said for policy in _POLICIES):
        return facts.failure("org_policy")
    if "not authorized" in said:
        return facts.failure("missing_scope" if _lacks_scope(headers) else "user_not_allowed")
    return facts.failure("forbidden")


def _primary(facts: _Facts) -> Failure:
    reset = facts.headers.get("x-ratelimit-reset", "")
    if not re.fullmatch(r"\d{1,11}", reset):
        return facts.failure("rate_limited", retryable=True)
    server_now = http_date(facts.headers.get("date")) or facts.now
    # A second more, since the reset is a whole second of another clock.
    wait = max(0.0, float(reset) - server_now) + 1.0
    return facts.failure("rate_limited", wait_s=wait, resets_at=float(reset), retryable=True)


def _lacks_scope(headers: Mapping[str, str]) -> bool:
    accepted = _list(headers.get("x-accepted-oauth-scopes", ""))
    return "x-oauth-scopes" in headers and bool(accepted) and not accepted & _list(headers["x-oauth-scopes"])


def _blocked(facts: _Facts) -> Failure:
    block = facts.payload.get("block")
    notice = block.get("html_url") if isinstance(block, dict) else None
    return facts.failure("blocked", url=_web_address(notice))


def _other(facts: _Facts) -> Failure:
    said = facts.said
    match facts.status:
        case 301 | 302 | 303 | 307 | 308:
            return facts.failure("redirect")
        case 409:
            return facts.failure("conflict", retryable="is empty" not in said)
        case 410:
            return facts.failure("client_bug" if "api version" in said else "not_found")
        case 451:
            return _blocked(facts)
        case 422:
            return _unprocessable(facts)
        case _:
            return facts.failure("client_bug")


def _unprocessable(facts: _Facts) -> Failure:
    said = facts.said
    if "already exists" in said:
        return facts.failure("already_exists")
    if "not a fast forward" in said:
        return facts.failure("conflict", retryable=True)
    if "rule violations" in said or "protected branch" in said:
        return facts.failure("org_policy")
    if "no commits between" in said:
        return facts.failure("nothing_to_do")
    if "is too long" in said:
        return facts.failure("client_bug")
    return facts.failure("invalid_parameter")


_GRAPHQL_KINDS: Final[Mapping[str, FailureKind]] = {
    "STALE_DATA": "conflict",
    "FORBIDDEN": "missing_permission",
    "INSUFFICIENT_SCOPES": "missing_scope",
    "NOT_FOUND": "not_found",
    "RATE_LIMITED": "rate_limited",
    "UNPROCESSABLE": "invalid_parameter",
    "SERVICE_UNAVAILABLE": "server_error",
}


def classify_graphql(headers: Mapping[str, str], body: bytes, *, now: float) -> Failure | None:
    """The failure inside a GraphQL answer, which has status 200 all the same; None without one."""
    payload = _object(body)
    errors = payload.get("errors")
    if not isinstance(errors, list) or not errors:
        return None
    first = errors[0] if isinstance(errors[0], dict) else {}
    kind = _GRAPHQL_KINDS.get(str(first.get("type", "")), "client_bug")
    message = _plain(first.get("message"), 300)
    facts = _Facts(status=200, headers=headers, payload=payload, message=message, now=now)
    if kind == "rate_limited":
        return _primary(facts)
    return facts.failure(kind, retryable=kind in ("conflict", "server_error"))


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body) if body[:1].strip() in (b"{", b"") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _message(payload: Mapping[str, Any], body: bytes) -> str:
    text = str(payload.get("message") or "")
    if not payload:
        text = re.sub(r"<[^>]*>", " ", body[:2000].decode("utf-8", errors="replace"))
    errors = payload.get("errors")
    more = errors if isinstance(errors, list) else []
    for item in more[:3]:
        said = item.get("message") if isinstance(item, dict) else item
        if isinstance(said, str) and said and said not in text:
            text = f"{text}: {said}"
    return _plain(text, 400)


def _plain(value: object, max_chars: int) -> str:
    text = clean_text(str(value), max_chars=4 * max_chars, one_line=True) if value else ""
    return clean_text(" ".join(text.split()), max_chars=max_chars)


def _web_address(value: object) -> str:
    text = value if isinstance(value, str) else ""
    fine = re.fullmatch(r"https?://[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]{1,500}", text)
    return text if fine and "@" not in text.split("/", 3)[2] else ""


def _list(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


# --- from a failure to an error ---------------------------------------------


_ERRORS: Final[Mapping[FailureKind, tuple[type[DependfixError], ErrorCode]]] = {
    "no_token": (AuthenticationError, "auth_missing"),
    "bad_token": (AuthenticationError, "auth_denied"),
    "sso_required": (PermissionDeniedError, "permission_denied"),
    "missing_permission": (PermissionDeniedError, "permission_denied"),
    "missing_scope": (PermissionDeniedError, "permission_denied"),
    "user_not_allowed": (PermissionDeniedError, "permission_denied"),
    "forbidden": (PermissionDeniedError, "permission_denied"),
    "org_policy": (PolicyBlockedError, "policy_blocked"),
    "blocked": (PolicyBlockedError, "policy_blocked"),
    "alerts_disabled": (AlertsDisabledError, "alerts_disabled"),
    "archived": (ArchivedError, "archived"),
    "not_found": (NotFoundError, "not_found"),
    "rate_limited": (RateLimitedError, "rate_limited"),
    "rate_limited_secondary": (RateLimitedError, "rate_limited"),
    "server_error": (GitHubError, "github_error"),
    "client_bug": (GitHubError, "github_error"),
    "redirect": (GitHubError, "github_error"),
    "invalid_parameter": (ArgumentError, "invalid_arguments"),
    "conflict": (ConflictError, "conflict"),
    "already_exists": (AlreadyExistsError, "already_exists"),
    "nothing_to_do": (NothingToDoError, "nothing_to_do"),
    "not_github": (NetworkError, "network"),
}


def error_of(failure: Failure, asked: Asked) -> DependfixError:
    """The typed error, with a hint that a person can act on; no text holds a secret."""
    kind, code = _ERRORS[failure.kind]
    wait = math.ceil(failure.wait_s) if failure.wait_s is not None else None
    details: dict[str, Any] = {
        "status": failure.status,
        "message": failure.message,
        "requestId": failure.request_id,
        "needed": failure.needed,
        "documentationUrl": failure.documentation_url,
        "repository": asked.repository,
    }
    if failure.kind == "sso_required":
        details["ssoUrl"] = failure.url
    if failure.kind == "not_github":
        details["kind"] = "not-github"
    if failure.resets_at is not None:
        details["resetsAt"] = datetime.fromtimestamp(failure.resets_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if failure.kind == "missing_scope" and failure.scopes is not None:
        details["scopes"] = failure.scopes
    return kind(
        redact(_words(failure, asked), *asked.secrets),
        code=code,
        hint=redact(_hint(failure, asked), *asked.secrets),
        retryable=failure.retryable,
        retry_after_s=wait if failure.retryable else None,
        details={
            name: redact(value, *asked.secrets) if isinstance(value, str) else value
            for name, value in details.items()
            if value not in ("", None)
        },
    )


def _words(failure: Failure, asked: Asked) -> str:
    what = asked.repository or "GitHub"
    said = failure.message or f"status {failure.status}"
    match failure.kind:
        case "no_token":
            return "GITHUB_TOKEN not set"
        case "bad_token":
            return f"GitHub does not accept the token: {said}"
        case "alerts_disabled":
            return f"Dependabot alerts are disabled for {what}: nothing was measured"
        case "archived":
            return f"{what} is archived: nothing was measured, and nothing can be written"
        case "rate_limited" | "rate_limited_secondary":
            limit = "hourly" if failure.kind == "rate_limited" else "secondary"
            return f"GitHub's {limit} rate limit is reached"
        case "not_github":
            return f"the answer (status {failure.status}) does not come from GitHub: {said}"
        case "not_found":
            return f"{what}: {said}"
        case _:
            return f"GitHub refuses ({failure.status}) for {what}: {said}"


_PERMISSIONS: Final[Mapping[str, str]] = {
    "vulnerability_alerts": "Dependabot alerts",
    "contents": "Contents",
    "pull_requests": "Pull requests",
    "workflows": "Workflows",
    "administration": "Administration",
    "metadata": "Metadata",
    "issues": "Issues",
}
_PURPOSE_PERMISSION: Final[Mapping[Purpose, str]] = {
    "alerts": "'Dependabot alerts: read'",
    "contents": "'Contents: read'",
    "pulls": "'Pull requests: read'",
    "repository": "'Metadata: read'",
    "organization": "'Dependabot alerts: read' as an owner or security manager of the organisation",
    "account": "'Metadata: read'",
}


def _permission(failure: Failure, asked: Asked) -> str:
    """The permission in the words of GitHub's settings page."""
    ways: list[str] = []
    for way in failure.needed.split(";"):
        parts = [part.strip().partition("=") for part in way.split(",") if "=" in part]
        named = [f"'{_PERMISSIONS.get(name, name)}: {level}'" for name, _, level in parts]
        if named:
            ways.append(" and ".join(named))
    return " or ".join(ways) or _PURPOSE_PERMISSION[asked.purpose]


def _hint(failure: Failure, asked: Asked) -> str:
    match failure.kind:
        case "no_token":
            return AUTHENTICATION_HINT
        case "bad_token" if failure.status == 403:
            return "The account is suspended; its owner has to ask GitHub Support."
        case "bad_token":
            return (
                "It is wrong, expired or revoked, or has quotes or blanks around it. Create a new one; do not repeat"
                " the call before, since repeated refusals block the address for a while."
            )
        case "sso_required":
            way = f"Open {failure.url} (valid for an hour), or " if failure.url else ""
            return f"{way}authorise the token under Settings, Developer settings, Tokens, 'Configure SSO'."
        case "missing_permission":
            return _permission_hint(failure, asked)
        case "missing_scope":
            return (
                f"The classic token has the scopes '{failure.scopes}', and one of '{failure.needed}' is needed:"
                " security_events is enough for alerts, repo for private files."
            )
        case "user_not_allowed":
            return (
                "The token is fine, but its user may not see this. Ask for write, maintain or admin access, for the"
                " security manager role, or to be listed under Settings, Code security, 'Access to alerts'."
            )
        case "forbidden":
            return f"The end point accepts {_permission(failure, asked)}; GitHub's message says more."
        case "org_policy":
            return _policy_hint(failure)
        case "blocked":
            return f"GitHub has blocked access; the notice is at {failure.url}." if failure.url else "GitHub blocks it."
        case "alerts_disabled":
            return "Switch them on under Settings, Code security, 'Dependabot alerts'."
        case "archived":
            return "Unarchive it, or leave it out."
        case "not_found":
            return _not_found_hint(failure, asked)
        case "rate_limited" | "rate_limited_secondary":
            return _limit_hint(failure)
        case "server_error":
            return "GitHub has a problem; try again in a moment, and see githubstatus.com."
        case "client_bug" | "redirect":
            return "This is a fault of this program or of a setting such as the API version; please report it."
        case "invalid_parameter":
            return "Check the values of the filters; GitHub's message names the wrong one."
        case "conflict":
            return "Read it again and repeat." if failure.retryable else "The repository has no commits yet."
        case "already_exists":
            return "Use what is there, or choose another name."
        case "nothing_to_do":
            return "Nothing has changed."
        case "not_github":
            return (
                "A proxy, a sandbox or a login page in between answered. Check the network, the proxy variables and"
                " the API address; the token's permissions have nothing to do with it."
            )


def _permission_hint(failure: Failure, asked: Asked) -> str:
    permission = _permission(failure, asked)
    if "by integration" in failure.message.lower() or asked.token_kind is TokenKind.INSTALLATION:
        return (
            f"A GitHub App needs {permission}, and the owner has to accept the change. In Actions the job needs it"
            " under permissions: (for alerts vulnerability-alerts: read; security-events: read is not enough)."
        )
    return (
        f"Give the fine-grained token {permission}, with this repository among those it is for and its owner as the"
        " resource owner; some organisations must approve the token first."
    )


def _policy_hint(failure: Failure) -> str:
    said = failure.message.lower()
    if "(classic)" in said:
        return "Use a fine-grained token or a GitHub App."
    if "lifetime" in said:
        return "Create a token with a shorter lifetime."
    if "ip allow list" in said:
        return "Run it from an address that the organisation allows."
    if "oauth app" in said:
        return "Ask an owner to approve the app, or use another kind of token."
    if "not permitted to create" in said:
        return "Allow it under Settings, Actions, 'Allow GitHub Actions to create and approve pull requests'."
    return "A rule of the repository or organisation forbids it; the message names it."


def _not_found_hint(failure: Failure, asked: Asked) -> str:
    if "alert number" in failure.message.lower():
        return "List the alerts again; those of withdrawn advisories can disappear."
    if asked.purpose == "contents":
        return "Check path and branch, and that the token may read the contents ('Contents: read')."
    see = {
        TokenKind.CLASSIC: "a classic token needs the scope repo for private repositories",
        TokenKind.FINE_GRAINED: "a fine-grained token must have this repository selected, with its owner as the"
        " resource owner",
        TokenKind.INSTALLATION: "a GitHub App must be installed for it, and GITHUB_TOKEN of Actions sees its own"
        " repository only",
    }.get(asked.token_kind, "the token must have been given access to it")
    return f"Check the spelling. GitHub answers the same when the token may not see the repository: {see}."


def _limit_hint(failure: Failure) -> str:
    if failure.resets_at is not None:
        moment = datetime.fromtimestamp(failure.resets_at, UTC).strftime("%H:%M:%S UTC")
        return f"It is reset at {moment}. A GitHub App has a limit of its own."
    if failure.wait_s is not None:
        return f"Wait {math.ceil(failure.wait_s)} s, then ask for less at a time."
    return "Wait at least a minute, then ask for less at a time."


def not_an_answer(content_type: str, body: bytes, wanted: str, asked: Asked) -> NetworkError:
    """The error for a success that is not what GitHub sends there: a portal, a login page."""
    what = f"no {wanted} but {_plain(content_type, 60) or 'of no type'}"
    if "json" in content_type.lower():
        what = f"no {wanted}, or no JSON at all"
    start = _plain(body[:400].decode("utf-8", errors="replace"), 200)
    return NetworkError(
        f"the answer is {what}",
        hint="A proxy or a login page in between may have answered. Check the API address and the proxy variables.",
        retryable=False,
        details={"kind": "not-github", "start": redact(start, *asked.secrets), "repository": asked.repository},
    )


# --- alert pages --------------------------------------------------------------


class ReadAlert(NamedTuple):
    """One item of a page as far as it could be read."""

    wire: AlertWire
    unreadable: tuple[str, ...] = ()
    """Paths of the fields that had a shape nobody knows, sorted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertProblem:
    """Something of a list that could not be read."""

    message: str
    number: int | None = None
    repository: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPage:
    """A page of alerts."""

    alerts: tuple[ReadAlert, ...]
    lost: tuple[AlertProblem, ...] = ()
    """Items without a readable number: nothing of them can be kept."""


def read_alerts(body: bytes, content_type: str, asked: Asked) -> ReadPage:
    """The alerts of a page. One strange item costs nothing but its strange fields.

    Raises:
        NetworkError: It is no JSON array.
    """
    try:
        return ReadPage(alerts=tuple(ReadAlert(wire=wire) for wire in ALERTS.validate_json(body)))
    except ValidationError:
        pass
    try:
        items = json.loads(body)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise not_an_answer(content_type, body, "list of alerts", asked)
    alerts: list[ReadAlert] = []
    lost: list[AlertProblem] = []
    for position, item in enumerate(items):
        read = read_alert(item)
        if read is not None:
            alerts.append(read)
        else:
            lost.append(AlertProblem(message=f"item {position + 1} of a page is no alert: it has no readable number"))
    return ReadPage(alerts=tuple(alerts), lost=tuple(lost))


_MAX_REPAIRS: Final = 20


def read_alert(item: object) -> ReadAlert | None:
    """One alert as far as it can be read; None when not even its number can."""
    unreadable: set[str] = set()
    for _ in range(_MAX_REPAIRS):
        try:
            wire = ALERT.validate_python(item)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_context=False, include_input=False):
                place = _blank(item, fault["loc"])
                if place is None or place == "number":
                    return None
                unreadable.add(place)
        else:
            return ReadAlert(wire=wire, unreadable=tuple(sorted(unreadable)))
    return None


def _blank(item: object, location: tuple[int | str, ...]) -> str | None:
    """Set what a fault points at to null, or the nearest thing around it; its dotted path, None without one."""
    node: Any = item
    parent: Any = None
    last: int | str = ""
    path: list[str] = []
    for key in location:
        is_inside = (isinstance(node, dict) and key in node) or (
            isinstance(node, list) and isinstance(key, int) and key < len(node)
        )
        if not is_inside:
            break
        parent, last, node = node, key, node[key]
        if isinstance(key, str):
            path.append(key)
    if parent is None:
        return None
    parent[last] = None
    return ".".join(path)
