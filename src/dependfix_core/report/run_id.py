"""Names of runs: `YYYYMMDD-HHmmss-<suffix>`, in UTC, without a dot."""

import re
import secrets
from datetime import UTC, datetime
from typing import Final

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def new_run_id(now: datetime, suffix: str = "") -> str:
    """A name for a run that begins `now`; `suffix` is random when none is given."""
    suffix = suffix or "".join(secrets.choice(_ALPHABET) for _ in range(6))
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{suffix}"


def is_run_id(text: str) -> bool:
    """Whether `text` can name a run of ours or of the original; never a path."""
    return _RUN_ID.fullmatch(text) is not None


def file_stem(run_id: str, started_at: datetime) -> str:
    """Name of a report's files without the ending.

    A name of the original (`dependfix-<time>-<suffix>`) gives the stem that the original gives.
    """
    if re.fullmatch(r"\d{8}-\d{6}-[A-Za-z0-9_-]+", run_id):
        return f"dependfix-report-{run_id}"
    return f"dependfix-report-{started_at.astimezone(UTC):%Y%m%d-%H%M%S}-{run_id.rpartition('-')[2][:8]}"
