"""Starts a program of ours and waits until it says where it listens."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(script: Path, port: int) -> Iterator[str]:
    """The MCP address of `script PORT`; it is ended with the block."""
    with subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "listens on" in line, line + process.stderr.read()
            yield line.rsplit(" ", 1)[1].strip()
        finally:
            process.terminate()
            process.communicate(timeout=10)
