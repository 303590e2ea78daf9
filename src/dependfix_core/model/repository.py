"""Names of repositories, in the forms people and git write them."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from dependfix_core.errors import ArgumentError

_OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?"
_NAME: Final = r"[A-Za-z0-9._-]{1,100}"
_FULL_NAME: Final = re.compile(rf"({_OWNER})/({_NAME})")
_SCP: Final = re.compile(r"(?:[A-Za-z0-9._-]+@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?!//)/?(.+)")
SSH_OVER_HTTPS_HOST: Final = "ssh.github.com"
"""Serves git over ssh on port 443; the repositories are those of github.com."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteLocation:
    """Where a git address points: a host and what may be `owner/name` on it."""

    host: str
    """Lower case, with a port where http has one; an ssh port is left out."""
    full_name: str
    is_ssh: bool


def full_name_of(text: str) -> str | None:
    """`owner/name` when `text` is one (a `.git` at its end is dropped), else `None`."""
    match = _FULL_NAME.fullmatch(text)
    if match is None:
        return None
    name = match[2].removesuffix(".git")
    return f"{match[1]}/{name}" if name not in ("", ".", "..") else None


def locate(address: str) -> RemoteLocation | None:
    """Host and repository of a git address; `None` for a path and for everything that names no repository."""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return None
        if parts.scheme not in ("https", "http", "ssh", "git", "git+ssh", "ssh+git"):
            return None
        is_ssh = "ssh" in parts.scheme
        location, path = (host if is_ssh or not port else f"{host}:{port}"), parts.path
    else:
        match = _SCP.fullmatch(address)
        if match is None:
            return None
        is_ssh, location, path = True, match[1].lower(), match[2]
    full_name = full_name_of(path.strip("/"))
    return RemoteLocation(host=location, full_name=full_name, is_ssh=is_ssh) if location and full_name else None


def parse_repository(text: str, *, host: str = "github.com") -> str:
    """`owner/name` from that form, an `https://HOST/owner/name(.git)` or a `git@HOST:owner/name.git` one.

    Raises:
        ArgumentError: Anything else, another host among it; `details.argument` is `repo`.
    """
    written = text.strip()
    full_name = full_name_of(written)
    if full_name is None:
        place = locate(written.rstrip("/"))
        if place is not None and (place.host == host or (place.is_ssh and place.host == host.partition(":")[0])):
            full_name = place.full_name
    if full_name is None:
        raise ArgumentError(
            f"repo: not a repository of {host}",
            hint=f"Give it as owner/name or as an address of {host}, for example repo='octo-org/octo-repo'.",
            details={"argument": "repo"},
        )
    return full_name
