"""What a requirement comes to, where the answer may stand in a registry record."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dependfix_core.ecosystems.base import Dependent
from dependfix_core.ecosystems.npm.asks import ask_of_constraint, asks_of_release
from dependfix_core.ecosystems.npm.layout import Counting, Layout, Link, State
from dependfix_core.model.records import RecordKey, Release, ReleaseRecord
from dependfix_core.model.steps import Step, records_for

RecordKeys = Callable[[str, str], RecordKey]
"""Package and version → the key of the record."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers about any state of one unit."""

    layout: Layout
    keys: RecordKeys

    def release(self, package: str, version: str) -> Step[Release | None]:
        """What the registry says of one release; None when it could not be asked."""
        key = self.keys(package, version)
        records = yield from records_for([key])
        found = records[key]
        return found.release if isinstance(found, ReleaseRecord) else None

    def counting(self, state: State, link: Link) -> Step[Counting]:
        """The requirement as it counts; its text from the asker's record where the lockfile does not store it."""
        asker = self.layout.node(state, link.asker) if link.asker is not None else None
        if asker is not None and not asker.knows_asks:
            counting = self.layout.counting(state, link)
            if counting.override is None and counting.reference is None:
                return Counting(replace(counting.want, text="", requirement=None, is_open=False))
            return counting
        if link.ask.text is None and asker is not None:
            release = yield from self.release(asker.name, asker.version)
            for ask in (asks_of_release(release) if release is not None else None) or ():
                if ask.name == link.ask.name and ask.is_peer == link.is_peer:
                    link = replace(link, ask=replace(link.ask, text=ask.text))
                    break
        return self.layout.counting(state, link)

    def was_unmet(self, state: State, link: Link) -> Step[bool]:
        """Whether what the link stands for was not met in `state`: a lock that was so before is not blamed on a fix."""
        if link.constraint is not None:
            text = state.raised.get((link.constraint.path, link.constraint.at))
            link = replace(link, ask=ask_of_constraint(link.constraint, text))
        elif link.asker is not None:
            asker = self.layout.node(state, link.asker)
            if asker is None or link.ask not in asker.asks:
                return False
        counting = yield from self.counting(state, link)
        return self.is_unmet(state, link, counting)

    def is_unmet(self, state: State, link: Link, counting: Counting) -> bool:
        """Whether a requirement, as it counts, is refused by the copy that it leads to."""
        target = self.layout.target(state, link)
        found = self.layout.node(state, target) if target is not None else None
        return found is not None and not counting.want.is_met_by(found.version)

    def dependent(self, state: State, link: Link, counting: Counting) -> Dependent:
        """A requirement as the planner sees it."""
        node = self.layout.node(state, link.asker) if link.asker is not None else None
        declared = link.constraint
        return Dependent(
            where=link.asker if counting.reference is None else None,
            name=node.name if node is not None else (declared.path if declared is not None else ""),
            version=node.version if node is not None else "",
            text=counting.want.text,
            requirement=counting.want.requirement,
            kind=link.ask.kind,
            constraint=counting.reference if counting.reference is not None else declared,
            override=counting.override,
            any_version=counting.want.is_open or self.is_unmet(state, link, counting),
        )
