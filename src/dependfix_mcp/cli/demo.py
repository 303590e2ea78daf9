"""`dependfix-mcp demo`: the whole way from alerts to a proven fix, without a token and without a network.

A GitHub and a registry of our own answer on 127.0.0.1; everything else is
real: the server runs as a child over stdio, as a host starts it, and is driven
by the SDK's client; the files that are fixed lie in a git checkout.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dependfix_core.errors import DependfixError
from dependfix_core.process import INHERITED_VARIABLES, Command, Runner, SubprocessRunner, clean_text
from dependfix_mcp.cli.arguments import CommandLine
from dependfix_mcp.demo.hosted import REPOSITORY, TOKEN, files, hosted_repository, records
from dependfix_mcp.demo.loopback_github import LoopbackGitHub
from dependfix_mcp.demo.loopback_registry import LoopbackRegistry

EXIT_STEP_FAILED: Final = 3
_PLAIN_WIDTH: Final = 140
"""Where the output goes to a file or another program."""
_STYLES: Final = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "blue"}
_OUTCOMES: Final = {
    "fixed": "[green]fixed[/green]",
    "partial": "[yellow]partly fixed[/yellow]",
    "converged": "[green]nothing to do[/green]",
    "skipped": "[yellow]left, with a reason[/yellow]",
    "failed": "[red]put back[/red]",
}


def run(line: CommandLine) -> int:
    """Run the demonstration; the exit code."""
    del line  # the settings of this environment have no part in it
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    try:
        return anyio.run(_demonstrate, console)
    except DependfixError as error:
        console.print(f"[red]{escape(error.message)}[/red] {escape(error.hint)}")
        return EXIT_STEP_FAILED


async def _demonstrate(console: Console) -> int:
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="dependfix-demo-")))
    runner = SubprocessRunner()
    with LoopbackGitHub([hosted_repository()], token=TOKEN) as github, LoopbackRegistry(records()) as registry:
        top = await _checkout(runner, folder / "storefront")
        server = _server(folder, top, github, registry)
        console.print(f"A server is started as a host would start it, for the checkout {escape(str(top))}\n")
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            console.print(f"It offers {len(tools)} tools. An assistant calls four of them:\n")
            await _show_alerts(console, client)
            plan_id = await _show_plan(console, client)
            result = await _show_fix(console, client, plan_id)
            await _show_report(console, client, result["runId"])
    diff = await _git(runner, top, "diff", "--stat")
    console.print("\n[bold]What changed in the checkout[/bold] (git diff --stat)")
    console.print(escape(diff.rstrip()))
    html = next((file["path"] for file in result.get("reportFiles", ()) if file["format"] == "html"), "")
    console.print(f"\nThe report for people: [bold]{escape(html)}[/bold]", soft_wrap=True)
    settled = result["summary"]["alertsFixed"] + result["summary"]["alertsConverged"]
    return 0 if settled and not result["summary"]["alertsFailed"] else EXIT_STEP_FAILED


def _server(folder: Path, top: Path, github: LoopbackGitHub, registry: LoopbackRegistry) -> StdioServerParameters:
    settings = {
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": github.url,
        "DEPENDFIX_REGISTRY_NPM": registry.registries["npm"],
        "DEPENDFIX_REGISTRY_PIP": registry.registries["pip"],
        "DEPENDFIX_WORKDIR": str(top),
        "DEPENDFIX_REPORT_DIR": str(folder / "reports"),
        "DEPENDFIX_CACHE_DIR": str(folder / "cache"),
        # Whether package managers are installed here has no part in it.
        "DEPENDFIX_RELOCK": "in-process",
        "DEPENDFIX_TOOLSETS": "dependfix",
        "NO_PROXY": "127.0.0.1",
    }
    return StdioServerParameters(command=sys.executable, args=["-m", "dependfix_mcp"], env=settings, cwd=folder)


async def _checkout(runner: Runner, top: Path) -> Path:
    for path, content in files().items():
        place = anyio.Path(top / path)
        await place.parent.mkdir(parents=True, exist_ok=True)
        await place.write_bytes(content)
    await _git(runner, top, "init", "--quiet")
    await _git(runner, top, "remote", "add", "origin", f"https://github.com/{REPOSITORY}.git")
    await _git(runner, top, "add", ".")
    await _git(runner, top, "commit", "--quiet", "--message", "The storefront as it was")
    return top


async def _git(runner: Runner, top: Path, *arguments: str) -> str:
    # Whatever this machine's own configuration says, the demonstration is the same.
    own = ("user.name=Demo", "user.email=demo@localhost", "commit.gpgsign=false", "core.autocrlf=false")
    flags = tuple(word for one in (*own, "init.defaultBranch=main") for word in ("-c", one))
    command = Command(argv=("git", *flags, *arguments), cwd=top, inherit=INHERITED_VARIABLES)
    result = await runner.run(command)
    if result.exit_code != 0:
        raise DependfixError(
            f"git {arguments[0]} failed", hint=result.stderr.decode("utf-8", errors="replace").strip()[:300]
        )
    return result.stdout.decode("utf-8", errors="replace")


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, {"repo": REPOSITORY, **arguments} if tool != "get_last_report" else arguments)
    answer: dict[str, Any] = result.structured_content or {}
    if not answer.get("ok"):
        raise DependfixError(f"{tool}: {answer.get('error', 'no answer')}", hint=answer.get("hint", ""))
    return answer


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


async def _show_alerts(console: Console, client: Client) -> None:
    answer = await _call(client, "fetch_alerts")
    table = _table(
        f"1  fetch_alerts: {answer['returned']} open alerts", "alert", "severity", "package", "manifest", "what"
    )
    for alert in answer["alerts"]:
        style = _STYLES.get(alert["severity"], "")
        table.add_row(
            str(alert["id"]),
            f"[{style}]{alert['severity']}[/{style}]" if style else alert["severity"],
            escape(alert["packageName"]),
            escape(alert["manifestPath"]),
            escape(clean_text(alert["summary"], max_chars=60)),
        )
    console.print(table, "")


async def _show_plan(console: Console, client: Client) -> str:
    answer = await _call(client, "plan_fixes", severity="all")
    plan = answer["plan"]
    table = _table(
        f"2  plan_fixes: {len(plan['remediations'])} remediations", "package", "moves", "how", "answers alerts"
    )
    for one in plan["remediations"]:
        table.add_row(
            escape(one["packageName"]),
            escape(_moves(one["moves"])),
            one["strategy"] + (" (package manager needed)" if one.get("needsTool") else ""),
            ", ".join(map(str, one["alerts"])),
        )
    console.print(table, "")
    return str(answer["planId"])


def _moves(moves: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        f"{move['packageName']} {move.get('fromVersion', 'new')} → {move.get('toVersion', 'gone')}" for move in moves
    ]
    return "\n".join([*shown[:4], f"and {len(shown) - 4} more"] if len(shown) > 5 else shown)


async def _show_fix(console: Console, client: Client, plan_id: str) -> dict[str, Any]:
    answer = await _call(client, "run_scan", mode="fix", planId=plan_id)
    summary = answer["summary"]
    table = _table(
        f"3  run_scan mode=fix: {summary['alertsFixed']} of {summary['alertsFound']} alerts fixed and proven",
        "alert",
        "package",
        "outcome",
        "reason",
    )
    # An answer holds what an assistant can take in; the rest of it is in the report.
    alerts = await _section(client, answer["runId"], "alerts")
    outcomes = {one["alert"]: one for one in await _section(client, answer["runId"], "outcomes")}
    failures = {one["target"]: one["message"] for one in answer.get("errors") or () if one.get("target")}
    for alert in sorted(alerts, key=lambda one: one["id"]):
        outcome = outcomes.get(alert["id"], {})
        reason = alert.get("reason") or outcome.get("reason") or ""
        told = failures.get(f"{alert['packageName']} in {alert['manifestPath']}", "")
        blocked = told or outcome.get("blockedBy") or outcome.get("detail") or ""
        table.add_row(
            str(alert["id"]),
            escape(alert["packageName"]),
            _OUTCOMES.get(alert.get("disposition", ""), escape(alert.get("disposition", ""))),
            escape(clean_text(f"{reason}: {blocked}" if reason and blocked else reason or blocked, max_chars=90)),
        )
    console.print(table)
    for step in answer.get("nextSteps") or ():
        console.print(
            f"   then: [bold]{escape(step['command'])}[/bold] in {escape(step['folder'])}: {escape(step['why'])}"
        )
    console.print()
    return answer


async def _section(client: Client, run_id: str, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = await _call(client, "get_last_report", runId=run_id, section=name, cursor=cursor)
        report = answer["report"]
        items += (report.get("plan") or report)[name]
        cursor = answer.get("nextCursor", "")
        if not cursor:
            return items


async def _show_report(console: Console, client: Client, run_id: str) -> None:
    answer = await _call(client, "get_last_report", runId=run_id)
    console.print(f"[bold]4  get_last_report[/bold]: run {escape(run_id)} is {answer['status']}")
