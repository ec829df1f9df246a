"""Readiness gates: a pod is ready once the conditions are true that somebody else sets."""

from __future__ import annotations

from typing import Any

from kubelet_lab import KubeletLab, in_lab, is_true, pause, shell

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import Object, condition
from gpuworkshop.lab.kubelet.statuses import gates

GATE = "target-health.elbv2.k8s.aws/web"


def _set(lab: KubeletLab, status: str, kind: str = GATE) -> None:
    def change(pod: Object) -> None:
        kept = [found for found in pod["status"]["conditions"] if found["type"] != kind]
        pod["status"]["conditions"] = [*kept, {"type": kind, "status": status}]

    lab.registry.modify(POD, "default", "web", change, "status")


def _ready(lab: KubeletLab) -> dict[str, Any]:
    return dict(condition(lab.get("web"), "Ready") or {})


def test_gate_is_waited_for_and_can_close_again() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause(), readinessGates=[{"conditionType": GATE}])
        await lab.until(lambda: is_true(lab.get("web"), "ContainersReady"))
        assert (_ready(lab)["status"], _ready(lab)["reason"]) == ("False", "ReadinessGatesNotReady")
        assert _ready(lab)["message"] == (
            f'corresponding condition of pod readiness gate "{GATE}" does not exist.'
        )
        _set(lab, "True")
        await lab.ready("web")
        assert "reason" not in _ready(lab)
        _set(lab, "False")
        await lab.until(lambda: not is_true(lab.get("web"), "Ready"))
        assert _ready(lab)["message"] == f'the status of pod readiness gate "{GATE}" is not "True", but False'
        assert condition(lab.get("web"), GATE), "the conditions of others stay"

    in_lab(test)


def test_other_conditions_cost_no_write_and_open_nothing() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause(), readinessGates=[{"conditionType": GATE}])
        await lab.until(lambda: is_true(lab.get("web"), "ContainersReady"))
        _set(lab, "True", "example.com/other")
        before = lab.registry.store.revision
        lab.pod("later", pause())
        await lab.ready("later")  # changes are handled in order
        assert not is_true(lab.get("web"), "Ready")
        web = int(lab.get("web")["metadata"]["resourceVersion"])
        assert web <= before

    in_lab(test)


def test_containers_come_before_gates() -> None:
    async def test(lab: KubeletLab) -> None:
        probe = {"exec": {"command": ["false"]}, "periodSeconds": 1}
        lab.pod("web", shell("sleep 60", readinessProbe=probe), readinessGates=[{"conditionType": GATE}])
        await lab.until(lambda: "Unhealthy" in lab.events("web"))
        assert _ready(lab)["reason"] == "ContainersNotReady"

    in_lab(test)


def test_every_closed_gate_is_named() -> None:
    pod: Object = {"spec": {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}}
    pod["status"] = {"conditions": [{"type": "b", "status": "Unknown"}]}
    is_open, _, message = gates(pod)
    assert not is_open
    assert message == (
        'corresponding condition of pod readiness gate "a" does not exist., '
        'the status of pod readiness gate "b" is not "True", but Unknown'
    )
    assert gates({"spec": {}}) == (True, "", "")
