"""A process with kubelets that the tests kill: `python kubelet_process.py STATE_DIR`.

It prints a line when its pods run.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kubelet_lab import NODE_NAME, KubeletLab, pause, shell

from gpuworkshop.lab.api.kinds import NODE

# A child that nobody's signal to the group reaches, one that also has no mark in its environment, one that
# ignores SIGTERM, and the container itself.
CLEARED = (
    "env -i setsid sleep 600 & echo $! > cleared; "
    "while grep -q . /proc/$!/environ; do sleep 0.01; done; "  # until it has done so
)
STUBBORN = f"trap '' TERM; setsid sleep 600 & {CLEARED} sleep 600 & echo up; while :; do sleep 0.1; done"


async def main(state: Path) -> None:
    """Run a stubborn pod and a pause until killed."""
    lab = KubeletLab(state, database=str(state / "cluster.db"))
    async with lab.running():
        if lab.registry.find(NODE, "", NODE_NAME) is None:
            lab.node(kind="g5.12xlarge")
            gpu = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
            lab.pod("stubborn", shell(STUBBORN, **gpu))
            lab.pod("web", pause())
        await lab.logged("stubborn", b"up\n")
        await lab.ready("web")
        print("up", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
