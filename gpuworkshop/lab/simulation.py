"""What runs on which simulated GPU of a node: one YAML file, which the node's exporter re-reads.

The node's kubelet writes it, as it gives GPUs to containers and takes them back; it is replaced atomically.
Others only read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import LabError
from gpuworkshop.processes.state import replace_file


class SimulatedNode:
    """The GPUs of one simulated node, described in `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem

    def replace(self, gpus: list[dict[str, Any]]) -> None:
        """Write all GPUs as the kubelet has them, each entry in the exporter's words, unless they are so."""
        try:
            same = self.read() == gpus
        except LabError:
            same = False
        if not same:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, yaml.safe_dump(gpus, sort_keys=False))

    def read(self) -> list[dict[str, Any]]:
        """The GPUs as the file has them. Raises LabError when it cannot be read."""
        try:
            gpus = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise self._broken(str(error)) from error
        if not (isinstance(gpus, list) and all(map(_is_gpu, gpus))):
            raise self._broken("it is not a list of GPUs, each with an index and pods that have a name")
        return gpus

    def pods(self) -> list[tuple[str, str, int]]:
        """Namespace and name of every pod on this node, with the index of each GPU that it holds."""
        return [(*_key(pod), int(gpu["index"])) for gpu in self.read() for pod in gpu.get("pods") or []]

    def entries(self, pods: Iterable[tuple[str, str]]) -> str:
        """The YAML of the GPUs that run `pods`, given by namespace and name; "" if none does."""
        wanted = set(pods)
        found = [gpu for gpu in self.read() if any(_key(pod) in wanted for pod in gpu.get("pods") or [])]
        return yaml.safe_dump(found, sort_keys=False) if found else ""

    def _broken(self, why: str) -> LabError:
        return LabError(
            f"{self.path} cannot be read: {why}",
            step="reading the simulated GPUs",
            todo="restart the lab, which writes it anew: ./stop.sh, then ./run.sh",
        )


def _is_gpu(gpu: object) -> bool:
    if not (isinstance(gpu, dict) and isinstance(gpu.get("index"), int)):
        return False
    pods = gpu.get("pods") or []
    return isinstance(pods, list) and all(
        isinstance(pod, dict) and isinstance(pod.get("pod"), str) for pod in pods
    )


def _key(pod: dict[str, Any]) -> tuple[str, str]:
    return str(pod.get("namespace", "default")), pod["pod"]
