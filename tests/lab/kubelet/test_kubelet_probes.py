"""Probes: what they ask, and what follows from the answers."""

from __future__ import annotations

from typing import Any

import pytest
from kubelet_lab import KubeletLab, in_lab, is_true, pause, shell, statuses

SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = os.path.exists("ok") if self.path == "/ready" else True
        self.send_response(200 if found else 503)
        self.end_headers()
    def log_message(self, *about):
        pass
http.server.ThreadingHTTPServer((os.environ["IP"], 8080), Handler).serve_forever()
"""


def _server(**probes: Any) -> dict[str, Any]:
    return {
        "name": "main",
        "image": "python:3.12",
        "command": ["python3", "-c", SERVER],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        **probes,
    }


def test_readiness_follows_the_answers() -> None:
    async def test(lab: KubeletLab) -> None:
        probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1, "failureThreshold": 1}
        lab.pod("app", _server(readinessProbe=probe))
        await lab.until(lambda: "503" in lab.events("app").get("Unhealthy", ""))
        assert (
            lab.events("app")["Unhealthy"] == "Readiness probe failed: HTTP probe failed with statuscode: 503"
        )
        assert not is_true(lab.get("app"), "Ready")
        await lab.execute("app", "touch", "ok")
        await lab.ready("app")
        await lab.execute("app", "rm", "ok")
        await lab.until(lambda: not is_true(lab.get("app"), "Ready"))
        pod = lab.get("app")
        ready = next(found for found in pod["status"]["conditions"] if found["type"] == "Ready")
        assert ready["message"] == "containers with unready status: [main]"
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0

    in_lab(test)


def test_failed_liveness_starts_the_container_anew() -> None:
    async def test(lab: KubeletLab) -> None:
        probe = {"exec": {"command": ["test", "-f", "alive"]}, "periodSeconds": 1, "failureThreshold": 1}
        lab.pod("app", shell("sleep 60", livenessProbe=probe, terminationGracePeriodSeconds=1))
        await lab.until(lambda: statuses(lab.get("app"))[0].get("restartCount") == 1)
        assert lab.events("app")["Killing"] == "Container main failed liveness probe, will be restarted"
        assert lab.events("app")["Unhealthy"].startswith("Liveness probe failed: ")

    in_lab(test)


def test_nothing_is_started_before_its_startup_probe_passes() -> None:
    async def test(lab: KubeletLab) -> None:
        probe = {"exec": {"command": ["test", "-f", "up"]}, "periodSeconds": 1, "failureThreshold": 100}
        lab.pod("app", shell("sleep 60", startupProbe=probe))
        await lab.until(lambda: "Unhealthy" in lab.events("app"))
        status = statuses(lab.get("app"))[0]
        assert (status["started"], status["ready"]) == (False, False)
        assert "running" in status["state"]
        await lab.execute("app", "touch", "up")
        pod = await lab.ready("app")
        assert pod["status"]["containerStatuses"][0]["started"]

    in_lab(test)


@pytest.mark.parametrize(
    "probe",
    [
        {"tcpSocket": {"port": 8080}},
        {"httpGet": {"port": 8080, "path": "ready-or-not", "httpHeaders": [{"name": "A", "value": "b"}]}},
        {"exec": {"command": ["true"]}},
    ],
)
def test_each_kind_of_probe_can_pass(probe: dict[str, Any]) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", _server(readinessProbe={**probe, "periodSeconds": 1}))
        await lab.ready("app")

    in_lab(test)


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ({"tcpSocket": {"port": 1}}, ":1: connect: connection refused"),
        ({"httpGet": {"port": "nobody"}}, "couldn't find port: nobody"),
        ({"exec": {"command": ["sh", "-c", "echo because; exit 1"]}}, "because"),
        ({"exec": {"command": ["sleep", "60"]}}, "command timed out after 1s"),
        ({"exec": {"command": ["no-such-program"]}}, "executable file not found"),
    ],
)
def test_each_failure_is_told(probe: dict[str, Any], words: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("sleep 60", readinessProbe=probe))
        await lab.until(lambda: words in lab.events("app").get("Unhealthy", ""))
        assert not is_true(lab.get("app"), "Ready")

    in_lab(test)


def test_probes_of_a_pause_pass() -> None:
    async def test(lab: KubeletLab) -> None:
        probe = {"httpGet": {"path": "/", "port": 1}, "initialDelaySeconds": 3600}
        lab.pod("web", pause(readinessProbe=probe, livenessProbe=probe, startupProbe=probe))
        await lab.ready("web")
        assert "Unhealthy" not in lab.events("web")

    in_lab(test)
