"""Plans a checkout and carries the plan out, with the real package managers that were brought."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from dependfix_core.ecosystems.registry import FIXABLE
from dependfix_core.metadata import RecordedMetadata
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import Listing
from dependfix_core.model.plan import Plan
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import Record, RecordKey
from dependfix_core.model.run import Applied
from dependfix_core.model.steps import Step
from dependfix_core.pipeline.build import Builder, RelockPolicy
from dependfix_core.pipeline.fix import fix_checkout
from dependfix_core.pipeline.plan import plan_repository
from dependfix_core.process import SubprocessRunner
from dependfix_core.relock import Relocker
from dependfix_core.trees import drive
from dependfix_core.workspace.git import GitCheckout
from dependfix_core.workspace.tree import CheckoutTree
from fakes.brought_tools import BroughtTools
from fakes.planning import ALL, NOW


async def fixed(
    top: Path,
    alerts: Sequence[Alert],
    records: Mapping[RecordKey, Record],
    tools: dict[str, str],
    *,
    relock: RelockPolicy = "auto",
    policy: ScanPolicy = ALL,
    now: datetime = NOW,
) -> tuple[Plan, Applied]:
    """The plan for the checkout at `top`, and what came of it there; `tools` are those that may write."""
    runner = SubprocessRunner()
    tree = CheckoutTree(top, runner)

    def planned(listing: Listing) -> Step[Plan]:
        return plan_repository(alerts, listing, policy, FIXABLE, repository="acme/corpus", now=now)

    plan = await drive(planned(await tree.listing()), tree, RecordedMetadata(dict(records)))
    builder = Builder(
        ecosystems=FIXABLE,
        metadata=RecordedMetadata(plan.records),
        relocker=Relocker(runner, RegistryAddresses(), tools=BroughtTools(tools)),
        relock=relock,
    )
    checkout = GitCheckout(top=top, git_dir=top / ".git", branch="main", head=None, remotes=())
    applied = await fix_checkout(plan, alerts, checkout, builder=builder, replan=planned, runner=runner)
    return plan, applied
