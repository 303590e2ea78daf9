"""Versions, ranges and requirements by each ecosystem's own rules; no I/O."""

from dependfix_core.versions.base import Answer, Key, Line, Unparsable, Version, VersionScheme
from dependfix_core.versions.grammars import GRAMMARS, parse_requirement
from dependfix_core.versions.grammars.npm import NpmSpecifier, npm_specifier
from dependfix_core.versions.intervals import Bound, Interval, VersionSet
from dependfix_core.versions.python_range import (
    judge_marker,
    marker_always_true,
    marker_possibly_true,
    python_covers,
)
from dependfix_core.versions.ranges import RangeComparator, VulnerableRange, is_unsafe
from dependfix_core.versions.registry import ECOSYSTEMS, normalise_name, same_name, scheme_for
from dependfix_core.versions.requirement import Arm, Comparator, Requirement
from dependfix_core.versions.rewrite import Raised, RaiseFlag, Refusal, raise_requirement

__all__ = [
    "ECOSYSTEMS",
    "GRAMMARS",
    "Answer",
    "Arm",
    "Bound",
    "Comparator",
    "Interval",
    "Key",
    "Line",
    "NpmSpecifier",
    "RaiseFlag",
    "Raised",
    "RangeComparator",
    "Refusal",
    "Requirement",
    "Unparsable",
    "Version",
    "VersionScheme",
    "VersionSet",
    "VulnerableRange",
    "is_unsafe",
    "judge_marker",
    "marker_always_true",
    "marker_possibly_true",
    "normalise_name",
    "npm_specifier",
    "parse_requirement",
    "python_covers",
    "raise_requirement",
    "same_name",
    "scheme_for",
]
