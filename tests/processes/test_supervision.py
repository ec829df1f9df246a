"""Groups of real processes under real supervisors: started, watched, killed in every way, ended."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.errors import DiskFull, PortInUse, ServiceDied, ServiceError, StartTimeout
from gpuworkshop.processes import groups, reaper, state, tether
from gpuworkshop.processes.children import Service
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.processes.keeper import Keeper, Pace
from gpuworkshop.processes.ports import free_port
from gpuworkshop.processes.reaper import Process, alive, born
from gpuworkshop.settings import Settings

PROGRAM = str(Path(__file__).with_name("supervised.py"))


class World:
    """A checkout of its own, with spaces in its path, and the services of its group."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.settings = Settings(root=root, state=root / ".work shop")
        self.listing = root / "services.json"
        self.services: list[dict[str, Any]] = []

    def add(self, name: str, *arguments: str, health: str = "/", **about: Any) -> int:
        """A service that serves on a free port, or runs what `arguments` say; returns the port."""
        port = free_port("127.0.0.1")
        url = f"http://127.0.0.1:{port}"
        run = arguments if arguments[:1] == ("fail",) else ("serve", str(port), *arguments)
        command = [sys.executable, PROGRAM, *run]
        service = {"name": name, "command": command, "url": url, "health_url": url + health, **about}
        self.services.append(service)
        self.listing.write_text(json.dumps(self.services))
        return port

    def ensure(self, timeout_s: float = 30.0, group: str = "test") -> list[ServiceStatus]:
        return groups.ensure(group, self.settings, timeout_s, self.command(group))

    def command(self, group: str = "test") -> list[str]:
        return [sys.executable, PROGRAM, "supervise", group, str(self.listing)]

    def supervisor(self) -> Process:
        written = state.read(self.settings.run / "test.json")
        assert written is not None
        return written.supervisor

    def now(self, name: str = "web") -> ServiceStatus:
        return next(service for service in groups.status(self.settings) if service.name == name)


def until(what: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def process(pid: int | None) -> Process:
    assert pid is not None
    start = born(pid)
    assert start is not None
    return Process(pid, start)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "a check out")
    yield made
    groups.stop(made.settings)


def test_all_services_are_started_and_healthy(world: World) -> None:
    port = world.add("web")
    world.add("other")
    web, other = world.ensure()
    assert (web.name, web.state, web.group, web.url) == ("web", "healthy", "test", f"http://127.0.0.1:{port}")
    assert other.state == "healthy"
    assert process(web.pid) != process(other.pid)
    assert "serving" in (world.settings.logs / "web.log").read_text()


def test_what_already_runs_is_left_as_it_is(world: World) -> None:
    world.add("web")
    first = world.ensure()
    supervisor = world.supervisor()
    assert world.ensure() == first
    assert world.supervisor() == supervisor


def test_two_at_once_start_one_supervisor(world: World) -> None:
    world.add("web")
    with ThreadPoolExecutor() as pool:
        first, second, third = pool.map(lambda _: world.ensure(), range(3))
    assert first == second == third
    found = reaper.find(world.settings.state)
    assert {world.supervisor().pid, first[0].pid} <= {one.pid for one in found}
    until(lambda: len(reaper.find(world.settings.state)) == 2)


def test_a_supervisor_that_comes_second_goes_at_once(world: World) -> None:
    world.add("web")
    before = world.ensure()
    environment = {**os.environ, "GPUWORKSHOP_STATE": str(world.settings.state)}
    subprocess.run(world.command(), env=environment, check=True, timeout=30)
    assert world.ensure() == before


def test_groups_live_side_by_side(world: World) -> None:
    world.add("web")
    world.ensure()
    other = World(world.settings.root / "another")
    other.settings = world.settings
    other.add("second")
    other.ensure(group="other")
    assert groups.stop_group("other", world.settings) == 2
    assert world.now("web").state == "healthy"
    assert world.now("second").state == "stopped"


def test_a_killed_service_is_started_anew(world: World) -> None:
    world.add("web")
    pid = world.ensure()[0].pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: world.now().state == "healthy" and world.now().pid != pid)


def test_a_hung_service_is_unhealthy_and_then_started_anew(world: World) -> None:
    world.add("web")
    hung = process(world.ensure()[0].pid)
    os.kill(hung.pid, signal.SIGSTOP)
    assert world.now().state == "unhealthy"
    assert "timed out" in world.now().detail
    until(lambda: not alive(hung), within_s=60)
    until(lambda: world.now().state == "healthy")


def test_restart_gives_a_new_process(world: World) -> None:
    world.add("web")
    world.add("other")
    web, other = world.ensure()
    again = groups.restart("web", world.settings)
    assert (again.state, again.name) == ("healthy", "web")
    assert again.pid != web.pid
    assert world.now("other") == other


def test_restart_ends_a_process_that_ignores_sigterm(world: World) -> None:
    world.add("web", "stubborn")
    old = process(world.ensure()[0].pid)
    assert groups.restart("web", world.settings, timeout_s=4).pid != old.pid
    assert not alive(old)


def test_restart_of_what_does_not_run(world: World) -> None:
    with pytest.raises(ServiceError, match=r"web is not running(.|\n)*run\.sh"):
        groups.restart("web", world.settings)


def test_a_service_that_dies_at_each_start(world: World) -> None:
    world.add("web")
    world.add("bad", "fail", "the cat ate", "the configuration")
    with pytest.raises(ServiceDied) as caught:
        world.ensure()
    text = str(caught.value)
    assert "bad ended with exit code 1" in text
    assert "the cat ate the configuration" in text
    assert str(world.settings.logs / "bad.log") in text
    assert (world.settings.logs / "bad.log").read_text().count("the cat ate") == 3
    until(lambda: not reaper.find(world.settings.state))
    assert [service.state for service in groups.status(world.settings) if service.group == "test"] == [
        "stopped",
        "stopped",
    ]


def test_a_program_that_does_not_exist(world: World) -> None:
    world.add("bad", "fail")
    world.services[0]["command"] = ["no-such-program"]
    world.listing.write_text(json.dumps(world.services))
    with pytest.raises(ServiceDied, match="no-such-program: No such file or directory"):
        world.ensure()


def test_a_folder_that_does_not_exist(world: World) -> None:
    world.add("bad", cwd=str(world.settings.root / "nowhere"))
    with pytest.raises(ServiceDied, match=r"cannot be started: .*nowhere"):
        world.ensure()


def test_an_address_in_use(world: World) -> None:
    port = world.add("web")
    with socket.create_server(("127.0.0.1", port)), pytest.raises(PortInUse, match=f"in use.*:{port}"):
        world.ensure()


@pytest.mark.parametrize(
    ("said", "kind"),
    [("bind: address already in use", PortInUse), ("write: No space left on device", DiskFull)],
)
def test_the_cause_is_read_from_the_log(world: World, said: str, kind: type[ServiceError]) -> None:
    world.add("bad", "fail", said)
    with pytest.raises(kind, match=said):
        world.ensure()


def test_an_error_of_the_listing_reaches_the_starter(world: World) -> None:
    world.listing.write_text("no JSON")
    with pytest.raises(ServiceDied, match="JSONDecodeError"):
        world.ensure()


def test_a_service_that_never_becomes_healthy(world: World) -> None:
    world.add("web", health="/broken")
    with pytest.raises(StartTimeout, match=r"web is starting(.|\n)*serving"):
        world.ensure(timeout_s=2)


def test_a_service_too_slow_for_its_own_limit_counts_as_dead(world: World) -> None:
    world.add("web", health="/broken", start_timeout_s=0.2)
    with pytest.raises(ServiceDied, match=r"not healthy within 0\.2 s: .*/broken answers 500"):
        world.ensure()


def test_a_group_that_failed_can_be_started_when_mended(world: World) -> None:
    world.add("web", "fail")
    with pytest.raises(ServiceDied):
        world.ensure()
    world.services.clear()
    world.add("web")
    assert world.ensure()[0].state == "healthy"


def test_children_end_with_a_killed_supervisor_and_all_starts_again(world: World) -> None:
    world.add("web")
    web = process(world.ensure()[0].pid)
    os.kill(world.supervisor().pid, signal.SIGKILL)
    until(lambda: not alive(web))
    assert (world.now().state, world.now().pid, world.now().url) == ("stopped", None, "")
    assert process(world.ensure()[0].pid) != web


def test_what_a_killed_supervisor_left_behind_is_seen_and_replaced(world: World) -> None:
    world.add("web", "stubborn", "family")
    stubborn = process(world.ensure()[0].pid)
    supervisor = world.supervisor()
    os.kill(supervisor.pid, signal.SIGKILL)
    until(lambda: not alive(supervisor))
    assert alive(stubborn)
    assert "left behind" in world.now().detail
    again = process(world.ensure()[0].pid)
    assert not alive(stubborn)
    assert alive(again)


def test_services_end_in_reverse_order(world: World) -> None:
    journal = world.settings.root / "journal"
    ports = [world.add(name, str(journal)) for name in ("first", "second", "third")]
    world.ensure()
    os.kill(world.supervisor().pid, signal.SIGTERM)
    until(lambda: not reaper.find(world.settings.state))
    assert [int(line) for line in journal.read_text().split()] == ports[::-1]
    written = state.read(world.settings.run / "test.json")
    assert written is not None
    assert {service.state for service in written.services} == {"stopped"}


def test_a_stubborn_service_and_its_family_end_too(world: World) -> None:
    world.add("web", "stubborn", "family")
    world.ensure()
    assert len(reaper.find(world.settings.state)) == 3
    assert groups.stop(world.settings) == 3
    assert reaper.find(world.settings.state) == []
    assert groups.stop(world.settings) == 0


def test_status_before_anything_ran(world: World) -> None:
    services = groups.status(world.settings)
    assert {(service.name, service.state) for service in services} == {
        ("cluster", "stopped"),
        ("jupyterlab", "stopped"),
        ("prometheus", "stopped"),
    }


def test_status_with_a_broken_state_file(world: World) -> None:
    world.settings.run.mkdir(parents=True)
    (world.settings.run / "lab.json").write_text('{"pid": 1, "services"')
    assert world.now("prometheus").state == "stopped"


def test_state_files_and_logs_are_private(world: World) -> None:
    world.add("web")
    world.ensure()
    files = [world.settings.run / "test.json", *world.settings.logs.iterdir()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_long_log_is_cut_at_the_start(world: World) -> None:
    world.settings.logs.mkdir(parents=True)
    log = world.settings.logs / "web.log"
    log.write_bytes(b"an old line\n" * 1_000_000 + b"the last of the old lines\n")
    world.add("web")
    world.ensure()
    text = log.read_text()
    assert 4_900_000 < len(text) < 5_001_000
    assert text.startswith("an old line\n")
    assert "the last of the old lines\n--- starting web" in text


def test_health_is_asked_past_any_proxy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port('127.0.0.1')}")
    world.add("web")
    assert world.ensure()[0].state == "healthy"


def test_a_nudge_ends_the_back_off_and_loses_no_cancellation(world: World) -> None:
    world.settings.logs.mkdir(parents=True)
    command = [sys.executable, PROGRAM, "fail", "again"]
    url = f"http://127.0.0.1:{free_port('127.0.0.1')}"
    seen: list[int] = []

    async def live() -> None:
        changed = asyncio.Event()
        keeper = Keeper("test", Service("bad", command, url, url), world.settings, pace, changed.set)
        keeping = asyncio.create_task(keeper.run())
        for starts in (2, 4):  # after the first death in a row it starts at once, after the second it waits
            while not log.exists() or log.read_text().count("again") < starts or keeper.status.pid:
                async with asyncio.timeout(20):
                    await changed.wait()
                changed.clear()
            seen.append(log.read_text().count("--- starting"))
            keeper.nudge()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    log = world.settings.logs / "bad.log"
    pace = Pace(back_off=600, give_up_after=100, grace=1)
    asyncio.run(live())
    assert seen == [2, 4]


def test_a_tether_refuses_a_parent_that_is_gone() -> None:
    command = [sys.executable, "-I", "-S", tether.__file__, "1", "echo", "too late"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the supervisor ended" in done.stderr


def test_back_off_doubles_up_to_its_limit() -> None:
    assert [Pace().delay(deaths) for deaths in range(1, 9)] == [0, 1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("damage", ["garbage", "gone", "another's"])
def test_a_damaged_state_file_is_mended(world: World, damage: str) -> None:
    world.add("web")
    before = world.ensure()
    record = world.settings.run / "test.json"
    if damage == "gone":
        record.unlink()
    else:
        record.write_text("garbage" if damage == "garbage" else '{"pid": 1, "born": 1, "services": []}')
    assert world.ensure() == before


def test_a_supervisor_whose_lock_is_gone_gives_way(world: World) -> None:
    world.add("web")
    before = world.ensure()
    old = world.supervisor()
    shutil.rmtree(world.settings.run)
    until(lambda: not reaper.alive(old))
    after = world.ensure()
    assert after[0].pid != before[0].pid
    until(lambda: len(reaper.find(world.settings.state)) == 2)
