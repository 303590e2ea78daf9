"""A private certificate authority for tests, made when it is needed."""

import datetime as dt
import hashlib
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class PrivateCa:
    """A CA file that nobody trusts by default, and a server context signed by it."""

    ca_file: Path
    server: ssl.SSLContext


def private_ca(folder: Path, *hosts: str) -> PrivateCa:
    """Certificates for 127.0.0.1, localhost and `hosts`, valid for a day."""
    now = dt.datetime.now(dt.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Octo Test CA")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )

    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    names = [x509.DNSName(host) for host in ("localhost", *hosts)]
    alternatives = x509.SubjectAlternativeName([*names, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = builder(name, key.public_key()).add_extension(alternatives, critical=False).sign(ca_key, hashes.SHA256())

    ca_file = folder / "ca.pem"
    ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    pair = folder / "server.pem"
    pair.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair)
    return PrivateCa(ca_file=ca_file, server=server)


def hashed_folder(ca_file: Path) -> Path:
    """A folder beside `ca_file` with that certificate, under the name by which OpenSSL looks its subject up."""
    subject = x509.load_pem_x509_certificate(ca_file.read_bytes()).subject
    # The canonical form is in small letters and has no outer sequence, whose header is two bytes here.
    small = x509.Name([x509.NameAttribute(part.oid, str(part.value).lower()) for part in subject])
    digest = hashlib.sha1(small.public_bytes()[2:], usedforsecurity=False).digest()
    folder = ca_file.parent / "hashed"
    folder.mkdir()
    (folder / f"{int.from_bytes(digest[:4], 'little'):08x}.0").write_bytes(ca_file.read_bytes())
    return folder
