"""The charts without a cluster: helm's own checks, the values they know, the objects they make."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_values import SHARED, Rendered, helm, leaves, render

from gpuworkshop.deploy import charts, manifests
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

pytestmark = pytest.mark.real
OWN = ("gpu-burn", "gpuworkshop-exporter")
CHARTS = ("gpu-operator", "kube-prometheus-stack", *OWN)
MONITORING = ("--api-versions", "monitoring.coreos.com/v1")
# Of a subchart, whose defaults the list of keys does not have.
SUBCHART = {"grafana.adminPassword", "grafana.service.type"}
SCRIPT = charts.path("gpu-burn") / "files" / "gpu_burn.py"
EXPORTER = ("DaemonSet", "nvidia-dcgm-exporter")
SERVICE = ("Service", "nvidia-dcgm-exporter")
MONITOR = ("ServiceMonitor", "nvidia-dcgm-exporter")


@pytest.fixture(scope="session")
def binary(settings: Settings) -> Path:
    """The real helm."""
    return find_or_fetch("helm", settings)


def pod_of(found: Rendered, kind: str, name: str) -> dict[str, Any]:
    """The pod template's spec."""
    spec: dict[str, Any] = found[kind, name]["spec"]["template"]["spec"]
    return spec


def only(found: Rendered, kind: str, name: str) -> dict[str, Any]:
    """The one container of a workload."""
    (container,) = pod_of(found, kind, name)["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize("chart", CHARTS)
def test_helm_finds_nothing_wrong(binary: Path, chart: str) -> None:
    done = helm(binary, "lint", "--strict", charts.path(chart))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_says_what_it_is(chart: str) -> None:
    about = yaml.safe_load((charts.path(chart) / "Chart.yaml").read_text())
    assert about["name"] == chart
    if chart not in OWN:
        assert about["description"].startswith("Rehearsal stand-in of ")
        assert about["version"].endswith("+lab")


@pytest.mark.parametrize("chart", ["gpu-operator", "kube-prometheus-stack"])
def test_every_value_is_one_of_the_real_charts(chart: str) -> None:
    listed = SHARED / "data" / f"{chart}-values-keys.json"
    if not listed.exists():
        pytest.skip("the real chart's keys are not here")
    known = json.loads(listed.read_text())["keys"]
    ours = yaml.safe_load((charts.path(chart) / "values.yaml").read_text())
    assert set(leaves(ours)) - known.keys() - SUBCHART == set()


@pytest.mark.parametrize("chart", ["gpu-operator", "kube-prometheus-stack"])
def test_defaults_are_those_of_the_real_chart(chart: str) -> None:
    listed = SHARED / "data" / f"{chart}-values-keys.json"
    if not listed.exists():
        pytest.skip("the real chart's keys are not here")
    known = json.loads(listed.read_text())["keys"]
    ours = yaml.safe_load((charts.path(chart) / "values.yaml").read_text())
    for key in set(leaves(ours)) - SUBCHART:
        value: Any = ours
        for part in key.split("."):
            value = value[part]
        shown = type(value).__name__ if isinstance(value, list | dict) else value
        assert (key, shown) == (key, known[key])


def test_the_operator_makes_what_the_real_one_makes(binary: Path) -> None:
    found = render(binary, "gpu-operator")
    assert {name for kind, name in found if kind == "DaemonSet"} == {
        "gpu-feature-discovery",
        "gpu-operator-node-feature-discovery-worker",
        "nvidia-container-toolkit-daemonset",
        "nvidia-dcgm-exporter",
        "nvidia-device-plugin-daemonset",
        "nvidia-driver-daemonset",
        "nvidia-mig-manager",
        "nvidia-operator-validator",
    }
    assert {name for kind, name in found if kind == "Deployment"} == {
        "gpu-operator",
        "gpu-operator-node-feature-discovery-gc",
        "gpu-operator-node-feature-discovery-master",
    }
    assert ("ClusterPolicy", "cluster-policy") in found


def test_each_workload_has_the_account_that_it_names(binary: Path) -> None:
    found = render(binary, "gpu-operator")
    workloads = [obj for (kind, _), obj in found.items() if kind in ("DaemonSet", "Deployment")]
    named = {obj["spec"]["template"]["spec"]["serviceAccountName"] for obj in workloads}
    assert named == {name for kind, name in found if kind == "ServiceAccount"}


def test_the_exporter_of_the_operator(binary: Path) -> None:
    found = render(binary, "gpu-operator")
    pod, container = pod_of(found, *EXPORTER), only(found, *EXPORTER)
    assert container["name"] == "nvidia-dcgm-exporter"
    assert container["image"] == "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
    assert container["ports"] == [{"name": "metrics", "containerPort": 9400}]
    assert {env["name"]: env.get("value") for env in container["env"]} == {
        "DCGM_EXPORTER_LISTEN": ":9400",
        "DCGM_EXPORTER_KUBERNETES": "true",
        "NODE_NAME": None,
    }
    assert pod["nodeSelector"] == {"nvidia.com/gpu.deploy.dcgm-exporter": "true"}
    assert pod["volumes"] == [
        {"name": "pod-gpu-resources", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}
    ]
    service = found[SERVICE]
    assert service["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("gpu-metrics", 9400)]
    labels = found[EXPORTER]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_exporter_takes_variables_and_a_list_of_counters(binary: Path) -> None:
    found = render(
        binary,
        "gpu-operator",
        "--set=dcgmExporter.env[0].name=DCGM_EXPORTER_INTERVAL",
        "--set-string=dcgmExporter.env[0].value=1000",
        "--set=dcgmExporter.config.name=my-metrics",
    )
    container = only(found, *EXPORTER)
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert env["DCGM_EXPORTER_INTERVAL"] == "1000"
    assert env["DCGM_EXPORTER_COLLECTORS"] == "/etc/dcgm-exporter/dcgm-metrics.csv"
    assert {"name": "metrics-config", "configMap": {"name": "my-metrics"}} in pod_of(found, *EXPORTER)[
        "volumes"
    ]
    assert {mount["name"] for mount in container["volumeMounts"]} == {"pod-gpu-resources", "metrics-config"}


def test_a_service_monitor_is_made_where_there_is_such_a_kind(binary: Path) -> None:
    assert MONITOR not in render(binary, "gpu-operator")
    assert MONITOR not in render(
        binary, "gpu-operator", *MONITORING, "--set=dcgmExporter.serviceMonitor.enabled=false"
    )
    found = render(
        binary,
        "gpu-operator",
        *MONITORING,
        "--set=dcgmExporter.serviceMonitor.interval=5s",
        "--set=dcgmExporter.serviceMonitor.honorLabels=true",
        "--set=dcgmExporter.serviceMonitor.additionalLabels.release=stack",
    )
    monitor = found[MONITOR]
    assert monitor["metadata"]["labels"] == {"app": "nvidia-dcgm-exporter", "release": "stack"}
    assert monitor["spec"]["endpoints"] == [
        {"port": "gpu-metrics", "path": "/metrics", "interval": "5s", "honorLabels": True}
    ]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["gpu-operator"]}
    assert found[SERVICE]["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "gpuworkshop.io/monitored-every": "5s",
        "gpuworkshop.io/monitored-for": "stack",
        "gpuworkshop.io/monitored-honor-labels": "true",
    }


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("devicePlugin", "nvidia-device-plugin-daemonset"),
        ("dcgmExporter", "nvidia-dcgm-exporter"),
        ("gfd", "gpu-feature-discovery"),
        ("driver", "nvidia-driver-daemonset"),
        ("toolkit", "nvidia-container-toolkit-daemonset"),
        ("migManager", "nvidia-mig-manager"),
        ("nfd", "gpu-operator-node-feature-discovery-worker"),
    ],
)
def test_an_operand_can_be_left_out(binary: Path, key: str, gone: str) -> None:
    every = render(binary, "gpu-operator")
    found = render(binary, "gpu-operator", f"--set={key}.enabled=false")
    missing = every.keys() - found.keys()
    assert {name for kind, name in missing if kind == "DaemonSet"} == {gone}
    if key != "nfd":
        assert found["ClusterPolicy", "cluster-policy"]["spec"][key]["enabled"] is False


def test_time_slicing_reaches_plugin_and_discovery(binary: Path) -> None:
    config = "--set=devicePlugin.config.name=slicing"
    created = render(
        binary, "gpu-operator", config, "--set=devicePlugin.config.create=true,devicePlugin.config.data.any=x"
    )
    assert created["ConfigMap", "slicing"]["data"] == {"any": "x"}
    found = render(binary, "gpu-operator", config)
    assert ("ConfigMap", "slicing") not in found
    for name in ("nvidia-device-plugin-daemonset", "gpu-feature-discovery"):
        volumes = pod_of(found, "DaemonSet", name)["volumes"]
        assert {"name": "config", "configMap": {"name": "slicing"}} in volumes
    done = helm(binary, "template", "x", charts.path("gpu-operator"), "--set=devicePlugin.config.create=true")
    assert "devicePlugin.config.name is needed" in done.stderr


def test_the_images_tell_plugin_operator_and_discovery_apart(binary: Path) -> None:
    """The lab goes by these names."""
    found = render(binary, "gpu-operator")
    plugins = [
        name
        for (kind, name), obj in found.items()
        if kind == "DaemonSet" and "k8s-device-plugin" in json.dumps(obj)
    ]
    assert plugins == ["nvidia-device-plugin-daemonset"]
    image = only(found, "DaemonSet", "gpu-feature-discovery")["image"]
    assert image.startswith("nvcr.io/nvidia/gpu-feature-discovery:")
    assert "/gpu-operator:" in only(found, "Deployment", "gpu-operator")["image"]


@pytest.mark.parametrize(
    ("release", "prometheus", "grafana"),
    [
        ("kube-prometheus-stack", "kube-prometheus-stack-prometheus", "kube-prometheus-stack-grafana"),
        ("prometheus", "prometheus-kube-prometheus-prometheus", "prometheus-grafana"),
        (
            "kube-prometheus-stack-1603211794",
            "kube-prometheus-stack-1603-prometheus",
            "kube-prometheus-stack-1603211794-grafana",
        ),
    ],
)
def test_the_stacks_names_are_the_real_charts(
    binary: Path, release: str, prometheus: str, grafana: str
) -> None:
    found = render(binary, "kube-prometheus-stack", release=release)
    assert ("Service", prometheus) in found
    assert ("StatefulSet", f"prometheus-{prometheus}") in found
    assert ("Service", grafana) in found
    assert ("Service", "prometheus-operated") in found


def configuration(binary: Path, *arguments: str) -> dict[str, Any]:
    found = render(binary, "kube-prometheus-stack", *arguments, namespace="monitoring")
    secret = found["Secret", "prometheus-kube-prometheus-stack-prometheus"]
    read: dict[str, Any] = yaml.safe_load(secret["stringData"]["prometheus.yaml"])
    return read


JOB = """\
prometheus:
  prometheusSpec:
    scrapeInterval: 1s
    retention: 2h
    serviceMonitorSelectorNilUsesHelmValues: false
    additionalScrapeConfigs:
      - job_name: gpu-metrics
        scrape_interval: 1s
        kubernetes_sd_configs:
          - role: endpoints
            namespaces: {names: [gpu-operator]}
"""


def test_prometheus_honours_what_the_workshop_sets(binary: Path, promtool: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(JOB)
    plain, set_up = configuration(binary), configuration(binary, f"--values={values}")
    assert plain["global"]["scrape_interval"] == "30s"
    assert set_up["global"]["scrape_interval"] == "1s"
    extra = yaml.safe_load(JOB)["prometheus"]["prometheusSpec"]["additionalScrapeConfigs"]
    assert set_up["scrape_configs"][-1:] == extra
    for found in (plain, set_up):
        path = tmp_path / "prometheus.yml"
        path.write_text(yaml.safe_dump(found))
        done = subprocess.run(
            [promtool, "check", "config", path], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    found_set = render(binary, "kube-prometheus-stack", f"--values={values}")
    container = only(found_set, "StatefulSet", "prometheus-kube-prometheus-stack-prometheus")
    assert "--storage.tsdb.retention.time=2h" in container["args"]
    assert "/prometheus/prometheus:" in container["image"]


def test_monitors_of_other_releases_are_left_out_unless_told_otherwise(binary: Path) -> None:
    kept = "__meta_kubernetes_service_annotation_gpuworkshop_io_monitored_for"

    def selectors(found: dict[str, Any]) -> list[str]:
        rules = [rule for job in found["scrape_configs"] for rule in job.get("relabel_configs") or []]
        return [rule["regex"] for rule in rules if kept in rule.get("source_labels", [])]

    assert selectors(configuration(binary)) == ["kube-prometheus-stack"] * 2
    loose = "--set=prometheus.prometheusSpec.serviceMonitorSelectorNilUsesHelmValues=false"
    assert selectors(configuration(binary, loose)) == []
    prometheus = ("Prometheus", "kube-prometheus-stack-prometheus")
    strict = render(binary, "kube-prometheus-stack")[prometheus]["spec"]
    assert strict["serviceMonitorSelector"] == {"matchLabels": {"release": "kube-prometheus-stack"}}
    assert render(binary, "kube-prometheus-stack", loose)[prometheus]["spec"]["serviceMonitorSelector"] == {}


def test_grafana_can_be_logged_into(binary: Path) -> None:
    secret, service = (
        ("Secret", "kube-prometheus-stack-grafana"),
        ("Service", "kube-prometheus-stack-grafana"),
    )
    found = render(
        binary,
        "kube-prometheus-stack",
        "--set=grafana.adminPassword=s3cret,grafana.service.type=LoadBalancer",
    )
    assert found[secret]["stringData"] == {"admin-user": "admin", "admin-password": "s3cret"}
    assert found[service]["spec"]["type"] == "LoadBalancer"
    first, second = (
        render(binary, "kube-prometheus-stack")[secret]["stringData"]["admin-password"] for _ in "ab"
    )
    assert len(first) == 40
    assert first != second


@pytest.mark.parametrize(
    ("key", "kind", "gone"),
    [
        ("grafana", "Deployment", "kube-prometheus-stack-grafana"),
        ("kubeStateMetrics", "Deployment", "kube-prometheus-stack-kube-state-metrics"),
        ("prometheusOperator", "Deployment", "kube-prometheus-stack-operator"),
        ("nodeExporter", "DaemonSet", "kube-prometheus-stack-prometheus-node-exporter"),
        ("alertmanager", "StatefulSet", "alertmanager-kube-prometheus-stack-alertmanager"),
        ("prometheus", "StatefulSet", "prometheus-kube-prometheus-stack-prometheus"),
    ],
)
def test_a_companion_can_be_left_out(binary: Path, key: str, kind: str, gone: str) -> None:
    assert (kind, gone) in render(binary, "kube-prometheus-stack")
    assert (kind, gone) not in render(binary, "kube-prometheus-stack", f"--set={key}.enabled=false")


def test_the_stack_brings_the_kinds_of_the_operator() -> None:
    path = charts.path("kube-prometheus-stack") / "crds" / "monitoring.yaml"
    found = {crd["spec"]["names"]["plural"] for crd in yaml.safe_load_all(path.read_text())}
    assert found == {
        "alertmanagerconfigs",
        "alertmanagers",
        "podmonitors",
        "probes",
        "prometheusagents",
        "prometheuses",
        "prometheusrules",
        "scrapeconfigs",
        "servicemonitors",
        "thanosrulers",
    }


def test_gpu_burn_takes_seconds_replicas_and_gpus(binary: Path) -> None:
    found = render(binary, "gpu-burn", "--set=onSeconds=60,offSeconds=30,gpus=2,replicas=3", release="burner")
    deployment = found["Deployment", "burner"]
    assert deployment["spec"]["replicas"] == 3
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    assert yaml.safe_load(annotations["gpuworkshop.io/load"]) == {"kind": "wave", "on": 60, "off": 30}
    container = only(found, "Deployment", "burner")
    assert container["args"] == ["60", "30"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}
    assert "resources" not in only(render(binary, "gpu-burn", "--set=gpus=0"), "Deployment", "gpu-burn")


def test_the_manifest_of_gpu_burn_is_the_charts(binary: Path) -> None:
    made = render(binary, "gpu-burn", namespace="default")
    written = {(each["kind"], each["metadata"]["name"]): each for each in manifests.load("gpu-burn")}
    assert written == made
    assert made["ConfigMap", "gpu-burn"]["data"]["gpu_burn.py"].rstrip() == SCRIPT.read_text().rstrip()


def test_gpu_burn_needs_nothing_but_the_standard_library() -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", SCRIPT.read_text(), re.MULTILINE)
    assert set(imported) <= sys.stdlib_module_names
