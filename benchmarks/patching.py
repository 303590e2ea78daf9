"""How long patching a lockfile of 5,000 packages takes, as a multiple of parsing and dumping it as JSON.

usage: python benchmarks/patching.py [COUNT]

Bytes, plan and records in memory, bytes out, with the legality of the touched
edges and the flags of the whole tree. The budget is 5 for npm's JSON; pnpm and
yarn are shown against the same base. Reading the unit is not counted: the plan
was made on it.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from npm_locks import integrity, npm_lock, npm_manifest, pnpm_lock, yarn_lock
from reading import seconds, units

from dependfix_core.ecosystems.npm.write import write
from dependfix_core.metadata.npm import read_package_document
from dependfix_core.model.files import ChangeSet, FileContent
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Move, Remediation
from dependfix_core.model.records import PackageRecord, Record, RecordKey, ReleaseRecord, Unavailability, Unavailable
from dependfix_core.model.steps import Supplies

BUDGET = 5.0
MOVED = 12


def releases(unit: LockUnit) -> dict[tuple[str, str], dict[str, Any]]:
    """A patch release of every moved package that asks for what the locked one asks."""
    found = {}
    for instance in list(unit.instances.values())[:: max(1, len(unit.instances) // MOVED)][:MOVED]:
        version = instance.version.rpartition(".")[0] + ".99"
        found[instance.name, version] = {
            "name": instance.name,
            "version": version,
            "dependencies": {edge.name: "^1.0.0" for edge in instance.edges if not edge.kind.value.startswith("peer")},
            "peerDependencies": {edge.name: ">=1" for edge in instance.edges if edge.kind.value.startswith("peer")},
            "engines": {"node": ">=10"},
            "license": "MIT",
            "dist": {"integrity": integrity(instance.name + version), "shasum": "0" * 40},
        }
    return found


def remediation(unit: LockUnit, wanted: dict[tuple[str, str], dict[str, Any]]) -> Remediation:
    targets = dict(wanted)
    moves = tuple(
        Move(
            where=instance.where,
            package_name=instance.name,
            from_version=instance.version,
            to_version=version,
            strategy="lock-in-range",
        )
        for instance in unit.instances.values()
        for name, version in targets
        if name == instance.name
    )
    return Remediation(unit=unit.unit, ecosystem="npm", package_name="several", strategy="mixed", moves=moves)


def records_of(wanted: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], Record]:
    found: dict[tuple[str, str], Record] = {}
    for (name, version), entry in wanted.items():
        key = RecordKey(ecosystem="npm", name=name, version=version)
        package = read_package_document(key, json.dumps({"name": name, "versions": {version: entry}}).encode())
        assert isinstance(package, PackageRecord)
        found[name, version] = ReleaseRecord(key=key, release=package.releases[version])
    return found


def written(unit: LockUnit, plan: Remediation, files: dict[str, bytes], records: dict[tuple[str, str], Record]) -> Any:
    step = write(unit, [plan])
    needs = next(step)
    while True:
        try:
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


def main(count: int) -> int:
    lock = npm_lock(count)
    base = seconds(lambda: json.dumps(json.loads(lock), indent=2), 3)
    print(f"{count} packages, {len(lock) / 1e6:.1f} MB, json.loads and json.dumps {base * 1000:.0f} ms")
    ratio = patching("package-lock.json", lock, npm_manifest(count - count // 9)) / base
    print(f"package-lock.json  {ratio:5.2f} (budget {BUDGET})")
    for name, content in (("pnpm-lock.yaml", pnpm_lock(count)), ("yarn.lock", yarn_lock(count))):
        print(f"{name:18} {patching(name, content, npm_manifest(count)) / base:5.2f}")
    return 0 if ratio <= BUDGET else 1


def patching(name: str, content: bytes, manifest: bytes) -> float:
    """Seconds for one lockfile."""
    files = {"package.json": manifest, name: content}
    (unit,) = units(files, name)
    wanted = releases(unit)
    plan, records = remediation(unit, wanted), records_of(wanted)
    changes = written(unit, plan, files, records)
    assert isinstance(changes, ChangeSet), changes
    return seconds(lambda: written(unit, plan, files, records), 3)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
