"""The columns that kubectl prints of each kind, in its order; those that are `wide` with `-o wide` only.

A kind that is not in the table has the two columns of a kind that the real API server knows nothing about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api import cells, kinds, network_cells, node_cells
from gpuworkshop.lab.api.ages import age
from gpuworkshop.lab.api.cells import spec, status
from gpuworkshop.lab.api.objects import Object, meta, name_of
from gpuworkshop.lab.api.pod_summary import summary

Cell = Callable[[Object, float], Any]  # from an object and the time now, in Unix seconds


@dataclass(frozen=True)
class Column:
    """One column: its heading as the API gives it, what its cells are, and their type."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    wide: bool = False
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """The entry of the Table's columnDefinitions."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or f"{self.name} of the object.",
            "priority": int(self.wide),
        }


def _of(name: str, read: Callable[[Object], Any], kind: str = "string", *, wide: bool = False) -> Column:
    return Column(name, lambda obj, _: read(obj), kind, wide=wide)


def _number(name: str, read: Callable[[Object], Any], *, wide: bool = False) -> Column:
    return _of(name, lambda obj: read(obj) or 0, "integer", wide=wide)


def _wide(name: str, read: Callable[[Object], Any]) -> Column:
    return _of(name, read, wide=True)


NAME = Column("Name", lambda obj, _: name_of(obj), format="name", description="The name of the object.")
AGE = Column("Age", lambda obj, now: age(meta(obj).get("creationTimestamp"), now))
CREATED_AT = Column(
    "Created At",
    lambda obj, _: meta(obj).get("creationTimestamp"),
    type="date",
    description="Its creation.",
)
CONTAINERS, IMAGES = _wide("Containers", cells.containers), _wide("Images", cells.images)
MADE = (CONTAINERS, IMAGES, _wide("Selector", lambda o: cells.label_selector(spec(o).get("selector"))))
STORAGE_CLASS = _of("StorageClass", lambda o: spec(o).get("storageClassName") or "")
ATTRIBUTES = _of("VolumeAttributesClass", lambda o: spec(o).get("volumeAttributesClassName") or "<unset>")
VOLUME_MODE = _wide("VolumeMode", lambda o: spec(o).get("volumeMode") or "<unset>")
UNKNOWN = (NAME, CREATED_AT)
BINDING = (
    NAME,
    _of("Role", cells.bound_role),
    AGE,
    _wide("Users", lambda o: cells.subjects(o, "User")),
    _wide("Groups", lambda o: cells.subjects(o, "Group")),
    _wide("ServiceAccounts", lambda o: cells.subjects(o, "ServiceAccount")),
)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    kinds.POD.resource: (
        NAME,
        _of("Ready", lambda o: (found := summary(o)) and f"{found.ready}/{found.total}"),
        _of("Status", lambda o: summary(o).status),
        Column("Restarts", lambda o, now: summary(o).restarts.text(now)),
        AGE,
        _wide("IP", lambda o: status(o).get("podIP") or "<none>"),
        _wide("Node", lambda o: spec(o).get("nodeName") or "<none>"),
        _wide("Nominated Node", lambda o: status(o).get("nominatedNodeName") or "<none>"),
        _wide("Readiness Gates", cells.readiness_gates),
    ),
    kinds.DEPLOYMENT.resource: (
        NAME,
        _of("Ready", cells.ready_replicas),
        _number("Up-to-date", lambda o: status(o).get("updatedReplicas")),
        _number("Available", lambda o: status(o).get("availableReplicas")),
        AGE,
        *MADE,
    ),
    kinds.REPLICA_SET.resource: (
        NAME,
        _number("Desired", lambda o: spec(o).get("replicas")),
        _number("Current", lambda o: status(o).get("replicas")),
        _number("Ready", lambda o: status(o).get("readyReplicas")),
        AGE,
        *MADE,
    ),
    kinds.STATEFUL_SET.resource: (NAME, _of("Ready", cells.ready_replicas), AGE, CONTAINERS, IMAGES),
    kinds.DAEMON_SET.resource: (
        NAME,
        _number("Desired", lambda o: status(o).get("desiredNumberScheduled")),
        _number("Current", lambda o: status(o).get("currentNumberScheduled")),
        _number("Ready", lambda o: status(o).get("numberReady")),
        _number("Up-to-date", lambda o: status(o).get("updatedNumberScheduled")),
        _number("Available", lambda o: status(o).get("numberAvailable")),
        _of("Node Selector", lambda o: cells.labels(cells.template(o).get("nodeSelector"))),
        AGE,
        *MADE,
    ),
    kinds.JOB.resource: (
        NAME,
        _of("Status", cells.job_status),
        _of("Completions", cells.job_completions),
        Column("Duration", cells.job_duration),
        AGE,
        *MADE,
    ),
    kinds.CONTROLLER_REVISION.resource: (
        NAME,
        _of("Controller", cells.controller),
        _number("Revision", lambda o: o.get("revision")),
        AGE,
    ),
    kinds.NODE.resource: (
        NAME,
        _of("Status", node_cells.status_of_node),
        _of("Roles", node_cells.roles),
        AGE,
        _of("Version", lambda o: node_cells.info(o, "kubeletVersion", "")),
        _wide("Internal-IP", lambda o: node_cells.address(o, "InternalIP")),
        _wide("External-IP", lambda o: node_cells.address(o, "ExternalIP")),
        _wide("OS-Image", lambda o: node_cells.info(o, "osImage", "<unknown>")),
        _wide("Kernel-Version", lambda o: node_cells.info(o, "kernelVersion", "<unknown>")),
        _wide("Container-Runtime", lambda o: node_cells.info(o, "containerRuntimeVersion", "<unknown>")),
    ),
    kinds.NAMESPACE.resource: (NAME, _of("Status", lambda o: status(o).get("phase") or ""), AGE),
    kinds.SERVICE.resource: (
        NAME,
        _of("Type", lambda o: spec(o).get("type") or "ClusterIP"),
        _of("Cluster-IP", lambda o: spec(o).get("clusterIP") or "<none>"),
        _of("External-IP", network_cells.external_ip),
        _of("Port(s)", network_cells.service_ports),
        AGE,
        _wide("Selector", lambda o: cells.labels(spec(o).get("selector"))),
    ),
    kinds.ENDPOINTS.resource: (NAME, _of("Endpoints", network_cells.endpoints), AGE),
    kinds.ENDPOINT_SLICE.resource: (
        NAME,
        _of("AddressType", lambda o: o.get("addressType") or ""),
        _of("Ports", network_cells.slice_ports),
        _of("Endpoints", network_cells.slice_endpoints),
        AGE,
    ),
    kinds.INGRESS.resource: (
        NAME,
        _of("Class", network_cells.ingress_class),
        _of("Hosts", network_cells.ingress_hosts),
        _of("Address", network_cells.load_balancer),
        _of("Ports", lambda o: "80, 443" if spec(o).get("tls") else "80"),
        AGE,
    ),
    kinds.NETWORK_POLICY.resource: (
        NAME,
        _of("Pod-Selector", lambda o: cells.label_selector(spec(o).get("podSelector"))),
        AGE,
    ),
    kinds.CONFIG_MAP.resource: (
        NAME,
        _number("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
        AGE,
    ),
    kinds.SECRET.resource: (
        NAME,
        _of("Type", lambda o: o.get("type") or ""),
        _number("Data", lambda o: len(o.get("data") or ())),
        AGE,
    ),
    kinds.SERVICE_ACCOUNT.resource: (NAME, _number("Secrets", lambda o: len(o.get("secrets") or ())), AGE),
    kinds.EVENT.resource: (
        Column("Last Seen", cells.event_last_seen),
        _of("Type", lambda o: o.get("type") or ""),
        _of("Reason", lambda o: o.get("reason") or ""),
        _of("Object", cells.event_object),
        _wide("Subobject", lambda o: (o.get("involvedObject") or {}).get("fieldPath") or ""),
        _wide("Source", cells.event_source),
        _of("Message", lambda o: (o.get("message") or "").strip()),
        Column("First Seen", cells.event_first_seen, wide=True),
        _number("Count", cells.event_count, wide=True),
        Column("Name", lambda o, _: name_of(o), format="name", wide=True),
    ),
    kinds.PERSISTENT_VOLUME_CLAIM.resource: (
        NAME,
        _of("Status", lambda o: status(o).get("phase") or ""),
        _of("Volume", lambda o: spec(o).get("volumeName") or ""),
        _of("Capacity", lambda o: (status(o).get("capacity") or {}).get("storage") or ""),
        _of("Access Modes", lambda o: cells.access_modes(status(o).get("accessModes"))),
        STORAGE_CLASS,
        ATTRIBUTES,
        AGE,
        VOLUME_MODE,
    ),
    kinds.PERSISTENT_VOLUME.resource: (
        NAME,
        _of("Capacity", lambda o: (spec(o).get("capacity") or {}).get("storage") or ""),
        _of("Access Modes", lambda o: cells.access_modes(spec(o).get("accessModes"))),
        _of("Reclaim Policy", lambda o: spec(o).get("persistentVolumeReclaimPolicy") or ""),
        _of("Status", lambda o: status(o).get("phase") or ""),
        _of("Claim", cells.claim),
        STORAGE_CLASS,
        ATTRIBUTES,
        _of("Reason", lambda o: status(o).get("reason") or ""),
        AGE,
        VOLUME_MODE,
    ),
    kinds.RESOURCE_QUOTA.resource: (
        NAME,
        _of("Request", lambda o: cells.quota(o, limits=False)),
        _of("Limit", lambda o: cells.quota(o, limits=True)),
        AGE,
    ),
    kinds.POD_DISRUPTION_BUDGET.resource: (
        NAME,
        _of("Min Available", lambda o: cells.or_not_available(spec(o).get("minAvailable"))),
        _of("Max Unavailable", lambda o: cells.or_not_available(spec(o).get("maxUnavailable"))),
        _number("Allowed Disruptions", lambda o: status(o).get("disruptionsAllowed")),
        AGE,
    ),
    kinds.PRIORITY_CLASS.resource: (
        NAME,
        _number("Value", lambda o: o.get("value")),
        _of("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
        AGE,
        _of("PreemptionPolicy", lambda o: o.get("preemptionPolicy") or "PreemptLowerPriority"),
    ),
    kinds.RUNTIME_CLASS.resource: (NAME, _of("Handler", lambda o: o.get("handler") or ""), AGE),
    kinds.LEASE.resource: (NAME, _of("Holder", lambda o: spec(o).get("holderIdentity") or ""), AGE),
    kinds.ROLE_BINDING.resource: BINDING,
    kinds.CLUSTER_ROLE_BINDING.resource: BINDING,
}
