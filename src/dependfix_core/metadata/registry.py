"""Asks the registries themselves, through the one HTTP edge."""

import io
import zipfile
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlsplit

import anyio

from dependfix_core.errors import DependfixError, NetworkError, OutputTooLargeError
from dependfix_core.http import Credential, HttpClient, HttpResponse, origin_of
from dependfix_core.metadata.addresses import RegistryAddress, RegistryAddresses
from dependfix_core.metadata.base import release_of
from dependfix_core.metadata.npm import read_package_document
from dependfix_core.metadata.pip import (
    CoreMetadata,
    metadata_candidates,
    read_core_metadata,
    read_project_json,
    read_simple_html,
    read_simple_json,
)
from dependfix_core.model.records import (
    PackageRecord,
    Record,
    RecordKey,
    Release,
    ReleaseFile,
    ReleaseRecord,
    Unavailability,
    Unavailable,
)

_SIMPLE_ACCEPT: Final = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
)
_MAX_WHEEL_BYTES: Final = 20 * 1024 * 1024
_MAX_CORE_METADATA_BYTES: Final = 4 * 1024 * 1024
_METADATA_TRIES: Final = 2


class RegistryMetadata:
    """`MetadataSource` over HTTP: each document is asked for once, answers are revalidated on disk.

    A failure is the answer of its own keys only. Keys of ecosystems that are
    not read here are `Unavailable`.
    """

    def __init__(self, http: HttpClient, addresses: RegistryAddresses, *, offline: bool = False) -> None:
        self._http = http
        self._addresses = addresses
        self._offline = offline
        self._packages: dict[RecordKey, Record] = {}
        self._releases: dict[RecordKey, Record] = {}
        self._locks: defaultdict[RecordKey, anyio.Lock] = defaultdict(anyio.Lock)

    async def fetch(self, keys: Collection[RecordKey]) -> Mapping[RecordKey, Record]:
        """See `MetadataSource.fetch`."""
        found: dict[RecordKey, Record] = {}

        async def one(key: RecordKey) -> None:
            found[key] = await (self._release(key) if key.version else self._package(key))

        async with anyio.create_task_group() as group:
            for key in keys:
                group.start_soon(one, key)
        return found

    async def _package(self, key: RecordKey) -> Record:
        key = replace(key, version="")
        async with self._locks[key]:
            known = self._packages.get(key)
            if known is None:
                known = self._packages[key] = await self._ask_package(key)
            return known

    async def _release(self, key: RecordKey) -> Record:
        package = await self._package(key)
        if not isinstance(package, PackageRecord):
            return replace(package, key=key) if isinstance(package, Unavailable) else package
        if key.ecosystem != "pip":
            return release_of(package, key)
        async with self._locks[key]:
            known = self._releases.get(key)
            if known is None:
                known = self._releases[key] = await self._ask_release(key, package)
            return known

    async def _ask_package(self, key: RecordKey) -> Record:
        address = self._addresses.choose(key)
        if isinstance(address, Unavailable):
            return address
        try:
            if key.ecosystem == "npm":
                return await self._npm(key, address)
            if key.ecosystem == "pip":
                return await self._pip(key, address)
        except _NoAnswerError as none:
            return Unavailable(key=key, why=none.why, detail=none.detail)
        except DependfixError as error:
            return Unavailable(key=key, why=_why(error), detail=error.message)
        except ValueError as error:
            return Unavailable(key=key, why=Unavailability.FAILED, detail=f"{_host(address.url)}: {error}"[:200])
        return Unavailable(key=key, why=Unavailability.NO_REGISTRY, detail=f"{key.ecosystem} registries are not read")

    async def _npm(self, key: RecordKey, address: RegistryAddress) -> Record:
        url = f"{address.url}/{quote(key.name, safe='@')}"
        response = await self._get(url, address, accept="application/json")
        return read_package_document(key, response.content)

    async def _pip(self, key: RecordKey, address: RegistryAddress) -> Record:
        url = f"{address.url}/{quote(key.name, safe='')}/"
        try:
            response = await self._get(url, address, accept=_SIMPLE_ACCEPT)
            if "json" in response.headers.get("content-type", ""):
                return read_simple_json(key, response.content, url=response.url)
            return read_simple_html(key, response.content, url=response.url)
        except (_NoAnswerError, ValueError) as simple:
            if isinstance(simple, _NoAnswerError) and simple.why is not Unavailability.NOT_FOUND:
                raise
            site = address.url.removesuffix("/simple")
            if site == address.url:
                raise
            try:
                response = await self._get(
                    f"{site}/pypi/{quote(key.name, safe='')}/json", address, accept="application/json"
                )
            except _NoAnswerError:
                # What the page itself was answered with says more than that there is no other one.
                raise simple from None
            return read_project_json(key, response.content, url=response.url)

    async def _ask_release(self, key: RecordKey, package: PackageRecord) -> Record:
        listed = package.releases.get(key.version)
        if listed is None:
            return Unavailable(
                key=key, why=Unavailability.NOT_FOUND, detail=f"{key.name} {key.version} is not on the index"
            )
        address = self._addresses.choose(key)
        if isinstance(address, Unavailable):
            return address
        failure = Unavailable(
            key=key, why=Unavailability.NOT_FOUND, detail=f"{key.name} {key.version} has no wheel to read metadata from"
        )
        for file in metadata_candidates(listed)[:_METADATA_TRIES]:
            try:
                metadata = await self._core_metadata(file, address)
            except _NoAnswerError as none:
                failure = Unavailable(key=key, why=none.why, detail=none.detail)
            except DependfixError as error:
                failure = Unavailable(key=key, why=_why(error), detail=error.message)
            except (ValueError, zipfile.BadZipFile, KeyError) as error:
                failure = Unavailable(
                    key=key, why=Unavailability.FAILED, detail=f"{file.filename}: unreadable metadata ({error})"[:200]
                )
            else:
                return ReleaseRecord(key=key, release=_detailed(listed, metadata), digest=package.digest)
        return failure

    async def _core_metadata(self, file: ReleaseFile, address: RegistryAddress) -> CoreMetadata:
        try:
            response = await self._get(
                f"{file.url}.metadata", address, accept="*/*", max_bytes=_MAX_CORE_METADATA_BYTES
            )
            return read_core_metadata(response.content)
        except _NoAnswerError as none:
            if none.why is not Unavailability.NOT_FOUND:
                raise
        # The index does not publish metadata apart (PEP 658): it is in the wheel.
        if file.size is not None and file.size > _MAX_WHEEL_BYTES:
            raise _NoAnswerError(Unavailability.FAILED, f"{file.filename} is too large to look into")
        wheel = await self._get(file.url, address, accept="*/*", max_bytes=_MAX_WHEEL_BYTES)
        return await anyio.to_thread.run_sync(_metadata_of_wheel, wheel.content)

    async def _get(
        self, url: str, address: RegistryAddress, *, accept: str, max_bytes: int | None = None
    ) -> HttpResponse:
        auth = self._credential(url, address)
        headers = {"accept": accept}
        if self._offline:
            kept = await self._http.cached(url, headers=headers, auth=auth, max_bytes=max_bytes)
            if kept is None:
                raise _NoAnswerError(Unavailability.OFFLINE, f"{_host(url)} is not asked offline, and nothing is kept")
            return kept
        response = await self._http.request(
            "GET",
            url,
            headers=headers,
            auth=auth,
            max_bytes=max_bytes,
            conditional=True,
            public_only=not address.trusted,
        )
        host = _host(url)
        if response.status in (401, 403):
            raise _NoAnswerError(Unavailability.UNAUTHORIZED, f"{host} answered {response.status}")
        if response.status in (404, 405, 410):
            raise _NoAnswerError(Unavailability.NOT_FOUND, f"{host} answered {response.status}")
        if response.status != 200:
            raise _NoAnswerError(Unavailability.FAILED, f"{host} answered {response.status}")
        return response

    def _credential(self, url: str, address: RegistryAddress) -> Credential | None:
        credential = address.credential
        return credential if credential is not None and credential.origin == origin_of(url) else None


class _NoAnswerError(Exception):
    """A registry has no usable answer; carries why."""

    def __init__(self, why: Unavailability, detail: str) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail


def _why(error: DependfixError) -> Unavailability:
    if isinstance(error, NetworkError) and error.details.get("kind") == "blocked-address":
        return Unavailability.NOT_ALLOWED
    return Unavailability.FAILED


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _detailed(listed: Release, metadata: CoreMetadata) -> Release:
    # The index says the same in the words that most tools take over.
    packaged = {"python": metadata.requires_python} if metadata.requires_python else {}
    extra = {"provides-extra": metadata.provides_extra, "summary": metadata.summary}
    return replace(
        listed,
        dependencies=metadata.dependencies,
        requires_runtime=listed.requires_runtime or packaged,
        extra={**extra, "requires-python": metadata.requires_python} if metadata.requires_python else extra,
    )


def _metadata_of_wheel(content: bytes) -> CoreMetadata:
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1)
        if wheel.getinfo(name).file_size > _MAX_CORE_METADATA_BYTES:
            raise OutputTooLargeError("the metadata of a wheel is too large")
        return read_core_metadata(wheel.read(name))
