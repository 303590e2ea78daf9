import tomllib
from collections.abc import Mapping, Sequence

import pytest

from dependfix_core.ecosystems.base import ToolRelock, WriteRefusal
from dependfix_core.ecosystems.pip.ecosystem import PythonEcosystem
from dependfix_core.model.plan import Edit, Move, Remediation
from fakes.planning import drive_plan
from fakes.step_driver import listing_of, project_files

ECOSYSTEM = PythonEcosystem()


def move(where: str, name: str, old: str, new: str) -> Move:
    return Move(where=where, package_name=name, from_version=old, to_version=new, strategy="lock-in-range")


def wanted(
    files: Mapping[str, bytes], lock: str, moves: Sequence[Move] = (), edits: Sequence[Edit] = ()
) -> ToolRelock | WriteRefusal:
    (unit,) = drive_plan(ECOSYSTEM.read_units(listing_of(files), [lock]), files, {})
    remediation = Remediation(
        unit=lock,
        ecosystem="pip",
        package_name="any",
        strategy="lock-in-range",
        moves=tuple(moves),
        edits=tuple(edits),
        needs_tool=True,
    )
    return drive_plan(ECOSYSTEM.relock(unit, [remediation] if moves or edits else []), files, {})


def relocked(
    files: Mapping[str, bytes], lock: str, moves: Sequence[Move] = (), edits: Sequence[Edit] = ()
) -> ToolRelock:
    found = wanted(files, lock, moves, edits)
    assert isinstance(found, ToolRelock), found
    return found


def refused(files: Mapping[str, bytes], lock: str, moves: Sequence[Move] = (), edits: Sequence[Edit] = ()) -> str:
    found = wanted(files, lock, moves, edits)
    assert isinstance(found, WriteRefusal)
    assert found.reason == "tool-required"
    return found.detail


def changed(files: Mapping[str, bytes], path: str, old: str, new: str) -> dict[str, bytes]:
    assert old.encode() in files[path], old
    return {**files, path: files[path].replace(old.encode(), new.encode(), 1)}


# uv

UV_IDNA = move("package[idna 3.4]", "idna", "3.4", "3.7")
UV = ("uv", "lock", "--no-build", "--keyring-provider=disabled")


def test_uv_takes_the_version_on_request_and_may_not_build() -> None:
    files = project_files("uv-project")

    found = relocked(files, "uv.lock", [UV_IDNA])

    assert [call.argv for call in found.calls] == [(*UV, "--upgrade-package=idna==3.7")]
    assert found.calls[0].files == {}
    assert {**found.files} == {path: files[path] for path in ("pyproject.toml", "uv.lock")}
    assert (found.tool, found.version, found.results, found.folder) == ("uv", "", ("uv.lock",), ".")
    assert found.registries == {"": "https://pypi.registry.example/simple"}
    assert (found.edited, found.restored, found.warnings) == ((), {}, ())
    assert found.by_hand == "uv lock --upgrade-package=idna==3.7"


def test_uv_is_asked_to_lock_what_is_there_when_nothing_moves() -> None:
    assert [call.argv for call in relocked(project_files("uv-project"), "uv.lock").calls] == [UV]


def test_an_edit_of_the_plan_is_in_the_scratch_copy_and_in_the_result() -> None:
    files = project_files("uv-project")
    edit = Edit(path="pyproject.toml", at="project.dependencies[2]", from_text="==6.0.1", to_text="==6.0.2")

    found = relocked(files, "uv.lock", [move("package[pyyaml 6.0.1]", "pyyaml", "6.0.1", "6.0.2")], [edit])

    assert found.files["pyproject.toml"] == files["pyproject.toml"].replace(b"pyyaml==6.0.1", b"pyyaml==6.0.2")
    assert (found.edited, found.restored) == (("pyproject.toml",), {})


def test_settings_of_uv_that_run_or_redirect_something_stay_out_of_the_scratch_copy_only() -> None:
    settings = (
        'package = false\ncache-dir = "/x"\nallow-insecure-host = ["a.example"]\nkeyring-provider = "subprocess"\n'
    )
    files = changed(project_files("uv-project"), "pyproject.toml", "package = false\n", settings)
    edit = Edit(path="pyproject.toml", at="project.dependencies[2]", from_text="==6.0.1", to_text="==6.0.2")

    found = relocked(files, "uv.lock", [], [edit])

    assert tomllib.loads(found.files["pyproject.toml"].decode())["tool"] == {"uv": {"package": False}}
    assert found.restored == {"pyproject.toml": files["pyproject.toml"].replace(b"pyyaml==6.0.1", b"pyyaml==6.0.2")}
    assert found.warnings == (
        "neutralised: tool.uv.cache-dir of pyproject.toml",
        "neutralised: tool.uv.allow-insecure-host of pyproject.toml",
        "neutralised: tool.uv.keyring-provider of pyproject.toml",
    )


OPTIONS = '\n[options]\nexclude-newer = "2024-01-01T00:00:00Z"\nresolution-mode = "lowest-direct"\n\n[[package]]\n'


def test_options_that_a_lock_was_made_with_are_kept() -> None:
    files = changed(project_files("uv-project"), "uv.lock", "\n[[package]]\n", OPTIONS)

    said = relocked(files, "uv.lock").calls[0].argv
    declared = changed(files, "pyproject.toml", "package = false\n", 'exclude-newer = "2024-01-01T00:00:00Z"\n')

    assert said[len(UV) :] == ("--exclude-newer=2024-01-01T00:00:00Z", "--resolution=lowest-direct")
    assert relocked(declared, "uv.lock").calls[0].argv[len(UV) :] == ("--resolution=lowest-direct",)


FORK = """
[[package]]
name = "idna"
version = "3.6"
source = { registry = "https://pypi.registry.example/simple" }
resolution-markers = ["python_full_version < '3.8'"]
"""


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("uv.lock", '\n[[package]]\nname = "certifi"', f'{FORK}\n[[package]]\nname = "certifi"'),
        ("uv.lock", "\n[[package]]\n", '\n[options]\nnew-option = "x"\n\n[[package]]\n'),
        ("uv.lock", "\n[[package]]\n", '\n[options]\nfork-strategy = "-x"\n\n[[package]]\n'),
        (
            "uv.lock",
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://pypi.registry.example/simple" }',
            'name = "certifi"\nversion = "2023.7.22"\nsource = { git = "https://git.example/certifi?rev=a#a" }',
        ),
        (
            "uv.lock",
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://pypi.registry.example/simple" }',
            'name = "certifi"\nversion = "2023.7.22"\nsource = { path = "../certifi.whl" }',
        ),
        (
            "uv.lock",
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://pypi.registry.example/simple" }',
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://two.registry.example/simple" }',
        ),
        (
            "uv.lock",
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://pypi.registry.example/simple" }',
            'name = "certifi"\nversion = "2023.7.22"\nsource = { editable = "../outside" }',
        ),
        (
            "uv.lock",
            'name = "certifi"\nversion = "2023.7.22"\nsource = { registry = "https://pypi.registry.example/simple" }',
            'name = "certifi"\nversion = "2023.7.22"\nsource = { directory = "libs/certifi" }',
        ),
        ("pyproject.toml", 'version = "0.3.0"', 'dynamic = ["version"]'),
        ("pyproject.toml", 'version = "0.3.0"', 'version = "0.3.0"\ndynamic = ["optional-dependencies"]'),
    ],
    ids=[
        "locked twice",
        "unknown option",
        "option for an option",
        "git",
        "file",
        "two indexes",
        "outside",
        "no manifest",
        "computed version",
        "computed extras",
    ],
)
def test_uv_is_not_run_where_it_would_build_or_hit_more_than_it_is_asked_to(path: str, old: str, new: str) -> None:
    refused(changed(project_files("uv-project"), path, old, new), "uv.lock", [UV_IDNA])


def test_uv_is_not_run_beside_settings_that_nobody_read() -> None:
    refused({**project_files("uv-project"), "uv.toml": b'index-url = "https://x.example"\n'}, "uv.lock", [UV_IDNA])


def test_a_workspace_is_laid_with_all_its_members() -> None:
    files = {
        "app/pyproject.toml": b"""[project]
name = "app"
version = "1"
requires-python = ">=3.9"
dependencies = ["lib", "idna"]

[tool.uv.workspace]
members = ["packages/*"]

[tool.uv.sources]
lib = { workspace = true }
""",
        "app/packages/lib/pyproject.toml": b"""[project]
name = "lib"
version = "1"
requires-python = ">=3.9"
""",
        "app/packages/lib/setup.py": b"raise SystemExit\n",
        "app/uv.lock": b"""version = 1
revision = 3
requires-python = ">=3.9"

[manifest]
members = ["app", "lib"]

[[package]]
name = "app"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "idna" }, { name = "lib" }]

[package.metadata]
requires-dist = [{ name = "idna" }, { name = "lib", virtual = "packages/lib" }]

[[package]]
name = "idna"
version = "3.4"
source = { registry = "https://pypi.registry.example/simple" }

[[package]]
name = "lib"
version = "1"
source = { virtual = "packages/lib" }
""",
    }

    found = relocked(files, "app/uv.lock", [UV_IDNA])

    assert sorted(found.files) == ["app/packages/lib/pyproject.toml", "app/pyproject.toml", "app/uv.lock"]
    assert (found.folder, found.by_hand) == ("app", "cd app && uv lock --upgrade-package=idna==3.7")


# poetry

POETRY = ("poetry", "--no-interaction", "--no-plugins", "--no-ansi", "lock")
POETRY_MOVES = [
    move("package[idna 3.3]", "idna", "3.3", "3.7"),
    move("package[requests 2.28.1]", "requests", "2.28.1", "2.31.0"),
    move("package[jinja2 3.1.2]", "jinja2", "3.1.2", "3.1.4"),
]
REQUESTS_EDIT = Edit(
    path="pyproject.toml", at="tool.poetry.dependencies.requests", from_text="2.28.1", to_text="2.31.0"
)


def test_poetry_has_the_versions_in_the_manifest_for_one_run() -> None:
    files = project_files("poetry-groups")
    final = files["pyproject.toml"].replace(b'requests = "2.28.1"', b'requests = "2.31.0"')

    found = relocked(files, "poetry.lock", POETRY_MOVES, [REQUESTS_EDIT])

    assert [call.argv for call in found.calls] == [POETRY, POETRY]
    temporary = tomllib.loads(found.calls[0].files["pyproject.toml"].decode())["tool"]["poetry"]["dependencies"]
    assert temporary == {
        "python": "^3.9",
        "flask": "^2.2",
        "jinja2": {"version": "==3.1.4", "extras": ["i18n"]},
        "requests": "==2.31.0",
        "django": {"version": "^3.2", "optional": True},
        "idna": "==3.7",
    }
    assert found.calls[1].files == {"pyproject.toml": final}
    assert found.files == {"poetry.lock": files["poetry.lock"], "pyproject.toml": final}
    assert (found.tool, found.version, found.edited, found.registries) == ("poetry", "2.5.1", ("pyproject.toml",), {})
    assert found.by_hand == (
        "require idna==3.7, jinja2==3.1.4, requests==2.31.0 in pyproject.toml, run `poetry lock`, "
        "take it out again, run it once more"
    )


def test_a_poetry_project_in_the_standard_s_tables_is_pinned_there() -> None:
    files = changed(
        project_files("poetry-groups"),
        "pyproject.toml",
        "[tool.poetry]",
        '[project]\nname = "portal"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["jinja2 (>=3.1)"]\n\n[tool.poetry]',
    )

    found = relocked(files, "poetry.lock", POETRY_MOVES[:1])

    temporary = tomllib.loads(found.calls[0].files["pyproject.toml"].decode())
    assert temporary["project"]["dependencies"] == ["jinja2 (>=3.1)", "idna==3.7"]


def test_poetry_1_is_told_to_keep_what_is_locked() -> None:
    files = changed(project_files("poetry-groups"), "poetry.lock", "Poetry 2.5.1", "Poetry 1.8.5")

    found = relocked(files, "poetry.lock", POETRY_MOVES[:1])

    assert (found.version, found.calls[0].argv) == ("1.8.5", (*POETRY, "--no-update"))


def test_plugins_that_a_poetry_project_asks_for_are_left_out() -> None:
    plugins = '[tool.poetry.requires-plugins]\nevil = "*"\n\n[build-system]'
    files = changed(project_files("poetry-groups"), "pyproject.toml", "[build-system]", plugins)

    found = relocked(files, "poetry.lock", POETRY_MOVES[:1], [REQUESTS_EDIT])

    laid = [found.files["pyproject.toml"], *(call.files["pyproject.toml"] for call in found.calls)]
    assert not [content for content in laid if b"evil" in content]
    assert b"evil" in found.restored["pyproject.toml"]
    assert found.warnings == ("neutralised: tool.poetry.requires-plugins of pyproject.toml",)


LEGACY = ('lock-version = "2.1"', 'lock-version = "1.1"')
GIT_SOURCE = (
    '\n[package.source]\ntype = "git"\nurl = "https://git.example/x"\nreference = "a"\nresolved_reference = "a"\n'
)


def test_poetry_is_not_run_for_what_it_would_rewrite_or_build() -> None:
    files = project_files("poetry-groups")

    refused(changed(files, "poetry.lock", *LEGACY), "poetry.lock", POETRY_MOVES[:1])
    refused(changed(files, "poetry.lock", "\n[extras]\n", f"{GIT_SOURCE}\n[extras]\n"), "poetry.lock", POETRY_MOVES[:1])
    refused({"poetry.lock": files["poetry.lock"]}, "poetry.lock", POETRY_MOVES[:1])


# pdm

PDM_LOCK = b"""[metadata]
groups = ["default"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"
content_hash = "sha256:x"

[[metadata.targets]]
requires_python = ">=3.9"

[[package]]
name = "idna"
version = "3.4"
groups = ["default"]
files = []

[[package]]
name = "sqlparse"
version = "0.4.3"
groups = ["default"]
files = []
"""
PDM_MANIFEST = b"""[project]
name = "x"
version = "1"
requires-python = ">=3.9"
dependencies = ["idna", "sqlparse"]

[tool.pdm.resolution.overrides]
Idna = "3.4"

[tool.pdm.scripts]
post_lock = "touch /tmp/x"

[tool.pdm.options]
lock = ["--project=/elsewhere"]
"""
PDM_IDNA = move("package[idna 3.4]", "idna", "3.4", "3.7")


def test_pdm_forgets_the_copy_for_one_run_and_lists_all_files_in_the_last() -> None:
    files = {"pyproject.toml": PDM_MANIFEST, "pdm.lock": PDM_LOCK}

    found = relocked(files, "pdm.lock", [PDM_IDNA])

    argv = ("pdm", "lock", "--skip=:all")
    assert [(call.argv, dict(call.env)) for call in found.calls] == [
        ((*argv, "--update-reuse"), {"PDM_ONLY_BINARY": ":all:"}),
        ((*argv, "--update-reuse"), {"PDM_ONLY_BINARY": ":all:"}),
        ((*argv, "--refresh"), {}),
    ]
    first, second, third = (call.files for call in found.calls)
    assert tomllib.loads(first["pyproject.toml"].decode())["tool"]["pdm"] == {
        "resolution": {"overrides": {"idna": "==3.7"}}
    }
    assert [entry["name"] for entry in tomllib.loads(first["pdm.lock"].decode())["package"]] == ["sqlparse"]
    assert tomllib.loads(second["pyproject.toml"].decode())["tool"]["pdm"] == {
        "resolution": {"overrides": {"Idna": "3.4"}}
    }
    assert third == {}
    assert (found.version, found.results) == ("2", ("pdm.lock",))
    assert found.warnings == (
        "neutralised: tool.pdm.scripts of pyproject.toml",
        "neutralised: tool.pdm.options of pyproject.toml",
    )


def test_pdm_is_not_run_where_it_would_build_redirect_or_trust_blindly() -> None:
    files = {"pyproject.toml": PDM_MANIFEST, "pdm.lock": PDM_LOCK}
    source = '[[tool.pdm.source]]\nname = "pypi"\nurl = "https://x.registry.example/simple"\nverify_ssl = false\n'

    refused(changed(files, "pdm.lock", '"inherit_metadata"', '"static_urls"'), "pdm.lock", [PDM_IDNA])
    refused(
        changed(files, "pdm.lock", 'name = "sqlparse"', 'name = "sqlparse"\npath = "./lib"'), "pdm.lock", [PDM_IDNA]
    )
    refused(changed(files, "pyproject.toml", "[tool.pdm.scripts]", f"{source}\n[tool.pdm.scripts]"), "pdm.lock")


# pipenv

PIPENV_MOVES = [
    move("default.idna", "idna", "3.4", "3.7"),
    move("default.requests", "requests", "2.30.0", "2.31.0"),
    move("develop.pytest", "pytest", "7.4.4", "8.0.0"),
]


def test_pipenv_has_everything_pinned_for_one_run() -> None:
    files = project_files("pipenv")

    found = relocked(files, "Pipfile.lock", [*PIPENV_MOVES[:2], develop_move(files, "pluggy", "99.0")])

    upgrade = ("pipenv", "upgrade", "--lock-only")
    assert [call.argv for call in found.calls] == [
        (*upgrade, "idna==3.7", "requests==2.31.0"),
        (*upgrade, "--dev", "pluggy==99.0"),
        upgrade,
    ]
    assert {tuple(call.env.items()) for call in found.calls} == {(("PIP_ONLY_BINARY", ":all:"),)}
    temporary = tomllib.loads(found.calls[0].files["Pipfile"].decode())
    assert temporary["packages"] == {
        "requests": "==2.31.0",
        "jinja2": "==3.1.2",
        "pyyaml": "==5.3.1",
        "certifi": {"version": "==2022.12.7", "markers": "python_version >= '3.6'"},
        "charset-normalizer": {"version": "==3.5.3", "markers": "python_version >= '3.7'"},
        "idna": {"version": "==3.7", "markers": "python_version >= '3.5'"},
        "markupsafe": {"version": "==3.0.4", "markers": "python_version >= '3.9'"},
        "urllib3": {"version": "==2.0.2", "markers": "python_version >= '3.7'"},
    }
    assert temporary["dev-packages"]["pluggy"]["version"] == "==99.0"
    assert found.calls[-1].files == {"Pipfile": files["Pipfile"]}
    assert found.files == files


def develop_move(files: Mapping[str, bytes], name: str, new: str) -> Move:
    (unit,) = drive_plan(ECOSYSTEM.read_units(listing_of(files), ["Pipfile.lock"]), files, {})
    old = unit.instances[f"develop.{name}"].version
    return move(f"develop.{name}", name, old, new)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("Pipfile", "verify_ssl = true", "verify_ssl = false"),
        ("Pipfile", "https://pypi.registry.example/simple", "https://${TOKEN}@pypi.registry.example/simple"),
        ("Pipfile.lock", '"develop": {', '"docs": {"idna": {"version": "==3.4"}}, "develop": {'),
        ("Pipfile.lock", '"develop": {', '"develop": {"x": {"path": ".", "editable": true},'),
    ],
    ids=["unchecked host", "variable", "section of its own", "the project itself"],
)
def test_pipenv_is_not_run_where_it_would_build_or_leak(path: str, old: str, new: str) -> None:
    refused(changed(project_files("pipenv"), path, old, new), "Pipfile.lock", PIPENV_MOVES[:1])


# Compiled requirements.

PIN_EDIT = Edit(path="requirements.in", at="requests", from_text="==2.28.1", to_text="==2.31.0")
COMPILED_MOVES = [
    move("werkzeug==2.2.2", "werkzeug", "2.2.2", "2.3.8"),
    move("requests==2.28.1", "requests", "2.28.1", "2.31.0"),
]


def test_compiled_files_are_made_again_by_their_own_commands_inputs_first() -> None:
    files = project_files("pip-hashes")

    found = relocked(files, "requirements.txt", COMPILED_MOVES, [PIN_EDIT])

    options = ("pip-compile", "--generate-hashes", "--strip-extras", "--allow-unsafe", "--no-emit-index-url")
    pins = ("--upgrade-package=requests==2.31.0", "--upgrade-package=werkzeug==2.3.8")
    dev = ("pip-compile", "--generate-hashes", "--no-emit-index-url", "--upgrade-package=werkzeug==2.3.8")
    head = {"CUSTOM_COMPILE_COMMAND": "pip-compile --generate-hashes requirements.in"}
    dev_head = {"CUSTOM_COMPILE_COMMAND": "pip-compile --generate-hashes requirements-dev.in"}
    wheels = {"PIP_ONLY_BINARY": ":all:"}
    assert [(call.argv, dict(call.env)) for call in found.calls] == [
        ((*options, *pins, "--no-config", "requirements.in"), {**head, **wheels}),
        ((*options, *pins, "--no-config", "--no-reuse-hashes", "requirements.in"), head),
        ((*dev, "--no-config", "requirements-dev.in"), {**dev_head, **wheels}),
        ((*dev, "--no-config", "--no-reuse-hashes", "requirements-dev.in"), dev_head),
    ]
    assert found.results == ("requirements-dev.txt", "requirements.txt")
    assert found.edited == ("requirements.in",)
    assert b"requests[socks]==2.31.0  # pinned by ops" in found.files["requirements.in"]
    assert sorted(found.files) == sorted(files)
    assert (found.tool, found.by_hand) == (
        "pip-tools",
        (
            "pip-compile --generate-hashes --upgrade-package=requests==2.31.0 --upgrade-package=werkzeug==2.3.8 "
            "requirements.in && pip-compile --generate-hashes --upgrade-package=werkzeug==2.3.8 requirements-dev.in"
        ),
    )


def test_a_file_that_depends_on_a_changed_one_is_made_again_too() -> None:
    files = project_files("pip-hashes")

    found = relocked(files, "requirements.txt", [move("click==8.1.3", "click", "8.1.3", "8.1.4")])

    assert found.results == ("requirements-dev.txt", "requirements.txt")
    assert all("--upgrade-package" not in " ".join(call.argv) for call in found.calls[2:])


def compiled_files(head: str, *, tool: str = "pip-compile with Python 3.11", more: str = "") -> dict[str, bytes]:
    return {
        "requirements/base.in": f"idna\n{more}".encode(),
        "requirements/base.txt": (
            f"#\n# This file is autogenerated by {tool}\n# by the following command:\n#\n#    {head}\n#\n"
            "idna==3.4\n    # via -r requirements/base.in\n"
        ).encode(),
    }


BASE = "requirements/base.txt"
BASE_IDNA = move("idna==3.4", "idna", "3.4", "3.7")
BASE_COMMAND = "pip-compile --output-file=requirements/base.txt requirements/base.in"


def test_options_of_the_head_are_used_again_only_when_they_are_known_to_be_harmless() -> None:
    head = (
        "pip-compile --annotation-style=line --cache-dir=/x --newline lf --no-header -q -U -P django==1 "
        "--index-url=https://one.registry.example/simple --extra-index-url https://two.registry.example/simple "
        "-o requirements/base.txt requirements/base.in"
    )

    found = relocked(compiled_files(head), BASE, [BASE_IDNA])

    assert found.calls[-1].argv == (
        "pip-compile",
        *("--annotation-style", "line", "--newline", "lf", "--no-header", "--output-file", "requirements/base.txt"),
        *("--no-emit-index-url", "--upgrade-package=idna==3.7", "--no-config", "requirements/base.in"),
    )
    assert found.registries == {
        "": "https://one.registry.example/simple",
        "https://two.registry.example/simple": "https://two.registry.example/simple",
    }
    assert (found.folder, found.calls[-1].env) == (".", {"CUSTOM_COMPILE_COMMAND": head})


def test_a_command_that_was_run_in_the_file_s_folder_is_run_there() -> None:
    found = relocked(compiled_files("pip-compile base.in"), BASE, [BASE_IDNA])

    assert (found.folder, found.calls[-1].argv[-1]) == ("requirements", "base.in")
    assert found.by_hand == "cd requirements && pip-compile --upgrade-package=idna==3.7 base.in"


def test_uv_compiles_what_uv_compiled() -> None:
    head = "uv pip compile --universal requirements/base.in -o requirements/base.txt --python-version 3.11"

    found = relocked(compiled_files(head, tool="uv via the following command:"), BASE, [BASE_IDNA])

    assert [(call.argv, dict(call.env)) for call in found.calls] == [
        (
            (
                *("uv", "pip", "compile", "--universal", "--python-version", "3.11"),
                *("--output-file", "requirements/base.txt", "--upgrade-package=idna==3.7"),
                *("--no-build", "--no-config", "--keyring-provider=disabled", "--quiet", "requirements/base.in"),
            ),
            {"UV_CUSTOM_COMPILE_COMMAND": head},
        )
    ]
    assert found.tool == "uv"


def test_a_manifest_is_an_input_only_as_far_as_it_says_everything_itself() -> None:
    manifest = b"""[build-system]
requires = ["evil"]
build-backend = "evil"

[project]
name = "x"
version = "1"
dependencies = ["idna"]

[tool.pip-tools]
pip-args = "--evil"
"""
    files = {
        "pyproject.toml": manifest,
        "requirements.txt": b"# This file is autogenerated by pip-compile with Python 3.11\n# by the following command:\n"
        b"#\n#    pip-compile pyproject.toml\n#\nidna==3.4\n    # via x (pyproject.toml)\n",
    }

    found = relocked(files, "requirements.txt", [BASE_IDNA])

    assert tomllib.loads(found.files["pyproject.toml"].decode()) == {
        "project": {"name": "x", "version": "1", "dependencies": ["idna"]}
    }
    refused(
        changed(files, "pyproject.toml", 'dependencies = ["idna"]', 'dynamic = ["dependencies"]'), "requirements.txt"
    )
    code = {
        "setup.py": b"from setuptools import setup\nsetup(install_requires=['idna'])\n",
        "requirements.txt": files["requirements.txt"].replace(b"pyproject.toml", b"setup.py"),
    }
    refused(code, "requirements.txt", [BASE_IDNA])


@pytest.mark.parametrize(
    "head",
    [
        "make requirements",
        f"{BASE_COMMAND} --pip-args=--pre",
        f"{BASE_COMMAND} --config=x.toml",
        f"{BASE_COMMAND} --find-links=https://x.example",
        f"{BASE_COMMAND} --index-url=https://$TOKEN@x.example/simple",
        f"{BASE_COMMAND} --index-url=file:///etc",
        f"{BASE_COMMAND} --newline=--evil",
        f"{BASE_COMMAND} -qq",
        "pip-compile --output-file=../base.txt requirements/base.in",
        "pip-compile --output-file=requirements/base.txt /etc/base.in",
        "pip-compile --output-file=requirements/base.txt requirements/other.in",
        "pip-compile --output-file=requirements/base.txt",
        "PIP_INDEX_URL=https://x.example " + BASE_COMMAND,
        'pip-compile --output-file="requirements/base.txt" requirements/base.in',
    ],
)
def test_other_commands_are_not_run(head: str) -> None:
    refused(compiled_files(head), BASE, [BASE_IDNA])


@pytest.mark.parametrize(
    "more",
    [
        "git+https://git.example/x#egg=x\n",
        "-e .\n",
        "./lib\n",
        "x @ https://files.example/x-1.tar.gz\n",
        "--find-links https://x.example\n",
        "--no-binary :all:\n",
        "--trusted-host x.example\n",
        "--index-url https://${TOKEN}@x.example/simple\n",
        "-r https://x.example/more.txt\n",
        "-r missing.txt\n",
    ],
)
def test_inputs_that_would_make_it_build_fetch_or_leak_stop_it(more: str) -> None:
    refused(compiled_files(BASE_COMMAND, more=more), BASE, [BASE_IDNA])


def test_without_a_compiler_there_is_no_tool() -> None:
    refused({"requirements.txt": b"idna==3.4\n"}, "requirements.txt", [BASE_IDNA])
    refused({"requirements.txt": b"idna==3.4\n", "requirements.in": b"idna\n"}, "requirements.txt", [BASE_IDNA])
    refused({**compiled_files(BASE_COMMAND), "requirements/dev.txt": b"-r base.txt\nidna==3.4\n"}, BASE, [BASE_IDNA])
    refused({"pylock.toml": b'lock-version = "1.0"\ncreated-by = "x"\n'}, "pylock.toml")
    refused({"setup.cfg": b"[options]\ninstall_requires = idna\n"}, "setup.cfg")
