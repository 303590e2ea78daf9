"""A package.json as values: what it asks for, what it forces, what it says about the tools."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import (
    JsonDocument,
    JsonSyntaxError,
    JsonValue,
    line_and_column,
    scan_json,
)
from dependfix_core.ecosystems.npm.selectors import pnpm_selector, split_name, yarn_selector
from dependfix_core.ecosystems.npm.specifiers import read_specifier
from dependfix_core.model.lock import Constraint, DependencyKind, Override, Problem, Span

SECTIONS: Final[Mapping[str, DependencyKind]] = {
    "dependencies": DependencyKind.PROD,
    "devDependencies": DependencyKind.DEV,
    "optionalDependencies": DependencyKind.OPTIONAL,
    "peerDependencies": DependencyKind.PEER,
}
_READ_AND_EDITED: Final = frozenset(
    {*SECTIONS, "overrides", "resolutions", "pnpm", "workspaces", "catalog", "catalogs", "peerDependenciesMeta"}
)
_TOOL: Final = re.compile(r"(npm|pnpm|yarn|bun)@(\d[^+\s]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogEntry:
    """A requirement that members point to by `catalog:`."""

    path: str
    at: str
    text: str
    """As written, with an alias's name."""
    span: Span | None


Catalogs = Mapping[str, Mapping[str, CatalogEntry]]
"""Catalog name (empty for the default one) → package name → entry."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One package.json that could be read."""

    path: str
    content: bytes
    name: str = ""
    version: str = ""
    constraints: tuple[Constraint, ...] = ()
    """In file order; `catalog:` is not followed here."""
    npm_overrides: tuple[Override, ...] = ()
    """`overrides`, nested as npm reads them."""
    resolutions: tuple[Override, ...] = ()
    pnpm_overrides: tuple[Override, ...] = ()
    workspaces: tuple[str, ...] = ()
    catalogs: Catalogs = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    """Package manager → version, as `packageManager`, `devEngines` and `volta` name them."""
    package_manager: str = ""
    """The one that the project names."""
    engines: Mapping[str, str] = field(default_factory=dict)
    patched: Mapping[str, str] = field(default_factory=dict)
    """`name@version` → patch file, from `patchedDependencies`."""
    bundled: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """The whole object."""


def read_package_json(path: str, content: bytes) -> Manifest | Problem:
    """The manifest, or why it cannot be read (not JSON, no object, a key that we read or edit written twice)."""
    try:
        document = scan_json(content)
    except JsonSyntaxError as error:
        return Problem(
            path=path, position=line_and_column(content, error.offset), message=str(error), reason="unreadable"
        )
    root = document.root
    if root.members is None:
        return Problem(path=path, position="1:1", message="not an object", reason="unreadable")
    twice = _duplicate(path, document)
    return twice if twice is not None else _manifest(path, content, root)


def text_span(text: str, value: JsonValue, content: bytes) -> Span | None:
    """The span of a string's text without its quotes; `None` when escapes make it another text."""
    inner = Span(start=value.span.start + 1, end=value.span.end - 1)
    return inner if content[inner.start : inner.end] == text.encode() else None


def _duplicate(path: str, document: JsonDocument) -> Problem | None:
    for keys, offset in document.duplicates:
        if keys[0] in _READ_AND_EDITED:
            return Problem(
                path=path,
                position=line_and_column(document.content, offset),
                message=f"the key {'.'.join(map(str, keys))} is written twice",
                reason="unreadable",
            )
    return None


def _manifest(path: str, content: bytes, root: JsonValue) -> Manifest:
    workspaces = root.get("workspaces")
    packages = workspaces if workspaces is None or workspaces.items is not None else workspaces.get("packages")
    tools, chosen = _tools(root.value)
    return Manifest(
        path=path,
        content=content,
        name=_text(root.value.get("name")),
        version=_text(root.value.get("version")),
        constraints=tuple(_constraints(path, content, root)),
        npm_overrides=tuple(_npm_overrides(path, content, root.get("overrides"), ())),
        resolutions=tuple(_flat_overrides(path, content, root.get("resolutions"), "resolutions")),
        pnpm_overrides=tuple(_flat_overrides(path, content, root.get("pnpm", "overrides"), "pnpm.overrides")),
        workspaces=_texts(packages.value if packages is not None else None),
        catalogs=_catalogs(path, content, root),
        tools=tools,
        package_manager=chosen,
        engines=_text_map(root.value.get("engines")),
        patched={
            **_text_map(root.value.get("patchedDependencies")),
            **_text_map(_object(root.value.get("pnpm")).get("patchedDependencies")),
        },
        bundled=_texts(root.value.get("bundleDependencies") or root.value.get("bundledDependencies")),
        data=root.value,
    )


def _constraints(path: str, content: bytes, root: JsonValue) -> Iterator[Constraint]:
    meta = _object(root.value.get("peerDependenciesMeta"))
    for section, kind in SECTIONS.items():
        declared = root.get(section)
        for name, member in ((declared.members if declared is not None else None) or {}).items():
            text = member.value.value
            if not isinstance(text, str):
                continue
            specifier = read_specifier(name, text)
            span = text_span(text, member.value, content)
            if span is not None:
                span = Span(start=span.start + len(text[: specifier.start].encode()), end=span.end)
            optional_peer = kind is DependencyKind.PEER and _object(meta.get(name)).get("optional") is True
            yield Constraint(
                path=path,
                at=f"{section}.{name}",
                name=name,
                package=specifier.package,
                requirement=specifier.requirement,
                span=span,
                kind=DependencyKind.PEER_OPTIONAL if optional_peer else kind,
                group=section,
                source=specifier.source,
                via=text if specifier.catalog is not None else "",
            )


def _npm_overrides(path: str, content: bytes, here: JsonValue | None, above: tuple[str, ...]) -> Iterator[Override]:
    for key, member in ((here.members if here is not None else None) or {}).items():
        steps = (*above, key)
        if member.value.members is not None:
            yield from _npm_overrides(path, content, member.value, steps)
        elif isinstance(text := member.value.value, str):
            named = steps[:-1] if key == "." and above else steps
            name, condition = split_name(named[-1])
            yield Override(
                path=path,
                at=f"overrides.{'>'.join(steps)}",
                selector=">".join(named),
                package=name,
                value=text,
                span=text_span(text, member.value, content),
                kind="overrides",
                parents=tuple(split_name(step)[0] for step in named[:-1]),
                condition=condition,
            )


def _flat_overrides(path: str, content: bytes, here: JsonValue | None, at: str) -> Iterator[Override]:
    yarn = at == "resolutions"
    for key, member in ((here.members if here is not None else None) or {}).items():
        if not isinstance(text := member.value.value, str):
            continue
        selector = yarn_selector(key) if yarn else pnpm_selector(key)
        yield Override(
            path=path,
            at=f"{at}.{key}",
            selector=key,
            package=selector.package,
            value=text,
            span=text_span(text, member.value, content),
            kind="resolutions" if yarn else "overrides",
            parents=selector.parents,
            condition=selector.condition,
        )


def _catalogs(path: str, content: bytes, root: JsonValue) -> Catalogs:
    """Where bun keeps catalogs: in package.json, at the top or under `workspaces`."""
    found: dict[str, dict[str, CatalogEntry]] = {}
    for above in ((), ("workspaces",)):
        holders = {"": root.get(*above, "catalog")}
        named = root.get(*above, "catalogs")
        holders |= {name: member.value for name, member in ((named.members if named else None) or {}).items()}
        for name, holder in holders.items():
            at = ".".join([*above, "catalog"] if not name else [*above, "catalogs", name])
            for package, member in ((holder.members if holder is not None else None) or {}).items():
                if isinstance(text := member.value.value, str):
                    span = text_span(text, member.value, content)
                    entry = CatalogEntry(path=path, at=f"{at}.{package}", text=text, span=span)
                    found.setdefault("" if name == "default" else name, {})[package] = entry
    return found


def _tools(data: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    tools = {name: text for name, text in _text_map(data.get("volta")).items() if name in ("npm", "pnpm", "yarn")}
    chosen = ""
    engines = _object(data.get("devEngines")).get("packageManager")
    for engine in engines if isinstance(engines, list) else [engines]:
        name = _text(_object(engine).get("name"))
        if name in ("npm", "pnpm", "yarn", "bun"):
            chosen = chosen or name
            tools[name] = _text(_object(engine).get("version"))
    match = _TOOL.match(_text(data.get("packageManager")))
    if match is not None:
        chosen = match[1]
        tools[chosen] = match[2]
    return tools, chosen


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _text_map(value: Any) -> dict[str, str]:
    return {key: text for key, text in _object(value).items() if isinstance(text, str)}
