"""Plans and carries out the fix of a Python project in memory, with records that are at hand and no tool."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dependfix_core.ecosystems.registry import FIXABLE
from dependfix_core.metadata.base import RecordedMetadata
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, Built
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.trees import MemoryTree, drive
from fakes.planning import ALL, NOW
from fakes.python_index import Published
from fakes.python_records import records_of


@dataclass(frozen=True)
class Fixed:
    plan: Plan
    built: Built
    files: Mapping[str, bytes]
    """As they are afterwards."""

    @property
    def outcomes(self) -> list[tuple[str, str | None]]:
        return [(one.outcome, one.reason) for one in self.plan.outcomes]

    @property
    def strategies(self) -> list[str]:
        return [one.strategy for one in self.plan.remediations]

    @property
    def refused(self) -> list[str]:
        return [why.detail for why in self.built.rejected.values()]


async def fix_in_memory(
    files: Mapping[str, str | bytes],
    alerts: Iterable[Alert],
    published: Iterable[Published] | Mapping[RecordKey, Record],
    policy: ScanPolicy = ALL,
) -> Fixed:
    content = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    known = tuple(alerts)
    records = published if isinstance(published, Mapping) else records_of(published)
    tree = MemoryTree(content)

    def planned(listing: Listing) -> Step[Plan]:
        return plan_repository(known, listing, policy, FIXABLE, repository="acme/made-up", now=NOW)

    plan = await drive(planned(await tree.listing()), tree, RecordedMetadata(records))
    builder = Builder(ecosystems=FIXABLE, metadata=RecordedMetadata(plan.records), relock="in-process")
    built = await builder.build(plan, known, tree, planned)
    after = {**content, **{change.path: change.after or b"" for change in built.changes.changes}}
    return Fixed(plan, built, after)
