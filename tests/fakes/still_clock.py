"""Time that passes only when somebody sleeps."""

from dataclasses import dataclass, field


@dataclass
class StillClock:
    """Starts at a fixed moment; `sleeps` has every pause in order."""

    time_s: float = 1_796_000_000.0
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time_s

    def monotonic(self) -> float:
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time_s += seconds
