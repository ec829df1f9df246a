"""The fields that the API server fills in: `kubectl get -o yaml` and `kubectl diff` show them as for real.

One function a kind, in `defaulting/`; each changes the object in place, twice is the same as once, and what
is already set stays. Quantities are put into their one canonical form, as decoding does for real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.defaulting import access, cluster, network, pods, services, volumes, workloads
from gpuworkshop.lab.api.defaulting.admitted import admit_pod_defaults
from gpuworkshop.lab.api.defaulting.allocated import keep_allocated
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object

__all__ = ["admit_pod_defaults", "keep_allocated", "set_defaults"]


def set_defaults(kind: Kind, obj: Object) -> None:
    """Fill in the defaults of an object of that kind, in place."""
    if (of_kind := _OF_KIND.get(kind)) is not None:
        of_kind(obj)


_OF_KIND: Mapping[Kind, Callable[[Object], None]] = {
    kinds.NAMESPACE: cluster.namespace,
    kinds.NODE: cluster.node,
    kinds.POD: pods.pod,
    kinds.SERVICE: services.service,
    kinds.ENDPOINTS: services.endpoints,
    kinds.ENDPOINT_SLICE: services.endpoint_slice,
    kinds.PERSISTENT_VOLUME_CLAIM: volumes.claim,
    kinds.PERSISTENT_VOLUME: volumes.persistent_volume,
    kinds.SECRET: cluster.secret,
    kinds.EVENT: cluster.event,
    kinds.RESOURCE_QUOTA: cluster.resource_quota,
    kinds.LIMIT_RANGE: cluster.limit_range,
    kinds.DEPLOYMENT: workloads.deployment,
    kinds.REPLICA_SET: workloads.replica_set,
    kinds.DAEMON_SET: workloads.daemon_set,
    kinds.STATEFUL_SET: workloads.stateful_set,
    kinds.JOB: workloads.job,
    kinds.INGRESS: network.ingress,
    kinds.NETWORK_POLICY: network.network_policy,
    kinds.POD_DISRUPTION_BUDGET: cluster.pod_disruption_budget,
    kinds.PRIORITY_CLASS: cluster.priority_class,
    kinds.ROLE_BINDING: access.binding,
    kinds.CLUSTER_ROLE_BINDING: access.binding,
    kinds.CRD: cluster.custom_resource_definition,
}
