"""`dependfix-mcp doctor`: which settings hold and why, what is there, what is missing. Asks no network."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio

import dependfix_core
from dependfix_core import __version__
from dependfix_core.connection import PUBLIC_API_URL, TOKEN_VARIABLES, find_alerts_token, find_token, web_host
from dependfix_core.errors import DependfixError
from dependfix_core.process import Command, clean_text, redact
from dependfix_core.process.runner import find_executable
from dependfix_mcp.cli.arguments import CommandLine
from dependfix_mcp.client import current_folder, make_client, report_folders
from dependfix_mcp.serve import configure_logging
from dependfix_mcp.services import Services
from dependfix_mcp.settings import SETTINGS, Settings, load_settings

PROGRAMS: Final[tuple[tuple[str, str], ...]] = (
    ("git", "reads and writes checkouts"),
    ("gh", "gives a token with --gh-auth"),
    ("node", "runs executables that are scripts"),
    ("npm", "writes package-lock.json where this program does not"),
    ("pnpm", "writes pnpm-lock.yaml where this program does not"),
    ("yarn", "writes yarn.lock where this program does not"),
    ("bun", "writes bun.lock where this program does not"),
    ("uv", "writes uv.lock where this program does not"),
    ("poetry", "writes poetry.lock where this program does not"),
    ("pipenv", "writes Pipfile.lock where this program does not"),
    ("pdm", "writes pdm.lock where this program does not"),
    ("pip-compile", "writes compiled requirements where this program does not"),
)
_ECOSYSTEMS: Final = ("npm", "pip", "maven", "go", "rubygems", "composer", "nuget", "rust", "erlang", "pub")
_SECRET_FIELDS: Final = frozenset({"github_token", "alerts_token", "app_private_key", "http_token"})
_PROXY_VARIABLES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
"""As httpx and requests read them; the spelling in small letters wins."""
EXIT_PROBLEM: Final = 3


def run(line: CommandLine) -> int:
    """Print what is found; 3 when something keeps the server from working as it is set."""
    services = Services(settings=line.settings)
    configure_logging(services.secrets)
    if line.recover is not None:
        return anyio.run(_recover, line.recover, services)
    problems: list[str] = []
    for heading, rows in anyio.run(_sections, line, services, problems):
        _say(f"\n{heading}")
        for row in rows:
            _say(f"  {row}")
    if problems:
        _say("\nProblems")
        for problem in problems:
            _say(f"  {problem}")
    return EXIT_PROBLEM if problems else 0


async def _recover(folder: Path, services: Services) -> int:
    """Bring an interrupted checkout back to its old state."""
    from dependfix_core.workspace.git import probe_checkout  # noqa: PLC0415  # only for this
    from dependfix_core.workspace.transaction import is_interrupted, recover  # noqa: PLC0415  # only for this

    checkout = await probe_checkout(services.runner, folder)
    if checkout is None:
        _say(f"{folder} is not in a git checkout.")
        return EXIT_PROBLEM
    if not is_interrupted(checkout.git_dir):
        _say(f"{checkout.top} is as it should be: nothing was interrupted.")
        return 0
    paths = recover(checkout.top, checkout.git_dir)
    _say(f"{checkout.top} is back in its state from before the interrupted change.")
    for path in paths:
        _say(f"  {path}")
    return 0


async def _sections(line: CommandLine, services: Services, problems: list[str]) -> list[tuple[str, list[str]]]:
    settings = services.settings
    return [
        (f"dependfix-mcp {__version__}, Python {sys.version.split()[0]}", list(_installation(problems))),
        ("GitHub", list(_github(settings))),
        ("Settings that are not the default", list(_settings(line)) or ["none"]),
        ("Folders", list(_folders(settings))),
        ("Registries", list(_registries(services))),
        ("Programs", await _programs(services)),
        ("Toolsets", await _toolsets(services, problems)),
    ]


def _installation(problems: list[str]) -> Iterator[str]:
    home = Path(dependfix_core.__file__).resolve().parent
    yield f"installed in {home.parent}"
    for name in ("adapters.suspec", "adapters.sudocode"):
        found = _origin(name)
        if found is None or home.parent not in found.parents:
            problems.append(
                f"another package called 'adapters' is in the way of {name}"
                f"{f' ({found})' if found else ''}: remove it, or install dependfix-mcp in an environment of its own"
            )


def _origin(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None


def _github(settings: Settings) -> Iterator[str]:
    from dependfix_core.github.token import token_kind  # noqa: PLC0415  # only for this

    yield f"API {settings.github_api_url or PUBLIC_API_URL} ({web_host(settings.github_api_url)})"
    if settings.gh_auth:
        yield "token: asked from gh"
    else:
        found = find_token(settings.environment, settings.github_api_url)
        if found.value:
            yield f"token: {token_kind(found.value).value}, from {found.name}"
        else:
            yield f"token: none; set {TOKEN_VARIABLES[1]}"
        if found.problem:
            yield f"token: {found.problem}"
    alerts = find_alerts_token(settings.environment)
    if alerts.value:
        yield f"token for alerts: {token_kind(alerts.value).value}, from {alerts.name}"
    if settings.ca_bundle is not None:
        yield f"certificates: {settings.ca_bundle}"
    for name in _PROXY_VARIABLES:
        value = settings.environment.get(name.lower()) or settings.environment.get(name)
        if value:
            # Whatever stands before the host is a login, also where no scheme says that this is an address.
            host = value.rpartition("@")[2]
            yield f"{name}: {clean_text(host, max_chars=200, one_line=True)}"


def _settings(line: CommandLine) -> Iterator[str]:
    default = load_settings([], {})
    for setting in SETTINGS:
        value = getattr(line.settings, setting.field)
        if value == getattr(default, setting.field) or setting.field == "cache_dir":
            continue
        source = setting.flag if line.given.get(setting.field) is not None else _variable(line, setting.environment)
        shown = "set" if setting.field in _SECRET_FIELDS else redact(str(value))
        yield f"{setting.field}: {clean_text(shown, max_chars=200, one_line=True)} (from {source})"


def _variable(line: CommandLine, names: tuple[str, ...]) -> str:
    return next((name for name in names if line.settings.environment.get(name, "").strip()), "the command line")


def _folders(settings: Settings) -> Iterator[str]:
    yield f"checkout, unless a call names one: {current_folder(settings) or 'none'}"
    yield f"allowed folders: {', '.join(map(str, settings.roots)) or 'any checkout of the asked repository'}"
    candidates = report_folders(settings).candidates
    yield f"reports: {candidates[0] if candidates else 'nowhere: name a folder with --report-dir'}"
    for folder in candidates[1:]:
        yield f"reports, if that cannot be written: {folder}"
    yield f"cache: {settings.cache_dir or 'in memory only'}"


def _registries(services: Services) -> Iterator[str]:
    addresses = make_client(services).registry_addresses()
    for ecosystem in _ECOSYSTEMS:
        found = addresses.describe(ecosystem)
        yield f"{ecosystem}: {redact(found[0])} ({found[1]})" if found else f"{ecosystem}: none; set --registry"


async def _programs(services: Services) -> list[str]:
    rows: dict[str, str] = {}
    path = services.settings.environment.get("PATH", "")

    async def ask(name: str, about: str) -> None:
        found = find_executable(name, path)
        if found is None:
            rows[name] = f"{name}: not found; {about}"
            return
        version = ""
        try:
            command = Command(argv=(found, "--version"), cwd=Path(found).parent, timeout_s=10)
            result = await services.runner.run(command)
            version = result.stdout.decode("utf-8", "replace").strip().split("\n")[0] if result.exit_code == 0 else ""
        except DependfixError as error:
            version = error.message
        rows[name] = f"{name}: {found} {clean_text(version, max_chars=60, one_line=True)}".rstrip()

    async with anyio.create_task_group() as group:
        for name, about in PROGRAMS:
            group.start_soon(ask, name, about)
    return [rows[name] for name, _ in PROGRAMS]


async def _toolsets(services: Services, problems: list[str]) -> list[str]:
    from dependfix_mcp.server import TOOLSET_BUILDERS, chosen_tools  # noqa: PLC0415  # loads the MCP SDK

    rows = []
    counts = {name: len(chosen_tools(build(services), services.settings)) for name, build in TOOLSET_BUILDERS.items()}
    served = [name for name, count in counts.items() if count]
    for name, count in counts.items():
        if not count:
            rows.append(f"{name}: not served")
            continue
        rows.append(f"{name}: {count} tool{'s' if count > 1 else ''}")
        if name in _COMMAND_LINE_TOOLS:
            facts, problem = await _COMMAND_LINE_TOOLS[name](services)
            rows += [f"{name}: {clean_text(redact(fact), max_chars=400, one_line=True)}" for fact in facts]
            # Beside other toolsets its tools answer what is missing; alone there is nothing else to serve.
            if problem and served == [name]:
                problems.append(f"{name}: {clean_text(redact(problem), max_chars=400, one_line=True)}")
    return rows


async def _suspec(services: Services) -> tuple[list[str], str]:
    """What the contract gate found and what it needs, and what is wrong, if anything."""
    from dependfix_mcp.tools.suspec import gate  # noqa: PLC0415  # loads the MCP SDK

    result = await gate(services)
    found = f"found {f'contract {result.found}' if result.found else 'no contract'}, needed is contract {result.needed}"
    facts = [f"{result.executable or 'no executable'}; {found}"]
    error = result.error
    if error is None:
        return facts, ""
    return [*facts, f"its tools answer {error.code}: {error.message}. {error.hint}".strip()], error.message


async def _sudocode(services: Services) -> tuple[list[str], str]:
    """Which program and which project there are, and why the tools cannot work, if they cannot."""
    from dependfix_mcp.tools.sudocode import state  # noqa: PLC0415  # loads the MCP SDK

    result = await state(services)
    found = f"found {f'release {result.found}' if result.found else 'no release'}, needed is {result.needed}"
    facts = [f"{result.executable or 'no executable'}; {found}"]
    if result.project is not None:
        facts.append(f"project {result.project}")
    error = result.error
    if error is None:
        return facts, ""
    facts.append(f"its tools answer {error.code}: {error.message}. {error.hint}".strip())
    # A folder without a project is nothing wrong: `init` makes one.
    return facts, "" if error.code == "not_initialized" else error.message


_COMMAND_LINE_TOOLS: Final[dict[str, Callable[[Services], Awaitable[tuple[list[str], str]]]]] = {
    "suspec": _suspec,
    "sudocode": _sudocode,
}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
