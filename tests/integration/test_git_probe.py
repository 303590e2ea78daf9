import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from dependfix_core.errors import WorkspaceError
from dependfix_core.process import Command, CommandResult, SubprocessRunner
from dependfix_core.workspace.git import GitCheckout, Remote, dirty_paths, probe_checkout, repositories_of

pytestmark = pytest.mark.anyio

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": "/usr/bin:/bin"}
RUNNER = SubprocessRunner()


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, env=GIT, check=check, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    top = tmp_path / "shop"
    top.mkdir()
    git(top, "init", "-q")
    (top / "package.json").write_text("{}\n", encoding="utf-8")
    (top / "sub dir").mkdir()
    (top / "sub dir" / "größe.txt").write_text("1\n", encoding="utf-8")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "start")
    return top


class SshConfig:
    """Git runs for real; `ssh -G` answers from a table."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self.hosts = hosts
        self.asked: list[str] = []

    async def run(self, command: Command) -> CommandResult:
        if command.argv[0] != "ssh":
            return await RUNNER.run(command)
        name = command.argv[-1]
        self.asked.append(name)
        answer = f"user git\nhostname {self.hosts.get(name, name)}\nport 22\n".encode()
        return CommandResult(argv=command.argv, exit_code=0, stdout=answer, stderr=b"", duration_s=0)


async def test_subfolder_and_linked_worktree_are_the_checkout(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "remote", "add", "upstream", "https://github.com/octo/shop.git")
    git(checkout, "remote", "add", "origin", "git@github.com:me/shop.git")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "topic")
    head = git(checkout, "rev-parse", "HEAD")

    found = await probe_checkout(RUNNER, checkout / "sub dir")
    linked = await probe_checkout(RUNNER, tmp_path / "tree")

    remotes = (
        Remote(name="origin", urls=("git@github.com:me/shop.git",)),
        Remote(name="upstream", urls=("https://github.com/octo/shop.git",)),
    )
    assert found == GitCheckout(top=checkout, git_dir=checkout / ".git", branch="main", head=head, remotes=remotes)
    assert linked == GitCheckout(
        top=tmp_path / "tree",
        git_dir=checkout / ".git" / "worktrees" / "tree",
        branch="topic",
        head=head,
        remotes=remotes,
    )


async def test_what_is_no_working_tree_is_no_checkout(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    (tmp_path / "plain").mkdir()

    assert await probe_checkout(RUNNER, tmp_path / "plain") is None
    assert await probe_checkout(RUNNER, tmp_path / "missing") is None
    assert await probe_checkout(RUNNER, tmp_path / "bare.git") is None
    assert await probe_checkout(RUNNER, checkout / ".git") is None


async def test_detached_head_and_repository_without_commits(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "checkout", "-q", "--detach")
    git(tmp_path, "init", "-q", "empty")

    detached = await probe_checkout(RUNNER, checkout)
    empty = await probe_checkout(RUNNER, tmp_path / "empty")

    assert detached is not None
    assert (detached.branch, detached.head) == (None, git(checkout, "rev-parse", "HEAD"))
    assert empty is not None
    assert (empty.branch, empty.head, empty.remotes) == ("main", None, ())


async def test_broken_configuration_is_an_error_not_an_absence(checkout: Path) -> None:
    (checkout / ".git" / "config").write_text("[broken", encoding="utf-8")

    with pytest.raises(WorkspaceError):
        await probe_checkout(RUNNER, checkout)


async def test_uncommitted_paths_of_every_kind_are_found(checkout: Path) -> None:
    (checkout / "package.json").write_text("{ }\n", encoding="utf-8")
    (checkout / "new file").write_text("", encoding="utf-8")
    (checkout / "staged").write_text("", encoding="utf-8")
    git(checkout, "add", "staged")
    git(checkout, "mv", "sub dir/größe.txt", "moved.txt")

    assert await dirty_paths(RUNNER, checkout) == (
        "moved.txt",
        "new file",
        "package.json",
        "staged",
        "sub dir/größe.txt",
    )
    assert await dirty_paths(RUNNER, checkout, ("package.json", "*")) == ("package.json",)


async def test_unmerged_path_is_dirty(checkout: Path) -> None:
    git(checkout, "checkout", "-qb", "other")
    (checkout / "package.json").write_text("1\n", encoding="utf-8")
    git(checkout, "commit", "-qam", "one")
    git(checkout, "checkout", "-q", "main")
    (checkout / "package.json").write_text("2\n", encoding="utf-8")
    git(checkout, "commit", "-qam", "two")
    git(checkout, "merge", "other", check=False)

    assert await dirty_paths(RUNNER, checkout) == ("package.json",)


async def test_probing_runs_no_program_of_the_checkout(checkout: Path) -> None:
    marker = checkout.parent / "ran"
    hook = checkout / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch '{marker}'\n", encoding="utf-8")
    hook.chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(hook))
    (checkout / ".git" / "hooks" / "post-index-change").write_bytes(hook.read_bytes())
    (checkout / ".git" / "hooks" / "post-index-change").chmod(0o755)

    await probe_checkout(RUNNER, checkout)
    await dirty_paths(RUNNER, checkout)

    assert not marker.exists()


@pytest.mark.parametrize(
    ("url", "host", "names"),
    [
        ("https://github.com/octo/shop", "github.com", ("octo/shop",)),
        ("https://user@github.com/octo/shop.git", "github.com", ("octo/shop",)),
        ("ssh://git@ssh.github.com:443/octo/shop.git", "github.com", ("octo/shop",)),
        ("work:octo/shop.git", "github.com", ("octo/shop",)),
        ("ssh://ghe-alias/octo/shop.git", "ghe.example:8443", ("octo/shop",)),
        ("gh:octo/shop", "github.com", ("octo/shop",)),
        ("https://gitlab.example/octo/shop", "github.com", ()),
        ("https://github.com/octo/shop", "ghe.example", ()),
        ("other:octo/shop.git", "github.com", ()),
        ("/srv/mirrors/octo/shop", "github.com", ()),
    ],
)
async def test_remote_names_the_repository_after_rewrites_and_aliases(
    checkout: Path, url: str, host: str, names: tuple[str, ...]
) -> None:
    git(checkout, "config", "url.https://github.com/.insteadOf", "gh:")
    git(checkout, "remote", "add", "origin", url)
    runner = SshConfig({"work": "github.com", "ghe-alias": "ghe.example", "gh": "elsewhere.example"})

    found = await probe_checkout(runner, checkout)

    assert found is not None
    assert await repositories_of(runner, found, host=host) == names


async def test_with_a_loopback_api_only_the_name_counts(checkout: Path) -> None:
    git(checkout, "remote", "add", "origin", "https://github.com/octo/shop")
    git(checkout, "remote", "add", "zmirror", "https://mirror.example/octo/shop2.git")

    found = await probe_checkout(RUNNER, checkout)

    assert found is not None
    assert await repositories_of(RUNNER, found, host="127.0.0.1:9", any_host=True) == ("octo/shop", "octo/shop2")
