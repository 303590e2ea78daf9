"""A Python index on 127.0.0.1 with made-up packages, for real package managers to resolve against."""

import base64
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

_EPOCH = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Published:
    """One version of a made-up package."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    wheel: bool = True
    backend: str = ""
    """Code of the source distribution's own build backend; empty for no source distribution."""
    uploaded: str = "2020-01-01T00:00:00.000000Z"
    summary: str = ""
    yanked: bool = False

    @property
    def metadata(self) -> bytes:
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Summary: {self.summary}"] if self.summary else []
        extras = re.findall(r"""\bextra == ["']([^"']+)["']""", "\n".join(self.requires))
        lines += [f"Provides-Extra: {extra}" for extra in dict.fromkeys(extras)]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        return ("\n".join(lines) + "\n").encode()

    def files(self) -> dict[str, bytes]:
        """File name → content."""
        found = {}
        stem = f"{self.name.replace('-', '_')}-{self.version}"
        if self.wheel:
            found[f"{stem}-py3-none-any.whl"] = self._wheel(stem)
        if self.backend:
            found[f"{stem}.tar.gz"] = self._sdist(stem)
        return found

    def _wheel(self, stem: str) -> bytes:
        info = f"{stem}.dist-info"
        members = {
            f"{info}/METADATA": self.metadata,
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: made-up\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        members[f"{info}/RECORD"] = b"".join(f"{name},,\n".encode() for name in [*members, f"{info}/RECORD"])
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
        return buffer.getvalue()

    def _sdist(self, stem: str) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            members = {
                "PKG-INFO": self.metadata,
                "setup.py": self.backend.encode(),
                "backend.py": self.backend.encode(),
                "pyproject.toml": b'[build-system]\nrequires = []\nbackend-path = ["."]\nbuild-backend = "backend"\n',
            }
            for name, content in members.items():
                member = tarfile.TarInfo(f"{stem}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return buffer.getvalue()


@dataclass(frozen=True, kw_only=True)
class Request:
    path: str
    credential: str = ""
    """`user:password`, when one came along."""


@dataclass
class PythonIndex:
    """Serves `published` as `{base}/simple/`; with `login` (`user:password`) only to those who say it."""

    published: Sequence[Published]
    login: str = ""
    requests: list[Request] = field(default_factory=list)
    files: dict[str, tuple[Published, bytes, str]] = field(default_factory=dict)
    faults: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    """Package → status, content type and body that its page is answered with."""

    def __post_init__(self) -> None:
        self.publish(self.published)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.simple = f"{self.base}/simple"

    def __enter__(self) -> Self:
        serve = {"poll_interval": 0.02}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def publish(self, more: Sequence[Published]) -> None:
        """From now on these are there too."""
        for one in more:
            self.files |= {name: (one, content, sha256(content).hexdigest()) for name, content in one.files().items()}

    def hashes(self, name: str, version: str) -> list[str]:
        """Of all files of a version, sorted."""
        found = (digest for one, _, digest in self.files.values() if (one.name, one.version) == (name, version))
        return sorted(found)

    def page(self, name: str) -> dict[str, Any] | None:
        listed = {file: found for file, found in self.files.items() if found[0].name == name}
        if not listed:
            return None
        return {
            "meta": {"api-version": "1.1"},
            "name": name,
            "versions": sorted({one.version for one, _, _ in listed.values()}),
            "files": [
                {
                    "filename": file,
                    "url": f"{self.base}/files/{file}",
                    "hashes": {"sha256": digest},
                    "size": len(content),
                    "upload-time": one.uploaded,
                    "yanked": one.yanked,
                    **({"requires-python": one.requires_python} if one.requires_python else {}),
                    **_metadata_hash(file, one),
                }
                for file, (one, content, digest) in listed.items()
            ],
        }


def _metadata_hash(file: str, one: Published) -> dict[str, dict[str, str]]:
    return {"core-metadata": {"sha256": sha256(one.metadata).hexdigest()}} if file.endswith(".whl") else {}


def _html(page: dict[str, Any]) -> str:
    links = []
    for file in page["files"]:
        python = escape(file.get("requires-python", ""))
        metadata = file.get("core-metadata", {}).get("sha256", "")
        more = f' data-requires-python="{python}"' if python else ""
        more += f' data-core-metadata="sha256={metadata}"' if metadata else ""
        links.append(f'<a href="{file["url"]}#sha256={file["hashes"]["sha256"]}"{more}>{file["filename"]}</a><br>')
    return "<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>"


def _handler_for(index: PythonIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            scheme, _, value = (self.headers.get("authorization") or "").partition(" ")
            login = base64.b64decode(value).decode() if scheme == "Basic" else ""
            index.requests.append(Request(path=path, credential=login))
            if index.login and login != index.login:
                self.answer(401, b"", "text/plain", **{"WWW-Authenticate": 'Basic realm="index"'})
                return
            parts = path.strip("/").split("/")
            if len(parts) == 2 and (fault := index.faults.get(parts[1])) is not None:
                self.answer(fault[0], fault[2], fault[1])
            elif parts[0] == "simple" and len(parts) == 2 and (page := index.page(parts[1])) is not None:
                if "json" in (self.headers.get("accept") or ""):
                    self.answer(200, json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json")
                else:
                    self.answer(200, _html(page).encode(), "text/html")
            elif parts[0] == "files" and parts[1].endswith(".metadata"):
                found = index.files.get(parts[1].removesuffix(".metadata"))
                self.answer(200 if found else 404, found[0].metadata if found else b"", "text/plain")
            elif parts[0] == "files" and parts[1] in index.files:
                self.answer(200, index.files[parts[1]][1], "application/octet-stream")
            else:
                self.answer(404, b"", "text/plain")

        def answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
            """Say nothing."""

    return Handler
