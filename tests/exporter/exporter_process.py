"""The exporter as a learner starts it: a process of its own, on a port of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

COMMAND = (sys.executable, "-m", "gpuworkshop", "exporter")


def write_gpus(path: Path, gpus: Any) -> Path:
    """Replace a GPU file at one stroke, as the lab does."""
    scratch = path.with_suffix(".new")
    scratch.write_text(gpus if isinstance(gpus, str) else yaml.safe_dump(gpus), "utf-8")
    scratch.replace(path)
    return path


@dataclass
class Exporter:
    """A running exporter."""

    process: subprocess.Popen[str]
    url: str

    def get(self, path: str = "/metrics", **headers: str) -> tuple[int, bytes, Any]:
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read(), answer.headers

    def samples(self) -> list[Sample]:
        """Every sample of a scrape, by prometheus_client's parser."""
        families = text_string_to_metric_families(self.get()[1].decode())
        return [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the one series with these labels, None if there is none."""
        found = [
            sample.value
            for sample in self.samples()
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert len(found) < 2, f"{len(found)} series of {name} with {labels}"
        return found[0] if found else None

    def until(self, wanted: Callable[[], bool]) -> None:
        """Look again and again, for at most ten seconds: a reading has no event to wait for."""
        deadline = time.monotonic() + 10
        while not wanted():
            assert time.monotonic() < deadline, "it did not come true within 10 s"
            time.sleep(0.02)


@contextmanager
def serving(gpus: Path | None, *options: str) -> Iterator[Exporter]:
    """An exporter, without a file of this machine's GPUs, on any free port; ended well by SIGTERM."""
    command = [*COMMAND, "--listen", "127.0.0.1:0", "--interval", "100", *options]
    command += ["--gpus", str(gpus)] if gpus else []
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NODE_NAME": "node-1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            assert process.stdout
            said = ""
            while not (found := re.search(r"https?://\S+:\d+", said)):  # a warning may come first
                line = process.stdout.readline()
                assert line, said
                said += line
            yield Exporter(process, found[0])
        finally:
            process.terminate()
            process.wait(10)


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the exporter to its end."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )
