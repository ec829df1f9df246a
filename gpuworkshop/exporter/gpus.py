"""The GPU file: a YAML list that says which GPUs there are, who holds them, and what they do.

    - index: 0
      model: H200
      pods:
      - {namespace: default, pod: gpu-burn-x, container: main, load: {kind: wave, on: 20, off: 20}}

Everything is checked here, so that whatever reads a `GpuSpec` can rely on it. A mistake raises
GpuFileError with the line of the GPU's entry, what was found, and what to write instead.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from gpuworkshop.errors import GpuFileError
from gpuworkshop.exporter import models
from gpuworkshop.exporter.devices import Pod
from gpuworkshop.exporter.entries import STEP, Entry, instead, kind, wrong
from gpuworkshop.exporter.loads import DEVICE_KINDS, IDLE, LONGEST_S, POD_KINDS, SHORTEST_S, Load
from gpuworkshop.exporter.models import Model

# The namespace in which a GPU without a UUID gets one from its node and index: always the same.
_UUIDS = uuid.UUID("6f1c9a52-3a53-5c39-9d0f-7f6c1d5a7a10")
_PROFILE = re.compile(r"([1-7])g\.(\d+)gb(?:\+me)?")


@dataclass(frozen=True)
class PodSpec:
    """A pod on a GPU and what it does there."""

    pod: Pod
    load: Load


@dataclass(frozen=True)
class InstanceSpec:
    """A MIG instance: `slices` of the GPU's compute and `memory_share` of its memory."""

    profile: str
    id: int
    slices: int
    memory_share: float
    pods: tuple[PodSpec, ...]


@dataclass(frozen=True)
class GpuSpec:
    """One GPU: its own `load` when no pod holds it, else the pods', or its MIG instances'."""

    index: int
    uuid: str
    model: Model
    load: Load
    pods: tuple[PodSpec, ...]
    instances: tuple[InstanceSpec, ...]


class GpuFile:
    """A GPU file on disk, and whether it has changed since it was last read."""

    def __init__(self, path: Path, hostname: str) -> None:
        self._path = path
        self._hostname = hostname
        self._seen: tuple[int, ...] | None = None

    def changed(self) -> bool:
        """Whether the file is another one, or gone, since `read`."""
        return self._signature() != self._seen

    def read(self) -> list[GpuSpec]:
        """The GPUs in the file's order. Raises GpuFileError."""
        # Taken before reading: a change in between is then seen the next time.
        self._seen = self._signature()
        try:
            text = self._path.read_bytes().decode("utf-8")
            return parse(text, self._hostname)
        except OSError as error:
            raise wrong(
                f"{self._path}: {error.strerror}", "give the path of a GPU file that can be read"
            ) from error
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise wrong(
                f"{self._path} is not UTF-8 text: byte {error.start} is 0x{byte:02x}", "save it as UTF-8"
            ) from error
        except GpuFileError as error:
            raise GpuFileError(f"{self._path}: {error.seen}", step=STEP, todo=error.todo) from error

    def _signature(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def parse(text: str, hostname: str) -> list[GpuSpec]:
    """The GPUs that a GPU file's text describes. Raises GpuFileError."""
    try:
        found, node = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML lets a ValueError through for a date that is none.
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise wrong(
            f"{line}not YAML: {getattr(error, 'problem', None) or error}", "mend the YAML there"
        ) from error
    if not isinstance(found, list) or not found or not isinstance(node, yaml.SequenceNode):
        raise wrong(f"it holds {kind(found)}, not a list of GPUs", "start each GPU with a dash: `- index: 0`")
    entries = [
        Entry(f"line {item.start_mark.line + 1}", entry)
        for item, entry in zip(node.value, found, strict=True)
    ]
    gpus = [_gpu(entry, hostname) for entry in entries]
    _each_its_own("index", [gpu.index for gpu in gpus], entries)
    _each_its_own("uuid", [gpu.uuid for gpu in gpus], entries)
    return gpus


def _each_its_own(name: str, values: Sequence[object], entries: Sequence[Entry]) -> None:
    for value, entry in zip(values, entries, strict=True):
        if values.count(value) > 1:
            raise entry.bad(f"{name} {value} is given to two GPUs", f"give each GPU its own {name}")


def _gpu(entry: Entry, hostname: str) -> GpuSpec:
    entry.only("index", "uuid", "model", "load", "mig", "pods")
    index, model = entry.whole("index"), _model(entry)
    load, pods, instances = _load(entry, DEVICE_KINDS), _pods(entry), _instances(entry, model)
    if instances and (pods or load != IDLE):
        raise entry.bad("a GPU with MIG instances has pods or a load of its own", "name the pods under `mig`")
    if pods and load != IDLE:
        raise entry.bad(
            "both a load and pods", "give the load to a pod: the device's is for a GPU that no pod holds"
        )
    derived = f"GPU-{uuid.uuid5(_UUIDS, f'{hostname}/{index}')}"
    return GpuSpec(index, entry.text("uuid", derived), model, load, pods, instances)


def _model(entry: Entry) -> Model:
    name = entry.text("model", "H200")
    if model := models.find(name):
        return model
    raise entry.bad(f"model {name!r} is unknown", instead(name, list(models.models())))


def _load(entry: Entry, kinds: Sequence[str]) -> Load:
    if "load" not in entry:
        return IDLE
    load = entry.entry("load", "kind")
    load.only("kind", "on", "off")
    name = load.text("kind")
    if name not in kinds:
        raise load.bad(f"{name!r} is no load here", instead(name, kinds))
    if name != "wave":
        if "on" in load or "off" in load:
            raise load.bad(
                f"on and off belong to a wave, not to {name}", "leave them out, or write kind: wave"
            )
        return Load(name)
    on_s, off_s = (
        load.number(key, default, SHORTEST_S, LONGEST_S)
        for key, default in (("on", IDLE.on_s), ("off", IDLE.off_s))
    )
    return Load(name, on_s, off_s)


def _pods(entry: Entry) -> tuple[PodSpec, ...]:
    pods = tuple(_pod(each) for each in entry.entries("pods"))
    names = [spec.pod for spec in pods]
    for pod in names:
        if names.count(pod) > 1:
            raise entry.bad(
                f"pod {pod.namespace}/{pod.pod} with container {pod.container} is there twice",
                "name each container of a pod once",
            )
    return pods


def _pod(entry: Entry) -> PodSpec:
    entry.only("namespace", "pod", "container", "load")
    pod = Pod(entry.text("namespace", "default"), entry.text("pod"), entry.text("container", "main"))
    return PodSpec(pod, _load(entry, POD_KINDS))


def _instances(entry: Entry, model: Model) -> tuple[InstanceSpec, ...]:
    instances = tuple(_instance(each, model) for each in entry.entries("mig"))
    if instances and not model.mig_slices:
        raise entry.bad(f"a {model.key} has no MIG", "leave `mig` out, or take an A100, H100 or H200")
    if len({instance.id for instance in instances}) < len(instances):
        raise entry.bad("two MIG instances have the same id", "give each instance its own id")
    if sum(instance.slices for instance in instances) > model.mig_slices:
        raise entry.bad(
            f"the MIG instances need over {model.mig_slices} slices", "take fewer or smaller ones"
        )
    if sum(instance.memory_share for instance in instances) > 1:
        raise entry.bad("the MIG instances need more memory than there is", "take fewer or smaller ones")
    return instances


def _instance(entry: Entry, model: Model) -> InstanceSpec:
    entry.only("profile", "id", "pods")
    profile = entry.text("profile")
    match = _PROFILE.fullmatch(profile)
    if not match:
        raise entry.bad(f"{profile!r} is no MIG profile", "write it like 1g.18gb")
    # A profile's memory is named in whole gigabytes and handed out in eighths of the GPU's.
    eighths = max(1, round(int(match[2]) * 1024 / model.memory_mib * 8))
    return InstanceSpec(profile, entry.whole("id"), int(match[1]), eighths / 8, _pods(entry))
