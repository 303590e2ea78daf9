"""Asks the suspec CLI, contract 0.26.0, and believes only what it can check."""

from adapters.suspec.answers import Contract, ContractRow, Diagnostic, Refusal, Refused, Report, Reports
from adapters.suspec.cli import CheckAnswer, ContractAnswer, GateResult, Source, SuspecCli
from adapters.suspec.contract import VERSION
from adapters.suspec.request import CheckRequest, check_request
from adapters.suspec.views import check_view, command_view, contract_view, refusal_view

__all__ = [
    "VERSION",
    "CheckAnswer",
    "CheckRequest",
    "Contract",
    "ContractAnswer",
    "ContractRow",
    "Diagnostic",
    "GateResult",
    "Refusal",
    "Refused",
    "Report",
    "Reports",
    "Source",
    "SuspecCli",
    "check_request",
    "check_view",
    "command_view",
    "contract_view",
    "refusal_view",
]
