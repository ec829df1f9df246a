"""The state of the GPU Operator's ClusterPolicy: `ready` once all that it deploys is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.lab.api.kinds import DAEMON_SET, Kind
from gpuworkshop.lab.api.objects import Object, labels_of, meta, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys

NAME, API_VERSION, KIND = "cluster-policy", "nvidia.com/v1", "ClusterPolicy"


def _policy(_: Registry, daemon_set: Object) -> Iterable[Key]:
    if _is_operand(daemon_set):
        yield namespace_of(daemon_set), NAME


class ClusterPolicyController(Controller):
    """Writes the state that `kubectl get clusterpolicy` shows; its keys name the operator's namespace."""

    name = "cluster-policy"
    watches: Mapping[Kind, Keys] = {DAEMON_SET: _policy}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write what the DaemonSets come to."""
        namespace, name = key
        kind = registry.kinds.of(API_VERSION, KIND)
        if kind is None or (policy := registry.find(kind, "", name)) is None:
            return None
        operands = filter(_is_operand, registry.list(DAEMON_SET, namespace))
        state = "ready" if all(map(_is_ready, operands)) else "notReady"
        status = {"namespace": namespace, "state": state}
        if policy.get("status") != status:
            registry.modify(kind, "", name, lambda new: new.update(status=status), "status")
        return None


def _is_operand(daemon_set: Object) -> bool:
    return labels_of(daemon_set).get("app.kubernetes.io/part-of") == "gpu-operator"


def _is_ready(daemon_set: Object) -> bool:
    status = daemon_set.get("status") or {}
    seen = status.get("observedGeneration") == meta(daemon_set).get("generation")
    return seen and status.get("numberReady") == status.get("desiredNumberScheduled")
