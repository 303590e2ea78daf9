"""A loopback HTTP server whose answers are written by the test, down to the bytes."""

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Seen], bytes | None]
"""Raw bytes to send before the connection is closed; None closes it without a word."""


def http(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A complete answer; header names are written with underscores."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class ScriptedServer:
    """Serves on 127.0.0.1 until it is left; `seen` has every request in order."""

    answer: Answer
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Closing alone does not wake an accept() that is under way.
        self._closing = True
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._thread.join()
        self._listener.close()

    _closing = False

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            with connection:
                try:
                    self._serve(connection)
                except OSError:
                    continue

    def _serve(self, plain: socket.socket) -> None:
        connection = self.tls.wrap_socket(plain, server_side=True) if self.tls else plain
        with connection, connection.makefile("rb") as stream:
            first = stream.readline().decode("latin-1").split()
            if len(first) != 3:
                return
            headers: dict[str, str] = {}
            while line := stream.readline().decode("latin-1").strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = stream.read(int(headers.get("content-length", "0")))
            self.seen.append(Seen(first[0], first[1], headers, body))
            reply = self.answer(self.seen[-1])
            if reply is not None:
                connection.sendall(reply)
