"""One container of a pod: started, watched, started anew, ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpuworkshop.errors import WorkshopError
from gpuworkshop.lab.kubelet import hooks, images, logs, probes
from gpuworkshop.lab.kubelet.container_process import ContainerProcess
from gpuworkshop.lab.kubelet.container_reports import ContainerReports
from gpuworkshop.lab.kubelet.executions import captured, not_found, program_of
from gpuworkshop.lab.kubelet.handlers import Failure
from gpuworkshop.lab.kubelet.host import Owner
from gpuworkshop.lab.kubelet.records import Record
from gpuworkshop.lab.kubelet.setting import Setting, set_up
from gpuworkshop.lab.kubelet.spawn import Order
from gpuworkshop.lab.kubelet.stdio import Stdio
from gpuworkshop.lab.kubelet.volumes import Missing

CANNOT_START = 128
RETRY_S = 10.0  # what this machine lacks may be there then
PAUSED = "is not run by the lab: a pause stands in for it, and its probes pass"
LOCAL = "is not pulled: its command runs as a process of this machine"


class ContainerWorker:
    """Runs one container; `previous` is its status from before this process was started, if it has one."""

    def __init__(self, owner: Owner, spec: Mapping[str, Any], previous: Mapping[str, Any] | None) -> None:
        self.spec = spec
        self.record = Record(spec, previous)
        self.setting: Setting | None = None
        self.life: asyncio.Task[int] | None = None
        self.begun = asyncio.Event()  # it has started up, or is to end
        self._owner = owner
        self._reports = ContainerReports(owner, self.name, spec["image"], self.record)
        self._process: ContainerProcess | None = None
        self._stopping = asyncio.Event()
        self._failures = 0
        self._since = owner.host.lab.registry.now()

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec["name"])

    @property
    def id(self) -> str:
        """The id of its life of now."""
        return self.record.id.rpartition("/")[2]

    @property
    def address(self) -> str:
        """The pod's address."""
        return self._owner.address

    @property
    def stdio(self) -> Stdio | None:
        """The streams of the process that runs now, if one does."""
        return self._process.stdio if self._process else None

    async def run(self, policy: str) -> None:
        """Live, again and again as the restart policy has it, until it ends for good or is stopped."""
        code = self.record.exit_code
        if code is not None and not _again(policy, code):
            return
        while not self._stopping.is_set():
            self.life = asyncio.ensure_future(self._live())
            code = await self.life
            if self._stopping.is_set() or not _again(policy, code):
                return
            await self._back_off()

    def stop(self, grace_s: float) -> None:
        """End it: SIGTERM now, SIGKILL after `grace_s` seconds; again with less, to make it quick."""
        if not self._stopping.is_set() and self._process is not None:
            self._reports.event("Normal", "Killing", f"Stopping container {self.name}")
        self._stopping.set()
        self.begun.set()
        self._end_process(grace_s)

    async def stopped(self) -> None:
        """Until it is told to end."""
        await self._stopping.wait()

    def _end_process(self, grace_s: float) -> None:
        if self._process is not None:
            has_hook = hooks.handler(self.spec, "preStop") and not self._owner.host.lab.closing
            self._process.end(grace_s, self._pre_stop if has_hook else None)

    async def _pre_stop(self) -> None:
        try:
            await hooks.run(self, "preStop")
        except Failure as error:
            self._reports.event("Warning", "FailedPreStopHook", f"PreStopHook failed: {error}")

    async def _live(self) -> int:
        """One life; returns the exit code."""
        launch = None
        while not self._stopping.is_set():
            try:
                launch = await self._prepare()
                break
            except (Missing, OSError) as error:
                config = isinstance(error, Missing)
                reason = "CreateContainerConfigError" if config else "CreateContainerError"
                self._reports.cannot_start(reason, str(error), f"Error: {error}")
            except WorkshopError as error:  # the tool that the image stands for cannot be had
                why = f'Failed to pull image "{self.spec["image"]}": {error.seen}'
                self._reports.cannot_start("ErrImagePull", error.seen, why)
            await self._owner.woken(RETRY_S)
        if self._stopping.is_set() or self.setting is None:
            return 0
        return await (self._run(launch, self.setting) if launch else self._pause())

    async def _prepare(self) -> images.Launch | None:
        """What it runs as; None for a pause. Raises Missing, OSError and WorkshopError."""
        rule = images.rule_for(self.spec["image"])
        self.setting = set_up(self._owner, self.spec, on_disk=rule is not None)
        if rule is None:
            return None
        self._owner.changed()  # a rule may take its time
        return await rule(self.setting.situation)

    async def _pause(self) -> int:
        if not self.record.running:  # else it has gone on while the lab was away
            self._begin(PAUSED)
        self.probed(started=True, ready=True)
        if self._ends_by_itself():
            return self._reports.end(0, "Completed")
        await self._stopping.wait()
        await self._owner.host.lab.spawner.end(self.id)
        return self._reports.end(0, "Completed")

    def _ends_by_itself(self) -> bool:
        """Whether others wait for its end, as for that of an init container; a sidecar is none."""
        inits = self._owner.pod["spec"].get("initContainers") or []
        return any(each["name"] == self.name and each.get("restartPolicy") != "Always" for each in inits)

    async def _run(self, launch: images.Launch, setting: Setting) -> int:
        setting = self.setting = replace(setting, launch=launch)
        program = program_of(launch.command[0], setting.command_env(), setting.folder)
        self._begin(LOCAL)
        if program is None:
            missing = not_found(launch.command[0])
            return self._not_started(
                f"failed to create containerd task: OCI runtime create failed: {missing}"
            )
        try:
            order = setting.order([program, *launch.command[1:]], self.id)
            process = self._process = self._new_process()
            await process.start(order, stdin=bool(self.spec.get("stdin")), tty=bool(self.spec.get("tty")))
        except OSError as error:  # such as a full disk, or too many processes
            self._process = None
            return self._not_started(str(error))
        return await self._watch(process)

    def _not_started(self, why: str) -> int:
        self._reports.event("Warning", "Failed", f"Error: {why}")
        return self._reports.end(CANNOT_START, "StartError", why)

    def _new_process(self) -> ContainerProcess:
        life, folder = self.record.restarts, self._owner.folder
        logs.forget(folder.log(self.name, life - 2))
        return ContainerProcess(self._owner.host.lab.spawner, self.id, folder.log(self.name, life))

    async def _watch(self, process: ContainerProcess) -> int:
        """Follow a process to its end, and leave nothing of it behind."""
        tending = asyncio.create_task(self._tend())
        if self._stopping.is_set():  # it was told so while it was being started
            process.end(0)
        try:
            code = await process.wait()
        finally:
            tending.cancel()
            self._process = None
        await asyncio.gather(tending, return_exceptions=True)
        return self._reports.end(code, "Completed" if code == 0 else "Error")

    async def _tend(self) -> None:
        """What is done for a process while it runs: its hook, then its probes."""
        try:
            await hooks.run(self, "postStart")
        except Failure as error:
            self._reports.event("Warning", "FailedPostStartHook", f"PostStartHook failed: {error}")
            self._reports.event("Normal", "Killing", "FailedPostStartHook")
            self._end_process(self._grace_s)
        else:
            await probes.watch(self)

    async def _back_off(self) -> None:
        """Wait before it is started again, longer each time, unless it has lived long."""
        lab = self._owner.host.lab
        lived = lab.registry.now() - self._since
        self._failures = 1 if lived > lab.back_off.forgiven_after else self._failures + 1
        delay = lab.back_off.delay(self._failures)
        if not delay:
            return
        self._reports.back_off(delay)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._stopping.wait()

    async def run_command(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container: its exit code and what it printed."""
        if self.setting is None:
            return 0, ""
        return await captured(self._owner.host.lab.spawner, self.order(command, self.setting))

    def order(self, command: Sequence[str], setting: Setting) -> Order:
        """A command in the container, as the container's words have it."""
        return setting.order(self._owner.folder.rewritten(self.spec, command), self.id, lingers=True)

    def probed(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """A probe has found out something new."""
        self._reports.probed(started, ready)
        if self.record.started:
            self.begun.set()

    def unhealthy(self, message: str) -> None:
        """A probe has failed."""
        self._reports.event("Warning", "Unhealthy", message)

    def fail(self, message: str) -> None:
        """Startup or liveness have failed too often: it is to be started anew."""
        self._reports.event("Normal", "Killing", f"Container {self.name} {message}, will be restarted")
        self._end_process(self._grace_s)

    @property
    def _grace_s(self) -> float:
        return float(self._owner.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def reload(self) -> None:
        """Have it read its configuration again."""
        if self._process is not None:
            self._process.signal(signal.SIGHUP)

    def _begin(self, about: str) -> None:
        self._reports.begin(about)
        self._since = self._owner.host.lab.registry.now()


def _again(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)
