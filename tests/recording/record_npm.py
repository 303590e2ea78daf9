"""Records what the npm registry says of packages that plans of the harder projects ask about.

usage: PYTHONPATH=src:tests python tests/recording/record_npm.py [NAME ...]

Without names: plans and builds every harder JavaScript project, and records
what was asked and is not recorded yet, until nothing is missing. Packages are
read with the client of the machine's own npm. Kept is what a lock needs, with
addresses of a reserved host: of all versions from the lowest locked one to
the end of the major version after the highest, and of later ones the newest
of each major version.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from dependfix_core.ecosystems.registry import FIXABLE
from dependfix_core.metadata import RecordedMetadata
from dependfix_core.model.records import Record, RecordKey, Unavailable
from dependfix_core.pipeline.build import Builder
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.trees import MemoryTree, drive
from dependfix_core.versions import Version, scheme_for
from fakes import harder
from fakes.corpus_metadata import records_in

FOLDER = harder.HARDER / "metadata" / "npm"
KEPT = (
    "name",
    "version",
    "dependencies",
    "optionalDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "bundleDependencies",
    "bundledDependencies",
    "engines",
    "bin",
    "os",
    "cpu",
    "libc",
    "license",
    "funding",
    "deprecated",
    "hasInstallScript",
)
_CLIENT = """
const pacote = require(process.argv[1] + '/node_modules/pacote')
const options = JSON.parse(process.argv[3])
pacote.packument(process.argv[2], { fullMetadata: true, ...options }).then(
  (found) => process.stdout.write(JSON.stringify(found)),
  (error) => { process.stderr.write(String(error.code)); process.exit(1) },
)
"""


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def record(name: str, locked: Sequence[str]) -> bool:
    """Write what the registry says of one package; whether it knows it."""
    npm = f"{said('npm', 'root', '-g')}/npm"
    options = json.dumps({"registry": said("npm", "config", "get", "registry")})
    run = subprocess.run(["node", "-e", _CLIENT, npm, name, options], capture_output=True, text=True, check=False)
    if run.returncode:
        print(f"{name}: {run.stderr}")
        return False
    document = json.loads(run.stdout)
    wanted = chosen(document["versions"], locked)
    versions = {text: kept(entry) for text, entry in document["versions"].items() if text in wanted}
    times = {text: time for text, time in document.get("time", {}).items() if text in versions}
    trimmed = {"name": name, "dist-tags": {"latest": document["dist-tags"].get("latest", "")}, "versions": versions}
    if times:
        trimmed["time"] = times
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = json.dumps(trimmed, separators=(",", ":")).replace('},"', '},\n"')
    (FOLDER / f"{name.replace('/', '__')}.json").write_text(f"{lines}\n", encoding="utf-8")
    return True


def chosen(texts: Iterable[str], locked: Sequence[str]) -> set[str]:
    """The versions that are kept."""
    scheme = scheme_for("npm")
    assert scheme is not None
    versions = [version for text in texts if isinstance(version := scheme.try_parse(text), Version)]
    stable = scheme.sort(version for version in versions if not scheme.is_prerelease(version))
    held = scheme.sort(version for text in locked if isinstance(version := scheme.try_parse(text), Version))
    if not held:
        return {version.text for version in stable}
    above = [version for version in stable if scheme.compare(version, held[0]) in (0, 1)]
    last = held[-1].key[0] + 1
    newest = {version.key[0]: version.text for version in above if version.key[0] > last}
    return {version.text for version in above if version.key[0] <= last} | set(newest.values()) | set(locked)


def kept(entry: dict[str, Any]) -> dict[str, Any]:
    found = {key: entry[key] for key in KEPT if entry.get(key)}
    scripts = entry.get("scripts") or {}
    if any(scripts.get(name) for name in ("preinstall", "install", "postinstall")):
        found["hasInstallScript"] = True
    dist = entry.get("dist") or {}
    found["dist"] = {key: dist[key] for key in ("integrity", "shasum", "tarball") if dist.get(key)}
    if "tarball" in found["dist"]:
        path = found["dist"]["tarball"].split("/", 3)[3]
        found["dist"]["tarball"] = f"https://npm.registry.example/{path}"
    return found


def asked(name: str, records: dict[RecordKey, Record]) -> set[str]:
    """Packages without a record that planning and building one project asked about."""
    tree = MemoryTree(harder.files(name))
    missing: set[str] = set()

    class Watching(RecordedMetadata):
        async def fetch(self, keys: Collection[RecordKey]) -> dict[RecordKey, Record]:
            found = dict(await super().fetch(keys))
            missing.update(
                key.name for key, one in found.items() if isinstance(one, Unavailable) and key.ecosystem == "npm"
            )
            return found

    async def work() -> None:
        metadata = Watching(records)

        def planned(listing: Any) -> Any:
            return plan_repository(
                harder.alerts(name),
                listing,
                harder.policy(name),
                FIXABLE,
                repository=f"acme/{name}",
                now=harder.now(name),
            )

        plan = await drive(planned(await tree.listing()), tree, metadata)
        await Builder(ecosystems=FIXABLE, metadata=metadata, relock="in-process").build(
            plan, harder.alerts(name), tree, planned
        )

    asyncio.run(work())
    return missing


def locked_versions() -> dict[str, list[str]]:
    """Package → its versions in the locks of all harder projects."""
    found: dict[str, list[str]] = {}
    ecosystem = FIXABLE.serving("npm")
    assert ecosystem is not None
    for project in harder.NAMES:
        tree = MemoryTree(harder.files(project))
        listing = asyncio.run(tree.listing())
        paths = [alert.manifest_path for alert in harder.alerts(project)]
        for unit in asyncio.run(drive(ecosystem.read_units(listing, paths), tree, RecordedMetadata({}))):
            for one in unit.instances.values():
                found.setdefault(one.name, []).append(one.version)
    return found


def main(names: list[str]) -> int:
    locked = locked_versions()
    if names:
        return 0 if sum(record(name, locked.get(name, [])) for name in names) == len(names) else 1
    tried: set[str] = set()
    while True:
        records = {**harder.records()}
        missing = {name for project in harder.NAMES for name in asked(project, records)} - tried
        if not missing:
            return 0
        print(f"recording {len(missing)}: {' '.join(sorted(missing))}")
        for name in sorted(missing):
            record(name, locked.get(name, []))
        tried |= missing
        records_in.cache_clear()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
