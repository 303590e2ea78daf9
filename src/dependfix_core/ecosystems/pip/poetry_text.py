"""Requirements of packages as poetry spells them in its lock."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, Specifier
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dependfix_core.ecosystems.pip.environments import marker_tokens
from dependfix_core.ecosystems.pip.toml_write import basic_string, lines_list, string_list
from dependfix_core.model.records import ReleaseDependency

_EXTRA: Final = re.compile(r"""\s*extra\s*==\s*["']([^"']+)["']\s*""")


def constraint_text(specifier: str, *, is_new: bool = True) -> str | None:
    """`<4,>=2` as `>=2,<4`, `==1.0` as `1.0`, nothing as `*`; `None` for what is not certain.

    Since poetry 2 (`is_new`) numbers have no leading zeros.
    """
    try:
        parts = [Specifier(part.strip()) for part in specifier.split(",") if part.strip()]
        if not parts:
            return "*"
        lower = [part for part in parts if part.operator in {">=", ">"}]
        upper = [part for part in parts if part.operator in {"<", "<="}]
        excluded = [part for part in parts if part.operator == "!="]
        if len(lower) > 1 or len(upper) > 1 or len(lower) + len(upper) + len(excluded) < len(parts):
            return _special(parts, is_new=is_new)
        excluded.sort(key=lambda part: Version(part.version.removesuffix(".*")))
    except (InvalidSpecifier, InvalidVersion):
        return None
    return ",".join(f"{part.operator}{_version_text(part, is_new=is_new)}" for part in (*lower, *excluded, *upper))


def _version_text(part: Specifier, *, is_new: bool) -> str:
    """Without leading zeros: `2022.05.0` is `2022.5.0`."""
    if not is_new:
        return part.version
    if part.version.endswith(".*"):
        return f"{Version(part.version.removesuffix('.*'))}.*"
    return str(Version(part.version))


def _special(parts: Sequence[Specifier], *, is_new: bool) -> str | None:
    if len(parts) != 1:
        return None
    (part,) = parts
    if part.operator == "==":
        text = _version_text(part, is_new=is_new)
        return f"=={text}" if text.endswith(".*") else text
    if part.operator == "~=":
        release = Version(part.version).release
        above = ".".join(map(str, (*release[:-2], release[-2] + 1)))
        return f">={_version_text(part, is_new=is_new)},<{above}{'.0' if len(release) > 1 else ''}"
    return None


def marker_text(marker: str, *, with_extras: bool = True) -> str | None:
    """The marker with double quotes and no bracket that could be left out; `None` for what is none."""
    if not marker:
        return ""
    try:
        tokens = list(marker_tokens(marker))
        tree, rest = _either(tokens)
    except (ValueError, IndexError, RecursionError):
        return None
    if rest:
        return None
    kept = tree if with_extras else _without_extras(tree)
    return _spelled(kept) if kept is not None else ""


_Tree = str | tuple[str, list[Any]]
"""A comparison, or `and`/`or` with its parts."""


def _either(tokens: list[str]) -> tuple[_Tree, list[str]]:
    part, tokens = _both(tokens)
    parts = [part]
    while tokens[:1] == ["or"]:
        part, tokens = _both(tokens[1:])
        parts.append(part)
    return _joined("or", parts), tokens


def _both(tokens: list[str]) -> tuple[_Tree, list[str]]:
    part, tokens = _one(tokens)
    parts = [part]
    while tokens[:1] == ["and"]:
        part, tokens = _one(tokens[1:])
        parts.append(part)
    return _joined("and", parts), tokens


def _one(tokens: list[str]) -> tuple[_Tree, list[str]]:
    if tokens[0] == "(":
        tree, rest = _either(tokens[1:])
        if rest[0] != ")":
            raise ValueError("bracket not closed")
        return tree, rest[1:]
    size = 4 if tokens[1] == "not" else 3
    words = [_requoted(token) for token in tokens[:size]]
    if len(words) < size:
        raise ValueError("marker ends early")
    return " ".join(words), tokens[size:]


def _requoted(token: str) -> str:
    return f'"{token[1:-1]}"' if token[0] in "'\"" else token


def _joined(word: str, parts: list[_Tree]) -> _Tree:
    """Parts of the same kind are one level."""
    flat: list[_Tree] = []
    for part in parts:
        flat.extend(part[1] if isinstance(part, tuple) and part[0] == word else [part])
    return flat[0] if len(flat) == 1 else (word, flat)


def _without_extras(tree: _Tree) -> _Tree | None:
    if isinstance(tree, str):
        return None if _EXTRA.fullmatch(tree) else tree
    kept = [part for part in (_without_extras(part) for part in tree[1]) if part is not None]
    return _joined(tree[0], kept) if kept else None


def _spelled(tree: _Tree) -> str:
    if isinstance(tree, str):
        return tree
    word, parts = tree
    texts = [f"({_spelled(part)})" if word == "and" and not isinstance(part, str) else _spelled(part) for part in parts]
    return f" {word} ".join(texts)


def dependency_value(dependencies: Sequence[ReleaseDependency], *, is_new: bool) -> str | None:
    """The value of one name in `[package.dependencies]`; `None` for what is not certain."""
    tables = []
    for one in sorted(dependencies, key=lambda entry: entry.marker):
        version, marker = constraint_text(one.requirement, is_new=is_new), marker_text(one.marker)
        if version is None or marker is None or one.requirement.startswith("@"):
            return None
        parts = [f"version = {basic_string(version)}"]
        if one.extras:
            parts.append(f"extras = {string_list(sorted(one.extras))}")
        if _EXTRA.search(marker):
            parts.append("optional = true")
        if marker:
            parts.append(f"markers = {basic_string(marker)}")
        tables.append((parts, version))
    if all(len(parts) == 1 for parts, _ in tables):
        values = [basic_string(version) for _, version in tables]
    else:
        values = ["{" + ", ".join(parts) + "}" for parts, _ in tables]
    return values[0] if len(values) == 1 else lines_list(values)


def raw_name(dependency: ReleaseDependency) -> str:
    """The name as its author spells it, where the record has that."""
    try:
        return Requirement(dependency.text).name
    except InvalidRequirement:
        return dependency.name


def extras_table(dependencies: Iterable[ReleaseDependency], *, is_new: bool) -> Mapping[str, list[str]] | None:
    """Extra → what it brings in, as `[package.extras]` has it (since poetry 2 with markers); `None`: not certain."""
    found: dict[str, list[str]] = {}
    for one in dependencies:
        names = [canonicalize_name(name) for name in _EXTRA.findall(one.marker)]
        if not names:
            continue
        text = _pep508(one, is_new=is_new)
        if text is None:
            return None
        for name in names:
            found.setdefault(name, []).append(text)
    return {name: sorted(texts) for name, texts in sorted(found.items())}


def _pep508(one: ReleaseDependency, *, is_new: bool) -> str | None:
    if one.requirement.startswith("@"):
        return None
    constraint = constraint_text(one.requirement, is_new=is_new)
    if constraint is None:
        return None
    name = raw_name(one) + (f"[{','.join(sorted(one.extras))}]" if one.extras else "")
    if constraint != "*":
        exact = constraint[0].isdigit()
        name += f" ({'==' if exact else ''}{constraint})"
    rest = marker_text(one.marker, with_extras=False)
    if rest is None:
        return None
    return f"{name} ; {rest}" if rest and is_new else name
