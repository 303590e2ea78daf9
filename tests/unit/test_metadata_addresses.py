from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dependfix_core.http import Credential, origin_of
from dependfix_core.metadata.addresses import RegistryAddress, RegistryAddresses, public_default
from dependfix_core.metadata.configuration import ClientConfiguration, read_client_configuration
from dependfix_core.model.records import RecordKey, Unavailability, Unavailable

TOKEN = "npm_planted0000000000000000000000000000"


def configuration(tmp_path: Path, /, environ: dict[str, str] | None = None, **files: str) -> ClientConfiguration:
    names = {"npmrc": ".npmrc", "yarnrc": ".yarnrc.yml", "pip": ".config/pip/pip.conf", "uv": ".config/uv/uv.toml"}
    for name, text in files.items():
        path = tmp_path / names.get(name, f".{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_client_configuration(tmp_path, environ or {})


def key(name: str = "left", registry: str = "", ecosystem: str = "npm") -> RecordKey:
    return RecordKey(ecosystem=ecosystem, name=name, registry=registry)


def chosen(addresses: RegistryAddresses, wanted: RecordKey) -> tuple[str, bool]:
    address = addresses.choose(wanted)
    assert isinstance(address, RegistryAddress), address
    return address.url, address.trusted


def test_the_setting_comes_first_then_the_user_then_the_project_then_the_public_default(tmp_path: Path) -> None:
    user = configuration(tmp_path, npmrc="registry=https://user.registry.example/npm/\n")
    hinted = key(registry="https://project.registry.example/npm/")

    assert chosen(RegistryAddresses({"npm": "https://set.registry.example/"}, user), hinted) == (
        "https://set.registry.example",
        True,
    )
    assert chosen(RegistryAddresses({}, user), hinted) == ("https://user.registry.example/npm", True)
    assert chosen(RegistryAddresses(), hinted) == ("https://project.registry.example/npm", False)
    assert chosen(RegistryAddresses(), key()) == (public_default("npm"), True)


def test_the_scope_of_a_name_has_its_own_registry(tmp_path: Path) -> None:
    user = configuration(
        tmp_path, npmrc="registry=https://user.registry.example\n@acme:registry=https://acme.registry.example\n"
    )

    assert chosen(RegistryAddresses({}, user), key("@acme/x"))[0] == "https://acme.registry.example"
    assert chosen(RegistryAddresses({}, user), key("@other/x"))[0] == "https://user.registry.example"


@pytest.mark.parametrize(
    "hint",
    [
        "http://plain.registry.example/npm",
        "https://127.0.0.1/npm",
        "https://localhost:4873",
        "https://10.0.0.7/npm",
        "https://169.254.169.254/latest",
        "https://[::1]/npm",
        "https://2130706433/npm",
        "https://registry.corp.internal",
        "https://intranet",
        "https://user:secret@project.registry.example",
        "file:///etc/passwd",
        "https://${HOST}/npm",
    ],
)
def test_a_project_cannot_name_a_local_plain_or_odd_address(hint: str) -> None:
    answer = RegistryAddresses().choose(key(registry=hint))

    assert isinstance(answer, Unavailable)
    assert answer.why is Unavailability.NOT_ALLOWED
    assert "secret" not in answer.detail


def test_a_local_address_is_fine_when_the_user_names_its_host_too(tmp_path: Path) -> None:
    user = configuration(tmp_path, npmrc=f"//127.0.0.1:4873/:_authToken={TOKEN}\n")

    assert chosen(RegistryAddresses({}, user), key(registry="http://127.0.0.1:4873/npm")) == (
        "http://127.0.0.1:4873/npm",
        True,
    )


def test_a_private_package_is_never_asked_for_in_public(tmp_path: Path) -> None:
    public = public_default("npm")
    user = configuration(tmp_path, npmrc=f"registry={public}/\n")

    refused = RegistryAddresses().choose(key(registry="https://10.1.2.3/npm"))
    own = chosen(RegistryAddresses({}, user), key(registry="https://private.registry.example"))

    assert isinstance(refused, Unavailable)
    assert own == ("https://private.registry.example", False)


def test_credentials_go_to_their_own_host_and_path_only(tmp_path: Path) -> None:
    user = configuration(
        tmp_path,
        {"NPM_TOKEN": TOKEN},
        npmrc=(
            "registry=https://user.registry.example/npm\n"
            "//user.registry.example/npm/:_authToken=${NPM_TOKEN}\n"
            "//other.registry.example/:_auth=dTpw\n"
            "//third.registry.example/:username=u\n//third.registry.example/:_password=cA==\n"
        ),
    )

    def value(url: str) -> str | None:
        found = user.credential_for(url)
        return found.value if found else None

    assert value("https://user.registry.example/npm/left") == f"Bearer {TOKEN}"
    assert value("https://user.registry.example/elsewhere") is None
    assert value("https://other.registry.example/x") == "Basic dTpw"
    assert value("https://third.registry.example/x") == "Basic dTpw"
    assert value("https://evil.example/user.registry.example/npm/") is None
    assert TOKEN not in repr(user)
    assert user.credential_for("https://user.registry.example/npm/left") == Credential(
        origin=origin_of("https://user.registry.example"), value=f"Bearer {TOKEN}"
    )


def test_an_untrusted_address_gets_no_credential(tmp_path: Path) -> None:
    user = configuration(tmp_path, npmrc=f"//user.registry.example/:_authToken={TOKEN}\n")

    address = RegistryAddresses({}, user).choose(key(registry="https://project.registry.example"))

    assert isinstance(address, RegistryAddress)
    assert address.credential is None


def test_the_python_index_comes_from_variables_pip_and_uv(tmp_path: Path) -> None:
    files = {
        "pip": "[global]\nindex-url = https://u:p@pip.registry.example/simple/\n",
        "uv": '[[index]]\nurl = "https://uv.registry.example/simple"\ndefault = true\n',
    }
    user = configuration(tmp_path, {}, **files)
    variable = configuration(tmp_path, {"PIP_INDEX_URL": "https://var.registry.example/simple"}, **files)
    wanted = key("demo", ecosystem="pip")

    assert chosen(RegistryAddresses({}, user), wanted) == ("https://pip.registry.example/simple", True)
    assert chosen(RegistryAddresses({}, variable), wanted)[0] == "https://var.registry.example/simple"
    address = RegistryAddresses({}, user).choose(wanted)
    assert isinstance(address, RegistryAddress)
    assert address.credential == Credential(origin=origin_of("https://pip.registry.example"), value="Basic dTpw")


def test_yarns_user_configuration_is_read(tmp_path: Path) -> None:
    user = configuration(
        tmp_path,
        yarnrc=(
            'npmRegistryServer: "https://yarn.registry.example"\nnpmAuthToken: tok-1234\n'
            "npmScopes:\n  acme:\n    npmRegistryServer: https://acme.registry.example\n    npmAuthIdent: u:p\n"
        ),
    )

    assert chosen(RegistryAddresses({}, user), key("@acme/x"))[0] == "https://acme.registry.example"
    found = user.credential_for("https://acme.registry.example/x")
    assert found is not None
    assert found.value == "Basic dTpw"


@pytest.mark.parametrize(
    "text", ["registry", "=x", "[section]\n", "\x00\xff", "//host/:_password=%%%\n//host/:username=u"]
)
def test_a_damaged_configuration_names_nothing(tmp_path: Path, text: str) -> None:
    assert configuration(tmp_path, npmrc=text, pip=text, uv=text, yarnrc=text) == ClientConfiguration()


def test_an_ecosystem_without_a_known_default_names_the_setting() -> None:
    answer = RegistryAddresses().choose(key("x", ecosystem="erlang"))

    assert isinstance(answer, Unavailable)
    assert answer.why is Unavailability.NO_REGISTRY
    assert "--registry erlang=" in answer.detail


@pytest.mark.parametrize("ecosystem", ["npm", "pip", "maven", "rubygems", "go"])
def test_public_defaults_are_derived_from_the_package_url_library(ecosystem: str) -> None:
    url = public_default(ecosystem)

    assert url is not None
    assert urlsplit(url).scheme == "https"
    assert not url.endswith("/")
