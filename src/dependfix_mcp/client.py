"""The library's client as the server uses it: from the settings, made on the first call, one for the server's life."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from dependfix_core.connection import AUTHENTICATION_HINT, PUBLIC_API_URL, FoundToken, web_host
from dependfix_core.errors import AuthenticationError, CommandError
from dependfix_core.process import Command
from dependfix_core.report.folders import ReportFolders
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Settings

if TYPE_CHECKING:
    from dependfix_core.facade import AsyncDependfix, Places
    from dependfix_core.github.app import AppToken

_GH_TIMEOUT_S: Final = 15.0


class SettingsToken:
    """The token that the settings name; `gh` is asked once, on the first request."""

    def __init__(self, services: Services, given: str | None, problem: str = "") -> None:
        self._services = services
        self._given = given
        self._problem = problem
        self._of_gh: str | None = None
        self._app: AppToken | None = None
        self._lock = anyio.Lock()

    async def token(self) -> str:
        """The token.

        Raises:
            AuthenticationError: There is none, or callers over HTTP may not use it.
        """
        settings = self._services.settings
        if settings.transport == "http" and not settings.share_token:
            raise AuthenticationError(
                "the server's GitHub token is not shared with HTTP clients",
                code="auth_missing",
                hint="The operator can share it by starting the server with --share-token.",
            )
        if settings.gh_auth:
            return await self._ask_gh()
        if not self._given and settings.app_id is not None:
            return await self._ask_app()
        return FoundToken(value=self._given or "", problem=self._problem).require()

    async def _ask_app(self) -> str:
        from dependfix_core.github.app import AppToken  # noqa: PLC0415  # only where an App is set

        settings = self._services.settings
        if self._app is None:
            self._app = AppToken(
                settings.app_id or "",
                str(settings.app_private_key or ""),
                installation_id=settings.app_installation_id,
                api_url=settings.github_api_url or PUBLIC_API_URL,
                ca_bundle=str(settings.ca_bundle) if settings.ca_bundle is not None else None,
            )
        token = await self._app.token()
        self._services.late_secrets.add(token)
        return token

    async def _ask_gh(self) -> str:
        async with self._lock:
            if self._of_gh is None:
                self._of_gh = await self._gh_token()
                self._services.late_secrets.add(self._of_gh)
            return self._of_gh

    async def _gh_token(self) -> str:
        settings = self._services.settings
        host = web_host(settings.github_api_url)
        variables = {name: settings.environment[name] for name in _GH_VARIABLES if name in settings.environment}
        command = Command(
            argv=("gh", "auth", "token", "--hostname", host),
            cwd=Path.cwd(),
            env=variables,
            timeout_s=_GH_TIMEOUT_S,
        )
        try:
            result = await self._services.runner.run(command)
        except CommandError as error:
            raise AuthenticationError(
                "gh could not be asked for a token", code="auth_missing", hint=f"{error.message}. {AUTHENTICATION_HINT}"
            ) from error
        token = result.stdout.decode("ascii", "replace").strip()
        if result.exit_code != 0 or not token:
            raise AuthenticationError(
                f"gh has no token for {host}",
                code="auth_missing",
                hint=f"Run `gh auth login --hostname {host}`. {AUTHENTICATION_HINT}",
            )
        return token


_GH_VARIABLES: Final = (
    "GH_CONFIG_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
)


class Client:
    """Makes the client when it is first needed, and closes it with the server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._made: AsyncDependfix | None = None
        self.current = current_folder(services.settings)
        self.folders = report_folders(services.settings)

    async def get(self) -> "AsyncDependfix":
        """The one client of this server."""
        if self._made is None:
            self._made = make_client(self._services)
            self._services.closing.append(self._made.close)
        return self._made

    async def repositories_here(self) -> tuple[str, ...]:
        """What the checkout of the current folder is, if there is one."""
        from dependfix_core.workspace.locate import repositories_in  # noqa: PLC0415  # only when somebody asks

        return await repositories_in(
            self._services.runner, self.current, self._services.settings.github_api_url or PUBLIC_API_URL
        )


def make_places(settings: Settings) -> "Places":
    """The folders of this machine that these settings allow."""
    from dependfix_core.facade import Places  # noqa: PLC0415  # loads the HTTP edge

    return Places(current=current_folder(settings), roots=settings.roots, reports=report_folders(settings))


def make_client(services: Services, *, places: "Places | None" = None) -> "AsyncDependfix":
    """The library's client for these settings."""
    # PyGithub, parsers and the HTTP edge load on first use.
    from dependfix_core.facade import AsyncDependfix, Connection  # noqa: PLC0415  # see above
    from dependfix_core.fixing import FixSettings  # noqa: PLC0415  # see above
    from dependfix_core.pipeline.fix import VerifyCommands  # noqa: PLC0415  # see above

    settings = services.settings
    given, alerts = settings.github_token, settings.alerts_token
    connection = Connection(
        api_url=settings.github_api_url or PUBLIC_API_URL,
        tokens=SettingsToken(services, given, settings.token_problem),
        alerts_tokens=SettingsToken(services, alerts) if alerts is not None else None,
        ca_bundle=str(settings.ca_bundle) if settings.ca_bundle is not None else None,
        max_wait_s=settings.max_wait_s,
        registries=settings.registries,
        offline=settings.offline,
        cache_dir=settings.cache_dir,
        home=settings.home,
        environment=settings.environment,
    )
    return AsyncDependfix(
        connection=connection,
        places=places or make_places(settings),
        runner=services.runner,
        fix=FixSettings(
            relock=settings.relock,
            verify=VerifyCommands.of(settings.verify, settings.verify_env),
            verify_with_tool=settings.verify_with_tool,
        ),
        secrets=services.secrets,
    )


def current_folder(settings: Settings) -> Path | None:
    """Where a checkout is looked for when a call names none."""
    return settings.workdir or settings.project_dir or _working_directory()


def report_folders(settings: Settings) -> ReportFolders:
    """Where reports are written and looked for."""
    return ReportFolders.choose(settings.report_dir, _working_directory() or Path("/"), settings.state_dir)


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None
