"""A container's hooks: after its start, and before it is told to end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubelet_lab import KubeletLab, in_lab, shell, statuses

from gpuworkshop.lab.api.kinds import POD

ENDS = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done"
SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked for", self.path, self.headers["X-Why"], flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *about):
        pass
server = http.server.HTTPServer((os.environ["IP"], 8080), Handler)
print("up", flush=True)
server.serve_forever()
"""


async def _log_of_deleted(lab: KubeletLab, up: bytes = b"up\n", grace_s: int = 30) -> bytes:
    """Delete the pod once it is up; what it logs from then on."""
    await lab.logged("app", up)
    following = asyncio.create_task(lab.log("app", follow=True))
    lab.registry.delete(POD, "default", "app", grace_period=grace_s)
    await lab.gone("app")
    return (await following).removeprefix(up)


def test_pre_stop_comes_before_sigterm() -> None:
    async def test(lab: KubeletLab) -> None:
        hook = {"exec": {"command": ["sh", "-c", "touch asked"]}}
        script = "trap 'test -f asked && echo in order; exit 0' TERM; echo up; while :; do sleep 0.02; done"
        lab.pod("app", shell(script, lifecycle={"preStop": hook}))
        assert await _log_of_deleted(lab) == b"in order\n"

    in_lab(test)


def test_pre_stop_can_be_a_request() -> None:
    async def test(lab: KubeletLab) -> None:
        request = {"port": 8080, "path": "/drain", "httpHeaders": [{"name": "X-Why", "value": "end"}]}
        main = shell("", lifecycle={"preStop": {"httpGet": request}}, image="python:3.12")
        main["command"] = ["python3", "-c", SERVER]
        main["env"] = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        lab.pod("app", main)
        assert await _log_of_deleted(lab) == b"asked for /drain end\n"

    in_lab(test)


def test_sleep_longer_than_the_grace_period_is_cut_and_sigterm_still_comes() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell(ENDS, lifecycle={"preStop": {"sleep": {"seconds": 600}}}))
        assert await _log_of_deleted(lab, grace_s=1) == b"told\n"

    in_lab(test)


def test_failed_pre_stop_is_told_and_the_container_ends_all_the_same() -> None:
    async def test(lab: KubeletLab) -> None:
        hook = {"exec": {"command": ["sh", "-c", "echo not me; exit 3"]}}
        lab.pod("app", shell(ENDS, lifecycle={"preStop": hook}))
        assert await _log_of_deleted(lab) == b"told\n"
        assert lab.events("app")["FailedPreStopHook"] == "PreStopHook failed: not me"

    in_lab(test)


def test_process_that_ends_by_itself_has_no_pre_stop() -> None:
    async def test(lab: KubeletLab) -> None:
        hook = {"exec": {"command": ["no-such-program"]}}
        lab.pod("app", shell("true", lifecycle={"preStop": hook}), restartPolicy="Never")
        await lab.phase("app", "Succeeded")
        assert "FailedPreStopHook" not in lab.events("app")

    in_lab(test)


def test_end_of_the_lab_waits_for_no_hook() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell(ENDS, lifecycle={"preStop": {"sleep": {"seconds": 600}}}))
        await lab.logged("app", b"up\n")
        async with asyncio.timeout(10):
            await lab.kubelets.stop()

    in_lab(test)


def test_post_start_comes_before_the_probes() -> None:
    async def test(lab: KubeletLab) -> None:
        hook = {"exec": {"command": ["sh", "-c", "until test -f go; do sleep 0.02; done; touch started"]}}
        probe = {"exec": {"command": ["test", "-f", "started"]}, "periodSeconds": 1}
        lab.pod("app", shell("sleep 60", lifecycle={"postStart": hook}, readinessProbe=probe))
        await lab.until(lambda: "Started" in lab.events("app"))
        assert (await lab.execute("app", "touch", "go"))[0] == 0
        await lab.ready("app")
        assert "Unhealthy" not in lab.events("app")

    in_lab(test)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"exec": {"command": ["sh", "-c", "echo no; exit 1"]}}, "no"),
        ({"httpGet": {"port": 1}}, "connect: connection refused"),
        ({"httpGet": {"port": "nobody"}}, "couldn't find port: nobody"),
    ],
)
def test_failed_post_start_is_told_and_ends_the_container(hook: dict[str, Any], words: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell(ENDS, lifecycle={"postStart": hook}))
        await lab.until(lambda: statuses(lab.get("app"))[0].get("restartCount", 0) >= 1)
        assert lab.events("app")["FailedPostStartHook"].startswith("PostStartHook failed: ")
        assert words in lab.events("app")["FailedPostStartHook"]

    in_lab(test)
