"""Manifests for a scratch copy: what would run or redirect taken out, exact versions put in for one run."""

from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, Final

import tomlkit
from packaging.utils import canonicalize_name
from tomlkit.exceptions import TOMLKitError

from dependfix_core.ecosystems.base import WriteRefusal
from dependfix_core.ecosystems.pip.block_text import split_blocks
from dependfix_core.ecosystems.pip.relock_work import NoWayError, Work
from dependfix_core.ecosystems.pip.splice import Replacement, splice
from dependfix_core.ecosystems.pip.toml_text import UTF8_BOM, parse_toml, table_of
from dependfix_core.ecosystems.pip.write_manifest import edit_replacements
from dependfix_core.model.lock import SourceKind

_KEPT: Final[Mapping[str, frozenset[str]]] = {
    "uv": frozenset(
        {
            "conflicts",
            "constraint-dependencies",
            "default-groups",
            "dependency-groups",
            "dependency-metadata",
            "dev-dependencies",
            "environments",
            "exclude-dependencies",
            "exclude-newer",
            "exclude-newer-package",
            "extra-index-url",
            "fork-strategy",
            "index",
            "index-strategy",
            "index-url",
            "managed",
            "no-sources",
            "override-dependencies",
            "package",
            "prerelease",
            "required-environments",
            "required-version",
            "resolution",
            "sources",
            "workspace",
        }
    ),
    "pdm": frozenset({"dev-dependencies", "distribution", "resolution", "source"}),
}
"""Tool → the settings that decide what it locks; all others stay out."""
_DROPPED: Final[Mapping[str, frozenset[str]]] = {"poetry": frozenset({"requires-plugins"})}
"""Tool → the settings that make something else run."""


def tool_table(manifest: bytes, tool: str) -> Mapping[str, Any]:
    """The `[tool.NAME]` table of a `pyproject.toml`, empty when there is none."""
    return table_of(table_of(parse_toml(manifest).get("tool")).get(tool))


def project_of(manifest: bytes) -> Mapping[str, Any] | None:
    """The `[project]` table, if there is one."""
    found = parse_toml(manifest).get("project")
    return found if isinstance(found, dict) else None


def neutral(manifest: bytes, tool: str) -> tuple[bytes, list[str]]:
    """The manifest without settings that run or redirect something, and the names of those."""
    settings = tool_table(manifest, tool)
    kept = _KEPT.get(tool)
    dropped = [name for name in settings if (name not in kept if kept is not None else name in _DROPPED[tool])]
    if not dropped:
        return manifest, []
    document = _document(manifest)
    table = document["tool"][tool]
    for name in dropped:
        del table[name]
    return tomlkit.dumps(document).encode(), [f"tool.{tool}.{name}" for name in dropped]


def _document(manifest: bytes) -> Any:
    # A tomlkit document answers to any key; its types do not say with what.
    try:
        return tomlkit.parse(manifest.removeprefix(UTF8_BOM).decode("utf-8"))
    except TOMLKitError as error:
        raise NoWayError("the manifest cannot be changed for one run") from error


# Exact versions for one run.


def with_poetry_versions(work: Work, manifest: str, pins: Mapping[str, str]) -> bytes:
    """The manifest with each moved package at exactly its version: in its own declaration, else in one more."""
    unit = work.unit
    replacements: list[Replacement] = []
    declared: set[str] = set()
    places: set[str] = set()
    for one in unit.constraints:
        if one.path == manifest and one.target in work.moves and one.source.kind is SourceKind.REGISTRY:
            if one.span is None:
                raise NoWayError(f"{one.at} cannot be pinned for one run")
            declared.add(one.package)
            places.add(one.at)
            replacements.append((one.span, f"=={pins[one.package]}".encode()))
    others = [edit for edit in work.edits if edit.path == manifest and edit.at not in places]
    edits = edit_replacements(unit, work.originals, others)
    if isinstance(edits, WriteRefusal):
        raise NoWayError(edits.detail)
    content = splice(work.originals[manifest], [*replacements, *edits.get(manifest, ())])
    markers = {one.name: one.markers for one in unit.instances.values()}
    added = {name: version for name, version in pins.items() if name not in declared}
    if not added:
        return content
    document = _document(content)
    listed = table_of(document.get("project")).get("dependencies")
    for name, version in added.items():
        marker = markers[name] if "extra" not in markers[name] else ""
        if listed is not None:
            listed.append(f"{name}=={version}" + (f" ; {marker}" if marker else ""))
        else:
            table = _made(document, "tool", "poetry", "dependencies")
            table[name] = {"version": f"=={version}", "markers": marker} if marker else f"=={version}"
    return tomlkit.dumps(document).encode()


def with_pdm_versions(manifest: bytes, pins: Mapping[str, str]) -> bytes:
    """The manifest with an override for each moved package."""
    document = _document(manifest)
    overrides = _made(document, "tool", "pdm", "resolution", "overrides")
    for name, version in pins.items():
        for written in [key for key in overrides if canonicalize_name(key) == name]:
            del overrides[written]
        overrides[name] = f"=={version}"
    return tomlkit.dumps(document).encode()


def without_entries(lock: bytes, names: Collection[str]) -> bytes:
    """A pdm lock without the entries of `names`; what it has, pdm would keep."""
    blocks = split_blocks(lock, "package")
    gone = [block for block in blocks if canonicalize_name(str(block.text.value(("package", 0, "name")))) in names]
    return splice(lock, [(block.span, b"") for block in gone])


def with_pipenv_versions(work: Work, manifest: str, pins: Mapping[str, str]) -> bytes:
    """The Pipfile with every locked package at exactly its version, since pipenv resolves all of it anew.

    A package that the Pipfile does not name is written as a table: pipenv then
    leaves its entry without an index, as it was.
    """
    document = _document(work.final[manifest])
    for section, locked in (("packages", "default"), ("dev-packages", "develop")):
        table = _made(document, section)
        written: dict[str, str] = {canonicalize_name(name): name for name in table}
        for where, one in work.unit.instances.items():
            if not where.startswith(f"{locked}."):
                continue
            version = f"=={pins.get(one.name, one.version)}"
            name = written.get(one.name)
            if name is None:
                table[one.name] = {"version": version, **({"markers": one.markers} if one.markers else {})}
            elif isinstance(table[name], dict):
                table[name]["version"] = version
            else:
                table[name] = version
    return tomlkit.dumps(document).encode()


def _made(document: Any, *path: str) -> MutableMapping[str, Any]:
    table = document
    for name in path:
        if name not in table:
            table[name] = tomlkit.table()
        table = table[name]
    found: MutableMapping[str, Any] = table
    return found
