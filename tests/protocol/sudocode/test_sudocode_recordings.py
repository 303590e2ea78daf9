"""Every recorded scenario through the MCP door: what the program printed, as the tools answer it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.sudocode_cli import HEAD, FakeSudocode, install
from fakes.sudocode_project import Program, Project
from fakes.sudocode_recordings import (
    ReplayRunner,
    Scenario,
    Step,
    do_by_hand,
    follow,
    make_root,
    placed,
    scenarios,
    step_clock,
)

pytestmark = pytest.mark.anyio
OK = "ok"
Arguments = dict[str, Any]


# From a recorded run to the call that leads to it.


def options_of(argv: list[str]) -> tuple[list[str], dict[str, str], list[str]]:
    """Words, options and positionals of a run; `{"?": ...}` where it has a form that no tool stands for."""
    before: list[str] = []
    after: list[str] = []
    ended = False
    for argument in argv:
        if argument == "--" and not ended:
            ended = True
        else:
            (after if ended else before).append(argument)
    words = [argument for argument in before if not argument.startswith("-")]
    options: dict[str, str] = {}
    for argument in before:
        if argument == "--json" or argument.startswith("--db="):
            continue
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            options[name] = value if equals else "true"
        elif argument.startswith("-"):
            options["?"] = argument
    count = 2 if words[:1] and words[0] in ("issue", "spec", "feedback") else 1
    return words[:count], options, [*words[count:], *after]


def number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def call_for(argv: list[str]) -> tuple[str, Arguments] | None:
    """The tool call that a run stands for; none for what no tool does."""
    words, options, positionals = options_of(argv)
    name = " ".join(words)
    if "?" in options or name not in CALLS or ("--json" not in argv and name != "init"):
        return None
    tool, renamed, places = CALLS[name]
    if set(options) - set(renamed):
        return None
    arguments: Arguments = {}
    for option, value in options.items():
        argument = renamed[option]
        arguments[argument] = number(value) if argument in ("priority", "limit", "line", "estimate") else value
        if argument == "tags":
            arguments[argument] = value.split(",")
        if argument in ("show_specs", "show_issues"):
            # The oldest releases read each of the two as "only".
            arguments = {"show_specs": argument == "show_specs", "show_issues": argument == "show_issues"}
        if argument == "verbose":
            arguments[argument] = True
    if tool == "close_issue":
        arguments["issue_ids"] = positionals
    elif len(positionals) > len(places):
        return None
    else:
        arguments |= dict(zip(places, positionals, strict=False))
    return tool, arguments


SAME = {name: name for name in ("type", "status", "priority", "assignee", "limit", "title", "description", "line")}


def _named(*names: str, **others: str) -> dict[str, str]:
    return {**{name: SAME.get(name, name) for name in names}, **{key.replace("_", "-"): v for key, v in others.items()}}


READY = _named("limit", "priority", "assignee", specs="show_specs", issues="show_issues")
CALLS: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "ready": ("ready", READY, []),
    "blocked": ("blocked_issues", READY, []),
    "issue list": ("list_issues", _named("status", "type", "priority", "assignee", "limit"), []),
    "issue show": ("show_issue", {}, ["issue_id"]),
    "issue create": (
        "create_issue",
        _named("type", "priority", "description", "assignee", "parent", "tags", "estimate"),
        ["title"],
    ),
    "issue update": (
        "update_issue",
        _named("type", "status", "priority", "assignee", "title", "description"),
        ["issue_id"],
    ),
    "issue close": ("close_issue", _named("reason"), []),
    "spec list": ("list_specs", _named("status", "type", "priority", "limit"), []),
    "spec show": ("show_spec", {}, ["spec_id"]),
    "spec create": (
        "create_spec",
        _named("type", "priority", "description", "design", "parent", "tags", file_path="file_path"),
        ["title"],
    ),
    "link": ("link", _named("type"), ["from_id", "to_id"]),
    "feedback add": ("add_feedback", _named("content", "type", "line", "text", "agent"), ["spec_id", "issue_id"]),
    "feedback list": (
        "list_feedback",
        _named("type", "status", "limit", issue="issue_id", target="spec_id", spec="spec_id"),
        [],
    ),
    "feedback show": ("show_feedback", {}, ["feedback_id"]),
    "feedback acknowledge": ("acknowledge_feedback", {}, ["feedback_id"]),
    "feedback resolve": ("resolve_feedback", _named("comment"), ["feedback_id"]),
    "feedback dismiss": ("resolve_feedback", _named("comment"), ["feedback_id"]),
    "feedback wont-fix": ("wontfix_feedback", _named("reason"), ["feedback_id"]),
    "feedback stale": ("stale_feedback", {}, []),
    "feedback relocate": ("relocate_feedback", _named("line"), ["feedback_id"]),
    "stats": ("stats", {}, []),
    "status": ("status", _named("verbose"), []),
    "init": ("init", {}, []),
}


# What the answer should be, from what was recorded.

CODES: tuple[tuple[str, str], ...] = (
    (r"not found: ", "not_found"),
    (r"Invalid (status|relationship|feedback|line)", "invalid_arguments"),
    (r"out of range|Text not found|Constraint violation|datatype mismatch|missing required", "invalid_arguments"),
    (r"Cannot infer entity type|Either --line or --text", "invalid_arguments"),
    (r"unknown (option|command)", "unsupported_by_cli"),
    (r"database is locked", "database_busy"),
    (r"of null", "cli_failed"),
    (r"not a database|unable to open|EEXIST", "database_invalid"),
    (r"NODE_MODULE_VERSION|No such file or directory|NODE_OPTIONS", "cli_broken"),
)


def recorded_code(step: Step) -> str:
    if step["exit_code"] == 0:
        return OK
    if step["exit_code"] is None:
        return "invalid_arguments"  # the system refuses so long an argument
    for pattern, code in CODES:
        if re.search(pattern, step["stderr"]):
            return code
    raise AssertionError(f"no code for {step['stderr']!r}")


Rule = Callable[[str, Arguments, Step, Scenario], bool]


def _empty(*names: str) -> Rule:
    return lambda _tool, arguments, _step, _scenario: any(arguments.get(name) == "" for name in names)


# Where the answer differs from the program's on purpose: when, and what it is instead.
DIFFERENCES: dict[str, tuple[Rule, str]] = {
    "no project is made below another": (
        lambda tool, _a, step, s: tool == "init" and s.name == "init-inside-subdirectory" and step["cwd"] != "{{ROOT}}",
        "conflict",
    ),
    "a file in the way is named": (
        lambda _t, _a, step, _s: "EEXIST" in step["stderr"],
        "database_invalid",
    ),
    "an empty title is refused": (
        lambda tool, a, _st, _s: tool in ("create_issue", "create_spec") and not a.get("title", "").strip(),
        "invalid_arguments",
    ),
    "an empty id is refused": (
        lambda tool, a, _st, _s: tool in ("show_issue", "show_spec") and not a.get("issue_id", a.get("spec_id", "x")),
        "invalid_arguments",
    ),
    "a number that is none is refused": (
        lambda _t, a, _st, _s: any(isinstance(a.get(name), str) for name in ("priority", "limit", "line")),
        "invalid_arguments",
    ),
    "a priority or limit out of range is refused": (
        lambda _t, a, _st, _s: not 0 <= _int(a.get("priority"), 0) <= 4 or _int(a.get("limit"), 1) < 1,
        "invalid_arguments",
    ),
    "an unknown word of a closed list is refused": (
        lambda _t, a, _st, _s: bool({a.get("status"), a.get("type")} & {"bogus", "done", "OPEN", "ambiguity", ""}),
        "invalid_arguments",
    ),
    "tags that would be split or trimmed are refused": (
        lambda _t, a, _st, _s: any(not tag.strip() or tag != tag.strip() for tag in a.get("tags", [])),
        "invalid_arguments",
    ),
    "an update that changes nothing is refused": (
        lambda tool, a, _st, _s: (
            tool == "update_issue" and not {k: v for k, v in a.items() if k != "issue_id" and v != ""}
        ),
        "invalid_arguments",
    ),
    "nothing is linked to itself": (
        lambda tool, a, _st, _s: tool == "link" and a.get("from_id") == a.get("to_id"),
        "invalid_arguments",
    ),
    "feedback needs a content": (
        lambda tool, a, _st, _s: tool == "add_feedback" and not a.get("content", "").strip(),
        "invalid_arguments",
    ),
    "feedback needs an issue": (
        lambda tool, a, _st, _s: tool == "add_feedback" and "issue_id" not in a,
        "invalid_arguments",
    ),
    "feedback needs one of line and text": (
        lambda tool, a, _st, _s: tool == "add_feedback" and ("line" in a) == bool(a.get("text")),
        "invalid_arguments",
    ),
    "feedback is on specs": (
        lambda tool, a, _st, _s: tool == "add_feedback" and a["spec_id"].startswith(("i-", "ISSUE", "weird")),
        "not_found",
    ),
    "a file path with folders is refused": (
        lambda tool, a, _st, _s: tool == "create_spec" and ("/" in a.get("file_path", "") or "evil" in str(a)),
        "invalid_arguments",
    ),
    "a file that exists is not overwritten": (
        lambda tool, a, _st, s: tool == "create_spec" and a.get("file_path") == "own.md" and "file-path" in s.name,
        "conflict",
    ),
    "no project is made by a call that is not init": (
        lambda tool, a, step, _s: tool != "init" and not step["has_project"] and a.get("type") != "bug",
        "not_initialized",
    ),
    "ready and blocked are filtered here": (
        lambda tool, _a, step, _s: tool in ("ready", "blocked_issues") and "unknown option" in step["stderr"],
        OK,
    ),
    "parent-child is a field of the child": (
        lambda tool, a, step, _s: tool == "link" and a.get("type") == "parent-child" and step["exit_code"] == 1,
        OK,
    ),
    "design goes into the text": (
        lambda tool, a, step, _s: tool == "create_spec" and "design" in a and step["exit_code"] == 1,
        OK,
    ),
    "feedback states that are not kept are refused as filters": (
        lambda tool, a, _st, s: (
            tool == "list_feedback" and a.get("status") not in (None, "open", "bogus") and s.generation == HEAD
        ),
        "unsupported_by_cli",
    ),
    "the filters of feedback are ours": (
        lambda tool, _a, step, _s: tool == "list_feedback" and "unknown option" in step["stderr"],
        OK,
    ),
    "settled feedback is dismissed": (
        lambda tool, _a, step, _s: (
            tool in ("resolve_feedback", "wontfix_feedback") and "unknown command" in step["stderr"]
        ),
        OK,
    ),
    "stale feedback does not stumble over entries without anchor": (
        lambda tool, _a, step, _s: tool == "stale_feedback" and step["exit_code"] == 1,
        OK,
    ),
    "an entry without anchor cannot be moved": (
        lambda tool, _a, step, _s: tool == "relocate_feedback" and "of null" in step["stderr"],
        "invalid_arguments",
    ),
    "help and colours change nothing": (
        lambda tool, _a, step, _s: (
            tool == "init" and step["exit_code"] == 0 and "Preserved existing: cache.db, " in step["stdout"]
        ),
        OK,
    ),
    "the oldest type is not the default": (
        lambda tool, a, _st, s: tool == "add_feedback" and s.generation == "2025-10-20" and a.get("type") == "comment",
        OK,
    ),
}


def _int(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def done_otherwise(tool: str, arguments: Arguments, scenario: Scenario) -> bool:
    """Whether the adapter reaches the answer in another way than the recorded run does."""
    return (
        tool in ("stale_feedback", "init")
        or (tool == "list_feedback" and bool(arguments))
        or bool({"limit", "show_specs", "show_issues", "design"} & set(arguments))
        or arguments.get("assignee") == ""
        or any(len(set(listed)) < len(listed) for listed in arguments.values() if isinstance(listed, list))
        or (tool == "resolve_feedback" and scenario.generation != HEAD)
    )


def difference(tool: str, arguments: Arguments, step: Step, scenario: Scenario) -> str | None:
    """The first difference that applies."""
    for title, (applies, _) in DIFFERENCES.items():
        if applies(tool, arguments, step, scenario):
            return title
    return None


@pytest.mark.parametrize("name", sorted(scenarios()))
async def test_a_recorded_scenario_is_answered(name: str, tmp_path: Path) -> None:
    scenario = scenarios()[name]
    make_root(tmp_path, scenario)
    moments, _ = step_clock()
    fake = FakeSudocode(generation=scenario.generation, now=lambda: next(moments))
    runner = ReplayRunner(fake=fake, root=tmp_path)
    program = Program(path=install(tmp_path / "bin", generation=scenario.generation), runner=runner, real=False)

    projects: dict[Path, Project] = {}
    for step in scenario.steps:
        if "argv" not in step:
            do_by_hand(step, tmp_path)
            continue
        call = call_for(placed(step["argv"], tmp_path))
        if call is None or "--db" in str(step["argv"]):
            follow(fake, step, tmp_path)
            continue
        tool, arguments = call
        if scenario.generation != HEAD and tool == "add_feedback":
            arguments["issue_id"], arguments["spec_id"] = arguments["spec_id"], arguments["issue_id"]
        wanted = recorded_code(step)
        step = {**step, "has_project": has_project(Path(placed(step["cwd"], tmp_path)))}  # noqa: PLW2901  # the step as rules see it
        on_purpose = difference(tool, arguments, step, scenario)
        if on_purpose:
            wanted = DIFFERENCES[on_purpose][1]
        folder = Path(placed(step["cwd"], tmp_path))
        runner.expect(step)

        result = await projects.setdefault(folder, Project(root=folder, program=program)).call(tool, **arguments)

        assert (tool, arguments, result.get("code", OK)) == (tool, arguments, wanted), result
        if wanted == OK and not on_purpose and not done_otherwise(tool, arguments, scenario):
            assert runner.expected is None, "the recorded run was not made"
        if runner.expected is not None and wanted != OK and step["exit_code"] == 0:
            follow(fake, step, tmp_path)  # refused, but what follows builds on it
        if wanted == OK and step["exit_code"] == 0 and "--json" in step["argv"]:
            check(tool, arguments, json_of(placed(step["stdout"], tmp_path)), result)
        runner.expected = None


def has_project(folder: Path) -> bool:
    names = (".sudocode/cache.db", ".sudocode/sudograph.db")
    return any((above / name).exists() for above in (folder, *folder.parents) for name in names)


def json_of(text: str) -> Any:
    match = re.search(r"^[\[{]", text, re.MULTILINE)
    return json.loads(text[match.start() :]) if match else None


def check(tool: str, arguments: Arguments, printed: Any, result: Arguments) -> None:
    """The answer says what the program printed."""
    if tool in ("list_issues", "list_specs", "ready", "blocked_issues"):
        key = "specs" if tool == "list_specs" else "issues"
        rows = printed if isinstance(printed, list) else printed.get(key, [])
        if tool in ("ready", "blocked_issues") and not arguments.get("show_issues", True):
            return
        mine = result[key]
        assert [row["priority"] for row in mine] == sorted(row["priority"] for row in mine)
        # An empty filter is no filter, here as in the schema.
        if "limit" not in arguments and arguments.get("assignee") != "" and len(rows) <= 10:
            assert {row["id"]: (row["title"], row.get("status")) for row in mine} == {
                row["id"]: (row["title"], row.get("status")) for row in rows
            }
            assert {row["id"]: row["content"] for row in mine} == {
                row["id"]: row.get("content") or row.get("description") or "" for row in rows
            }
    elif tool in ("show_issue", "show_spec", "create_issue", "create_spec", "update_issue"):
        mine = result["spec" if "spec" in tool else "issue"]
        assert mine["id"] == printed["id"]
        for name in ("status", "priority", "assignee", "parent_id", "file_path"):
            if name in printed:
                assert mine.get(name) == printed[name]
        if "relationships" in printed:
            assert mine["tags"] == printed["tags"]
            for side in ("outgoing", "incoming"):
                assert [(link["from_id"], link["to_id"]) for link in mine["relationships"][side]] == [
                    (link["from_id"], link["to_id"]) for link in printed["relationships"][side]
                ]
        if "feedback" in printed:
            assert [entry["id"] for entry in mine["feedback"]] == [entry["id"] for entry in printed["feedback"]]
    elif tool == "close_issue":
        said = {entry["id"]: entry["success"] for entry in printed}
        assert {entry["id"]: entry["success"] for entry in result["results"]} == said
    elif tool == "link":
        assert {key: result[key] for key in ("from", "to", "type", "success")} == printed
    elif tool == "list_feedback":
        if "limit" not in arguments and not {"issue_id", "spec_id", "status"} & set(arguments):
            assert [entry["id"] for entry in result["feedback"]] == [entry["id"] for entry in printed]
    elif tool == "stale_feedback":
        assert [entry["id"] for entry in result["feedback"]] == [entry["id"] for entry in printed]
    elif "feedback" in tool:
        mine, anchor = result["feedback"], printed["anchor"]
        assert (mine["id"], mine["content"]) == (printed["id"], printed["content"])
        anchor = json.loads(anchor) if isinstance(anchor, str) else anchor
        if anchor:
            assert mine["anchor"]["line_number"] == anchor["line_number"]
            assert mine["anchor"]["anchor_status"] == anchor["anchor_status"]
        assert mine["status"] == printed.get("status", "dismissed" if printed.get("dismissed") else "open")
    elif tool in ("stats", "status"):
        assert result["issues"] == printed["issues"]
        assert result["specs"]["total"] == printed["specs"]["total"]


def test_every_difference_is_seen_in_a_recording() -> None:
    """A difference that no recording shows would be an untested claim."""
    met = set()
    for scenario in scenarios().values():
        projects: list[str] = []
        for step in scenario.steps:
            if (step.get("argv") or [""])[0] == "init":
                projects.append(step["cwd"])
            call = call_for(step["argv"]) if "argv" in step else None
            if call is not None:
                there = any(step["cwd"].startswith(project) for project in projects)
                met.add(difference(*call, {**step, "has_project": there}, scenario))

    assert set(DIFFERENCES) - met == set()
