"""How npm, pnpm, yarn and bun bring their own lockfiles to a plan's end state, in a scratch copy.

None of them moves one locked copy to an exact version on request. What works:

* A forced version for exactly that copy is put into the manifest, the lock is
  made anew, the entry is taken out again and the lock made anew once more: the
  package manager keeps what is locked as long as the ranges admit it.
* yarn 2 and newer set the resolution of a descriptor directly.

What the plan edits for good (declarations, overrides) stands in every run.
"""

import json
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from dependfix_core.ecosystems.base import ToolCall, ToolRelock, WriteRefusal
from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError, scan_json
from dependfix_core.ecosystems.npm.json_text import JsonStyle
from dependfix_core.ecosystems.npm.manifest_edits import EditError, edited_file
from dependfix_core.ecosystems.npm.write_base import Releases, admits
from dependfix_core.model.files import FileContent
from dependfix_core.model.lock import Instance, LockUnit
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.model.steps import Step, file_contents

MANIFEST: Final = "package.json"
_WORKSPACE: Final = "pnpm-workspace.yaml"
_YARNRC: Final = ".yarnrc.yml"

# Settings of the project that decide what the tool writes; everything else of
# its client files (addresses, credentials, scripts, caches) stays out.
_KEPT_SETTINGS: Final = frozenset(
    {
        "auto-install-peers",
        "dedupe-direct-deps",
        "dedupe-injected-deps",
        "dedupe-peer-dependents",
        "dedupe-peers",
        "exclude-links-from-lockfile",
        "hoist",
        "inject-workspace-packages",
        "install-strategy",
        "legacy-peer-deps",
        "link-workspace-packages",
        "lockfile-include-tarball-url",
        "node-linker",
        "omit-lockfile-registry-resolved",
        "peers-suffix-max-length",
        "prefer-workspace-packages",
        "resolution-mode",
        "resolve-peers-from-workspace-root",
        "strict-peer-deps",
        "strict-peer-dependencies",
    }
)
_KEPT_YARNRC: Final = frozenset(
    {
        "catalog",
        "catalogs",
        "checksumBehavior",
        "compressionLevel",
        "defaultProtocol",
        "defaultSemverRangePrefix",
        "enableTransparentWorkspaces",
        "nmHoistingLimits",
        "nodeLinker",
        "npmMinimalAgeGate",
        "npmPreapprovedPackages",
        "packageExtensions",
        "pnpMode",
        "supportedArchitectures",
    }
)
_NPM: Final = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
_PNPM: Final = ("pnpm", "install", "--lockfile-only", "--ignore-scripts", "--ignore-pnpmfile", "--no-frozen-lockfile")
_YARN_1: Final = ("yarn", "install", "--ignore-scripts", "--non-interactive", "--ignore-engines")
_YARN: Final = ("yarn", "install", "--mode=update-lockfile")
_BUN: Final = ("bun", "install", "--lockfile-only", "--ignore-scripts")


class _NoWayError(Exception):
    """The package manager has no safe way to the wanted state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    unit: LockUnit
    files: Mapping[str, bytes]
    """With the plan's edits made."""
    moves: tuple[Move, ...]
    """Copies that go to another version without an edit that makes them."""
    edits: tuple[Edit, ...]
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """yarn since 2 and bun: package → ranges that releases which come in ask of it."""
    changed: frozenset[str] = frozenset()
    """Places of all copies that go to another version or go."""

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.unit.unit)

    @property
    def root(self) -> str:
        return posixpath.join(self.folder, MANIFEST) if self.folder else MANIFEST


def relock(unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
    """See `Ecosystem.relock`."""
    edits = tuple(dict.fromkeys(edit for one in remediations for edit in one.edits))
    wanted = {path for path in unit.files if posixpath.basename(path) not in (".npmrc", ".yarnrc", "bunfig.toml")}
    wanted |= {path for path in _patches(unit) if path.endswith(".patch")}
    wanted |= {edit.path for edit in edits}
    found = yield from file_contents(sorted(wanted))
    files = {path: file.content for path, file in found.items() if isinstance(file, FileContent)}
    try:
        for path in sorted({edit.path for edit in edits}):
            files[path] = edited_file(path, files.get(path), [edit for edit in edits if edit.path == path])
        work = _Work(
            unit=unit,
            files=files,
            moves=_free_moves(unit, remediations, edits),
            edits=edits,
            asked=(yield from _asked(unit, remediations)) if unit.format in ("yarn-berry", "bun-lock") else {},
            changed=frozenset(move.where for one in remediations for move in one.moves),
        )
        return _relock(work)
    except (EditError, _NoWayError) as error:
        return WriteRefusal(reason="tool-required", detail=str(error))


def _asked(unit: LockUnit, remediations: Sequence[Remediation]) -> Step[Mapping[str, frozenset[str]]]:
    """Package → ranges by which the releases that come in ask for it, as far as their records are known."""
    coming = {
        (move.package_name, move.to_version)
        for one in remediations
        for move in one.moves
        if move.to_version is not None
    }
    releases = Releases(unit)
    yield from releases.fetch(sorted(coming))
    found: dict[str, set[str]] = {}
    for name, version in sorted(coming):
        release = releases.get(name, version)
        for one in (release.dependencies if release is not None else None) or ():
            if one.kind in ("prod", "optional"):
                found.setdefault(one.name, set()).add(one.requirement)
    return {name: frozenset(texts) for name, texts in found.items()}


def _patches(unit: LockUnit) -> Iterable[str]:
    patched: Mapping[str, str] = unit.settings.get("patched") or {}
    return patched.values()


def _free_moves(unit: LockUnit, remediations: Sequence[Remediation], edits: Sequence[Edit]) -> tuple[Move, ...]:
    """Moves that nothing but the lock decides: those of overrides and of new or dropped copies follow by themselves."""
    out: dict[str, Move] = {}
    for remediation in remediations:
        for move in remediation.moves:
            if move.added or move.removed or move.to_version is None or move.from_version is None:
                continue
            if move.strategy in ("override", "override-edit") and edits:
                continue
            if move.where in unit.instances:
                out[move.where] = move
    return tuple(out[where] for where in sorted(out))


def _relock(work: _Work) -> ToolRelock | WriteRefusal:
    unit = work.unit
    make = {"npm": _npm, "pnpm": _pnpm, "yarn": _yarn, "bun": _bun}.get(unit.tool)
    if make is None or unit.format == "manifest":
        return WriteRefusal(reason="tool-required", detail=f"{unit.unit} is no lockfile of a package manager")
    laid = replace(work, files={**work.files, **_in_style_of_the_lock(work)})
    calls, by_hand, version = make(laid)
    files = {path: _neutral(path, content) for path, content in laid.files.items()}
    edited = tuple(sorted({edit.path for edit in work.edits}))
    return ToolRelock(
        tool=unit.tool,
        version=version,
        files=files,
        results=(unit.unit,),
        calls=calls,
        edited=edited,
        restored={path: work.files[path] for path in edited if files[path] != work.files[path]},
        registries=unit.registries,
        settings=_settings(unit),
        folder=work.folder or ".",
        by_hand=by_hand,
        warnings=_warnings(unit),
    )


def _in_style_of_the_lock(work: _Work) -> dict[str, bytes]:
    """The root manifest laid out as the lock, where they differ: npm writes the lock as it finds the manifest."""
    lock = work.files.get(work.unit.unit)
    if work.unit.format != "npm-lock" or lock is None or work.root not in work.files:
        return {}
    held = work.files[work.root]
    style, own = JsonStyle.of(lock), JsonStyle.of(held)
    if style.indent is None or (style.indent, style.newline) == (own.indent, own.newline):
        return {}
    return {work.root: style.render(_table(held, work.root), 0) + style.newline.encode()}


def _neutral(path: str, content: bytes) -> bytes:
    """A settings file without what makes another program run or names another home."""
    if posixpath.basename(path) != _YARNRC:
        return content
    try:
        data = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise _NoWayError(f"{path} cannot be read") from error
    if not isinstance(data, dict):
        return b"{}\n"
    if data.get("plugins"):
        raise _NoWayError(f"{path} brings plugins, which are not run here")
    # JSON is YAML: no scalar of it can be read as something else.
    return json.dumps({name: value for name, value in data.items() if name in _KEPT_YARNRC}).encode() + b"\n"


def _settings(unit: LockUnit) -> dict[str, str]:
    flags: Mapping[str, str] = unit.settings.get("flags") or {}
    kept = {name: str(value) for name, value in flags.items() if name in _KEPT_SETTINGS}
    if unit.tool == "npm" and "omit-lockfile-registry-resolved" not in kept:
        registry = [one for one in unit.instances.values() if one.source.kind == "registry" and not one.bundled]
        if registry and not any(one.source.base or one.source.text for one in registry):
            kept["omit-lockfile-registry-resolved"] = "true"
    return kept


def _warnings(unit: LockUnit) -> tuple[str, ...]:
    code: Sequence[str] = unit.settings.get("code") or ()
    return tuple(f"neutralised: {place} was not run" for place in code)


# npm


def _npm(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    unit = work.unit
    legacy = unit.format_version == "1"
    run = (*_NPM, f"--lockfile-version={unit.format_version}") if not legacy else _NPM
    version = "6" if legacy and not unit.tool_version else unit.tool_version
    if posixpath.basename(unit.unit) == "npm-shrinkwrap.json" and _major(version) >= 12:
        raise _NoWayError("npm 12 does not read npm-shrinkwrap.json")
    if not work.moves:
        return (ToolCall(argv=run),), shlex.join(run), version
    if legacy or 0 < _major(version) < 8:
        raise _NoWayError("this npm has no way to move one locked copy (overrides came with npm 8.3)")
    manifest = _table(work.files[work.root], work.root)
    direct = {
        constraint.name: constraint
        for constraint in unit.constraints
        if constraint.target is not None and constraint.path == work.root
    }
    forced = dict(manifest.get("overrides") or {})
    temporary = {**manifest}
    for move in work.moves:
        instance = unit.instances[move.where]
        name = posixpath.basename(move.where) if "/@" not in move.where else instance.name
        constraint = direct.get(name)
        if constraint is not None and constraint.target == move.where:
            # An override of a direct dependency has to be its own requirement: that is changed instead.
            temporary = _declared(temporary, name, _aliased(instance, name, move))
        else:
            forced[f"{instance.name}@{move.from_version}"] = str(move.to_version)
    temporary["overrides"] = forced
    return _twice(work, run, temporary), _by_hand(work, "overrides", run), version


def _declared(manifest: dict[str, Any], name: str, requirement: str) -> dict[str, Any]:
    out = dict(manifest)
    for section in ("dependencies", "devDependencies", "optionalDependencies"):
        table = out.get(section)
        if isinstance(table, dict) and name in table:
            out[section] = {**table, name: requirement}
    return out


def _aliased(instance: Instance, name: str, move: Move) -> str:
    return str(move.to_version) if instance.name == name else f"npm:{instance.name}@{move.to_version}"


# pnpm


def _pnpm(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    unit = work.unit
    version = unit.tool_version or ("8" if unit.format_version.startswith("6") else "")
    if "pnpmfileChecksum" in (unit.settings.get("checksums") or ()):
        raise _NoWayError("the lock was made with a .pnpmfile.cjs, which is not run here")
    if not work.moves:
        return (ToolCall(argv=_PNPM),), shlex.join(_PNPM), version
    entries = {f"{unit.instances[move.where].name}@{move.from_version}": str(move.to_version) for move in work.moves}
    workspace = posixpath.join(work.folder, _WORKSPACE) if work.folder else _WORKSPACE
    by_hand = _by_hand(work, "overrides", _PNPM)
    temporary: dict[str, bytes] = {}
    holds_overrides = _in_workspace_file(work, workspace, version)
    if holds_overrides or not version:
        edits = [
            Edit(path=workspace, at=f"overrides.{selector}", from_text=None, to_text=value, kind="override")
            for selector, value in entries.items()
        ]
        held = work.files.get(workspace)
        # Up to pnpm 9 a workspace file that says something has to name its packages.
        temporary[workspace] = edited_file(workspace, held, edits) + (b"" if held else b"packages:\n- .\n")
    if not holds_overrides:
        # Which pnpm it is may be unknown: those since 11 do not read this one, those before 10 not the other.
        manifest = _table(work.files[work.root], work.root)
        settings = dict(manifest.get("pnpm") or {})
        settings["overrides"] = {**(settings.get("overrides") or {}), **entries}
        temporary[work.root] = _laid_out({**manifest, "pnpm": settings})
    calls = (
        ToolCall(argv=_PNPM, files=temporary),
        ToolCall(argv=_PNPM, files={path: work.files.get(path, b"") for path in temporary}),
    )
    return calls, by_hand, version


def _in_workspace_file(work: _Work, workspace: str, version: str) -> bool:
    """Whether this pnpm reads overrides from `pnpm-workspace.yaml`, and the project keeps them there."""
    if _major(version) >= 11:
        return True
    held = work.files.get(workspace, b"")
    return b"\noverrides:" in b"\n" + held


# yarn


def _yarn(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    return _yarn_classic(work) if work.unit.format == "yarn-classic" else _yarn_berry(work)


def _yarn_classic(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    unit = work.unit
    # A requirement that is raised leads yarn to a new copy by itself.
    raised = {edit.to_text for edit in work.edits if edit.kind == "constraint"}
    if all(move.strategy == "manifest-bump" and move.to_version in raised for move in work.moves):
        return (ToolCall(argv=_YARN_1),), shlex.join(_YARN_1), unit.tool_version or "1"
    # A resolution that comes and goes leaves its own descriptor in the lock.
    raise _NoWayError("yarn 1 has no way to move one locked copy and nothing else")


def _yarn_berry(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    unit = work.unit
    version = unit.tool_version or {"8": "4", "6": "3", "4": "2"}.get(unit.format_version, "")
    sets = [
        ("yarn", "set", "resolution", descriptor, f"npm:{move.to_version}")
        for move in work.moves
        for descriptor in _descriptors(work, move)
    ]
    argvs = [*([_YARN] if work.edits and sets else []), *sets, _YARN]
    by_hand = " && ".join(shlex.join(argv) for argv in argvs)
    return tuple(ToolCall(argv=argv) for argv in argvs), by_hand, version


def _descriptors(work: _Work, move: Move) -> list[str]:
    """What leads to a copy after the edits, as far as it leaves yarn a choice.

    Setting an exact descriptor to itself would make yarn wait for itself.
    """
    unit = work.unit
    instance = unit.instances[move.where]
    edited = [edit for edit in work.edits if edit.kind != "override" and edit.at.rpartition(".")[2] == instance.name]
    found = [f"{instance.name}@npm:{edit.to_text}" for edit in edited]
    ranges = (text for text in work.asked.get(instance.name, ()) if admits(text, str(move.to_version)))
    found += [f"{instance.name}@npm:{text}" for text in sorted(ranges)]
    # Of those in the lock, the ones that somebody who stays as he is still asks for.
    staying = _staying(work, move)
    if not edited:
        staying |= {one.requirement for one in unit.constraints if one.target == move.where}
    for descriptor in instance.aliases or (move.where,):
        text = descriptor.partition("@npm:")[2]
        if text in staying or (not found and not staying):
            found.append(descriptor)
    own = f"{instance.name}@npm:{move.to_version}"
    return [one for one in dict.fromkeys(found) if "@npm:" in one and one != own]


def _staying(work: _Work, move: Move) -> set[str | None]:
    """What copies that stay as they are ask of the one that moves."""
    return {
        edge.requirement
        for one in work.unit.instances.values()
        if one.where not in work.changed
        for edge in one.edges
        if edge.target == move.where
    }


# bun


def _bun(work: _Work) -> tuple[tuple[ToolCall, ...], str, str]:
    unit = work.unit
    if not work.moves:
        return (ToolCall(argv=_BUN),), shlex.join(_BUN), unit.tool_version
    manifest = _table(work.files[work.root], work.root)
    forced = dict(manifest.get("overrides") or {})
    for move in work.moves:
        instance = unit.instances[move.where]
        if _follows(work, move):
            continue
        others = [one for one in unit.instances.values() if one.name == instance.name and one.where != move.where]
        if any(one.version != instance.version for one in others):
            raise _NoWayError(f"bun cannot move one of several copies of {instance.name}")
        forced[instance.name] = str(move.to_version)
    return _twice(work, _BUN, {**manifest, "overrides": forced}), _by_hand(work, "overrides", _BUN), unit.tool_version


def _follows(work: _Work, move: Move) -> bool:
    """Whether releases that come in ask for exactly this version, and nobody else decides."""
    asked = {text for text in work.asked.get(move.package_name, ()) if admits(text, str(move.to_version))}
    declared = any(one.target == move.where for one in work.unit.constraints)
    return asked == {move.to_version} and not declared and not _staying(work, move)


# What they share.


def _twice(work: _Work, argv: tuple[str, ...], temporary: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """A run with the temporary manifest, then one with the manifest as it shall stay."""
    return (
        ToolCall(argv=argv, files={work.root: _laid_out(temporary)}),
        ToolCall(argv=argv, files={work.root: work.files[work.root]}),
    )


def _laid_out(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n"


def _by_hand(work: _Work, table: str, argv: tuple[str, ...]) -> str:
    entries = ", ".join(
        f"{work.unit.instances[move.where].name}@{move.from_version}: {move.to_version}" for move in work.moves
    )
    return f"add to {table} {{{entries}}}, run `{shlex.join(argv)}`, take the entries out again, run it once more"


def _table(content: bytes, path: str) -> dict[str, Any]:
    try:
        scan_json(content)  # duplicates and other traps of JSON
        data = json.loads(content.decode("utf-8-sig"))
    except (JsonSyntaxError, ValueError) as error:
        raise _NoWayError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise _NoWayError(f"{path} is no table")
    return data


def _major(version: str) -> int:
    digits = version.lstrip("v^~>=").partition(".")[0]
    return int(digits) if digits.isdigit() else 0
