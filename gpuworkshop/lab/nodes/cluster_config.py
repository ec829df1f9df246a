"""An eksctl ClusterConfig, and the simulated nodes that the lab makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.nodes import instances

STEP = "reading the cluster configuration"
GROUP_LABEL = "eks.amazonaws.com/nodegroup"
MOST_NODES = 100
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
Node = dict[str, Any]


@dataclass(frozen=True)
class NodeGroup:
    """A number of equal machines."""

    name: str
    instance_type: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    zones: tuple[str, ...] = ()
    spot: bool = False


@dataclass(frozen=True)
class ClusterConfig:
    """What of a ClusterConfig the lab reads."""

    name: str
    region: str
    zones: tuple[str, ...]
    groups: tuple[NodeGroup, ...]


def read(path: Path) -> ClusterConfig:
    """The configuration in a file. Raises ClusterConfigError that says what is wrong, and where."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClusterConfigError(
            f"{path} cannot be read: {error}", step=STEP, todo="mend the file; it is YAML, as eksctl takes it"
        ) from error
    config = _mapping(found, str(path))
    if config.get("kind") != "ClusterConfig":
        raise _wrong(f"kind is {config.get('kind')!r}", "write `kind: ClusterConfig`")
    metadata = _mapping(config.get("metadata"), "metadata")
    region = _text(metadata, "region", "metadata")
    zones = _texts(config, "availabilityZones", "") or tuple(f"{region}{letter}" for letter in "ab")
    listed = [*_list(config, "managedNodeGroups", ""), *_list(config, "nodeGroups", "")]
    groups = tuple(_group(entry, f"node group {n + 1}") for n, entry in enumerate(listed))
    names = [group.name for group in groups]
    if len(set(names)) < len(names):
        raise _wrong("two node groups have the same name", "give each a name of its own")
    return ClusterConfig(_text(metadata, "name", "metadata"), region, zones, groups)


def node_objects(
    config: ClusterConfig, counts: Mapping[str, int] | None = None, only: str = ""
) -> list[Node]:
    """The nodes of all groups, or `only` of one; `counts` are other numbers of nodes than the file's.

    Names and zones depend on group and index alone, so that scaling a group leaves its other nodes as they
    are. Raises ClusterConfigError for a group that is not there.
    """
    names = [group.name for group in config.groups]
    for name in (*(counts or {}), *([only] if only else [])):
        if name not in names:
            raise _wrong(f"there is no node group {name!r}", f"take one of {', '.join(names)}")
    nodes = []
    for number, group in enumerate(config.groups):
        if only in ("", group.name):
            count = (counts or {}).get(group.name, group.count)
            nodes += [_node(config, group, number, index) for index in range(count)]
    return nodes


def _node(config: ClusterConfig, group: NodeGroup, number: int, index: int) -> Node:
    machine = instances.find(group.instance_type)
    name = (
        f"ip-192-168-{32 * (number % 8) + index // 200}-{10 + index % 200}.{config.region}.compute.internal"
    )
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
    spec: dict[str, Any] = {"providerID": f"aws:///{zone}/i-{number:02x}{index:015x}"}
    if group.taints:
        spec["taints"] = [dict(taint) for taint in group.taints]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _group(entry: Any, where: str) -> NodeGroup:
    group = _mapping(entry, where)
    name = _text(group, "name", where)
    where = f"node group {name}"
    instance_type = group.get("instanceType") or (_texts(group, "instanceTypes", where) or ("",))[0]
    if not instance_type:
        raise _wrong(f"{where}: instanceType is missing", "write `instanceType: g5.2xlarge`, for example")
    count = group.get("desiredCapacity", group.get("minSize", 2))
    if type(count) is not int or not 0 <= count <= MOST_NODES:
        raise _wrong(f"{where}: desiredCapacity is {count!r}", f"write a number from 0 to {MOST_NODES}")
    instances.find(str(instance_type))
    labels = _mapping(group.get("labels") or {}, f"{where}: labels")
    return NodeGroup(
        name,
        str(instance_type),
        count,
        {str(key): str(value) for key, value in labels.items()},
        tuple(_taint(taint, where) for taint in _list(group, "taints", where)),
        _texts(group, "availabilityZones", where),
        bool(group.get("spot")),
    )


def _taint(entry: Any, where: str) -> Mapping[str, str]:
    taint = _mapping(entry, f"{where}: taints")
    key, effect = _text(taint, "key", where), _text(taint, "effect", where)
    if effect not in EFFECTS:
        raise _wrong(f"{where}: effect of a taint is {effect!r}", f"write one of {', '.join(EFFECTS)}")
    value = str(taint.get("value") or "")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _mapping(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _wrong(f"{where}: a mapping belongs there, not {found!r:.60}", "write `key: value` pairs")
    return found


def _list(found: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = found.get(key) or []
    if not isinstance(value, list):
        raise _wrong(f"{where or 'the configuration'}: {key} is no list", f"write `{key}:` and a list")
    return value


def _texts(found: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    return tuple(str(value) for value in _list(found, key, where))


def _text(found: Mapping[str, Any], key: str, where: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise _wrong(
            f"{where}: {key} is {'missing' if value is None else repr(value)}", f"write `{key}:` and a name"
        )
    return value


def _wrong(seen: str, todo: str) -> ClusterConfigError:
    return ClusterConfigError(seen, step=STEP, todo=todo)
