"""Where the sudocode program is, and which project a call belongs to."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from adapters.sudocode.config import SudocodeConfig
from adapters.sudocode.failures import SudocodeError
from dependfix_core.process import locate

FOLDER: Final = ".sudocode"

Identity: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""Files with their size, times and inode."""

_NAMES: Final = ("sudocode", "sdc")
_SCRIPTS: Final = frozenset({".js", ".mjs", ".cjs"})
_SHIMS: Final = frozenset({".cmd", ".bat"})
# npm's shims for Windows name the script relative to their own folder.
_SHIM_SCRIPT: Final = re.compile(r'"%(?:~dp0|dp0%)\\?([^"%]+\.[mc]?js)"', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """How to start sudocode."""

    argv: tuple[str, ...]
    file: Path
    """The script or executable behind every link."""

    @property
    def entry(self) -> str:
        """Absolute path of the program itself, as it was found."""
        return self.argv[-1]

    @property
    def identity(self) -> Identity:
        """Changes when another release is installed in the same place.

        Packages are unpacked with one fixed time and the entry often stays the
        same, so the package's own description and the times of the system count too.

        Raises:
            SudocodeError: `cli_missing`, when the program has just gone.
        """
        files = [self.file, *(folder / "package.json" for folder in self.file.parents[:3])]
        out = [(str(file), *found) for file in files if (found := _stat(file))]
        if not out or out[0][0] != str(self.file):
            raise _missing(configured=True)
        return tuple(out)

    @property
    def installation(self) -> str:
        """The folder that holds the program's package; empty when it lies too high to be one."""
        folder = self.file.parent
        for parent in self.file.parents:
            if parent.name == "node_modules":
                folder = parent
        return str(folder) if len(folder.parts) > 2 else ""


def find_sudocode(config: SudocodeConfig) -> Program:
    """The program that the configuration or PATH names.

    Raises:
        SudocodeError: `cli_missing`.
    """
    setting = config.path.strip()
    for name in (setting,) if setting else _NAMES:
        try:
            given = Path(name).expanduser()
            if given.suffix.lower() in _SCRIPTS and given.is_file():
                return Program(argv=(config.node, str(given.absolute())), file=given.resolve())
            found = locate(name if given.name == name else str(given))
        except (OSError, RuntimeError):  # of a user that does not exist, or below a directory that is gone
            continue
        if found is None:
            continue
        file = Path(found)
        if file.suffix.lower() in _SHIMS:
            script = shim_script(file)
            if script is not None:
                return Program(argv=(config.node, str(script)), file=script.resolve())
        return Program(argv=(found,), file=file.resolve())
    raise _missing(configured=bool(setting))


def _missing(*, configured: bool) -> SudocodeError:
    return SudocodeError(
        "SUDOCODE_PATH names no program that can be run" if configured else "the sudocode command was not found",
        code="cli_missing",
        hint="Install it with `npm install -g sudocode`, or set SUDOCODE_PATH to the program.",
        details={"tried": ["SUDOCODE_PATH"] if configured else list(_NAMES)},
    )


def _stat(file: Path) -> tuple[int, int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def shim_script(shim: Path) -> Path | None:
    """The script that a Windows shim of npm starts, so that no shell has to run it."""
    match = _SHIM_SCRIPT.search(shim.read_text(encoding="utf-8", errors="replace"))
    if match is None:
        return None
    script = shim.parent.joinpath(*match[1].split("\\"))
    return script if script.is_file() else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A folder with an initialised `.sudocode`."""

    root: Path
    """Every command runs here."""
    database: Path
    database_option: str | None = None
    """`--db=…`, when the database has another name than the program's default."""

    @property
    def folder(self) -> Path:
        """The `.sudocode` folder."""
        return self.root / FOLDER

    @property
    def jsonl(self) -> tuple[Path, Path]:
        """The exported issues and specs, which may be missing."""
        return (self.folder / "issues.jsonl", self.folder / "specs.jsonl")


def nearest_folder(start: Path) -> Path | None:
    """The nearest `.sudocode` folder at or above `start`, at most as far as the top of the git checkout.

    It counts with and without a database: below an outer project the program
    itself would pass over one without, and use the outer project instead.

    Raises:
        SudocodeError: `database_invalid`, when a file of that name is in the way.
    """
    for folder in (start, *start.parents):
        candidate = folder / FOLDER
        if candidate.is_symlink() and not candidate.exists():
            raise SudocodeError(
                ".sudocode is a link that leads nowhere",
                code="database_invalid",
                hint="Repair or remove the link; sudocode would use a project further up.",
            )
        if candidate.is_dir():
            return candidate
        if candidate.exists():
            raise SudocodeError(
                "a file named .sudocode is where the project's folder should be",
                code="database_invalid",
                hint="Move that file away, then call init.",
            )
        if (folder / ".git").exists():
            return None
    return None


def find_project(config: SudocodeConfig, *, database_name: str) -> Project:
    """The project that calls work on.

    Args:
        config: Names the place to start from, or the database itself.
        database_name: The file that the installed release uses.

    Raises:
        SudocodeError: `not_initialized`, `database_incompatible`,
            `database_invalid` or `config_error`.
    """
    if config.database:
        return _configured(Path(config.database).expanduser().absolute(), database_name)
    folder = nearest_folder(config.working_dir.resolve())
    if folder is None:
        raise SudocodeError(
            "there is no sudocode project here",
            code="not_initialized",
            hint="Call init to make one in the working directory, or set SUDOCODE_WORKING_DIR to the project.",
        )
    database = folder / database_name
    if database.exists():
        return Project(root=folder.parent, database=database)
    other = next((name for name in ("cache.db", "sudograph.db") if (folder / name).exists()), None)
    if other is not None:
        raise SudocodeError(
            f"the project's database is {other}; the installed sudocode uses {database_name} and would start empty",
            code="database_incompatible",
            hint="Use the release of sudocode that made the database.",
            details={"database": other, "expected": database_name},
        )
    raise SudocodeError(
        "the project has no database yet, as after a fresh clone",
        code="not_initialized",
        hint="Call init: it builds the database from the committed JSONL files.",
    )


def _configured(database: Path, database_name: str) -> Project:
    if not database.is_file() or database.parent.name != FOLDER:
        raise SudocodeError(
            "SUDOCODE_DB must name an existing database inside a folder called .sudocode",
            code="config_error",
            hint="Unset SUDOCODE_DB and set SUDOCODE_WORKING_DIR to the project instead.",
            details={"setting": "SUDOCODE_DB"},
        )
    option = None if database.name == database_name else f"--db={database}"
    return Project(root=database.parent.parent, database=database, database_option=option)
