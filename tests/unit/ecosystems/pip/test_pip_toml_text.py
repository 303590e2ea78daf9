import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dependfix_core.ecosystems.pip.toml_text import TomlTextError, parse_toml, read_toml, spell_path
from fakes.step_driver import project_files

DIALECTS = b"""# first
title = "a \\u00e9 b"   # comment
'literal key' = 'C:\\dir'
a."b c".d = [1, 2, # two
  [ "x", 'y' ], { p = "q", r.s = 1.5 },
]
multi = \"\"\"
two
lines\"\"\"
when = 1979-05-27 07:32:00
[t.u]
k = true
[[list]]
n = "one"
[list.sub]
m = 1
[[list]]
n = "two"
[list.sub]
m = 2
[[list.deep]]
z = 0
"""


@pytest.mark.parametrize(
    "content",
    [
        DIALECTS,
        DIALECTS.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + DIALECTS,
        DIALECTS.rstrip(b"\n"),
        "# ünïcödé\nk = 'é'\n[ü-free]\nx = [ 'ö', \"ü\" ]\n".replace("ü-free", '"ü"').encode(),
        project_files("poetry-groups")["poetry.lock"],
        project_files("uv-project")["uv.lock"],
    ],
)
def test_every_span_holds_the_value_at_its_path(content: bytes) -> None:
    text = read_toml(content)

    assert text.spans
    for path, span in text.spans.items():
        written = text.content[span.start : span.end].decode()
        assert tomllib.loads(f"x = {written}")["x"] == text.value(path), path


def test_tables_end_after_their_last_entry() -> None:
    content = b"[a]\nx = 1 # c\n\n# about b\n[b]\n# nothing\n[[c]]\ny = [\n 1,\n]"

    tables = read_toml(content).tables

    assert [(table.path, content[: table.end].splitlines()[-1]) for table in tables] == [
        (("a",), b"x = 1 # c"),
        (("b",), b"[b]"),
        (("c", 0), b"]"),
    ]


@pytest.mark.parametrize(
    ("content", "start", "end", "expected"),
    [
        (b'k = "abc>=1"', 3, 6, b">=1"),
        (b"k = 'abc>=1'", 3, 6, b">=1"),
        (b'k = "\\u0061bc>=1"', 3, 6, b">=1"),
        ("k = 'äbc>=1'".encode(), 3, 6, b">=1"),
        (b'k = """\nabc>=1"""', 3, 6, b">=1"),
    ],
)
def test_a_part_of_a_string_is_found_in_its_bytes(content: bytes, start: int, end: int, expected: bytes) -> None:
    span = read_toml(content).inner_span(("k",), start, end)

    assert span is not None
    assert content[span.start : span.end] == expected


def test_a_string_in_several_pieces_has_no_single_stretch() -> None:
    assert read_toml(b'k = """abc\\\n  >=1"""').inner_span(("k",), 3, 6) is None


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (b"a = 1\nb = \n", "2:5"),
        (b"a = 1\na = 2\n", "2:6"),
        (b"ok = 1\n\xff = 2\n", "2:1"),
        (b"x = " + b"[" * 100_000, "1:1"),
        (b'k = "never closed', "1:18"),
    ],
)
def test_what_is_not_toml_is_refused_with_its_place(content: bytes, position: str) -> None:
    for read in (parse_toml, read_toml):
        with pytest.raises(TomlTextError) as refused:
            read(content)
        assert refused.value.position == position


def test_paths_are_spelled_as_toml_writes_them() -> None:
    assert spell_path(("tool", "uv", 'odd "name"', 2, "x")) == 'tool.uv."odd \\"name\\""[2].x'


_SCALARS = st.one_of(
    st.integers(min_value=-(2**62), max_value=2**62).map(str),
    st.booleans().map(lambda value: str(value).lower()),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="'\x7f", min_codepoint=32)).map(
        lambda s: f"'{s}'"
    ),
    st.text(alphabet='abc é"\\\n').map(
        lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    ),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[\n " + ", # c\n".join(items) + "\n]"),
        st.lists(inner, max_size=3).map(
            lambda items: "{ " + ", ".join(f"k{n} = {item}" for n, item in enumerate(items)) + " }"
        ),
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.booleans(), _VALUES), max_size=6))
def test_spans_agree_with_values_in_any_document(entries: list[tuple[bool, str]]) -> None:
    lines = [f"[[t]]\nk{n} = {value}" if table else f"k{n} = {value}" for n, (table, value) in enumerate(entries)]
    source = "\n".join(lines)
    text = read_toml(source.encode())

    for path, span in text.spans.items():
        assert tomllib.loads("x = " + text.content[span.start : span.end].decode())["x"] == text.value(path)
