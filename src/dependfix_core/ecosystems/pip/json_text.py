"""Where does each value of a JSON file stand in its bytes? For texts that the parser has accepted."""

import json
import re
from typing import Final

from dependfix_core.model.lock import Span

JsonPath = tuple[str | int, ...]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*"')
_SCALAR: Final = re.compile(r"[^,\]}\s]+")


def json_spans(content: bytes, start: int = 0) -> dict[JsonPath, Span]:
    """Byte spans of all values, by path; the whole value is at the empty path."""
    scanner = _Scanner(content.decode("latin-1"), start)
    scanner.value(())
    return scanner.spans


class _Scanner:
    """One character is one byte."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.pos = start
        self.spans: dict[JsonPath, Span] = {}

    def value(self, path: JsonPath) -> None:
        self._space()
        start = self.pos
        if self.text[start] == "{":
            self.pos += 1
            while self._more("}"):
                key = self._taken(_STRING)
                self._space()
                self.pos += 1  # the colon
                self.value((*path, json.loads(key.encode("latin-1"))))
        elif self.text[start] == "[":
            self.pos += 1
            index = 0
            while self._more("]"):
                self.value((*path, index))
                index += 1
        else:
            self._taken(_STRING if self.text[start] == '"' else _SCALAR)
        self.spans[path] = Span(start=start, end=self.pos)

    def _space(self) -> None:
        found = _SPACE.match(self.text, self.pos)
        if found:
            self.pos = found.end()

    def _more(self, close: str) -> bool:
        self._space()
        if self.text[self.pos] == ",":
            self.pos += 1
            self._space()
        if self.text[self.pos] == close:
            self.pos += 1
            return False
        return True

    def _taken(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.pos)
        assert found is not None, "text was accepted by the parser"
        self.pos = found.end()
        return found[0]
