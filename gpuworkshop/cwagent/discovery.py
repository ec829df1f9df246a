"""What Prometheus's Kubernetes discovery says of a target, by role; and a model of NVIDIA's exporter in it.

The names are those of Prometheus's configuration reference. The model is a pod of the GPU Operator's
exporter: it stands in where nobody says what the discovery of the cluster found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuworkshop.cwagent.scrape_config import ScrapeJob

PREFIX = "__meta_kubernetes_"
_POD = """
    pod_name pod_ip pod_label_ pod_labelpresent_ pod_annotation_ pod_annotationpresent_ pod_container_init
    pod_container_name pod_container_id pod_container_image pod_container_port_name
    pod_container_port_number pod_container_port_protocol pod_ready pod_phase pod_node_name pod_host_ip
    pod_uid pod_controller_kind pod_controller_name
"""
_NODE = """
    node_name node_provider_id node_label_ node_labelpresent_ node_annotation_ node_annotationpresent_
    node_address_
"""
_SERVICE = """
    service_name service_label_ service_labelpresent_ service_annotation_ service_annotationpresent_
    service_cluster_ip service_loadbalancer_ip service_external_name service_port_name
    service_port_number service_port_protocol service_type
"""
_ENDPOINTS = """
    endpoints_name endpoints_label_ endpoints_labelpresent_ endpoints_annotation_
    endpoints_annotationpresent_ endpoint_hostname endpoint_node_name endpoint_ready endpoint_port_name
    endpoint_port_protocol endpoint_address_target_kind endpoint_address_target_name
"""
_SLICE = "endpointslice_"
_INGRESS = """
    ingress_name ingress_label_ ingress_labelpresent_ ingress_annotation_ ingress_annotationpresent_
    ingress_class_name ingress_scheme ingress_path ingress_host
"""
_BY_ROLE = {
    "pod": _POD + _NODE,
    "node": _NODE,
    "service": _SERVICE,
    "endpoints": _ENDPOINTS + _POD + _SERVICE + _NODE,
    "endpointslice": _SLICE + _POD + _SERVICE + _NODE,
    "ingress": _INGRESS,
}
LABELS = {
    role: tuple(f"{PREFIX}{name}" for name in ("namespace", *text.split())) for role, text in _BY_ROLE.items()
}
"""Meta labels by role; one that ends with `_` is followed by a name of the object's own."""

_POD_FOUND = {
    "namespace": "gpu-operator",
    "pod_name": "nvidia-dcgm-exporter-48cwd",
    "pod_ip": "10.0.3.17",
    "pod_host_ip": "10.0.3.10",
    "pod_node_name": "ip-10-0-3-10.ec2.internal",
    "pod_phase": "Running",
    "pod_ready": "true",
    "pod_uid": "0b0f4a3c-5f1d-4d3e-9a55-2c1f6f1f7a10",
    "pod_controller_kind": "DaemonSet",
    "pod_controller_name": "nvidia-dcgm-exporter",
    "pod_container_name": "nvidia-dcgm-exporter",
    "pod_container_init": "false",
    "pod_container_port_name": "metrics",
    "pod_container_port_number": "9400",
    "pod_container_port_protocol": "TCP",
    "pod_label_app": "nvidia-dcgm-exporter",
    "pod_labelpresent_app": "true",
}
_SERVICE_FOUND = {
    "namespace": "gpu-operator",
    "service_name": "nvidia-dcgm-exporter",
    "service_label_app": "nvidia-dcgm-exporter",
    "service_labelpresent_app": "true",
    "service_annotation_prometheus_io_scrape": "true",
    "service_annotationpresent_prometheus_io_scrape": "true",
    "service_port_name": "gpu-metrics",
    "service_port_number": "9400",
    "service_port_protocol": "TCP",
    "service_type": "ClusterIP",
}
_ENDPOINT_FOUND = {
    "endpoints_name": "nvidia-dcgm-exporter",
    "endpoints_label_app": "nvidia-dcgm-exporter",
    "endpoint_ready": "true",
    "endpoint_port_name": "gpu-metrics",
    "endpoint_port_protocol": "TCP",
    "endpoint_node_name": "ip-10-0-3-10.ec2.internal",
    "endpoint_address_target_kind": "Pod",
    "endpoint_address_target_name": "nvidia-dcgm-exporter-48cwd",
}
_AT_POD = {"__address__": "10.0.3.17:9400"}
_FOUND = {
    "pod": (_AT_POD, _POD_FOUND),
    "endpoints": (_AT_POD, _POD_FOUND | _SERVICE_FOUND | _ENDPOINT_FOUND),
    "endpointslice": (
        _AT_POD,
        _POD_FOUND | _SERVICE_FOUND | {"endpointslice_name": "nvidia-dcgm-exporter-x7k2p"},
    ),
    "service": ({"__address__": "nvidia-dcgm-exporter.gpu-operator.svc:9400"}, _SERVICE_FOUND),
    "node": ({"__address__": "10.0.3.10:10250"}, {"node_name": "ip-10-0-3-10.ec2.internal"}),
    "ingress": ({"__address__": "gpu.example"}, {"namespace": "gpu-operator", "ingress_name": "gpu"}),
}


def targets_of(job: ScrapeJob) -> list[Mapping[str, str]]:
    """What the discovery of `job` finds of NVIDIA's exporter on one node, and the job's static targets."""
    found = [_found(role) for role in dict.fromkeys(job.roles) if role in _FOUND]
    everything = [*job.static, *found]
    return everything or [_AT_POD]


def is_known(label: str, roles: tuple[str, ...]) -> bool:
    """Whether discovery by one of these roles can give that meta label."""
    return any(
        label.startswith(name) and label != name if name.endswith("_") else label == name
        for role in roles
        for name in LABELS.get(role, ())
    )


def _found(role: str) -> dict[str, str]:
    address, labels = _FOUND[role]
    return {**address, **{PREFIX + name: value for name, value in labels.items()}}
