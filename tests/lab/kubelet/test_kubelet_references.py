"""Which pods a change of a ConfigMap or Secret concerns."""

from __future__ import annotations

from typing import Any

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell

from gpuworkshop.lab.api.kinds import CONFIG_MAP, SECRET
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.kubelet.pods import PodWorker
from gpuworkshop.lab.kubelet.references import Reference, References, in_volumes, references_of


def _pod(name: str = "app", namespace: str = "default", **spec: Any) -> Object:
    whole = {"containers": [{"name": "main", "image": "x"}], **spec}
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}, "spec": whole}


def _variables(**container: Any) -> Object:
    return _pod(containers=[{"name": "main", "image": "x", **container}])


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (_pod(volumes=[{"name": "v", "configMap": {"name": "a"}}]), {(CONFIG_MAP, "a")}),
        (_pod(volumes=[{"name": "v", "secret": {"secretName": "a"}}]), {(SECRET, "a")}),
        (
            _pod(
                volumes=[
                    {
                        "name": "v",
                        "projected": {"sources": [{"secret": {"name": "a"}}, {"configMap": {"name": "b"}}]},
                    }
                ]
            ),
            {(SECRET, "a"), (CONFIG_MAP, "b")},
        ),
        (
            _variables(envFrom=[{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}]),
            {(SECRET, "a"), (CONFIG_MAP, "b")},
        ),
        (
            _variables(env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]),
            {(CONFIG_MAP, "a")},
        ),
        (
            _pod(initContainers=[{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "a"}}]}]),
            {(SECRET, "a")},
        ),
        (_pod(volumes=[{"name": "v", "emptyDir": {}}]), set()),
        (_variables(env=[{"name": "X", "value": "1"}]), set()),
    ],
)
def test_every_way_to_refer_is_found(pod: Object, found: set[Reference]) -> None:
    assert references_of(pod) == found


def test_only_volumes_follow_changes() -> None:
    pod = _variables(envFrom=[{"secretRef": {"name": "a"}}])
    pod["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "b"}}]
    assert list(in_volumes(pod)) == [(CONFIG_MAP, "b")]


def test_index_knows_namespaces_and_forgets() -> None:
    references = References()
    volumes = [{"name": "v", "configMap": {"name": "a"}}]
    one, two = _pod("one", volumes=volumes), _pod("two", volumes=volumes)
    elsewhere = _pod("one", "other", volumes=volumes)
    for pod in (one, two, elsewhere):
        references.add(pod)
    assert references.users(CONFIG_MAP, "default", "a") == ["default/one", "default/two"]
    assert references.users(SECRET, "default", "a") == []
    references.discard(one)
    references.discard(two)
    assert references.users(CONFIG_MAP, "default", "a") == []
    assert references.users(CONFIG_MAP, "other", "a") == ["other/one"]


def test_change_asks_only_the_pods_that_refer_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    inform = PodWorker.source_changed

    def told(worker: PodWorker, *about: Any) -> None:
        asked.append(worker.pod["metadata"]["name"])
        inform(worker, *about)

    monkeypatch.setattr(PodWorker, "source_changed", told)

    async def test(lab: KubeletLab) -> None:
        for number in range(50):
            lab.pod(f"web-{number}", pause())
        lab.put(CONFIG_MAP, "settings", data={"level": "1"})
        mounts = [{"name": "v", "mountPath": "/etc/app"}]
        script = "until grep -q 2 /etc/app/level; do sleep 0.02; done; echo seen; sleep 60"
        volumes = [{"name": "v", "configMap": {"name": "settings"}}]
        lab.pod("app", shell(script, volumeMounts=mounts), volumes=volumes)
        await lab.ready("app")
        asked.clear()

        def change(live: Object) -> None:
            live["data"] = {"level": "2"}

        lab.registry.modify(CONFIG_MAP, "default", "settings", change)
        await lab.logged("app", b"seen\n")
        assert asked == ["app"]

    in_lab(test)
