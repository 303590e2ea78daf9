"""The server under clients that are not ours: both TypeScript SDKs and the Inspector."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.bring import TOOLS, command_of, tools_folder

HERE = Path(__file__).parent
SERVER = [sys.executable, "-m", "dependfix_mcp"]
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("GITHUB_", "GH_", "DEPENDFIX_", "SUSPEC_"))
}
ENVIRONMENT["PYTHONPATH"] = str(HERE.parents[1] / "src")
# One answer of each kind: a success, a failure of the tool, a bad argument, an unknown one.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("history", {}),
    ("fetch_alerts", {"repo": "octo/shop"}),
    ("history", {"limit": 0}),
    ("history", {"unknown": 1}),
]


@pytest.mark.timeout(120)
@pytest.mark.needs_tool("mcp-sdk-1", "mcp-client-2", "node-22")
@pytest.mark.parametrize(
    ("sdk", "tool", "era"), [("v1", "mcp-sdk-1", ""), ("v2", "mcp-client-2", "legacy"), ("v2", "mcp-client-2", "auto")]
)
def test_a_typescript_client_reads_every_kind_of_answer(sdk: str, tool: str, era: str, tmp_path: Path) -> None:
    folder = tools_folder()
    node = command_of("node-22", folder)
    assert node is not None
    modules = folder / f"{tool}-{TOOLS[tool].version}" / "node_modules"

    run = subprocess.run(
        [*node, str(HERE / "ts_client.mjs"), sdk, str(modules), *SERVER],
        env={**ENVIRONMENT, "CALLS": json.dumps(CALLS), "ERA": era, "DEPENDFIX_REPORT_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr[-3000:]
    seen = json.loads(run.stdout)
    assert {"fetch_alerts", "run_scan", "suspec_check", "ready"} <= set(seen["tools"])
    assert [call.get("structured", call).get("code", "ok") for call in seen["calls"]] == [
        "ok",
        "auth_missing",
        "invalid_arguments",
        "invalid_arguments",
    ]
    for call in seen["calls"]:
        assert json.loads(call["text"]) == call["structured"]
        assert call["isError"] is not call["structured"]["ok"]


@pytest.mark.timeout(120)
@pytest.mark.needs_tool("inspector", "node-22")
@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["--method", "tools/list", "--strict"], 0),
        (["--method", "tools/call", "--tool-name", "history", "--tool-args-json", "{}"], 0),
        (["--method", "tools/call", "--tool-name", "fetch_alerts", "--tool-args-json", '{"repo": "octo/shop"}'], 5),
        (["--protocol-era", "modern", "--method", "resources/read", "--uri", "sudocode://quickstart"], 0),
        (["--method", "resources/list"], 0),
        (["--method", "prompts/list"], 0),
    ],
)
def test_the_inspector_accepts_the_server(arguments: list[str], exit_code: int, tmp_path: Path) -> None:
    command = command_of("inspector", tools_folder())
    assert command is not None

    run = subprocess.run(
        [*command, "--cli", *arguments, "--format", "json", "-q", "--", *SERVER],
        env={**ENVIRONMENT, "MCP_CATALOG_PATH": str(tmp_path / "catalog.json"), "DEPENDFIX_REPORT_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == exit_code, run.stdout[-3000:] + run.stderr[-3000:]
