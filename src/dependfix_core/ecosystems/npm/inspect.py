"""What is wrong with a JavaScript unit as it lies there, by the rules of its format and never by a plan."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dependfix_core.ecosystems.base import Finding, Graph
from dependfix_core.ecosystems.inspection import edge_findings
from dependfix_core.ecosystems.npm.bun_lock import BunLock, read_bun_lock
from dependfix_core.ecosystems.npm.npm_flags import FLAGS, flags_of
from dependfix_core.ecosystems.npm.npm_flags import Step as Leads
from dependfix_core.ecosystems.npm.parsed import Root
from dependfix_core.ecosystems.npm.pnpm_lock import PnpmLock, read_pnpm_lock, texts
from dependfix_core.ecosystems.npm.reach import dev_and_optional
from dependfix_core.model.files import FileContent
from dependfix_core.model.lock import DependencyKind, Instance, LockUnit, SourceKind
from dependfix_core.model.records import RecordKey, Release, ReleaseRecord
from dependfix_core.model.steps import Step, file_content, records_for

_OPTIONAL: Final = (DependencyKind.OPTIONAL, DependencyKind.PEER_OPTIONAL)
_BUN_INTEGRITY: Final = 3


def inspect(unit: LockUnit, graph: Graph) -> Step[tuple[Finding, ...]]:
    """See `Ecosystem.inspect`."""
    if unit.format == "manifest":
        return ()
    found = yield from edge_findings(graph)
    found += _disagreements(unit)
    stored = yield from _hashes(unit)
    found += yield from _wrong_hashes(unit, graph, stored)
    found += _wrong_addresses(unit)
    found += _wrong_flags(unit)
    return tuple(found)


def _disagreements(unit: LockUnit) -> Iterator[Finding]:
    """V5: manifest and lock say different things."""
    for path, at, held in unit.settings.get("outOfSync") or ():
        yield Finding(check="V5", where=f"{path} {at}", detail=f"the lock holds {held}")


def _hashes(unit: LockUnit) -> Step[Mapping[str, str]]:
    """Place → the hash that the lock stores, in the formats that store the registry's own."""
    if unit.format in ("npm-lock", "yarn-classic"):
        return {where: _text(one.raw.get("integrity")) for where, one in unit.instances.items()}
    if unit.format not in ("pnpm-lock", "bun-lock"):
        return {}  # yarn 2 and newer hash their own archives
    file = yield from file_content(unit.unit)
    if not isinstance(file, FileContent):
        return {}
    if unit.format == "pnpm-lock":
        lock = read_pnpm_lock(unit.unit, file.content)
        if isinstance(lock, PnpmLock):
            return {where: texts(lock.about(where).get("resolution")).get("integrity", "") for where in lock.snapshots}
        return {}
    bun = read_bun_lock(unit.unit, file.content)
    if not isinstance(bun, BunLock):
        return {}
    return {
        where: _text(package.values[_BUN_INTEGRITY])
        for where, package in bun.packages.items()
        if len(package.values) > _BUN_INTEGRITY
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _wrong_hashes(unit: LockUnit, graph: Graph, stored: Mapping[str, str]) -> Step[list[Finding]]:
    """V6: a hash that is not the registry's, of the same algorithm."""
    keys: dict[str, RecordKey] = {
        where: graph.record_key(one.name, one.version)
        for where, one in unit.instances.items()
        if one.version and _is_registry(one) and stored.get(where)
    }
    records = yield from records_for(keys.values())
    found = []
    for where, key in keys.items():
        record = records[key]
        if isinstance(record, ReleaseRecord) and not _is_hash_of(record.release, stored[where]):
            found.append(Finding(check="V6", where=where, detail=f"the hash is not that of {key.name} {key.version}"))
    return found


def _is_hash_of(release: Release, stored: str) -> bool:
    """Unknown (another algorithm than the registry's) counts as right."""
    known = set(release.integrity.split())
    algorithms = {one.partition("-")[0] for one in known}
    mine = {one for one in stored.split() if one.partition("-")[0] in algorithms}
    return not mine or bool(mine & known)


def _wrong_addresses(unit: LockUnit) -> Iterator[Finding]:
    """V6: a file name that carries another version than its entry, in the layout that registries share."""
    for where, one in unit.instances.items():
        address = _text(one.raw.get("resolved"))
        if not _is_registry(one) or "/-/" not in address:
            continue
        name = address.partition("#")[0].partition("?")[0].rpartition("/")[2]
        if not name.endswith(f"-{one.version}.tgz"):
            yield Finding(check="V6", where=where, detail=f"{name} is not the file of version {one.version}")


def _is_registry(one: Instance) -> bool:
    return one.source.kind is SourceKind.REGISTRY and not one.bundled


def _wrong_flags(unit: LockUnit) -> Iterator[Finding]:
    """V7: flags that do not follow from what leads to a copy."""
    if unit.format == "npm-lock":
        yield from _wrong_npm_flags(unit)
    elif unit.format == "pnpm-lock":
        yield from _wrong_pnpm_flags(unit)


def _wrong_npm_flags(unit: LockUnit) -> Iterator[Finding]:
    legacy = unit.format_version == "1"
    leads: dict[str, list[Leads]] = {
        "": [Leads(one.target, one.kind) for one in unit.constraints if one.target is not None]
    }
    for where, one in unit.instances.items():
        steps = [Leads(edge.target, edge.kind) for edge in one.edges if edge.target is not None]
        if one.source.kind in (SourceKind.WORKSPACE, SourceKind.LINK) and one.source.text in unit.instances:
            steps.append(Leads(one.source.text))
            leads[""].append(Leads(where))
        leads[where] = steps
    names = ("dev", "optional") if legacy else tuple(FLAGS)
    for where, flags in flags_of(leads).items():
        instance = unit.instances.get(where)
        if instance is None or not _is_registry(instance):
            continue
        should = {name for name in names if flags & FLAGS[name]}
        does = {name for name in names if instance.raw.get(name) is True}
        if should != does:
            yield Finding(check="V7", where=where, detail=f"flags are {_listed(does)}, not {_listed(should)}")


def _listed(flags: set[str]) -> str:
    return " ".join(sorted(flags)) or "none"


def _wrong_pnpm_flags(unit: LockUnit) -> Iterator[Finding]:
    instances = unit.instances

    def neighbours(where: str) -> Iterator[tuple[str, bool]]:
        one = instances.get(where)
        for edge in one.edges if one is not None else ():
            if edge.target is not None:
                yield edge.target, edge.kind in _OPTIONAL

    roots = [Root(where=one.target, kind=one.kind) for one in unit.constraints if one.target is not None]
    dev, optional = dev_and_optional(roots, neighbours)
    stores_dev = unit.format_version.startswith(("5", "6"))
    for where, one in instances.items():
        if not _is_registry(one):
            continue
        checked: list[tuple[str, bool]] = [("optional", where in optional)]
        if stores_dev:
            checked.append(("dev", where in dev))
        for name, should in checked:
            if _is_on(one.raw, name) != should:
                yield Finding(check="V7", where=where, detail=f"{name} is {'not ' if should else ''}set")


def _is_on(raw: Mapping[str, Any], name: str) -> bool:
    return raw.get(name) in (True, "true")
