"""What to run and what came of it, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

# What a child may see of our environment: enough to find programs, a home for
# its caches, a locale and the machine's proxy and CA settings; no secrets.
INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "USERPROFILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One child process to run: an argument vector, never a shell line."""

    argv: tuple[str, ...]
    """The executable (a name to look up on PATH, or a path) and its arguments."""
    cwd: Path
    """An existing folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the inherited allowlist; they win over it."""
    inherit: tuple[str, ...] = INHERITED_VARIABLES
    """Names that are passed on from our own environment."""
    timeout_s: float = 60.0
    max_output_bytes: int = 32 * 1024 * 1024
    """Cap for stdout and stderr together."""
    name: str = ""
    """What messages call it; empty means the executable as given."""
    sweep: bool = False
    """Look for processes that left the group also after a normal end, not only after a kill (Linux)."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name or (self.argv[0] if self.argv else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandResult:
    """How a child ended by itself, with any exit code."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes
    duration_s: float


class Runner(Protocol):
    """Runs commands; the tests have one that replays recorded answers."""

    async def run(self, command: Command) -> CommandResult:
        """Run to the end and give what it printed.

        Raises:
            CommandNotFoundError: No such executable, or none that may be run.
            CommandBrokenError: It could not be started, or a signal ended it
                (`CommandKilledError`).
            CommandTimeoutError: Not done within `timeout_s`.
            CommandOutputTooLargeError: More output than `max_output_bytes`.
        """
        ...
