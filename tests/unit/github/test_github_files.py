import pytest

from dependfix_core.errors import ArgumentError, ConflictError, DependfixError, NetworkError, NotFoundError
from dependfix_core.model.files import Absence, FileContent, TreeEntry, blob_sha
from dependfix_mcp.demo.loopback_github import HostedRepository, LoopbackGitHub, Reply
from fakes.github_server import error_reply, reader

pytestmark = pytest.mark.anyio

NAME = "octo-org/octo-shop"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
FILES = {
    "package.json": b'{"name": "octo-shop"}',
    "bin/run": b"#!/bin/sh\n",
    "packages/web/package-lock.json": b"\x00\xff binary too",
    "packages/web/src/index.js": b"",
    "node_modules/x/package.json": b"{}",
    "link": b"package.json",
    "module": b"0123456789abcdef0123456789abcdef01234567",
    "big.lock": POINTER,
    "d\u00e9p/\u8981\u6c42.txt": b"octo-text==0.8.1\n",
}
MODES = {"bin/run": "100755", "link": "120000", "module": "160000"}


def repository(**facts: bool) -> HostedRepository:
    return HostedRepository(full_name=NAME, files=dict(FILES), modes=dict(MODES), **facts)  # type: ignore[arg-type]  # flags


def entry(path: str) -> TreeEntry:
    mode = MODES.get(path, "100644")
    if mode == "160000":
        return TreeEntry(path=path, mode=mode, sha=FILES[path].decode())
    return TreeEntry(path=path, mode=mode, size=len(FILES[path]), sha=blob_sha(FILES[path]))


async def test_listing_has_every_path_with_mode_size_and_id() -> None:
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            commit = await github.head(NAME, "main")
            listing = await github.listing(NAME, commit)

    assert commit == service.repositories[NAME].commit()
    assert dict(listing.entries) == {path: entry(path) for path in FILES}
    assert (listing.complete, len(service.received)) == (True, 2)


async def test_cut_listing_is_walked_through_the_folders_that_matter() -> None:
    with LoopbackGitHub([repository(cut_trees=True)]) as service:
        async with reader(service) as github:
            listing = await github.listing(NAME, "main")
            everything = await github.listing(NAME, "main", want_folder=lambda _folder: True)

    assert set(listing.entries) == set(FILES) - {"node_modules/x/package.json"}
    assert set(everything.entries) == set(FILES)
    assert (listing.complete, everything.complete) == (True, True)


async def test_listing_that_stays_cut_says_so() -> None:
    with LoopbackGitHub([repository()]) as service:
        cut = {"sha": "x", "truncated": True, "tree": [{"path": "a", "type": "blob", "sha": "1"}]}
        service.script(r".*/git/trees/main", Reply(body=cut))
        async with reader(service) as github:
            listing = await github.listing(NAME, "main")

    assert (set(listing.entries), listing.complete) == ({"a"}, False)


async def test_folders_without_end_are_not_walked_for_ever() -> None:
    tree = {"truncated": True, "tree": [{"path": "deeper", "type": "tree", "sha": "abc"}]}
    with LoopbackGitHub([repository()]) as service:
        service.script(r".*/git/trees/.*", Reply(body=tree))
        async with reader(service) as github:
            listing = await github.listing(NAME, "main")

    assert listing.complete is False
    assert len(service.received) == 201


async def test_paths_that_leave_the_repository_are_not_listed() -> None:
    tree = [{"path": path, "type": "blob", "sha": "1"} for path in ("../evil", "/etc/passwd", "a/../../b", "fine")]
    with LoopbackGitHub([repository()]) as service:
        service.script(r".*/git/trees/main", Reply(body={"tree": tree}))
        async with reader(service) as github:
            listing = await github.listing(NAME, "main")

    assert set(listing.entries) == {"fine"}


async def test_files_are_read_byte_for_byte() -> None:
    plain = ["package.json", "bin/run", "packages/web/package-lock.json", "packages/web/src/index.js"]
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            for path in plain:
                found = await github.read_file(NAME, entry(path))
                assert found == FileContent(path=path, content=FILES[path], mode=MODES.get(path, "100644"))


@pytest.mark.parametrize(
    ("wanted", "absence"),
    [
        (entry("link"), Absence.SYMLINK),
        (entry("module"), Absence.SUBMODULE),
        (entry("big.lock"), Absence.LFS_POINTER),
        (TreeEntry(path="x", size=10**9, sha="1" * 40), Absence.TOO_LARGE),
        (TreeEntry(path="x"), Absence.UNREADABLE),
    ],
)
async def test_what_is_no_plain_file_is_named(wanted: TreeEntry, absence: Absence) -> None:
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            assert await github.read_file(NAME, wanted) is absence


async def test_file_that_turns_out_too_large_is_not_kept() -> None:
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            unsized = TreeEntry(path="package.json", sha=blob_sha(FILES["package.json"]))
            assert await github.read_file(NAME, unsized, max_bytes=5) is Absence.TOO_LARGE
            assert await github.read_path(NAME, "package.json", "main", max_bytes=5) is Absence.TOO_LARGE


async def test_blob_that_was_changed_on_the_way_is_refused() -> None:
    with LoopbackGitHub([repository()]) as service:
        service.script(r".*/git/blobs/.*", Reply(body=b"something else"))
        async with reader(service) as github:
            with pytest.raises(NetworkError) as caught:
                await github.read_file(NAME, entry("package.json"))

    assert caught.value.details["path"] == "package.json"


async def test_one_file_by_its_path() -> None:
    path = "d\u00e9p/\u8981\u6c42.txt"
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            found = await github.read_path(NAME, path, "main")
            missing = await github.read_path(NAME, "none.txt", "main")
            pointer = await github.read_path(NAME, "big.lock", "main")

    assert found == FileContent(path=path, content=FILES[path])
    assert (missing, pointer) == (Absence.MISSING, Absence.LFS_POINTER)
    assert service.received[0].query == {"ref": "main"}


@pytest.mark.parametrize("path", ["../../../user", "a/../../b", "", "a//b", "./a"])
async def test_path_cannot_reach_another_end_point(path: str) -> None:
    with LoopbackGitHub([repository()]) as service:
        async with reader(service) as github:
            with pytest.raises(ArgumentError):
                await github.read_path(NAME, path, "main")
            with pytest.raises(ArgumentError):
                await github.head(NAME, path)
            with pytest.raises(ArgumentError):
                await github.repository(f"octo-org/{path}")

    assert service.received == []


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%2e%2e", "a b"])
async def test_strange_characters_stay_inside_the_path(name: str) -> None:
    files = {name: b"content"}
    with LoopbackGitHub([HostedRepository(full_name=NAME, files=files)]) as service:
        async with reader(service) as github:
            assert await github.read_path(NAME, name, "main") == FileContent(path=name, content=b"content")


async def test_empty_repository_has_no_head_and_no_tree() -> None:
    with LoopbackGitHub([HostedRepository(full_name=NAME)]) as service:
        async with reader(service) as github:
            for call in (github.head, github.listing):
                with pytest.raises(ConflictError) as caught:
                    await call(NAME, "main")
                assert caught.value.retryable is False


async def test_head_that_is_no_commit_id_is_refused() -> None:
    with LoopbackGitHub([repository()]) as service:
        service.script(r".*/commits/main", Reply(body=b"<html>"))
        async with reader(service) as github:
            with pytest.raises(NetworkError):
                await github.head(NAME, "main")


async def test_contents_hint_is_about_contents() -> None:
    with LoopbackGitHub([repository()]) as service:
        service.script(r".*/git/trees/main", error_reply("404"))
        async with reader(service) as github:
            with pytest.raises(NotFoundError) as caught:
                await github.listing(NAME, "main")

    assert "Contents: read" in caught.value.hint


def pull(number: int, **fields: object) -> dict[str, object]:
    return {
        "number": number,
        "state": "open",
        "title": f"Pull \x1b[31m{number}",
        "body": None,
        "html_url": f"https://github.com/{NAME}/pull/{number}",
        "draft": False,
        "user": {"login": "octocat"},
        "head": {"ref": f"dependfix/{number}", "sha": "a" * 40, "repo": {"full_name": NAME}},
        "base": {"ref": "main", "sha": "b" * 40, "repo": {"full_name": NAME}},
        "merged_at": None,
        "closed_at": None,
        "labels": [{"name": "dependencies"}, None],
        **fields,
    }


async def test_pull_requests_are_listed_to_the_last_page() -> None:
    pulls = [pull(number) for number in range(1, 131)]
    pulls[4].update(state="closed", merged_at="2026-11-01T00:00:00Z")
    pulls[7].update(head={"ref": "gone", "sha": "c", "repo": None}, user=None)
    with LoopbackGitHub([HostedRepository(full_name=NAME, pulls=pulls)]) as service:
        async with reader(service) as github:
            still_open = await github.pull_requests(NAME)
            everything = await github.pull_requests(NAME, state="all")
            one = await github.pull_requests(NAME, head="octo-org:dependfix/9", base="main")

    assert [p.number for p in still_open] == [number for number in range(130, 0, -1) if number != 5]
    assert [p.number for p in everything if p.is_merged] == [5]
    assert [(p.number, p.title, p.labels, p.author) for p in one] == [(9, "Pull 9", ("dependencies",), "octocat")]
    assert (everything[-8].head_repository, everything[-8].author, everything[-8].body) == ("", "", "")


@pytest.mark.parametrize("body", [[{"number": None}], {"message": "x"}])
async def test_list_of_pull_requests_that_cannot_be_read_whole_is_an_error(body: object) -> None:
    with LoopbackGitHub([HostedRepository(full_name=NAME)]) as service:
        service.script(r".*/pulls", Reply(body=body))
        async with reader(service) as github:
            with pytest.raises(DependfixError):
                await github.pull_requests(NAME)
