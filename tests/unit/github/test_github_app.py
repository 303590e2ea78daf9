import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dependfix_core.errors import AuthenticationError, NetworkError
from dependfix_core.github.app import AppToken
from dependfix_mcp.demo.loopback_github import LoopbackGitHub, Received, Reply

pytestmark = pytest.mark.anyio

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


class Apps:
    """The end points of GitHub Apps: each token is another one."""

    def __init__(self, *, installations: int = 1, lives_s: int = 3600) -> None:
        self.installations = installations
        self.lives_s = lives_s
        self.made: list[str] = []

    def __call__(self, request: Received) -> Reply | None:
        if request.path == "/app/installations":
            return Reply(body=[{"id": number + 7} for number in range(self.installations)])
        if not request.path.endswith("/access_tokens"):
            return None
        bearer = request.headers["authorization"].partition(" ")[2]
        claims = jwt.decode(bearer, KEY.public_key(), algorithms=["RS256"], options={"verify_iss": False})
        assert str(claims["iss"]) == "42"
        self.made.append(request.path)
        ends = datetime.now(UTC) + timedelta(seconds=self.lives_s)
        body = {"token": f"ghs_token{len(self.made)}", "expires_at": f"{ends:%Y-%m-%dT%H:%M:%SZ}", "permissions": {}}
        return Reply(status=201, body=body)


@pytest.fixture
def github() -> Iterator[LoopbackGitHub]:
    with LoopbackGitHub() as service:
        yield service


async def test_an_installations_token_is_made_once_while_it_lives(github: LoopbackGitHub) -> None:
    apps = Apps()
    github.responders.append(apps)
    source = AppToken("42", PEM, installation_id="9", api_url=github.url)

    assert [await source.token(), await source.token()] == ["ghs_token1", "ghs_token1"]
    assert apps.made == ["/app/installations/9/access_tokens"]
    assert PEM not in repr(source)


async def test_a_token_that_is_about_to_end_is_renewed(github: LoopbackGitHub) -> None:
    github.responders.append(Apps(lives_s=60))
    source = AppToken("42", PEM, installation_id="9", api_url=github.url)

    assert [await source.token(), await source.token()] == ["ghs_token1", "ghs_token2"]


async def test_the_only_installation_is_taken_and_several_have_to_be_told_apart(github: LoopbackGitHub) -> None:
    apps = Apps()
    github.responders.append(apps)
    await AppToken("42", PEM, api_url=github.url).token()
    apps.installations = 2

    with pytest.raises(AuthenticationError) as error:
        await AppToken("42", PEM, api_url=github.url).token()

    assert apps.made == ["/app/installations/7/access_tokens"]
    assert "DEPENDFIX_APP_INSTALLATION_ID" in error.value.hint


async def test_a_refused_app_and_a_broken_key_are_authentication_errors_without_the_key(github: LoopbackGitHub) -> None:
    github.script("/app/installations/9/access_tokens", Reply(status=401, body={"message": "no"}), method="POST")
    for key in (PEM, "not a key"):
        with pytest.raises(AuthenticationError) as error:
            await AppToken("42", key, installation_id="9", api_url=github.url).token()
        assert key not in json.dumps(error.value.to_dict())


async def test_a_github_that_is_down_is_a_network_error() -> None:
    with pytest.raises(NetworkError):
        await AppToken("42", PEM, installation_id="9", api_url="http://127.0.0.1:9").token()
