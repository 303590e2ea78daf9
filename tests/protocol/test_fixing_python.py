"""Python repositories through the MCP door: one dependency at a time, and whatever input there may be."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.python_index import Published, PythonIndex
from fakes.python_projects import MAKERS
from fakes.python_shop import REPO, Shop, alert_payload, python_shop
from fakes.served import call, connected
from fakes.silent_server import silent_server, wait_briefly
from fakes.storefront import git

pytestmark = pytest.mark.anyio

PUBLISHED = [
    *(Published(name="leaf", version=version, requires_python=">=3.8") for version in ("1.0", "1.1", "1.2", "2.0")),
    *(Published(name="lone", version=version) for version in ("1.0", "1.1")),
    Published(name="tree", version="1.0", requires=("leaf>=1.0,<2",)),
    Published(name="tree", version="1.1", requires=("leaf>=1.1,<2",)),
    Published(name="bystander", version="3.0"),
    Published(name="keeper", version="1.0", requires=("leaf<1.1",)),
]
LOCKS = {
    "uv": "uv.lock",
    "poetry": "poetry.lock",
    "poetry-1": "poetry.lock",
    "pdm": "pdm.lock",
    "pipenv": "Pipfile.lock",
    "pip-tools": "requirements.txt",
}
GOOD = {"good/requirements.txt": b"lone==1.0\n"}
GOOD_ALERT = alert_payload(1, "lone", "good/requirements.txt", "< 1.1", "1.1")

Files = dict[str, bytes]


@pytest.fixture
def index() -> Iterator[PythonIndex]:
    with PythonIndex(PUBLISHED) as found:
        yield found


@dataclass(frozen=True, kw_only=True)
class Bad:
    """One input, and what its alert gets."""

    name: str
    files: Callable[[PythonIndex], Files]
    manifest: str
    reason: str
    says: str
    """A part of what stands in the way or of the detail."""
    counted: str = "alertsSkipped"
    package: str = "leaf"
    fault: tuple[int, str, bytes] | None = None
    patched: str = "1.1"


def made(tool: str, change: Callable[[Files], None] = lambda _: None) -> Callable[[PythonIndex], Files]:
    def files(index: PythonIndex) -> Files:
        found = dict(MAKERS[tool](index))
        change(found)
        return found

    return files


def replaced(path: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        assert old in files[path]
        files[path] = files[path].replace(old, new, 1)

    return change


def cut(path: str, where: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[path] = files[path][: files[path].rindex(where)]

    return change


def merged(path: str, line: bytes) -> Callable[[Files], None]:
    return replaced(path, line, b"<<<<<<< HEAD\n" + line + b"=======\n" + line + b">>>>>>> other\n")


def gone(path: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        del files[path]

    return change


def huge(path: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[path] += b"#" * 1024 * 1024 * 50 + b"\n"

    return change


def requirements(text: str) -> Callable[[PythonIndex], Files]:
    return lambda _: {"requirements.txt": text.encode()}


def pinned(index: PythonIndex) -> Files:
    """leaf 1.0 with its hashes, so that nothing can be written without the index."""
    hashes = " ".join(f"--hash=sha256:{digest}" for digest in index.hashes("leaf", "1.0"))
    return {"requirements.txt": f"leaf==1.0 {hashes}\n".encode()}


CASES: list[Bad] = []
# A lock that does not match its manifest.
for _tool, _path, _old, _new in (
    ("uv", "pyproject.toml", b'"tree>=1.0"', b'"tree>=1.0", "lone"'),
    ("poetry", "pyproject.toml", b'tree = ">=1.0"', b'tree = ">=1.0"\nlone = "*"'),
    ("poetry-1", "pyproject.toml", b'tree = ">=1.0"', b'tree = ">=1.1"'),
    ("pdm", "pyproject.toml", b'"tree>=1.0"', b'"tree>=1.0", "lone"'),
    ("pipenv", "Pipfile", b'tree = ">=1.0"', b'tree = ">=1.1"'),
    ("pip-tools", "requirements.in", b"tree>=1.0\n", b"tree>=1.0\nlone\n"),
):
    CASES.append(
        Bad(
            name=f"out-of-step-{_tool}",
            files=made(_tool, replaced(_path, _old, _new)),
            manifest=LOCKS[_tool],
            reason="tool-required",
            says="in sync",
        )
    )
# A lock that is not there, broken or too large.
for _tool, _line in (
    ("uv", b'version = "1.0"\n'),
    ("poetry", b'version = "1.0"\n'),
    ("pdm", b'version = "1.0"\n'),
    ("pipenv", b'            "version": "==1.0"\n'),
    ("pip-tools", b"leaf==1.0 \\\n"),
):
    _lock = LOCKS[_tool]
    _twice = {"pipenv": _line.rstrip() + b",\n" + _line}.get(_tool, _line + _line)
    CASES += [
        Bad(
            name=f"missing-{_tool}",
            files=made(_tool, gone(_lock)),
            manifest=_lock,
            reason="manifest-missing",
            says="not in the tree",
            counted="alertsConverged",
        ),
        Bad(
            name=f"merge-markers-{_tool}",
            files=made(_tool, merged(_lock, _line)),
            manifest=_lock,
            reason="unsupported-lock-format",
            says=_lock,
        ),
        Bad(
            name=f"huge-{_tool}",
            files=made(_tool, huge(_lock)),
            manifest=_lock,
            reason="unreadable",
            says="too-large",
        ),
    ]
    if _tool != "pip-tools":
        CASES += [
            Bad(
                name=f"truncated-{_tool}",
                files=made(_tool, cut(_lock, b"sha256:")),
                manifest=_lock,
                reason="unsupported-lock-format",
                says=_lock,
            ),
            Bad(
                name=f"duplicate-keys-{_tool}",
                files=made(_tool, replaced(_lock, _line, _twice)),
                manifest=_lock,
                reason="unsupported-lock-format",
                says=_lock,
            ),
        ]


CASES += [
    Bad(
        name="merge-markers-manifest",
        files=made("uv", merged("pyproject.toml", b'name = "app"\n')),
        manifest="uv.lock",
        reason="unreadable",
        says="bad/pyproject.toml:2:1",
    ),
    Bad(
        name="truncated-between-entries-uv",
        files=made("uv", cut("uv.lock", b'\n[[package]]\nname = "tree"')),
        manifest="uv.lock",
        reason="tool-required",
        says="asks for tree, which is not locked",
    ),
    Bad(
        name="truncated-between-entries-poetry",
        files=made("poetry", cut("poetry.lock", b'[[package]]\nname = "tree"')),
        manifest="poetry.lock",
        reason="unsupported-lock-format",
        says="metadata",
    ),
    Bad(
        name="truncated-between-entries-pdm",
        files=made("pdm", cut("pdm.lock", b'\n[[package]]\nname = "tree"')),
        manifest="pdm.lock",
        reason="tool-required",
        says="asks for tree, which is not locked",
    ),
    Bad(
        name="truncated-pip-tools",
        files=made("pip-tools", cut("requirements.txt", b"\ntree==")),
        manifest="requirements.txt",
        reason="tool-required",
        says="in sync",
    ),
    Bad(
        name="truncated-hash",
        files=lambda index: {"requirements.txt": pinned(index)["requirements.txt"][:-20]},
        manifest="requirements.txt",
        reason="unsupported-lock-format",
        says="hash",
    ),
    Bad(
        name="git-uv",
        files=made(
            "uv",
            lambda files: files.update(
                {
                    "uv.lock": re.sub(
                        rb'(name = "leaf"\nversion = "1.0"\nsource = )[^\n]*',
                        rb'\1{ git = "https://git.example/leaf?rev=v1.0#0123456789012345678901234567890123456789" }',
                        files["uv.lock"],
                    )
                }
            ),
        ),
        manifest="uv.lock",
        reason="non-registry-source",
        says="git",
    ),
    Bad(
        name="git-poetry",
        files=made("poetry", lambda files: files.update({"poetry.lock": _from_git(files["poetry.lock"])})),
        manifest="poetry.lock",
        reason="non-registry-source",
        says="git",
    ),
    *(
        Bad(
            name=f"source-{name}",
            files=requirements(text),
            manifest="requirements.txt",
            reason="non-registry-source",
            says=says,
        )
        for name, text, says in (
            ("git", "leaf @ git+https://git.example/leaf@v1.0\n", "git"),
            ("url", "leaf @ https://files.registry.example/leaf-1.0.tar.gz\n", "url"),
            ("file", "./wheels/leaf-1.0-py3-none-any.whl\n", "file"),
            ("editable-git", "-e git+https://git.example/leaf@v1.0#egg=leaf\n", "git"),
        )
    ),
    *(
        Bad(
            name=f"index-{name}",
            files=pinned,
            manifest="requirements.txt",
            reason="metadata-unavailable",
            says=says,
            fault=fault,
        )
        for name, fault, says in (
            ("401", (401, "text/plain", b""), "401"),
            ("403", (403, "text/plain", b""), "403"),
            ("404", (404, "text/plain", b""), "the index says nothing of leaf 1.1"),
            ("500", (500, "text/plain", b""), "500"),
            ("html", (200, "text/html", b"<html><body>Please log in</body></html>"), "not a project page"),
            ("broken-json", (200, "application/vnd.pypi.simple.v1+json", b'{"files": ['), "Expecting value"),
        )
    ),
    Bad(
        name="version-missing",
        files=pinned,
        manifest="requirements.txt",
        reason="metadata-unavailable",
        says="the index says nothing of leaf 1.1",
        fault=(
            200,
            "application/vnd.pypi.simple.v1+json",
            b'{"meta": {"api-version": "1.1"}, "name": "leaf", "files": [{"filename": "leaf-1.0-py3-none-any.whl", "url": "leaf-1.0-py3-none-any.whl", "hashes": {"sha256": "00"}}]}',
        ),
    ),
]


def _from_git(lock: bytes) -> bytes:
    head, _, tail = lock.partition(b'name = "leaf"')
    return (
        head
        + b'name = "leaf"'
        + re.sub(
            rb'type = "legacy"\nurl = "[^"]*"\nreference = "made-up"',
            b'type = "git"\nurl = "https://git.example/leaf"\nreference = "v1.0"\nresolved_reference = "0123456"',
            tail,
            count=1,
        )
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_bad_input_gets_a_precise_answer_and_the_rest_goes_on(
    case: Bad, index: PythonIndex, tmp_path: Path
) -> None:
    files = {f"bad/{path}": content for path, content in case.files(index).items()}
    if case.fault is not None:
        index.faults[case.package] = case.fault
    alerts = [GOOD_ALERT, alert_payload(2, case.package, f"bad/{case.manifest}", "< 1.1", case.patched)]
    with python_shop(tmp_path, {**files, **GOOD}, alerts, index) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all")

        assert answer["ok"], answer
        assert shop.changed() == ["good/requirements.txt"]
    outcome = next(one for one in answer["plan"]["outcomes"] if one["alert"] == 2)
    errors = [one for one in answer.get("errors", ()) if "leaf" in one.get("target", "")]
    said = " ".join([outcome.get("blockedBy", ""), outcome.get("detail", ""), *(one["message"] for one in errors)])
    reason = outcome.get("reason") or next((one["category"] for one in errors if "category" in one), "")
    print(f"{case.name:28} {outcome['outcome']}({reason}) {said.strip()[:400]}")
    assert (reason, answer["summary"]["alertsFixed"], answer["summary"][case.counted]) == (
        case.reason,
        1,
        1,
    )
    assert case.says in said


async def test_an_index_that_is_down_leaves_what_needs_it_alone(index: PythonIndex, tmp_path: Path) -> None:
    files = {f"bad/{path}": content for path, content in pinned(index).items()}
    alerts = [alert_payload(2, "leaf", "bad/requirements.txt", "< 1.1", "1.1")]
    nowhere = {"pip": "http://127.0.0.1:9/simple"}
    with python_shop(tmp_path, files, alerts, index, registries=nowhere) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all")

        assert shop.changed() == []
    assert answer["summary"]["alertsSkipped"] == 1
    assert "the connection is refused" in answer["errors"][0]["message"]


async def test_an_index_that_never_answers_is_given_up_and_the_files_stay(
    index: PythonIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"bad/{path}": content for path, content in pinned(index).items()}
    alerts = [alert_payload(2, "leaf", "bad/requirements.txt", "< 1.1", "1.1")]
    wait_briefly(monkeypatch)
    with (
        silent_server() as address,
        python_shop(tmp_path, files, alerts, index, registries={"pip": f"{address}/simple"}) as shop,
    ):
        async with connected(shop.settings) as client:
            answer = await call(client, "run_scan", repo=REPO, mode="fix", severity="all")

        assert shop.changed() == []
    assert answer["summary"]["alertsSkipped"] == 1
    assert "no answer in time" in answer["errors"][0]["message"]


# --- one dependency -------------------------------------------------------------------


def locked(shop: Shop, path: str) -> list[str]:
    """Changed lines of a file, without what is only a hash."""
    diff = git(shop.top, "diff", "--no-color", "--no-ext-diff", "-U0", "--", path)
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [line for line in lines if "sha256" not in line]


DIRECT = {
    "uv": ['-version = "1.0"', '+version = "1.1"'],
    "poetry": ['-version = "1.0"', '+version = "1.1"'],
    "pdm": ['-version = "1.0"', '+version = "1.1"'],
    "pipenv": ['-            "version": "==1.0"', '+            "version": "==1.1"'],
    "pip-tools": ["-leaf==1.0 \\", "+leaf==1.1 \\"],
}


@pytest.mark.parametrize("tool", DIRECT)
async def test_a_transitive_python_package_goes_to_the_given_version(
    tool: str, index: PythonIndex, tmp_path: Path
) -> None:
    lock = LOCKS[tool]
    alerts = [alert_payload(2, "leaf", lock, "< 1.1", "1.1"), alert_payload(3, "tree", lock, "< 0.9", "0.9")]
    with python_shop(tmp_path, made(tool)(index), alerts, index) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "fix_dependency", repo=REPO, packageName="Leaf", targetVersion="1.1")

        assert answer["success"], answer
        assert (answer["fromVersion"], answer["toVersion"], answer["strategy"]) == ("1.0", "1.1", "lock-in-range")
        assert (answer["resolvedAlerts"], answer["verification"], answer["manifestPath"]) == ([2], "passed", lock)
        assert shop.changed() == [lock]
        assert locked(shop, lock) == DIRECT[tool]


async def test_a_declared_python_package_goes_to_the_given_version_with_its_declaration(
    index: PythonIndex, tmp_path: Path
) -> None:
    files = {"requirements.txt": b"leaf[x] == 1.0  # pinned\nlone>=1.0\n"}
    with python_shop(tmp_path, files, [], index) as shop:
        async with connected(shop.settings) as client:
            major = await call(client, "fix_dependency", repo=REPO, packageName="leaf", targetVersion="2.0")
            floor = await call(
                client, "fix_dependency", repo=REPO, packageName="lone", targetVersion="1.1", allowDirty=True
            )

        assert (major["success"], major["isMajor"], major["strategy"]) == (True, True, "manifest-bump"), major
        assert (major["fromVersion"], major["toVersion"]) == ("== 1.0", "== 2.0")
        assert (floor["success"], floor["fromVersion"], floor["toVersion"]) == (True, ">=1.0", ">=1.1"), floor
        assert (shop.top / "requirements.txt").read_bytes() == b"leaf[x] == 2.0  # pinned\nlone>=1.1\n"


@pytest.mark.parametrize(
    ("package", "target", "reason"),
    [
        ("leaf", "1.0", "already-at-target"),
        ("leaf", "0.9", "downgrade"),
        ("leaf", "1.0.5", "version-not-found"),
        ("leaf", "1.1", "still-vulnerable"),
        ("leaf", "2.0", "major-required"),
        ("held", "1.1", "non-registry-source"),
    ],
)
async def test_a_refused_python_target_has_its_reason_and_writes_nothing(
    package: str, target: str, reason: str, index: PythonIndex, tmp_path: Path
) -> None:
    files = {"requirements.txt": b"leaf==1.0\ntree==1.0\nheld @ git+https://git.example/held@v1.0\n"}
    alerts = [alert_payload(2, "leaf", "requirements.txt", "< 1.2", "1.2")]
    with python_shop(tmp_path, files, alerts, index) as shop:
        async with connected(shop.settings) as client:
            answer = await call(client, "fix_dependency", repo=REPO, packageName=package, targetVersion=target)

        assert (answer["ok"], answer["success"], answer["reason"]) == (True, False, reason), answer
        assert shop.changed() == []


async def test_a_name_in_several_python_files_lists_the_candidates(index: PythonIndex, tmp_path: Path) -> None:
    files = {"a/requirements.txt": b"leaf==1.0\n", "b/setup.cfg": b"[options]\ninstall_requires = leaf>=1.0\n"}
    with python_shop(tmp_path, files, [], index) as shop:
        async with connected(shop.settings) as client:
            several = await call(client, "fix_dependency", repo=REPO, packageName="leaf", targetVersion="1.1")
            one = await call(
                client,
                "fix_dependency",
                repo=REPO,
                packageName="leaf",
                targetVersion="1.1",
                manifestPath="b/setup.cfg",
                ecosystem="pip",
            )

        assert several["details"]["candidates"] == [
            {"manifestPath": "a/requirements.txt", "ecosystem": "pip"},
            {"manifestPath": "b/setup.cfg", "ecosystem": "pip"},
        ]
        assert one["success"], one
        assert shop.changed() == ["b/setup.cfg"]
