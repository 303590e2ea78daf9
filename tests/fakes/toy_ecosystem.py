"""The smallest ecosystem that can be fixed: `toy.lock` maps names to versions, `toy.json` declares names.

Packages act by name: `stubborn` cannot be written in-process, `brittle` cannot be
written together with others, `liar` is left as it is, `leaky` moves a bystander,
`broken` gets a finding, `smashed` leaves a file that cannot be parsed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dependfix_core.ecosystems.base import Finding, Graph, ToolCall, ToolRelock, WriteRefusal
from dependfix_core.model.alert import Alert
from dependfix_core.model.files import ChangeSet, FileChange, FileContent, Listing
from dependfix_core.model.lock import Instance, LockUnit, Problem
from dependfix_core.model.plan import AlertOutcome, InstanceVerdict, Move, Plan, Remediation
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.steps import Step, file_content

LOCK = "toy.lock"


def lock(**versions: str) -> bytes:
    return json.dumps(versions, indent=1, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True)
class ToyEcosystem:
    ids: tuple[str, ...] = ("npm",)

    def recognises(self, path: str) -> bool:
        return path == LOCK

    def read_units(self, listing: Listing, manifest_paths: Sequence[str]) -> Step[tuple[LockUnit, ...]]:
        if LOCK not in listing or LOCK not in manifest_paths:
            return ()
        file = yield from file_content(LOCK)
        assert isinstance(file, FileContent)
        try:
            versions: dict[str, str] = json.loads(file.content)
        except ValueError as error:
            problem = Problem(path=LOCK, position="1:1", message=str(error))
            return (LockUnit(unit=LOCK, ecosystem="npm", format="toy", problems=(problem,), files=(LOCK,)),)
        instances = {name: Instance(where=name, name=name, version=version) for name, version in versions.items()}
        return (LockUnit(unit=LOCK, ecosystem="npm", format="toy", tool="npm", instances=instances, files=(LOCK,)),)

    def graph(self, unit: LockUnit) -> Graph:
        raise AssertionError("the toy plans are written by the tests")

    def write(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ChangeSet | WriteRefusal]:
        names = [remediation.package_name for remediation in remediations]
        if "stubborn" in names:
            return WriteRefusal(
                reason="tool-required", detail="stubborn has no hash", remediation=names.index("stubborn")
            )
        if "brittle" in names and len(names) > 1:
            return WriteRefusal(reason="constraint-conflict", detail="brittle stands alone")
        return (yield from self._written(remediations))

    def _written(self, remediations: Sequence[Remediation]) -> Step[ChangeSet]:
        file = yield from file_content(LOCK)
        assert isinstance(file, FileContent)
        versions: dict[str, str] = json.loads(file.content)
        for remediation in remediations:
            for move in remediation.moves:
                if move.package_name != "liar":
                    assert move.to_version is not None
                    versions[move.package_name] = move.to_version
                if move.package_name == "leaky":
                    versions["bystander"] = "9.9.9"
        after = lock(**versions)
        if "smashed" in {remediation.package_name for remediation in remediations}:
            after = after[:-5]
        return ChangeSet(changes=(FileChange(path=LOCK, before=file.content, after=after),))

    def inspect(self, unit: LockUnit) -> Step[tuple[Finding, ...]]:
        yield from ()
        moved = unit.instances.get("broken")
        if moved is None or moved.version == "1.0.0":
            return ()
        return (Finding(check="V4", where="broken", detail="asks for something that is not there"),)

    def relock(self, unit: LockUnit, remediations: Sequence[Remediation]) -> Step[ToolRelock | WriteRefusal]:
        changes = yield from self._written(remediations)
        (change,) = changes.changes
        assert change.after is not None
        return ToolRelock(
            tool="npm",
            version="",
            files={LOCK: change.after},
            results=(LOCK,),
            calls=(ToolCall(argv=("npm", "install")),),
            by_hand="npm install",
            warnings=("written by npm",),
        )


def alert(number: int, name: str, vulnerable: str = "< 2.0.0") -> Alert:
    return Alert(
        repository="octo/toy",
        number=number,
        ecosystem="npm",
        package_name=name,
        manifest_path=LOCK,
        vulnerable_range=vulnerable,
        first_patched_version="2.0.0",
        ghsa_id=f"GHSA-toy-{number}",
    )


def plan(content: bytes, *names: str, **more: Any) -> Plan:
    """Every one of `names` goes from 1.0.0 to 2.0.0; alerts are numbered from 1 in that order."""
    file = FileContent(path=LOCK, content=content)
    remediations = tuple(
        Remediation(
            unit=LOCK,
            ecosystem="npm",
            package_name=name,
            strategy="lock-in-range",
            moves=(
                Move(where=name, package_name=name, from_version="1.0.0", to_version="2.0.0", strategy="lock-in-range"),
            ),
            alerts=(number,),
        )
        for number, name in enumerate(names, start=1)
    )
    outcomes = tuple(
        AlertOutcome(
            alert=number,
            outcome="fix",
            instances=(InstanceVerdict(where=name, version="1.0.0", to_version="2.0.0"),),
        )
        for number, name in enumerate(names, start=1)
    )
    return Plan(
        plan_id="toy",
        base="toy",
        repository="octo/toy",
        policy=ScanPolicy(severity="all"),
        complete=True,
        remediations=remediations,
        outcomes=outcomes,
        files={LOCK: file.sha},
        **more,
    )


def nothing_left(_listing: Listing) -> Step[Plan]:
    """A second planning that finds nothing to do."""
    yield from ()
    return plan(b"")
