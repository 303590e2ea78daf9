"""Finds the checkout that a call works on, and makes sure that it is one of the asked repository."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from dependfix_core.connection import is_loopback, web_host
from dependfix_core.errors import ArgumentError, CommandError, WorkspaceError, WorkspaceMismatchError
from dependfix_core.model.run import Checkout
from dependfix_core.process import Runner, redact
from dependfix_core.workspace.git import GitCheckout, probe_checkout, repositories_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Workplaces:
    """Where a checkout may be when a call names none, and where files may be touched at all."""

    folder: Path | None = None
    """The operator's or host's folder, else the current one; `None` uses no checkout."""
    roots: tuple[Path, ...] = ()
    """Only below these; empty allows every checkout of the asked repository."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCheckout:
    """A checkout of the asked repository."""

    git: GitCheckout
    repository: str
    """As its remote spells it."""

    def view(self) -> Checkout:
        """For the result of a run; the remote's address has no credentials."""
        urls = [url for remote in self.git.remotes for url in remote.urls]
        mine = next((url for url in urls if self.repository.lower() in url.lower()), "")
        return Checkout(path=str(self.git.top), remote=redact(mine), branch=self.git.branch, head=self.git.head)


async def find_checkout(
    runner: Runner,
    *,
    names: Sequence[str],
    api_url: str,
    places: Workplaces,
    work_dir: Path | None = None,
    required: bool = False,
) -> FoundCheckout | None:
    """The checkout of the repository that is called any of `names`: its name now, then old ones.

    A folder that the call itself names has to be one; one that is only the
    default is passed over when it is something else, unless it is `required`.

    Raises:
        ArgumentError: `work_dir` lies outside of the allowed roots, or is no folder.
        WorkspaceMismatchError: There is another repository, or none.
        WorkspaceError: Git does not read it.
        CommandError: Git is missing or failed, and a checkout is needed.
    """
    folder = work_dir if work_dir is not None else places.folder
    explicit = work_dir is not None
    asked = names[0] if names else ""
    if folder is None:
        if required:
            raise WorkspaceMismatchError(f"a checkout of {asked} is needed", hint="Name it with workDir.")
        return None
    folder = await anyio.to_thread.run_sync(_checked, folder, places.roots, explicit)
    found: list[str] = []
    checkout = None
    if folder is not None:
        try:
            checkout = await probe_checkout(runner, folder)
            if checkout is not None:
                found = list(await _names_in(runner, checkout, api_url))
        except (CommandError, WorkspaceError):
            if explicit or required:
                raise
    wanted = {name.lower() for name in names}
    mine = next((name for name in found if name.lower() in wanted), None)
    if checkout is not None and mine is not None:
        return FoundCheckout(git=checkout, repository=mine)
    if explicit or required:
        raise _mismatch(asked, folder, checkout, found)
    return None


async def repositories_in(runner: Runner, folder: Path | None, api_url: str) -> tuple[str, ...]:
    """The repositories that the checkout around `folder` names, `origin` first; none when it is no checkout."""
    if folder is None:
        return ()
    try:
        checkout = await probe_checkout(runner, folder)
        return await _names_in(runner, checkout, api_url) if checkout is not None else ()
    except (CommandError, WorkspaceError):
        return ()


async def _names_in(runner: Runner, checkout: GitCheckout, api_url: str) -> tuple[str, ...]:
    host = web_host(api_url)
    bare = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    return await repositories_of(runner, checkout, host=host, any_host=is_loopback(bare))


def _checked(folder: Path, roots: Sequence[Path], explicit: bool) -> Path | None:  # noqa: FBT001  # called through a thread, by position
    """The folder, resolved; `None` when it is only a default and may not be used."""
    real = folder.resolve()
    if explicit and not real.is_dir():
        raise ArgumentError(
            "workDir: there is no such folder",
            hint="Give the absolute path of a checkout, for example workDir='/home/me/src/shop'.",
            details={"argument": "workDir"},
        )
    if roots and not any(real.is_relative_to(root.resolve()) for root in roots):
        if explicit:
            raise ArgumentError(
                "workDir: outside of the folders that this server may use",
                hint="The operator names them with --root.",
                details={"argument": "workDir"},
            )
        return None
    return real


def _mismatch(
    asked: str, folder: Path | None, checkout: GitCheckout | None, found: Sequence[str]
) -> WorkspaceMismatchError:
    if folder is None:
        return WorkspaceMismatchError(
            f"no folder that this server may use is a checkout of {asked}", hint="Name one with workDir."
        )
    if checkout is None:
        words = "is not in a git checkout"
    elif found:
        words = f"is a checkout of {', '.join(found[:3])}, not of {asked}"
    else:
        words = f"is a checkout without a remote that names {asked}"
    return WorkspaceMismatchError(
        f"{folder} {words}",
        hint=f"Name a checkout of {asked} with workDir, or the repository that is there with repo.",
        details={"folder": str(folder), "found": list(found)},
    )
