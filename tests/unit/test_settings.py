from pathlib import Path

import pytest

from dependfix_core.connection import find_token, graphql_url, normalise_api_url, web_host
from dependfix_core.errors import AuthenticationError, ConfigurationError
from dependfix_mcp.settings import SETTINGS, Settings, SettingsError, load_settings


def faults(argv: list[str], environ: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings(argv, environ)
    return [line.split(":")[0] for line in caught.value.faults]


def test_nothing_given_is_the_documented_default() -> None:
    assert load_settings([], {}) == Settings()


def test_flag_wins_over_environment() -> None:
    environ = {
        "DEPENDFIX_MAX_WAIT": "5",
        "DEPENDFIX_TOOLSETS": "suspec",
        "DEPENDFIX_READ_ONLY": "yes",
        "DEPENDFIX_REPORT_DIR": "a",
        "DEPENDFIX_MCP_REPORT_DIR": "b",
        "DEPENDFIX_ROOTS": "/x:/y",
        "DEPENDFIX_VERIFY": "npm test\nmake check",
        "DEPENDFIX_REGISTRY_NPM": "https://npm.registry.example/a",
        "DEPENDFIX_REGISTRY_GO_SUM": "https://sum.registry.example",
    }

    assert load_settings([], environ) == Settings(
        max_wait_s=5,
        toolsets=("suspec",),
        read_only=True,
        report_dir=Path("a"),
        roots=(Path("/x"), Path("/y")),
        verify=("npm test", "make check"),
        registries={"npm": "https://npm.registry.example/a", "go-sum": "https://sum.registry.example"},
    )
    assert load_settings(
        [
            "--max-wait=7",
            "--toolsets",
            "sudocode,dependfix",
            "--report-dir",
            "c",
            "--root",
            "/z",
            "--verify",
            "make",
            "--registry",
            "npm=https://npm.registry.example/b",
        ],
        environ,
    ) == Settings(
        max_wait_s=7,
        toolsets=("dependfix", "sudocode"),
        read_only=True,
        report_dir=Path("c"),
        roots=(Path("/z"),),
        verify=("make",),
        registries={"npm": "https://npm.registry.example/b", "go-sum": "https://sum.registry.example"},
    )


def test_all_faults_are_reported_at_once() -> None:
    assert faults(
        [
            "--port",
            "99999",
            "--relock=never",
            "--no-such-flag",
            "--toolsets",
            "dependfix,other",
            "--registry",
            "npm=ftp://npm.registry.example",
            "--registry",
            "deb=https://deb.registry.example",
            "--verify",
            "echo 'x",
            "--host",
            "192.0.2.1",
            "--transport",
            "streamable-http",
            "--repos",
            "octo",
            "--workdir",
        ],
        {
            "DEPENDFIX_READ_ONLY": "maybe",
            "DEPENDFIX_APP_ID": "12",
            "DEPENDFIX_CACHE_DIR": "${CACHE}/x",
            "GITHUB_API_URL": "http://ghe.example",
            "DEPENDFIX_COOLDOWN_DAYS": "-1",
        },
    ) == [
        "--no-such-flag",
        "GITHUB_API_URL",
        "--host",
        "--host",
        "DEPENDFIX_APP_ID",
        "--registry",
        "--registry",
        "DEPENDFIX_CACHE_DIR",
        "--toolsets",
        "DEPENDFIX_READ_ONLY",
        "--workdir",
        "--repos",
        "--relock",
        "--verify",
        "DEPENDFIX_COOLDOWN_DAYS",
        "--port",
    ]


def test_no_secret_stands_in_a_fault_or_a_repr() -> None:
    secret = "planted-secret"
    environ = {"DEPENDFIX_APP_ID": "1", "DEPENDFIX_APP_PRIVATE_KEY": secret, "GITHUB_TOKEN": secret}

    with pytest.raises(SettingsError) as caught:
        load_settings(["--registry", f"npm=https://user:{secret}@npm.registry.example"], environ)

    assert secret not in str(caught.value)
    assert secret not in repr(load_settings([], {"GITHUB_TOKEN": secret, "DEPENDFIX_HTTP_TOKEN": secret}))


def test_private_key_is_read_from_its_file_or_with_escaped_line_breaks(tmp_path: Path) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    file = tmp_path / "key.pem"
    file.write_text(pem, encoding="utf-8")

    from_file = load_settings([], {"DEPENDFIX_APP_ID": "1", "DEPENDFIX_APP_PRIVATE_KEY_FILE": str(file)})
    escaped = load_settings(
        [], {"DEPENDFIX_APP_ID": "1", "DEPENDFIX_APP_PRIVATE_KEY": pem.strip().replace("\n", "\\n")}
    )

    assert (from_file.app_private_key, escaped.app_private_key) == (pem, pem)
    assert faults([], {"DEPENDFIX_APP_ID": "1", "DEPENDFIX_APP_PRIVATE_KEY_FILE": str(tmp_path / "none")}) == [
        "DEPENDFIX_APP_PRIVATE_KEY_FILE"
    ]


def test_user_folders_need_a_home() -> None:
    at_home = load_settings([], {"HOME": "/home/u", "XDG_STATE_HOME": "/s"})

    assert (at_home.cache_dir, at_home.state_dir) == (Path("/home/u/.cache/dependfix-mcp"), Path("/s/dependfix-mcp"))
    assert load_settings(["--cache-dir", "~/c"], {"HOME": "/home/u"}).cache_dir == Path("/home/u/c")
    assert faults(["--cache-dir", "~/c"], {}) == ["--cache-dir"]


@pytest.mark.parametrize(
    ("environ", "api_url", "name", "has_problem"),
    [
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b", "DEPENDFIX_GITHUB_TOKEN": "c"}, "", "DEPENDFIX_GITHUB_TOKEN", False),
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, "", "GITHUB_TOKEN", False),
        ({"GH_TOKEN": "a\n"}, "", "GH_TOKEN", False),
        ({"GITHUB_TOKEN": "${GITHUB_TOKEN}", "GH_TOKEN": "a"}, "", "GH_TOKEN", True),
        ({"GITHUB_TOKEN": "$GITHUB_TOKEN"}, "", "", True),
        ({"GITHUB_TOKEN": "two words"}, "", "", True),
        ({"GITHUB_TOKEN": " "}, "", "", False),
        ({"GH_ENTERPRISE_TOKEN": "a"}, "", "", False),
        ({"GH_ENTERPRISE_TOKEN": "a"}, "https://ghe.example/api/v3", "GH_ENTERPRISE_TOKEN", False),
    ],
)
def test_token_is_found_by_precedence_and_an_unexpanded_one_is_named(
    environ: dict[str, str], api_url: str, name: str, has_problem: bool
) -> None:
    found = find_token(environ, api_url)

    assert (found.name, bool(found.problem)) == (name, has_problem)
    assert found.value == (environ[name].strip() if name else "")


def test_missing_token_has_the_documented_text() -> None:
    with pytest.raises(AuthenticationError) as caught:
        find_token({"GITHUB_TOKEN": "${GITHUB_TOKEN}"}).require()

    assert (caught.value.message, caught.value.code) == ("GITHUB_TOKEN not set", "auth_missing")
    assert "GITHUB_TOKEN still reads like a reference" in caught.value.hint


@pytest.mark.parametrize(
    ("written", "api", "web", "graphql"),
    [
        ("", "https://api.github.com", "github.com", "https://api.github.com/graphql"),
        ("github.com", "https://api.github.com", "github.com", "https://api.github.com/graphql"),
        ("https://github.com/", "https://api.github.com", "github.com", "https://api.github.com/graphql"),
        ("GHE.example", "https://ghe.example/api/v3", "ghe.example", "https://ghe.example/api/graphql"),
        ("https://ghe.example/api/v3/", "https://ghe.example/api/v3", "ghe.example", "https://ghe.example/api/graphql"),
        ("ghe.example:8443", "https://ghe.example:8443/api/v3", "ghe.example:8443", "https://ghe.example:8443/api/graphql"),
        ("octo.ghe.com", "https://api.octo.ghe.com", "octo.ghe.com", "https://api.octo.ghe.com/graphql"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000", "127.0.0.1:9000", "http://127.0.0.1:9000/graphql"),
        ("https://[::1]:9/api/v3", "https://[::1]:9/api/v3", "[::1]:9", "https://[::1]:9/api/graphql"),
    ],
)  # fmt: skip
def test_every_way_to_write_the_service_is_one_address(written: str, api: str, web: str, graphql: str) -> None:
    url = normalise_api_url(written)

    assert (url, web_host(url), graphql_url(url)) == (api, web, graphql)


@pytest.mark.parametrize(
    "written", ["http://ghe.example", "ftp://ghe.example", "https://u:p@ghe.example", "https://ghe.example?x", "a b", "https://[::1"]
)  # fmt: skip
def test_other_addresses_are_refused(written: str) -> None:
    with pytest.raises(ConfigurationError):
        normalise_api_url(written)


def test_every_setting_has_a_field_and_one_row() -> None:
    names = [setting.field for setting in SETTINGS]

    assert len(names) == len(set(names))
    by_convention = {"token_problem", "state_dir", "home", "project_dir", "ca_bundle", "environment"}
    assert set(names) == set(Settings.__dataclass_fields__) - by_convention
