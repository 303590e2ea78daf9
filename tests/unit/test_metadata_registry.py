import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from dependfix_core.http import DiskCache, HttpClient, HttpConfig
from dependfix_core.metadata.addresses import RegistryAddresses
from dependfix_core.metadata.configuration import read_client_configuration
from dependfix_core.metadata.registry import RegistryMetadata
from dependfix_core.model.records import (
    PackageRecord,
    Record,
    RecordKey,
    ReleaseRecord,
    Unavailability,
    Unavailable,
)
from fakes.corpus_metadata import corpus_records
from fakes.registry_server import Answer, RegistryServer

pytestmark = pytest.mark.anyio

AXIOS = RecordKey(ecosystem="npm", name="axios")
FLASK = RecordKey(ecosystem="pip", name="flask")
CONFIG = HttpConfig(trust_env=False, tries=1)


async def ask(
    server: RegistryServer, *keys: RecordKey, cache: Path | None = None, offline: bool = False
) -> Mapping[RecordKey, Record]:
    async with HttpClient(CONFIG, cache=DiskCache(cache) if cache else None) as http:
        source = RegistryMetadata(http, RegistryAddresses(server.registries), offline=offline)
        return await source.fetch(keys)


async def test_the_loopback_registry_gives_the_corpus_records() -> None:
    release = RecordKey(ecosystem="pip", name="flask", version="2.2.5")
    one = RecordKey(ecosystem="npm", name="axios", version="0.21.2")
    with RegistryServer() as server:
        found = await ask(server, AXIOS, one, FLASK, release)

    recorded = corpus_records()
    assert found[AXIOS] == recorded[AXIOS]
    assert isinstance(found[one], ReleaseRecord)
    flask, expected = found[FLASK], recorded[FLASK]
    assert isinstance(flask, PackageRecord)
    assert isinstance(expected, PackageRecord)
    assert set(flask.releases) == set(expected.releases)
    details, wanted = found[release], recorded[release]
    assert isinstance(details, ReleaseRecord)
    assert isinstance(wanted, ReleaseRecord)
    assert details.release.dependencies == wanted.release.dependencies


async def test_each_document_is_asked_for_once() -> None:
    keys = [RecordKey(ecosystem="npm", name="axios", version=version) for version in ("0.21.0", "0.21.1", "0.21.2")]
    with RegistryServer() as server:
        await ask(server, AXIOS, *keys)

    assert [seen.path for seen in server.seen] == ["/npm/axios"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(status=401), Unavailability.UNAUTHORIZED),
        (Answer(status=403), Unavailability.UNAUTHORIZED),
        (Answer(status=404), Unavailability.NOT_FOUND),
        (Answer(status=405), Unavailability.NOT_FOUND),
        (Answer(status=500), Unavailability.FAILED),
        (Answer(body=b"<html>portal</html>"), Unavailability.FAILED),
        (Answer(body=b"[]"), Unavailability.FAILED),
        (Answer(body=b'{"versions": '), Unavailability.FAILED),
    ],
)
@pytest.mark.parametrize("key", [AXIOS, FLASK], ids=["npm", "pip"])
async def test_a_registry_that_fails_is_unavailable_for_its_keys_alone(
    key: RecordKey, answer: Answer, why: Unavailability
) -> None:
    other = RecordKey(ecosystem="npm", name="qs")
    with RegistryServer(lambda path, _: None if path == "/npm/qs" else answer) as server:
        found = await ask(server, key, other)

    failed = found[key]
    assert isinstance(failed, Unavailable)
    assert failed.why is why
    assert isinstance(found[other], PackageRecord)


async def test_a_registry_that_is_down_is_unavailable() -> None:
    with RegistryServer() as server:
        pass

    found = (await ask(server, AXIOS))[AXIOS]

    assert isinstance(found, Unavailable)
    assert found.why is Unavailability.FAILED


async def test_kept_answers_are_revalidated_and_serve_offline(tmp_path: Path) -> None:
    with RegistryServer() as server:
        first = await ask(server, AXIOS, cache=tmp_path)
        again = await ask(server, AXIOS, cache=tmp_path)
        offline = await ask(server, AXIOS, FLASK, cache=tmp_path, offline=True)

    assert first[AXIOS] == again[AXIOS] == offline[AXIOS]
    assert [bool(seen.headers.get("if-none-match")) for seen in server.seen] == [False, True]
    missing = offline[FLASK]
    assert isinstance(missing, Unavailable)
    assert missing.why is Unavailability.OFFLINE


async def test_the_older_json_serves_where_there_is_no_simple_page() -> None:
    project = {"releases": {"1.0": [{"filename": "flask-1.0.tar.gz", "url": "f/flask-1.0.tar.gz", "digests": {}}]}}

    def script(path: str, _headers: Mapping[str, str]) -> Answer:
        if path == "/pypi/flask/json":
            return Answer(body=json.dumps(project).encode())
        return Answer(status=404)

    with RegistryServer(script) as server:
        found = (await ask(server, FLASK))[FLASK]

    assert isinstance(found, PackageRecord)
    assert list(found.releases) == ["1.0"]


async def test_metadata_comes_from_the_wheel_where_the_index_does_not_publish_it_apart() -> None:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "d-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: d\nVersion: 1.0\nRequires-Dist: a>=1\n"
        )
    page = {"files": [{"filename": "d-1.0-py3-none-any.whl", "url": "/w/d-1.0-py3-none-any.whl", "hashes": {}}]}

    def script(path: str, _headers: Mapping[str, str]) -> Answer | None:
        if path == "/simple/d/":
            return Answer(body=json.dumps(page).encode())
        return Answer(body=wheel.getvalue()) if path == "/w/d-1.0-py3-none-any.whl" else None

    key = RecordKey(ecosystem="pip", name="d", version="1.0")
    with RegistryServer(script) as server:
        found = (await ask(server, key))[key]

    assert isinstance(found, ReleaseRecord)
    assert [(item.name, item.requirement) for item in found.release.dependencies or ()] == [("a", ">=1")]


async def test_the_users_credential_reaches_the_users_registry_and_no_other_host(tmp_path: Path) -> None:
    with RegistryServer() as other:
        moved = Answer(status=302, headers={"location": f"{other.base.replace('127.0.0.1', 'localhost')}/npm/axios"})
        with RegistryServer(lambda _path, _headers: moved) as own:
            host = own.base.removeprefix("http:")
            (tmp_path / ".npmrc").write_text(
                f"registry={own.base}/npm\n{host}/:_authToken=planted-token\n", encoding="utf-8"
            )
            user = read_client_configuration(tmp_path, {})
            async with HttpClient(CONFIG) as http:
                found = await RegistryMetadata(http, RegistryAddresses({}, user)).fetch([AXIOS])

    assert isinstance(found[AXIOS], PackageRecord)
    assert [seen.headers.get("authorization") for seen in own.seen] == ["Bearer planted-token"]
    assert [seen.headers.get("authorization") for seen in other.seen] == [None]
