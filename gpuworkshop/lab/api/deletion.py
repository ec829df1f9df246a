"""How an object goes: at once, after a grace period, or when its finalizers are done."""

from __future__ import annotations

from gpuworkshop.lab.api.kinds import NAMESPACE, POD, Kind
from gpuworkshop.lab.api.objects import Object, copy_of, meta, seconds_of, timestamp

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
DEFAULT_GRACE_S = 30


def marked(kind: Kind, live: Object, propagation: str, grace_period: int | None, now: float) -> Object:
    """A copy of `live` whose deletion has begun."""
    new = copy_of(live)
    metadata = meta(new)
    finalizers = [found for found in metadata.get("finalizers") or [] if found not in (FOREGROUND, ORPHAN)]
    if propagation in _FINALIZERS and not metadata.get("deletionTimestamp"):
        finalizers.append(_FINALIZERS[propagation])
    elif metadata.get("deletionTimestamp"):
        finalizers = metadata.get("finalizers") or []
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    before = metadata.get("deletionGracePeriodSeconds")
    if before is None:
        grace = _grace(kind, new, grace_period)
        metadata["deletionGracePeriodSeconds"] = grace
        metadata["deletionTimestamp"] = timestamp(now + grace)
        if "generation" in metadata:
            metadata["generation"] += 1
    elif grace_period is not None and (grace := _grace(kind, new, grace_period)) < before:
        # A grace period that has begun is never made longer, and counts from when it began.
        metadata["deletionGracePeriodSeconds"] = grace
        metadata["deletionTimestamp"] = timestamp(seconds_of(metadata["deletionTimestamp"]) - before + grace)
    if kind is NAMESPACE:
        new.setdefault("status", {})["phase"] = "Terminating"
    return new


_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


def is_finished(kind: Kind, obj: Object) -> bool:
    """Whether nothing holds an object any more whose deletion has begun."""
    if meta(obj).get("finalizers"):
        return False
    if kind is NAMESPACE and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not meta(obj).get("deletionGracePeriodSeconds")


def _grace(kind: Kind, pod: Object, asked: int | None) -> int:
    """Seconds for a pod's containers to end; none for one that has none running, or for another kind."""
    if kind is not POD:
        return 0
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
    return int(asked) if asked >= 0 else 1  # as the real one takes what is negative
