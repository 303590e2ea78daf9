"""How the time of planning grows with the alerts: 10,000 in 500 manifests against a tenth of it.

usage: python benchmarks/planning.py [ALERTS]

Lockfiles are parsed and records are in memory before the clock starts. Ten
times the alerts may take at most 12 times the time.
"""

import gc
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import process_time
from typing import Any

from dependfix_core.ecosystems.base import Ecosystems, Graph, PlannableEcosystem
from dependfix_core.ecosystems.npm.ecosystem import NpmEcosystem
from dependfix_core.model.alert import Alert, Severity
from dependfix_core.model.files import FileContent, Listing, TreeEntry
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseDependency, ReleaseRecord
from dependfix_core.model.steps import Step, Supplies
from dependfix_core.pipeline.plan import plan_repository

LIMIT = 12.0
ALERTS_A_MANIFEST = 20
PACKAGES = 300
LOCKED = 150
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def name_of(index: int) -> str:
    return f"package-{index}"


def needs_of(index: int, minor: int) -> dict[str, str]:
    """Three packages further down; every seventh package pins one of them until its minor 5."""
    below = [index + 1 + (index * step) % 9 for step in (1, 2, 3)]
    needs = {name_of(other): "^1.0.0" for other in below if other < PACKAGES}
    if index % 7 == 0 and minor < 5 and below[0] < PACKAGES:
        needs[name_of(below[0])] = "1.2.0"
    return needs


def records() -> dict[RecordKey, Record]:
    found: dict[RecordKey, Record] = {}
    for index in range(PACKAGES):
        name = name_of(index)
        releases = {}
        for minor in range(20):
            version = f"1.{minor}.0"
            dependencies = tuple(
                ReleaseDependency(name=other, requirement=text) for other, text in needs_of(index, minor).items()
            )
            releases[version] = Release(
                name=name, version=version, dependencies=dependencies, integrity=f"sha512-{name}-{version}"
            )
            key = RecordKey(ecosystem="npm", name=name, version=version)
            found[key] = ReleaseRecord(key=key, release=releases[version])
        key = RecordKey(ecosystem="npm", name=name)
        found[key] = PackageRecord(key=key, releases=releases)
    return found


def project(number: int) -> dict[str, bytes]:
    """A manifest and its lock of 150 packages, a different slice of the registry for each number."""
    first = (number * 17) % (PACKAGES - LOCKED)
    inside = range(first, first + LOCKED)
    declared = {name_of(index): "^1.0.0" for index in inside}
    entries: dict[str, Any] = {"": {"name": "app", "version": "1.0.0", "dependencies": declared}}
    for index in range(first, PACKAGES):
        entries[f"node_modules/{name_of(index)}"] = {
            "version": "1.2.0",
            "integrity": f"sha512-{name_of(index)}",
            "dependencies": needs_of(index, 2),
        }
    folder = f"projects/{number}"
    return {
        f"{folder}/package.json": json.dumps({"name": "app", "version": "1.0.0", "dependencies": declared}).encode(),
        f"{folder}/package-lock.json": json.dumps({"lockfileVersion": 3, "packages": entries}).encode(),
    }


class Parsed:
    """The npm ecosystem with units that were read before."""

    def __init__(self, units: Sequence[LockUnit]) -> None:
        self._units = tuple(units)
        self._npm = NpmEcosystem()

    @property
    def ids(self) -> tuple[str, ...]:
        return self._npm.ids

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        del listing, manifest_paths
        yield from ()
        return self._units

    def graph(self, unit: LockUnit) -> Graph:
        return self._npm.graph(unit)


def run(step: Step[Any], files: Mapping[str, bytes], known: Mapping[RecordKey, Record]) -> Any:
    try:
        needs = next(step)
        while True:
            read = {path: FileContent(path=path, content=files[path]) for path in needs.files}
            needs = step.send(Supplies(files=read, records=known))
    except StopIteration as stop:
        return stop.value


def measure(alerts: int, known: Mapping[RecordKey, Record]) -> tuple[float, Plan]:
    manifests = max(alerts // ALERTS_A_MANIFEST, 1)
    files = {path: content for number in range(manifests) for path, content in project(number).items()}
    listing = Listing(entries={path: TreeEntry(path=path) for path in files})
    locks = [path for path in files if path.endswith("package-lock.json")]
    units = run(NpmEcosystem().read_units(listing, locks), files, {})
    for unit in units:
        for instance in unit.instances.values():
            list(instance.edges)
    made = [
        Alert(
            repository="acme/many",
            number=number + 1,
            severity=Severity.HIGH,
            ecosystem="npm",
            package_name=name_of(160 + (number * 13) % (PACKAGES - 160)),
            manifest_path=locks[number % manifests],
            ghsa_id=f"GHSA-{number % 700:04d}",
            vulnerable_range=f"< 1.{3 + number % 5}.0",
            first_patched_version=f"1.{3 + number % 5}.0",
        )
        for number in range(alerts)
    ]
    ecosystems: Ecosystems[PlannableEcosystem] = Ecosystems(members=(Parsed(units),))
    gc.collect()
    start = process_time()
    step = plan_repository(made, listing, ScanPolicy(), ecosystems, repository="acme/many", now=NOW)
    plan: Plan = run(step, files, known)
    taken = process_time() - start
    assert len(plan.outcomes) == alerts
    return taken, plan


def main(alerts: int) -> int:
    known = records()
    measure(ALERTS_A_MANIFEST * 5, known)
    few, _ = measure(alerts // 10, known)
    many, plan = measure(alerts, known)
    kinds: dict[str, int] = {}
    for one in plan.remediations:
        kinds[one.strategy] = kinds.get(one.strategy, 0) + 1
    print(f"{alerts // 10} alerts {few:.2f} s, {alerts} alerts {many:.2f} s ({kinds})")
    print(f"ten times the alerts take {many / few:.1f} times the time (budget {LIMIT})")
    return 0 if many / few <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
