"""CPU of patching a poetry.lock and a uv.lock of 1,000 packages in-process, and of the tools doing the same, in one run.

usage: python benchmarks/patching_python_beside_tools.py [COUNT]

Each moves one transitive package to a new patch release, warm, from the same
loopback index, in a lock that the tool itself has made: the tool by its own
relock of that package, we by reading the unit, fetching the records and
writing the lock. The budgets: 10 times less CPU than poetry, less than uv;
and writing a uv.lock, its unit read, at most 3 times as long as parsing it.
The tools are those of the tests (`python tests/tools/bring.py uv poetry`).
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import tomllib
import urllib.request
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from ratio import ratio

from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.metadata.pip import read_core_metadata, read_simple_json
from dependfix_core.model.files import ChangeSet, FileContent, Listing, TreeEntry
from dependfix_core.model.plan import Move, Remediation
from dependfix_core.model.records import Record, RecordKey, Release, ReleaseRecord, Unavailability, Unavailable
from dependfix_core.model.steps import Step, Supplies
from tools.bring import command_of, tools_folder

POETRY_BUDGET = 10.0
UV_BUDGET = 1.0
PARSING_BUDGET = 3.0
ROUNDS = 3
MOVED = 33
PLATFORMS = (
    "manylinux_2_17_x86_64",
    "manylinux_2_17_aarch64",
    "musllinux_1_2_x86_64",
    "macosx_11_0_arm64",
    "win_amd64",
)
PYTHONS = ("cp310", "cp311", "cp312", "cp313")
ECOSYSTEM = PythonEcosystem()


def locked_version(index: int) -> str:
    return f"1.{index % 30}.{index % 7}"


TARGET = f"1.{MOVED % 30}.99"


def metadata(index: int, version: str, count: int) -> bytes:
    wanted = sorted({2 * index + 1, 2 * index + 2, (7 * index + 13) % count})
    lines = ["Metadata-Version: 2.1", f"Name: package-{index}", f"Version: {version}", "Summary: One of many"]
    lines += ["Requires-Python: >=3.8"]
    lines += [f"Requires-Dist: package-{other}>=1.0,<2" for other in wanted if index < other < count]
    return ("\n".join(lines) + "\n").encode()


def files_of(index: int, version: str) -> list[str]:
    stem = f"package_{index}-{version}"
    binary = [f"{stem}-{python}-{python}-{platform}.whl" for python in PYTHONS for platform in PLATFORMS]
    return [*(binary if index % 5 == 0 else [f"{stem}-py3-none-any.whl"]), f"{stem}.tar.gz"]


class Index:
    """The made-up packages over HTTP; `now` shows the new release."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.now = False
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_port}"

    def page(self, index: int) -> bytes:
        versions = [locked_version(index), *([TARGET] if self.now and index == MOVED else [])]
        files = [
            {
                "filename": name,
                "url": f"{self.base}/files/{name}",
                "hashes": {"sha256": sha256(name.encode()).hexdigest()},
                "size": 1000 + len(name),
                "upload-time": "2025-01-01T00:00:00.000000Z",
                "requires-python": ">=3.8",
                "yanked": False,
                **({"core-metadata": self.digest(index, version)} if name.endswith(".whl") else {}),
            }
            for version in versions
            for name in files_of(index, version)
        ]
        about = {"meta": {"api-version": "1.1"}, "name": f"package-{index}", "versions": versions, "files": files}
        return json.dumps(about).encode()

    def digest(self, index: int, version: str) -> dict[str, str]:
        return {"sha256": sha256(metadata(index, version, self.count)).hexdigest()}

    def metadata_of(self, filename: str) -> bytes:
        name, version = filename.split("-")[:2]
        return metadata(int(name.rpartition("_")[2]), version, self.count)


def _handler(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = self.path.strip("/").split("/")
            kind = "application/octet-stream"
            if parts[0] == "simple":
                body, kind = index.page(int(parts[1].rpartition("-")[2])), "application/vnd.pypi.simple.v1+json"
            else:
                body = index.metadata_of(parts[1])
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


def manifest(tool: str, index: Index) -> str:
    roots = [f"package-{number}" for number in range(0, index.count, 20)]
    if tool == "uv":
        listed = ", ".join(f'"{name}>=1.0"' for name in roots)
        return (
            f'[project]\nname = "bench"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = [{listed}]\n\n'
            f'[[tool.uv.index]]\nname = "made-up"\nurl = "{index.base}/simple"\ndefault = true\n'
        )
    listed = "".join(f'{name} = ">=1.0"\n' for name in roots)
    return (
        '[tool.poetry]\nname = "bench"\nversion = "1"\ndescription = ""\nauthors = []\npackage-mode = false\n\n'
        f'[tool.poetry.dependencies]\npython = ">=3.10"\n{listed}\n'
        f'[[tool.poetry.source]]\nname = "made-up"\nurl = "{index.base}/simple"\n'
    )


def by_tool(tool: str, files: dict[str, bytes], arguments: list[str], home: Path, rounds: int) -> tuple[float, bytes]:
    """CPU seconds of the tool and the lock that it wrote."""
    command = command_of(tool, tools_folder())
    assert command is not None, f"{tool} is not brought"
    best, lock = float("inf"), b""
    for _ in range(rounds):
        top = home / f"{tool}-project"
        top.mkdir(exist_ok=True)
        for name, content in files.items():
            (top / name).write_bytes(content)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, *arguments],
            cwd=top,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "UV_PYTHON_DOWNLOADS": "never"},
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        lock = (top / f"{tool}.lock").read_bytes()
    return best, lock


def driven(step: Step[Any], files: dict[str, bytes], records: dict[tuple[str, str], Record]) -> Any:
    try:
        needs = next(step)
        while True:
            needs = step.send(
                Supplies(
                    files={name: FileContent(path=name, content=files[name]) for name in needs.files},
                    records={
                        key: records.get((key.name, key.version), Unavailable(key=key, why=Unavailability.NOT_FOUND))
                        for key in needs.records
                    },
                )
            )
    except StopIteration as stop:
        return stop.value


def fetched(index: Index) -> dict[tuple[str, str], Record]:
    """The list of releases, and what the old and the new one need."""
    name = f"package-{MOVED}"
    key = RecordKey(ecosystem="pip", name=name)
    with urllib.request.urlopen(f"{index.base}/simple/{name}") as answer:
        package = read_simple_json(key, answer.read(), url=answer.url)
    records: dict[tuple[str, str], Record] = {(name, ""): package}
    for version in (locked_version(MOVED), TARGET):
        listed = package.releases[version]
        with urllib.request.urlopen(f"{listed.files[0].url}.metadata") as answer:
            about = read_core_metadata(answer.read())
        release = Release(
            name=name,
            version=version,
            dependencies=about.dependencies,
            files=listed.files,
            requires_runtime=listed.requires_runtime,
            extra={"summary": about.summary},
        )
        release_key = RecordKey(ecosystem="pip", name=name, version=version)
        records[name, version] = ReleaseRecord(key=release_key, release=release)
    return records


def unit_of(files: dict[str, bytes], lock: str) -> Any:
    listing = Listing(entries={name: TreeEntry(path=name) for name in files})
    (unit,) = driven(ECOSYSTEM.read_units(listing, [lock]), files, {})
    return unit


def written(unit: Any, files: dict[str, bytes], records: dict[tuple[str, str], Record]) -> bytes:
    where = f"package[package-{MOVED} {locked_version(MOVED)}]"
    move = Move(
        where=where,
        package_name=f"package-{MOVED}",
        from_version=locked_version(MOVED),
        to_version=TARGET,
        strategy="lock-in-range",
    )
    plan = Remediation(
        unit=unit.unit, ecosystem="pip", package_name=f"package-{MOVED}", strategy="lock-in-range", moves=(move,)
    )
    changes = driven(ECOSYSTEM.write(unit, [plan]), files, records)
    assert isinstance(changes, ChangeSet), changes
    (change,) = changes.changes
    return change.after or b""


def in_process(files: dict[str, bytes], lock: str, index: Index) -> tuple[float, bytes]:
    """CPU seconds from bytes to bytes, reading the unit and fetching the records included."""
    best, after = float("inf"), b""
    for _ in range(ROUNDS * 2):
        start = process_time()
        after = written(unit_of(files, lock), files, fetched(index))
        best = min(best, process_time() - start)
    return best, after


def writing(files: dict[str, bytes], records: dict[tuple[str, str], Record]) -> float:
    """How many times as long as parsing a uv.lock it takes to write it, its unit read."""
    unit, text = unit_of(files, "uv.lock"), files["uv.lock"].decode()
    found = 1 / ratio(lambda: tomllib.loads(text), lambda: written(unit, files, records))
    reading = 1 / ratio(lambda: tomllib.loads(text), lambda: unit_of(files, "uv.lock"))
    print(f"writing uv.lock / parsing it {found:5.2f} (budget {PARSING_BUDGET}); reading it {reading:.2f}")
    return found


def main(count: int) -> int:
    index = Index(count)
    held = True
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for tool, relock, budget in (
            ("poetry", ["update", "--lock", f"package-{MOVED}"], POETRY_BUDGET),
            ("uv", ["lock", "--upgrade-package", f"package-{MOVED}"], UV_BUDGET),
        ):
            index.now = False
            start = {"pyproject.toml": manifest(tool, index).encode()}
            _, lock = by_tool(tool, start, ["lock"], home, 1)
            index.now = True
            files = {**start, f"{tool}.lock": lock}
            ours, our_lock = in_process(files, f"{tool}.lock", index)
            theirs, their_lock = by_tool(tool, files, relock, home, ROUNDS)
            entries = len(tomllib.loads(lock.decode())["package"])
            print(f"{tool}.lock, {entries} packages, {len(lock) / 1e6:.1f} MB:", end=" ")
            print(f"{tool} {theirs:.2f} s CPU, in-process {ours * 1000:.0f} ms")
            same = our_lock == their_lock
            print(f"{tool} / in-process {theirs / ours:5.1f} (budget {budget}), same bytes: {same}")
            held = held and theirs / ours >= budget and same
            if tool == "uv":
                held = writing(files, fetched(index)) <= PARSING_BUDGET and held
    index.server.shutdown()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
