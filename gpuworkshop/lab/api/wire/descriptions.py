"""What kinds and fields mean, as `kubectl explain` tells it: from the table beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from gpuworkshop.lab.api.wire.schema import full_name

ELSEWHERE = "The Kubernetes API reference describes it; gpuworkshop's lab, a simulated cluster, does not."
# Fields that have the same meaning in every kind.
_EVERYWHERE = {
    "apiVersion": "The group and version of the object's kind, such as apps/v1.",
    "kind": "The object's kind, such as Deployment.",
    "metadata": "Its name, namespace, labels and the like.",
    "spec": "What is wanted.",
    "status": "What is; the cluster writes it.",
}


def description(message: str, field: str = "") -> str:
    """What a message's field means, or without a field the message itself."""
    found = _table().get(message, {}).get(field) or _EVERYWHERE.get(field)
    return found or ELSEWHERE


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = files(__package__).joinpath("descriptions.toml").read_text(encoding="utf-8")
    return {full_name(message): fields for message, fields in tomllib.loads(text).items()}
