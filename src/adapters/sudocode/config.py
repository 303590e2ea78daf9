"""What the operator sets for sudocode."""

from dataclasses import dataclass
from pathlib import Path

from adapters.sudocode.failures import SudocodeError


@dataclass(frozen=True, kw_only=True, slots=True)
class SudocodeConfig:
    """Where the program and the project are, and the limits of a call."""

    path: str = ""
    """`SUDOCODE_PATH`: a path (`~` allowed) or a name for PATH; empty means `sudocode`, then `sdc`."""
    database: str = ""
    """`SUDOCODE_DB`: a database file inside a folder called `.sudocode`; empty means the project's own."""
    working_dir: Path
    """`SUDOCODE_WORKING_DIR`, or the folder that stands for it: where the search for the project starts."""
    actor: str = ""
    """`SUDOCODE_ACTOR`: the author of feedback when a call names none."""
    node: str = "node"
    """Runs a program that is given as a JavaScript file."""
    timeout_s: float = 30.0
    """For one run of the program."""
    lock_wait_s: float = 30.0
    """How long a write waits for a writer of the same project in another process."""
    budget_chars: int = 20_000
    """A list result has at most about this many characters of rows."""
    detail_chars: int = 56_000
    """One entity has at most this many."""

    def check(self) -> None:
        """Refuse what can only be a mistake.

        Raises:
            SudocodeError: `config_error`.
        """
        named = {
            "SUDOCODE_PATH": self.path,
            "SUDOCODE_DB": self.database,
            "SUDOCODE_WORKING_DIR": str(self.working_dir),
        }
        for name, value in named.items():
            if "${" in value:
                raise SudocodeError(
                    f"{name} still holds a variable that the host did not expand",
                    code="config_error",
                    hint=f"Write the value of {name} out in the host's configuration.",
                    details={"setting": name},
                )
        try:
            there = self.working_dir.absolute().is_dir()
        except OSError:  # relative to a directory that was deleted, or behind one that may not be looked into
            there = False
        if not there:
            raise SudocodeError(
                "the working directory for sudocode does not exist",
                code="config_error",
                hint="Set SUDOCODE_WORKING_DIR to an existing folder.",
                details={"setting": "SUDOCODE_WORKING_DIR"},
            )
