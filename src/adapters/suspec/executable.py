"""Which program is the suspec CLI, and is it still the one that was asked before?"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from dependfix_core.errors import CommandBrokenError, CommandNotFoundError

Locate: TypeAlias = Callable[[str], str | None]
Fingerprint: TypeAlias = tuple[tuple[str, int, int, int, int, int], ...]

COMMAND_NAME: Final = "suspec"
MISSING_HINT: Final = "Install the suspec CLI, or name it with --suspec-bin or SUSPEC_BIN."

_SCRIPTS: Final = (".js", ".mjs", ".cjs")
_SHELL_SHIMS: Final = (".cmd", ".bat")
_MAX_FILES: Final = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """How the CLI is started."""

    entry: str
    """Absolute path of the CLI's own executable or script."""
    argv: tuple[str, ...]
    """What comes before the arguments: the entry, or Node and the entry."""


def find_program(configured: str | None, node: str, locate: Locate) -> Program:
    """The configured program, a path or a name on PATH, else `suspec` on PATH; a script is run by Node.

    Raises:
        CommandNotFoundError: There is none.
        CommandBrokenError: It is there and cannot be run.
    """
    name = configured or COMMAND_NAME
    is_bare = Path(name).name == name
    try:
        entry = locate(name) if is_bare else str(Path(name).absolute())
    except OSError:  # relative to a working directory that is gone
        entry = name
    if entry is None:
        raise CommandNotFoundError(f"the suspec CLI was not found: no {name} on PATH", argv=(name,), hint=MISSING_HINT)
    path = Path(entry)
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise CommandNotFoundError(
            f"the suspec CLI was not found: {entry}", argv=(entry,), hint=MISSING_HINT
        ) from error
    except OSError as error:
        raise CommandBrokenError(f"{entry} cannot be looked at: {error.strerror}", argv=(entry,)) from error
    if not is_file:
        raise CommandBrokenError(f"{entry} is no file", argv=(entry,), hint=MISSING_HINT)
    suffix = path.suffix.lower()
    if suffix in _SCRIPTS:
        return Program(entry=entry, argv=(_node(entry, node, locate), entry))
    if suffix in _SHELL_SHIMS:
        # The command interpreter would run and would read special characters in paths as its own.
        raise CommandBrokenError(
            f"{entry} needs a shell", argv=(entry,), hint="Name the CLI's .js file with --suspec-bin or SUSPEC_BIN."
        )
    if locate(entry) is None:
        raise CommandBrokenError(f"{entry} is not executable", argv=(entry,), hint="Make the file executable.")
    return Program(entry=entry, argv=(entry,))


def _node(entry: str, node: str, locate: Locate) -> str:
    found = locate(node)
    if found is None:
        raise CommandBrokenError(
            f"{entry} needs Node, and {node} was not found",
            argv=(node, entry),
            hint="Install Node.js, or name it with --node-bin or NODE_BIN.",
        )
    return found


def fingerprint(program: Program) -> Fingerprint:
    """Changes when the CLI is replaced or upgraded.

    The entry is often a launcher whose bytes never change, so the files of the
    package around it count too. Empty when the entry is gone.
    """
    rows = []
    for path in _files(Path(program.entry)):
        try:
            status = path.stat()
        except OSError:
            continue
        rows.append((str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(rows)


def code_files(entry: Path) -> tuple[Path, ...]:
    """The files that really run, sorted: the package's source where it has one, else its bundle, else the entry.

    The launcher itself decides in the same way.
    """
    root = package_root(entry)
    if root is None:
        return (entry,)
    for folder in ("src", "dist"):
        files = tuple(_tree(root / folder))
        if files:
            return files
    return (entry,)


def package_root(entry: Path) -> Path | None:
    """The package that an entry belongs to: its folder or the one above, where a `package.json` says so."""
    real = Path(os.path.realpath(entry))
    return next((folder for folder in (real.parent, real.parent.parent) if (folder / "package.json").is_file()), None)


def _files(entry: Path) -> Iterator[Path]:
    yield Path(os.path.realpath(entry))
    root = package_root(entry)
    if root is not None:
        yield root / "package.json"
    yield from code_files(entry)


def _tree(folder: Path) -> Iterator[Path]:
    count = 0
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield Path(parent, name)
            count += 1
            if count == _MAX_FILES:
                return
