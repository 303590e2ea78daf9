"""`dependfix-mcp scan` and `report`: for people at a terminal, and for schedulers that read the exit code."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import anyio

from dependfix_core.errors import ArgumentError
from dependfix_core.model.alert import THRESHOLDS, Severity, Threshold
from dependfix_core.model.plan import REFUSAL_REASONS
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.progress import OnProgress, Progress
from dependfix_core.process import clean_text
from dependfix_core.report.text import empty_words, outcome_slices, outcome_words, repositories_title, severity_slices
from dependfix_core.report.wire import NormalizedSecurityAlert, RunProblem, RunResult, to_wire
from dependfix_mcp.cli.arguments import CommandLine
from dependfix_mcp.client import make_client, make_places
from dependfix_mcp.serve import configure_logging
from dependfix_mcp.services import Services
from dependfix_mcp.tooling import scrub

if TYPE_CHECKING:
    from rich.console import Console

    from dependfix_core.facade import AsyncDependfix

EXIT_OPEN_ALERTS: Final = 1
EXIT_STEP_FAILED: Final = 3
_ROWS_SHOWN: Final = 50
_PLAIN_WIDTH: Final = 140
_SETTLED: Final = frozenset({"fixed", "converged"})
_NOT_ASKED: Final = frozenset({"below-threshold", "filtered", "dismissed", "auto-dismissed", "fixed", "withdrawn"})
"""Reasons that leave an alert out because nobody asked for it or it is not open."""
_STYLES: Final = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "blue"}


def run(line: CommandLine) -> int:
    """Run the command; the exit code.

    Raises:
        DependfixError: Nothing could be measured.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # text streams have it
    services = Services(settings=line.settings)
    configure_logging(services.secrets)
    # Handed over in a list: an event loop that ends looks at what its main task returned, for long if it is large.
    found: list[RunResult] = []
    anyio.run(_run, line, services, found)
    (result,) = found
    wire = scrub(to_wire(result), services.secrets())
    shown = RunResult.model_validate(wire)
    if line.as_json:
        sys.stdout.write(json.dumps(wire, ensure_ascii=False, indent=2) + "\n")
    else:
        _print(shown)
    return exit_code(result)


def exit_code(result: RunResult) -> int:
    """Strongest first: a step failed, an alert at or above the threshold stands, nothing to do."""
    if result.status == "failed" or any(_is_failed_step(error) for error in result.errors):
        return EXIT_STEP_FAILED
    threshold: Threshold = next((name for name in THRESHOLDS if name == result.config.severity_threshold), "high")
    return EXIT_OPEN_ALERTS if any(_stands(alert, threshold) for alert in result.alerts) else 0


def _is_failed_step(error: RunProblem) -> bool:
    # What a plan could not read narrows it, and a refusal leaves its alert standing.
    if error.stage == "fix":
        return error.category not in REFUSAL_REASONS
    return error.stage != "plan" or bool(error.category)


def _stands(alert: NormalizedSecurityAlert, threshold: Threshold) -> bool:
    settled = alert.disposition in _SETTLED or alert.reason in _NOT_ASKED
    return not settled and Severity.of(alert.severity).meets(threshold)


async def _run(line: CommandLine, services: Services, found: list[RunResult]) -> None:
    places = replace(make_places(services.settings), recover=not services.settings.read_only)
    async with make_client(services, places=places) as client:
        with _progress() as on_progress:
            work = _report if line.command == "report" else _scan
            found.append(await work(client, line, on_progress))


def _policy(line: CommandLine) -> ScanPolicy:
    return ScanPolicy(
        severity=next(name for name in THRESHOLDS if name == line.severity),
        packages=line.packages,
        alerts=line.alerts,
        allow_major=line.allow_major,
        max_alerts=line.max_alerts,
        young_fixes=line.settings.young_fixes,
        cooldown_days=line.settings.cooldown_days,
    )


async def _scan(client: "AsyncDependfix", line: CommandLine, on_progress: OnProgress) -> RunResult:
    names = [client.repository_name(text) for text in line.repositories]
    for owner in line.owners:
        listing = await client.repositories_of(owner)
        names += [facts.full_name for facts in listing.repositories if not facts.archived and not facts.disabled]
    allowed = [name for name in dict.fromkeys(names) if _is_allowed(line, name)]
    if not allowed:
        raise ArgumentError("there is no repository to scan", hint="Check the names, --owner and --repos.")
    if len(allowed) == 1:
        return await client.run_scan(
            allowed[0],
            mode=line.mode,
            policy=_policy(line),
            dry_run=line.dry_run,
            allow_dirty=line.allow_dirty,
            timeout_s=line.settings.run_timeout_s,
            on_progress=on_progress,
        )
    return await client.scan_many(allowed, policy=_policy(line), on_progress=on_progress)


async def _report(client: "AsyncDependfix", line: CommandLine, on_progress: OnProgress) -> RunResult:
    return await client.report_owners(
        line.owners,
        policy=_policy(line),
        allowed=lambda name: _is_allowed(line, name),
        on_progress=on_progress,
    )


def _is_allowed(line: CommandLine, name: str) -> bool:
    patterns = line.settings.repos
    return not patterns or any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


@contextlib.contextmanager
def _progress() -> Iterator[OnProgress]:
    """A bar on stderr for people; silence for everything that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich.console import Console  # noqa: PLC0415  # for terminals only
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn  # noqa: PLC0415  # as above
    from rich.progress import Progress as Bar  # noqa: PLC0415  # as above

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def note(progress: Progress) -> None:
            bar.update(task, description=progress.message, completed=progress.done, total=progress.total)

        yield note


def _print(result: RunResult) -> None:
    from rich.console import Console  # noqa: PLC0415  # only for who prints

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else _PLAIN_WIDTH, highlight=False, soft_wrap=False)
    found = len(result.alerts)
    console.print(f"[bold]{_plain(repositories_title(result))}[/bold]", end="")
    if not found:
        words = empty_words(result)
        console.print(f": {words[0].lower()}{words[1:].removesuffix('.')}")
    else:
        severities = ", ".join(f"{part.count} {part.label}" for part in severity_slices(result))
        console.print(f": {found} alert{'' if found == 1 else 's'} ({severities})")
        console.print(", ".join(f"{part.count} {part.label}" for part in outcome_slices(result)))
        _print_alerts(console, result)
    for error in result.errors:
        about = " ".join(part for part in (error.repository, error.target) if part)
        console.print(f"[red]{error.stage}[/red] {_plain(about)}: {_plain(error.message)}")
    for step in result.next_steps or ():
        console.print(f"next: {_plain(step.command)}  [dim]({_plain(step.why)})[/dim]")
    for file in result.report_files or ():
        if file.format in ("html", "json"):
            console.print(f"report: {_plain(file.path)}", soft_wrap=True)


def _print_alerts(console: "Console", result: RunResult) -> None:
    from rich.table import Table  # noqa: PLC0415  # only for who prints
    from rich.text import Text  # noqa: PLC0415  # as above

    several = len({alert.repository for alert in result.alerts}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("severity", *(["repository"] if several else []), "#", "package", "file", "target", "outcome"):
        table.add_column(name, overflow="fold")
    for alert in result.alerts[:_ROWS_SHOWN]:
        words, why = outcome_words(alert, result)
        cells = [
            Text(alert.severity, style=_STYLES.get(alert.severity, "")),
            *([Text(_line(alert.repository))] if several else []),
            Text(str(alert.id)),
            Text(_line(alert.package_name)),
            Text(_line(alert.manifest_path)),
            Text(_line(alert.recommended_version)),
            Text(f"{words}: {why}" if why else words),
        ]
        table.add_row(*cells)
    console.print(table)
    if len(result.alerts) > _ROWS_SHOWN:
        console.print(f"and {len(result.alerts) - _ROWS_SHOWN} more, in the report")


def _line(text: str) -> str:
    return clean_text(text, max_chars=200, one_line=True)


def _plain(text: str) -> str:
    """`text` for a console that understands markup."""
    return _line(text).replace("[", "\\[")
