import pickle

import pytest

from dependfix_core.connection import FoundToken, find_token
from dependfix_core.errors import AuthenticationError, ConfigurationError
from dependfix_core.github import ImportedToken, StaticToken, TokenKind, token_kind

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("ghp_abc", TokenKind.CLASSIC),
        ("0123456789abcdef0123456789abcdef01234567", TokenKind.CLASSIC),
        ("github_pat_abc", TokenKind.FINE_GRAINED),
        ("gho_abc", TokenKind.OAUTH),
        ("ghu_abc", TokenKind.APP_USER),
        ("ghs_abc", TokenKind.INSTALLATION),
        ("something", TokenKind.UNKNOWN),
        ("", TokenKind.UNKNOWN),
    ],
)
def test_kind_is_told_by_the_prefix(token: str, kind: TokenKind) -> None:
    assert token_kind(token) is kind


@pytest.mark.parametrize("written", ["ghp_abc", " ghp_abc\n", '"ghp_abc"', "'ghp_abc'"])
async def test_blanks_and_quotes_are_dropped(written: str) -> None:
    assert await StaticToken.of(written).token() == "ghp_abc"
    assert await StaticToken(find_token({"GITHUB_TOKEN": written})).token() == "ghp_abc"


@pytest.mark.parametrize("written", ["ghp_a\nbc", "ghp_a bc", "ghp_ä", "ghp\x00"])
def test_token_that_would_break_the_header_is_refused_unseen(written: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        StaticToken.of(written)

    assert written not in str(caught.value.to_dict())


@pytest.mark.parametrize("source", [StaticToken(), StaticToken.of(None), StaticToken.of(" "), StaticToken.of('""')])
async def test_no_token_is_the_documented_error(source: StaticToken) -> None:
    with pytest.raises(AuthenticationError) as caught:
        await source.token()

    assert (caught.value.message, caught.value.code) == ("GITHUB_TOKEN not set", "auth_missing")


async def test_reason_why_there_is_no_token_is_told() -> None:
    with pytest.raises(AuthenticationError) as caught:
        await StaticToken(FoundToken(problem="GITHUB_TOKEN still reads like a reference.")).token()

    assert "GITHUB_TOKEN still reads like a reference." in caught.value.hint


def test_static_token_neither_shows_itself_nor_leaves_the_process() -> None:
    source = StaticToken.of("ghp_secret")

    assert "ghp_secret" not in repr(source)
    with pytest.raises(ConfigurationError):
        pickle.dumps(source)


async def test_imported_token_travels_by_name() -> None:
    for name, token in (("a_token", "ghs_from_a_callable"), ("a_slow_token", "ghs_from_a_coroutine")):
        source = ImportedToken("fakes.importable_tokens:" + name)
        again = pickle.loads(pickle.dumps(source))  # noqa: S301  # our own bytes
        assert await again.token() == token


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("fakes.importable_tokens:no_token", AuthenticationError),
        ("fakes.importable_tokens:missing", ConfigurationError),
        ("no_such_module:token", ConfigurationError),
        ("fakes.importable_tokens", ConfigurationError),
        ("", ConfigurationError),
    ],
)
async def test_reference_to_nothing_is_an_error(reference: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await ImportedToken(reference).token()
