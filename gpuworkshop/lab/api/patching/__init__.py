"""The patches of the Kubernetes API, and the record of who owns which field.

Pure functions over JSON objects. What they return shares parts with what they were given.
"""

from gpuworkshop.lab.api.patching.json_patches import json_patch
from gpuworkshop.lab.api.patching.managed import track_update
from gpuworkshop.lab.api.patching.merge import merge_patch
from gpuworkshop.lab.api.patching.server_side import apply
from gpuworkshop.lab.api.patching.strategic import strategic_merge

__all__ = ["apply", "json_patch", "merge_patch", "strategic_merge", "track_update"]
