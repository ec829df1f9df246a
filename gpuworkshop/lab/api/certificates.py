"""The lab's own certificate authority, and the API server's certificate: made once, and again in good time.

Whatever is missing, damaged, about to expire, or does not fit its key or its issuer is made anew. A file is
replaced as a whole, so a reader never sees half of one.
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpuworkshop.lab.api.keys import key_at
from gpuworkshop.processes.state import replace_file

CA_LASTS, SERVER_LASTS = timedelta(days=3650), timedelta(days=365)
RENEWED_BEFORE = timedelta(days=30)
CLOCK_SKEW = timedelta(minutes=5)
NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
ADDRESSES = ("127.0.0.1", "::1", "10.100.0.1")


@dataclass(frozen=True)
class Pki:
    """The keys and certificates in a folder."""

    folder: Path
    ca_pem: str

    def server_context(self) -> ssl.SSLContext:
        """TLS for the API server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        return context


def ensure(folder: Path, now: datetime | None = None) -> Pki:
    """The keys and certificates in `folder`, made where they are missing or no good at `now`."""
    now = now or datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_key, server_key = key_at(folder / "ca.key"), key_at(folder / "server.key")
    ca = _read(folder / "ca.crt")
    if ca is None or not _is_good(ca, ca_key, ca, now):
        ca = _authority(ca_key, now)
        _write(folder / "ca.crt", ca)
    server = _read(folder / "server.crt")
    if server is None or not _is_good(server, server_key, ca, now):
        _write(folder / "server.crt", _server(server_key, ca, ca_key, now))
    return Pki(folder, ca.public_bytes(Encoding.PEM).decode())


def _is_good(
    certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, issuer: x509.Certificate, now: datetime
) -> bool:
    """Whether it belongs to `key`, comes from `issuer`, and lasts long enough."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    lasts = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEWED_BEFORE
    return lasts and certificate.public_key() == key.public_key()


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = _name("gpuworkshop-lab")
    return (
        _builder(name, name, key, now, CA_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )


def _server(
    key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.Certificate:
    names = [x509.DNSName(name) for name in NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _builder(_name("kube-apiserver"), ca.subject, key, now, SERVER_LASTS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(ca_key, SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _read(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, certificate: x509.Certificate) -> None:
    replace_file(path, certificate.public_bytes(Encoding.PEM).decode())
