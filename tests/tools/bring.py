"""Brings the real package managers that the tests run into a cache folder.

usage: python tests/tools/bring.py [NAME ...]      all of them without names

Needs only Python, node and npm. A tool that its registry does not serve is
named on stderr and left out; the tests that need it skip with the reason. The
folder is `DEPENDFIX_TEST_TOOLS`, else `dependfix-test-tools` in the user's
cache folder.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


def tools_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the tools are kept."""
    if named := environ.get("DEPENDFIX_TEST_TOOLS"):
        return Path(named)
    cache = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "dependfix-test-tools"


def _platform() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    return f"{sys.platform}-{machine}"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One pinned tool: what installs it and what starts it."""

    package: str
    version: str
    entry: str
    """Below `node_modules` (npm) or `bin` (pip)."""
    runtime: str = ""
    """`node`: the machine's; `node-22`: the one brought; empty: the entry itself."""
    source: str = "npm"
    scripts: bool = False
    """Whether its install script has to run (it puts its own binary in place)."""
    extra: tuple[str, ...] = ()


TOOLS: dict[str, Tool] = {
    "node-22": Tool(package=f"node-{_platform()}", version="22.23.3", entry=f"node-{_platform()}/bin/node"),
    "npm-6": Tool(package="npm", version="6.14.18", entry="npm/bin/npm-cli.js", runtime="node"),
    "npm-10": Tool(package="npm", version="10.9.4", entry="npm/bin/npm-cli.js", runtime="node"),
    "npm-11": Tool(package="npm", version="11.19.1", entry="npm/bin/npm-cli.js", runtime="node"),
    "npm-12": Tool(package="npm", version="12.2.2", entry="npm/bin/npm-cli.js", runtime="node-22"),
    "pnpm-8": Tool(package="pnpm", version="8.15.9", entry="pnpm/bin/pnpm.cjs", runtime="node"),
    "pnpm-9": Tool(package="pnpm", version="9.15.9", entry="pnpm/bin/pnpm.cjs", runtime="node"),
    "pnpm-10": Tool(package="pnpm", version="10.34.8", entry="pnpm/bin/pnpm.cjs", runtime="node"),
    "pnpm-11": Tool(package="pnpm", version="11.28.10", entry="pnpm/bin/pnpm.mjs", runtime="node-22"),
    "pnpm-12": Tool(package="pnpm", version="12.21.0", entry=".bin/pnpm", scripts=True),
    "yarn-1": Tool(package="yarn", version="1.22.22", entry="yarn/bin/yarn.js", runtime="node"),
    "yarn-4": Tool(
        package="@yarnpkg/cli-dist", version="4.18.1", entry="@yarnpkg/cli-dist/bin/yarn.js", runtime="node"
    ),
    "bun": Tool(package="bun", version="1.4.5", entry=f"@oven/bun-{_platform()}/bin/bun"),
    "inspector": Tool(
        package="@modelcontextprotocol/inspector", version="2.12.0", entry=".bin/mcp-inspector", runtime="node-22"
    ),
    "conformance": Tool(
        package="@modelcontextprotocol/conformance",
        version="0.2.0-alpha.12",
        entry=".bin/conformance",
        runtime="node-22",
    ),
    "conformance-2025": Tool(
        package="@modelcontextprotocol/conformance", version="0.1.16", entry=".bin/conformance", runtime="node-22"
    ),
    "mcp-sdk-1": Tool(
        package="@modelcontextprotocol/sdk", version="1.32.2", entry="@modelcontextprotocol/sdk/package.json"
    ),
    "mcp-client-2": Tool(
        package="@modelcontextprotocol/client", version="2.4.0", entry="@modelcontextprotocol/client/package.json"
    ),
    "uv": Tool(package="uv", version="0.13.9", entry="uv", source="pip"),
    "poetry": Tool(package="poetry", version="2.5.1", entry="poetry", source="pip"),
    "poetry-1": Tool(package="poetry", version="1.8.5", entry="poetry", source="pip"),
    "pipenv": Tool(package="pipenv", version="2026.10.3", entry="pipenv", source="pip"),
    "pdm": Tool(package="pdm", version="2.29.4", entry="pdm", source="pip", extra=("hishel[httpx2]==1.4.0",)),
    "pip-tools": Tool(package="pip-tools", version="7.6.2", entry="pip-compile", source="pip", extra=("pip==26.2",)),
}


def command_of(name: str, folder: Path) -> list[str] | None:
    """How a brought tool starts; `None` when it is not there."""
    tool = TOOLS[name]
    place = folder / f"{name}-{tool.version}"
    if not (place / ".complete").exists():
        return None
    if tool.source == "pip":
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        return [str(place / scripts / tool.entry)]
    entry = str(place / "node_modules" / tool.entry)
    if not tool.runtime:
        return [entry]
    if tool.runtime == "node":
        node = shutil.which("node")
        return [node, entry] if node else None
    runtime = command_of(tool.runtime, folder)
    return [*runtime, entry] if runtime else None


def bring(name: str, folder: Path) -> None:
    """Install one tool; one that is complete is left alone.

    Raises:
        OSError, subprocess.CalledProcessError: It could not be installed.
    """
    tool = TOOLS[name]
    place = folder / f"{name}-{tool.version}"
    if (place / ".complete").exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if tool.source == "pip":
        venv.create(place, with_pip=True)
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        install = [str(place / scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"{tool.package}=={tool.version}", *tool.extra], check=True)
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm")
        (place / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
        flags = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
        flags += [] if tool.scripts else ["--ignore-scripts"]
        subprocess.run([npm, "install", *flags, f"{tool.package}@{tool.version}"], cwd=place, check=True)
    (place / ".complete").touch()


def main(names: list[str]) -> int:
    """Bring the named tools, or all."""
    folder = tools_folder()
    for name in names or TOOLS:
        try:
            bring(name, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: not brought ({error})", file=sys.stderr)
        else:
            print(f"{name} {TOOLS[name].version}: {' '.join(command_of(name, folder) or ['has no runtime'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
