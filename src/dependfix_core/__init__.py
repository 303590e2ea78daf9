"""Turns a repository's Dependabot alerts into verified fixes.

Names are loaded when they are first used, so that importing the package is
cheap and loads no network or parsing code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dependfix_core._version import __version__

if TYPE_CHECKING:
    from dependfix_core.errors import DependfixError
    from dependfix_core.facade import AsyncDependfix, Connection, Dependfix, EnvironmentToken, Places
    from dependfix_core.github.alerts import AlertListing
    from dependfix_core.github.query import AlertQuery
    from dependfix_core.github.token import ImportedToken, TokenSource
    from dependfix_core.model.alert import Alert
    from dependfix_core.model.plan import Plan
    from dependfix_core.model.policy import ScanPolicy
    from dependfix_core.report.wire import RunResult

_HOMES: Final = {
    "Alert": "model.alert",
    "AlertListing": "github.alerts",
    "AlertQuery": "github.query",
    "AsyncDependfix": "facade",
    "Connection": "facade",
    "Dependfix": "facade",
    "DependfixError": "errors",
    "EnvironmentToken": "facade",
    "ImportedToken": "github.token",
    "Places": "facade",
    "Plan": "model.plan",
    "RunResult": "report.wire",
    "ScanPolicy": "model.policy",
    "TokenSource": "github.token",
}

__all__ = [
    "Alert",
    "AlertListing",
    "AlertQuery",
    "AsyncDependfix",
    "Connection",
    "Dependfix",
    "DependfixError",
    "EnvironmentToken",
    "ImportedToken",
    "Places",
    "Plan",
    "RunResult",
    "ScanPolicy",
    "TokenSource",
    "__version__",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dependfix_core.{home}"), name)
