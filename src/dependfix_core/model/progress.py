"""How far something is, for whoever waits for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a run is."""

    message: str
    done: int = 0
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


def silent(_progress: Progress) -> None:
    """Tell nobody."""
