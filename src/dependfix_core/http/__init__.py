"""The one HTTP edge of the library, for GitHub and for registries."""

from dependfix_core.http.address import is_public_address, refuse_local_host
from dependfix_core.http.cache import CachedAnswer, DiskCache, MemoryCache, ResponseCache
from dependfix_core.http.client import HttpClient
from dependfix_core.http.config import CallBudget, Clock, HttpConfig, SystemClock
from dependfix_core.http.message import Credential, HttpResponse, Origin, link_target, origin_of, retry_after_s

__all__ = [
    "CachedAnswer",
    "CallBudget",
    "Clock",
    "Credential",
    "DiskCache",
    "HttpClient",
    "HttpConfig",
    "HttpResponse",
    "MemoryCache",
    "Origin",
    "ResponseCache",
    "SystemClock",
    "is_public_address",
    "link_target",
    "origin_of",
    "refuse_local_host",
    "retry_after_s",
]
