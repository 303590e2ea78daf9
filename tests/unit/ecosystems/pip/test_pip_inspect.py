import json
from collections.abc import Callable, Mapping

import pytest

from dependfix_core.ecosystems.base import Finding
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.ecosystems.pip.write_pdm import pdm_content_hashes
from dependfix_core.ecosystems.pip.write_pipenv import pipfile_hash
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseDependency, ReleaseRecord
from fakes.corpus_metadata import corpus_records
from fakes.planning import drive_plan
from fakes.step_driver import listing_of, project_files

Change = Callable[[dict[str, bytes]], None]
LOCKS = {
    "pip-hashes": "requirements.txt",
    "pipenv": "Pipfile.lock",
    "poetry-groups": "poetry.lock",
    "uv-project": "uv.lock",
}


def files_of(project: str) -> dict[str, bytes]:
    """A corpus project as its tool would accept it."""
    files = project_files(project)
    if project == "pipenv":
        # The corpus names another index than the one that the stored hash was made with.
        lock = json.loads(files["Pipfile.lock"])
        lock["_meta"]["hash"]["sha256"] = pipfile_hash(files["Pipfile"])
        files["Pipfile.lock"] = json.dumps(lock, indent=4).encode() + b"\n"
    return files


def inspected(files: Mapping[str, bytes], lock: str, *, records: bool = True) -> tuple[Finding, ...]:
    ecosystem = PythonEcosystem()
    known = corpus_records() if records else {}
    (unit,) = drive_plan(ecosystem.read_units(listing_of(files), [lock]), files, known)
    return drive_plan(ecosystem.inspect(unit), files, known)


def places(findings: tuple[Finding, ...]) -> set[str]:
    return {f"{finding.check} {finding.where}" for finding in findings}


def swap(path: str, old: str, new: str) -> Change:
    def change(files: dict[str, bytes]) -> None:
        assert files[path].count(old.encode()) >= 1, old
        files[path] = files[path].replace(old.encode(), new.encode(), 1)

    return change


def in_block(path: str, first: str, old: str, new: str) -> Change:
    """Like `swap`, for the first place after `first`."""

    def change(files: dict[str, bytes]) -> None:
        head, marker, tail = files[path].decode().partition(first)
        assert old in tail, old
        files[path] = (head + marker + tail.replace(old, new, 1)).encode()

    return change


def without_block(path: str, first: str, end: str) -> Change:
    """Takes out the text from `first` up to where `end` comes next."""

    def change(files: dict[str, bytes]) -> None:
        text = files[path].decode()
        start = text.index(first)
        files[path] = (text[:start] + text[text.index(end, start + len(first)) :]).encode()

    return change


def entry(section: str, name: str, key: str, value: object) -> Change:
    """Sets a value in an entry of a Pipfile.lock; `None` takes the entry out."""

    def change(files: dict[str, bytes]) -> None:
        lock = json.loads(files["Pipfile.lock"])
        if value is None:
            del lock[section][name]
        else:
            lock[section][name][key] = value
        files["Pipfile.lock"] = json.dumps(lock, indent=4).encode()

    return change


@pytest.mark.parametrize("project", LOCKS)
def test_what_the_real_tools_wrote_has_no_finding(project: str) -> None:
    assert inspected(files_of(project), LOCKS[project]) == ()


@pytest.mark.parametrize("project", LOCKS)
def test_without_records_nothing_is_held_against_a_lock(project: str) -> None:
    assert inspected(files_of(project), LOCKS[project], records=False) == ()


REQUIREMENTS = "requirements.txt"
IDNA_HASH = "814f528e8dead7d329833b91c5faa87d60bf71824cd12a7530b5526063d02cb4"
ZERO = "0" * 64

BROKEN: dict[str, tuple[str, Change, set[str]]] = {
    "a hash that is no file's": (
        "pip-hashes",
        swap(REQUIREMENTS, IDNA_HASH, ZERO),
        {"V6 idna==3.4"},
    ),
    "a hash that is missing": (
        "pip-hashes",
        swap(REQUIREMENTS, f"    --hash=sha256:{IDNA_HASH} \\\n", ""),
        {"V6 idna==3.4"},
    ),
    "a version that a dependent refuses, with the old hashes": (
        "pip-hashes",
        swap(REQUIREMENTS, "idna==3.4", "idna==2.4"),
        {"V4 idna==2.4"},
    ),
    "an input that asks for more": (
        "pip-hashes",
        swap("requirements.in", "flask>=2.2,<2.3", "flask>=2.3"),
        {"V4 flask==2.2.2"},
    ),
    "a constraint that is not kept": (
        "pip-hashes",
        swap("constraints.txt", "urllib3<2", "urllib3<1.26"),
        {"V4 urllib3==1.26.14"},
    ),
    "an input that is not compiled": (
        "pip-hashes",
        swap("requirements.in", "gunicorn", "gunicorn\ntornado"),
        {"V5 requirements.in tornado"},
    ),
    "layers that differ": (
        "pip-hashes",
        swap("requirements-dev.txt", "markupsafe==2.1.2", "markupsafe==2.1.1"),
        {"V5 markupsafe==2.1.1"},
    ),
    "an input that pins another version": (
        "pip-hashes",
        swap("requirements.in", "requests[socks]==2.28.1", "requests[socks]==2.31.0"),
        {"V5 requests==2.28.1"},
    ),
    "a need that is not pinned": (
        "pip-hashes",
        without_block(REQUIREMENTS, "click==", "flask=="),
        {"V4 flask==2.2.2"},
    ),
    "a note that names the wrong one": (
        "pip-hashes",
        swap(REQUIREMENTS, "    # via requests\nclick", "    # via flask\nclick"),
        {"V7 charset-normalizer==2.1.1"},
    ),
    "a note that names nobody": (
        "pip-hashes",
        swap(REQUIREMENTS, "    # via requests\nclick", "    # via\n    #   gone\n    #   requests\nclick"),
        {"V7 charset-normalizer==2.1.1"},
    ),
    "a Pipfile that changed": (
        "pipenv",
        swap("Pipfile", 'requests = "*"', 'requests = ">=2"'),
        {"V5 Pipfile"},
    ),
    "a Pipfile that asks for another version": (
        "pipenv",
        swap("Pipfile", 'jinja2 = "~=3.1"', 'jinja2 = "~=3.2"'),
        {"V5 Pipfile", "V4 default.jinja2"},
    ),
    "a need that is not in the section": (
        "pipenv",
        entry("default", "idna", "", None),
        {"V4 default.requests"},
    ),
    "hashes of another version": (
        "pipenv",
        entry("default", "idna", "version", "==3.7"),
        {"V6 default.idna"},
    ),
    "a release for other pythons": (
        "poetry-groups",
        swap("pyproject.toml", 'python = "^3.9"', 'python = "^3.6"'),
        {"V5 pyproject.toml"}
        | {f"V4 package[{one}]" for one in ("flask 2.2.2", "werkzeug 2.2.2", "requests 2.28.1", "jinja2 3.1.2")},
    ),
    "a manifest that changed": (
        "poetry-groups",
        swap("pyproject.toml", 'requests = "2.28.1"', 'requests = "2.31.0"'),
        {"V5 pyproject.toml", "V4 package[requests 2.28.1]"},
    ),
    "a file of another version": (
        "poetry-groups",
        swap("poetry.lock", 'file = "idna-3.3-', 'file = "idna-3.4-'),
        {"V6 package[idna 3.3]"},
    ),
    "a wrong hash": (
        "poetry-groups",
        swap("poetry.lock", "9d643ff0a55b762d5cdb124b8eaa99c66322e2157b69160bc32796e824360e6d", ZERO),
        {"V6 package[idna 3.3]"},
    ),
    "a range that the release does not have": (
        "poetry-groups",
        swap("poetry.lock", 'Jinja2 = ">=3.0"', 'Jinja2 = ">=2.0"'),
        {"V7 package[flask 2.2.2]"},
    ),
    "a need that is not listed": (
        "poetry-groups",
        swap("poetry.lock", 'itsdangerous = ">=2.0"\n', ""),
        {"V7 package[flask 2.2.2]", "V7 package[itsdangerous 2.2.0]"},
    ),
    "a need that the release does not have": (
        "poetry-groups",
        swap("poetry.lock", 'itsdangerous = ">=2.0"\n', 'itsdangerous = ">=2.0"\npytz = "*"\n'),
        {"V7 package[flask 2.2.2]"},
    ),
    "a group that does not lead there": (
        "poetry-groups",
        in_block("poetry.lock", 'name = "pluggy"', 'groups = ["dev"]', 'groups = ["main"]'),
        {"V7 package[pluggy 1.6.0]"},
    ),
    "another range of pythons": (
        "poetry-groups",
        in_block("poetry.lock", 'name = "idna"', 'python-versions = ">=3.5"', 'python-versions = ">=3.6"'),
        {"V7 package[idna 3.3]"},
    ),
    "a copy that nobody asks for": (
        "poetry-groups",
        in_block("poetry.lock", 'name = "importlib-metadata"', 'zipp = ">=3.20"\n', ""),
        {"V7 package[zipp 3.23.1]"},
    ),
    "a mirror that is old": (
        "uv-project",
        swap("pyproject.toml", '"jinja2>=3.0"', '"jinja2>=3.1"'),
        {"V5 pyproject.toml project.dependencies[0]", "V5 pyproject.toml jinja2"},
    ),
    "a constraint that is not mirrored": (
        "uv-project",
        swap("pyproject.toml", "package = false", 'package = false\nconstraint-dependencies = ["idna>=3"]'),
        {"V5 uv.lock manifest.constraints"},
    ),
    "an override that is not mirrored": (
        "uv-project",
        swap("pyproject.toml", "package = false", 'package = false\noverride-dependencies = ["idna>=3"]'),
        {"V5 uv.lock manifest.overrides"},
    ),
    "a pin of the manifest that the lock does not keep": (
        "uv-project",
        swap("uv.lock", 'name = "pyyaml"\nversion = "6.0.1"', 'name = "pyyaml"\nversion = "6.0.2"'),
        {"V4 package[pyyaml 6.0.2]", "V6 package[pyyaml 6.0.2]"},
    ),
    "a version that moved alone": (
        "uv-project",
        swap("uv.lock", 'name = "idna"\nversion = "3.4"', 'name = "idna"\nversion = "3.7"'),
        {"V6 package[idna 3.7]"},
    ),
    "a file on a host of its own": (
        "uv-project",
        swap(
            "uv.lock",
            "https://files.registry.example/packages/fc/34/3030de6f1370931b9dbb4dad48f6ab1015ab1d32447850b9fc94e60097be/idna-3.4-py3-none-any.whl",
            "https://files.other.example/idna-3.4-py3-none-any.whl",
        ),
        {"V6 package[idna 3.4]"},
    ),
    "another size": (
        "uv-project",
        swap("uv.lock", "size = 61538", "size = 61539"),
        {"V6 package[idna 3.4]"},
    ),
    "a pure wheel that is not listed": (
        "uv-project",
        without_block("uv.lock", '    { url = "https://files.registry.example/packages/fc/34/', "]\n"),
        {"V6 package[idna 3.4]"},
    ),
    "an entry that lacks what its release needs": (
        "uv-project",
        swap("uv.lock", '    { name = "idna" },\n', ""),
        {"V7 package[requests 2.31.0]", "V7 package[idna 3.4]"},
    ),
}


@pytest.mark.parametrize(("project", "change", "expected"), BROKEN.values(), ids=BROKEN)
def test_each_broken_rule_is_found_where_it_is_broken(project: str, change: Change, expected: set[str]) -> None:
    files = files_of(project)
    change(files)

    assert places(inspected(files, LOCKS[project])) == expected


def pdm_project() -> dict[str, bytes]:
    manifest = b"""[project]
name = "small"
version = "1"
requires-python = ">=3.9"
dependencies = ["jinja2>=3.0"]

[dependency-groups]
dev = ["idna"]
"""
    blocks = []
    for name, version, groups, needs in (
        ("idna", "3.4", '["dev"]', ()),
        ("jinja2", "3.1.2", '["default"]', ("MarkupSafe>=2.0",)),
        ("markupsafe", "2.1.2", '["default"]', ()),
    ):
        package = corpus_records().get(RecordKey(ecosystem="pip", name=name))
        listing = package.releases[version].files if isinstance(package, PackageRecord) else ()
        files = [f'    {{file = "{one.filename}", hash = "sha256:{one.hashes["sha256"]}"}},' for one in listing]
        files = files or ['    {file = "MarkupSafe-2.1.2.tar.gz", hash = "sha256:abcd"},']
        listed = [f'    "{need}",' for need in needs]
        blocks += [
            "[[package]]",
            f'name = "{name}"',
            f'version = "{version}"',
            f'requires_python = "{">=3.5" if name == "idna" else ">=3.7"}"',
            'summary = ""',
            f"groups = {groups}",
            *(["dependencies = [", *listed, "]"] if listed else []),
            "files = [",
            *files,
            "]",
            "",
        ]
    head = [
        "[metadata]",
        'groups = ["default", "dev"]',
        'strategy = ["inherit_metadata"]',
        'lock_version = "4.5.0"',
        f'content_hash = "{pdm_content_hashes(manifest)[0]}"',
        "",
        "[[metadata.targets]]",
        'requires_python = ">=3.9"',
        "",
    ]
    return {"pyproject.toml": manifest, "pdm.lock": "\n".join([*head, *blocks]).encode()}


def test_a_pdm_lock_is_held_to_its_manifest_and_the_registry() -> None:
    files = pdm_project()

    assert inspected(files, "pdm.lock") == ()
    for change, expected in (
        (swap("pyproject.toml", "jinja2>=3.0", "jinja2>=3.2"), {"V4 package[jinja2 3.1.2]", "V5 pyproject.toml"}),
        (swap("pyproject.toml", 'dev = ["idna"]', "dev = []"), {"V5 pyproject.toml", "V7 package[idna 3.4]"}),
        (
            swap("pyproject.toml", 'dev = ["idna"]', 'dev = ["idna", "tox"]'),
            {"V5 pyproject.toml", "V5 pyproject.toml dependency-groups.dev[1]"},
        ),
        (
            swap("pdm.lock", 'dependencies = [\n    "MarkupSafe>=2.0",\n]\n', ""),
            {"V7 package[jinja2 3.1.2]", "V7 package[markupsafe 2.1.2]"},
        ),
        (swap("pdm.lock", "MarkupSafe>=2.0", "MarkupSafe>=2.1"), {"V7 package[jinja2 3.1.2]"}),
        (swap("pdm.lock", IDNA_HASH, ZERO), {"V6 package[idna 3.4]"}),
        (swap("pdm.lock", 'requires_python = ">=3.5"', 'requires_python = ">=3.6"'), {"V7 package[idna 3.4]"}),
    ):
        broken = dict(files)
        change(broken)
        assert places(inspected(broken, "pdm.lock")) == expected


def test_a_pylock_is_held_to_the_registry() -> None:
    package = corpus_records()[RecordKey(ecosystem="pip", name="idna")]
    assert isinstance(package, PackageRecord)
    (wheel,) = (one for one in package.releases["3.7"].files if one.filename.endswith(".whl"))
    lock = f"""lock-version = "1.0"
created-by = "made-up"
requires-python = ">=3.9"

[[packages]]
name = "idna"
version = "3.7"

[[packages.wheels]]
url = "https://files.registry.example/x/{wheel.filename}"
size = {wheel.size}
hashes = {{ sha256 = "{wheel.hashes["sha256"]}" }}
"""
    files = {"pylock.toml": lock.encode()}

    assert inspected(files, "pylock.toml") == ()
    for change in (
        swap("pylock.toml", wheel.hashes["sha256"], ZERO),
        swap("pylock.toml", f"size = {wheel.size}", "size = 1"),
        swap("pylock.toml", 'version = "3.7"', 'version = "3.8"'),
    ):
        broken = dict(files)
        change(broken)
        where = "package[idna 3.8]" if b'"3.8"' in broken["pylock.toml"] else "package[idna 3.7]"
        assert places(inspected(broken, "pylock.toml")) == {f"V6 {where}"}


def test_a_version_that_does_not_run_on_the_project_s_pythons_is_found() -> None:
    files = files_of("uv-project")
    swap("uv.lock", 'requires-python = ">=3.9"', 'requires-python = ">=3.6"')(files)

    assert {place for place in places(inspected(files, "uv.lock")) if "urllib3" in place or "idna" in place} == {
        "V4 package[urllib3 2.0.4]"
    }


def test_a_lock_that_cannot_be_read_and_a_lone_manifest_have_no_finding() -> None:
    assert inspected({"uv.lock": b"version = ["}, "uv.lock") == ()
    assert inspected({"setup.cfg": b"[options]\ninstall_requires = idna\n"}, "setup.cfg") == ()


def forked_records() -> dict[RecordKey, Record]:
    found: dict[RecordKey, Record] = {}
    for name, version, asks in (
        ("app", "1.0", "<2"),
        ("app", "2.0", ">=2"),
        ("lib", "1.0", None),
        ("lib", "2.0", None),
    ):
        key = RecordKey(ecosystem="pip", name=name, version=version)
        needs = (ReleaseDependency(name="lib", requirement=asks),) if asks else ()
        found[key] = ReleaseRecord(key=key, release=Release(name=name, version=version, dependencies=needs))
    return found


def test_a_note_is_held_against_the_fork_that_it_is_for() -> None:
    old, new = "python_full_version < '3.10'", "python_full_version >= '3.10'"
    text = f"""# This file was autogenerated by uv via the following command:
#    uv pip compile --universal --python-version 3.9 requirements.in -o requirements.txt
app==1.0 ; {old}
    # via -r requirements.in
app==2.0 ; {new}
    # via -r requirements.in
lib==1.0 ; {old}
    # via app
lib==2.0 ; {new}
    # via app
"""
    files = {"requirements.in": b"app\n", "requirements.txt": text.encode()}
    ecosystem = PythonEcosystem()

    def found(changed: Mapping[str, bytes]) -> set[str]:
        (unit,) = drive_plan(ecosystem.read_units(listing_of(changed), ["requirements.txt"]), changed, forked_records())
        return places(drive_plan(ecosystem.inspect(unit), changed, forked_records()))

    assert found(files) == set()
    crossed = text.replace(f"lib==1.0 ; {old}", f"lib==1.0 ; {new}").replace(f"lib==2.0 ; {new}", f"lib==2.0 ; {old}")
    assert found({**files, "requirements.txt": crossed.encode()}) == {"V4 lib==1.0", "V4 lib==2.0"}
