"""Namespaces, Nodes, Secrets, Events, quotas, limits, budgets, priorities, and custom definitions."""

from __future__ import annotations

import base64

from gpuworkshop.lab.api.defaulting import amounts
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import fill, mapping, mappings, struct, text

NAME_LABEL = "kubernetes.io/metadata.name"
LIMITED = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def namespace(obj: Object) -> None:
    """A Namespace: it holds its own deletion until it is empty."""
    metadata = struct(obj, "metadata")
    if name := text(metadata, "name"):
        struct(metadata, "labels")[NAME_LABEL] = name
    if not metadata.get("deletionTimestamp"):
        fill(struct(obj, "spec"), finalizers=["kubernetes"])
    fill(struct(obj, "status"), phase="Active")


def pod_disruption_budget(obj: Object) -> None:
    """A PodDisruptionBudget, which may ask for nothing."""
    struct(obj, "spec")


def node(obj: Object) -> None:
    """A Node: what it has may all be allocated, unless it says less."""
    struct(obj, "spec")
    status = mapping(obj, "status")
    amounts.tidy(status, "capacity")
    amounts.tidy(status, "allocatable")
    if capacity := mapping(status, "capacity"):
        fill(status, allocatable=dict(capacity))


def secret(obj: Object) -> None:
    """A Secret: `stringData` is how one is written, never how it is kept."""
    fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        data = struct(obj, "data")
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value or "").encode(errors="replace")).decode()


def event(obj: Object) -> None:
    """An Event: the fields that are always there, even if empty."""
    struct(obj, "source")
    fill(obj, reportingComponent="", reportingInstance="")


def resource_quota(obj: Object) -> None:
    """A ResourceQuota."""
    amounts.tidy(struct(obj, "spec"), "hard")


def limit_range(obj: Object) -> None:
    """A LimitRange: for containers, the default is the maximum, and what is requested is the default."""
    for limit in mappings(struct(obj, "spec"), "limits"):
        for key in LIMITED:
            amounts.tidy(limit, key)
        if limit.get("type") != "Container":
            continue
        default, request = struct(limit, "default"), struct(limit, "defaultRequest")
        default.update({**mapping(limit, "max"), **default})
        request.update({**mapping(limit, "min"), **default, **request})


def priority_class(obj: Object) -> None:
    """A PriorityClass."""
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def custom_resource_definition(obj: Object) -> None:
    """A CustomResourceDefinition: the names that follow from the kind's."""
    spec = struct(obj, "spec")
    names = struct(spec, "names")
    if kind := text(names, "kind"):
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
    fill(struct(spec, "conversion"), strategy="None")
