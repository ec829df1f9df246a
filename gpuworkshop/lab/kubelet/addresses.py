"""Addresses of nodes and pods in the lab's /16 of loopback: each node has a /24, and more when it is full.

A node is `.1` of its first /24; its pods follow. The /24s from 240 on belong to Services. An address is
not given out again at once, so that nobody talks to a pod's successor by mistake.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from gpuworkshop.errors import LabError
from gpuworkshop.processes.ports import Subnet

FIRST_BLOCK, LAST_BLOCK = 1, 239
FIRST_POD, LAST_POD = 2, 254


class Addresses:
    """Which addresses of `subnet` are taken."""

    def __init__(self, subnet: Subnet) -> None:
        self._subnet = subnet
        self._blocks: dict[int, str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def claim_node(self, node: str, wanted: str = "") -> str:
        """The node's address; `wanted` is the one it had, and gets again if that is still possible."""
        third = self._third(wanted)
        if not third or third in self._blocks:
            third = self._free_block()
        self._blocks[third] = node
        return self._address(third, 1)

    def release_node(self, node: str) -> None:
        """Give the node's blocks back, with every address in them."""
        gone = {third for third, owner in self._blocks.items() if owner == node}
        self._blocks = {third: owner for third, owner in self._blocks.items() if third not in gone}
        self._taken = {address for address in self._taken if self._third(address) not in gone}

    def claim_pod(self, node: str, wanted: str = "") -> str:
        """An address for a pod of the node; `wanted` as above."""
        third = self._third(wanted)
        if third and wanted not in self._taken and self._blocks.setdefault(third, node) == node:
            self._taken.add(wanted)
            return wanted
        address = self._next(node)
        self._taken.add(address)
        return address

    def release_pod(self, address: str) -> None:
        """Give a pod's address back."""
        self._taken.discard(address)

    def _next(self, node: str) -> str:
        blocks = sorted(third for third, owner in self._blocks.items() if owner == node)
        every = [third * 256 + last for third in blocks for last in range(FIRST_POD, LAST_POD + 1)]
        after = self._last.get(node, 0)
        for place in [at for at in every if at > after] + [at for at in every if at <= after]:
            address = self._address(*divmod(place, 256))
            if address not in self._taken:
                self._last[node] = place
                return address
        third = self._free_block()
        self._blocks[third] = node
        return self._address(third, FIRST_POD)

    def _free_block(self) -> int:
        for third in range(FIRST_BLOCK, LAST_BLOCK + 1):
            if third not in self._blocks:
                return third
        raise LabError(
            f"all addresses of {self._subnet.network} are given to nodes and pods",
            step="giving a pod its address",
            todo="delete pods or nodes that are no longer needed",
        )

    def _third(self, address: str) -> int:
        """The /24 of an address that may be a pod's or a node's, else 0."""
        try:
            found = IPv4Address(address)
        except ValueError:
            return 0
        third = (int(found) >> 8) & 255
        inside = found in self._subnet.network and FIRST_BLOCK <= third <= LAST_BLOCK
        return third if inside and 1 <= int(found) & 255 <= LAST_POD else 0

    def _address(self, third: int, fourth: int) -> str:
        return str(self._subnet.address(third, fourth))
