"""The fields by which objects of each kind can be selected; every kind has its name and its namespace."""

from __future__ import annotations

from collections.abc import Callable

from gpuworkshop.lab.api.kinds import EVENT, JOB, NAMESPACE, NODE, POD, SECRET, SERVICE, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import bad_request

NAME, IN_NAMESPACE = "metadata.name", "metadata.namespace"
ALIASES = {(POD.resource, "spec.host"): "spec.nodeName", (EVENT.resource, "source"): "source.component"}

SUPPORTED: dict[str, tuple[str, ...]] = {
    POD.resource: (
        NAME,
        IN_NAMESPACE,
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    NODE.resource: (NAME, "spec.unschedulable"),
    NAMESPACE.resource: (NAME, "status.phase"),
    SECRET.resource: (NAME, IN_NAMESPACE, "type"),
    SERVICE.resource: (NAME, IN_NAMESPACE, "spec.clusterIP", "spec.type"),
    JOB.resource: (NAME, IN_NAMESPACE, "status.successful"),
    EVENT.resource: (
        NAME,
        IN_NAMESPACE,
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source.component",
        "type",
    ),
}
# Where a field's label is not its path.
PATHS = {(JOB.resource, "status.successful"): "status.succeeded"}
# What a selector sees of a whole number or a switch that is not set; of a text it is "".
UNSET = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.succeeded": "0"}


def reader(kind: Kind, label: str) -> Callable[[Object], str]:
    """What reads the field that `label` names; ApiError 400 when the kind cannot be selected by it."""
    name = ALIASES.get((kind.resource, label), label)
    if kind.resource not in SUPPORTED:
        if name not in (NAME, IN_NAMESPACE):
            raise bad_request(f'"{label}" is not a known field selector: only "{NAME}", "{IN_NAMESPACE}"')
    elif name not in SUPPORTED[kind.resource]:
        raise bad_request(f"field label not supported: {label}")
    path = PATHS.get((kind.resource, name), name)
    keys, unset = path.split("."), UNSET.get(path, "")

    def read(obj: Object) -> str:
        found: object = obj
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            return unset
        return str(found).lower() if isinstance(found, bool) else str(found)

    return read
