"""Asks git what a folder is: top level, branch, remotes, uncommitted files.

Only reading commands are run, without hooks, file-system monitors, prompts or
locks, so that neither the configuration of the checkout nor the call changes
anything.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from dependfix_core.errors import CommandError, CommandFailedError, WorkspaceError
from dependfix_core.model.repository import SSH_OVER_HTTPS_HOST, RemoteLocation, locate
from dependfix_core.process import Command, CommandResult, Runner, clean_text, redact

_QUIET: Final = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.quotePath=false",
)
_ENVIRONMENT: Final = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
_TIMEOUT_S: Final = 30.0
_SSH_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHANGED_FIELDS: Final = 9
"""Fields of an ordinary changed entry of `git status --porcelain=v2`, the path last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """A remote and the addresses it stands for: as written, and after `insteadOf`."""

    name: str
    urls: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GitCheckout:
    """A working tree as git sees it."""

    top: Path
    """Absolute top level; paths of results are relative to it."""
    git_dir: Path
    """Absolute; a linked worktree has its own."""
    branch: str | None
    """`None` when the head is detached."""
    head: str | None
    """Commit id; `None` in a repository without commits."""
    remotes: tuple[Remote, ...]
    """Sorted by name, `origin` first."""


async def run_git(runner: Runner, folder: Path, *arguments: str) -> CommandResult:
    """Run a reading git command in `folder`.

    Raises:
        CommandError: Git is missing, was killed, or ran out of time.
    """
    return await runner.run(
        Command(argv=("git", *_QUIET, *arguments), cwd=folder, env=_ENVIRONMENT, timeout_s=_TIMEOUT_S)
    )


async def probe_checkout(runner: Runner, folder: Path) -> GitCheckout | None:
    """The checkout that `folder` lies in, or `None` when it is in none.

    Raises:
        WorkspaceError: Git will not read it (another user owns it, its configuration is broken).
        CommandError: Git is missing or could not do its job.
    """
    if not await anyio.Path(folder).is_dir():
        return None
    answers: dict[str, CommandResult] = {}

    async def ask(name: str, *arguments: str) -> None:
        answers[name] = await run_git(runner, folder, *arguments)

    top = await run_git(runner, folder, "rev-parse", "--show-toplevel")
    if top.exit_code != 0:
        _raise_if_refused(top, folder)
        return None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "git_dir", "rev-parse", "--absolute-git-dir")
            group.start_soon(ask, "branch", "symbolic-ref", "-q", "--short", "HEAD")
            group.start_soon(ask, "head", "rev-parse", "-q", "--verify", "HEAD^{commit}")
            group.start_soon(ask, "effective", "remote", "-v")
            group.start_soon(ask, "written", "config", "-z", "--get-regexp", r"^remote\..*\.url$")
    except* CommandError as errors:
        raise errors.exceptions[0] from None
    if answers["git_dir"].exit_code != 0:
        _raise_if_refused(answers["git_dir"], folder)
        raise _failed(answers["git_dir"])
    return GitCheckout(
        top=Path(_line(top)),
        git_dir=Path(_line(answers["git_dir"])),
        branch=_line(answers["branch"]) or None,
        head=_line(answers["head"]) or None,
        remotes=_remotes(answers["effective"], answers["written"]),
    )


async def dirty_paths(runner: Runner, top: Path, paths: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Paths with uncommitted changes, untracked ones among them, sorted; only among `paths` when some are given.

    Raises:
        CommandError: Git is missing or could not do its job.
    """
    status = ("status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none")
    result = await run_git(runner, top, *status, *(("--", *paths) if paths else ()))
    if result.exit_code != 0:
        raise _failed(result)
    found: set[str] = set()
    for entry in _text(result.stdout).split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "?":
            found.add(rest)
        elif kind in ("1", "u"):
            fields = _CHANGED_FIELDS if kind == "1" else _CHANGED_FIELDS + 2
            found.add(entry.split(" ", fields - 1)[-1])
    return tuple(sorted(found))


async def repositories_of(
    runner: Runner, checkout: GitCheckout, *, host: str, any_host: bool = False
) -> tuple[str, ...]:
    """`owner/name` of every remote that lies on `host`, `origin` first, without repetition.

    An ssh host that is not `host` is looked up in the user's ssh configuration,
    where it may be an alias. With `any_host` only the name counts (the API is a
    loopback address, so no remote can lie on it).
    """
    names: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for remote in checkout.remotes:
        for url in remote.urls:
            place = locate(url)
            if place is not None and (any_host or await _lies_on(runner, checkout, place, host, aliases)):
                names.setdefault(place.full_name.lower(), place.full_name)
    return tuple(names.values())


async def _lies_on(
    runner: Runner, checkout: GitCheckout, place: RemoteLocation, host: str, aliases: dict[str, str]
) -> bool:
    if place.host == host:
        return True
    if not place.is_ssh:
        return False
    ssh_host = host.partition(":")[0]
    if place.host not in aliases:
        aliases[place.host] = place.host
        if place.host not in (ssh_host, SSH_OVER_HTTPS_HOST):
            aliases[place.host] = await _resolve_alias(runner, checkout, place.host)
    real = aliases[place.host]
    return real == ssh_host or (real == SSH_OVER_HTTPS_HOST and ssh_host == "github.com")


async def _resolve_alias(runner: Runner, checkout: GitCheckout, name: str) -> str:
    """What the user's ssh configuration calls `name`; itself when ssh is missing or does not know it."""
    if not _SSH_HOST.fullmatch(name):
        return name
    try:
        result = await runner.run(Command(argv=("ssh", "-G", "--", name), cwd=checkout.top, timeout_s=10))
    except CommandError:
        return name
    for line in _text(result.stdout).splitlines():
        key, _, value = line.partition(" ")
        if key == "hostname":
            return value.strip().lower()
    return name


def _remotes(effective: CommandResult, written: CommandResult) -> tuple[Remote, ...]:
    urls: dict[str, dict[str, None]] = {}
    for line in _text(effective.stdout).splitlines():
        name, tab, rest = line.partition("\t")
        if tab:
            urls.setdefault(name, {})[rest.removesuffix(" (fetch)").removesuffix(" (push)")] = None
    for entry in _text(written.stdout).split("\0"):
        key, newline, url = entry.partition("\n")
        if newline:
            urls.setdefault(key.removeprefix("remote.").removesuffix(".url"), {})[url] = None
    ordered = sorted(urls, key=lambda name: (name != "origin", name))
    return tuple(Remote(name=name, urls=tuple(urls[name])) for name in ordered)


def _raise_if_refused(result: CommandResult, folder: Path) -> None:
    said = _text(result.stderr)
    if "dubious ownership" in said:
        raise WorkspaceError(
            "git does not read this checkout, because another user owns it",
            hint=f"If you trust it: git config --global --add safe.directory {folder}",
        )
    if "not a git repository" not in said and "must be run in a work tree" not in said:
        raise WorkspaceError(
            "git cannot read this checkout", details={"git": clean_text(redact(said), max_chars=300, one_line=True)}
        )


def _failed(result: CommandResult) -> CommandFailedError:
    return CommandFailedError(
        f"git {result.argv[len(_QUIET) + 1]} failed",
        argv=result.argv,
        exit_code=result.exit_code,
        stderr_tail=clean_text(redact(_text(result.stderr)), max_chars=500),
    )


def _line(result: CommandResult) -> str:
    return _text(result.stdout).removesuffix("\n").removesuffix("\r") if result.exit_code == 0 else ""


def _text(raw: bytes) -> str:
    # File names need not be UTF-8: kept so that they name the same file again.
    return raw.decode("utf-8", "surrogateescape")
