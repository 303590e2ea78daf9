"""Which addresses a request may reach when its address came from somebody else's file."""

import ipaddress
from typing import Final

from dependfix_core.errors import NetworkError

_LOCAL_NAMES: Final = ("localhost", "localdomain", "local", "internal", "home.arpa", "lan")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def is_public_address(text: str) -> bool:
    """Whether an IP address belongs to the public internet; False for what is no address.

    Loopback, private, link-local, shared, multicast and reserved ranges are
    not public, neither in IPv4 nor wrapped into IPv6.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(str(inner))
    return address.is_global and not address.is_multicast


def refuse_local_host(host: str) -> None:
    """Stop before a name that stands for this machine or the local network.

    Raises:
        NetworkError: `blocked-address`.
    """
    name = host.lower().strip("[]").rstrip(".")
    if _is_ip_literal(name):
        if not is_public_address(name):
            raise blocked(host)
    elif "." not in name or any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES):
        raise blocked(host)


def _is_ip_literal(name: str) -> bool:
    if ":" in name:
        return True
    # Resolvers also take 127.1, 0x7f.1 and 2130706433 for addresses.
    last = name.rpartition(".")[2]
    return last.isdigit() or last.startswith("0x")


def blocked(host: str) -> NetworkError:
    """The error for a host that only the user's own configuration may name."""
    return NetworkError(
        f"{host} is not on the public internet, and only a file of the repository names it",
        hint="Name the address in a setting or in your own client configuration if it is meant to be used.",
        retryable=False,
        details={"host": host, "kind": "blocked-address"},
    )
