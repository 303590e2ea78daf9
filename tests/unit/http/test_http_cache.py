import os
import stat
from pathlib import Path

import pytest

from dependfix_core.http import CachedAnswer, DiskCache, MemoryCache
from dependfix_core.http.cache import cache_key


def answer(body: bytes = b"[]", etag: str = 'W/"1"') -> CachedAnswer:
    return CachedAnswer(etag=etag, headers={"etag": etag, "link": "<x>"}, encoding="", raw=body)


def test_only_answers_with_a_validator_are_worth_keeping() -> None:
    headers = {"etag": '"a"', "content-type": "application/json", "x-secret": "1", "content-encoding": "GZIP"}

    assert CachedAnswer.of(headers, b"x") == CachedAnswer(
        etag='"a"', headers={"content-type": "application/json", "etag": '"a"'}, encoding="gzip", raw=b"x"
    )
    assert CachedAnswer.of({"content-type": "x"}, b"x") is None
    assert CachedAnswer.of({"etag": '"a"', "cache-control": "private, no-store"}, b"x") is None


def test_key_tells_address_representation_and_owner_apart() -> None:
    keys = {
        cache_key("u", "a", "v", "c"),
        cache_key("u2", "a", "v", "c"),
        cache_key("u", "a2", "v", "c"),
        cache_key("u", "a", "v2", "c"),
        cache_key("u", "a", "v", "c2"),
        cache_key("u", "a", "vc", ""),
    }

    assert len(keys) == 6


def test_memory_forgets_the_least_recently_used() -> None:
    cache = MemoryCache(max_bytes=40)
    for name in ("a", "b", "c", "d"):
        cache.put(name, answer(bytes(10)))

    cache.get("a")
    cache.put("e", answer(bytes(10)))
    cache.put("huge", answer(bytes(11)))

    assert [name for name in ("a", "b", "c", "d", "e", "huge") if cache.get(name) is not None] == ["a", "c", "d", "e"]


def test_memory_replaces_an_answer() -> None:
    cache = MemoryCache(max_bytes=40)
    for size in (10, 5, 10, 8):
        cache.put("a", answer(bytes(size)))
    cache.put("b", answer(bytes(10)))

    assert cache.get("a") == answer(bytes(8))
    assert cache.get("b") is not None


def test_disk_gives_back_what_was_kept_in_private_files(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "http"
    DiskCache(folder).put("k", answer(b"\x00\n\xff"))

    assert DiskCache(folder).get("k") == answer(b"\x00\n\xff")
    assert DiskCache(folder).get("other") is None
    if os.name == "posix":
        assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"[1]\nx", b"\xff\xfe", b'{"sha256": "0"}\nbody'])
def test_damaged_file_is_no_answer(tmp_path: Path, damage: bytes) -> None:
    cache = DiskCache(tmp_path)
    cache.put("k", answer())
    next(tmp_path.iterdir()).write_bytes(damage)

    assert cache.get("k") is None


def test_cut_file_is_no_answer(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("k", answer(b"0123456789"))
    file = next(tmp_path.iterdir())
    file.write_bytes(file.read_bytes()[:-1])

    assert cache.get("k") is None


def test_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file")

    cache.put("k", answer())

    assert cache.get("k") is None


def test_disk_drops_the_oldest_files(tmp_path: Path) -> None:
    for number in range(5):
        DiskCache(tmp_path).put(f"old{number}", answer())
    for age, file in enumerate(tmp_path.iterdir()):
        os.utime(file, (age, age))

    cache = DiskCache(tmp_path, max_files=2)
    cache.put("new", answer())

    assert len(list(tmp_path.iterdir())) == 2
    assert cache.get("new") is not None
