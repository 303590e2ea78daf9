"""What an environment says of the machine and its user, as pure rules on a mapping.

The server's settings and `Dependfix.from_env` go by the same ones.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from dependfix_core.connection import is_unexpanded

REGISTRY_KEYS: Final = (
    "npm",
    "pip",
    "maven",
    "go",
    "go-sum",
    "rubygems",
    "composer",
    "nuget",
    "rust",
    "erlang",
    "pub",
    "swift",
    "actions",
    "other",
)
"""GitHub's ecosystem names, and `go-sum` for Go's checksum database."""

# The names that OpenSSL, requests and curl know; the first one wins, as in httpx.
_CA_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_FOLDER_NAME: Final = "dependfix-mcp"


def registry_variable(key: str) -> str:
    """The variable that names the registry of one of `REGISTRY_KEYS`."""
    return f"DEPENDFIX_REGISTRY_{key.upper().replace('-', '_')}"


def home_of(environ: Mapping[str, str]) -> Path | None:
    """The user's home folder; `None` for a user without one."""
    value = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
    return Path(value) if value and Path(value).is_absolute() else None


def user_folder(environ: Mapping[str, str], kind: Literal["cache", "state"]) -> Path | None:
    """The folder for what is kept between runs, by the platform's rules; `None` for a user without a home.

    A shared temporary folder is no replacement: others could have put something there before us.
    """
    explicit = environ.get("XDG_CACHE_HOME" if kind == "cache" else "XDG_STATE_HOME", "")
    home = home_of(environ)
    if explicit and Path(explicit).is_absolute():
        return Path(explicit) / _FOLDER_NAME
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "")
        if local:
            return Path(local) / _FOLDER_NAME / kind
    if home is None:
        return None
    if sys.platform == "darwin":
        return home / "Library" / ("Caches" if kind == "cache" else "Application Support") / _FOLDER_NAME
    return home / (".cache" if kind == "cache" else ".local/state") / _FOLDER_NAME


def ca_bundle_of(environ: Mapping[str, str]) -> Path | None:
    """Certificates that are trusted instead of the built-in ones, as the machine's own variables name them."""
    for name in _CA_VARIABLES:
        value = environ.get(name, "").strip()
        if value and not is_unexpanded(value) and "\0" not in value:
            return Path(value)
    return None
