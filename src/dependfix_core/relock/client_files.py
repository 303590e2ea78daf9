"""The private client configuration of a scratch home: exactly the hosts and credentials that a unit uses.

Nothing of the user's own home is seen by the tool, and nothing of the
repository's client files but what is written here.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from dependfix_core.ecosystems.base import ToolRelock
from dependfix_core.http import Credential
from dependfix_core.metadata.addresses import RegistryAddress, RegistryAddresses, public_default
from dependfix_core.model.records import RecordKey, Unavailability, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientFiles:
    """Files of the scratch home and variables of the tool's environment."""

    home: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """For redaction of what the tool prints."""


# Set for every tool: no telemetry, no updates, no questions, no other program.
_QUIET: Final[Mapping[str, str]] = {
    "CI": "1",
    "NO_COLOR": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "ADBLOCK": "1",
    "DO_NOT_TRACK": "1",
    "COREPACK_ENABLE_STRICT": "0",
    "COREPACK_ENABLE_PROJECT_SPEC": "0",
    "COREPACK_ENABLE_NETWORK": "0",
    "GOTOOLCHAIN": "local",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
}
_NPM_FAMILY: Final = frozenset({"npm", "pnpm", "yarn", "bun"})


def client_files(relock: ToolRelock, addresses: RegistryAddresses, *, home: str) -> ClientFiles | Unavailable:
    """What `relock` needs to reach its registries, or the one that may not be reached."""
    family = "npm" if relock.tool in _NPM_FAMILY else "pip"
    chosen: dict[str, RegistryAddress] = {}
    for scope, written in {"": "", **relock.registries}.items():
        name = f"{scope}/x" if scope.startswith("@") else "x"
        address = addresses.choose(RecordKey(ecosystem=family, name=name, registry=written))
        if isinstance(address, Unavailable):
            return address
        chosen[scope] = address
    if family == "pip" and (elsewhere := _elsewhere(relock, chosen)):
        return elsewhere
    secrets = tuple(secret for address in chosen.values() for secret in _secrets(address.credential))
    files, env = _npm_files(relock, chosen, home) if family == "npm" else _pip_files(relock, chosen, home)
    return ClientFiles(home=files, env={**_QUIET, **env}, secrets=secrets)


def _secrets(credential: Credential | None) -> Iterator[str]:
    """The value as it is sent, and the password as a client may print it."""
    if credential is None:
        return
    scheme, _, value = credential.value.partition(" ")
    yield value
    if scheme == "Basic":
        yield base64.b64decode(value).decode(errors="replace").partition(":")[2]


def _npm_files(
    relock: ToolRelock, chosen: Mapping[str, RegistryAddress], home: str
) -> tuple[dict[str, bytes], dict[str, str]]:
    lines = ["ignore-scripts=true", "audit=false", "fund=false", "update-notifier=false", "progress=false"]
    for scope, address in chosen.items():
        lines.append(f"{scope}:registry={address.url}/" if scope else f"registry={address.url}/")
    lines += sorted({_npmrc_credential(address) for address in chosen.values() if address.credential})
    lines += [f"{name}={value}" for name, value in sorted(relock.settings.items())]
    npmrc = ("\n".join(lines) + "\n").encode()
    # JSON is YAML: no scalar of it can be read as something else.
    yarnrc: dict[str, object] = {
        "enableTelemetry": False,
        "enableScripts": False,
        "enableGlobalCache": False,
        "enableImmutableInstalls": False,
        "npmRegistryServer": chosen[""].url,
        "npmScopes": {
            scope[1:]: {"npmRegistryServer": address.url} for scope, address in chosen.items() if scope.startswith("@")
        },
        "npmRegistries": {
            _place(address.url).rstrip("/"): _yarn_credential(address.credential)
            for address in chosen.values()
            if address.credential is not None
        },
        "unsafeHttpWhitelist": sorted(
            {urlsplit(address.url).hostname or "" for address in chosen.values() if address.url.startswith("http:")}
        ),
    }
    files = {
        ".npmrc": npmrc,
        ".yarnrc": f'registry "{chosen[""].url}/"\n'.encode(),
        ".yarnrc.yml": json.dumps(yarnrc, indent=1).encode(),
    }
    env = {
        "npm_config_userconfig": f"{home}/.npmrc",
        "npm_config_globalconfig": f"{home}/.npmrc-global",
        "npm_config_cache": f"{home}/.npm",
        "npm_config_ignore_scripts": "true",
        # pnpm 10 and newer would fetch and start the version that `packageManager` names.
        "npm_config_manage_package_manager_versions": "false",
        "pnpm_config_manage_package_manager_versions": "false",
        "pnpm_config_pm_on_fail": "ignore",
        "npm_config_package_manager_strict": "false",
        "YARN_IGNORE_PATH": "1",
        "YARN_ENABLE_SCRIPTS": "0",
        "YARN_CACHE_FOLDER": f"{home}/.yarn-cache",
        "YARN_GLOBAL_FOLDER": f"{home}/.yarn",
        "BUN_INSTALL_CACHE_DIR": f"{home}/.bun-cache",
    }
    return files, env


def _npmrc_credential(address: RegistryAddress) -> str:
    assert address.credential is not None
    scheme, _, value = address.credential.value.partition(" ")
    return f"{_place(address.url)}:{'_authToken' if scheme == 'Bearer' else '_auth'}={value}"


def _yarn_credential(credential: Credential | None) -> dict[str, object]:
    scheme, _, value = credential.value.partition(" ") if credential is not None else ("", "", "")
    return {"npmAlwaysAuth": True, ("npmAuthToken" if scheme == "Bearer" else "npmAuthIdent"): value}


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"//{parts.netloc}{parts.path.rstrip('/')}/"


# Of the Python family.

_PIP_QUIET: Final[Mapping[str, str]] = {
    "PIP_CONFIG_FILE": os.devnull,
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "POETRY_VIRTUALENVS_CREATE": "false",
    "POETRY_NO_INTERACTION": "1",
    "POETRY_KEYRING_ENABLED": "false",
    "PIPENV_DONT_LOAD_ENV": "1",
    "PIPENV_DONT_USE_ASDF": "1",
    "PIPENV_DONT_USE_PYENV": "1",
    "PIPENV_IGNORE_VIRTUALENVS": "1",
    "PIPENV_NOSPIN": "1",
    "PIPENV_VENV_IN_PROJECT": "0",
    "PIPENV_YES": "1",
    "PDM_CHECK_UPDATE": "0",
    "PDM_IGNORE_SAVED_PYTHON": "1",
    "PDM_USE_VENV": "0",
}
_NO_BUILDS: Final[Mapping[str, Mapping[str, str]]] = {
    "uv": {"UV_NO_BUILD": "1"},
    # Poetry builds in an environment of its own, which cannot be made by a creator that there is not.
    "poetry": {"VIRTUALENV_CREATOR": "building-is-not-allowed"},
}
"""What keeps a tool from building a source distribution where its command line cannot."""


def _pip_files(
    relock: ToolRelock, chosen: Mapping[str, RegistryAddress], home: str
) -> tuple[dict[str, bytes], dict[str, str]]:
    default = chosen[""].url
    netrc = "".join(dict.fromkeys(line for address in chosen.values() for line in _netrc_line(address)))
    env = {
        **_PIP_QUIET,
        **_NO_BUILDS.get(relock.tool, {}),
        "NETRC": f"{home}/.netrc",
        "PIP_INDEX_URL": default,
        "PIP_CACHE_DIR": f"{home}/.pip-cache",
        "UV_CACHE_DIR": f"{home}/.uv-cache",
        "UV_DEFAULT_INDEX": default,
        "POETRY_CACHE_DIR": f"{home}/.poetry-cache",
        "POETRY_CONFIG_DIR": f"{home}/.poetry",
        "PIPENV_PYPI_MIRROR": default,
        "PIPENV_CACHE_DIR": f"{home}/.pipenv-cache",
        "WORKON_HOME": f"{home}/.venvs",
        "PDM_CACHE_DIR": f"{home}/.pdm-cache",
        "PDM_PYPI_URL": default,
        **relock.settings,
    }
    extras = [address.url for scope, address in chosen.items() if scope and address.url != default]
    if extras and relock.tool == "pip-tools":
        env["PIP_EXTRA_INDEX_URL"] = " ".join(dict.fromkeys(extras))
    return ({".netrc": netrc.encode()} if netrc else {}), env


def _elsewhere(relock: ToolRelock, chosen: Mapping[str, RegistryAddress]) -> Unavailable | None:
    """Python's tools ask the addresses that the project's own files name, and write them; another one is no use."""
    for scope, address in chosen.items():
        written = relock.registries.get(scope, "").rstrip("/")
        key = RecordKey(ecosystem="pip", name=relock.tool, registry=written)
        if written:
            mirrored = relock.tool == "pipenv" and written == public_default("pip")
            is_same = address.url == written or mirrored
        else:
            # Poetry can be told of no other default than its own.
            is_same = relock.tool != "poetry" or address.url == public_default("pip")
        if not is_same:
            detail = f"{relock.tool} would ask another index than the one that is set ({address.why})"
            return Unavailable(key=key, why=Unavailability.NOT_ALLOWED, detail=detail)
    return None


def _netrc_line(address: RegistryAddress) -> Iterator[str]:
    if address.credential is None or not address.credential.value.startswith("Basic "):
        return
    pair = base64.b64decode(address.credential.value.removeprefix("Basic ")).decode()
    user, _, password = pair.partition(":")
    yield f"machine {urlsplit(address.url).hostname} login {_quoted(user)} password {_quoted(password)}\n"


def _quoted(token: str) -> str:
    return '"' + token.replace("\\", "\\\\").replace('"', '\\"') + '"'
