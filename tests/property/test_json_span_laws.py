"""The span scanner and `json` agree, and every span holds the text of its value."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dependfix_core.ecosystems.npm.json_spans import JsonSyntaxError, JsonValue, scan_json

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def check_spans(content: bytes, value: JsonValue) -> None:
    assert json.loads(content[value.span.start : value.span.end]) == value.value
    for member in (value.members or {}).values():
        check_spans(content, member.value)
    for item in value.items or ():
        check_spans(content, item)


@given(TREES, st.sampled_from([None, 2, "\t"]), st.booleans(), st.booleans(), st.sampled_from(["", "\n", "\r\n"]))
def test_values_and_spans_are_those_of_json(
    tree: object, indent: int | str | None, ascii_only: bool, bom: bool, end: str
) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only) + end
    content = (b"\xef\xbb\xbf" if bom else b"") + text.replace("\n", "\r\n").encode("utf-8", "surrogatepass")

    try:
        document = scan_json(content)
    except JsonSyntaxError:
        content.decode("utf-8-sig")  # a lone surrogate is no UTF-8: only then may it be refused
        raise

    assert document.root.value == tree
    check_spans(content, document.root)


@given(st.text(alphabet='{}[]:,"\\ab1 \n-.e/*truefalsn', max_size=30), st.booleans())
def test_what_json_refuses_is_refused(text: str, comments: bool) -> None:
    try:
        wanted = json.loads(text)
    except ValueError:
        if comments:
            return  # the dialect allows more
        try:
            found: object = scan_json(text.encode()).root.value
        except JsonSyntaxError:
            return
        raise AssertionError(f"read as {found!r}") from None

    assert scan_json(text.encode(), comments=comments).root.value == wanted


@given(TREES)
def test_comments_and_trailing_commas_change_nothing(tree: object) -> None:
    text = json.dumps(tree, indent=1, ensure_ascii=True)
    dressed = "// head\n" + text.replace("\n", " // line\n")
    dressed = dressed.replace('" // line\n', '" /* block */ // line\n')

    assert scan_json(dressed.encode(), comments=True).root.value == tree
