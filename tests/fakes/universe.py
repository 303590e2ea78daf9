"""A registry of invented npm packages, and the locks that npm would have made of them.

A package is written as version → what it needs; `peer:`, `optional:` before a
name say how, and `!key` gives a field of the record:

    registry({"a": {"1.0.0": {"b": "^1.0.0"}, "1.1.0": {"peer:react": ">=17", "!node": ">=18"}}})
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dependfix_core.model.alert import AffectedRange, Alert, Severity
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseDependency

Needs = Mapping[str, Any]


def registry(packages: Mapping[str, Mapping[str, Needs]]) -> dict[RecordKey, Record]:
    """The records of all packages."""
    records: dict[RecordKey, Record] = {}
    for name, versions in packages.items():
        key = RecordKey(ecosystem="npm", name=name)
        releases = {version: _release(name, version, needs) for version, needs in versions.items()}
        records[key] = PackageRecord(key=key, releases=releases, tags=_tags(versions), digest=f"{name} record")
    return records


def _tags(versions: Mapping[str, Needs]) -> dict[str, str]:
    tagged = [version for version, needs in versions.items() if needs.get("!latest")]
    return {"latest": tagged[0]} if tagged else {}


def _release(name: str, version: str, needs: Needs) -> Release:
    published = needs.get("!published")
    extra = {key: needs[f"!{key}"] for key in ("bundleDependencies",) if f"!{key}" in needs}
    return Release(
        name=name,
        version=version,
        dependencies=tuple(_dependency(asked, text) for asked, text in needs.items() if not asked.startswith("!")),
        published_at=datetime.fromisoformat(published) if published else None,
        deprecated=needs.get("!deprecated", ""),
        yanked=bool(needs.get("!yanked")),
        integrity=needs.get("!integrity", f"sha512-{name}-{version}"),
        requires_runtime={"node": needs["!node"]} if "!node" in needs else {},
        platform={key: tuple(needs[f"!{key}"]) for key in ("os", "cpu", "libc") if f"!{key}" in needs},
        has_install_script=bool(needs.get("!script")),
        extra=extra,
    )


def _dependency(asked: str, text: str) -> ReleaseDependency:
    kind, separator, name = asked.rpartition(":") if not asked.startswith("@") else ("", "", asked)
    return ReleaseDependency(name=name, requirement=text, kind=kind if separator else "prod")


def npm_project(
    packages: Mapping[str, Mapping[str, Needs]],
    manifest: Mapping[str, Any],
    tree: Mapping[str, str],
    *,
    members: Mapping[str, Mapping[str, Any]] | None = None,
    version: int = 3,
    entries: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, bytes]:
    """package.json (and members') and a package-lock.json for `tree`: place below `node_modules` → version.

    Places are written short: `a`, `a/b` for `node_modules/a/node_modules/b`. A
    value like `real@1.0.0` makes the place an alias. `entries` adds fields.
    """
    root = {"name": "app", "version": "1.0.0", **manifest}
    files = {"package.json": json.dumps(root, indent=2).encode()}
    locked: dict[str, Any] = {"": _mirror(root)}
    for folder, member in (members or {}).items():
        files[f"{folder}/package.json"] = json.dumps(member, indent=2).encode()
        locked[folder] = _mirror(member)
        locked[f"node_modules/{member['name']}"] = {"resolved": folder, "link": True}
    for short, text in tree.items():
        place = place_of(short)
        real, _, number = text.rpartition("@")
        name = real or _last(short)
        locked[place] = {
            "version": number,
            "resolved": f"https://npm.registry.example/{name}/-/{name.rpartition('/')[2]}-{number}.tgz",
            "integrity": f"sha512-{name}-{number}",
            **({"name": real} if real else {}),
            **_tables(packages.get(name, {}).get(number, {})),
            **(entries or {}).get(short, {}),
        }
    lock = {"name": "app", "version": "1.0.0", "lockfileVersion": version, "requires": True, "packages": locked}
    files["package-lock.json"] = json.dumps(lock, indent=2).encode()
    return files


def place_of(short: str) -> str:
    """`a/b` → `node_modules/a/node_modules/b`; a folder before `:` is a member's."""
    folder, _, path = short.rpartition(":")
    parts: list[str] = []
    for part in path.split("/"):
        if parts and parts[-1].startswith("@") and "/" not in parts[-1]:
            parts[-1] += f"/{part}"
        else:
            parts.append(part)
    return "/".join([*([folder] if folder else []), *(f"node_modules/{part}" for part in parts)])


def _last(short: str) -> str:
    return place_of(short).rpartition("node_modules/")[2]


def _mirror(manifest: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("name", "version", "dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
    return {key: manifest[key] for key in (*kept, "engines", "workspaces") if key in manifest}


def _tables(needs: Needs) -> dict[str, Any]:
    tables: dict[str, dict[str, Any]] = {}
    sections = {"": "dependencies", "optional": "optionalDependencies"}
    for asked, text in needs.items():
        if asked.startswith("!"):
            continue
        kind, _, name = asked.rpartition(":")
        if kind.startswith("peer"):
            tables.setdefault("peerDependencies", {})[name] = text
            if kind == "peer-optional":
                tables.setdefault("peerDependenciesMeta", {})[name] = {"optional": True}
        else:
            tables.setdefault(sections[kind], {})[name] = text
    if "!node" in needs:
        tables["engines"] = {"node": needs["!node"]}
    return tables


def alert(
    number: int,
    package: str,
    vulnerable: str,
    patched: str | None,
    *,
    manifest: str = "package-lock.json",
    others: Sequence[tuple[str, str | None]] = (),
    **fields: Any,
) -> Alert:
    """An open alert of an invented advisory."""
    return Alert(
        repository="acme/made-up",
        number=number,
        severity=fields.pop("severity", Severity.HIGH),
        ecosystem=fields.pop("ecosystem", "npm"),
        package_name=package,
        manifest_path=manifest,
        ghsa_id=fields.pop("ghsa", f"GHSA-{number:04d}"),
        vulnerable_range=vulnerable,
        first_patched_version=patched,
        other_ranges=tuple(AffectedRange(vulnerable_range=r, first_patched_version=p) for r, p in others),
        **fields,
    )
