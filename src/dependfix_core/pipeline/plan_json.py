"""A plan as bytes and back: complete, with its records, so that it can be applied without asking anybody again.

What clients see of a plan is `report.build.view_plan`; this is what is stored.
Lists of releases are stored without the details of releases that nobody asked
for: those are not known any more afterwards, and were never part of a decision.
What the lists say of the files of a release is kept for those that the plan
moves from or to, since lockfiles hold it.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dependfix_core.errors import PlanError
from dependfix_core.model.plan import Plan
from dependfix_core.model.records import (
    PackageRecord,
    Record,
    RecordKey,
    Release,
    ReleaseFile,
    ReleaseRecord,
    Unavailable,
)
from dependfix_core.pipeline.identity import plan_digest

FORMAT: Final = 1
"""Of the stored form; another one is not read."""


def dump_plan(plan: Plan) -> bytes:
    """The same bytes for the same plan."""
    moved = _moved_releases(plan)
    stored = {
        "format": FORMAT,
        "plan": _plans().dump_python(replace(plan, records={}), mode="json"),
        "records": [
            {"asked": _keys().dump_python(key, mode="json"), **_record(plan.records[key], moved)}
            for key in sorted(plan.records)
        ],
    }
    return json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def load_plan(content: bytes) -> Plan:
    """The plan that `dump_plan` wrote.

    Raises:
        PlanError: The bytes are no stored plan, of another format, or do not
            give the identity that they state.
    """
    try:
        stored = json.loads(content)
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise PlanError("this is no stored plan, or one of another format")
        records = {_keys().validate_python(entry["asked"]): _read_record(entry) for entry in stored["records"]}
        plan = _plans().validate_python(stored["plan"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise PlanError("this is no stored plan") from error
    plan = replace(plan, records=records)
    if plan_digest(plan) != plan.plan_id:
        raise PlanError("the stored plan is not the one that its identity names")
    return plan


def _moved_releases(plan: Plan) -> dict[tuple[str, str], set[str]]:
    """(ecosystem, package) → the versions that the plan moves from or to."""
    moved = defaultdict[tuple[str, str], set[str]](set)
    for remediation in plan.remediations:
        for move in remediation.moves:
            versions = moved[remediation.ecosystem, move.package_name]
            versions.update(version for version in (move.from_version, move.to_version) if version is not None)
    return moved


def _record(record: Record, moved: Mapping[tuple[str, str], Collection[str]]) -> dict[str, Any]:
    match record:
        case PackageRecord():
            whole = moved.get((record.key.ecosystem, record.key.name), ())
            return {
                "package": _keys().dump_python(record.key, mode="json"),
                "tags": dict(record.tags),
                "digest": record.digest,
                "releases": [
                    _listed(release, with_files=version in whole)
                    for version, release in sorted(record.releases.items())
                ],
            }
        case ReleaseRecord():
            return {"release": _releases().dump_python(record, mode="json")}
        case Unavailable():
            return {"unavailable": _unavailable().dump_python(record, mode="json")}


def _read_record(entry: Mapping[str, Any]) -> Record:
    if "release" in entry:
        return _releases().validate_python(entry["release"])
    if "unavailable" in entry:
        return _unavailable().validate_python(entry["unavailable"])
    key = _keys().validate_python(entry["package"])
    listed = (_listings().validate_python({"name": key.name, **one}) for one in entry["releases"])
    return PackageRecord(
        key=key, releases={one.version: one for one in listed}, tags=entry["tags"], digest=entry["digest"]
    )


def _listed(release: Release, *, with_files: bool) -> dict[str, Any]:
    """What decides whether a release may be taken, without its details; with its files where they are written."""
    fields: dict[str, Any] = {"version": release.version}
    if release.published_at is not None:
        fields["published_at"] = release.published_at.isoformat()
    if release.deprecated:
        fields["deprecated"] = release.deprecated
    if release.yanked:
        fields["yanked"] = True
    if release.requires_runtime:
        fields["requires_runtime"] = dict(release.requires_runtime)
    if with_files and release.files:
        fields["files"] = _files().dump_python(release.files, mode="json")
    return fields


@cache
def _plans() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


@cache
def _keys() -> TypeAdapter[RecordKey]:
    return TypeAdapter(RecordKey)


@cache
def _listings() -> TypeAdapter[Release]:
    return TypeAdapter(Release)


@cache
def _files() -> TypeAdapter[tuple[ReleaseFile, ...]]:
    return TypeAdapter(tuple[ReleaseFile, ...])


@cache
def _releases() -> TypeAdapter[ReleaseRecord]:
    return TypeAdapter(ReleaseRecord)


@cache
def _unavailable() -> TypeAdapter[Unavailable]:
    return TypeAdapter(Unavailable)
