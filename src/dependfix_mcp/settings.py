"""The settings as one frozen value. This module is the only reader of the environment."""

import argparse
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from dependfix_core.connection import (
    PUBLIC_API_URL,
    TOKEN_VARIABLES,
    FoundToken,
    find_alerts_token,
    find_token,
    is_loopback,
    is_unexpanded,
    normalise_api_url,
)
from dependfix_core.environment import REGISTRY_KEYS, ca_bundle_of, home_of, registry_variable, user_folder
from dependfix_core.errors import ConfigurationError

T = TypeVar("T")

TOOLSETS: Final = ("dependfix", "suspec", "sudocode")
Relock = Literal["auto", "in-process", "tool"]
YoungFixes = Literal["refuse", "exclude"]
Transport = Literal["stdio", "http"]


class Secret(str):
    """A text that does not show itself in `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret('***')"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set, checked; the defaults are those of the documentation."""

    github_token: Secret | None = None
    token_problem: str = ""
    """Why a token variable that is set gives no token; without the value."""
    alerts_token: Secret | None = None
    app_id: str | None = None
    app_private_key: Secret | None = None
    app_installation_id: str | None = None
    gh_auth: bool = False
    github_api_url: str = ""
    """Normalised REST base without a trailing slash; empty means the public service."""
    ca_bundle: Path | None = None
    """Certificates that are trusted instead of the built-in ones, as the machine's own variables name them."""
    registries: dict[str, str] = field(default_factory=dict)
    """Ecosystem (or `go-sum`) → base address."""
    offline: bool = False
    cache_dir: Path | None = None
    state_dir: Path | None = None
    """The user's folder for what should outlive a run, when the machine has one."""
    home: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """For the user's own configuration of registry clients, which may refer to variables."""
    toolsets: tuple[str, ...] = TOOLSETS
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    read_only: bool = False
    confirm: bool = False
    workdir: Path | None = None
    roots: tuple[Path, ...] = ()
    project_dir: Path | None = None
    """The host's project variable (`CLAUDE_PROJECT_DIR`)."""
    repos: tuple[str, ...] = ()
    report_dir: Path | None = None
    relock: Relock = "auto"
    verify: tuple[str, ...] = ()
    verify_env: tuple[str, ...] = ()
    verify_with_tool: bool = False
    young_fixes: YoungFixes = "refuse"
    cooldown_days: int = 0
    max_wait_s: int = 60
    answer_within_s: int = 45
    run_timeout_s: int = 1800
    suspec_bin: str | None = None
    node_bin: str = "node"
    suspec_timeout_s: int = 30
    sudocode_path: str | None = None
    sudocode_db: str | None = None
    sudocode_working_dir: Path | None = None
    sudocode_actor: str | None = None
    sudocode_extras: bool = False
    sudocode_timeout_s: int = 30
    sudocode_max_chars: int = 20_000
    """Rows of one list answer, as characters of JSON."""
    transport: Transport = "stdio"
    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    http_token: Secret | None = None
    share_token: bool = False

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is set, for redaction."""
        held = (self.github_token, self.alerts_token, self.app_private_key, self.http_token)
        return tuple(str(secret) for secret in held if secret)


class SettingsError(ConfigurationError):
    """Settings that cannot be used; `faults` has all of them, one line each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One row of the documentation's table: how a value is given and what holds without it."""

    field: str
    flag: str = ""
    environment: tuple[str, ...] = ()
    """Names in order of precedence."""
    default: str = ""
    """As the documentation writes it."""
    about: str
    metavar: str = ""
    """Empty for a switch."""
    repeatable: bool = False


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        field="github_token",
        environment=(*TOKEN_VARIABLES, "GH_ENTERPRISE_TOKEN"),
        default="none",
        about="token for GitHub; the last one for Enterprise Server only",
    ),
    Setting(
        field="alerts_token", environment=("DEPENDFIX_ALERTS_TOKEN",), default="none", about="token for alerts only"
    ),
    Setting(field="app_id", environment=("DEPENDFIX_APP_ID",), default="none", about="GitHub App: its id"),
    Setting(
        field="app_private_key",
        environment=("DEPENDFIX_APP_PRIVATE_KEY", "DEPENDFIX_APP_PRIVATE_KEY_FILE"),
        default="none",
        about="GitHub App: its private key (PEM), or the file that holds it",
    ),
    Setting(
        field="app_installation_id",
        environment=("DEPENDFIX_APP_INSTALLATION_ID",),
        default="none",
        about="GitHub App: the installation",
    ),
    Setting(field="gh_auth", flag="--gh-auth", default="off", about="take the token from `gh auth token`"),
    Setting(
        field="github_api_url",
        flag="--github-api-url",
        environment=("GITHUB_API_URL",),
        default=PUBLIC_API_URL,
        about="address of the GitHub API; a host name is enough",
        metavar="URL",
    ),
    Setting(
        field="registries",
        flag="--registry",
        environment=tuple(registry_variable(ecosystem) for ecosystem in REGISTRY_KEYS),
        default="the user's and the project's configuration",
        about=f"registry of an ecosystem ({', '.join(REGISTRY_KEYS)})",
        metavar="ECOSYSTEM=URL",
        repeatable=True,
    ),
    Setting(
        field="offline",
        flag="--offline",
        environment=("DEPENDFIX_OFFLINE",),
        default="off",
        about="use only registry records that are cached",
    ),
    Setting(
        field="cache_dir",
        flag="--cache-dir",
        environment=("DEPENDFIX_CACHE_DIR",),
        default="the user's cache folder",
        about="where registry records are kept",
        metavar="FOLDER",
    ),
    Setting(
        field="toolsets",
        flag="--toolsets",
        environment=("DEPENDFIX_TOOLSETS",),
        default="all",
        about=f"which toolsets are served ({', '.join(TOOLSETS)}, all)",
        metavar="NAMES",
    ),
    Setting(
        field="tools",
        flag="--tools",
        environment=("DEPENDFIX_TOOLS",),
        default="none",
        about="single tools beyond the toolsets",
        metavar="NAMES",
    ),
    Setting(
        field="exclude_tools",
        flag="--exclude-tools",
        environment=("DEPENDFIX_EXCLUDE_TOOLS",),
        default="none",
        about="tools that are not served",
        metavar="NAMES",
    ),
    Setting(
        field="read_only",
        flag="--read-only",
        environment=("DEPENDFIX_READ_ONLY",),
        default="off",
        about="serve only tools that change nothing",
    ),
    Setting(
        field="confirm",
        flag="--confirm",
        environment=("DEPENDFIX_CONFIRM",),
        default="off",
        about="ask the user before each write; refuse where the client cannot ask",
    ),
    Setting(
        field="workdir",
        flag="--workdir",
        environment=("DEPENDFIX_WORKDIR",),
        default="the host's project folder, else the current directory",
        about="checkout to work on when a call names none",
        metavar="FOLDER",
    ),
    Setting(
        field="roots",
        flag="--root",
        environment=("DEPENDFIX_ROOTS",),
        default="any checkout of the asked repository",
        about=f"only below these folders may files be read and written (in the variable separated by {os.pathsep!r})",
        metavar="FOLDER",
        repeatable=True,
    ),
    Setting(
        field="repos",
        flag="--repos",
        environment=("DEPENDFIX_REPOS",),
        default="any",
        about="only repositories that match one of these patterns, like octo/*",
        metavar="PATTERNS",
    ),
    Setting(
        field="report_dir",
        flag="--report-dir",
        environment=("DEPENDFIX_REPORT_DIR", "DEPENDFIX_MCP_REPORT_DIR"),
        default="./dependfix-reports",
        about="where reports are written",
        metavar="FOLDER",
    ),
    Setting(
        field="relock",
        flag="--relock",
        environment=("DEPENDFIX_RELOCK",),
        default="auto",
        about="who writes lockfiles: auto, in-process, tool",
        metavar="HOW",
    ),
    Setting(
        field="verify",
        flag="--verify",
        environment=("DEPENDFIX_VERIFY",),
        default="none",
        about="command that must succeed after a fix (in the variable one a line)",
        metavar="COMMAND",
        repeatable=True,
    ),
    Setting(
        field="verify_env",
        flag="--verify-env",
        environment=("DEPENDFIX_VERIFY_ENV",),
        default="none",
        about="variable that those commands may see",
        metavar="NAME",
        repeatable=True,
    ),
    Setting(
        field="verify_with_tool",
        flag="--verify-with-tool",
        environment=("DEPENDFIX_VERIFY_WITH_TOOL",),
        default="off",
        about="let the real package manager check each fix",
    ),
    Setting(
        field="young_fixes",
        flag="--young-fixes",
        environment=("DEPENDFIX_YOUNG_FIXES",),
        default="refuse",
        about="a fix younger than the project's release-age rule: refuse, or exclude it from the rule",
        metavar="HOW",
    ),
    Setting(
        field="cooldown_days",
        flag="--cooldown-days",
        environment=("DEPENDFIX_COOLDOWN_DAYS",),
        default="0",
        about="take no release younger than this",
        metavar="DAYS",
    ),
    Setting(
        field="max_wait_s",
        flag="--max-wait",
        environment=("DEPENDFIX_MAX_WAIT",),
        default="60",
        about="longest wait for a rate limit",
        metavar="SECONDS",
    ),
    Setting(
        field="answer_within_s",
        flag="--answer-within",
        environment=("DEPENDFIX_ANSWER_WITHIN",),
        default="45",
        about="after this run_scan answers and goes on in the background",
        metavar="SECONDS",
    ),
    Setting(
        field="run_timeout_s",
        flag="--run-timeout",
        environment=("DEPENDFIX_RUN_TIMEOUT",),
        default="1800",
        about="longest run; then it is rolled back",
        metavar="SECONDS",
    ),
    Setting(
        field="suspec_bin",
        flag="--suspec-bin",
        environment=("SUSPEC_BIN",),
        default="suspec on PATH",
        about="the suspec executable",
        metavar="PATH",
    ),
    Setting(
        field="node_bin",
        flag="--node-bin",
        environment=("NODE_BIN",),
        default="node on PATH",
        about="node, for executables that are scripts",
        metavar="PATH",
    ),
    Setting(
        field="suspec_timeout_s",
        flag="--suspec-timeout",
        environment=("SUSPEC_TIMEOUT",),
        default="30",
        about="longest run of a suspec check; then it is stopped",
        metavar="SECONDS",
    ),
    Setting(
        field="sudocode_path",
        flag="--sudocode-path",
        environment=("SUDOCODE_PATH",),
        default="sudocode on PATH",
        about="the sudocode executable",
        metavar="PATH",
    ),
    Setting(
        field="sudocode_db",
        environment=("SUDOCODE_DB",),
        default="the project's",
        about="database of sudocode",
    ),
    Setting(
        field="sudocode_working_dir",
        environment=("SUDOCODE_WORKING_DIR",),
        default="as workdir",
        about="project folder of sudocode",
    ),
    Setting(field="sudocode_actor", environment=("SUDOCODE_ACTOR",), default="none", about="who sudocode records"),
    Setting(field="sudocode_extras", flag="--sudocode-extras", default="off", about="serve further tools for sudocode"),
    Setting(
        field="sudocode_timeout_s",
        flag="--sudocode-timeout",
        environment=("SUDOCODE_TIMEOUT",),
        default="30",
        about="longest run of sudocode; then it is stopped",
        metavar="SECONDS",
    ),
    Setting(
        field="sudocode_max_chars",
        flag="--sudocode-max-chars",
        environment=("SUDOCODE_MAX_CHARS",),
        default="20000",
        about="characters of one list of sudocode",
        metavar="N",
    ),
    Setting(
        field="transport",
        flag="--transport",
        default="stdio",
        about="stdio or http (streamable-http is the same)",
        metavar="NAME",
    ),
    Setting(
        field="host",
        flag="--host",
        default="127.0.0.1",
        about="address to bind; beyond loopback it needs --allowed-host and DEPENDFIX_HTTP_TOKEN",
        metavar="ADDRESS",
    ),
    Setting(field="port", flag="--port", default="8000", about="port to bind; 0 picks a free one", metavar="NUMBER"),
    Setting(
        field="allowed_hosts",
        flag="--allowed-host",
        default="the loopback names",
        about="name under which HTTP clients may reach the server",
        metavar="HOST[:PORT]",
        repeatable=True,
    ),
    Setting(
        field="http_token",
        environment=("DEPENDFIX_HTTP_TOKEN",),
        default="none",
        about="bearer token that HTTP clients must send",
    ),
    Setting(
        field="share_token", flag="--share-token", default="off", about="let HTTP clients use this process's token"
    ),
)
"""Every setting, in the documentation's order."""

_FIRST_FLAG: Final = {setting.field: setting for setting in SETTINGS}


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the flags of `SETTINGS`; values stay texts, an absent flag is absent from the namespace."""
    for setting in SETTINGS:
        if not setting.flag:
            continue
        about = f"{setting.about} (default: {setting.default})".replace("%", "%%")
        if not setting.metavar:
            parser.add_argument(
                setting.flag, dest=setting.field, action="store_true", default=argparse.SUPPRESS, help=about
            )
        else:
            parser.add_argument(
                setting.flag,
                dest=setting.field,
                action="append" if setting.repeatable else "store",
                metavar=setting.metavar,
                nargs="?",  # a value that is missing is one fault among others, see `_Given`
                const="",
                default=argparse.SUPPRESS,
                help=about,
            )


def process_environment() -> Mapping[str, str]:
    """The environment of this process, as it was given to it."""
    return dict(os.environ)  # noqa: TID251  # the one place that reads it


def load_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from flags and environment; a function of its arguments, except that a key file is read.

    Raises:
        SettingsError: With every fault there is.
    """
    parser = QuietParser(add_help=False, allow_abbrev=False)
    add_setting_flags(parser)
    flags, unknown = parser.parse_known_args(list(argv))
    return read_settings(vars(flags), environ, [f"{text}: unknown" for text in unknown])


class SettingHelp(argparse.HelpFormatter):
    """Shows the values of flags as required."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return action.metavar if isinstance(action.metavar, str) else super()._format_args(action, default_metavar)


class QuietParser(argparse.ArgumentParser):
    """Raises instead of printing and leaving."""

    def error(self, message: str) -> Any:
        """Turn a fault of the command line into the one error that this module raises."""
        raise SettingsError([message])


def read_settings(flags: Mapping[str, Any], environ: Mapping[str, str], faults: Sequence[str] = ()) -> Settings:
    """Settings from parsed flags and the environment.

    Raises:
        SettingsError: With every fault there is, `faults` first.
    """
    given = _Given(flags, environ, faults)
    api_url = given.one("github_api_url", _api_url, "")
    http_token = given.secret("http_token")
    transport = given.one("transport", _transport, "stdio")
    host = given.one("host", _bind_host, "127.0.0.1")
    allowed_hosts = given.many("allowed_hosts", _allowed_host)
    if transport == "http" and not is_loopback(host):
        if not allowed_hosts:
            given.fault("--host", "an address beyond loopback needs --allowed-host")
        if not http_token:
            given.fault("--host", "an address beyond loopback needs DEPENDFIX_HTTP_TOKEN")
    app_id, app_key = given.one("app_id", _number, None), given.private_key()
    if (app_id is None) != (app_key is None) and not given.has_fault("DEPENDFIX_APP_"):
        given.fault("DEPENDFIX_APP_ID", "a GitHub App needs both its id and its private key")
    tokens: FoundToken = find_token(environ, api_url)
    alerts = find_alerts_token(environ)
    settings = Settings(
        github_token=Secret(tokens.value) if tokens.value else None,
        token_problem=tokens.problem or alerts.problem,
        alerts_token=Secret(alerts.value) if alerts.value else None,
        app_id=app_id,
        app_private_key=app_key,
        app_installation_id=given.one("app_installation_id", _number, None),
        gh_auth=given.switch("gh_auth"),
        github_api_url="" if api_url == PUBLIC_API_URL else api_url,
        ca_bundle=ca_bundle_of(environ),
        registries=given.registries(),
        offline=given.switch("offline"),
        cache_dir=given.one("cache_dir", given.path, user_folder(environ, "cache")),
        state_dir=user_folder(environ, "state"),
        home=home_of(environ),
        environment=dict(environ),
        toolsets=given.toolsets(),
        tools=given.many("tools", _name, separator=","),
        exclude_tools=given.many("exclude_tools", _name, separator=","),
        read_only=given.switch("read_only"),
        confirm=given.switch("confirm"),
        workdir=given.one("workdir", given.path, None),
        roots=given.many("roots", given.path, separator=os.pathsep),
        project_dir=_project_dir(environ),
        repos=given.many("repos", _repository_pattern, separator=","),
        report_dir=given.one("report_dir", given.path, None),
        relock=given.one("relock", _choice(Relock), "auto"),
        verify=given.many("verify", _command, separator="\n"),
        verify_env=given.many("verify_env", _variable, separator=","),
        verify_with_tool=given.switch("verify_with_tool"),
        young_fixes=given.one("young_fixes", _choice(YoungFixes), "refuse"),
        cooldown_days=given.one("cooldown_days", _whole(0, 3650), 0),
        max_wait_s=given.one("max_wait_s", _whole(0, 86_400), 60),
        answer_within_s=given.one("answer_within_s", _whole(0, 3600), 45),
        run_timeout_s=given.one("run_timeout_s", _whole(1, 86_400), 1800),
        suspec_bin=given.one("suspec_bin", _line, None),
        node_bin=given.one("node_bin", _line, "node"),
        suspec_timeout_s=given.one("suspec_timeout_s", _whole(1, 3600), 30),
        sudocode_path=given.one("sudocode_path", _line, None),
        sudocode_db=given.one("sudocode_db", _line, None),
        sudocode_working_dir=given.one("sudocode_working_dir", given.path, None),
        sudocode_actor=given.one("sudocode_actor", _line, None),
        sudocode_extras=given.switch("sudocode_extras"),
        sudocode_timeout_s=given.one("sudocode_timeout_s", _whole(1, 3600), 30),
        sudocode_max_chars=given.one("sudocode_max_chars", _whole(2_000, 50_000), 20_000),
        transport=transport,
        host=host,
        port=given.one("port", _whole(0, 65_535), 8000),
        allowed_hosts=allowed_hosts,
        http_token=http_token,
        share_token=given.switch("share_token"),
    )
    given.finish()
    return settings


class _Given:
    """Flags and variables, looked up by precedence; what cannot be read is noted, not raised."""

    def __init__(self, flags: Mapping[str, Any], environ: Mapping[str, str], faults: Sequence[str]) -> None:
        self._flags = flags
        self._environ = environ
        self._faults = list(faults)

    def finish(self) -> None:
        if self._faults:
            raise SettingsError(self._faults)

    def fault(self, source: str, rule: str) -> None:
        self._faults.append(f"{source}: {rule}")

    def has_fault(self, prefix: str) -> bool:
        return any(line.startswith(prefix) for line in self._faults)

    def _raw(self, name: str) -> tuple[str, Any] | None:
        """(where it comes from, value) of a setting that is set."""
        setting = _FIRST_FLAG[name]
        value = self._flags.get(name)
        if value is not None and value in ("", [""]):
            self.fault(setting.flag, "needs a value")
            return None
        if value is not None:
            return setting.flag, value
        for variable in setting.environment:
            value = self._environ.get(variable, "").strip()
            if not value:
                continue
            if is_unexpanded(value):
                self.fault(variable, "still reads like a reference such as ${NAME}: the host did not expand it")
                return None
            return variable, value
        return None

    def _read(self, source: str, text: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(text)
        except ValueError as error:
            self.fault(source, str(error))
        except ConfigurationError as error:
            self.fault(source, error.message)
        return None

    def one(self, name: str, parse: Callable[[str], T], default: Any) -> Any:
        found = self._raw(name)
        if found is None:
            return default
        value = self._read(found[0], found[1], parse)
        return default if value is None else value

    def many(self, name: str, parse: Callable[[str], T], separator: str = "") -> tuple[T, ...]:
        found = self._raw(name)
        if found is None:
            return ()
        source, value = found
        # A repeated flag has one value each time; a flag that takes a list, and a variable, are split.
        texts = value if isinstance(value, list) else value.split(separator) if separator else [value]
        read = (self._read(source, text.strip(), parse) for text in texts if text.strip())
        return tuple(dict.fromkeys(item for item in read if item is not None))

    def switch(self, name: str) -> bool:
        found = self._raw(name)
        if found is None:
            return False
        return found[1] is True or self._read(found[0], found[1], _truth) is True

    def secret(self, name: str) -> Secret | None:
        found = self._raw(name)
        return Secret(found[1]) if found else None

    def private_key(self) -> Secret | None:
        found = self._raw("app_private_key")
        if found is None:
            return None
        source, text = found
        if source.endswith("_FILE"):
            read = self._read(source, text, self._file_text)
            if read is None:
                return None
            text = read
        pem = text.replace("\\n", "\n").strip()
        if not pem.startswith("-----BEGIN "):
            self.fault(source, "not a private key in PEM form")
            return None
        return Secret(f"{pem}\n")

    def _file_text(self, text: str) -> str:
        try:
            return self.path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError("the file cannot be read") from error

    def path(self, text: str) -> Path:
        if "\0" in text:
            raise ValueError("not a path")
        if "${" in text:
            raise ValueError("still holds a reference such as ${NAME}: the host did not expand it")
        if text == "~" or text.startswith(("~/", "~\\")):
            home = home_of(self._environ)
            if home is None:
                raise ValueError("~ has no meaning without a home folder")
            return home / text[2:]
        return Path(text)

    def toolsets(self) -> tuple[str, ...]:
        named = self.many("toolsets", _toolset, separator=",")
        if not named or "all" in named:
            return TOOLSETS
        return tuple(name for name in TOOLSETS if name in named)

    def registries(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for ecosystem in REGISTRY_KEYS:
            variable = registry_variable(ecosystem)
            value = self._environ.get(variable, "").strip()
            if value and is_unexpanded(value):
                self.fault(variable, "still reads like a reference such as ${NAME}: the host did not expand it")
            elif value:
                address = self._read(variable, value, _https)
                if address:
                    found[ecosystem] = address
        flag = self._raw("registries") if self._flags.get("registries") else None
        for text in flag[1] if flag else []:
            pair = self._read("--registry", text, _registry)
            if pair:
                found[pair[0]] = pair[1]
        return found


def _truth(text: str) -> bool:
    word = text.lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("neither on (1, true, yes) nor off (0, false, no)")


def _choice(literal: Any) -> Callable[[str], str]:
    allowed = get_args(literal)

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"not one of {', '.join(allowed)}")
        return text

    return parse


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"not a whole number from {least} to {most}")
        return int(text)

    return parse


def _matching(pattern: str, rule: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def parse(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(rule)
        return text

    return parse


_number = _matching(r"[0-9]{1,20}", "not a number")
_name = _matching(r"[A-Za-z0-9_-]{1,64}", "not a tool's name")
_variable = _matching(r"[A-Za-z_][A-Za-z0-9_]*", "not a variable's name")
_line = _matching(r"[^\x00-\x1f\x7f]+", "holds control characters")
_repository_pattern = _matching(
    r"[A-Za-z0-9_.*?\[\]-]+/[A-Za-z0-9_.*?\[\]-]+", "not a pattern of repositories, for example octo/*"
)
_allowed_host = _matching(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:([0-9]{1,5}|\*))?", "not a host name")
_bind_host = _matching(r"[A-Za-z0-9.-]+|\[?[0-9A-Fa-f:.]+\]?", "not an address to bind")


def _toolset(text: str) -> str:
    word = "all" if text == "default" else text
    if word != "all" and word not in TOOLSETS:
        raise ValueError(f"unknown toolset {text!r}; there are {', '.join(TOOLSETS)} and all")
    return word


def _transport(text: str) -> str:
    return _choice(Transport)("http" if text == "streamable-http" else text)


def _api_url(text: str) -> str:
    return normalise_api_url(text)


def _https(text: str) -> str:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError as error:
        raise ValueError("not an address") from error
    if parts.username is not None or parts.password is not None:
        raise ValueError("credentials have no place in an address")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise ValueError("not an https address")
    return text


def _registry(text: str) -> tuple[str, str]:
    ecosystem, equals, address = text.partition("=")
    if not equals or ecosystem not in REGISTRY_KEYS:
        raise ValueError(f"not ECOSYSTEM=URL with one of {', '.join(REGISTRY_KEYS)}")
    return ecosystem, _https(address)


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError("not a command line: a quote is not closed") from error
    if not words:
        raise ValueError("an empty command")
    return text


def _project_dir(environ: Mapping[str, str]) -> Path | None:
    value = environ.get("CLAUDE_PROJECT_DIR", "").strip()
    return Path(value) if value and not is_unexpanded(value) and "\0" not in value else None
