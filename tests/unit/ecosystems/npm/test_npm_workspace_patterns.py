"""Workspace patterns over a listing."""

import time

import pytest

from dependfix_core.ecosystems.npm.workspaces import PatternError, member_folders


def members(patterns: list[str], *folders: str, root: str = "", pnpm: bool = False) -> list[str]:
    paths = [f"{folder}/package.json" for folder in folders]
    return list(member_folders(root, patterns, paths, negatives_always_win=pnpm))


@pytest.mark.parametrize(
    ("pattern", "folder", "inside"),
    [
        ("packages/*", "packages/a", True),
        ("packages/*", "packages/a/b", False),
        ("./packages/*/", "packages/a", True),
        ("packages/**", "packages/a/b/c", True),
        ("packages/**", "packages", True),
        ("**", "x/y", True),
        ("packages/{a,b}", "packages/b", True),
        ("packages/{a,b{1,2}}", "packages/b2", True),
        ("packages/@(a|b)", "packages/a", True),
        ("apps/web-?", "apps/web-1", True),
        ("apps/[a-c]x", "apps/bx", True),
        ("apps/[!a-c]x", "apps/bx", False),
        ("*", ".hidden", False),
        (".hidden", ".hidden", True),
        ("packages/a", "packages/a", True),
        ("packages/*", "packages/node_modules", False),
    ],
)
def test_one_pattern(pattern: str, folder: str, inside: bool) -> None:
    assert members([pattern], folder) == ([folder] if inside else [])


def test_the_last_match_decides_except_in_pnpm() -> None:
    patterns = ["packages/*", "!packages/a", "packages/a"]

    assert members(patterns, "packages/a", "packages/b") == ["packages/a", "packages/b"]
    assert members(patterns, "packages/a", "packages/b", pnpm=True) == ["packages/b"]
    assert members(["apps/*", "!**/test/**"], "apps/a", "apps/test", pnpm=True) == ["apps/a"]


def test_patterns_count_from_their_root() -> None:
    assert members(["libs/*"], "web/libs/a", "libs/b", root="web") == ["web/libs/a"]


@pytest.mark.parametrize("pattern", ["../*", "a/../../b", "!(x)", "{a,b}" * 12, "x" * 400])
def test_what_is_not_understood_is_said(pattern: str) -> None:
    with pytest.raises(PatternError):
        members([pattern], "a")


def test_hostile_patterns_take_no_time() -> None:
    start = time.process_time()

    assert members(["*a" * 100 + "b"], "a" * 4000) == []
    assert members(["/".join(["**"] * 60) + "/x"], "/".join("a" * 200)) == []

    assert time.process_time() - start < 2
