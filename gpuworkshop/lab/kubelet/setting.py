"""What a container finds when it starts: its environment, its root with the mounts, programs of its own."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuworkshop.lab.api.objects import Object, namespace_of, uid_of
from gpuworkshop.lab.kubelet import nvidia_smi
from gpuworkshop.lab.kubelet.devices import gpu_of
from gpuworkshop.lab.kubelet.environment import environment, expand
from gpuworkshop.lab.kubelet.host import Owner
from gpuworkshop.lab.kubelet.images import Launch, Situation
from gpuworkshop.lab.kubelet.names import curl_config
from gpuworkshop.lab.kubelet.paths import inside
from gpuworkshop.lab.kubelet.spawn import Order


@dataclass(frozen=True)
class Setting:
    """`env` are the container's variables, `folder` is where its commands run."""

    situation: Situation
    env: Mapping[str, str]
    folder: Path
    programs: Path
    launch: Launch | None = None

    def command_env(self) -> dict[str, str]:
        """The variables of a command in the container, with its own programs first on the PATH."""
        env = {**self.env, **(self.launch.env if self.launch else {})}
        return {**env, "PATH": f"{self.programs}:{env.get('PATH', '')}"}

    def order(self, command: Sequence[str], container: str, *, lingers: bool = False) -> Order:
        """A command in the container with that id."""
        return Order(command, self.command_env(), self.folder, container, lingers)


def set_up(owner: Owner, container: Mapping[str, Any], *, on_disk: bool) -> Setting:
    """The container's setting, and with `on_disk` its folder too. Raises Missing."""
    pod, host, folder = owner.pod, owner.host, owner.folder
    root, programs = folder.root(container["name"]), folder.programs(container["name"])
    devices = host.devices.held_by(uid_of(pod), container["name"]) if host.devices else []
    env = environment(_addressed(owner), container, host.lab.sources, _given(owner, root, devices))
    env = dict(zip(env, folder.rewritten(container, list(env.values())), strict=True))
    command, args = (
        folder.rewritten(container, [expand(text, env) for text in container.get(key) or []])
        for key in ("command", "args")
    )
    work = inside(root, container.get("workingDir") or "/")
    if on_disk:
        folder.mount(container)
        _write_programs(programs, host.gpu_file, host.name, devices)
        (root / ".curlrc").write_text(curl_config(host.lab.registry, namespace_of(pod)), encoding="utf-8")
        work.mkdir(parents=True, exist_ok=True)
    situation = Situation(
        container=container,
        command=command,
        args=args,
        env=env,
        root=root,
        address=owner.address,
        node=host.name,
        gpu_file=host.gpu_file,
        pod_resources=host.pod_resources,
        settings=host.lab.settings,
        api="https://{}:{}".format(*host.lab.api),
        rewritten=lambda text: folder.rewritten(container, [text])[0],
    )
    return Setting(situation, env, work, programs)


def _addressed(owner: Owner) -> Object:
    """The pod with its addresses, which its status has only once it was written."""
    here, there = owner.address, owner.host.address
    addresses = {"podIP": here, "podIPs": [{"ip": here}], "hostIP": there, "hostIPs": [{"ip": there}]}
    return {**owner.pod, "status": {**(owner.pod.get("status") or {}), **addresses}}


def _given(owner: Owner, root: Path, devices: list[str]) -> dict[str, str]:
    api, port = owner.host.lab.api
    given = {"KUBERNETES_SERVICE_HOST": api, "KUBERNETES_SERVICE_PORT": str(port)}
    given |= {"KUBERNETES_SERVICE_PORT_HTTPS": str(port), "HOME": str(root)}
    if devices:
        given["NVIDIA_VISIBLE_DEVICES"] = ",".join(dict.fromkeys(map(gpu_of, devices)))
        given["GPUWORKSHOP_SIMULATED_GPU"] = "1"  # gpu-burn's script does not look for a driver then
    return given


def _write_programs(programs: Path, gpu_file: Path, node: str, devices: list[str]) -> None:
    programs.mkdir(parents=True, exist_ok=True)
    script = programs / "nvidia-smi"
    if not devices:
        script.unlink(missing_ok=True)
        return
    uuids = ",".join(dict.fromkeys(map(gpu_of, devices)))
    command = [sys.executable, "-I", nvidia_smi.__file__, str(gpu_file), node, uuids]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
