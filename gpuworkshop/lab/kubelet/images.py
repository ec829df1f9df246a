"""What an image runs as in the lab: a table of names, each with the rule that makes a command line of it.

No image is ever pulled. What is listed runs as a process of this machine, with the learner's own rights; for
any other image a pause stands in, which costs no process.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gpuworkshop.settings import Settings


@dataclass(frozen=True)
class Situation:
    """What a rule knows of a container; paths in `command`, `args` and `env` are this machine's already.

    `pod_resources` is the socket on which the node's kubelet says which container holds which GPU.
    """

    container: Mapping[str, Any]
    command: Sequence[str]
    args: Sequence[str]
    env: Mapping[str, str]
    root: Path
    address: str
    node: str
    gpu_file: Path
    pod_resources: Path
    settings: Settings
    api: str
    rewritten: Callable[[str], str]


@dataclass(frozen=True)
class Launch:
    """A command to run. `reloads`: it reads its configuration again at SIGHUP."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    reloads: bool = False


Rule = Callable[[Situation], Awaitable[Launch | None]]


async def exporter(at: Situation) -> Launch:
    """dcgm-exporter: the kit's exporter, on the node's simulated GPUs, at the pod's own address."""
    listen = _option(at.args, "-a", "--address") or at.env.get("DCGM_EXPORTER_LISTEN") or ":9400"
    interval = _option(at.args, "-c", "--collect-interval") or at.env.get("DCGM_EXPORTER_INTERVAL") or "1000"
    command = [sys.executable, "-P", "-m", "gpuworkshop", "exporter", "--gpus", str(at.gpu_file)]
    command += ["--hostname", at.node, "--listen", f"{at.address}:{listen.rpartition(':')[2]}"]
    counters = _option(at.args, "-f", "--collectors") or at.env.get("DCGM_EXPORTER_COLLECTORS")
    if counters and Path(counters).is_file():  # the image's own files are not here
        command += ["--collectors", counters]
    return Launch([*command, "--interval", interval, "--pod-resources-socket", str(at.pod_resources)])


async def own_exporter(at: Situation) -> Launch:
    """The kit's exporter by its own name: its arguments, on the node's simulated GPUs, in the pod's place."""
    listen = _option(at.args, "--listen", "-a", "--address") or ":9400"
    place = {
        "--gpus": str(at.gpu_file),
        "--hostname": at.node,
        "--listen": f"{at.address}:{listen.rpartition(':')[2]}",
        "--pod-resources-socket": str(at.pod_resources),
        "--service-account": str(at.root / "var/run/secrets/kubernetes.io/serviceaccount"),
    }
    # The last of an option's values counts.
    options = [word for option in place.items() for word in option]
    return Launch([sys.executable, "-P", "-m", "gpuworkshop", "exporter", *at.args, *options])


async def python(at: Situation) -> Launch:
    """python, and gpu-burn's script on it: the Python that runs the lab."""
    program, *rest = [*at.command, *at.args] or ["python3"]
    folder = Path(sys.executable).parent
    if Path(program).name in ("python", "python3"):
        program = sys.executable
    return Launch([program, *rest], {"PATH": f"{folder}:{at.env.get('PATH', '')}"})


async def gpu_burn(at: Situation) -> Launch | None:
    """An image named gpu-burn: as python, when the manifest gives it a command."""
    return await python(at) if at.command or at.args else None


async def shell(at: Situation) -> Launch:
    """busybox and its like: the command, by this machine's own programs."""
    program, *rest = [*at.command, *at.args] or ["sh"]
    return Launch(["sh" if program in ("ash", "/bin/ash") else program, *rest])


async def bash(at: Situation) -> Launch:
    """Distributions, whose shell is bash."""
    return Launch([*at.command, *at.args] or ["bash"])


async def curl(at: Situation) -> Launch:
    """curl's image: its arguments are curl's, unless they begin with another program."""
    if at.command:
        return Launch([*at.command, *at.args])
    first = at.args[0] if at.args else "-"
    given = not first.startswith("-") and shutil.which(first, path=at.env.get("PATH")) is not None
    return Launch(at.args if given else ["curl", *(at.args or ["--help"])])


async def prometheus(at: Situation) -> Launch:
    """Prometheus: the real one, which is fetched when the machine has none."""
    from gpuworkshop.lab.kubelet import prometheus_image

    return await prometheus_image.launch(at)


# The last part of the image's name, without its tag.
RULES: dict[str, Rule] = {
    "dcgm-exporter": exporter,
    "gpuworkshop-exporter": own_exporter,
    "prometheus": prometheus,
    "gpu-burn*": gpu_burn,
    "python": python,
    "curl": curl,
    "busybox": shell,
    "alpine": shell,
    "bash": bash,
    "debian": bash,
    "ubuntu": bash,
}


def rule_for(image: str) -> Rule | None:
    """The rule of an image; None for a pause."""
    name = short_name(image)
    return next((rule for pattern, rule in RULES.items() if fnmatchcase(name, pattern)), None)


def short_name(image: str) -> str:
    """`dcgm-exporter` of `nvcr.io/nvidia/k8s/dcgm-exporter:4.8.4`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _option(args: Sequence[str], *names: str) -> str:
    """The value of a command-line option, given as `--name=value` or as two words; "" if it is not there."""
    for place, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name in names:
            return value if equals else "".join(args[place + 1 : place + 2])
    return ""
