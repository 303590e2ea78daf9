"""Turns plain async functions into tools with closed schemas, one envelope, time limits and size limits."""

import functools
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

from dependfix_core.errors import ArgumentError, DependfixError, OutputTooLargeError, TimeLimitError
from dependfix_core.process import clean_text, redact
from dependfix_mcp.envelope import Envelope, failure
from dependfix_mcp.schemas import flatten, lean

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.types import Completion

log = logging.getLogger(__name__)

MAX_RESULT_CHARS: Final = 60_000
"""A result never has more."""
TARGET_RESULT_CHARS: Final = 24_000
"""Paged tools end their page here."""

_ENVELOPE_FIELDS: Final = frozenset(info.alias or name for name, info in Envelope.model_fields.items())
"""The same in every tool, and described in the documentation."""
_ENVELOPE_DETAILS: Final = frozenset({"retryable", "retryAfterSeconds", "details"})
"""Of failures only; not listed thirty times."""

ToolFunction: TypeAlias = Callable[..., Awaitable[Envelope | CallToolResult]]
Secrets: TypeAlias = Callable[[], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """One tool as its module declares it; name, description and arguments come from `fn`.

    The four hints have no defaults: hosts decide on auto-approval from them.
    """

    fn: ToolFunction
    title: str
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    timeout_s: float = 60.0
    meta: dict[str, Any] | None = None
    read_only_fn: ToolFunction | None = None
    """The reduced form of a writing tool that stays listed under `--read-only`."""
    called: str = ""
    """The tool's name where that of `fn` is another one."""
    retired: Mapping[str, str] = field(default_factory=dict)
    """Argument of an older version → the hint when somebody still sends it."""
    verbatim: frozenset[str] = frozenset()
    """Payload keys whose texts are the caller's own checked arguments: redacted, otherwise as they came."""
    explain: "Callable[[ArgumentError], Awaitable[ArgumentError]] | None" = None
    """Adds to the error for a wrong argument what only a look outside can tell."""

    @property
    def name(self) -> str:
        """The tool's name on the wire."""
        return self.called or getattr(self.fn, "__name__", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolset:
    """What one toolset adds to the server."""

    name: str
    instructions: str
    """Two or three sentences for the host's system prompt."""
    tools: tuple[ToolSpec, ...]
    register: Callable[["MCPServer"], None] = field(default=lambda _server: None)
    """Adds resources and prompts."""
    start: Callable[[], Awaitable[None]] | None = None
    """Prepares the toolset beside `initialize`; a `DependfixError` says that its tools cannot work now."""
    prompts: dict[str, frozenset[str]] = field(default_factory=dict)
    """Prompt name → required arguments."""
    complete: Callable[[str, str, str], Awaitable["Completion | None"]] | None = None
    """(prompt name or resource template, argument, typed so far) → values."""


class ProductTool(Tool):
    """A tool whose every answer is the envelope, as structure and as compact JSON text."""

    timeout_s: float = Field(default=60.0, exclude=True)
    secrets: Secrets = Field(default=tuple, exclude=True)
    retired: Mapping[str, str] = Field(default_factory=dict, exclude=True)
    verbatim: frozenset[str] = Field(default=frozenset(), exclude=True)
    explain: Callable[[ArgumentError], Awaitable[ArgumentError]] | None = Field(default=None, exclude=True)
    examples: dict[str, Any] = Field(default_factory=dict, exclude=True)
    """Argument → a right value; the wire's schema has no room for it."""

    @classmethod
    def build(cls, spec: ToolSpec, *, read_only: bool = False, secrets: Secrets = tuple) -> "ProductTool":
        """The tool of `spec`; with `read_only` its reduced form where it has one."""
        reduced = spec.read_only_fn if read_only else None
        tool = cls.from_function(
            _limited(reduced or spec.fn, spec.timeout_s),
            name=spec.name,
            title=spec.title,
            annotations=ToolAnnotations(
                read_only_hint=spec.read_only or reduced is not None,
                destructive_hint=spec.destructive and reduced is None,
                idempotent_hint=spec.idempotent or reduced is not None,
                open_world_hint=spec.open_world,
            ),
            meta=spec.meta,
            structured_output=True,
        )
        assert isinstance(tool, cls)
        # Before Python 3.13 a docstring keeps the indentation of its source.
        tool.description = inspect.cleandoc(tool.description)
        tool.timeout_s = spec.timeout_s
        tool.secrets = secrets
        tool.retired = spec.retired
        tool.verbatim = spec.verbatim
        tool.explain = spec.explain
        tool.parameters, tool.examples = _without_examples(flatten(tool.parameters))
        tool.parameters["additionalProperties"] = False
        tool.fn_metadata.output_schema = lean(
            flatten(tool.fn_metadata.output_schema or {}), _ENVELOPE_FIELDS, _ENVELOPE_DETAILS
        )
        return tool

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002  # the SDK's signature
        """Answer a call; only protocol errors are raised."""
        try:
            self._refuse_unknown(arguments)
            value = await super().run(arguments, context, convert_result=False)
            return self._success(value) if isinstance(value, Envelope) else value
        except MCPError:
            raise
        except DependfixError as error:
            return self._failure(await self._explained(error))
        except ToolError as error:  # UnexpectedToolError is one
            return self._failure(await self._explained(self._translate(error)))

    async def _explained(self, error: DependfixError) -> DependfixError:
        if self.explain is None or not isinstance(error, ArgumentError):
            return error
        return await self.explain(error)

    def _refuse_unknown(self, arguments: dict[str, Any]) -> None:
        allowed = self.parameters.get("properties", {})
        unknown = sorted(set(arguments) - set(allowed))
        if unknown:
            names = ", ".join(clean_text(name, max_chars=60, one_line=True) for name in unknown)
            raise ArgumentError(
                f"unknown argument: {names}",
                hint=self.retired.get(unknown[0], f"Allowed: {', '.join(allowed) or 'none'}."),
                details={"argument": clean_text(unknown[0], max_chars=60, one_line=True)},
            )

    def _translate(self, error: ToolError) -> DependfixError:
        cause = error.__cause__
        if isinstance(cause, DependfixError):
            return cause
        if isinstance(cause, ValidationError):
            return _argument_error(cause, self.parameters.get("properties", {}), self.examples)
        if isinstance(cause, TimeoutError):
            return TimeLimitError(f"no result within {self.timeout_s:g} s")
        if isinstance(error, UnexpectedToolError):
            log.error("a tool crashed", exc_info=cause, extra={"tool": self.name})
            return DependfixError("an unexpected error; details are in the server's log")
        return DependfixError(str(error))

    def _success(self, value: Envelope) -> CallToolResult:
        payload = self.scrub(value.model_dump(mode="json", by_alias=True, exclude_none=True))
        text = compact(payload)
        if len(text) > MAX_RESULT_CHARS:
            return self._failure(
                OutputTooLargeError(
                    f"the result has {len(text)} characters, more than {MAX_RESULT_CHARS}",
                    hint="Ask for less: a lower limit, a filter, or one section.",
                )
            )
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=payload, is_error=not value.ok
        )

    def _failure(self, error: DependfixError) -> CallToolResult:
        payload = self.scrub(failure(error))
        return CallToolResult(
            content=[TextContent(type="text", text=compact(payload))], structured_content=payload, is_error=True
        )

    def scrub(self, value: Any) -> Any:
        """`value` as it may leave: see `scrub`."""
        return scrub(value, self.secrets(), verbatim=self.verbatim)


def scrub(value: Any, secrets: Sequence[str] = (), *, verbatim: frozenset[str] = frozenset()) -> Any:
    """`value` with every string redacted, and cleaned of invisible characters but for the `verbatim` keys."""
    held = tuple(secrets)

    def walk(node: Any, key: str = "") -> Any:
        if isinstance(node, str):
            return redact(node if key in verbatim else clean_text(node), *held)
        if isinstance(node, dict):
            return {key: walk(child, key) for key, child in node.items()}
        if isinstance(node, list):
            return [walk(child) for child in node]
        return node

    return walk(value)


def compact(payload: object) -> str:
    """One line of JSON without blanks; non-ASCII stays readable."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _limited(fn: ToolFunction, seconds: float) -> ToolFunction:
    # Around the body, not the resolvers: a person's thinking time does not count.
    @functools.wraps(fn)
    async def body(*args: Any, **kwargs: Any) -> Envelope | CallToolResult:
        with anyio.fail_after(seconds):
            return await fn(*args, **kwargs)

    return body


def _without_examples(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`schema` without the keyword that not all clients accept, and the first example of each argument."""
    properties: dict[str, Any] = schema.get("properties", {})
    examples = {name: child["examples"][0] for name, child in properties.items() if child.get("examples")}
    plain = {
        name: {key: value for key, value in child.items() if key != "examples"} for name, child in properties.items()
    }
    return {**schema, "properties": plain}, examples


def _argument_error(error: ValidationError, properties: dict[str, Any], examples: dict[str, Any]) -> ArgumentError:
    """The first broken rule by argument name, all of them in one line, no value echoed."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    lines = [f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults]
    name = str(faults[0]["loc"][0]) if faults and faults[0]["loc"] else ""
    schema = properties.get(name, {})
    allowed = schema.get("enum") or schema.get("items", {}).get("enum")
    example = examples.get(name, schema.get("default"))
    hint = f"Allowed for {name}: {', '.join(map(str, allowed))}." if allowed else ""
    if not hint and example is not None:
        hint = f"For example {name}={json.dumps(example)}."
    return ArgumentError(clean_text("; ".join(lines), max_chars=800), hint=hint, details={"argument": name})


def result_size(model: BaseModel) -> int:
    """Characters that a result or a part of one takes on the wire."""
    return len(compact(model.model_dump(mode="json", by_alias=True, exclude_none=True)))
