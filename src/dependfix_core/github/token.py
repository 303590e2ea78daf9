"""Where a token comes from when it is needed, and what kind it is."""

import importlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from dependfix_core.connection import FoundToken
from dependfix_core.errors import ConfigurationError


class TokenKind(StrEnum):
    """What the prefix of a token tells about it; advice differs by kind."""

    CLASSIC = "classic"
    FINE_GRAINED = "fine-grained"
    OAUTH = "oauth"
    APP_USER = "app-user"
    INSTALLATION = "installation"
    """A GitHub App's installation, or `GITHUB_TOKEN` of Actions."""
    UNKNOWN = "unknown"


_PREFIXES = (
    ("github_pat_", TokenKind.FINE_GRAINED),
    ("ghp_", TokenKind.CLASSIC),
    ("gho_", TokenKind.OAUTH),
    ("ghu_", TokenKind.APP_USER),
    ("ghs_", TokenKind.INSTALLATION),
)


def token_kind(token: str) -> TokenKind:
    """The kind by prefix; old tokens of forty hexadecimal digits are classic ones."""
    for prefix, kind in _PREFIXES:
        if token.startswith(prefix):
            return kind
    if len(token) == 40 and all(char in "0123456789abcdef" for char in token):
        return TokenKind.CLASSIC
    return TokenKind.UNKNOWN


class TokenSource(Protocol):
    """Gives the token of the moment. Asked before every request, so it should remember."""

    async def token(self) -> str:
        """A usable token.

        Raises:
            AuthenticationError: There is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class StaticToken:
    """One token for the whole life of the process, or the reason why there is none."""

    found: FoundToken = field(default_factory=FoundToken)

    @classmethod
    def of(cls, value: str | None) -> "StaticToken":
        """The source of a token that the caller holds; blanks and quotes around it are dropped.

        Raises:
            ConfigurationError: It holds characters that no token has.
        """
        token = (value or "").strip().strip("\"'").strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError(
                "the token holds characters that no token has", hint="Copy it again, without line breaks."
            )
        return cls(FoundToken(value=token))

    async def token(self) -> str:
        """The token."""
        return self.found.require()

    def __reduce__(self) -> NoReturn:
        """Refuse: a token is not handed to another process."""
        raise ConfigurationError(
            "a token does not go to another process",
            hint="Give a token source that the other process can ask itself, for example ImportedToken.",
        )


@dataclass(frozen=True, slots=True)
class ImportedToken:
    """A token from a callable that every process can import; carries only its name."""

    reference: str
    """`package.module:callable`; it takes nothing and gives the token, or an awaitable of it."""

    async def token(self) -> str:
        """Import the callable and ask it.

        Raises:
            ConfigurationError: The reference names nothing that can be called.
        """
        module, _, name = self.reference.partition(":")
        try:
            target: Callable[[], Any] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(
                f"there is no token source {self.reference}", hint="Name it as package.module:callable."
            ) from error
        value: str | Awaitable[str] = target()
        token = await value if inspect.isawaitable(value) else value
        return await StaticToken.of(str(token)).token()
