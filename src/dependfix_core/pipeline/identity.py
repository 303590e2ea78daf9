"""Names for plans: the digest of the files they were made on, and of what they decide."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from dependfix_core.model.plan import Plan
from dependfix_core.model.records import Record, Unavailable


def base_digest(files: Mapping[str, str]) -> str:
    """Digest of (path, blob id), the same for a checkout and for GitHub."""
    return _digest(sorted(files.items()))


def plan_digest(plan: Plan) -> str:
    """Digest of policy, base, moves, edits and the records that were used."""
    content = {
        "repository": plan.repository,
        "base": plan.base,
        "policy": asdict(plan.policy),
        "remediations": [asdict(one) for one in plan.remediations],
        "outcomes": [[one.alert, one.outcome, one.reason] for one in plan.outcomes],
        "records": sorted(
            [key.ecosystem, key.name, key.version, _record_digest(record)] for key, record in plan.records.items()
        ),
    }
    return _digest(content)[:32]


def _record_digest(record: Record) -> str:
    return record.why.value if isinstance(record, Unavailable) else record.digest


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
