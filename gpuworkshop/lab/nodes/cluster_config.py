"""An eksctl ClusterConfig, and the simulated nodes that the lab makes of it.

Of the file the lab reads the cluster's name and region, zones and node groups; what only AWS can do with it,
such as volumes and roles, is known by name and left alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.nodes import instances, sections
from gpuworkshop.lab.nodes.node_groups import NodeGroup, known_fields, node_groups

GROUP_LABEL = "eks.amazonaws.com/nodegroup"
API_GROUP = "eksctl.io/"
Node = dict[str, Any]


@dataclass(frozen=True)
class ClusterConfig:
    """What of a ClusterConfig the lab reads."""

    name: str
    region: str
    zones: tuple[str, ...]
    groups: tuple[NodeGroup, ...]

    def group(self, name: str) -> NodeGroup:
        """The node group of that name. Raises ClusterConfigError."""
        for group in self.groups:
            if group.name == name:
                return group
        names = ", ".join(group.name for group in self.groups) or "none: the configuration has no groups"
        raise ClusterConfigError(f"there is no node group {name!r}", step=sections.STEP, todo=f"take {names}")


def read(path: Path) -> ClusterConfig:
    """The configuration in a file. Raises ClusterConfigError that says what is wrong, and in which line."""
    config = sections.load(path)
    kind = config.text("kind", "ClusterConfig")
    if kind != "ClusterConfig":
        raise config.wrong("kind", f"kind is {kind!r}", "write `kind: ClusterConfig`")
    version = config.text("apiVersion", "eksctl.io/v1alpha5")
    if not version.startswith(API_GROUP):
        raise config.wrong("apiVersion", f"it is {version!r}", "write `apiVersion: eksctl.io/v1alpha5`")
    config.check_fields(known_fields()["cluster"])
    metadata = config.section("metadata")
    metadata.check_fields(known_fields()["metadata"])
    name, region = metadata.text("name", "gpuworkshop"), metadata.text("region", "us-west-2")
    metadata.text("version")
    zones = config.texts("availabilityZones") or tuple(f"{region}{letter}" for letter in "ab")
    return ClusterConfig(name, region, zones, node_groups(config))


def node_objects(
    config: ClusterConfig, counts: Mapping[str, int] | None = None, only: str = ""
) -> list[Node]:
    """The nodes of all groups, or `only` of one; `counts` are other numbers of nodes than the file's.

    Names and zones depend on the group's name and the index alone, so that scaling a group leaves its other
    nodes as they are. Raises ClusterConfigError for a group that is not there, or a number out of its bounds.
    """
    wanted = {group.name: group.count for group in config.groups}
    for name, count in (counts or {}).items():
        group = config.group(name)
        if not group.least <= count <= group.most:
            raise ClusterConfigError(
                f"node group {name} cannot have {count} nodes",
                step="scaling a node group",
                todo=f"take a number from its minSize {group.least} to its maxSize {group.most}, or set "
                "other sizes in the ClusterConfig and type gpuworkshop lab create -f FILE",
            )
        wanted[name] = count
    if only:
        wanted = {only: wanted[config.group(only).name]}
    octets = _octets([group.name for group in config.groups])
    return [
        _node(config, config.group(name), octets[name], index)
        for name, count in wanted.items()
        for index in range(count)
    ]


def _node(config: ClusterConfig, group: NodeGroup, octet: int, index: int) -> Node:
    machine = instances.find(group.instance_type)
    # AWS's oldest region has a domain of its own.
    domain = "ec2.internal" if config.region == "us-east-1" else f"{config.region}.compute.internal"
    name = f"ip-192-168-{octet}-{10 + index}.{domain}"
    zones = group.zones or config.zones
    zone = zones[index % len(zones)]
    labels = {
        **group.labels,
        "alpha.eksctl.io/cluster-name": config.name,
        "alpha.eksctl.io/nodegroup-name": group.name,
        "eks.amazonaws.com/capacityType": "SPOT" if group.spot else "ON_DEMAND",
        GROUP_LABEL: group.name,
        "gpuworkshop.io/simulated": "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/region": config.region,
        "topology.kubernetes.io/zone": zone,
    }
    if machine.gpus:
        labels["gpuworkshop.io/gpu"] = "true"
    spec: dict[str, Any] = {"providerID": f"aws:///{zone}/i-{octet:02x}{index:015x}"}
    if group.taints:
        spec["taints"] = [dict(taint) for taint in group.taints]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _octets(names: list[str]) -> dict[str, int]:
    """A third octet of the address for each group: its own wherever it stands in the file."""
    octets: dict[str, int] = {}
    for name in names:
        octet = zlib.crc32(name.encode())
        while octet % 256 in octets.values():
            octet += 1
        octets[name] = octet % 256
    return octets
