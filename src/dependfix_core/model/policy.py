"""What the caller allows."""

from dataclasses import dataclass
from typing import Literal

SeverityThreshold = Literal["critical", "high", "medium", "low", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanPolicy:
    """Which alerts are answered and how far a package may move."""

    severity: SeverityThreshold = "high"
    """This level and above."""
    packages: tuple[str, ...] = ()
    """Only these, by name; empty means all."""
    alerts: tuple[int, ...] = ()
    """Only these numbers; empty means all."""
    max_alerts: int | None = None
    """The most urgent ones, by severity, then number; `None` means no limit."""
    allow_major: bool = False
    zero_major_minor_is_breaking: bool = True
    """A 0.x minor is another line."""
    allow_override: bool = True
    allow_parent_bump: bool = True
    allow_major_override: bool = False
    raise_direct_floor: bool = False
    """Also raise a declared floor that admits the target already."""
    young_fixes: Literal["refuse", "exclude"] = "refuse"
    cooldown_days: int = 0
    max_new_nodes: int = 25
    """Nodes that a closure may bring in; above it the tool has to write."""
