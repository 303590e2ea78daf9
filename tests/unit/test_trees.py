import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from dependfix_core.metadata import NoMetadata
from dependfix_core.model.files import (
    EXECUTABLE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    Absence,
    ChangeSet,
    FileChange,
    FileContent,
)
from dependfix_core.model.records import Record, RecordKey, Unavailability, Unavailable
from dependfix_core.model.steps import Step, file_content, file_contents, records_for, together
from dependfix_core.process import SubprocessRunner
from dependfix_core.trees import MAX_FILE_BYTES, ChangedTree, MemoryTree, drive
from dependfix_core.workspace.tree import CheckoutTree

pytestmark = pytest.mark.anyio


def git(top: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example", *arguments], cwd=top, check=True, capture_output=True
    )


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "secret").write_bytes(b"outside")
    files = {
        "package.json": b"{}\n",
        "sub/lock.json": b"1\n",
        "gone.txt": b"x",
        "run.sh": b"#!",
        ".gitignore": b"ignored\n",
    }
    for path, content in {**files, "ä b.txt": b"umlaut"}.items():
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_bytes(content)
    (top / "run.sh").chmod(0o755)
    (top / "link.json").symlink_to("../secret")
    (top / "linked").symlink_to("sub")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "start")
    (top / "gone.txt").unlink()
    (top / "new.txt").write_bytes(b"new")
    (top / "ignored").write_bytes(b"i")
    (top / "package.json").write_bytes(b"{ }\n")
    return top


async def test_a_checkout_lists_what_is_there_and_not_ignored(top: Path) -> None:
    listing = await CheckoutTree(top, SubprocessRunner()).listing()

    assert {path: entry.mode for path, entry in listing.entries.items() if entry.mode != "100644"} == {
        "run.sh": EXECUTABLE_MODE,
        "link.json": SYMLINK_MODE,
        "linked": SYMLINK_MODE,
    }
    assert sorted(listing) == [
        ".gitignore",
        "link.json",
        "linked",
        "new.txt",
        "package.json",
        "run.sh",
        "sub/lock.json",
        "ä b.txt",
    ]


async def test_a_checkout_reads_working_bytes_and_follows_no_link(top: Path) -> None:
    (top / "lfs").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with (top / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (top / "module").mkdir()
    git(top / "module", "init", "-q")
    odd = ["../secret", "/etc/passwd", "sub/../package.json", "", "a\0b", "linked/lock.json"]

    found = await CheckoutTree(top, SubprocessRunner()).read(
        ["package.json", "run.sh", "link.json", "gone.txt", "lfs", "huge", "module", "sub", *odd]
    )

    assert found == {
        "package.json": FileContent(path="package.json", content=b"{ }\n"),
        "run.sh": FileContent(path="run.sh", content=b"#!", mode=EXECUTABLE_MODE),
        "link.json": Absence.SYMLINK,
        "gone.txt": Absence.MISSING,
        "lfs": Absence.LFS_POINTER,
        "huge": Absence.TOO_LARGE,
        "module": Absence.SUBMODULE,
        "sub": Absence.MISSING,
        **dict.fromkeys(odd, Absence.MISSING),
        "linked/lock.json": Absence.SYMLINK,
    }


async def test_a_submodule_is_listed_as_one(top: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-qm", "x", "--allow-empty")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "module")

    listing = await CheckoutTree(top, SubprocessRunner()).listing()

    assert listing.entries["module"].mode == SUBMODULE_MODE


async def test_changes_lie_over_the_tree_below() -> None:
    base = MemoryTree({"a": b"1", "b": b"1", "c": b"1"}, modes={"a": EXECUTABLE_MODE})
    tree = ChangedTree(
        base,
        ChangeSet(
            changes=(
                FileChange(path="a", before=b"1", after=b"2", mode=EXECUTABLE_MODE),
                FileChange(path="b", before=b"1", after=None),
                FileChange(path="d", before=None, after=b"new"),
            )
        ),
    )

    assert list((await tree.listing()).entries) == ["a", "c", "d"]
    assert await tree.read(["a", "b", "c", "d"]) == {
        "a": FileContent(path="a", content=b"2", mode=EXECUTABLE_MODE),
        "b": Absence.MISSING,
        "c": FileContent(path="c", content=b"1"),
        "d": FileContent(path="d", content=b"new"),
    }


class Counting(MemoryTree):
    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.rounds: list[list[str]] = []

    async def read(self, paths: Collection[str]) -> Mapping[str, FileContent | Absence]:
        self.rounds.append(sorted(paths))
        return await super().read(paths)


async def test_a_step_gets_what_it_asks_for_in_rounds_and_nothing_twice() -> None:
    key = RecordKey(ecosystem="npm", name="left")

    def follow(path: str) -> Step[list[str]]:
        seen: list[str] = []
        while True:
            file = yield from file_content(path)
            if not isinstance(file, FileContent):
                return [*seen, file.value]
            seen.append(path)
            path = file.content.decode()

    def work() -> Step[tuple[list[list[str]], Record]]:
        chains = yield from together([follow("a"), follow("b")])
        yield from file_contents(["a", "b"])
        records = yield from records_for([key])
        return chains, records[key]

    tree = Counting({"a": b"c", "b": b"d", "c": b"nothing"})

    result = await drive(work(), tree, NoMetadata())

    assert result == ([["a", "c", "missing"], ["b", "missing"]], Unavailable(key=key, why=Unavailability.OFFLINE))
    assert tree.rounds == [["a", "b"], ["c", "d"], ["nothing"]]
