"""Runs a package manager in a scratch copy and takes back only the files that it may change."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread

from dependfix_core.ecosystems.base import ToolRelock
from dependfix_core.errors import CommandError, CommandNotFoundError
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.model.files import ChangeSet, FileChange
from dependfix_core.model.plan import RefusalReason
from dependfix_core.model.records import Unavailable
from dependfix_core.process import INHERITED_VARIABLES, Command, Runner, clean_text, redact
from dependfix_core.relock.client_files import ClientFiles, client_files

_PROXIES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"),
)
_PASSED_ON: Final = tuple(
    name for name in (*INHERITED_VARIABLES, *_PROXIES) if name not in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
)
_VERSION: Final = re.compile(rb"(\d+)\.(\d+)(?:\.(\d+))?\S*")


@dataclass(frozen=True, kw_only=True, slots=True)
class RelockFailure:
    """The tool did not bring the lock to the wanted state; nothing of the checkout was touched."""

    reason: RefusalReason
    detail: str
    """One line for a person; what the tool printed is cleaned, redacted and cut."""


class ToolLocator(Protocol):
    """Finds an installed package manager."""

    def candidates(self, tool: str) -> Sequence[tuple[str, ...]]:
        """How `tool` can be started, best first; empty when it is not installed."""
        ...


class PathTools:
    """Package managers by their usual names on PATH."""

    def candidates(self, tool: str) -> Sequence[tuple[str, ...]]:
        """See `ToolLocator.candidates`."""
        return [(_PROGRAMS.get(tool, tool),)]


_PROGRAMS: Final[Mapping[str, str]] = {"pip-tools": "pip-compile"}


class Relocker:
    """Carries out `ToolRelock`s."""

    def __init__(
        self,
        runner: Runner,
        addresses: RegistryAddresses,
        *,
        tools: ToolLocator | None = None,
        timeout_s: float = 300.0,
    ) -> None:
        self._runner = runner
        self._addresses = addresses
        self._tools = tools or PathTools()
        self._timeout_s = timeout_s

    async def relock(self, wanted: ToolRelock, before: Mapping[str, bytes]) -> ChangeSet | RelockFailure:
        """The files that the tool changed, against `before` (path → content in the repository)."""
        scratch = await anyio.to_thread.run_sync(lambda: tempfile.TemporaryDirectory(prefix="dependfix-"))
        try:
            return await self._in(Path(scratch.name), wanted, before)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(scratch.cleanup)

    async def _in(self, scratch: Path, wanted: ToolRelock, before: Mapping[str, bytes]) -> ChangeSet | RelockFailure:
        home, copy = scratch / "home", scratch / "copy"
        clients = client_files(wanted, self._addresses, home=str(home))
        if isinstance(clients, Unavailable):
            return RelockFailure(reason="metadata-unavailable", detail=clients.detail)
        await anyio.to_thread.run_sync(_lay, home, clients.home, 0o600)
        await anyio.to_thread.run_sync(_lay, copy, wanted.files, 0o644)
        program = await self._program(wanted, clients, home, copy)
        if isinstance(program, RelockFailure):
            return program
        for call in wanted.calls:
            await anyio.to_thread.run_sync(_lay, copy, call.files, 0o644)
            # What a program other than the package manager's own would be is part of the call.
            argv = (*program, *call.argv[1:])
            failure = await self._run(argv, call.env, wanted, clients, home=home, copy=copy)
            if failure is not None:
                return failure
        after = await anyio.to_thread.run_sync(_read_back, copy, wanted)
        strangers = sorted(
            path for path, content in after.items() if path not in wanted.results and content != _final(wanted, path)
        )
        if strangers:
            return RelockFailure(
                reason="tool-required", detail=f"{wanted.tool} also changed {', '.join(strangers[:5])}"[:300]
            )
        # Files that were laid differently for the tool's sake are no part of the result.
        own = {*wanted.results, *wanted.edited}
        held = {path: wanted.restored.get(path, content) for path, content in after.items() if path in own}
        changed = {path: content for path, content in held.items() if content != before.get(path)}
        return ChangeSet(
            changes=tuple(
                FileChange(path=path, before=before.get(path), after=changed[path]) for path in sorted(changed)
            )
        )

    async def _program(
        self, wanted: ToolRelock, clients: ClientFiles, home: Path, copy: Path
    ) -> tuple[str, ...] | RelockFailure:
        """The installed program of the version that the project names."""
        found: list[str] = []
        for candidate in self._tools.candidates(wanted.tool):
            command = self._command((*candidate, "--version"), clients, home, copy.parent, timeout_s=60.0)
            try:
                result = await self._runner.run(command)
            except CommandError:
                continue
            version = _VERSION.search(result.stdout)
            if version is None:
                continue
            installed = version.group(0).decode()
            if _fits(installed, wanted.version):
                return candidate
            found.append(installed)
        have = f"installed: {', '.join(found)}" if found else "it is not installed"
        named = f"{wanted.tool} {wanted.version}".strip()
        return RelockFailure(reason="tool-required", detail=f"needs {named} ({have}); by hand: {wanted.by_hand}")

    async def _run(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        wanted: ToolRelock,
        clients: ClientFiles,
        *,
        home: Path,
        copy: Path,
    ) -> RelockFailure | None:
        command = self._command(argv, clients, home, copy / wanted.folder, timeout_s=self._timeout_s)
        try:
            result = await self._runner.run(replace(command, env={**command.env, **env}))
        except CommandNotFoundError as error:
            return RelockFailure(reason="tool-required", detail=f"{error.message}; by hand: {wanted.by_hand}")
        except CommandError as error:
            return RelockFailure(reason="tool-required", detail=error.message)
        if result.exit_code == 0:
            return None
        printed = (result.stderr or result.stdout).decode("utf-8", errors="replace")
        tail = " | ".join(line.strip() for line in printed.splitlines()[-8:] if line.strip())
        text = redact(clean_text(tail, one_line=True, max_chars=500), *clients.secrets)
        text = text.replace(str(copy), ".").replace(str(home), "~")
        return RelockFailure(reason="tool-required", detail=f"{wanted.tool} failed ({result.exit_code}): {text}")

    def _command(
        self, argv: tuple[str, ...], clients: ClientFiles, home: Path, folder: Path, *, timeout_s: float
    ) -> Command:
        env = {
            **clients.env,
            "HOME": str(home),
            "USERPROFILE": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
        }
        return Command(argv=argv, cwd=folder, env=env, inherit=_PASSED_ON, timeout_s=timeout_s)


def _fits(installed: str, named: str) -> bool:
    """Whether an installed version may write for a project that names `named`: the same major."""
    if not named:
        return True
    return installed.partition(".")[0] == named.lstrip("v^~>=").partition(".")[0]


def _lay(folder: Path, files: Mapping[str, bytes], mode: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)


def _read_back(copy: Path, wanted: ToolRelock) -> dict[str, bytes]:
    """What the laid files and the results hold now; other new files are the tool's own scraps and stay behind."""
    found = {}
    for path in {*wanted.files, *wanted.results}:
        place = copy / path
        if place.is_file() and not place.is_symlink():
            found[path] = place.read_bytes()
    return found


def _final(wanted: ToolRelock, path: str) -> bytes | None:
    content = wanted.files.get(path)
    for call in wanted.calls:
        content = call.files.get(path, content)
    return content
