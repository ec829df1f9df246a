"""The runners of kubectl and helm: the commands that they run, and what they make of the answers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from gpuworkshop.deploy.helm import Helm
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import DeployError, KubectlError

# Writes down how it was called, and answers as the test says.
STAND_IN = """\
import json, os, sys
stdin = sys.stdin.read()
env = {{key: value for key, value in os.environ.items() if key.startswith(("KUBECONFIG", "HELM_"))}}
with open({record!r}, "w") as file:
    json.dump([sys.argv[1:], stdin, env], file)
sys.stdout.write({out!r})
sys.stderr.write({err!r})
sys.exit({code})
"""


class StandIn:
    """A client whose answer is known."""

    def __init__(self, folder: Path, out: str = "", err: str = "", code: int = 0) -> None:
        self.path, self._record = folder / "client", folder / "record.json"
        record = str(self._record)
        program = folder / "client.py"
        program.write_text(STAND_IN.format(record=record, out=out, err=err, code=code))
        # Python's own path may have a space, which no #! line takes.
        self.path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(program)])} "$@"\n')
        self.path.chmod(0o700)

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.path, Path("/a folder/kubeconfig"))

    @property
    def helm(self) -> Helm:
        return Helm(self.path, Path("/a folder/kubeconfig"), Path("/home/of helm"))

    def called(self) -> tuple[list[str], str, dict[str, str]]:
        arguments, stdin, env = json.loads(self._record.read_text())
        return arguments, stdin, env


def test_get_gives_objects(tmp_path: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "a"}}
    stand_in = StandIn(tmp_path, json.dumps({"kind": "List", "items": [pod, pod]}))
    assert stand_in.kubectl.get("pods", "-n", "x") == [pod, pod]
    arguments, stdin, env = stand_in.called()
    assert arguments == ["get", "pods", "-n", "x", "-o", "json", "--ignore-not-found"]
    assert stdin == ""
    assert env["KUBECONFIG"] == "/a folder/kubeconfig"
    assert StandIn(tmp_path, json.dumps(pod)).kubectl.get("pod/a") == [pod]
    assert StandIn(tmp_path).kubectl.get("pod/none") == []


def test_apply_and_delete_hand_the_manifests_over(tmp_path: Path) -> None:
    objects = [{"kind": "Namespace", "metadata": {"name": "ä"}}, {"kind": "Pod", "metadata": {"name": "b"}}]
    stand_in = StandIn(tmp_path, "done\n")
    assert stand_in.kubectl.apply(objects) == "done\n"
    arguments, stdin, _ = stand_in.called()
    assert arguments == ["apply", "--server-side", "--force-conflicts", "-f", "-"]
    assert list(yaml.safe_load_all(stdin)) == objects
    stand_in.kubectl.delete_manifests(objects)
    arguments, stdin, _ = stand_in.called()
    assert arguments == ["delete", "--ignore-not-found", "-f", "-"]
    assert list(yaml.safe_load_all(stdin)) == objects
    stand_in.kubectl.delete("nodes", "--all")
    assert stand_in.called()[0] == ["delete", "nodes", "--all", "--ignore-not-found"]


def test_wait_gives_kubectl_its_limit(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    stand_in.kubectl.wait("node", "--all", condition="Ready", timeout_s=7)
    assert stand_in.called()[0] == ["wait", "node", "--all", "--for=condition=Ready", "--timeout=7s"]


def test_a_failure_is_told_in_kubectls_words(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path, err='Error from server (NotFound): pods "a b" not found\n', code=1)
    with pytest.raises(KubectlError) as caught:
        stand_in.kubectl.run("get", "pod", "a b")
    assert caught.value.seen == 'Error from server (NotFound): pods "a b" not found'
    assert caught.value.step == "kubectl get pod 'a b'"
    assert "run.sh" not in caught.value.todo
    assert caught.value.response.returncode == 1


def test_a_failure_without_words(tmp_path: Path) -> None:
    with pytest.raises(KubectlError, match="it ended with 3"):
        StandIn(tmp_path, code=3).kubectl.run("get", "pods")


def test_of_many_words_the_last_are_kept(tmp_path: Path) -> None:
    with pytest.raises(KubectlError) as caught:
        StandIn(tmp_path, err="x" * 10_000 + " the end", code=1).kubectl.run("apply")
    assert len(caught.value.seen) == 2000
    assert caught.value.seen.endswith("the end")


@pytest.mark.parametrize(
    "words",
    [
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?",
        "Unable to connect to the server: dial tcp 127.0.0.1:1: connect: connection refused",
        'Error: Kubernetes cluster unreachable: Get "https://127.0.0.1:1/version": EOF',
    ],
)
def test_a_cluster_that_does_not_answer(tmp_path: Path, words: str) -> None:
    stand_in = StandIn(tmp_path, err=words, code=1)
    with pytest.raises(KubectlError) as kubectl:
        stand_in.kubectl.run("get", "pods")
    with pytest.raises(DeployError) as helm:
        stand_in.helm.run("list")
    assert "./run.sh starts it" in kubectl.value.todo
    assert "./run.sh starts it" in helm.value.todo


def test_say_gives_answer_and_complaint(tmp_path: Path) -> None:
    assert StandIn(tmp_path, "a\n", "b\n", 1).kubectl.say("get", "pods") == "a\nb\n"


def test_no_answer_in_time(tmp_path: Path) -> None:
    path = tmp_path / "client"
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o700)
    with pytest.raises(KubectlError, match=r"no answer within 0\.2 s"):
        Kubectl(path, tmp_path).run("get", "pods", timeout_s=0.2)


@pytest.mark.parametrize("kind", ["missing", "plain"])
def test_a_client_that_cannot_be_run(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "client"
    if kind == "plain":
        path.write_text("no program")
    with pytest.raises(KubectlError, match="cannot be run") as caught:
        Kubectl(path, tmp_path).run("get", "pods")
    assert caught.value.todo == "gpuworkshop tools kubectl finds or fetches it"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "client"
    path.write_text("#!/bin/sh\nprintf 'a\\377b'\n")
    path.chmod(0o700)
    assert Kubectl(path, tmp_path).run("logs", "x") == "a\ufffdb"


def test_the_command_as_one_would_type_it(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    said = stand_in.kubectl.text("get", "pods", "-l", "a in (b, c)")
    assert said == "kubectl get pods -l 'a in (b, c)'"
    assert stand_in.helm.text("list") == "helm list"


def test_helm_has_folders_of_its_own(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    stand_in.helm.add_repository("nvidia", "http://127.0.0.1:1/nvidia")
    arguments, _, env = stand_in.called()
    assert arguments == ["repo", "add", "nvidia", "http://127.0.0.1:1/nvidia", "--force-update"]
    assert env["KUBECONFIG"] == "/a folder/kubeconfig"
    assert env["HELM_CONFIG_HOME"] == "/home/of helm/config"
    assert env["HELM_CACHE_HOME"] == "/home/of helm/cache"
    assert env["HELM_DATA_HOME"] == "/home/of helm/data"


def test_upgrade_installs_waits_and_pins(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    values = {"driver": {"enabled": False}}
    stand_in.helm.upgrade("gpu", "nvidia/gpu-operator", "ns", values=values, version="1.2.3", timeout_s=9)
    arguments, stdin, _ = stand_in.called()
    command = "upgrade --install gpu nvidia/gpu-operator --namespace ns --create-namespace --version 1.2.3"
    assert arguments == [*command.split(), "--values", "-", "--wait", "--timeout", "9s"]
    assert yaml.safe_load(stdin) == values
    stand_in.helm.upgrade("gpu", "nvidia/gpu-operator", "ns")
    assert "--version" not in stand_in.called()[0]


def test_releases_and_uninstall(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path, '[{"name": "gpu"}]')
    assert stand_in.helm.releases("ns") == [{"name": "gpu"}]
    assert stand_in.called()[0] == ["list", "--namespace", "ns", "-o", "json"]
    stand_in.helm.uninstall("gpu", "ns")
    arguments = stand_in.called()[0]
    assert arguments[:5] == ["uninstall", "gpu", "--namespace", "ns", "--ignore-not-found"]
    assert "--wait" in arguments
