"""The kubelet asked for pods: what is kept, for how long, and what is said when it does not answer."""

from __future__ import annotations

import logging
import socket as sockets
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from exporter_kubelet import FakeKubelet, answer, holding

from gpuworkshop.exporter import pods as module
from gpuworkshop.exporter.devices import Device, Family, Pod
from gpuworkshop.exporter.holders import Rules
from gpuworkshop.exporter.pods import KEPT_S, PodResources

DEVICE = Device(0, "GPU-1", "NVIDIA H200", "00000000:01:00.0", "580")
BURN = Pod("default", "burn", "default")


class Clock:
    """Monotonic seconds that pass when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """A mapping that is asked by hand, with a clock of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.clock = Clock()
        self.mapping = PodResources(socket, clock=self.clock)

    def ask(self) -> list[str]:
        """The names of those who hold the GPU after one more call."""
        self.mapping.ask()
        return [pod.pod for pod in self.mapping.pods(DEVICE)]

    def said(self, name: str, **labels: str) -> float | None:
        return said(self.mapping.families(), name, **labels)

    def errors(self) -> dict[str, float]:
        """The causes that have occurred."""
        family = next(each for each in self.mapping.families() if each.name.endswith("errors_total"))
        return {dict(pairs)["cause"]: count for pairs, count in family.samples if count}


def said(families: list[Family], name: str, **labels: str) -> float | None:
    for family in families:
        for pairs, value in family.samples:
            if family.name == f"gpuworkshop_pod_mapping_{name}" and dict(pairs) == labels:
                return value
    return None


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    found = Asked(tmp_path / "kubelet.sock")
    yield found
    found.mapping._drop()


def kubelet() -> FakeKubelet:
    return FakeKubelet([holding("GPU-1", pod="burn")])


def test_one_channel_is_kept_for_all_calls(asked: Asked) -> None:
    fake = kubelet()
    with fake.serving(asked.socket):
        assert [asked.ask() for _ in range(5)] == [["burn"]] * 5
        channel = asked.mapping._channel
        fake.pods = [holding("GPU-1", pod="next")]
        assert asked.ask() == ["next"]
        assert asked.mapping._channel is channel
    assert len(fake.peers) == 6
    assert asked.said("up") == 1
    assert asked.errors() == {}


def test_before_the_first_answer_nobody_is_known(asked: Asked) -> None:
    assert asked.mapping.pods(DEVICE) == ()
    assert asked.said("up") == 0
    assert asked.said("age_seconds") is None
    for cause in ("socket_missing", "unavailable", "deadline_exceeded"):
        assert asked.said("errors_total", cause=cause) == 0


def test_the_last_good_answer_counts_for_a_minute(asked: Asked) -> None:
    with kubelet().serving(asked.socket):
        asked.ask()
    for passed, known in ((0, ["burn"]), (59, ["burn"]), (KEPT_S, ["burn"]), (61, []), (600, [])):
        asked.clock.now = Clock.now + passed
        assert asked.ask() == known
        assert asked.said("up") == 0
        assert asked.said("age_seconds") == passed
    with kubelet().serving(asked.socket):
        assert asked.ask() == ["burn"]
    assert (asked.said("up"), asked.said("age_seconds")) == (1, 0)
    assert asked.errors() == {"socket_missing": 5}


def test_missing_socket_is_told_once_and_found_when_it_comes(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert [asked.ask() for _ in range(3)] == [[]] * 3
    with kubelet().serving(asked.socket):
        assert asked.ask() == ["burn"]
    assert [record.getMessage() for record in caplog.records] == [
        f"the kubelet does not say which pods hold the GPUs: there is no {asked.socket} (socket_missing)",
        f"the kubelet answers again at {asked.socket}",
    ]


def test_socket_that_nobody_serves_is_refused(asked: Asked) -> None:
    with sockets.socket(sockets.AF_UNIX) as left_behind:
        left_behind.bind(str(asked.socket))
    assert asked.ask() == []
    assert asked.errors() == {"unavailable": 1}


def test_hung_kubelet_costs_its_deadline_and_a_new_one_is_found(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, fresh = kubelet(), FakeKubelet([holding("GPU-1", pod="fresh")])
    with hung.serving(asked.socket):
        assert asked.ask() == ["burn"]
        monkeypatch.setattr(module, "DEADLINE_S", 0.2)
        hung.hung = True
        assert asked.ask() == ["burn"]
        assert asked.errors() == {"deadline_exceeded": 1}
        # The hung one still has its end of the old connection; a new one serves in its place.
        asked.socket.unlink()
        monkeypatch.undo()
        with fresh.serving(asked.socket):
            assert asked.ask() == ["fresh"]


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.PERMISSION_DENIED])
def test_kubelet_that_says_no_is_told_by_its_status(asked: Asked, code: grpc.StatusCode) -> None:
    fake = kubelet()
    with fake.serving(asked.socket):
        asked.ask()
        fake.status = code
        assert asked.ask() == ["burn"]
        assert asked.errors() == {code.name.lower(): 1}
        fake.status = None
        assert asked.ask() == ["burn"]
    assert asked.said("up") == 1


def test_server_that_speaks_no_grpc(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE_S", 0.5)
    with sockets.socket(sockets.AF_UNIX) as server:
        server.bind(str(asked.socket))
        server.listen()

        def chatter() -> None:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 10)
            connection.close()

        thread = threading.Thread(target=chatter)
        thread.start()
        assert asked.ask() == []
        thread.join(10)
    assert sum(asked.errors().values()) == 1


def test_answer_of_a_thousand_pods_and_over_four_mebibytes(asked: Asked) -> None:
    long = "x" * 5000
    pods = [holding("GPU-1", f"GPU-{number}-{long}", pod=f"burn-{number}") for number in range(1000)]
    assert answer(*pods).ByteSize() > 4 * 2**20
    with FakeKubelet(pods).serving(asked.socket):
        assert set(asked.ask()) == {f"burn-{number}" for number in range(1000)}


def test_driver_that_fails_on_a_mig_device_keeps_the_last_answer(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    def lost(uuid: str) -> tuple[str, int]:
        raise OSError(f"the driver is gone, and {uuid} with it")

    fake = kubelet()
    asked.mapping = PodResources(asked.socket, Rules(migs=lost), clock=asked.clock)
    with fake.serving(asked.socket):
        asked.ask()
        fake.pods = [holding("MIG-1")]
        assert asked.ask() == ["burn"]
    assert asked.errors() == {"unexpected": 1}
    assert "OSError: the driver is gone, and MIG-1 with it" in caplog.text


def test_unknown_mig_devices_are_told(asked: Asked) -> None:
    with FakeKubelet([holding("MIG-1", "MIG-2")]).serving(asked.socket):
        asked.ask()
    assert asked.said("unknown_mig_devices") == 2


def test_path_with_odd_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a %41 b?#"
    folder.mkdir()
    # gRPC's server reads its address as a URI too, so this one is bound under a plain name.
    with kubelet().serving(tmp_path / "plain.sock"):
        (folder / "s.sock").symlink_to(tmp_path / "plain.sock")
        asked = Asked(folder / "s.sock")
        assert asked.ask() == ["burn"]
        asked.mapping._drop()


def test_thread_asks_until_it_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.01)
    asked_again = threading.Semaphore(0)
    fake = kubelet()
    with fake.serving(tmp_path / "s"), PodResources(tmp_path / "s") as mapping:
        assert mapping.pods(DEVICE) == [BURN]  # at once: the first call was awaited
        ask = mapping.ask

        def ask_and_tell() -> None:
            ask()
            asked_again.release()

        monkeypatch.setattr(mapping, "ask", ask_and_tell)
        for _ in range(3):
            assert asked_again.acquire(timeout=10)
    assert not [thread for thread in threading.enumerate() if thread.name == "pod-resources"]


def test_leaving_ends_a_call_that_hangs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_WAIT_S", 0.1)
    fake = kubelet()
    fake.hung = True
    with fake.serving(tmp_path / "s"):
        with PodResources(tmp_path / "s") as mapping:
            assert mapping.pods(DEVICE) == ()
        assert not [thread for thread in threading.enumerate() if thread.name == "pod-resources"]
    assert not caplog.records  # leaving is no fault of the kubelet's


def test_a_uuid_without_its_prefix_is_the_same_gpu(asked: Asked) -> None:
    with FakeKubelet([holding("1::2", pod="burn")]).serving(asked.socket):
        assert asked.ask() == ["burn"]
