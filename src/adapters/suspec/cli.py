"""Asks the suspec CLI, but only one that has shown the contract this adapter understands."""

import contextlib
import copy
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from adapters.suspec.answers import (
    CONTRACT_HINT,
    STDERR_CHARS,
    Contract,
    Refused,
    Reports,
    read_check,
    read_contract,
)
from adapters.suspec.contract import VERSION
from adapters.suspec.executable import Fingerprint, Locate, Program, find_program, fingerprint
from adapters.suspec.request import CONTRACT_ARGUMENTS, CheckRequest, distinct_paths, refuse_devices
from dependfix_core.errors import CommandError, CommandOutputError, ContractMismatchError
from dependfix_core.process import Command, CommandResult, Runner, clean_text, locate

CHECK_TIMEOUT_S: Final = 30.0
CONTRACT_TIMEOUT_S: Final = 15.0
MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
MAX_RUNS: Final = 4
"""Checks at the same time; each may keep a core busy."""

# Above this, reading an answer would hold up everybody else.
_INLINE_BYTES: Final = 256 * 1024

# What Node needs: no proxy, no registry, no token reaches the CLI.
_INHERITED: Final = (
    "PATH",
    "HOME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "PATHEXT",
    "USERPROFILE",
)

_CHANGED_HINT: Final = "The CLI may have changed; its contract is asked again before the next check."


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where an answer comes from."""

    command: str
    """For reading: the executable and its arguments, quoted as for a POSIX shell."""
    exit_code: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckAnswer:
    """What the CLI said to a check."""

    source: Source
    request: CheckRequest
    distinct: tuple[str, ...]
    """The requested paths without aliases: the files that were looked at, in order."""
    outcome: Reports | Refused


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractAnswer:
    """What the CLI said when it was asked for its contract."""

    source: Source
    outcome: Contract | Refused


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """Whether the CLI may be asked, and if not, why."""

    needed: str
    """The one contract version that is understood."""
    found: str | None
    """The version that the CLI declared; `None` when it declared none."""
    executable: str | None
    """Absolute path; `None` when there is none."""
    error: CommandError | None
    """`cli_missing`, `cli_broken`, `timeout`, `output_too_large`, or `contract_mismatch` for every wrong answer."""

    @property
    def passed(self) -> bool:
        """Whether checks may run."""
        return self.error is None


class SuspecCli:
    """The suspec CLI: `check` and its contract, nothing else. Needs a running event loop.

    The contract gate is asked at the first use, at every read of the contract,
    and again when the executable or its package changes; no check runs before
    it has passed.
    """

    def __init__(
        self,
        *,
        runner: Runner,
        executable: str | None = None,
        node: str = "node",
        check_timeout_s: float = CHECK_TIMEOUT_S,
        contract_timeout_s: float = CONTRACT_TIMEOUT_S,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        locate: Locate = locate,
    ) -> None:
        self._runner = runner
        self._executable = executable
        self._node = node
        self._check_timeout_s = check_timeout_s
        self._contract_timeout_s = contract_timeout_s
        self._max_output_bytes = max_output_bytes
        self._locate = locate
        self._runs = anyio.Semaphore(MAX_RUNS)
        self._gate_lock = anyio.Lock()
        self._gates = 0
        self._last: GateResult | None = None
        self._passed: tuple[Program, Fingerprint] | None = None

    async def gate(self) -> GateResult:
        """Ask for the contract now."""
        async with self._gate_lock:
            return await self._run_gate()

    @property
    def last_gate(self) -> GateResult | None:
        """How the gate ended last; `None` before it was asked."""
        return self._last

    async def contract(self) -> ContractAnswer:
        """Ask for the contract now; its answer is the gate's too.

        Raises:
            CommandError: `contract_mismatch`, or what stands between us and an answer.
        """
        async with self._gate_lock:
            return await self._ask_contract()

    async def check(self, request: CheckRequest) -> CheckAnswer:
        """Check the artifacts in one run.

        Raises:
            ArgumentError: A path is a pipe or a device.
            CommandError: The gate has not passed, or the run gave no answer that can be believed.
        """
        await anyio.to_thread.run_sync(refuse_devices, request)
        program, distinct, result = await self._run_gated(request)
        try:
            with _naming(program):
                outcome, distinct = await self._read_check(result, request, distinct)
        except CommandOutputError as error:
            self._passed = None
            error.hint = _CHANGED_HINT
            raise
        return CheckAnswer(source=_source(result), request=request, distinct=distinct, outcome=outcome)

    async def _run_gated(self, request: CheckRequest) -> tuple[Program, tuple[str, ...], CommandResult]:
        """Run a check by a CLI that has shown its contract and was still the same when it had answered."""
        gates = self._gates
        for _ in range(2):
            async with self._runs:
                # Inside: the CLI may be replaced while a check waits for its turn.
                program, seen = await self._ready(gates)
                distinct = await anyio.to_thread.run_sync(distinct_paths, request.paths)
                result = await self._run(program, request.arguments, self._check_timeout_s)
                if await anyio.to_thread.run_sync(fingerprint, program) == seen:
                    return program, distinct, result
            gates = self._gates
        # What answered may never have shown its contract.
        raise CommandOutputError(
            "the suspec CLI was replaced while it ran, twice",
            argv=request.arguments,
            hint=_CHANGED_HINT,
            retryable=True,
            details={"reason": "replaced"},
        )

    async def _read_check(
        self, result: CommandResult, request: CheckRequest, distinct: tuple[str, ...]
    ) -> tuple[Reports | Refused, tuple[str, ...]]:
        def read() -> tuple[Reports | Refused, tuple[str, ...]]:
            try:
                return read_check(result, request, distinct), distinct
            except CommandOutputError:
                # A file may have been replaced between our look and the CLI's.
                now = distinct_paths(request.paths)
                if now == distinct:
                    raise
                return read_check(result, request, now), now

        if len(result.stdout) <= _INLINE_BYTES:
            return read()
        return await anyio.to_thread.run_sync(read)

    async def _ready(self, gates: int) -> tuple[Program, Fingerprint]:
        """The program whose gate has passed and that has not changed since; `gates` had been asked when the call came."""
        async with self._gate_lock:
            if self._passed is not None:
                program, seen = self._passed
                if await anyio.to_thread.run_sync(fingerprint, program) == seen:
                    return program, seen
            # Whoever waited while the gate was asked takes its answer.
            last = self._last
            if last is None or self._gates == gates:
                last = await self._run_gate()
            if last.error is not None:
                raise copy.copy(last.error)
            assert self._passed is not None
            return self._passed

    async def _run_gate(self) -> GateResult:
        with contextlib.suppress(CommandError):
            await self._ask_contract()
        assert self._last is not None
        return self._last

    async def _ask_contract(self) -> ContractAnswer:
        self._passed = None
        entry: str | None = None
        try:
            program, seen = await anyio.to_thread.run_sync(self._find)
            entry = program.entry
            result = await self._run(program, CONTRACT_ARGUMENTS, self._contract_timeout_s)
            with _naming(program):
                outcome = read_contract(result)
        except CommandError as error:
            self._settle(entry, _gate_error(error))
            raise
        if isinstance(outcome, Refused):
            self._settle(entry, _refused_gate(program, outcome, result))
        else:
            self._passed = (program, seen)
            self._settle(entry, None)
        return ContractAnswer(source=_source(result), outcome=outcome)

    def _settle(self, entry: str | None, error: CommandError | None) -> None:
        found = VERSION if error is None else error.details.get("found")
        self._gates += 1
        self._last = GateResult(needed=VERSION, found=found, executable=entry, error=error)

    def _find(self) -> tuple[Program, Fingerprint]:
        program = find_program(self._executable, self._node, self._locate)
        return program, fingerprint(program)

    async def _run(self, program: Program, arguments: Sequence[str], timeout_s: float) -> CommandResult:
        command = Command(
            argv=(*program.argv, *arguments),
            # Always there, whatever happens to our own working directory.
            cwd=Path(Path(program.entry).anchor),
            inherit=_INHERITED,
            timeout_s=timeout_s,
            max_output_bytes=self._max_output_bytes,
            name=f"the suspec CLI ({program.entry})",
            sweep=True,
        )
        with _naming(program):
            return await self._runner.run(command)


def _source(result: CommandResult) -> Source:
    return Source(command=shlex.join(result.argv), exit_code=result.exit_code)


@contextlib.contextmanager
def _naming(program: Program) -> Iterator[None]:
    """Errors from inside say which executable it was."""
    try:
        yield
    except CommandError as error:
        error.details.setdefault("executable", program.entry)
        raise


_KEPT_BY_GATE: Final = frozenset({"cli_missing", "cli_broken", "timeout", "output_too_large"})


def _gate_error(error: CommandError) -> CommandError:
    """What every use of the CLI answers until the gate passes: a wrong answer of any kind is a mismatch."""
    if error.code in _KEPT_BY_GATE or isinstance(error, ContractMismatchError):
        error.details.setdefault("needed", VERSION)
        return error
    details = {"reason": error.code, **error.details, "needed": VERSION}
    return ContractMismatchError(
        f"no checks contract {VERSION}: {error.message}", argv=error.argv, hint=CONTRACT_HINT, details=details
    )


def _refused_gate(program: Program, refused: Refused, result: CommandResult) -> CommandError:
    return ContractMismatchError(
        f"no checks contract {VERSION}: the suspec CLI refused to show it",
        argv=CONTRACT_ARGUMENTS,
        hint=CONTRACT_HINT,
        details={
            "reason": "cli_refused",
            "refusal": clean_text(refused.items[0].message, max_chars=STDERR_CHARS),
            "exitCode": result.exit_code,
            "executable": program.entry,
            "needed": VERSION,
        },
    )
