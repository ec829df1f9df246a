"""The exporter's options about pods, and what the command builds from them.

    backend ─▶ WithShares (--per-process) ─▶ WithPods, if the kubelet is asked
    mapping: the backend's own pods, or the kubelet's ─▶ NamedPods, if the API server is asked

Where dcgm-exporter has an option of the kind, its name and its environment variable are taken too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

import click

from gpuworkshop.exporter import api_server
from gpuworkshop.exporter.cgroups import Processes
from gpuworkshop.exporter.device_ids import MigLookup
from gpuworkshop.exporter.devices import Backend, Device, Family, Pod, PodMapping, Reading
from gpuworkshop.exporter.holders import Rules
from gpuworkshop.exporter.pod_directory import PodDirectory
from gpuworkshop.exporter.pod_watch import PodWatch
from gpuworkshop.exporter.pods import PodResources
from gpuworkshop.exporter.shares import Label, Owners, Source, WithShares

log = logging.getLogger(__name__)


class GpuSource(Source, PodMapping, Protocol):
    """A backend that knows processes, and may know pods."""


class _Told(Protocol):
    def families(self) -> Sequence[Family]:
        """What it has to say of itself."""


@dataclass(frozen=True)
class WithFamilies:
    """A backend, and what else tells how it goes."""

    backend: Backend
    others: Sequence[_Told]

    def read(self, at: float) -> Sequence[Reading]:
        """The backend's readings."""
        return self.backend.read(at)

    def families(self) -> Sequence[Family]:
        """The backend's families, then the others'."""
        return [family for each in (self.backend, *self.others) for family in each.families()]


@dataclass(frozen=True)
class NamedPods:
    """A mapping with what the API server knows of the pods; those that have ended hold nothing."""

    mapping: PodMapping
    directory: PodDirectory

    def pods(self, device: Device) -> Sequence[Pod]:
        """Who holds the device."""
        return [shown for pod in self.mapping.pods(device) if (shown := self.directory.shown(pod))]


@dataclass(frozen=True)
class PodOptions:
    """What the command line says about pods."""

    pod_resources_socket: Path | None
    kubernetes_virtual_gpus: bool
    nvidia_resource_names: tuple[str, ...]
    pod_labels: tuple[str, ...]
    pod_uid: bool
    kubeconfig: Path | None
    service_account: Path
    per_process: bool
    attribution_only: bool
    proc_root: Path

    @property
    def shares(self) -> bool:
        """Whether each pod's share of a GPU is wanted."""
        return self.per_process or self.attribution_only

    def refuse_history(self) -> None:
        """Refuse what only the present can tell. Raises UsageError."""
        if self.pod_resources_socket:
            raise click.UsageError("--pod-resources-socket tells the present only: it has no --backfill")
        if self.shares or self.pod_labels or self.pod_uid:
            raise click.UsageError(
                "labels, UIDs and shares of pods are of the present: they have no --backfill"
            )

    def attach(
        self, stack: ExitStack, source: GpuSource, migs: MigLookup, node: str, label: Label
    ) -> tuple[Backend, PodMapping]:
        """The backend and the mapping to sample, with all that was asked for, started and ended by `stack`.

        Raises ExporterError if it cannot be begun; what goes wrong later is told by metrics.
        """
        backend: Backend = source
        mapping: PodMapping = source
        others: list[_Told] = []
        directory = PodDirectory(self.pod_labels, show_uid=self.pod_uid)
        if self.pod_resources_socket:
            names = tuple(name for each in self.nvidia_resource_names for name in each.split(",") if name)
            rules = Rules(names, self.kubernetes_virtual_gpus, migs)
            kubelet = stack.enter_context(PodResources(self.pod_resources_socket, rules))
            mapping = kubelet
            others.append(kubelet)
        if watch := self._watch(node, directory):
            others.append(stack.enter_context(watch))
            mapping = NamedPods(mapping, directory)
        if self.shares:
            groups = Processes(self.proc_root)
            groups.warn_if_apart()
            backend = WithShares(source, Owners(groups, directory), directory, label)
        return WithFamilies(backend, others) if others else backend, mapping

    def _watch(self, node: str, directory: PodDirectory) -> PodWatch | None:
        if not (self.pod_labels or self.pod_uid or self.shares):
            return None
        server = api_server.find(self.kubeconfig, self.service_account)
        if server is None:
            log.warning(
                "no API server is known, so no process's pod, and no pod's labels or UID: run this in a pod "
                "with a service account, or give --kubeconfig"
            )
            return None
        return PodWatch(server, node, directory)


_Command = Callable[..., Any]
_PATH = click.Path(path_type=Path)

_OPTIONS = (
    click.option(
        "--pod-resources-socket",
        "--pod-resources-kubelet-socket",
        type=_PATH,
        metavar="PATH",
        help="The kubelet's pod-resources socket, which then says which pods hold the GPUs.",
    ),
    click.option(
        "--kubernetes-virtual-gpus",
        is_flag=True,
        envvar="KUBERNETES_VIRTUAL_GPUS",
        show_envvar=True,
        help="A row for each slot of a shared GPU that a pod holds, with the label vgpu.",
    ),
    click.option(
        "--nvidia-resource-names",
        multiple=True,
        envvar="NVIDIA_RESOURCE_NAMES",
        show_envvar=True,
        metavar="NAME",
        help="A further resource whose devices are GPUs, such as nvidia.com/a100.",
    ),
    click.option(
        "--pod-labels",
        multiple=True,
        metavar="NAME",
        help="A label of pods to show; * stands for any text. May be given several times.",
    ),
    click.option(
        "--pod-uid",
        "--kubernetes-enable-pod-uid",
        is_flag=True,
        envvar="DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
        show_envvar=True,
        help="Show the pods' UIDs, as label pod_uid.",
    ),
    click.option(
        "--per-process",
        is_flag=True,
        help="Also each pod's share of its GPU, from what each process uses.",
    ),
    click.option("--attribution-only", is_flag=True, help="Only those shares, to run beside dcgm-exporter."),
    click.option(
        "--proc-root",
        type=_PATH,
        default="/proc",
        show_default=True,
        metavar="DIR",
        help="The machine's /proc, in which the processes' pods are found.",
    ),
    click.option(
        "--kubeconfig",
        type=_PATH,
        metavar="PATH",
        help="How to reach the API server; default this pod's service account, else $KUBECONFIG.",
    ),
    click.option(
        "--service-account",
        type=_PATH,
        default=api_server.ACCOUNT,
        show_default=True,
        metavar="DIR",
        help="Where this pod's service account is mounted.",
    ),
)


def pod_options(command: _Command) -> _Command:
    """Give a command these options, as one argument `pods`, a PodOptions."""

    @wraps(command)
    def collected(**given: Any) -> Any:
        chosen = {each.name: given.pop(each.name) for each in fields(PodOptions)}
        return command(**given, pods=PodOptions(**chosen))

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return collected
