import gzip
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dependfix_core.errors import (
    ConfigurationError,
    NetworkError,
    OutputTooLargeError,
    RateLimitedError,
)
from dependfix_core.http import CallBudget, Credential, DiskCache, HttpClient, HttpConfig, MemoryCache, ResponseCache
from fakes.certificates import hashed_folder, private_ca
from fakes.connect_proxy import ConnectProxy
from fakes.scripted_server import ScriptedServer, Seen, http
from fakes.still_clock import StillClock

pytestmark = pytest.mark.anyio

API = "https://api.example"
TOKEN = "ghp_0123456789abcdefghij0123456789abcdef"


def client(
    handler: Callable[[httpx.Request], httpx.Response],
    *,
    clock: StillClock | None = None,
    cache: ResponseCache | None = None,
    config: HttpConfig | None = None,
) -> HttpClient:
    return HttpClient(
        config,
        clock=clock or StillClock(),
        jitter=lambda: 0.0,
        cache=cache,
        transport=httpx.MockTransport(handler),
    )


def answers(
    *scripted: httpx.Response | Exception,
) -> tuple[Callable[[httpx.Request], httpx.Response], list[httpx.Request]]:
    left = list(scripted)
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    return handler, seen


async def test_answer_of_any_status_is_given_back() -> None:
    handler, seen = answers(httpx.Response(404, json={"message": "Not Found"}, headers={"X-Thing": "1"}))

    async with client(handler) as http_client:
        response = await http_client.request("GET", f"{API}/x", headers={"Accept": "text/plain"})

    assert (response.status, response.json(), response.headers["x-thing"]) == (404, {"message": "Not Found"}, "1")
    assert response.text(5) == '{"mes'
    assert seen[0].headers["accept"] == "text/plain"
    assert seen[0].headers["accept-encoding"] == "gzip"
    assert seen[0].headers["user-agent"].startswith("dependfix-mcp/")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_get_is_tried_three_times_with_growing_pauses(status: int) -> None:
    handler, seen = answers(httpx.Response(status))
    clock = StillClock()

    response = await client(handler, clock=clock).request("GET", f"{API}/x")

    assert (response.status, len(seen), clock.sleeps) == (status, 3, [0.5, 1.0])


async def test_pauses_have_jitter() -> None:
    handler, _ = answers(httpx.Response(500))
    clock = StillClock()

    await HttpClient(clock=clock, jitter=lambda: 0.5, transport=httpx.MockTransport(handler)).request("GET", f"{API}/x")

    assert clock.sleeps == [0.75, 1.5]


async def test_retry_after_is_honoured_within_the_budget() -> None:
    handler, seen = answers(httpx.Response(503, headers={"retry-after": "7"}), httpx.Response(200))
    clock = StillClock()
    told: list[tuple[float, str]] = []

    budget = CallBudget(max_wait_s=7, on_wait=lambda seconds, reason: told.append((seconds, reason)))
    response = await client(handler, clock=clock).request("GET", f"{API}/x", budget=budget)

    assert (response.status, len(seen), clock.sleeps) == (200, 2, [7.0])
    assert told == [(7.0, "status 503")]
    assert (budget.requests, budget.waited_s) == (2, 7.0)


async def test_pause_beyond_the_budget_is_not_made() -> None:
    handler, seen = answers(httpx.Response(503, headers={"retry-after": "61"}))
    clock = StillClock()

    response = await client(handler, clock=clock).request("GET", f"{API}/x")

    assert (response.status, len(seen), clock.sleeps) == (503, 1, [])


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("fault", [httpx.Response(502), httpx.ReadError("gone"), httpx.ConnectError("no")])
async def test_what_changes_something_is_never_sent_twice(method: str, fault: httpx.Response | Exception) -> None:
    handler, seen = answers(fault)
    http_client = client(handler)

    if isinstance(fault, Exception):
        with pytest.raises(NetworkError):
            await http_client.request(method, f"{API}/x", content=b"{}")
    else:
        assert (await http_client.request(method, f"{API}/x", content=b"{}")).status == 502

    assert len(seen) == 1


async def test_broken_get_is_repeated_and_then_answers() -> None:
    handler, seen = answers(
        httpx.ReadError("gone"), httpx.RemoteProtocolError("cut"), httpx.Response(200, content=b"ok")
    )

    response = await client(handler).request("GET", f"{API}/x")

    assert (response.content, len(seen)) == (b"ok", 3)


async def test_next_try_can_go_to_another_address() -> None:
    handler, seen = answers(httpx.Response(502))

    await client(handler).request("GET", f"{API}/x?n=1", retry_url=lambda url, status: f"{url}&after={status}")

    assert [request.url.query for request in seen] == [b"n=1", b"n=1&after=502", b"n=1&after=502&after=502"]


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (httpx.ReadTimeout("x"), "timeout", True),
        (httpx.ConnectTimeout("x"), "timeout", True),
        (httpx.ProxyError("407"), "proxy", False),
        (httpx.RemoteProtocolError("x"), "cut", True),
        (httpx.LocalProtocolError(f"Illegal header value b'Bearer {TOKEN}'"), "address", False),
        (httpx.WriteError("x"), "reset", True),
        (httpx.ConnectError("x"), "connect", True),
    ],
)
async def test_fault_names_host_and_kind_and_nothing_secret(error: Exception, kind: str, retryable: bool) -> None:
    handler, seen = answers(error)

    with pytest.raises(NetworkError) as caught:
        await client(handler).request("GET", f"{API}/x?secret=1", auth=Credential.bearer(TOKEN, API))

    assert caught.value.code == "network"
    assert caught.value.details == {"host": "api.example", "kind": kind}
    assert caught.value.retryable is retryable
    assert len(seen) == (3 if retryable else 1)
    assert caught.value.__cause__ is None
    assert TOKEN not in str(caught.value.to_dict())
    assert "secret" not in str(caught.value.to_dict())


async def test_credential_goes_to_its_own_origin_only() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.headers.get("authorization")))
        if request.url.path == "/start":
            return httpx.Response(302, headers={"location": "/same"})
        if request.url.path == "/same":
            return httpx.Response(302, headers={"location": "https://storage.example/file"})
        return httpx.Response(200)

    seen: list[tuple[str, str | None]] = []
    credential = Credential.bearer(TOKEN, API)

    response = await client(handler).request("GET", f"{API}/start", auth=credential)
    await client(handler).request("GET", "https://evil.example/", auth=credential)
    await client(handler).request("GET", "https://api.example:8443/", auth=credential)

    assert seen == [
        (f"{API}/start", f"Bearer {TOKEN}"),
        (f"{API}/same", f"Bearer {TOKEN}"),
        ("https://storage.example/file", None),
        ("https://evil.example/", None),
        ("https://api.example:8443/", None),
    ]
    assert response.redirects == (f"{API}/start", f"{API}/same")


async def test_credential_among_the_headers_is_refused() -> None:
    handler, seen = answers(httpx.Response(200))

    with pytest.raises(ConfigurationError):
        await client(handler).request("GET", f"{API}/x", headers={"AUTHORIZATION": f"Bearer {TOKEN}"})

    assert seen == []


async def test_redirect_loops_and_long_chains_end() -> None:
    def circle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"location": "/b" if request.url.path == "/a" else "/a"})

    def chain(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        return httpx.Response(302, headers={"location": f"{request.url.path}x"})

    seen: list[str] = []
    for handler in (circle, chain):
        with pytest.raises(NetworkError) as caught:
            await client(handler).request("GET", f"{API}/a")
        assert caught.value.details["kind"] == "redirect-loop"
    assert len(seen) == 6


async def test_cookies_are_not_kept() -> None:
    handler, seen = answers(httpx.Response(200, headers={"set-cookie": "session=1; Path=/"}))
    http_client = client(handler)

    await http_client.request("GET", f"{API}/x")
    await http_client.request("GET", f"{API}/x")

    assert "cookie" not in seen[1].headers


@pytest.mark.parametrize("kind", ["memory", "disk"])
async def test_unchanged_answer_comes_from_the_cache(kind: str, tmp_path: Path) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("if-none-match"))
        if request.headers.get("if-none-match") == 'W/"1"':
            return httpx.Response(304, headers={"x-ratelimit-remaining": "41", "etag": 'W/"1"'})
        return httpx.Response(
            200,
            headers={"etag": 'W/"1"', "content-encoding": "gzip", "link": '<n>; rel="next"', "content-type": "a/b"},
            content=gzip.compress(b"[1]"),
        )

    asked: list[str | None] = []
    cache: ResponseCache = MemoryCache() if kind == "memory" else DiskCache(tmp_path)
    http_client = client(handler, cache=cache)

    first = await http_client.request("GET", f"{API}/x", conditional=True, auth=Credential.bearer("a", API))
    again = await http_client.request("GET", f"{API}/x", conditional=True, auth=Credential.bearer("a", API))
    other = await http_client.request("GET", f"{API}/x", conditional=True, auth=Credential.bearer("b", API))
    plain = await http_client.request("GET", f"{API}/x", auth=Credential.bearer("a", API))

    assert asked == [None, 'W/"1"', None, None]
    assert [r.from_cache for r in (first, again, other, plain)] == [False, True, False, False]
    assert (again.status, again.content, again.headers["x-ratelimit-remaining"]) == (200, b"[1]", "41")
    assert (again.headers["link"], again.headers["content-type"]) == ('<n>; rel="next"', "a/b")


async def test_304_without_a_question_is_given_back() -> None:
    handler, _ = answers(httpx.Response(304))

    response = await client(handler, cache=MemoryCache()).request("GET", f"{API}/x", conditional=True)

    assert (response.status, response.from_cache) == (304, False)


async def test_body_above_the_cap_is_not_read() -> None:
    small = HttpConfig(max_response_bytes=1000)
    declared, _ = answers(httpx.Response(200, content=bytes(1001)))

    def bomb(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, content=gzip.compress(bytes(100_000)))

    for handler in (declared, bomb):
        with pytest.raises(OutputTooLargeError) as caught:
            await client(handler, config=small).request("GET", f"{API}/x")
        assert caught.value.code == "output_too_large"
    with pytest.raises(OutputTooLargeError):
        await client(declared).request("GET", f"{API}/x", max_bytes=500)


async def test_allowance_of_requests_ends_the_operation() -> None:
    handler, seen = answers(httpx.Response(500))
    budget = CallBudget(max_wait_s=60, max_requests=2)

    with pytest.raises(RateLimitedError):
        await client(handler).request("GET", f"{API}/x", budget=budget)

    assert (len(seen), budget.requests) == (2, 2)


async def test_hop_rule_sees_every_address_before_it_is_asked() -> None:
    handler, seen = answers(httpx.Response(302, headers={"location": "https://other.example/"}), httpx.Response(200))

    def rule(url: str) -> None:
        if "other" in url:
            raise NetworkError("not there")

    with pytest.raises(NetworkError):
        await client(handler).request("GET", f"{API}/x", hop_rule=rule)

    assert len(seen) == 1


async def test_slowing_down_halves_parallel_requests_for_a_while() -> None:
    handler, _ = answers(httpx.Response(200))
    clock = StillClock()
    http_client = client(handler, clock=clock)
    origin = ("https", "api.example", 443)

    allowed = [http_client._limiter(origin).total_tokens]
    for _ in range(4):
        http_client.slow_down(f"{API}/x")
        allowed.append(http_client._limiter(origin).total_tokens)
    clock.time_s += 601
    allowed.append(http_client._limiter(origin).total_tokens)

    assert allowed == [6, 3, 1, 1, 1, 6]


async def test_no_more_than_the_configured_requests_run_at_once() -> None:
    import anyio

    running = peak = 0

    class Slow(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            running -= 1
            return httpx.Response(200)

    http_client = HttpClient(HttpConfig(concurrency=3), transport=Slow())
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(http_client.request, "GET", f"{API}/x")

    assert peak == 3


async def test_address_of_a_repository_file_must_be_public_and_https() -> None:
    handler, seen = answers(httpx.Response(200))

    for url in ("http://npm.registry.example/x", "https://127.0.0.1/x", "https://metadata.internal/x"):
        with pytest.raises(NetworkError) as caught:
            await client(handler).request("GET", url, public_only=True)
        assert caught.value.details["kind"] == "blocked-address"
    assert (await client(handler).request("GET", "https://npm.registry.example/x", public_only=True)).status == 200

    assert len(seen) == 1


async def test_name_that_resolves_to_this_machine_is_blocked_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import socket

    real = socket.getaddrinfo

    def resolve(host: str | bytes | None, port: object, *args: object, **kwargs: object) -> object:
        local = "127.0.0.1" if host in ("npm.registry.example", b"npm.registry.example") else host
        return real(local, port, *args, **kwargs)  # type: ignore[arg-type]  # the caller's own arguments

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with ScriptedServer(lambda _seen: http(200)) as server:
        async with HttpClient(HttpConfig(trust_env=False)) as http_client:
            with pytest.raises(NetworkError) as caught:
                await http_client.request("GET", f"https://npm.registry.example:{server.port}/x", public_only=True)

    assert caught.value.details == {"host": "npm.registry.example", "kind": "blocked-address"}
    assert server.seen == []


async def test_real_connection_reads_gzip_and_sends_a_body() -> None:
    def answer(seen: Seen) -> bytes:
        return http(200, gzip.compress(seen.body.upper()), content_encoding="gzip", x_method=seen.method)

    with ScriptedServer(answer) as server:
        async with HttpClient(HttpConfig(trust_env=False)) as http_client:
            response = await http_client.request("POST", f"{server.url}/x?a=%3D", content=b"hello")

    assert (response.content, response.headers["x-method"]) == (b"HELLO", "POST")
    assert server.seen[0].target == "/x?a=%3D"


async def test_cut_body_is_asked_for_again() -> None:
    def answer(_seen: Seen) -> bytes:
        return b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf" if len(server.seen) < 3 else http(200, b"whole")

    with ScriptedServer(answer) as server:
        async with HttpClient(HttpConfig(trust_env=False), clock=StillClock()) as http_client:
            response = await http_client.request("GET", f"{server.url}/x")

    assert (response.content, len(server.seen)) == (b"whole", 3)


async def test_connection_that_drops_a_post_is_not_repeated() -> None:
    with ScriptedServer(lambda _seen: None) as server:
        async with HttpClient(HttpConfig(trust_env=False), clock=StillClock()) as http_client:
            with pytest.raises(NetworkError) as caught:
                await http_client.request("POST", f"{server.url}/x", content=b"{}")

    assert caught.value.details["kind"] == "cut"
    assert len(server.seen) == 1


async def test_server_that_says_nothing_is_a_timeout() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = HttpConfig(trust_env=False, read_timeout_s=0.05, tries=1)
        async with HttpClient(config) as http_client:
            with pytest.raises(NetworkError) as caught:
                await http_client.request("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/")

    assert caught.value.details == {"host": "127.0.0.1", "kind": "timeout"}


async def test_answer_that_never_ends_is_a_timeout() -> None:
    import socket
    import threading

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while not done.wait(0.01):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        async with HttpClient(HttpConfig(trust_env=False, total_timeout_s=0.2, tries=1)) as http_client:
            with pytest.raises(NetworkError) as caught:
                await http_client.request("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/")
        done.set()
        thread.join()

    assert caught.value.details["kind"] == "timeout"


async def test_refused_connection_and_unknown_name_are_told_apart() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    kinds = []
    async with HttpClient(HttpConfig(trust_env=False), clock=StillClock()) as http_client:
        for url in (f"http://127.0.0.1:{closed}/", "http://no-such-host.invalid/"):
            with pytest.raises(NetworkError) as caught:
                await http_client.request("GET", url)
            kinds.append(caught.value.details["kind"])

    assert kinds == ["refused", "dns"]


async def test_private_ca_is_trusted_when_it_is_named(tmp_path: Path) -> None:
    ca = private_ca(tmp_path)
    with ScriptedServer(lambda _seen: http(200, b"ok"), tls=ca.server) as server:
        async with HttpClient(HttpConfig(trust_env=False), clock=StillClock()) as http_client:
            with pytest.raises(NetworkError) as caught:
                await http_client.request("GET", f"{server.url}/")
        async with HttpClient(HttpConfig(trust_env=False, ca_bundle=str(ca.ca_file))) as http_client:
            response = await http_client.request("GET", f"{server.url}/")

    assert (caught.value.details["kind"], caught.value.retryable) == ("tls", False)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert response.content == b"ok"


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_unusable_ca_bundle_is_a_configuration_error(tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_text(content)

    with pytest.raises(ConfigurationError) as caught:
        await HttpClient(HttpConfig(ca_bundle=str(bundle))).request("GET", f"{API}/x")

    assert str(tmp_path) not in str(caught.value.to_dict())


@pytest.mark.parametrize("address", ["socks5://u:hunter2@proxy.example:1", "gopher://u:hunter2@proxy.example"])
async def test_unusable_proxy_of_the_environment_is_a_configuration_error(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)

    with pytest.raises(ConfigurationError) as caught:
        await HttpClient(HttpConfig()).request("GET", f"{API}/x")

    assert caught.value.message == "the proxy that the environment names cannot be used"
    assert "hunter2" not in str(caught.value.to_dict())


async def test_folder_of_certificates_is_a_ca_bundle(tmp_path: Path) -> None:
    ca = private_ca(tmp_path)
    with ScriptedServer(lambda _seen: http(200, b"ok"), tls=ca.server) as server:
        config = HttpConfig(trust_env=False, ca_bundle=str(hashed_folder(ca.ca_file)))
        async with HttpClient(config) as http_client:
            response = await http_client.request("GET", f"{server.url}/")

    assert response.content == b"ok"


async def test_proxy_of_the_environment_is_used_but_not_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = private_ca(tmp_path, "ghes.example")
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedServer(lambda _seen: http(200, b"ok"), tls=ca.server) as server, ConnectProxy(server.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with HttpClient(HttpConfig(ca_bundle=str(ca.ca_file))) as http_client:
            through = await http_client.request("GET", "https://ghes.example/api", auth=Credential.bearer(TOKEN, API))
            direct = await http_client.request("GET", f"{server.url}/")

    assert (through.content, direct.content) == (b"ok", b"ok")
    assert proxy.tunnels == ["ghes.example:443"]
    assert TOKEN not in proxy.heard


async def test_given_proxy_is_used_instead_of_the_environment(tmp_path: Path) -> None:
    ca = private_ca(tmp_path, "ghes.example")
    with ScriptedServer(lambda _seen: http(200, b"ok"), tls=ca.server) as server, ConnectProxy(server.port) as proxy:
        config = HttpConfig(ca_bundle=str(ca.ca_file), proxy=proxy.url, trust_env=False)
        async with HttpClient(config) as http_client:
            response = await http_client.request("GET", "https://ghes.example/", public_only=True)

    assert (response.content, proxy.tunnels) == (b"ok", ["ghes.example:443"])
    assert repr(config.proxy) not in repr(config)


async def test_token_appears_in_no_log_record(caplog: pytest.LogCaptureFixture) -> None:
    handler, _ = answers(httpx.Response(502), httpx.ReadError("gone"), httpx.Response(200))
    caplog.set_level(logging.DEBUG)

    await client(handler).request("GET", f"{API}/x", auth=Credential.bearer(TOKEN, API))

    assert "an answer" in caplog.text
    assert TOKEN not in caplog.text
    assert TOKEN not in json.dumps([str(record.__dict__) for record in caplog.records])


def test_importing_the_edge_does_not_load_httpx() -> None:
    code = "import sys, dependfix_core.http; print('httpx' in sys.modules)"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "False"
