"""A container's environment: made from the pod alone, and $(VAR) in its values, command and arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import CONFIG_MAP, SECRET, Kind
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of
from gpuworkshop.lab.kubelet.resources import resource_of
from gpuworkshop.lab.kubelet.volumes import Missing, Sources, field_of

INHERITED = ("PATH", "LANG")
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")


def environment(
    pod: Object, container: Mapping[str, Any], sources: Sources, given: Mapping[str, str]
) -> dict[str, str]:
    """The container's variables; `given` are those that every container has.

    Raises Missing, in the kubelet's words, when something that they refer to is not there.
    """
    variables = {name: os.environ[name] for name in INHERITED if name in os.environ}
    variables |= {"HOSTNAME": name_of(pod), **given}
    for source in container.get("envFrom") or []:
        variables |= _whole(pod, source, sources)
    for entry in container.get("env") or []:
        if "valueFrom" not in entry:
            variables[entry["name"]] = expand(entry.get("value") or "", variables)
        elif (value := _value(pod, container, entry["valueFrom"], sources)) is not None:
            variables[entry["name"]] = value
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with `$(NAME)` replaced where the name is known, and `$$` by one dollar sign."""

    def replaced(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)


def _whole(pod: Object, source: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    kind, reference = _reference(source, "configMapRef", "secretRef")
    prefix = source.get("prefix", "")
    try:
        data = sources.data(kind, pod, reference.get("name", ""))
    except Missing:
        if reference.get("optional"):
            return {}
        raise
    return {prefix + key: value.decode(errors="replace") for key, value in data.items()}


def _value(
    pod: Object, container: Mapping[str, Any], source: Mapping[str, Any], sources: Sources
) -> str | None:
    if reference := source.get("fieldRef"):
        return field_of(pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource_of(pod, reference, reference.get("containerName") or container["name"])
    kind, reference = _reference(source, "configMapKeyRef", "secretKeyRef")
    try:
        return _key(pod, kind, reference, sources).decode(errors="replace")
    except Missing:
        if reference.get("optional"):
            return None
        raise


def _key(pod: Object, kind: Kind, reference: Mapping[str, Any], sources: Sources) -> bytes:
    name, key = reference.get("name", ""), reference["key"]
    data = sources.data(kind, pod, name)
    if key not in data:
        raise Missing(f"couldn't find key {key} in {kind.kind} {namespace_of(pod)}/{name}")
    return data[key]


def _reference(source: Mapping[str, Any], config: str, secret: str) -> tuple[Kind, Mapping[str, Any]]:
    return (CONFIG_MAP, source[config]) if config in source else (SECRET, source.get(secret) or {"key": ""})
