"""How pip-compile and `uv pip compile` bring their files to a plan's end state.

The head of a compiled file says how it was made. It is text of the repository:
only options that are known to decide nothing but the result are used again.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dependfix_core.ecosystems.base import ToolCall, ToolRelock
from dependfix_core.ecosystems.pip.relock_manifests import project_of
from dependfix_core.ecosystems.pip.relock_work import NoWayError, Work
from dependfix_core.ecosystems.pip.requirement_text import is_remote
from dependfix_core.ecosystems.pip.requirements import RequirementsFile, read_requirements
from dependfix_core.ecosystems.pip.toml_text import parse_toml, strings_of
from dependfix_core.model.lock import SourceKind

_MANIFESTS: Final = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
_UNSAFE: Final = frozenset({"distribute", "pip", "setuptools"})
"""Packages that pip-compile leaves out unless it is told otherwise."""
_FILE_OPTIONS: Final = frozenset({"--only-binary", "--pre", "--prefer-binary", "--require-hashes"})
"""Options in requirements files that cannot make anything be built or fetched from elsewhere."""
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9][\w.,:/+=<>!~ \[\]-]*")

_COMMON_FLAGS: Final = frozenset(
    {
        "--all-extras",
        "--allow-unsafe",
        "--annotate",
        "--emit-index-url",
        "--generate-hashes",
        "--header",
        "--no-annotate",
        "--no-emit-index-url",
        "--no-header",
        "--no-strip-extras",
        "--strip-extras",
    }
)
_COMMON_VALUES: Final = frozenset({"--annotation-style", "--constraint", "--extra", "--output-file"})
_FILES: Final = frozenset({"--constraint", "--constraints", "--override", "--overrides"})
_INDEXES: Final = frozenset({"--default-index", "--extra-index-url", "--index", "--index-url"})
_SHORT: Final = {"-o": "--output-file", "-c": "--constraint", "-i": "--index-url", "-U": "--upgrade", "-q": "--quiet"}
_SHORT_MORE: Final = {"-v": "--verbose", "-P": "--upgrade-package", "-p": "--python-version"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Compiler:
    """One program, and what of a recorded command is used again."""

    tool: str
    words: tuple[str, ...]
    """How a recorded command begins."""
    flags: frozenset[str]
    values: frozenset[str]
    ignored_flags: frozenset[str] = frozenset({"--no-upgrade", "--quiet", "--upgrade", "--verbose"})
    ignored_values: frozenset[str] = frozenset({"--cache-dir", "--upgrade-package"})
    head_variable: str = ""
    """Names what the head of the result says."""


_PIP_TOOLS: Final = _Compiler(
    tool="pip-tools",
    words=("pip-compile",),
    flags=_COMMON_FLAGS
    | {
        "--emit-find-links",
        "--emit-options",
        "--emit-trusted-host",
        "--no-allow-unsafe",
        "--no-emit-find-links",
        "--no-emit-options",
        "--no-emit-trusted-host",
        "--no-reuse-hashes",
        "--pre",
        "--reuse-hashes",
    },
    values=_COMMON_VALUES | {"--max-rounds", "--newline", "--resolver", "--unsafe-package", "--uploaded-prior-to"},
    ignored_flags=frozenset({"--no-upgrade", "--quiet", "--rebuild", "--upgrade", "--verbose"}),
    head_variable="CUSTOM_COMPILE_COMMAND",
)
_UV: Final = _Compiler(
    tool="uv",
    words=("uv", "pip", "compile"),
    flags=_COMMON_FLAGS
    | {
        "--emit-build-options",
        "--emit-index-annotation",
        "--emit-marker-expression",
        "--no-deps",
        "--no-sources",
        "--no-strip-markers",
        "--pre",
        "--strip-markers",
        "--universal",
    },
    values=_COMMON_VALUES
    | {
        "--constraints",
        "--exclude-newer",
        "--fork-strategy",
        "--format",
        "--index-strategy",
        "--no-emit-package",
        "--override",
        "--overrides",
        "--prerelease",
        "--python-platform",
        "--python-version",
        "--resolution",
        "--unsafe-package",
    },
    ignored_flags=frozenset({"--no-build", "--no-progress", "--quiet", "--refresh", "--upgrade", "--verbose"}),
    head_variable="UV_CUSTOM_COMPILE_COMMAND",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recipe:
    """How one file was made, by its head."""

    output: str
    """Relative to the top level, like `inputs`."""
    inputs: tuple[str, ...]
    """Sources, constraints and overrides that the command names."""
    sources: tuple[str, ...]
    """As the command names them."""
    options: tuple[str, ...]
    recorded: str
    """The command as the head has it."""
    folder: str
    """Where it was run."""
    indexes: Mapping[str, str]


def compiled(work: Work) -> ToolRelock:
    """The files that have to be compiled again, each after those that it depends on."""
    unit = work.unit
    files = {
        path: read_requirements(path, content)
        for path, content in work.final.items()
        if posixpath.basename(path) not in _MANIFESTS
    }
    outputs = {path: file for path, file in files.items() if file.header is not None and file.header.command}
    if not outputs:
        raise NoWayError(f"{unit.unit} does not say by which command it was made, if by any")
    compiler = _compiler_of(outputs.values())
    recipes = {path: _recipe(work, compiler, file) for path, file in outputs.items()}
    wanted = [recipes[path] for path in _in_order(recipes, files, _touched(work, outputs))]
    for path in sorted({path for recipe in wanted for path in (recipe.output, *_reached(recipe.inputs, files))}):
        _require_harmless(work, path, files.get(path))
    folders = {recipe.folder for recipe in wanted}
    if len(folders) > 1:
        raise NoWayError("the files were compiled in different folders")
    folder = folders.pop() if folders else ""
    calls = [call for recipe in wanted for call in _calls(work, compiler, recipe, files)]
    by_hand = " && ".join(shlex.join(_by_hand(work, compiler, recipe)) for recipe in wanted)
    registries = dict(unit.registries)
    for recipe in wanted:
        registries.update(recipe.indexes)
    laid = {path: content for path, content in work.final.items() if path in files}
    laid.update(_static_manifests(work, wanted))
    return ToolRelock(
        tool=compiler.tool,
        version="",
        files=laid,
        results=tuple(sorted(recipe.output for recipe in wanted)),
        calls=tuple(calls),
        edited=tuple(sorted(work.edited)),
        restored={path: content for path, content in work.edited.items() if laid.get(path, content) != content},
        registries=registries,
        folder=folder or ".",
        by_hand=f"cd {shlex.quote(folder)} && {by_hand}" if folder else by_hand,
    )


def _compiler_of(outputs: Iterable[RequirementsFile]) -> _Compiler:
    found = {file.header.tool for file in outputs if file.header is not None}
    if len(found) != 1:
        raise NoWayError("the files were compiled by different tools")
    return _UV if found == {"uv"} else _PIP_TOOLS


# What the head says.


def _recipe(work: Work, compiler: _Compiler, file: RequirementsFile) -> _Recipe:
    assert file.header is not None, "checked with the tool"
    words = file.header.command
    length = len(compiler.words)
    if words[:length] != compiler.words:
        raise NoWayError(f"{file.path} was made by {' '.join(words[:3])[:80]}, which is not run here")
    recorded = " ".join(words)
    if recorded.encode() not in file.content:
        raise NoWayError(f"the command of {file.path} is quoted in a way that is not known")
    options: list[str] = []
    sources: list[str] = []
    named: list[str] = []
    output = ""
    indexes: dict[str, str] = {}
    for name, value in _split(file.path, words[length:], compiler):
        if not name:
            sources.append(value)
        elif name in compiler.ignored_flags or name in compiler.ignored_values:
            continue
        elif name in _INDEXES:
            indexes["" if name in {"--index-url", "--default-index"} else value] = _index(file.path, value)
        elif name == "--output-file":
            output = value
        elif name in compiler.flags:
            options.append(name)
        elif name in compiler.values:
            if name in _FILES:
                named.append(value)
            options += [name, _checked(file.path, name, value)]
        else:
            raise NoWayError(f"the command of {file.path} has the option {name}, which is not used again")
    if not sources:
        raise NoWayError(f"the command of {file.path} names no input")
    if not output and compiler is _UV:
        output = posixpath.basename(file.path)  # what it was not told to write, it printed
    folder = _folder(work, file.path, [*sources, *named], output)
    if output:
        options += ["--output-file", _checked(file.path, "--output-file", output)]
    return _Recipe(
        output=file.path,
        inputs=tuple(_path(folder, name) for name in (*sources, *named)),
        sources=tuple(sources),
        options=tuple(options),
        recorded=recorded,
        folder=folder,
        indexes=indexes,
    )


def _split(path: str, words: Iterable[str], compiler: _Compiler) -> Iterator[tuple[str, str]]:
    """(option, value) pairs; an argument has no option, a flag no value."""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            yield "", word
            continue
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            if len(name) > 2:
                raise NoWayError(f"the command of {path} has {name[:20]}, which is not used again")
            name = _SHORT.get(name) or _SHORT_MORE.get(name) or name
        takes = (
            name in compiler.values or name in _INDEXES or name in compiler.ignored_values or name == "--output-file"
        )
        if takes and not equals:
            value = next(waiting, "")
        yield name, value


def _index(path: str, value: str) -> str:
    if not is_remote(value) or "$" in value or "@" in value:
        raise NoWayError(f"the command of {path} names an index that is no plain address")
    return value


def _checked(path: str, name: str, value: str) -> str:
    if not _PLAIN_VALUE.fullmatch(value) and not (name in _FILES | {"--output-file"} and value.startswith(".")):
        raise NoWayError(f"the command of {path} has {name} with a value that is not used again")
    return value


def _folder(work: Work, path: str, named: Iterable[str], output: str) -> str:
    """The folder from which all names of a command lead to files that are there."""
    names = list(named)
    for folder in dict.fromkeys([posixpath.dirname(path), *_above(path), ""]):
        inputs = [_path(folder, name) for name in names]
        if all(one in work.final for one in inputs) and (not output or _path(folder, output) == path):
            return folder
    raise NoWayError(f"the inputs of {path} are not all there")


def _above(path: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def _path(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name.replace("\\", "/")))


# What has to be made again.


def _touched(work: Work, outputs: Mapping[str, RequirementsFile]) -> set[str]:
    """Compiled files that hold a moved copy; a copy that is pinned by hand elsewhere has to have an edit there."""
    if not work.moves and not work.edits:
        return set(outputs)
    found: set[str] = set()
    for where in work.moves:
        for pin in work.unit.instances[where].raw.get("pins", ()):
            if pin.path in outputs:
                found.add(pin.path)
            elif pin.path not in work.edited:
                raise NoWayError(f"{pin.path} pins {pin.line.name} by hand")
    return found


def _in_order(recipes: Mapping[str, _Recipe], files: Mapping[str, RequirementsFile], touched: set[str]) -> list[str]:
    """The touched files and all that are made from them or from an edited file, inputs first."""
    order: list[str] = []
    visiting: set[str] = set()

    def visit(path: str) -> None:
        if path in order:
            return
        if path in visiting:
            raise NoWayError(f"{path} is made from itself")
        visiting.add(path)
        for other in sorted(_reached(recipes[path].inputs, files) & recipes.keys() - {path}):
            visit(other)
        order.append(path)

    for path in sorted(recipes):
        visit(path)
    wanted: list[str] = []
    for path in order:
        inputs = _reached(recipes[path].inputs, files)
        if path in touched or inputs & set(wanted):
            wanted.append(path)
    return wanted


def _reached(paths: Iterable[str], files: Mapping[str, RequirementsFile]) -> set[str]:
    """Files that take part when `paths` are read, themselves among them."""
    seen: set[str] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [reference.path for reference in files[path].references] if path in files else []
    return seen


def _require_harmless(work: Work, path: str, file: RequirementsFile | None) -> None:
    """A file that makes the tool build or fetch something else than an index's wheels stops it."""
    if file is None:
        if posixpath.basename(path) != "pyproject.toml":
            raise NoWayError(f"{path} is code, which would have to run")
        project = project_of(work.final[path])
        if project is None or {"dependencies", "optional-dependencies"} & {*strings_of(project.get("dynamic"))}:
            raise NoWayError(f"{path} computes its dependencies, for which its project would have to be built")
        return
    if file.problems:
        raise NoWayError(f"{path} cannot be read in full: {file.problems[0].message}")
    if b"${" in file.content:
        raise NoWayError(f"{path} holds variables, which would be expanded")
    for line in file.lines:
        if line.source.kind is not SourceKind.REGISTRY:
            raise NoWayError(f"{line.name or 'a requirement'} in {path} would have to be built")
    strange = sorted({*file.options} - _FILE_OPTIONS) or (["--find-links"] if file.find_links else [])
    if strange:
        raise NoWayError(f"{path} has the option {strange[0]}")


def _static_manifests(work: Work, wanted: Iterable[_Recipe]) -> dict[str, bytes]:
    """Manifests that are inputs, with nothing in them but their declarations."""
    import tomlkit  # noqa: PLC0415  # only where a manifest is compiled

    found = {}
    for recipe in wanted:
        for path in recipe.inputs:
            if posixpath.basename(path) == "pyproject.toml":
                data = parse_toml(work.final[path])
                kept: dict[str, Any] = {name: data[name] for name in ("project", "dependency-groups") if name in data}
                found[path] = tomlkit.dumps(kept).encode()
    return found


# The calls.


def _calls(
    work: Work, compiler: _Compiler, recipe: _Recipe, files: Mapping[str, RequirementsFile]
) -> Iterator[ToolCall]:
    output = files[recipe.output]
    argv = [*compiler.words, *recipe.options, *_inferred(compiler, recipe, output, files), *_pins(work, recipe)]
    head = {compiler.head_variable: recipe.recorded}
    if compiler is _UV:
        more = ("--no-build", "--no-config", "--keyring-provider=disabled", "--quiet")
        yield ToolCall(argv=(*argv, *more, *recipe.sources), env=head)
        return
    argv.append("--no-config")
    # The first run proves that wheels are enough and leaves only pins to the second, which lists all files of each.
    yield ToolCall(argv=(*argv, *recipe.sources), env={**head, "PIP_ONLY_BINARY": ":all:"})
    if "--generate-hashes" in argv:
        argv = [word for word in argv if word != "--reuse-hashes"] + ["--no-reuse-hashes"]
    yield ToolCall(argv=(*argv, *recipe.sources), env=head)


def _inferred(
    compiler: _Compiler, recipe: _Recipe, output: RequirementsFile, files: Mapping[str, RequirementsFile]
) -> list[str]:
    """Options that another version of the tool takes for granted, told by the file that they made."""
    found = []
    if any(line.hashes for line in output.lines) and "--generate-hashes" not in recipe.options:
        found.append("--generate-hashes")
    if not {"--strip-extras", "--no-strip-extras"} & {*recipe.options}:
        asked = any(
            line.extras for path in _reached(recipe.inputs, files) if path in files for line in files[path].lines
        )
        if any(line.extras for line in output.lines):
            found.append("--no-strip-extras")
        elif asked:
            found.append("--strip-extras")
    if compiler is _PIP_TOOLS:
        pinned = {line.package for line in output.lines}
        if pinned & _UNSAFE and not {"--allow-unsafe", "--unsafe-package"} & {*recipe.options}:
            found.append("--allow-unsafe")
        has_index = bool(output.index_url or output.extra_index_urls)
        if not has_index and not {"--emit-index-url", "--no-emit-index-url"} & {*recipe.options}:
            found.append("--no-emit-index-url")
    return found


def _pins(work: Work, recipe: _Recipe) -> list[str]:
    """The versions for this file, of packages that it holds."""
    found: dict[str, str] = {}
    for where in sorted(work.moves):
        instance = work.unit.instances[where]
        if any(pin.path == recipe.output for pin in instance.raw.get("pins", ())):
            version = str(work.moves[where].to_version)
            if instance.name in found:
                raise NoWayError(f"{recipe.output} pins {instance.name} more than once")
            found[instance.name] = version
    others = [
        one
        for one in work.unit.instances.values()
        if one.name in found
        and one.where not in work.moves
        and any(pin.path == recipe.output for pin in one.raw.get("pins", ()))
    ]
    if others:
        raise NoWayError(f"{recipe.output} pins {others[0].name} more than once")
    return [f"--upgrade-package={name}=={version}" for name, version in found.items()]


def _by_hand(work: Work, compiler: _Compiler, recipe: _Recipe) -> tuple[str, ...]:
    return (*compiler.words, *recipe.options, *_pins(work, recipe), *recipe.sources)
