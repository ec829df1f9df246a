"""kubectl and objects: made, read in every form, changed in every way, deleted."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
import yaml
from own_cluster import Client

pytestmark = pytest.mark.real

CREATIONS = {
    "configmap": ("configmap", "x", "--from-literal=a=1", "--from-literal=b=2"),
    "secret": ("secret", "generic", "x", "--from-literal=password=s3cret"),
    "tls": ("secret", "docker-registry", "x", "--docker-username=u", "--docker-password=p"),
    "deployment": ("deployment", "x", "--image=nginx:1.27", "--replicas=2", "--port=80"),
    "job": ("job", "x", "--image=busybox:1.36", "--", "true"),
    "service": ("service", "clusterip", "x", "--tcp=80:8080"),
    "nodeport": ("service", "nodeport", "x", "--tcp=80"),
    "serviceaccount": ("serviceaccount", "x"),
    "role": ("role", "x", "--verb=get,list", "--resource=pods"),
    "rolebinding": ("rolebinding", "x", "--clusterrole=view", "--user=ann"),
    "quota": ("quota", "x", "--hard=pods=5,requests.nvidia.com/gpu=2"),
    "poddisruptionbudget": ("poddisruptionbudget", "x", "--selector=app=x", "--min-available=1"),
    "ingress": ("ingress", "x", "--rule=example.org/*=x:80"),
}


@pytest.mark.parametrize("made", CREATIONS.values(), ids=CREATIONS)
def test_create_typed(client: Client, namespace: str, made: tuple[str, ...]) -> None:
    said = client.kubectl("create", "-n", namespace, *made)
    kind = said.split("/")[0]
    assert said.strip().endswith("created")
    found = client.json("get", "-n", namespace, kind, "x")
    assert found["metadata"]["name"] == "x"
    assert found["metadata"]["uid"]
    assert "already exists" in client.refused("create", "-n", namespace, *made)
    assert '"x" deleted' in client.kubectl("delete", "-n", namespace, kind, "x")
    assert "NotFound" in client.refused("get", "-n", namespace, kind, "x")


def test_create_cluster_wide_kinds(client: Client) -> None:
    client.kubectl("create", "clusterrole", "t-reader", "--verb=get", "--resource=nodes")
    client.kubectl("create", "clusterrolebinding", "t-readers", "--clusterrole=t-reader", "--group=team")
    client.kubectl("create", "priorityclass", "t-high", "--value=1000")
    assert client.json("get", "priorityclass", "t-high")["value"] == 1000
    bound = client.json("get", "clusterrolebinding", "t-readers")
    assert bound["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}]
    for kind, name in (("clusterrolebinding", "t-readers"), ("clusterrole", "t-reader"), ("pc", "t-high")):
        client.kubectl("delete", kind, name)


def test_every_output_form(client: Client, namespace: str) -> None:
    client.kubectl("create", "-n", namespace, "configmap", "x", "--from-literal=a=1")
    client.kubectl("label", "-n", namespace, "configmap", "x", "team=vision")
    get = ("get", "-n", namespace, "configmap", "x")
    assert yaml.safe_load(client.kubectl(*get, "-o", "yaml"))["data"] == {"a": "1"}
    assert json.loads(client.kubectl(*get, "-o", "json"))["kind"] == "ConfigMap"
    assert client.kubectl(*get, "-o", "name") == "configmap/x\n"
    assert client.kubectl(*get, "-o", "jsonpath={.data.a}") == "1"
    assert client.kubectl(*get, "-o", "go-template={{.metadata.name}}") == "x"
    assert client.kubectl(*get, "-o", "custom-columns=N:.metadata.name,A:.data.a").split() == [
        "N",
        "A",
        "x",
        "1",
    ]
    header, row = client.kubectl(*get, "-L", "team").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE", "TEAM"]
    assert row.split()[:2] == ["x", "1"]
    assert row.split()[-1] == "vision"
    assert "team=vision" in client.kubectl(*get, "--show-labels")
    assert "x " in client.kubectl("get", "-n", namespace, "cm", "-l", "team=vision")
    assert (
        "No resources found"
        in client.run(client.kubectl_path, "get", "-n", namespace, "cm", "-l", "team=none").stderr
    )
    sorted_names = client.kubectl("get", "-n", namespace, "cm", "--sort-by=.metadata.name", "-o", "name")
    assert "configmap/x" in sorted_names
    assert "Name:         x" in client.kubectl("describe", "-n", namespace, "configmap", "x")


def test_label_and_annotate(client: Client, namespace: str) -> None:
    client.kubectl("create", "-n", namespace, "configmap", "x")
    client.kubectl("label", "-n", namespace, "cm", "x", "a=1", "b=2")
    assert "already has a value" in client.refused("label", "-n", namespace, "cm", "x", "a=3")
    client.kubectl("label", "-n", namespace, "cm", "x", "a=3", "--overwrite")
    client.kubectl("label", "-n", namespace, "cm", "x", "b-")
    client.kubectl("annotate", "-n", namespace, "cm", "x", "note=hello world")
    found = client.json("get", "-n", namespace, "cm", "x")["metadata"]
    assert found["labels"] == {"a": "3"}
    assert found["annotations"]["note"] == "hello world"


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
"""


def test_apply_client_side(client: Client, namespace: str) -> None:
    apply = ("apply", "-n", namespace, "-f", "-")
    assert "created" in client.kubectl(*apply, stdin=CONFIG_MAP + "  {a: '1', b: '2'}\n")
    assert "unchanged" in client.kubectl(*apply, stdin=CONFIG_MAP + "  {a: '1', b: '2'}\n")
    assert "configured" in client.kubectl(*apply, stdin=CONFIG_MAP + "  {a: '9'}\n")
    assert client.json("get", "-n", namespace, "cm", "settings")["data"] == {"a": "9"}


def test_apply_server_side_with_a_conflict(client: Client, namespace: str) -> None:
    apply = ("apply", "--server-side", "-n", namespace, "-f", "-")
    assert "serverside-applied" in client.kubectl(*apply, stdin=CONFIG_MAP + "  {a: '1', b: '2'}\n")
    other = ("--field-manager=other",)
    said = client.refused(*apply, *other, stdin=CONFIG_MAP + "  {a: '5'}\n")
    assert "conflict" in said
    assert '"kubectl"' in said
    assert ".data.a" in said
    client.kubectl(*apply, *other, "--force-conflicts", stdin=CONFIG_MAP + "  {a: '5'}\n")
    assert client.json("get", "-n", namespace, "cm", "settings")["data"] == {"a": "5", "b": "2"}
    client.kubectl(*apply, stdin=CONFIG_MAP + "  {b: '2'}\n")
    assert client.json("get", "-n", namespace, "cm", "settings")["data"] == {"a": "5", "b": "2"}
    client.kubectl(*apply, *other, stdin=CONFIG_MAP + "  {}\n")
    assert client.json("get", "-n", namespace, "cm", "settings")["data"] == {"b": "2"}


def test_unknown_fields_are_refused_or_warned_of(client: Client, namespace: str) -> None:
    manifest = CONFIG_MAP.replace("\ndata:", "\ndota: {}\ndata:") + "  {a: '1'}\n"
    said = client.refused("apply", "-n", namespace, "-f", "-", stdin=manifest)
    assert 'unknown field "dota"' in said
    warned = client.run(
        client.kubectl_path, "apply", "-n", namespace, "--validate=warn", "-f", "-", stdin=manifest
    )
    assert 'unknown field "dota"' in warned.stderr
    assert "created" in warned.stdout


def test_diff_shows_what_would_change_and_changes_nothing(client: Client, namespace: str) -> None:
    client.kubectl("apply", "-n", namespace, "-f", "-", stdin=CONFIG_MAP + "  {a: '1'}\n")
    done = client.run(
        client.kubectl_path,
        *("diff", "-n", namespace, "-f", "-"),
        stdin=CONFIG_MAP + "  {a: '2'}\n",
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert '-  a: "1"' in done.stdout
    assert '+  a: "2"' in done.stdout
    assert client.json("get", "-n", namespace, "cm", "settings")["data"] == {"a": "1"}


def test_dry_run_on_the_server(client: Client, namespace: str) -> None:
    made = ("create", "deployment", "x", "--image=nginx", "-n", namespace, "--dry-run=server", "-o", "json")
    found = json.loads(client.kubectl(*made))
    assert found["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "NotFound" in client.refused("get", "-n", namespace, "deployment", "x")


def test_patches_of_three_types(client: Client, namespace: str) -> None:
    client.kubectl("create", "-n", namespace, "deployment", "x", "--image=nginx:1.27")
    patch = ("patch", "-n", namespace, "deployment", "x")
    client.kubectl(*patch, "--type=merge", "-p", '{"metadata":{"labels":{"a":"1"}}}')
    client.kubectl(*patch, "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":0}]')
    containers = '{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"busybox"}]}}}}'
    client.kubectl(*patch, "-p", containers)
    found = client.json("get", "-n", namespace, "deployment", "x")
    assert found["metadata"]["labels"]["a"] == "1"
    assert found["spec"]["replicas"] == 0
    assert {c["name"] for c in found["spec"]["template"]["spec"]["containers"]} == {"nginx", "sidecar"}


def test_replace_of_an_old_version_is_a_conflict(client: Client, namespace: str) -> None:
    client.kubectl("create", "-n", namespace, "configmap", "x", "--from-literal=a=1")
    old = client.kubectl("get", "-n", namespace, "cm", "x", "-o", "yaml")
    client.kubectl("label", "-n", namespace, "cm", "x", "a=1")
    said = client.refused("replace", "-f", "-", stdin=old)
    assert "the object has been modified" in said


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n", "RFC 1123"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n",
            "spec.containers: Required value",
        ),
        ("apiVersion: v2\nkind: Pod\nmetadata: {name: x}\n", "no matches for kind"),
        ("apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: x}\n", "no matches for kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 5}\n", "containers"),
    ],
)
def test_bad_manifests_get_the_real_words(client: Client, namespace: str, manifest: str, words: str) -> None:
    assert words in client.refused("apply", "-n", namespace, "-f", "-", stdin=manifest)


def test_watch_sees_what_happens(client: Client, namespace: str) -> None:
    watching = subprocess.Popen(
        [client.kubectl_path, "get", "cm", "-n", namespace, "-w", "--output-watch-events", "-l", "w=1"],
        env={"KUBECONFIG": str(client.kubeconfig), "HOME": str(client.home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        client.kubectl("create", "-n", namespace, "configmap", "x")
        client.kubectl("label", "-n", namespace, "cm", "x", "w=1")
        lines = [watching.stdout.readline().split() for _ in range(2)]
        assert lines[0] == ["EVENT", "NAME", "DATA", "AGE"]
        assert lines[1][:3] == ["ADDED", "x", "0"]
        client.kubectl("label", "-n", namespace, "cm", "x", "b=1")
        assert watching.stdout.readline().split()[:2] == ["MODIFIED", "x"]
        client.kubectl("label", "-n", namespace, "cm", "x", "w-")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "x"]
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


def test_wait_for_a_value(client: Client, namespace: str) -> None:
    client.kubectl("create", "-n", namespace, "configmap", "x", "--from-literal=a=1")
    wait = ("wait", "-n", namespace, "cm/x", "--timeout=20s")
    waiting = subprocess.Popen(
        [client.kubectl_path, *wait, "--for=jsonpath={.data.a}=2"],
        env={"KUBECONFIG": str(client.kubeconfig), "HOME": str(client.home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    client.kubectl("patch", "-n", namespace, "cm", "x", "--type=merge", "-p", '{"data":{"a":"2"}}')
    assert "condition met" in waiting.communicate(timeout=30)[0]
    assert waiting.returncode == 0


def test_delete_with_cascade(client: Client, namespace: str) -> None:
    owned = ("get", "rs", "-n", namespace, "-l", "app=x", "-o", "name")
    client.kubectl("create", "-n", namespace, "deployment", "x", "--image=nginx")
    client.kubectl("rollout", "status", "-n", namespace, "deployment/x", "--timeout=30s")
    assert client.kubectl(*owned)
    client.kubectl("delete", "-n", namespace, "deployment", "x", "--cascade=orphan")
    assert client.kubectl(*owned)
    client.kubectl("create", "-n", namespace, "deployment", "x", "--image=nginx")
    client.kubectl("delete", "-n", namespace, "deployment", "x", "--cascade=foreground")
    deadline = time.monotonic() + 30
    while client.kubectl(*owned) and time.monotonic() < deadline:
        client.run(
            client.kubectl_path, "wait", "-n", namespace, "rs", "-l", "app=x", "--for=delete", check=False
        )
    assert not client.kubectl(*owned)


def test_can_i(client: Client, namespace: str) -> None:
    assert client.kubectl("auth", "can-i", "create", "pods") == "yes\n"
    nobody = ("--as=ann", "-n", namespace)
    assert (
        client.run(client.kubectl_path, "auth", "can-i", "list", "pods", *nobody, check=False).stdout
        == "no\n"
    )
    assert 'User "ann" cannot list resource "pods"' in client.refused("get", "pods", *nobody)
    client.kubectl("create", "rolebinding", "v", "--clusterrole=view", "--user=ann", "-n", namespace)
    assert client.kubectl("auth", "can-i", "list", "pods", *nobody) == "yes\n"
    assert "No resources" in client.run(client.kubectl_path, "get", "pods", *nobody).stderr
    assert "is forbidden" in client.refused("create", "configmap", "x", *nobody)
    assert "kubernetes-admin" in client.kubectl("auth", "whoami")
    assert "pods" in client.kubectl("auth", "can-i", "--list", *nobody)


def test_a_service_account_has_what_is_bound_to_it(client: Client, namespace: str) -> None:
    token = client.kubectl("create", "token", "default", "-n", namespace).strip()
    whoami = client.kubectl("auth", "whoami", f"--token={token}", "--kubeconfig=/dev/null", *server(client))
    assert f"system:serviceaccount:{namespace}:default" in whoami
    get = ("get", "pods", "-n", namespace, f"--token={token}", "--kubeconfig=/dev/null", *server(client))
    assert "Forbidden" in client.refused(*get)
    bad = ("get", "pods", "--token=nonsense", "--kubeconfig=/dev/null", *server(client))
    assert "logged in" in client.refused(*bad)


def server(client: Client) -> tuple[str, str]:
    """Flags that reach the server without the admin's kubeconfig."""
    config = yaml.safe_load(client.kubeconfig.read_text())
    return f"--server={config['clusters'][0]['cluster']['server']}", "--insecure-skip-tls-verify"


def test_explain_and_top(client: Client) -> None:
    assert "KIND:       Deployment" in client.kubectl("explain", "deployment")
    assert "FIELD: replicas <integer>" in client.kubectl("explain", "deployment.spec.replicas")
    assert "Metrics API not available" in client.refused("top", "nodes")


def test_version_and_api_resources(client: Client) -> None:
    assert "Server Version: v1." in client.kubectl("version")
    resources = client.kubectl("api-resources")
    assert "deployments" in resources
    assert "apps/v1" in client.kubectl("api-versions")
    assert "is running at" in client.kubectl("cluster-info")


def test_custom_resources_are_served(client: Client, namespace: str) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "waves.test.gpuworkshop.io"},
        "spec": {
            "group": "test.gpuworkshop.io",
            "names": {"kind": "Wave", "plural": "waves", "shortNames": ["wv"]},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [{"name": "On", "type": "integer", "jsonPath": ".spec.on"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "required": ["on"],
                                    "properties": {
                                        "on": {"type": "integer", "minimum": 1},
                                        "off": {"type": "integer", "default": 20},
                                    },
                                }
                            },
                        }
                    },
                }
            ],
        },
    }
    client.apply(json.dumps(crd))
    client.kubectl("wait", "--for=condition=Established", "crd/waves.test.gpuworkshop.io", "--timeout=10s")
    wave = {
        "apiVersion": "test.gpuworkshop.io/v1",
        "kind": "Wave",
        "metadata": {"name": "w"},
        "spec": {"on": 5},
    }
    client.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(wave))
    assert client.json("get", "-n", namespace, "wv", "w")["spec"] == {"on": 5, "off": 20}
    header, row = client.kubectl("get", "-n", namespace, "waves").splitlines()
    assert header.split() == ["NAME", "ON"]
    assert row.split()[:2] == ["w", "5"]
    wave["spec"] = {"on": 0}
    said = client.refused("apply", "-n", namespace, "-f", "-", stdin=json.dumps(wave))
    assert "spec.on" in said
    client.kubectl("delete", "crd", "waves.test.gpuworkshop.io")
    refused = client.refused("get", "-n", namespace, "waves")  # the words depend on kubectl's discovery cache
    assert "the server doesn't have a resource type" in refused or "could not find" in refused
