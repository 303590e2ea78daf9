"""Where files come from: a checkout, the repository on GitHub, memory; all seen as one tree."""

from dependfix_core.trees.base import MAX_FILE_BYTES, TreeSource, content_or_absence
from dependfix_core.trees.drive import drive
from dependfix_core.trees.memory import ChangedTree, MemoryTree

__all__ = ["MAX_FILE_BYTES", "ChangedTree", "MemoryTree", "TreeSource", "content_or_absence", "drive"]
