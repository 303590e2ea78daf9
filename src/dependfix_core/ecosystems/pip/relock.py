"""How uv, poetry, pdm, pipenv and pip-tools bring their own locks to a plan's end state, in a scratch copy.

* uv and the compilers of requirements files take exact versions on request.
* Poetry, pdm and pipenv do not: the versions are put into the manifest for one
  run and taken out for the next, which keeps what is locked.

None of them may build anything, since building runs code of the project or of
a source distribution. Where a tool cannot be kept from it, or has something
in its way that only building could answer, it is not run.
"""

import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dependfix_core.ecosystems.base import ToolCall, ToolRelock, WriteRefusal
from dependfix_core.ecosystems.pip.relock_compiled import compiled
from dependfix_core.ecosystems.pip.relock_manifests import (
    neutral,
    project_of,
    tool_table,
    with_pdm_versions,
    with_pipenv_versions,
    with_poetry_versions,
    without_entries,
)
from dependfix_core.ecosystems.pip.relock_work import NoWayError, Work
from dependfix_core.ecosystems.pip.splice import splice
from dependfix_core.ecosystems.pip.toml_text import TomlTextError, parse_toml, strings_of, table_of, tables_of
from dependfix_core.ecosystems.pip.write_manifest import edit_replacements, write_edits
from dependfix_core.model.files import FileContent
from dependfix_core.model.lock import LockUnit, SourceKind
from dependfix_core.model.plan import Edit, Move, Remediation
from dependfix_core.model.steps import Step, file_contents

MANIFEST: Final = "pyproject.toml"

_UV: Final = ("uv", "lock", "--no-build", "--keyring-provider=disabled")
_POETRY: Final = ("poetry", "--no-interaction", "--no-plugins", "--no-ansi", "lock")
_PDM: Final = ("pdm", "lock", "--skip=:all")
_PIPENV: Final = ("pipenv", "upgrade", "--lock-only")
_UV_OPTIONS: Final = {
    "resolution-mode": "resolution",
    "prerelease-mode": "prerelease",
    "fork-strategy": "fork-strategy",
    "exclude-newer": "exclude-newer",
}
"""Options of the lock → the setting and flag of the same meaning."""
_WHEELS_ONLY: Final = {"PDM_ONLY_BINARY": ":all:"}
_PIPENV_WHEELS_ONLY: Final = {"PIP_ONLY_BINARY": ":all:"}


def relock(unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
    """See `Ecosystem.relock`."""
    make = _TOOLS.get(unit.format)
    if make is None:
        return WriteRefusal(reason="tool-required", detail=f"no package manager writes {unit.unit} anew")
    edits = tuple(dict.fromkeys(edit for one in remediations for edit in one.edits))
    wanted = {*unit.files, *(edit.path for edit in edits), *_local_manifests(unit), *_beside(unit)}
    found = yield from file_contents(sorted(wanted))
    originals = {path: file.content for path, file in found.items() if isinstance(file, FileContent)}
    edited = _edited(unit, originals, edits)
    if isinstance(edited, WriteRefusal):
        return edited
    work = Work(unit=unit, originals=originals, edited=edited, moves=_free_moves(unit, remediations), edits=edits)
    try:
        return make(work)
    except NoWayError as error:
        return WriteRefusal(reason="tool-required", detail=str(error))
    except TomlTextError as error:
        return WriteRefusal(reason="tool-required", detail=error.message)


def _edited(unit: LockUnit, originals: Mapping[str, bytes], edits: Sequence[Edit]) -> dict[str, bytes] | WriteRefusal:
    """Path → content of the manifests that the plan changes."""
    if unit.format != "requirements":
        return write_edits(unit, originals, edits)
    replacements = edit_replacements(unit, originals, edits)
    if isinstance(replacements, WriteRefusal):
        return replacements
    return {path: splice(originals[path], found) for path, found in replacements.items()}


def _free_moves(unit: LockUnit, remediations: Sequence[Remediation]) -> dict[str, Move]:
    """Place → the move of a copy that stays; what comes in and what goes follows by itself."""
    found: dict[str, Move] = {}
    for remediation in remediations:
        for move in remediation.moves:
            if move.to_version is not None and move.from_version is not None and move.where in unit.instances:
                found[move.where] = move
    return found


def _beside(unit: LockUnit) -> Iterable[str]:
    """Files that would change what the tool does, and that nobody has read."""
    if unit.format == "uv-lock":
        yield posixpath.join(posixpath.dirname(unit.unit), "uv.toml")


def _local_manifests(unit: LockUnit) -> dict[str, str]:
    """Manifest → name, of the projects of the checkout that the lock holds."""
    found: dict[str, str] = {}
    folders: Mapping[str, str] = unit.settings.get("locals", {})
    for where, one in unit.instances.items():
        folder = folders.get(where)
        is_directory = table_of(one.raw.get("source")).get("type") == "directory"
        if folder is None and unit.format == "poetry-lock" and is_directory:
            folder = posixpath.normpath(posixpath.join(posixpath.dirname(unit.unit), one.source.text))
        if folder is not None and not folder.startswith(("..", "/")):
            found[posixpath.join(folder, MANIFEST)] = one.name
    return found


# What they share.


def _scratch(
    work: Work,
    calls: Sequence[ToolCall],
    *,
    by_hand: str,
    version: str = "",
    registries: Mapping[str, str] | None = None,
    tables: str = "",
) -> ToolRelock:
    """The scratch copy with `calls`; `tables` names the tool whose settings are cut to those that count."""
    files: dict[str, bytes] = {}
    restored: dict[str, bytes] = {}
    warnings: list[str] = []
    for path, content in work.final.items():
        files[path] = content
        if tables and posixpath.basename(path) == MANIFEST:
            files[path], dropped = neutral(content, tables)
            warnings += [f"neutralised: {name} of {path}" for name in dropped]
            if dropped and path in work.edited:
                restored[path] = content
    unit = work.unit
    return ToolRelock(
        tool=unit.tool,
        version=version,
        files=files,
        results=(unit.unit,),
        calls=tuple(calls),
        edited=tuple(sorted(work.edited)),
        restored=restored,
        registries=unit.registries if registries is None else registries,
        folder=work.folder or ".",
        by_hand=f"cd {shlex.quote(work.folder)} && {by_hand}" if work.folder else by_hand,
        warnings=tuple(warnings),
    )


def _require_registry(unit: LockUnit, local: Mapping[str, str]) -> None:
    """What comes from elsewhere would be fetched from there and built."""
    for one in unit.instances.values():
        kind = one.source.kind
        if kind in (SourceKind.WORKSPACE, SourceKind.LINK, SourceKind.FILE) and one.name in local.values():
            continue
        if kind is not SourceKind.REGISTRY:
            source = one.source.text or kind.value
            raise NoWayError(f"{one.name} comes from {source}, which {unit.tool} would have to build")


def _require_one_copy(work: Work) -> None:
    """A version that is forced for a name hits all its copies, which is right where all of them go there."""
    places: dict[str, list[str]] = {}
    for where, one in work.unit.instances.items():
        places.setdefault(one.name, []).append(where)
    for move in work.moves.values():
        name = work.unit.instances[move.where].name
        ends = {work.moves[where].to_version if where in work.moves else None for where in places[name]}
        if len(ends) > 1:
            raise NoWayError(f"{name} is locked more than once, and {work.unit.tool} would pin all its copies")


def _targets(work: Work) -> dict[str, str]:
    """Package → version that it goes to."""
    found: dict[str, str] = {}
    for where in sorted(work.moves):
        name = work.unit.instances[where].name
        version = str(work.moves[where].to_version)
        if found.setdefault(name, version) != version:
            raise NoWayError(f"{name} would go to {found[name]} and to {version}")
    return found


def _require_checked_hosts(sources: object) -> None:
    """Where the project turns the check of a host's certificate off, no credential is safe."""
    for one in tables_of(sources):
        if one.get("verify_ssl") is False and not str(one.get("url", "")).startswith("http:"):
            raise NoWayError(f"the certificate of {one.get('name', 'a source')} is not checked")


# uv


def _uv(work: Work) -> ToolRelock:
    unit = work.unit
    if posixpath.join(work.folder, "uv.toml") in work.originals:
        raise NoWayError("a uv.toml is in force, whose addresses are not known")
    local = _local_manifests(unit)
    _require_registry(unit, local)
    _require_one_copy(work)
    for path in sorted({*local, *unit.manifests}):
        _require_static(work, path)
    root = work.final.get(posixpath.join(work.folder, MANIFEST), b"")
    pins = [f"--upgrade-package={name}=={version}" for name, version in _targets(work).items()]
    argv = (*_UV, *_uv_options(unit, tool_table(root, "uv")), *pins)
    by_hand = shlex.join(("uv", "lock", *pins))
    return _scratch(work, [ToolCall(argv=argv)], by_hand=by_hand, registries=_uv_registries(unit), tables="uv")


def _require_static(work: Work, path: str) -> None:
    """Uv builds a project of the workspace that does not say everything in plain text, whatever it is told."""
    if path not in work.final:
        raise NoWayError(f"{path} is not there, and uv would have to build its project")
    project = project_of(work.final[path])
    is_root = path == posixpath.join(work.folder, MANIFEST)
    if project is None and not is_root:
        raise NoWayError(f"{path} has no [project] table, and uv would have to build it")
    computed = sorted({"version", "dependencies", "optional-dependencies", "requires-python"} & {*_dynamic(project)})
    if computed:
        raise NoWayError(f"{path} computes its {computed[0]}, for which uv would have to build it")


def _dynamic(project: Mapping[str, Any] | None) -> tuple[str, ...]:
    return strings_of(project.get("dynamic")) if project is not None else ()


def _uv_options(unit: LockUnit, settings: Mapping[str, Any]) -> list[str]:
    """Options that the lock was made with and that the manifest does not repeat; without them uv would start afresh."""
    options: Mapping[str, Any] = unit.settings.get("options", {})
    found = []
    for name, value in sorted(options.items()):
        setting = _UV_OPTIONS.get(name)
        if name in settings or setting in settings:
            continue
        if name == "exclude-newer-span" and "exclude-newer" in settings:
            continue
        if setting is None or not isinstance(value, str | int) or str(value).startswith("-"):
            raise NoWayError(f"the lock was made with the option {name}, which is not known")
        found.append(f"--{setting}={value}")
    return found


def _uv_registries(unit: LockUnit) -> Mapping[str, str]:
    """With the default index as the lock spells it, since uv writes what it is given."""
    if "" in unit.registries:
        return unit.registries
    named = {url.rstrip("/") for url in unit.registries.values()}
    bases = {one.source.base for one in unit.instances.values() if one.source.kind is SourceKind.REGISTRY}
    others = sorted(base for base in bases if base.rstrip("/") not in named)
    if len(others) > 1:
        raise NoWayError(f"the lock is made from {len(others)} indexes that no manifest names")
    return {**unit.registries, "": others[0]} if others else unit.registries


# poetry


def _poetry(work: Work) -> ToolRelock:
    unit = work.unit
    if unit.format_version in ("1.0", "1.1"):
        raise NoWayError("the lock is of a poetry before 1.3, and newer ones write it in another format")
    local = _local_manifests(unit)
    _require_registry(unit, local)
    _require_one_copy(work)
    manifest = _only_manifest(work)
    version = unit.tool_version or ("2" if unit.format_version == "2.1" else "1")
    argv = _POETRY if version.partition(".")[0] != "1" else (*_POETRY, "--no-update")
    pins = _targets(work)
    calls = [ToolCall(argv=argv)]
    by_hand = shlex.join(("poetry", *argv[4:]))
    if pins:
        temporary, _ = neutral(with_poetry_versions(work, manifest, pins), "poetry")
        final, _ = neutral(work.final[manifest], "poetry")
        calls = [ToolCall(argv=argv, files={manifest: temporary}), ToolCall(argv=argv, files={manifest: final})]
        by_hand = _taken_back(pins, MANIFEST, by_hand)
    return _scratch(work, calls, by_hand=by_hand, version=version, tables="poetry")


def _only_manifest(work: Work) -> str:
    if len(work.unit.manifests) != 1:
        raise NoWayError(f"{work.unit.unit} has no manifest that could be read")
    return work.unit.manifests[0]


def _taken_back(pins: Mapping[str, str], where: str, command: str) -> str:
    entries = ", ".join(f"{name}=={version}" for name, version in pins.items())
    return f"require {entries} in {where}, run `{command}`, take it out again, run it once more"


# pdm


def _pdm(work: Work) -> ToolRelock:
    unit = work.unit
    _require_registry(unit, {})
    _require_one_copy(work)
    manifest = _only_manifest(work)
    _require_checked_hosts(tool_table(work.final[manifest], "pdm").get("source"))
    if "static_urls" in unit.settings.get("strategy", ()):
        raise NoWayError("the lock holds addresses, which pdm takes from the index that it is given")
    pins = _targets(work)
    again = (*_PDM, "--update-reuse")
    by_hand = shlex.join(("pdm", "lock", "--update-reuse"))
    calls = [ToolCall(argv=again, env=_WHEELS_ONLY)]
    if pins:
        final, _ = neutral(work.final[manifest], "pdm")
        temporary = {
            manifest: with_pdm_versions(final, pins),
            unit.unit: without_entries(work.originals[unit.unit], pins.keys()),
        }
        calls = [
            ToolCall(argv=again, files=temporary, env=_WHEELS_ONLY),
            ToolCall(argv=again, files={manifest: final}, env=_WHEELS_ONLY),
            # Only now all files of a release are listed; nothing is resolved for it.
            ToolCall(argv=(*_PDM, "--refresh")),
        ]
        by_hand = _taken_back(pins, "tool.pdm.resolution.overrides", by_hand)
    return _scratch(work, calls, by_hand=by_hand, version="2", tables="pdm")


# pipenv


def _pipenv(work: Work) -> ToolRelock:
    unit = work.unit
    _require_registry(unit, {})
    manifest = _only_manifest(work)
    if b"${" in work.final[manifest]:
        raise NoWayError(f"{manifest} holds variables, which pipenv would expand")
    _require_checked_hosts(parse_toml(work.final[manifest]).get("source"))
    sections = {one.groups[0] for one in unit.instances.values()}
    if not sections <= {"default", "develop"}:
        raise NoWayError("pipenv has no way to move copies of sections of the project's own")
    pins = _targets(work)
    refresh = ToolCall(argv=_PIPENV, files={manifest: work.final[manifest]}, env=_PIPENV_WHEELS_ONLY)
    calls = []
    if pins:
        temporary = {manifest: with_pipenv_versions(work, manifest, pins)}
        in_default = {unit.instances[where].name for where in work.moves if where.startswith("default.")}
        for flags, names in (((), in_default), (("--dev",), pins.keys() - in_default)):
            if names:
                wanted = tuple(f"{name}=={pins[name]}" for name in sorted(names))
                calls.append(ToolCall(argv=(*_PIPENV, *flags, *wanted), files=temporary, env=_PIPENV_WHEELS_ONLY))
    entries = tuple(f"{name}=={version}" for name, version in pins.items())
    by_hand = _taken_back(pins, "the Pipfile", shlex.join((*_PIPENV, *entries))) if pins else shlex.join(_PIPENV)
    return _scratch(work, [*calls, refresh], by_hand=by_hand)


_TOOLS: Final[Mapping[str, Callable[[Work], ToolRelock]]] = {
    "uv-lock": _uv,
    "poetry-lock": _poetry,
    "pdm-lock": _pdm,
    "pipfile-lock": _pipenv,
    "requirements": compiled,
}
