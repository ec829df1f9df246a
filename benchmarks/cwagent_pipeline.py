"""Series a second through the CloudWatch agent's pipeline: `python benchmarks/cwagent_pipeline.py`.

25 metrics of 400 GPUs, half of them idle, under the workshop's own configuration and under one that lets all
of them out. Timed on one core, each step alone and all in one: the page parsed, every series through relabel
rules, types, what counters gained, declarations and dimensions, and the log events built and written as JSON.
Aim: 10,000 series a second at least.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from dataclasses import dataclass

from gpuworkshop.cwagent.agent_config import AgentConfig, parse_agent_config
from gpuworkshop.cwagent.emf import log_events
from gpuworkshop.cwagent.inputs import read_text
from gpuworkshop.cwagent.pipeline import Scrape, process
from gpuworkshop.cwagent.scrape_config import ScrapeJob, parse_scrape_config
from gpuworkshop.cwagent.targets import Target, follow_targets
from gpuworkshop.deploy import manifests
from gpuworkshop.metrics.exposition import parse_exposition

GPUS = 400
NAMES = [
    *("GPU_UTIL", "DEC_UTIL", "ENC_UTIL", "MEM_CLOCK", "MEM_COPY_UTIL", "POWER_USAGE", "ROW_REMAP_FAILURE"),
    *("SM_CLOCK", "XID_ERRORS", "GPU_TEMP", "MEMORY_TEMP", "FB_FREE", "FB_USED", "FB_RESERVED"),
    *("PCIE_REPLAY_COUNTER", "TOTAL_ENERGY_CONSUMPTION", "NVLINK_BANDWIDTH_TOTAL"),
    *("UNCORRECTABLE_REMAPPED_ROWS", "CORRECTABLE_REMAPPED_ROWS", "VGPU_LICENSE_STATUS"),
]
COUNTERS = ("COUNTER", "CONSUMPTION", "TOTAL", "ROWS")
PROFILED = ["DRAM_ACTIVE", "GR_ENGINE_ACTIVE", "PCIE_RX_BYTES", "PCIE_TX_BYTES", "PIPE_TENSOR_ACTIVE"]


@dataclass(frozen=True)
class Setting:
    title: str
    target: Target
    agent: AgentConfig


def page(scrape: int) -> bytes:
    lines = []
    names = [*(f"DCGM_FI_DEV_{name}" for name in NAMES), *(f"DCGM_FI_PROF_{name}" for name in PROFILED)]
    for name in names:
        lines.append(f"# TYPE {name} {'counter' if name.endswith(COUNTERS) else 'gauge'}")
        for gpu in range(GPUS):
            pod = f',container="main",namespace="team",pod="train-{gpu:05}"' if gpu % 2 else ""
            labels = (
                f'gpu="{gpu}",UUID="GPU-{gpu:08x}-22fc-f7a9-abe2-ce3ac453b8b3",device="nvidia{gpu}",'
                f'modelName="NVIDIA H200",Hostname="ip-10-0-0-1",DCGM_FI_DRIVER_VERSION="580.95.05"{pod}'
            )
            lines.append(f"{name}{{{labels}}} {scrape + gpu}")
    return "\n".join([*lines, ""]).encode()


def target(job: ScrapeJob) -> Target:
    (found,) = follow_targets([job], [])
    return found


def settings() -> list[Setting]:
    path = str(manifests.path("cloudwatch-agent"))
    (job,) = parse_scrape_config(read_text(path, ".yaml"))
    text = read_text(path, ".json")
    everything = parse_scrape_config("job_name: all\nkubernetes_sd_configs: [{role: pod}]")[0]
    open_to_all = text.replace('"Service"]', '"job"]').replace('"dcgm-exporter$"', '".*"')
    return [
        Setting("the workshop's own", target(job), parse_agent_config(text)),
        Setting("everything goes out", target(everything), parse_agent_config(open_to_all)),
    ]


def measure(setting: Setting, scrapes: int) -> dict[str, float]:
    """Median seconds of each step, and of all; the first scrape, which fills caches, is left out."""
    baseline = None
    took: dict[str, list[float]] = {"parse": [], "pipeline": [], "events": [], "all": []}
    for number in range(scrapes + 1):
        body = page(number)
        began = time.perf_counter()
        families = parse_exposition(body)
        parsed = time.perf_counter()
        done = process(Scrape(setting.target, families, number * 10_000), setting.agent, baseline)
        processed = time.perf_counter()
        events = log_events(done.series, setting.agent)
        written = sum(len(json.dumps(event.content)) for event in events)
        ended = time.perf_counter()
        baseline = done.baseline
        assert written
        if number:
            for step, seconds in zip(
                took, (parsed - began, processed - parsed, ended - processed, ended - began), strict=True
            ):
                took[step].append(seconds)
    return {step: statistics.median(times) for step, times in took.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--scrapes", type=int, default=5)
    scrapes = options.parse_args().scrapes
    series = GPUS * (len(NAMES) + len(PROFILED))
    print(f"{series} series a scrape, medians of {scrapes} scrapes; Python {platform.python_version()}")
    print(
        "| configuration | parse, ms | pipeline, ms | events, ms | series a second, all steps |\n"
        "|---|---|---|---|---|"
    )
    for setting in settings():
        took = measure(setting, scrapes)
        steps = " | ".join(f"{took[step] * 1000:.0f}" for step in ("parse", "pipeline", "events"))
        print(f"| {setting.title} | {steps} | {series / took['all']:,.0f} |")


if __name__ == "__main__":
    main()
