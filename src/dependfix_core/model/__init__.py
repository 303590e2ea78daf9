"""Frozen values that the stages hand on; imports nothing of ours but errors."""

from dependfix_core.model.alert import (
    THRESHOLDS,
    AffectedRange,
    Alert,
    AlertKey,
    AlertState,
    Severity,
    Threshold,
    by_severity,
    parse_time,
)

__all__ = [
    "THRESHOLDS",
    "AffectedRange",
    "Alert",
    "AlertKey",
    "AlertState",
    "Severity",
    "Threshold",
    "by_severity",
    "parse_time",
]
