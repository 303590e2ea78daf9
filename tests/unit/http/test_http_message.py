import gzip
from urllib.parse import urlsplit

import pytest

from dependfix_core.errors import ConfigurationError, NetworkError, OutputTooLargeError
from dependfix_core.http import Credential, HttpResponse, link_target, origin_of, retry_after_s
from dependfix_core.http.message import decoded, redirect_target

NOW = 1_796_000_000.0


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.GitHub.com/x?y", ("https", "api.github.com", 443)),
        ("http://127.0.0.1:8080", ("http", "127.0.0.1", 8080)),
        ("https://[::1]/", ("https", "::1", 443)),
    ],
)
def test_origin_has_its_port_filled_in(url: str, origin: tuple[str, str, int]) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "host/x", "https://", "https://user:pw@host/", "https://host:99999/", "https://[::1/", ""]
)
def test_what_is_no_plain_http_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        origin_of(url)

    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("60", 60.0),
        (" 0 ", 0.0),
        ("Mon, 30 Nov 2026 00:54:20 GMT", 60.0),
        ("Mon, 30 Nov 2026 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}, NOW) == seconds
    assert retry_after_s({}, NOW) is None


@pytest.mark.parametrize(
    ("link", "rel", "target"),
    [
        ('<https://h/a?after=Y3Vyc29y%3D%3D>; rel="next"', "next", "https://h/a?after=Y3Vyc29y%3D%3D"),
        ('<https://h/p>; rel="prev", <https://h/n?a=1,2>; rel="next"', "next", "https://h/n?a=1,2"),
        ("<https://h/n>;rel=next", "next", "https://h/n"),
        ('<https://h/n>; title="a, b; rel=x"; REL="Next last"', "last", "https://h/n"),
        ('<https://h/p>; rel="prev"', "next", None),
        ("nonsense", "next", None),
        ("", "next", None),
    ],
)
def test_link_is_given_back_as_it_was_written(link: str, rel: str, target: str | None) -> None:
    assert link_target({"link": link}, rel) == target


def redirect(status: int, location: str | None, url: str = "https://h/a?x=1") -> HttpResponse:
    headers = {"location": location} if location is not None else {}
    return HttpResponse(status=status, headers=headers, content=b"", url=url)


@pytest.mark.parametrize(
    ("method", "status", "location", "keep_query", "target"),
    [
        ("GET", 301, "https://h/b", False, "https://h/b"),
        ("GET", 301, "https://h/b", True, "https://h/b?x=1"),
        ("GET", 301, "https://h/b?y=2", True, "https://h/b?y=2"),
        ("GET", 302, "../c#part", False, "https://h/c"),
        ("GET", 308, "//other/d", False, "https://other/d"),
        ("GET", 304, "https://h/b", False, None),
        ("GET", 301, None, False, None),
        ("POST", 307, "https://h/b", False, "https://h/b"),
        ("POST", 307, "https://other/b", False, None),
        ("POST", 301, "https://h/b", False, None),
        ("POST", 303, "https://h/b", False, None),
    ],
)
def test_redirect_is_followed_by_rule(
    method: str, status: int, location: str | None, keep_query: bool, target: str | None
) -> None:
    assert redirect_target(method, "https://h/a?x=1", redirect(status, location), keep_query=keep_query) == target


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("http://h/b", "insecure-redirect"),
        ("https://user:secret@h/b", "redirect"),
        ("file:///etc/passwd", "redirect"),
        ("https://[broken/", "redirect"),
    ],
)
def test_redirect_to_a_worse_place_is_refused(location: str, kind: str) -> None:
    with pytest.raises(NetworkError) as caught:
        redirect_target("GET", "https://h/a", redirect(301, location), keep_query=False)

    assert (caught.value.details["kind"], caught.value.retryable) == (kind, False)
    assert "secret" not in str(caught.value.to_dict())


def test_gzip_body_is_decoded_with_all_of_its_members() -> None:
    raw = gzip.compress(b"one ") + gzip.compress(b"two")

    assert decoded(raw, "gzip", max_bytes=7, host="h") == b"one two"


def test_gzip_bomb_is_stopped_at_the_cap() -> None:
    bomb = gzip.compress(bytes(10_000_000))

    with pytest.raises(OutputTooLargeError):
        decoded(bomb, "gzip", max_bytes=1_000, host="h")
    with pytest.raises(OutputTooLargeError):
        decoded(b"12345", "", max_bytes=4, host="h")


@pytest.mark.parametrize(
    ("raw", "encoding", "kind"),
    [
        (gzip.compress(b"whole", mtime=0)[:-4], "gzip", "cut"),
        (b"plain", "gzip", "encoding"),
        (b"x", "br", "encoding"),
    ],
)
def test_body_that_cannot_be_decoded_is_a_network_fault(raw: bytes, encoding: str, kind: str) -> None:
    with pytest.raises(NetworkError) as caught:
        decoded(raw, encoding, max_bytes=100, host="h")

    assert caught.value.details == {"host": "h", "kind": kind}


def test_credential_does_not_show_itself() -> None:
    bearer = Credential.bearer("ghp_secret", "https://api.example/v3")
    basic = Credential.basic("octo", "hunter2", "https://npm.registry.example/")

    assert bearer.value == "Bearer ghp_secret"
    assert basic.value == "Basic b2N0bzpodW50ZXIy"
    assert "ghp_secret" not in repr(bearer)
    assert "b2N0" not in repr(basic)
    assert bearer.fingerprint() != basic.fingerprint()
    assert urlsplit("https://npm.registry.example/").hostname == basic.origin[1]
