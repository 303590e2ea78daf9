"""The package manager as second way to write a lockfile: always in a scratch copy, lock-only, scripts off."""

from dependfix_core.relock.run import PathTools, Relocker, RelockFailure, ToolLocator

__all__ = ["PathTools", "RelockFailure", "Relocker", "ToolLocator"]
