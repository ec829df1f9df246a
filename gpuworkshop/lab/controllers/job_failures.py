"""What a failed pod means for its Job: by the Job's own rules, by its index, and by all failures together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.objects import Object, annotations_of, meta, name_of, namespace_of
from gpuworkshop.lab.controllers import job_pods
from gpuworkshop.lab.controllers.pods import is_finished

COUNT, IGNORE, FAIL_INDEX, FAIL_JOB = "Count", "Ignore", "FailIndex", "FailJob"
FIRST_BACK_OFF_S, LAST_BACK_OFF_S = 10.0, 600.0


@dataclass(frozen=True)
class Verdict:
    """What is done about one failed pod; `why` is the Job's message where it ends the Job."""

    action: str = COUNT
    why: str = ""


def verdict(job: Object, pod: Object) -> Verdict:
    """The action of the first rule of the podFailurePolicy that the pod meets; else it counts."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        if what := _met(rule, pod):
            return Verdict(rule["action"], f"{what} matching {rule['action']} rule at index {index}")
    return Verdict()


def _met(rule: Mapping[str, Any], pod: Object) -> str:
    """What of the pod meets the rule, in words; "" if nothing does."""
    named, status = f"{namespace_of(pod)}/{name_of(pod)}", pod.get("status") or {}
    if codes := rule.get("onExitCodes"):
        for key in ("containerStatuses", "initContainerStatuses"):
            for found in status.get(key) or ():
                code = ((found.get("state") or {}).get("terminated") or {}).get("exitCode")
                if _has_code(codes, found["name"], code):
                    return f"Container {found['name']} for pod {named} failed with exit code {code}"
        return ""
    for found in status.get("conditions") or ():
        for wanted in rule.get("onPodConditions") or ():
            if (found["type"], found["status"]) == (wanted["type"], wanted.get("status", "True")):
                return f"Pod {named} has condition {found['type']}"
    return ""


def _has_code(codes: Mapping[str, Any], container: str, code: int | None) -> bool:
    if not code or codes.get("containerName", container) != container:
        return False
    return (code in codes["values"]) is (codes["operator"] == "In")


def fails_index(job: Object, pod: Object) -> bool:
    """Whether a failed pod is the last that its index may have, under backoffLimitPerIndex."""
    action = verdict(job, pod).action
    if action == COUNT:
        return job_pods.noted(pod, job_pods.INDEX_FAILURES) >= int(job["spec"]["backoffLimitPerIndex"])
    return action == FAIL_INDEX


def last_failed(pods: Iterable[Object], index: int, now: float) -> Object | None:
    """The pod of an index that failed last, of those that are still there."""
    failed = [pod for pod in pods if job_pods.index_of_pod(pod) == index and job_pods.has_failed(pod)]
    return max(failed, key=lambda pod: job_pods.ended_at(pod, now), default=None)


def index_back_off(failed: Object, now: float) -> float:
    """Seconds to wait before an index is tried again, from its last failed pod."""
    before = job_pods.noted(failed, job_pods.INDEX_FAILURES) + job_pods.noted(failed, job_pods.INDEX_IGNORED)
    return job_pods.ended_at(failed, now) + pause(before + 1) - now


def pause(failures: int) -> float:
    """Seconds between the last of so many failures and the next try."""
    return min(FIRST_BACK_OFF_S * 2.0 ** min(failures - 1, 10), LAST_BACK_OFF_S)


def note_failures(job: Object, pod: Object, failed: Object | None) -> None:
    """Write into a new pod of an index how often the index has failed."""
    failures = ignored = 0
    if failed is not None:
        was_ignored = verdict(job, failed).action == IGNORE
        failures = job_pods.noted(failed, job_pods.INDEX_FAILURES) + (not was_ignored)
        ignored = job_pods.noted(failed, job_pods.INDEX_IGNORED) + was_ignored
    notes = dict(annotations_of(pod)) | {job_pods.INDEX_FAILURES: str(failures)}
    meta(pod)["annotations"] = notes | ({job_pods.INDEX_IGNORED: str(ignored)} if ignored else {})


def restarted_too_often(job: Object, pods: Iterable[Object]) -> bool:
    """Whether containers that are started again within their pods have used up the backoffLimit."""
    spec = job["spec"]
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(job_pods.restarts(pod) for pod in pods if not is_finished(pod))
    return restarts >= max(1, int(spec.get("backoffLimit", 6)))
