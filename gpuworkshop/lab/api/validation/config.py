"""ConfigMaps and Secrets: keys, sizes, and what a type of Secret has to hold."""

from __future__ import annotations

import base64
import binascii
import json

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import mapping
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import IMMUTABLE as UNCHANGING
from gpuworkshop.lab.api.validation.findings import Findings

LARGEST = 1024 * 1024
IMMUTABLE = "field is immutable when `immutable` is set"
REDACTED = "<secret contents redacted>"
ACCOUNT = "kubernetes.io/service-account.name"
REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
BASIC = "kubernetes.io/basic-auth"


def config_map(found: Findings, obj: Object) -> None:
    """A ConfigMap."""
    size = 0
    for part in ("data", "binaryData"):
        for key, value in mapping(obj, part).items():
            found.fault(f"{part}[{key}]", key, formats.config_key(key))
            size += _size(value) if part == "data" else _decoded_size(found, f"{part}[{key}]", value)
    for key in mapping(obj, "data").keys() & mapping(obj, "binaryData").keys():
        found.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if size > LARGEST:
        found.too_long("", LARGEST)


def secret(found: Findings, obj: Object) -> None:
    """A Secret."""
    data = mapping(obj, "data")
    size = 0
    for key, value in data.items():
        found.fault(f"data[{key}]", key, formats.config_key(key))
        size += _decoded_size(found, f"data[{key}]", value)
    if size > LARGEST:
        found.too_long("data", LARGEST)
    of_type = obj.get("type")
    for key in REQUIRED_KEYS.get(of_type, ()) if isinstance(of_type, str) else ():
        if key not in data:
            found.required(f"data[{key}]")
        elif key.startswith(".docker"):
            _docker(found, data[key], f"data[{key}]")
    if of_type == BASIC and not data.keys() & {"username", "password"}:
        found.required("data[username]")
        found.required("data[password]")
    if of_type == "kubernetes.io/service-account-token" and not mapping(obj, "metadata", "annotations").get(
        ACCOUNT
    ):
        found.required(f"metadata.annotations[{ACCOUNT}]")


def _docker(found: Findings, value: object, field: str) -> None:
    try:
        json.loads(base64.b64decode(value if isinstance(value, str) else ""))
    except (ValueError, RecursionError):
        found.invalid(field, REDACTED, "invalid character: it is no JSON")


def _size(value: object) -> int:
    return len(value.encode(errors="replace")) if isinstance(value, str) else 0


def _decoded_size(found: Findings, field: str, value: object) -> int:
    if not isinstance(value, str):
        return 0
    try:
        return len(base64.b64decode("".join(value.split()), validate=True))
    except (binascii.Error, ValueError):
        found.invalid(field, REDACTED, "illegal base64 data")
        return 0


def config_map_update(found: Findings, new: Object, old: Object) -> None:
    """One that is immutable stays so."""
    _immutable(found, new, old, ("data", "binaryData"))


def secret_update(found: Findings, new: Object, old: Object) -> None:
    """Its type stays; one that is immutable stays as a whole."""
    found.unchanged("type", new.get("type"), old.get("type"), UNCHANGING)
    _immutable(found, new, old, ("data",))


def _immutable(found: Findings, new: Object, old: Object, parts: tuple[str, ...]) -> None:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        found.forbidden("immutable", IMMUTABLE)
    for part in parts:
        if mapping(new, part) != mapping(old, part):
            found.forbidden(part, IMMUTABLE)
