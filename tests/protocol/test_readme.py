"""The README says what the code does: tables, codes, commands, and an example that runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dependfix_core.errors import ERROR_CODES
from dependfix_mcp.cli.arguments import COMMANDS
from fakes.github_server import TOKEN
from fakes.storefront import Storefront, git, storefront
from tools.readme import README, with_tables

TEXT = README.read_text(encoding="utf-8")


def test_tables_are_those_of_the_code() -> None:
    assert with_tables(TEXT) == TEXT, "run: python tests/tools/readme.py"


def test_every_error_code_is_explained_once() -> None:
    section = TEXT.partition("## Error codes")[2].partition("\n## ")[0]

    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(ERROR_CODES)


@pytest.mark.parametrize("name", ["run", "test", "lint", "types", "imports"])
def test_each_named_command_stands_alone_under_its_comment(name: str) -> None:
    found = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.+)\n```$", TEXT, re.MULTILINE)

    assert len(found) == 1


def test_every_command_of_the_program_is_mentioned() -> None:
    assert [name for name in COMMANDS if name != "serve" and f"dependfix-mcp {name}" not in TEXT] == []


def test_linked_pages_exist() -> None:
    local = [target for target in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in target]

    assert local
    assert [target for target in local if not (README.parent / target).exists()] == []


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Storefront]:
    with storefront(tmp_path) as found:
        yield found


def test_the_library_example_runs(
    shop: Storefront, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = TEXT.partition("## Library")[2].partition("```python\n")[2].partition("```")[0]
    for name, value in {
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": shop.github.url,
        "DEPENDFIX_REGISTRY_NPM": shop.registry.registries["npm"],
        "DEPENDFIX_REGISTRY_PIP": shop.registry.registries["pip"],
        "DEPENDFIX_REPORT_DIR": str(tmp_path / "reports"),
        "DEPENDFIX_CACHE_DIR": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        # No package manager of this machine writes here.
        "PATH": str(Path(str(git(shop.top, "--exec-path")).strip())),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(shop.top.parent)

    exec(compile(code, "README.md", "exec"), {})  # noqa: S102  # our own example

    assert re.fullmatch(r"9 alerts; \d+ fixed\n", capsys.readouterr().out)
    assert git(shop.top, "status", "--porcelain") != ""
