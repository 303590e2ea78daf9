"""Who waits for whom, from the rows of an export."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from adapters.sudocode.rows import Row

Kind = Literal["issue", "spec"]
Node: TypeAlias = tuple[Kind, str]
"""Kind and id: in the oldest releases an issue and a spec can have the same id."""

WAITING_TYPES: Final = frozenset({"blocks", "depends-on"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything the database holds."""

    issues: tuple[Row, ...]
    specs: tuple[Row, ...]

    def rows(self) -> dict[Node, Row]:
        """All rows by kind and id."""
        out: dict[Node, Row] = {("issue", str(row.get("id"))): row for row in self.issues}
        out.update({("spec", str(row.get("id"))): row for row in self.specs})
        return out


def detail_of(snapshot: Snapshot, node: Node) -> Row:
    """An exported row as a show command prints it: links of both sides, tags and feedback."""
    kind, entity_id = node
    row = snapshot.rows()[node]

    def shown(link: Row) -> Row:
        return {
            "from_id": link.get("from"),
            "from_type": link.get("from_type"),
            "to_id": link.get("to"),
            "to_type": link.get("to_type"),
            "relationship_type": link.get("type"),
        }

    links = [link for one in (*snapshot.issues, *snapshot.specs) for link in one.get("relationships") or ()]
    return {
        **row,
        "relationships": {
            "outgoing": [shown(link) for link in row.get("relationships") or ()],
            "incoming": [shown(link) for link in links if (link.get("to_type"), link.get("to")) == (kind, entity_id)],
        },
    }


class Waiting:
    """The waiting relation: each node with the nodes that it waits for."""

    def __init__(self, snapshot: Snapshot, *, first_blocks_second: bool) -> None:
        self.rows = snapshot.rows()
        self.blockers: dict[Node, list[Node]] = {}
        for (kind, _), row in self.rows.items():
            for link in row.get("relationships") or ():
                if link.get("type") not in WAITING_TYPES:
                    continue
                source: Node = (link.get("from_type", kind), str(link.get("from")))
                target: Node = (link.get("to_type", "issue"), str(link.get("to")))
                waiting, blocker = waits(link["type"], source, target, first_blocks_second=first_blocks_second)
                if blocker not in self.blockers.setdefault(waiting, []):
                    self.blockers[waiting].append(blocker)

    def unfinished(self, node: Node) -> bool:
        """Whether others still wait for it: an issue that is not closed, a spec that is not archived."""
        row = self.rows.get(node)
        if row is None:
            return False
        return row.get("status") != "closed" if node[0] == "issue" else not row.get("archived")

    def open_blockers(self, node: Node) -> list[Node]:
        """What it waits for now."""
        return [blocker for blocker in self.blockers.get(node, ()) if self.unfinished(blocker)]

    def path(self, start: Node, goal: Node) -> list[Node]:
        """The shortest chain of waiting from `start` to `goal`, both included; empty when there is none."""
        before: dict[Node, Node] = {}
        queue = [start]
        for node in queue:
            if node == goal:
                chain = [node]
                while chain[-1] != start:
                    chain.append(before[chain[-1]])
                return chain[::-1]
            for blocker in self.open_blockers(node):
                if blocker not in before and blocker != start:
                    before[blocker] = node
                    queue.append(blocker)
        return []

    def cycles(self) -> list[list[Node]]:
        """Groups of unfinished nodes that wait for each other, or for themselves; each group once."""
        groups = [
            sorted(group, key=lambda node: node[1])
            for group in _strong_components({node: self.open_blockers(node) for node in self._unfinished()})
            if len(group) > 1 or group[0] in self.open_blockers(group[0])
        ]
        return sorted(groups, key=lambda group: group[0][1])

    def critical_path(self) -> list[Node]:
        """The longest chain of unfinished nodes, the one to start with first; cycles are left out."""
        in_cycle = {node for group in self.cycles() for node in group}
        edges = {
            node: [blocker for blocker in self.open_blockers(node) if blocker not in in_cycle]
            for node in self._unfinished()
            if node not in in_cycle
        }
        longest: dict[Node, list[Node]] = {}
        # Components come with what they wait for first, so each chain is ready when it is needed.
        for (node,) in _strong_components(edges):
            tails = (longest[blocker] for blocker in edges[node])
            longest[node] = [*max(tails, key=lambda chain: (len(chain), chain[-1][1]), default=[]), node]
        chain = max(longest.values(), key=lambda chain: (len(chain), chain[-1][1]), default=[])
        return chain if len(chain) > 1 else []

    def _unfinished(self) -> Iterable[Node]:
        return [node for node in self.rows if self.unfinished(node)]


def waits(kind: str, source: Node, target: Node, *, first_blocks_second: bool) -> tuple[Node, Node]:
    """(who waits, for whom) of a link of kind `blocks` or `depends-on`."""
    if kind == "blocks" and first_blocks_second:
        return target, source
    return source, target


def _strong_components(edges: Mapping[Node, list[Node]]) -> list[list[Node]]:
    """Tarjan's components without recursion, those without outgoing edges first."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    out: list[list[Node]] = []
    for root in edges:
        if root in index:
            continue
        work: list[tuple[Node, int]] = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            targets = [target for target in edges.get(node, ()) if target in edges]
            for position in range(at, len(targets)):
                target = targets[position]
                if target not in index:
                    work += [(node, position + 1), (target, 0)]
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == node:
                            break
                    out.append(group)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return out
