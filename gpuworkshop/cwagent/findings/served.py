"""A path or port that is scraped, but that the exporter does not serve."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, Finding
from gpuworkshop.cwagent.targets import Target

PATH, PORT = "/metrics", "9400"
DECLARED_PORT = "__meta_kubernetes_pod_container_port_number"


def path_not_served(case: Case) -> Iterator[Finding]:
    """The exporter's page lies at /metrics, or where it was read."""
    path = urlsplit(case.served_at).path or (PATH if case.has_gpus else "")
    wrong = {
        (each.target.job.name, each.target.path) for each in case.of_interest if each.target.path != path
    }
    for job, seen in sorted(wrong if path else ()):
        yield Finding(
            "path-not-served",
            ERROR,
            f"job {job!r} scrapes {seen or 'no path'}, but the exporter serves its metrics at {path}",
            f"set metrics_path: {path}, or leave it out: /metrics is the default",
        )


def port_not_served(case: Case) -> Iterator[Finding]:
    """The exporter listens at the port that its container declares, else at 9400."""
    for each in case.of_interest:
        target = each.target
        serves = target.discovered.get(DECLARED_PORT) or (PORT if case.has_gpus else "")
        if serves and not _is_static(target) and target.port != serves:
            yield Finding(
                "port-not-served",
                ERROR,
                f"job {target.job.name!r} scrapes {target.address or 'no address'}, but the exporter listens"
                f" at port {serves}",
                f"leave __address__ alone and keep the port {serves}, or write it: a rule whose regex does"
                " not match changes nothing (is a backslash lost?)",
            )


def _is_static(target: Target) -> bool:
    """A port that somebody wrote down may be that of a port-forward."""
    return not any(name.startswith("__meta_") for name in target.discovered) and target.port == _own_port(
        target
    )


def _own_port(target: Target) -> str:
    return target.discovered.get("__address__", "").rpartition(":")[2]
