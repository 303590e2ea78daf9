"""The package managers of the test cache, where the product looks for installed ones."""

from collections.abc import Sequence

from tools.bring import command_of, tools_folder


class BroughtTools:
    """Finds each tool in the named version only: `{"pnpm": "pnpm-9"}`."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def candidates(self, tool: str) -> Sequence[tuple[str, ...]]:
        command = command_of(self._names[tool], tools_folder()) if tool in self._names else None
        return [tuple(command)] if command else []
