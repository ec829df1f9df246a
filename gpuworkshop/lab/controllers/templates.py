"""Pod templates compared and named: the hash in the names of ReplicaSets, pods and ControllerRevisions."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuworkshop.lab.api.registry import RANDOM_ALPHABET

HASH_LABEL = "pod-template-hash"


def normalised(template: Any) -> Any:
    """A template without nulls, empty fields and the hash label, so that equal ones are equal."""
    if isinstance(template, dict):
        kept = {key: normalised(value) for key, value in template.items() if key != HASH_LABEL}
        return {key: value for key, value in kept.items() if value not in (None, {}, [])}
    if isinstance(template, list):
        return [normalised(value) for value in template]
    return template


def template_hash(template: Any, collisions: int = 0) -> str:
    """A short name of a template, the same for the same one: FNV-1a, in the letters of names."""
    digest = 2_166_136_261
    for byte in msgspec.json.encode([normalised(template), collisions], order="deterministic"):
        digest = (digest ^ byte) * 16_777_619 & 0xFFFFFFFF
    return "".join(RANDOM_ALPHABET[ord(digit) % len(RANDOM_ALPHABET)] for digit in str(digest))
