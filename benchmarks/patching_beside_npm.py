"""CPU of patching a lockfile of 5,000 packages in-process, and of npm doing the same, in one run.

usage: python benchmarks/patching_beside_npm.py [COUNT]

Both move one declared package to a new patch release, warm, from the same
loopback registry: npm by its own lock-only install after the manifest was
edited, we by fetching the record, planning nothing and writing manifest and
lock. The budget is 20 times less CPU than npm. Needs npm on PATH.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import process_time
from typing import Any
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parent))
from npm_locks import entry, integrity, name_of, npm_lock, npm_manifest
from patching import written
from reading import units

from dependfix_core.metadata.npm import read_package_document
from dependfix_core.model.files import ChangeSet
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.model.records import Record, RecordKey, ReleaseRecord

BUDGET = 20.0
ROUNDS = 3
MOVED = 20
TARGET = "1.29.99"


def documents(count: int) -> dict[str, bytes]:
    """Package documents with the locked version and, of the one that moves, a newer one."""
    found = {}
    for index in range(count):
        name, locked = name_of(index), f"1.{index % 30}.{index % 7}"
        versions: dict[str, Any] = {}
        for version in (locked, TARGET) if index == MOVED else (locked,):
            about = entry(index, version, count)
            versions[version] = {
                key: value for key, value in about.items() if key not in ("resolved", "integrity", "dev")
            } | {
                "name": name,
                "dist": {
                    "integrity": integrity(f"{name}@{version}"),
                    "shasum": "0" * 40,
                    "tarball": f"https://npm.registry.example/{name}/-/{name.rpartition('/')[2]}-{version}.tgz",
                },
            }
        latest = list(versions)[-1]
        found[name] = json.dumps({"name": name, "dist-tags": {"latest": latest}, "versions": versions}).encode()
    return found


def serving(packages: dict[str, bytes]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = packages.get(unquote(self.path.partition("?")[0])[1:])
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"{}")))
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def by_npm(files: dict[str, bytes], url: str, home: Path) -> tuple[float, bytes]:
    """CPU seconds of the tool and the lock that it wrote."""
    best, lock = float("inf"), b""
    for _ in range(ROUNDS):
        top = home / "project"
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir()
        for name, content in files.items():
            (top / name).write_bytes(content)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--registry", url],
            cwd=top,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "npm_config_userconfig": str(home / "none")},
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        lock = (top / "package-lock.json").read_bytes()
    return best, lock


def in_process(files: dict[str, bytes], url: str, edit: Edit) -> tuple[float, bytes]:
    """CPU seconds from bytes to bytes, reading the unit and fetching the record included."""
    best, lock = float("inf"), b""
    name = name_of(MOVED)
    for _ in range(ROUNDS):
        start = process_time()
        (unit,) = units(files, "package-lock.json")
        where = f"node_modules/{name}"
        with urllib.request.urlopen(f"{url}{name}") as answer:
            package = read_package_document(RecordKey(ecosystem="npm", name=name), answer.read())
        move = Move(
            where=where,
            package_name=name,
            from_version=unit.instances[where].version,
            to_version=TARGET,
            strategy="manifest-bump",
        )
        plan = Remediation(
            unit=unit.unit,
            ecosystem="npm",
            package_name=name,
            strategy="manifest-bump",
            moves=(move,),
            edits=(edit,),
        )
        key = RecordKey(ecosystem="npm", name=name, version=TARGET)
        records: dict[tuple[str, str], Record] = {
            (name, TARGET): ReleaseRecord(key=key, release=package.releases[TARGET])
        }
        changes = written(unit, plan, files, records)
        best = min(best, process_time() - start)
        assert isinstance(changes, ChangeSet), changes
        lock = next(change.after for change in changes.changes if change.path == "package-lock.json") or b""
    return best, lock


def main(count: int) -> int:
    distinct = count - count // 9
    manifest, lock = npm_manifest(distinct), npm_lock(count)
    edit = Edit(path="package.json", at=f"dependencies.{name_of(MOVED)}", from_text="^1.0.0", to_text=f"^{TARGET}")
    server = serving(documents(distinct))
    url = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as home:
        start = {"package.json": manifest, "package-lock.json": lock}
        _, settled = by_npm(start, url, Path(home))
        files = {"package.json": manifest, "package-lock.json": settled}
        ours, our_lock = in_process(files, url, edit)
        raised = json.loads(manifest)
        raised["dependencies"][name_of(MOVED)] = f"^{TARGET}"
        edited = {"package.json": json.dumps(raised, indent=2).encode(), "package-lock.json": settled}
        theirs, their_lock = by_npm(edited, url, Path(home))
    server.shutdown()
    print(f"{count} packages: npm {theirs:.2f} s CPU, in-process {ours * 1000:.0f} ms")
    print(f"npm / in-process {theirs / ours:5.1f} (budget {BUDGET}), same bytes: {our_lock == their_lock}")
    return 0 if theirs / ours >= BUDGET and our_lock == their_lock else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
