import os
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.suspec.request import (
    CONTRACT_ARGUMENTS,
    MAX_PATH_CHARS,
    MAX_PATHS,
    check_request,
    distinct_paths,
    refuse_devices,
)
from dependfix_core.errors import ArgumentError
from dependfix_mcp.tools import suspec as suspec_tools


def test_there_are_two_argument_lists_and_no_other_verb() -> None:
    request = check_request(["/b.md", "/a.md", "/b.md", "/--json", "/-h"], "/spec.md")

    assert request.arguments == ("check", "/b.md", "/a.md", "/b.md", "/--json", "/-h", "--spec", "/spec.md", "--json")
    assert check_request(["/a.md"]).arguments == ("check", "/a.md", "--json")
    assert CONTRACT_ARGUMENTS == ("check", "--contract", "--json")


@pytest.mark.parametrize(
    ("paths", "spec_path", "expected"),
    [
        ([], None, {"argument": "paths", "rule": "empty"}),
        ([""], None, {"argument": "paths", "rule": "empty", "index": 0}),
        (["/a", "b"], None, {"argument": "paths", "rule": "absolute", "index": 1}),
        (["setup"], None, {"argument": "paths", "rule": "absolute", "index": 0}),
        (["--spec"], None, {"argument": "paths", "rule": "absolute", "index": 0}),
        (["~/a"], None, {"argument": "paths", "rule": "absolute", "index": 0}),
        (["file:///a"], None, {"argument": "paths", "rule": "absolute", "index": 0}),
        (["/a"], "", {"argument": "specPath", "rule": "empty"}),
        (["/a"], "b", {"argument": "specPath", "rule": "absolute"}),
        (["b"], "c", {"argument": "paths", "rule": "absolute", "index": 0}),
        (["/a\u202e"], "c", {"argument": "paths", "rule": "character", "index": 0}),
        (["/a"] * (MAX_PATHS + 1), None, {"argument": "paths", "rule": "count"}),
        (["/" + "a" * (MAX_PATH_CHARS // 2)], "/" + "a" * (MAX_PATH_CHARS // 2), {"argument": "paths", "rule": "length"}),
    ],
)  # fmt: skip
def test_the_first_broken_rule_is_named_with_its_position(
    paths: list[str], spec_path: str | None, expected: dict[str, object]
) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_request(paths, spec_path)

    assert caught.value.details == expected


@pytest.mark.parametrize(
    "char",
    ["\0", "\t", "\n", "\r", "\x1b", "\x7f", "\u0085", "\u00ad", "\u200b", "\u200d", "\u200e", "\u202e", "\u2066", "\ufeff", "\U000e0041", "\u2028", "\u2029", "\udfff"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["paths", "specPath"])
def test_a_path_with_a_hidden_character_is_refused_and_the_character_is_not_echoed(char: str, where: str) -> None:
    bad = f"/a{char}b"
    with pytest.raises(ArgumentError) as caught:
        check_request([bad] if where == "paths" else ["/a"], None if where == "paths" else bad)

    assert caught.value.details["rule"] == "character"
    assert caught.value.details["argument"] == where
    assert f"U+{ord(char):04X}" in caught.value.message
    assert char not in caught.value.message


@pytest.mark.parametrize(
    "char", [" ", "\u00a0", "\u3000", "'", '"', "$", ";", "中", "\u0301", "\ufe0f", "\uf8ff", "\U0001f4c4"]
)
def test_an_ordinary_odd_character_is_allowed(char: str) -> None:
    assert check_request([f"/a{char}b"]).paths == (f"/a{char}b",)


def test_as_many_paths_as_the_schema_says() -> None:
    assert suspec_tools._MAX_PATHS == MAX_PATHS
    assert len(check_request(["/a"] * MAX_PATHS).paths) == MAX_PATHS


def as_fifo(path: Path) -> str:
    os.mkfifo(path)
    return str(path)


def as_link_to_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return str(path)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices have no path elsewhere")
@pytest.mark.parametrize(
    "make", [as_fifo, as_link_to_device, lambda _path: "/dev/null"], ids=["fifo", "link-to-device", "device"]
)
def test_what_a_reader_would_wait_on_is_refused(tmp_path: Path, make: Callable[[Path], str]) -> None:
    bad = make(tmp_path / "bad")
    for request, expected in (
        (check_request(["/nowhere", bad]), {"argument": "paths", "rule": "device", "index": 1}),
        (check_request(["/nowhere"], bad), {"argument": "specPath", "rule": "device"}),
    ):
        with pytest.raises(ArgumentError) as caught:
            refuse_devices(request)

        assert caught.value.details == expected


def test_missing_files_and_folders_are_for_the_cli_to_judge(tmp_path: Path) -> None:
    refuse_devices(check_request([str(tmp_path), str(tmp_path / "gone"), str(tmp_path / ("a" * 300))]))


def test_files_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "far" / "b.md").write_text("b")
    (tmp_path / "b.md").write_text("b")
    (tmp_path / "soft.md").symlink_to("a.md")
    (tmp_path / "hard.md").hardlink_to(tmp_path / "a.md")
    (tmp_path / "link").symlink_to("far/away")
    at = f"{tmp_path}/"

    assert distinct_paths(
        [at + name for name in ("soft.md", "a.md", "./a.md", "hard.md", "/a.md", "link/../b.md", "b.md", "far/b.md")]
    ) == (at + "soft.md", at + "link/../b.md", at + "b.md")


def test_what_is_not_there_is_told_apart_by_its_text() -> None:
    paths = ["//no/where", "/no/./where", "/no/x/../where", "/no//where/", "/no/where2", "/../no/where"]

    assert distinct_paths(paths) == ("//no/where", "/no/where2")
