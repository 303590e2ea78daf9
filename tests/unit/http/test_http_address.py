import pytest

from dependfix_core.errors import NetworkError
from dependfix_core.http import is_public_address
from dependfix_core.http.address import refuse_local_host


@pytest.mark.parametrize(
    "address", ["140.82.121.6", "2606:50c0:8000::154", "::ffff:140.82.121.6", "64:ff9b::8c52:7906"]
)
def test_public_addresses(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "ff02::1",
        "not an address",
        "",
    ],
)
def test_addresses_of_this_machine_and_network_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "db.localhost",
        "metadata.google.internal",
        "nas.local",
        "registry",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "169.254.169.254",
    ],
)
def test_local_names_are_refused_before_anything_is_sent(host: str) -> None:
    with pytest.raises(NetworkError) as caught:
        refuse_local_host(host)

    assert (caught.value.details["kind"], caught.value.retryable) == ("blocked-address", False)


@pytest.mark.parametrize("host", ["npm.registry.example", "140.82.121.6", "localhost.example", "1.example"])
def test_other_names_may_be_asked(host: str) -> None:
    refuse_local_host(host)
