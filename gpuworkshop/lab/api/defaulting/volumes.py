"""Volumes of a pod, with the modes of the files in them, and those of the cluster with their claims."""

from __future__ import annotations

from gpuworkshop.lab.api.defaulting import amounts
from gpuworkshop.lab.api.defaulting.containers import field_reference, pull_policy, resource_reference
from gpuworkshop.lab.api.shapes import Mapping, fill, mapping, mappings, struct, text

MODE = 0o644
WITH_MODE = ("configMap", "secret", "projected", "downwardAPI")


def volume(found: Mapping) -> None:
    """A volume; one without a source is an empty directory."""
    if not any(value is not None for key, value in found.items() if key != "name"):
        found["emptyDir"] = {}
    for key in WITH_MODE:
        if isinstance(found.get(key), dict):
            fill(found[key], defaultMode=MODE)
    _items(mapping(found, "downwardAPI"))
    for source in mappings(mapping(found, "projected"), "sources"):
        _items(mapping(source, "downwardAPI"))
        if isinstance(token := source.get("serviceAccountToken"), dict):
            fill(token, expirationSeconds=3600)
    if isinstance(host_path := found.get("hostPath"), dict):
        fill(host_path, type="")
    if isinstance(image := found.get("image"), dict):
        fill(image, pullPolicy=pull_policy(text(image, "reference")))
    amounts.tidy_one(mapping(found, "emptyDir"), "sizeLimit")
    if template := mapping(found, "ephemeral", "volumeClaimTemplate"):
        claim_spec(struct(template, "spec"))


def claim_spec(spec: Mapping) -> None:
    """The spec of a claim for a volume, as templates hold it."""
    fill(spec, volumeMode="Filesystem")
    amounts.tidy(spec, "resources", "requests")
    amounts.tidy(spec, "resources", "limits")


def claim(obj: Mapping) -> None:
    """A PersistentVolumeClaim: it waits for its volume."""
    claim_spec(struct(obj, "spec"))
    fill(struct(obj, "status"), phase="Pending")


def persistent_volume(obj: Mapping) -> None:
    """A PersistentVolume: there for whoever claims it, which in the lab nobody does."""
    spec = struct(obj, "spec")
    fill(spec, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    amounts.tidy(spec, "capacity")
    if isinstance(host_path := spec.get("hostPath"), dict):
        fill(host_path, type="")
    fill(struct(obj, "status"), phase="Available")


def _items(downward: Mapping) -> None:
    for item in mappings(downward, "items"):
        field_reference(item)
        resource_reference(item)
