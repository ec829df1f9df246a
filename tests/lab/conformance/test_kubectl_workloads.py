"""kubectl and what runs: roll-outs, scaling, logs, commands, connections, nodes."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from own_cluster import Client

pytestmark = pytest.mark.real


def test_rollout_of_a_deployment(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("create", "deployment", "web", "--image=nginx:1.26", "--replicas=3", *n)
    said = client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    assert 'deployment "web" successfully rolled out' in said
    header, row = client.kubectl("get", "deployment", "web", *n).splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row.split()[:4] == ["web", "3/3", "3", "3"]
    client.kubectl("set", "image", "deployment/web", "nginx=nginx:1.27", *n)
    client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    images = "jsonpath={.items[*].spec.containers[0].image}"
    assert set(
        client.kubectl("get", "pods", *n, "--field-selector=status.phase=Running", "-o", images).split()
    ) <= {
        "nginx:1.27",
        "nginx:1.26",
    }
    assert len(client.kubectl("rollout", "history", "deployment/web", *n).splitlines()) >= 4
    client.kubectl("rollout", "undo", "deployment/web", *n)
    client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    template = client.json("get", "deployment", "web", *n)["spec"]["template"]["spec"]
    assert template["containers"][0]["image"] == "nginx:1.26"
    client.kubectl("rollout", "restart", "deployment/web", *n)
    client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    client.kubectl("scale", "deployment/web", "--replicas=1", *n)
    client.kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=1", "--timeout=30s", *n)
    assert "Replicas:" in client.kubectl("describe", "deployment", "web", *n)


def test_the_table_of_pods(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("run", "web", "--image=nginx", *n)
    client.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s", *n)
    header, row = client.kubectl("get", "pod", "web", *n).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["web", "1/1", "Running", "0"]
    wide = client.kubectl("get", "pod", "web", "-o", "wide", *n)
    assert "127." in wide
    assert "compute.internal" in wide
    described = client.kubectl("describe", "pod", "web", *n)
    assert "Successfully assigned" in described
    assert "pause" in described, "an event says that the image is not run"


def test_a_pod_that_no_node_can_take_says_why(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    resources = {"limits": {"example.com/none": 1}}
    override = json.dumps(
        {"spec": {"containers": [{"name": "big", "image": "nginx", "resources": resources}]}}
    )
    client.kubectl("run", "big", "--image=nginx", f"--overrides={override}", *n)
    unschedulable = "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].reason}=Unschedulable"
    client.kubectl("wait", "pod/big", unschedulable, "--timeout=20s", *n)
    described = client.kubectl("describe", "pod", "big", *n)
    assert "0/3 nodes are available: 3 Insufficient example.com/none." in described
    assert "Pending" in client.kubectl("get", "pod", "big", *n)


def test_expose_and_endpoints(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("create", "deployment", "web", "--image=nginx", "--port=80", *n)
    client.kubectl("expose", "deployment", "web", *n)
    client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    client.kubectl(
        "wait", "endpoints/web", "--for=jsonpath={.subsets[0].addresses[0].ip}", "--timeout=20s", *n
    )
    assert "web-" in client.kubectl("get", "endpointslices", *n)
    assert "ClusterIP" in client.kubectl("get", "service", "web", *n)


def python_pod(client: Client, namespace: str, name: str, program: str, *arguments: str) -> None:
    client.kubectl(
        *("run", name, "--image=python:3.12-slim", "--restart=Never", "-n", namespace, *arguments),
        *("--command", "--", "python", "-u", "-c", program),
    )


def test_logs(client: Client, namespace: str) -> None:
    python_pod(client, namespace, "talker", "for n in range(5): print('line', n)")
    n = ("-n", namespace)
    client.kubectl("wait", "pod/talker", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", *n)
    assert client.kubectl("logs", "talker", *n) == "".join(f"line {i}\n" for i in range(5))
    assert client.kubectl("logs", "talker", "--tail=2", *n) == "line 3\nline 4\n"
    assert client.kubectl("logs", "talker", "--since=1h", "--timestamps", *n).startswith("20")
    assert "Completed" in client.kubectl("get", "pod", "talker", *n)


def test_logs_follow_until_the_end(client: Client, namespace: str) -> None:
    program = "import sys\nprint('ready')\nsys.stdin.read()\nprint('bye')"
    python_pod(client, namespace, "talker", program)
    n = ("-n", namespace)
    client.kubectl("wait", "pod/talker", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", *n)
    assert client.kubectl("logs", "-f", "talker", *n) == "ready\nbye\n"


def test_a_pod_that_fails_is_started_again_with_back_off(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    program = "print('I fail'); raise SystemExit(3)"
    client.kubectl(
        *("run", "crasher", "--image=python:3.12-slim", *n),
        *("--command", "--", "python", "-u", "-c", program),
    )
    waiting = "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff"
    client.kubectl("wait", "pod/crasher", waiting, "--timeout=60s", *n)
    assert "CrashLoopBackOff" in client.kubectl("get", "pod", "crasher", *n)
    assert client.kubectl("logs", "--previous", "crasher", *n) == "I fail\n"
    status = client.json("get", "pod", "crasher", *n)["status"]["containerStatuses"][0]
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert status["restartCount"] >= 1


def test_exec(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("run", "web", "--image=nginx", *n, "--env=COLOUR=blue")
    client.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s", *n)
    assert client.kubectl("exec", "web", *n, "--", "sh", "-c", "echo $COLOUR") == "blue\n"
    assert (
        client.kubectl("exec", "-i", "web", *n, "--", "cat", stdin="to and fro\n" * 1000)
        == "to and fro\n" * 1000
    )
    done = client.run(
        client.kubectl_path, "exec", "web", *n, "--", "sh", "-c", "echo no >&2; exit 7", check=False
    )
    assert done.returncode == 7
    assert "no\n" in done.stderr
    missing = client.run(client.kubectl_path, "exec", "web", *n, "--", "nvidia-smi", check=False)
    assert missing.returncode != 0
    assert "executable file not found" in missing.stderr


ECHO = """
import socketserver, os
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while piece := self.request.recv(65536):
            self.request.sendall(piece)
socketserver.ThreadingTCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer((os.environ['POD_IP'], 7777), Echo) as server:
    print('listening', flush=True)
    server.serve_forever()
"""


def test_port_forward_carries_five_megabytes_each_way(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "echo", "namespace": namespace},
        "spec": {
            "containers": [
                {
                    "name": "echo",
                    "image": "python:3.12-slim",
                    "command": ["python", "-u", "-c", ECHO],
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "readinessProbe": {"tcpSocket": {"port": 7777}, "periodSeconds": 1},
                }
            ]
        },
    }
    client.apply(json.dumps(manifest))
    client.kubectl("wait", "pod/echo", "--for=condition=Ready", "--timeout=30s", *n)
    forward = subprocess.Popen(
        [client.kubectl_path, "port-forward", "pod/echo", ":7777", *n],
        env={"KUBECONFIG": str(client.kubeconfig), "HOME": str(client.home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert forward.stdout is not None
    try:
        port = int(forward.stdout.readline().split("127.0.0.1:")[1].split()[0])
        sent = bytes(range(256)) * (5 * 2**20 // 256)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            writer = threading.Thread(target=connection.sendall, args=(sent,))
            writer.start()
            received = bytearray()
            while len(received) < len(sent) and (piece := connection.recv(65536)):
                received += piece
            writer.join()
        assert received == sent
    finally:
        forward.kill()
        forward.wait()
        forward.stdout.close()


def test_the_service_proxy(client: Client, namespace: str, tmp_path: Path) -> None:
    n = ("-n", namespace)
    program = (
        "import http.server, os; os.chdir('/tmp'); "
        "http.server.test(http.server.SimpleHTTPRequestHandler, bind=os.environ['POD_IP'], port=8080)"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "www", "namespace": namespace, "labels": {"app": "www"}},
        "spec": {
            "containers": [
                {
                    "name": "www",
                    "image": "python:3.12-slim",
                    "command": ["python", "-c", program],
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
                }
            ]
        },
    }
    client.apply(json.dumps(pod))
    client.kubectl("expose", "pod", "www", "--port=80", "--target-port=http", *n)
    client.kubectl("wait", "pod/www", "--for=condition=Ready", "--timeout=30s", *n)
    client.kubectl(
        "wait", "endpoints/www", "--for=jsonpath={.subsets[0].addresses[0].ip}", "--timeout=20s", *n
    )
    for target in ("services/www:80", "pods/www:8080"):
        page = client.kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/{target}/proxy/")
        assert "<title>Directory listing" in page


def test_cordon_drain_and_taint(client: Client, namespace: str) -> None:
    node = client.kubectl("get", "nodes", "-l", "eks.amazonaws.com/nodegroup=g5", "-o", "name").split()[0]
    name = node.removeprefix("node/")
    try:
        client.kubectl("cordon", name)
        assert "SchedulingDisabled" in client.kubectl("get", "node", name)
        client.kubectl(
            "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=40s"
        )
    finally:
        client.kubectl("uncordon", name)
    assert "SchedulingDisabled" not in client.kubectl("get", "node", name)
    client.kubectl("taint", "node", name, "team=vision:NoSchedule")
    assert client.json("get", "node", name)["spec"]["taints"][0]["key"] == "team"
    client.kubectl("taint", "node", name, "team-")
    assert "taints" not in client.json("get", "node", name)["spec"]


def test_nodes_look_as_on_eks(client: Client) -> None:
    header, *rows = client.kubectl("get", "nodes", "-L", "node.kubernetes.io/instance-type").splitlines()
    assert header.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "INSTANCE-TYPE"]
    assert [row.split()[1] for row in rows] == ["Ready"] * 3
    assert sorted(row.split()[-1] for row in rows) == ["g5.12xlarge", "g5.12xlarge", "m5.xlarge"]
    nodes = client.json("get", "nodes")["items"]
    assert all(node["metadata"]["labels"]["gpuworkshop.io/simulated"] == "true" for node in nodes)
    assert "Capacity:" in client.kubectl("describe", "nodes")


def test_jobs_daemon_sets_and_stateful_sets(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("create", "job", "sum", "--image=python:3.12-slim", *n, "--", "python", "-c", "print(6*7)")
    client.kubectl("wait", "job/sum", "--for=condition=Complete", "--timeout=30s", *n)
    assert client.kubectl("logs", "job/sum", *n) == "42\n"
    for kind, more in (("DaemonSet", ""), ("StatefulSet", "serviceName: x, replicas: 2,")):
        client.apply(
            f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: x, namespace: {namespace}}}\n"
            f"spec: {{{more} selector: {{matchLabels: {{k: {kind}}}}}, template: {{metadata: {{labels: "
            f"{{k: {kind}}}}}, spec: {{containers: [{{name: c, image: nginx}}]}}}}}}\n"
        )
        client.kubectl("rollout", "status", f"{kind}/x", "--timeout=30s", *n)
    assert client.json("get", "daemonset", "x", *n)["status"]["numberReady"] == 3
    assert "x-0" in client.kubectl("get", "pods", *n)
    assert "x-1" in client.kubectl("get", "pods", *n)


def test_quota_stops_a_pod_in_the_real_words(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("create", "quota", "few", "--hard=pods=1", *n)
    client.kubectl("wait", "quota/few", "--for=jsonpath={.status.hard.pods}=1", "--timeout=20s", *n)
    client.kubectl("run", "one", "--image=nginx", *n)
    said = client.refused("run", "two", "--image=nginx", *n)
    assert "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1" in said


def test_events_are_listed(client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("run", "web", "--image=nginx", *n)
    client.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s", *n)
    events = client.kubectl("get", "events", *n)
    assert events.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "Scheduled" in events
    assert "Started" in client.kubectl("events", *n)
