"""Tokens of a GitHub App's installation, made by PyGithub and renewed before they end."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from dependfix_core.connection import PUBLIC_API_URL
from dependfix_core.errors import AuthenticationError, NetworkError

if TYPE_CHECKING:
    from github import GithubIntegration

_RENEW_BEFORE: Final = timedelta(minutes=5)
_TIMEOUT_S: Final = 30


class AppToken:
    """The `TokenSource` of one App installation; without an installation id the App's only one is taken."""

    def __init__(
        self,
        app_id: str,
        private_key: str,
        *,
        installation_id: str | None = None,
        api_url: str = PUBLIC_API_URL,
        ca_bundle: str | None = None,
    ) -> None:
        self._app_id = app_id
        self._private_key = private_key
        self._installation_id = installation_id
        self._api_url = api_url
        self._ca_bundle = ca_bundle
        self._lock = anyio.Lock()
        self._token = ""
        self._renew_at = datetime.fromtimestamp(0, UTC)

    def __repr__(self) -> str:
        """Without the key."""
        return f"AppToken(app_id={self._app_id!r})"

    async def token(self) -> str:
        """A token with at least some minutes left.

        Raises:
            AuthenticationError: GitHub does not accept the App, its key or the installation.
            NetworkError: GitHub could not be asked.
        """
        async with self._lock:
            if datetime.now(UTC) >= self._renew_at:
                self._token, ends = await anyio.to_thread.run_sync(self._made)
                self._renew_at = ends - _RENEW_BEFORE
            return self._token

    def _made(self) -> tuple[str, datetime]:
        # PyGithub costs a good part of the start: it loads with the first use.
        from github import Auth, GithubException, GithubIntegration  # noqa: PLC0415  # see above

        try:
            integration = GithubIntegration(
                auth=Auth.AppAuth(self._app_id, self._private_key),
                base_url=self._api_url,
                timeout=_TIMEOUT_S,
                retry=None,
                verify=self._ca_bundle or True,
                seconds_between_requests=0,
            )
            granted = integration.get_access_token(self._installation(integration))
        except AuthenticationError:
            raise
        except GithubException as error:
            raise AuthenticationError(
                f"GitHub does not accept the App {self._app_id} (status {error.status})",
                hint="Check DEPENDFIX_APP_ID, DEPENDFIX_APP_PRIVATE_KEY and DEPENDFIX_APP_INSTALLATION_ID.",
                details={"status": error.status},
            ) from None
        except OSError as error:  # what `requests` raises for connections
            raise NetworkError(
                "GitHub could not be asked for the App's token", details={"kind": type(error).__name__}
            ) from None
        except Exception:  # noqa: BLE001  # the libraries below PyGithub have no root of their own for a key that is none
            # A key that is none; what PyGithub says of it would show parts of it.
            raise AuthenticationError(
                "the App's private key cannot be used", hint="Give the PEM text in DEPENDFIX_APP_PRIVATE_KEY(_FILE)."
            ) from None
        ends = granted.expires_at
        return granted.token, ends if ends.tzinfo is not None else ends.replace(tzinfo=UTC)

    def _installation(self, integration: "GithubIntegration") -> int:
        if self._installation_id is not None:
            return int(self._installation_id)
        found = list(integration.get_installations())
        if len(found) != 1:
            raise AuthenticationError(
                f"the App {self._app_id} has {len(found)} installations",
                hint="Name one with DEPENDFIX_APP_INSTALLATION_ID.",
            )
        return int(found[0].id)
