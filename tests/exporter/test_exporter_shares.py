"""Shares of a device, from made-up processes: what is not known is absent, and the rest adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.exporter.cgroups import Processes
from gpuworkshop.exporter.devices import Device, Family, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.pod_directory import PodDirectory
from gpuworkshop.exporter.processes import Activity, Process, Usage, Window
from gpuworkshop.exporter.rendering import labels
from gpuworkshop.exporter.schema import SCHEMAS
from gpuworkshop.exporter.shares import COUNTED_S, HELD_S, Owners, WithShares

DEVICE = Device(0, "GPU-1", "NVIDIA H200", "00000000:01:00.0", "580")
UIDS = {name: f"{n}{n}{n}{n}{n}{n}{n}{n}-1111-4111-8111-111111111111" for n, name in enumerate("abc", 1)}
CONTAINER = "f" * 64


class Machine:
    """A backend whose processes, readings, clock, /proc and API server are all made up."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.now = 100.0
        self.values: dict[Field, float] = {Field.GPU_UTIL: 1.0, Field.FB_USED: 1000.0}
        self.usages: list[Usage] = []
        self.directory = PodDirectory()
        for name in UIDS:
            self.directory.put(pod(name))
        label = lambda device, pod: labels(device, pod, SCHEMAS["4.8.4"], "node-1")  # noqa: E731
        owners = Owners(Processes(proc), self.directory)
        self.shares = WithShares(self, owners, self.directory, label, clock=lambda: self.now)

    def read(self, _: float) -> Sequence[Reading]:
        return [Reading(DEVICE, self.values)]

    def processes(self) -> Sequence[Usage]:
        return self.usages

    def families(self) -> Sequence[Family]:
        return []

    def process(self, pid: int, of: str, start: int = 7) -> None:
        """A process in a pod's container; one of no pod for ""."""
        (self.proc / str(pid)).mkdir(exist_ok=True)
        group = f"/kubepods/pod{UIDS[of]}/{CONTAINER}" if of else "/user.slice"
        (self.proc / str(pid) / "cgroup").write_text(f"0::{group}\n", "utf-8")
        (self.proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {'0 ' * 18}{start} 0\n", "utf-8")

    def take(
        self,
        memory: Mapping[int, float | None],
        active: Mapping[int, float] | None = None,
        *,
        seconds: float = 1.0,
        reasons: Mapping[str, str] | None = None,
    ) -> dict[str, dict[str, float]]:
        """A reading a second later: metric name → pod, or "" → value."""
        self.now += 1.0
        window = (
            Window(seconds, {pid: {Activity.SM: it} for pid, it in active.items()})
            if active is not None
            else None
        )
        listed = [Process(pid, size) for pid, size in memory.items()]
        self.usages = [Usage(DEVICE, listed, window, reasons or {})]
        self.shares.read(0.0)
        return self.told()

    def told(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for family in self.shares.families():
            for pairs, value in family.samples:
                pod = dict(pairs).get("pod") or dict(pairs).get("state", "")
                found.setdefault(family.name, {})[pod] = value
        return found


def pod(name: str, phase: str = "Running") -> dict[str, Any]:
    status = {
        "phase": phase,
        "containerStatuses": [{"name": "c", "containerID": f"containerd://{CONTAINER}"}],
    }
    return {"metadata": {"namespace": "n", "name": name, "uid": UIDS[name]}, "status": status}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    for pid, name in ((1, "a"), (2, "b"), (3, "b"), (4, "")):
        made.process(pid, name)
    return made


RATIO, SECONDS, MEMORY = (
    "pod_gpu_sm_active_ratio",
    "pod_gpu_sm_active_seconds_total",
    "pod_gpu_memory_used_bytes",
)


def test_a_share_is_the_sum_over_a_pods_processes_and_the_rest_adds_up(machine: Machine) -> None:
    told = machine.take({1: 100, 2: 200, 3: 50, 4: 30}, {1: 0.5, 2: 0.25, 3: 0.125, 4: 0.0625}, seconds=2)
    assert told[RATIO] == {"a": 0.5, "b": 0.375}
    assert told["gpu_unattributed_sm_active_ratio"] == {"": 0.125}
    assert told[MEMORY] == {"a": 100, "b": 250}
    assert told["gpu_unattributed_memory_used_bytes"] == {"": 650}
    assert told["pod_gpu_processes"] == {"a": 1, "b": 2}
    assert told["gpu_unattributed_processes"] == {"": 1}
    assert told[SECONDS] == {"a": 1.0, "b": 0.75}
    assert told["gpuworkshop_share_processes"] == {"attributed": 3, "no_pod": 1}


def test_who_does_nothing_has_a_true_zero_and_who_is_not_there_no_row(machine: Machine) -> None:
    told = machine.take({1: 100, 2: 200}, {1: 1.0})
    assert told[RATIO] == {"a": 1.0, "b": 0.0}
    told = machine.take({1: 100}, {1: 1.0})
    assert told[RATIO] == {"a": 1.0}
    assert told[MEMORY] == {"a": 100}


def test_an_unknown_memory_is_absent_and_never_a_smaller_one(machine: Machine) -> None:
    told = machine.take({1: None, 2: 200, 3: None}, {})
    assert MEMORY not in told
    assert told["pod_gpu_processes"] == {"a": 1, "b": 2}


def test_an_unknown_memory_leaves_no_rest_that_is_too_large(machine: Machine) -> None:
    assert "gpu_unattributed_memory_used_bytes" not in machine.take({1: None, 2: 200}, {})


def test_samples_of_processes_that_cannot_be_listed_are_nobodys_and_not_the_rests(machine: Machine) -> None:
    machine.take({1: 100}, {1: 0.5})
    before = machine.told()[SECONDS]
    window = Window(1.0, {1: {Activity.SM: 0.9}})
    machine.usages = [Usage(DEVICE, None, window, {"memory_used": "unknown"})]
    machine.shares.read(0.0)
    told = machine.told()
    assert told[SECONDS] == before
    assert told.get("gpu_unattributed_sm_active_seconds_total") == {"": 0.5}


def test_without_new_samples_the_last_stand_for_a_while(machine: Machine) -> None:
    machine.take({1: 100}, {1: 0.5})
    assert machine.take({1: 100})[RATIO] == {"a": 0.5}
    machine.now += HELD_S
    told = machine.take({1: 100})
    assert RATIO not in told
    assert told[SECONDS] == {"a": 0.5}


def test_no_samples_while_the_device_is_idle_is_a_true_zero(machine: Machine) -> None:
    machine.take({1: 100}, {1: 0.5})
    machine.values[Field.GPU_UTIL] = 0.0
    assert machine.take({1: 100})[RATIO] == {"a": 0.0}


def test_a_counter_never_steps_back_and_outlives_its_processes_for_a_while(machine: Machine) -> None:
    for passed in range(1, 5):
        assert machine.take({1: 1}, {1: 0.5})[SECONDS]["a"] == passed / 2
    assert machine.take({}, {})[SECONDS] == {"a": 2.0}
    assert machine.take({1: 1}, {1: 1.0})[SECONDS]["a"] == 3.0
    machine.take({}, {})
    machine.now += COUNTED_S + 1
    assert SECONDS not in machine.take({}, {})


def test_a_process_that_vanishes_between_two_calls_is_of_no_pod(machine: Machine) -> None:
    told = machine.take({1: 100, 99: 50}, {1: 0.5, 99: 0.25})
    assert told[RATIO] == {"a": 0.5}
    assert told["gpu_unattributed_sm_active_ratio"] == {"": 0.5}
    assert told["gpuworkshop_share_processes"] == {"attributed": 1, "gone": 1}


def test_a_process_id_that_is_used_again_is_not_the_first_pods(machine: Machine) -> None:
    assert machine.take({1: 100}, {1: 0.5})[RATIO] == {"a": 0.5}
    machine.process(1, "b", start=8)
    told = machine.take({1: 100}, {1: 0.5})
    assert told.get(RATIO, {}) == {}
    assert told["gpuworkshop_share_processes"] == {"reused": 1}
    assert machine.take({1: 100}, {1: 0.5})[RATIO] == {"b": 0.5}


def test_a_pod_that_the_api_server_does_not_know_is_unknown_until_it_does(machine: Machine) -> None:
    machine.directory.replace([])
    machine.directory._left.clear()
    machine.directory._index()
    assert machine.take({1: 1}, {1: 0.5})["gpuworkshop_share_processes"] == {"pod_unknown": 1}
    machine.directory.put(pod("a"))
    assert machine.take({1: 1}, {1: 0.5})[RATIO] == {"a": 0.5}


def test_a_pod_that_has_ended_is_not_shown(machine: Machine) -> None:
    machine.take({1: 1}, {1: 0.5})
    machine.directory.put(pod("a", "Succeeded"))
    assert RATIO not in machine.take({1: 1}, {1: 0.5})


def test_what_the_device_cannot_tell_has_its_reason(machine: Machine) -> None:
    reasons = {str(Activity.SM): "not_on_mig"}
    told = machine.take({1: 100}, None, reasons=reasons)
    assert RATIO not in told
    assert told[MEMORY] == {"a": 100}
    assert told["gpuworkshop_share_unavailable"] == {"": 1}


def test_shares_that_overlap_leave_no_negative_rest(machine: Machine) -> None:
    told = machine.take({1: 800, 2: 800}, {1: 1.0, 2: 1.0})
    assert told["gpu_unattributed_sm_active_ratio"] == {"": 0.0}
    assert told["gpu_unattributed_memory_used_bytes"] == {"": 0.0}


def test_a_thousand_pods_each_have_their_own(machine: Machine, tmp_path: Path) -> None:
    for pid in range(1000, 2000):
        uid = f"{pid:08d}-1111-4111-8111-111111111111"
        UIDS[str(pid)] = uid
        machine.process(pid, str(pid))
    try:
        machine.directory.replace([pod(str(pid)) for pid in range(1000, 2000)])
        told = machine.take(dict.fromkeys(range(1000, 2000), 1.0), dict.fromkeys(range(1000, 2000), 0.001))
    finally:
        for pid in range(1000, 2000):
            del UIDS[str(pid)]
    assert len(told[RATIO]) == 1000
    assert sum(told[RATIO].values()) == pytest.approx(1.0)
