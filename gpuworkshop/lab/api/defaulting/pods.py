"""Pods and pod templates."""

from __future__ import annotations

from gpuworkshop.lab.api.defaulting import amounts, containers, volumes
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, fill, mappings, struct

OF_A_POD = ("initContainers", "containers")


def pod(obj: Object) -> None:
    """A pod: what its spec gets, and what only real pods get, such as requests from limits."""
    spec = struct(obj, "spec")
    pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    for container in (entry for key in OF_A_POD for entry in mappings(spec, key)):
        containers.requests_from_limits(container)
        if spec.get("hostNetwork") is True:
            containers.host_ports(container)
    fill(struct(obj, "status"), phase="Pending")


def template(spec: Mapping) -> None:
    """The pod template of a workload's spec."""
    found = struct(spec, "template")
    struct(found, "metadata")
    pod_spec(struct(found, "spec"))


def pod_spec(spec: Mapping) -> None:
    """The spec of a pod or of a template."""
    fill(spec, containers=[])
    for key in (*OF_A_POD, "ephemeralContainers"):
        for container in mappings(spec, key):
            containers.container(container)
    for volume in mappings(spec, "volumes"):
        volumes.volume(volume)
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
    )
    struct(spec, "securityContext")
    amounts.tidy(spec, "overhead")
    _account(spec)


def _account(spec: Mapping) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`, and repeats it."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name
