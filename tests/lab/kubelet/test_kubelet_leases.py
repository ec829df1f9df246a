"""Each node's Lease: renewed all the time, and nothing else is written for that."""

from __future__ import annotations

import pytest
from kubelet_lab import NODE_NAME, KubeletLab, in_lab

from gpuworkshop.lab.api.kinds import LEASE, NODE
from gpuworkshop.lab.kubelet import manager


def test_rhythm_is_a_real_kubelets() -> None:
    assert (manager.LEASE_RENEWAL_S, manager.STATUS_S) == (10, 300)


def test_renewal_writes_the_lease_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "LEASE_RENEWAL_S", 0.02)

    async def test(lab: KubeletLab) -> None:
        node = lab.registry.get(NODE, "", NODE_NAME)
        first = lab.registry.get(LEASE, "kube-node-lease", NODE_NAME)
        assert first["spec"]["leaseDurationSeconds"] == 40
        assert first["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        with lab.registry.changes(LEASE) as changes:
            await anext(changes)
            before = lab.registry.store.revision
            renewed = [(await anext(changes)).object for _ in range(3)]
            assert lab.registry.store.revision - before <= 3
        times = [lease["spec"]["renewTime"] for lease in (first, *renewed)]
        assert times == sorted(set(times))
        assert lab.registry.get(NODE, "", NODE_NAME) == node

    in_lab(test)


def test_lease_that_somebody_has_deleted_comes_back_and_that_of_a_node_goes_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manager, "LEASE_RENEWAL_S", 0.02)

    async def test(lab: KubeletLab) -> None:
        def lease() -> object:
            return lab.registry.find(LEASE, "kube-node-lease", NODE_NAME)

        lab.registry.delete(LEASE, "kube-node-lease", NODE_NAME)
        await lab.until(lease, LEASE)
        lab.registry.delete(NODE, "", NODE_NAME)
        lab.registry.delete(LEASE, "kube-node-lease", NODE_NAME)  # as the collector of garbage does
        lab.node("later")
        await lab.until(lambda: lab.registry.find(LEASE, "kube-node-lease", "later"), LEASE)
        assert lease() is None

    in_lab(test)
