"""Which machine this is: the tools are fetched for Linux on x86-64 and arm64, WSL counting as Linux."""

from __future__ import annotations

import platform

from gpuworkshop.errors import UnsupportedPlatform

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def require_linux() -> None:
    """Raise UnsupportedPlatform anywhere but on Linux, where only the container is a way."""
    system = platform.system()
    if system != "Linux":
        raise UnsupportedPlatform(
            f"this is {'macOS' if system == 'Darwin' else system}, and the workshop's tools run on Linux",
            step="looking for tools",
            todo="run the workshop in its container: ./run.sh --container",
        )


def architecture() -> str:
    """`amd64` or `arm64`. Raises UnsupportedPlatform for any other processor."""
    machine = platform.machine()
    if machine.lower() not in _ARCHITECTURES:
        raise UnsupportedPlatform(
            f"there are no ready-made tools for the processor {machine}",
            step="looking for tools",
            todo="put kubectl, helm, aws, prometheus and promtool on the PATH, or use x86-64 or arm64",
        )
    return _ARCHITECTURES[machine.lower()]
