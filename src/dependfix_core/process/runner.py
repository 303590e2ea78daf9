"""Starts a child in its own process group and sees to it that nothing of it stays behind."""

import contextlib
import os
import secrets
import signal
import subprocess  # noqa: TID251  # this module is the one place that may
import sys
import time
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread

from dependfix_core.errors import (
    CommandBrokenError,
    CommandKilledError,
    CommandNotFoundError,
    CommandOutputTooLargeError,
    CommandTimeoutError,
)
from dependfix_core.process.command import Command, CommandResult

# CREATE_NEW_PROCESS_GROUP, a name that exists on Windows only.
_CREATION_FLAGS = 0x00000200 if sys.platform == "win32" else 0
# Every child carries it with a value of its own, and hands it to its children:
# how a process is found again that has left the group.
_MARKER: Final = "DEPENDFIX_CHILD"
_PIPE_GRACE_S: Final = 1.0
"""How long the pipes may stay open after the child has ended."""


class SubprocessRunner:
    """The real `Runner`: no shell, null stdin, own process group, time limit, output cap.

    The whole group is killed when the child ends, when it runs out of time or
    output, and when the caller is cancelled: a daemon that the child left
    behind in its group does not outlive the call. On Linux processes that made
    a session of their own are found and killed too: after a kill, where one
    still holds a pipe, and after every run of a command with `sweep`.
    """

    async def run(self, command: Command) -> CommandResult:
        """See `Runner.run`."""
        environment = {name: os.environ[name] for name in command.inherit if name in os.environ}  # noqa: TID251  # the allowlist is what a child sees
        environment.update(command.env)
        if "PATH" in environment:
            environment["PATH"] = _absolute_folders(environment["PATH"])
        mark = environment[_MARKER] = secrets.token_hex(8)
        executable = _executable(command, environment.get("PATH", os.defpath))
        started = time.monotonic()
        try:
            # Not to be cancelled half-way: a child that nobody knows cannot be ended.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [executable, *command.argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=command.cwd,
                    env=environment,
                    start_new_session=True,  # ignored on Windows, where the flags below make the group
                    creationflags=_CREATION_FLAGS,
                )
        except FileNotFoundError as error:
            if not command.cwd.is_dir():
                raise CommandBrokenError(
                    f"cannot run {command.label}: its working directory is gone", argv=command.argv
                ) from error
            raise _not_found(command) from error
        except (PermissionError, OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "an argument has a NUL character"
            raise CommandBrokenError(f"cannot start {command.label}: {reason}", argv=command.argv) from error
        return await self._finish(process, command, started, mark)

    async def _finish(self, process: anyio.abc.Process, command: Command, started: float, mark: str) -> CommandResult:
        budget = _Budget(command.max_output_bytes)
        stdout, stderr = bytearray(), bytearray()
        open_pipes = 2
        drained = anyio.Event()

        async def drain(stream: anyio.abc.ByteReceiveStream | None, into: bytearray) -> None:
            nonlocal open_pipes
            if stream is not None:
                async for chunk in stream:
                    if not budget.take(len(chunk)):
                        scope.cancel()
                        return
                    into += chunk
            open_pipes -= 1
            if not open_pipes:
                drained.set()

        timed_out = held_open = False
        ended = False
        try:
            with anyio.CancelScope() as scope, anyio.move_on_after(command.timeout_s) as limit:
                async with anyio.create_task_group() as group:
                    group.start_soon(drain, process.stdout, stdout)
                    group.start_soon(drain, process.stderr, stderr)
                    await process.wait()
                    # A grandchild may hold the pipes open: it ends with its group.
                    _kill_group(process.pid)
                    with anyio.move_on_after(_PIPE_GRACE_S):
                        await drained.wait()
                    if open_pipes:
                        await anyio.to_thread.run_sync(_kill_marked, mark)
                        with anyio.move_on_after(_PIPE_GRACE_S * 5):
                            await drained.wait()
                        held_open = bool(open_pipes)
                        group.cancel_scope.cancel()
                    ended = True
            timed_out = limit.cancelled_caught and not budget.exceeded
        finally:
            _kill_group(process.pid)
            with anyio.CancelScope(shield=True):
                if command.sweep or not ended:
                    await anyio.to_thread.run_sync(_kill_marked, mark)
                with anyio.move_on_after(5):
                    await process.wait()
                await process.aclose()
        if budget.exceeded:
            raise CommandOutputTooLargeError(
                f"{command.label} printed more than {command.max_output_bytes} bytes and was stopped",
                argv=command.argv,
                details={"maxBytes": command.max_output_bytes},
            )
        if timed_out:
            raise CommandTimeoutError(
                f"{command.label} did not end within {command.timeout_s:g} s and was stopped", argv=command.argv
            )
        if held_open:
            raise CommandKilledError(
                f"{command.label} left a process behind that holds its output open", argv=command.argv
            )
        exit_code = process.returncode
        if exit_code is None or exit_code < 0:
            name = _signal_name(-exit_code) if exit_code is not None else "an unknown signal"
            raise CommandKilledError(f"{command.label} was ended by {name}", argv=command.argv)
        return CommandResult(
            argv=command.argv,
            exit_code=exit_code,
            stdout=bytes(stdout),
            stderr=bytes(stderr),
            duration_s=time.monotonic() - started,
        )


class _Budget:
    """Bytes that stdout and stderr may still bring, together."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self.exceeded = False

    def take(self, count: int) -> bool:
        self._left -= count
        self.exceeded = self._left < 0
        return not self.exceeded


def locate(name: str) -> str | None:
    """Absolute path of an executable by name on our own PATH, or of a path itself; `None` when there is none."""
    return find_executable(name, os.environ.get("PATH", os.defpath))  # noqa: TID251  # how programs are found


def find_executable(name: str, path: str) -> str | None:
    """Absolute path of an executable by name on `path`, or of a path itself; `None` when there is none.

    Names are never looked up in the working directory, which may be hostile.
    """
    if Path(name).name != name:
        path_given = Path(name).absolute()
        return str(path_given) if _runs(path_given) else None
    suffixes = [""]
    if sys.platform == "win32":
        suffixes += os.environ.get("PATHEXT", ".EXE").lower().split(";")  # noqa: TID251  # how Windows finds programs
    for folder in map(Path, filter(None, path.split(os.pathsep))):
        if not folder.is_absolute():
            continue
        for suffix in suffixes:
            candidate = folder / f"{name}{suffix}"
            if _runs(candidate):
                return str(candidate)
    return None


def _absolute_folders(path: str) -> str:
    # The child looks up programs too (the interpreter of a script is one), and it may stand in a hostile folder.
    folders = [folder for folder in path.split(os.pathsep) if folder and Path(folder).is_absolute()]
    return os.pathsep.join(folders) or os.defpath  # an empty one would mean the folder where it stands


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _executable(command: Command, path: str) -> str:
    if not command.argv:
        raise ValueError("a command needs an executable")
    found = find_executable(command.argv[0], path)
    if found is None:
        raise _not_found(command)
    return found


def _not_found(command: Command) -> CommandNotFoundError:
    return CommandNotFoundError(f"{command.name or Path(command.argv[0]).name} was not found", argv=command.argv)


def _kill_group(pid: int) -> None:
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    # Fork bombs aside, a second look finds what was forked during the first.
    entry = f"{_MARKER}={mark}".encode()
    for _ in range(3):
        if not _kill_once(entry):
            return


def _kill_once(entry: bytes) -> bool:
    found = False
    with contextlib.suppress(OSError), os.scandir("/proc") as processes:
        for process in processes:
            if not process.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if entry in Path("/proc", process.name, "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
                    found = True
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
