"""What to work on, what is stuck, and how the project stands."""

from typing import Any, Final

from adapters.sudocode.cli import capability_report
from adapters.sudocode.entities import brief
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.fit import fit
from adapters.sudocode.graph import Node, Snapshot, Waiting
from adapters.sudocode.lock import is_held
from adapters.sudocode.markdown import edited_by_hand, issue_files, spec_file
from adapters.sudocode.rows import Row, by_urgency, listed, record, table
from adapters.sudocode.session import Payload, Sudocode, Work

READY_HINT: Final = "Filter by priority or assignee, or call show_issue or show_spec for one text."
_SEED_STATS: Final = (
    ("specs", "by_status"),
    ("specs", "by_type"),
    ("specs", "ready"),
    ("issues", "by_type"),
)
MAX_NAMED: Final = 50


async def ready(
    sudocode: Sudocode,
    *,
    limit: int = 10,
    priority: int | None = None,
    assignee: str = "",
    show_specs: bool = False,
    show_issues: bool = True,
) -> Payload:
    """`issues` and `specs` that nothing unfinished blocks, and `meta`."""
    if not (show_specs or show_issues):
        return {}
    work = await sudocode.reading()
    lists: dict[str, list[Row]] = {}
    if show_issues:
        rows = map(listed, table(await work.read("ready"), "issues"))
        lists["issues"] = [row for row in rows if not assignee or row.get("assignee") == assignee]
    computed = False
    if show_specs:
        specs, computed = await _ready_specs(sudocode, work)
        lists["specs"] = specs
    matching = {
        key: by_urgency(row for row in rows if priority is None or row.get("priority") == priority)
        for key, rows in lists.items()
    }
    fitted = fit(matching, budget_chars=sudocode.config.budget_chars, limit=limit, hint=READY_HINT)
    meta = {**fitted.meta, "computed": ["specs"]} if computed else fitted.meta
    return work.payload(**fitted.lists, meta=meta)


async def _ready_specs(sudocode: Sudocode, work: Work) -> tuple[list[Row], bool]:
    """Specs that nothing unfinished blocks, and whether that was computed here."""
    if work.capabilities.ready_specs:
        return [listed(row) for row in table(await work.read("ready"), "specs")], False
    waiting = await _waiting(sudocode, work)
    rows = [
        listed(_bare(row))
        for node, row in waiting.rows.items()
        if node[0] == "spec" and not row.get("archived") and not waiting.open_blockers(node)
    ]
    return rows, True


async def blocked_issues(sudocode: Sudocode, *, show_specs: bool = False, show_issues: bool = True) -> Payload:
    """`issues` and `specs` with what blocks them, and issues marked blocked that nothing blocks."""
    if not (show_specs or show_issues):
        return {}
    work = await sudocode.reading()
    waiting = await _waiting(sudocode, work)
    lists: dict[str, list[Row]] = {}
    stuck: list[Row] = []
    if show_issues:
        lists["issues"] = by_urgency(
            _with_blockers(row, waiting) for row in table(await work.read("blocked"), "issues")
        )
        said = {row["id"] for row in lists["issues"]}
        stuck = [
            brief(row)
            for node, row in waiting.rows.items()
            if node[0] == "issue" and row.get("status") == "blocked" and not row.get("archived") and node[1] not in said
        ]
    if show_specs:
        lists["specs"] = by_urgency(
            {**listed(_bare(row)), "blocked_by": [_name(waiting, blocker) for blocker in waiting.open_blockers(node)]}
            for node, row in waiting.rows.items()
            if node[0] == "spec" and not row.get("archived") and waiting.open_blockers(node)
        )
    fitted = fit(lists, budget_chars=sudocode.config.budget_chars, hint="Call show_issue or show_spec for one text.")
    meta = {**fitted.meta, "computed": ["specs"]} if show_specs else fitted.meta
    return work.payload(**fitted.lists, blocked_without_blocker=stuck[:MAX_NAMED] or None, meta=meta)


def _with_blockers(row: Row, waiting: Waiting) -> Row:
    """A blocked row whose blockers are named, in the program's order."""
    out = listed(row)
    ids = [blocker for blocker in str(out.pop("blocked_by_ids", "")).split(",") if blocker]
    out.pop("blocked_by_count", None)
    out["blocked_by"] = [_name(waiting, ("issue", blocker)) for blocker in ids]
    return out


def _name(waiting: Waiting, node: Node) -> Row:
    named = brief(waiting.rows.get(node, {"id": node[1]}))
    return {**named, "kind": node[0]}


def _bare(row: Row) -> Row:
    """An exported row as a list command would print it."""
    return {key: value for key, value in row.items() if key not in ("relationships", "tags", "feedback")}


async def _waiting(sudocode: Sudocode, work: Work) -> Waiting:
    snapshot = await sudocode.snapshot(work)
    return Waiting(snapshot, first_blocks_second=work.capabilities.first_blocks_second is not False)


async def stats(sudocode: Sudocode) -> Payload:
    """Counts by the program; what its release does not count is computed where that is exact, or named."""
    work = await sudocode.reading()
    counted = record(await work.read("stats"))
    parts: dict[str, dict[str, Any]] = {
        name: dict(counted.get(name) or {}) for name in ("specs", "issues", "relationships", "recent_activity")
    }
    computed: list[str] = []
    if "ready" not in parts["specs"]:
        specs, _ = await _ready_specs(sudocode, work)
        parts["specs"]["ready"] = len(specs)
        computed.append("specs.ready")
    unavailable = [f"{part}.{name}" for part, name in _SEED_STATS if name not in parts[part]]
    return work.payload(**parts, computed=computed or None, unavailable=unavailable or None)


async def status(sudocode: Sudocode, *, verbose: bool = False) -> Payload:
    """A short form of `stats`; with `verbose` also activity and how the project and the program are."""
    work = await sudocode.reading()
    said = record(await work.read("status"))
    out: Payload = {name: said.get(name) for name in ("specs", "issues")}
    if verbose:
        counted = record(await work.read("stats"))
        out["relationships"] = counted.get("relationships")
        out["recent_activity"] = counted.get("recent_activity")
        out["diagnostics"] = await _diagnostics(sudocode, work)
    return work.payload(**out)


async def _diagnostics(sudocode: Sudocode, work: Work) -> Payload:
    capabilities, project = work.capabilities, work.project
    snapshot = await sudocode.snapshot(work)
    out: Payload = {
        "cli_version": capabilities.version,
        "project_root": str(project.root),
        "database": project.database.name,
        "capabilities": capability_report(capabilities),
        "blocks_means": _direction(first_blocks_second=capabilities.first_blocks_second),
        "writer": {"held": is_held(project.folder), "waits_at_most_s": sudocode.config.lock_wait_s},
        "unsynced_markdown": _unsynced(work, snapshot)[:MAX_NAMED],
    }
    try:
        comparison = await sudocode.comparison(work)
    except SudocodeError as error:
        out["files"] = {"compared": False, "reason": error.message}
    else:
        out["files"] = {"compared": True, "in_step": comparison.in_step, **comparison.facts()}
    return out


def _direction(*, first_blocks_second: bool | None) -> str:
    if first_blocks_second is None:
        return "unknown before a link was made"
    return "to_id waits for from_id" if first_blocks_second else "from_id waits for to_id"


def _unsynced(work: Work, snapshot: Snapshot) -> list[str]:
    """Markdown files that say something else than the database and were changed later."""
    files = issue_files(work.project)
    out = []
    for (kind, entity_id), row in snapshot.rows().items():
        path = spec_file(work.project, row) if kind == "spec" else files.get(entity_id)
        if path is not None and edited_by_hand(path, row):
            out.append(str(path.relative_to(work.project.root)))
    return sorted(out)
