"""Can the tools work, with which program and on which project? Asked by `doctor`; opens no database."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.locate import find_sudocode
from adapters.sudocode.session import Sudocode

NEEDED: Final = "a release of sudocode, any from 0.1.0 on"


@dataclass(frozen=True, kw_only=True, slots=True)
class SudocodeState:
    """What there is, and what stands in the way."""

    needed: str
    """In words: every release is understood."""
    found: str | None
    """Version of the program; `None` when there is none that says one."""
    executable: str | None
    """Absolute path of the program; `None` when there is none."""
    project: Path | None
    """The folder that has the project's `.sudocode`."""
    error: SudocodeError | None
    """What every call answers: `cli_missing`, `cli_broken`, `config_error`, `not_initialized` and the like."""


async def sudocode_state(sudocode: Sudocode) -> SudocodeState:
    """Look for the program and the project as a call would, without making or opening anything."""
    executable = found = project = None
    error: SudocodeError | None = None
    try:
        sudocode.config.check()
        executable = find_sudocode(sudocode.config).entry
        found = (await sudocode.cli.capabilities()).version
        project = (await sudocode.open()).project.root
    except SudocodeError as caught:
        error = caught
    return SudocodeState(needed=NEEDED, found=found, executable=executable, project=project, error=error)
