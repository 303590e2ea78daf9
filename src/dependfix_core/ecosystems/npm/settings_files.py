"""What `.npmrc`, `.yarnrc.yml`, `.yarnrc`, `pnpm-workspace.yaml` and `bunfig.toml` of a repository say.

These files are not trusted: variables in them are never expanded, and of their
keys only those are looked at that registries, release-age gates, overrides and
code-bearing settings need. Credentials are never read.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dependfix_core.ecosystems.npm.json_spans import BOM
from dependfix_core.ecosystems.npm.package_json import CatalogEntry, Catalogs
from dependfix_core.ecosystems.npm.parsed import unreadable
from dependfix_core.ecosystems.npm.selectors import pnpm_selector
from dependfix_core.ecosystems.npm.specifiers import registry_base
from dependfix_core.ecosystems.npm.yaml_spans import YamlSyntaxError, YamlValue, scan_yaml
from dependfix_core.model.lock import Override, Problem, ReleaseAgeGate, Span

MINUTES_PER_DAY: Final = 24 * 60
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?")
_UNIT_MINUTES: Final = {"ms": 1 / 60_000, "s": 1 / 60, "m": 1, "h": 60, "d": MINUTES_PER_DAY, "w": 7 * MINUTES_PER_DAY}
_SCOPE_REGISTRY: Final = re.compile(r"(@[^:/\s]+):registry")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSettings:
    """The facts of one settings file."""

    path: str
    registries: Mapping[str, str] = field(default_factory=dict)
    """Empty key for the default, `@scope` otherwise."""
    gates: tuple[ReleaseAgeGate, ...] = ()
    code: tuple[str, ...] = ()
    """Settings that would make a tool run code of the repository."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Settings that change how a lock is written, under the tool's own key."""
    overrides: tuple[Override, ...] = ()
    catalogs: Catalogs = field(default_factory=dict)
    packages: tuple[str, ...] | None = None
    """pnpm's workspace patterns; `None` when the file has none."""
    patched: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


_NPMRC_FLAGS: Final = frozenset(
    {
        "omit-lockfile-registry-resolved",
        "replace-registry-host",
        "legacy-peer-deps",
        "strict-peer-deps",
        "install-strategy",
        "package-lock",
        "lockfile-version",
        "lockfile-include-tarball-url",
        "shared-workspace-lockfile",
        "auto-install-peers",
        "link-workspace-packages",
        "engine-strict",
        "ignore-scripts",
        "workspaces-update",
    }
)
_NPMRC_CODE: Final = frozenset(
    {"pnpmfile", "global-pnpmfile", "script-shell", "node-options", "git", "onload-script", "shell-emulator"}
)


_PNPM_FLAGS: Final = (
    "sharedWorkspaceLockfile",
    "lockfileIncludeTarballUrl",
    "autoInstallPeers",
    "linkWorkspacePackages",
    "catalogMode",
    "resolutionMode",
    "dedupePeerDependents",
    "injectWorkspacePackages",
    "nodeLinker",
)
_PNPM_CODE: Final = ("pnpmfile", "globalPnpmfile", "configDependencies", "scriptShell", "nodeOptions")
_YARN_FLAGS: Final = (
    "nodeLinker",
    "compressionLevel",
    "checksumBehavior",
    "cacheFolder",
    "enableGlobalCache",
    "enableTransparentWorkspaces",
    "defaultProtocol",
)
_YARN_GATE: Final = "npmMinimalAgeGate"
_YARN_CODE: Final = ("yarnPath", "plugins")


def read_npmrc(path: str, content: bytes) -> ToolSettings:
    """What a `.npmrc` says to npm and pnpm."""
    values = dict(_npmrc_lines(content))
    registries, gates = {}, []
    for key, text in values.items():
        scope = _SCOPE_REGISTRY.fullmatch(key)
        if (key == "registry" or scope) and isinstance(text, str) and (base := registry_base(text)):
            registries[scope[1] if scope else ""] = base
    days = _number(values.get("min-release-age"))
    if days is not None:
        excluded = _list(values.get("min-release-age-exclude"))
        gates.append(_gate(path, "min-release-age", int(days * MINUTES_PER_DAY), excluded))
    before = values.get("before")
    if isinstance(before, str) and before and "${" not in before:
        gates.append(ReleaseAgeGate(path=path, at="before", exclude_newer=before, kind="min-release-age"))
    minutes = _number(values.get("minimum-release-age"))
    if minutes is not None:
        excluded = _list(values.get("minimum-release-age-exclude"))
        gates.append(_gate(path, "minimum-release-age", int(minutes), excluded, kind="minimumReleaseAge"))
    if values.get("trust-policy") == "no-downgrade":
        excluded = _list(values.get("trust-policy-exclude"))
        gates.append(ReleaseAgeGate(path=path, at="trust-policy", excluded=excluded, kind="trustPolicy"))
    return ToolSettings(
        path=path,
        registries=registries,
        gates=tuple(gates),
        code=tuple(f"{path}: {key}" for key in sorted(_NPMRC_CODE.intersection(values))),
        flags={key: text for key, text in values.items() if key in _NPMRC_FLAGS and isinstance(text, str)},
    )


def read_pnpm_workspace(path: str, content: bytes) -> ToolSettings:
    """What `pnpm-workspace.yaml` says; since pnpm 10 it also holds the settings."""
    root, problems = _yaml(path, content)
    if root is None:
        return ToolSettings(path=path, problems=problems)
    data = root.value
    packages = data.get("packages")
    return ToolSettings(
        path=path,
        registries=_workspace_registries(data),
        gates=tuple(_pnpm_gates(path, data)),
        code=tuple(f"{path}: {key}" for key in _PNPM_CODE if data.get(key)),
        flags={key: data[key] for key in _PNPM_FLAGS if isinstance(data.get(key), str)},
        overrides=tuple(_yaml_overrides(path, content, root)),
        catalogs=_yaml_catalogs(path, content, root),
        packages=tuple(item for item in packages if isinstance(item, str)) if isinstance(packages, list) else None,
        patched=_text_map(data.get("patchedDependencies")),
        problems=problems,
    )


def read_yarnrc_yml(path: str, content: bytes) -> ToolSettings:
    """What `.yarnrc.yml` says, the settings file of yarn since version 2."""
    root, problems = _yaml(path, content)
    if root is None:
        return ToolSettings(path=path, problems=problems)
    data = root.value
    registries = {"": registry_base(str(data.get("npmRegistryServer", "")))}
    scopes = data.get("npmScopes")
    for scope, about in scopes.items() if isinstance(scopes, dict) else ():
        if isinstance(about, dict):
            registries[f"@{scope.removeprefix('@')}"] = registry_base(str(about.get("npmRegistryServer", "")))
    return ToolSettings(
        path=path,
        registries={scope: base for scope, base in registries.items() if base},
        gates=tuple(_yarn_gates(path, data)),
        code=tuple(f"{path}: {key}" for key in _YARN_CODE if data.get(key)),
        flags={key: data[key] for key in _YARN_FLAGS if isinstance(data.get(key), str)},
        catalogs=_yaml_catalogs(path, content, root),
        problems=problems,
    )


def read_yarnrc(path: str, content: bytes) -> ToolSettings:
    """What `.yarnrc` says, the `key value` lines of yarn 1."""
    values: dict[str, str] = {}
    for line in content.removeprefix(BOM).decode("utf-8", "replace").splitlines():
        match = re.match(r'\s*"?([^"\s#]+)"?\s+"?([^"\n]*)"?\s*$', line)
        if match:
            values[match[1]] = match[2]
    registries = {"": registry_base(values.get("registry", ""))}
    for key, text in values.items():
        scope = _SCOPE_REGISTRY.fullmatch(key)
        if scope:
            registries[scope[1]] = registry_base(text)
    return ToolSettings(
        path=path,
        registries={scope: base for scope, base in registries.items() if base},
        code=tuple(f"{path}: {key}" for key in ("yarn-path", "script-shell") if key in values),
        flags={key: values[key] for key in ("yarn-offline-mirror", "--install.flat", "flat") if key in values},
    )


def read_bunfig(path: str, content: bytes) -> ToolSettings:
    """What `bunfig.toml` says."""
    try:
        data = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return ToolSettings(path=path, problems=(unreadable(path, "", str(error)[:200]),))
    install = data.get("install")
    if not isinstance(install, dict):
        return ToolSettings(path=path)
    registries = {"": _registry_of(install.get("registry"))}
    scopes = install.get("scopes")
    for scope, about in scopes.items() if isinstance(scopes, dict) else ():
        registries[f"@{scope.removeprefix('@')}"] = _registry_of(about)
    gates: tuple[ReleaseAgeGate, ...] = ()
    seconds = install.get("minimumReleaseAge")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        excluded = install.get("minimumReleaseAgeExcludes")
        names = tuple(item for item in excluded if isinstance(item, str)) if isinstance(excluded, list) else ()
        at = "install.minimumReleaseAge"
        gates = (_gate(path, at, int(seconds // 60), names, kind="minimumReleaseAge"),)
    return ToolSettings(path=path, registries={scope: base for scope, base in registries.items() if base}, gates=gates)


def _registry_of(value: Any) -> str:
    text = value.get("url") if isinstance(value, dict) else value
    return registry_base(text) if isinstance(text, str) else ""


def _npmrc_lines(content: bytes) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    """`key = value` lines of the top section; `key[]` lines are collected. Credentials are passed over."""
    lists: dict[str, list[str]] = {}
    for line in content.removeprefix(BOM).decode("utf-8", "replace").splitlines():
        text = line.strip()
        if not text or text[0] in ";#":
            continue
        if text[0] == "[":
            break
        key, separator, value = (part.strip() for part in text.partition("="))
        if key.startswith(("//", "_")):
            continue
        value = re.split(r"\s+[;#]", value)[0].strip() if value[:1] not in "'\"" else value
        if value[:1] in ("'", '"') and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        if key.endswith("[]"):
            lists.setdefault(key[:-2].strip(), []).append(value)
        else:
            yield key, value if separator else "true"
    for key, values in lists.items():
        yield key, tuple(values)


def _list(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(item for item in re.split(r"[,\s]+", value) if item)
    return value or ()


def _number(value: str | tuple[str, ...] | None) -> float | None:
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value) else None


def _minutes(text: str) -> int | None:
    """A duration of yarn's: a number of minutes, or a number with its unit."""
    match = _DURATION.fullmatch(text.strip())
    return None if match is None or len(match[1]) > 12 else int(float(match[1]) * _UNIT_MINUTES[match[2] or "m"])


def _gate(path: str, at: str, minutes: int, excluded: tuple[str, ...], kind: str = "") -> ReleaseAgeGate:
    return ReleaseAgeGate(path=path, at=at, minimum_age_minutes=minutes, excluded=excluded, kind=kind or at)


def _yaml(path: str, content: bytes) -> tuple[YamlValue | None, tuple[Problem, ...]]:
    try:
        document = scan_yaml(content)
    except YamlSyntaxError as error:
        return None, (unreadable(path, error.position, str(error)[:200]),)
    if document.duplicates:
        keys, position = document.duplicates[0]
        return None, (unreadable(path, position, f"the key {keys[-1]!s:.80} is written twice"),)
    if document.root is None or document.root.members is None:
        return None, () if document.root is None else (unreadable(path, "1:1", "not a mapping"),)
    return document.root, ()


def _workspace_registries(data: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    registries = data.get("registries")
    for scope, text in registries.items() if isinstance(registries, dict) else ():
        if isinstance(text, str) and (base := registry_base(text)):
            found["" if scope == "default" else scope] = base
    if isinstance(data.get("registry"), str) and (base := registry_base(data["registry"])):
        found[""] = base
    return found


def _pnpm_gates(path: str, data: Mapping[str, Any]) -> Iterator[ReleaseAgeGate]:
    minutes = _number(data["minimumReleaseAge"]) if isinstance(data.get("minimumReleaseAge"), str) else None
    if minutes is not None:
        yield ReleaseAgeGate(
            path=path,
            at="minimumReleaseAge",
            minimum_age_minutes=int(minutes),
            excluded=_texts(data.get("minimumReleaseAgeExclude")),
            strict=data.get("minimumReleaseAgeStrict") != "false",
            kind="minimumReleaseAge",
        )
    if data.get("trustPolicy") == "no-downgrade":
        ignored_after = data.get("trustPolicyIgnoreAfter")
        yield ReleaseAgeGate(
            path=path,
            at="trustPolicy",
            minimum_age_minutes=int(_number(ignored_after) or 0) if isinstance(ignored_after, str) else None,
            excluded=_texts(data.get("trustPolicyExclude")),
            kind="trustPolicy",
        )


def _yarn_gates(path: str, data: Mapping[str, Any]) -> Iterator[ReleaseAgeGate]:
    """The gate for all packages, and those of scopes that have one of their own."""
    approved = _texts(data.get("npmPreapprovedPackages"))
    scopes = data.get("npmScopes")
    own: list[str] = []
    for scope, about in scopes.items() if isinstance(scopes, dict) else ():
        age = about.get("npmMinimalAgeGate") if isinstance(about, dict) else None
        minutes = _minutes(age) if isinstance(age, str) else None
        if minutes is not None:
            pattern = f"@{scope.removeprefix('@')}/*"
            own.append(pattern)
            yield replace(_gate(path, _YARN_GATE, minutes, approved), applies_to=(pattern,))
    age = data.get(_YARN_GATE)
    minutes = _minutes(age) if isinstance(age, str) else None
    if minutes is not None:
        yield _gate(path, _YARN_GATE, minutes, (*approved, *own))


def _yaml_overrides(path: str, content: bytes, root: YamlValue) -> Iterator[Override]:
    found = root.get("overrides")
    for key, member in ((found.members if found is not None else None) or {}).items():
        if not isinstance(text := member.value.value, str):
            continue
        selector = pnpm_selector(key)
        yield Override(
            path=path,
            at=f"overrides.{key}",
            selector=key,
            package=selector.package,
            value=text,
            span=yaml_text_span(member.value, content),
            kind="overrides",
            parents=selector.parents,
            condition=selector.condition,
        )


def _yaml_catalogs(path: str, content: bytes, root: YamlValue) -> Catalogs:
    catalogs: dict[str, dict[str, CatalogEntry]] = {}
    holders = {"": root.get("catalog")}
    named = root.get("catalogs")
    holders |= {name: member.value for name, member in ((named.members if named is not None else None) or {}).items()}
    for name, holder in holders.items():
        at = f"catalogs.{name}" if name else "catalog"
        for package, member in ((holder.members if holder is not None else None) or {}).items():
            if isinstance(text := member.value.value, str):
                span = yaml_text_span(member.value, content)
                entry = CatalogEntry(path=path, at=f"{at}.{package}", text=text, span=span)
                catalogs.setdefault("" if name == "default" else name, {})[package] = entry
    return catalogs


def yaml_text_span(value: YamlValue, content: bytes) -> Span | None:
    """The span of a scalar's text without its quotes; `None` when escapes or folding make it another text."""
    span = value.span
    if span is None:
        return None
    raw = content[span.start : span.end]
    if raw[:1] in (b"'", b'"'):
        span = Span(start=span.start + 1, end=span.end - 1)
    return span if content[span.start : span.end] == str(value.value).encode() else None


def _text_map(value: Any) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
