"""What the kubelet does to containers: probes, and the handlers of their lifecycle."""

from __future__ import annotations

from gpuworkshop.lab.api.shapes import Mapping, mapping, sequence, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings

OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
OF_LIFECYCLE = ("exec", "httpGet", "tcpSocket", "sleep")
NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
GRACE = "terminationGracePeriodSeconds"


def probes(found: Findings, container: Mapping, field: str) -> None:
    """The probes of a container; those that end it succeed or fail at once."""
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if not isinstance(probe := container.get(key), dict):
            continue
        at = f"{field}.{key}"
        handler(found, probe, at, OF_PROBES)
        for number in NUMBERS:
            found.at_least(f"{at}.{number}", probe.get(number), 0)
        if key == "readinessProbe":
            if probe.get(GRACE) is not None:
                found.invalid(f"{at}.{GRACE}", probe[GRACE], "must not be set for readinessProbes")
            continue
        found.at_least(f"{at}.{GRACE}", probe.get(GRACE), 1, "must be greater than 0")
        if probe.get("successThreshold") not in (None, 0, 1):
            found.invalid(f"{at}.successThreshold", probe["successThreshold"], "must be 1")


def lifecycle(found: Findings, handlers: Mapping, field: str) -> None:
    """The handlers for a container's start and end."""
    for key in ("postStart", "preStop"):
        if isinstance(handlers.get(key), dict):
            handler(found, handlers[key], f"{field}.{key}", OF_LIFECYCLE)


def handler(found: Findings, given: Mapping, field: str, sorts: tuple[str, ...]) -> None:
    """One action, of exactly one sort."""
    actions = [key for key in sorts if isinstance(given.get(key), dict)]
    if not actions:
        found.required(field, "must specify a handler type")
    for key in actions[1:]:
        found.forbidden(f"{field}.{key}", "may not specify more than 1 handler type")
    for key in actions[:1]:
        _action(found, mapping(given, key), f"{field}.{key}", key)


def _action(found: Findings, action: Mapping, field: str, sort: str) -> None:
    if sort == "exec":
        if not sequence(action, "command"):
            found.required(f"{field}.command")
        return
    if sort == "sleep":
        found.at_least(f"{field}.seconds", action.get("seconds"), 0)
        return
    port = action.get("port", 0)
    found.fault(f"{field}.port", port, formats.port(port) if sort == "grpc" else formats.port_or_name(port))
    if sort == "httpGet":
        if not text(action, "path"):
            found.required(f"{field}.path")
        found.one_of(f"{field}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
