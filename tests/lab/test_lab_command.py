"""`gpuworkshop lab …` as a learner types it: down, up, create, scale, status, reset, each more than once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import LabNotRunning
from gpuworkshop.lab.stage import Lab
from gpuworkshop.metrics.exposition import parse_exposition
from gpuworkshop.settings import Settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
BLOG = Path(__file__).parents[1] / "data" / "nodes-blog-eks-gpu-g5.yaml"
LIMIT_S = 60.0


def lab(settings: Settings, *words: str | Path) -> subprocess.CompletedProcess[str]:
    where = {"GPUWORKSHOP_STATE": str(settings.state), "GPUWORKSHOP_HOME": str(settings.root)}
    return subprocess.run(
        [sys.executable, "-m", "gpuworkshop", "lab", *map(str, words)],
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def said(settings: Settings, *words: str | Path) -> str:
    done = lab(settings, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(settings: Settings, *words: str | Path) -> str:
    done = lab(settings, *words)
    assert done.returncode == 1, done.stdout
    assert "What to do: " in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def up(own: Settings) -> Lab:
    """The lab, up."""
    said(own, "up")
    return Lab(own)


def types(kubectl: Kubectl) -> dict[str, str]:
    """The instance type of each node that is ready."""
    return {
        node["metadata"]["name"]: node["metadata"]["labels"]["node.kubernetes.io/instance-type"]
        for node in kubectl.get("nodes")
        if {"type": "Ready", "status": "True"}.items() <= ready_condition(node).items()
    }


def ready_condition(node: dict[str, Any]) -> dict[str, Any]:
    conditions = node.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "Ready"), {})


def scraped_models(kubectl: Kubectl, wanted: dict[str, str]) -> dict[str, str]:
    """The GPU model of each node, by the exporter on it, once the exporters of the wanted nodes answer."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = {}
        for pod in kubectl.get("pods", "-n", "gpu-metrics", "-l", "app.kubernetes.io/name=dcgm-exporter"):
            path = f"/api/v1/namespaces/gpu-metrics/pods/{pod['metadata']['name']}:9400/proxy/metrics"
            answer = kubectl.say("get", "--raw", path)
            if answer.startswith("# HELP"):
                samples = [each for family in parse_exposition(answer) for each in family.samples]
                found[pod["spec"]["nodeName"]] = samples[0].labels["modelName"]
        if found.keys() == wanted.keys():
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)  # no event says that an exporter listens


def test_before_it_was_ever_up(own: Settings) -> None:
    assert [line.split() for line in said(own, "status").splitlines()] == [
        ["cluster", "stopped"],
        ["prometheus", "stopped"],
    ]
    assert "never started" in refused(own, "create")
    assert "never started" in refused(own, "scale", "--nodegroup", "sys", "--nodes", "1")
    assert "is not running" in refused(own, "charts")
    with pytest.raises(LabNotRunning, match="gpuworkshop lab up"):
        _ = Lab(own).kubectl
    assert said(own, "down").startswith("0 processes ended")
    assert "nothing is left" in said(own, "reset")


def test_up_and_up_again(own: Settings) -> None:
    first = said(own, "up")
    assert "cluster: healthy at https://127.0.0.1:" in first
    assert "prometheus: healthy at http://127.0.0.1:" in first
    assert f"export KUBECONFIG='{Lab(own).kubeconfig}'" in first
    assert sorted(types(Lab(own).kubectl).values()) == ["m5.xlarge", "p5en.48xlarge"]
    assert said(own, "up") == first
    status = said(own, "status")
    assert status.count("healthy") == 2
    assert "p5en.48xlarge" in status
    assert said(own, "charts").startswith("http://127.0.0.1:")


def test_the_walkthroughs_cluster(up: Lab) -> None:
    own = up.settings
    assert "serverside-applied" in said(own, "create", "-f", BLOG)
    nodes = types(up.kubectl)
    assert sorted(nodes.values()) == ["g5.2xlarge", "m5.xlarge"]
    assert regions(up.kubectl) == {"us-east-1"}
    said(own, "scale", "--nodegroup", "g5", "--nodes", "2")
    scaled = types(up.kubectl)
    assert sorted(scaled.values()) == ["g5.2xlarge", "g5.2xlarge", "m5.xlarge"]
    assert nodes.items() <= scaled.items()
    gpus = {name: kind for name, kind in scaled.items() if kind == "g5.2xlarge"}
    assert scraped_models(up.kubectl, gpus) == dict.fromkeys(gpus, "NVIDIA A10G")
    said(own, "scale", "--nodegroup", "g5", "--nodes", "1")
    assert types(up.kubectl) == nodes
    said(own, "scale", "--nodegroup", "g5", "--nodes", "0")
    assert sorted(types(up.kubectl).values()) == ["m5.xlarge"]


def regions(kubectl: Kubectl) -> set[str]:
    return {node["metadata"]["labels"]["topology.kubernetes.io/region"] for node in kubectl.get("nodes")}


def test_create_again(up: Lab) -> None:
    own = up.settings
    said(own, "create", "-f", BLOG)
    said(own, "scale", "--nodegroup", "g5", "--nodes", "3")
    born = {node["metadata"]["name"]: node["metadata"]["uid"] for node in up.kubectl.get("nodes")}
    said(own, "create")
    said(own, "create", "-f", up.cluster_config)
    assert {node["metadata"]["name"]: node["metadata"]["uid"] for node in up.kubectl.get("nodes")} == born


def test_another_type_for_a_group(up: Lab, tmp_path: Path) -> None:
    said(up.settings, "create", "-f", BLOG)
    old = types(up.kubectl)
    edited = tmp_path / "edited.yaml"
    edited.write_text(BLOG.read_text().replace("g5.2xlarge", "g6.2xlarge"))
    assert "deleted" in said(up.settings, "create", "-f", edited)
    new = types(up.kubectl)
    assert sorted(new.values()) == ["g6.2xlarge", "m5.xlarge"]
    gpus = {name: kind for name, kind in new.items() if kind == "g6.2xlarge"}
    assert gpus.keys() <= old.keys()
    assert scraped_models(up.kubectl, gpus) == dict.fromkeys(gpus, "NVIDIA L4")


def test_a_cluster_without_nodes(up: Lab, tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text(BLOG.read_text().replace("desiredCapacity: 1", "desiredCapacity: 0"))
    said(up.settings, "create", "-f", empty)
    said(up.settings, "scale", "--nodegroup", "sys", "--nodes", "0")
    assert up.kubectl.get("nodes") == []
    assert "No resources found" in up.kubectl.say("get", "nodes")
    said(up.settings, "create", "-f", BLOG)
    assert len(types(up.kubectl)) == 2


def test_what_is_refused(up: Lab, tmp_path: Path) -> None:
    own = up.settings
    said(own, "create", "-f", BLOG)
    before = types(up.kubectl)
    broken = tmp_path / "broken.yaml"
    broken.write_text(BLOG.read_text().replace("g5.2xlarge", "g5.huge"))
    assert "g5.huge" in refused(own, "create", "-f", broken)
    assert "nowhere.yaml" in refused(own, "create", "-f", tmp_path / "nowhere.yaml")
    assert "take sys, g5" in refused(own, "scale", "--nodegroup", "g9", "--nodes", "1")
    assert "maxSize 10" in refused(own, "scale", "--nodegroup", "g5", "--nodes", "11")
    assert lab(own, "scale", "--nodegroup", "g5", "--nodes", "-1").returncode == 2
    assert types(up.kubectl) == before
    assert up.cluster_config.read_text() == BLOG.read_text()


def test_objects_survive_down_and_end_with_reset(up: Lab) -> None:
    own = up.settings
    said(own, "create", "-f", BLOG)
    up.kubectl.run("create", "configmap", "note", "--from-literal=a=1")
    assert not said(own, "down").startswith("0 ")
    assert said(own, "status").count("stopped") == 2
    assert "refused" in refused(own, "create")
    said(own, "up")
    assert up.kubectl.get("configmap", "note")[0]["data"] == {"a": "1"}
    assert sorted(types(up.kubectl).values()) == ["g5.2xlarge", "m5.xlarge"]
    said(own, "reset")
    assert said(own, "status").count("stopped") == 2
    said(own, "up")
    assert up.kubectl.get("configmap", "note") == []
    assert sorted(types(up.kubectl).values()) == ["m5.xlarge", "p5en.48xlarge"]
