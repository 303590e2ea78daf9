"""What changes of a Python lock come to, on small invented registries."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from packaging.version import Version

from dependfix_core.ecosystems.base import (
    AddOverride,
    Blocked,
    Candidates,
    Change,
    Graph,
    Legal,
    NoCandidate,
    NoOverride,
    SetConstraint,
    SetOverride,
    SetVersion,
    Verdict,
)
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.metadata.pip import read_requires_dist
from dependfix_core.model.lock import LockUnit
from dependfix_core.model.plan import Edit
from dependfix_core.model.policy import ScanPolicy
from dependfix_core.model.records import PackageRecord, Record, RecordKey, Release, ReleaseFile, ReleaseRecord
from dependfix_core.model.steps import Step, records_for
from fakes.step_driver import drive, listing_of

PIP = PythonEcosystem()


@dataclass
class Registry:
    """An invented index: what is published, and nothing else."""

    releases: dict[str, dict[str, Release]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def add(
        self,
        name: str,
        version: str,
        *requires: str,
        python: str = "",
        wheels: Sequence[str] = ("py3-none-any",),
        yanked: bool = False,
    ) -> "Registry":
        names = [f"{name}-{version}-{tag}.whl" for tag in wheels] + [f"{name}-{version}.tar.gz"]
        self.releases.setdefault(name, {})[version] = Release(
            name=name,
            version=version,
            dependencies=read_requires_dist(requires),
            yanked=yanked,
            files=tuple(ReleaseFile(filename=file, url="", hashes={"sha256": "00"}, yanked=yanked) for file in names),
            requires_runtime={"python": python} if python else {},
        )
        return self

    @property
    def records(self) -> dict[RecordKey, Record]:
        found: dict[RecordKey, Record] = {}
        for name, releases in self.releases.items():
            if name in self.silent:
                continue
            key = RecordKey(ecosystem="pip", name=name)
            found[key] = PackageRecord(key=key, releases=releases)
            for version, release in releases.items():
                one = RecordKey(ecosystem="pip", name=name, version=version)
                found[one] = ReleaseRecord(key=one, release=release)
        return found


@dataclass
class Least:
    """Every listed version is safe but the named ones."""

    unsafe: Iterable[str] = ()
    policy: ScanPolicy = field(default_factory=ScanPolicy)

    def is_safe(self, package: str, version: str) -> bool:
        return f"{package} {version}" not in self.unsafe

    def is_no_worse(self, package: str, version: str, than: str) -> bool:
        return self.is_safe(package, version) or not self.is_safe(package, than)

    def crosses_line(self, left: str, right: str) -> bool:
        return Version(left).major != Version(right).major

    def least(
        self, package: str, current: str, admits: Callable[[str], bool], named: Sequence[str] = ()
    ) -> Step[str | NoCandidate]:
        versions = yield from self._listed(package)
        fitting = [v for v in versions if Version(v) > Version(current) and admits(v) and self.is_safe(package, v)]
        return fitting[0] if fitting else NoCandidate(reason="constraint-conflict")

    def newest(
        self, package: str, admits: Callable[[str], bool], named: Sequence[str] = (), replaces: str = ""
    ) -> Step[str | NoCandidate]:
        versions = yield from self._listed(package)
        fitting = [v for v in versions if admits(v) and self.is_safe(package, v)]
        return fitting[-1] if fitting else NoCandidate(reason="metadata-unavailable" if not versions else "no-patch")

    def _listed(self, package: str) -> Step[list[str]]:
        key = RecordKey(ecosystem="pip", name=package)
        record = (yield from records_for([key]))[key]
        return sorted(record.releases, key=Version) if isinstance(record, PackageRecord) else []


def unit_of(files: dict[str, str]) -> LockUnit:
    content = {path: text.encode() for path, text in files.items()}
    (unit,) = drive(PIP.read_units(listing_of(content), tuple(content)), content)
    return unit


def graph_of(files: dict[str, str]) -> Graph:
    return PIP.graph(unit_of(files))


def try_out(graph: Graph, registry: Registry, *changes: Change, candidates: Candidates | None = None) -> Verdict:
    return drive(graph.simulate(changes, candidates or Least()), records=registry.records)


def legal(verdict: Verdict) -> Legal:
    assert isinstance(verdict, Legal), verdict
    return verdict


def blocked(verdict: Verdict) -> Blocked:
    assert isinstance(verdict, Blocked), verdict
    return verdict


def moves(verdict: Verdict) -> dict[str, tuple[str | None, str | None]]:
    return {one.where: (one.from_version, one.to_version) for one in legal(verdict).moved}


def poetry(packages: str, dependencies: str, python: str = "^3.9") -> dict[str, str]:
    """A poetry project; each package is `name version; need = "range"; …`."""
    entries = []
    for line in packages.strip().splitlines():
        head, *needs = [part.strip() for part in line.split(";;")]
        name, version = head.split()
        entries.append(
            f'[[package]]\nname = "{name}"\nversion = "{version}"\noptional = false\npython-versions = "*"\n'
            'groups = ["main"]\nfiles = []\n'
            + ("\n[package.dependencies]\n" + "\n".join(needs) + "\n" if needs else "")
        )
    lock = "\n".join(entries) + '\n[metadata]\nlock-version = "2.1"\npython-versions = "*"\ncontent-hash = ""\n'
    manifest = f'[tool.poetry]\nname = "shop"\n[tool.poetry.dependencies]\npython = "{python}"\n{dependencies}\n'
    return {"poetry.lock": lock, "pyproject.toml": manifest}


WEB = poetry(
    """
    web 1.0 ;; parser = ">=1,<2" ;; codec = "*"
    parser 1.0
    codec 2.0
    """,
    'web = "^1.0"',
)
WEB_INDEX = (
    Registry()
    .add("web", "1.0", "parser>=1,<2", "codec")
    .add("web", "1.1", "parser>=1.5,<2", "codec")
    .add("web", "1.2", "parser>=2", "codec")
    .add("web", "1.3", "parser>=1,<2")
    .add("web", "1.4", "parser>=1,<2", "codec", "fresh>=1")
    .add("web", "2.0", "parser>=1,<2", "codec")
    .add("parser", "1.0")
    .add("parser", "1.4")
    .add("parser", "1.5", yanked=True)
    .add("parser", "1.6")
    .add("parser", "2.0")
    .add("codec", "2.0")
    .add("fresh", "1.0", "fresher")
    .add("fresh", "1.1", "fresher")
    .add("fresher", "3.0")
)


def test_a_copy_moves_alone_where_everybody_admits_it() -> None:
    verdict = try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[parser 1.0]", version="1.4"))

    assert moves(verdict) == {"package[parser 1.0]": ("1.0", "1.4")}
    assert (legal(verdict).needs_tool, legal(verdict).edits, legal(verdict).warnings) == (False, (), ())


def test_a_dependent_that_refuses_is_named() -> None:
    verdict = blocked(try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[parser 1.0]", version="2.0")))

    assert (verdict.reason, verdict.where, str(verdict)) == (
        "constraint-conflict",
        "package[parser 1.0]",
        "web 1.0 asks `>=1,<2`",
    )
    declared = blocked(try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[web 1.0]", version="2.0")))
    assert str(declared) == "pyproject.toml tool.poetry.dependencies.web asks `^1.0`"


def test_what_the_new_version_needs_newer_moves_along_and_never_to_a_withdrawn_version() -> None:
    verdict = try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.1"))

    assert moves(verdict) == {"package[web 1.0]": ("1.0", "1.1"), "package[parser 1.0]": ("1.0", "1.6")}


def test_a_coupled_move_that_a_third_one_refuses_blocks() -> None:
    files = poetry(
        """
        web 1.0 ;; parser = ">=1,<2"
        other 1.0 ;; parser = "<1.5"
        parser 1.0
        """,
        'web = "*"\nother = "*"',
    )

    verdict = blocked(try_out(graph_of(files), WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.1")))

    assert (verdict.reason, verdict.where, str(verdict)) == (
        "constraint-conflict",
        "package[parser 1.0]",
        "web 1.1 asks `<2,>=1.5`",
    )


def test_a_copy_that_was_put_somewhere_is_not_moved_elsewhere() -> None:
    verdict = blocked(
        try_out(
            graph_of(WEB),
            WEB_INDEX,
            SetVersion(where="package[web 1.0]", version="1.1"),
            SetVersion(where="package[parser 1.0]", version="1.4"),
        )
    )

    assert (verdict.where, verdict.reason) == ("package[parser 1.0]", "constraint-conflict")


def test_what_nobody_needs_any_more_goes() -> None:
    verdict = try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.3"))

    assert moves(verdict) == {"package[web 1.0]": ("1.0", "1.3"), "package[codec 2.0]": ("2.0", None)}
    assert legal(verdict).graph.instance("package[codec 2.0]") is None


def test_a_new_package_comes_in_with_what_it_needs_and_the_tool_has_to_write() -> None:
    verdict = try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.4"))

    assert moves(verdict) == {
        "package[web 1.0]": ("1.0", "1.4"),
        "package[fresh 1.1]": (None, "1.1"),
        "package[fresher 3.0]": (None, "3.0"),
    }
    assert legal(verdict).needs_tool


def test_too_many_new_packages_are_the_tool_s_business() -> None:
    few = Least(policy=ScanPolicy(max_new_nodes=1))

    verdict = blocked(
        try_out(graph_of(WEB), WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.4"), candidates=few)
    )

    assert verdict.reason == "tool-required"


def test_simulating_leaves_the_graph_as_it_was() -> None:
    graph = graph_of(WEB)
    before = {where: graph.instance(where) for where in graph.unit.instances}

    verdict = legal(try_out(graph, WEB_INDEX, SetVersion(where="package[web 1.0]", version="1.3")))

    assert {where: graph.instance(where) for where in graph.unit.instances} == before
    again = legal(try_out(verdict.graph, WEB_INDEX, SetVersion(where="package[parser 1.0]", version="1.4")))
    assert [i.version for i in again.graph.instances("parser")] == ["1.4"]
    assert [i.version for i in again.graph.instances("web")] == ["1.3"]


@pytest.mark.parametrize(
    ("declared", "old", "new", "reason"),
    [
        ("^3.9", ">=3.8", ">=3.9", None),
        ("^3.9", ">=3.8", ">=3.10", "runtime-floor"),
        (">=3.7.2", ">=3.7", ">=3.7.3", "runtime-floor"),
        (">=3.9", ">=3.8", ">=3.8,!=3.9.7", "runtime-floor"),
        (">=3.9", ">=3.8,<4", ">=3.9,<4", None),
        (">=3.9,<3.12", ">=3.8", ">=3.8,<3.12", None),
        (">=3.9", ">=3.8", ">=3.8,<3.13", "runtime-floor"),
        (">=3.9", ">=3.10", ">=3.10", None),
        (">=3.9", "", "not a range", None),
        (">=2.7,!=3.0.*,!=3.1.*", ">=2.7", ">=2.7,!=3.0.*,!=3.1.*", None),
        (">=2.7,!=3.0.*", ">=2.7", ">=2.7,!=3.0.*,!=3.1.*", "runtime-floor"),
    ],
)
def test_the_new_version_runs_on_every_python_of_the_project(
    declared: str, old: str, new: str, reason: str | None
) -> None:
    files = poetry("a 1.0", 'a = "*"', python=declared)
    registry = Registry().add("a", "1.0", python=old).add("a", "1.1", python=new)

    verdict = try_out(graph_of(files), registry, SetVersion(where="package[a 1.0]", version="1.1"))

    assert (verdict.reason if isinstance(verdict, Blocked) else None) == reason


def test_without_a_declared_python_a_higher_floor_is_a_warning() -> None:
    files = {"requirements.txt": "a==1.0\n"}
    registry = Registry().add("a", "1.0", python=">=3.7").add("a", "1.1", python=">=3.9")

    verdict = try_out(graph_of(files), registry, SetVersion(where="a==1.0", version="1.1"), _raise(files, "==1.1"))

    assert legal(verdict).warnings == ("a 1.1 needs python >=3.9; the project declares no range",)


def _raise(files: dict[str, str], requirement: str) -> SetConstraint:
    return SetConstraint(constraint=unit_of(files).constraints[0], requirement=requirement)


PIPENV = {
    "Pipfile": '[packages]\nyaml = "==1.0"\n[dev-packages]\ntest = "*"\n[requires]\npython_version = "3.11"\n',
    "Pipfile.lock": """{"_meta": {"pipfile-spec": 6},
        "default": {"yaml": {"version": "==1.0"}, "speed": {"version": "==1.0"}},
        "develop": {"test": {"version": "==1.0"}, "yaml": {"version": "==1.0"}}}""",
}


@pytest.mark.parametrize(
    ("before", "after", "reason", "warns"),
    [
        (["cp311-cp311-manylinux_2_17_x86_64"], ["cp311-cp311-macosx_11_0_arm64"], None, False),
        (["py3-none-any"], ["cp36-abi3-manylinux_2_17_x86_64"], None, False),
        (["py2.py3-none-any"], [], "no-wheel-for-runtime", False),
        (["cp311-cp311-win_amd64"], ["cp310-cp310-win_amd64"], "no-wheel-for-runtime", False),
        (["cp310-cp310-win_amd64"], ["cp310-cp310-win_amd64"], None, True),
        ([], [], None, True),
    ],
)
def test_a_release_without_wheels_for_the_project_s_python(
    before: list[str], after: list[str], reason: str | None, warns: bool
) -> None:
    registry = (
        Registry()
        .add("yaml", "1.0", wheels=before)
        .add("yaml", "1.1", wheels=after)
        .add("test", "1.0")
        .add("speed", "1.0")
    )

    verdict = try_out(
        graph_of(PIPENV), registry, _raise(PIPENV, "==1.1"), SetVersion(where="default.yaml", version="1.1")
    )

    if reason is not None:
        assert blocked(verdict).reason == reason
    else:
        assert any(text.startswith("no-wheel-for-runtime") for text in legal(verdict).warnings) is warns


def test_both_sections_of_a_pipfile_s_lock_move_together() -> None:
    registry = Registry().add("yaml", "1.0").add("yaml", "1.1").add("test", "1.0", "yaml>=1").add("speed", "1.0")

    verdict = try_out(
        graph_of(PIPENV), registry, _raise(PIPENV, "==1.1"), SetVersion(where="develop.yaml", version="1.1")
    )

    assert moves(verdict) == {"default.yaml": ("1.0", "1.1"), "develop.yaml": ("1.0", "1.1")}
    assert legal(verdict).edits == (
        Edit(path="Pipfile", at="packages.yaml", from_text="==1.0", to_text="==1.1", kind="constraint"),
    )


def test_without_edges_in_the_lock_the_records_of_all_say_who_asks() -> None:
    registry = Registry().add("yaml", "1.0").add("yaml", "1.1").add("test", "1.0", "yaml<1.1").add("speed", "1.0")

    verdict = try_out(
        graph_of(PIPENV), registry, _raise(PIPENV, "==1.1"), SetVersion(where="default.yaml", version="1.1")
    )

    assert str(blocked(verdict)) == "test 1.0 asks `<1.1`"


def test_without_edges_a_lone_copy_goes_only_when_every_record_is_known() -> None:
    registry = Registry().add("yaml", "1.0", "speed").add("yaml", "1.1").add("test", "1.0").add("speed", "1.0")
    change: list[Change] = [_raise(PIPENV, "==1.1"), SetVersion(where="default.yaml", version="1.1")]

    known = try_out(graph_of(PIPENV), registry, *change)
    registry.silent.add("test")
    unknown = try_out(graph_of(PIPENV), registry, *change)

    assert "default.speed" in moves(known)
    assert "default.speed" not in moves(unknown)
    assert "default.speed may not be needed any more" in legal(unknown).warnings


UV = {
    "uv.lock": """version = 1
requires-python = ">=3.9"

[[package]]
name = "app"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "net", version = "1.0", source = { registry = "https://r.example/simple" }, marker = "sys_platform == 'win32'" },
    { name = "net", version = "2.0", source = { registry = "https://r.example/simple" }, marker = "sys_platform != 'win32'" },
    { name = "web", extra = ["fast"] },
    { name = "vendored" },
]

[[package]]
name = "net"
version = "1.0"
source = { registry = "https://r.example/simple" }
resolution-markers = ["sys_platform == 'win32'"]

[[package]]
name = "net"
version = "2.0"
source = { registry = "https://r.example/simple" }
resolution-markers = ["sys_platform != 'win32'"]

[[package]]
name = "web"
version = "1.0"
source = { registry = "https://r.example/simple" }
dependencies = [
    { name = "net", version = "1.0", source = { registry = "https://r.example/simple" }, marker = "sys_platform == 'win32'" },
    { name = "net", version = "2.0", source = { registry = "https://r.example/simple" }, marker = "sys_platform != 'win32'" },
]

[package.optional-dependencies]
fast = [{ name = "speed" }]

[[package]]
name = "speed"
version = "1.0"
source = { registry = "https://r.example/simple" }

[[package]]
name = "vendored"
version = "1.0"
source = { git = "https://git.example/x/vendored?rev=main#00" }
""",
    "pyproject.toml": """[project]
name = "app"
dependencies = ["net<2; sys_platform == 'win32'", "net>=2; sys_platform != 'win32'", "web[fast]", "vendored"]
""",
}
UV_INDEX = (
    Registry()
    .add("net", "1.0")
    .add("net", "1.1")
    .add("net", "2.0")
    .add("net", "2.1")
    .add("web", "1.0", "net", "speed; extra == 'fast'", "old; python_version < '3.8'")
    .add("web", "1.1", "net>=1.1", "speed>=2; extra == 'fast'", "slow>=9; extra == 'slow'")
    .add("web", "1.2", "net", "speed; extra == 'fast' and python_version < '3.10'")
    .add("web", "1.3", "net", "speed; extra == 'fast'", "legacy; python_version < '3.9'")
    .add("speed", "1.0")
    .add("speed", "2.0")
    .add("speed", "2.1")
)


def test_forks_of_one_package_move_on_their_own() -> None:
    graph = graph_of(UV)

    windows = try_out(graph, UV_INDEX, SetVersion(where="package[net 1.0]", version="1.1"))
    across = try_out(graph, UV_INDEX, SetVersion(where="package[net 1.0]", version="2.1"))

    assert moves(windows) == {"package[net 1.0]": ("1.0", "1.1")}
    assert str(blocked(across)) == "pyproject.toml project.dependencies[0] asks `<2`"
    both = legal(
        try_out(
            graph,
            UV_INDEX,
            SetVersion(where="package[net 1.0]", version="1.1"),
            SetVersion(where="package[net 2.0]", version="2.1"),
        )
    )
    assert [(i.where, i.version) for i in both.graph.instances("net")] == [
        ("package[net 1.0]", "1.1"),
        ("package[net 2.0]", "2.1"),
    ]


def test_extras_that_are_asked_for_count_and_others_do_not() -> None:
    verdict = try_out(graph_of(UV), UV_INDEX, SetVersion(where="package[web 1.0]", version="1.1"))

    assert moves(verdict) == {
        "package[web 1.0]": ("1.0", "1.1"),
        "package[speed 1.0]": ("1.0", "2.0"),
        "package[net 1.0]": ("1.0", "1.1"),
    }


def test_a_marker_that_no_python_of_the_project_meets_counts_nowhere() -> None:
    verdict = try_out(graph_of(UV), UV_INDEX, SetVersion(where="package[web 1.0]", version="1.3"))

    assert moves(verdict) == {"package[web 1.0]": ("1.0", "1.3")}
    assert not legal(verdict).needs_tool


def test_an_edge_with_another_condition_is_the_tool_s_to_write() -> None:
    verdict = try_out(graph_of(UV), UV_INDEX, SetVersion(where="package[web 1.0]", version="1.2"))

    assert legal(verdict).needs_tool


def test_a_copy_from_a_repository_is_not_moved() -> None:
    verdict = blocked(try_out(graph_of(UV), UV_INDEX, SetVersion(where="package[vendored 1.0]", version="2.0")))

    assert (verdict.reason, verdict.where) == ("non-registry-source", "package[vendored 1.0]")


def test_what_nothing_is_known_of_is_the_tool_s_to_complete() -> None:
    verdict = legal(try_out(graph_of(UV), Registry(), SetVersion(where="package[net 1.0]", version="1.1")))

    assert verdict.needs_tool
    assert verdict.warnings == (
        "the index says nothing of net 1.1",
        "what net 1.1 needs is not known",
        "whether web 1.0 admits net 1.1 is not known",
    )


def test_uv_takes_no_bound_from_above_at_its_word() -> None:
    registry = Registry().add("speed", "1.0", python=">=3.8").add("speed", "1.1", python=">=3.8,<4").add("web", "1.0")

    verdict = try_out(graph_of(UV), registry, SetVersion(where="package[speed 1.0]", version="1.1"))

    assert moves(verdict) == {"package[speed 1.0]": ("1.0", "1.1")}


def test_an_override_of_one_fork_is_narrowed_to_its_marker_and_line() -> None:
    graph = graph_of(UV)

    ways = drive(graph.overrides("package[net 1.0]", "1.1"))

    assert not isinstance(ways, NoOverride)
    verdict = try_out(graph, UV_INDEX, *ways[0], SetVersion(where="package[net 1.0]", version="1.1"))
    assert legal(verdict).edits == (
        Edit(
            path="pyproject.toml",
            at="tool.uv.override-dependencies",
            from_text=None,
            to_text="net>=1.1,<2 ; sys_platform == 'win32'",
            kind="override",
        ),
    )
    dependents = drive(legal(verdict).graph.dependents("package[net 1.0]"), records=UV_INDEX.records)
    assert {one.text for one in dependents} == {">=1.1,<2"}
    other = drive(legal(verdict).graph.dependents("package[net 2.0]"), records=UV_INDEX.records)
    assert [one.override for one in other] == [None, None]


@pytest.mark.parametrize("files", [WEB, PIPENV, {"requirements.txt": "a==1\n"}])
def test_tools_without_overrides_have_none(files: dict[str, str]) -> None:
    graph = graph_of(files)
    where = next(iter(graph.unit.instances))

    way = drive(graph.overrides(where, "9"))

    assert isinstance(way, NoOverride)
    assert way.reason == "override-unsupported"


def test_an_override_that_holds_a_version_is_what_everybody_asks_and_can_be_raised() -> None:
    files = {
        "uv.lock": UV["uv.lock"],
        "pyproject.toml": UV["pyproject.toml"] + '[tool.uv]\noverride-dependencies = ["speed==1.0"]\n',
    }
    graph = graph_of(files)
    override = graph.unit.overrides[0]

    held = blocked(try_out(graph, UV_INDEX, SetVersion(where="package[speed 1.0]", version="2.0")))
    value = graph.override_value(override, "2.0")

    assert str(held) == "pyproject.toml tool.uv.override-dependencies[0] forces `==1.0`"
    assert value == "==2.0"
    verdict = try_out(
        graph,
        UV_INDEX,
        SetOverride(override=override, value=value),
        SetVersion(where="package[speed 1.0]", version="2.0"),
    )
    assert legal(verdict).edits == (
        Edit(
            path="pyproject.toml",
            at="tool.uv.override-dependencies[0]",
            from_text="==1.0",
            to_text="==2.0",
            kind="override",
        ),
    )


def test_pdm_forces_by_a_table_of_versions() -> None:
    files = {
        "pdm.lock": '[metadata]\nlock_version = "4.5.0"\n[[package]]\nname = "web"\nversion = "1.0"\n'
        'groups = ["default"]\ndependencies = ["net<2"]\n[[package]]\nname = "net"\nversion = "1.0"\ngroups = ["default"]\n',
        "pyproject.toml": '[project]\nname = "app"\nrequires-python = ">=3.9"\ndependencies = ["web"]\n',
    }
    graph = graph_of(files)

    ways = drive(graph.overrides("package[net 1.0]", "2.1"))

    assert not isinstance(ways, NoOverride)
    verdict = try_out(graph, UV_INDEX, *ways[0], SetVersion(where="package[net 1.0]", version="2.1"))
    assert [(edit.at, edit.to_text) for edit in legal(verdict).edits] == [
        ("tool.pdm.resolution.overrides.net", ">=2.1,<3")
    ]


LAYERED = {
    "requirements.in": "web\n-c constraints.txt\n",
    "requirements.txt": "# autogenerated by pip-compile with Python 3.11\n#    pip-compile requirements.in\n"
    "net==1.0\n    # via\n    #   -c constraints.txt\n    #   web\nweb==1.0\n    # via -r requirements.in\n",
    "constraints.txt": "net<2  # ops\n",
}


def test_a_constraint_that_a_person_wrote_stands() -> None:
    graph = graph_of(LAYERED)
    registry = Registry().add("net", "1.0").add("net", "2.0").add("web", "1.0", "net")

    verdict = blocked(try_out(graph, registry, SetVersion(where="net==1.0", version="2.0")))

    assert str(verdict) == "constraints.txt net asks `<2`"
    assert verdict.dependent is not None
    assert verdict.dependent.constraint is not None
    assert graph.raised(verdict.dependent.constraint, "2.0") is None


def test_a_pin_in_a_constraints_file_is_an_entry_to_edit() -> None:
    graph = graph_of({**LAYERED, "constraints.txt": "net==1.0\n"})
    registry = Registry().add("net", "1.0").add("net", "1.1").add("web", "1.0", "net")

    (pin, *_) = drive(graph.dependents("net==1.0"), records=registry.records)

    assert pin.override is not None
    assert graph.override_value(pin.override, "1.1") == "==1.1"
    verdict = try_out(
        graph, registry, SetOverride(override=pin.override, value="==1.1"), SetVersion(where="net==1.0", version="1.1")
    )
    assert [(edit.path, edit.at, edit.to_text) for edit in legal(verdict).edits] == [
        ("constraints.txt", "net", "==1.1")
    ]


def test_a_list_that_is_not_complete_needs_no_new_lines() -> None:
    files = {"requirements.txt": "web==1.0\n"}
    registry = Registry().add("web", "1.0").add("web", "1.1", "net")

    verdict = try_out(graph_of(files), registry, _raise(files, "==1.1"), SetVersion(where="web==1.0", version="1.1"))

    assert moves(verdict) == {"web==1.0": ("1.0", "1.1")}
    assert not legal(verdict).needs_tool


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ('"a"', ">=2.0"),
        ('"a>=1"', ">=2.0"),
        ('"a == 1.0"', "== 2.0"),
        ('"a~=1.4"', "~=2.0"),
        ('"a>=1,<2"', ">=2.0,<3"),
        ('"a @ https://files.example/a-1.0.zip"', None),
    ],
)
def test_declared_texts_are_raised_in_their_own_style(manifest: str, expected: str | None) -> None:
    files = {"pyproject.toml": f"[project]\nname = 'p'\ndependencies = [{manifest}]\n"}
    graph = graph_of(files)

    assert graph.raised(graph.unit.constraints[0], "2.0") == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("^1.2", "^2.0"), ("1.2", "2.0"), ("*", ">=2.0"), (">=1,<3", ">=2.0,<3")]
)
def test_poetry_s_texts_are_raised_in_poetry_s_style(text: str, expected: str) -> None:
    graph = graph_of(poetry("a 1.2", f'a = "{text}"'))

    assert graph.raised(graph.unit.constraints[0], "2.0") == expected


def test_asking_at_another_version() -> None:
    graph = graph_of(UV)

    def asks(version: str, package: str) -> object:
        found = drive(graph.asks("package[web 1.0]", version, package), records=UV_INDEX.records)
        return getattr(found, "text", None if found is None else type(found).__name__)

    assert asks("1.1", "net") == ">=1.1"
    assert asks("1.1", "speed") == ">=2"
    assert asks("1.1", "slow") is None
    assert asks("7.0", "net") == "Unavailable"


def test_an_added_override_is_a_change_of_its_own() -> None:
    ways = drive(graph_of(UV).overrides("package[speed 1.0]", "0.5.1"))

    assert not isinstance(ways, NoOverride)
    assert [(type(one), one.override.value, one.override.condition) for one in ways[0]] == [
        (AddOverride, ">=0.5.1,<0.6", "")
    ]
