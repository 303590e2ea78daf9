"""Streamable HTTP as a process: who is let in, under which name, and what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dependfix_mcp.demo.loopback_github import LoopbackGitHub
from fakes.github_server import TOKEN, hosted

BEARER = "a-long-bearer-token"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@contextmanager
def serving(folder: Path, *flags: str, **variables: str) -> Iterator[str]:
    """The address of a server that is stopped, and must stop cleanly, at the end."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "dependfix_mcp", "--transport", "streamable-http", "--port", "0", *flags],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        line = process.stderr.readline().decode()
        match = re.search(r"http://\S+", line)
        assert match, line
        yield match[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait(timeout=20)
        process.stdout.close()
        process.stderr.close()


def post(address: str, message: Any = INITIALIZE, **headers: str) -> httpx.Response:
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return httpx.post(address, content=content, headers={**HEADERS, **headers}, trust_env=False, timeout=20)


def data_of(response: httpx.Response) -> Any:
    (line,) = (line for line in response.text.splitlines() if line.startswith("data:") and "{" in line)
    return json.loads(line.removeprefix("data:"))


def test_loopback_serves_its_own_names_and_refuses_others(tmp_path: Path) -> None:
    with serving(tmp_path, "--toolsets", "dependfix") as address:
        answers = {
            "fine": post(address).status_code,
            "own origin": post(address, origin="http://localhost:3000").status_code,
            "foreign origin": post(address, origin="https://evil.example").status_code,
            "foreign host": post(address, host="evil.example").status_code,
            "too large": post(address, b"x" * (4 * 1024 * 1024 + 1)).status_code,
            "broken": post(address, b"{").status_code,
            "no accept": httpx.post(
                address, json=INITIALIZE, headers={"accept": "text/html"}, trust_env=False
            ).status_code,
        }

    assert answers == {
        "fine": 200,
        "own origin": 200,
        "foreign origin": 403,
        "foreign host": 421,
        "too large": 413,
        "broken": 400,
        "no accept": 406,
    }


def test_bearer_token_is_asked_for_when_one_is_set(tmp_path: Path) -> None:
    with serving(tmp_path, "--toolsets", "dependfix", DEPENDFIX_HTTP_TOKEN=BEARER) as address:
        without = post(address)
        answers = [
            post(address, authorization=value).status_code
            for value in (
                f"Bearer {BEARER}",
                f"bearer {BEARER}",
                f"Bearer {BEARER}x",
                "Bearer",
                f"Basic {BEARER}",
                BEARER,
            )
        ]

    assert without.status_code == 401
    assert without.headers["www-authenticate"].startswith("Bearer")
    assert answers == [200, 200, 401, 401, 401, 401]


def test_wider_address_answers_to_the_allowed_name_only(tmp_path: Path) -> None:
    flags = ("--toolsets", "dependfix", "--host", "127.0.0.2", "--allowed-host", "mcp.example")
    with serving(tmp_path, *flags, DEPENDFIX_HTTP_TOKEN=BEARER) as address:
        allowed = post(address, authorization=f"Bearer {BEARER}", host="mcp.example").status_code
        refused = post(address, authorization=f"Bearer {BEARER}", host="other.example").status_code

    assert (allowed, refused) == (200, 421)


@pytest.mark.parametrize(
    ("flags", "variables"),
    [((), {}), (("--allowed-host", "mcp.example"), {}), ((), {"DEPENDFIX_HTTP_TOKEN": BEARER})],
)
def test_wider_address_without_names_and_token_is_not_bound(
    tmp_path: Path, flags: tuple[str, ...], variables: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dependfix_mcp", "--transport", "http", "--host", "192.0.2.1", *flags],
        env={"PATH": os.environ["PATH"], **variables},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 2
    assert done.stdout == b""


@pytest.mark.parametrize(("flags", "code"), [((), "auth_missing"), (("--share-token",), None)])
def test_the_processs_token_is_shared_only_on_request(tmp_path: Path, flags: tuple[str, ...], code: str | None) -> None:
    with LoopbackGitHub([hosted("octo-shop")], token=TOKEN) as github:
        more = ("--toolsets", "dependfix", "--github-api-url", github.url, *flags)
        with serving(tmp_path, *more, GITHUB_TOKEN=TOKEN) as address:
            session = post(address).headers["mcp-session-id"]
            call = {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "fetch_alerts", "arguments": {"repo": "octo-org/octo-shop"}},
            }
            answer = data_of(post(address, call, **{"mcp-session-id": session}))

    content = answer["result"]["structuredContent"]
    assert (content["ok"], content.get("code")) == (code is None, code)
