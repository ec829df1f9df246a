"""The lab's authority, the API server's certificate, and the kubeconfig that trusts them."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from gpuworkshop.lab.api import certificates, kubeconfig
from gpuworkshop.lab.api.certificates import Pki

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FILES = ("ca.key", "ca.crt", "server.key", "server.crt")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def server_certificate(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "server.crt").read_bytes())


def test_they_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    pki = certificates.ensure(folder, NOW)
    before = contents(folder)
    assert certificates.ensure(folder, NOW + timedelta(days=200)) == pki
    assert contents(folder) == before
    assert pki.ca_pem.encode() == before["ca.crt"]
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in FILES} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_they_say(tmp_path: Path) -> None:
    pki = certificates.ensure(tmp_path, NOW)
    ca, server = x509.load_pem_x509_certificate(pki.ca_pem.encode()), server_certificate(tmp_path)
    server.verify_directly_issued_by(ca)
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kubernetes", "kubernetes.default.svc"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    assert ipaddress.ip_address("127.0.0.1") in names.get_values_for_type(x509.IPAddress)


def test_they_are_made_again_in_good_time(tmp_path: Path) -> None:
    certificates.ensure(tmp_path, NOW)
    before = contents(tmp_path)
    certificates.ensure(tmp_path, NOW + timedelta(days=340))
    after = contents(tmp_path)
    assert after["server.crt"] != before["server.crt"]
    assert (after["ca.crt"], after["server.key"]) == (before["ca.crt"], before["server.key"])
    certificates.ensure(tmp_path, NOW + timedelta(days=3640))
    assert contents(tmp_path)["ca.crt"] != before["ca.crt"]


def test_a_clock_that_was_wrong(tmp_path: Path) -> None:
    certificates.ensure(tmp_path, NOW)
    pki = certificates.ensure(tmp_path, NOW - timedelta(days=300))
    assert server_certificate(tmp_path).not_valid_before_utc < NOW - timedelta(days=300)
    assert x509.load_pem_x509_certificate(pki.ca_pem.encode()).not_valid_before_utc < NOW


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "another"])
def test_what_is_damaged_is_made_anew(tmp_path: Path, name: str, damage: str) -> None:
    certificates.ensure(tmp_path / "a", NOW)
    path = tmp_path / "a" / name
    if damage == "gone":
        path.unlink()
    elif damage == "another":
        certificates.ensure(tmp_path / "b", NOW)
        path.write_bytes((tmp_path / "b" / name).read_bytes())
    else:
        path.write_bytes(path.read_bytes()[: 0 if damage == "empty" else 60])
    handshake(certificates.ensure(tmp_path / "a", NOW), None)


def handshake(pki: Pki, context: ssl.SSLContext | None, host: str = "localhost") -> None:
    """Whether TLS works between the server's context and a client's."""
    if context is None:
        context = ssl.create_default_context(cadata=pki.ca_pem)
        # The certificates of these tests are from another time; their chain is what counts here.
        context.verify_flags |= ssl.VerifyFlags(0x200000)  # X509_V_FLAG_NO_CHECK_TIME
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname=host)
    server = pki.server_context().wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
def test_clients_that_are_strict_accept_them(tmp_path: Path, host: str) -> None:
    pki = certificates.ensure(tmp_path)
    context = ssl.create_default_context(cadata=pki.ca_pem)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    handshake(pki, context, host)


def test_other_names_and_other_authorities_are_refused(tmp_path: Path) -> None:
    pki, other = certificates.ensure(tmp_path / "a"), certificates.ensure(tmp_path / "b")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(pki, ssl.create_default_context(cadata=pki.ca_pem), "example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(pki, ssl.create_default_context(cadata=other.ca_pem))


def test_it_serves(tmp_path: Path) -> None:
    pki = certificates.ensure(tmp_path)

    async def ask() -> bytes:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=pki.server_context())
        async with server:
            port = server.sockets[0].getsockname()[1]
            context = ssl.create_default_context(cadata=pki.ca_pem)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return line

    assert asyncio.run(ask()) == b"hello\n"


def test_a_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "new" / "kubeconfig"
    kubeconfig.write(path, "https://127.0.0.1:6443", "PEM", "s3cret", "lab")
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == "lab"
    (cluster,), (user,), (context,) = found["clusters"], found["users"], found["contexts"]
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"PEM"
    assert user == {"name": "lab", "user": {"token": "s3cret"}}
    assert context["context"] == {"cluster": "lab", "user": "lab", "namespace": "default"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_of_a_learner(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    kubeconfig.write(path, "https://127.0.0.1:6443", "PEM", "t", "lab", context="ann", namespace="team: a")
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == "ann"
    assert found["contexts"][0]["context"] == {"cluster": "lab", "user": "ann", "namespace": "team: a"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubeconfig"]
