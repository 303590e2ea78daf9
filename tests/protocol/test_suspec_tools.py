"""The suspec toolset through the MCP door: over the replayed answers always, over the real CLI where there is one."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextResourceContents

from adapters.suspec import SuspecCli, check_request
from dependfix_core.errors import CommandTimeoutError, DependfixError
from dependfix_core.process import SubprocessRunner
from dependfix_mcp.server import build_server
from dependfix_mcp.services import Services
from dependfix_mcp.settings import Secret, Settings
from dependfix_mcp.tools import suspec as suspec_tools
from fakes.suspec_cli import FakeCli, install
from recording.record_suspec import DATA, cli_command, in_folder, load_recorded, load_scenarios, materialise

pytestmark = pytest.mark.anyio

SCENARIOS = {case["id"]: case for case in load_scenarios()}
RECORDED = load_recorded()
ASKED = [case_id for case_id, case in SCENARIOS.items() if "request" in case]
TOKEN = "ghp_planted0000000000000000000000000000"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One case on disk and the CLI that is asked about it."""

    root: Path
    command: list[str]
    settings: Settings
    fake: FakeCli

    def client(self, era: str = "auto", **changes: Any) -> Client:
        settings = Settings(**{**vars(self.settings), **changes})
        return Client(build_server(settings), mode=era)

    def arguments(self, case_id: str, **more: Any) -> dict[str, Any]:
        arguments = in_folder(SCENARIOS[case_id]["request"]["arguments"], self.root)
        assert isinstance(arguments, dict)
        return {**arguments, **more}


@pytest.fixture
def lay(tmp_path: Path) -> Callable[[str], Desk]:
    """Lays out a case with the replaying CLI."""

    def lay(case_id: str) -> Desk:
        root = tmp_path / "case"
        root.mkdir()
        materialise(SCENARIOS[case_id], root)
        fake = install(tmp_path / "cli", DATA / "recorded.json", root, case_id)
        settings = Settings(toolsets=("suspec",), suspec_bin=str(fake.launcher), github_token=Secret(TOKEN))
        return Desk(root=root, command=[str(fake.launcher)], settings=settings, fake=fake)

    return lay


def over_the_real_cli(desk: Desk) -> Desk:
    entry, node = Path(os.environ["SUSPEC_BIN"]).absolute(), os.environ.get("NODE_BIN") or "node"
    settings = Settings(toolsets=("suspec",), suspec_bin=str(entry), node_bin=node)
    found = subprocess.run(["which", node], capture_output=True, text=True, check=True).stdout.strip()
    command = cli_command(entry, {"NODE_BIN": found})
    return Desk(root=desk.root, command=command, settings=settings, fake=desk.fake)


def structured(result: CallToolResult) -> dict[str, Any]:
    """The envelope, once its text is the same and `isError` goes with `ok`."""
    payload = result.structured_content
    assert isinstance(payload, dict)
    (block,) = result.content
    assert block.type == "text"
    assert json.loads(block.text) == payload
    assert block.text == json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    assert result.is_error is not payload["ok"]
    return payload


async def ask(desk: Desk, tool: str, arguments: dict[str, Any], era: str = "auto") -> dict[str, Any]:
    async with desk.client(era) as session:
        return structured(await session.call_tool(tool, arguments))


def without_null_line(document: dict[str, Any]) -> dict[str, Any]:
    if "diagnostics" not in document:
        return document
    diagnostics = [{key: value for key, value in each.items() if value is not None} for each in document["diagnostics"]]
    return {**document, "diagnostics": diagnostics}


HOSTILE_MESSAGES = [
    "source/reference does not resolve: ./evil[31m].md",
    "citation [[KEY]] resolves to no `<a id>` anchor in sources.md",
]
# What concise leaves out, and which answers have something to be noted.
LEFT_OUT = {"spec-many-diagnostics": 80}
NOTED = {
    "alias-dedup", "alias-hardlink", "alias-linked-folder", "unchecked-types", "mixed-batch-warning", "duplicate-id",
    "duplicate-id-three", "duplicate-id-empty", "paths-spaces-unicode", "paths-spellings", "paths-odd-characters",
    "paths-file-set-name",
}  # fmt: skip


def expected_envelope(case_id: str, desk: Desk, response_format: str) -> dict[str, Any]:
    recorded = in_folder(RECORDED[case_id], desk.root)
    source = {"command": shlex.join([*desk.command, *recorded["argv"]]), "exitCode": recorded["exit"]}
    if case_id == "contract":
        contract = json.loads(recorded["stdout"])
        if response_format == "concise":
            rows = [{"id": row["id"], "severity": row["severity"]} for row in contract["checks"]]
            contract = {**contract, "checks": rows}
        return {"ok": True, "source": source, "data": contract, "responseFormat": response_format}
    data = [without_null_line(json.loads(line)) for line in recorded["stdout"].split("\n") if line]
    if "error" in data[0]:
        return {
            "ok": False,
            "error": data[0]["message"],
            "code": "cli_refused",
            "hint": suspec_tools._REFUSED_HINT,
            "retryable": False,
            "source": source,
            "data": data,
            "responseFormat": response_format,
        }
    if case_id == "spec-hostile-text":
        for each, message in zip(data[0]["diagnostics"], HOSTILE_MESSAGES, strict=True):
            each["message"] = message
    if response_format == "concise" and case_id in LEFT_OUT:
        findings = data[0]["diagnostics"]
        data[0]["diagnostics"] = findings[:100]
        codes = [each["code"] for each in findings[100:]]
        data[0]["omittedCount"] = len(codes)
        data[0]["omitted"] = [{"code": code, "count": codes.count(code)} for code in sorted(set(codes))]
    return {"ok": True, "source": source, "data": data, "responseFormat": response_format}


def is_noted(case_id: str, response_format: str) -> bool:
    refused = '"error":' in RECORDED[case_id]["stdout"]
    return refused or case_id in NOTED or (response_format == "concise" and case_id in LEFT_OUT)


@pytest.mark.parametrize("case_id", ASKED)
@pytest.mark.parametrize("cli", ["replayed", pytest.param("real", marks=pytest.mark.needs_tool("suspec"))])
async def test_every_case_has_its_envelope_in_both_formats(lay: Callable[[str], Desk], cli: str, case_id: str) -> None:
    desk = lay(case_id)
    if cli == "real":
        desk = over_the_real_cli(desk)
    tool = SCENARIOS[case_id]["request"]["tool"]

    async with desk.client() as session:
        schemas = {each.name: each.output_schema for each in (await session.list_tools()).tools}
        for response_format in ("concise", "detailed"):
            arguments = desk.arguments(case_id, responseFormat=response_format)
            payload = structured(await session.call_tool(tool, arguments))

            jsonschema.validate(payload, schemas[tool] or {})
            note = payload.pop("note", "")
            assert payload == expected_envelope(case_id, desk, response_format)
            assert bool(note) == is_noted(case_id, response_format)
    assert not desk.fake.saw_forbidden


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("case_id", ["mixed-batch-warning", "error-two-missing"])
async def test_both_protocol_eras_answer_the_same(lay: Callable[[str], Desk], era: str, case_id: str) -> None:
    desk = lay(case_id)

    payload = await ask(desk, "suspec_check", desk.arguments(case_id), era)

    payload.pop("note")
    assert payload == expected_envelope(case_id, desk, "concise")


async def test_the_child_sees_the_paths_and_nothing_of_the_server(
    lay: Callable[[str], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "NODE_OPTIONS", "NPM_TOKEN", "AI_API_KEY", "HTTPS_PROXY", "SUDOCODE_DB"):
        monkeypatch.setenv(name, TOKEN)
    desk = lay("task-batch-blocking")

    await ask(desk, "suspec_check", desk.arguments("task-batch-blocking"))

    *gates, check = desk.fake.calls()
    assert [gate["argv"] for gate in gates] == [["check", "--contract", "--json"]]
    assert check["argv"] == in_folder(RECORDED["task-batch-blocking"]["argv"], desk.root)
    for call in (*gates, check):
        assert (call["stdin"], call["cwd"]) == ("", "/")
        allowed = {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "DEPENDFIX_CHILD"}
        assert set(call["environ"]) <= allowed


def is_alive(pid: int) -> bool:
    """A killed child without a parent that reaps it stays as a zombie; that is not alive."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def survivors(fake: FakeCli) -> list[int]:
    """What the CLI started and what still runs; a killed process takes a moment to go."""
    pids = fake.left_pids()
    assert pids
    for _ in range(300):
        if not any(map(is_alive, pids)):
            return []
        time.sleep(0.01)
    return [pid for pid in pids if is_alive(pid)]


linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are counted through /proc")
CLEAN = RECORDED["spec-clean"]["stdout"]


@linux
@pytest.mark.parametrize(
    ("act", "code", "processes"),
    [
        ("hang", "timeout", 2),
        ("fork-and-hang", "timeout", 3),
        ("fork", None, 3),
        ("leave-in-session", None, 3),
        ("leave-daemon", None, 3),
        ("flood", "output_too_large", 2),
        ("die", "cli_broken", 2),
    ],
)
async def test_a_misbehaving_cli_leaves_no_process_and_the_server_goes_on(
    lay: Callable[[str], Desk], act: str, code: str | None, processes: int
) -> None:
    desk = lay("spec-clean")
    desk.fake.plan(check={"act": act})

    async with desk.client(suspec_timeout_s=2 if code == "timeout" else 30) as session:
        first = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
        assert len(desk.fake.left_pids()) == processes
        assert survivors(desk.fake) == []
        desk.fake.plan(check={"replay": True})
        second = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert first.get("code") == code
    assert second == expected_envelope("spec-clean", desk, "concise")
    assert not (desk.fake.folder / "flooded").exists()


@linux
async def test_a_hanging_gate_ends_too(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    desk.fake.plan(contract={"act": "hang"})
    cli = SuspecCli(runner=SubprocessRunner(), executable=desk.command[0], contract_timeout_s=2)

    with pytest.raises(CommandTimeoutError):
        await cli.check(check_request(["/a.md"]))

    assert desk.fake.checks() == []
    assert survivors(desk.fake) == []


@linux
async def test_a_cancelled_call_leaves_no_process(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    desk.fake.plan(check={"act": "fork-and-hang"})

    async with desk.client() as session:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(session.call_tool, "suspec_check", desk.arguments("spec-clean"))
                while len(desk.fake.left_pids()) < 3:  # noqa: ASYNC110  # other processes write it
                    await anyio.sleep(0.01)
                scope.cancel()
        for _ in range(300):
            if not any(map(is_alive, desk.fake.left_pids())):
                break
            await anyio.sleep(0.01)
        desk.fake.plan(check={"replay": True})
        payload = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert survivors(desk.fake) == []
    assert payload["ok"] is True


@pytest.mark.parametrize(
    ("stdout", "exit_code", "stderr", "code", "details"),
    [
        (CLEAN[:-20].encode(), 0, b"", "bad_output", {"reason": "json", "exitCode": 0}),
        (CLEAN.replace("clean", "cle\x00an").encode(), 0, b"", "bad_output", {"reason": "json", "exitCode": 0}),
        (CLEAN.encode().replace(b"clean", b"cl\xffean"), 0, b"", "bad_output", {"reason": "encoding", "exitCode": 0}),
        (b"", 0, b"", "bad_output", {"reason": "empty", "exitCode": 0}),
        (b"Usage: suspec\n", 0, b"", "bad_output", {"reason": "json", "exitCode": 0}),
        (CLEAN.encode(), 1, b"", "bad_output", {"reason": "exit-code", "exitCode": 1}),
        (CLEAN.encode(), 7, b"sp\x1b[31mlat\xe2\x80\xae!\n", "cli_failed", {"exitCode": 7, "stderr": "splat!"}),
        (b"", 2, b"ENOENT: no such file or directory, uv_cwd", "cli_failed", {"exitCode": 2, "stderr": "ENOENT: no such file or directory, uv_cwd"}),
        (b"", 127, b"env: 'node': No such file or directory", "cli_broken", {"exitCode": 127, "stderr": "env: 'node': No such file or directory"}),
    ],
    ids=["cut", "nul", "not-utf8", "empty", "text", "wrong-exit", "unknown-exit", "no-working-directory", "no-node"],
)  # fmt: skip
async def test_an_unusable_answer_has_its_code_and_the_server_goes_on(
    lay: Callable[[str], Desk], stdout: bytes, exit_code: int, stderr: bytes, code: str, details: dict[str, Any]
) -> None:
    desk = lay("spec-clean")
    desk.fake.answer("check", in_folder(stdout.decode("latin-1"), desk.root).encode("latin-1"), exit_code, stderr)

    async with desk.client() as session:
        first = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
        desk.fake.plan(check={"replay": True})
        second = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    if code == "cli_failed" and "stderr" not in details:
        details = {**details, "stderr": ""}
    assert (first["code"], first["details"]) == (code, {**details, "executable": desk.command[0]})
    assert "data" not in first
    assert second["ok"] is True


def go_where_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "going"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.mark.parametrize("named", [True, False])
async def test_a_deleted_working_directory_is_no_obstacle(
    lay: Callable[[str], Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    desk = lay("spec-clean")
    monkeypatch.setenv("PATH", f"{desk.fake.folder}{os.pathsep}{os.environ['PATH']}")
    go_where_nothing_is(tmp_path, monkeypatch)

    async with desk.client(suspec_bin=str(desk.fake.launcher) if named else None) as session:
        payload = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert payload == expected_envelope("spec-clean", desk, "concise")


async def test_a_relative_executable_below_a_deleted_directory_is_missing(
    lay: Callable[[str], Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = lay("spec-clean")
    go_where_nothing_is(tmp_path, monkeypatch)

    async with desk.client(suspec_bin="bin/suspec") as session:
        payload = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert payload["code"] == "cli_missing"


async def test_the_home_folder_may_be_written_as_in_a_shell(
    lay: Callable[[str], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts start servers without one."""
    desk = lay("spec-clean")
    monkeypatch.setenv("HOME", str(desk.fake.folder))

    async with desk.client(suspec_bin="~/suspec") as session:
        found = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
    async with desk.client(suspec_bin="~no-such-user/suspec") as session:
        missing = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert found == expected_envelope("spec-clean", desk, "concise")
    assert missing["code"] == "cli_missing"


OLD = RECORDED["contract"]["stdout"].replace("0.26.0", "0.23.0").encode()


async def test_a_missing_cli_is_said_by_both_tools_and_raised_by_the_resource(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async with Client(build_server(Settings(toolsets=("suspec",)))) as session:
        check = structured(await session.call_tool("suspec_check", {"paths": ["/a.md"]}))
        checks = structured(await session.call_tool("suspec_get_checks", {}))
        with pytest.raises(MCPError) as caught:
            await session.read_resource("suspec://checks")

    assert check == checks == caught.value.error.data
    assert (check["code"], check["details"], check["retryable"]) == ("cli_missing", {"needed": "0.26.0"}, False)
    assert caught.value.code == -32603


async def test_another_contract_is_said_with_what_was_found_and_what_is_needed(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    desk.fake.answer("contract", OLD, 0)

    async with desk.client() as session:
        check = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
        checks = structured(await session.call_tool("suspec_get_checks", {}))
        with pytest.raises(MCPError) as caught:
            await session.read_resource("suspec://checks")

    assert check == checks == caught.value.error.data
    assert check["code"] == "contract_mismatch"
    assert check["details"] == {"found": "0.23.0", "needed": "0.26.0", "executable": desk.command[0]}
    assert desk.fake.checks() == []


async def test_a_refused_contract_is_a_refusal_of_the_tool_and_a_failed_gate_elsewhere(
    lay: Callable[[str], Desk],
) -> None:
    desk = lay("spec-clean")
    desk.fake.answer("contract", b'{"error":"Usage","message":"not today"}\n', 2)

    async with desk.client() as session:
        checks = structured(await session.call_tool("suspec_get_checks", {}))
        check = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
        with pytest.raises(MCPError) as caught:
            await session.read_resource("suspec://checks")

    assert (checks["code"], checks["data"]) == ("cli_refused", {"error": "Usage", "message": "not today"})
    assert checks["source"]["exitCode"] == 2
    assert check["code"] == "contract_mismatch"
    assert caught.value.error.data["code"] == "cli_refused"
    assert desk.fake.checks() == []


async def test_the_resource_is_the_full_contract_asked_anew(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")

    async with desk.client() as session:
        (listed,) = (await session.list_resources()).resources
        (content,) = (await session.read_resource("suspec://checks")).contents
        before = len(desk.fake.calls())
        (again,) = (await session.read_resource("suspec://checks")).contents
        assert len(desk.fake.calls()) == before + 1
        desk.fake.answer("contract", OLD, 0)
        with pytest.raises(MCPError):
            await session.read_resource("suspec://checks")

    assert content == again
    assert isinstance(content, TextResourceContents)
    assert (listed.uri, content.mime_type, listed.mime_type) == (
        "suspec://checks",
        "application/json",
        "application/json",
    )
    assert content.text == RECORDED["contract"]["stdout"].rstrip("\n")


async def test_a_replaced_executable_passes_the_gate_again_before_it_checks(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")

    async with desk.client() as session:
        await session.call_tool("suspec_check", desk.arguments("spec-clean"))
        desk.fake.answer("contract", OLD, 0)
        os.utime(desk.fake.launcher, ns=(1, 1))
        refused = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
        desk.fake.plan(contract={"replay": True})
        accepted = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert refused["code"] == "contract_mismatch"
    assert accepted["ok"] is True
    assert len(desk.fake.checks()) == 2


@pytest.mark.parametrize(
    ("arguments", "details"),
    [
        ({}, {"argument": "paths"}),
        ({"paths": []}, {"argument": "paths"}),
        ({"paths": "/a.md"}, {"argument": "paths"}),
        ({"paths": [1]}, {"argument": "paths"}),
        ({"paths": ["/a"] * 257}, {"argument": "paths"}),
        ({"paths": ["/a.md"], "responseFormat": "full"}, {"argument": "responseFormat"}),
        ({"paths": ["/a.md"], "specPath": 5}, {"argument": "specPath"}),
        ({"paths": ["/a.md"], "taskPath": "/t.md"}, {"argument": "taskPath"}),
        ({"paths": ["/a.md"], "setup": True}, {"argument": "setup"}),
        ({"paths": ["/a.md", "b.md"]}, {"argument": "paths", "rule": "absolute", "index": 1}),
        ({"paths": ["setup"]}, {"argument": "paths", "rule": "absolute", "index": 0}),
        ({"paths": ["/a\u202emd"]}, {"argument": "paths", "rule": "character", "index": 0}),
        ({"paths": ["/dev/stdin"]}, {"argument": "paths", "rule": "device", "index": 0}),
        ({"paths": ["/a.md"], "specPath": ""}, {"argument": "specPath", "rule": "empty"}),
    ],
)
async def test_a_bad_argument_starts_no_check(
    lay: Callable[[str], Desk], arguments: dict[str, Any], details: dict[str, Any]
) -> None:
    desk = lay("spec-clean")

    payload = await ask(desk, "suspec_check", arguments)

    assert (payload["code"], payload["details"]) == ("invalid_arguments", details)
    assert desk.fake.checks() == []


async def test_a_retired_argument_has_its_own_explanation(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")

    retired = await ask(desk, "suspec_check", {"paths": ["/a.md"], "taskPath": "/t.md"})
    unknown = await ask(desk, "suspec_check", {"paths": ["/a.md"], "other": "/t.md"})
    unknown_there = await ask(desk, "suspec_get_checks", {"paths": ["/a.md"]})

    assert "specPath" in retired["hint"]
    assert retired["hint"] != unknown["hint"]
    assert unknown_there["code"] == "invalid_arguments"


async def test_the_verb_that_writes_cannot_be_reached(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")

    await anyio.run_process([*desk.command, "setup"], check=False)
    assert desk.fake.saw_forbidden
    async with desk.client() as session:
        names = [tool.name for tool in (await session.list_tools()).tools]
        refused = await session.call_tool("setup", {})

    assert names == ["suspec_check", "suspec_get_checks"]
    assert refused.is_error
    assert [call["argv"] for call in desk.fake.calls() if "setup" in call["argv"]] == [["setup"]]


async def test_too_many_diagnostics_for_detailed_are_said_to_be_too_many(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    finding = {"code": "C008", "severity": "warning", "message": "m" * 120, "line": None}
    report = {"type": "spec", "level": "warning", "path": str(desk.root / "spec.md"), "diagnostics": [finding] * 6_000}
    desk.fake.answer("check", json.dumps(report).encode(), 1)

    async with desk.client() as session:
        detailed = structured(
            await session.call_tool("suspec_check", desk.arguments("spec-clean", responseFormat="detailed"))
        )
        concise = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert detailed["code"] == "output_too_large"
    assert concise["data"][0]["omittedCount"] == 5_900
    assert len(json.dumps(concise)) <= 24_000


async def test_many_long_paths_fit_one_answer(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    paths = [f"{desk.root}/{number:03d}{'x' * 40}.md" for number in range(256)]
    reports = [{"level": "clean", "path": path, "type": "audit", "checked": False} for path in paths]
    desk.fake.answer("check", "".join(json.dumps(each) + "\n" for each in reports).encode(), 0)

    payload = await ask(desk, "suspec_check", {"paths": paths})

    assert [each["path"] for each in payload["data"]] == paths
    assert len(payload["source"]["command"]) < 1_100


async def test_several_calls_at_once(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    answers = []

    async with desk.client() as session:

        async def one() -> None:
            answers.append(structured(await session.call_tool("suspec_check", desk.arguments("spec-clean"))))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)

    assert answers == [expected_envelope("spec-clean", desk, "concise")] * 8
    assert len(desk.fake.checks()) == 8


async def test_a_script_is_run_by_the_named_node(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    script = desk.fake.folder / "suspec.js"
    script.write_text(desk.fake.launcher.read_text())

    async with desk.client(suspec_bin=str(script), node_bin=sys.executable) as session:
        payload = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))
    async with desk.client(suspec_bin=str(script), node_bin="no-such-node") as session:
        without = structured(await session.call_tool("suspec_check", desk.arguments("spec-clean")))

    assert payload["source"]["command"].startswith(shlex.join([sys.executable, str(script), "check"]))
    assert without["code"] == "cli_broken"


async def test_the_gate_can_be_asked_beside_the_start(lay: Callable[[str], Desk]) -> None:
    desk = lay("spec-clean")
    services = Services(settings=desk.settings)
    start = suspec_tools.build(services).start
    assert start is not None

    await start()
    passed = await suspec_tools.gate(services)
    desk.fake.answer("contract", OLD, 0)
    with pytest.raises(DependfixError) as caught:
        await start()
    failed = await suspec_tools.gate(services)

    assert (passed.passed, passed.found, passed.needed) == (True, "0.26.0", "0.26.0")
    assert caught.value.code == "contract_mismatch"
    assert (failed.passed, failed.found, failed.executable) == (False, "0.23.0", desk.command[0])


async def test_both_tools_promise_to_change_nothing() -> None:
    async with Client(build_server(Settings(toolsets=("suspec",), read_only=True))) as session:
        tools = (await session.list_tools()).tools

    for tool in tools:
        hints = tool.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
            True,
            False,
            True,
            False,
        )
        assert tool.title
        assert tool.output_schema
        assert 20 <= len(tool.description or "") <= 1024
        assert "\n  " not in (tool.description or "")


def test_the_adapter_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys\n"
        "from dependfix_mcp.server import build_server\n"
        "from dependfix_mcp.settings import Settings\n"
        "build_server(Settings())\n"
        "sys.exit(any(name.startswith('adapters') for name in sys.modules))\n"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
