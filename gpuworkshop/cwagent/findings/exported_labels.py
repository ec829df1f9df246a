"""The workload's pod lost: moved to `exported_pod`, or the exporter's own pod in its place."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, WARNING, Finding
from gpuworkshop.cwagent.labels import PODS, WORKLOAD
from gpuworkshop.cwagent.series import MOVED


def pod_moved_to_exported(case: Case) -> Iterator[Finding]:
    """One finding a job whose target labels push workload labels aside."""
    moved: dict[str, set[str]] = {}
    for each in case.of_interest:
        names = {name for series in each.series for name in WORKLOAD if series.labels.get(MOVED + name)}
        moved.setdefault(each.target.job.name, set()).update(names)
    for job, names in moved.items():
        if names:
            away = ", ".join(f"{name} to {MOVED}{name}" for name in sorted(names))
            yield Finding(
                "pod-moved-to-exported",
                ERROR,
                f"job {job!r} gives its targets labels of the workload's names, so that the exporter's are"
                f" moved: {away}; {' and '.join(sorted(names))} now name the exporter itself",
                f"set honor_labels: true, or drop the rules that write {', '.join(sorted(names))}",
            )


def exporters_pod_on_idle_gpus(case: Case) -> Iterator[Finding]:
    """Under honor_labels a pod of the target's fills the gap where the exporter names none."""
    if not case.has_gpus:
        return
    for job in {each.target.job.name: each for each in case.of_interest if each.target.job.honor_labels}:
        targets = [each.target for each in case.of_interest if each.target.job.name == job]
        names = {name for target in targets for name in PODS if target.labels.get(name)}
        if names:
            yield Finding(
                "exporters-pod-on-idle-gpus",
                WARNING,
                f"job {job!r} gives its targets the label {' and '.join(sorted(names))}: a GPU that no pod"
                " uses then shows the exporter's own pod as if that used it",
                f"drop the rules that write {' and '.join(sorted(names))}",
            )
