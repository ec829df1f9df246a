"""What a simulated GPU or pod can be told to do, as the GPU file writes it.

A load is a word, or a mapping with `kind`; a wave has seconds on and off too. Nothing here knows the
trace: `backends.clips` has the recording that plays for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

# On a pod, or on a whole device.
POD_KINDS = ("idle", "matmul", "wave", "training", "memory-bound", "pcie-bound", "fp32")
# The recorded two pods come together, so only a device can replay them.
DEVICE_KINDS = (*POD_KINDS, "shared")

SHORTEST_S, LONGEST_S = 0.5, 86_400.0


@dataclass(frozen=True)
class Load:
    """One load; `on_s` and `off_s` are a wave's, on the absolute clock: on while t mod (on + off) < on."""

    kind: str = "idle"
    on_s: float = 20.0
    off_s: float = 20.0


IDLE = Load()
