"""Registry records of made-up Python packages, without a server."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from dependfix_core.metadata.pip import read_core_metadata
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseFile, ReleaseRecord
from fakes.python_index import Published

FILES = "https://files.registry.example"


def records_of(published: Iterable[Published]) -> dict[RecordKey, Record]:
    """The list of each package and the details of each release."""
    lists: dict[str, dict[str, Release]] = {}
    records: dict[RecordKey, Record] = {}
    for one in published:
        about = read_core_metadata(one.metadata)
        release = Release(
            name=one.name,
            version=one.version,
            published_at=datetime.fromisoformat(one.uploaded),
            files=tuple(_file(name, content, one) for name, content in sorted(one.files().items())),
            requires_runtime={"python": one.requires_python} if one.requires_python else {},
            yanked=one.yanked,
        )
        lists.setdefault(one.name, {})[one.version] = release
        key = RecordKey(ecosystem="pip", name=one.name, version=one.version)
        known = replace(
            release,
            dependencies=about.dependencies,
            extra={"summary": about.summary, "provides-extra": about.provides_extra},
        )
        records[key] = ReleaseRecord(key=key, release=known)
    for name, releases in lists.items():
        key = RecordKey(ecosystem="pip", name=name)
        records[key] = PackageRecord(key=key, releases=releases, digest=name)
    return records


def _file(name: str, content: bytes, one: Published) -> ReleaseFile:
    return ReleaseFile(
        filename=name,
        url=f"{FILES}/{one.name}/{name}",
        hashes={"sha256": sha256(content).hexdigest()},
        size=len(content),
        upload_time=datetime.fromisoformat(one.uploaded),
        raw_upload_time=one.uploaded,
        requires_python=one.requires_python or None,
        yanked=one.yanked,
    )
