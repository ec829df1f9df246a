"""What the tests ask about processes, and commands for a spawner."""

from __future__ import annotations

from pathlib import Path

from gpuworkshop.lab.kubelet.spawn import Child, Order

PATH = "/usr/bin:/bin"


def runs(pid: int) -> bool:
    """Whether it is there, and not only a zombie that nobody has asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    """The process that it is a child of: its shim, if it is a container's."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def an_order(folder: Path, script: str, *, lingers: bool = False) -> Order:
    """A shell's script in a container."""
    return Order(["/bin/sh", "-c", script], {"PATH": PATH}, folder, "c0ffee", lingers)


async def lines(child: Child, count: int) -> list[bytes]:
    """The next lines of its standard output."""
    assert child.stdout is not None
    return [(await child.stdout.readline()).rstrip() for _ in range(count)]
