"""Reading line by line and reading with the YAML parser give the same values."""

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dependfix_core.ecosystems.npm import machine_yaml
from dependfix_core.ecosystems.npm.yaml_spans import YamlSyntaxError

SIGNS = "ab1./@^~<>=|*&!:#-?,[]{}()'\" %`\\é"
TEXTS = st.text(alphabet=SIGNS, min_size=0, max_size=12)
KEYS = st.text(alphabet="ab1./@^:#-() '<", min_size=1, max_size=8)
TREES = st.recursive(
    TEXTS, lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(TEXTS, max_size=3), max_leaves=12
)
LINES = st.lists(
    st.builds(
        lambda indent, body: "  " * indent + body,
        st.integers(0, 3),
        st.one_of(
            st.builds("{}: {}".format, KEYS, TEXTS),
            st.builds("{}:".format, KEYS),
            st.builds("- {}".format, TEXTS),
            st.builds("? {}".format, KEYS),
            st.sampled_from([":", "---", "", "# c", "a: |", "a: |-", "'x': {a: b, 'c': '>=1'}", "x: [a, b]"]),
            TEXTS,
        ),
    ),
    max_size=9,
)


def judged_by_yaml(text: str) -> object:
    try:
        return machine_yaml._read_yaml(text)
    except YamlSyntaxError:
        return "refused"


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=5))
def test_what_a_dumper_writes_is_read_the_same(tree: dict[str, object]) -> None:
    text = yaml.dump(tree, Dumper=yaml.SafeDumper, width=100_000, allow_unicode=True, default_flow_style=None)

    assert machine_yaml.read_documents(text.encode()) == judged_by_yaml(text)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(max_examples=1500)
@example(["a: b", "  - c"], "\n", True)
@example(["a: |", "  b"], "\n", False)
@example(["a:", "- b"], "\n", True)
def test_any_lines_are_read_as_yaml_reads_them(lines: list[str], newline: str, final: bool) -> None:
    text = newline.join(lines) + (newline if final else "")

    try:
        found: object = machine_yaml._read_lines(text)
    except machine_yaml._OtherYamlError:
        return

    assert found == judged_by_yaml(text)


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_hostile_lines_are_refused_quickly(size: int) -> None:
    for text in ("a: " + ": " * size, "a" + ":" * size, "a: '" + "''" * size, "a: {" + "b: c, " * size):
        with pytest.raises((machine_yaml._OtherYamlError, AssertionError)):
            assert machine_yaml._read_lines(text) is None
