"""Asks the user before a write, where the operator wants that (`--confirm`)."""

from mcp.server.mcpserver import Context, Elicit, ElicitationResult
from pydantic import BaseModel, Field

from dependfix_core.errors import ConfirmationRequiredError
from dependfix_core.process import clean_text


class Approval(BaseModel):
    """What the user is asked."""

    proceed: bool = Field(description="Write these changes?")


async def approve_scan(ctx: Context, repo: str, mode: str, dryRun: bool) -> Approval | Elicit[Approval]:  # noqa: FBT001  # the tool's arguments by name
    """Ask before a scan that writes.

    Raises:
        ConfirmationRequiredError: The client cannot ask.
    """
    if mode == "report-only" or dryRun:
        return Approval(proceed=True)
    return _asked(ctx, f"Fix the open alerts of {_shown(repo)} in its checkout?")


async def approve_dependency(
    ctx: Context,
    repo: str,
    packageName: str,
    targetVersion: str,
    dryRun: bool,  # noqa: FBT001  # as above
) -> Approval | Elicit[Approval]:
    """Ask before one package is moved.

    Raises:
        ConfirmationRequiredError: The client cannot ask.
    """
    if dryRun:
        return Approval(proceed=True)
    return _asked(ctx, f"Move {_shown(packageName)} to {_shown(targetVersion)} in the checkout of {_shown(repo)}?")


def _asked(ctx: Context, question: str) -> Elicit[Approval]:
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        raise ConfirmationRequiredError(
            "the operator wants each write confirmed, and this client cannot ask its user",
            hint="Use dryRun, or plan_fixes, to see what would change; the operator can start without --confirm.",
        )
    return Elicit(question, Approval)


def require(answer: ElicitationResult[Approval]) -> None:
    """Go on only after a yes.

    Raises:
        ConfirmationRequiredError: The user said no, or did not answer.
    """
    if answer.action != "accept" or not answer.data.proceed:
        raise ConfirmationRequiredError("the user did not agree to the change", hint="Nothing was changed.")


def _shown(text: str) -> str:
    return clean_text(text, one_line=True, max_chars=120)
