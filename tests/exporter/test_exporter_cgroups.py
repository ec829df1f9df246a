"""Processes and the pods that they are of: every form of a control group's name, and a /proc that changes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.exporter.cgroups import GONE, NO_POD, REUSED, UNREADABLE, Group, Processes, group_of

UID = "0b9a63cf-4be2-4a3c-9d0f-1b2c3d4e5f60"
SYSTEMD = UID.replace("-", "_")
STATIC = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
ID, OTHER = "1a" * 32, "2b" * 32
POD = Group(UID, ID)


@pytest.mark.parametrize(
    ("path", "group"),
    [
        # cgroupfs: burstable, besteffort, guaranteed
        (f"/kubepods/burstable/pod{UID}/{ID}", POD),
        (f"/kubepods/besteffort/pod{UID}/{ID}", POD),
        (f"/kubepods/pod{UID}/{ID}", POD),
        (f"/kubepods/burstable/pod{UID}/crio-{ID}", POD),
        # systemd: containerd, cri-o, Docker
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope", POD),  # noqa: E501
        (f"/kubepods.slice/kubepods-pod{SYSTEMD}.slice/crio-{ID}.scope", POD),
        (f"/kubepods.slice/kubepods-pod{SYSTEMD}.slice/crio-conmon-{ID}.scope", POD),
        (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SYSTEMD}.slice/docker-{ID}.scope", POD),  # noqa: E501
        # containerd that was told of cgroupfs by a kubelet with systemd
        (f"/system.slice/containerd.service/kubepods-burstable-pod{SYSTEMD}.slice:cri-containerd:{ID}", POD),
        # kind, whose nodes are containers; both drivers
        (f"/docker/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}", POD),
        (f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope", POD),  # noqa: E501
        # from within another group's namespace
        (f"/../../kubepods-besteffort-pod{SYSTEMD}.slice/cri-containerd-{ID}.scope", POD),
        (f"/../../pod{UID}/{ID}", POD),
        # groups that the container made itself
        (f"/kubepods/burstable/pod{UID}/{ID}/init.scope", POD),
        (f"/kubepods/burstable/pod{UID}/{ID}/docker/{OTHER}", POD),
        # a cluster in a pod: the innermost one
        (f"/kubepods/pod{STATIC}/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}", POD),
        # static pods
        (f"/kubepods/burstable/pod{STATIC}/{ID}", Group(STATIC, ID)),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/cri-containerd-{ID}.scope", Group(STATIC, ID)),  # noqa: E501
        # a group that was removed under its last process
        (f"/kubepods/burstable/pod{UID}/{ID} (deleted)", POD),
        # the pod's own group
        (f"/kubepods/burstable/pod{UID}", Group(UID)),
        (f"/kubepods.slice/kubepods-pod{SYSTEMD}.slice", Group(UID)),
        (f"/kubepods.slice/kubepods-pod{SYSTEMD}.slice/kata_overhead", Group(UID)),
        # no pods
        ("/", None),
        ("/init.scope", None),
        ("/user.slice/user-1000.slice/session-3.scope", None),
        ("/../../../system.slice/nvidia-persistenced.service", None),
        (f"/machine.slice/libpod-{ID}.scope", None),
        (f"/machine.slice/machine-libpod_pod_{ID}.slice/libpod-{OTHER}.scope", None),
        (f"/machine.slice/libpod-{STATIC}.scope", None),
        (f"/docker/{ID}", None),
        (f"/system.slice/docker-{ID}.scope", None),
        (f"/kubepods/burstable/pod{UID}ff/{ID}", None),
    ],
)  # fmt: skip
def test_every_form_of_a_group(path: str, group: Group | None) -> None:
    assert group_of(f"0::{path}\n") == group
    lines = f"12:devices:{path}\n11:cpu,cpuacct:{path}\n1:name=systemd:{path}\n"
    assert group_of(lines) == group


def test_with_version_1_the_controller_that_goes_deepest_counts() -> None:
    text = f"3:rdma:/\n2:pids:/kubepods/pod{UID}\n1:memory:/kubepods/pod{UID}/{ID}\n0::/system.slice\n"
    assert group_of(text) == POD


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    assert group_of(text) is None or "pod" in text


class Proc:
    """A made-up /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes = Processes(root)

    def start(self, pid: int, path: str, ticks: int | None = 100) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cgroup").write_text(f"0::{path}\n", "utf-8")
        if ticks is not None:
            (folder / "stat").write_text(f"{pid} (a ) b) S {' '.join(['0'] * 18)} {ticks} 7 8\n", "utf-8")

    def end(self, pid: int) -> None:
        for file in (self.root / str(pid)).iterdir():
            file.unlink()
        (self.root / str(pid)).rmdir()


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


MINE, THEIRS = f"/kubepods/pod{UID}/{ID}", f"/kubepods/pod{STATIC}/{OTHER}"


def test_a_process_is_found_without_reading_its_group_again(proc: Proc) -> None:
    proc.start(7, MINE)
    assert proc.processes.group(7) == POD
    (proc.root / "7" / "cgroup").unlink()
    assert proc.processes.group(7) == POD


def test_one_without_a_pod_is_looked_at_again(proc: Proc) -> None:
    proc.start(7, "/system.slice")
    assert proc.processes.group(7) == NO_POD
    proc.start(7, MINE)  # as a runtime moves its first process into the container's group
    assert proc.processes.group(7) == POD


def test_processes_that_vanish(proc: Proc) -> None:
    assert proc.processes.group(7) == GONE
    proc.start(7, MINE)
    proc.processes.group(7)
    proc.end(7)
    assert proc.processes.group(7) == GONE


def test_an_id_that_is_another_process_now_is_told_once(proc: Proc) -> None:
    proc.start(7, MINE, ticks=100)
    assert proc.processes.group(7) == POD
    proc.start(7, THEIRS, ticks=900)
    assert proc.processes.group(7) == REUSED
    assert proc.processes.group(7) == Group(STATIC, OTHER)


def test_an_id_that_was_away_in_between_is_new(proc: Proc) -> None:
    proc.start(7, MINE, ticks=100)
    proc.processes.group(7)
    proc.processes.keep_only({8, 9})
    proc.start(7, THEIRS, ticks=900)
    assert proc.processes.group(7) == Group(STATIC, OTHER)


def test_a_proc_without_start_times_will_do(proc: Proc) -> None:
    proc.start(7, MINE, ticks=None)
    assert proc.processes.group(7) == POD
    (proc.root / "7" / "stat").write_text("7 (cut off", "utf-8")
    assert proc.processes.group(7) == POD


def test_what_must_not_be_read_is_told(proc: Proc) -> None:
    proc.start(7, MINE)
    (proc.root / "7" / "cgroup").unlink()
    (proc.root / "7" / "cgroup").mkdir()  # nobody can read that, not even root
    assert proc.processes.group(7) == UNREADABLE


def test_the_machines_own_proc_can_be_read() -> None:
    processes = Processes(Path("/proc"))
    assert processes.group(os.getpid()) not in (GONE, UNREADABLE, REUSED)
    assert processes.group(2**22 + 1) == GONE


@pytest.mark.parametrize(("namespace", "warned"), [("pid:[4026531836]", False), ("pid:[4026532201]", True)])
def test_a_namespace_of_its_own_is_warned_of(
    proc: Proc, namespace: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    proc.processes.warn_if_apart()
    assert not caplog.records  # nothing can be said of a made-up /proc
    (proc.root / "self" / "ns").mkdir(parents=True)
    (proc.root / "self" / "ns" / "pid").symlink_to(namespace)
    proc.processes.warn_if_apart()
    assert ("hostPID: true" in caplog.text) is warned
