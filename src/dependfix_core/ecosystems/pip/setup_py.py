"""What does a `setup.py` declare in plain literals? The file is never run.

Whatever is computed (a list built up, a file read, a name assigned twice) is
reported as dynamic and has no place that could be edited.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dependfix_core.ecosystems.pip.requirement_text import read_requirement
from dependfix_core.ecosystems.pip.setup_cfg import numbered
from dependfix_core.ecosystems.pip.toml_text import UTF8_BOM
from dependfix_core.model.lock import Constraint, DependencyKind, Problem, Span

MAX_BYTES: Final = 512 * 1024
"""Parsing costs many times the size of the text; a longer file is no setup script."""

_KINDS: Final = {
    "install_requires": DependencyKind.PROD,
    "setup_requires": DependencyKind.BUILD,
    "tests_require": DependencyKind.DEV,
}
_PLAIN_LITERAL: Final = re.compile(rb"(?:'[^'\\\r\n]*'|\"[^\"\\\r\n]*\")")


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupPy:
    """A `setup.py` as values."""

    path: str
    name: str = ""
    version: str = ""
    requires_python: str = ""
    constraints: tuple[Constraint, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_setup_py(path: str, content: bytes) -> SetupPy:
    """The literal declarations of one file."""
    if len(content) > MAX_BYTES:
        return SetupPy(path=path, problems=(_dynamic(path, "1:1", "the file is too long to be read"),))
    try:
        tree = ast.parse(content)
    except SyntaxError as error:
        position = f"{error.lineno or 1}:{error.offset or 1}"
        return SetupPy(path=path, problems=(_dynamic(path, position, "not a python file"),))
    except (ValueError, RecursionError, MemoryError):
        return SetupPy(path=path, problems=(_dynamic(path, "1:1", "not a python file"),))
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_setup(node.func)), None)
    if call is None:
        return SetupPy(path=path, problems=(_dynamic(path, "1:1", "no call of setup()"),))
    return _Reader(path, content, tree).read(call)


def _is_setup(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "setup"
    return isinstance(function, ast.Attribute) and function.attr == "setup"


def _dynamic(path: str, position: str, message: str) -> Problem:
    return Problem(path=path, position=position, message=message, reason="dynamic-version")


class _Reader:
    def __init__(self, path: str, content: bytes, tree: ast.Module) -> None:
        self.path = path
        self.content = content
        start = len(UTF8_BOM) if content.startswith(UTF8_BOM) else 0
        self.line_starts = [start]
        for found in re.finditer(rb"\r\n|\r|\n", content):
            self.line_starts.append(found.end())
        self.values = _assigned_once(tree)
        self.constraints: list[Constraint] = []
        self.problems: list[Problem] = []

    def read(self, call: ast.Call) -> SetupPy:
        plain: dict[str, str] = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                self._problem(call, "setup(**…) is computed")
            elif keyword.arg in _KINDS:
                kind = _KINDS[keyword.arg]
                self._list(keyword.value, kind, "" if kind is DependencyKind.PROD else keyword.arg, keyword.arg)
            elif keyword.arg == "extras_require":
                self._extras(keyword.value)
            else:
                value = self._resolved(keyword.value)
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    plain[keyword.arg] = value.value
        return SetupPy(
            path=self.path,
            name=plain.get("name", ""),
            version=plain.get("version", ""),
            requires_python=plain.get("python_requires", ""),
            constraints=numbered(self.constraints),
            problems=tuple(self.problems),
        )

    def _problem(self, node: ast.AST, message: str) -> None:
        position = f"{getattr(node, 'lineno', 1)}:{getattr(node, 'col_offset', 0) + 1}"
        self.problems.append(_dynamic(self.path, position, message))

    def _resolved(self, node: ast.expr) -> ast.expr:
        return self.values.get(node.id, node) if isinstance(node, ast.Name) else node

    def _extras(self, node: ast.expr) -> None:
        value = self._resolved(node)
        if not isinstance(value, ast.Dict):
            self._problem(node, "extras_require is computed")
            return
        for key, listed in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._list(listed, DependencyKind.OPTIONAL, key.value, f"extras_require.{key.value}")
            else:
                self._problem(listed, "extras_require is computed")

    def _list(self, node: ast.expr, kind: DependencyKind, group: str, at: str) -> None:
        value = self._resolved(node)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self._requirement(value, kind, group, at)
        elif isinstance(value, ast.List | ast.Tuple):
            for entry in value.elts:
                if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
                    self._requirement(entry, kind, group, at)
                else:
                    self._problem(entry, f"{at} is computed")
        else:
            self._problem(node, f"{at} is computed")

    def _requirement(self, node: ast.Constant, kind: DependencyKind, group: str, at: str) -> None:
        text = str(node.value)
        try:
            requirement = read_requirement(text)
        except ValueError as error:
            self._problem(node, f"{at}: {error}")
            return
        start = self.line_starts[node.lineno - 1] + node.col_offset
        end = self.line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        span: Span | None = None
        # Only a single quoted token without prefix or escapes holds the text byte for byte.
        if _PLAIN_LITERAL.fullmatch(self.content[start:end]):
            lead = len(text[: requirement.start].encode())
            size = len(requirement.specifier.encode())
            span = Span(start=start + 1 + lead, end=start + 1 + lead + size)
        self.constraints.append(
            Constraint(
                path=self.path,
                at=f"{at}.{requirement.name}",
                name=requirement.name,
                package=requirement.package,
                requirement=requirement.specifier,
                span=span,
                kind=kind,
                group=group,
                marker=requirement.marker,
                extras=requirement.extras,
                source=requirement.source,
            )
        )


def _assigned_once(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Values of the module's names that are bound once to a literal and never touched but as an argument."""
    candidates = {
        statement.targets[0].id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.List | ast.Tuple | ast.Dict | ast.Constant)
    }
    harmless = {id(node) for node in _plain_uses(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in candidates and id(node) not in harmless:
            del candidates[node.id]
    return candidates


def _plain_uses(tree: ast.Module) -> Iterator[ast.AST]:
    """The target of each top-level assignment (the first time), and keyword arguments of `setup`."""
    bound: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id not in bound:
                bound.add(target.id)
                yield target
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_setup(node.func):
            yield from (keyword.value for keyword in node.keywords)
