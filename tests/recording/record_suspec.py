"""Records what a real suspec CLI answers to the scenarios; the recordings are never edited by hand.

usage: python tests/recording/record_suspec.py [--check]

`SUSPEC_BIN` names the CLI (and `NODE_BIN` Node, for an entry that is a script).
Without it a package called `suspec-cli` in a folder beside this repository is
used. Any other package is refused. `--check` writes nothing and fails when the
recordings are not what the CLI answers now.
"""

import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapters.suspec.executable import code_files, package_root

DATA = Path(__file__).parents[1] / "data" / "suspec"
REPOSITORY = Path(__file__).parents[2]
PACKAGE = "suspec-cli"
PLACEHOLDER = "{{ROOT}}"

Case = dict[str, Any]


def load_scenarios() -> list[Case]:
    """What is recorded: files, setup steps, and the tool call or the arguments."""
    cases: list[Case] = json.loads((DATA / "scenarios.json").read_text(encoding="utf-8"))["cases"]
    return cases


def load_recorded() -> dict[str, Case]:
    """What the CLI answered, by case id: `argv`, `exit`, `stdout`, `stderr`."""
    recorded: dict[str, Case] = json.loads((DATA / "recorded.json").read_text(encoding="utf-8"))
    return recorded


def in_folder(value: Any, root: Path) -> Any:
    """`value` with the placeholder replaced by a folder."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, str(root))
    if isinstance(value, list):
        return [in_folder(child, root) for child in value]
    if isinstance(value, dict):
        return {key: in_folder(child, root) for key, child in value.items()}
    return value


def materialise(case: Case, root: Path) -> None:
    """Write the files of a case into an empty folder and run its setup steps."""
    for file in case["files"]:
        target = root / file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        content = base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode()
        target.write_bytes(content)
    for step in case.get("setup", []):
        target = root / step["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        match step["op"]:
            case "symlink":
                target.symlink_to(step["target"])
            case "hardlink":
                target.hardlink_to(root / step["target"])
            case "write_numbered":
                numbers = range(step["from"], step["to"] + 1)
                units = "".join(step["unit"].replace("{n}", str(n)) for n in numbers)
                target.write_text(step["head"] + units, encoding="utf-8")
            case other:
                raise ValueError(f"unknown setup step {other}")


def arguments_of(case: Case) -> list[str]:
    """The arguments that the tool call of a case leads to, written down independently of the adapter."""
    if "argv" in case:
        return list(case["argv"])
    request = case["request"]
    if request["tool"] == "suspec_get_checks":
        return ["check", "--contract", "--json"]
    spec = request["arguments"].get("specPath")
    return ["check", *request["arguments"]["paths"], *(["--spec", spec] if spec else []), "--json"]


def run_case(cli: Sequence[str], case: Case, root: Path) -> Case:
    """Run the CLI on a materialised case; the folder is the placeholder again in the result."""
    argv = arguments_of(case)
    done = subprocess.run(
        [*cli, *in_folder(argv, root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        timeout=60,
        check=False,
    )
    return {
        "argv": argv,
        "exit": done.returncode,
        "stdout": done.stdout.decode("utf-8").replace(str(root), PLACEHOLDER),
        "stderr": done.stderr.decode("utf-8").replace(str(root), PLACEHOLDER),
    }


def find_cli(environ: Mapping[str, str], repository: Path = REPOSITORY) -> Path:
    """The entry of the package that may be recorded.

    Raises:
        SystemExit: There is none, or it is another package.
    """
    named = environ.get("SUSPEC_BIN")
    if named:
        entry = Path(named)
        root = package_root(entry) if entry.is_file() else None
        if root is None or package_manifest(root).get("name") != PACKAGE:
            raise SystemExit(f"SUSPEC_BIN is no entry of a package called {PACKAGE}: {named}")
        return entry
    for folder in sorted(repository.parent.iterdir()):
        manifest = package_manifest(folder)
        if manifest.get("name") == PACKAGE:
            return folder / str(manifest["bin"]["suspec"])
    raise SystemExit(f"no package called {PACKAGE} beside the repository; set SUSPEC_BIN")


def package_manifest(folder: Path) -> dict[str, Any]:
    """The `package.json` of a folder; empty where there is none."""
    try:
        manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def provenance(entry: Path, node: str, contract: str) -> dict[str, Any]:
    """Which CLI answered: its package and commit, the entry, and the code that really runs."""
    root = package_root(entry)
    assert root is not None
    code = code_files(entry)
    return {
        "package": package_manifest(root)["name"],
        "packageVersion": package_manifest(root)["version"],
        "contractVersion": json.loads(contract)["version"],
        "contractSha256": hashlib.sha256(contract.encode()).hexdigest(),
        "git": _git_state(root),
        "entry": {"path": _relative(entry, root), "sha256": hashlib.sha256(entry.read_bytes()).hexdigest()},
        "code": {
            "folder": _relative(code[0], root).partition("/")[0],
            "files": len(code),
            "sha256": _sha256(*(part for path in code for part in (_relative(path, root).encode(), path.read_bytes()))),
        },
        "runtime": {
            "platform": f"{platform.system().lower()} {platform.machine()}",
            "node": _output(node, "--version").decode().strip(),
        },
    }


def _git_state(root: Path) -> dict[str, Any] | None:
    """Commit and digest of everything that differs from it; `None` outside a checkout of its own."""
    top = _output("git", "-C", str(root), "rev-parse", "--show-toplevel").decode().strip()
    if not top or Path(top).resolve() != root.resolve():
        return None
    changes = _output("git", "-C", str(root), "diff", "--binary", "HEAD")
    listed = _output("git", "-C", str(root), "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    untracked = [name for name in sorted(listed) if name]
    contents = [(root / os.fsdecode(name)).read_bytes() for name in untracked]
    return {
        "head": _output("git", "-C", str(root), "rev-parse", "HEAD").decode().strip(),
        "dirty": bool(changes or untracked),
        "worktreeSha256": _sha256(changes, *(part for pair in zip(untracked, contents, strict=True) for part in pair)),
    }


def _output(*argv: str) -> bytes:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.realpath(path)).relative_to(os.path.realpath(root)).as_posix()


def _sha256(*parts: bytes) -> str:
    """One digest of several texts; each counts with its length, so that none can be shifted into the next."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def cli_command(entry: Path, environ: Mapping[str, str]) -> list[str]:
    """How the entry is started."""
    node = environ.get("NODE_BIN") or "node"
    return [node, str(entry)] if entry.suffix in (".js", ".mjs") else [str(entry)]


def record(entry: Path, environ: Mapping[str, str]) -> tuple[dict[str, Case], dict[str, Any]]:
    """Run every scenario."""
    cli = cli_command(entry, environ)
    recorded: dict[str, Case] = {}
    for case in load_scenarios():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            materialise(case, root)
            recorded[case["id"]] = run_case(cli, case, root)
    if recorded["contract"]["exit"]:
        raise SystemExit(f"the CLI shows no contract: {recorded['contract']['stderr']}")
    return recorded, provenance(entry, environ.get("NODE_BIN") or "node", recorded["contract"]["stdout"])


def main(arguments: Sequence[str]) -> int:
    """Record, or compare with what is recorded."""
    recorded, source = record(find_cli(os.environ), os.environ)
    if "--check" in arguments:
        before = load_recorded()
        changed = sorted(key for key in before.keys() | recorded.keys() if before.get(key) != recorded.get(key))
        print("\n".join(f"differs: {key}" for key in changed) or f"{len(recorded)} cases are as recorded")
        return 1 if changed else 0
    for name, content in (("recorded", recorded), ("provenance", source)):
        (DATA / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"recorded {len(recorded)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
