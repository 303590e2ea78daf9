"""Links between entities, and which of the two waits for the other."""

from typing import Final

from adapters.sudocode.cli import check_id
from adapters.sudocode.entities import keep_hand_edit
from adapters.sudocode.failures import SudocodeError, invalid, unsupported
from adapters.sudocode.graph import WAITING_TYPES, Kind, Node, Snapshot, Waiting, waits
from adapters.sudocode.rows import Row, record, table
from adapters.sudocode.session import Payload, Sudocode, Work

PARENT_CHILD: Final = "parent-child"
MAX_SHOWN: Final = 50
"""Ids of a cycle that are named."""
TYPES: Final = ("blocks", "implements", "references", "depends-on", PARENT_CHILD, "discovered-from", "related")


async def link(sudocode: Sudocode, *, from_id: str, to_id: str, kind: str = "references") -> Payload:
    """`{from, to, type, success}`, for a parent-child link `parent`, for a waiting one `waiting`."""
    check_id("from_id", from_id)
    check_id("to_id", to_id)
    if from_id == to_id:
        raise invalid("to_id", "an entity cannot be linked to itself", hint="It would wait for itself for ever.")
    async with sudocode.writing() as work:
        snapshot = await sudocode.snapshot(work)
        source, target = _node(snapshot, from_id), _node(snapshot, to_id)
        keep_hand_edit(work, source[0], from_id)
        out: Payload = {"from": from_id, "to": to_id, "type": kind, "success": True}
        if kind == PARENT_CHILD and not work.capabilities.parent_child_links:
            await _set_parent(work, snapshot, source, target)
            out["parent"] = from_id
        else:
            _warn_of_cycle(work, snapshot, source, target, kind)
            options = {} if kind == "references" else {"type": kind}
            answer = await work.write("link", options=options, positionals=[from_id, to_id], repeatable=True)
            out["success"] = bool(record(answer).get("success"))
            if kind == PARENT_CHILD:
                out["parent"] = from_id
    if kind in WAITING_TYPES:
        out["waiting"] = await _who_waits(work, source, target, kind)
    return work.payload(**out)


def _node(snapshot: Snapshot, entity_id: str) -> Node:
    """What an id names. Where an issue and a spec share it, the program takes the spec."""
    rows = snapshot.rows()
    kinds: tuple[Kind, ...] = ("spec", "issue")
    for kind in kinds:
        if (kind, entity_id) in rows:
            return (kind, entity_id)
    raise SudocodeError(
        f"Entity not found: {entity_id}",
        code="not_found",
        hint="Ids are complete, never shortened; list_issues and list_specs show them.",
        details={"entity": "entity", "id": entity_id},
    )


async def _set_parent(work: Work, snapshot: Snapshot, parent: Node, child: Node) -> None:
    """What replaced parent-child links: the parent is a field of the child."""
    if parent[0] != child[0]:
        raise invalid(
            "to_id",
            "a parent and its child are of the same kind",
            hint="Link a spec and an issue with implements or references.",
        )
    _refuse_parent_cycle(snapshot, parent, child)
    keep_hand_edit(work, child[0], child[1])
    try:
        answer = await work.write(
            child[0], "update", options={"parent": parent[1]}, positionals=[child[1]], repeatable=True
        )
    except SudocodeError as error:
        if error.code != "unsupported_by_cli":
            raise
        raise unsupported(
            "type", PARENT_CHILD, work.capabilities.version, alternative="Give the parent when you create the child."
        ) from error
    if record(answer).get("parent_id") != parent[1]:
        work.warn("not_stored", "sudocode did not keep the parent", argument="from_id")


def _refuse_parent_cycle(snapshot: Snapshot, parent: Node, child: Node) -> None:
    rows = snapshot.rows()
    seen: set[Node] = set()
    node = parent
    while node not in seen:
        if node == child:
            raise SudocodeError(
                f"{child[1]} is an ancestor of {parent[1]}",
                code="conflict",
                hint="A parent cannot be a descendant of its child.",
                details={"argument": "from_id"},
            )
        seen.add(node)
        above = rows.get(node, {}).get("parent_id")
        if not above:
            return
        node = (node[0], str(above))


def _warn_of_cycle(work: Work, snapshot: Snapshot, source: Node, target: Node, kind: str) -> None:
    """Say before it is too late to undo that entities will wait for each other."""
    if kind not in WAITING_TYPES:
        return
    direction = work.capabilities.first_blocks_second is not False
    waiting, blocker = waits(kind, source, target, first_blocks_second=direction)
    path = Waiting(snapshot, first_blocks_second=direction).path(blocker, waiting)
    if path:
        names = [node[1] for node in path]
        shown = names if len(names) <= MAX_SHOWN else [*names[: MAX_SHOWN - 1], "…", names[-1]]
        work.warn(
            "cycle",
            f"these {len(names)} wait for each other now and block for ever: "
            f"{' → '.join([waiting[1], *shown])}; sudocode has no command that removes a link",
            ids=names[:MAX_SHOWN],
        )


async def _who_waits(work: Work, source: Node, target: Node, kind: str) -> Row:
    """Who waits for whom: by the release, and as the project itself shows it."""
    direction = work.capabilities.first_blocks_second
    waiting, blocker = waits(kind, source, target, first_blocks_second=direction is not False)
    out: Row = {"id": waiting[1], "waits_for": blocker[1], "confirmed": False}
    if source[0] != "issue" or target[0] != "issue":
        work.warn("not_counted", "links with specs do not count in sudocode's own ready and blocked lists")
        return out
    try:
        blocked = table(await work.read("blocked"), "issues")
    except SudocodeError as error:
        work.warn("not_confirmed", f"the blocked list could not be read: {error.message}")
        return out
    by = {str(row.get("id")): str(row.get("blocked_by_ids") or "").split(",") for row in blocked}
    for one, other in ((waiting, blocker), (blocker, waiting)):
        if other[1] in by.get(one[1], ()):
            return {"id": one[1], "waits_for": other[1], "confirmed": True}
    if direction is None:
        work.warn("not_confirmed", "neither issue is blocked now, so the direction of the link is an assumption")
    return out
