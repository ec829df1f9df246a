"""Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs."""

from __future__ import annotations

from gpuworkshop.lab.api.defaulting import pods, volumes
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, fill, mapping, mappings, struct, text

GROUP = "batch.kubernetes.io/"
CONTROLLER_UID, JOB_NAME = "controller-uid", "job-name"


def deployment(obj: Object) -> None:
    """A Deployment: rolling, a quarter at a time."""
    spec = _spec(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = struct(spec, "strategy")
    fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        fill(struct(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def replica_set(obj: Object) -> None:
    """A ReplicaSet."""
    fill(_spec(obj), replicas=1)


def daemon_set(obj: Object) -> None:
    """A DaemonSet: rolling, a node at a time."""
    spec = _spec(obj)
    fill(spec, revisionHistoryLimit=10)
    strategy = struct(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        fill(struct(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def stateful_set(obj: Object) -> None:
    """A StatefulSet: in order, and its claims stay."""
    spec = _spec(obj)
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    fill(struct(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    strategy = struct(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        fill(struct(strategy, "rollingUpdate"), partition=0)
    for claim in mappings(spec, "volumeClaimTemplates"):
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        volumes.claim(claim)


def job(obj: Object) -> None:
    """A Job: run once to completion; its selector is its own UID unless it says that it selects by hand."""
    spec = _spec(obj)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    replaced = "Failed" if mapping(spec, "podFailurePolicy") else "TerminatingOrFailed"
    fill(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if per_index else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy=replaced,
    )
    for rule in mappings(mapping(spec, "podFailurePolicy"), "rules"):
        for pattern in mappings(rule, "onPodConditions"):
            fill(pattern, status="True")
    if not spec.get("manualSelector"):
        _select_by_uid(obj, spec)
    labels = mapping(spec, "template", "metadata", "labels")
    if labels and not mapping(obj, "metadata", "labels"):
        struct(struct(obj, "metadata"), "labels").update(labels)


def _select_by_uid(obj: Object, spec: Mapping) -> None:
    metadata = mapping(obj, "metadata")
    uid = text(metadata, "uid")
    if not uid:
        return
    labels = struct(mapping(spec, "template", "metadata"), "labels")
    for prefix in ("", GROUP):
        labels.setdefault(prefix + CONTROLLER_UID, uid)
        labels.setdefault(prefix + JOB_NAME, text(metadata, "name"))
    struct(struct(spec, "selector"), "matchLabels").setdefault(GROUP + CONTROLLER_UID, uid)


def _spec(obj: Object) -> Mapping:
    spec = struct(obj, "spec")
    pods.template(spec)
    return spec
