"""Beyond the usual tools: many changes in one call, search, synchronisation, and the graph of waiting."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

from adapters.sudocode.entities import brief
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.fit import fit
from adapters.sudocode.graph import Kind, Node, Waiting
from adapters.sudocode.issues import create_issue, update_issue
from adapters.sudocode.rows import Row, by_urgency, listed, table
from adapters.sudocode.session import BY_HAND, Payload, Sudocode

MAX_BATCH: Final = 50
_SNIPPET_CHARS: Final = 160
_GRAPH_TITLE_CHARS: Final = 100
_GRAPH_CYCLES: Final = 10
_GRAPH_MEMBERS: Final = 15
# After one of these the next item would fail in the same way, or make things worse.
_ENDING: Final = frozenset(
    {
        "database_stale",
        "database_busy",
        "database_invalid",
        "database_incompatible",
        "permission_denied",
        "not_initialized",
        "cli_missing",
        "cli_broken",
        "config_error",
        "outcome_unknown",
    }
)


async def create_issues(sudocode: Sudocode, items: Sequence[dict[str, Any]]) -> Payload:
    """`results`, one for each item in order: `{index, success, issue? | error?, code?}`."""
    return await _batch(sudocode, items, lambda item: create_issue(sudocode, **item))


async def update_issues(sudocode: Sudocode, items: Sequence[dict[str, Any]]) -> Payload:
    """`results`, one for each item in order; an item with the status closed closes its issue."""
    return await _batch(sudocode, items, lambda item: update_issue(sudocode, **item))


async def _batch(
    sudocode: Sudocode, items: Sequence[dict[str, Any]], change: Callable[[dict[str, Any]], Awaitable[Payload]]
) -> Payload:
    results: list[Row] = []
    warnings: list[Row] = []
    ended: SudocodeError | None = None
    for index, item in enumerate(items):
        result: Row = {"index": index, "success": False}
        results.append(result)
        if ended is not None:
            result |= {
                "error": "not tried, since an earlier item failed for a reason of the project",
                "code": ended.code,
            }
            continue
        try:
            payload = await change(item)
        except SudocodeError as error:
            result |= {"error": error.message, "code": error.code}
            if error.hint:
                result["hint"] = error.hint
            ended = error if error.code in _ENDING else None
            continue
        result["success"] = True
        result["issue"] = payload["issue"]
        warnings += [{**warning, "index": index} for warning in payload.get("warnings", ())]
    done = [result for result in results if "issue" in result]
    fitted = fit(
        {"issues": [result["issue"] for result in done]},
        budget_chars=sudocode.config.budget_chars,
        hint="Call show_issue for one text.",
    )
    for at, result in enumerate(done):
        shaped = fitted.lists["issues"]
        result["issue"] = shaped[at] if at < len(shaped) else {"id": result["issue"]["id"]}
    counts = {"succeeded": len(done), "failed": len(results) - len(done)}
    return {"results": results, **counts, **({"warnings": warnings} if warnings else {})}


async def search(
    sudocode: Sudocode,
    *,
    query: str,
    kinds: Sequence[Kind] = ("issue", "spec"),
    archived: bool = False,
    limit: int = 20,
) -> Payload:
    """`issues` and `specs` whose title or text holds the query, each with a `snippet` around it."""
    work = await sudocode.reading()
    lists: dict[str, list[Row]] = {}
    for kind in kinds:
        options = {"limit": "-1"}
        # The program knows upper and lower case of ASCII letters only.
        if query.isascii() and await work.cli.has_option((kind, "list"), "grep"):
            options["grep"] = query
        rows = table(await work.read(kind, "list", options=options))
        if archived and await work.cli.has_option((kind, "list"), "archived"):
            rows += table(await work.read(kind, "list", options={**options, "archived": "true"}))
        # The program reads % and _ of a query as wildcards; here they are what they are.
        hits = [
            row for row in map(listed, rows) if query.casefold() in f"{row.get('title')}\n{row['content']}".casefold()
        ]
        lists[f"{kind}s"] = [_hit(row, query) for row in by_urgency(hits)]
    fitted = fit(
        lists, budget_chars=sudocode.config.budget_chars, limit=limit, hint="Use a longer query or a smaller limit."
    )
    return work.payload(**fitted.lists, meta=fitted.meta)


def _hit(row: Row, query: str) -> Row:
    text = row["content"]
    at = text.casefold().find(query.casefold())
    out = {**brief(row), "updated_at": row.get("updated_at", "")}
    if at >= 0:
        start = max(0, at - _SNIPPET_CHARS // 2)
        end = min(len(text), at + len(query) + _SNIPPET_CHARS // 2)
        out["snippet"] = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    out["content_length"] = len(text)
    return out


async def sync(sudocode: Sudocode, *, direction: Literal["check", "import", "export"] = "check") -> Payload:
    """`in_step` and `differences`, before which an import or an export was made where it is safe."""
    work = await sudocode.open()
    if direction == "check":
        comparison = await sudocode.comparison(work)
        return work.payload(direction=direction, done=False, in_step=comparison.in_step, differences=comparison.facts())
    async with sudocode.writing(bring_up=False) as work:
        comparison = await sudocode.comparison(work)
        if direction == "import":
            if comparison.database_ahead:
                raise _refusal(
                    "an import would delete or take back rows that only the database has", comparison.facts()
                )
            await sudocode.bring_up(work)
        else:
            if comparison.files_ahead or comparison.faults or comparison.contradictory:
                raise _refusal("an export would take back or lose rows of the files", comparison.facts())
            await work.write("export", options={"output": str(work.project.folder)}, repeatable=True)
    after = await sudocode.comparison(work)
    return work.payload(
        direction=direction, done=not comparison.in_step, in_step=after.in_step, differences=comparison.facts()
    )


def _refusal(message: str, facts: dict[str, Any]) -> SudocodeError:
    return SudocodeError(f"nothing was done: {message}", code="database_stale", hint=BY_HAND, details=facts)


async def graph(sudocode: Sudocode, *, entity_id: str = "", limit: int = 50) -> Payload:
    """`waiting` (who waits for whom), `cycles`, and the `critical_path`, all of unfinished entities."""
    work = await sudocode.reading()
    snapshot = await sudocode.snapshot(work)
    waiting = Waiting(snapshot, first_blocks_second=work.capabilities.first_blocks_second is not False)

    def named(node: Node) -> Row:
        known = brief(waiting.rows[node])
        return {**known, "title": str(known.get("title", ""))[:_GRAPH_TITLE_CHARS], "kind": node[0]}

    wanted = _around(waiting, entity_id) if entity_id else None
    edges = [
        {**named(node), "waits_for": [named(blocker) for blocker in blockers]}
        for node in waiting.blockers
        if waiting.unfinished(node) and (blockers := waiting.open_blockers(node)) and (wanted is None or node in wanted)
    ]
    fitted = fit({"waiting": by_urgency(edges)}, budget_chars=sudocode.config.budget_chars // 2, limit=limit)
    groups = [group for group in waiting.cycles() if wanted is None or wanted & set(group)]
    cycles = [[named(node) for node in group[:_GRAPH_MEMBERS]] for group in groups]
    return work.payload(
        **fitted.lists,
        cycles=cycles[:_GRAPH_CYCLES],
        critical_path=[named(node) for node in waiting.critical_path()[:MAX_BATCH]],
        meta=fitted.meta,
    )


def _around(waiting: Waiting, entity_id: str) -> set[Node]:
    """Everything that an entity waits for or that waits for it, over any number of steps."""
    kinds: tuple[Kind, ...] = ("issue", "spec")
    starts = [(kind, entity_id) for kind in kinds if (kind, entity_id) in waiting.rows]
    if not starts:
        raise SudocodeError(
            f"Entity not found: {entity_id}", code="not_found", details={"entity": "entity", "id": entity_id}
        )
    dependants: dict[Node, list[Node]] = {}
    for node, blockers in waiting.blockers.items():
        for blocker in blockers:
            dependants.setdefault(blocker, []).append(node)
    seen: set[Node] = set()
    for neighbours in (waiting.blockers, dependants):
        queue: list[Node] = list(starts)
        reached: set[Node] = set()
        while queue:
            node = queue.pop()
            if node not in reached:
                reached.add(node)
                queue += neighbours.get(node, [])
        seen |= reached
    return seen
