"""Parse a scrape of 10,050 lines (25 metrics of 400 GPUs): ours and prometheus_client's parser.

    pip install -e '.[test]' && python benchmarks/exposition.py [--runs 9]

"cold" has to understand every label block; "warm" finds it in the cache, as the second scrape does.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from gpuworkshop.metrics import exposition

METRICS, GPUS = 25, 400


def page() -> str:
    dice = random.Random(1)  # noqa: S311 - numbers to draw, not to guard
    lines = []
    for metric in range(METRICS):
        name = f"DCGM_FI_DEV_FIELD_{metric}"
        lines += [f"# HELP {name} One of DCGM's fields.", f"# TYPE {name} gauge"]
        for gpu in range(GPUS):
            labels = (
                f'gpu="{gpu % 8}",UUID="GPU-{gpu:08x}-22fc-f7a9-abe2-ce3ac453b8b3",'
                f'pci_bus_id="00000000:8D:00.0",device="nvidia{gpu % 8}",modelName="NVIDIA H200",'
                f'hostname="ip-10-0-0-{gpu // 8}.ec2.internal",DCGM_FI_DRIVER_VERSION="580.95.05",'
                f'container="main",namespace="default",pod="gpu-burn-c68d8c774-{gpu:05}"'
            )
            lines.append(f"{name}{{{labels}}} {dice.random() * 100:.6f}")
    return "\n".join(lines) + "\n"


def milliseconds(parse: Callable[[], object]) -> float:
    began = time.perf_counter()
    parse()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=9)
    runs = options.parse_args().runs
    text = page()
    body = text.encode()
    found: dict[str, list[float]] = {"ours, cold": [], "ours, warm": [], "prometheus_client": []}
    for _ in range(runs):
        exposition._labels.cache_clear()
        found["ours, cold"].append(milliseconds(lambda: exposition.parse_exposition(body)))
        found["ours, warm"].append(milliseconds(lambda: exposition.parse_exposition(body)))
        found["prometheus_client"].append(milliseconds(lambda: list(text_string_to_metric_families(text))))
    base = statistics.median(found["ours, cold"])
    print(f"{len(text.splitlines())} lines, {len(body) / 1e6:.2f} MB; medians of {runs}")
    for parser, times in found.items():
        print(f"{parser:20}{statistics.median(times):8.1f} ms{statistics.median(times) / base:8.1f}")


if __name__ == "__main__":
    main()
