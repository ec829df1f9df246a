"""What kubectl does with all kinds at once, where the lab has only some: pruning, `all`, and storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from own_cluster import Client

pytestmark = pytest.mark.real
MAP = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {set: one}}\n"
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /mnt}, storageClassName: slow}
---
apiVersion: v1
kind: Pod
metadata: {name: keeper}
spec:
  containers: [{name: c, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


@pytest.fixture
def namespace(client: Client) -> Iterator[str]:
    name = "all-kinds"
    client.kubectl("create", "namespace", name)
    yield name
    client.kubectl("delete", "namespace", name)


def test_apply_prunes(client: Client, namespace: str) -> None:
    prune = ("apply", "-n", namespace, "--prune", "-l", "set=one", "-f", "-")
    client.kubectl(*prune, stdin=MAP % "first" + MAP % "second")
    assert "configmap/second pruned" in client.kubectl(*prune, stdin=MAP % "first")
    assert "second" not in client.kubectl("get", "configmaps", "-n", namespace)


def test_all_is_got_and_deleted(client: Client, namespace: str) -> None:
    client.kubectl("create", "deployment", "web", "--image=nginx", "-n", namespace)
    assert "deployment.apps/web" in client.kubectl("get", "all", "-n", namespace)
    said = client.kubectl("delete", "all", "--all", "-n", namespace)
    assert 'deployment.apps "web" deleted' in said
    assert client.json("get", "deployments,replicasets", "-n", namespace)["items"] == []


def test_what_cannot_be_made(client: Client, namespace: str) -> None:
    cron = ("create", "cronjob", "nightly", "--image=nginx", "--schedule=0 3 * * *", "-n", namespace)
    assert "does not allow this method" in client.refused(*cron)
    assert client.json("get", "cronjobs,rc", "-n", namespace)["items"] == []
    assert "MethodNotAllowed" in client.refused("delete", "--raw", "/api/v1/namespaces")


def test_storage_is_kept_and_never_given(client: Client, namespace: str) -> None:
    apply = ("apply", "-n", namespace, "-f", "-")
    client.kubectl(*apply, stdin=CLAIM)
    try:
        assert client.kubectl(*apply, stdin=CLAIM).count("unchanged") == 2
        assert "Pending" in client.kubectl("get", "pvc", "data", "-n", namespace, "--no-headers")
        disk = client.kubectl("get", "pv", "disk", "--no-headers").split()
        assert disk[:5] == ["disk", "2Gi", "RWO", "Retain", "Available"]
        client.kubectl("wait", "pod/keeper", "-n", namespace, "--for=condition=PodScheduled=false")
        said = client.kubectl("describe", "pod", "keeper", "-n", namespace)
        assert "pod has unbound immediate PersistentVolumeClaims. no new claims to deallocate, " in said
        assert "rehearse with an emptyDir" in client.kubectl("describe", "pvc", "data", "-n", namespace)
    finally:
        client.kubectl("delete", "pv", "disk")
