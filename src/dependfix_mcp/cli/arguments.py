"""What the command line says: a command, its options, and the settings."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dependfix_core import __version__
from dependfix_core.errors import ArgumentError
from dependfix_core.model.alert import THRESHOLDS
from dependfix_core.model.run import RunMode
from dependfix_mcp.settings import (
    QuietParser,
    SettingHelp,
    Settings,
    SettingsError,
    add_setting_flags,
    read_settings,
)

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "answer an MCP client on stdin and stdout, or over HTTP (the default)",
    "scan": "scan repositories, print what was found and write reports",
    "report": "report the alerts of all repositories of an owner",
    "demo": "show the whole way on a repository of our own, without a token or a network",
    "doctor": "say which settings hold, and what is missing",
}

EPILOG: Final = (
    "Exit codes, strongest first: 2 the command line or a setting is wrong, 3 a step failed, "
    "1 an alert at or above the threshold is neither fixed nor converged, 0 otherwise."
)
_MODES: Final = ("report-only", "fix")


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A command that can be run."""

    command: str
    settings: Settings
    repositories: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    mode: RunMode = "report-only"
    severity: str = "high"
    packages: tuple[str, ...] = ()
    alerts: tuple[int, ...] = ()
    allow_major: bool = False
    max_alerts: int | None = None
    dry_run: bool = False
    allow_dirty: bool = False
    as_json: bool = False
    recover: Path | None = None
    """A checkout that an interrupted run left behind."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the flags say, unread; `doctor` names where a value comes from."""


class HelpShown(Exception):  # noqa: N818  # not an error
    """Help or the version was asked for; `text` is to be printed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def parse_command_line(argv: Sequence[str], environ: Mapping[str, str]) -> CommandLine:
    """What `argv` asks for.

    Raises:
        SettingsError: With every fault there is.
        HelpShown: Nothing is to be run.
    """
    command, rest = _split(list(argv))
    parser = _parser(command)
    if any(word in ("-h", "--help") for word in rest):
        raise HelpShown(parser.format_help())
    if "--version" in rest:
        raise HelpShown(f"dependfix-mcp {__version__}\n")
    given, unknown = parser.parse_known_args(rest)
    faults = [f"{word}: unknown" for word in unknown]
    options = vars(given)
    numbers, faults = _numbers(options, faults)
    severity = options.get("severity") or "high"
    if severity not in THRESHOLDS:
        faults.append(f"--severity: not one of {', '.join(THRESHOLDS)}")
    repositories, owners = tuple(options.get("repositories") or ()), tuple(options.get("owners") or ())
    if command == "scan" and not repositories and not owners:
        faults.append("scan: name repositories as OWNER/REPO, or --owner ORG")
    if command == "report" and not owners:
        faults.append("report: needs --owner ORG")
    faults += _mode_faults(options, repositories, owners)
    settings = read_settings(options, environ, faults)
    if options.get("mode") == "fix" and settings.read_only:
        raise SettingsError(["--mode fix: not with --read-only"])
    return CommandLine(
        command=command,
        settings=settings,
        repositories=repositories,
        owners=owners,
        mode="fix" if options.get("mode") == "fix" else "report-only",
        severity=severity,
        packages=tuple(options.get("packages") or ()),
        alerts=numbers,
        allow_major=bool(options.get("allow_major")),
        max_alerts=int(options["max_alerts"]) if options.get("max_alerts") else None,
        dry_run=bool(options.get("dry_run")),
        allow_dirty=bool(options.get("allow_dirty")),
        as_json=bool(options.get("as_json")),
        recover=Path(options["recover"]) if options.get("recover") else None,
        given=options,
    )


def _split(argv: list[str]) -> tuple[str, list[str]]:
    """The command, which may stand behind settings, and everything else."""
    settings = QuietParser(add_help=False, allow_abbrev=False)
    add_setting_flags(settings)
    takes_value = {
        text
        for action in settings._actions  # noqa: SLF001  # argparse has no public list of its flags
        if action.nargs is not None and action.nargs != 0
        for text in action.option_strings
    }
    position = 0
    while position < len(argv):
        word = argv[position]
        if not word.startswith("-"):
            if word in COMMANDS:
                return word, argv[:position] + argv[position + 1 :]
            raise SettingsError([f"{word}: no command; there are {', '.join(COMMANDS)}"])
        position += 2 if word in takes_value else 1
    return "serve", argv


def _parser(command: str) -> argparse.ArgumentParser:
    parser = QuietParser(
        prog="dependfix-mcp" if command == "serve" else f"dependfix-mcp {command}",
        usage=f"dependfix-mcp [COMMAND] {'OWNER/REPO… ' if command == 'scan' else ''}[OPTIONS]",
        description=_description(command),
        epilog=EPILOG,
        formatter_class=SettingHelp,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and end")
    parser.add_argument("--version", action="store_true", help="show the version and end")
    if command in ("scan", "report"):
        _add_scan_options(parser, command)
    if command == "doctor":
        parser.add_argument("--recover", metavar="FOLDER", help="bring a checkout back that was left half changed")
    add_setting_flags(parser)
    return parser


def _description(command: str) -> str:
    if command != "serve":
        return f"dependfix-mcp {command}: {COMMANDS[command]}."
    listed = "; ".join(f"{name}: {about}" for name, about in COMMANDS.items())
    return f"Dependabot alerts into verified fixes. Commands: {listed}."


def _add_scan_options(parser: argparse.ArgumentParser, command: str) -> None:
    add = parser.add_argument
    if command == "scan":
        add("repositories", nargs="*", metavar="OWNER/REPO", help="repositories to scan")
        add("--package", dest="packages", action="append", metavar="NAME", help="only this package")
        add("--alert", dest="alerts", action="append", metavar="NUMBER", help="only this alert")
        add("--max-alerts", dest="max_alerts", metavar="NUMBER", help="only the most urgent ones")
        add("--allow-major", dest="allow_major", action="store_true", help="cross major versions")
        add("--mode", dest="mode", metavar="MODE", help=f"{' or '.join(_MODES)} (default: report-only)")
        add("--dry-run", dest="dry_run", action="store_true", help="fix: show what would be written, write nothing")
        add("--allow-dirty", dest="allow_dirty", action="store_true", help="fix: also files with uncommitted changes")
    add("--owner", dest="owners", action="append", metavar="ORG", help="all repositories of an owner")
    add("--severity", dest="severity", metavar="LEVEL", help="this level and above (default: high)")
    add("--json", dest="as_json", action="store_true", help="print the result as JSON on stdout")


def _mode_faults(options: Mapping[str, Any], repositories: Sequence[str], owners: Sequence[str]) -> list[str]:
    mode = options.get("mode") or "report-only"
    if mode not in _MODES:
        return [f"--mode: not one of {', '.join(_MODES)}"]
    if mode == "fix":
        return (
            []
            if len(repositories) == 1 and not owners
            else ["--mode fix: name the one repository whose checkout this is"]
        )
    return [
        f"--{name.replace('_', '-')}: only with --mode fix" for name in ("dry_run", "allow_dirty") if options.get(name)
    ]


def _numbers(options: Mapping[str, Any], faults: list[str]) -> tuple[tuple[int, ...], list[str]]:
    numbers: list[int] = []
    for text in options.get("alerts") or ():
        try:
            numbers.append(_positive("--alert", text))
        except ArgumentError as error:
            faults.append(error.message)
    if options.get("max_alerts") is not None:
        try:
            _positive("--max-alerts", options["max_alerts"])
        except ArgumentError as error:
            faults.append(error.message)
    return tuple(numbers), faults


def _positive(flag: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000_000):
        raise ArgumentError(f"{flag}: not a number above 0")
    return int(text)
