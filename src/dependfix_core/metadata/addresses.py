"""Which registry is asked for a package, and whether it may be: the rules that keep names and credentials home.

In order: the operator's setting; the user's client configuration; the
project's own files; the public default as `packageurl-python` knows it. An
address that only a repository's file names is untrusted: https, and no host
of this machine or the local network. A package that the project takes from
elsewhere than the public registry is never asked for there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from dependfix_core.errors import ConfigurationError, NetworkError
from dependfix_core.http import Credential, origin_of, refuse_local_host
from dependfix_core.metadata.configuration import ClientConfiguration
from dependfix_core.model.records import RecordKey, Unavailability, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryAddress:
    """A base address that may be asked."""

    url: str
    """Without a trailing slash."""
    trusted: bool
    """Named by the operator, the user or the public default, not only by a repository."""
    why: str
    credential: Credential | None = field(default=None, repr=False)


class RegistryAddresses:
    """Chooses the address for each record key."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, configuration: ClientConfiguration | None = None
    ) -> None:
        self._settings = {name: url.rstrip("/") for name, url in (settings or {}).items()}
        self._configuration = configuration or ClientConfiguration()

    def choose(self, key: RecordKey) -> RegistryAddress | Unavailable:
        """The address to ask for `key`, or why none may be asked."""
        scope = key.name.partition("/")[0] if key.ecosystem == "npm" and key.name.startswith("@") else ""
        hint = key.registry.rstrip("/")
        public = public_default(key.ecosystem)
        # From here on the name is private: only what was meant for it may see it.
        elsewhere = bool(hint) and not _same_host(hint, public)
        if url := self._settings.get(key.ecosystem):
            return self._trusted(url, f"setting --registry {key.ecosystem}=…")
        scoped = self._configuration.address(key.ecosystem, scope) if scope else None
        if scoped is not None:
            return self._trusted(scoped.url, scoped.why)
        default = self._configuration.address(key.ecosystem)
        if default is not None and not (elsewhere and _same_host(default.url, public)):
            return self._trusted(default.url, default.why)
        if hint and (elsewhere or public is None):
            return self._from_project(key, hint)
        if public is None:
            return Unavailable(
                key=key,
                why=Unavailability.NO_REGISTRY,
                detail=f"no registry is known; set --registry {key.ecosystem}=URL",
            )
        return self._trusted(public, "public default")

    def describe(self, ecosystem: str) -> tuple[str, str] | None:
        """Address and reason for a package that no file says anything of, for `doctor`."""
        chosen = self.choose(RecordKey(ecosystem=ecosystem, name="example"))
        return (chosen.url, chosen.why) if isinstance(chosen, RegistryAddress) else None

    def _trusted(self, url: str, why: str) -> RegistryAddress:
        return RegistryAddress(url=url, trusted=True, why=why, credential=self._configuration.credential_for(f"{url}/"))

    def _from_project(self, key: RecordKey, hint: str) -> RegistryAddress | Unavailable:
        if self._names_host(hint):
            return self._trusted(hint, "a file of the project, with a host of the user's configuration")
        try:
            scheme, host, _ = origin_of(hint)
            refuse_local_host(host)
        except (ConfigurationError, NetworkError) as error:
            return Unavailable(key=key, why=Unavailability.NOT_ALLOWED, detail=error.message)
        if scheme != "https":
            return Unavailable(
                key=key,
                why=Unavailability.NOT_ALLOWED,
                detail=f"{host} is named by a file of the project, without https",
            )
        # A credential for the host would be the user's; without one of theirs there is none.
        return RegistryAddress(url=hint, trusted=False, why="a file of the project")

    def _names_host(self, url: str) -> bool:
        own = [address.url for address in self._configuration.addresses] + list(self._settings.values())
        hosts = {urlsplit(address).netloc.lower() for address in own}
        hosts |= {item.prefix[2:].partition("/")[0] for item in self._configuration.credentials}
        return urlsplit(url).netloc.lower() in hosts and _is_plain(url)


def _is_plain(url: str) -> bool:
    try:
        origin_of(url)
    except ConfigurationError:
        return False
    return True


def _same_host(url: str, other: str | None) -> bool:
    return other is not None and urlsplit(url).netloc.lower() == urlsplit(other).netloc.lower()


_PROBE: Final = "example"


@cache
def public_default(ecosystem: str) -> str | None:
    """Base address of the public registry without a trailing slash; `None` when it cannot be derived."""
    derive = _DERIVED.get(ecosystem)
    return derive() if derive is not None else None


def _download(purl: str, tail: str) -> str | None:
    from packageurl.contrib.purl2url import get_download_url  # noqa: PLC0415  # loads on first use

    url: str | None = get_download_url(purl)  # type: ignore[no-untyped-call]  # the library types only its core
    return url.removesuffix(tail) if url and url.endswith(tail) else None


def _npm() -> str | None:
    return _download(f"pkg:npm/{_PROBE}@1.0.0", f"/{_PROBE}/-/{_PROBE}-1.0.0.tgz")


def _pip() -> str | None:
    from packageurl.contrib.purl2url import get_repo_url  # noqa: PLC0415  # loads on first use

    url: str | None = get_repo_url(f"pkg:pypi/{_PROBE}@1.0")  # type: ignore[no-untyped-call]  # as above
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc}/simple" if parts.netloc else None


def _maven() -> str | None:
    return _download(f"pkg:maven/org.{_PROBE}/{_PROBE}@1.0", f"/org/{_PROBE}/{_PROBE}/1.0/{_PROBE}-1.0.jar")


def _rubygems() -> str | None:
    return _download(f"pkg:gem/{_PROBE}@1.0", f"/downloads/{_PROBE}-1.0.gem")


def _go() -> str | None:
    return _download(f"pkg:golang/{_PROBE}.com/x@v1.0.0", f"/{_PROBE}.com/x/@v/v1.0.0.zip")


_DERIVED: Final[Mapping[str, Callable[[], str | None]]] = {
    "npm": _npm,
    "pip": _pip,
    "maven": _maven,
    "rubygems": _rubygems,
    "go": _go,
}
