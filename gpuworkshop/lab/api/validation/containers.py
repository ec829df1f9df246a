"""Containers of a pod: names, images, ports, environment, mounts and security."""

from __future__ import annotations

from collections.abc import Container as Collection
from collections.abc import Iterable

from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, sequence, text
from gpuworkshop.lab.api.validation import formats, resources
from gpuworkshop.lab.api.validation.environment import environment
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.handlers import lifecycle, probes

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
BLANKS = "must not have leading or trailing whitespace"
NOT_IN_INIT = "may not be set for init containers without restartPolicy=Always"
FOR_INIT_ONLY = "may not be set for non-init containers"
IDS = "must be between 0 and 2147483647, inclusive"
ESCALATION = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"


def containers(found: Findings, spec: Mapping, field: str, volumes: Collection[str]) -> None:
    """The init containers and the containers of a pod's spec; `volumes` are the names that they can mount."""
    if not sequence(spec, "containers"):
        found.required(f"{field}.containers")
    named = []
    for key in ("initContainers", "containers"):
        for index, container in enumerate(mappings(spec, key)):
            at = f"{field}.{key}[{index}]"
            named.append((f"{at}.name", text(container, "name")))
            _container(found, container, at, volumes)
            _stages(found, container, at, is_init=key == "initContainers")
    found.unique(named)
    _host_ports(found, spec, field)


def _container(found: Findings, container: Mapping, field: str, volumes: Collection[str]) -> None:
    _name(found, container, field)
    image(found, text(container, "image"), f"{field}.image")
    _ports(found, container, f"{field}.ports")
    environment(found, container, field)
    _mounts(found, container, f"{field}.volumeMounts", volumes)
    probes(found, container, field)
    lifecycle(found, mapping(container, "lifecycle"), f"{field}.lifecycle")
    found.one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    found.one_of(
        f"{field}.terminationMessagePolicy", container.get("terminationMessagePolicy"), MESSAGE_POLICIES
    )
    resources.requirements(found, mapping(container, "resources"), f"{field}.resources")
    _security(found, mapping(container, "securityContext"), f"{field}.securityContext")


def _name(found: Findings, named: Mapping, field: str) -> None:
    if name := text(named, "name"):
        found.fault(f"{field}.name", name, formats.dns_label(name))
    else:
        found.required(f"{field}.name")


def image(found: Findings, reference: str, field: str) -> None:
    """The reference to a container's image."""
    if not reference:
        found.required(field)
    elif reference.strip() != reference:
        found.invalid(field, reference, BLANKS)


def _ports(found: Findings, container: Mapping, field: str) -> None:
    names = []
    for index, port in enumerate(mappings(container, "ports")):
        at = f"{field}[{index}]"
        if name := text(port, "name"):
            found.fault(f"{at}.name", name, formats.port_name(name))
            names.append((f"{at}.name", name))
        if not port.get("containerPort"):
            found.required(f"{at}.containerPort")
        else:
            found.fault(f"{at}.containerPort", port["containerPort"], formats.port(port["containerPort"]))
        if port.get("hostPort"):
            found.fault(f"{at}.hostPort", port["hostPort"], formats.port(port["hostPort"]))
        found.one_of(f"{at}.protocol", port.get("protocol"), PROTOCOLS)
    found.unique(names)


def _host_ports(found: Findings, spec: Mapping, field: str) -> None:
    """Ports of the host are the pod's only once; in the host's network they are the containers' own."""
    taken = []
    for index, container in enumerate(mappings(spec, "containers")):
        for position, port in enumerate(mappings(container, "ports")):
            if not (number := port.get("hostPort")):
                continue
            at = f"{field}.containers[{index}].ports[{position}].hostPort"
            if spec.get("hostNetwork") is True and number != port.get("containerPort"):
                found.invalid(at, number, "must match `containerPort` when `hostNetwork` is true")
            taken.append((at, f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{number}"))
    found.unique(taken)


def _mounts(found: Findings, container: Mapping, field: str, volumes: Collection[str]) -> None:
    places: set[str] = set()
    for index, mount in enumerate(mappings(container, "volumeMounts")):
        at = f"{field}[{index}]"
        if not (name := text(mount, "name")):
            found.required(f"{at}.name")
        if name not in volumes:
            found.not_found(f"{at}.name", name)
        if not (place := text(mount, "mountPath")):
            found.required(f"{at}.mountPath")
        if place in places:
            found.invalid(f"{at}.mountPath", place, "must be unique")
        places.add(place)
        for key in ("subPath", "subPathExpr"):
            if path := text(mount, key):
                found.fault(f"{at}.{key}", path, formats.relative_path(path))
        if text(mount, "subPath") and text(mount, "subPathExpr"):
            found.invalid(
                f"{at}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )


def _security(found: Findings, context: Mapping, field: str) -> None:
    identities(found, context, field)
    if context.get("privileged") is True and context.get("allowPrivilegeEscalation") is False:
        found.invalid(field, context, ESCALATION)


def identities(
    found: Findings, context: Mapping, field: str, keys: Iterable[str] = ("runAsUser", "runAsGroup")
) -> None:
    """The users and groups of a security context."""
    for key in keys:
        number = context.get(key)
        if type(number) is int and not 0 <= number < 2**31:
            found.invalid(f"{field}.{key}", number, IDS)


def _stages(found: Findings, container: Mapping, field: str, *, is_init: bool) -> None:
    """What only those may have that run to an end, or only those that stay."""
    policy = container.get("restartPolicy")
    if not is_init:
        if policy is not None:
            found.forbidden(f"{field}.restartPolicy", FOR_INIT_ONLY)
        return
    if policy is not None:
        found.one_of(f"{field}.restartPolicy", policy, ("Always",))
    if policy != "Always":
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key) is not None:
                found.forbidden(f"{field}.{key}", NOT_IN_INIT)
