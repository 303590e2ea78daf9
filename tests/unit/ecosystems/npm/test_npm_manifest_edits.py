"""Edits of manifests and settings: the announced text changes, everything else stays byte for byte."""

import pytest

from dependfix_core.ecosystems.npm.manifest_edits import EditError, edited_file
from dependfix_core.model.plan import Edit


def edit(at: str, before: str | None, after: str, kind: str = "constraint", path: str = "package.json") -> Edit:
    return Edit(path=path, at=at, from_text=before, to_text=after, kind=kind)


@pytest.mark.parametrize(
    ("text", "change", "result"),
    [
        (
            '{ "dependencies" : {"a":"^1.0.0" , "big.js": "~2"} }',
            edit("dependencies.big.js", "~2", "~3"),
            '{ "dependencies" : {"a":"^1.0.0" , "big.js": "~3"} }',
        ),
        (
            '{"dependencies": {"x": "npm:real@^1.0.0"}}',
            edit("dependencies.x", "^1.0.0", "^1.2.0"),
            '{"dependencies": {"x": "npm:real@^1.2.0"}}',
        ),
        (
            '{"dependencies": {"x": "npm:^1.0.0"}}',
            edit("dependencies.x", "^1.0.0", "^1.2.0"),
            '{"dependencies": {"x": "npm:^1.2.0"}}',
        ),
        (
            '{"overrides": {"p": {"a@^1": "1.0.0"}}}',
            edit("overrides.p>a@^1", "1.0.0", "1.2.0", "override"),
            '{"overrides": {"p": {"a@^1": "1.2.0"}}}',
        ),
        (
            '{"pnpm": {"overrides": {"a@<2.0.0": "1.0.0"}}}',
            edit("pnpm.overrides.a@<2.0.0", "1.0.0", "2.0.0", "override"),
            '{"pnpm": {"overrides": {"a@<2.0.0": "2.0.0"}}}',
        ),
        (
            '{\n\t"name": "x",\n\t"overrides": {\n\t\t"a": "1"\n\t}\n}',
            edit("overrides.b", None, "^2", "override"),
            '{\n\t"name": "x",\n\t"overrides": {\n\t\t"a": "1",\n\t\t"b": "^2"\n\t}\n}',
        ),
        (
            '{\r\n    "name": "x"\r\n}\r\n',
            edit("overrides.p>b", None, "^2", "override"),
            '{\r\n    "name": "x",\r\n    "overrides": {\r\n        "p": {\r\n            "b": "^2"\r\n        }\r\n    }\r\n}\r\n',
        ),
        (
            '{\n  "pnpm": {}\n}\n',
            edit("pnpm.overrides.p>b@1", None, "^2", "override"),
            '{\n  "pnpm": {\n    "overrides": {\n      "p>b@1": "^2"\n    }\n  }\n}\n',
        ),
        (
            '{"name":"x"}',
            edit("resolutions.p/b", None, "^2", "override"),
            '{"name":"x","resolutions":{"p/b":"^2"}}',
        ),
        (
            '{\n  "overrides": {\n    "p": "1.0.0"\n  }\n}\n',
            edit("overrides.p>b", None, "^2", "override"),
            '{\n  "overrides": {\n    "p": {\n      ".": "1.0.0",\n      "b": "^2"\n    }\n  }\n}\n',
        ),
        (
            '{"catalogs": {"v.1": {"a": "^1"}}}',
            edit("catalogs.v.1.a", "^1", "^2", "catalog"),
            '{"catalogs": {"v.1": {"a": "^2"}}}',
        ),
        (
            '\ufeff{"dependencies": {"é": "^1", "a": "\\u005e1"}}\n',
            edit("dependencies.a", "^1", "^2"),
            '\ufeff{"dependencies": {"é": "^1", "a": "^2"}}\n',
        ),
    ],
)
def test_package_json(text: str, change: Edit, result: str) -> None:
    assert edited_file("package.json", text.encode(), [change]).decode() == result


WORKSPACE = """\
# first
packages:
  - "apps/*"
catalog:
  a: ^1.0.0 # keep
  'b': "~2.0.0"
overrides:
  c@<2: '>=2' # why
minimumReleaseAgeExclude: [ x ]
"""


@pytest.mark.parametrize(
    ("change", "line", "result"),
    [
        (edit("catalog.a", "^1.0.0", "^1.2.0", "catalog"), "  a: ^1.0.0 # keep", "  a: ^1.2.0 # keep"),
        (edit("catalog.b", "~2.0.0", "~2.0.4", "catalog"), "  'b': \"~2.0.0\"", "  'b': \"~2.0.4\""),
        (edit("overrides.c@<2", ">=2", ">=3", "override"), "  c@<2: '>=2' # why", "  c@<2: '>=3' # why"),
        (
            edit("overrides.p>d@<3", None, "^3.0.1", "override"),
            "  c@<2: '>=2' # why",
            "  c@<2: '>=2' # why\n  p>d@<3: ^3.0.1",
        ),
        (
            edit("minimumReleaseAgeExclude", None, "a@1.2.0", "gate-exclusion"),
            "minimumReleaseAgeExclude: [ x ]",
            "minimumReleaseAgeExclude: [ x, a@1.2.0 ]",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_pnpm_workspace(change: Edit, line: str, result: str, newline: str) -> None:
    text = WORKSPACE.replace("\n", newline)

    found = edited_file("pnpm-workspace.yaml", text.encode(), [change]).decode()

    assert found == text.replace(line, result.replace("\n", newline))


def test_tables_that_are_not_there_are_made() -> None:
    changes = [
        edit("overrides.a@<2", None, "^2", "override"),
        edit("minimumReleaseAgeExclude", None, "a@2.0.0", "gate-exclusion"),
        edit("minimumReleaseAgeExclude", None, "@s/b@1.0.0", "gate-exclusion"),
    ]

    made = edited_file("pnpm-workspace.yaml", None, changes)
    longer = edited_file("pnpm-workspace.yaml", b"packages: []", changes[:1])

    assert made == b"overrides:\n  a@<2: ^2\nminimumReleaseAgeExclude:\n  - a@2.0.0\n  - '@s/b@1.0.0'\n"
    assert longer == b"packages: []\noverrides:\n  a@<2: ^2\n"


def test_exclusions_of_yarn_and_npm() -> None:
    yarn = edited_file(
        ".yarnrc.yml",
        b"# c\nnpmMinimalAgeGate: 3d\nnpmPreapprovedPackages:\n    - a # x\nnodeLinker: pnp\n",
        [edit("npmPreapprovedPackages", None, "b@1.0.0", "gate-exclusion")],
    )
    npm = edited_file(
        ".npmrc",
        b"min-release-age=3\nmin-release-age-exclude[]=a\nregistry=https://npm.registry.example/",
        [edit("min-release-age-exclude", None, "b@1.0.0", "gate-exclusion")],
    )

    assert yarn == b"# c\nnpmMinimalAgeGate: 3d\nnpmPreapprovedPackages:\n    - a # x\n    - b@1.0.0\nnodeLinker: pnp\n"
    assert npm == (
        b"min-release-age=3\nmin-release-age-exclude[]=a\nmin-release-age-exclude[]=b@1.0.0\n"
        b"registry=https://npm.registry.example/"
    )


@pytest.mark.parametrize(
    ("path", "text", "change"),
    [
        ("package.json", '{"dependencies": {"a": "^1"}}', edit("dependencies.a", "^2", "^3")),
        ("package.json", '{"dependencies": {"a": "^1"}}', edit("dependencies.b", "^1", "^3")),
        ("package.json", '{"overrides": {"a": "1"}}', edit("overrides.a", None, "2", "override")),
        ("package.json", '{"dependencies": {}}', edit("dependencies.a", None, "2")),
        ("package.json", "[]", edit("overrides.a", None, "2", "override")),
        ("package.json", "{", edit("dependencies.a", "1", "2")),
        ("pnpm-workspace.yaml", "overrides: {a: '1'}\n", edit("overrides.b", None, "2", "override")),
        ("pnpm-workspace.yaml", "catalog: &c\n  a: &v ^1\ncatalogs: {x: {a: *v}}\n", edit("catalogs.x.a", "^1", "^2")),
        ("pnpm-workspace.yaml", "a: [\n", edit("catalog.a", "^1", "^2")),
        ("README.md", "", edit("x", "a", "b")),
    ],
)
def test_what_cannot_be_edited_is_an_error(path: str, text: str, change: Edit) -> None:
    with pytest.raises(EditError):
        edited_file(path, text.encode(), [change])
