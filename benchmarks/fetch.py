"""What fetching and normalising 10,000 alerts costs, as a multiple of downloading and parsing the same pages.

usage: python benchmarks/fetch.py [COUNT]

CPU time is this process's own; the pages come compressed from another process
on the loopback device. Memory is the peak above a process that has loaded the
server and waits.
"""

import asyncio
import gc
import gzip
import json
import re
import socket
import socketserver
import statistics
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from time import process_time
from typing import Any

CPU_BUDGET = 2.0
MEMORY_BUDGET_MIB = 120.0
PAGE = 100
ROUNDS = 5
DATA = Path(__file__).parents[1] / "tests" / "data" / "alerts"
PATH = "/repos/octo-org/octo-shop/dependabot/alerts"


# --- the service: its own process, every page ready and compressed ---------------


def pages(count: int) -> list[bytes]:
    templates: list[dict[str, Any]] = []
    for file in sorted(DATA.glob("octo-*.page*.json")):
        templates += json.loads(file.read_bytes())
    text = " ".join(f"Paragraph {n} of a description as long as advisories have them." for n in range(24))
    made: list[bytes] = []
    for start in range(0, count, PAGE):
        alerts = []
        for number in range(start + 1, min(start + PAGE, count) + 1):
            alert = json.loads(json.dumps(templates[number % len(templates)]))
            alert["number"] = number
            alert["state"] = "open"
            alert["security_advisory"]["description"] = f"{text} {number}"
            alerts.append(alert)
        made.append(json.dumps(alerts, separators=(",", ":")).encode())
    return made


def serve(count: int) -> None:
    plain = pages(count)
    ready = [gzip.compress(page, 6) for page in plain]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            found = re.search(r"after=(\d+)", self.path)
            number = int(found[1]) if found else 0
            body = ready[number]
            host = f"http://127.0.0.1:{port}"
            link = f'link: <{host}{PATH}?after={number + 1}>; rel="next"\r\n' if number + 1 < len(ready) else ""
            head = (
                f"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-encoding: gzip\r\n"
                f'content-length: {len(body)}\r\netag: W/"{number}"\r\nx-github-request-id: 1\r\n'
                f"x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 4000\r\nx-ratelimit-reset: 4102444800\r\n{link}\r\n"
            )
            self.wfile.write(head.encode() + body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's signature
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        port = server.server_address[1]
        print(port, round(sum(map(len, plain)) / len(plain)), round(sum(map(len, ready)) / len(ready)), flush=True)
        server.serve_forever()


# --- the two ways to read it -----------------------------------------------------


async def download_and_parse(base: str) -> int:
    import httpx

    found = 0
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        url: str | None = f"{base}{PATH}"
        while url is not None:
            response = await client.get(url)
            found += len(json.loads(response.content))
            url = response.links.get("next", {}).get("url")
    return found


async def fetch_and_normalise(base: str) -> Any:
    from dependfix_core.github import GitHubReader, StaticToken
    from dependfix_core.http import HttpClient, HttpConfig, MemoryCache

    http = HttpClient(HttpConfig(trust_env=False), cache=MemoryCache())
    async with GitHubReader(http, tokens=StaticToken.of("ghp_benchmark"), api_url=base) as reader:
        return await reader.list_alerts("octo-org/octo-shop")


def cpu(base: str, count: int) -> float:
    base_s: list[float] = []
    ours_s: list[float] = []
    for number in range(ROUNDS + 1):
        gc.collect()
        if number == 1:
            # As the server does once everything is loaded.
            gc.freeze()
        start = process_time()
        assert asyncio.run(download_and_parse(base)) == count
        middle = process_time()
        base_s.append(middle - start)
        gc.collect()
        middle = process_time()
        listing = asyncio.run(fetch_and_normalise(base))
        ours_s.append(process_time() - middle)
        assert len(listing.alerts) == count
        assert listing.complete
        del listing
    # The first round loads the libraries.
    down, ours = statistics.median(base_s[1:]), statistics.median(ours_s[1:])
    print(f"download and json.loads   {down:6.2f} s CPU")
    print(f"fetch and normalise       {ours:6.2f} s CPU")
    return ours / down


# --- memory ----------------------------------------------------------------------


def resident_mib(field: str) -> float:
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def measure_memory(base: str) -> None:
    import dependfix_mcp.server  # noqa: F401  # what an idle server has loaded

    idle = resident_mib("VmRSS")
    listing = asyncio.run(fetch_and_normalise(base))
    print(json.dumps({"idle": idle, "peak": resident_mib("VmHWM"), "alerts": len(listing.alerts)}))


def main(count: int) -> int:
    me = [sys.executable, str(Path(__file__).resolve())]
    with subprocess.Popen([*me, "--serve", str(count)], stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            port, plain, packed = service.stdout.readline().split()
            base = f"http://127.0.0.1:{port}"
            with socket.create_connection(("127.0.0.1", int(port))):
                pass
            print(f"{count} alerts, pages of {int(plain) / 1000:.0f} kB ({int(packed) / 1000:.0f} kB compressed)")
            ratio = cpu(base, count)
            print(f"ratio                     {ratio:6.2f} (budget {CPU_BUDGET:g})")
            fine = ratio <= CPU_BUDGET
            if sys.platform == "linux":
                shown = subprocess.run([*me, "--memory", base], stdout=subprocess.PIPE, text=True, check=True).stdout
                memory = json.loads(shown)
                more = memory["peak"] - memory["idle"]
                print(
                    f"memory above idle         {more:6.1f} MiB (budget {MEMORY_BUDGET_MIB:g}), idle {memory['idle']:.1f}"
                )
                fine = fine and more <= MEMORY_BUDGET_MIB and memory["alerts"] == count
        finally:
            service.terminate()
    return 0 if fine else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", number]:
            serve(int(number))
        case ["--memory", address]:
            measure_memory(address)
        case arguments:
            sys.exit(main(int(arguments[0]) if arguments else 10_000))
