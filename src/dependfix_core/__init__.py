"""Turns a repository's Dependabot alerts into verified fixes."""

from dependfix_core._version import __version__

__all__ = ["__version__"]
