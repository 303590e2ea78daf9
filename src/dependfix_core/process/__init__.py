"""The one place that starts child processes, and the text rules for what they print."""

from dependfix_core.process.command import INHERITED_VARIABLES, Command, CommandResult, Runner
from dependfix_core.process.output import json_document, plain_text
from dependfix_core.process.redact import clean_text, redact
from dependfix_core.process.runner import SubprocessRunner, locate

__all__ = [
    "INHERITED_VARIABLES",
    "Command",
    "CommandResult",
    "Runner",
    "SubprocessRunner",
    "clean_text",
    "json_document",
    "locate",
    "plain_text",
    "redact",
]
