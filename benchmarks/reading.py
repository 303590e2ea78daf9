"""How long reading a lockfile of 5,000 packages into instances takes, as a multiple of parsing it as JSON.

usage: python benchmarks/reading.py [COUNT]

The budget is 4 for npm's JSON. pnpm and yarn are shown against `json.loads` of
the npm lock of the same packages, and pnpm against the YAML parser as well.
"""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from npm_locks import npm_lock, npm_manifest, pnpm_lock, yarn_lock

from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.model.files import FileContent, Listing, TreeEntry
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.steps import Supplies

BUDGET = 4.0


def units(files: dict[str, bytes], path: str) -> tuple[LockUnit, ...]:
    step = read_units(Listing(entries={name: TreeEntry(path=name) for name in files}), [path])
    needs = next(step)
    while True:
        try:
            needs = step.send(
                Supplies(files={name: FileContent(path=name, content=files[name]) for name in needs.files})
            )
        except StopIteration as stop:
            found: tuple[LockUnit, ...] = stop.value
            return found


def seconds(work: Callable[[], Any], rounds: int = 7) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return best


def main(count: int) -> int:
    lock, manifest = npm_lock(count), npm_manifest(count - count // 9)
    base = seconds(lambda: json.loads(lock))
    print(f"{count} packages, {len(lock) / 1e6:.1f} MB, json.loads {base * 1000:.1f} ms")
    npm = {"package.json": manifest, "package-lock.json": lock}
    assert len(units(npm, "package-lock.json")[0].instances) == count
    ratio = seconds(lambda: units(npm, "package-lock.json")) / base
    print(f"npm instances                      {ratio:5.2f} (budget {BUDGET})")
    with_edges = seconds(lambda: [list(i.edges) for i in units(npm, "package-lock.json")[0].instances.values()]) / base
    print(f"npm instances and all their edges  {with_edges:5.2f}")
    manifest = npm_manifest(count)
    pnpm = {"package.json": manifest, "pnpm-lock.yaml": pnpm_lock(count)}
    assert len(units(pnpm, "pnpm-lock.yaml")[0].instances) == count
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    of_yaml = seconds(lambda: yaml.load(pnpm["pnpm-lock.yaml"], Loader=loader), 1)
    taken = seconds(lambda: units(pnpm, "pnpm-lock.yaml"))
    print(f"pnpm instances                     {taken / base:5.2f}, of the YAML parser alone {taken / of_yaml:.2f}")
    yarn = {"package.json": manifest, "yarn.lock": yarn_lock(count)}
    assert len(units(yarn, "yarn.lock")[0].instances) == count
    print(f"yarn 1 instances                   {seconds(lambda: units(yarn, 'yarn.lock')) / base:5.2f}")
    return 0 if ratio <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
