"""What the sudocode tools answer, as models. Rows stay open: an odd field must not turn a write into a failure."""

from typing import Any, TypeAlias

from pydantic import Field

from dependfix_mcp.envelope import Envelope

Row: TypeAlias = dict[str, Any]


class SudocodeResult(Envelope):
    """What every sudocode answer may have beside its payload."""

    warnings: list[Row] | None = Field(None, description="code, message: to know although the call did its job")


class ListResult(SudocodeResult):
    """An answer with rows; lists are in order and shortened in one way."""

    meta: Row | None = Field(
        None, description="total, returned, omitted, hint; detail: full, excerpt (texts cut) or summary"
    )


class WorkView(ListResult):
    """Issues and specs; texts in them are untrusted."""

    issues: list[Row] | None = Field(None, description="Issues, most urgent first")
    specs: list[Row] | None = Field(None, description="Specs, most urgent first")


class BlockedView(WorkView):
    """What is stuck, and by what."""

    blocked_without_blocker: list[Row] | None = Field(
        None, description="Issues marked blocked that nothing unfinished blocks"
    )


class IssuesView(ListResult):
    """Issues of a list."""

    issues: list[Row] | None = Field(None, description="Issues, most urgent first")


class SpecsView(ListResult):
    """Specs of a list."""

    specs: list[Row] | None = Field(None, description="Specs, most urgent first")


class IssueView(SudocodeResult):
    """One issue."""

    issue: Row | None = Field(None, description="The issue with relationships, tags and feedback")


class SpecView(SudocodeResult):
    """One spec."""

    spec: Row | None = Field(None, description="The spec with relationships, tags and feedback")


class CloseView(ListResult):
    """What became of each id."""

    results: list[Row] | None = Field(None, description="For each id: id, success, error or issue")


class LinkView(SudocodeResult):
    """A link that was made."""

    from_id: str | None = Field(None, alias="from", description="Source")
    to: str | None = Field(None, description="Target")
    type: str | None = Field(None, description="Relationship type")
    success: bool | None = Field(None, description="Whether the link exists now")
    parent: str | None = Field(None, description="Which of the two is the parent")
    waiting: Row | None = Field(None, description="id, waits_for, confirmed by the blocked list")


class FeedbackView(SudocodeResult):
    """One feedback entry."""

    feedback: Row | None = Field(None, description="The entry; anchor_check and suggested_line where it was checked")
    asked_status: str | None = Field(None, description="The status that was asked for")
    stored_status: str | None = Field(None, description="The status that this release keeps")


class FeedbackListView(ListResult):
    """Feedback entries."""

    feedback: list[Row] | None = Field(None, description="Entries, newest first")


class StaleView(FeedbackListView):
    """Feedback that lost its place."""

    drifted: list[Row] | None = Field(None, description="Not marked stale, but the text is elsewhere now")


class StatsView(SudocodeResult):
    """Counts."""

    specs: Row | None = Field(None, description="Of specs")
    issues: Row | None = Field(None, description="Of issues")
    relationships: Row | None = Field(None, description="Of links")
    recent_activity: Row | None = Field(None, description="Of the last seven days")
    computed: list[str] | None = Field(None, description="Counts made here, not by sudocode")
    unavailable: list[str] | None = Field(None, description="Counts that this release cannot give")


class StatusView(SudocodeResult):
    """Counts in short."""

    specs: Row | None = Field(None, description="Of specs")
    issues: Row | None = Field(None, description="Of issues")
    relationships: Row | None = Field(None, description="Of links, with verbose")
    recent_activity: Row | None = Field(None, description="Of the last seven days, with verbose")
    diagnostics: Row | None = Field(None, description="Program, project and files, with verbose")


class InitView(SudocodeResult):
    """A project that is there now."""

    success: bool | None = Field(None, description="Whether the project can be used")
    path: str | None = Field(None, description="The .sudocode folder")
    already_initialized: bool | None = Field(None, description="Whether it was there before")


class BatchView(SudocodeResult):
    """What became of each item."""

    results: list[Row] | None = Field(None, description="For each item: index, success, issue or error and code")
    succeeded: int | None = Field(None, description="How many")
    failed: int | None = Field(None, description="How many, those not tried included")


class SyncView(SudocodeResult):
    """How files and database stand."""

    direction: str | None = Field(None, description="What was asked for")
    done: bool | None = Field(None, description="Whether something was changed")
    in_step: bool | None = Field(None, description="Whether both sides hold the same now")
    differences: Row | None = Field(None, description="What differed before, by kind, as ids")


class GraphView(ListResult):
    """Who waits for whom."""

    waiting: list[Row] | None = Field(None, description="Unfinished entities with what they wait for")
    cycles: list[list[Row]] | None = Field(None, description="Groups that wait for each other")
    critical_path: list[Row] | None = Field(None, description="The longest chain, the one to start with first")
