"""Answers that a conditional request can revive, in memory and optionally on disk.

Bodies are kept as they came over the wire (gzip), so a page of a hundred
alerts takes some 30 kB. Keys hold a fingerprint of the credential: what one
token may see is never shown to another.
"""

import contextlib
import hashlib
import json
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from dependfix_core.http.config import MEBIBYTE

_KEPT_HEADERS: Final = ("content-type", "link", "etag", "x-github-api-version-selected", "x-github-request-id")


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedAnswer:
    """A 200 answer with its validator."""

    etag: str
    headers: Mapping[str, str]
    encoding: str
    raw: bytes

    @classmethod
    def of(cls, headers: Mapping[str, str], raw: bytes) -> "CachedAnswer | None":
        """What is worth keeping of a 200 answer; None when it has no validator or must not be stored."""
        etag = headers.get("etag", "")
        if not etag or "no-store" in headers.get("cache-control", ""):
            return None
        kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}
        return cls(etag=etag, headers=kept, encoding=headers.get("content-encoding", "").lower(), raw=raw)


class ResponseCache(Protocol):
    """Where answers are kept. Failing to keep or find one is never an error."""

    blocking: bool
    """Whether it touches a disk, so that it is called in a worker thread."""

    def get(self, key: str) -> CachedAnswer | None:
        """The answer under this key."""

    def put(self, key: str, answer: CachedAnswer) -> None:
        """Keep it."""


def cache_key(url: str, accept: str, version: str, credential: str) -> str:
    """The name of an answer: address, representation, and whose it is."""
    return hashlib.sha256(json.dumps((url, accept, version, credential)).encode()).hexdigest()


class MemoryCache:
    """The most recently used answers, up to a number of bytes."""

    blocking = False

    def __init__(self, max_bytes: int = 16 * MEBIBYTE) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._answers: OrderedDict[str, CachedAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> CachedAnswer | None:
        """The answer under this key."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            return answer

    def put(self, key: str, answer: CachedAnswer) -> None:
        """Keep it, and forget the oldest ones above the limit."""
        if len(answer.raw) > self._max_bytes // 4:
            return
        with self._lock:
            old = self._answers.pop(key, None)
            self._bytes += len(answer.raw) - (len(old.raw) if old is not None else 0)
            self._answers[key] = answer
            while self._bytes > self._max_bytes:
                _, gone = self._answers.popitem(last=False)
                self._bytes -= len(gone.raw)


class DiskCache:
    """Answers in a folder, one private file each; the oldest go when there are too many."""

    blocking = True

    def __init__(self, folder: Path, max_files: int = 2000) -> None:
        self._folder = folder
        self._max_files = max_files
        self._written = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> CachedAnswer | None:
        """The answer under this key; None when there is none or its file is damaged."""
        try:
            data = self._path(key).read_bytes()
            head, _, raw = data.partition(b"\n")
            fields = json.loads(head)
            if fields["sha256"] != hashlib.sha256(raw).hexdigest():
                return None
            return CachedAnswer(
                etag=str(fields["etag"]),
                headers={str(name): str(value) for name, value in fields["headers"].items()},
                encoding=str(fields["encoding"]),
                raw=raw,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, key: str, answer: CachedAnswer) -> None:
        """Keep it; a full or read-only disk only means that nothing is kept."""
        fields = {
            "etag": answer.etag,
            "headers": dict(answer.headers),
            "encoding": answer.encoding,
            "sha256": hashlib.sha256(answer.raw).hexdigest(),
        }
        path = self._path(key)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(json.dumps(fields).encode() + b"\n" + answer.raw)
            draft.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()
            return
        self._prune()

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.http"

    def _prune(self) -> None:
        with self._lock:
            self._written += 1
            if self._written % 100 != 1:
                return
        try:
            files = sorted(self._folder.glob("*.http"), key=lambda path: path.stat().st_mtime)
            for path in files[: max(0, len(files) - self._max_files)]:
                path.unlink(missing_ok=True)
        except OSError:
            return
