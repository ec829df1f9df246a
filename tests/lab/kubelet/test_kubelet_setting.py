"""What a container finds: variables, files, its own programs; and what happens when a part is missing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell, state_of, statuses

from gpuworkshop.lab.api.kinds import CONFIG_MAP, POD, SECRET, SERVICE_ACCOUNT
from gpuworkshop.lab.kubelet.environment import expand
from gpuworkshop.lab.kubelet.filesystem import PodFolder
from gpuworkshop.lab.kubelet.volumes import Content, File


def _environment(printed: bytes) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.decode().splitlines() if "=" in line)


def test_variables_come_from_everywhere_and_from_the_pod_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_LEARNERS_SHELL", "secret")

    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "settings", data={"COLOUR": "blue", "SIZE": "9"})
        lab.put(SECRET, "login", data={"password": base64.b64encode(b"s3cret").decode()})
        env = [
            {"name": "PLAIN", "value": "$(COLOUR) and $(NOBODY) and $$(COLOUR)"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {
                "name": "MEM",
                "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
            },
            {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
            {"name": "NO", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": True}}},
        ]
        main = shell(
            "env; sleep 60",
            env=env,
            envFrom=[
                {"configMapRef": {"name": "settings"}},
                {"prefix": "S_", "secretRef": {"name": "login"}},
            ],
            resources={"limits": {"memory": "2Gi"}},
        )
        lab.pod("app", main)
        pod = await lab.ready("app")
        found = _environment((await lab.execute("app", "env"))[1])
        assert found["PLAIN"] == "blue and $(NOBODY) and $(COLOUR)"
        assert found["NODE"] == pod["spec"]["nodeName"]
        assert found["IP"] == pod["status"]["podIP"]
        assert (found["MEM"], found["PW"], found["S_password"], found["SIZE"]) == (
            "2048",
            "s3cret",
            "s3cret",
            "9",
        )
        assert found["HOSTNAME"] == "app"
        assert not {"NO", "OF_THE_LEARNERS_SHELL"} & set(found)

    in_lab(test)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"envFrom": [{"configMapRef": {"name": "later"}}]}, 'configmap "later" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "there", "key": "later"}}}]},
            "couldn't find key later in ConfigMap default/there",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "no", "key": "x"}}}]},
            'secret "no" not found',
        ),
    ],
)
def test_missing_reference_waits_with_the_real_words(source: dict[str, object], words: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "there", data={})
        lab.pod("app", pause(**source))
        await lab.until(lambda: statuses(lab.get("app"))[0].get("state", {}).get("waiting"))
        waiting = state_of(lab.get("app"))["waiting"]
        assert waiting == {"reason": "CreateContainerConfigError", "message": words}
        assert lab.events("app")["Failed"] == f"Error: {words}"

    in_lab(test)


def test_missing_config_map_is_waited_for() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", pause(envFrom=[{"configMapRef": {"name": "later"}}]))
        lab.pod("mounts", pause(), volumes=[{"name": "v", "configMap": {"name": "later"}}])
        await lab.until(lambda: "FailedMount" in lab.events("mounts") and "Failed" in lab.events("app"))
        assert lab.events("mounts")["FailedMount"] == (
            'MountVolume.SetUp failed for volume "v" : configmap "later" not found'
        )
        lab.put(CONFIG_MAP, "later", data={"A": "1"})
        await lab.ready("app")
        await lab.ready("mounts")

    in_lab(test)


def test_volumes_are_mounted_below_the_root_and_paths_lead_there() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "settings", data={"app.conf": "a=1\n", "b": "2"})
        lab.put(SECRET, "login", data={"password": base64.b64encode(b"s3cret").decode()})
        lab.put(SERVICE_ACCOUNT, "default")
        projected = [
            {"serviceAccountToken": {"path": "token"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]
        volumes = [
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "one", "configMap": {"name": "settings", "items": [{"key": "b", "path": "deep/er"}]}},
            {"name": "secret", "secret": {"secretName": "login"}},
            {"name": "account", "projected": {"sources": projected}},
            {"name": "host", "hostPath": {"path": "/etc"}},
            {"name": "scratch", "emptyDir": {}},
        ]
        paths = {
            "config": "/etc/app",
            "one": "/one",
            "secret": "/etc/secret",
            "account": "/var/run/secrets/kubernetes.io/serviceaccount",
            "host": "/host/etc",
            "scratch": "/scratch",
        }
        mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
        mounts.append({"name": "config", "mountPath": "/single.conf", "subPath": "app.conf"})
        lab.pod("app", shell("cat /etc/app/app.conf; sleep 60", volumeMounts=mounts), volumes=volumes)
        await lab.logged("app", b"a=1\n")
        script = "cat /one/deep/er /single.conf '/etc/secret/password'; ls /host/etc; "
        script += "touch /scratch/x && ls /scratch"
        assert (await lab.execute("app", "sh", "-c", script))[1] == b"2a=1\ns3cretx\n"
        assert (await lab.execute("app", "stat", "-Lc", "%a", "/etc/secret/password"))[1] == b"600\n"
        token = (await lab.execute("app", "cat", f"{paths['account']}/token", f"{paths['account']}/labels"))[
            1
        ]
        assert token == b"token-of-default-for-Noneapp"
        assert (await lab.execute("app", "cat", "/etc/hostname-of-this-machine"))[0] == 1

    in_lab(test)


def test_changed_config_map_reaches_the_mount() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "settings", data={"a": "1", "gone": "x"})
        mounts = [{"name": "v", "mountPath": "/v"}]
        script = "until grep -q 2 /v/a && test ! -L /v/gone; do sleep 0.02; done; ls /v"
        lab.pod(
            "app",
            shell(script, volumeMounts=mounts),
            volumes=[{"name": "v", "configMap": {"name": "settings"}}],
            restartPolicy="Never",
        )
        await lab.ready("app")

        def change(live: dict[str, object]) -> None:
            live["data"] = {"a": "2"}

        lab.registry.modify(CONFIG_MAP, "default", "settings", change)
        await lab.phase("app", "Succeeded")
        assert await lab.log("app") == b"a\n"

    in_lab(test)


@pytest.mark.parametrize("path", ["../../../../outside", "/v/../../../../outside"])
def test_mount_cannot_lead_out_of_the_pods_folder(tmp_path: Path, path: str) -> None:
    folder = PodFolder(tmp_path / "pods", {"metadata": {"uid": "u"}})
    folder.write_volume("v", Content({path: File(b"x")}))
    mount = {"name": "v", "mountPath": path, "subPath": "../../../outside"}
    folder.mount({"name": "main", "volumeMounts": [mount]})
    found = list(tmp_path.rglob("outside"))
    assert len(found) >= 2
    assert all(place.is_relative_to(folder.path) for place in found)


def test_working_folder_is_below_the_root() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("pwd", workingDir="/srv/app"), restartPolicy="Never")
        await lab.phase("app", "Succeeded")
        assert (await lab.log("app")).endswith(b"/main/rootfs/srv/app\n")

    in_lab(test)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("$(A)-$(B)", "1-$(B)"), ("$$(A)", "$(A)"), ("$A ${A}", "$A ${A}"), ("$(A", "$(A"), ("", "")],
)
def test_expansion(text: str, wanted: str) -> None:
    assert expand(text, {"A": "1"}) == wanted


def test_pause_is_given_a_folder_when_somebody_looks_in() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "settings", data={"a": "1"})
        mounts = [{"name": "v", "mountPath": "/v"}]
        lab.pod("web", pause(volumeMounts=mounts), volumes=[{"name": "v", "configMap": {"name": "settings"}}])
        await lab.ready("web")
        assert (await lab.execute("web", "cat", "/v/a"))[:2] == (0, b"1")
        lab.registry.delete(POD, "default", "web")
        await lab.gone("web")

    in_lab(test)
