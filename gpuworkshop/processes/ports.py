"""Free ports, and a loopback subnet for each lab.

Linux answers on all of 127.0.0.0/8, so that each lab can give its nodes and pods addresses of their own,
with the ports that the real ones use, and two labs can live side by side. A subnet is claimed by a bound
socket: the kernel lets go of it when the process that holds it ends, however that comes about.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from gpuworkshop.errors import PortInUse

FIRST, LAST = 16, 254
CLAIM_PORT = 16127  # UDP, on the subnet's last address but one


@dataclass(frozen=True)
class Subnet:
    """A claimed 127.X.0.0/16."""

    network: IPv4Network

    def address(self, third: int, fourth: int) -> IPv4Address:
        """The subnet's address 127.X.`third`.`fourth`."""
        return self.network[third * 256 + fourth]


def free_port(host: str = "127.0.0.1", prefer: int = 0) -> int:
    """A TCP port that nobody listens on at `host` now; `prefer` if it is free.

    Raises PortInUse when there is none.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still winding down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, prefer))
        except OSError as error:
            if prefer:
                return free_port(host)
            raise PortInUse(
                f"no port can be had at {host}: {error.strerror}",
                step="choosing a free port",
                todo="give an address of this machine, such as 127.0.0.1",
            ) from error
        port: int = probe.getsockname()[1]
        return port


def steady_port(note: Path, host: str = "127.0.0.1") -> int:
    """The port that is written in the file `note` if it is free, else any; written there for the next time.

    So that views, tabs and bookmarks find a service again.
    """
    try:
        last = note.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        last = ""
    port = free_port(host, prefer=int(last) if last.isdecimal() and int(last) < 65536 else 0)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(str(port), encoding="utf-8")
    return port


def claim_subnet() -> Subnet:
    """The first 127.X.0.0/16, X from 16 to 254, that nobody has claimed; held until this process ends.

    Raises PortInUse when all are taken, or when this system answers on 127.0.0.1 alone.
    """
    reason = ""
    for x in range(FIRST, LAST + 1):
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        network = IPv4Network(f"127.{x}.0.0/16")
        try:
            claim.bind((str(network[-2]), CLAIM_PORT))
        except OSError as error:
            claim.close()
            reason = error.strerror or str(error)
        else:
            claim.detach()  # nobody closes it, so that it lasts as long as the process
            return Subnet(network)
    raise PortInUse(
        f"none of 127.{FIRST}.0.0/16 to 127.{LAST}.0.0/16 can be claimed: {reason}",
        step="claiming a loopback subnet",
        todo="end labs that are no longer needed with their ./stop.sh",
    )
