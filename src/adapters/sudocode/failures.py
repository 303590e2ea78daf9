"""What the sudocode program says when it fails, as errors with stable codes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dependfix_core.errors import DependfixError, ErrorCode
from dependfix_core.process import CommandResult, plain_text

# The numbers that people know for the same situations.
_STATUS: Final[dict[str, int]] = {
    "invalid_arguments": 400,
    "permission_denied": 403,
    "not_found": 404,
    "not_initialized": 404,
    "conflict": 409,
    "database_stale": 409,
    "cli_failed": 500,
    "internal_error": 500,
    "bad_output": 502,
    "unsupported_by_cli": 501,
    "cli_missing": 503,
    "cli_broken": 503,
    "config_error": 500,
    "database_busy": 503,
    "database_invalid": 500,
    "database_incompatible": 500,
    "output_too_large": 502,
    "timeout": 504,
    "outcome_unknown": 504,
}
_RETRYABLE: Final = frozenset({"database_busy", "timeout"})


class SudocodeError(DependfixError):
    """The program, its project or an argument stands in the way; `code` says which.

    `details` has `status`, and where they apply `argument`, `entity`, `id`,
    `valid_values` and `cli` (version, arguments, exit code, stderr).
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        hint: str = "",
        retryable: bool | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            message,
            code=code,
            hint=hint,
            retryable=code in _RETRYABLE if retryable is None else retryable,
            details={"status": _STATUS.get(code, 500), **(details or {})},
        )


class DatabaseBusyError(SudocodeError):
    """Another process kept the database locked for as long as the program waits; nothing was written."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(
            "another process holds the project's database",
            code="database_busy",
            hint="Wait a moment and call again.",
            details=details,
        )


class ExportIncompleteError(SudocodeError):
    """The row is in the database, but the program could not write the JSONL file after it."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(
            "the change is in the database, but another writer kept sudocode from writing its JSONL file",
            code="outcome_unknown",
            hint="Look at the entity before you repeat the call.",
            details=details,
        )


def invalid(argument: str, message: str, *, hint: str = "", valid_values: list[Any] | None = None) -> SudocodeError:
    """An argument that breaks a rule; nothing was run."""
    details: dict[str, Any] = {"argument": argument}
    if valid_values:
        details["valid_values"] = valid_values
        hint = hint or f"Allowed for {argument}: {', '.join(map(str, valid_values))}."
    return SudocodeError(message, code="invalid_arguments", hint=hint, details=details)


def unsupported(argument: str, value: Any, version: str, *, alternative: str = "", why: str = "") -> SudocodeError:
    """Something the seed of these tools has and this release of the program has not; nothing was written."""
    shown, given = (argument, {}) if value is None else (f"{argument}={value}", {"value": value})
    return SudocodeError(
        f"sudocode {version} does not support {shown}" + (f": {why}" if why else ""),
        code="unsupported_by_cli",
        hint=alternative or f"Call again without {argument}.",
        details={"argument": argument, **given, "cli": {"version": version}},
    )


_Groups = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    """One known message: what it looks like, what it means, which facts it carries."""

    pattern: re.Pattern[str]
    code: ErrorCode
    message: str
    """With `{0}`, `{1}` for the groups of the pattern."""
    facts: Callable[[_Groups], dict[str, Any]] = lambda _groups: {}
    hint: str = ""


def _rule(
    pattern: str,
    code: ErrorCode,
    message: str,
    facts: Callable[[_Groups], dict[str, Any]] = lambda _groups: {},
    hint: str = "",
) -> _Rule:
    return _Rule(re.compile(pattern, re.MULTILINE), code, message, facts, hint)


def _values(text: str) -> list[str]:
    return [word.strip().strip("'") for word in text.split(",")]


# The first rule that matches counts; the texts are those of the releases 0.1.0 to 0.2.0.
_RULES: Final = (
    _rule(
        r"^Parent (issue|spec) not found: (.*)$",
        "not_found",
        "there is no {0} {1} to be the parent",
        lambda g: {"argument": "parent", "entity": g[0], "id": g[1]},
        "The parent of an issue is an issue, the parent of a spec a spec.",
    ),
    _rule(
        r"^(Issue|Spec|Feedback|Entity) not found: (.*)$",
        "not_found",
        "{0} not found: {1}",
        lambda g: {"entity": g[0].lower(), "id": g[1]},
        "Ids are complete, never shortened; list_issues, list_specs and list_feedback show them.",
    ),
    _rule(
        r"^Invalid (status|relationship type|feedback type)(?: filter)?: (.*)\n\s*Valid \w+: (.*)$",
        "invalid_arguments",
        "not a valid {0}: {1}",
        lambda g: {"argument": "status" if g[0] == "status" else "type", "valid_values": _values(g[2])},
    ),
    _rule(
        r"^Line number (\S+) is out of range \((\d+)-(\d+)\)$",
        "invalid_arguments",
        "line {0} is outside the text, which has lines {1} to {2}",
        lambda g: {"argument": "line", "valid_values": [int(g[1]), int(g[2])]},
    ),
    _rule(
        r"^Invalid line number$",
        "invalid_arguments",
        "line must be a whole number from 1",
        lambda _: {"argument": "line"},
    ),
    _rule(
        r"^Text not found in (?:target|spec): ",
        "invalid_arguments",
        "the text is in no line of the target",
        lambda _: {"argument": "text"},
        "Take the text from show_spec, within one line, or pass a line number.",
    ),
    _rule(
        r"^Cannot infer entity type from ID: (.*)$",
        "invalid_arguments",
        "{0} is no id of a spec or an issue",
        lambda g: {"argument": "spec_id", "id": g[0]},
    ),
    _rule(
        r"^Either --line or --text must be specified",
        "invalid_arguments",
        "this release needs a line or a text",
        lambda _: {"argument": "line"},
    ),
    _rule(
        r"constraint failed: (?:priority >= 0|\w+\.priority)",
        "invalid_arguments",
        "priority must be a whole number from 0 to 4",
        lambda _: {"argument": "priority", "valid_values": [0, 1, 2, 3, 4]},
    ),
    _rule(
        r"constraint failed: length\(title\) <= (\d+)",
        "invalid_arguments",
        "the title has more than {0} characters",
        lambda _: {"argument": "title"},
    ),
    _rule(
        r"constraint failed: \w+\.content$",
        "invalid_arguments",
        "the feedback needs a content",
        lambda _: {"argument": "content"},
    ),
    _rule(
        r"constraint failed: (?:feedback_type|issue_type|type|status) IN \((.*)\)$",
        "invalid_arguments",
        "this release does not know the type or status",
        lambda g: {"argument": "type", "valid_values": _values(g[0])},
    ),
    _rule(r"^Constraint violation: (.*)$", "invalid_arguments", "the database refuses the values: {0}"),
    _rule(
        r"^datatype mismatch$",
        "invalid_arguments",
        "limit must be a whole number",
        lambda _: {"argument": "limit"},
    ),
    _rule(
        r"attempt to write a readonly database|EACCES|EROFS|permission denied",
        "permission_denied",
        "sudocode may not write in the project's .sudocode folder",
        hint="Even reading needs write permission there.",
    ),
    _rule(
        r"^Cannot read properties of null",
        "cli_failed",
        "sudocode stumbled over feedback that has no anchor",
        hint="This is a defect of the program. Feedback without an anchor cannot be relocated.",
    ),
    _rule(
        r"NODE_MODULE_VERSION|was compiled against a different Node|ERR_DLOPEN_FAILED|Could not locate the bindings file",
        "cli_broken",
        "the sudocode installation does not fit this Node version",
        hint="Reinstall sudocode with the Node that runs it.",
    ),
    _rule(
        r"ERR_MODULE_NOT_FOUND|Cannot find (?:module|package)",
        "cli_broken",
        "the sudocode installation lacks a part",
        hint="Reinstall sudocode.",
    ),
    _rule(
        r"node(?:'|\b).*(?:No such file or directory|not found)",
        "cli_broken",
        "sudocode needs Node, which was not found",
        hint="Install Node 18 or newer, or put it on the PATH of this server.",
    ),
    _rule(
        r"is not allowed in NODE_OPTIONS",
        "cli_broken",
        "Node refuses its options",
        hint="Clear NODE_OPTIONS in the environment of this server.",
    ),
    _rule(
        r"Migration \d+ failed|no such (?:column|table)|has no column named",
        "database_incompatible",
        "the project's database was made by another release, which this one cannot upgrade",
        hint="Use the release that made it, or move the database aside and call init: it is built anew from the "
        "committed JSONL files. Calling init on it as it is does not help.",
    ),
    _rule(
        r"file is not a database|malformed|unable to open database file|EEXIST: file already exists|EISDIR|ENOTDIR",
        "database_invalid",
        "the project's database cannot be used",
        hint="Look at the .sudocode folder. Move a broken database aside and call init: it is built anew from the "
        "committed JSONL files.",
    ),
    _rule(
        r"^error: unknown option '(--[\w-]+)",
        "unsupported_by_cli",
        "this release of sudocode has no option {0}",
        lambda g: {"argument": g[0].removeprefix("--").replace("-", "_")},
    ),
    _rule(
        r"^error: unknown command '(.*)'",
        "unsupported_by_cli",
        "this release of sudocode has no command {0}",
        lambda g: {"command": g[0]},
    ),
    _rule(
        r"^error: (?:missing required argument|option .* argument missing|too many arguments)|^Usage: ",
        "internal_error",
        "the adapter called sudocode in a wrong form",
        hint="This is a defect of the adapter; please report it.",
    ),
)
_RENAME: Final = re.compile(r"ENOENT: no such file or directory, (?:rename|open|utime) '.*\.jsonl(?:\.tmp)?'")
_LOCKED: Final = re.compile(r"^(?:database is locked|SQLITE_BUSY)", re.MULTILINE)
_PACKAGES: Final = re.compile(r"[^\s'\"]*/node_modules/")
_STACK_LINE: Final = re.compile(r"^\s+at .*$\n?", re.MULTILINE)


def failure(result: CommandResult, *, version: str, arguments: tuple[str, ...], installation: str) -> SudocodeError:
    """The error of a run that ended with a failure.

    Args:
        result: Of the run.
        version: The program's, or empty.
        arguments: Without the program itself.
        installation: The program's folder, which is left out of what is shown.
    """
    raw = plain_text(result.stderr) or plain_text(result.stdout)
    raw = _PACKAGES.sub("<installation>/", raw.replace(installation, "<installation>") if installation else raw)
    text = "\n".join(line.strip().removeprefix("✗ ").strip() for line in _STACK_LINE.sub("", raw).splitlines())
    cli = cli_facts(version=version, arguments=arguments, exit_code=result.exit_code, stderr=text)
    if _RENAME.search(text):
        return ExportIncompleteError({"cli": cli})
    if _LOCKED.search(text):
        return DatabaseBusyError({"cli": cli})
    for rule in _RULES:
        match = rule.pattern.search(text)
        if match is None:
            continue
        groups = tuple(group or "" for group in match.groups())
        return SudocodeError(
            rule.message.format(*(_short(group, 120) for group in groups)),
            code=rule.code,
            hint=rule.hint,
            details={**rule.facts(groups), "cli": cli},
        )
    lines = [line for line in text.splitlines() if line]
    return SudocodeError(
        f"sudocode failed: {_short(': '.join(lines[:2]), 300)}" if lines else f"sudocode failed ({result.exit_code})",
        code="cli_failed",
        details={"cli": cli},
    )


def cli_facts(*, version: str, arguments: tuple[str, ...], exit_code: int, stderr: str) -> dict[str, Any]:
    """What was run and what it said, cut to what a reader needs."""
    facts: dict[str, Any] = {"arguments": [_short(argument, 80) for argument in arguments[:20]]}
    if version:
        facts["version"] = version
    facts["exit_code"] = exit_code
    if stderr:
        facts["stderr"] = _short(stderr, 600)
    return facts


def _short(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
