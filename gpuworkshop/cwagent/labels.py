"""The labels by which an exporter of NVIDIA's kind names GPUs and workloads, in every release."""

from __future__ import annotations

from collections.abc import Mapping

GPU = ("gpu", "UUID", "uuid", "device", "pci_bus_id", "GPU_I_ID")
"""What tells GPUs apart."""
PODS = ("pod", "pod_name")
WORKLOAD = (*PODS, "namespace", "pod_namespace", "container", "container_name", "pod_uid")
"""What a GPU that no pod uses lacks."""


def pod_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Namespace and name of the workload's pod in the labels of a scrape; None for an idle GPU."""
    pod = next((labels[name] for name in PODS if labels.get(name)), "")
    return (labels.get("namespace") or labels.get("pod_namespace", ""), pod) if pod else None


def gpu_of(labels: Mapping[str, str]) -> str:
    """What names the GPU in the whole cluster; "" where the labels do not."""
    return labels.get("UUID") or labels.get("uuid", "")


def has_gpu(labels: Mapping[str, str]) -> bool:
    """Whether the labels name a GPU."""
    return any(labels.get(name) for name in GPU)


def without_workload(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that the same GPU would have if no pod used it."""
    return {name: value for name, value in labels.items() if name not in WORKLOAD}
