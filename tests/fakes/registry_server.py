"""The loopback registry with the corpus's records."""

from pathlib import Path

from dependfix_mcp.demo.loopback_registry import Answer, LoopbackRegistry, Script, Seen

METADATA = Path(__file__).parent.parent / "data" / "metadata"

__all__ = ["Answer", "RegistryServer", "Script", "Seen"]


class RegistryServer(LoopbackRegistry):
    def __init__(self, script: Script | None = None) -> None:
        super().__init__(METADATA, script)
