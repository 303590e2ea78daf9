"""The one shape of every structured result: `ok`, and either the payload or what went wrong."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dependfix_core.errors import DependfixError


class Envelope(BaseModel):
    """Base of all result models.

    Payload fields of subclasses are optional in the schema (give each a
    default), so that a failure validates against the same schema.
    """

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    ok: bool = Field(description="Whether the tool did its job; findings are no failure")
    error: str | None = Field(None, description="What went wrong, one line")
    code: str | None = Field(None, description="Stable code of the failure")
    hint: str | None = Field(None, description="What to do next")
    retryable: bool | None = Field(None, description="Whether the same call can succeed later")
    retry_after_seconds: int | None = Field(
        None, alias="retryAfterSeconds", description="Seconds to wait before the next try"
    )
    details: dict[str, Any] | None = Field(None, description="Facts about the failure")


class Record(BaseModel):
    """Base of the objects inside a payload: closed, and optional fields are absent instead of null."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")


def failure(error: DependfixError) -> dict[str, Any]:
    """The wire object of a typed error."""
    return error.to_dict()
