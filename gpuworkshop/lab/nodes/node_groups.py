"""The node groups of an eksctl ClusterConfig, managed or not."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.nodes import instances
from gpuworkshop.lab.nodes.sections import Section

MOST_NODES = 100
# What eksctl takes where a group does not say.
DEFAULT_TYPE, DEFAULT_COUNT = "m5.large", 2
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True)
class NodeGroup:
    """A number of equal machines; `least` and `most` bound how many there may be."""

    name: str
    instance_type: str
    count: int
    least: int = 0
    most: int = MOST_NODES
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    zones: tuple[str, ...] = ()
    spot: bool = False


@cache
def known_fields() -> Mapping[str, list[str]]:
    """The names of eksctl's fields, by where they may stand."""
    return tomllib.loads(files(__package__).joinpath("fields.toml").read_text(encoding="utf-8"))


def node_groups(config: Section) -> tuple[NodeGroup, ...]:
    """The groups in the order of the file, managed ones first. Raises ClusterConfigError."""
    groups: dict[str, NodeGroup] = {}
    for key, kind in (("managedNodeGroups", "managed"), ("nodeGroups", "unmanaged")):
        for section in config.sections(key, "node group"):
            name = section.text("name", "gpu")
            if name in groups:
                raise section.wrong("name", f"there are two groups {name!r}", "give each a name of its own")
            groups[name] = _group(Section(section.path, f"node group {name}", section.values), kind)
    return tuple(groups.values())


def _group(section: Section, kind: str) -> NodeGroup:
    section.check_fields(known_fields()[kind])
    least, count, most = _sizes(section)
    mixed = section.section("instancesDistribution")
    return NodeGroup(
        name=section.text("name"),
        instance_type=_instance_type(section, mixed),
        count=count,
        least=least,
        most=most,
        labels=section.text_map("labels"),
        taints=_taints(section),
        zones=section.texts("availabilityZones"),
        spot=section.flag("spot") or mixed.values.get("onDemandPercentageAboveBaseCapacity") == 0,
    )


def _sizes(section: Section) -> tuple[int, int, int]:
    """The least, the wanted and the most nodes; where the file sets no bound eksctl takes what is wanted."""
    wanted, least, most = (
        section.number(key, MOST_NODES) for key in ("desiredCapacity", "minSize", "maxSize")
    )
    if least is None:
        least = DEFAULT_COUNT if wanted is None else wanted
    count = least if wanted is None else wanted
    if most is None:
        most = max(count, 1)  # a real group cannot have a maxSize of 0
    if not least <= count <= most:
        seen = f"{count} nodes are not between minSize {least} and maxSize {most}"
        raise section.wrong("desiredCapacity", seen, "set desiredCapacity, minSize and maxSize to agree")
    return least, count, most


def _instance_type(section: Section, mixed: Section) -> str:
    """Of several types the first: a group that is not spot is given that one as long as there are any."""
    several = section.texts("instanceTypes") or mixed.texts("instanceTypes")
    key = "instanceTypes" if several else "instanceType"
    named = several[0] if several else section.text("instanceType")
    if not named and section.values.get("instanceSelector"):
        raise section.wrong("instanceSelector", "the lab chooses no instance type", "write instanceType")
    try:
        return instances.find(named or DEFAULT_TYPE).name
    except ClusterConfigError as error:
        raise section.wrong(key, error.seen, error.todo) from error


def _taints(section: Section) -> tuple[Mapping[str, str], ...]:
    """A list of taints, or the older form: a mapping of keys to `value:effect`."""
    if isinstance(section.values.get("taints"), dict):
        taints = []
        for key, text in section.text_map("taints").items():
            value, _, effect = text.rpartition(":")
            taints.append(_taint(section, key, value, effect))
        return tuple(taints)
    found = section.sections("taints", "taint")
    for entry in found:
        entry.check_fields(known_fields()["taint"])
    return tuple(
        _taint(entry, entry.text("key", "nvidia.com/gpu"), entry.text("value"), entry.text("effect"))
        for entry in found
    )


def _taint(section: Section, key: str, value: str, effect: str) -> Mapping[str, str]:
    if effect not in EFFECTS:
        raise section.wrong(
            "effect" if "effect" in section.values else "taints",
            f"the effect of a taint is {effect!r}",
            f"write one of {', '.join(EFFECTS)}",
        )
    return {"key": key, **({"value": value} if value else {}), "effect": effect}
