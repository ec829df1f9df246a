"""The reaper as stop.sh runs it: by any Python, knowing nothing but the state folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuworkshop.processes import reaper
from gpuworkshop.processes.reaper import Process, born

SLEEP = ("sleep", "600")
STUBBORN = (sys.executable, "-c", "import signal; signal.signal(15, 1); print(flush=True); signal.pause()")


class Yard:
    """Processes of a test, some of them marked."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, mark: Path | None = None, **env: str) -> subprocess.Popen[bytes]:
        marks = {reaper.MARK: str(mark)} if mark else {}
        started = subprocess.Popen(command, env={**os.environ, **marks, **env}, stdout=subprocess.PIPE)
        self.processes.append(started)
        return started

    def reap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", reaper.__file__, *(arguments or (str(self.state),))]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    state = tmp_path / "a state"
    (state / "run").mkdir(parents=True)
    made = Yard(state)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def test_ends_what_is_marked_and_nothing_else(yard: Yard, tmp_path: Path) -> None:
    ours = yard.start(*SLEEP, mark=yard.state)
    unmarked = yard.start(*SLEEP)
    neighbour = yard.start(*SLEEP, mark=tmp_path / "a state of another")
    done = yard.reap()
    assert (done.returncode, done.stdout) == (0, "ended 1 process\n")
    assert ours.wait(10) == -signal.SIGTERM
    assert unmarked.poll() is None
    assert neighbour.poll() is None


def test_kills_what_ignores_sigterm(yard: Yard) -> None:
    stubborn = yard.start(*STUBBORN, mark=yard.state)
    assert stubborn.stdout
    stubborn.stdout.readline()  # it ignores SIGTERM from here on
    assert yard.reap().returncode == 0
    assert stubborn.wait(10) == -signal.SIGKILL


def test_ends_a_supervisor_that_only_its_file_names(yard: Yard) -> None:
    by_hand = yard.start(*SLEEP)
    record = {"pid": by_hand.pid, "born": born(by_hand.pid)}
    (yard.state / "run" / "lab.json").write_text(json.dumps(record))
    assert yard.reap().stdout == "ended 1 process\n"
    assert by_hand.wait(10) == -signal.SIGTERM


def test_a_recycled_pid_is_no_supervisor(yard: Yard) -> None:
    stranger = yard.start(*SLEEP)
    start = born(stranger.pid)
    assert start
    (yard.state / "run" / "lab.json").write_text(json.dumps({"pid": stranger.pid, "born": start - 1}))
    assert yard.reap().stdout == "nothing was running\n"
    assert stranger.poll() is None


@pytest.mark.parametrize("text", ["", "[]", '{"pid": "x", "born": 1}', '{"pid": 1}', "\0"])
def test_a_broken_state_file_does_not_matter(yard: Yard, text: str) -> None:
    (yard.state / "run" / "lab.json").write_text(text)
    marked = yard.start(*SLEEP, mark=yard.state)
    assert yard.reap().returncode == 0
    assert marked.wait(10) == -signal.SIGTERM


def test_without_a_state_folder(yard: Yard, tmp_path: Path) -> None:
    done = yard.reap(str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing was running\n", "")


def test_wrong_usage(yard: Yard) -> None:
    done = yard.reap("one", "two")
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_a_group_is_found_apart(yard: Yard) -> None:
    lab = yard.start(*SLEEP, mark=yard.state, GPUWORKSHOP_GROUP="lab")
    jupyter = yard.start(*SLEEP, mark=yard.state, GPUWORKSHOP_GROUP="jupyterlab")
    assert [process.pid for process in reaper.find(yard.state, "lab")] == [lab.pid]
    assert {process.pid for process in reaper.find(yard.state)} == {lab.pid, jupyter.pid}
    assert [process.pid for process in reaper.reap(yard.state, "lab")] == [lab.pid]
    assert jupyter.poll() is None


def test_a_zombie_is_not_alive(yard: Yard) -> None:
    process = yard.start("true", mark=yard.state)
    assert process.stdout
    process.stdout.read()  # returns at its end; nobody has waited for it yet
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert born(process.pid) is None
    assert reaper.find(yard.state) == []


def test_runs_on_an_old_python() -> None:
    """What Python 3.8 could not even read would leave processes behind."""
    import ast

    ast.parse(Path(reaper.__file__).read_text(), feature_version=(3, 8))
    assert Process(1, 2) == (1, 2)
