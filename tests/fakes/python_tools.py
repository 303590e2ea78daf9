"""Projects that real package managers of Python lock against a loopback index, and their strictest checks."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from urllib.parse import quote

from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.configuration import read_client_configuration
from fakes.python_index import PythonIndex
from tools.bring import command_of, tools_folder

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What a project asks for, whatever the dialect."""

    main: Sequence[str] = ()
    """PEP 508."""
    dev: Sequence[str] = ()
    python: str = ">=3.9"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One way to write a project and to lock it."""

    tool: str
    lock: str
    manifest: Callable[[Declared, PythonIndex], Mapping[str, bytes]]
    locking: Sequence[tuple[str, ...]]
    checks: Sequence[tuple[str, ...]]
    """Runs that have to succeed and to leave every file as it is."""
    is_universal: bool = True
    """Whether the lock is for other platforms than this one too."""


def run(tool: str, arguments: Sequence[str], top: Path, home: Path, program: str = "") -> None:
    """Fails with what the tool said."""
    command = command_of(tool, tools_folder())
    assert command is not None, tool
    if program:
        command = [str(Path(command[0]).with_name(program))]
    home.mkdir(exist_ok=True)
    environment = {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIPENV_IGNORE_VIRTUALENVS": "1",
        "PIPENV_VENV_IN_PROJECT": "0",
        "WORKON_HOME": str(home / "venvs"),
        "PDM_CHECK_UPDATE": "0",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    done = subprocess.run(
        [*command, *arguments],
        cwd=top,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"{tool} {' '.join(arguments)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"


def lay(files: Mapping[str, bytes], top: Path) -> None:
    for path, content in files.items():
        place = top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def locked_by_tool(dialect: Dialect, declared: Declared, index: PythonIndex, place: Path) -> dict[str, bytes]:
    """Manifest and lock, as the tool writes it now."""
    top = place / "made"
    manifest = dialect.manifest(declared, index)
    lay(manifest, top)
    for call in dialect.locking:
        _run(dialect, call, index, top, place / "tool-home")
    return {path: (top / path).read_bytes() for path in sorted({*manifest, dialect.lock, *_others(top)})}


def _others(top: Path) -> list[str]:
    return [path.name for path in top.glob("requirements*.txt")]


def check(dialect: Dialect, files: Mapping[str, bytes], index: PythonIndex, place: Path) -> None:
    """The tool accepts the files and has nothing to change in them."""
    top = place / "checked"
    lay(files, top)
    for call in dialect.checks:
        _run(dialect, call, index, top, place / "check-home")
    changed = [
        "\n".join(unified_diff(content.decode().splitlines(), (top / path).read_text().splitlines(), lineterm=""))
        for path, content in files.items()
    ]
    assert not any(changed), "\n".join(changed)


def _run(dialect: Dialect, call: tuple[str, ...], index: PythonIndex, top: Path, home: Path) -> None:
    words = [word.replace("{simple}", index.simple) for word in call]
    program = words.pop(0)[1:] if words[0].startswith("!") else ""
    run(dialect.tool, words, top, home, program)


def addresses_of(index: PythonIndex, home: Path) -> RegistryAddresses:
    """What the user's own configuration says: this index, with the index's login."""
    user, _, password = index.login.partition(":")
    place = home / ".config" / "pip" / "pip.conf"
    place.parent.mkdir(parents=True, exist_ok=True)
    login = f"{user}:{quote(password, safe='')}@" if user else ""
    place.write_text(f"[global]\nindex-url = {index.simple.replace('://', f'://{login}')}\n", encoding="utf-8")
    return RegistryAddresses({}, read_client_configuration(home, {}))


# The dialects.


def _project(declared: Declared) -> str:
    listed = "".join(f'    "{one}",\n' for one in declared.main)
    dev = "".join(f'    "{one}",\n' for one in declared.dev)
    return (
        f'[project]\nname = "app"\nversion = "1"\nrequires-python = "{declared.python}"\n'
        f"dependencies = [\n{listed}]\n\n[dependency-groups]\ndev = [\n{dev}]\n"
    )


def _uv(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    text = _project(declared) + f'\n[[tool.uv.index]]\nname = "made-up"\nurl = "{index.simple}"\ndefault = true\n'
    return {"pyproject.toml": text.encode()}


def _pdm(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    source = f'\n[[tool.pdm.source]]\nname = "pypi"\nurl = "{index.simple}"\nverify_ssl = false\n'
    return {"pyproject.toml": (_project(declared) + source).encode()}


def _pdm_pylock(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    return {"pyproject.toml": _pdm(declared, index)["pyproject.toml"] + b'\n[tool.pdm.lock]\nformat = "pylock"\n'}


def _poetry_project(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    source = (
        f'\n[tool.poetry]\npackage-mode = false\n\n[[tool.poetry.source]]\nname = "made-up"\nurl = "{index.simple}"\n'
    )
    return {"pyproject.toml": (_project(declared) + source).encode()}


def _table(requirements: Sequence[str], exact: str = "") -> str:
    """TOML entries; `exact` is what an exact version begins with."""
    lines = []
    for one in requirements:
        asked, _, marker = one.partition(";")
        name, extras, version = _parts(asked.strip())
        version = version.replace("==", exact) or "*"
        if extras or marker:
            more = f', extras = ["{extras}"]' if extras else ""
            more += f', markers = "{marker.strip()}"' if marker else ""
            lines.append(f'{name} = {{version = "{version}"{more}}}')
        else:
            lines.append(f'{name} = "{version}"')
    return "\n".join(lines) + "\n"


def _parts(asked: str) -> tuple[str, str, str]:
    """(name, extra, specifier)"""
    cut = next((at for at, letter in enumerate(asked) if letter in "<>=~!"), len(asked))
    name, _, extras = asked[:cut].partition("[")
    return name, extras.rstrip("]"), asked[cut:]


def _poetry(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    text = (
        '[tool.poetry]\nname = "app"\nversion = "1"\ndescription = \'\'\nauthors = []\npackage-mode = false\n\n'
        f'[tool.poetry.dependencies]\npython = "{declared.python}"\n{_table(declared.main)}\n'
        f"[tool.poetry.group.dev.dependencies]\n{_table(declared.dev)}\n"
        f'[[tool.poetry.source]]\nname = "made-up"\nurl = "{index.simple}"\n'
    )
    return {"pyproject.toml": text.encode()}


def _pipenv(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    text = (
        f'[[source]]\nurl = "{index.simple}"\nverify_ssl = false\nname = "made-up"\n\n'
        f"[packages]\n{_table(declared.main, '==')}\n[dev-packages]\n{_table(declared.dev, '==')}"
    )
    return {"Pipfile": text.encode()}


def _in_files(declared: Declared, index: PythonIndex) -> dict[str, bytes]:
    head = f"--index-url {index.simple}\n"
    return {
        "requirements.in": (head + "\n".join(declared.main) + "\n").encode(),
        "requirements-dev.in": (head + "-c requirements.txt\n" + "\n".join(declared.dev) + "\n").encode(),
    }


_PIP_COMPILE = ("--quiet", "--generate-hashes", "--strip-extras", "--allow-unsafe")
_UV_COMPILE = ("pip", "compile", "--quiet", "--generate-hashes", "--universal", "--python-version=3.9")
_PIP_CHECK = ("!pip", "install", "--dry-run", "--ignore-installed", "--require-hashes", "--quiet", "-r")

DIALECTS: dict[str, Dialect] = {
    "uv": Dialect(
        tool="uv", lock="uv.lock", manifest=_uv, locking=[("lock",)], checks=[("lock", "--check"), ("lock",)]
    ),
    "poetry": Dialect(
        tool="poetry",
        lock="poetry.lock",
        manifest=_poetry,
        locking=[("lock",)],
        checks=[("check", "--lock"), ("lock",)],
    ),
    "poetry-project": Dialect(
        tool="poetry",
        lock="poetry.lock",
        manifest=_poetry_project,
        locking=[("lock",)],
        checks=[("check", "--lock"), ("lock",)],
    ),
    "poetry-1": Dialect(
        tool="poetry-1",
        lock="poetry.lock",
        manifest=_poetry,
        locking=[("lock",)],
        checks=[("check", "--lock"), ("lock", "--no-update")],
    ),
    "pdm": Dialect(
        tool="pdm",
        lock="pdm.lock",
        manifest=_pdm,
        locking=[("lock",)],
        checks=[("lock", "--check"), ("lock", "--update-reuse")],
    ),
    "pdm-addresses": Dialect(
        tool="pdm",
        lock="pdm.lock",
        manifest=_pdm,
        locking=[("lock", "--strategy=static_urls")],
        checks=[("lock", "--check"), ("lock", "--update-reuse")],
    ),
    "pipenv": Dialect(
        tool="pipenv",
        lock="Pipfile.lock",
        manifest=_pipenv,
        locking=[("lock",)],
        checks=[("verify",)],
        is_universal=False,
    ),
    "pip-tools": Dialect(
        tool="pip-tools",
        lock="requirements.txt",
        manifest=_in_files,
        locking=[(*_PIP_COMPILE, "requirements.in"), (*_PIP_COMPILE, "requirements-dev.in")],
        checks=[
            (*_PIP_COMPILE, "requirements.in"),
            (*_PIP_COMPILE, "requirements-dev.in"),
            (*_PIP_CHECK, "requirements.txt"),
            (*_PIP_CHECK, "requirements-dev.txt"),
        ],
        is_universal=False,
    ),
    "uv-compile": Dialect(
        tool="uv",
        lock="requirements.txt",
        manifest=_in_files,
        locking=[
            (*_UV_COMPILE, "requirements.in", "-o", "requirements.txt"),
            (*_UV_COMPILE, "requirements-dev.in", "-o", "requirements-dev.txt"),
        ],
        checks=[
            (*_UV_COMPILE, "requirements.in", "-o", "requirements.txt"),
            (*_UV_COMPILE, "requirements-dev.in", "-o", "requirements-dev.txt"),
        ],
    ),
    "pylock-uv": Dialect(
        tool="uv",
        lock="pylock.toml",
        manifest=_uv,
        locking=[("pip", "compile", "--quiet", "--universal", "--group=dev", "pyproject.toml", "-o", "pylock.toml")],
        checks=[("pip", "compile", "--quiet", "--universal", "--group=dev", "pyproject.toml", "-o", "pylock.toml")],
    ),
    "pylock-pdm": Dialect(
        tool="pdm",
        lock="pylock.toml",
        manifest=_pdm_pylock,
        locking=[("lock",)],
        # Locking again would lift what is asked for with an extra: pdm finds no such entry in this format.
        checks=[("lock", "--check")],
    ),
}
