"""What an agent should know about sudocode, with the facts of the release that is installed here."""

from adapters.sudocode.cli import Capabilities, capability_report
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.session import Sudocode

_QUICKSTART = """\
# Sudocode Quickstart

Sudocode keeps specs and issues in the repository itself: a database for speed, JSONL files that git tracks, \
markdown files for people.

## Core Concepts

**Specs**: what should be built, as markdown text
- Each has an id such as `s-14sh` and a file below `.sudocode/specs`
{spec_fields}
- A spec can have a parent spec and tags

**Issues**: work items
- Each has an id such as `i-x7k9`, a status, and a priority from 0 (most urgent) to 4
- Status: open, in_progress, blocked, needs_review, closed; sudocode itself moves an issue to blocked and back \
when blockers appear and close
{issue_fields}
- An issue can implement specs, wait for other issues, and have a parent issue

**Feedback**: what an issue has to say about a spec
- It is anchored to a line or a text of the spec
- Types: {feedback_types}
- State: {feedback_state}
- Anchors are not moved while a spec changes, only by a synchronisation from markdown. `show_feedback` and \
`stale_feedback` compare them with the present text and suggest a line for `relocate_feedback`

## Typical Workflow

1. **Check ready work**: `ready` lists issues that nothing blocks, most urgent first
2. **Claim work**: `update_issue` with status=in_progress
3. **Review specs**: `show_issue` names the specs it is linked to, `show_spec` gives their text
4. **Provide feedback**: `add_feedback` where a spec is unclear or wrong
5. **Complete work**: `close_issue` when it is done, or status=needs_review when someone should look
6. **Link entities**: `link` for what belongs together or has to wait

## Relationship Types
- `blocks`: {blocks}
- `depends-on`: from_id waits for to_id
- `implements`: an issue implements a spec
- `references`: a loose mention
- `related`: they have to do with each other
- `discovered-from`: new work that came up during other work
- `parent-child`: from_id is the parent of to_id{parent_child}

Only links between issues count for `ready` and `blocked_issues`. There is no tool that removes a link.

## In this project

{here}
"""

_WORKFLOW = """\
# Agent Workflow Guide

## One piece of work

1. `ready` and take the first issue that you can do. `show_specs=true` adds specs that nothing blocks.
2. `show_issue` for its text, links and children; `show_spec` for each spec under `relationships`.
3. `update_issue` with status=in_progress (and assignee) before you change anything.
4. Work. New work that comes up: `create_issue`, then `link` it with type=discovered-from.
5. A spec is unclear, wrong or too narrow: `add_feedback` with the line or the text it is about. Do not guess \
silently.
6. The issue cannot go on: `link` with type=depends-on from it to what it waits for, and go back to step 1.
7. Done: `close_issue`. Someone should look first: `update_issue` with status=needs_review.

## Planning

- `create_spec` for what and why, `create_issue` for each step, `link` type=implements from issue to spec.
- Order between steps: `link` type=depends-on from the later to the earlier one. The result's `waiting` says who \
waits for whom; a `cycle` warning means that the issues block each other for ever.
- `blocked_issues` shows what is stuck and by what; `blocked_without_blocker` in it lists issues that are marked \
blocked while nothing blocks them: set them back to open.

## Reviewing specs

- `list_feedback` with spec_id and status=open, then `show_feedback` for one entry.
- `anchor_check.matches` false: the text moved or is gone; `relocate_feedback` with `suggested_line` if there is one.
- {states}

## Small answers

Lists hold what fits: full rows, then shortened texts, then summaries. `meta` says what was left out and how to get \
it; `content_length` is the length of a shortened text, and `show_issue` and `show_spec` give it.

## When a call fails

| code | what to do |
|---|---|
| `not_found` | Check the id with a list tool; ids are complete, never shortened. |
| `invalid_arguments` | `details.argument` names it, `details.valid_values` what is allowed. |
| `unsupported_by_cli` | This release lacks it; nothing was written. The hint names another way. |
| `not_initialized` | Call `init`. After a fresh clone it reads the committed rows; nothing is lost. |
| `database_stale` | Files and database disagree, nothing was written. Show `details` to a person; they decide. |
| `database_busy`, `timeout` | Wait a moment, call again. |
| `outcome_unknown` | Look first (a list tool, the title), repeat only when it is not there. |
| `conflict` | It exists already, or another project is in the way; the hint says which. |
| `database_invalid`, `database_incompatible` | `init` does not help. A person has to move the database aside or \
use another release. |
| `permission_denied` | Even reading needs write permission on `.sudocode`. |
| `cli_missing`, `cli_broken`, `config_error` | The installation or its settings; tell a person. |
| `cli_failed`, `bad_output` | `details.cli` has what sudocode said. Do not repeat a write without looking. |

Warnings come beside a result that did its job: `not_stored` (sudocode takes a value but does not keep it), \
`imported` (pulled rows were taken over first), `database_behind`, `cycle`, `design_appended`, `markdown_kept`.
"""


async def quickstart(sudocode: Sudocode) -> str:
    """The text of `sudocode://quickstart`."""
    capabilities, trouble = await _capabilities(sudocode)
    old_types = capabilities is not None and capabilities.ready_specs
    states = capabilities is not None and capabilities.feedback_states
    return _QUICKSTART.format(
        spec_fields="- Types: architecture, api, database, feature, research; status: draft, review, approved, deprecated"
        if old_types
        else "- No types and no states are kept; use tags",
        issue_fields="- Types: bug, feature, task, epic, chore"
        if old_types
        else "- No types and no estimates are kept",
        feedback_types="ambiguity, missing_requirement, technical_constraint, suggestion, question"
        if old_types
        else "comment, suggestion, request",
        feedback_state="open, acknowledged, resolved, wont_fix" if states else "open or dismissed, nothing between",
        blocks=_blocks(capabilities),
        parent_child=""
        if capabilities is None or capabilities.parent_child_links
        else "; kept as a field of the child",
        here=await _here(sudocode, capabilities, trouble),
    )


async def workflow(sudocode: Sudocode) -> str:
    """The text of `sudocode://workflow`."""
    capabilities, _ = await _capabilities(sudocode)
    states = (
        "`acknowledge_feedback` when you take it up, `resolve_feedback` or `wontfix_feedback` when it is settled."
        if capabilities is not None and capabilities.feedback_states
        else "`resolve_feedback` and `wontfix_feedback` both dismiss; this release keeps neither the difference nor a "
        "comment, so say why in the spec or in an issue. `acknowledge_feedback` does not exist here."
    )
    return _WORKFLOW.format(states=states)


async def _capabilities(sudocode: Sudocode) -> tuple[Capabilities | None, str]:
    try:
        return await sudocode.cli.capabilities(), ""
    except SudocodeError as error:
        return None, f"{error.code}: {error.message}"


def _blocks(capabilities: Capabilities | None) -> str:
    direction = capabilities.first_blocks_second if capabilities is not None else True
    if direction is None:
        return "one waits for the other; the result of `link` says which"
    return "to_id waits for from_id" if direction else "from_id waits for to_id (the old direction)"


async def _here(sudocode: Sudocode, capabilities: Capabilities | None, trouble: str) -> str:
    if capabilities is None:
        return f"sudocode could not be asked ({trouble}); the facts above are those of the current release."
    try:
        root = str((await sudocode.open()).project.root)
        place = f"- Project: {root}"
    except SudocodeError as error:
        place = f"- Project: none yet ({error.code}). {error.hint}"
    report = capability_report(capabilities)
    return "\n".join(
        [
            f"- sudocode {capabilities.version}",
            place,
            f"- Done by sudocode as it is: {', '.join(report['exact'])}",
            f"- Completed or computed here: {', '.join(report['emulated'])}",
            f"- Not available: {', '.join(report['missing']) or 'nothing'}",
        ]
    )
