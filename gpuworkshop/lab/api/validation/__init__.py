"""Whether an object makes sense beyond its types, told in the words of the API server where it does not.

One function a kind, by area; each adds what it finds to a `Findings`. None ever raises, however odd the
object: what has no sensible shape reads as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import Cause
from gpuworkshop.lab.api.validation import (
    access,
    cluster,
    config,
    definitions,
    jobs,
    network,
    pod_updates,
    pods,
    policies,
    services,
    storage,
    workloads,
)
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import metadata, metadata_update

__all__ = ["validate_create", "validate_update"]


def validate_create(kind: Kind, obj: Object) -> list[Cause]:
    """What is wrong with a new object, after its defaults."""
    found = Findings()
    metadata(found, kind, obj)
    if (of_kind := _OF_KIND.get(kind)) is not None:
        of_kind(found, obj)
    return found.causes


def validate_update(kind: Kind, new: Object, old: Object) -> list[Cause]:
    """What is wrong with an object that is to replace `old`, after its defaults."""
    found = Findings()
    metadata(found, kind, new)
    metadata_update(found, new, old)
    if kind is not kinds.POD and (of_kind := _OF_KIND.get(kind)) is not None:
        of_kind(found, new)
    if (update := _UPDATES.get(kind)) is not None:
        update(found, new, old)
    return found.causes


_OF_KIND: Mapping[Kind, Callable[[Findings, Object], None]] = {
    kinds.NAMESPACE: cluster.namespace,
    kinds.NODE: cluster.node,
    kinds.POD: pods.pod,
    kinds.SERVICE: services.service,
    kinds.ENDPOINTS: services.endpoints,
    kinds.ENDPOINT_SLICE: services.endpoint_slice,
    kinds.PERSISTENT_VOLUME_CLAIM: storage.claim,
    kinds.PERSISTENT_VOLUME: storage.persistent_volume,
    kinds.CONFIG_MAP: config.config_map,
    kinds.SECRET: config.secret,
    kinds.EVENT: cluster.event,
    kinds.RESOURCE_QUOTA: policies.resource_quota,
    kinds.LIMIT_RANGE: policies.limit_range,
    kinds.DEPLOYMENT: workloads.deployment,
    kinds.REPLICA_SET: workloads.replica_set,
    kinds.DAEMON_SET: workloads.daemon_set,
    kinds.STATEFUL_SET: workloads.stateful_set,
    kinds.CONTROLLER_REVISION: policies.controller_revision,
    kinds.JOB: jobs.job,
    kinds.INGRESS: network.ingress,
    kinds.NETWORK_POLICY: network.network_policy,
    kinds.POD_DISRUPTION_BUDGET: policies.pod_disruption_budget,
    kinds.PRIORITY_CLASS: policies.priority_class,
    kinds.RUNTIME_CLASS: policies.runtime_class,
    kinds.LEASE: policies.lease,
    kinds.ROLE: access.role,
    kinds.ROLE_BINDING: access.role_binding,
    kinds.CLUSTER_ROLE: access.cluster_role,
    kinds.CLUSTER_ROLE_BINDING: access.cluster_role_binding,
    kinds.CRD: definitions.custom_resource_definition,
}
_UPDATES: Mapping[Kind, Callable[[Findings, Object, Object], None]] = {
    kinds.POD: pod_updates.pod_update,
    kinds.SERVICE: services.service_update,
    kinds.ENDPOINT_SLICE: services.endpoint_slice_update,
    kinds.PERSISTENT_VOLUME_CLAIM: storage.claim_update,
    kinds.CONFIG_MAP: config.config_map_update,
    kinds.SECRET: config.secret_update,
    kinds.DEPLOYMENT: workloads.selector_update,
    kinds.REPLICA_SET: workloads.selector_update,
    kinds.DAEMON_SET: workloads.selector_update,
    kinds.STATEFUL_SET: workloads.stateful_set_update,
    kinds.CONTROLLER_REVISION: policies.controller_revision_update,
    kinds.JOB: jobs.job_update,
    kinds.PRIORITY_CLASS: policies.priority_class_update,
    kinds.RUNTIME_CLASS: policies.runtime_class_update,
    kinds.ROLE_BINDING: access.binding_update,
    kinds.CLUSTER_ROLE_BINDING: access.binding_update,
    kinds.CRD: definitions.custom_resource_definition_update,
}
