"""From the files of a repository to the units of the npm ecosystem: npm, pnpm, yarn and bun.

A unit is a lockfile with every manifest that it covers, or a lone manifest.
Which lock covers a manifest is decided here: the one beside it, or that of a
workspace root above whose patterns take the manifest's folder in.

`LockUnit.settings` of this ecosystem holds, where it applies:

- `members`: manifests' folders besides the root, from the top level.
- `catalogs`: catalog name (empty for the default) → package → `CatalogEntry`.
- `patched`: `name@version` or `name` → patch file, by the tool's own patches or `patch-package`.
- `code`: settings and files that would make a tool run code of the repository.
- `flags`: settings that change how the tool writes a lock.
- `engines`: manifest → its `engines`.
- `stray`: true for the lock of another package manager than the project's.
- `warnings`: texts for people.
- `outOfSync`: `(manifest, key, found)` where the lock does not say what the manifest asks.
- `ignoredOverrides`: overrides that stand where this tool does not read them.
- what the lock's own reader adds.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dependfix_core.collector import collector_paused
from dependfix_core.ecosystems.npm.bun_lock import read_bun_lock
from dependfix_core.ecosystems.npm.json_spans import line_and_column
from dependfix_core.ecosystems.npm.npm_lock import read_npm_lock
from dependfix_core.ecosystems.npm.package_json import SECTIONS, CatalogEntry, Catalogs, Manifest, read_package_json
from dependfix_core.ecosystems.npm.parsed import ParsedLock, Root, unreadable
from dependfix_core.ecosystems.npm.pnpm_lock import read_pnpm_lock
from dependfix_core.ecosystems.npm.selectors import split_name
from dependfix_core.ecosystems.npm.settings_files import (
    ToolSettings,
    read_bunfig,
    read_npmrc,
    read_pnpm_workspace,
    read_yarnrc,
    read_yarnrc_yml,
)
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.ecosystems.npm.workspaces import MANIFEST, PatternError, links_member, member_folders
from dependfix_core.ecosystems.npm.yarn_berry import YarnBerryLock, read_yarn_berry
from dependfix_core.ecosystems.npm.yarn_classic import YarnClassicLock, read_yarn_classic
from dependfix_core.model.files import Absence, FileContent, Listing
from dependfix_core.model.lock import (
    Constraint,
    DependencyKind,
    Instance,
    LockUnit,
    Override,
    Problem,
    ReleaseAgeGate,
    Source,
    SourceKind,
    Span,
)
from dependfix_core.model.steps import Step, file_contents, together
from dependfix_core.versions import Requirement, Unparsable, parse_requirement

ECOSYSTEM: Final = "npm"
MAX_FILE_BYTES: Final = 50 * 1024 * 1024
"""Larger files are not read."""

_CONFLICT: Final = (b"<<<<<<< ", b">>>>>>> ")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """A lockfile by its name."""

    format: str
    tool: str
    read: Callable[[str, bytes], ParsedLock | Problem]
    settings: tuple[str, ...] = ()
    """Settings files that lie beside it."""


_SETTINGS_READERS: Final[Mapping[str, Callable[[str, bytes], ToolSettings]]] = {
    ".npmrc": read_npmrc,
    ".yarnrc": read_yarnrc,
    ".yarnrc.yml": read_yarnrc_yml,
    "pnpm-workspace.yaml": read_pnpm_workspace,
    "bunfig.toml": read_bunfig,
}
_PNPM_FILES: Final = (".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js")


def _read_binary_lock(path: str, content: bytes) -> Problem:
    del content
    message = "bun.lockb is a binary file; `bun install --save-text-lockfile` turns it into bun.lock"
    return Problem(path=path, position="", message=message, reason="unsupported-lock-format")


def _read_yarn_lock(path: str, content: bytes) -> ParsedLock | Problem:
    """Since version 2 yarn writes another format under the same name."""
    if b"__metadata:" in content:
        return read_yarn_berry(path, content)
    return read_yarn_classic(path, content)


_YARN_SETTINGS: Final = (".npmrc", ".yarnrc", ".yarnrc.yml")
LOCKFILES: Final[Mapping[str, _Kind]] = {
    "npm-shrinkwrap.json": _Kind(format="npm-lock", tool="npm", read=read_npm_lock, settings=(".npmrc",)),
    "package-lock.json": _Kind(format="npm-lock", tool="npm", read=read_npm_lock, settings=(".npmrc",)),
    "pnpm-lock.yaml": _Kind(
        format="pnpm-lock", tool="pnpm", read=read_pnpm_lock, settings=(".npmrc", "pnpm-workspace.yaml")
    ),
    "yarn.lock": _Kind(format="yarn-classic", tool="yarn", read=_read_yarn_lock, settings=_YARN_SETTINGS),
    "bun.lock": _Kind(format="bun-lock", tool="bun", read=read_bun_lock, settings=(".npmrc", "bunfig.toml")),
    "bun.lockb": _Kind(format="bun-lockb", tool="bun", read=_read_binary_lock),
}
"""In the order in which one is chosen where a folder has several and the project does not say."""


def read_units(listing: Listing, manifest_paths: Iterable[str]) -> Step[tuple[LockUnit, ...]]:
    """The units that the paths belong to, each once, sorted by name.

    A path that is no file of the listing, or no file of this ecosystem, belongs
    to none. A file that cannot be read gives a unit with `problems`.
    """
    wanted = sorted({path for text in manifest_paths if (path := safe_path(text)) is not None})
    known = [path for path in wanted if path in listing or not listing.complete]
    above = {folder for path in known for folder in _folders_above(path)}
    roots = [folder for folder in sorted(above) if any(_join(folder, name) in listing for name in LOCKFILES)]
    hosts = yield from together([_read_host(listing, folder) for folder in roots])
    by_folder = {host.folder: host for host in hosts}
    locks: set[str] = set()
    lone: set[str] = set()
    for path in known:
        lock = _lock_of(path, by_folder)
        if lock is not None:
            locks.add(lock)
        elif posixpath.basename(path) == MANIFEST:
            lone.add(path)
        elif posixpath.basename(path) in LOCKFILES:
            locks.add(path)
    steps: list[Step[LockUnit | None]] = [_lock_unit(listing, lock, by_folder) for lock in sorted(locks)]
    steps += [_lone_unit(listing, path) for path in sorted(lone)]
    units = yield from together(steps)
    return tuple(sorted((unit for unit in units if unit is not None), key=lambda unit: unit.unit))


def unit_of(units: Sequence[LockUnit], manifest_path: str) -> LockUnit | None:
    """The unit in which an alert with this path is planned; a stray lock gives way to the project's own."""
    path = safe_path(manifest_path)
    for unit in units:
        if unit.unit == path:
            return unit
    covering = [unit for unit in units if path in unit.manifests]
    return min(covering, key=lambda unit: (bool(unit.settings.get("stray")), unit.unit), default=None)


def safe_path(text: str) -> str | None:
    """An alert's path as a path of the tree; `None` for one that leaves it or is empty."""
    path = posixpath.normpath(text.strip().replace("\\", "/").lstrip("/")) if text.strip() else ""
    return None if path in ("", ".") or path.startswith("..") or "\x00" in path else path


@dataclass(frozen=True, kw_only=True, slots=True)
class _Host:
    """A folder with at least one lockfile, and what decides which manifests its locks cover."""

    folder: str
    locks: tuple[str, ...]
    """Names of the lockfiles there, the project's own first."""
    named: str
    """Package manager that the project names; empty when it names none."""
    versions: Mapping[str, str]
    members: Mapping[str, tuple[str, ...]]
    """Lockfile name → folders of its members, from the top level."""
    problems: tuple[Problem, ...]


def _read_host(listing: Listing, folder: str) -> Step[_Host]:
    manifest_path, workspace_path = _join(folder, MANIFEST), _join(folder, "pnpm-workspace.yaml")
    found = yield from file_contents(_listed(listing, [manifest_path, workspace_path]))
    manifest = _manifest_of(found, manifest_path)
    workspace = _content(found.get(workspace_path))
    own = manifest.workspaces if isinstance(manifest, Manifest) else ()
    pnpm = read_pnpm_workspace(workspace_path, workspace).packages if workspace is not None else None
    named = manifest.package_manager if isinstance(manifest, Manifest) else ""
    names = [name for name in LOCKFILES if _join(folder, name) in listing]

    def rank(name: str) -> tuple[bool, bool, int]:
        tool = LOCKFILES[name].tool
        likely = tool == "pnpm" and workspace is not None
        return (bool(named) and tool != named, not likely, names.index(name))

    members: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for name in names:
        is_pnpm = LOCKFILES[name].tool == "pnpm"
        try:
            members[name] = member_folders(
                folder, (pnpm or ()) if is_pnpm else own, listing, negatives_always_win=is_pnpm
            )
        except PatternError as error:
            members[name] = ()
            problems.append(
                Problem(path=workspace_path if is_pnpm else manifest_path, position="workspaces", message=str(error))
            )
    return _Host(
        folder=folder,
        locks=tuple(sorted(names, key=rank)),
        named=named,
        versions=manifest.tools if isinstance(manifest, Manifest) else {},
        members=members,
        problems=tuple(problems),
    )


def _lock_of(path: str, hosts: Mapping[str, _Host]) -> str | None:
    """The lockfile in whose unit an alert on `path` is planned."""
    folder, name = posixpath.split(path)
    if name in LOCKFILES:
        return path
    own = hosts.get(folder)
    if name == "pnpm-workspace.yaml" and own is not None and "pnpm-lock.yaml" in own.locks:
        return _join(folder, "pnpm-lock.yaml")
    if name != MANIFEST:
        return None
    covering = _covering(folder, hosts)
    if own is not None and (covering is None or LOCKFILES[own.locks[0]].tool == LOCKFILES[covering[1]].tool):
        return _join(folder, own.locks[0])
    return _join(*covering) if covering is not None else None


def _covering(folder: str, hosts: Mapping[str, _Host]) -> tuple[str, str] | None:
    """Folder and name of the lock of the nearest workspace above that has `folder` as a member."""
    for above in _folders_above(f"{folder}/x")[1:] if folder else []:
        host = hosts.get(above)
        for name in host.locks if host is not None else ():
            if host is not None and folder in host.members[name]:
                return above, name
    return None


def _folders_above(path: str) -> list[str]:
    """The folder of `path` and all above it, the nearest first, the top level as empty text."""
    folders = []
    folder = posixpath.dirname(path)
    while folder:
        folders.append(folder)
        folder = posixpath.dirname(folder)
    return [*folders, ""]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _within(folder: str, relative: str) -> str | None:
    """A folder that a lock names relative to itself, from the top level; `None` when it leaves the tree."""
    path = posixpath.normpath(_join(folder, relative)) if relative else folder
    if path.startswith("..") or posixpath.isabs(relative):
        return None
    return "" if path == "." else path


def _listed(listing: Listing, paths: Iterable[str]) -> list[str]:
    """Those that are there; where the listing was cut, those that may be."""
    return [path for path in paths if path in listing or not listing.complete]


def _content(found: FileContent | Absence | None) -> bytes | None:
    return found.content if isinstance(found, FileContent) and len(found.content) <= MAX_FILE_BYTES else None


def _usable(path: str, found: FileContent | Absence | None) -> bytes | Problem:
    """The bytes of a file, or why they are not read."""
    if isinstance(found, Absence):
        messages = {
            Absence.MISSING: "there is no such file",
            Absence.TOO_LARGE: f"larger than {MAX_FILE_BYTES // 2**20} MiB",
            Absence.SYMLINK: "a symbolic link",
            Absence.SUBMODULE: "a submodule",
            Absence.LFS_POINTER: "stored outside git (LFS)",
            Absence.UNREADABLE: "cannot be read",
        }
        reason = "manifest-missing" if found is Absence.MISSING else "unreadable"
        return Problem(path=path, position="", message=messages[found], reason=reason)
    if found is None:
        return Problem(path=path, position="", message="there is no such file", reason="manifest-missing")
    content = found.content
    if len(content) > MAX_FILE_BYTES:
        return unreadable(path, "", f"larger than {MAX_FILE_BYTES // 2**20} MiB")
    for marker in _CONFLICT:
        at = 0 if content.startswith(marker) else content.find(b"\n" + marker) + 1
        if at or content.startswith(marker):
            return unreadable(path, line_and_column(content, at), "a merge conflict marker")
    if b"\x00" in content[:8000]:
        return unreadable(path, "", "a binary file")
    return content


def _manifest_of(found: Mapping[str, FileContent | Absence], path: str) -> Manifest | Problem:
    content = _usable(path, found.get(path))
    return content if isinstance(content, Problem) else read_package_json(path, content)


def _lock_unit(listing: Listing, lock_path: str, hosts: Mapping[str, _Host]) -> Step[LockUnit | None]:
    folder, name = posixpath.split(lock_path)
    kind, host = LOCKFILES[name], hosts.get(folder)
    settings_paths = _settings_paths(listing, folder, kind)
    manifest_path = _join(folder, MANIFEST)
    is_text = kind.format != "bun-lockb"
    first = yield from file_contents(
        _listed(listing, [*([lock_path] if is_text else []), manifest_path, *settings_paths])
    )
    content = _usable(lock_path, first.get(lock_path)) if is_text else b""
    if isinstance(content, Problem) and content.reason == "manifest-missing":
        return None  # the listing was cut, and there is no such file after all
    with collector_paused():
        lock = content if isinstance(content, Problem) else kind.read(lock_path, content)
    settings = _read_settings(first, settings_paths)
    members = _member_folders(folder, host.members.get(name, ()) if host is not None else (), lock)
    member_paths = [_join(member, MANIFEST) for member in members]
    second = yield from file_contents(_listed(listing, member_paths))
    files = {**first, **second}
    reading = _Reading(
        lock_path=lock_path, kind=kind, lock=lock, host=host, files=files, settings=settings, listing=listing
    )
    manifests: dict[str, Manifest] = {}
    for path in [manifest_path, *member_paths]:
        manifest = _manifest_of(files, path)
        if isinstance(manifest, Manifest):
            manifests[path] = manifest
        elif (path in files and manifest.reason != "manifest-missing") or path == manifest_path:
            reading.problems.append(manifest)
            if manifest.reason == "unreadable" and not isinstance(lock, Problem):
                # Nobody knows what it asks of the lock.
                said = f"{manifest.path}:{manifest.position}: {manifest.message}"
                reading.problems.append(replace(manifest, path=lock_path, position="", message=said))
    return reading.unit(manifests, _stray(lock_path, hosts))


def _lone_unit(listing: Listing, path: str) -> Step[LockUnit | None]:
    above = _folders_above(path)
    places = [_join(folder, name) for folder in above for name in ("pnpm-workspace.yaml", ".yarnrc.yml")]
    settings_paths = [*places, _join(above[0], ".npmrc"), _join(above[0], "bunfig.toml")]
    roots = [_join(folder, MANIFEST) for folder in above[1:]]
    files = yield from file_contents(_listed(listing, [path, *settings_paths, *roots]))
    manifest = _manifest_of(files, path)
    if isinstance(manifest, Problem):
        if manifest.reason == "manifest-missing":
            return None
        return LockUnit(
            unit=path,
            ecosystem=ECOSYSTEM,
            format="manifest",
            manifests=(path,),
            files=_read_files(files),
            problems=(manifest,),
        )
    settings = _read_settings(files, settings_paths)
    hosts = [found for root in roots if isinstance(found := _manifest_of(files, root), Manifest)]
    tool = next((found.package_manager for found in [manifest, *hosts] if found.package_manager), "npm")
    version = next((found.tools[tool] for found in [manifest, *hosts] if tool in found.tools), "")
    catalogs = _catalogs([*(setting.catalogs for setting in settings), *(host.catalogs for host in [manifest, *hosts])])
    constraints = tuple(_follow(constraint, catalogs) for constraint in manifest.constraints)
    overrides, _ = _overrides(tool, version, manifest, settings, catalogs, None)
    return LockUnit(
        unit=path,
        ecosystem=ECOSYSTEM,
        format="manifest",
        manifests=(path,),
        files=_read_files(files),
        constraints=constraints,
        overrides=overrides,
        gates=_gates(tool, settings),
        runtime=dict(manifest.engines),
        tool=tool,
        tool_version=version,
        registries=_registries(tool, settings, {}),
        problems=tuple(problem for setting in settings for problem in setting.problems),
        settings={"catalogs": catalogs, "patched": dict(manifest.patched), "code": _code(settings)},
    )


def _settings_paths(listing: Listing, folder: str, kind: _Kind) -> list[str]:
    """Settings files beside the lock; yarn since version 2 also reads those of all folders above."""
    paths = [_join(folder, name) for name in kind.settings]
    if ".yarnrc.yml" in kind.settings:
        paths += [_join(above, ".yarnrc.yml") for above in _folders_above(folder) if above != folder and folder]
    return _listed(listing, paths)


def _read_settings(files: Mapping[str, FileContent | Absence], paths: Sequence[str]) -> list[ToolSettings]:
    found: list[ToolSettings] = []
    for path in paths:
        content = files.get(path)
        if content is None or content is Absence.MISSING:
            continue
        usable = _usable(path, content)
        if isinstance(usable, Problem):
            found.append(ToolSettings(path=path, problems=(usable,)))
        else:
            found.append(_SETTINGS_READERS[posixpath.basename(path)](path, usable))
    return found


def _member_folders(folder: str, listed: tuple[str, ...], lock: ParsedLock | Problem) -> tuple[str, ...]:
    """Folders by the workspace's patterns and by the lock itself, from the top level."""
    of_lock = () if isinstance(lock, Problem) else lock.member_folders
    inside = {path for relative in of_lock if (path := _within(folder, relative)) is not None}
    return tuple(sorted((inside | set(listed)) - {folder}))


def _read_files(files: Mapping[str, FileContent | Absence]) -> tuple[str, ...]:
    return tuple(sorted(path for path, found in files.items() if isinstance(found, FileContent)))


@dataclass(kw_only=True, slots=True)
class _Reading:
    """One lock and everything beside it, on the way to a unit."""

    lock_path: str
    kind: _Kind
    lock: ParsedLock | Problem
    host: _Host | None
    files: Mapping[str, FileContent | Absence]
    settings: list[ToolSettings]
    listing: Listing
    problems: list[Problem] = field(default_factory=list)

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.lock_path)

    @collector_paused()
    def unit(self, manifests: Mapping[str, Manifest], stray: str) -> LockUnit:
        tool = self.kind.tool
        root = manifests.get(_join(self.folder, MANIFEST))
        version = root.tools.get(tool, "") if root is not None else ""
        catalogs = _catalogs(
            [*(setting.catalogs for setting in self.settings), *([root.catalogs] if root is not None else [])]
        )
        instances: Mapping[str, Instance] = {}
        out_of_sync: tuple[tuple[str, str, str], ...] = ()
        lock_settings: Mapping[str, Any] = {}
        mirrored = None
        lock = self.lock
        if root is not None and not isinstance(lock, Problem):
            resolutions = {item.selector: item.value for item in root.resolutions}
            if isinstance(lock, YarnBerryLock):
                lock = self.lock = lock.with_resolutions(resolutions)
            elif isinstance(lock, YarnClassicLock):
                direct = {item.name for manifest in manifests.values() for item in manifest.constraints}
                lock = self.lock = lock.with_resolutions(resolutions, direct)
        constraints: list[Constraint] = []
        members = self._unlocked_members(manifests)
        for path, manifest in manifests.items():
            folder = self._relative_folder(path)
            for constraint in manifest.constraints:
                followed = _follow(constraint, catalogs)
                target = None if isinstance(lock, Problem) else lock.target(folder, followed)
                if target is None and links_member(followed.requirement, members.get(followed.package, "")):
                    followed = replace(followed, source=Source(kind=SourceKind.WORKSPACE))
                constraints.append(followed if target is None else replace(followed, target=target))
        if isinstance(lock, Problem):
            self.problems.insert(0, lock)
        else:
            roots = [Root(where=item.target, kind=item.kind) for item in constraints if item.target is not None]
            folders = [self._relative_folder(path) for path in manifests]
            instances = _with_patches(lock.instances(roots, folders), self._patched(root))
            self.problems[:0] = lock.problems
            lock_settings, mirrored = lock.settings, lock.overrides
        overrides, ignored = _overrides(tool, version, root, self.settings, catalogs, mirrored)
        if not isinstance(self.lock, Problem):
            out_of_sync = self._out_of_sync(manifests, constraints, overrides)
        self.problems += [problem for setting in self.settings for problem in setting.problems]
        self.problems += self.host.problems if self.host is not None else ()
        return LockUnit(
            unit=self.lock_path,
            ecosystem=ECOSYSTEM,
            format=self.kind.format if isinstance(self.lock, Problem) else self.lock.format,
            format_version="" if isinstance(self.lock, Problem) else self.lock.format_version,
            manifests=tuple(manifests),
            files=_read_files(self.files),
            instances=instances,
            constraints=tuple(constraints),
            overrides=overrides,
            gates=_gates(tool, self.settings),
            runtime=_runtime(root, manifests),
            tool=tool,
            tool_version=version,
            registries=_registries(tool, self.settings, instances),
            problems=tuple(self.problems),
            settings={
                **lock_settings,
                "members": tuple(
                    posixpath.dirname(path) for path in manifests if posixpath.dirname(path) != self.folder
                ),
                "catalogs": catalogs,
                "patched": self._patched(root),
                "code": (*_code(self.settings), *self._code_files()),
                "flags": {key: text for setting in self.settings for key, text in setting.flags.items()},
                "engines": {path: dict(manifest.engines) for path, manifest in manifests.items() if manifest.engines},
                "stray": bool(stray),
                "warnings": tuple(text for text in (stray, self._shrinkwrap_warning(version)) if text),
                "outOfSync": out_of_sync,
                "ignoredOverrides": ignored,
            },
        )

    def _unlocked_members(self, manifests: Mapping[str, Manifest]) -> dict[str, str]:
        """Name → version of the members that yarn 1 links where a range takes them, without a word in the lock."""
        if not isinstance(self.lock, YarnClassicLock):
            return {}
        return {one.name: one.version for path, one in manifests.items() if path != _join(self.folder, MANIFEST)}

    def _relative_folder(self, manifest_path: str) -> str:
        """Folder of a manifest as the lock names it."""
        folder = posixpath.dirname(manifest_path)
        relative = posixpath.relpath(folder or ".", self.folder or ".")
        return "" if relative == "." else relative

    def _patched(self, root: Manifest | None) -> dict[str, str]:
        found = dict(root.patched) if root is not None else {}
        for setting in self.settings:
            found |= setting.patched
        if not isinstance(self.lock, Problem):
            found |= dict.fromkeys(self.lock.settings.get("patchedDependencies", ()), self.lock_path)
        prefix = _join(self.folder, "patches/")
        for path in self.listing:
            if path.startswith(prefix) and path.endswith(".patch") and "/" not in path[len(prefix) :]:
                # The names that `patch-package` gives: `name+1.2.3.patch`, `@scope+name+1.2.3.patch`.
                *name, version = path[len(prefix) : -len(".patch")].split("+")
                if name and version[:1].isdigit():
                    found.setdefault(f"{'/'.join(name)}@{version}", path)
        return found

    def _code_files(self) -> Iterator[str]:
        names = _PNPM_FILES if self.kind.tool == "pnpm" else ()
        yield from (path for name in names if (path := _join(self.folder, name)) in self.listing)

    def _shrinkwrap_warning(self, version: str) -> str:
        major = version.partition(".")[0]
        ignored = posixpath.basename(self.lock_path) == "npm-shrinkwrap.json" and major.isdigit() and int(major) >= 12
        return "npm 12 does not read npm-shrinkwrap.json" if ignored else ""

    def _out_of_sync(
        self, manifests: Mapping[str, Manifest], constraints: Sequence[Constraint], overrides: Sequence[Override]
    ) -> tuple[tuple[str, str, str], ...]:
        """Where manifest and lock say different things; each also becomes a problem of the lock."""
        assert not isinstance(self.lock, Problem)
        declared = self.lock.declared
        found: list[tuple[str, str, str]] = []
        if declared is None:
            # npm 6 does not install what a linked folder needs for its own development.
            with_dev = set(manifests) if self.kind.tool != "npm" else {_join(self.folder, MANIFEST)}
            found = [
                (item.declared_in or item.path, item.at, "nothing")
                for item in constraints
                if item.target is None
                and item.source.kind is SourceKind.REGISTRY
                and (
                    item.kind is DependencyKind.PROD
                    or (item.kind is DependencyKind.DEV and (item.declared_in or item.path) in with_dev)
                )
            ]
        else:
            forced = {override.package for override in overrides if not override.parents}
            for path, manifest in manifests.items():
                mirror = declared.get(self._relative_folder(path))
                found += _differences(path, manifest, mirror, self.lock, forced)
        for path, key, what in found:
            message = f"{path} asks for {key}, the lockfile has {what}: it is not in sync"
            self.problems.append(Problem(path=self.lock_path, position=key, message=message, reason="tool-required"))
        return tuple(found)


def _differences(
    path: str,
    manifest: Manifest,
    mirror: Mapping[str, Mapping[str, str]] | None,
    lock: ParsedLock,
    forced: set[str],
) -> Iterator[tuple[str, str, str]]:
    """What a manifest declares and the lock's mirror of it does not, and the reverse.

    npm takes another text for the same package as long as it is met. Of peers
    only npm and bun keep a mirror; overrides and hooks of pnpm change the texts.
    """
    keeps_peers = lock.format in ("npm-lock", "bun-lock")
    hooked = bool(lock.settings.get("checksums"))
    passed_over = set(lock.settings.get("ignoredOptional", ()))
    asked = _effective({section: manifest.data.get(section) for section in SECTIONS})
    held = _effective(mirror or {})
    for name, (section, text) in asked.items():
        if (section == "peerDependencies" and not keeps_peers) or name in passed_over:
            continue
        if name not in held:
            if not hooked and read_specifier(name, text).source.kind is SourceKind.REGISTRY:
                yield path, f"{section}.{name}", "nothing"
        elif lock.format != "npm-lock" and not hooked and name not in forced:
            wanted, found = read_specifier(name, text), read_specifier(name, held[name][1])
            if (wanted.package, wanted.requirement) != (found.package, found.requirement):
                yield path, f"{section}.{name}", held[name][1]
    if hooked:
        return
    for name, (section, text) in held.items():
        if name not in asked:
            yield path, f"{section}.{name}", text


def _effective(sections: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Name → the section that decides, and its text: optional before prod before dev before peer."""
    found: dict[str, tuple[str, str]] = {}
    for section in ("peerDependencies", "devDependencies", "dependencies", "optionalDependencies"):
        declared = sections.get(section)
        for name, text in declared.items() if isinstance(declared, Mapping) else ():
            if isinstance(text, str):
                found[name] = (section, text)
    return found


def _stray(lock_path: str, hosts: Mapping[str, _Host]) -> str:
    """Why the lock is not the one that the project uses; empty when it is."""
    folder, name = posixpath.split(lock_path)
    tool, host = LOCKFILES[name].tool, hosts.get(folder)
    covering = _covering(folder, hosts)
    if covering is not None and LOCKFILES[covering[1]].tool != tool:
        return f"{lock_path} lies in a workspace that {_join(*covering)} locks"
    if host is None or host.locks[0] == name:
        return ""
    other = LOCKFILES[host.locks[0]].tool
    if other == tool:
        return f"{tool} reads {host.locks[0]} and not {name}"
    if host.named and host.named != tool:
        return f"the project names {host.named}, {name} is of {tool}"
    return f"{host.locks[0]} lies beside {name}; one of them is stale" if other == "pnpm" else ""


def _catalogs(sources: Sequence[Catalogs]) -> Catalogs:
    merged: dict[str, dict[str, CatalogEntry]] = {}
    for catalogs in sources:
        for name, entries in catalogs.items():
            merged.setdefault(name, {}).update(entries)
    return merged


def _follow(constraint: Constraint, catalogs: Catalogs) -> Constraint:
    """A `catalog:` requirement with the text and place of its entry."""
    if not constraint.via:
        return constraint
    catalog = read_specifier(constraint.name, constraint.via).catalog or ""
    entry = catalogs.get(catalog, {}).get(constraint.name)
    if entry is None:
        return replace(constraint, span=None)
    specifier = read_specifier(constraint.name, entry.text)
    span = entry.span
    if span is not None and specifier.start:
        span = Span(start=span.start + len(entry.text[: specifier.start].encode()), end=span.end)
    return replace(
        constraint,
        path=entry.path,
        at=entry.at,
        package=specifier.package,
        requirement=specifier.requirement,
        span=span,
        source=specifier.source,
        declared_in=constraint.path,
    )


def _with_patches(instances: Mapping[str, Instance], patched: Mapping[str, str]) -> Mapping[str, Instance]:
    """The copies, those to which a patch of the project is applied marked as such."""
    if not patched:
        return instances
    conditions: dict[str, list[Requirement | None]] = {}
    for key in patched:
        name, text = split_name(key)
        wanted = parse_requirement("npm", text) if text else None
        if not isinstance(wanted, Unparsable):
            conditions.setdefault(name, []).append(wanted)
    return {
        where: replace(one, patched=True)
        if any(wanted is None or wanted.admits(one.version).is_yes for wanted in conditions.get(one.name, ()))
        else one
        for where, one in instances.items()
    }


def _follow_override(override: Override, catalogs: Catalogs) -> Override:
    """An override with a `catalog:` value with the text and place of its entry."""
    catalog = read_specifier(override.package, override.value.strip()).catalog
    entry = catalogs.get(catalog, {}).get(override.package) if catalog is not None else None
    if entry is None:
        return override
    return replace(
        override,
        path=entry.path,
        at=entry.at,
        value=entry.text,
        span=entry.span,
        via=override.value,
        stands_at=(override.path, override.at),
    )


def _overrides(
    tool: str,
    version: str,
    root: Manifest | None,
    settings: Sequence[ToolSettings],
    catalogs: Catalogs,
    mirrored: Mapping[str, str] | None,
) -> tuple[tuple[Override, ...], tuple[Override, ...]]:
    """The overrides that the tool reads, and those that stand where it does not."""
    read, ignored = _placed_overrides(tool, version, root, settings, mirrored)
    return tuple(_follow_override(one, catalogs) for one in read), ignored


def _placed_overrides(
    tool: str,
    version: str,
    root: Manifest | None,
    settings: Sequence[ToolSettings],
    mirrored: Mapping[str, str] | None,
) -> tuple[tuple[Override, ...], tuple[Override, ...]]:
    """The overrides as they are written, by whether the tool reads them.

    pnpm since version 11 passes over package.json; where the project does not
    name its version, the lock's own list says whether they count.
    """
    if root is None:
        of_files = tuple(override for setting in settings for override in setting.overrides)
        return (of_files, ()) if tool == "pnpm" else ((), ())
    if tool == "npm":
        return root.npm_overrides, (*root.pnpm_overrides, *root.resolutions)
    if tool == "yarn":
        return root.resolutions, (*root.npm_overrides, *root.pnpm_overrides)
    if tool == "bun":
        return (*root.npm_overrides, *root.resolutions), root.pnpm_overrides
    of_files = tuple(override for setting in settings for override in setting.overrides)
    in_manifest = (*root.pnpm_overrides, *root.resolutions)
    major = version.partition(".")[0]
    if major.isdigit():
        counts = int(major) < 11
    else:
        counts = mirrored is None or any(override.selector in mirrored for override in in_manifest)
    if not counts:
        return of_files, (*in_manifest, *root.npm_overrides)
    taken = {override.selector for override in root.pnpm_overrides}
    shadowed = tuple(override for override in of_files if override.selector in taken)
    return (
        (*in_manifest, *(override for override in of_files if override.selector not in taken)),
        (*shadowed, *root.npm_overrides),
    )


_GATES_OF: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset({"min-release-age"}),
    "pnpm": frozenset({"minimumReleaseAge", "trustPolicy"}),
    "yarn": frozenset({"npmMinimalAgeGate"}),
    "bun": frozenset({"minimumReleaseAge"}),
}


def _gates(tool: str, settings: Sequence[ToolSettings]) -> tuple[ReleaseAgeGate, ...]:
    return tuple(gate for setting in settings for gate in setting.gates if gate.kind in _GATES_OF[tool])


def _code(settings: Sequence[ToolSettings]) -> tuple[str, ...]:
    return tuple(text for setting in settings for text in setting.code)


def _runtime(root: Manifest | None, manifests: Mapping[str, Manifest]) -> dict[str, str]:
    """The root's `engines`; where it has no `node`, the one text that all members with one agree on."""
    engines = dict(root.engines) if root is not None else {}
    floors = {manifest.engines["node"] for manifest in manifests.values() if "node" in manifest.engines}
    if "node" not in engines and len(floors) == 1:
        engines["node"] = floors.pop()
    return engines


_REGISTRY_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "npm": (".npmrc",),
    "pnpm": (".npmrc", "pnpm-workspace.yaml"),
    "yarn": (".npmrc", ".yarnrc", ".yarnrc.yml"),
    "bun": (".npmrc", "bunfig.toml"),
}


def _registries(tool: str, settings: Sequence[ToolSettings], instances: Mapping[str, Instance]) -> dict[str, str]:
    """Addresses from settings files; where they give none, the one that most locked copies of a scope come from."""
    counts: dict[str, dict[str, int]] = {"": {}}
    unscoped = counts[""]
    for instance in instances.values():
        base = instance.source.base
        if base:
            name = instance.name
            bases = counts.setdefault(name.partition("/")[0], {}) if name.startswith("@") else unscoped
            bases[base] = bases.get(base, 0) + 1
    found = {scope: max(sorted(bases), key=bases.__getitem__) for scope, bases in counts.items() if bases}
    default = found.get("")
    found = {scope: base for scope, base in found.items() if not scope or base != default}
    by_name = {posixpath.basename(setting.path): setting for setting in reversed(settings)}
    for name in _REGISTRY_FILES[tool]:
        if name in by_name:
            found |= by_name[name].registries
    return found
