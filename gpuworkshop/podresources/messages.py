"""The messages and methods of the pod-resources API.

They are built from a table when this module is imported, so that no generated code has to be kept. Field
numbers are those of k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "v1.PodResourcesLister"

_STRING, _INT64, _UINT64, _MESSAGE = 9, 3, 4, 11
_SCALARS = {"string": _STRING, "int64": _INT64, "uint64": _UINT64}

# Message → its fields, each "NUMBER TYPE name"; a type in brackets is repeated.
_MESSAGES: dict[str, tuple[str, ...]] = {
    "ListPodResourcesRequest": (),
    "ListPodResourcesResponse": ("1 [PodResources] pod_resources",),
    "AllocatableResourcesRequest": (),
    "AllocatableResourcesResponse": (
        "1 [ContainerDevices] devices",
        "2 [int64] cpu_ids",
        "3 [ContainerMemory] memory",
    ),
    "GetPodResourcesRequest": ("1 string pod_name", "2 string pod_namespace"),
    "GetPodResourcesResponse": ("1 PodResources pod_resources",),
    "PodResources": ("1 string name", "2 string namespace", "3 [ContainerResources] containers"),
    "ContainerResources": (
        "1 string name",
        "2 [ContainerDevices] devices",
        "3 [int64] cpu_ids",
        "4 [ContainerMemory] memory",
        "5 [DynamicResource] dynamic_resources",
    ),
    "ContainerMemory": ("1 string memory_type", "2 uint64 size", "3 TopologyInfo topology"),
    "ContainerDevices": ("1 string resource_name", "2 [string] device_ids", "3 TopologyInfo topology"),
    "TopologyInfo": ("1 [NUMANode] nodes",),
    "NUMANode": ("1 int64 ID",),
    "DynamicResource": (
        "2 string claim_name",
        "3 string claim_namespace",
        "4 [ClaimResource] claim_resources",
    ),
    "ClaimResource": (
        "1 [CDIDevice] cdi_devices",
        "2 string driver_name",
        "3 string pool_name",
        "4 string device_name",
    ),
    "CDIDevice": ("1 string name",),
}
_METHODS = {
    "List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
    "GetAllocatableResources": ("AllocatableResourcesRequest", "AllocatableResourcesResponse"),
    "Get": ("GetPodResourcesRequest", "GetPodResourcesResponse"),
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="podresources/v1.proto", package="v1", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, *text.split())
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, number: str, kind: str, name: str) -> None:
    field = message.field.add(name=name, number=int(number))
    repeated = kind.startswith("[")
    kind = kind.strip("[]")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]  # type: ignore[assignment]
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".v1.{kind}"


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()  # of its own: "v1" may be somebody else's package too
    pool.Add(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in _MESSAGES
    }


_CLASSES = _classes()
ListPodResourcesRequest = _CLASSES["ListPodResourcesRequest"]
ListPodResourcesResponse = _CLASSES["ListPodResourcesResponse"]
AllocatableResourcesRequest = _CLASSES["AllocatableResourcesRequest"]
AllocatableResourcesResponse = _CLASSES["AllocatableResourcesResponse"]
GetPodResourcesRequest = _CLASSES["GetPodResourcesRequest"]
GetPodResourcesResponse = _CLASSES["GetPodResourcesResponse"]
PodResources = _CLASSES["PodResources"]
ContainerResources = _CLASSES["ContainerResources"]
ContainerDevices = _CLASSES["ContainerDevices"]


def types(method: str) -> tuple[Any, Any]:
    """The classes of a method's request and response."""
    request, response = _METHODS[method]
    return _CLASSES[request], _CLASSES[response]
