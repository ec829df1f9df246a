"""What a learner asks of a running container: its log, a command in it, its own streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from gpuworkshop.lab.api.objects import name_of
from gpuworkshop.lab.api.problems import ApiError, bad_request
from gpuworkshop.lab.api.runtime import Execution, LogOptions
from gpuworkshop.lab.kubelet import executions, logs
from gpuworkshop.lab.kubelet.containers import ContainerWorker
from gpuworkshop.lab.kubelet.pods import PodWorker
from gpuworkshop.lab.kubelet.setting import set_up
from gpuworkshop.lab.kubelet.volumes import Missing


def container_of(pod: PodWorker, name: str) -> ContainerWorker:
    """The container of that name."""
    for worker in pod.containers:
        if worker.name == name:
            return worker
    raise bad_request(f"container {name} is not valid for pod {name_of(pod.pod)}")


async def log(pod: PodWorker, options: LogOptions) -> AsyncIterator[bytes]:
    """The container's log in pieces."""
    worker = container_of(pod, options.container)
    life = _life(pod, worker, previous=options.previous)
    stdio = worker.stdio if life == worker.record.restarts else None
    running = worker.record.running
    if stdio is not None and running:
        pieces = stdio.log.read(options)
    else:
        pieces = logs.cut(logs.read(pod.folder.log(worker.name, life), options), options)
    async for piece in pieces:
        yield piece
    if stdio is None and running and options.follow and not options.previous:
        await worker.stopped()


def _life(pod: PodWorker, worker: ContainerWorker, *, previous: bool) -> int:
    """The number of the life whose log is asked for."""
    waits = worker.record.state.get("waiting")
    lived = bool(worker.record.last)
    if previous and not lived:
        raise bad_request(
            f'previous terminated container "{worker.name}" in pod "{name_of(pod.pod)}" not found'
        )
    if waits and not lived:
        raise bad_request(
            f'container "{worker.name}" in pod "{name_of(pod.pod)}" is waiting to start: {waits["reason"]}'
        )
    return worker.record.restarts - 1 if previous and not waits else worker.record.restarts


async def execute(
    pod: PodWorker, container: str, command: Sequence[str], *, stdin: bool, tty: bool
) -> Execution:
    """Run a command in a container that runs."""
    worker = _running(pod, container)
    setting = worker.setting
    if setting is None or not setting.folder.exists():  # a pause costs no folder until now
        try:
            pod.make_folder()
            setting = worker.setting = set_up(pod, worker.spec, on_disk=True)
        except (Missing, OSError) as error:
            raise ApiError(500, "InternalError", f"the container's folder cannot be made: {error}") from error
    order = worker.order(command, setting)
    try:
        return await executions.execute(pod.host.lab.spawner, order, stdin=stdin, tty=tty)
    except OSError as error:  # such as too many processes
        raise ApiError(500, "InternalError", f"the command cannot be started: {error}") from error


def attach(pod: PodWorker, container: str, *, stdin: bool, tty: bool) -> Execution:
    """The streams of the container's own process; those of a pause are silent until it ends."""
    worker = _running(pod, container)
    if worker.life is None or worker.stdio is None:
        return executions.Silence(worker.stopped)
    return executions.Attachment(worker.stdio, worker.life, stdin=stdin, tty=tty)


def _running(pod: PodWorker, container: str) -> ContainerWorker:
    worker = container_of(pod, container)
    if not worker.record.running:
        raise ApiError(404, "NotFound", f'container not found ("{container}")')
    return worker
