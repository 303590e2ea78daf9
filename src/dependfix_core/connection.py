"""Which GitHub is meant and with which token: pure rules that the library and the server share."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from dependfix_core.errors import AuthenticationError, ConfigurationError

PUBLIC_API_URL: Final = "https://api.github.com"
TOKEN_VARIABLES: Final = ("DEPENDFIX_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
"""Where a token is looked for, in this order."""
ENTERPRISE_TOKEN_VARIABLE: Final = "GH_ENTERPRISE_TOKEN"  # noqa: S105  # a variable's name
"""Looked at last, and only when the service is not the public one."""
ALERTS_TOKEN_VARIABLE: Final = "DEPENDFIX_ALERTS_TOKEN"  # noqa: S105  # a variable's name
API_URL_VARIABLE: Final = "GITHUB_API_URL"

AUTHENTICATION_HINT: Final = (
    "Create a fine-grained token with the repository permission 'Dependabot alerts: read' (to fix, also "
    "'Contents' and 'Pull requests: write') and put it into the variable GITHUB_TOKEN of the server's environment."
)

_UNEXPANDED: Final = re.compile(r"\$\{[^{}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|%[A-Za-z_][A-Za-z0-9_]*%")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


def is_unexpanded(value: str) -> bool:
    """Whether `value` still is a reference like `${NAME}` that the host should have replaced."""
    return _UNEXPANDED.fullmatch(value.strip()) is not None


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine only."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def normalise_api_url(text: str) -> str:
    """The REST base without a trailing slash for whatever people write: a host, a web address, an API address.

    `github.com` and an empty text are the public service, `SUB.ghe.com` is
    `https://api.SUB.ghe.com`, any other host is an Enterprise Server with
    `/api/v3`. A loopback address and an explicit path are taken as they are.

    Raises:
        ConfigurationError: No address, a scheme other than https, or credentials in it.
    """
    written = text.strip().rstrip("/")
    if not written:
        return PUBLIC_API_URL
    try:
        parts = urlsplit(written if "://" in written else f"https://{written}")
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise ConfigurationError("not an address of a GitHub API", hint="For example https://HOST/api/v3.") from error
    if ":" in host:
        host = f"[{host}]"
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("credentials have no place in the API address", hint="Use GITHUB_TOKEN.")
    if not _HOST.fullmatch(host) or parts.query or parts.fragment:
        raise ConfigurationError("not an address of a GitHub API", hint="For example https://HOST/api/v3.")
    loopback = is_loopback(host)
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
        raise ConfigurationError(
            "only https is allowed (http on a loopback address)", hint="For example https://HOST/api/v3."
        )
    path = parts.path.rstrip("/")
    address = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    if host in ("github.com", "www.github.com", "api.github.com"):
        return PUBLIC_API_URL
    if host.endswith(".ghe.com"):
        return f"https://{host}" if host.startswith("api.") else f"https://api.{host}"
    if path or loopback:
        return address + path
    return f"{address}/api/v3"


def is_public(api_url: str) -> bool:
    """Whether `api_url` (normalised) is the public service."""
    return api_url in ("", PUBLIC_API_URL)


def web_host(api_url: str) -> str:
    """Host, with a port if there is one, under which people and git see the repositories."""
    if is_public(api_url):
        return "github.com"
    location = urlsplit(api_url).netloc.lower()
    return location.removeprefix("api.") if location.endswith(".ghe.com") else location


def graphql_url(api_url: str) -> str:
    """The GraphQL address that belongs to a normalised REST base."""
    base = api_url or PUBLIC_API_URL
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else f"{base}/graphql"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundToken:
    """The token of an environment, or why there is none."""

    value: str = ""
    name: str = ""
    """The variable that gave it."""
    problem: str = ""
    """What is wrong with a variable that is set but holds no token; names the variable, never its value."""

    def __repr__(self) -> str:
        """Without the value."""
        return f"FoundToken(name={self.name!r}, problem={self.problem!r})"

    def require(self) -> str:
        """The token.

        Raises:
            AuthenticationError: There is none (`auth_missing`).
        """
        if self.value:
            return self.value
        hint = f"{self.problem} {AUTHENTICATION_HINT}" if self.problem else AUTHENTICATION_HINT
        raise AuthenticationError("GITHUB_TOKEN not set", code="auth_missing", hint=hint)


def find_token(environ: Mapping[str, str], api_url: str = "") -> FoundToken:
    """The first usable token of `environ`; a reference that was not expanded counts as not set, and is named."""
    names = TOKEN_VARIABLES if is_public(api_url) else (*TOKEN_VARIABLES, ENTERPRISE_TOKEN_VARIABLE)
    return _first_token(environ, names)


def find_alerts_token(environ: Mapping[str, str]) -> FoundToken:
    """The token that is used for alerts only."""
    return _first_token(environ, (ALERTS_TOKEN_VARIABLE,))


def _first_token(environ: Mapping[str, str], names: tuple[str, ...]) -> FoundToken:
    problem = ""
    for name in names:
        # Quotes around it come from files that are no shell scripts.
        value = environ.get(name, "").strip().strip("\"'").strip()
        if not value:
            continue
        if is_unexpanded(value):
            problem = problem or f"{name} still reads like a reference: the host did not expand it."
        elif not _TOKEN.fullmatch(value):
            problem = problem or f"{name} holds characters that no token has."
        else:
            return FoundToken(value=value, name=name, problem=problem)
    return FoundToken(problem=problem)
