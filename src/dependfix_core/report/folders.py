"""Which folders hold reports."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_FOLDER: Final = "dependfix-reports"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportFolders:
    """Where reports are written: the first folder that takes them; they are looked for in all of them."""

    candidates: tuple[Path, ...]

    @classmethod
    def choose(cls, report_dir: Path | None, current: Path, state_dir: Path | None) -> "ReportFolders":
        """The configured folder, else `dependfix-reports` in the current one, else the user's state folder.

        The root directory is where hosts start servers that belong nowhere: nothing is written there.
        """
        first = report_dir if report_dir is not None else current / DEFAULT_FOLDER
        chosen = [] if report_dir is None and current == Path(current.anchor) else [current / first]
        # A link in somebody else's checkout must not lead the writer elsewhere.
        if report_dir is None and chosen and chosen[0].is_symlink():
            chosen = []
        if state_dir is not None:
            chosen.append(state_dir / "reports")
        return cls(candidates=tuple(chosen))
