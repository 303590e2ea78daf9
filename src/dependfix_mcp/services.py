"""What the server holds for its life and hands to the tools."""

from dataclasses import dataclass, field

from dependfix_core.process import Runner, SubprocessRunner
from dependfix_mcp.settings import Settings


@dataclass(kw_only=True)
class Services:
    """Collaborators of the tools; tests replace them one by one."""

    settings: Settings
    runner: Runner = field(default_factory=SubprocessRunner)
