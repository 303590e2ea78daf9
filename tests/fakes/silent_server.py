"""A service that takes connections and never says a word, and an edge that does not wait long for one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dependfix_core.http import HttpConfig


@contextmanager
def silent_server() -> Iterator[str]:
    """Its address."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        # A blocked `accept` is only woken by a shutdown.
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    for connection in held:
        connection.close()


def wait_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for a second instead of half a minute, once."""
    defaults = HttpConfig.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(HttpConfig.__init__, "__kwdefaults__", {**defaults, "read_timeout_s": 1.0, "tries": 1})
