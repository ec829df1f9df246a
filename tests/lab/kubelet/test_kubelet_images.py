"""What images run as."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubelet_lab import KubeletLab, in_lab, pause, shell

from gpuworkshop.lab.api.kinds import CONFIG_MAP, ENDPOINTS, SERVICE
from gpuworkshop.lab.kubelet import images, prometheus_image
from gpuworkshop.settings import Settings


def _situation(tmp_path: Path, **about: Any) -> images.Situation:
    given: dict[str, Any] = {"command": [], "args": [], "env": {"PATH": "/usr/bin:/bin"}}
    return images.Situation(
        container={},
        root=tmp_path,
        address="127.200.1.2",
        node="node-1",
        gpu_file=tmp_path / "gpus.yaml",
        pod_resources=tmp_path / "kubelet.sock",
        settings=Settings(root=tmp_path, state=tmp_path),
        api="https://127.0.0.1:6443",
        rewritten=lambda text: text,
        **{**given, **about},
    )


def _command(rule: images.Rule, at: images.Situation) -> list[str]:
    async def ask() -> images.Launch | None:
        return await rule(at)

    launch = asyncio.run(ask())
    assert launch is not None
    return list(launch.command)


@pytest.mark.parametrize(
    ("image", "rule"),
    [
        ("nvcr.io/nvidia/k8s/dcgm-exporter:4.8.4-4.8.2-ubuntu22.04", images.exporter),
        ("quay.io/prometheus/prometheus:v3.1.0", images.prometheus),
        ("python", images.python),
        ("docker.io/library/python:3.12-slim@sha256:abc", images.python),
        ("localhost:5000/gpu-burn:1", images.gpu_burn),
        ("curlimages/curl:8.10.1", images.curl),
        ("busybox", images.shell),
        ("nginx", None),
        ("prometheus-operator:v1", None),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.17.4", None),
    ],
)
def test_image_has_the_rule_of_its_name(image: str, rule: images.Rule | None) -> None:
    assert images.rule_for(image) is rule


@pytest.mark.parametrize(
    ("about", "listen", "interval"),
    [
        ({}, "9400", "1000"),
        ({"env": {"DCGM_EXPORTER_LISTEN": ":9500", "DCGM_EXPORTER_INTERVAL": "250"}}, "9500", "250"),
        ({"args": ["-f", "/etc/x.csv", "-a", "0.0.0.0:9600", "--collect-interval=500"]}, "9600", "500"),
    ],
)
def test_exporter_listens_at_the_pods_own_address(
    tmp_path: Path, about: dict[str, Any], listen: str, interval: str
) -> None:
    command = _command(images.exporter, _situation(tmp_path, **about))
    assert command[command.index("--listen") + 1] == f"127.200.1.2:{listen}"
    assert command[command.index("--interval") + 1] == interval
    assert command[command.index("--hostname") + 1] == "node-1"
    assert command[command.index("--pod-resources-socket") + 1] == str(tmp_path / "kubelet.sock")


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["-s", "http://x"], ["curl", "-s", "http://x"]),
        (["http://x"], ["curl", "http://x"]),
        (["sh", "-c", "true"], ["sh", "-c", "true"]),
        ([], ["curl", "--help"]),
    ],
)
def test_curl_images_take_options_or_a_program(tmp_path: Path, args: list[str], wanted: list[str]) -> None:
    assert _command(images.curl, _situation(tmp_path, args=args)) == wanted


def test_gpu_burn_without_a_command_is_a_pause(tmp_path: Path) -> None:
    assert asyncio.run(images.gpu_burn(_situation(tmp_path))) is None


def test_exporter_in_a_pod_shows_the_pods_of_its_node() -> None:
    async def test(lab: KubeletLab) -> None:
        main = {
            "name": "main",
            "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.8.4",
            "readinessProbe": {"httpGet": {"path": "/health", "port": 9400}, "periodSeconds": 1},
            "env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "100"}],
        }
        lab.pod("exporter", main)
        lab.pod("burn", pause(resources={"limits": {"nvidia.com/gpu": 1}}))
        await lab.ready("burn")
        await lab.ready("exporter")
        reader, writer = await lab.kubelets.connect(lab.get("exporter"), 9400)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        body = (await reader.read()).decode()
        writer.close()
        assert 'pod="burn"' in body
        assert 'modelName="NVIDIA A10G"' in body

    in_lab(test, gpus=True)


def test_python_runs_a_script_from_a_config_map() -> None:
    async def test(lab: KubeletLab) -> None:
        script = "import os, sys\nprint(sys.argv[1], os.environ['A'])\n"
        lab.put(CONFIG_MAP, "script", data={"burn.py": script})
        main = {
            "name": "main",
            "image": "python:3.12-slim",
            "command": ["python3", "-u", "/scripts/burn.py"],
            "args": ["$(A)"],
            "env": [{"name": "A", "value": "seen"}],
            "volumeMounts": [{"name": "s", "mountPath": "/scripts"}],
        }
        lab.pod("burn", main, volumes=[{"name": "s", "configMap": {"name": "script"}}], restartPolicy="Never")
        await lab.phase("burn", "Succeeded")
        assert await lab.log("burn") == b"seen seen\n"

    in_lab(test)


def test_event_says_how_a_known_image_runs() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("sleep 60"))
        await lab.ready("app")
        assert "runs as a process of this machine" in lab.events("app")["Simulated"]

    in_lab(test)


def test_curl_finds_services_by_name() -> None:
    async def test(lab: KubeletLab) -> None:
        ports = [{"name": "web", "port": 80, "protocol": "TCP"}]
        lab.put(SERVICE, "shop", spec={"clusterIP": "10.100.7.7", "ports": ports})
        subset = {"addresses": [{"ip": "127.200.1.9"}], "ports": [{"name": "web", "port": 8080}]}
        lab.put(ENDPOINTS, "shop", subsets=[subset])
        lab.pod("app", shell("cat .curlrc; sleep 60"))
        lines = (await _log_of_ready(lab, "app")).decode().splitlines()
        assert 'connect-to = "shop:80:127.200.1.9:8080"' in lines
        assert 'connect-to = "shop.default.svc.cluster.local:80:127.200.1.9:8080"' in lines
        assert 'connect-to = "10.100.7.7:80:127.200.1.9:8080"' in lines

    in_lab(test)


async def _log_of_ready(lab: KubeletLab, name: str) -> bytes:
    await lab.ready(name)
    return (await lab.execute(name, "cat", ".curlrc"))[1]


def test_prometheus_is_told_where_the_api_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_image, "find_or_fetch", lambda *_, **__: Path("/usr/bin/prometheus"))
    config = tmp_path / "etc" / "prometheus" / "prometheus.yml"
    config.parent.mkdir(parents=True)
    jobs = [
        {"job_name": "pods", "kubernetes_sd_configs": [{"role": "pod"}]},
        {"job_name": "away", "kubernetes_sd_configs": [{"role": "pod", "api_server": "https://elsewhere"}]},
    ]
    config.write_text(
        yaml.safe_dump({"scrape_configs": jobs, "rule_files": ["rules/*.yml"]}), encoding="utf-8"
    )
    args = [
        "--config.file",
        "/etc/prometheus/prometheus.yml",
        "--web.listen-address=:9091",
        "--web.enable-lifecycle",
    ]
    command = _command(images.prometheus, _situation(tmp_path, args=args))
    assert command[0] == "/usr/bin/prometheus"
    assert "--web.listen-address=127.200.1.2:9091" in command
    assert command[-1] == "--web.enable-lifecycle"
    here = yaml.safe_load((tmp_path / ".prometheus.yml").read_text(encoding="utf-8"))
    (mine,), (other,) = (job["kubernetes_sd_configs"] for job in here["scrape_configs"])
    assert mine["api_server"] == "https://127.0.0.1:6443"
    assert mine["authorization"]["credentials_file"].startswith(str(tmp_path))
    assert other == {"role": "pod", "api_server": "https://elsewhere"}
    assert here["rule_files"] == [str(config.parent / "rules/*.yml")]


@pytest.mark.parametrize("text", ["{", "- a list", "\xff"])
def test_broken_configuration_is_left_to_prometheus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(prometheus_image, "find_or_fetch", lambda *_, **__: Path("/usr/bin/prometheus"))
    (tmp_path / "p.yml").write_bytes(text.encode("latin-1"))
    command = _command(images.prometheus, _situation(tmp_path, args=["--config.file=/p.yml"]))
    assert f"--config.file={tmp_path / 'p.yml'}" in command


@pytest.mark.real
def test_real_prometheus_runs_in_a_pod_and_reloads(prometheus: Path, settings: Settings) -> None:
    async def test(lab: KubeletLab) -> None:
        (lab.state / "tools").symlink_to(settings.tools)
        lab.put(CONFIG_MAP, "prometheus", data={"prometheus.yml": "scrape_configs: []\n"})
        main = {
            "name": "main",
            "image": "quay.io/prometheus/prometheus:v3.1.0",
            "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 1},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/prometheus"}],
        }
        lab.pod("prometheus", main, volumes=[{"name": "config", "configMap": {"name": "prometheus"}}])
        await lab.ready("prometheus")

        def change(live: dict[str, Any]) -> None:
            live["data"] = {"prometheus.yml": "scrape_configs: [{job_name: added}]\n"}

        lab.registry.modify(CONFIG_MAP, "default", "prometheus", change)
        assert b"Server is ready" in await lab.log("prometheus")
        async with asyncio.timeout(20):
            while "added" not in await _config(lab):
                await asyncio.sleep(0.05)  # Prometheus tells nobody that it has reloaded

    in_lab(test)


async def _config(lab: KubeletLab) -> str:
    reader, writer = await lab.kubelets.connect(lab.get("prometheus"), 9090)
    writer.write(b"GET /api/v1/status/config HTTP/1.0\r\n\r\n")
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    return str(json.loads(body)["data"]["yaml"])
