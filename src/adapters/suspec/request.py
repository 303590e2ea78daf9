"""What may be asked: the two argument lists there are, and the rules for the paths in them."""

import os
import posixpath
import stat
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from dependfix_core.errors import ArgumentError

PathRule: TypeAlias = Literal["empty", "absolute", "character", "device", "count", "length"]

MAX_PATHS: Final = 256
MAX_PATH_CHARS: Final = 32_000
"""All paths of a call together: less than one command line may hold, and the reports on them fit one answer."""

CONTRACT_ARGUMENTS: Final = ("check", "--contract", "--json")

# Characters that can hide what a path is, or that end a line for somebody.
_FORBIDDEN: Final = {
    "Cc": "control character",
    "Cf": "format character",
    "Cs": "lone surrogate",
    "Zl": "line separator",
    "Zp": "paragraph separator",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRequest:
    """Artifacts to check in one run; made by `check_request`, which knows the rules."""

    paths: tuple[str, ...]
    """Absolute, in the caller's order and spelling, repeats included."""
    spec_path: str | None = None
    """The spec that tasks are checked against."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows the executable. A path begins with its root, so none can be taken for an option."""
        companion = () if self.spec_path is None else ("--spec", self.spec_path)
        return ("check", *self.paths, *companion, "--json")

    def named_paths(self) -> Iterator[tuple[str, str]]:
        """Each path with the name it has in messages, artifacts first."""
        for position, path in enumerate(self.paths):
            yield f"paths[{position}]", path
        if self.spec_path is not None:
            yield "specPath", self.spec_path


def check_request(paths: Sequence[str], spec_path: str | None = None) -> CheckRequest:
    """The request for these paths.

    Raises:
        ArgumentError: A path breaks a rule; `details` has `argument`, for a
            list `index`, and `rule`, one of `PathRule`. The first one counts,
            artifacts before the companion.
    """
    request = CheckRequest(paths=tuple(paths), spec_path=spec_path)
    if not request.paths:
        raise _fault("paths", "empty", "is empty", hint="Name at least one artifact.")
    if len(request.paths) > MAX_PATHS:
        raise _fault(
            "paths",
            "count",
            f"has {len(request.paths)} entries, more than {MAX_PATHS}",
            hint="Check fewer files at a time; ids are compared within one call only.",
        )
    for name, path in request.named_paths():
        _check_spelling(name, path)
    total = sum(len(path) for _, path in request.named_paths())
    if total > MAX_PATH_CHARS:
        raise _fault(
            "paths",
            "length",
            f"has {total} characters in all, more than {MAX_PATH_CHARS}",
            hint="Check fewer files at a time; ids are compared within one call only.",
        )
    return request


def refuse_devices(request: CheckRequest) -> None:
    """Refuse what a reader would wait on for ever: pipes and devices. Whatever else is wrong is the CLI's to say.

    Raises:
        ArgumentError: Rule `device`.
    """
    for name, path in request.named_paths():
        try:
            mode = Path(path).stat().st_mode
        except OSError:
            continue
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise _fault(name, "device", "is a pipe or a device, not a file")


def distinct_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths that the CLI tells apart: each file once, under its first spelling.

    A file is known by device and inode after links, so symbolic and hard
    links are aliases. The raw text is asked, since `..` behind a linked folder
    is not where the text says. A path that leads nowhere is known by its text.
    """
    first: dict[object, str] = {}
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116  # `Path` would tidy the text first
            key: object = (status.st_dev, status.st_ino)
        except (OSError, ValueError):
            key = _lexical(path)
        first.setdefault(key, path)
    return tuple(first.values())


def _lexical(path: str) -> str:
    if sys.platform == "win32":
        return os.path.normcase(os.path.normpath(path))
    # Two leading slashes are one for the CLI and stay two for `normpath`.
    return posixpath.normpath("/" + path.lstrip("/"))


def _check_spelling(name: str, path: str) -> None:
    if not path:
        hint = "Leave specPath out when there is no companion spec." if name == "specPath" else ""
        raise _fault(name, "empty", "is empty", hint=hint)
    for position, char in enumerate(path):
        kind = _FORBIDDEN.get(unicodedata.category(char))
        if kind:
            raise _fault(name, "character", f"has a {kind}, U+{ord(char):04X}, at position {position}")
    if not _is_absolute(path):
        raise _fault(name, "absolute", "is not absolute", hint="Give the full path of the file.")


def _is_absolute(path: str) -> bool:
    return Path(path).is_absolute() if sys.platform == "win32" else path.startswith("/")


def _fault(name: str, rule: PathRule, problem: str, *, hint: str = "") -> ArgumentError:
    argument, _, index = name.partition("[")
    details: dict[str, object] = {"argument": argument, "rule": rule}
    if index:
        details["index"] = int(index.rstrip("]"))
    return ArgumentError(f"{name} {problem}", hint=hint, details=details)
