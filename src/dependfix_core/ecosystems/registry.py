"""The ecosystems that are there; adding one is one folder and one line."""

from typing import Final

from dependfix_core.ecosystems.base import Ecosystem, Ecosystems, PlannableEcosystem
from dependfix_core.ecosystems.npm.ecosystem import NpmEcosystem
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem

ECOSYSTEMS: Final[Ecosystems[PlannableEcosystem]] = Ecosystems(members=(NpmEcosystem(), PythonEcosystem()))
FIXABLE: Final[Ecosystems[Ecosystem]] = Ecosystems(members=(NpmEcosystem(), PythonEcosystem()))
"""Those whose files are also written."""
