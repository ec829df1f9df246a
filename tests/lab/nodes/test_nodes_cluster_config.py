"""eksctl's configuration: what is read of it, and the line that every complaint names."""

from __future__ import annotations

import json
import os
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gpuworkshop.deploy import clusters
from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.nodes import cluster_config
from gpuworkshop.lab.nodes.cluster_config import Node, node_objects
from gpuworkshop.lab.nodes.node_groups import NodeGroup

ROOT = Path(__file__).resolve().parents[3]
BLOG = ROOT / "tests" / "data" / "nodes-blog-eks-gpu-g5.yaml"
SHARED = Path(os.environ.get("GPUWORKSHOP_SHARED", ROOT.parent / "shared"))
HEAD = """\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {name: lab, region: eu-west-1}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def read(folder: Path, groups: str, head: str = HEAD) -> tuple[NodeGroup, ...]:
    return cluster_config.read(write(folder, head + groups)).groups


def refused(folder: Path, text: str) -> ClusterConfigError:
    with pytest.raises(ClusterConfigError) as caught:
        cluster_config.read(write(folder, text))
    assert caught.value.step == "reading the cluster configuration"
    assert caught.value.todo
    return caught.value


def names(nodes: list[Node]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]


def test_the_walkthroughs_own_file() -> None:
    config = cluster_config.read(BLOG)
    assert (config.name, config.region, len(config.zones)) == ("do-eks-yaml-g5", "us-east-1", 4)
    sys, gpu = config.groups
    assert (sys.name, sys.instance_type, sys.count) == ("sys", "m5.xlarge", 1)
    assert (gpu.instance_type, gpu.count, gpu.least, gpu.most) == ("g5.2xlarge", 1, 0, 10)


def test_nodes_of_the_oldest_region_have_its_domain() -> None:
    found = names(node_objects(cluster_config.read(BLOG)))
    assert len(found) == 2
    assert all(re.fullmatch(r"ip-192-168-\d+-\d+\.ec2\.internal", name) for name in found)


@pytest.mark.parametrize(("name", "models"), [("lab", ["p5en.48xlarge"]), ("walkthrough", ["g5.2xlarge"])])
def test_our_own_files(name: str, models: list[str]) -> None:
    nodes = node_objects(cluster_config.read(clusters.path(name)))
    labels = [node["metadata"]["labels"] for node in nodes]
    assert [
        found["node.kubernetes.io/instance-type"] for found in labels if "gpuworkshop.io/gpu" in found
    ] == models
    assert len(nodes) == 2


@pytest.mark.parametrize("name", ["lab", "walkthrough"])
def test_our_own_files_keep_to_eksctls_schema(name: str) -> None:
    schema = SHARED / "data" / "eksctl-clusterconfig.schema.json"
    if not schema.exists():
        pytest.skip("eksctl's schema is not here")
    plain = schema.read_text().replace("|", "_")  # which no reference may hold
    validator = jsonschema_rs.validator_for(json.loads(plain))
    validator.validate(yaml.safe_load(clusters.path(name).read_text()))


def test_the_fields_are_those_of_eksctls_schema() -> None:
    schema = SHARED / "data" / "eksctl-clusterconfig.schema.json"
    if not schema.exists():
        pytest.skip("eksctl's schema is not here")
    definitions = json.loads(schema.read_text())["definitions"]
    fields = tomllib.loads(files("gpuworkshop.lab.nodes").joinpath("fields.toml").read_text())
    theirs = {
        "cluster": "ClusterConfig",
        "metadata": "ClusterMeta",
        "managed": "ManagedNodeGroup",
        "unmanaged": "NodeGroup",
        "taint": "NodeGroupTaint",
    }
    assert fields == {ours: sorted(definitions[name]["properties"]) for ours, name in theirs.items()}


def test_a_node_is_as_on_eks(tmp_path: Path) -> None:
    groups = """\
managedNodeGroups:
  - name: gpu
    instanceType: g5.12xlarge
    spot: true
    desiredCapacity: 1
    availabilityZones: [eu-west-1c]
    labels: {team: vision, gpuworkshop.io/simulated: "false"}
    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}, {key: k, effect: NoExecute}]
"""
    (node,) = node_objects(cluster_config.read(write(tmp_path, HEAD + groups)))
    name = node["metadata"]["name"]
    assert name.startswith("ip-192-168-")
    assert name.endswith(".eu-west-1.compute.internal")
    assert node["metadata"]["labels"] == {
        "alpha.eksctl.io/cluster-name": "lab",
        "alpha.eksctl.io/nodegroup-name": "gpu",
        "eks.amazonaws.com/capacityType": "SPOT",
        "eks.amazonaws.com/nodegroup": "gpu",
        "gpuworkshop.io/gpu": "true",
        "gpuworkshop.io/simulated": "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "g5.12xlarge",
        "team": "vision",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1c",
    }
    assert node["spec"]["providerID"].startswith("aws:///eu-west-1c/i-")
    assert len(node["spec"]["providerID"].rpartition("i-")[2]) == 17
    assert node["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "k", "effect": "NoExecute"},
    ]


def test_nodes_are_spread_over_the_zones(tmp_path: Path) -> None:
    groups = "managedNodeGroups: [{name: a, desiredCapacity: 5}]\n"
    nodes = node_objects(cluster_config.read(write(tmp_path, HEAD + groups)))
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["eu-west-1a", "eu-west-1b", "eu-west-1a", "eu-west-1b", "eu-west-1a"]
    assert len(set(names(nodes))) == len({node["spec"]["providerID"] for node in nodes}) == 5


def test_what_eksctl_takes_where_a_group_does_not_say(tmp_path: Path) -> None:
    (group,) = read(tmp_path, "managedNodeGroups: [{name: a}]\n")
    assert (group.instance_type, group.count, group.spot, group.taints) == ("m5.large", 2, False, ())


def test_unmanaged_groups_and_older_forms(tmp_path: Path) -> None:
    groups = """\
managedNodeGroups:
  - {name: spots, instanceTypes: [g6.xlarge, g5.xlarge], minSize: 3}
nodeGroups:
  - name: mixed
    instancesDistribution: {instanceTypes: [g4dn.xlarge, g5.xlarge], onDemandPercentageAboveBaseCapacity: 0}
    taints: {nvidia.com/gpu: "true:NoSchedule", other: "NoExecute"}
"""
    spots, mixed = read(tmp_path, groups)
    assert (spots.instance_type, spots.count) == ("g6.xlarge", 3)
    assert (mixed.instance_type, mixed.spot) == ("g4dn.xlarge", True)
    assert mixed.taints == (
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
        {"key": "other", "effect": "NoExecute"},
    )


def test_anchors_and_merges(tmp_path: Path) -> None:
    groups = """\
managedNodeGroups:
  - &first {name: one, instanceType: g5.xlarge, desiredCapacity: 1}
  - {<<: *first, name: two}
"""
    one, two = read(tmp_path, groups)
    assert (one.name, two.name, two.instance_type, two.count) == ("one", "two", "g5.xlarge", 1)


def test_scaling_a_group_leaves_the_other_nodes_as_they_are(tmp_path: Path) -> None:
    groups = "managedNodeGroups: [{name: a, desiredCapacity: 2, minSize: 1, maxSize: 9}, {name: b}]\n"
    config = cluster_config.read(write(tmp_path, HEAD + groups))
    before, after = node_objects(config), node_objects(config, {"a": 4})
    assert [node for node in after if node in before] == before
    assert len(after) == len(before) + 2
    assert node_objects(config, {"a": 4}, only="a") == after[:4]
    assert node_objects(config, {"a": 1}, only="a") == before[:1]


def test_a_groups_names_do_not_hang_on_its_place_in_the_file(tmp_path: Path) -> None:
    a, b = "{name: a, desiredCapacity: 1}", "{name: b, desiredCapacity: 1}"
    first, second = (
        node_objects(cluster_config.read(write(tmp_path, f"{HEAD}managedNodeGroups: [{one}, {other}]\n")))
        for one, other in ((a, b), (b, a))
    )
    assert sorted(names(first)) == sorted(names(second))


def test_as_many_groups_as_there_are_octets_have_names_of_their_own(tmp_path: Path) -> None:
    listed = ", ".join(f"{{name: g{number}, desiredCapacity: 1}}" for number in range(256))
    nodes = node_objects(cluster_config.read(write(tmp_path, f"{HEAD}managedNodeGroups: [{listed}]\n")))
    assert len(set(names(nodes))) == 256


@pytest.mark.parametrize("counts", [{"a": 0}, {"a": 4}, {"a": -1}])
def test_scaling_keeps_to_the_groups_bounds(tmp_path: Path, counts: dict[str, int]) -> None:
    groups = "managedNodeGroups: [{name: a, minSize: 1, maxSize: 3}]\n"
    config = cluster_config.read(write(tmp_path, HEAD + groups))
    with pytest.raises(ClusterConfigError, match="node group a cannot have") as caught:
        node_objects(config, counts)
    assert "minSize 1 to its maxSize 3" in caught.value.todo


@pytest.mark.parametrize(
    ("sizes", "bounds"),
    [
        ("", (2, 2, 2)),
        ("desiredCapacity: 3", (3, 3, 3)),
        ("desiredCapacity: 0", (0, 0, 1)),
        ("minSize: 1", (1, 1, 1)),
        ("desiredCapacity: 2, minSize: 1", (1, 2, 2)),
        ("desiredCapacity: 2, maxSize: 4", (2, 2, 4)),
        ("minSize: 0, maxSize: 4", (0, 0, 4)),
        ("maxSize: 4", (2, 2, 4)),
    ],
)
def test_bounds_that_the_file_does_not_set_are_eksctls(
    tmp_path: Path, sizes: str, bounds: tuple[int, int, int]
) -> None:
    groups = f"managedNodeGroups: [{{{', '.join(filter(None, ['name: a', sizes]))}}}]\n"
    (group,) = read(tmp_path, groups)
    assert (group.least, group.count, group.most) == bounds
    config = cluster_config.read(tmp_path / "cluster.yaml")
    assert len(node_objects(config, {"a": group.most})) == group.most
    with pytest.raises(ClusterConfigError, match=f"cannot have {group.most + 1} nodes") as caught:
        node_objects(config, {"a": group.most + 1})
    assert "gpuworkshop lab create -f FILE" in caught.value.todo


@pytest.mark.parametrize("arguments", [{"counts": {"x": 1}}, {"only": "x"}])
def test_a_group_that_is_not_there(tmp_path: Path, arguments: dict[str, Any]) -> None:
    config = cluster_config.read(write(tmp_path, HEAD + "managedNodeGroups: [{name: a}, {name: b}]\n"))
    with pytest.raises(ClusterConfigError, match="no node group 'x'") as caught:
        node_objects(config, **arguments)
    assert "a, b" in caught.value.todo


GROUP = HEAD + "managedNodeGroups:\n  - name: gpu\n    "


@pytest.mark.parametrize(
    ("text", "line", "seen", "todo"),
    [
        (GROUP + "instanceType: g5.2xlrage\n", 6, "node group gpu: the lab does not know", "g5.2xlarge"),
        (GROUP + "desiredCapacty: 1\n", 6, "no field 'desiredCapacty'", "desiredCapacity"),
        (GROUP + "desiredCapacity: two\n", 6, "desiredCapacity is 'two'", "number from 0 to 100"),
        (GROUP + "desiredCapacity: true\n", 6, "desiredCapacity is True", "number"),
        (GROUP + "desiredCapacity: 101\n", 6, "desiredCapacity is 101", "0 to 100"),
        (GROUP + "maxSize: -1\n", 6, "maxSize is -1", "0 to 100"),
        (GROUP + "minSize: 3\n    maxSize: 2\n", 5, "3 nodes are not between", "agree"),
        (GROUP + "desiredCapacity: 0\n    minSize: 1\n", 6, "0 nodes are not between", "agree"),
        (GROUP + "spot: sometimes\n", 6, "spot is 'sometimes'", "true or false"),
        (GROUP + "labels: {gpu: true}\n", 6, "gpu is True, which is no text", "quotes"),
        (GROUP + "labels: {1: a}\n", 6, "1 is no text", "quotes"),
        (GROUP + "labels: [a]\n", 6, "a mapping belongs there, not ['a']", "key: value"),
        (GROUP + "taints: [{key: a, effect: Never}]\n", 6, "effect of a taint is 'Never'", "NoExecute"),
        (GROUP + "taints: [{effect: NoExecute}]\n", 6, "key is missing", "nvidia.com/gpu"),
        (GROUP + "taints: {a: b}\n", 6, "effect of a taint is 'b'", "NoSchedule"),
        (GROUP + "taints: [{key: a, effekt: NoExecute}]\n", 6, "no field 'effekt'", "effect"),
        (GROUP + "availabilityZones: eu-west-1a\n", 6, "availabilityZones is no list", "- "),
        (GROUP + "availabilityZones: [1]\n", 6, "has 1, which is no text", "quote"),
        (GROUP + "instanceSelector: {gpus: 1}\n", 6, "chooses no instance type", "instanceType"),
        (GROUP + "instanceType: [g5.xlarge]\n", 6, "instanceType is ['g5.xlarge']", "quotes"),
        (GROUP + "labels: {}\n    labels: {}\n", 7, "'labels' is there twice", "eksctl"),
        (GROUP + "labels: {[]: a}\n", 6, "unhashable key", "eksctl"),
        (GROUP + "labels: }\n", 6, "while parsing", "eksctl"),
        (GROUP + "\tlabels: a\n", 6, "cannot start any token", "eksctl"),
        (HEAD + "managedNodeGroups: [{}]\n", 4, "node group 1: name is missing", "name: gpu"),
        (HEAD + "managedNodeGroups: [gpu]\n", 4, "a mapping belongs there", "key: value"),
        (HEAD + "managedNodeGroups: [{name: a}]\nnodeGroups: [{name: a}]\n", 5, "two groups 'a'", "own"),
        (HEAD + "managedNodeGroup: []\n", 4, "no field 'managedNodeGroup'", "managedNodeGroups"),
        (HEAD.replace("eu-west-1", "5"), 3, "metadata: region is 5", "quotes"),
        (HEAD.replace(", region: eu-west-1", ""), 3, "region is missing", "us-west-2"),
        (HEAD.replace("}", ", version: 1.35}"), 3, "version is 1.35, which is no text", "quotes"),
        (HEAD.replace("ClusterConfig", "Pod"), 2, "kind is 'Pod'", "ClusterConfig"),
        (HEAD.replace("eksctl.io", "apps"), 1, "it is 'apps/v1alpha5'", "eksctl.io"),
        ("kind: ClusterConfig\napiVersion: eksctl.io/v1alpha5\n", 1, "name is missing", "gpuworkshop"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, seen: str, todo: str
) -> None:
    error = refused(tmp_path, text)
    assert f"cluster.yaml, line {line}: " in error.seen
    assert seen in error.seen
    assert todo in error.todo


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n", "42\n"])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    assert "and no mapping" in refused(tmp_path, text).seen


@pytest.mark.parametrize("content", [b"\xff\xfe\xfa", b"a: \x00\n", b"[" * 100_000, b"a: 2024-99-99\n"])
def test_a_file_that_is_no_yaml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(content)
    with pytest.raises(ClusterConfigError, match=r"cluster\.yaml"):
        cluster_config.read(path)


def test_several_documents_are_refused(tmp_path: Path) -> None:
    assert "single document" in refused(tmp_path, HEAD + "---\n" + HEAD).seen


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ClusterConfigError, match="cannot be read"):
        cluster_config.read(tmp_path / "none.yaml")


def test_a_small_file_that_would_be_a_huge_one_is_told_in_few_words(tmp_path: Path) -> None:
    layers = "\n".join(f"  - &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(9))
    text = HEAD + f"availabilityZones:\n  - &a0 [x]\n{layers}\n"
    assert len(refused(tmp_path, text).seen) < 400
