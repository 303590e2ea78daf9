"""A GitHub on 127.0.0.1 with repositories from memory, for the demonstration and for tests.

It serves the reading end points in the shapes and with the manners of the real
service: cursors in `Link`, validators, rate-limit headers, redirects after a
rename, refusals. What it should answer differently can be scripted.
"""

import base64
import gzip
import hashlib
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

DOCUMENTED_ECOSYSTEMS: Final = frozenset({"composer", "go", "maven", "npm", "nuget", "pip", "pub", "rubygems", "rust"})
"""What the filter takes; alerts of other ecosystems exist all the same."""
_SEVERITIES: Final = ("low", "medium", "high", "critical")
_ALERTS_DOCUMENTATION: Final = "https://docs.github.com/rest/dependabot/alerts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    """Without the base path and the query."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An answer. A body that is no bytes is sent as JSON."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Responder = Callable[[Received], Reply | None]
"""None lets the next one answer."""


@dataclass(kw_only=True)
class HostedRepository:
    """A repository as the loopback service holds it; change it between requests at will."""

    full_name: str
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """In the shape of the REST API."""
    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    """Of files that are no plain ones; a submodule (`160000`) has its commit id as content."""
    default_branch: str = "main"
    archived: bool = False
    private: bool = True
    fork: bool = False
    topics: tuple[str, ...] = ()
    alerts_enabled: bool = True
    pulls: list[dict[str, Any]] = field(default_factory=list)
    cut_trees: bool = False
    """Whether recursive trees come back cut."""
    old_names: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The id that redirects and links use."""
        return int(hashlib.sha256(self.full_name.encode()).hexdigest()[:7], 16)

    def commit(self) -> str:
        """The id of the head, which changes with the files."""
        return _sha("commit", self.tree_sha(""))

    def tree_sha(self, folder: str) -> str:
        """The id of a folder (empty for the top, otherwise ending with a slash)."""
        inside = sorted((path, hashlib.sha256(data).hexdigest()) for path, data in self.files.items())
        return _sha("tree", json.dumps([folder, [entry for entry in inside if entry[0].startswith(folder)]]))

    def folders(self) -> dict[str, str]:
        """Tree id → folder, for the top and every folder below."""
        names = {""}
        for path in self.files:
            parts = path.split("/")[:-1]
            names |= {"/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1)}
        return {self.tree_sha(name): name for name in names}

    def facts(self) -> dict[str, Any]:
        """The payload of `GET /repos/…`."""
        owner, _, name = self.full_name.partition("/")
        return {
            "id": self.number,
            "name": name,
            "full_name": self.full_name,
            "owner": {"login": owner},
            "html_url": f"https://github.com/{self.full_name}",
            "private": self.private,
            "fork": self.fork,
            "archived": self.archived,
            "disabled": False,
            "default_branch": self.default_branch,
            "topics": list(self.topics),
            "permissions": {"admin": False, "push": True, "pull": True},
            "pushed_at": "2026-11-01T00:00:00Z",
        }


class LoopbackGitHub:
    """Serves until it is left; `received` has every request in order."""

    def __init__(
        self,
        repositories: Iterable[HostedRepository] = (),
        *,
        token: str | None = None,
        organizations: Sequence[str] = (),
        account: str | None = None,
        base_path: str = "",
        tls: ssl.SSLContext | None = None,
        public_url: str | None = None,
    ) -> None:
        """Prepare, without listening yet.

        Args:
            repositories: What is hosted.
            token: The one that is accepted; None accepts any, but asks for one.
            organizations: Owners that are organisations; the others are users.
            account: The login of the token's user; None for a token without one.
            base_path: Like `/api/v3`.
            tls: Serve https with this.
            public_url: The base that links show, where a proxy stands in front.
        """
        self.repositories = {repository.full_name.lower(): repository for repository in repositories}
        self.organizations = {name.lower() for name in organizations}
        self.received: list[Received] = []
        self.responders: list[Responder] = []
        self._token = token
        self._account = account
        self._base_path = base_path
        self._tls = tls
        self._public_url = public_url
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base of the API."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{self._base_path}"

    @property
    def link_base(self) -> str:
        """The base that links and redirects show."""
        return self._public_url or self.url

    def __enter__(self) -> Self:
        """Start to serve."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Listen on a free port of 127.0.0.1 and serve in threads of this process."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        server.daemon_threads = True
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop serving; requests under way may still end."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def script(self, pattern: str, *replies: Reply | None, method: str = "GET") -> None:
        """Answer requests whose path fits `pattern` (a regular expression) with `replies`, one after the other.

        The last one stays; None lets that request have its normal answer.
        """
        left = list(replies)

        def respond(request: Received) -> Reply | None:
            if request.method != method or not re.fullmatch(pattern, request.path):
                return None
            with self._lock:
                return left.pop(0) if len(left) > 1 else left[0]

        self.responders.append(respond)

    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.path for request in self.received]

    def answer(self, request: Received) -> Reply:
        """The reply to a request."""
        with self._lock:
            self.received.append(request)
        for respond in self.responders:
            reply = respond(request)
            if reply is not None:
                return reply
        refused = self._unauthorized(request)
        return refused or self._route(request)

    def _unauthorized(self, request: Received) -> Reply | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token:
            return refusal(401, "Requires authentication")
        if scheme.lower() not in ("bearer", "token") or (self._token is not None and token != self._token):
            return refusal(401, "Bad credentials")
        return None

    def _route(self, request: Received) -> Reply:
        for pattern, serve in _ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match:
                return serve(self, request, *[unquote(part) for part in match.groups()])
        return refusal(404, "Not Found")

    def repository(self, owner: str, name: str) -> HostedRepository | None:
        """A hosted repository under its name of today."""
        return self.repositories.get(f"{owner}/{name}".lower())

    def in_repository(self, request: Received, owner: str, name: str) -> HostedRepository | Reply:
        """The repository that a path names, or the redirect or refusal that it gets."""
        found = self.repository(owner, name)
        if found is not None:
            return found
        asked = f"{owner}/{name}".lower()
        for repository in self.repositories.values():
            if asked in {old.lower() for old in repository.old_names}:
                rest = request.path.split("/", 4)[4:]
                path = "/".join(["/repositories", str(repository.number), *rest])
                query = urlsplit(request.headers.get("x-target", "")).query
                location = f"{self.link_base}{path}" + (f"?{query}" if query else "")
                message = {"message": "Moved Permanently", "url": location}
                return Reply(status=301, body=message, headers={"location": location})
        return refusal(404, "Not Found")

    def is_user(self, login: str) -> bool:
        """Whether an owner is a user: hosts something, and is no organisation."""
        owners = {name.partition("/")[0] for name in self.repositories}
        return login.lower() in owners - self.organizations

    def owned_by(self, login: str) -> list[HostedRepository]:
        """Repositories of an owner."""
        return [r for name, r in sorted(self.repositories.items()) if name.startswith(f"{login.lower()}/")]

    @property
    def account(self) -> str | None:
        """The login of the token's user."""
        return self._account

    def accept(self, raw: BaseHTTPRequestHandler) -> Received:
        """The request that a connection brings, without the base path."""
        parts = urlsplit(raw.path)
        headers = {name.lower(): value for name, value in raw.headers.items()}
        headers["x-target"] = raw.path
        size = int(headers.get("content-length", "0") or "0")
        return Received(
            method=raw.command,
            path=parts.path.removeprefix(self._base_path) or "/",
            query={name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()},
            headers=headers,
            body=raw.rfile.read(size) if size else b"",
        )


def refusal(status: int, message: str, documentation: str = "https://docs.github.com/rest") -> Reply:
    """A refusal in GitHub's shape."""
    return Reply(status=status, body={"message": message, "documentation_url": documentation, "status": str(status)})


def page_of(
    service: LoopbackGitHub, request: Received, items: Sequence[Any], path: str, *, cursors: bool = False
) -> Reply:
    """One page of a list, with the links to the others: by cursor, or by number."""
    size = min(100, max(1, int(request.query.get("per_page", "30"))))
    start = 0
    if cursors:
        start = _offset(request.query.get("after", ""))
    elif request.query.get("page", "").isdigit():
        start = (int(request.query["page"]) - 1) * size
    links: list[str] = []
    kept = {name: value for name, value in request.query.items() if name not in ("after", "before", "page")}

    def link(rel: str, name: str, value: str) -> None:
        query = "&".join(f"{key}={quote(text, safe='')}" for key, text in {**kept, name: value}.items())
        links.append(f'<{service.link_base}{path}?{query}>; rel="{rel}"')

    if start:
        link("prev", "before" if cursors else "page", _cursor(start) if cursors else str(start // size))
    if start + size < len(items):
        following = start + size
        link("next", "after" if cursors else "page", _cursor(following) if cursors else str(following // size + 1))
    headers = {"link": ", ".join(links)} if links else {}
    return Reply(body=list(items[start : start + size]), headers=headers)


def _cursor(offset: int) -> str:
    return base64.b64encode(f"cursor:v2:{offset:08d}".encode()).decode("ascii")


def _offset(cursor: str) -> int:
    try:
        return int(base64.b64decode(cursor).decode("ascii").rpartition(":")[2]) if cursor else 0
    except ValueError:
        return 0


def _sha(kind: str, text: str) -> str:
    return hashlib.sha1(f"{kind} {text}".encode(), usedforsecurity=False).hexdigest()


def _blob_sha(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# --- the end points -----------------------------------------------------------


def _facts(service: LoopbackGitHub, request: Received, owner: str, name: str) -> Reply:
    found = service.in_repository(request, owner, name)
    return found if isinstance(found, Reply) else Reply(body=found.facts())


def _alerts(service: LoopbackGitHub, request: Received, owner: str, name: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    if found.archived:
        return refusal(403, "Dependabot alerts are not available for archived repositories.", _ALERTS_DOCUMENTATION)
    if not found.alerts_enabled:
        return refusal(403, "Dependabot alerts are disabled for this repository.", _ALERTS_DOCUMENTATION)
    wrong = _wrong_filter(request.query)
    if wrong is not None:
        return wrong
    chosen = _sorted(_filtered(found.alerts, request.query), request.query)
    return page_of(service, request, chosen, f"/repositories/{found.number}/dependabot/alerts", cursors=True)


def _alert(service: LoopbackGitHub, request: Received, owner: str, name: str, number: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    for alert in found.alerts:
        if str(alert.get("number")) == number:
            return Reply(body=alert)
    return refusal(404, f"No alert found for alert number {number}", _ALERTS_DOCUMENTATION)


def _organization_alerts(service: LoopbackGitHub, request: Received, owner: str) -> Reply:
    if owner.lower() not in service.organizations:
        return refusal(404, "Not Found", _ALERTS_DOCUMENTATION)
    wrong = _wrong_filter(request.query)
    if wrong is not None:
        return wrong
    alerts = [
        {**alert, "repository": {"full_name": repository.full_name, "name": repository.full_name.split("/")[1]}}
        for repository in service.owned_by(owner)
        if repository.alerts_enabled and not repository.archived
        for alert in repository.alerts
    ]
    chosen = _sorted(_filtered(alerts, request.query), request.query)
    return page_of(service, request, chosen, f"/orgs/{owner}/dependabot/alerts", cursors=True)


def _wrong_filter(query: Mapping[str, str]) -> Reply | None:
    if "page" in query:
        return refusal(400, "Pagination using the `page` parameter is not supported.", _ALERTS_DOCUMENTATION)
    known = {"severity": set(_SEVERITIES), "ecosystem": set(DOCUMENTED_ECOSYSTEMS)}
    for name, allowed in known.items():
        for value in query.get(name, "").split(","):
            if value and value not in allowed:
                message = f"Invalid request.\n\nInvalid input: '{value}' is not a valid {name}."
                return refusal(422, message, _ALERTS_DOCUMENTATION)
    return None


def _filtered(alerts: Iterable[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    def values(alert: dict[str, Any]) -> dict[str, str]:
        dependency = alert.get("dependency") or {}
        vulnerability = alert.get("security_vulnerability") or {}
        package = dependency.get("package") or vulnerability.get("package") or {}
        return {
            "state": alert.get("state") or "",
            "severity": vulnerability.get("severity") or "",
            "ecosystem": package.get("ecosystem") or "",
            "package": package.get("name") or "",
            "manifest": dependency.get("manifest_path") or "",
            "scope": dependency.get("scope") or "",
            "relationship": dependency.get("relationship") or "",
            "classification": (alert.get("security_advisory") or {}).get("classification") or "",
            "has": "patch" if vulnerability.get("first_patched_version") else "",
        }

    def fits(alert: dict[str, Any]) -> bool:
        return all(value in query[name].split(",") for name, value in values(alert).items() if query.get(name))

    return [alert for alert in alerts if fits(alert)]


def _sorted(alerts: list[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    def epss(alert: dict[str, Any]) -> float:
        found = (alert.get("security_advisory") or {}).get("epss")
        first = found[0] if isinstance(found, list) and found else found
        return float(first["percentage"]) if isinstance(first, dict) and first.get("percentage") is not None else 0.0

    sort = query.get("sort", "created")
    newest_first = query.get("direction", "desc") == "desc"
    if sort == "epss_percentage":
        return sorted(alerts, key=epss, reverse=newest_first)
    moment = "updated_at" if sort == "updated" else "created_at"
    return sorted(alerts, key=lambda alert: str(alert.get(moment) or ""), reverse=newest_first)


def _organization_repositories(service: LoopbackGitHub, request: Received, owner: str) -> Reply:
    if owner.lower() not in service.organizations:
        return refusal(404, "Not Found")
    return page_of(service, request, [r.facts() for r in service.owned_by(owner)], f"/orgs/{owner}/repos")


def _user_repositories(service: LoopbackGitHub, request: Received, owner: str) -> Reply:
    if not service.is_user(owner):
        return refusal(404, "Not Found")
    public = [r.facts() for r in service.owned_by(owner) if not r.private]
    return page_of(service, request, public, f"/users/{owner}/repos")


def _account(service: LoopbackGitHub, _request: Received) -> Reply:
    if service.account is None:
        return refusal(403, "Resource not accessible by integration")
    return Reply(body={"login": service.account, "type": "User"})


def _own_repositories(service: LoopbackGitHub, request: Received) -> Reply:
    own = [r.facts() for r in service.owned_by(service.account or "-")]
    return page_of(service, request, own, "/user/repos")


def _installation(service: LoopbackGitHub, request: Received) -> Reply:
    if service.account is not None:
        return refusal(403, "You must authenticate with an installation access token")
    everything = [r.facts() for _, r in sorted(service.repositories.items())]
    page = page_of(service, request, everything, "/installation/repositories")
    return Reply(body={"total_count": len(everything), "repositories": page.body}, headers=page.headers)


def _commit(service: LoopbackGitHub, request: Received, owner: str, name: str, ref: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    if not found.files:
        return refusal(409, "Git Repository is empty.")
    if ref not in (found.default_branch, found.commit()):
        return refusal(422, f"No commit found for SHA: {ref}")
    if request.headers.get("accept") == "application/vnd.github.sha":
        return Reply(body=found.commit().encode(), headers={"content-type": "application/vnd.github.sha"})
    return Reply(body={"sha": found.commit(), "commit": {"tree": {"sha": found.tree_sha("")}}})


def _tree(service: LoopbackGitHub, request: Received, owner: str, name: str, ref: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    if not found.files:
        return refusal(409, "Git Repository is empty.")
    folders = found.folders()
    top = found.tree_sha("")
    folder = folders.get(top if ref in (found.default_branch, found.commit()) else ref)
    if folder is None:
        return refusal(404, "Not Found")
    is_recursive = "recursive" in request.query
    entries: dict[str, dict[str, Any]] = {}
    for path, data in sorted(found.files.items()):
        if not path.startswith(folder):
            continue
        inner = path[len(folder) :]
        parts = inner.split("/")
        for depth in range(1, len(parts)) if is_recursive else range(1, min(2, len(parts))):
            below = "/".join(parts[:depth])
            sha = found.tree_sha(f"{folder}{below}/")
            entries[below] = {"path": below, "mode": "040000", "type": "tree", "sha": sha}
        if is_recursive or len(parts) == 1:
            entries[inner] = _entry(found, path, inner, data)
    listed = list(entries.values())
    is_cut = is_recursive and found.cut_trees
    return Reply(body={"sha": ref, "tree": listed[: len(listed) // 2] if is_cut else listed, "truncated": is_cut})


def _entry(repository: HostedRepository, path: str, shown: str, data: bytes) -> dict[str, Any]:
    mode = repository.modes.get(path, "100644")
    if mode == "160000":
        return {"path": shown, "mode": mode, "type": "commit", "sha": data.decode("ascii")}
    return {"path": shown, "mode": mode, "type": "blob", "sha": _blob_sha(data), "size": len(data)}


def _blob(service: LoopbackGitHub, request: Received, owner: str, name: str, sha: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    for data in found.files.values():
        if _blob_sha(data) == sha:
            return _content(request, data)
    return refusal(404, "Not Found")


def _contents(service: LoopbackGitHub, request: Received, owner: str, name: str, path: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    data = found.files.get(path)
    if data is not None:
        return _content(request, data)
    inside = sorted({inner[len(path) + 1 :].split("/")[0] for inner in found.files if inner.startswith(f"{path}/")})
    if not inside:
        return refusal(404, "Not Found")
    kinds = {item: "file" if f"{path}/{item}" in found.files else "dir" for item in inside}
    return Reply(body=[{"name": item, "path": f"{path}/{item}", "type": kinds[item]} for item in inside])


def _content(request: Received, data: bytes) -> Reply:
    if "raw" in request.headers.get("accept", ""):
        return Reply(body=data, headers={"content-type": "application/vnd.github.raw+json; charset=utf-8"})
    encoded = base64.encodebytes(data).decode("ascii")
    return Reply(body={"sha": _blob_sha(data), "size": len(data), "encoding": "base64", "content": encoded})


def _pulls(service: LoopbackGitHub, request: Received, owner: str, name: str) -> Reply:
    found = service.in_repository(request, owner, name)
    if isinstance(found, Reply):
        return found
    state = request.query.get("state", "open")
    head, base = request.query.get("head"), request.query.get("base")
    chosen = [
        pull
        for pull in found.pulls
        if state in ("all", pull.get("state"))
        and (head is None or f"{owner}:{pull['head']['ref']}".lower() == head.lower())
        and (base is None or pull["base"]["ref"] == base)
    ]
    return page_of(service, request, chosen, f"/repositories/{found.number}/pulls")


def _by_number(service: LoopbackGitHub, request: Received, number: str, rest: str) -> Reply:
    for repository in service.repositories.values():
        if str(repository.number) == number:
            path = f"/repos/{repository.full_name}{rest}"
            moved = Received(
                method=request.method, path=path, query=request.query, headers=request.headers, body=request.body
            )
            return service._route(moved)  # noqa: SLF001  # the same module
    return refusal(404, "Not Found")


_REPO: Final = r"/repos/([^/]+)/([^/]+)"
_ROUTES: Final[Sequence[tuple[str, Callable[..., Reply]]]] = (
    (_REPO, _facts),
    (_REPO + r"/dependabot/alerts", _alerts),
    (_REPO + r"/dependabot/alerts/(\d+)", _alert),
    (_REPO + r"/commits/(.+)", _commit),
    (_REPO + r"/git/trees/(.+)", _tree),
    (_REPO + r"/git/blobs/([0-9a-f]+)", _blob),
    (_REPO + r"/contents/(.+)", _contents),
    (_REPO + r"/pulls", _pulls),
    (r"/orgs/([^/]+)/dependabot/alerts", _organization_alerts),
    (r"/orgs/([^/]+)/repos", _organization_repositories),
    (r"/users/([^/]+)/repos", _user_repositories),
    (r"/user", _account),
    (r"/user/repos", _own_repositories),
    (r"/installation/repositories", _installation),
    (r"/repositories/(\d+)(/.*|)", _by_number),
)


def _handler_for(service: LoopbackGitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._exchange()

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  # names of the base

        def _exchange(self) -> None:
            request = service.accept(self)
            reply = service.answer(request)
            self.wfile.write(_bytes_of(request, reply))
            self.close_connection = request.headers.get("connection", "").lower() == "close"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's signature
            """Say nothing: stdout and stderr belong to whoever shows the demonstration."""

    return Handler


def _bytes_of(request: Received, reply: Reply) -> bytes:
    is_raw = isinstance(reply.body, bytes)
    body: bytes = b""
    if is_raw:
        body = reply.body
    elif reply.body is not None:
        body = json.dumps(reply.body, ensure_ascii=False).encode("utf-8", errors="surrogatepass")
    headers = {
        "content-type": "application/json; charset=utf-8",
        "x-github-request-id": "LOOP:BACK:0001",
        "x-github-media-type": "github.v3; format=json",
        "x-github-api-version-selected": request.headers.get("x-github-api-version", "2022-11-28"),
        "x-ratelimit-limit": "5000",
        "x-ratelimit-remaining": "4999",
        "x-ratelimit-used": "1",
        "x-ratelimit-reset": "4102444800",
        "x-ratelimit-resource": "core",
        **{name.lower(): value for name, value in reply.headers.items()},
    }
    status = reply.status
    if status == 200 and request.method == "GET" and "etag" not in headers:
        headers["etag"] = f'W/"{hashlib.sha256(body + headers.get("link", "").encode()).hexdigest()[:32]}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            status, body = 304, b""
    if len(body) > 1024 and "gzip" in request.headers.get("accept-encoding", "") and "content-encoding" not in headers:
        body = gzip.compress(body, 1)
        headers["content-encoding"] = "gzip"
    headers["content-length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} Loopback", *(f"{name}: {value}" for name, value in headers.items() if value != "")]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
