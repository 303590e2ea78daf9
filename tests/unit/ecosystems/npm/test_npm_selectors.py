"""Keys of overrides and resolutions, and texts that ask for a package."""

import pytest

from dependfix_core.ecosystems.npm.selectors import Selector, pnpm_selector, yarn_selector
from dependfix_core.ecosystems.npm.specifiers import Specifier, read_specifier, registry_base
from dependfix_core.model.lock import Source, SourceKind


@pytest.mark.parametrize(
    ("key", "selector"),
    [
        ("a", Selector(package="a")),
        ("@s/a", Selector(package="@s/a")),
        ("a@<2", Selector(package="a", condition="<2")),
        ("@s/a@>=1 <2", Selector(package="@s/a", condition=">=1 <2")),
        ("p>a", Selector(package="a", parents=("p",))),
        ("p@1>@s/a@>2", Selector(package="@s/a", parents=("p",), condition=">2")),
        ("q@>=1 <2>p>a", Selector(package="a", parents=("q", "p"))),
    ],
)
def test_pnpm_keys(key: str, selector: Selector) -> None:
    assert pnpm_selector(key) == selector


@pytest.mark.parametrize(
    ("key", "selector"),
    [
        ("a", Selector(package="a")),
        ("**/a", Selector(package="a")),
        ("p/a", Selector(package="a", parents=("p",))),
        ("@s/p/@s/a", Selector(package="@s/a", parents=("@s/p",))),
        ("p/**/a", Selector(package="a", parents=("p",))),
        ("a@npm:^1.0.0", Selector(package="a", condition="^1.0.0")),
        ("p@npm:1/a@npm:2", Selector(package="a", parents=("p",), condition="2")),
        ("a@patch:a@npm:1#./x/y.patch", Selector(package="a", condition="patch:a@npm:1#./x/y.patch")),
    ],
)
def test_yarn_keys(key: str, selector: Selector) -> None:
    assert yarn_selector(key) == selector


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("^1.2.3", Specifier(package="x", requirement="^1.2.3", start=0)),
        ("npm:real@^1", Specifier(package="real", requirement="^1", start=9)),
        ("npm:@s/real@~2", Specifier(package="@s/real", requirement="~2", start=12)),
        ("npm:^1.0.0", Specifier(package="x", requirement="^1.0.0", start=4)),
        ("npm:latest", Specifier(package="x", requirement="latest", start=4)),
        ("catalog:", Specifier(package="x", requirement="catalog:", start=0, catalog="")),
        ("catalog:default", Specifier(package="x", requirement="catalog:default", start=0, catalog="")),
        ("catalog:old", Specifier(package="x", requirement="catalog:old", start=0, catalog="old")),
    ],
)
def test_requirement_texts(text: str, found: Specifier) -> None:
    assert read_specifier("x", text) == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("workspace:^", SourceKind.WORKSPACE),
        ("file:../a", SourceKind.FILE),
        ("./a", SourceKind.FILE),
        ("link:../a", SourceKind.LINK),
        ("portal:../a", SourceKind.LINK),
        ("git+ssh://h/o/r.git", SourceKind.GIT),
        ("github:o/r", SourceKind.GIT),
        ("o/r#main", SourceKind.GIT),
        ("https://h/a.tgz", SourceKind.URL),
        ("https://h/o/r.git#v1", SourceKind.GIT),
        ("patch:a@npm:1#./p", SourceKind.PATCH),
        ("jsr:@std/a@1", SourceKind.UNKNOWN),
    ],
)
def test_other_sources(text: str, kind: SourceKind) -> None:
    assert read_specifier("x", text).source == Source(kind=kind, text=text)


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("https://r.example/npm/", "https://r.example/npm"),
        ("https://user:secret@r.example/", "https://r.example"),
        ("https://${HOST}/", ""),
        ("file:///etc", ""),
        ("https://r.example/?x", ""),
    ],
)
def test_addresses_from_the_repository(text: str, base: str) -> None:
    assert registry_base(text) == base
