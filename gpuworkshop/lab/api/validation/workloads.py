"""Deployments, ReplicaSets, DaemonSets and StatefulSets: how many pods, which, and how they are replaced."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.pods import template
from gpuworkshop.lab.api.validation.selectors import label_selector, selects

NOT_MATCHING = "`selector` does not match template `labels`"
NO_DEADLINE = "activeDeadlineSeconds in ReplicaSet is not Supported"
STATEFUL_FIELDS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
STATEFUL_ONLY = (
    f"updates to statefulset spec for fields other than {', '.join(map(repr, STATEFUL_FIELDS[:-1]))} and "
    f"{STATEFUL_FIELDS[-1]!r} are forbidden"
)


def deployment(found: Findings, obj: Object) -> None:
    """A Deployment."""
    spec = mapping(obj, "spec")
    _common(found, spec, "deployment")
    strategy = mapping(spec, "strategy")
    found.one_of("spec.strategy.type", strategy.get("type"), ("Recreate", "RollingUpdate"))
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" and rolling is not None:
        words = "may not be specified when strategy `type` is 'Recreate'"
        found.forbidden("spec.strategy.rollingUpdate", words)
    elif isinstance(rolling, dict):
        _rolling(found, rolling, "spec.strategy.rollingUpdate", "may not be 0 when `maxSurge` is 0")
    found.at_least("spec.progressDeadlineSeconds", spec.get("progressDeadlineSeconds"), 0)
    deadline, least = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if type(deadline) is int and type(least) is int and 0 <= deadline <= least:
        found.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def replica_set(found: Findings, obj: Object) -> None:
    """A ReplicaSet."""
    _common(found, mapping(obj, "spec"), "deployment")  # the word is the API server's own


def daemon_set(found: Findings, obj: Object) -> None:
    """A DaemonSet."""
    spec = mapping(obj, "spec")
    _common(found, spec, "daemonset")
    strategy = mapping(spec, "updateStrategy")
    found.one_of("spec.updateStrategy.type", strategy.get("type"), ("RollingUpdate", "OnDelete"))
    if strategy.get("type") == "RollingUpdate" and (rolling := mapping(strategy, "rollingUpdate")):
        field = "spec.updateStrategy.rollingUpdate"
        _rolling(found, rolling, field, "cannot be 0 when maxSurge is 0")
        if not _is_zero(rolling, "maxUnavailable") and not _is_zero(rolling, "maxSurge"):
            words = "may not be set when maxUnavailable is non-zero"
            found.invalid(f"{field}.maxSurge", rolling["maxSurge"], words)


def stateful_set(found: Findings, obj: Object) -> None:
    """A StatefulSet."""
    spec = mapping(obj, "spec")
    _common(found, spec, "statefulset")
    found.one_of("spec.podManagementPolicy", spec.get("podManagementPolicy"), ("OrderedReady", "Parallel"))
    strategy = mapping(spec, "updateStrategy")
    found.one_of("spec.updateStrategy.type", strategy.get("type"), ("RollingUpdate", "OnDelete"))
    partition = mapping(strategy, "rollingUpdate").get("partition")
    found.at_least("spec.updateStrategy.rollingUpdate.partition", partition, 0)
    for when in ("whenDeleted", "whenScaled"):
        policy = mapping(spec, "persistentVolumeClaimRetentionPolicy").get(when)
        field = f"spec.persistentVolumeClaimRetentionPolicy.{when}"
        found.one_of(field, policy, ("Delete", "Retain"), optional=True)
    if name := text(spec, "serviceName"):
        found.fault("spec.serviceName", name, formats.dns_subdomain(name))


def selector_update(found: Findings, new: Object, old: Object) -> None:
    """A selector stays, or pods would be lost or adopted."""
    found.unchanged(
        "spec.selector", mapping(new, "spec").get("selector"), mapping(old, "spec").get("selector")
    )


def stateful_set_update(found: Findings, new: Object, old: Object) -> None:
    """Of a StatefulSet only what can be rolled out may change."""
    spec, before = (_without(mapping(obj, "spec"), STATEFUL_FIELDS) for obj in (new, old))
    if spec != before:
        found.forbidden("spec", STATEFUL_ONLY)


def _without(spec: Mapping, keys: tuple[str, ...]) -> Mapping:
    return {key: value for key, value in spec.items() if key not in keys}


def _common(found: Findings, spec: Mapping, word: str) -> None:
    for key in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        found.at_least(f"spec.{key}", spec.get(key), 0)
    _selector(found, spec, word)
    template(found, spec)
    pod_spec = mapping(spec, "template", "spec")
    if (policy := text(pod_spec, "restartPolicy")) in ("OnFailure", "Never"):
        found.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        found.forbidden("spec.template.spec.activeDeadlineSeconds", NO_DEADLINE)


def _selector(found: Findings, spec: Mapping, word: str) -> None:
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        found.required("spec.selector")
        return
    label_selector(found, selector, "spec.selector")
    if not mapping(selector, "matchLabels") and not mappings(selector, "matchExpressions"):
        found.invalid("spec.selector", selector, f"empty selector is invalid for {word}")
        return
    labels = mapping(spec, "template", "metadata", "labels")
    if not selects(selector, labels):
        found.invalid("spec.template.metadata.labels", labels, NOT_MATCHING)


def _rolling(found: Findings, rolling: Mapping, field: str, both_zero: str) -> None:
    for key in ("maxUnavailable", "maxSurge"):
        int_or_percent(found, rolling.get(key), f"{field}.{key}")
    unavailable = rolling.get("maxUnavailable")
    if isinstance(unavailable, str) and formats.percent(unavailable) == "" and _is_over(unavailable):
        found.invalid(f"{field}.maxUnavailable", unavailable, "must not be greater than 100%")
    if _is_zero(rolling, "maxUnavailable") and _is_zero(rolling, "maxSurge"):
        found.invalid(f"{field}.maxUnavailable", unavailable or 0, both_zero)


def _is_over(percent: str) -> bool:
    return len(digits := percent.rstrip("%").lstrip("0")) > 3 or int(digits or "0") > 100


def _is_zero(rolling: Mapping, key: str) -> bool:
    value = rolling.get(key)
    return not value or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def int_or_percent(found: Findings, value: object, field: str) -> None:
    """A number of pods, or a percentage of them."""
    if isinstance(value, str):
        found.fault(field, value, formats.percent(value))
    else:
        found.at_least(field, value, 0)
