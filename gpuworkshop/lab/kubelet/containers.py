"""One container of a pod: started, watched, started anew, ended; and its status at any time."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from gpuworkshop.errors import WorkshopError
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet import guard, images, logs, probes
from gpuworkshop.lab.kubelet.executions import execute, not_found, program_of
from gpuworkshop.lab.kubelet.filesystem import PodFolder
from gpuworkshop.lab.kubelet.host import Host
from gpuworkshop.lab.kubelet.setting import Setting, set_up
from gpuworkshop.lab.kubelet.spawn import CONTAINER_MARK, exit_code, signal_group
from gpuworkshop.lab.kubelet.statuses import image_id
from gpuworkshop.lab.kubelet.stdio import Stdio
from gpuworkshop.lab.kubelet.volumes import Missing

NO_SUCH_PROGRAM = 128
State = dict[str, dict[str, Any]]


class Owner(Protocol):
    """The pod of a container, as the container sees it."""

    pod: Object
    host: Host
    folder: PodFolder
    address: str

    def changed(self) -> None:
        """The container's status is another one."""

    async def woken(self, within_s: float | None = None) -> None:
        """Until something changes that a waiting container waits for, or the time is over."""


class ContainerWorker:
    """`previous` is its status from before this process was started, if it has one."""

    def __init__(self, owner: Owner, spec: Mapping[str, Any], previous: Mapping[str, Any] | None) -> None:
        self.spec = spec
        self.ready = self.started = False
        self.setting: Setting | None = None
        self.stdio: Stdio | None = None
        self.life: asyncio.Task[int] | None = None
        self._owner = owner
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._kill: asyncio.TimerHandle | None = None
        self._failures = 0
        self._began = owner.host.lab.registry.now()
        self._previous = previous or {}
        self.state: State = self._previous.get("state") or {"waiting": {"reason": "ContainerCreating"}}
        self._last: State = self._previous.get("lastState") or {}
        self.restarts = int(self._previous.get("restartCount") or 0)
        self._id = str(self._previous.get("containerID") or "")

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec["name"])

    @property
    def address(self) -> str:
        """The pod's address."""
        return self._owner.address

    @property
    def exit_code(self) -> int | None:
        """Its exit code, once it has ended for good."""
        code = (self.state.get("terminated") or {}).get("exitCode")
        return None if code is None else int(code)

    def status(self) -> dict[str, Any]:
        """Its entry in the pod's `containerStatuses`."""
        status = {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": image_id(self.spec["image"]) if self._id else "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self._last,
        }
        return {**status, "containerID": self._id} if self._id else status

    async def run(self, policy: str) -> None:
        """Live, again and again as the restart policy has it, until it ends for good or is stopped."""
        if (code := self.exit_code) is not None and not _again(policy, code):
            return
        while not self._stopping.is_set():
            self.life = asyncio.ensure_future(self._live())
            code = await self.life
            if self._stopping.is_set() or not _again(policy, code):
                return
            await self._wait_to_restart()

    def stop(self, grace_s: float) -> None:
        """End it: SIGTERM now, SIGKILL after `grace_s` seconds; again with less, to make it quick."""
        if not self._stopping.is_set() and self._process is not None:
            self._owner.host.event(
                self._owner.pod, "Normal", "Killing", f"Stopping container {self.name}"
            )
        self._stopping.set()
        self._end_process(grace_s)

    def _end_process(self, grace_s: float) -> None:
        if self._process is None:
            return
        if self._kill is not None:
            self._kill.cancel()
        elif grace_s > 0:
            signal_group(self._process, signal.SIGTERM)
        loop = asyncio.get_running_loop()
        self._kill = loop.call_later(grace_s, signal_group, self._process, signal.SIGKILL)

    async def _live(self) -> int:
        """One life; returns the exit code."""
        launch = None
        rule = images.rule_for(self.spec["image"])
        while not self._stopping.is_set():
            try:
                self.setting = set_up(self._owner, self.spec, on_disk=rule is not None)
                launch = await rule(self.setting.situation) if rule else None
                break
            except Missing as missing:
                self._wait("CreateContainerConfigError", str(missing))
                self._event("Warning", "Failed", f"Error: {missing}")
                await self._owner.woken()
            except WorkshopError as error:  # the tool that the image stands for cannot be had
                self._wait("ErrImagePull", error.seen)
                self._event("Warning", "Failed", f'Failed to pull image "{self.spec["image"]}": {error.seen}')
                await self._owner.woken(self._owner.host.lab.back_off.base)
        if self._stopping.is_set() or self.setting is None:
            return 0
        if launch is None:
            return await self._pause()
        return await self._run(launch, self.setting)

    async def _pause(self) -> int:
        if "running" not in self._previous.get("state", {}):
            self._begin("Simulated", "is not run by the lab: a pause stands in for it, and its probes pass")
        self.started = self.ready = True
        self._owner.changed()
        await self._stopping.wait()
        return self._ended(0, "Completed")

    async def _run(self, launch: images.Launch, setting: Setting) -> int:
        setting = self.setting = replace(setting, launch=launch)
        env = setting.command_env()
        program = program_of(launch.command[0], env, setting.folder)
        self._begin("Simulated", "is not pulled: its command runs as a process of this machine")
        if program is None:
            why = f"failed to create containerd task: OCI runtime create failed: {not_found(launch.command[0])}"
            self._event("Warning", "Failed", f"Error: {why}")
            return self._ended(NO_SUCH_PROGRAM, "StartError", why)
        mark = self._id.rpartition("/")[2]
        self.stdio = Stdio(logs.ContainerLog(self._owner.folder.log(self.name, self.restarts)))
        logs.forget(self._owner.folder.log(self.name, self.restarts - 2))
        self._process = await self.stdio.start(
            self._owner.host.lab.spawner,
            [program, *launch.command[1:]],
            {**env, CONTAINER_MARK: mark},
            setting.folder,
            stdin=bool(self.spec.get("stdin")),
            tty=bool(self.spec.get("tty")),
        )
        return await self._watch(self._process, self.stdio, mark)

    async def _watch(self, process: asyncio.subprocess.Process, stdio: Stdio, mark: str) -> int:
        probing = asyncio.create_task(probes.watch(self))
        if self._stopping.is_set():  # while it was being started
            self._end_process(0)
        try:
            code = exit_code(await process.wait())
        finally:
            probing.cancel()
            signal_group(process, signal.SIGKILL)
            guard.kill_marked(f"{CONTAINER_MARK}={mark}")
            self._process = None
            if self._kill is not None:
                self._kill.cancel()
                self._kill = None
        await asyncio.gather(probing, return_exceptions=True)
        await stdio.finish()
        return self._ended(code, "Completed" if code == 0 else "Error")

    def _begin(self, reason: str, about: str) -> None:
        """A new life begins: its id and times, and the events that tell of it."""
        if self._id:
            self.restarts += 1
            self._last = _last(self.state, self._now())
        self._id = f"containerd://{secrets.token_hex(32)}"
        self.state = {"running": {"startedAt": self._now()}}
        self.started = self.ready = False
        self._began = self._owner.host.lab.registry.now()
        image = self.spec["image"]
        if not self.restarts:
            self._event("Normal", reason, f'Image "{image}" {about}')
        self._event("Normal", "Pulled", f'Container image "{image}" already present on machine')
        self._event("Normal", "Created", f"Created container: {self.name}")
        self._event("Normal", "Started", f"Started container {self.name}")
        self._owner.changed()

    def _ended(self, code: int, reason: str, message: str = "") -> int:
        running = self.state.get("running") or {}
        over = {"exitCode": code, "reason": reason, "startedAt": running.get("startedAt"), "finishedAt": self._now()}
        over |= {"message": message} if message else {}
        self.state = {"terminated": {**over, "containerID": self._id}}
        self.ready = self.started = False
        self._owner.changed()
        return code

    def _wait(self, reason: str, message: str) -> None:
        self.state = {"waiting": {"reason": reason, "message": message}}
        self._owner.changed()

    async def _wait_to_restart(self) -> None:
        """Back off from starting it again, longer each time, unless it has lived long."""
        lab, pod = self._owner.host.lab, self._owner.pod
        lived = lab.registry.now() - self._began
        self._failures = 1 if lived > lab.back_off.forgiven_after else self._failures + 1
        delay = lab.back_off.delay(self._failures)
        if not delay:
            return
        about = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        self._last = self.state
        self._wait("CrashLoopBackOff", f"back-off {delay:g}s restarting failed container={self.name} pod={about}")
        self._event("Warning", "BackOff", f"Back-off restarting failed container {self.name} in pod {about}")
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._stopping.wait()

    async def probe_command(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container: its exit code and what it printed."""
        assert self.setting is not None
        env, folder = self.setting.command_env(), self.setting.folder
        begun = await execute(self._owner.host.lab.spawner, command, env, folder, stdin=False, tty=False)
        assert begun.stderr is not None
        try:
            printed, errors = await asyncio.gather(begun.stdout.read(), begun.stderr.read())
            return await begun.wait(), (printed + errors).decode(errors="replace")
        finally:
            begun.kill()

    def probed(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """A probe has found out something new."""
        before = self.started, self.ready
        self.started = self.started if started is None else started
        self.ready = self.ready if ready is None else ready
        if (self.started, self.ready) != before:
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
            signal_group(self._process, signal.SIGHUP)

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._owner.host.event(self._owner.pod, kind, reason, message)

    def _now(self) -> str:
        return self._owner.host.lab.time()


def _again(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _last(state: State, now: str) -> State:
    """The state of the last life, which nobody saw the end of if the lab was killed meanwhile."""
    if running := state.get("running"):
        unknown = {"exitCode": 255, "reason": "Unknown", "startedAt": running["startedAt"], "finishedAt": now}
        return {"terminated": unknown}
    return state if "terminated" in state else {}
