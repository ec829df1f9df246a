"""Pods, and the templates of pods in workloads."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.containers import containers, identities
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import template_metadata
from gpuworkshop.lab.api.validation.scheduling import scheduling
from gpuworkshop.lab.api.validation.volumes import volumes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PREEMPTION = ("PreemptLowerPriority", "Never")
DEADLINE = "must be between 1 and 2147483647, inclusive"
NO_NAMESERVERS = "must provide at least one DNS nameserver when `dnsPolicy` is None"
SUBDOMAINS = ("serviceAccountName", "nodeName", "priorityClassName")
LABELS = ("hostname", "subdomain")


def pod(found: Findings, obj: Object) -> None:
    """A pod."""
    pod_spec(found, mapping(obj, "spec"), "spec")


def template(found: Findings, spec: Mapping, field: str = "spec.template") -> None:
    """The pod template of a workload's spec."""
    given = mapping(spec, "template")
    template_metadata(found, mapping(given, "metadata"), f"{field}.metadata")
    pod_spec(found, mapping(given, "spec"), f"{field}.spec")


def pod_spec(found: Findings, spec: Mapping, field: str) -> None:
    """The spec of a pod or of a template."""
    names = volumes(found, spec, field)
    containers(found, spec, field, names)
    found.one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    found.one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    found.one_of(f"{field}.preemptionPolicy", spec.get("preemptionPolicy"), PREEMPTION, optional=True)
    if spec.get("dnsPolicy") == "None" and not mapping(spec, "dnsConfig").get("nameservers"):
        found.required(f"{field}.dnsConfig.nameservers", NO_NAMESERVERS)
    deadline(found, spec, field)
    found.at_least(f"{field}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"), 0)
    identities(
        found,
        mapping(spec, "securityContext"),
        f"{field}.securityContext",
        ("runAsUser", "runAsGroup", "fsGroup"),
    )
    scheduling(found, spec, field)
    _names(found, spec, field)


def deadline(found: Findings, spec: Mapping, field: str) -> None:
    """How long a pod may run."""
    seconds = spec.get("activeDeadlineSeconds")
    if type(seconds) is int and not 1 <= seconds < 2**31:
        found.invalid(f"{field}.activeDeadlineSeconds", seconds, DEADLINE)


def _names(found: Findings, spec: Mapping, field: str) -> None:
    for key in SUBDOMAINS:
        if name := text(spec, key):
            found.fault(f"{field}.{key}", name, formats.dns_subdomain(name))
    for key in LABELS:
        if name := text(spec, key):
            found.fault(f"{field}.{key}", name, formats.dns_label(name))
    for index, alias in enumerate(mappings(spec, "hostAliases")):
        address = text(alias, "ip")
        found.fault(f"{field}.hostAliases[{index}].ip", address, formats.ip_address(address))
