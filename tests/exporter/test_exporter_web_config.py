"""TLS and passwords: real clients against the real process, and files that are wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

import bcrypt
import httpx
import pytest
import trustme
import yaml
from exporter_process import serving

from gpuworkshop.errors import WebConfigError
from gpuworkshop.exporter import web_config

HASH = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    path = tmp_path / "gpus.yaml"
    path.write_text("- {index: 0, model: H200}\n", encoding="utf-8")
    return path


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.crt")
    issue(made, tmp_path)
    return made


def issue(authority: trustme.CA, folder: Path) -> None:
    cert = authority.issue_cert("127.0.0.1", "localhost")
    cert.private_key_pem.write_to_path(folder / "tls.key")
    (folder / "tls.crt").write_bytes(b"".join(each.bytes() for each in cert.cert_chain_pems))


def written(folder: Path, **sections: object) -> Path:
    path = folder / "web.yaml"
    path.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return path


TLS = {"cert_file": "tls.crt", "key_file": "tls.key"}


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_tls_and_a_password(gpus: Path, authority: trustme.CA) -> None:
    web = written(gpus.parent, tls_server_config=TLS, basic_auth_users={"prometheus": HASH})
    with serving(gpus, "--web-config-file", str(web)) as exporter:
        assert exporter.url.startswith("https://")
        with httpx.Client(verify=client_context(authority)) as client:
            for _ in range(2):
                answer = client.get(exporter.url + "/metrics", auth=("prometheus", "s3cret"))
                assert answer.status_code == 200
                assert "DCGM_FI_DEV_GPU_UTIL" in answer.text
            for wrong in (None, ("prometheus", "secret"), ("nobody", "s3cret"), ("prometheus", "x" * 100)):
                answer = client.get(exporter.url + "/metrics", auth=wrong)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Basic"
                assert "DCGM" not in answer.text
            broken = client.get(exporter.url + "/metrics", headers={"Authorization": "Basic %%%"})
            assert broken.status_code == 401
        with pytest.raises(httpx.HTTPError):
            httpx.get(exporter.url.replace("https", "http") + "/metrics")


def test_a_client_needs_a_certificate_if_the_file_says_so(gpus: Path, authority: trustme.CA) -> None:
    tls = {**TLS, "client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": "ca.crt"}
    with serving(gpus, "--web-config-file", str(written(gpus.parent, tls_server_config=tls))) as exporter:
        with pytest.raises(httpx.HTTPError):
            httpx.get(exporter.url + "/metrics", verify=client_context(authority))
        known = client_context(authority)
        authority.issue_cert("client@example.org").configure_cert(known)
        assert httpx.get(exporter.url + "/metrics", verify=known).status_code == 200


def test_a_new_certificate_is_used_from_the_next_connection_on(gpus: Path, authority: trustme.CA) -> None:
    web = written(gpus.parent, tls_server_config=TLS)
    with serving(gpus, "--web-config-file", str(web)) as exporter:
        address = httpx.URL(exporter.url)

        def shown() -> str:
            return ssl.get_server_certificate((address.host, address.port or 0))

        first = shown()
        assert shown() == first
        (gpus.parent / "tls.crt").write_text("half a certificate", encoding="utf-8")
        assert shown() == first
        issue(authority, gpus.parent)
        assert shown() != first
        assert httpx.get(exporter.url + "/metrics", verify=client_context(authority)).status_code == 200


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("- a", "a mapping"),
        ("tls_server_config: [", "cannot be read"),
        ("http_server_config: {http2: true}", "'http_server_config' is not served here"),
        ("tls_server_config: {cert_file: tls.crt}", "key_file is missing"),
        ("tls_server_config: {cert_file: tls.crt, key_file: none.key}", "none.key"),
        ("tls_server_config: {cert_file: tls.key, key_file: tls.key}", "tls_server_config: "),
        ("tls_server_config: {cert_file: tls.crt, key_file: tls.key, min_version: TLS10}", "min_version is"),
        (
            "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
            "  client_auth_type: RequireAndVerifyClientCert",
            "wants a client_ca_file",
        ),
        ("tls_server_config: {cert_file: tls.crt, key_file: tls.key, client_auth_type: Some}", "'Some'"),
        ("basic_auth_users: {a: s3cret}", "value of a is no bcrypt hash"),
        ("basic_auth_users: {a: $2y$10$x}", "no whole bcrypt hash"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, authority: trustme.CA, text: str, seen: str) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WebConfigError) as caught:
        web_config.read(path)
    assert seen in caught.value.seen


def test_an_empty_file_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text("", encoding="utf-8")
    found = web_config.read(path)
    assert (found.tls, found.users) == (None, None)
