"""What a container's `lifecycle` asks for: `postStart` at its start, `preStop` before it is told to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.kubelet.handlers import Asked, ask


def handler(spec: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The container's handler of that name, None if it has none."""
    found: Mapping[str, Any] | None = (spec.get("lifecycle") or {}).get(name)
    return found


async def run(container: Asked, name: str) -> None:
    """Run a hook, if the container has it, for as long as it takes. Raises Failure."""
    if found := handler(container.spec, name):
        await ask(container, found, None)
