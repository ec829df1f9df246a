"""What stands in the cells of a table where that is more than a field of the object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.ages import age, duration
from gpuworkshop.lab.api.object_selectors import requirements_of
from gpuworkshop.lab.api.objects import Object, condition, controller_of, is_deleted, seconds_of
from gpuworkshop.lab.api.problems import ApiError

NONE = "<none>"
ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def spec(obj: Object) -> Mapping[str, Any]:
    """Its spec."""
    return obj.get("spec") or {}


def status(obj: Object) -> Mapping[str, Any]:
    """Its status."""
    return obj.get("status") or {}


def template(obj: Object) -> Mapping[str, Any]:
    """The spec of a workload's pods."""
    return (spec(obj).get("template") or {}).get("spec") or {}


def labels(found: Mapping[str, str] | None) -> str:
    """Labels, sorted: `app=web,tier=front`."""
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def label_selector(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector: `app=web,tier in (front)`."""
    try:
        found = requirements_of(selector or {})
    except ApiError:
        return "<error>"
    return ",".join(map(str, sorted(found, key=lambda requirement: requirement.key))) or NONE


def access_modes(modes: Sequence[str] | None) -> str:
    """A volume's access modes, in short: `RWO,ROX`."""
    return ",".join(ACCESS_MODES.get(mode, mode) for mode in modes or ())


def claim(volume: Object) -> str:
    """The claim that a volume is bound to: `default/data`."""
    found = spec(volume).get("claimRef") or {}
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def containers(obj: Object) -> str:
    """The names of a workload's containers."""
    return ",".join(found["name"] for found in template(obj).get("containers") or ())


def images(obj: Object) -> str:
    """The images of a workload's containers."""
    return ",".join(found.get("image", "") for found in template(obj).get("containers") or ())


def ready_replicas(obj: Object) -> str:
    """`1/3`."""
    return f"{status(obj).get('readyReplicas') or 0}/{spec(obj).get('replicas') or 0}"


def readiness_gates(pod: Object) -> str:
    """How many of a pod's readiness gates are open."""
    gates = spec(pod).get("readinessGates") or ()
    found = [condition(pod, gate.get("conditionType", "")) for gate in gates]
    is_open = [gate for gate in found if gate and gate.get("status") == "True"]
    return f"{len(is_open)}/{len(gates)}" if gates else NONE


def controller(obj: Object) -> str:
    """What controls an object: `daemonset.apps/exporter`."""
    owner = controller_of(obj)
    if owner is None:
        return NONE
    group = str(owner["apiVersion"]).rpartition("/")[0]
    kind = str(owner["kind"]).lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"


def job_status(job: Object) -> str:
    """How a Job stands."""

    def holds(kind: str) -> bool:
        return (condition(job, kind) or {}).get("status") == "True"

    if ended := next((kind for kind in ("Complete", "Failed") if holds(kind)), ""):
        return ended
    if is_deleted(job):
        return "Terminating"
    return next((k for k in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if holds(k)), "Running")


def job_completions(job: Object) -> str:
    """`0/1`, or `0/1 of 3` where several run but one is enough."""
    succeeded = status(job).get("succeeded") or 0
    if (wanted := spec(job).get("completions")) is not None:
        return f"{succeeded}/{wanted}"
    parallelism = spec(job).get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(job: Object, now: float) -> str:
    """How long a Job has run, or ran."""
    began = status(job).get("startTime")
    if not began:
        return ""
    ended = status(job).get("completionTime")
    return duration((seconds_of(ended) if ended else now) - seconds_of(began))


def bound_role(binding: Object) -> str:
    """`ClusterRole/view`."""
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def subjects(binding: Object, kind: str) -> str:
    """The subjects of a kind in a binding."""
    found: Sequence[Mapping[str, Any]] = binding.get("subjects") or ()
    return ", ".join(
        f"{subject.get('namespace', '')}/{subject['name']}" if kind == "ServiceAccount" else subject["name"]
        for subject in found
        if subject.get("kind") == kind
    )


def event_first_seen(event: Object, now: float) -> str:
    """When it happened for the first time."""
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def event_last_seen(event: Object, now: float) -> str:
    """When it happened for the last time."""
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp")
    return age(last, now) if last else event_first_seen(event, now)


def event_count(event: Object) -> int:
    """How often it happened."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def event_object(event: Object) -> str:
    """What it happened to: `pod/web`."""
    about = event.get("involvedObject") or {}
    kind = str(about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def event_source(event: Object) -> str:
    """Who says so: `kubelet, NODE`."""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


def quota(obj: Object, *, limits: bool) -> str:
    """What a quota grants and how much of it is used: `pods: 1/5, requests.cpu: 1/4`."""
    used = status(obj).get("used") or {}
    hard = sorted((status(obj).get("hard") or {}).items())
    found = [(name, most) for name, most in hard if name.startswith("limits") is limits]
    return ", ".join(f"{name}: {used.get(name, 0)}/{most}" for name, most in found)


def or_not_available(value: object) -> str:
    """A number or a percentage; `N/A` where there is none."""
    return "N/A" if value is None else str(value)
