"""Volumes of a pod: their names, and the sources that they are filled from."""

from __future__ import annotations

from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation import formats, resources
from gpuworkshop.lab.api.validation.environment import FILE_FIELDS, field_reference, resource_reference
from gpuworkshop.lab.api.validation.findings import Findings

HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
MODE_WORDS = "must be a number between 0 and 0777 (octal), both inclusive"
PROJECTED = ("configMap", "downwardAPI", "secret", "serviceAccountToken", "clusterTrustBundle")
TOKEN_SECONDS = "may not specify a duration less than 10 minutes"  # noqa: S105  a message


def volumes(found: Findings, spec: Mapping, field: str) -> set[str]:
    """Check the volumes of a pod's spec; returns their names."""
    named = []
    for index, volume in enumerate(mappings(spec, "volumes")):
        at = f"{field}.volumes[{index}]"
        name = text(volume, "name")
        if name:
            found.fault(f"{at}.name", name, formats.dns_label(name))
        else:
            found.required(f"{at}.name")
        named.append((f"{at}.name", name))
        _sources(found, volume, at)
    found.unique(named)
    return {name for _, name in named if name}


def _sources(found: Findings, volume: Mapping, field: str) -> None:
    given = [key for key, value in volume.items() if key != "name" and isinstance(value, dict)]
    if not given:
        found.required(field, "must specify a volume type")
    for key in given[1:]:
        found.forbidden(f"{field}.{key}", "may not specify more than 1 volume type")
    for key in given[:1]:
        _source(found, key, mapping(volume, key), f"{field}.{key}")


def _source(found: Findings, sort: str, source: Mapping, field: str) -> None:
    match sort:
        case "configMap":
            _named(found, f"{field}.name", text(source, "name"))
            _files(found, source, field)
        case "secret":
            _named(found, f"{field}.secretName", text(source, "secretName"))
            _files(found, source, field)
        case "persistentVolumeClaim":
            _named(found, f"{field}.claimName", text(source, "claimName"))
        case "hostPath":
            _host_path(found, source, field)
        case "emptyDir":
            if (limit := source.get("sizeLimit")) is not None:
                resources.quantity(found, "memory", limit, f"{field}.sizeLimit")
        case "downwardAPI":
            _mode(found, source, f"{field}.defaultMode", "defaultMode")
            _downward(found, source, field)
        case "projected":
            _projected(found, source, field)


def _named(found: Findings, field: str, name: str) -> None:
    if not name:
        found.required(field)


def _host_path(found: Findings, source: Mapping, field: str) -> None:
    if path := text(source, "path"):
        found.fault(f"{field}.path", path, formats.backsteps(path))
    else:
        found.required(f"{field}.path")
    if (sort := text(source, "type")) not in HOST_PATHS:
        found.unsupported(f"{field}.type", sort, HOST_PATHS)


def _mode(found: Findings, holder: Mapping, field: str, key: str) -> None:
    mode = holder.get(key)
    if type(mode) is int and not 0 <= mode <= 0o777:
        found.invalid(field, mode, MODE_WORDS)


def _files(found: Findings, source: Mapping, field: str) -> None:
    """The keys that become files, and where."""
    _mode(found, source, f"{field}.defaultMode", "defaultMode")
    for index, item in enumerate(mappings(source, "items")):
        at = f"{field}.items[{index}]"
        if not text(item, "key"):
            found.required(f"{at}.key")
        _path(found, item, at)


def _path(found: Findings, item: Mapping, field: str) -> None:
    if path := text(item, "path"):
        found.fault(f"{field}.path", path, formats.relative_path(path))
    else:
        found.required(f"{field}.path")
    _mode(found, item, f"{field}.mode", "mode")


def _downward(found: Findings, source: Mapping, field: str) -> None:
    for index, item in enumerate(mappings(source, "items")):
        at = f"{field}.items[{index}]"
        _path(found, item, at)
        if isinstance(reference := item.get("fieldRef"), dict):
            field_reference(found, reference, f"{at}.fieldRef", FILE_FIELDS)
        elif isinstance(reference := item.get("resourceFieldRef"), dict):
            resource_reference(found, reference, f"{at}.resourceFieldRef")
        else:
            found.required(at, "one of fieldRef and resourceFieldRef is required")


def _projected(found: Findings, source: Mapping, field: str) -> None:
    _mode(found, source, f"{field}.defaultMode", "defaultMode")
    for index, part in enumerate(mappings(source, "sources")):
        at = f"{field}.sources[{index}]"
        given = [key for key in PROJECTED if isinstance(part.get(key), dict)]
        if not given:
            found.required(at)
        for key in given[1:]:
            found.forbidden(f"{at}.{key}", "may not specify more than 1 volume type")
        for key in given[:1]:
            _projection(found, key, mapping(part, key), f"{at}.{key}")


def _projection(found: Findings, sort: str, part: Mapping, field: str) -> None:
    match sort:
        case "configMap" | "secret":
            _named(found, f"{field}.name", text(part, "name"))
            _files(found, part, field)
        case "downwardAPI":
            _downward(found, part, field)
        case "serviceAccountToken":
            found.at_least(f"{field}.expirationSeconds", part.get("expirationSeconds"), 600, TOKEN_SECONDS)
            if not text(part, "path"):
                found.required(f"{field}.path")
