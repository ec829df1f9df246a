"""The lab's Prometheus: a real server, its configuration, and history from before it started.

It discovers its targets in the cluster: every pod of the exporter. Back-filled history is made by promtool
from the exporter's own history, for the loads that run now, and lies in blocks beside those that Prometheus
writes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from gpuworkshop.errors import LabError

SCRAPE_INTERVAL = "1s"
# NVIDIA's exporter; and the workshop's own, where that runs beside it.
JOB, OWN_JOB = "dcgm-exporter", "gpuworkshop-exporter"


def target_labels(node: str) -> Mapping[str, str]:
    """The labels that a scrape of the exporter on `node` adds.

    `instance` names the node, since addresses change with each start of the lab and would start a new
    series each time.
    """
    return {"job": JOB, "instance": f"{node}:9400", "node": node}


@dataclass(frozen=True)
class PrometheusFiles:
    """The folder of the lab's Prometheus: `prometheus.yml`, and the TSDB in `data/`."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "prometheus.yml"

    @property
    def data(self) -> Path:
        """The TSDB."""
        return self.folder / "data"

    def write(self, kubeconfig: Path) -> None:
        """Write the configuration."""
        self.data.mkdir(parents=True, exist_ok=True)
        self.config.write_text(yaml.safe_dump(_config(kubeconfig), sort_keys=False), encoding="utf-8")

    def command(self, prometheus: Path, address: str) -> list[str]:
        """The command line that serves this folder at `address` (host:port)."""
        return [
            str(prometheus),
            f"--config.file={self.config}",
            f"--storage.tsdb.path={self.data}",
            "--storage.tsdb.retention.time=7d",
            "--storage.tsdb.retention.size=2GB",
            f"--web.listen-address={address}",
            # By default the last value is repeated for 5 minutes, over an outage too.
            "--query.lookback-delta=5s",
            # Prometheus waits this long before it acts on a discovered target; 5 s is its default.
            "--scrape.discovery-reload-interval=1s",
        ]


def _config(kubeconfig: Path) -> dict[str, object]:
    container, port = "__meta_kubernetes_pod_container_name", "__meta_kubernetes_pod_container_port_name"
    node = "__meta_kubernetes_pod_node_name"
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "scrape_timeout": SCRAPE_INTERVAL},
        "scrape_configs": [
            {
                "job_name": JOB,
                # The workload's pod and namespace must win over those of the exporter.
                "honor_labels": True,
                "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": str(kubeconfig)}],
                "relabel_configs": [
                    {
                        "source_labels": [container, port],
                        "regex": f"(.*dcgm-exporter|{OWN_JOB});metrics",
                        "action": "keep",
                    },
                    {"source_labels": [container], "regex": f"({OWN_JOB})", "target_label": "job"},
                    {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
                    {"source_labels": [node], "target_label": "node"},
                    {"source_labels": [node], "replacement": "$1:9400", "target_label": "instance"},
                ],
            }
        ],
    }


def backfill(
    files: PrometheusFiles, promtool: Path, gpu_yaml: str, node: str, span: tuple[float, float]
) -> None:
    """Put the history of a node's GPUs, as in `gpu_yaml`, into the TSDB.

    `span` is from when until when, in Unix seconds.
    Prometheus serves the new blocks from its next start on. Raises LabError when exporter or promtool
    refuse; the TSDB is then as it was.
    """
    files.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=files.folder, prefix="backfill-") as scratch:
        gpus, history, blocks = (Path(scratch, name) for name in ("gpus.yaml", "history.om", "blocks"))
        gpus.write_text(gpu_yaml, encoding="utf-8")
        labels = [
            part for key, value in target_labels(node).items() for part in ("--label", f"{key}={value}")
        ]
        exporter = [sys.executable, "-m", "gpuworkshop", "exporter", "--gpus", str(gpus)]
        exporter += ["--hostname", node, "--backfill", *(f"{at:.0f}" for at in span), *labels]
        with history.open("wb") as stdout:
            _run(exporter, stdout)
        _run([str(promtool), "tsdb", "create-blocks-from", "openmetrics", str(history), str(blocks)])
        for block in blocks.iterdir():
            _mark_out_of_order(block / "meta.json")
            shutil.move(block, files.data / block.name)


def _mark_out_of_order(meta: Path) -> None:
    """Tell Prometheus that this block came after newer samples.

    Without the hint it takes the block's end for the start of its write-ahead log, and drops, at its next
    start, each sample in the log from before that.
    """
    block = json.loads(meta.read_text(encoding="utf-8"))
    block["compaction"]["hints"] = ["from-out-of-order"]
    meta.write_text(json.dumps(block), encoding="utf-8")


def _run(command: list[str], stdout: object = subprocess.DEVNULL) -> None:
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)  # type: ignore[call-overload]
    if done.returncode:
        raise LabError(
            f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr.strip()[-500:]}",
            step="back-filling history",
            todo="see whether the disk is full (df -h .), then run the same cell or command again",
        )
