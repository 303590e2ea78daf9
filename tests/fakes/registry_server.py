"""A loopback registry that serves the corpus's recorded npm and Python packages, or what a test puts into it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

METADATA = Path(__file__).parent.parent / "data" / "metadata"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One scripted answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]


Script = Callable[[str, Mapping[str, str]], Answer | None]
"""(path, headers in lower case) → an answer, or `None` for the recorded one."""


class RegistryServer:
    """Serves `…/npm/NAME` and `…/simple/NAME/`; every answer has an ETag and may be asked for conditionally."""

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or (lambda _path, _headers: None)
        self.seen: list[Seen] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                path = unquote(urlsplit(self.path).path)
                outer.seen.append(Seen(method="GET", path=path, headers=headers))
                answer = outer.script(path, headers) or outer.recorded(path)
                etag = f'"{abs(hash(answer.body))}"'
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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def registries(self) -> dict[str, str]:
        """The settings that make the product ask here."""
        return {"npm": f"{self.base}/npm", "pip": f"{self.base}/simple"}

    def recorded(self, path: str) -> Answer:
        """The corpus's answer; 404 for what it does not know."""
        if path.startswith("/npm/"):
            file = METADATA / "npm" / f"{path.removeprefix('/npm/').replace('/', '__')}.json"
            return Answer(body=file.read_bytes()) if file.is_file() else Answer(status=404)
        if path.startswith("/simple/"):
            return self._project_page(path.split("/")[2])
        if path.startswith("/files/"):
            return self._core_metadata(*path.removeprefix("/files/").split("/", 1))
        return Answer(status=404)

    def _project_page(self, name: str) -> Answer:
        file = METADATA / "pypi" / f"{name}.json"
        if not file.is_file():
            return Answer(status=404)
        page = json.loads(file.read_bytes())
        page.pop("metadata")
        for entry in page["files"]:
            entry["url"] = f"{self.base}/files/{name}/{entry['filename']}"
        headers = {"content-type": "application/vnd.pypi.simple.v1+json"}
        return Answer(body=json.dumps(page).encode(), headers=headers)

    def _core_metadata(self, name: str, filename: str) -> Answer:
        file = METADATA / "pypi" / f"{name}.json"
        if not file.is_file() or not filename.endswith(".metadata"):
            return Answer(status=404)
        page = json.loads(file.read_bytes())
        from dependfix_core.metadata.pip import version_of_file

        fields = page["metadata"].get(version_of_file(filename.removesuffix(".metadata")) or "")
        if fields is None:
            return Answer(status=404)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 0"]
        if fields.get("requires-python"):
            lines.append(f"Requires-Python: {fields['requires-python']}")
        lines += [f"Provides-Extra: {extra}" for extra in fields.get("provides-extra") or ()]
        lines += [f"Requires-Dist: {requirement}" for requirement in fields.get("requires-dist") or ()]
        return Answer(body=("\n".join(lines) + "\n").encode(), headers={"content-type": "text/plain"})

    @contextmanager
    def running(self) -> Iterator["RegistryServer"]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
