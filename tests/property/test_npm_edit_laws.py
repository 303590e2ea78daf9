"""Edits of manifests: only the announced span changes, and the reverse edit gives the bytes back."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from dependfix_core.ecosystems.npm.json_text import JsonStyle, members_at, npm_ordered, rebuilt_object, root_at
from dependfix_core.ecosystems.npm.manifest_edits import edited_file
from dependfix_core.ecosystems.npm.package_json import Manifest, read_package_json
from dependfix_core.ecosystems.npm.yaml_text import yaml_scalar
from dependfix_core.model.plan import Edit

NAMES = st.from_regex(r"(@[a-z]{1,4}/)?[a-z][a-z0-9.-]{0,8}", fullmatch=True)
RANGES = st.from_regex(r"[\^~]?[0-9]\.[0-9]{1,2}\.[0-9]|>=[0-9] <[0-9]|\*|[0-9]\.x \|\| [0-9]", fullmatch=True)
SECTIONS = st.dictionaries(
    st.sampled_from(["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"]),
    st.dictionaries(NAMES, RANGES, max_size=5),
    max_size=4,
)
LAYOUTS = st.tuples(
    st.sampled_from([None, 1, 2, 4, "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans()
)


def laid_out(data: Any, layout: tuple[Any, str, bool, bool]) -> bytes:
    indent, newline, mark, final = layout
    text = json.dumps(data, indent=indent, ensure_ascii=False).replace("\n", newline)
    return (b"\xef\xbb\xbf" if mark else b"") + (text + (newline if final else "")).encode()


@given(SECTIONS, LAYOUTS, st.data())
def test_an_edit_and_its_reverse(sections: dict[str, dict[str, str]], layout: Any, data: st.DataObject) -> None:
    content = laid_out({"name": "é", **sections}, layout)
    manifest = read_package_json("package.json", content)
    assert isinstance(manifest, Manifest)
    assume(manifest.constraints)
    constraint = data.draw(st.sampled_from(manifest.constraints))
    target = data.draw(RANGES)

    there = Edit(path="package.json", at=constraint.at, from_text=constraint.requirement, to_text=target)
    back = Edit(path="package.json", at=constraint.at, from_text=target, to_text=constraint.requirement)
    changed = edited_file("package.json", content, [there])

    span = constraint.span
    assert span is not None
    assert changed == content[: span.start] + target.encode() + content[span.end :]
    assert edited_file("package.json", changed, [back]) == content


@given(st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=5), max_size=6), LAYOUTS)
def test_rebuilding_an_object_without_a_change_gives_its_bytes(members: dict[str, Any], layout: Any) -> None:
    content = laid_out(members, layout)
    start = root_at(content)

    end, text = rebuilt_object(content, members_at(content, start), style=JsonStyle.of(content), depth=1, values={})

    assert content[:start] + text + content[end:] == content


@given(
    st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=5), max_size=6),
    st.text(min_size=1, max_size=6),
    st.text(max_size=5),
    LAYOUTS,
)
def test_an_added_member_is_the_only_change(members: dict[str, Any], key: str, value: str, layout: Any) -> None:
    assume(key not in members)
    content = laid_out(members, layout)
    start, style = root_at(content), JsonStyle.of(content)

    end, text = rebuilt_object(
        content, members_at(content, start), style=style, depth=1, values={key: style.render(value, 1)}
    )
    changed = content[:start] + text + content[end:]

    assert json.loads(changed.decode("utf-8-sig")) == {**members, key: value}
    if members:
        assert changed == laid_out({**members, key: value}, layout)


@given(st.text(alphabet="ab1.-:#'\"@ {}[],&*!|>%`~=é\\<", max_size=12))
def test_scalars_read_back_as_the_same_text(text: str) -> None:
    written = yaml_scalar(text)

    assert yaml.load(f"k: {written}\n", Loader=yaml.BaseLoader) == {"k": text}  # noqa: S506 - text only


@pytest.mark.parametrize(
    "text", ["1.0", "10", "1e3", "true", "null", "~", "<<", "0x1f", "2020-01-01", ".5", ".inf", ""]
)
def test_what_would_read_as_another_type_is_quoted(text: str) -> None:
    assert yaml_scalar(text) == f"'{text}'"


@given(
    st.dictionaries(
        st.text(max_size=6), st.integers() | st.dictionaries(st.text(max_size=3), st.integers()), max_size=6
    )
)
def test_npms_order_loses_nothing(members: dict[str, Any]) -> None:
    ordered = npm_ordered(members)

    assert ordered == members
    kinds = [isinstance(value, dict) for value in ordered.values()]
    assert kinds == sorted(kinds)
