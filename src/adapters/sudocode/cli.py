"""Runs the sudocode program in the one form that no title or value can be misread in."""

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from adapters.sudocode.config import SudocodeConfig
from adapters.sudocode.failures import (
    DatabaseBusyError,
    ExportIncompleteError,
    SudocodeError,
    cli_facts,
    failure,
    invalid,
    unsupported,
)
from adapters.sudocode.locate import Identity, Program, Project, find_sudocode
from dependfix_core.errors import (
    CommandBrokenError,
    CommandError,
    CommandKilledError,
    CommandNotFoundError,
    CommandOutputTooLargeError,
    CommandTimeoutError,
)
from dependfix_core.process import Command, CommandResult, Runner, json_document, plain_text

# Linux takes 131,072 bytes for one argument, the option's name and a final zero included.
MAX_ARGUMENT_BYTES: Final = 131_071
# Windows takes 32,767 characters for the whole line.
MAX_LINE_CHARS: Final = 32_000
_ENVIRONMENT: Final = {
    "SUDOCODE_DISABLE_UPDATE_CHECK": "true",  # only this exact value counts
    "FORCE_COLOR": "0",
}
# At the same time; each may keep a core busy.
_MAX_RUNS: Final = 8
_MAX_PAGE_CHARS: Final = 64_000
_MAX_OUTPUT_BYTES: Final = 128 * 1024 * 1024
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What the installed release can do, as far as a single refused option does not tell."""

    version: str
    target_first: bool
    """`feedback add` takes the target before the issue."""
    feedback_states: bool
    """Feedback can be acknowledged, resolved and declined; otherwise only dismissed."""
    dismiss: bool
    ready_specs: bool
    """`ready` and `blocked` list specs themselves."""
    parent_child_links: bool
    """`link` takes parent-child; otherwise a parent is a field of the child."""
    first_blocks_second: bool | None
    """Direction of `blocks`; `None` when only the project itself can tell."""
    database_name: str
    keeps_times_on_import: bool
    """An imported row has the time of change of its file, so that times tell which side is newer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a successful run said."""

    document: object
    notes: tuple[str, ...] = ()
    """Lines of stderr, which are warnings when the run succeeded."""


class Cli:
    """The program as found by the configuration; asks each installed release once what it can do."""

    def __init__(self, config: SudocodeConfig, runner: Runner) -> None:
        self._config = config
        self._runner = runner
        self._known: dict[Identity, Capabilities] = {}
        self._pages: dict[tuple[object, ...], str] = {}
        self._runs = anyio.Semaphore(_MAX_RUNS)

    async def capabilities(self) -> Capabilities:
        """Of the installed release.

        Raises:
            SudocodeError: `cli_missing`, `cli_broken`, `config_error`.
        """
        self._config.check()
        program = find_sudocode(self._config)
        known = self._known.get(program.identity)
        if known is None:
            known = await self._probe(program)
            self._known[program.identity] = known
        return known

    async def _probe(self, program: Program) -> Capabilities:
        # Neither page opens a database, so asking changes nothing anywhere.
        version = await self._page(program, "--version")
        if re.fullmatch(r"v?\d+\.\d+\.\d+\S*", version) is None:
            raise SudocodeError(
                f"{program.file.name} is not sudocode: it was asked for its version and said {version[:60]!r}",
                code="cli_broken",
                hint="Set SUDOCODE_PATH to the sudocode program.",
                details={"found": version[:60], "needed": "a version such as 0.2.0"},
            )
        feedback = await self._page(program, "feedback", "--help")
        states = re.search(r"^\s+acknowledge\b", feedback, re.MULTILINE) is not None
        numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
        old = states or not numbers or numbers < (0, 1, 5)
        ready_specs = old and "--specs" in await self._page(program, "ready", "--help")
        # From 0.1.6 on the first blocks the second; a development state that
        # has the old feedback states has the old direction too.
        direction: bool | None = None
        if states or (0, 1, 5) <= numbers < (0, 1, 6):
            direction = False
        elif numbers >= (0, 1, 6):
            direction = True
        return Capabilities(
            version=version,
            target_first=re.search(r"^\s+add \[options\] <(?:target|to)", feedback, re.MULTILINE) is not None,
            feedback_states=states,
            dismiss=re.search(r"^\s+dismiss\b", feedback, re.MULTILINE) is not None,
            ready_specs=ready_specs,
            parent_child_links=states or (0, 1, 5) <= numbers < (0, 1, 7),
            first_blocks_second=direction,
            database_name="sudograph.db" if ready_specs else "cache.db",
            keeps_times_on_import=not states,
        )

    async def _page(self, program: Program, *arguments: str) -> str:
        result = await self._start(program, self._config.working_dir, arguments, writes=False)
        if result.exit_code != 0:
            raise failure(result, version="", arguments=arguments, installation=program.installation)
        return plain_text(result.stdout, max_chars=_MAX_PAGE_CHARS)

    async def has_option(self, words: Sequence[str], option: str) -> bool:
        """Whether a command of the installed release takes `--option`, by its help page."""
        program = find_sudocode(self._config)
        key = (*program.identity, *words)
        if key not in self._pages:
            self._pages[key] = await self._page(program, *words, "--help")
        return re.search(rf"--{re.escape(option)}\b", self._pages[key]) is not None

    async def require_option(
        self, words: Sequence[str], option: str, value: object, *, argument: str = "", alternative: str
    ) -> None:
        """Refuse a value that the installed release has no option for, before anything else is done.

        Raises:
            SudocodeError: `unsupported_by_cli`.
        """
        if not await self.has_option(words, option):
            version = (await self.capabilities()).version
            raise unsupported(argument or option, value, version, alternative=alternative)

    async def init(self, folder: Path) -> str:
        """Run `init` in a folder; gives its plain text."""
        program = find_sudocode(self._config)
        capabilities = await self.capabilities()
        with anyio.CancelScope(shield=True):
            result = await self._start(program, folder, ("init",), writes=True)
        if result.exit_code != 0:
            raise failure(result, version=capabilities.version, arguments=("init",), installation=program.installation)
        return plain_text(result.stdout)

    async def read(
        self,
        project: Project,
        *words: str,
        options: Mapping[str, str] | None = None,
        positionals: Sequence[str] = (),
    ) -> Answer:
        """Run a command that changes nothing; a second time when the database was locked."""
        with contextlib.suppress(DatabaseBusyError):
            return await self._run(project, words, options or {}, positionals, writes=False)
        return await self._run(project, words, options or {}, positionals, writes=False)

    async def write(
        self,
        project: Project,
        *words: str,
        options: Mapping[str, str] | None = None,
        positionals: Sequence[str] = (),
        repeatable: bool,
    ) -> Answer:
        """Run a command that changes the project, to its end, also when the caller is cancelled.

        A repeatable one runs a second time when the database was locked or the
        JSONL file could not be written, which completes that file. One that is
        not repeatable, like a create, never does.
        """
        passed_over = (DatabaseBusyError, ExportIncompleteError) if repeatable else ()
        answer: Answer | None = None
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(*passed_over):
                answer = await self._run(project, words, options or {}, positionals, writes=True)
            if answer is None:
                answer = await self._run(project, words, options or {}, positionals, writes=True)
        assert answer is not None
        return answer

    async def _run(
        self,
        project: Project,
        words: Sequence[str],
        options: Mapping[str, str],
        positionals: Sequence[str],
        *,
        writes: bool,
    ) -> Answer:
        capabilities = await self.capabilities()
        program = find_sudocode(self._config)
        arguments = call_form(words, options, positionals, database_option=project.database_option)
        result = await self._start(program, project.root, arguments, writes=writes)
        if result.exit_code != 0:
            raise failure(
                result,
                version=capabilities.version,
                arguments=arguments,
                installation=program.installation,
            )
        try:
            document = json_document(result)
        except CommandError as error:
            cli = cli_facts(
                version=capabilities.version,
                arguments=arguments,
                exit_code=0,
                stderr=plain_text(result.stderr, max_chars=300),
            )
            raise SudocodeError(
                "sudocode ended well but printed no JSON document",
                code="outcome_unknown" if writes else "bad_output",
                details={"cli": cli, "stdout": plain_text(result.stdout, max_chars=300)},
            ) from error
        notes = plain_text(result.stderr, max_chars=1000)
        return Answer(document=document, notes=tuple(line for line in notes.splitlines() if line.strip()))

    async def _start(self, program: Program, folder: Path, arguments: Sequence[str], *, writes: bool) -> CommandResult:
        command = Command(
            argv=(*program.argv, *arguments),
            cwd=folder,
            env=_ENVIRONMENT,
            timeout_s=self._config.timeout_s,
            name="sudocode",
            max_output_bytes=_MAX_OUTPUT_BYTES,
            sweep=True,
        )
        cli = cli_facts(version="", arguments=tuple(arguments), exit_code=0, stderr="")
        del cli["exit_code"]
        try:
            async with self._runs:
                return await self._runner.run(command)
        except CommandNotFoundError as error:
            raise SudocodeError(
                "Node was not found" if program.argv[0] == self._config.node else "sudocode was not found",
                code="cli_missing",
                hint="Install Node 18 or newer and sudocode (`npm install -g sudocode`).",
                details={"cli": cli},
            ) from error
        except (CommandTimeoutError, CommandKilledError, CommandOutputTooLargeError) as error:
            if writes:
                raise SudocodeError(
                    f"{error.message}; it may or may not have written",
                    code="outcome_unknown",
                    hint="Look at the project before you repeat the call.",
                    details={"cli": cli},
                ) from error
            raise SudocodeError(error.message, code=error.code, hint=error.hint, details={"cli": cli}) from error
        except CommandBrokenError as error:
            raise SudocodeError(error.message, code="cli_broken", details={"cli": cli}) from error


def call_form(
    words: Sequence[str],
    options: Mapping[str, str],
    positionals: Sequence[str],
    *,
    database_option: str | None = None,
) -> tuple[str, ...]:
    """`--json command --name=value … -- positional …`: every value stays what it is.

    The program's own parser sees all arguments before the subcommand does, so
    a separate value or a title without `--` in front can turn into an option.

    Raises:
        SudocodeError: `invalid_arguments`, when the system cannot pass a value.
    """
    named = [(name, f"--{name}={value}") for name, value in options.items()]
    for name, argument in (*named, *(("argument", positional) for positional in positionals)):
        _passable(name.replace("-", "_"), argument)
    arguments = ["--json"]
    if database_option:
        arguments.append(database_option)
    arguments += [*words, *(argument for _, argument in named)]
    if positionals:
        arguments += ["--", *positionals]
    if sys.platform == "win32" and sum(map(len, arguments)) > MAX_LINE_CHARS:
        raise invalid("arguments", f"together the values have more than {MAX_LINE_CHARS} characters")
    return tuple(arguments)


def _passable(name: str, argument: str) -> None:
    try:
        size = len(argument.encode())
    except UnicodeEncodeError as error:
        raise invalid(name, f"{name} holds half of a character pair") from error
    if "\x00" in argument:
        raise invalid(name, f"{name} holds a NUL character")
    if size > MAX_ARGUMENT_BYTES:
        raise invalid(
            name,
            f"{name} has {size} bytes; sudocode takes at most {MAX_ARGUMENT_BYTES}",
            hint="Split the text, for example over several specs.",
        )


def check_id(argument: str, value: str) -> str:
    """An id as it may be passed on.

    Raises:
        SudocodeError: `invalid_arguments`.
    """
    if not value.strip() or len(value) > 200 or _CONTROL.search(value):
        raise invalid(argument, f"{argument} must be an id such as i-x7k9 or s-14sh")
    return value


def capability_report(capabilities: Capabilities) -> dict[str, list[str]]:
    """What is exact, emulated and missing with a release, as tools and parameters."""
    exact = ["list_issues", "show_issue", "create_issue", "update_issue", "close_issue", "list_specs", "show_spec"]
    exact += ["create_spec", "link", "add_feedback", "show_feedback", "relocate_feedback", "stats", "status", "init"]
    emulated = [
        "ready (limit, priority, assignee)",
        "list_feedback (filters)",
        "stale_feedback",
        "create_spec (design)",
    ]
    missing: list[str] = []
    if not capabilities.ready_specs:
        emulated += ["ready and blocked_issues (show_specs)", "stats (specs.ready)"]
        missing += ["type of issues and specs", "estimate", "status of specs"]
    if not capabilities.parent_child_links:
        emulated.append("link (parent-child)")
    if capabilities.feedback_states:
        exact += ["acknowledge_feedback", "resolve_feedback", "wontfix_feedback"]
    else:
        emulated += ["resolve_feedback and wontfix_feedback (dismiss)"]
        missing += ["acknowledge_feedback", "list_feedback (status other than open)", "close and dismiss remarks"]
    return {"exact": exact, "emulated": emulated, "missing": missing}
