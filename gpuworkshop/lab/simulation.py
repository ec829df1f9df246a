"""What runs on which simulated GPU of a node: one YAML file, which the node's exporter re-reads.

The file is the only truth. It is replaced atomically, under a lock, so a notebook and the command line
may change it at the same time, and an exporter that restarts goes on where the file says.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import LabError
from gpuworkshop.processes.state import replace_file


@dataclass(frozen=True)
class Pod:
    """A pod with one GPU. `load` is what it does there, in the exporter's words.

    For example `{"kind": "wave", "on": 20, "off": 20}`, in seconds, or `{"kind": "matmul"}`.
    """

    namespace: str
    name: str
    container: str = "main"
    load: Mapping[str, Any] = field(default_factory=lambda: {"kind": "idle"})


@dataclass(frozen=True)
class PodOnGpu:
    """A pod and the index of the GPU that it was given."""

    pod: Pod
    gpu: int


class SimulatedNode:
    """The GPUs of one simulated node, described in `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem

    def create(self, model: str, count: int) -> None:
        """Give the node `count` idle GPUs of `model`, unless it has its GPUs already."""
        if self.path.exists():
            return
        with self._locked():
            if not self.path.exists():
                self._write([{"index": index, "model": model, "pods": []} for index in range(count)])

    def replace(self, gpus: list[dict[str, Any]]) -> None:
        """Write all GPUs as the kubelet has them, each entry in the exporter's words, unless they are so."""
        with self._locked():
            try:
                same = self.read() == gpus
            except LabError:
                same = False
            if not same:
                self._write(gpus)

    def pods(self) -> list[PodOnGpu]:
        """Every pod on this node, by GPU."""
        return [
            PodOnGpu(_pod(entry), int(gpu["index"])) for gpu in self.read() for entry in gpu.get("pods") or []
        ]

    def run(self, pod: Pod) -> int:
        """Run `pod` on the first free GPU and return its index; a pod that runs already is updated in place.

        Raises LabError, in the scheduler's words, when no GPU is free.
        """
        with self._locked():
            gpus = self.read()
            gpu = _gpu_of(gpus, pod) or _free_gpu(gpus)
            if gpu is None:
                raise LabError(
                    f"pod {pod.namespace}/{pod.name} stays Pending: 0/1 nodes are available: "
                    "1 Insufficient nvidia.com/gpu.",
                    step="placing a pod",
                    todo="reset a step that holds a GPU, such as ws.step('gpu-burn').reset()",
                )
            if gpu.get("pods") != [_entry(pod)]:
                gpu["pods"] = [_entry(pod)]
                self._write(gpus)
            return int(gpu["index"])

    def delete(self, namespace: str, name: str) -> bool:
        """Delete the pod; False if there was none of that name."""
        with self._locked():
            gpus = self.read()
            gpu = _gpu_of(gpus, Pod(namespace, name))
            if gpu is None:
                return False
            gpu["pods"] = [entry for entry in gpu["pods"] if not _same(entry, namespace, name)]
            self._write(gpus)
            return True

    def read(self) -> list[dict[str, Any]]:
        """The GPUs as the file has them. Raises LabError when it cannot be read."""
        try:
            gpus = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise self._broken(str(error)) from error
        if not (isinstance(gpus, list) and all(map(_is_gpu, gpus))):
            raise self._broken("it is not a list of GPUs, each with an index and pods that have a name")
        return gpus

    def entries(self, pods: Iterable[Pod]) -> str:
        """The YAML of the GPUs that run `pods`, as the file has it."""
        gpus = self.read()
        found = {int(gpu["index"]): gpu for pod in pods if (gpu := _gpu_of(gpus, pod))}
        return yaml.safe_dump(list(found.values()), sort_keys=False) if found else ""

    def _broken(self, why: str) -> LabError:
        return LabError(
            f"{self.path} cannot be read: {why}",
            step="reading the simulated GPUs",
            todo=f"mend the file, or delete it and run ./run.sh: '{self.path}'",
        )

    def _write(self, gpus: list[dict[str, Any]]) -> None:
        replace_file(self.path, yaml.safe_dump(gpus, sort_keys=False))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _is_gpu(gpu: object) -> bool:
    if not (isinstance(gpu, dict) and isinstance(gpu.get("index"), int)):
        return False
    pods = gpu.get("pods") or []
    return isinstance(pods, list) and all(
        isinstance(pod, dict) and isinstance(pod.get("pod"), str) for pod in pods
    )


def _entry(pod: Pod) -> dict[str, Any]:
    return {"namespace": pod.namespace, "pod": pod.name, "container": pod.container, "load": dict(pod.load)}


def _pod(entry: dict[str, Any]) -> Pod:
    load = entry.get("load") or "idle"
    return Pod(
        _namespace(entry),
        entry["pod"],
        entry.get("container", "main"),
        dict(load) if isinstance(load, dict) else {"kind": load},
    )


def _same(entry: dict[str, Any], namespace: str, name: str) -> bool:
    return bool(_namespace(entry) == namespace and entry["pod"] == name)


def _namespace(entry: dict[str, Any]) -> str:
    return str(entry.get("namespace", "default"))


def _gpu_of(gpus: list[dict[str, Any]], pod: Pod) -> dict[str, Any] | None:
    return next(
        (gpu for gpu in gpus if any(_same(e, pod.namespace, pod.name) for e in gpu.get("pods") or [])), None
    )


def _free_gpu(gpus: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((gpu for gpu in gpus if not gpu.get("pods")), None)
