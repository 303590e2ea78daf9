"""The fake does what the real program was seen to do, so that tests on it say something about the real one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fakes.sudocode_cli import FakeSudocode
from fakes.sudocode_recordings import do_by_hand, follow, make_root, placed, scenarios, step_clock

# What the fake does not have: the parser's way with arguments that the adapter
# never sends, and what lies outside the program (Node, locks, limits, colours).
OTHER_FORMS = {
    "issue-create-title-misread",
    "option-values-misread",
    "colours",
    "update-notice",
    "node-abi-mismatch",
    "node-missing",
    "argument-too-long",
    "database-locked",
    "issue-create-tags",  # twenty forms of separators that are refused before a run
    "environment-variables-ignored",
    "issue-list-default-limit",  # made by a shell loop
}
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+Z)?")
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def said(text: str) -> Any:
    """A document without what no two runs share, rows by id; the first line of other text."""
    try:
        document = json.loads(text[re.search(r"^[\[{]", text, re.MULTILINE).start() :])  # type: ignore[union-attr]  # caught
    except (ValueError, AttributeError):
        return text.strip().split("\n")[0].replace("Running 5", "Running 2")
    return without_chance(document)


def without_chance(node: Any) -> Any:
    if isinstance(node, dict):
        out = {}
        for key, value in node.items():
            if key == "anchor" and isinstance(value, str):
                out[key] = without_chance(json.loads(value))
            elif key == "blocked_by_ids":
                out[key] = sorted(value.split(","))
            elif not key.startswith("context_") and not key.endswith("uuid") and key != "created_by":
                out[key] = without_chance(value)
        return out
    if isinstance(node, list):
        # Rows made in the same second have no order of their own; urgency is compared beside this.
        return sorted((without_chance(item) for item in node), key=lambda item: json.dumps(item, sort_keys=True))
    return TIME.sub("T", UUID.sub("U", node)) if isinstance(node, str) else node


def urgencies(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'"priority": (\d)', text)]


@pytest.mark.parametrize("name", sorted(set(scenarios()) - OTHER_FORMS))
def test_every_recorded_run_gives_the_same_on_the_fake(name: str, tmp_path: Path) -> None:
    scenario = scenarios()[name]
    make_root(tmp_path, scenario)
    moments, _ = step_clock()
    fake = FakeSudocode(generation=scenario.generation, now=lambda: next(moments))

    for step in scenario.steps:
        if "argv" not in step:
            do_by_hand(step, tmp_path)
            continue
        code, out, err = follow(fake, step, tmp_path)
        recorded = placed(step, tmp_path)
        wanted = (step["exit_code"], placed(recorded["stdout"], tmp_path), placed(recorded["stderr"], tmp_path))
        if "--json" not in step["argv"] and code == 0:
            assert code == wanted[0], step["argv"]
        else:
            assert urgencies(out) == urgencies(wanted[1]), step["argv"]
            assert (code, said(out), said(err)) == (wanted[0], said(wanted[1]), said(wanted[2])), step["argv"]
