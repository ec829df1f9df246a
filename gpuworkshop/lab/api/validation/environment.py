"""The environment of a container: its variables, and where they come from."""

from __future__ import annotations

import re

from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings

SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
ONE_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
ONE_AT_A_TIME = "may not have more than one field specified at a time"
ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")


def environment(found: Findings, container: Mapping, field: str) -> None:
    """The `env` and `envFrom` of a container."""
    for index, variable in enumerate(mappings(container, "env")):
        at = f"{field}.env[{index}]"
        if name := text(variable, "name"):
            found.fault(f"{at}.name", name, formats.env_name(name))
        else:
            found.required(f"{at}.name")
        if isinstance(source := variable.get("valueFrom"), dict):
            _source(found, source, f"{at}.valueFrom")
            if text(variable, "value"):
                found.invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty")
    for index, source in enumerate(mappings(container, "envFrom")):
        _whole(found, source, f"{field}.envFrom[{index}]")


def _source(found: Findings, source: Mapping, field: str) -> None:
    given = [key for key in SOURCES if isinstance(source.get(key), dict)]
    if not given:
        found.invalid(field, "", ONE_SOURCE)
    if len(given) > 1:
        found.invalid(field, "", ONE_AT_A_TIME)
    if "fieldRef" in given:
        field_reference(found, source["fieldRef"], f"{field}.fieldRef", ENV_FIELDS)
    if "resourceFieldRef" in given:
        resource_reference(found, source["resourceFieldRef"], f"{field}.resourceFieldRef")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key in given:
            if wanted := text(source[key], "key"):
                found.fault(f"{field}.{key}.key", wanted, formats.config_key(wanted))
            else:
                found.required(f"{field}.{key}.key")


def field_reference(found: Findings, reference: Mapping, field: str, supported: tuple[str, ...]) -> None:
    """A reference to a field of the pod itself."""
    path = text(reference, "fieldPath")
    if not path:
        found.required(f"{field}.fieldPath")
    elif path not in supported and not _SUBSCRIPT.fullmatch(path):
        found.unsupported(f"{field}.fieldPath", path, supported)


def resource_reference(found: Findings, reference: Mapping, field: str) -> None:
    """A reference to what a container requests or is limited to."""
    resource = text(reference, "resource")
    if not resource:
        found.required(f"{field}.resource")
    elif resource not in RESOURCES and ".hugepages-" not in resource:
        found.unsupported(f"{field}.resource", resource, RESOURCES)


def _whole(found: Findings, source: Mapping, field: str) -> None:
    given = [key for key in ("configMapRef", "secretRef") if isinstance(source.get(key), dict)]
    if prefix := text(source, "prefix"):
        found.fault(f"{field}.prefix", prefix, formats.env_name(prefix))
    if not given:
        found.invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")
    if len(given) > 1:
        found.invalid(field, "", ONE_AT_A_TIME)
    for key in given:
        name = text(mapping(source, key), "name")
        if not name:
            found.required(f"{field}.{key}.name")
        else:
            found.fault(f"{field}.{key}.name", name, formats.dns_subdomain(name))
