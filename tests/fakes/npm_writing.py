"""Plans for JavaScript projects, written down by hand, with what the real tools accept as their result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.npm.read import read_units
from dependfix_core.ecosystems.npm.write import write
from dependfix_core.metadata.npm import read_package_document
from dependfix_core.model.files import ChangeSet
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.model.records import PackageRecord, Record, RecordKey, ReleaseRecord
from fakes.corpus_metadata import corpus_records
from fakes.step_driver import drive, listing_of, project_files

DATA = Path(__file__).parent.parent / "data" / "npm"
N = "node_modules/"
FORM_DATA_BRINGS = {
    "async-function": "1.0.0",
    "async-generator-function": "1.0.0",
    "call-bind-apply-helpers": "1.0.2",
    "dunder-proto": "1.0.1",
    "es-define-property": "1.0.1",
    "es-errors": "1.3.0",
    "es-object-atoms": "1.1.2",
    "es-set-tostringtag": "2.1.0",
    "function-bind": "1.1.2",
    "generator-function": "2.0.1",
    "get-intrinsic": "1.3.1",
    "get-proto": "1.0.1",
    "gopd": "1.2.0",
    "has-symbols": "1.1.0",
    "has-tostringtag": "1.0.2",
    "hasown": "2.0.4",
    "math-intrinsics": "1.1.0",
}
"""What form-data 4.0.4 and 2.5.5 ask for that nobody had before."""
ASKED_BY_FORM_DATA = {
    "async-function": "^1.0.0",
    "async-generator-function": "^1.0.0",
    "call-bind-apply-helpers": "^1.0.2",
    "dunder-proto": "^1.0.1",
    "es-define-property": "^1.0.1",
    "es-errors": "^1.3.0",
    "es-object-atoms": "^1.1.1",
    "es-set-tostringtag": "^2.1.0",
    "function-bind": "^1.1.2",
    "generator-function": "^2.0.0",
    "get-intrinsic": "^1.2.6",
    "get-proto": "^1.0.1",
    "gopd": "^1.2.0",
    "has-symbols": "^1.1.0",
    "has-tostringtag": "^1.0.2",
    "hasown": "^2.0.4",
    "math-intrinsics": "^1.1.0",
}
ESBUILD = "0.19.12"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One plan. `moves` and `removed` name places, `added` place → (package, version)."""

    project: str
    lock: str
    moves: Mapping[str, str]
    added: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    esbuild: bool = False
    """Also moves esbuild and its platform packages."""


def override(at: str, value: str, path: str = "package.json") -> Edit:
    return Edit(path=path, at=at, from_text=None, to_text=value, kind="override")


def raised(at: str) -> Edit:
    return Edit(path="package.json", at=at, from_text="1.0.1", to_text="1.0.2", kind="override")


CASES: dict[str, Case] = {
    "npm1-flags": Case(
        project="npm-v1-legacy",
        lock="package-lock.json",
        moves={N + "lodash": "4.17.21", N + "minimist": "1.2.6", N + "mkdirp": "0.5.6"},
        removed=(f"{N}mkdirp/{N}minimist",),
    ),
    "npm2-lines": Case(
        project="npm-v2-multi-line",
        lock="package-lock.json",
        moves={
            N + "semver": "7.5.2",
            f"{N}make-dir/{N}semver": "6.3.1",
            f"{N}normalize-package-data/{N}semver": "5.7.2",
        },
    ),
    "npm3-override": Case(
        project="npm-v3-direct",
        lock="package-lock.json",
        moves={
            N + "lodash": "4.17.21",
            N + "axios": "0.21.2",
            N + "follow-redirects": "1.14.8",
            N + "minimist": "1.2.6",
            N + "path-to-regexp": "0.1.10",
        },
        edits=(
            Edit(path="package.json", at="dependencies.minimist", from_text="1.2.5", to_text="1.2.6"),
            override("overrides.path-to-regexp", "0.1.10"),
        ),
    ),
    **{
        name: Case(
            project=project,
            lock="package-lock.json",
            moves={
                N + "form-data": "4.0.4",
                N + "follow-redirects": "1.15.6",
                N + "alias-qs": "6.5.3",
                N + "mkdirp": "0.5.6",
                N + "minimist": "1.2.6",
                N + "semver": "7.5.2",
                f"packages/b/{N}semver": "5.7.2",
                N + "json5": "1.0.2",
                f"packages/b/{N}json5": "2.2.2",
                N + "axios": "1.6.8",
            },
            added={
                **{N + name: (name, version) for name, version in FORM_DATA_BRINGS.items()},
                f"{N}@esbuild/aix-ppc64": ("@esbuild/aix-ppc64", ESBUILD),
            },
            removed=(f"{N}mkdirp/{N}minimist",),
            edits=(
                Edit(path="package.json", at="dependencies.axios", from_text="^1.6.0", to_text="^1.6.8"),
                Edit(path="packages/a/package.json", at="dependencies.semver", from_text="^7.3.5", to_text="^7.5.2"),
            ),
            esbuild=True,
        )
        for name, project in (("npm3-closure", "npm3-tabs"), ("npm2-closure", "npm2-tabs"))
    },
    "pnpm6-coupled": Case(
        project="pnpm-v6-workspace",
        lock="pnpm-lock.yaml",
        moves={"axios@1.4.0": "1.8.4", "follow-redirects@1.15.2": "1.15.6", "ws@7.5.9": "7.5.10"},
    ),
    "pnpm6-closure": Case(
        project="pnpm-v6-workspace",
        lock="pnpm-lock.yaml",
        moves={"form-data@4.0.0": "4.0.4"},
        added={f"{name}@{version}": (name, version) for name, version in FORM_DATA_BRINGS.items()},
    ),
    "pnpm9-lines": Case(
        project="pnpm-v9-override",
        lock="pnpm-lock.yaml",
        moves={
            "qs@6.5.2": "6.5.3",
            "ws@8.11.0": "8.17.1",
            "ws@7.4.6": "7.5.10",
            "engine.io-client@3.5.2": "3.5.4",
        },
    ),
    "pnpm9-override": Case(
        project="pnpm-v9-override",
        lock="pnpm-lock.yaml",
        moves={"form-data@2.3.3": "2.5.5"},
        added={f"{name}@{version}": (name, version) for name, version in FORM_DATA_BRINGS.items()},
        edits=(override("pnpm.overrides.form-data@<2.5.4", "^2.5.4"),),
    ),
    "pnpm9-below-parent": Case(
        project="pnpm-v9-override",
        lock="pnpm-lock.yaml",
        moves={"ws@7.4.6": "7.5.10"},
        edits=(override("pnpm.overrides.engine.io-client>ws", "~7.5.10"),),
    ),
    "pnpm9-peers": Case(
        project="pnpm9-peers",
        lock="pnpm-lock.yaml",
        moves={
            "debug@4.3.4(supports-color@8.1.1)": "4.3.7",
            "react@18.2.0": "18.3.1",
            "react-dom@18.2.0(react@18.2.0)": "18.3.1",
            "qs@6.5.2": "6.5.3",
            "axios@1.6.0(debug@4.3.4(supports-color@8.1.1))": "1.6.8",
            "ws@7.5.9": "7.5.10",
        },
        added={f"@esbuild/aix-ppc64@{ESBUILD}": ("@esbuild/aix-ppc64", ESBUILD)},
        removed=("ms@2.1.2",),
        edits=(
            Edit(path="pnpm-workspace.yaml", at="catalog.axios", from_text="^1.6.0", to_text="^1.6.8", kind="catalog"),
            Edit(path="packages/a/package.json", at="peerDependencies.ws", from_text="^7.5.9", to_text="^7.5.10"),
        ),
        esbuild=True,
    ),
    "pnpm6-peers": Case(
        project="pnpm6-peers",
        lock="pnpm-lock.yaml",
        moves={
            "debug@4.3.4(supports-color@8.1.1)": "4.3.7",
            "react@18.2.0": "18.3.1",
            "react-dom@18.2.0(react@18.2.0)": "18.3.1",
            "qs@6.5.2": "6.5.3",
            "axios@1.6.0(debug@4.3.4)": "1.6.8",
            "ws@7.5.9": "7.5.10",
        },
        added={f"@esbuild/aix-ppc64@{ESBUILD}": ("@esbuild/aix-ppc64", ESBUILD)},
        removed=("ms@2.1.2",),
        edits=(Edit(path="packages/a/package.json", at="peerDependencies.ws", from_text="^7.5.9", to_text="^7.5.10"),),
        esbuild=True,
    ),
    "bun2-closure": Case(
        project="bun2-workspace",
        lock="bun.lock",
        moves={
            "form-data": "4.0.4",
            "follow-redirects": "1.15.6",
            "alias-qs": "6.5.3",
            "mkdirp": "0.5.6",
            "minimist": "1.2.6",
            "semver": "5.7.2",
            "json5": "1.0.2",
            "@b/a/json5": "2.2.2",
            "axios": "1.6.8",
            "ws": "7.5.10",
            "debug": "4.3.6",
            "react": "18.3.1",
            "react-dom": "18.3.1",
        },
        added={
            **{name: (name, version) for name, version in FORM_DATA_BRINGS.items()},
            "@esbuild/aix-ppc64": ("@esbuild/aix-ppc64", ESBUILD),
        },
        removed=("mkdirp/minimist",),
        edits=(Edit(path="package.json", at="dependencies.axios", from_text="^1.6.0", to_text="^1.6.8"),),
        esbuild=True,
    ),
    "npm3-override-edit": Case(
        project="npm3-forced",
        lock="package-lock.json",
        moves={f"{N}loader-utils/{N}json5": "1.0.2", f"{N}tsconfig-paths/{N}json5": "1.0.2"},
        edits=(raised("overrides.loader-utils>json5"), raised("overrides.tsconfig-paths>json5")),
    ),
    "pnpm9-override-edit": Case(
        project="pnpm9-forced",
        lock="pnpm-lock.yaml",
        moves={"json5@1.0.1": "1.0.2"},
        edits=(raised("pnpm.overrides.json5@1"),),
    ),
    "yarn1-override-edit": Case(
        project="yarn1-forced",
        lock="yarn.lock",
        moves={"json5@1.0.1": "1.0.2"},
        edits=(raised("resolutions.json5"),),
    ),
    "bun2-override-edit": Case(
        project="bun2-forced",
        lock="bun.lock",
        moves={"json5": "1.0.2"},
        edits=(raised("overrides.json5"),),
    ),
    "yarn1-lines": Case(
        project="yarn1-resolutions",
        lock="yarn.lock",
        moves={
            "qs@~6.5.2": "6.5.3",
            "qs@^6.9.0": "6.9.7",
            "mkdirp@^0.5.1": "0.5.6",
            "minimatch@^3.0.4": "3.0.5",
            "brace-expansion@^1.1.7": "1.1.12",
            "cross-spawn@^6.0.5": "6.0.6",
        },
        added={"minimist@^1.2.6": ("minimist", "1.2.8")},
        removed=("minimist@0.0.8",),
    ),
    "yarn1-resolution": Case(
        project="yarn1-resolutions",
        lock="yarn.lock",
        moves={"form-data@~2.3.2": "2.5.5"},
        added={f"{name}@{ASKED_BY_FORM_DATA[name]}": (name, version) for name, version in FORM_DATA_BRINGS.items()},
        edits=(override("resolutions.request/form-data", "^2.5.4"),),
    ),
}


def case_files(case: Case) -> dict[str, bytes]:
    """The project before the plan."""
    root = DATA / case.project
    if not root.is_dir():
        return project_files(case.project)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def unit_of_case(case: Case, files: Mapping[str, bytes]) -> LockUnit:
    (unit,) = drive(read_units(listing_of(files), [case.lock]), files)
    return unit


def remediation_of(case: Case, unit: LockUnit) -> Remediation:
    moves = dict(case.moves)
    if case.esbuild:
        moves |= {
            where: ESBUILD
            for where, instance in unit.instances.items()
            if instance.name == "esbuild" or instance.name.startswith("@esbuild/")
        }
    found = [
        Move(
            where=where,
            package_name=unit.instances[where].name,
            from_version=unit.instances[where].version,
            to_version=version,
            strategy="lock-in-range",
        )
        for where, version in moves.items()
    ]
    found += [
        Move(
            where=where,
            package_name=name,
            from_version=None,
            to_version=version,
            strategy="lock-in-range",
            added=True,
        )
        for where, (name, version) in case.added.items()
    ]
    found += [
        Move(
            where=where,
            package_name=unit.instances[where].name,
            from_version=unit.instances[where].version,
            to_version=None,
            strategy="lock-in-range",
            removed=True,
        )
        for where in case.removed
    ]
    return Remediation(
        unit=unit.unit,
        ecosystem="npm",
        package_name="several",
        strategy="mixed",
        moves=tuple(found),
        edits=case.edits,
    )


@cache
def release_records() -> dict[RecordKey, Record]:
    """A record for every release of the corpus and of `records.json`, by name and version."""
    packages = {key.name: record for key, record in corpus_records().items() if key.ecosystem == "npm"}
    recorded = json.loads((DATA / "records.json").read_bytes())
    found: dict[RecordKey, Record] = {}
    for name in sorted({*packages, *recorded}):
        documents = [packages[name]] if name in packages else []
        if name in recorded:
            document = json.dumps({"name": name, "versions": recorded[name]}).encode()
            documents.append(read_package_document(RecordKey(ecosystem="npm", name=name), document))
        for record in documents:
            assert isinstance(record, PackageRecord)
            for version, release in record.releases.items():
                key = RecordKey(ecosystem="npm", name=name, version=version)
                found[key] = ReleaseRecord(key=key, release=release)
    return found


def written_case(case: Case) -> tuple[dict[str, bytes], ChangeSet | WriteRefusal]:
    """The files before, and what the writer makes of the plan."""
    files = case_files(case)
    unit = unit_of_case(case, files)
    return files, drive(write(unit, [remediation_of(case, unit)]), files, release_records())
