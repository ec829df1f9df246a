"""Quotas, limit ranges, disruption budgets, priority and runtime classes, leases, revisions."""

from __future__ import annotations

from gpuworkshop.lab.api.label_syntax import key_fault
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import IMMUTABLE, Findings
from gpuworkshop.lab.api.validation.resources import amount, quantity
from gpuworkshop.lab.api.validation.selectors import label_selector
from gpuworkshop.lab.api.validation.workloads import int_or_percent

COUNTED = (
    "pods",
    "services",
    "secrets",
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
MEASURED = ("cpu", "memory", "ephemeral-storage", "requests.storage")
HIGHEST_PRIORITY = 1_000_000_000
SYSTEM = "system-"
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
OF_QUOTAS = "must be a standard resource for quota"


def resource_quota(found: Findings, obj: Object) -> None:
    """A ResourceQuota."""
    for name, value in mapping(obj, "spec", "hard").items():
        field = f"spec.hard[{name}]"
        bare = name.removeprefix("requests.").removeprefix("limits.")
        if fault := key_fault(name):
            found.invalid(field, name, fault)
        elif "/" not in name and name not in COUNTED and name not in MEASURED and bare not in MEASURED:
            found.invalid(field, name, OF_QUOTAS)
        number = quantity(found, bare, value, field)
        if name in COUNTED and number is not None and number != number.to_integral_value():
            found.invalid(field, value, "must be an integer")


def limit_range(found: Findings, obj: Object) -> None:
    """A LimitRange."""
    limits = mappings(mapping(obj, "spec"), "limits")
    for index, limit in enumerate(limits):
        field = f"spec.limits[{index}]"
        if not (sort := text(limit, "type")):
            found.required(f"{field}.type")
        if sort == "Pod":
            for key in ("default", "defaultRequest"):
                if mapping(limit, key):
                    found.forbidden(f"{field}.{key}", "may not be specified when `type` is 'Pod'")
        for key in ("max", "min", "default", "defaultRequest"):
            for name, value in mapping(limit, key).items():
                quantity(found, name, value, f"{field}.{key}[{name}]")
        for lower, upper in (("min", "max"), ("min", "defaultRequest"), ("defaultRequest", "max")):
            _ordered(found, limit, field, lower, upper)
        for lower, upper in (("min", "default"), ("default", "max"), ("defaultRequest", "default")):
            _ordered(found, limit, field, lower, upper)
    found.unique((f"spec.limits[{i}].type", text(limit, "type")) for i, limit in enumerate(limits))


_WORDS = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}


def _ordered(found: Findings, limit: Mapping, field: str, lower: str, upper: str) -> None:
    for name, low in mapping(limit, lower).items():
        high = mapping(limit, upper).get(name)
        least, most = amount(low), amount(high)
        if least is not None and most is not None and least > most:
            words = f"{_WORDS[lower]} value {low} is greater than {_WORDS[upper]} value {high}"
            at = upper if lower == "min" and upper != "max" else lower
            found.invalid(f"{field}.{at}[{name}]", high if at == upper else low, words)


def pod_disruption_budget(found: Findings, obj: Object) -> None:
    """A PodDisruptionBudget: how many stay, or how many may go."""
    spec = mapping(obj, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        found.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        int_or_percent(found, spec.get(key), f"spec.{key}")
    label_selector(found, mapping(spec, "selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    policy = spec.get("unhealthyPodEvictionPolicy")
    found.one_of("spec.unhealthyPodEvictionPolicy", policy, policies, optional=True)


def priority_class(found: Findings, obj: Object) -> None:
    """A PriorityClass; those of the system are its own."""
    name, value = text(mapping(obj, "metadata"), "name"), obj.get("value", 0)
    if name.startswith(SYSTEM):
        if name not in SYSTEM_CLASSES:
            words = f"priority class names with '{SYSTEM}' prefix are reserved for system use only"
            found.forbidden("metadata.name", words)
    elif type(value) is int and value > HIGHEST_PRIORITY:
        words = f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"
        found.forbidden("value", words)
    policies = ("Never", "PreemptLowerPriority")
    found.one_of("preemptionPolicy", obj.get("preemptionPolicy"), policies, optional=True)


def priority_class_update(found: Findings, new: Object, old: Object) -> None:
    """Its value stays, since pods have it already."""
    if new.get("value", 0) != old.get("value", 0):
        found.forbidden("value", "may not be changed in an update.")
    found.unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def runtime_class(found: Findings, obj: Object) -> None:
    """A RuntimeClass."""
    handler = text(obj, "handler")
    found.fault("handler", handler, formats.dns_label(handler))


def runtime_class_update(found: Findings, new: Object, old: Object) -> None:
    """Its handler stays."""
    found.unchanged("handler", new.get("handler"), old.get("handler"))


def lease(found: Findings, obj: Object) -> None:
    """A Lease."""
    spec = mapping(obj, "spec")
    found.at_least("spec.leaseDurationSeconds", spec.get("leaseDurationSeconds"), 1, "must be greater than 0")
    found.at_least("spec.leaseTransitions", spec.get("leaseTransitions"), 0)


def controller_revision(found: Findings, obj: Object) -> None:
    """A ControllerRevision."""
    found.at_least("revision", obj.get("revision"), 0)


def controller_revision_update(found: Findings, new: Object, old: Object) -> None:
    """What it records stays."""
    found.unchanged("data", new.get("data"), old.get("data"), IMMUTABLE)
