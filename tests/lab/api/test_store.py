"""The store against a model: versions increase, watches replay exactly, nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpuworkshop.errors import LabError
from gpuworkshop.lab.api.changes import Change, ChangeLog
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.store import Stale, Store

RESOURCES = st.sampled_from(["pods", "deployments.apps"])
NAMESPACES = st.sampled_from(["", "a", "b"])
NAMES = st.sampled_from(["x", "y", "z"])


def an_object(namespace: str, name: str, value: int) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, "value": value}


class StoreMachine(RuleBasedStateMachine):
    """Random writes, removals, restarts and watches, against a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[tuple[str, str, str], Object] = {}
        self.expected: list[tuple[str, int, tuple[str, str, str]]] = []
        self.watches: list[tuple[int, int]] = []  # where in `expected` each began, and its revision

    @initialize()
    def open(self) -> None:
        self.path = Path(self._folder()) / "store.db"
        self.store = Store(self.path)
        self.started_at = 0

    @staticmethod
    def _folder() -> str:
        import tempfile

        return tempfile.mkdtemp(prefix="store-")

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES, value=st.integers(0, 9))
    def write(self, resource: str, namespace: str, name: str, value: int) -> None:
        key = (resource, namespace, name)
        known = self.model.get(key)
        before = self.store.revision
        expected = known["metadata"]["resourceVersion"] if known else None
        written = self.store.write(resource, an_object(namespace, name, value), expected)
        assert int(written["metadata"]["resourceVersion"]) > before
        self.expected.append(("MODIFIED" if known else "ADDED", self.store.revision, key))
        self.model[key] = written

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES)
    def write_over_a_version_that_is_gone(self, resource: str, namespace: str, name: str) -> None:
        before = self.store.revision
        with pytest.raises(Stale):
            self.store.write(resource, an_object(namespace, name, 1), "no such version")
        assert self.store.revision == before

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES)
    def create_what_exists(self, resource: str, namespace: str, name: str) -> None:
        if (resource, namespace, name) in self.model:
            with pytest.raises(Stale):
                self.store.write(resource, an_object(namespace, name, 1), None)

    @rule(resource=RESOURCES, namespace=NAMESPACES, name=NAMES)
    def remove(self, resource: str, namespace: str, name: str) -> None:
        before = self.store.revision
        removed = self.store.remove(resource, namespace, name)
        known = self.model.pop((resource, namespace, name), None)
        if known is None:
            assert removed is None
            assert self.store.revision == before
            return
        assert removed is not None
        assert int(removed["metadata"]["resourceVersion"]) == self.store.revision > before
        self.expected.append(("DELETED", self.store.revision, (resource, namespace, name)))

    @rule()
    def watch_from_here(self) -> None:
        self.watches.append((len(self.expected), self.store.revision))

    @rule()
    def restart(self) -> None:
        self.store.close()
        revision = self.store.revision
        self.store = Store(self.path)
        assert self.store.revision == revision
        self.started_at = len(self.expected)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "store"):
            return
        for resource in ("pods", "deployments.apps"):
            kept = {key: obj for key, obj in self.model.items() if key[0] == resource}
            assert self.store.list(resource) == [kept[key] for key in sorted(kept)]
            for namespace in ("a", "b"):
                of_one = [kept[key] for key in sorted(kept) if key[1] == namespace]
                assert self.store.list(resource, namespace) == of_one

    @invariant()
    def watches_replay_exactly(self) -> None:
        for begun, revision in self.watches:
            position = self.store.log.position_after(revision)
            if begun < self.started_at and revision < self.store_start_revision():
                assert position is None
                continue
            assert position is not None
            changes = self.store.log.read(position)
            assert changes is not None
            seen = [(c.type, c.revision, key_of(c)) for c in changes]
            assert seen == self.expected[max(begun, self.started_at) :]

    def store_start_revision(self) -> int:
        return self.expected[self.started_at - 1][1] if self.started_at else 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def key_of(change: Change) -> tuple[str, str, str]:
    metadata: dict[str, Any] = change.object["metadata"]
    return change.resource, metadata["namespace"], metadata["name"]


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def a_change(revision: int) -> Change:
    return Change("ADDED", "pods", an_object("a", f"p{revision}", 0), None, revision)


def test_the_log_forgets_what_is_old_and_says_so() -> None:
    log = ChangeLog(start=0, kept=10)
    for revision in range(1, 51):
        log.append(a_change(revision))
    assert log.position_after(0) is None
    newest = log.position_after(45)
    assert newest is not None
    changes = log.read(newest)
    assert changes is not None
    assert [change.revision for change in changes] == [46, 47, 48, 49, 50]
    assert log.read(0) is None


def test_a_position_stays_right_while_old_changes_are_forgotten() -> None:
    log = ChangeLog(start=0, kept=10)
    seen: list[int] = []
    position = log.end
    for revision in range(1, 200):
        log.append(a_change(revision))
        if revision % 7 == 0:
            changes = log.read(position)
            assert changes is not None
            seen += [change.revision for change in changes]
            position += len(changes)
    assert seen == list(range(1, 197))


def test_fifty_watches_see_each_change_once_and_in_order() -> None:
    store = Store()

    async def watch() -> list[int]:
        seen: list[int] = []
        position = 0
        while len(seen) < 500:
            more = store.log.more()
            if store.log.end == position:
                await more
            changes = store.log.read(position)
            assert changes is not None
            position += len(changes)
            seen += [change.revision for change in changes]
        return seen

    async def change() -> None:
        for n in range(500):
            store.write("pods", an_object("a", f"pod-{n}", n), None)
            if n % 5 == 0:
                await asyncio.sleep(0)

    async def all_of_them() -> list[list[int]]:
        watches = [asyncio.create_task(watch()) for _ in range(50)]
        await change()
        return await asyncio.gather(*watches)

    assert asyncio.run(all_of_them()) == [list(range(1, 501))] * 50
    store.close()


def test_kill_minus_nine_loses_nothing(tmp_path: Path) -> None:
    writer = f"""
import os, signal
from gpuworkshop.lab.api.store import Store
store = Store({str(tmp_path / "store.db")!r})
for n in range(200):
    store.write("pods", {{"metadata": {{"namespace": "a", "name": f"p{{n}}"}}}}, None)
store.remove("pods", "a", "p7")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", writer], check=False).returncode == -9
    store = Store(tmp_path / "store.db")
    assert store.revision == 201
    assert len(store.list("pods")) == 199
    store.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(LabError, match="gpuworkshop lab reset") as caught:
        Store(tmp_path / "store.db")
    assert "store.db" in str(caught.value)


def test_a_disk_that_refuses_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.write("pods", an_object("a", "x", 1), None)

    class FullDisk:
        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    whole = store._database
    monkeypatch.setattr(store, "_database", FullDisk())
    with pytest.raises(sqlite3.OperationalError):
        store.write("pods", an_object("a", "y", 1), None)
    assert store.revision == 1
    assert [obj["metadata"]["name"] for obj in store.list("pods")] == ["x"]
    monkeypatch.undo()
    assert store._database is whole
    assert store.write("pods", an_object("a", "y", 1), None)["metadata"]["resourceVersion"] == "2"
    store.close()
