import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from dependfix_core.metadata import NoMetadata, RecordedMetadata
from dependfix_core.metadata.npm import read_package_document
from dependfix_core.metadata.pip import (
    metadata_candidates,
    read_core_metadata,
    read_project_json,
    read_simple_html,
    read_simple_json,
    version_of_file,
)
from dependfix_core.model.records import (
    PackageRecord,
    RecordKey,
    Release,
    ReleaseDependency,
    ReleaseFile,
    ReleaseRecord,
    Unavailability,
    Unavailable,
)

KEY = RecordKey(ecosystem="npm", name="left")
PIP = RecordKey(ecosystem="pip", name="demo")
URL = "https://pypi.registry.example/simple/demo/"


def npm(versions: dict[str, Any], **more: Any) -> PackageRecord:
    return read_package_document(KEY, json.dumps({"name": "left", "versions": versions, **more}).encode())


def test_an_npm_release_is_read_with_everything_a_lockfile_needs() -> None:
    entry = {
        "name": "left",
        "version": "1.0.0",
        "dependencies": {"a": "^1", "fast": "^2"},
        "optionalDependencies": {"fast": "^2"},
        "peerDependencies": {"react": ">=16", "vue": "*"},
        "peerDependenciesMeta": {"vue": {"optional": True}},
        "engines": {"node": ">=18"},
        "os": ["linux"],
        "cpu": "x64",
        "scripts": {"postinstall": "node build.js", "test": "x"},
        "deprecated": "use right",
        "license": "MIT",
        "bin": {"left": "bin.js"},
        "dist": {
            "integrity": "sha512-x",
            "shasum": "aa",
            "tarball": "https://npm.registry.example/left/-/left-1.0.0.tgz",
        },
    }

    record = npm({"1.0.0": entry}, time={"1.0.0": "2024-05-06T07:08:09.000Z"}, **{"dist-tags": {"latest": "1.0.0"}})

    assert record.tags == {"latest": "1.0.0"}
    assert dict(record.releases) == {
        "1.0.0": Release(
            name="left",
            version="1.0.0",
            dependencies=(
                ReleaseDependency(name="a", requirement="^1"),
                ReleaseDependency(name="fast", requirement="^2", kind="optional"),
                ReleaseDependency(name="react", requirement=">=16", kind="peer"),
                ReleaseDependency(name="vue", requirement="*", kind="peer-optional"),
            ),
            published_at=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
            deprecated="use right",
            integrity="sha512-x",
            shasum="aa",
            tarball="https://npm.registry.example/left/-/left-1.0.0.tgz",
            requires_runtime={"node": ">=18"},
            platform={"os": ("linux",), "cpu": ("x64",)},
            has_install_script=True,
            extra={
                "license": "MIT",
                "bin": {"left": "bin.js"},
                "peerDependenciesMeta": {"vue": {"optional": True}},
            },
        )
    }


def test_a_list_of_engines_is_kept_for_lockfiles_and_asks_for_nothing() -> None:
    document = json.dumps({"versions": {"1.0.0": {"name": "old", "engines": ["node >=0.6.0"]}}}).encode()

    release = read_package_document(RecordKey(ecosystem="npm", name="old"), document).releases["1.0.0"]

    assert (release.requires_runtime, release.extra) == ({}, {"engines": ["node >=0.6.0"]})


@pytest.mark.parametrize("junk", [{}, {"engines": "node"}, {"dist": None, "scripts": [], "deprecated": False}])
def test_odd_npm_entries_are_read_as_far_as_they_go(junk: dict[str, Any]) -> None:
    release = npm({"1.0.0": junk}).releases["1.0.0"]

    assert release == Release(name="", version="1.0.0", dependencies=())


def test_npm_records_survive_a_process_boundary() -> None:
    record = npm({"1.0.0": {"name": "left"}})

    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301  # our own bytes


@pytest.mark.parametrize("document", [b"[]", b"{}", b'{"error": "not found"}', b"<html>"])
def test_something_else_is_no_package_document(document: bytes) -> None:
    with pytest.raises(ValueError):
        read_package_document(KEY, document)


def file(name: str, **more: Any) -> dict[str, Any]:
    return {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": "00"}, **more}


def test_a_python_release_holds_all_its_files_and_is_yanked_when_they_are() -> None:
    document = {
        "meta": {"api-version": "1.1"},
        "name": "demo",
        "files": [
            file("demo-1.0-py3-none-any.whl", **{"requires-python": ">=3.8", "size": 5, "yanked": "broken"}),
            file("demo-1.0.tar.gz", **{"requires-python": ">=3.8", "upload-time": "2024-01-02T03:04:05Z"}),
            file("demo-2023.07.22.tar.gz", yanked=True),
            file("demo-1.0.exe"),
        ],
        "versions": ["1.0", "2023.7.22", "not-a-version"],
    }

    record = read_simple_json(PIP, json.dumps(document).encode(), url=URL)

    assert {version: (release.yanked, len(release.files)) for version, release in record.releases.items()} == {
        "1.0": (False, 2),
        "2023.7.22": (True, 1),
    }
    assert record.releases["1.0"].requires_runtime == {"python": ">=3.8"}
    assert record.releases["1.0"].dependencies is None
    assert record.releases["1.0"].files[0] == ReleaseFile(
        filename="demo-1.0-py3-none-any.whl",
        url="https://pypi.registry.example/files/demo-1.0-py3-none-any.whl",
        hashes={"sha256": "00"},
        size=5,
        yanked=True,
        yanked_reason="broken",
        requires_python=">=3.8",
    )


def test_html_and_the_older_json_say_the_same_as_the_simple_json() -> None:
    page = (
        '<a href="../../files/demo-1.0.tar.gz#sha256=00" data-requires-python="&gt;=3.8" data-yanked="bad">'
        "demo-1.0.tar.gz</a>"
    )
    project = {
        "releases": {
            "1.0": [
                {
                    "filename": "demo-1.0.tar.gz",
                    "url": "../../files/demo-1.0.tar.gz",
                    "digests": {"sha256": "00"},
                    "yanked": True,
                    "yanked_reason": "bad",
                    "requires_python": ">=3.8",
                }
            ]
        }
    }

    simple = {"files": [file("demo-1.0.tar.gz", **{"requires-python": ">=3.8", "yanked": "bad"})]}

    expected = read_simple_json(PIP, json.dumps(simple).encode(), url=URL).releases
    assert read_simple_html(PIP, page.encode(), url=URL).releases == expected
    assert read_project_json(PIP, json.dumps(project).encode(), url=URL).releases == expected


@pytest.mark.parametrize(
    ("filename", "version"),
    [
        ("demo-1.0-py3-none-any.whl", "1.0"),
        ("Demo_X-1!2.0rc1.tar.gz", "1!2.0rc1"),
        ("certifi-2022.12.07.tar.gz", "2022.12.7"),
        ("demo-1.0.egg", None),
        ("demo-latest.tar.gz", None),
    ],
)
def test_the_version_comes_from_the_file_name(filename: str, version: str | None) -> None:
    assert version_of_file(filename) == version


def test_core_metadata_gives_requirements_with_markers_and_extras() -> None:
    document = (
        b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: A demo\nRequires-Python: >=3.8\n"
        b"Provides-Extra: Fast_Mode\nRequires-Dist: Werkzeug (>=2.2.2)\n"
        b'Requires-Dist: PySocks[a,B] !=1.5.7 ; extra == "fast-mode"\n\nbody'
    )

    metadata = read_core_metadata(document)

    assert metadata.dependencies == (
        ReleaseDependency(name="werkzeug", requirement=">=2.2.2"),
        ReleaseDependency(name="pysocks", requirement="!=1.5.7", marker='extra == "fast-mode"', extras=("a", "b")),
    )
    assert (metadata.requires_python, metadata.provides_extra, metadata.summary) == (">=3.8", ("fast-mode",), "A demo")


def test_a_malformed_requirement_is_an_error_since_the_list_would_be_incomplete() -> None:
    with pytest.raises(ValueError):
        read_core_metadata(b"Metadata-Version: 2.1\nName: d\nVersion: 1\nRequires-Dist: ??\n")


def test_pure_wheels_speak_first_for_a_release() -> None:
    files = tuple(
        ReleaseFile(filename=name, url="")
        for name in ("d-1.tar.gz", "d-1-cp311-cp311-win32.whl", "d-1-py3-none-any.whl")
    )

    found = metadata_candidates(Release(name="d", version="1", files=files))

    assert [file.filename for file in found] == ["d-1-py3-none-any.whl", "d-1-cp311-cp311-win32.whl"]


@pytest.mark.anyio
async def test_recorded_answers_match_whatever_the_registry_hint_is() -> None:
    record = npm({"1.0.0": {"name": "left"}})
    hinted = RecordKey(ecosystem="npm", name="left", registry="https://npm.registry.example/")
    one = RecordKey(ecosystem="npm", name="left", version="1.0.0")
    unknown = RecordKey(ecosystem="npm", name="right")
    gone = RecordKey(ecosystem="npm", name="left", version="9.9.9")

    answers = await RecordedMetadata({KEY: record}).fetch([hinted, one, unknown, gone])

    assert answers[hinted] == record
    assert answers[one] == ReleaseRecord(key=one, release=record.releases["1.0.0"], digest=record.digest)
    assert answers[unknown] == Unavailable(key=unknown, why=Unavailability.NOT_FOUND)
    assert isinstance(answers[gone], Unavailable)
    assert await NoMetadata().fetch([KEY]) == {KEY: Unavailable(key=KEY, why=Unavailability.OFFLINE)}
