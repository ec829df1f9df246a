"""A pod's GPUs: given to its containers by their limits, with the load that its annotation names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.objects import Object, annotations_of, name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet import loads
from gpuworkshop.lab.kubelet.devices import NoDevice
from gpuworkshop.lab.kubelet.host import Host
from gpuworkshop.lab.kubelet.resources import containers_of, gpus_of


def assign(host: Host, pod: Object) -> None:
    """Give the pod its GPUs, or those that it holds already the load that it names now. Raises NoDevice."""
    wanted = {spec["name"]: count for spec in containers_of(pod) if (count := gpus_of(spec))}
    if not wanted:
        return
    if host.devices is None:
        raise NoDevice("Allocate failed due to no healthy devices present for nvidia.com/gpu")
    host.devices.assign(uid_of(pod), namespace_of(pod), name_of(pod), wanted, _load(host, pod))


def _load(host: Host, pod: Object) -> Mapping[str, Any]:
    text = annotations_of(pod).get(loads.ANNOTATION)
    if text is None:
        return loads.IDLE
    try:
        return loads.parse_load(text)
    except ValueError as error:
        host.event(pod, "Warning", "InvalidLoad", f"{loads.ANNOTATION}: {error}; it stays idle")
        return loads.IDLE
