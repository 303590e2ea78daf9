import pytest

from dependfix_core.errors import ArgumentError
from dependfix_core.model.repository import RemoteLocation, locate, parse_repository


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Octo/shop.js", "github.com"),
        (" Octo/shop.js ", "github.com"),
        ("https://github.com/Octo/shop.js", "github.com"),
        ("https://GitHub.com/Octo/shop.js.git/", "github.com"),
        ("git@github.com:Octo/shop.js.git", "github.com"),
        ("ssh://git@github.com:22/Octo/shop.js.git", "github.com"),
        ("https://ghe.example:8443/Octo/shop.js", "ghe.example:8443"),
        ("git@ghe.example:Octo/shop.js.git", "ghe.example:8443"),
        ("http://127.0.0.1:9000/Octo/shop.js", "127.0.0.1:9000"),
    ],
)
def test_every_form_of_the_configured_host_is_the_repository(text: str, host: str) -> None:
    assert parse_repository(text, host=host) == "Octo/shop.js"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "octo",
        "octo/",
        "/octo/shop",
        "octo/shop/",
        "octo/shop/tree/main",
        "octo/..",
        "octo/.git",
        "-octo/shop",
        "octo/sh op",
        "octo/shop?x=1",
        "öcto/shop",
        "https://gitlab.example/octo/shop",
        "https://github.com.evil.example/octo/shop",
        "https://github.com/octo",
        "https://github.com/octo/shop/issues",
        "git@gitlab.example:octo/shop.git",
        "ftp://github.com/octo/shop",
        "file:///octo/shop",
        "C:/octo/shop",
        "https://[::1/octo/shop",
        "octo/" + "x" * 101,
    ],
)
def test_anything_else_is_refused_with_the_argument_named(text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_repository(text)

    assert caught.value.details == {"argument": "repo"}


def test_a_path_is_no_remote_address() -> None:
    assert [locate(text) for text in ("/srv/git/octo/shop", "../shop", "octo/shop", "file:///a/b")] == [None] * 4
    assert locate("work:octo/shop.git") == RemoteLocation(host="work", full_name="octo/shop", is_ssh=True)
