"""The pod-resources API: which container of a node holds which GPU."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubelet_lab import NODE_NAME, KubeletLab, in_lab, pause

from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.podresources import messages
from gpuworkshop.podresources.channel import CallError, Channel

GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


def test_pod_resources_tell_what_each_container_holds() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(**GPU), pause(name="side"))
        await lab.ready("burn")
        socket = lab.kubelets.socket(NODE_NAME)
        assert len(socket.encode()) <= 107
        assert Path(socket).parent.stat().st_mode & 0o777 == 0o700
        channel = Channel(Path(socket))

        async def call(method: str, request: object) -> Any:
            return await asyncio.to_thread(channel.call, method, request, 5.0)

        (pod,) = (await call("List", messages.ListPodResourcesRequest())).pod_resources
        assert (pod.name, pod.namespace) == ("burn", "default")
        assert [container.name for container in pod.containers] == ["main", "side"]
        (device,) = pod.containers[0].devices
        assert device.resource_name == "nvidia.com/gpu"
        assert list(device.device_ids) == [
            SimulatedNode(lab.state / "lab" / "nodes" / f"{NODE_NAME}.yaml").read()[0]["uuid"]
        ]
        assert not pod.containers[1].devices
        every = await call("GetAllocatableResources", messages.AllocatableResourcesRequest())
        assert len(every.devices) == 4
        asked = messages.GetPodResourcesRequest(pod_name="burn", pod_namespace="default")
        assert (await call("Get", asked)).pod_resources == pod
        with pytest.raises(CallError, match="pod no in namespace x not found") as refused:
            await call("Get", messages.GetPodResourcesRequest(pod_name="no", pod_namespace="x"))
        assert refused.value.code == "not_found"
        channel.close()

    in_lab(test, gpus=True)


def test_messages_survive_the_wire() -> None:
    devices = [messages.ContainerDevices(resource_name="nvidia.com/gpu", device_ids=["GPU-1::2"])]
    containers = [messages.ContainerResources(name="c", devices=devices)]
    pod = messages.PodResources(name="p", namespace="n", containers=containers)
    # Field 1 is a text of one byte, field 2 too, field 3 a message: as any protobuf library reads it.
    assert pod.SerializeToString().startswith(b"\x0a\x01p\x12\x01n\x1a")
    assert messages.PodResources.FromString(pod.SerializeToString()) == pod
