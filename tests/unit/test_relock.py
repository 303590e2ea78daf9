import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dependfix_core.ecosystems.base import ToolCall, ToolRelock
from dependfix_core.errors import CommandNotFoundError, CommandTimeoutError
from dependfix_core.metadata.addresses import RegistryAddresses, public_default
from dependfix_core.metadata.configuration import read_client_configuration
from dependfix_core.model.files import ChangeSet, FileChange
from dependfix_core.process import Command, CommandResult
from dependfix_core.relock import Relocker, RelockFailure

pytestmark = pytest.mark.anyio

TOKEN = "planted-registry-token"
LOCK = {"package.json": b"{}\n", "package-lock.json": b"old\n"}


class FakeTool:
    """Answers `--version`, then does to the scratch copy what the test says."""

    def __init__(self, work: Callable[[Command], CommandResult | None], version: str = "11.19.1") -> None:
        self.work = work
        self.version = version
        self.commands: list[Command] = []

    async def run(self, command: Command) -> CommandResult:
        self.commands.append(command)
        if command.argv[-1] == "--version":
            return self.result(command, stdout=self.version.encode() + b"\n")
        return self.work(command) or self.result(command)

    @staticmethod
    def result(command: Command, *, exit_code: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> CommandResult:
        return CommandResult(argv=command.argv, exit_code=exit_code, stdout=stdout, stderr=stderr, duration_s=0)


def writes(path: str, content: bytes) -> Callable[[Command], None]:
    def work(command: Command) -> None:
        (command.cwd / path).write_bytes(content)

    return work


def wanted(version: str = "11", *calls: ToolCall, registries: dict[str, str] | None = None) -> ToolRelock:
    return ToolRelock(
        tool="npm",
        version=version,
        files=LOCK,
        results=("package-lock.json",),
        calls=calls or (ToolCall(argv=("npm", "install", "--package-lock-only")),),
        registries=registries or {},
        by_hand="npm install --package-lock-only",
    )


async def relock(
    tool: FakeTool, what: ToolRelock, addresses: RegistryAddresses | None = None
) -> ChangeSet | RelockFailure:
    return await Relocker(tool, addresses or RegistryAddresses()).relock(what, LOCK)


async def test_only_the_changed_result_comes_back_and_the_scratch_copy_goes() -> None:
    tool = FakeTool(writes("package-lock.json", b"new\n"))

    changes = await relock(tool, wanted())

    assert changes == ChangeSet(changes=(FileChange(path="package-lock.json", before=b"old\n", after=b"new\n"),))
    assert tool.commands[-1].argv == ("npm", "install", "--package-lock-only")
    assert not tool.commands[-1].cwd.exists()


async def test_a_temporary_file_of_one_call_is_there_for_that_call_only() -> None:
    seen: list[bytes] = []

    def work(command: Command) -> None:
        seen.append((command.cwd / "package.json").read_bytes())

    argv = ("npm", "install")
    calls = (
        ToolCall(argv=argv, files={"package.json": b"override\n"}),
        ToolCall(argv=argv, files={"package.json": b"{}\n"}),
    )

    assert await relock(FakeTool(work), wanted("11", *calls)) == ChangeSet()
    assert seen == [b"override\n", b"{}\n"]


async def test_a_tool_that_changes_another_file_has_failed() -> None:
    failure = await relock(FakeTool(writes("package.json", b"{ }\n")), wanted())

    assert isinstance(failure, RelockFailure)
    assert failure.reason == "tool-required"
    assert "package.json" in failure.detail


@pytest.mark.parametrize(
    ("named", "fits"), [("", True), ("11", True), ("11.0.0", True), ("10.9.4", False), ("6", False)]
)
async def test_another_major_than_the_project_names_does_not_write(named: str, *, fits: bool) -> None:
    answer = await relock(FakeTool(writes("package-lock.json", b"new\n")), wanted(named))

    assert isinstance(answer, ChangeSet) is fits
    if isinstance(answer, RelockFailure):
        assert "11.19.1" in answer.detail
        assert "npm install --package-lock-only" in answer.detail


async def test_a_missing_tool_names_the_command_for_a_person() -> None:
    class Missing:
        async def run(self, command: Command) -> CommandResult:
            raise CommandNotFoundError("npm was not found", argv=command.argv)

    failure = await Relocker(Missing(), RegistryAddresses()).relock(wanted(), LOCK)

    assert isinstance(failure, RelockFailure)
    assert failure.reason == "tool-required"
    assert failure.detail.endswith("by hand: npm install --package-lock-only")


async def test_what_a_failing_tool_prints_is_cleaned_and_holds_no_secret_or_path(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(
        f"registry=https://user.registry.example/\n//user.registry.example/:_authToken={TOKEN}\n", encoding="utf-8"
    )
    user = RegistryAddresses({}, read_client_configuration(tmp_path, {}))

    def work(command: Command) -> CommandResult:
        printed = f"\x1b[31mERR\x1b[0m {TOKEN} in {command.cwd}\n".encode()
        return FakeTool.result(command, exit_code=1, stderr=printed)

    failure = await relock(FakeTool(work), wanted(), user)

    assert failure == RelockFailure(reason="tool-required", detail="npm failed (1): ERR [redacted] in .")


async def test_a_tool_out_of_time_is_a_failure_of_this_unit() -> None:
    def work(command: Command) -> None:
        raise CommandTimeoutError("npm did not end", argv=command.argv)

    assert await relock(FakeTool(work), wanted()) == RelockFailure(reason="tool-required", detail="npm did not end")


async def test_the_tool_sees_a_private_home_with_its_own_hosts_and_credentials_only(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(
        "@acme:registry=https://acme.registry.example/npm/\n"
        f"//acme.registry.example/npm/:_authToken={TOKEN}\n//other.registry.example/:_authToken=not-for-this\n",
        encoding="utf-8",
    )
    user = RegistryAddresses({"pip": "https://x.registry.example"}, read_client_configuration(tmp_path, {}))
    homes: list[dict[str, str]] = []

    def work(command: Command) -> None:
        home = Path(command.env["HOME"])
        homes.append({path.name: path.read_text(encoding="utf-8") for path in home.iterdir() if path.is_file()})

    tool = FakeTool(work)
    await relock(tool, wanted(registries={"": "https://project.registry.example/", "@acme": ""}), user)

    (files,) = homes
    assert files[".npmrc"].splitlines() == [
        "ignore-scripts=true",
        "audit=false",
        "fund=false",
        "update-notifier=false",
        "progress=false",
        "registry=https://project.registry.example/",
        "@acme:registry=https://acme.registry.example/npm/",
        f"//acme.registry.example/npm/:_authToken={TOKEN}",
    ]
    assert json.loads(files[".yarnrc.yml"])["npmRegistries"] == {
        "//acme.registry.example/npm": {"npmAlwaysAuth": True, "npmAuthToken": TOKEN}
    }
    command = tool.commands[-1]
    assert TOKEN not in json.dumps([*command.argv, *command.env.values()])
    assert not {"HOME", "GITHUB_TOKEN"} & set(command.inherit)


async def test_a_registry_that_a_project_may_not_name_is_not_asked() -> None:
    tool = FakeTool(writes("package-lock.json", b"new\n"))

    failure = await relock(tool, wanted(registries={"": "http://169.254.169.254/"}))

    assert isinstance(failure, RelockFailure)
    assert failure.reason == "metadata-unavailable"
    assert tool.commands == []


PUBLIC = public_default("pip")
PIP_LOCK = {"pyproject.toml": b"[project]\n", "uv.lock": b"old\n"}


def python(tool: str, registries: dict[str, str] | None = None, **more: Any) -> ToolRelock:
    fields: dict[str, Any] = {
        "tool": tool,
        "version": "",
        "files": PIP_LOCK,
        "results": ("uv.lock",),
        "calls": (ToolCall(argv=(tool, "lock")),),
        "registries": registries or {},
        **more,
    }
    return ToolRelock(**fields)


async def test_an_index_s_password_reaches_a_python_tool_by_a_private_file_only(tmp_path: Path) -> None:
    place = tmp_path / ".config" / "pip" / "pip.conf"
    place.parent.mkdir(parents=True)
    place.write_text("[global]\nindex-url = https://us:p%20w%22%5C@user.registry.example/simple\n", encoding="utf-8")
    user = RegistryAddresses({}, read_client_configuration(tmp_path, {}))
    homes: list[dict[str, str]] = []

    def work(command: Command) -> None:
        home = Path(command.env["HOME"])
        homes.append({path.name: path.read_text(encoding="utf-8") for path in home.iterdir() if path.is_file()})

    tool = FakeTool(work)
    await relock(tool, python("uv", {"": "https://user.registry.example/simple/"}), user)

    assert homes == [{".netrc": 'machine user.registry.example login "us" password "p w\\"\\\\"\n'}]
    env = tool.commands[-1].env
    assert env["NETRC"] == f"{env['HOME']}/.netrc"
    assert (env["UV_DEFAULT_INDEX"], env["PIP_INDEX_URL"]) == ("https://user.registry.example/simple",) * 2
    assert 'p w"\\' not in json.dumps([*tool.commands[-1].argv, *env.values()])
    assert (env["PIP_CONFIG_FILE"], env["UV_NO_BUILD"]) == (os.devnull, "1")


@pytest.mark.parametrize(
    ("tool", "written", "runs"),
    [
        ("uv", {"": "https://project.registry.example/simple"}, False),
        ("uv", {"": "https://mirror.registry.example/simple"}, True),
        ("uv", {"private": "https://project.registry.example/simple"}, False),
        ("poetry", {}, False),
        ("poetry", {"": "https://mirror.registry.example/simple/"}, True),
        ("pdm", {}, True),
        ("pipenv", {"": f"{PUBLIC}/", "pypi": f"{PUBLIC}/"}, True),
        ("pipenv", {"": "https://project.registry.example/simple"}, False),
        ("pip-tools", {}, True),
        ("pip-tools", {"": f"{PUBLIC}"}, False),
    ],
)
async def test_a_tool_that_would_ask_another_index_than_the_one_that_is_set_does_not_run(
    tool: str, written: dict[str, str], *, runs: bool
) -> None:
    fake = FakeTool(writes("uv.lock", b"new\n"))

    answer = await relock(
        fake, python(tool, written), RegistryAddresses({"pip": "https://mirror.registry.example/simple"})
    )

    assert isinstance(answer, ChangeSet) is runs
    if isinstance(answer, RelockFailure):
        assert (answer.reason, fake.commands) == ("metadata-unavailable", [])


async def test_variables_of_one_call_are_there_for_that_call_only() -> None:
    seen: list[str | None] = []

    def work(command: Command) -> None:
        seen.append(command.env.get("PIP_ONLY_BINARY"))

    argv = ("pip-compile",)
    calls = (ToolCall(argv=argv, env={"PIP_ONLY_BINARY": ":all:"}), ToolCall(argv=argv))

    await relock(FakeTool(work), python("pip-tools", calls=calls))

    assert seen == [":all:", None]


async def test_an_edited_file_that_was_laid_differently_is_restored_in_the_result() -> None:
    laid = {"pyproject.toml": b"neutral\n", "uv.lock": b"old\n"}
    what = python("uv", files=laid, edited=("pyproject.toml",), restored={"pyproject.toml": b"edited\n"})

    changes = await Relocker(FakeTool(writes("uv.lock", b"new\n")), RegistryAddresses()).relock(what, PIP_LOCK)

    assert changes == ChangeSet(
        changes=(
            FileChange(path="pyproject.toml", before=b"[project]\n", after=b"edited\n"),
            FileChange(path="uv.lock", before=b"old\n", after=b"new\n"),
        )
    )
