"""The entry point: reads the command line before anything heavy is imported, then runs the command."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from dependfix_core.errors import ArgumentError, ConfigurationError, DependfixError
from dependfix_mcp.cli.arguments import CommandLine, HelpShown, parse_command_line
from dependfix_mcp.settings import SettingsError, process_environment

EXIT_USAGE: Final = 2
EXIT_STEP_FAILED: Final = 3
EXIT_INTERRUPTED: Final = 130
_MODULES: Final = {"report": "scan"}
"""Command → module of `dependfix_mcp.cli` where the names differ; each has `run(line) -> int`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `argv` (default: the process's arguments); the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        line = parse_command_line(arguments, process_environment())
        return _run(line)
    except HelpShown as shown:
        sys.stdout.write(shown.text)
        return 0
    except SettingsError as error:
        _print_faults(error.faults)
        return EXIT_USAGE
    except (ArgumentError, ConfigurationError) as error:
        _print_faults((error.message,), error.hint)
        return EXIT_USAGE
    except DependfixError as error:
        _print_faults((error.message,), error.hint)
        return EXIT_STEP_FAILED
    except KeyboardInterrupt:
        # Reports appear whole or not at all; what still works in threads need not be waited for.
        sys.stderr.write("dependfix-mcp: interrupted\n")
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)


def _print_faults(faults: Sequence[str], hint: str = "") -> None:
    if len(faults) == 1:
        sys.stderr.write(f"dependfix-mcp: {faults[0]}\n")
    else:
        lines = "".join(f"  {fault}\n" for fault in faults)
        sys.stderr.write(f"dependfix-mcp: {len(faults)} things are wrong\n{lines}")
    if hint:
        sys.stderr.write(f"{hint}\n")


def _run(line: CommandLine) -> int:
    # Nothing that is imported here goes away again: looking for garbage only costs time.
    gc.disable()
    try:
        command = import_module(f"dependfix_mcp.cli.{_MODULES.get(line.command, line.command)}")
    finally:
        gc.freeze()
        gc.enable()
    code: int = command.run(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
