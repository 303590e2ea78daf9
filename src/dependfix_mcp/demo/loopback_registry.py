"""A registry on 127.0.0.1 that serves recorded npm and Python packages, for the demonstration and for tests.

`…/npm/NAME` and `…/simple/NAME/` answer in the shapes of the real services;
every answer has a validator and may be asked for conditionally. What it should
answer differently can be scripted.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dependfix_core.metadata.pip import version_of_file


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One scripted answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""


Script = Callable[[str, Mapping[str, str]], Answer | None]
"""(path, headers in lower case) → an answer, or `None` for the recorded one."""


class LoopbackRegistry:
    """Serves the records below `records` (`npm/NAME.json`, `pypi/NAME.json`; a slash in a name is `__`)."""

    def __init__(self, records: Path, script: Script | None = None) -> None:
        self.script: Script = script or (lambda _path, _headers: None)
        self.seen: list[Seen] = []
        self._records = records
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self._thread: threading.Thread | None = None
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def registries(self) -> dict[str, str]:
        """The settings that make the product ask here."""
        return {"npm": f"{self.base}/npm", "pip": f"{self.base}/simple"}

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        if self._thread is not None:
            self._thread.join()

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The scripted answer, or the recorded one."""
        self.seen.append(Seen(path=path, headers=headers))
        return self.script(path, headers) or self._recorded(path)

    def _recorded(self, path: str) -> Answer:
        if path.startswith("/npm/"):
            file = self._records / "npm" / f"{path.removeprefix('/npm/').replace('/', '__')}.json"
            return Answer(body=file.read_bytes()) if file.is_file() else Answer(status=404)
        if path.startswith("/simple/"):
            return self._project_page(path.split("/")[2])
        if path.startswith("/files/") and path.count("/") == 3:
            return self._core_metadata(*path.removeprefix("/files/").split("/", 1))
        return Answer(status=404)

    def _page(self, name: str) -> dict[str, Any] | None:
        file = self._records / "pypi" / f"{name}.json"
        if not file.is_file():
            return None
        page: dict[str, Any] = json.loads(file.read_bytes())
        return page

    def _project_page(self, name: str) -> Answer:
        page = self._page(name)
        if page is None:
            return Answer(status=404)
        page.pop("metadata")
        for entry in page["files"]:
            entry["url"] = f"{self.base}/files/{name}/{entry['filename']}"
        headers = {"content-type": "application/vnd.pypi.simple.v1+json"}
        return Answer(body=json.dumps(page).encode(), headers=headers)

    def _core_metadata(self, name: str, filename: str) -> Answer:
        page = self._page(name)
        if page is None or not filename.endswith(".metadata"):
            return Answer(status=404)
        fields = page["metadata"].get(version_of_file(filename.removesuffix(".metadata")) or "")
        if fields is None:
            return Answer(status=404)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 0"]
        if fields.get("requires-python"):
            lines.append(f"Requires-Python: {fields['requires-python']}")
        lines += [f"Provides-Extra: {extra}" for extra in fields.get("provides-extra") or ()]
        lines += [f"Requires-Dist: {requirement}" for requirement in fields.get("requires-dist") or ()]
        return Answer(body=("\n".join(lines) + "\n").encode(), headers={"content-type": "text/plain"})


def _handler_for(registry: LoopbackRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = registry.answer(unquote(urlsplit(self.path).path), headers)
            etag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
            fresh = answer.status == 200 and headers.get("if-none-match") == etag
            self.send_response(304 if fresh else answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("etag", etag)
            self.send_header("content-length", "0" if fresh else str(len(answer.body)))
            self.end_headers()
            if not fresh:
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
            """Say nothing."""

    return Handler
