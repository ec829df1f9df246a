"""Free ports and claimed subnets, across processes."""

from __future__ import annotations

import socket
import subprocess
import sys
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from gpuworkshop.errors import PortInUse
from gpuworkshop.processes import ports
from gpuworkshop.processes.ports import Subnet, free_port, steady_port

CLAIM = """
from gpuworkshop.processes.ports import claim_subnet
print(claim_subnet().network, flush=True)
input()
"""


def claimer() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CLAIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def claimed(process: subprocess.Popen[str]) -> IPv4Network:
    assert process.stdout
    return IPv4Network(process.stdout.readline().strip())


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", free_port("127.0.0.1"))):
        pass


def test_no_port_at_an_address_of_another_machine() -> None:
    with pytest.raises(PortInUse, match=r"192\.0\.2\.1"):
        free_port("192.0.2.1")


def test_two_claims_do_not_meet_and_one_ends_with_its_process() -> None:
    with claimer() as one, claimer() as two:
        first, second = claimed(one), claimed(two)
        assert first != second
        one.kill()
        one.wait()
        with claimer() as three:
            third = claimed(three)
            three.communicate("\n")
        two.communicate("\n")
    assert first.prefixlen == 16
    assert first.subnet_of(IPv4Network("127.0.0.0/8"))
    assert third != second


def test_addresses_of_a_subnet() -> None:
    subnet = Subnet(IPv4Network("127.20.0.0/16"))
    assert subnet.address(1, 7) == IPv4Address("127.20.1.7")


def test_all_subnets_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIRST", 254)
    network = IPv4Network("127.254.0.0/16")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((str(network[-2]), ports.CLAIM_PORT))
        with pytest.raises(PortInUse, match=r"127\.254\.0\.0/16(.|\n)*stop\.sh"):
            ports.claim_subnet()


def test_a_steady_port_is_kept_while_it_is_free(tmp_path: Path) -> None:
    note = tmp_path / "new folder" / "port"
    first = steady_port(note)
    assert steady_port(note) == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        taken.listen()
        other = steady_port(note)
        assert other != first
    assert steady_port(note) == other


@pytest.mark.parametrize("text", [b"", b"no port", b"99999999", b"-1", b"\xff\xfe"])
def test_a_damaged_note_of_a_port_is_no_matter(tmp_path: Path, text: bytes) -> None:
    note = tmp_path / "port"
    note.write_bytes(text)
    assert 0 < steady_port(note) < 65536
