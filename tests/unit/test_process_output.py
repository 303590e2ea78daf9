import time

import pytest

from dependfix_core.errors import CommandError
from dependfix_core.process import CommandResult, json_document, plain_text


def printed(stdout: bytes) -> CommandResult:
    return CommandResult(argv=("tool",), exit_code=0, stdout=stdout, stderr=b"", duration_s=0.0)


@pytest.mark.parametrize(
    ("stdout", "document"),
    [
        (b'{"a": 1}\n', {"a": 1}),
        (b"[]", []),
        (b'Running 1 migration...\n  [step] {not json}\n{\n  "a": [\n1\n]\n}\n', {"a": [1]}),
        (b'Note\n[\n  {\n    "a": 1\n  }\n]\n', [{"a": 1}]),
        (b'{"text": "\xc3\xa9\xff"}', {"text": "é\ufffd"}),
    ],
)
def test_the_document_is_found_behind_progress_lines(stdout: bytes, document: object) -> None:
    assert json_document(printed(stdout)) == document


@pytest.mark.parametrize(
    "stdout", [b"", b"Usage: tool [options]\n", b'{"a": 1', b'{"a": 1}\nand more\n', b'  {"a": 1}x']
)
def test_anything_else_is_bad_output(stdout: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        json_document(printed(stdout))

    assert caught.value.code == "bad_output"


def test_text_has_neither_colours_nor_credentials() -> None:
    assert plain_text(b"\x1b[31mfailed\x1b[0m ghp_abcdefghijklmnopqrstuv \xff\n") == "failed [redacted] \ufffd"


@pytest.mark.parametrize(
    "stdout", [b"[" * 200_000, b"[\n" * 200_000, b"{\n" * 200_000], ids=["deep", "arrays", "objects"]
)
def test_a_document_that_nests_without_end_is_bad_output(stdout: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        json_document(printed(stdout))

    assert caught.value.code == "bad_output"


def test_the_beginning_of_a_flood_is_shown_without_reading_all_of_it() -> None:
    flood = "\x1b[31mé\u200b\x1b[0m".encode() * 5_000_000
    started = time.process_time()

    shown = plain_text(flood, max_chars=400)

    assert shown == "é" * 399 + "…"
    assert time.process_time() - started < 1
