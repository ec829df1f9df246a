"""Nodes: their status, their addresses, how they come and go."""

from __future__ import annotations

import asyncio
import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from kubelet_lab import MACHINES, NODE_NAME, KubeletLab, in_lab, is_true, pause, shell
from kubernetes.client import ApiClient

from gpuworkshop.errors import LabError
from gpuworkshop.lab.api.kinds import LEASE, NODE, POD
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.kubelet import places
from gpuworkshop.lab.kubelet.addresses import Addresses
from gpuworkshop.lab.kubelet.node_status import lease_of, status_of
from gpuworkshop.processes.ports import Subnet

SUBNET = Subnet(IPv4Network("127.200.0.0/16"))


def _deserialized(node: Object) -> Any:
    """The node as the Python client reads it, which refuses one that lacks a required field."""
    return ApiClient().deserialize(json.dumps(node), "V1Node", "application/json")


def test_three_nodes_are_complete_at_once() -> None:
    async def test(lab: KubeletLab) -> None:
        for number in (2, 3):
            lab.node(f"node-{number}", "g5.12xlarge")
        await lab.until(lambda: all(is_true(node, "Ready") for node in lab.registry.list(NODE)), NODE)
        addresses = set()
        for node in lab.registry.list(NODE):
            read = _deserialized(node)
            assert {found.type: found.status for found in read.status.conditions} == {
                "MemoryPressure": "False",
                "DiskPressure": "False",
                "PIDPressure": "False",
                "Ready": "True",
            }
            assert read.status.node_info.os_image == "Amazon Linux 2023 (simulated)"
            addresses |= {found.address for found in read.status.addresses if found.type == "InternalIP"}
            assert lab.registry.get(LEASE, "kube-node-lease", read.metadata.name)["spec"]["holderIdentity"]
        assert len(addresses) == 3

    in_lab(test)


def test_capacity_is_the_instance_types_and_some_is_reserved() -> None:
    node = {"metadata": {"name": "n", "uid": "u"}}
    status = status_of(node, MACHINES["m5.xlarge"], "127.200.1.1", "v1.33.5", None, "2026-01-01T00:00:00Z")
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("4", "3920m")
    assert status["capacity"]["pods"] == status["allocatable"]["pods"] == "110"
    capacity, allocatable = (
        int(status[each]["memory"].removesuffix("Ki")) for each in ("capacity", "allocatable")
    )
    assert capacity - allocatable == (255 + 11 * 110 + 100) * 1024
    assert "nvidia.com/gpu" not in status["capacity"]


def test_heartbeat_keeps_the_time_of_the_last_transition() -> None:
    node: Object = {"metadata": {"name": "n", "uid": "u"}}
    node["status"] = status_of(node, MACHINES["m5.xlarge"], "a", "v", None, "2026-01-01T00:00:00Z")
    later = status_of(node, MACHINES["m5.xlarge"], "a", "v", (4, 0), "2026-01-01T00:05:00Z")
    (condition,) = [found for found in later["conditions"] if found["type"] == "Ready"]
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert condition["lastHeartbeatTime"] == "2026-01-01T00:05:00Z"
    assert (later["capacity"]["nvidia.com/gpu"], later["allocatable"]["nvidia.com/gpu"]) == ("4", "0")
    lease = lease_of(node, 1_767_225_900.25)
    assert lease["spec"]["renewTime"] == "2026-01-01T00:05:00.250000Z"


def test_other_nodes_are_left_alone() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.registry.create(NODE, {"metadata": {"name": "real"}})
        lab.node("later")
        await lab.until(lambda: is_true(lab.registry.get(NODE, "", "later"), "Ready"), NODE)
        assert not lab.registry.get(NODE, "", "real").get("status")

    in_lab(test)


def test_deleted_node_ends_its_pods_and_comes_back_under_its_name() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("sleep 600"))
        await lab.ready("app")
        socket = Path(lab.kubelets.socket(NODE_NAME))
        gpu_file = lab.state / "lab" / "nodes" / f"{NODE_NAME}.yaml"
        assert gpu_file.exists()
        lab.registry.delete(NODE, "", NODE_NAME)
        lab.registry.delete(POD, "default", "app", grace_period=0)
        lab.node()
        await lab.until(lambda: is_true(lab.registry.get(NODE, "", NODE_NAME), "Ready"), NODE)
        lab.pod("again", pause())
        await lab.ready("again")
        assert socket.is_socket()
        assert not gpu_file.exists()  # the node that came back has no GPUs

    in_lab(test, gpus=True)


def test_pod_that_is_bound_before_its_node_is_there_starts_with_it() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("early", pause(), nodeName="later")
        lab.node("later")
        await lab.ready("early")

    in_lab(test)


def test_pod_on_the_hosts_network_has_the_nodes_address() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("agent", pause(), hostNetwork=True)
        status = (await lab.ready("agent"))["status"]
        assert status["podIP"] == status["hostIP"]

    in_lab(test)


def test_each_node_has_a_block_and_more_when_it_is_full() -> None:
    addresses = Addresses(SUBNET)
    assert addresses.claim_node("a") == "127.200.1.1"
    assert addresses.claim_node("b") == "127.200.2.1"
    given = [addresses.claim_pod("a") for _ in range(300)]
    assert len(set(given)) == 300
    assert given[:2] == ["127.200.1.2", "127.200.1.3"]
    assert {address.rsplit(".", 1)[0] for address in given} == {"127.200.1", "127.200.3"}


def test_address_is_not_given_again_at_once() -> None:
    addresses = Addresses(SUBNET)
    addresses.claim_node("a")
    first = addresses.claim_pod("a")
    addresses.release_pod(first)
    assert addresses.claim_pod("a") != first
    again = [addresses.claim_pod("a") for _ in range(252)]
    assert first in again


def test_former_addresses_are_given_again_where_that_is_possible() -> None:
    addresses = Addresses(SUBNET)
    assert addresses.claim_node("a", "127.200.7.1") == "127.200.7.1"
    assert addresses.claim_node("b", "127.200.7.1") == "127.200.1.1"
    assert addresses.claim_pod("a", "127.200.7.9") == "127.200.7.9"
    assert addresses.claim_pod("a", "127.200.7.9") != "127.200.7.9"
    assert addresses.claim_pod("a", "127.99.7.10").startswith("127.200.7.")  # of another lab's /16
    assert addresses.claim_pod("a", "not an address").startswith("127.200.7.")
    assert addresses.claim_pod("a", "127.200.1.5").startswith("127.200.7.")  # of another node's block


def test_blocks_come_back_with_their_node_and_end() -> None:
    addresses = Addresses(SUBNET)
    for number in range(239):
        addresses.claim_node(f"n{number}")
    with pytest.raises(LabError, match="all addresses of"):
        addresses.claim_node("one more")
    addresses.release_node("n7")
    assert addresses.claim_node("one more") == "127.200.8.1"


def test_short_folder_is_found_again_and_nobody_elses(tmp_path: Path) -> None:
    lab = tmp_path / ("a long name with spaces " * 4) / "lab"
    folder = places.short_folder(lab)
    assert places.short_folder(lab) == folder
    assert (
        len(str(places.socket_of(folder, "ip-192-168-100-200.ap-northeast-1.compute.internal")).encode())
        < 108
    )
    assert " " not in str(folder)
    folder.chmod(0o755)  # somebody else might have put something in
    assert places.short_folder(lab) != folder


def test_end_leaves_no_short_folder(tmp_path: Path) -> None:
    async def test() -> None:
        lab = KubeletLab(tmp_path)
        async with lab.running():
            lab.node()
            await lab.until(lambda: is_true(lab.registry.get(NODE, "", NODE_NAME), "Ready"), NODE)
            folder = Path(lab.kubelets.socket(NODE_NAME)).parent
            assert folder.is_dir()
        assert not folder.exists()
        assert (tmp_path / "lab" / "pods").is_dir()

    asyncio.run(test())


def test_node_of_an_unknown_type_is_told_and_others_go_on() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.node("odd", "z9.huge")
        lab.node("later")
        await lab.until(lambda: is_true(lab.registry.get(NODE, "", "later"), "Ready"), NODE)
        assert "z9.huge" in lab.events("odd")["UnknownInstanceType"]
        assert not lab.registry.get(NODE, "", "odd").get("status")

    in_lab(test)


def test_unknown_pod_has_no_host() -> None:
    async def test(lab: KubeletLab) -> None:
        await asyncio.sleep(0)
        with pytest.raises(Exception, match="does not have a host assigned"):
            await lab.kubelets.connect({"metadata": {"name": "x", "uid": "u"}, "spec": {}}, 80)

    in_lab(test)
