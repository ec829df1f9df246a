"""One container of a pod: started, watched, started anew, ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpuworkshop.errors import WorkshopError
from gpuworkshop.lab.api.objects import name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet import guard, images, logs, probes
from gpuworkshop.lab.kubelet.executions import captured, not_found, program_of
from gpuworkshop.lab.kubelet.host import Owner
from gpuworkshop.lab.kubelet.records import Record
from gpuworkshop.lab.kubelet.setting import Setting, set_up
from gpuworkshop.lab.kubelet.spawn import CONTAINER_MARK, Child
from gpuworkshop.lab.kubelet.stdio import Stdio
from gpuworkshop.lab.kubelet.volumes import Missing

NO_SUCH_PROGRAM = 128
RETRY_S = 10.0  # what this machine lacks may be there then
PAUSED = "is not run by the lab: a pause stands in for it, and its probes pass"
LOCAL = "is not pulled: its command runs as a process of this machine"


class ContainerWorker:
    """Runs one container; `previous` is its status from before this process was started, if it has one."""

    def __init__(self, owner: Owner, spec: Mapping[str, Any], previous: Mapping[str, Any] | None) -> None:
        self.spec = spec
        self.record = Record(spec, previous)
        self.setting: Setting | None = None
        self.stdio: Stdio | None = None
        self.life: asyncio.Task[int] | None = None
        self.begun = asyncio.Event()  # it has started up, or is to end
        self._owner = owner
        self._process: Child | None = None
        self._stopping = asyncio.Event()
        self._kill: asyncio.TimerHandle | None = None
        self._failures = 0
        self._since = owner.host.lab.registry.now()

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec["name"])

    @property
    def address(self) -> str:
        """The pod's address."""
        return self._owner.address

    @property
    def mark(self) -> dict[str, str]:
        """The variable by which the processes of this life are known."""
        return {CONTAINER_MARK: self.record.id.rpartition("/")[2]}

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
            self._event("Normal", "Killing", f"Stopping container {self.name}")
        self._stopping.set()
        self.begun.set()
        self._end_process(grace_s)

    async def stopped(self) -> None:
        """Until it is told to end."""
        await self._stopping.wait()

    def _end_process(self, grace_s: float) -> None:
        if self._process is None:
            return
        if self._kill is not None:
            self._kill.cancel()
        elif grace_s > 0:
            self._process.signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        self._kill = loop.call_later(grace_s, self._process.kill)

    async def _live(self) -> int:
        """One life; returns the exit code."""
        launch = None
        rule = images.rule_for(self.spec["image"])
        while not self._stopping.is_set():
            try:
                self.setting = set_up(self._owner, self.spec, on_disk=rule is not None)
                if rule is not None:
                    self._owner.changed()  # a rule may take its time
                    launch = await rule(self.setting.situation)
                break
            except (Missing, OSError) as error:
                config = isinstance(error, Missing)
                self._wait("CreateContainerConfigError" if config else "CreateContainerError", str(error))
                self._event("Warning", "Failed", f"Error: {error}")
                await self._owner.woken(None if config else RETRY_S)
            except WorkshopError as error:  # the tool that the image stands for cannot be had
                self._wait("ErrImagePull", error.seen)
                self._event("Warning", "Failed", f'Failed to pull image "{self.spec["image"]}": {error.seen}')
                await self._owner.woken(RETRY_S)
        if self._stopping.is_set() or self.setting is None:
            return 0
        return await (self._run(launch, self.setting) if launch else self._pause())

    async def _pause(self) -> int:
        if not self.record.running:  # else it has gone on while the lab was away
            self._begin(PAUSED)
        self.probed(started=True, ready=True)
        if self._ends_by_itself():
            return self._ended(0, "Completed")
        await self._stopping.wait()
        if self._owner.folder.path.exists():  # somebody has run commands in it
            self._kill_rest()
        return self._ended(0, "Completed")

    def _ends_by_itself(self) -> bool:
        """Whether others wait for its end, as for that of an init container; a sidecar is none."""
        inits = self._owner.pod["spec"].get("initContainers") or []
        waited_for = {each["name"] for each in inits if each.get("restartPolicy") != "Always"}
        return self.name in waited_for

    async def _run(self, launch: images.Launch, setting: Setting) -> int:
        setting = self.setting = replace(setting, launch=launch)
        env = setting.command_env()
        program = program_of(launch.command[0], env, setting.folder)
        self._begin(LOCAL)
        self.stdio = None
        if program is None:
            why = (
                f"failed to create containerd task: OCI runtime create failed: {not_found(launch.command[0])}"
            )
            self._event("Warning", "Failed", f"Error: {why}")
            return self._ended(NO_SUCH_PROGRAM, "StartError", why)
        try:
            self._process, self.stdio = await self._start([program, *launch.command[1:]], env, setting)
        except OSError as error:  # such as a full disk, or too many processes
            self._event("Warning", "Failed", f"Error: {error}")
            return self._ended(NO_SUCH_PROGRAM, "StartError", str(error))
        return await self._watch(self._process, self.stdio)

    async def _start(
        self, command: Sequence[str], env: Mapping[str, str], setting: Setting
    ) -> tuple[Child, Stdio]:
        life, folder, wants = self.record.restarts, self._owner.folder, self.spec
        logs.forget(folder.log(self.name, life - 2))
        self.stdio = stdio = Stdio(logs.ContainerLog(folder.log(self.name, life)))
        stdin, tty = bool(wants.get("stdin")), bool(wants.get("tty"))
        spawner = self._owner.host.lab.spawner
        try:
            return await stdio.start(
                spawner, command, {**env, **self.mark}, setting.folder, stdin=stdin, tty=tty
            ), stdio
        except OSError:
            await stdio.finish()
            raise

    async def _watch(self, process: Child, stdio: Stdio) -> int:
        """Follow a process to its end, and leave nothing of it behind."""
        probing = asyncio.create_task(probes.watch(self))
        if self._stopping.is_set():  # it was told so while it was being started
            self._end_process(0)
        try:
            code = await process.wait()
        finally:
            probing.cancel()
            process.kill()
            self._kill_rest()
            self._process = None
            if self._kill is not None:
                self._kill.cancel()
                self._kill = None
        await asyncio.gather(probing, return_exceptions=True)
        await stdio.finish()
        return self._ended(code, "Completed" if code == 0 else "Error")

    def _kill_rest(self) -> None:
        """End whatever was started in the container and still runs."""
        for name, value in self.mark.items():
            guard.kill_marked(f"{name}={value}")

    async def _back_off(self) -> None:
        """Wait before it is started again, longer each time, unless it has lived long."""
        lab, pod = self._owner.host.lab, self._owner.pod
        lived = lab.registry.now() - self._since
        self._failures = 1 if lived > lab.back_off.forgiven_after else self._failures + 1
        delay = lab.back_off.delay(self._failures)
        if not delay:
            return
        about = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        self._wait(
            "CrashLoopBackOff", f"back-off {delay:g}s restarting failed container={self.name} pod={about}"
        )
        self._event("Warning", "BackOff", f"Back-off restarting failed container {self.name} in pod {about}")
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._stopping.wait()

    async def probe_command(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container: its exit code and what it printed."""
        if self.setting is None:
            return 0, ""
        words = self._owner.folder.rewritten(self.spec, command)
        env = {**self.setting.command_env(), **self.mark}
        return await captured(self._owner.host.lab.spawner, words, env, self.setting.folder)

    def probed(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """A probe has found out something new."""
        record = self.record
        before = record.started, record.ready
        record.started = record.started if started is None else started
        record.ready = record.ready if ready is None else ready
        if record.started:
            self.begun.set()
        if (record.started, record.ready) != before:
            self._owner.changed()

    def unhealthy(self, message: str) -> None:
        """A probe has failed."""
        self._event("Warning", "Unhealthy", message)

    def fail(self, message: str) -> None:
        """Startup or liveness have failed too often: it is to be started anew."""
        self._event("Normal", "Killing", f"Container {self.name} {message}, will be restarted")
        self._end_process(float(self._owner.pod["spec"].get("terminationGracePeriodSeconds", 30)))

    def reload(self) -> None:
        """Have it read its configuration again."""
        if self._process is not None:
            self._process.signal(signal.SIGHUP)

    def _begin(self, about: str) -> None:
        self.record.begin(self._owner.host.lab.time())
        self._since = self._owner.host.lab.registry.now()
        image = self.spec["image"]
        if not self.record.restarts:
            self._event("Normal", "Simulated", f'Image "{image}" {about}')
        self._event("Normal", "Pulled", f'Container image "{image}" already present on machine')
        self._event("Normal", "Created", f"Created container: {self.name}")
        self._event("Normal", "Started", f"Started container {self.name}")
        self._owner.changed()

    def _ended(self, code: int, reason: str, message: str = "") -> int:
        self.record.end(code, reason, message, self._owner.host.lab.time())
        self._owner.changed()
        return code

    def _wait(self, reason: str, message: str) -> None:
        self.record.wait(reason, message)
        self._owner.changed()

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._owner.host.event(self._owner.pod, kind, reason, message)


def _again(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)
