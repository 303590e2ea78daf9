"""Recorded registry answers of the corpora as records, in memory."""

import json
from functools import cache
from pathlib import Path

from dependfix_core.metadata.npm import read_package_document
from dependfix_core.metadata.pip import read_requires_dist, read_simple_json
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseRecord

METADATA = Path(__file__).parent.parent / "data" / "metadata"


def corpus_records() -> dict[RecordKey, Record]:
    """Every package of the corpus; for Python also each release whose core metadata was recorded."""
    return records_in(METADATA)


@cache
def records_in(folder: Path) -> dict[RecordKey, Record]:
    """What was recorded in a folder with `npm` and `pypi` below it."""
    records: dict[RecordKey, Record] = {}
    for path in sorted((folder / "npm").glob("*.json")):
        key = RecordKey(ecosystem="npm", name=path.stem.replace("__", "/"))
        records[key] = read_package_document(key, path.read_bytes())
    for path in sorted((folder / "pypi").glob("*.json")):
        document = path.read_bytes()
        key = RecordKey(ecosystem="pip", name=path.stem)
        package = read_simple_json(key, document, url="https://pypi.registry.example/simple/x/")
        records[key] = package
        records |= _details(package, json.loads(document)["metadata"])
    return records


def _details(package: PackageRecord, metadata: dict[str, dict[str, list[str]] | None]) -> dict[RecordKey, Record]:
    found: dict[RecordKey, Record] = {}
    for version, fields in metadata.items():
        listed = package.releases.get(version)
        if fields is None or listed is None:
            continue
        key = RecordKey(ecosystem="pip", name=package.key.name, version=version)
        release = Release(
            name=listed.name,
            version=listed.version,
            dependencies=read_requires_dist(fields.get("requires-dist") or ()),
            published_at=listed.published_at,
            yanked=listed.yanked,
            files=listed.files,
            requires_runtime=listed.requires_runtime,
            extra={"provides-extra": tuple(fields.get("provides-extra") or ())},
        )
        found[key] = ReleaseRecord(key=key, release=release, digest=package.digest)
    return found
