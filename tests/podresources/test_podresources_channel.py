"""The client's channel against gRPC's own server, and against servers that do what none should."""

from __future__ import annotations

import socket as sockets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from gpuworkshop.podresources.channel import CallError, Channel
from gpuworkshop.podresources.messages import (
    GetPodResourcesRequest,
    GetPodResourcesResponse,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
    PodResources,
)
from gpuworkshop.podresources.server import handler

SOON_S = 20.0


class Kubelet:
    """Answers `list` with `pods`, `get` with the pod of that name, else NOT_FOUND; `allocatable` never."""

    def __init__(self, count: int = 3, name: str = "pod") -> None:
        self.pods = [PodResources(name=f"{name}-{n}", namespace="default") for n in range(count)]
        self.asked = threading.Event()
        self.let_go = threading.Event()

    def list(self, _: Any, __: Any) -> Any:
        return ListPodResourcesResponse(pod_resources=self.pods)

    def get(self, request: Any, context: Any) -> Any:
        for pod in self.pods:
            if pod.name == request.pod_name:
                return GetPodResourcesResponse(pod_resources=pod)
        return context.abort(
            grpc.StatusCode.NOT_FOUND, f"pod {request.pod_name} wurde 100 % nicht gefunden: é"
        )

    def allocatable(self, _: Any, context: Any) -> Any:
        self.asked.set()
        self.let_go.wait(SOON_S)
        context.abort(grpc.StatusCode.CANCELLED, "too late")

    @contextmanager
    def serving(self, path: Path) -> Iterator[None]:
        server = grpc.server(ThreadPoolExecutor(4))
        lister: Any = self
        server.add_generic_rpc_handlers((handler(lister),))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        try:
            yield
        finally:
            self.let_go.set()
            server.stop(None).wait(10)
            path.unlink(missing_ok=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


@pytest.fixture
def channel(path: Path) -> Iterator[Channel]:
    made = Channel(path)
    yield made
    made.close()


def listed(channel: Channel) -> list[str]:
    return [pod.name for pod in channel.call("List", ListPodResourcesRequest(), SOON_S).pod_resources]


def test_calls_share_one_connection(channel: Channel, path: Path) -> None:
    kubelet = Kubelet()
    with kubelet.serving(path):
        assert [listed(channel) for _ in range(50)] == [["pod-0", "pod-1", "pod-2"]] * 50
        connection = channel._connection
        assert listed(channel) == ["pod-0", "pod-1", "pod-2"]
        assert channel._connection is connection


def test_an_answer_of_many_windows_and_frames_comes_whole(channel: Channel, path: Path) -> None:
    kubelet = Kubelet(6000, "x" * 1000)
    with kubelet.serving(path):
        assert len(listed(channel)) == 6000
        answer = channel.call("List", ListPodResourcesRequest(), SOON_S)
        assert answer.ByteSize() > 6_000_000
        assert list(answer.pod_resources) == kubelet.pods


def test_an_answer_that_is_too_large_is_given_up(path: Path) -> None:
    with Kubelet(6000, "x" * 100).serving(path):
        small = Channel(path, largest=100_000)
        with pytest.raises(CallError, match="larger than 100000 bytes") as caught:
            listed(small)
        assert caught.value.code == "resource_exhausted"
        small.close()


def test_a_refusal_has_its_code_and_words_and_leaves_the_connection(channel: Channel, path: Path) -> None:
    with Kubelet().serving(path):
        assert (
            channel.call("Get", GetPodResourcesRequest(pod_name="pod-1"), SOON_S).pod_resources.name
            == "pod-1"
        )
        connection = channel._connection
        with pytest.raises(CallError) as caught:
            channel.call("Get", GetPodResourcesRequest(pod_name="q"), SOON_S)
        assert (caught.value.code, caught.value.details) == (
            "not_found",
            "pod q wurde 100 % nicht gefunden: é",
        )
        assert len(listed(channel)) == 3
        assert channel._connection is connection


def test_a_call_that_hangs_ends_at_its_deadline(channel: Channel, path: Path) -> None:
    with Kubelet().serving(path):
        with pytest.raises(CallError) as caught:
            channel.call("GetAllocatableResources", ListPodResourcesRequest(), 0.2)
        assert caught.value.code == "deadline_exceeded"
        assert len(listed(channel)) == 3


def test_closing_ends_a_call_that_hangs(channel: Channel, path: Path) -> None:
    seen: list[str] = []

    def call() -> None:
        try:
            channel.call("GetAllocatableResources", ListPodResourcesRequest(), SOON_S)
        except CallError as error:
            seen.append(error.code)

    kubelet = Kubelet()
    with kubelet.serving(path):
        waiting = threading.Thread(target=call)
        waiting.start()
        assert kubelet.asked.wait(SOON_S)
        channel.close()
        waiting.join(SOON_S)
    assert seen == ["unavailable"]


def test_without_a_kubelet_it_is_unavailable_and_then_found(channel: Channel, path: Path) -> None:
    for _ in range(2):
        with pytest.raises(CallError, match="No such file") as caught:
            listed(channel)
        assert caught.value.code == "unavailable"
        with Kubelet().serving(path):
            assert len(listed(channel)) == 3


def test_a_restart_between_two_calls_costs_none(channel: Channel, path: Path) -> None:
    for name in ("old", "new"):
        with Kubelet(1, name).serving(path):
            assert listed(channel) == [f"{name}-0"]


def _http1(connection: sockets.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _nothing(connection: sockets.socket) -> None:
    connection.recv(1000)


def _noise(connection: sockets.socket) -> None:
    connection.recv(1000)
    connection.sendall(bytes(range(256)) * 10)


@pytest.mark.parametrize("serve", [_http1, _nothing, _noise])
def test_what_is_no_grpc_server_is_unavailable(
    channel: Channel, path: Path, serve: Callable[[sockets.socket], None]
) -> None:
    with sockets.socket(sockets.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def accept() -> None:
            connection, _ = listening.accept()
            with connection:
                serve(connection)

        serving = threading.Thread(target=accept)
        serving.start()
        with pytest.raises(CallError) as caught:
            listed(channel)
        serving.join()
    assert caught.value.code == "unavailable"


def test_a_path_too_long_for_a_socket_is_said(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="too long") as caught:
        listed(Channel(tmp_path / ("x" * 120)))
    assert caught.value.code == "unavailable"
