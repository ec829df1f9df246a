"""PersistentVolumes and the claims to them."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, sequence, text
from gpuworkshop.lab.api.validation import resources
from gpuworkshop.lab.api.validation.findings import Findings

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
SOURCES = ("awsElasticBlockStore", "csi", "hostPath", "local", "nfs")
CLAIM_STAYS = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)


def claim(found: Findings, obj: Object) -> None:
    """A PersistentVolumeClaim."""
    spec = mapping(obj, "spec")
    _modes(found, spec)
    _size(found, mapping(spec, "resources", "requests"), "spec.resources[storage]")


def persistent_volume(found: Findings, obj: Object) -> None:
    """A PersistentVolume."""
    spec = mapping(obj, "spec")
    _modes(found, spec)
    if not mapping(spec, "capacity"):
        found.required("spec.capacity")
    else:
        _size(found, mapping(spec, "capacity"), "spec.capacity[storage]")
    policy = spec.get("persistentVolumeReclaimPolicy")
    found.one_of("spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES, optional=True)
    given = [key for key in SOURCES if isinstance(spec.get(key), dict)]
    if not given:
        found.required("spec", "must specify a volume type")
    for key in given[1:]:
        found.forbidden(f"spec.{key}", "may not specify more than 1 volume type")


def claim_update(found: Findings, new: Object, old: Object) -> None:
    """A claim stays as it is, but for the size that it asks for."""
    spec, before = (
        {key: value for key, value in mapping(obj, "spec").items() if key not in ("resources", "volumeName")}
        for obj in (new, old)
    )
    if spec != before:
        found.forbidden("spec", CLAIM_STAYS)


def _modes(found: Findings, spec: Mapping) -> None:
    modes = sequence(spec, "accessModes")
    if not modes:
        found.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in ACCESS_MODES:
            found.unsupported("spec.accessModes", mode, ACCESS_MODES)
    found.one_of("spec.volumeMode", text(spec, "volumeMode"), VOLUME_MODES, optional=True)


def _size(found: Findings, amounts: Mapping, field: str) -> None:
    if (size := amounts.get("storage")) is None:
        found.required(field)
    else:
        resources.quantity(found, "storage", size, field)
