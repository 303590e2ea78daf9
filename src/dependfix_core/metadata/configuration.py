"""What the user's own client configuration says: registry addresses, and credentials bound to them.

Only the user's files and variables are read here, never a repository's. They
may use `${VAR}`, as their clients allow.
"""

import base64
import configparser
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import yaml

from dependfix_core.errors import ConfigurationError
from dependfix_core.http import Credential


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfiguredAddress:
    """One registry that the user's configuration names."""

    ecosystem: str
    scope: str
    """`@scope` of npm, or empty for all names."""
    url: str
    """Without credentials and trailing slash."""
    why: str
    """The file or variable, for `doctor`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfiguredCredential:
    """A secret for everything below one address."""

    prefix: str
    """`//host[:port]/path/`, as npm writes it."""
    scheme: str
    """Bearer or Basic."""
    value: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientConfiguration:
    """The user's registries, strongest first, and credentials."""

    addresses: tuple[ConfiguredAddress, ...] = ()
    credentials: tuple[ConfiguredCredential, ...] = ()

    def address(self, ecosystem: str, scope: str = "") -> ConfiguredAddress | None:
        """The first one for this ecosystem and exactly this scope."""
        found = (item for item in self.addresses if item.ecosystem == ecosystem and item.scope == scope)
        return next(found, None)

    def credential_for(self, url: str) -> Credential | None:
        """The one with the longest prefix of `url`, bound to its origin; only ever over https or loopback."""
        place = _place(url)
        fitting = [item for item in self.credentials if place.startswith(item.prefix)]
        if not fitting:
            return None
        best = max(fitting, key=lambda item: len(item.prefix))
        try:
            empty = Credential.bearer("", url)
        except ConfigurationError:
            return None
        return Credential(origin=empty.origin, value=f"{best.scheme} {best.value}")

    def secrets(self) -> tuple[str, ...]:
        """Every secret, for redaction."""
        return tuple(item.value for item in self.credentials)


_FILES: Final[tuple[tuple[str, str], ...]] = (
    ("npmrc", ".npmrc"),
    ("yarnrc", ".yarnrc.yml"),
    ("pip", ".config/pip/pip.conf"),
    ("pip", ".pip/pip.conf"),
    ("pip", "Library/Application Support/pip/pip.conf"),
    ("pip", "AppData/Roaming/pip/pip.ini"),
    ("uv", ".config/uv/uv.toml"),
    ("netrc", ".netrc"),
)
_NAMED_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "npmrc": ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig"),
    "pip": ("PIP_CONFIG_FILE",),
}
"""Variables that name another file in the place of the usual ones."""
_NPM_REGISTRY: Final = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_PIP_REGISTRY: Final = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\??\}")


def read_client_configuration(home: Path | None, environ: Mapping[str, str]) -> ClientConfiguration:
    """The configuration of the user whose home is `home`; what cannot be read is left out.

    Variables come before files, as in the clients themselves.
    """
    found = _Found()
    for ecosystem, names in (("npm", _NPM_REGISTRY), ("pip", _PIP_REGISTRY)):
        for name in names:
            if environ.get(name):
                found.add(ecosystem, "", environ[name], name)
    places = [(kind, home / path) for kind, path in _FILES] if home is not None else []
    for kind, variables in _NAMED_FILES.items():
        given = next((environ[name] for name in variables if environ.get(name)), None)
        if given is not None:
            places = [(other, path) for other, path in places if other != kind]
            places.insert(0, (kind, Path(given)))
    for kind, path in places:
        text = _read(path)
        if text is not None:
            _READERS[kind](text, environ, found, path.name)
    return ClientConfiguration(addresses=tuple(found.addresses), credentials=tuple(found.credentials))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size < 1_000_000 else None
    except OSError:
        return None


class _Found:
    """Collects what the files name, in their order."""

    def __init__(self) -> None:
        self.addresses: list[ConfiguredAddress] = []
        self.credentials: list[ConfiguredCredential] = []

    def add(self, ecosystem: str, scope: str, text: str, why: str) -> None:
        """Keep an address without its credentials, and those apart from it."""
        try:
            parts = urlsplit(text.strip())
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            return
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        url = urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))
        self.addresses.append(ConfiguredAddress(ecosystem=ecosystem, scope=scope, url=url, why=why))
        if parts.username:
            self.credentials.append(_basic(_place(url), unquote(parts.username), unquote(parts.password or "")))


Reader = Callable[[str, Mapping[str, str], "_Found", str], None]


def _npmrc(
    text: str,
    environ: Mapping[str, str],
    found: "_Found",
    why: str,
) -> None:
    users: dict[str, str] = {}
    passwords: dict[str, str] = {}
    for key, value in npmrc_entries(text, environ):
        if key == "registry":
            found.add("npm", "", value, why)
        elif key.startswith("@") and key.endswith(":registry"):
            found.add("npm", key.removesuffix(":registry"), value, why)
        elif key.startswith("//"):
            prefix, _, name = key.rpartition(":")
            prefix = prefix if prefix.endswith("/") else f"{prefix}/"
            if name == "_authToken":
                found.credentials.append(ConfiguredCredential(prefix=prefix.lower(), scheme="Bearer", value=value))
            elif name == "_auth":
                found.credentials.append(ConfiguredCredential(prefix=prefix.lower(), scheme="Basic", value=value))
            elif name == "username":
                users[prefix] = value
            elif name == "_password":
                passwords[prefix] = value
    for prefix in users.keys() & passwords.keys():
        try:
            password = base64.b64decode(passwords[prefix], validate=True).decode()
        except ValueError:
            continue
        found.credentials.append(_basic(prefix, users[prefix], password))


def npmrc_entries(text: str, environ: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Keys and values of an `.npmrc`, in file order; `${VAR}` is expanded only when `environ` is given."""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;[" or "=" not in stripped:
            continue
        key, _, value = stripped.partition("=")
        value = value.strip().strip("\"'")
        yield key.strip(), value if environ is None else _expand(value, environ)


def _expand(value: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: environ.get(match[1], match[2] or ""), value)


def _yarnrc(
    text: str,
    environ: Mapping[str, str],
    found: "_Found",
    why: str,
) -> None:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if not isinstance(data, dict):
        return

    def one(settings: Mapping[str, Any], scope: str) -> None:
        server = settings.get("npmRegistryServer")
        if isinstance(server, str):
            address = _expand(server, environ)
            found.add("npm", scope, address, why)
            _yarn_credential(settings, address, environ, found)

    one(data, "")
    for name, settings in _tables(data.get("npmScopes")):
        one(settings, f"@{name}")
    for prefix, settings in _tables(data.get("npmRegistries")):
        _yarn_credential(settings, prefix, environ, found)


def _yarn_credential(settings: Mapping[str, Any], address: str, environ: Mapping[str, str], found: "_Found") -> None:
    token, ident = settings.get("npmAuthToken"), settings.get("npmAuthIdent")
    prefix = _place(address if "://" in address else f"https:{address}")
    if isinstance(token, str) and _expand(token, environ):
        found.credentials.append(ConfiguredCredential(prefix=prefix, scheme="Bearer", value=_expand(token, environ)))
    elif isinstance(ident, str) and _expand(ident, environ):
        pair = _expand(ident, environ)
        encoded = base64.b64encode(pair.encode()).decode() if ":" in pair else pair
        found.credentials.append(ConfiguredCredential(prefix=prefix, scheme="Basic", value=encoded))


def _pip(
    text: str,
    environ: Mapping[str, str],
    found: "_Found",
    why: str,
) -> None:
    del environ  # pip expands nothing in its files
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in ("install", "download", "global"):
        value = parser.get(section, "index-url", fallback="") or parser.get(section, "index_url", fallback="")
        if value.strip():
            found.add("pip", "", value.strip(), why)
    for section in parser.sections():
        for extra in parser.get(section, "extra-index-url", fallback="").split():
            found.add("pip", "extra", extra, why)


def _uv(
    text: str,
    environ: Mapping[str, str],
    found: "_Found",
    why: str,
) -> None:
    del environ  # uv expands nothing in its files
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    indexes = data.get("index")
    for index in indexes if isinstance(indexes, list) else ():
        if isinstance(index, dict) and isinstance(index.get("url"), str):
            scope = "" if index.get("default") else "extra"
            found.add("pip", scope, index["url"], why)
    if isinstance(data.get("index-url"), str):
        found.add("pip", "", data["index-url"], why)


def _netrc(
    text: str,
    environ: Mapping[str, str],
    found: "_Found",
    why: str,
) -> None:
    del environ, why
    words = text.split()
    host = login = ""
    for name, value in pairwise(words):
        if name == "machine":
            host, login = value, ""
        elif name == "login":
            login = value
        elif name == "password" and host and login:
            found.credentials.append(_basic(f"//{host}/", login, value))
            host = login = ""


_READERS: Final[Mapping[str, Reader]] = {
    "npmrc": _npmrc,
    "yarnrc": _yarnrc,
    "pip": _pip,
    "uv": _uv,
    "netrc": _netrc,
}


def _basic(prefix: str, user: str, password: str) -> ConfiguredCredential:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return ConfiguredCredential(prefix=prefix.lower(), scheme="Basic", value=pair)


def _place(url: str) -> str:
    """`//host[:port]/path/` of an address."""
    parts = urlsplit(url)
    return f"//{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}/"


def _tables(value: object) -> Iterable[tuple[str, Mapping[str, Any]]]:
    items = value.items() if isinstance(value, dict) else ()
    return [(str(name), entry) for name, entry in items if isinstance(entry, dict)]
