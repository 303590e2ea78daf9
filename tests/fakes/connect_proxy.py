"""A loopback HTTP proxy that tunnels every CONNECT to one port of this machine."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class ConnectProxy:
    """`tunnels` has the targets that were asked for, `heard` what was said in the open."""

    def __init__(self, target_port: int) -> None:
        self.tunnels: list[str] = []
        self.heard = ""
        self._target_port = target_port
        self._closing = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        with socket.create_connection(self._listener.getsockname()):
            pass
        self._threads[0].join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            thread = threading.Thread(target=self._tunnel, args=(connection,), daemon=True)
            thread.start()

    def _tunnel(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heard += head.decode("latin-1")
            self.tunnels.append(head.split()[1].decode())
            with socket.create_connection(("127.0.0.1", self._target_port)) as upstream:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_copy, args=(upstream, client), daemon=True)
                back.start()
                _copy(client, upstream)
                back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
